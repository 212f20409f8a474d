/* Requests about sessions, of a program that no recorder knows. */
#include <kymo/session.h>

static struct kymo_session session = KYMO_SESSION_INIT;

int main(void)
{
    struct kymo_session named = KYMO_SESSION_NAMED("mine");
    struct kymo_firings firings;
    struct kymo_counts counts;
    const int results[] = {
        kymo_session_start(&session), kymo_session_stop(&session), kymo_session_is_recording(&session), kymo_session_snapshot(&session),
        kymo_session_flush(&session), kymo_session_trigger(&session, "stop on net:lost"), kymo_session_arm(&session, NULL),
        kymo_session_disarm(&session, "stop"), kymo_session_enable(&session, NULL), kymo_session_disable(&session, "net:*"),
        kymo_session_remove_trigger(&session, NULL), kymo_session_firings(&named, "stop", &firings), kymo_session_counts(&session, &counts),
        kymo_session_wait(&session, 10), kymo_session_abort_when_stopped(&session, "never", 10)};
    for (size_t at = 0; at < sizeof results / sizeof *results; ++at)
        if (results[at] != KYMO_SESSION_NO_RECORDER)
            return 1;
    if (firings.firings || firings.last_ns || counts.events)
        return 3;
    kymo_session_mark("alone");
    puts(session.error);
#ifndef KYMO_OFF
    if (kymo_session_trigger(&session, "two\nlines") != KYMO_SESSION_REFUSED || !*session.error)
        return 2;
    if (kymo_session_arm(&session, "") != KYMO_SESSION_REFUSED || !*session.error)
        return 4;
#endif
    return 0;
}
