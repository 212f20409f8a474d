/*
 * Says whether it has more privileges than who started it, and whether it has memory that a recorder finds. Nothing of that takes the numbers
 * of standard files, and where machine code of filters goes nobody makes longer or shorter.
 */
#include <kymo/kymo.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

KYMO_EVENT(memory, live, KYMO_U64(number));

/* Of the files that are open, the one for machine code. */
static void check_arena(int number)
{
    char path[64], name[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", number);
    const ssize_t length = readlink(path, name, sizeof name - 1);
    if (length <= 0)
        return;
    name[length] = 0;
    if (strstr(name, "memfd:kymo") && (number < 3 || ftruncate(number, 0) == 0 || ftruncate(number, 1 << 20) == 0))
        exit(3);
}

int main(int argc, char **argv)
{
    char line[1024];
    int files = 0;
    struct stat found;
    for (int number = 0; number < 3; ++number) {
        if (argc > 1 && strcmp(argv[1], "closed") == 0 && fstat(number, &found) == 0)
            return 2;
    }
    for (int number = 0; number < 1024; ++number)
        check_arena(number);
    FILE *const maps = fopen("/proc/self/maps", "r");
    if (!maps)
        return 1;
    while (fgets(line, sizeof line, maps))
        files += strstr(line, ".ctl") != NULL;
    fclose(maps);
    kymo_memory_live(1);
    printf("%s, %s\n", getauxval(AT_SECURE) ? "privileged" : "plain", files ? "memory" : "no memory");
    return 0;
}
