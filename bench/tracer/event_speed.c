/*
 * What an event costs in a program in C: `make bench-tracer`. With an argument, events carry what that names: cpu, pid, tid, procname, ip,
 * stack, own (a number that a function of the program says).
 *
 * Medians of 15 runs of 2 million events each, in ns and in ticks of the processor's counter. Nobody drains; lanes overwrite what is oldest,
 * so that no event is lost. The program is its own recorder as far as it needs one: it says so in its memory, and switches its events.
 */
#define _GNU_SOURCE
#include <kymo/kymo.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile uint32_t request = 7;

static uint32_t current_request(void)
{
    return request;
}

KYMO_CONTEXT(request, u32, current_request);
KYMO_EVENT(bench, off, KYMO_U32(value));
KYMO_EVENT(bench, number, KYMO_U32(value));
KYMO_EVENT(bench, text, KYMO_I32(a), KYMO_I32(b), KYMO_TEXT(name));
KYMO_EVENT(bench, refused, KYMO_U32(value));
KYMO_EVENT(bench, kept, KYMO_U32(value));
KYMO_EVENT(bench, nothing);
KYMO_EVENT(bench, eight, KYMO_U64(a), KYMO_U64(b), KYMO_U64(c), KYMO_U64(d), KYMO_U64(e), KYMO_U64(f), KYMO_U64(g), KYMO_U64(h));

enum { EVENTS = 2000000, RUNS = 15 };
/* Where the mode is in a program's memory; its sub-buffers are 32 KiB. */
enum { MODE_AT = 520, LIMIT_AT = 528, CONTEXTS_AT = 536, OVERWRITE = 1, LOST_AT = 4096 + 65536 + 8, TAKEN_AT = LOST_AT + 16 };

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* A loop of its own, so that what is measured is not mixed with what is around it. */
#define MEASURE(name, what) \
    static __attribute__((noinline)) void loop_##name(void) \
    { \
        for (uint32_t value = 0; value < EVENTS; ++value) { \
            __asm__ volatile("" : "+r"(value) : : "memory"); \
            what; \
        } \
    } \
    static void measure_##name(void) \
    { \
        uint64_t times[RUNS], ticks[RUNS]; \
        loop_##name(); \
        for (int run = 0; run < RUNS; ++run) { \
            const uint64_t begin = now(), first = kymo_inner_ticks(); \
            loop_##name(); \
            ticks[run] = kymo_inner_ticks() - first; \
            times[run] = now() - begin; \
        } \
        qsort(times, RUNS, sizeof times[0], compare); \
        qsort(ticks, RUNS, sizeof ticks[0], compare); \
        printf("%-8s %6.2f ns %6.1f ticks\n", #name, (double)times[RUNS / 2] / EVENTS, (double)ticks[RUNS / 2] / EVENTS); \
    }

static const char *volatile sixteen = "sixteen-chars-16";

MEASURE(loop, )
MEASURE(clock, (void)kymo_inner_ticks())
MEASURE(off, kymo_bench_off(value))
MEASURE(refused, kymo_bench_refused(value))
MEASURE(kept, kymo_bench_kept(value))
MEASURE(nothing, kymo_bench_nothing())
MEASURE(number, kymo_bench_number(value))
MEASURE(text, kymo_bench_text((int32_t)value, 3, sixteen))
MEASURE(eight, kymo_bench_eight(value, 2, 3, 4, 5, 6, 7, 8))

static uint64_t no(const void *arguments, uint64_t slot)
{
    (void)slot;
    return *(const uint32_t *)arguments == EVENTS;
}

static uint64_t yes(const void *arguments, uint64_t slot)
{
    (void)slot;
    return *(const uint32_t *)arguments < EVENTS;
}

static void say(int memory, off_t at, uint64_t value)
{
    if (pwrite(memory, &value, sizeof value, at) != sizeof value)
        abort();
}

static uint64_t ask(int memory, off_t at)
{
    uint64_t value;
    if (pread(memory, &value, sizeof value, at) != sizeof value)
        abort();
    return value;
}

/* The memory of this process, which is the only one in its folder. */
static int own_memory(const char *folder)
{
    char path[600];
    snprintf(path, sizeof path, "%s/kymo", folder);
    DIR *files = opendir(path);
    const struct dirent *file;
    while (files && (file = readdir(files))) {
        // Its bell is there too.
        if (strstr(file->d_name, ".ctl")) {
            snprintf(path, sizeof path, "%s/kymo/%s", folder, file->d_name);
            const int memory = open(path, O_RDWR);
            unlink(path);
            closedir(files);
            return memory;
        }
    }
    fprintf(stderr, "there is no memory in %s\n", path);
    exit(1);
}

/* Bits of what events carry. */
static uint64_t contexts(const char *name)
{
    static const char *const names[] = {"cpu", "pid", "tid", "procname", "ip", "stack"};
    for (size_t bit = 0; bit < sizeof names / sizeof names[0]; ++bit)
        if (!strcmp(name, names[bit]))
            return (uint64_t)1 << bit;
    return !strcmp(name, "own") ? (uint64_t)1 << 16 : 0;
}

int main(int argc, char **argv)
{
    if (!getenv("KYMO_SESSION")) {
        char folder[] = "/dev/shm/kymo-bench-XXXXXX";
        setenv("XDG_RUNTIME_DIR", mkdtemp(folder), 1);
        setenv("KYMO_SESSION", "bench", 1);
        execv("/proc/self/exe", argv);
        return 1;
    }
    const char *folder = getenv("XDG_RUNTIME_DIR");
    const int memory = own_memory(folder);
    say(memory, MODE_AT, OVERWRITE);
    say(memory, LIMIT_AT, 32);
    say(memory, CONTEXTS_AT, argc > 1 ? contexts(argv[1]) : 0);
    *(unsigned char *)(uintptr_t)kymo_inner_event_kymo_bench_off.control = 0;
    kymo_filters[2] = no;
    kymo_filters[3] = yes;
    *(unsigned char *)(uintptr_t)kymo_inner_event_kymo_bench_refused.control = 2;
    *(unsigned char *)(uintptr_t)kymo_inner_event_kymo_bench_kept.control = 3;
    measure_loop();
    measure_clock();
    measure_off();
    measure_refused();
    measure_kept();
    measure_nothing();
    measure_number();
    measure_text();
    measure_eight();
    printf("%llu sub-buffers filled, %llu events lost\n", (unsigned long long)ask(memory, TAKEN_AT),
           (unsigned long long)ask(memory, LOST_AT));
    char path[600];
    snprintf(path, sizeof path, "%s/kymo", folder);
    rmdir(path);
    rmdir(folder);
    return 0;
}
