/*
 * Threads record until somebody kills the program. Each says before an event how many it has begun, and behind it how many it has ended.
 * Some of them have events of many sizes, so that sub-buffers change often.
 */
#include <kymo/kymo.h>

#include <pthread.h>

#include "counts.h"

KYMO_EVENT(kill, small, KYMO_U32(thread), KYMO_U64(number));
KYMO_EVENT(kill, large, KYMO_U32(thread), KYMO_U64(number), KYMO_SEQUENCE(u8, bytes));

enum { THREADS = 4 };

static struct counts *counts;

static void *run(void *argument)
{
    static const uint8_t bytes[8000];
    const uint32_t thread = (uint32_t)(uintptr_t)argument;
    for (uint64_t number = 0;; ++number) {
        counts[thread].begun = number + 1;
        if (thread % 2 == 0)
            kymo_kill_small(thread, number);
        else
            kymo_kill_large(thread, number, bytes, number * 7 % sizeof bytes);
        counts[thread].ended = number + 1;
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    counts = counts_of("counts");
    for (uintptr_t thread = 0; thread < THREADS; ++thread)
        pthread_create(&threads[thread], NULL, run, (void *)thread);
    pause();
    return 0;
}
