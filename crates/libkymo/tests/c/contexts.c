/* Events carry what the program says, once somebody asks for it: contexts, until there is a file `stop`. */
#include <kymo/kymo.h>

#include <stdio.h>
#include <string.h>
#include <sched.h>
#include <unistd.h>

static uint32_t request;
static char tenant[16];

static uint32_t current_request(void)
{
    return request;
}

static const char *current_tenant(void)
{
    return request % 2 ? tenant : NULL;
}

KYMO_CONTEXT(request, u32, current_request);
KYMO_CONTEXT_TEXT(tenant, current_tenant);
KYMO_EVENT(contexts, served, KYMO_U32(request));

int main(void)
{
    do {
        ++request;
        snprintf(tenant, sizeof tenant, "tenant %u", request);
        kymo_contexts_served(request);
        sched_yield();
    } while (access("stop", F_OK) != 0);
    return 0;
}
