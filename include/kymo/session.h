/*
 * Kymograph: programs that control the sessions that record them. Description: docs/triggers.md.
 *
 *     #include <kymo/session.h>
 *
 *     struct kymo_session session = KYMO_SESSION_INIT;      each session that records this program
 *     if (kymo_session_trigger(&session, "stop on net:lost after 3"))
 *         fprintf(stderr, "%s\n", session.error);
 *
 * The recorder does all of it: a request takes some milliseconds, unless the disk is slow. It blocks
 * the calling thread alone, and is not for signal handlers. The functions return 0, or one of
 * kymo_session_result.
 */
#ifndef KYMO_SESSION_H
#define KYMO_SESSION_H

#include "kymo.h"
#include "marks.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A session of the recorder that this program belongs to. */
struct kymo_session {
    const char *name; /* NULL: all sessions that record this program */
    char error[512]; /* why the last request had no effect, in one line or more; empty: it had one */
};

/* Each session that records this program, and that of a name. */
#define KYMO_SESSION_INIT { NULL, "" }
#define KYMO_SESSION_NAMED(name) { name, "" }

/* Firings of a trigger, or of several. */
struct kymo_firings {
    uint64_t armed; /* triggers that are armed */
    uint64_t firings; /* how often they have fired */
    uint64_t suppressed; /* firings that came too early after another one */
    uint64_t counted; /* with `after`: the most matches that a program has had since then */
    uint64_t last_ns; /* the last firing: nanoseconds since 1970; 0: there was none */
    uint64_t last_ticks; /* the same in ticks of the clock of the program's events */
    uint64_t last_pid, last_tid; /* the process, and the thread there */
};

/* Counts of a session, or of several. */
struct kymo_counts {
    uint64_t events; /* in the traces */
    uint64_t lost; /* events that were lost */
    uint64_t bytes; /* of the traces */
    uint64_t snapshots; /* that were taken */
};

/* Events of a rule. */
struct kymo_rule {
    uint64_t kept, let_go; /* events that it has kept, and let go */
    uint64_t unknown; /* of those that it has kept, ends without a known begin */
    uint64_t forgotten; /* keys that it has forgotten, because there were too many at a time */
    uint64_t limit; /* its limit: nanoseconds, or events */
};

/*
 * A rule about events of the kernel: its limit and counts are in memory that this program shares with the kernel, so that moving one
 * and reading the others takes no system call. The fields are for the functions below.
 */
struct kymo_shared_rule {
    void *memory;
    size_t bytes, limit_at, counts_at, between, counts;
};

enum kymo_session_result {
    KYMO_SESSION_DONE = 0,
    KYMO_SESSION_NO_RECORDER = -1, /* no recorder runs for this program */
    KYMO_SESSION_REFUSED = -2, /* the recorder has refused it: see error */
    KYMO_SESSION_TIMED_OUT = -3, /* the time is over */
    KYMO_SESSION_FAILED = -4 /* a system call has failed */
};

#ifndef KYMO_OFF
int kymo_session_ask(const char *session, const char *verb, const char *argument, long long timeout_ms, char *error, size_t size);
int kymo_session_read(const char *session, const char *verb, const char *argument, uint64_t *numbers, size_t count, char *error, size_t size);
int kymo_session_map(const char *session, const char *rule, struct kymo_shared_rule *shared, char *error, size_t size);
void kymo_session_unmap(struct kymo_shared_rule *shared);
#endif

#ifdef __cplusplus
}
#endif

static KYMO_INNER_UNUSED int kymo_inner_session(struct kymo_session *session, const char *verb, const char *argument, long long timeout_ms)
{
#ifdef KYMO_OFF
    (void)verb;
    (void)argument;
    (void)timeout_ms;
    snprintf(session->error, sizeof session->error, "this program is built without a tracer");
    return KYMO_SESSION_NO_RECORDER;
#else
    return kymo_session_ask(session->name, verb, argument, timeout_ms, session->error, sizeof session->error);
#endif
}

static KYMO_INNER_UNUSED int kymo_inner_session_numbers(struct kymo_session *session, const char *verb, const char *argument, uint64_t *numbers, size_t count)
{
#ifdef KYMO_OFF
    for (size_t at = 0; at < count; ++at)
        numbers[at] = 0;
    return kymo_inner_session(session, verb, argument, 0);
#else
    return kymo_session_read(session->name, verb, argument, numbers, count, session->error, sizeof session->error);
#endif
}

/* The session records from now on, in all of its programs. */
static KYMO_INNER_UNUSED int kymo_session_start(struct kymo_session *session)
{
    return kymo_inner_session(session, "start", NULL, 0);
}

/* The session records no more, in all of its programs: no event behind this call is in its trace. */
static KYMO_INNER_UNUSED int kymo_session_stop(struct kymo_session *session)
{
    return kymo_inner_session(session, "stop", NULL, 0);
}

/* 1: the session records this program now; 0: it does not. */
static KYMO_INNER_UNUSED int kymo_session_is_recording(struct kymo_session *session)
{
    return kymo_inner_session(session, "state", NULL, 0);
}

/* A session with `--mode overwrite` writes the events that it holds, and goes on. */
static KYMO_INNER_UNUSED int kymo_session_snapshot(struct kymo_session *session)
{
    return kymo_inner_session(session, "snapshot", NULL, 0);
}

/* Events before this call are in the files of the trace when it returns. */
static KYMO_INNER_UNUSED int kymo_session_flush(struct kymo_session *session)
{
    return kymo_inner_session(session, "flush", NULL, 0);
}

/*
 * Adds a trigger, in the words of `kymo record --trigger`, or replaces that of its name, and arms it. The first one that
 * starts a session that records stops it: it waits for that event.
 */
static KYMO_INNER_UNUSED int kymo_session_trigger(struct kymo_session *session, const char *words)
{
    return kymo_inner_session(session, "trigger", words, 0);
}

/* Arms a trigger anew; NULL: all. */
static KYMO_INNER_UNUSED int kymo_session_arm(struct kymo_session *session, const char *trigger)
{
    return kymo_inner_session(session, "arm", trigger, 0);
}

/* Disarms a trigger; NULL: all. */
static KYMO_INNER_UNUSED int kymo_session_disarm(struct kymo_session *session, const char *trigger)
{
    return kymo_inner_session(session, "disarm", trigger, 0);
}

/* Removes a trigger; NULL: all. A session without triggers records. */
static KYMO_INNER_UNUSED int kymo_session_remove_trigger(struct kymo_session *session, const char *trigger)
{
    return kymo_inner_session(session, "remove", trigger, 0);
}

/* Firings of a trigger until now; NULL: of all. */
static KYMO_INNER_UNUSED int kymo_session_firings(struct kymo_session *session, const char *trigger, struct kymo_firings *firings)
{
    uint64_t numbers[8];
    const int result = kymo_inner_session_numbers(session, "firings", trigger, numbers, 8);
    firings->armed = numbers[0];
    firings->firings = numbers[1];
    firings->suppressed = numbers[2];
    firings->counted = numbers[3];
    firings->last_ns = numbers[4];
    firings->last_ticks = numbers[5];
    firings->last_pid = numbers[6];
    firings->last_tid = numbers[7];
    return result;
}

/*
 * Adds a rule, in the words of `kymo record --only`, or replaces that of its name: of some events the session keeps only those
 * that took long, or some of many.
 */
static KYMO_INNER_UNUSED int kymo_session_only(struct kymo_session *session, const char *words)
{
    return kymo_inner_session(session, "only", words, 0);
}

/* Sets the limit of a rule, such as `5ms` or `100`, of one kind of its events (NULL: all); NULL: that of its words again. */
static KYMO_INNER_UNUSED int kymo_session_limit(struct kymo_session *session, const char *rule, const char *kind, const char *limit)
{
    char words[512];
    const int length = snprintf(words, sizeof words, "%s %s%s%s", rule, limit ? limit : "-", kind ? " " : "", kind ? kind : "");
    if (length < 0 || (size_t)length >= sizeof words) {
        snprintf(session->error, sizeof session->error, "the names are too long");
        return KYMO_SESSION_REFUSED;
    }
    return kymo_inner_session(session, "limit", words, 0);
}

/* Events that a rule has kept and let go until now. */
static KYMO_INNER_UNUSED int kymo_session_rule(struct kymo_session *session, const char *rule, struct kymo_rule *counts)
{
    uint64_t numbers[5];
    const int result = kymo_inner_session_numbers(session, "rule", rule, numbers, 5);
    counts->kept = numbers[0];
    counts->let_go = numbers[1];
    counts->unknown = numbers[2];
    counts->forgotten = numbers[3];
    counts->limit = numbers[4];
    return result;
}

/*
 * Shares the limit and the counts of a rule about events of the kernel (`kymo record --kernel-only`). Rules with kinds (`per FIELD`) have
 * many limits, and are refused. kymo_shared_rule_end gives the memory back.
 */
static KYMO_INNER_UNUSED int kymo_session_share_rule(struct kymo_session *session, const char *rule, struct kymo_shared_rule *shared)
{
    memset(shared, 0, sizeof *shared);
#ifdef KYMO_OFF
    return kymo_inner_session(session, "share", rule, 0);
#else
    return kymo_session_map(session->name, rule, shared, session->error, sizeof session->error);
#endif
}

static KYMO_INNER_UNUSED uint64_t *kymo_inner_shared(const struct kymo_shared_rule *shared, size_t at)
{
    return (uint64_t *)(void *)((char *)shared->memory + at);
}

/* Sets the limit, in nanoseconds; 0: that of a running percentile. No system call; nothing without memory. */
static KYMO_INNER_UNUSED void kymo_shared_rule_set_limit(struct kymo_shared_rule *shared, uint64_t nanos)
{
    if (shared->memory)
        __atomic_store_n(kymo_inner_shared(shared, shared->limit_at), nanos, __ATOMIC_RELAXED);
}

/* Opens a gate: a rule without a limit (`when`, `between`) keeps events from now on, or none. No system call; nothing without memory. */
static KYMO_INNER_UNUSED void kymo_shared_rule_set_open(struct kymo_shared_rule *shared, int is_open)
{
    kymo_shared_rule_set_limit(shared, is_open ? 0 : 1);
}

/* Its limit in nanoseconds now, and the events that it has kept and let go until now. No system call. */
static KYMO_INNER_UNUSED struct kymo_rule kymo_shared_rule_read(const struct kymo_shared_rule *shared)
{
    struct kymo_rule rule;
    size_t number;
    memset(&rule, 0, sizeof rule);
    if (!shared->memory)
        return rule;
    rule.limit = __atomic_load_n(kymo_inner_shared(shared, shared->limit_at), __ATOMIC_RELAXED);
    for (number = 0; number < shared->counts; ++number) {
        const uint64_t *counts = kymo_inner_shared(shared, shared->counts_at + number * shared->between);
        rule.kept += __atomic_load_n(counts, __ATOMIC_RELAXED);
        rule.let_go += __atomic_load_n(counts + 1, __ATOMIC_RELAXED);
        rule.unknown += __atomic_load_n(counts + 2, __ATOMIC_RELAXED);
    }
    return rule;
}

/* The memory is not needed any more. */
static KYMO_INNER_UNUSED void kymo_shared_rule_end(struct kymo_shared_rule *shared)
{
#ifndef KYMO_OFF
    if (shared->memory)
        kymo_session_unmap(shared);
#endif
    memset(shared, 0, sizeof *shared);
}

/* Events of the session until now, losses, bytes and snapshots. */
static KYMO_INNER_UNUSED int kymo_session_counts(struct kymo_session *session, struct kymo_counts *counts)
{
    uint64_t numbers[4];
    const int result = kymo_inner_session_numbers(session, "counts", NULL, numbers, 4);
    counts->events = numbers[0];
    counts->lost = numbers[1];
    counts->bytes = numbers[2];
    counts->snapshots = numbers[3];
    return result;
}

/* The session records events of this program that match a pattern, such as `net:*`; NULL: all. */
static KYMO_INNER_UNUSED int kymo_session_enable(struct kymo_session *session, const char *events)
{
    return kymo_inner_session(session, "enable", events ? events : "*", 0);
}

/* The session records no such events of this program any more; NULL: none at all. */
static KYMO_INNER_UNUSED int kymo_session_disable(struct kymo_session *session, const char *events)
{
    return kymo_inner_session(session, "disable", events ? events : "*", 0);
}

/* Waits until the session records this program no more; a negative time has no end. */
static KYMO_INNER_UNUSED int kymo_session_wait(struct kymo_session *session, long long timeout_ms)
{
    return kymo_inner_session(session, "wait", NULL, timeout_ms);
}

/* Records a text as `kymo:log`: a mark in the trace. */
static KYMO_INNER_UNUSED void kymo_session_mark(const char *text)
{
    kymo_log(KYMO_NOTICE, "%s", text);
}

/*
 * Conditional termination: waits until a trigger has stopped the session, has its events written, prints the message
 * to standard error, and aborts the program. Returns if one of these had no effect, or if the time is over; a negative
 * time has no end.
 */
static KYMO_INNER_UNUSED int kymo_session_abort_when_stopped(struct kymo_session *session, const char *message, long long timeout_ms)
{
    int result = kymo_session_wait(session, timeout_ms);
    if (!result)
        result = kymo_session_flush(session);
    if (!result) {
        fprintf(stderr, "%s\n", message);
        fflush(NULL);
        abort();
    }
    return result;
}

#endif
