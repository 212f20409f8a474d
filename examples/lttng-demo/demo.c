/*
 * A job queue with several workers, traced with LTTng-UST: the program behind examples/traces/demo.
 *
 * One thread submits jobs, WORKERS threads take them. Some jobs take long, so that the queue fills up
 * now and then: there is something to see in the trace.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "demo_tp.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

enum { WORKERS = 3, JOBS = 400, CAPACITY = 32 };

struct job {
    uint32_t id;
    int kind;
};

static struct job queue[CAPACITY];
static unsigned head, tail;
static int closed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static const char *const names[] = {"config.toml", "frame.raw", "scene \"A\"", ""};

static void pause_us(long us)
{
    struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    nanosleep(&time, NULL);
}

static void submit(uint32_t id)
{
    struct job job = {.id = id, .kind = id % 11 == 0 ? 5 : (int)(id % 3)};
    pthread_mutex_lock(&lock);
    while (tail - head == CAPACITY)
        pthread_cond_wait(&changed, &lock);
    queue[tail++ % CAPACITY] = job;
    lttng_ust_tracepoint(jobs, submit, id, job.kind, names[id % 4], tail - head);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static int take(struct job *job)
{
    pthread_mutex_lock(&lock);
    while (tail == head && !closed)
        pthread_cond_wait(&changed, &lock);
    int found = tail != head;
    if (found)
        *job = queue[head++ % CAPACITY];
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return found;
}

static void *work(void *argument)
{
    int worker = (int)(intptr_t)argument;
    struct job job;
    while (take(&job)) {
        lttng_ust_tracepoint(jobs, begin, job.id, worker);
        uint16_t sizes[6];
        uint64_t checksum = 0xcbf29ce484222325u ^ job.id;
        for (int chunk = 0; chunk < 3; chunk++) {
            size_t count = (job.id + (unsigned)chunk) % 6;
            for (size_t i = 0; i < count; i++)
                sizes[i] = (uint16_t)(job.id * 7 + i);
            checksum *= 0x100000001b3u;
            lttng_ust_tracepoint(jobs, chunk, job.id, sizes, count, checksum, job.id / (1.0 + chunk));
        }
        pause_us(job.kind == 5 ? 3000 : 150);
        lttng_ust_tracepoint(jobs, end, job.id, job.id % 13 ? (int64_t)job.id : -(int64_t)job.id);
    }
    return NULL;
}

int main(void)
{
    pthread_t workers[WORKERS];
    for (intptr_t i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, work, (void *)i);
    for (uint32_t id = 0; id < JOBS; id++) {
        submit(id);
        if (id % 40 == 39)
            pause_us(2000);
    }
    pthread_mutex_lock(&lock);
    closed = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    printf("%d jobs done by %d workers\n", JOBS, WORKERS);
    return 0;
}
