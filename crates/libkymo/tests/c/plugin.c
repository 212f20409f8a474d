/* A library with events, which comes and goes. */
#include <kymo/kymo.h>

KYMO_EVENT(plugin, called, KYMO_U64(number));
KYMO_EVENT(plugin, loaded);
KYMO_EVENT(plugin, unloaded);

void plugin_call(uint64_t number);

void plugin_call(uint64_t number)
{
    kymo_plugin_called(number);
}

static __attribute__((constructor)) void load(void)
{
    kymo_plugin_loaded();
}

static __attribute__((destructor)) void unload(void)
{
    kymo_plugin_unloaded();
}
