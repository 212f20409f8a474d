/* A plugin is loaded, called and unloaded 1000 times, while another thread records: plugins PLUGIN */
#include <kymo/kymo.h>

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "counts.h"

KYMO_EVENT(host, went_on, KYMO_U64(number));

enum { TIMES = 1000 };

static volatile int is_over;
static struct counts *counts;

static void *go_on(void *argument)
{
    uint64_t number = 0;
    while (!is_over) {
        counts[1].begun = number + 1;
        kymo_host_went_on(number++);
        counts[1].ended = number;
        usleep(10);
    }
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    counts = counts_of("counts");
    if (argc < 2)
        return 2;
    pthread_create(&thread, NULL, go_on, NULL);
    for (uint64_t time = 0; time < TIMES; ++time) {
        void *plugin = dlopen(argv[1], RTLD_NOW);
        void (*call)(uint64_t);
        void *symbol = plugin ? dlsym(plugin, "plugin_call") : NULL;
        if (!symbol)
            return 1;
        memcpy(&call, &symbol, sizeof call);
        call(time);
        if (dlclose(plugin) != 0)
            return 3;
    }
    is_over = 1;
    pthread_join(thread, NULL);
    return 0;
}
