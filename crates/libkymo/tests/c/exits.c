/* Threads record while the program ends: its events are unregistered beside them. */
#include <kymo/kymo.h>

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

KYMO_EVENT(test, spin, KYMO_U64(value));

static int spinning;

static void *spin(void *unused)
{
    uint64_t value = 0;
    (void)unused;
    kymo_test_spin(value++);
    __atomic_add_fetch(&spinning, 1, __ATOMIC_RELAXED);
    for (;;)
        kymo_test_spin(value++);
    return NULL;
}

static void linger(void)
{
    usleep(1000);
}

int main(void)
{
    pthread_t thread;
    int number;
    /* Called while destructors run, before events are unregistered, and others after that. */
    atexit(linger);
    for (number = 0; number < 3; ++number)
        if (pthread_create(&thread, NULL, spin, NULL))
            return 1;
    while (__atomic_load_n(&spinning, __ATOMIC_RELAXED) < 3)
        usleep(100);
    exit(0);
}
