//! Rules about events of the kernel: those that take long are in the trace, and all others only counted.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::c_programs::{compile, library, program};
use crate::kernel::{can_record, events, name};
use crate::recorded::{Place, until};
use crate::resumed::kill_recorder;

/// Under the name of its first argument: as many sleeps of 30 ms as the second one says, each behind a hundred quick calls.
const LOAD: &str = r#"
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int count, char **words) {
    prctl(PR_SET_NAME, words[1]);
    for (int n = 0; n < atoi(words[2]); n++) {
        for (int call = 0; call < 100; call++) getppid();
        usleep(30000);
    }
    prctl(PR_SET_NAME, "over");
    return 0;
}
"#;
const MS: u64 = 1_000_000;
const SLEEP: &str = "syscall_exit_clock_nanosleep";

pub(crate) struct Sleeper {
    pub(crate) place: Place,
    pub(crate) program: PathBuf,
}

impl Sleeper {
    /// `None`: it is said why not.
    pub(crate) fn begin() -> Option<Self> {
        let place = Place::new();
        if !can_record(&place) || !can_load(&place) {
            return None;
        }
        let program = compile(&place.path("."), "sleeper", LOAD, &[]);
        Some(Self { place, program })
    }

    fn sleep(&self, name: &str, times: u32) {
        let status = Command::new(&self.program).args([name, &times.to_string()]).status();
        assert!(status.expect("it starts").success());
    }

    /// The only rule of a summary.
    fn rule(summary: &Value) -> Value {
        assert_eq!(summary["rules"].as_array().map(Vec::len), Some(1), "{summary}");
        summary["rules"][0].clone()
    }

    /// The session's rule, as `kymo limit` tells it.
    fn limits(&self) -> Value {
        Self::rule(&self.place.json(&["limit", "--json"])[0]["summary"])
    }
}

/// Whether programs can be loaded here; otherwise it is said why not.
fn can_load(place: &Place) -> bool {
    let words = ["record", "--kernel-only", "syscalls over 1h", "--output", "tried", "--", "true"];
    let output = place.kymo(&words).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        assert!(told.contains("/sys/kernel/btf") || told.contains("not permitted"), "{told}");
        eprintln!("NO BPF HERE: not run ({})", told.trim_end());
    }
    output.status.success()
}

/// Events of a name whose time is known, in nanoseconds.
fn times(events: &[Value], wanted: &str) -> Vec<u64> {
    let its = events.iter().filter(|event| name(event) == wanted);
    its.filter_map(|event| event["payload"]["took_ns"].as_u64()).collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn slow_calls_are_in_the_trace_with_their_times() {
    let Some(sleeper) = Sleeper::begin() else { return };
    let rule = "slow: syscalls over 20ms per name when comm == \"slow-one\"";
    let program = sleeper.program.to_str().expect("it is text");
    // All other events of calls would be those of the rule.
    let words = ["record", "--kernel=syscalls", "--kernel-only", rule, "--output", "trace", "--json", "--", program];
    let summary = sleeper.place.json(&[&words[..], &["slow-one", "5"]].concat());
    let told = Sleeper::rule(&summary);
    assert_eq!((number(&summary["kernel"]["ruled"]), number(&summary["kernel"]["ruled_lost"])), (5, 0), "{summary}");
    assert_eq!((number(&told["kept"]), number(&told["unknown"]), number(&told["lost"])), (5, 0, 0), "{told}");
    // The end of the call that gave the name, and the begin of the one that took it, are under it, too.
    assert_eq!(number(&told["let_go"]), 501, "{told}");
    let kinds = told["kinds"].as_array().expect("it has kinds");
    let of = |name: &str| kinds.iter().find(|kind| kind["name"] == name).map(|kind| number(&kind["events"]));
    assert_eq!((of("getppid"), of("clock_nanosleep")), (Some(500), Some(5)), "{told}");
    let events = events(&sleeper.place, "trace");
    let times = times(&events, SLEEP);
    assert!(times.len() == 5 && times.iter().all(|time| (30 * MS..10_000 * MS).contains(time)), "{times:?}");
    let slow: Vec<&Value> = events.iter().filter(|event| name(event) == SLEEP).collect();
    for event in &slow {
        assert_eq!(event["context"]["procname"], "slow-one", "{event}");
        assert_eq!(event["payload"]["ret"], 0, "{event}");
        assert!(event["payload"].get("rqtp").is_some(), "arguments have their names: {event}");
    }
    let others = events.iter().filter(|event| name(event).starts_with("syscall_")).count();
    assert_eq!(others, slow.len(), "no other calls");
    let rules = events.iter().find(|event| name(event) == "kymo_kernel_rule").expect("the trace tells the counts");
    assert_eq!((&rules["payload"]["kept"], &rules["payload"]["let_go"]), (&5.into(), &501.into()));
}

#[test]
fn limits_move_while_the_kernel_asks() {
    let Some(sleeper) = Sleeper::begin() else { return };
    let place = &sleeper.place;
    let rule = "moved: syscalls over 20ms per name when comm == \"moved-one\"";
    place.says(&["record", "--detach", "--kernel-only", rule, "--name", "s", "--output", "trace"], 0);
    sleeper.sleep("moved-one", 2);
    let kept = || number(&sleeper.limits()["kept"]);
    assert_eq!(kept(), 2);
    place.says(&["limit", "moved", "10s"], 0);
    sleeper.sleep("moved-one", 2);
    assert_eq!(kept(), 2);
    // A limit of one kind, also of one that no event was of.
    place.says(&["limit", "moved", "1ms", "--kind", "clock_nanosleep"], 0);
    place.says(&["limit", "moved", "1ns", "--kind", "timer_getoverrun"], 0);
    sleeper.sleep("moved-one", 3);
    assert_eq!(kept(), 5);
    let told = place.says(&["limit"], 0);
    assert!(told.contains("limit 10s") && told.contains("clock_nanosleep: limit 1.000 ms"), "{told}");
    place.says(&["limit", "moved", "--reset"], 0);
    place.says(&["limit", "moved", "10s", "--kind", "clock_nanosleep"], 0);
    sleeper.sleep("moved-one", 2);
    assert_eq!(kept(), 5);
    place.says(&["limit", "moved", "--reset", "--kind", "clock_nanosleep"], 0);
    sleeper.sleep("moved-one", 1);
    assert_eq!(kept(), 6);
    for (words, why) in [
        (&["limit", "moved", "1ms", "--kind", "clock_nanosleeep"][..], "did you mean `clock_nanosleep`?"),
        (&["limit", "--remove", "moved"], "the kernel asks rule `moved` until the session ends"),
        (&["limit", "moved", "much"], "`much` is no time"),
        (&["limit", "other", "1ms"], "no rule `other`: it has moved"),
    ] {
        let output = place.kymo(words).output().expect("it starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(why), "{told}");
    }
    let summary = place.json(&["stop", "s", "--json"]);
    assert_eq!(number(&Sleeper::rule(&summary[0])["kept"]), 6, "{summary}");
    assert_eq!(times(&events(place, "trace"), SLEEP).len(), 6);
}

/// Wakeups and switches of all threads: a switch to a thread that was not woken ends nothing.
#[test]
fn running_percentiles_of_any_pair_are_kept() {
    let Some(sleeper) = Sleeper::begin() else { return };
    let rule = "delay: sched_switch over p50 since sched_waking by next_tid=tid when next_comm == \"late-one\"";
    let program = sleeper.program.to_str().expect("it is text");
    let words = ["record", "--kernel-only", rule, "--output", "trace", "--json", "--", program, "late-one", "60"];
    let summary = sleeper.place.json(&words);
    let told = Sleeper::rule(&summary);
    let (kept, let_go) = (number(&told["kept"]), number(&told["let_go"]));
    // A thread that is woken before it has gone to sleep is not switched to.
    assert!(kept >= 2 && let_go >= 5 && (50..200).contains(&(kept + let_go)), "about a half: {told}");
    assert!(number(&told["running_ns"]) > 0, "{told}");
    let switches = events(&sleeper.place, "trace");
    let switches: Vec<&Value> = switches.iter().filter(|event| name(event) == "sched_switch").collect();
    assert_eq!(switches.len() as u64, kept);
    assert!(switches.iter().all(|event| event["payload"]["next_comm"] == "late-one"), "{switches:?}");
}

#[test]
fn only_calls_of_the_command_are_asked_about() {
    let Some(sleeper) = Sleeper::begin() else { return };
    let program = sleeper.program.to_str().expect("it is text");
    let mut beside = Command::new(&sleeper.program).args(["scope-two", "1000"]).spawn().expect("it starts");
    let rule = "syscalls over 20ms when comm == \"scope-*\"";
    let words = ["record", "--kernel-only", rule, "--kernel-of", "command", "--output", "trace", "--json", "--"];
    let summary = sleeper.place.json(&[&words[..], &[program, "scope-one", "3"]].concat());
    beside.kill().and_then(|()| beside.wait()).expect("it was there");
    let told = Sleeper::rule(&summary);
    assert_eq!((number(&told["kept"]), number(&told["let_go"])), (3, 301), "{told}");
    let names = events(&sleeper.place, "trace");
    let names = names.iter().filter(|event| name(event) == SLEEP).map(|event| &event["context"]["procname"]);
    assert_eq!(names.collect::<Vec<_>>(), ["scope-one"; 3]);
}

/// A flight recorder has the newest slow calls, and each snapshot those that it lacks.
#[test]
fn flight_recorders_keep_slow_calls() {
    let Some(sleeper) = Sleeper::begin() else { return };
    let place = &sleeper.place;
    let rule = "syscalls over 20ms when comm == \"flown-one\"";
    let words =
        ["record", "--detach", "--mode", "overwrite", "--kernel-only", rule, "--name", "s", "--output", "trace"];
    place.says(&words, 0);
    sleeper.sleep("flown-one", 3);
    let snapshot = place.json(&["snapshot", "s", "--json"]);
    let path = snapshot["output"].as_str().or(snapshot[0]["output"].as_str()).expect("it is somewhere").to_owned();
    assert_eq!(times(&events(place, &path), SLEEP).len(), 3, "{snapshot}");
    place.says(&["stop", "s"], 0);
}

/// Each slow call is in the trace once, although the recorder is killed: the helper's programs go on.
#[test]
fn the_next_recorder_goes_on_with_rules() {
    let Some(sleeper) = Sleeper::begin() else { return };
    let place = &sleeper.place;
    let rule = "syscalls over 20ms when comm == \"gone-on\"";
    place.says(&["record", "--detach", "--kernel-only", rule, "--name", "s", "--output", "trace"], 0);
    sleeper.sleep("gone-on", 3);
    until(|| number(&sleeper.limits()["kept"]) == 3);
    assert!(kill_recorder(place));
    sleeper.sleep("gone-on", 2);
    // The command starts the next one.
    place.says(&["sessions"], 0);
    sleeper.sleep("gone-on", 4);
    let summary = place.json(&["stop", "s", "--json"]);
    assert_eq!(number(&Sleeper::rule(&summary[0])["kept"]), 9, "{summary}");
    assert_eq!(times(&events(place, "trace"), SLEEP).len(), 9);
}

#[test]
fn rules_that_cannot_be_are_refused() {
    let Some(sleeper) = Sleeper::begin() else { return };
    for (rule, why) in [
        ("syscals over 5ms since sys_enter", "the kernel has no event `syscals`"),
        ("sys_exit over 5ms since sys_enter by tidd", "has no field `tidd`"),
        ("sys_exit over 5ms since sys_enter by comm=tid", "a number for one event and a text for another"),
        ("sys_exit over 5ms since sys_exit", "all of its events begin"),
        ("sys_exit over 5ms since sys_enter per regs->nothing", "has no field `regs.nothing`"),
        ("syscalls over 5ms when ret ==", "expected a value"),
        ("syscalls over 5ms when nothing == 3", "nothing"),
        ("syscalls over 5", "`5` has no unit"),
        ("syscall over 5ms", "did you mean `syscalls`?"),
        ("openat over 5ms", "help: `syscalls over 5ms when name == \"openat\"`"),
        ("openat over 5ms since sys_enter", "help: `sys_exit when name == \"openat\"`"),
        ("sys_exit when zzzzzzzz == 3", "help: there are `name`"),
        ("syscalls over 5ms when name == read", "help: a text stands in quotes: `\"read\"`"),
        ("sys_exit between sched_switch and sched_waking per name", "`by FIELD` tells values apart"),
    ] {
        let words = ["record", "--kernel-only", rule, "--output", "none", "--", "true"];
        let output = sleeper.place.kymo(&words).output().expect("it starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(why), "{rule}: {told}");
        assert!(!sleeper.place.path("none").exists(), "{rule}");
    }
}

/// Moves the limit of a rule of the kernel, and reads its counts.
const SHARES: &str = r#"
#define _GNU_SOURCE
#include <kymo/session.h>
#include <sys/prctl.h>
#include <unistd.h>
KYMO_EVENT(app, begun, KYMO_U32(n));
static int sleeps(struct kymo_shared_rule *shared, int times)
{
    for (int n = 0; n < times; n++)
        usleep(30000);
    return (int)kymo_shared_rule_read(shared).kept;
}
int main(void)
{
    struct kymo_session session = KYMO_SESSION_INIT;
    struct kymo_shared_rule shared, kinds, none;
    kymo_app_begun(1);
    if (kymo_session_share_rule(&session, "shared", &shared)) {
        fprintf(stderr, "%s\n", session.error);
        return 1;
    }
    prctl(PR_SET_NAME, "sharing-one");
    if (sleeps(&shared, 3) != 3 || kymo_shared_rule_read(&shared).limit != 20000000)
        return 2;
    kymo_shared_rule_set_limit(&shared, 10000000000);
    if (sleeps(&shared, 2) != 3 || kymo_shared_rule_read(&shared).let_go < 2)
        return 3;
    struct kymo_rule rule;
    if (kymo_session_rule(&session, "shared", &rule) || rule.limit != 10000000000 || rule.kept != 3)
        return 4;
    kymo_shared_rule_set_limit(&shared, 1000000);
    if (sleeps(&shared, 2) != 5)
        return 5;
    kymo_shared_rule_end(&shared);
    kymo_shared_rule_set_limit(&shared, 1);
    if (kymo_shared_rule_read(&shared).kept)
        return 6;
    if (kymo_session_share_rule(&session, "gate", &shared))
        return 9;
    getppid();
    kymo_shared_rule_set_open(&shared, 1);
    getppid();
    getppid();
    kymo_shared_rule_set_open(&shared, 0);
    getppid();
    if (kymo_shared_rule_read(&shared).kept != 2)
        return 10;
    kymo_shared_rule_end(&shared);
    if (kymo_session_share_rule(&session, "kinds", &kinds) != KYMO_SESSION_REFUSED || kinds.memory)
        return 7;
    if (kymo_session_share_rule(&session, "none", &none) != KYMO_SESSION_REFUSED)
        return 8;
    fprintf(stderr, "%s\n", session.error);
    return 0;
}
"#;

#[test]
fn programs_share_limits_and_counts_with_the_kernel() {
    let Some(sleeper) = Sleeper::begin() else { return };
    let Some(library) = library() else { return };
    let place = &sleeper.place;
    let program = program(&place.path("."), &library, "sharing", SHARES).display().to_string();
    // They are about the same events: all are asked.
    let rules = [
        "shared: syscalls over 20ms when comm == \"sharing-one\"",
        "kinds: syscalls over 1h per name",
        "gate: sys_enter closed when name == \"getppid\" && comm == \"sharing-one\"",
    ];
    let rules = rules.iter().flat_map(|rule| ["--kernel-only", *rule]);
    let words = ["--output", "trace", "--json", "--", &program];
    let words: Vec<&str> = std::iter::once("record").chain(rules).chain(words).collect();
    let output = place.kymo(&words).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{output:?}");
    assert!(told.contains("no session of this program has a rule `none` about events of the kernel"), "{told}");
    assert_eq!(times(&events(place, "trace"), SLEEP).len(), 5);
}

/// Asks for its parent until the rule keeps that, or none any more.
const OPENS: &str = r#"
#define _GNU_SOURCE
#include <kymo/session.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
KYMO_EVENT(app, request, KYMO_U32(n));
KYMO_EVENT(app, answer, KYMO_U32(n));
static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}
/* Asks until as many are kept of each try; how long that took. */
static uint64_t until(struct kymo_shared_rule *shared, uint64_t kept)
{
    const uint64_t begin = now();
    for (int same = 0; same < 20;) {
        const uint64_t before = kymo_shared_rule_read(shared).kept;
        getppid();
        same = kymo_shared_rule_read(shared).kept - before == kept ? same + 1 : 0;
        if (same == 1 && kept)
            return now() - begin;
        if (now() - begin > 60000000000)
            return 0;
        usleep(20);
    }
    return now() - begin;
}
int main(void)
{
    struct kymo_session session = KYMO_SESSION_INIT;
    struct kymo_shared_rule shared;
    prctl(PR_SET_NAME, "opening-one");
    kymo_app_request(0);
    if (kymo_session_share_rule(&session, "asks", &shared)) {
        fprintf(stderr, "%s\n", session.error);
        return 1;
    }
    for (uint32_t n = 1; n < 6; n++) {
        if (!until(&shared, 0))
            return 2;
        kymo_app_request(n);
        const uint64_t took = until(&shared, 1);
        if (!took)
            return 3;
        kymo_app_answer(n);
        fprintf(stderr, "open after %llu us\n", (unsigned long long)took / 1000);
    }
    return until(&shared, 0) ? 0 : 4;
}
"#;

/// Events of a program open and close a rule about the kernel.
#[test]
fn events_of_programs_open_and_close_rules() {
    let Some(sleeper) = Sleeper::begin() else { return };
    let Some(library) = library() else { return };
    let place = &sleeper.place;
    let program = program(&place.path("."), &library, "opening", OPENS).display().to_string();
    let rule = "asks: sys_enter closed when name == \"getppid\" && comm == \"opening-one\"";
    let gates = ["--trigger", "open asks on app:request when n > 0", "--trigger", "close asks on app:answer"];
    let words = ["record", "--kernel-only", rule, "--output", "trace", "--json"];
    let words: Vec<&str> = words.iter().chain(&gates).chain(&["--", &program]).copied().collect();
    let output = place.kymo(&words).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    println!("{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let firings: Vec<u64> =
        summary["triggers"].as_array().expect("two").iter().map(|of| number(&of["firings"])).collect();
    assert_eq!(firings, [5, 5], "{summary}");
    let told = Sleeper::rule(&summary);
    assert!(number(&told["kept"]) >= 5 && number(&told["let_go"]) >= 120, "{told}");
    // What it kept lies between a request and its answer, or a little later.
    let found = events(place, "trace");
    assert_eq!(
        found.iter().filter(|event| name(event) == "syscall_entry_getppid").count() as u64,
        number(&told["kept"])
    );
    assert_eq!(found.iter().filter(|event| name(event) == "kymo:trigger").count(), 10);
    // A rule that is not there, and options that make no sense.
    for (gate, why) in [
        ("open other on app:request", "no rule `other` about the kernel"),
        ("open on app:request", "the name of a rule"),
        ("close asks on app:request after 3", "at each event"),
    ] {
        let words = ["record", "--kernel-only", rule, "--trigger", gate, "--", "true"];
        let output = place.kymo(&words).output().expect("it starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(why), "{gate}: {told}");
    }
}

/// A condition about anything that the kernel's pointers lead to, without a begin.
#[test]
fn conditions_alone_keep_events() {
    let Some(sleeper) = Sleeper::begin() else { return };
    let rule = "woken: sched_waking when p->comm == \"just-one\" && p->real_parent->pid > 0";
    let program = sleeper.program.to_str().expect("it is text");
    let words = ["record", "--kernel-only", rule, "--output", "trace", "--json", "--", program, "just-one", "4"];
    let summary = sleeper.place.json(&words);
    let told = Sleeper::rule(&summary);
    let (kept, let_go) = (number(&told["kept"]), number(&told["let_go"]));
    assert!((4..50).contains(&kept) && let_go > 0, "{told}");
    assert_eq!(number(&told["unknown"]), 0, "nothing has begun: {told}");
    let found = events(&sleeper.place, "trace");
    let found: Vec<&Value> = found.iter().filter(|event| name(event) == "sched_waking").collect();
    assert_eq!(found.len() as u64, kept);
    assert!(found.iter().all(|event| event["payload"]["comm"] == "just-one"), "{found:?}");
    assert!(found.iter().all(|event| event["payload"].get("took_ns").is_none()), "{found:?}");
}

/// Calls of a program that has begun, until it ends; and none while the rule is closed.
#[test]
fn events_between_two_others_are_kept() {
    let Some(sleeper) = Sleeper::begin() else { return };
    let place = &sleeper.place;
    let rule = "run: sys_enter,sys_exit between sched_process_exec and sched_process_exit by tid closed when comm == \"in-between\"";
    place.says(&["record", "--detach", "--kernel-only", rule, "--name", "s", "--output", "trace"], 0);
    sleeper.sleep("in-between", 1);
    let counts = || {
        let rule = sleeper.limits();
        (number(&rule["kept"]), number(&rule["let_go"]))
    };
    let closed = counts();
    assert!(closed.0 == 0 && closed.1 >= 202, "{closed:?}");
    let told = place.says(&["limit", "run", "open"], 0);
    assert!(told.contains("limit open"), "{told}");
    sleeper.sleep("in-between", 1);
    let open = counts();
    assert_eq!((open.0, open.1), (closed.1, closed.1), "the same program again");
    // A thread that was not begun meanwhile.
    place.says(&["limit", "run", "closed"], 0);
    sleeper.sleep("in-between", 1);
    assert_eq!(counts(), (open.0, 2 * closed.1));
    place.says(&["limit", "run", "--reset"], 0);
    let why = place.kymo(&["limit", "run", "5ms"]).output().expect("it starts");
    let why = String::from_utf8_lossy(&why.stderr).into_owned();
    assert!(why.contains("neither `open` nor `closed`"), "{why}");
    place.says(&["stop", "s"], 0);
    let found = events(place, "trace");
    let of = |wanted: &str| found.iter().filter(|event| name(event) == wanted).count();
    assert_eq!((of("syscall_entry_getppid"), of("syscall_exit_getppid")), (100, 100));
    let sleep = found.iter().find(|event| name(event) == "syscall_entry_clock_nanosleep").expect("it was called");
    assert!(sleep["payload"].get("rqtp").is_some(), "{sleep}");
    let begun = found.iter().filter(|event| name(event) == "syscall_exit_getppid");
    let since: Vec<&Value> = begun.map(|event| &event["payload"]["since_ns"]).collect();
    assert!(
        since.len() == 100 && since.iter().all(|time| number(time) > 0),
        "the time since the program began: {since:?}"
    );
    assert!(times(&found, "syscall_exit_getppid").is_empty(), "it is not that of the call");
}

/// What would run is told without a recording: programs, their keys, fields, and a key that cannot be right.
#[test]
fn programs_of_rules_are_explained() {
    let Some(sleeper) = Sleeper::begin() else { return };
    let place = &sleeper.place;
    let (slow, disk) = ("slow: syscalls over 20ms per name", "disk: block_rq_complete over 1ms since block_rq_issue");
    let words = ["record", "--kernel-only", slow, "--kernel-only", disk, "--explain"];
    let told = place.says(&words, 0);
    for line in [
        "slow: raw_syscalls:sys_exit over 20ms since raw_syscalls:sys_enter by thread per name\n",
        "  raw_syscalls:sys_enter begins by thread\n",
        "  raw_syscalls:sys_exit asks by thread per name\n    in the trace  syscall_exit_*, compat_syscall_exit_*: name, ret, ",
        "  warning: rule `disk` compares threads, and `block_rq_issue` and `block_rq_complete` are mostly of different threads: \
         `by rq` tells which belong together\n  block:block_rq_issue begins by thread\n    can be asked  ",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    let told = place.json(&[&words[..], &["--json"]].concat());
    let last = told[1]["programs"].as_array().and_then(|all| all.last()).expect("it has programs").clone();
    assert_eq!((&last["tracepoint"], &last["does"]), (&"block:block_rq_complete".into(), &"asks".into()));
    let has = |list: &str, name: &str| last[list].as_array().is_some_and(|all| all.contains(&name.into()));
    assert!(
        has("fields", "rq") && has("fields", "took") && has("records", "sector") && !has("records", "rq"),
        "{last}"
    );
    let output = place.kymo(&["record", "--explain"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// An event that two rules keep is there for each of them, with its name; moved limits are there, too.
#[test]
fn kept_events_name_their_rule() {
    let Some(sleeper) = Sleeper::begin() else { return };
    let place = &sleeper.place;
    let of = |name: &str, limit: &str| format!("{name}: syscalls over {limit} per name when comm == \"named-one\"");
    let (one, other) = (of("one", "20ms"), of("other", "10ms"));
    let words =
        ["record", "--detach", "--kernel-only", &one, "--kernel-only", &other, "--name", "s", "--output", "trace"];
    place.says(&words, 0);
    sleeper.sleep("named-one", 2);
    place.says(&["limit", "other", "10s"], 0);
    place.says(&["limit", "other", "1ms", "--kind", "getppid"], 0);
    place.says(&["stop", "s"], 0);
    let found = events(place, "trace");
    let mut rules: Vec<&str> = found
        .iter()
        .filter(|event| name(event) == SLEEP)
        .filter_map(|event| event["context"]["rule"].as_str())
        .collect();
    rules.sort_unstable();
    assert_eq!(rules, ["one", "one", "other", "other"]);
    let told = found.iter().filter(|event| name(event) == "kymo_kernel_rule");
    let limits: Vec<&Value> = told.map(|event| &event["payload"]["limit"]).collect();
    assert_eq!(limits, ["20ms", "10s, getppid 1ms"]);
    let text = place.says(&["print", "-F", "rule == \"one\" && took_ns > 20ms", "trace"], 0);
    assert_eq!(text.lines().count(), 2, "{text}");
}

/// Ends of another thread than their begins have none that is known: the summary says so, and the command which key they would have.
#[test]
fn rules_whose_begins_are_hardly_known_are_told() {
    let Some(sleeper) = Sleeper::begin() else { return };
    let place = &sleeper.place;
    let start = || Command::new(&sleeper.program).args(["lost-one", "40"]).spawn().expect("it starts");
    let programs = [start(), start(), start()];
    // A fork is the parent's.
    let rule = "lost: sched_process_exit over 1h since sched_process_fork when comm == \"over\"";
    place.says(&["record", "--detach", "--kernel-only", rule, "--name", "s", "--output", "trace"], 0);
    programs.into_iter().for_each(|mut program| _ = program.wait().expect("it was there"));
    let told = place.says(&["limit"], 0);
    assert!(told.contains("            none of its ends had a known begin: `by FIELD` names what "), "{told}");
    let rule = Sleeper::rule(&place.json(&["stop", "s", "--json"])[0]);
    assert!(number(&rule["unknown"]) >= 3, "{rule}");
    let rule = "sched_switch over 1h since sched_waking when next_comm == \"lost-two\"";
    let output = place.kymo(&["record", "--kernel-only", rule, "--output", "other", "--", "true"]).output();
    let told = String::from_utf8_lossy(&output.expect("it starts").stderr).into_owned();
    let note = "rule `sched_switch` compares threads, and `sched_waking` and `sched_switch` are mostly of different threads: \
                `by next_tid=tid` tells which belong together";
    assert!(told.contains(&format!("warning: {note}\n")), "{told}");
}

/// Closes a hundred files that are not open.
const KINDS: &str = r#"
#include <sys/prctl.h>
#include <unistd.h>
int main(void) {
    prctl(PR_SET_NAME, "kinds-one");
    for (int file = 5000; file < 5100; file++) close(file);
    prctl(PR_SET_NAME, "over");
    return 0;
}
"#;

/// More kinds than have limits of their own share one.
#[test]
fn kinds_beyond_those_with_limits_are_told() {
    let Some(sleeper) = Sleeper::begin() else { return };
    let place = &sleeper.place;
    let program = compile(&place.path("."), "kinds", KINDS, &[]);
    let of = "comm == \"kinds-one\" && name == \"close\"";
    let rule = format!("many: sys_enter over 1h since sys_exit per args[0] when {of}");
    place.says(&["record", "--detach", "--kernel-only", &rule, "--name", "s", "--output", "trace"], 0);
    assert!(Command::new(&program).status().expect("it starts").success());
    let status = sleeper.limits();
    assert_eq!((number(&status["shared"]), status["kinds"].as_array().map(Vec::len)), (36, Some(64)), "{status}");
    let told = place.says(&["limit"], 0);
    assert!(told.contains("other kinds share one limit, as 64 have limits of their own: 36 events"), "{told}");
    let output = place.kymo(&["limit", "many", "1ms", "--kind", "5099"]).output().expect("it starts");
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(why.contains("64 other kinds have limits of their own") && !output.status.success(), "{why}");
    place.says(&["stop", "s"], 0);
}
