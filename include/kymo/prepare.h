/*
 * Kymograph: how far the counters of CPUs are apart, which stamp the events of a program. Description: docs/tracer.md.
 *
 *     #include <kymo/prepare.h>
 *
 *     uint64_t apart_ns;
 *     kymo_prepare(NULL, 0, &apart_ns);          at the beginning of main
 *
 * The program then knows which differences of times mean something, and so does the reader of its trace.
 */
#ifndef KYMO_PREPARE_H
#define KYMO_PREPARE_H

#include "kymo.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The counter of a CPU, against that of the first one. */
struct kymo_cpu_clock {
    uint32_t cpu; /* its number */
    uint32_t known; /* 1: the CPU answered */
    int64_t offset; /* ticks to add to this counter, to get the first CPU's */
    uint64_t error; /* the true offset differs by at most so many ticks */
    uint64_t trip; /* ticks that question and answer were on their way */
};

#ifndef KYMO_OFF
uint64_t kymo_compare_counters(void (*tell)(void *, const struct kymo_cpu_clock *), void *closure);
#endif

#ifdef __cplusplus
}
#endif

KYMO_EVENT_AT(info, kymo, cpu_clock, KYMO_U64(cpu), KYMO_BOOL(known), KYMO_I64(offset), KYMO_U64(error), KYMO_U64(trip));

#ifndef KYMO_OFF
struct kymo_inner_clocks {
    struct kymo_cpu_clock *clocks;
    size_t size, count;
};

static KYMO_INNER_UNUSED void kymo_inner_cpu_clock(void *closure, const struct kymo_cpu_clock *clock)
{
    struct kymo_inner_clocks *const all = (struct kymo_inner_clocks *)closure;
    if (all->count < all->size)
        all->clocks[all->count] = *clock;
    ++all->count;
    kymo_kymo_cpu_clock(clock->cpu, clock->known != 0, clock->offset, clock->error, clock->trip);
}
#endif

/*
 * kymo_prepare compares the counters of all CPUs on which the calling thread may run with that of the first
 * one, and records the result: an event kymo:cpu_clock for each CPU. `kymo info` and other readers use them
 * if they are among the first events of the program, so call it at the beginning of main.
 *
 * clocks    receives the counters, that of the first CPU first; may be NULL if size is 0
 * size      the number of elements that clocks has
 * apart_ns  receives an upper bound of the difference between any two counters in nanoseconds; UINT64_MAX if
 *           fewer than two are known
 *
 * Returns the number of CPUs, which may be more than size; 0 where there is no tracer.
 *
 * It takes some milliseconds for each CPU, and 50 for one that does not answer. Meanwhile it has two threads,
 * which block all signals. It allocates pages and no heap. Not for signal handlers.
 */
static KYMO_INNER_UNUSED size_t kymo_prepare(struct kymo_cpu_clock *clocks, size_t size, uint64_t *apart_ns)
{
#ifdef KYMO_OFF
    (void)clocks;
    (void)size;
    *apart_ns = UINT64_MAX;
    return 0;
#else
    struct kymo_inner_clocks all = {clocks, size, 0};
    *apart_ns = kymo_compare_counters(kymo_inner_cpu_clock, &all);
    return all.count;
#endif
}

#endif
