/*
 * A program without events of its own loads plugins that have some, and unloads them before the thread that called them ends: host PLUGIN...
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

static void *live(void *argument)
{
    char **plugins = argument;
    for (; *plugins; ++plugins) {
        void *plugin = dlopen(*plugins, RTLD_NOW | RTLD_LOCAL);
        void (*call)(uint64_t);
        void *symbol = plugin ? dlsym(plugin, "plugin_call") : NULL;
        if (!symbol)
            return plugins;
        memcpy(&call, &symbol, sizeof call);
        call(7);
        dlclose(plugin);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    (void)argc;
    for (int times = 0; times < 3; ++times) {
        pthread_t thread;
        void *failed;
        pthread_create(&thread, NULL, live, argv + 1);
        pthread_join(thread, &failed);
        if (failed)
            return 1;
    }
    return 0;
}
