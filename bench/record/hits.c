/*
 * hits: what events cost the program that has them. One source, built with kymo/kymo.h, with -DLTTNG for LTTng-UST, and with -DPLAIN without
 * any tracer: what all others are compared with.
 *
 *     hits one|three THREADS BURSTS COUNT PAUSE_MS     bursts of so many events on each thread, pauses between, for the recorder to drain
 *     hits pairs THREADS BURSTS COUNT PAUSE_MS         events `other` and `one`, in turn: the time of both
 *     hits turns THREADS BURSTS COUNT PAUSE_MS         how much longer an event `one` takes than `other`, in bursts that take turns
 *     hits pace THREADS EVENTS_PER_SECOND SECONDS      events of a number at that rate, as evenly as batches of 64 are
 *     hits first                                       the first event of the program, and of another thread, in us
 *     hits tails EVENTS THREADS EACH                   p50, p99, p99.9 and maximum in ns: of events, of every EACH-th one, which turns to another
 *                                                      sub-buffer, and of the first events of so many threads, one after the other
 *     hits memory THREADS EVENTS                       resident memory in KiB: of the program when it has had one event; of each of so many
 *                                                      threads that have one; and what so many events of one thread add
 *     hits start TIMES PLAIN                           how much longer this program lives than the other one, both doing nothing, in us
 *
 * Prints `ns per event<TAB>ticks per event` of the median burst, but for the first; of several threads, that of all of them together: how
 * long an event takes with all at work. `pace` prints how many events it had and how many seconds it took.
 */
#define _GNU_SOURCE
#ifdef LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_provider.h"
#define ONE(value) lttng_ust_tracepoint(kymo_record, one, value)
#define OTHER(value) ONE(value)
#define THREE(a, b, name) lttng_ust_tracepoint(kymo_record, three, a, b, name)
#elif defined PLAIN
#define ONE(value) ((void)(value))
#define OTHER(value) ONE(value)
#define THREE(a, b, name) ((void)(a), (void)(b), (void)(name))
#else
#include <kymo/kymo.h>
static uint32_t current_request(void);
KYMO_CONTEXT(request, u32, current_request);
static volatile uint32_t request = 7;
static uint32_t current_request(void)
{
    return request;
}
KYMO_EVENT(kymo_record, one, KYMO_U32(value));
KYMO_EVENT(kymo_record, other, KYMO_U32(value));
KYMO_EVENT(kymo_record, three, KYMO_I32(a), KYMO_I32(b), KYMO_TEXT(name));
#define ONE(value) kymo_kymo_record_one(value)
#define OTHER(value) kymo_kymo_record_other(value)
#define THREE(a, b, name) kymo_kymo_record_three(a, b, name)
#endif

#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 64, BURSTS_MAX = 1000 };
extern char **environ;

static long bursts, count, pause_ms;
static enum { WITH_ONE, WITH_THREE, TURNS, PAIRS } mode;
static double taken[THREADS_MAX][BURSTS_MAX], ticks[THREADS_MAX][BURSTS_MAX];
static pthread_barrier_t together;
static const char *volatile sixteen = "abcdefghijklmnop";

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static unsigned long long counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    unsigned long long ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}

static void burst(long events, long turn)
{
    const char *name = sixteen;
    if (mode == TURNS && turn % 2 == 0) {
        for (long i = 0; i < events; i++) {
            OTHER((unsigned)i & 0xffff);
            __asm__ volatile("" ::: "memory");
        }
    } else if (mode == PAIRS) {
        for (long i = 0; i < events; i++) {
            OTHER((unsigned)i & 0xffff);
            __asm__ volatile("" ::: "memory");
            ONE((unsigned)i & 0xffff);
            __asm__ volatile("" ::: "memory");
        }
    } else if (mode == WITH_THREE) {
        for (long i = 0; i < events; i++) {
            THREE((int)i, 7, name);
            __asm__ volatile("" ::: "memory");
        }
    } else {
        for (long i = 0; i < events; i++) {
            ONE((unsigned)i & 0xffff);
            __asm__ volatile("" ::: "memory");
        }
    }
}

static void *run(void *number)
{
    const long thread = (long)number;
    for (long i = 0; i <= bursts; i++) {
        pthread_barrier_wait(&together);
        const double begin = now_ns();
        const unsigned long long first = counter();
        burst(count, i);
        const unsigned long long last = counter();
        const double end = now_ns();
        if (i > 0) {
            taken[thread][i - 1] = (end - begin) / (double)count;
            ticks[thread][i - 1] = (double)(last - first) / (double)count;
        }
        usleep((unsigned)pause_ms * 1000);
    }
    return NULL;
}

static double resident_kib(void)
{
    long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &all, &resident) != 2)
        exit(1);
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static void *be_quiet(void *unused)
{
    (void)unused;
    /* Its stack and all else are there; then it has an event; then it waits. */
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    ONE(1);
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    return NULL;
}

static int measure_memory(long threads, long events)
{
    pthread_t others[THREADS_MAX];
    resident_kib();
    ONE(1);
    const double program = resident_kib();
    pthread_barrier_init(&together, NULL, (unsigned)threads + 1);
    for (long thread = 0; thread < threads; thread++)
        pthread_create(&others[thread], NULL, be_quiet, NULL);
    pthread_barrier_wait(&together);
    const double before = resident_kib();
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    const double behind = resident_kib();
    pthread_barrier_wait(&together);
    for (long thread = 0; thread < threads; thread++)
        pthread_join(others[thread], NULL);
    const double quiet = resident_kib();
    burst(events, 1);
    printf("%.0f\t%.1f\t%.0f\n", program, (behind - before) / (double)threads, resident_kib() - quiet);
    return 0;
}

static double lives_ns(const char *program)
{
    char *words[] = {(char *)program, "nothing", NULL};
    pid_t child;
    int status;
    const double begin = now_ns();
    if (posix_spawn(&child, program, NULL, NULL, words, environ) || waitpid(child, &status, 0) < 0 || status)
        exit(1);
    return now_ns() - begin;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values)
{
    qsort(values, (size_t)bursts, sizeof *values, compare);
    return values[bursts / 2];
}

static int measure(long threads)
{
    pthread_t others[THREADS_MAX];
    pthread_barrier_init(&together, NULL, (unsigned)threads);
    for (long thread = 1; thread < threads; thread++)
        pthread_create(&others[thread], NULL, run, (void *)thread);
    run(NULL);
    for (long thread = 1; thread < threads; thread++)
        pthread_join(others[thread], NULL);
    if (mode == TURNS) {
        /* Burst 1 is the first one that counts: `one`. */
        bursts /= 2;
        for (long i = 0; i < bursts; i++) {
            taken[0][i] = taken[0][2 * i] - taken[0][2 * i + 1];
            ticks[0][i] = ticks[0][2 * i] - ticks[0][2 * i + 1];
        }
        printf("%.3f\t%.2f\n", median(taken[0]), median(ticks[0]));
        return 0;
    }
    double per_ns = 0, per_tick = 0;
    for (long thread = 0; thread < threads; thread++) {
        per_ns += 1 / median(taken[thread]);
        per_tick += 1 / median(ticks[thread]);
    }
    printf("%.3f\t%.2f\n", 1 / per_ns, 1 / per_tick);
    return 0;
}

static void print_tails(double *values, long all, const char *end)
{
    qsort(values, (size_t)all, sizeof *values, compare);
    const double of_1000[] = {500, 990, 999};
    for (int i = 0; i < 3; i++)
        printf("%.1f\t", all ? values[(long)((double)(all - 1) * of_1000[i] / 1000)] : 0);
    printf("%.1f%s", all ? values[all - 1] : 0, end);
}

static void *first_ticks(void *into)
{
    const unsigned long long begin = counter();
    ONE(1);
    *(double *)into = (double)(counter() - begin);
    return NULL;
}

/* Each figure has one reading of the counter in it. */
static int measure_tails(long events, long threads, long each)
{
    const double ticks_begin = (double)counter(), ns_begin = now_ns();
    double *all = calloc((size_t)events, sizeof *all), *turns = calloc((size_t)events, sizeof *turns);
    double *firsts = calloc((size_t)threads + 1, sizeof *firsts);
    long others = 0, turned = 0;
    if (!all || !turns || !firsts)
        return 1;
    memset(all, 1, (size_t)events * sizeof *all);
    memset(turns, 1, (size_t)events * sizeof *turns);
    /* This thread's first event begins its first sub-buffer. */
    ONE(0);
    unsigned long long before = counter();
    for (long i = 1; i <= events; i++) {
        ONE((unsigned)i & 0xffff);
        const unsigned long long now = counter();
        if (each && i % each == 0)
            turns[turned++] = (double)(now - before);
        else
            all[others++] = (double)(now - before);
        before = now;
        if (i % 100000 == 0) {
            usleep(20000);
            before = counter();
        }
    }
    for (long i = 0; i < threads; i++) {
        pthread_t other;
        pthread_create(&other, NULL, first_ticks, &firsts[i]);
        pthread_join(other, NULL);
    }
    const double ns = (now_ns() - ns_begin) / ((double)counter() - ticks_begin);
    for (long i = 0; i < events; i++) {
        all[i] *= ns;
        turns[i] *= ns;
    }
    for (long i = 0; i < threads; i++)
        firsts[i] *= ns;
    print_tails(all, others, "\t");
    print_tails(turns, turned, "\t");
    print_tails(firsts, threads, "\n");
    return 0;
}

static double rate;
static double seconds;
static long long paced[THREADS_MAX];

static void *pace(void *number)
{
    const long thread = (long)number;
    const double begin = now_ns();
    long long events = 0;
    for (;;) {
        const double due = (now_ns() - begin) * rate / 1e9;
        if (due >= rate * seconds)
            break;
        /* What is due, in batches: a thread that was away catches up. */
        while ((double)events < due) {
            burst(64, 1);
            events += 64;
        }
    }
    paced[thread] = events;
    return NULL;
}

static int keep_pace(long threads)
{
    pthread_t others[THREADS_MAX];
    const double begin = now_ns();
    rate /= (double)threads;
    for (long thread = 1; thread < threads; thread++)
        pthread_create(&others[thread], NULL, pace, (void *)thread);
    pace(NULL);
    long long all = paced[0];
    for (long thread = 1; thread < threads; thread++) {
        pthread_join(others[thread], NULL);
        all += paced[thread];
    }
    printf("%lld\t%.3f\n", all, (now_ns() - begin) / 1e9);
    return 0;
}

static void *first(void *into)
{
    const double begin = now_ns();
    ONE(1);
    *(double *)into = (now_ns() - begin) / 1000;
    return NULL;
}

static int measure_first(void)
{
    double program, thread;
    pthread_t other;
    first(&program);
    pthread_create(&other, NULL, first, &thread);
    pthread_join(other, NULL);
    printf("%.2f\t%.2f\n", program, thread);
    return 0;
}

static int measure_start(const char *plain)
{
    for (long i = 0; i < bursts; i++) {
        taken[0][i] = lives_ns("/proc/self/exe");
        taken[1][i] = lives_ns(plain);
    }
    printf("%.1f\t%.1f\n", (median(taken[0]) - median(taken[1])) / 1000, median(taken[1]) / 1000);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const long threads = argc > 2 ? atol(argv[2]) : 1;
    if (strcmp(what, "nothing") == 0)
        return 0;
    const char *wait_ms = getenv("HITS_WAIT_MS");
    if (wait_ms)
        usleep((unsigned)atoi(wait_ms) * 1000);
    if (strcmp(what, "first") == 0)
        return measure_first();
    if (argc == 4 && strcmp(what, "memory") == 0 && threads <= THREADS_MAX)
        return measure_memory(threads, atol(argv[3]));
    if (argc == 4 && strcmp(what, "start") == 0 && threads < BURSTS_MAX) {
        bursts = threads;
        return measure_start(argv[3]);
    }
    if (argc == 5 && strcmp(what, "tails") == 0)
        return measure_tails(threads, atol(argv[3]), atol(argv[4]));
    if (argc == 5 && strcmp(what, "pace") == 0 && threads <= THREADS_MAX) {
        rate = atof(argv[3]);
        seconds = atof(argv[4]);
        return keep_pace(threads);
    }
    if (argc == 6 && threads <= THREADS_MAX) {
        mode = strcmp(what, "three") == 0 ? WITH_THREE : strcmp(what, "turns") == 0 ? TURNS : strcmp(what, "pairs") == 0 ? PAIRS : WITH_ONE;
        bursts = atol(argv[3]);
        count = atol(argv[4]);
        pause_ms = atol(argv[5]);
        if (bursts > 0 && bursts < BURSTS_MAX)
            return measure(threads);
    }
    fprintf(stderr, "usage: hits one|three|turns|pairs THREADS BURSTS COUNT PAUSE_MS | hits pace THREADS RATE SECONDS | hits first | hits tails EVENTS THREADS EACH | "
                    "hits memory THREADS EVENTS | hits start TIMES PLAIN\n");
    return 2;
}
