//! Rules: programs remember earlier events, and decide which ones are kept.

use std::time::Duration;

use serde_json::Value;

use crate::c_programs::{library, program};
use crate::recorded::{Place, Program, until};
use crate::resumed::kill_recorder;

/// Begins a session of a program.
fn begin(place: &Place, name: &str, program: &Program, more: &[&str]) {
    let pid = program.pid.to_string();
    let words = ["record", "--detach", "--name", name, "--output", name, "--process", &pid];
    place.says(&[&words[..], more].concat(), 0);
}

fn counts(place: &Place, trace: &str) -> Vec<u64> {
    place.says(&["check", trace], 0);
    place.values(&place.path(trace), "test:count")
}

/// Values of the ends in a trace, and the times that they took, if these are known.
fn ends(place: &Place, trace: &str) -> Vec<(u64, Option<u64>)> {
    all_ends(place, trace, "test:end")
}

fn all_ends(place: &Place, trace: &str, event: &str) -> Vec<(u64, Option<u64>)> {
    place.says(&["check", trace], 0);
    let path = place.path(trace).display().to_string();
    let text = place.says(&["print", "--event", event, "--format", "json", &path], 0);
    let event = |line: &str| {
        let event: Value = serde_json::from_str(line).expect("each line is an object");
        let field = |name: &str| event["payload"][name].as_u64();
        (field("value").unwrap_or_else(|| panic!("{line}")), field("took_ns"))
    };
    text.lines().map(event).collect()
}

/// Stops a session; returns its first rule.
fn rule(place: &Place, name: &str) -> Value {
    place.json(&["stop", name, "--json"])[0]["rules"][0].clone()
}

fn told(rule: &Value) -> [u64; 4] {
    ["kept", "let_go", "unknown", "forgotten"].map(|name| rule[name].as_u64().unwrap_or_else(|| panic!("{rule}")))
}

/// The begin may be in one thread and the end in another one; each end carries the time since its begin.
#[test]
fn events_that_take_long_are_kept_with_their_time() {
    let place = Place::new();
    let mut program = place.program();
    let words = "slow: test:end over 10ms since test:begin by value";
    begin(&place, "slow", &program, &["--only", words]);
    begin(&place, "both", &program, &["--only", "test:end over 10ms since test:begin by value with begins"]);
    begin(&place, "all", &program, &[]);
    for word in ["begin 1", "begin 2", "end 1", "begin 3"] {
        program.tell(word);
    }
    std::thread::sleep(Duration::from_millis(12));
    for word in ["end 2", "end-elsewhere 3", "end 4", "begin 5", "end 5"] {
        program.tell(word);
    }
    place.says(&["stop", "all"], 0);
    let rule = rule(&place, "slow");
    let found = ends(&place, "slow");
    let values: Vec<u64> = found.iter().map(|(value, _)| *value).collect();
    assert_eq!(values, [2, 3, 4]);
    let is_long = |took: Option<u64>| took.is_some_and(|took| (10_000_000..60_000_000_000).contains(&took));
    assert!(is_long(found[0].1) && is_long(found[1].1) && found[2].1.is_none(), "{found:?}");
    assert_eq!(told(&rule), [3, 2, 1, 0]);
    // Ends carry the time since their begins, which are not recorded, unless the rule says so.
    place.says(&["stop", "both"], 0);
    assert_eq!(place.values(&place.path("slow"), "test:begin"), [0_u64; 0]);
    assert_eq!(place.values(&place.path("both"), "test:begin"), [1, 2, 3, 5]);
    assert_eq!(ends(&place, "both").iter().map(|(value, _)| *value).collect::<Vec<_>>(), values);
    // The other session has all that it would have alone, begins among it.
    assert_eq!(ends(&place, "all"), [1, 2, 3, 4, 5].map(|value| (value, None)));
    assert_eq!(place.values(&place.path("all"), "test:begin"), [1, 2, 3, 5]);
    // The trace tells how many were let go.
    let text = place.says(&["print", "--event", "kymo:rule", "slow"], 0);
    let last = text.lines().last().unwrap_or_default().to_owned();
    assert!(last.contains("kept = 3, let_go = 2, unknown = 1") && last.contains("rule = \"slow\""), "{text}");
}

/// Each session counts those that its filter keeps, and goes on with another limit.
#[test]
fn one_of_many_is_kept() {
    let place = Place::new();
    let mut program = place.program();
    begin(&place, "some", &program, &["--only", "test:count every 100"]);
    begin(&place, "even", &program, &["--filter", "value % 2 == 0", "--only", "test:count every 10"]);
    begin(&place, "few", &program, &["--only", "test:count at most 3 in 1h", "--only", "test:count every 2"]);
    begin(&place, "all", &program, &[]);
    program.tell("offer 200");
    let told_of = place.says(&["limit", "count", "50", "--session", "some"], 0);
    assert!(
        told_of.contains("count: kept 2 of 200 events (test:count every 100)\n            limit 50\n"),
        "{told_of}"
    );
    program.tell("offer 100");
    assert_eq!(told(&rule(&place, "some")), [4, 296, 0, 0]);
    for name in ["even", "few", "all"] {
        place.says(&["stop", name], 0);
    }
    assert_eq!(counts(&place, "some"), [0, 100, 200, 250]);
    assert_eq!(counts(&place, "even"), (0..300).step_by(20).collect::<Vec<_>>());
    // The second rule sees those that the first one has kept.
    assert_eq!(counts(&place, "few"), [0, 2]);
    assert_eq!(counts(&place, "all"), (0..300).collect::<Vec<_>>());
}

/// One of ten jobs takes longer: a running limit keeps about as many as it says, for each kind apart.
#[test]
fn a_running_limit_follows_the_times() {
    let place = Place::new();
    let mut program = place.program();
    begin(&place, "slow", &program, &["--only", "test:end over p80 since test:begin per kind"]);
    program.tell("jobs 4000");
    let status = place.json(&["limit", "--json"])[0]["summary"]["rules"][0].clone();
    let kind = |name: &str| {
        let all = status["kinds"].as_array().expect("it has kinds").iter();
        all.clone().find(|kind| kind["name"] == name).unwrap_or_else(|| panic!("{status}")).clone()
    };
    assert_eq!((&kind("even")["events"], &kind("odd")["events"]), (&2000.into(), &2000.into()));
    // All long jobs are odd: a fifth of those.
    assert!(kind("even")["running_ns"].as_u64() < kind("odd")["running_ns"].as_u64(), "{status}");
    place.says(&["limit", "end", "1h", "--kind", "even"], 0);
    let told_of = place.says(&["limit", "end", "1h", "--kind", "evne"], 0);
    assert!(told_of.contains("no event of rule `end` was of kind `evne` so far; did you mean `even`?"), "{told_of}");
    let before = status["kept"].as_u64().expect("a number");
    assert!((300..1600).contains(&before), "{status}");
    program.tell("jobs 400");
    let told = rule(&place, "slow");
    let after = ends(&place, "slow").into_iter().skip(before as usize);
    assert!(after.clone().all(|(value, _)| value % 2 == 1) && after.count() > 10, "{told}");
}

/// Programs that do not judge, and events that are recorded without a question: the recorder asks.
#[test]
fn the_recorder_asks_about_other_events() {
    let place = Place::new();
    let mut program = place.program();
    begin(&place, "some", &program, &["--only", "test:count every 100"]);
    program.tell("count 1000");
    assert_eq!(told(&rule(&place, "some")), [10, 990, 0, 0]);
    assert_eq!(counts(&place, "some"), (0..1000).step_by(100).collect::<Vec<_>>());
}

/// A rule goes on under the next recorder: keys, counts and limits are the program's.
#[test]
fn rules_outlive_the_recorder() {
    let place = Place::new();
    let mut program = place.program();
    begin(
        &place,
        "some",
        &program,
        &["--only", "test:count every 100", "--only", "test:end over 1h since test:begin by value"],
    );
    program.tell("offer 150");
    program.tell("begin 1");
    kill_recorder(&place);
    program.tell("offer 50");
    place.says(&["status"], 0);
    until(|| place.json(&["limit", "--json"])[0]["summary"]["rules"][0]["kept"] == 2);
    program.tell("offer 100");
    program.tell("end 1");
    let rules = place.json(&["stop", "--json"])[0]["rules"].clone();
    assert_eq!((told(&rules[0]), told(&rules[1])), ([3, 297, 0, 0], [0, 1, 0, 0]));
    assert_eq!(counts(&place, "some"), [0, 100, 200]);
}

/// A flight recorder writes the last events before one that took long.
#[test]
fn a_slow_event_takes_a_snapshot_with_the_last_events() {
    let place = Place::new();
    let mut program = place.program();
    let slow = "slow: snapshot on test:end over 10ms since test:begin by value last 5 repeat";
    begin(&place, "flight", &program, &["--mode", "overwrite", "--trigger", slow]);
    program.tell("offer 100");
    for word in ["begin 1", "end 1", "begin 2"] {
        program.tell(word);
    }
    std::thread::sleep(Duration::from_millis(12));
    for word in ["offer 3", "end 2"] {
        program.tell(word);
    }
    until(|| place.json(&["trigger", "--json"])[0]["triggers"][0]["firings"] == 1);
    until(|| place.path("flight/snapshot-1/metadata").exists());
    program.tell("offer 10");
    let told_of = place.says(&["trigger"], 0);
    assert!(
        told_of.contains(
            "slow: snapshot on test:end over 10ms since test:begin by value, with the last 5 events, each time"
        ),
        "{told_of}"
    );
    let summary = place.json(&["stop", "--json"])[0].clone();
    assert_eq!(
        (&summary["snapshots"], &summary["rules"][0]["kept"], &summary["rules"][0]["let_go"]),
        (&1.into(), &1.into(), &1.into())
    );
    assert_eq!(counts(&place, "flight/snapshot-1"), [100, 101, 102]);
    assert_eq!(ends(&place, "flight/snapshot-1").iter().map(|(value, _)| *value).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(place.values(&place.path("flight/snapshot-1"), "test:begin"), [2]);
}

/// Wrong words say where and why; rules come and go while programs run.
#[test]
fn rules_are_added_changed_and_removed() {
    let place = Place::new();
    let mut program = place.program();
    let wrong = place.says(&["record", "--only", "test:end over 5ms"], 2);
    assert!(wrong.contains("expected `since EVENT`, where the time begins, found the end"), "{wrong}");
    begin(&place, "some", &program, &[]);
    assert!(place.says(&["limit"], 0).contains("session some: no rules"));
    program.tell("offer 10");
    let told_of = place.says(&["limit", "--add", "few: test:count at most 2 in 1h"], 0);
    assert!(told_of.contains("few: kept 0 of 0 events"), "{told_of}");
    program.tell("offer 10");
    place.says(&["limit", "--add", "few: test:count every 5"], 0);
    program.tell("offer 10");
    place.says(&["limit", "--remove", "few"], 0);
    program.tell("offer 2");
    for (words, status, why) in [
        (&["limit", "few", "3"][..], 2, "session `some` has no rule `few`: it has none"),
        (
            &["limit", "--add", "test:cuont every 5"],
            1,
            "no event of a program that runs is called `test:cuont`; did you mean `test:count`?",
        ),
        (&["limit", "cuont"], 2, "a new limit is missing"),
        (&["limit", "cuont", "soon"], 2, "`soon` is no number of events"),
        (&["limit", "cuont", "5", "--kind", "x"], 2, "rule `cuont` has no kinds"),
    ] {
        let told = place.says(words, status);
        assert!(told.contains(why), "{words:?}: {told}");
    }
    let told_of = place.says(&["limit", "--add", "lost: test:ned over 5ms since test:b* by valeu"], 1);
    for why in [
        "no event of a program is called `test:ned`; did you mean `test:end`?",
        "test:begin has no field `valeu`; there is `value`",
    ] {
        assert!(told_of.contains(why), "{told_of}");
    }
    for words in [&["limit", "--add"][..], &["record", "--output", "other", "--detach", "--only"]] {
        let told_of = place.says(&[words, &["test:end over 5ms since test:begin by valeu"]].concat(), 2);
        assert!(told_of.contains("rule `end`: test:end has no field `valeu`; there is `value`"), "{told_of}");
    }
    let summary = place.json(&["stop", "--json"])[0].clone();
    let removed: Vec<[u64; 4]> =
        summary["removed_rules"].as_array().expect("there are some").iter().map(told).collect();
    assert_eq!(removed, [[2, 8, 0, 0], [2, 8, 0, 0]]);
    let text = place.says(&["print", "--event", "kymo:rule", "some"], 0);
    assert_eq!(text.matches("kept = 2, let_go = 8").count(), 2, "{text}");
    let wanted: Vec<u64> = (0..12).chain([20, 25, 30, 31]).collect();
    assert_eq!(counts(&place, "some"), wanted);
}

const STORM: &str = r#"
#define _GNU_SOURCE
#include <inttypes.h>
#include <kymo/session.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

KYMO_EVENT(job, begin, KYMO_U64(id));
KYMO_EVENT(job, end, KYMO_U64(id), KYMO_U64(value));

enum { THREADS = 4, JOBS = 3000, CHILDREN = 5, CHILD_JOBS = 300 };
static atomic_ulong jobs, long_jobs;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Long jobs have odd numbers. */
static void job(uint64_t length)
{
    const uint64_t id = 2 * atomic_fetch_add(&jobs, 1) + (length > 0);
    const uint64_t begin = now();
    if (length)
        atomic_fetch_add(&long_jobs, 1);
    kymo_job_begin(id);
    while (now() - begin < length) {
    }
    kymo_job_end(id, id);
}

static void handler(int signal)
{
    (void)signal;
    job(0);
}

static void *thread(void *unused)
{
    (void)unused;
    for (int i = 0; i < JOBS; ++i)
        job(i % 100 == 99 ? 6000000 : 0);
    return NULL;
}

int main(void)
{
    struct kymo_session session = KYMO_SESSION_INIT;
    kymo_job_begin(0);
    if (kymo_session_only(&session, "slow: job:end over 1s since job:begin by id") || kymo_session_limit(&session, "slow", NULL, "5ms")) {
        fprintf(stderr, "%s\n", session.error);
        return 1;
    }
    signal(SIGALRM, handler);
    const struct itimerval often = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; ++i)
        pthread_create(&threads[i], NULL, thread, NULL);
    for (int i = 0; i < CHILDREN; ++i) {
        const pid_t child = fork();
        if (!child) {
            /* Its jobs are counted here: those of the parent go on meanwhile. */
            atomic_store(&jobs, 1000000u * (unsigned)(i + 1));
            for (int k = 0; k < CHILD_JOBS; ++k)
                job(k % 100 == 99 ? 6000000 : 0);
            _exit(0);
        }
        int status;
        while (waitpid(child, &status, 0) < 0) {
        }
    }
    for (int i = 0; i < THREADS; ++i)
        pthread_join(threads[i], NULL);
    const struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    struct kymo_rule rule;
    if (kymo_session_rule(&session, "slow", &rule) || rule.limit != 5000000)
        return 2;
    printf("%lu %lu %" PRIu64 "\n", (unsigned long)jobs, (unsigned long)long_jobs, rule.kept + rule.let_go);
    return 0;
}
"#;

/// Threads, handlers that interrupt them, and children: no job is counted twice or not at all, and none has the time of another one.
#[test]
fn rules_hold_in_a_storm() {
    let Some(built) = library() else { return };
    let place = Place::new();
    let storm = program(&place.path(""), &built, "storm", STORM).display().to_string();
    let output = place
        .kymo(&["record", "--name", "storm", "--output", "storm.ctf", "--json", "--", &storm])
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    let mut lines = text.lines();
    let numbers: Vec<u64> =
        lines.next().expect("it says them").split(' ').map(|word| word.parse().expect("a number")).collect();
    let summary: Value = serde_json::from_str(lines.next().expect("it is told")).expect("it is one object");
    let rule = &summary["rules"][0];
    let [kept, let_go, unknown, forgotten] = told(rule);
    let (of_parent, of_children) = (numbers[0], 5 * 300);
    assert_eq!((kept + let_go, forgotten), (of_parent + of_children, 0), "{rule}");
    assert_eq!(
        summary["lost"].as_object().map(|lost| lost.values().filter_map(Value::as_u64).sum::<u64>()),
        Some(0),
        "{summary}"
    );
    let found = all_ends(&place, "storm.ctf", "job:end");
    assert_eq!(found.len() as u64, kept);
    let untimed = found.iter().filter(|(_, took)| took.is_none()).count() as u64;
    assert_eq!(untimed, unknown, "{rule}");
    // A child that the recorder has not met yet: those that it began before it did.
    assert!(unknown <= 5 * 2, "{rule}");
    let timed = || found.iter().filter_map(|(value, took)| Some((*value, (*took)?)));
    assert!(timed().all(|(_, took)| (5_000_000..60_000_000_000).contains(&took)), "{rule}");
    let long = found.iter().filter(|(value, _)| value % 2 == 1).count() as u64;
    assert_eq!(long, numbers[1] + 5 * 3, "{rule}");
}

const SERVER: &str = r#"
#define _GNU_SOURCE
#include <inttypes.h>
#include <kymo/kymo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

KYMO_EVENT(job, begin, KYMO_U64(id), KYMO_TEXT(kind));
KYMO_EVENT(job, end, KYMO_U64(id), KYMO_TEXT(kind));
KYMO_EVENT(job, poll, KYMO_U64(id));
KYMO_EVENT(job, error, KYMO_F64(load));

enum { THREADS = 4, JOBS = 100, LIMIT = 5000000 };
static atomic_ulong slow;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Every tenth job is long, and has an odd number. */
static void *thread(void *number)
{
    for (uint64_t i = 0; i < JOBS; ++i) {
        const uint64_t id = ((uint64_t)number << 32 | i << 1) + (i % 10 == 3);
        const struct timespec length = {0, i % 10 == 3 ? 12000000 : 100000};
        const uint64_t begin = now();
        kymo_job_begin(id, i % 2 ? "odd" : "even");
        nanosleep(&length, NULL);
        kymo_job_end(id, i % 2 ? "odd" : "even");
        if (now() - begin > LIMIT)
            atomic_fetch_add(&slow, 1);
        kymo_job_poll(i);
        kymo_job_error(0.5);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; ++i)
        pthread_create(&threads[i], NULL, thread, (void *)i);
    for (int i = 0; i < THREADS; ++i)
        pthread_join(threads[i], NULL);
    printf("%lu\n", (unsigned long)slow);
    return 0;
}
"#;

/// Records the server with these words; returns the jobs that may have been long, and the summary.
fn serve(place: &Place, server: &str, words: &[&str]) -> (u64, Value) {
    let record = [&["record", "--output", "server.ctf", "--json"], words, &["--", server]].concat();
    let output = place.kymo(&record).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (slow, told) = text.split_once('\n').expect("it says both");
    (slow.parse().expect("a number"), serde_json::from_str(told).expect("it is one object"))
}

/// ID and time of an end.
fn end_of(line: &str) -> (u64, u64) {
    let event: Value = serde_json::from_str(line).expect("each line is an object");
    let field = |name: &str| event["payload"][name].as_u64().unwrap_or_else(|| panic!("{line}"));
    (field("id"), field("took_ns"))
}

fn how_many(place: &Place, event: &str) -> usize {
    place.says(&["print", "--event", event, "server.ctf"], 0).lines().count()
}

/// A program that starts asks its rules a moment after its first events: what it keeps goes on from these.
#[test]
fn rules_hold_from_the_first_event_on() {
    let Some(built) = library() else { return };
    let place = Place::new();
    let server = program(&place.path(""), &built, "server", SERVER).display().to_string();
    let begin = |words: &[&str]| {
        let _ = std::fs::remove_dir_all(place.path("server.ctf"));
        serve(&place, &server, words)
    };
    // The begins are not selected: the rule knows them all the same.
    let (slow, summary) =
        begin(&["--event", "job:end", "--only", "job:* over 5ms since job:begin by id", "--only", "job:poll every 10"]);
    let text = place.says(&["print", "--event", "job:end", "--format", "json", "server.ctf"], 0);
    let found: Vec<(u64, u64)> = text.lines().map(end_of).collect();
    let [kept, let_go, unknown, _] = told(&summary["rules"][0]);
    assert_eq!((kept + let_go, unknown, kept), (400, 0, found.len() as u64), "{summary}");
    assert!((40..=slow).contains(&kept) && found.iter().all(|(_, took)| *took > 5_000_000));
    assert_eq!(found.iter().filter(|(id, _)| id % 2 == 1).count(), 40);
    let problems = &summary["rules"][1]["problems"][0];
    assert_eq!(problems, "the session selects no event of the rule: `--event job:poll` does", "{summary}");
    // They are recorded where the rule says so, whatever the session selects.
    let words = ["--event", "job:end", "--only", "job:end over 5ms since job:begin by id per kind with begins"];
    let (_, summary) = begin(&words);
    assert_eq!(how_many(&place, "job:begin"), 400, "{summary}");
    let kinds = summary["rules"][0]["kinds"].as_array().expect("it has kinds");
    let mut names: Vec<&str> = kinds.iter().map(|kind| kind["name"].as_str().expect("a name")).collect();
    names.sort_unstable();
    assert_eq!(names, ["even", "odd"]);
    let (_, summary) = begin(&["--only", "job:poll every 10", "--only", "job:error at most 3 in 1h"]);
    let rules: Vec<[u64; 4]> = summary["rules"].as_array().expect("rules").iter().map(told).collect();
    assert!((39..=40).contains(&rules[0][0]) && rules[0][1] == 400 - rules[0][0], "{summary}");
    assert_eq!(rules[1], [3, 397, 0, 0]);
    assert_eq!(how_many(&place, "job:error"), 3);
}

/// A rule that no event has the fields for lets nothing go, and hides no events that begin.
#[test]
fn rules_about_nothing_change_nothing() {
    let Some(built) = library() else { return };
    let place = Place::new();
    let server = program(&place.path(""), &built, "server", SERVER).display().to_string();
    let rules = [
        ("job:end over 5ms since job:begin by name", "job:begin has no field `name`"),
        (
            "job:edn over 5ms since job:begin by id",
            "no event of a program is called `job:edn`; did you mean `job:end`?",
        ),
        ("job:error every 5 by load", "`load` of job:error is no whole number and no text: it cannot be a key"),
    ];
    let words: Vec<&str> = rules.iter().flat_map(|(words, _)| ["--only", *words]).collect();
    let (_, summary) = serve(&place, &server, &words);
    for (at, (_, why)) in rules.iter().enumerate() {
        let rule = &summary["rules"][at];
        assert_eq!((told(rule), &rule["problems"][0]), ([0; 4], &Value::from(*why)), "{summary}");
    }
    for event in ["job:begin", "job:end", "job:error"] {
        assert_eq!(how_many(&place, event), 400, "{event}");
    }
    // The same in a snapshot of a flight recorder.
    let _ = std::fs::remove_dir_all(place.path("server.ctf"));
    serve(&place, &server, &["--mode", "overwrite", "--only", rules[1].0]);
    assert_eq!(how_many(&place, "job:begin"), 400);
}

/// A program has numbers for sixteen rules: one that takes the place of another one has its number then.
#[test]
fn a_rule_is_replaced_where_there_is_no_room() {
    let place = Place::new();
    let mut program = place.program();
    let names: Vec<String> = (0..8).map(|name| format!("r{name}: test:count every 1")).collect();
    let words: Vec<&str> = names.iter().flat_map(|rule| ["--only", rule]).collect();
    begin(&place, "one", &program, &words);
    begin(&place, "two", &program, &words);
    program.tell("offer 10");
    place.says(&["limit", "--session", "one", "--add", "r7: test:count every 5"], 0);
    program.tell("offer 20");
    let summary = place.json(&["stop", "one", "--json"])[0].clone();
    let rule = summary["rules"].as_array().and_then(|all| all.last()).expect("there is one");
    assert_eq!((told(rule), &rule["without"]), ([4, 16, 0, 0], &0.into()), "{summary}");
    assert_eq!(counts(&place, "one"), (0..10).chain([10, 15, 20, 25]).collect::<Vec<_>>());
}

const TICKS: &str = r#"
#include <kymo/kymo.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

KYMO_EVENT(tick, tock, KYMO_U64(n));
static long events, nanoseconds;

static void *thread(void *unused)
{
    (void)unused;
    const struct timespec length = {0, nanoseconds};
    for (long i = 0; i < events; ++i) {
        kymo_tick_tock((uint64_t)i);
        if (nanoseconds)
            nanosleep(&length, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    if (argc != 3)
        return 1;
    events = atol(argv[1]);
    nanoseconds = atol(argv[2]);
    for (int i = 0; i < 2; ++i)
        pthread_create(&threads[i], NULL, thread, NULL);
    for (int i = 0; i < 2; ++i)
        pthread_join(threads[i], NULL);
    return 0;
}
"#;

/// Summary of a recording with rules: the events of two threads, all of which the rules count.
fn ticks(place: &Place, words: &[&str]) -> Value {
    let _ = std::fs::remove_dir_all(place.path("ticks.ctf"));
    let record = [&["record", "--output", "ticks.ctf", "--json"], words].concat();
    let output = place.kymo(&record).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("it is one object")
}

/// An event is recorded, let go or lost; the verdict before it is none.
#[test]
fn each_event_is_counted_once() {
    let Some(built) = library() else { return };
    let place = Place::new();
    let program = program(&place.path(""), &built, "ticks", TICKS).display().to_string();
    let rule = "tick:tock every 2";
    let summary = ticks(&place, &["--pool-size", "128KiB", "--only", rule, "--", &program, "200000", "0"]);
    let lost: u64 = summary["lost"].as_object().expect("they are told").values().filter_map(Value::as_u64).sum();
    let [_, let_go, ..] = told(&summary["rules"][0]);
    let recorded = summary["events"].as_u64().expect("a number");
    assert!(lost > 0 && recorded + let_go + lost == 400_000, "{summary}");
    // What a flight recorder's programs recorded before they asked is asked when it writes it.
    for words in [&["--mode", "overwrite"][..], &["--mode", "overwrite", "--flush-every", "100ms"]] {
        let summary =
            ticks(&place, &[words, &["--only", "tick:tock every 10", "--", &program, "2000", "50000"]].concat());
        let text = place.says(&["print", "--event", "tick:tock", "ticks.ctf"], 0);
        let [kept, let_go, ..] = told(&summary["rules"][0]);
        assert_eq!((kept + let_go, kept), (4000, text.lines().count() as u64), "{words:?}: {summary}");
    }
}

/// Another session has all events: those that a rule let go before it was removed are not recorded behind that.
#[test]
fn counts_are_whole_where_a_rule_is_removed() {
    let Some(built) = library() else { return };
    let place = Place::new();
    let program = program(&place.path(""), &built, "ticks", TICKS).display().to_string();
    let all = ["record", "--detach", "--name", "all", "--output", "all", "--process", "ticks"];
    let some = ["record", "--detach", "--name", "some", "--output", "some", "--process", "ticks", "--only"];
    place.says(&all, 0);
    place.says(&[&some[..], &["tick:tock every 100"]].concat(), 0);
    let mut running = std::process::Command::new(program)
        .args(["5000", "50000"])
        .env("XDG_RUNTIME_DIR", place.path(""))
        .spawn()
        .expect("it starts");
    until(|| {
        place.json(&["limit", "--session", "some", "--json"])[0]["summary"]["rules"][0]["let_go"].as_u64() > Some(500)
    });
    place.says(&["limit", "--remove", "tock", "--session", "some"], 0);
    assert!(running.wait().expect("it ends").success());
    let summary = place.json(&["stop", "some", "--json"])[0].clone();
    place.says(&["stop", "all"], 0);
    let count = |trace: &str| place.says(&["print", "--event", "tick:tock", trace], 0).lines().count() as u64;
    let [_, let_go, ..] = told(&summary["removed_rules"][0]);
    assert_eq!((count("all"), count("all") - count("some")), (10_000, let_go), "{summary}");
}
