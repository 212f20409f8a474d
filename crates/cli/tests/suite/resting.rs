//! Programs that are quiet are looked at seldom; what they record all of a sudden is not lost for that.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::recorded::{Place, Program, until};

/// How a program is.
fn status(place: &Place, program: &Program) -> Value {
    let status = place.json(&["status", "--json", &program.pid.to_string()]);
    status["programs"][0].clone()
}

fn is_resting(place: &Place, program: &Program) -> bool {
    status(place, program)["is_resting"] == true
}

/// Time between two looks at a program that rests.
const SELDOM: Duration = Duration::from_millis(250);

/// Looks at a program that rested all the time since. Besides those, it is looked at whenever the status is asked, and up to three times when it
/// has rung: then, when it was told to ring again, and once more.
fn looks_at_rest(since: Instant, asked: u64, rung: u64) -> u64 {
    (since.elapsed().as_millis() / SELDOM.as_millis()) as u64 + 1 + asked + 3 * rung
}

/// How often a program was looked at.
fn looks(place: &Place, program: &Program) -> u64 {
    status(place, program)["looks"].as_u64().expect("a number")
}

/// Files of programs.
fn controls(place: &Place) -> Vec<PathBuf> {
    let files = std::fs::read_dir(place.path("kymo")).expect("it is there").map(|file| file.expect("so").path());
    files.filter(|path| path.extension().is_some_and(|kind| kind == "ctl")).collect()
}

/// A program says that it has no bell, as one does that is older than bells, or that may not ring.
fn has_none(control: &Path) {
    let file = File::options().write(true).open(control).expect("it is there");
    file.write_all_at(&[0; 16], 304).expect("it is ours");
}

#[test]
fn programs_that_are_quiet_are_looked_at_seldom() {
    const FOR: Duration = Duration::from_secs(3);
    let place = Place::new();
    let [one, other] = [place.program(), place.program()];
    let before = controls(&place);
    let mut programs = [one, other, place.program()];
    has_none(controls(&place).iter().find(|path| !before.contains(path)).expect("it has a file"));
    place.says(&["record", "--detach", "--name", "s", "--output", "trace"], 0);
    until(|| programs[..2].iter().all(|program| is_resting(&place, program)));
    programs[0].tell("count 1");
    let began = Instant::now();
    let before = [0, 1, 2].map(|nth: usize| looks(&place, &programs[nth]));
    std::thread::sleep(FOR);
    let after = [0, 1, 2].map(|nth: usize| looks(&place, &programs[nth]));
    let [one, other, without] = [0, 1, 2].map(|nth: usize| after[nth] - before[nth]);
    // There were five requests for the status since, and the one that was told something before may ring late.
    let most = looks_at_rest(began, 5, 1);
    assert!((1..=most).contains(&one) && (1..=most).contains(&other), "looked {one} and {other} times in {FOR:?}");
    assert!(!is_resting(&place, &programs[2]) && without > 2 * most, "looked {without} times where nobody can ring");
    // An event after so long rings, as it goes to another sub-buffer. That is no reason to look all the time.
    let (began, before) = (Instant::now(), looks(&place, &programs[0]));
    programs[0].tell("count 1");
    std::thread::sleep(Duration::from_millis(150));
    let seen = looks(&place, &programs[0]) - before;
    let most = looks_at_rest(began, 2, 1);
    assert!((1..=most).contains(&seen), "looked {seen} times because of one event; {most} at most while it rests");
    place.says(&["stop", "s"], 0);
}

#[test]
fn who_was_quiet_and_then_is_not_loses_nothing() {
    const EVENTS: u64 = 60_000;
    let place = Place::new();
    let mut program = place.program();
    // What it has room for lasts for two fifths of the time between two looks while it rests: without a bell it would lose events in at least one
    // round of nearly all runs.
    place.says(&["record", "--detach", "--name", "s", "--pool-size", "384KiB", "--output", "trace"], 0);
    program.tell("on");
    let mut awake = 0;
    for _ in 0..4 {
        until(|| is_resting(&place, &program));
        program.tell(&format!("slowly {EVENTS}"));
        awake += u32::from(!is_resting(&place, &program));
    }
    // It rests again soon: on a machine with much else to do not each answer comes before.
    assert!(awake > 0, "it has rung");
    let said = place.says(&["stop", "s"], 0);
    assert!(said.contains("losses    none"), "{said}");
    assert_eq!(place.values(&place.path("trace"), "test:count"), (0..4 * EVENTS).collect::<Vec<_>>());
}

#[test]
fn what_one_that_rests_defines_is_switched_at_once() {
    let place = Place::new();
    let mut program = place.program();
    place.says(&["record", "--detach", "--name", "s", "--output", "trace"], 0);
    program.tell("on");
    until(|| is_resting(&place, &program));
    // It waits until that is on.
    program.tell("late 10");
    // A few events wake nobody, and are there when somebody looks.
    until(|| is_resting(&place, &program));
    let (began, before) = (Instant::now(), looks(&place, &program));
    program.tell("count 10");
    until(|| place.values(&place.path("trace"), "test:count").len() == 10);
    let seen = looks(&place, &program) - before;
    // The first event goes to another sub-buffer. A program that is awake is looked at ten times as often.
    let most = looks_at_rest(began, 2, 1);
    assert!((1..=most).contains(&seen), "looked {seen} times; {most} at most while it rests");
    until(|| is_resting(&place, &program));
    place.says(&["stop", "s"], 0);
    assert_eq!(place.values(&place.path("trace"), "late:count"), (0..10).collect::<Vec<_>>());
}
