/* Threads record what they share with each other, and sub-buffers go from one to the other. */
#include <kymo/kymo.h>

#include <pthread.h>

KYMO_EVENT(threads, shared, KYMO_U32(thread), KYMO_TEXT(text), KYMO_SEQUENCE(u32, numbers), KYMO_ARRAY(u32, 3, three));

enum { THREADS = 4, EVENTS = 100000 };

static void *run(void *argument)
{
    static const uint32_t numbers[3] = {1, 2, 3};
    for (int number = 0; number < EVENTS; ++number)
        kymo_threads_shared((uint32_t)(uintptr_t)argument, "shared", numbers, 3, numbers);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t thread = 0; thread < THREADS; ++thread)
        pthread_create(&threads[thread], NULL, run, (void *)thread);
    for (int thread = 0; thread < THREADS; ++thread)
        pthread_join(threads[thread], NULL);
    return 0;
}
