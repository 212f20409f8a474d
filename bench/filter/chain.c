/*
 * chain: what a C compiler makes of 1, 10 and 50 predicates `field == constant`, all true, on a structure in cache.
 *
 * It is the floor: a filter that was known when the program was compiled. The fields are volatile, because a compiler that
 * may read them in any order may merge neighbours into wide compares, which a filter that stops at its first false
 * predicate must not. Constants are far apart, so that no two of them make a range.
 *
 * Prints `name<TAB>nanoseconds per evaluation`.
 */
#include "bursts.h"

#include <stdint.h>
#include <stdio.h>

#define CONSTANT(index) (1000003u * (index) + 17u)

#define HOLDS(index) if (fields[index] != CONSTANT(index)) return 0;
#define TEN_HOLD(first)                                                                                                \
    HOLDS(first) HOLDS(first + 1) HOLDS(first + 2) HOLDS(first + 3) HOLDS(first + 4)                                   \
    HOLDS(first + 5) HOLDS(first + 6) HOLDS(first + 7) HOLDS(first + 8) HOLDS(first + 9)

typedef int accepts(const uint32_t *values);

static __attribute__((noinline)) int accepts_1(const uint32_t *values)
{
    const volatile uint32_t *fields = values;
    HOLDS(0)
    return 1;
}

static __attribute__((noinline)) int accepts_10(const uint32_t *values)
{
    const volatile uint32_t *fields = values;
    TEN_HOLD(0)
    return 1;
}

static __attribute__((noinline)) int accepts_50(const uint32_t *values)
{
    const volatile uint32_t *fields = values;
    TEN_HOLD(0) TEN_HOLD(10) TEN_HOLD(20) TEN_HOLD(30) TEN_HOLD(40)
    return 1;
}

static uint32_t values[50];
/* Volatile, so that the call stays one through a pointer, as a compiled filter is called. */
static accepts *volatile chosen;

static void burst(long count)
{
    accepts *filter = chosen;
    long accepted = 0;

    for (long i = 0; i < count; i++) {
        /* The event is a new one each time, for all the compiler knows. */
        __asm__ volatile("" ::: "memory");
        accepted += filter(values);
    }
    if (accepted != count)
        abort();
}

static void report(const char *name, accepts *filter)
{
    chosen = filter;
    printf("%s\t%.3f\n", name, median_ns(burst, 300000));
}

int main(void)
{
    for (uint32_t i = 0; i < 50; i++)
        values[i] = CONSTANT(i);
    report("chain.1", accepts_1);
    report("chain.10", accepts_10);
    report("chain.50", accepts_50);
    return 0;
}
