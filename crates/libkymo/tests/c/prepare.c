/* Compares the counters of CPUs, and checks what is told. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <kymo/prepare.h>

#include <sched.h>
#include <stdio.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            return 1; \
        } \
    } while (0)

int main(void)
{
    static struct kymo_cpu_clock clocks[CPU_SETSIZE];
    uint64_t apart_ns = 0;
    const size_t count = kymo_prepare(clocks, CPU_SETSIZE, &apart_ns);
#ifdef KYMO_OFF
    CHECK(count == 0 && apart_ns == UINT64_MAX);
#else
    cpu_set_t allowed;
    CHECK(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    CHECK(count == (size_t)CPU_COUNT(&allowed));
    size_t known = 0;
    for (size_t at = 0; at < count; ++at) {
        CHECK(CPU_ISSET(clocks[at].cpu, &allowed));
        known += clocks[at].known;
        CHECK(at == 0 || !clocks[at].known || clocks[at].error == clocks[at].trip / 2 + 1);
    }
    CHECK(clocks[0].known && clocks[0].offset == 0 && clocks[0].error == 0);
    CHECK((known < 2) == (apart_ns == UINT64_MAX));
    /* No room for them: all are recorded. */
    CHECK(kymo_prepare(NULL, 0, &apart_ns) == count);
#endif
    return 0;
}
