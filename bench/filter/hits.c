/*
 * hits: what one hit of a tracepoint costs the traced program, in nanoseconds.
 *
 *     hits one|fifty [COUNT]
 *
 * The provider is part of the program, as it would be in a program that wants to be fast. Which filter is attached is
 * the session's business: lttng.py makes one before it starts this.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "provider.h"

#include "bursts.h"

#include <stdio.h>
#include <string.h>

static uint32_t values[50];

static void hit_one(long count)
{
    for (long i = 0; i < count; i++)
        lttng_ust_tracepoint(kymo_bench, one, (int)i);
}

static void hit_fifty(long count)
{
    for (long i = 0; i < count; i++)
        lttng_ust_tracepoint(kymo_bench, fifty, values);
}

int main(int argc, char **argv)
{
    long count = argc > 2 ? atol(argv[2]) : 200000;
    int is_fifty = argc > 1 && strcmp(argv[1], "fifty") == 0;

    if (!is_fifty && (argc < 2 || strcmp(argv[1], "one") != 0)) {
        fprintf(stderr, "usage: hits one|fifty [COUNT]\n");
        return 2;
    }
    for (uint32_t i = 0; i < 50; i++)
        values[i] = i;
    printf("%.3f\n", median_ns(is_fifty ? hit_fifty : hit_one, count));
    return 0;
}
