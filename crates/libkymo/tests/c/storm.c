/*
 * A storm of signals whose handlers record, on the thread's stack and on one of their own, and which jump out of every 16th handler if the
 * first argument is `jump`: storm [stay|jump] [stack|alternate|both] [SIGNALS]
 *
 * counts[0]: events outside of handlers; counts[1]: events of handlers; counts[2].begun: jumps
 */
#define _GNU_SOURCE
#include <kymo/kymo.h>

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include "counts.h"

KYMO_EVENT(storm, outside, KYMO_U64(number), KYMO_TEXT(text), KYMO_U64(check));
KYMO_EVENT(storm, handled, KYMO_U64(number), KYMO_U64(check));

/* So many events at least, until so many signals came, but no longer than that. */
enum { EVENTS = 100000, EVENTS_MAX = 1000000, SIGNALS = 4000 };

static struct counts *counts;
static sigjmp_buf back;
static volatile sig_atomic_t jumps, is_inside, is_over;
static pthread_t target;

static void handle(int signal)
{
    (void)signal;
    /* Handlers interrupt each other: one instruction each. */
    const uint64_t number = __atomic_fetch_add(&counts[1].begun, 1, __ATOMIC_RELAXED);
    kymo_storm_handled(number, ~number);
    __atomic_fetch_add(&counts[1].ended, 1, __ATOMIC_RELAXED);
    if (jumps && is_inside && number % 16 == 0) {
        __atomic_fetch_add(&counts[2].begun, 1, __ATOMIC_RELAXED);
        /*
         * Who jumps lets signals come again while he is still on this stack: if those jumped too, each would leave less of it, until
         * Linux ends the program ("overflowed sigaltstack"). That has nothing to do with what they record.
         */
        is_inside = 0;
        siglongjmp(back, 1);
    }
}

static void *storm(void *argument)
{
    while (!is_over) {
        pthread_kill(target, SIGUSR1);
        pthread_kill(target, SIGUSR2);
    }
    return argument;
}

static void catch_signal(int number, bool is_alternate)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART | (is_alternate ? SA_ONSTACK : 0);
    sigaction(number, &action, NULL);
}

int main(int argc, char **argv)
{
    static char alternate[1 << 20];
    static const char texts[4][32] = {"", "a", "some text", "a text that has 31 characters.."};
    const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    pthread_t thread;
    volatile uint64_t number = 0;
    if (argc < 3)
        return 2;
    const uint64_t signals = argc > 3 ? (uint64_t)atoi(argv[3]) : SIGNALS;
    counts = counts_of("counts");
    jumps = strcmp(argv[1], "jump") == 0;
    sigaltstack(&stack, NULL);
    catch_signal(SIGUSR1, strcmp(argv[2], "stack") != 0);
    catch_signal(SIGUSR2, strcmp(argv[2], "alternate") == 0);
    target = pthread_self();
    pthread_create(&thread, NULL, storm, NULL);
    sigsetjmp(back, 1);
    while (number < EVENTS || (number < EVENTS_MAX && counts[1].begun < signals)) {
        is_inside = 0;
        const uint64_t now = number;
        number = now + 1;
        counts[0].begun = now + 1;
        is_inside = 1;
        kymo_storm_outside(now, texts[now % 4], ~now);
        is_inside = 0;
        counts[0].ended = counts[0].ended + 1;
    }
    is_inside = 0;
    is_over = 1;
    pthread_join(thread, NULL);
    /* Whoever jumped out of writes records as quickly as before, in the lane that is no handler's. */
    kymo_storm_outside(number, "last", ~number);
    counts[0].begun = number + 1;
    return 0;
}
