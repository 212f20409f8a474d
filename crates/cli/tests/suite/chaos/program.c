/*
 * A program in which everything happens at once: threads that live for milliseconds, handlers of signals that record and jump, children of
 * all kinds, some of which are killed: program [SEED [leaf]]
 *
 * Each of what records has a slot in a file that outlives it all. It says there how many events it has begun and how many it has ended; its
 * events carry the slot and count from 0.
 */
#define _GNU_SOURCE
#include <kymo/kymo.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Always on; on with the filter `value >= 100`; switched on and off by whoever tests. */
KYMO_EVENT(chaos, counted, KYMO_U64(slot), KYMO_U64(number));
KYMO_EVENT(chaos, kept, KYMO_U64(slot), KYMO_U64(number), KYMO_U32(value), KYMO_TEXT(text));
KYMO_EVENT(chaos, switched, KYMO_U64(slot), KYMO_U64(number));

enum { SLOTS = 1 << 20 };
enum kind { COUNTED = 1, KEPT, SWITCHED };

struct slot {
    volatile uint64_t begun, ended, pid, kind;
};

struct shared {
    volatile uint64_t stop;
    uint64_t next;
    uint64_t unused[2];
    struct slot slots[SLOTS];
};

static struct shared *shared;
static uint64_t seed;

/* SplitMix64, of each thread its own. */
static __thread uint64_t state;

static uint64_t any(void)
{
    uint64_t mixed = state += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

static uint64_t below(uint64_t count)
{
    return any() % count;
}

static void pause_for(uint64_t microseconds)
{
    const struct timespec time = {(time_t)(microseconds / 1000000), (long)(microseconds % 1000000 * 1000)};
    nanosleep(&time, NULL);
}

static struct slot *slot_of(uint64_t kind)
{
    const uint64_t number = __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED);
    if (number >= SLOTS)
        _exit(9);
    shared->slots[number].pid = (uint64_t)syscall(SYS_getpid);
    shared->slots[number].kind = kind;
    return &shared->slots[number];
}

static uint64_t begin(struct slot *slot)
{
    const uint64_t number = slot->begun;
    slot->begun = number + 1;
    __asm__ volatile("" ::: "memory");
    return number;
}

static void end(struct slot *slot)
{
    __asm__ volatile("" ::: "memory");
    slot->ended = slot->ended + 1;
}

static void count(struct slot *slot)
{
    const uint64_t number = begin(slot);
    kymo_chaos_counted((uint64_t)(slot - shared->slots), number);
    end(slot);
}

/* Half of them are not kept, and not counted. */
static void keep(struct slot *slot)
{
    static const char texts[4][24] = {"", "a", "some text", "a text that is longer.."};
    const uint32_t value = (uint32_t)below(200);
    const uint64_t number = value >= 100 ? begin(slot) : slot->begun;
    kymo_chaos_kept((uint64_t)(slot - shared->slots), number, value, texts[value % 4]);
    if (value >= 100)
        end(slot);
}

static void toggle(struct slot *slot)
{
    const uint64_t number = begin(slot);
    kymo_chaos_switched((uint64_t)(slot - shared->slots), number);
    end(slot);
}

static void record(uint64_t events)
{
    struct slot *const counted = slot_of(COUNTED), *const kept = slot_of(KEPT);
    while (events-- > 0) {
        count(counted);
        if (events % 8 == 0)
            keep(kept);
    }
}

/* Threads that signals come to. */
static __thread sigjmp_buf back;
static __thread volatile sig_atomic_t is_inside, jumps;
static __thread struct slot *handled[2];
static __thread timer_t clocks[2];
static volatile pid_t of_handler;

static void send_later(int which)
{
    const struct itimerspec once = {{0, 0}, {0, (long)(20000 + below(2000000))}};
    timer_settime(clocks[which], 0, &once, NULL);
}

static void handle(int signal)
{
    const int which = signal == SIGUSR2, error = errno;
    if (handled[which] == NULL)
        return;
    count(handled[which]);
    if (!shared->stop)
        send_later(which);
    errno = error;
    if (jumps && is_inside && below(8) == 0) {
        is_inside = 0;
        siglongjmp(back, 1);
    }
}

static void fork_in_handler(int signal)
{
    (void)signal;
    of_handler = fork();
    if (of_handler == 0) {
        record(below(200));
        _exit(0);
    }
}

static void catch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);
    action.sa_handler = fork_in_handler;
    action.sa_flags = 0;
    sigaction(SIGWINCH, &action, NULL);
}

static void *storm(void *argument)
{
    static const int signals[2] = {SIGUSR1, SIGUSR2};
    const size_t bytes = 256 << 10;
    const stack_t stack = {.ss_sp = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), .ss_size = bytes};
    struct slot *const counted = slot_of(COUNTED), *const kept = slot_of(KEPT), *const switched = slot_of(SWITCHED);
    state = seed ^ (uint64_t)(uintptr_t)argument << 32;
    sigaltstack(&stack, NULL);
    jumps = (uintptr_t)argument % 2 == 1;
    for (int which = 0; which < 2; ++which) {
        struct sigevent event;
        memset(&event, 0, sizeof event);
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = signals[which];
        event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
        if (timer_create(CLOCK_MONOTONIC, &event, &clocks[which]) != 0)
            abort();
        handled[which] = slot_of(COUNTED);
    }
    sigsetjmp(back, 1);
    is_inside = 0;
    send_later(0);
    send_later(1);
    while (!shared->stop) {
        const uint64_t events = below(64) == 0 ? 1000 : 1 + below(20);
        for (uint64_t event = 0; event < events; ++event) {
            is_inside = 1;
            count(counted);
            if (event % 4 == 0)
                keep(kept);
            if (event % 8 == 0)
                toggle(switched);
            is_inside = 0;
        }
        pause_for(1000 + below(4000));
    }
    timer_delete(clocks[0]);
    timer_delete(clocks[1]);
    return NULL;
}

/* A thread of some milliseconds, which records while it ends too. */
static pthread_key_t key;

static void record_at_end(void *slot)
{
    count(slot);
    count(slot);
}

static void *live_shortly(void *argument)
{
    struct slot *const counted = slot_of(COUNTED);
    state = seed ^ (uint64_t)(uintptr_t)argument << 16;
    if (below(4) == 0)
        pthread_setspecific(key, counted);
    for (uint64_t events = below(60); events > 0; --events)
        count(counted);
    if (below(3) == 0)
        record(below(100));
    return NULL;
}

static void live_threads(uint64_t number)
{
    pthread_t threads[8];
    const uint64_t count = 1 + below(8);
    uint64_t begun = 0;
    while (begun < count && pthread_create(&threads[begun], NULL, live_shortly, (void *)(uintptr_t)(number * 8 + begun + 1)) == 0)
        ++begun;
    while (begun > 0)
        pthread_join(threads[--begun], NULL);
}

/* Ends with its child, which is killed now and then. */
static void wait_for(pid_t pid)
{
    if (pid <= 0)
        return;
    if (below(2) == 0) {
        pause_for(below(3000));
        kill(pid, SIGKILL);
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static void child(void)
{
    record(below(8) == 0 ? 10000 : below(300));
    _exit(0);
}

static void have_child(char *program)
{
    char text[24];
    char *arguments[] = {program, text, (char *)"leaf", NULL};
    pid_t pid = 0;
    snprintf(text, sizeof text, "%llu", (unsigned long long)any());
    switch (below(7)) {
    case 0:
        if ((pid = fork()) == 0)
            child();
        break;
    case 1:
        if ((pid = _Fork()) == 0)
            child();
        break;
    case 2:
        if ((pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) == 0)
            child();
        break;
    case 3:
        raise(SIGWINCH);
        pid = of_handler;
        break;
    case 4:
        if ((pid = vfork()) == 0) {
            record(100);
            _exit(0);
        }
        break;
    case 5:
        if ((pid = vfork()) == 0) {
            execv(program, arguments);
            _exit(1);
        }
        break;
    default:
        if (posix_spawn(&pid, program, NULL, NULL, arguments, environ) != 0)
            abort();
    }
    wait_for(pid);
}

/* Whether anybody wants its events: nobody may be there to find it. */
static bool is_recorded(int milliseconds)
{
    while (!(kymo_chaos_counted_is_on() && kymo_chaos_kept_is_on())) {
        if (milliseconds-- == 0 || shared->stop)
            return false;
        pause_for(1000);
    }
    return true;
}

int main(int argc, char **argv)
{
    pthread_t storms[2];
    const int file = open("counts", O_RDWR);
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    state = seed;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || shared == MAP_FAILED)
        return 2;
    close(file);
    if (argc > 2) {
        if (is_recorded(500))
            record(below(1000));
        return 0;
    }
    if (!is_recorded(60000))
        return shared->stop ? 0 : 3;
    if (pthread_key_create(&key, record_at_end) != 0)
        return 4;
    catch_signals();
    for (uintptr_t number = 0; number < 2; ++number)
        if (pthread_create(&storms[number], NULL, storm, (void *)(number + 1)) != 0)
            return 5;
    for (uint64_t number = 1; !shared->stop; ++number) {
        live_threads(number);
        if (below(3) == 0)
            have_child(argv[0]);
        pause_for(below(5000));
    }
    for (int number = 0; number < 2; ++number)
        pthread_join(storms[number], NULL);
    return 0;
}
