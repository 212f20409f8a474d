/*
 * A storm of signals whose handlers record, on the thread's stack and on one of their own, and which jump out of every 16th handler if the
 * first argument is `jump`: storm [stay|jump] [stack|alternate|both] [SIGNALS]
 *
 * counts[0]: events outside of handlers; counts[1]: events of handlers; counts[2].begun: jumps
 */
#define _GNU_SOURCE
#include <kymo/kymo.h>

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "counts.h"

KYMO_EVENT(storm, outside, KYMO_U64(number), KYMO_TEXT(text), KYMO_U64(check));
KYMO_EVENT(storm, handled, KYMO_U64(number), KYMO_U64(check));

/* So many events at least, until so many signals came, but no longer than that. */
enum { EVENTS = 100000, EVENTS_MAX = 1000000, SIGNALS = 4000 };

static struct counts *counts;
static uint64_t signals;
static sigjmp_buf back;
static volatile sig_atomic_t jumps, is_inside;

/* A clock of its own for each signal: it comes wherever this thread is, however busy the machine; the next one once a handler is over. */
static timer_t clocks[2];

/*
 * How much later a signal comes where a machine is slow to come back from setting a clock: the next one would be there before anything was
 * done outside of handlers, again and again.
 */
static long later[2];
static uint64_t done[2];
enum { LATER_MAX = 1000000 };

static void send_later(int clock, uint64_t number)
{
    const bool is_same = done[clock] == counts[0].begun;
    if (is_same && later[clock] < LATER_MAX)
        later[clock] = later[clock] * 2 + 1000;
    done[clock] = counts[0].begun;
    const struct itimerspec once = {{0, 0}, {0, (long)(4000 + number * 37 % 5000) + later[clock]}};
    timer_settime(clocks[clock], 0, &once, NULL);
}

static void send(int clock, int signal)
{
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    if (timer_create(CLOCK_MONOTONIC, &event, &clocks[clock]) != 0)
        abort();
    send_later(clock, 0);
}

static void handle(int signal)
{
    /* Handlers interrupt each other: one instruction each. */
    const uint64_t number = __atomic_fetch_add(&counts[1].begun, 1, __ATOMIC_RELAXED);
    kymo_storm_handled(number, ~number);
    __atomic_fetch_add(&counts[1].ended, 1, __ATOMIC_RELAXED);
    if (number < signals)
        send_later(signal == SIGUSR2, number);
    if (jumps && is_inside && number % 4 == 0) {
        __atomic_fetch_add(&counts[2].begun, 1, __ATOMIC_RELAXED);
        /*
         * Who jumps lets signals come again while he is still on this stack: if those jumped too, each would leave less of it, until
         * Linux ends the program ("overflowed sigaltstack"). That has nothing to do with what they record.
         */
        is_inside = 0;
        siglongjmp(back, 1);
    }
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
    volatile uint64_t number = 0;
    if (argc < 3)
        return 2;
    signals = argc > 3 ? (uint64_t)atoi(argv[3]) : SIGNALS;
    counts = counts_of("counts");
    jumps = strcmp(argv[1], "jump") == 0;
    sigaltstack(&stack, NULL);
    catch_signal(SIGUSR1, strcmp(argv[2], "stack") != 0);
    catch_signal(SIGUSR2, strcmp(argv[2], "alternate") == 0);
    send(0, SIGUSR1);
    send(1, SIGUSR2);
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
    timer_delete(clocks[0]);
    timer_delete(clocks[1]);
    /* Whoever jumped out of writes records as quickly as before, in the lane that is no handler's. */
    kymo_storm_outside(number, "last", ~number);
    counts[0].begun = number + 1;
    return 0;
}
