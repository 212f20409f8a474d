/*
 * What happens inside of events: a program with many keys allocates whatever the C library allocates for it, and threads that are to be
 * cancelled are not cancelled there. Threads are called what they are called when a sub-buffer begins.
 */
#include <kymo/kymo.h>

#include <pthread.h>
#include <stdlib.h>

KYMO_EVENT(inside, first, KYMO_U64(number));
KYMO_EVENT(inside, named, KYMO_U64(number));

static volatile int is_inside, allocated, is_behind;
extern void *__libc_calloc(size_t count, size_t size);
void *calloc(size_t count, size_t size);
int pthread_setname_np(pthread_t thread, const char *name);

void *calloc(size_t count, size_t size)
{
    allocated += is_inside;
    return __libc_calloc(count, size);
}

static void *first(void *nothing)
{
    is_inside = 1;
    kymo_inside_first(1);
    is_inside = 0;
    return nothing;
}

static void *cancelled(void *nothing)
{
    pthread_cancel(pthread_self());
    kymo_inside_first(2);
    is_behind = 1;
    return nothing;
}

static void *named(void *nothing)
{
    kymo_inside_named(0);
    pthread_setname_np(pthread_self(), "worker");
    for (uint64_t number = 1; number < 5000; ++number)
        kymo_inside_named(number);
    return nothing;
}

/* Before events are known. */
static __attribute__((constructor(101))) void take_keys(void)
{
    pthread_key_t key;
    for (int number = 0; number < 40; ++number)
        pthread_key_create(&key, NULL);
}

int main(void)
{
    void *(*const all[])(void *) = {first, cancelled, named};
    for (int number = 0; number < 3; ++number) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, all[number], NULL) != 0)
            return 1;
        pthread_join(thread, NULL);
    }
    return allocated ? 2 : is_behind ? 0 : 3;
}
