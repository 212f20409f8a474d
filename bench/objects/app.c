/*
 * What a user's eBPF program costs at an event of a recorded program: `make bench-objects`. Prints nanoseconds for each event, the least and
 * the median of runs of a million events each.
 */
#include <kymo/kymo.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

KYMO_EVENT(bench, hit, KYMO_U64(key), KYMO_U32(bytes), KYMO_TEXT(name));

enum { EVENTS = 1000000, RUNS = 11 };

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static void hits(void)
{
    for (uint64_t value = 0; value < EVENTS; ++value) {
        __asm__ volatile("" : "+r"(value) : : "memory");
        kymo_bench_hit(value & 63, (uint32_t)value & 4095, "some name");
    }
}

int main(void)
{
    double took[RUNS];
    hits();
    for (int run = 0; run < RUNS; ++run) {
        const uint64_t begin = now();
        hits();
        took[run] = (double)(now() - begin) / EVENTS;
    }
    qsort(took, RUNS, sizeof took[0], compare);
    printf("%.1f %.1f\n", took[0], took[RUNS / 2]);
    return 0;
}
