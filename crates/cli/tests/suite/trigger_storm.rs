//! Triggers while threads, signal handlers and children record, and the recorder is killed: a session has the events
//! of its windows by their time, and no others.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::c_programs::{library, program};
use crate::recorded::Place;
use crate::resumed::kill_recorder;

const STORM: &str = r#"
#define _GNU_SOURCE
#include <kymo/kymo.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

KYMO_EVENT(work, step, KYMO_U64(value));
KYMO_EVENT(work, child, KYMO_U64(value));

enum { THREADS = 4, STEPS = 5000, CHILDREN = 3 };
static atomic_ulong next;

static void step(void)
{
    kymo_work_step(atomic_fetch_add(&next, 1));
}

static void handler(int signal)
{
    (void)signal;
    step();
}

static void *thread(void *unused)
{
    (void)unused;
    for (int i = 0; i < STEPS; ++i) {
        step();
        if (i % 100 == 0)
            usleep(200);
    }
    return NULL;
}

int main(void)
{
    char line[100];
    printf("@begun %d\n", getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        signal(SIGALRM, handler);
        const struct itimerval often = {{0, 700}, {0, 700}}, never = {{0, 0}, {0, 0}};
        setitimer(ITIMER_REAL, &often, NULL);
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; ++i)
            pthread_create(&threads[i], NULL, thread, NULL);
        for (int i = 0; i < CHILDREN; ++i) {
            const pid_t child = fork();
            if (!child) {
                for (unsigned k = 0; k < 100; ++k)
                    kymo_work_child(k);
                _exit(0);
            }
            int status;
            while (waitpid(child, &status, 0) < 0) {
            }
        }
        for (int i = 0; i < THREADS; ++i)
            pthread_join(threads[i], NULL);
        setitimer(ITIMER_REAL, &never, NULL);
        puts("@done");
        fflush(stdout);
    }
    return 0;
}
"#;

/// A step.
#[derive(Clone, Copy, Debug)]
struct StormStep {
    /// Its time in nanoseconds, and its thread.
    at: (i64, u64),
    value: u64,
}

fn events(place: &Place, trace: &str, event: &str) -> Vec<Value> {
    let text = place.says(&["print", "--event", event, "--format", "json", trace], 0);
    text.lines().map(|line| serde_json::from_str(line).expect("each line is an object")).collect()
}

fn steps(place: &Place, trace: &str) -> Vec<StormStep> {
    place.says(&["check", trace], 0);
    let step = |event: &Value| {
        let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{event}"));
        let at = (event["time"].as_i64().expect("it has a time"), number(&event["packet_context"]["vtid"]));
        StormStep { at, value: number(&event["payload"]["value"]) }
    };
    events(place, trace, "work:step").iter().map(step).collect()
}

/// A firing: its time and thread.
type FiredAt = (i64, u64);

/// The starts, each with the stop behind it.
fn windows(place: &Place, trace: &str) -> Vec<(FiredAt, Option<FiredAt>)> {
    let mut windows: Vec<(FiredAt, Option<FiredAt>)> = Vec::new();
    let mut all = events(place, trace, "kymo:trigger");
    // A recorder that is killed between the event and its own state writes it again.
    all.dedup_by_key(|event| (event["time"].clone(), event["payload"].clone()));
    for event in all {
        let at = (
            event["time"].as_i64().expect("it has a time"),
            event["payload"]["vtid"].as_u64().expect("it has a thread"),
        );
        match windows.last_mut() {
            Some(last) if event["payload"].to_string().contains("\"stop\"") => last.1 = Some(at),
            None if event["payload"].to_string().contains("\"stop\"") => panic!("a stop before any start"),
            _ => windows.push((at, None)),
        }
    }
    windows
}

/// The next recorder has another estimate of the clock: times of its part of the trace and of the first one may be so far
/// apart, in nanoseconds.
const CLOCK_NS: i64 = 1000;

#[test]
fn windows_hold_in_a_storm() {
    let Some(built) = library() else { return };
    let place = Place::new();
    let storm = program(&place.path(""), &built, "storm", STORM);
    let mut storm = crate::recorded::Program::of(&mut place.command(storm));
    let pid = storm.pid.to_string();
    let start = "start on work:step repeat when value % 1000 == 100";
    let stop = "stop on work:step repeat when value % 1000 == 600";
    for (name, triggers) in [("part", &["--trigger", start, "--trigger", stop][..]), ("all", &[])] {
        let words = ["record", "--detach", "--name", name, "--output", name, "--process", &pid];
        place.says(&[&words[..], triggers].concat(), 0);
    }
    storm.tell("go");
    // The program acts while no recorder is there; the next one learns when.
    kill_recorder(&place);
    storm.tell("go");
    place.says(&["status"], 0);
    storm.tell("go");
    let part = place.json(&["stop", "part", "--json"])[0].clone();
    place.says(&["stop", "all"], 0);
    let (all, found) = (steps(&place, "all"), steps(&place, "part"));
    let values: BTreeSet<u64> = all.iter().map(|step| step.value).collect();
    let steps = values.len() as u64;
    assert_eq!(values.last(), Some(&(steps - 1)), "the other session has all of them");
    let firings = |number: usize| part["triggers"][number]["firings"].as_u64().expect("a number");
    // Each thousand has one start and one stop; two threads may come to them in the other order, and then the next ones count.
    assert!(firings(0) > steps / 4000 && firings(0).abs_diff(firings(1)) <= 1, "{part}");
    // By time: from each start to the next stop, and the event of the stop. Other threads may have events between a firing
    // and its event: the start event is on its way, and those behind a stop are cut.
    let told: BTreeSet<u64> = found.iter().map(|step| step.value).collect();
    let (mut wanted, mut may_be) = (BTreeSet::new(), BTreeSet::new());
    // Of each thread, and for starts and stops: the last event that has fired.
    let mut fired: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for window in windows(&place, "part") {
        let mut of = |rest: u64, (from, thread): FiredAt| {
            // Firings are in the order of the changes that they make. One whose thread lost its processor between the
            // change and the clock has a later time, and so has the next one, which may be later than its event then. One that
            // was read before its thread lost it is far from its event, but not the second one of an event.
            let last = fired.entry((thread, rest)).or_default();
            let its = all.iter().filter(|step| step.at.1 == thread && step.value % 1000 == rest && step.value > *last);
            let event = *its
                .min_by_key(|step| step.at.0.abs_diff(from))
                .unwrap_or_else(|| panic!("a firing without its event: {window:?}"));
            *last = event.value;
            event
        };
        let (first, last) = (of(100, window.0), window.1.map(|stop| of(600, stop)));
        wanted.extend([first].into_iter().chain(last).map(|step| step.value));
        let end = window.1.map_or(i64::MAX, |(end, _)| end);
        let between = |from: i64, end: i64| {
            all.iter().filter(move |step| (from..end).contains(&step.at.0)).map(|step| step.value)
        };
        wanted.extend(between(first.at.0.max(window.0.0) + CLOCK_NS, end.saturating_sub(CLOCK_NS)));
        may_be.extend(between(window.0.0 - CLOCK_NS, end.saturating_add(CLOCK_NS)));
    }
    let missing: Vec<&u64> = wanted.difference(&told).collect();
    let others: Vec<&u64> = told.difference(&wanted).filter(|value| !may_be.contains(value)).collect();
    assert_eq!((missing, others), (Vec::new(), Vec::new()), "{part}");
    assert_eq!(told.len(), found.len(), "none is there twice");
}
