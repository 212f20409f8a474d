/* Attaches all programs of an object until its standard input ends. Nothing is measured by the kernel meanwhile. */
#include <bpf/libbpf.h>
#include <stdio.h>

int main(int count, char **words) {
    if (count != 2) return 2;
    struct bpf_object *object = bpf_object__open_file(words[1], NULL);
    if (!object || bpf_object__load(object)) return 1;
    struct bpf_program *program;
    bpf_object__for_each_program(program, object) {
        if (!bpf_program__attach(program)) return 1;
    }
    puts("attached");
    fflush(stdout);
    while (getchar() != EOF) {}
    return 0;
}
