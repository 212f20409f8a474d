/*
 * Events before main and after it, of threads that end, and of many short threads. Destructors of what is a thread's, of the C library's
 * kind and of C++, record too.
 */
#include <kymo/kymo.h>

#include <cstdlib>
#include <pthread.h>
#include <string>
#include <thread>
#include <vector>

namespace lives {
KYMO_EVENT(lives, happened, KYMO_TEXT(what));
KYMO_EVENT(lives, counted, KYMO_U32(thread), KYMO_U32(number));
} // namespace lives

static void happen(const std::string &what)
{
    lives::kymo_lives_happened(what);
}

struct Global {
    Global() { happen("constructor of C++"); }
    ~Global() { happen("destructor of C++"); }
};

static __attribute__((constructor)) void construct()
{
    lives::kymo_lives_happened("constructor of C");
}

static __attribute__((destructor)) void destruct()
{
    lives::kymo_lives_happened("destructor of C");
}

static Global global;

struct OfThread {
    uint32_t thread = 0;
    ~OfThread() { lives::kymo_lives_counted(thread, 2); }
};

static thread_local OfThread of_thread;
static pthread_key_t key;

/* It is called again as long as it says that something is left: after the tracer's own. */
static void leave(void *round)
{
    const auto number = reinterpret_cast<uintptr_t>(round);
    lives::kymo_lives_counted(of_thread.thread, static_cast<uint32_t>(number));
    if (number < 5)
        pthread_setspecific(key, reinterpret_cast<void *>(number + 1));
}

static void live(uint32_t thread)
{
    of_thread.thread = thread;
    pthread_setspecific(key, reinterpret_cast<void *>(uintptr_t{3}));
    lives::kymo_lives_counted(thread, 0);
    lives::kymo_lives_counted(thread, 1);
}

/* lives [THREADS] */
int main(int argc, char **argv)
{
    const uint32_t all = argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 4000;
    pthread_key_create(&key, leave);
    happen("main");
    std::atexit([] { happen("atexit"); });
    for (uint32_t first = 0; first < all; first += 8) {
        std::vector<std::thread> threads;
        for (uint32_t thread = first; thread < first + 8; ++thread)
            threads.emplace_back(live, thread);
        for (std::thread &thread : threads)
            thread.join();
    }
    happen("end of main");
    return 0;
}
