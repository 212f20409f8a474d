/*
 * How everything in this folder that is written in C is timed: bursts of the same call, the first one thrown away, the
 * median of the others. A burst that the scheduler interrupted lies far from the median and does no harm.
 */
#ifndef BURSTS_H
#define BURSTS_H

#include <stdlib.h>
#include <time.h>

enum { BURSTS = 16 };

static inline double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* The median of a burst's nanoseconds per call; `burst` makes `count` calls. */
static inline double median_ns(void (*burst)(long count), long count)
{
    double taken[BURSTS];

    burst(count);
    for (int i = 0; i < BURSTS; i++) {
        double start = now_ns();

        burst(count);
        taken[i] = (now_ns() - start) / (double)count;
    }
    qsort(taken, BURSTS, sizeof(taken[0]), compare_doubles);
    return (taken[BURSTS / 2 - 1] + taken[BURSTS / 2]) / 2;
}

#endif
