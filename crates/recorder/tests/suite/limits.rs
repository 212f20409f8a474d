//! More events than ids: a program has 65,536 of them, and so has a trace. What is beyond is told, and nothing gets another one's name.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use kymo_recorder::program::{DrainTiming, Program};
use kymo_recorder::trace::{Output, OutputOptions, SingleTrace};
use kymo_tracer::Event;

use crate::recording::{self, Stage, WANTS, read};

/// How many events of its own a program of these tests has, and what they begin with.
const EVENTS: &str = "KYMO_TEST_EVENTS";

/// Not a test, but the programs of the others: events that are called by a number, and say it.
#[test]
fn child() {
    let Ok(said) = std::env::var(EVENTS) else { return };
    let (prefix, count) = said.split_once(' ').expect("a word and a number");
    let count: u64 = count.parse().expect("it is a number");
    let define = |number: u64| {
        let text: &'static str = format!("event {prefix}:n{number}\nfield u64 number\n").leak();
        let event: &'static Event = Box::leak(Box::new(Event::new(text.as_bytes())));
        (number, event, event.register())
    };
    let events: Vec<_> = (0..count).map(define).collect();
    let known = events.iter().filter(|(_, _, is_known)| *is_known).count();
    println!("ready {known}");
    for line in std::io::stdin().lines() {
        let _ = line.expect("it can be read");
        for (number, event, _) in &events {
            event.record(&number.to_le_bytes());
        }
        println!("done");
    }
    std::process::exit(0);
}

/// A program with so many events.
fn program(stage: &Stage, prefix: &str, count: u64) -> recording::Running {
    let mut command = Command::new(std::env::current_exe().expect("it is known"));
    command.args(["--exact", "limits::child", "--nocapture"]).env(EVENTS, format!("{prefix} {count}"));
    stage.started(command.stdin(Stdio::piped()).stdout(Stdio::piped()))
}

fn open(running: &recording::Running) -> Program {
    let mut program = running.open();
    program.say(&WANTS).expect("it is there");
    for defined in program.definitions().expect("it is there") {
        defined.what.expect("it can be understood");
        program.switch(defined.id, 1).expect("it is there");
    }
    program
}

/// The numbers of events by the first part of their names; each says the number that it is called by.
fn numbers(lines: &[String]) -> BTreeMap<String, BTreeSet<u64>> {
    let mut all = BTreeMap::<String, BTreeSet<u64>>::new();
    for line in lines.iter().filter(|line| line.contains("{ number = ")) {
        let (before, number) = line.trim_end_matches(" }").rsplit_once("{ number = ").expect("it was found");
        let name = before.split(' ').find(|word| word.contains(":n")).expect("it has a name").trim_end_matches(':');
        let (prefix, called) = name.split_once(":n").expect("it was found");
        assert_eq!(called, number, "{line}");
        let is_new = all.entry(prefix.to_owned()).or_default().insert(number.parse().expect("it is a number"));
        assert!(is_new, "{line} is there twice");
    }
    all
}

#[test]
fn a_program_has_as_many_events_as_ids_and_those_beyond_are_told() {
    let stage = Stage::new();
    let mut running = program(&stage, "many", 66_000);
    let path = stage.path("trace");
    let mut program = open(&running);
    // The last ID is that of verdicts.
    let all = 65_535;
    assert_eq!(program.known().events.len() as u64, all);
    assert!(program.is_full().expect("it is there"));
    let mut clock = kymo_recorder::clock::TickSource::begin(program.identity().clock);
    let mut output = Output::create(&path, OutputOptions::default(), &mut clock, 0).expect("it can be made");
    running.tell("all");
    running.wait_for("done");
    program.drain(DrainTiming::Now, &mut SingleTrace(&mut output)).expect("it is there");
    program.end(clock.now(), &mut SingleTrace(&mut output)).expect("it is there");
    let tally = output.finish(&mut clock).expect("it can be written");
    let (lines, _) = read(&path);
    let found = numbers(&lines);
    // The trace has some classes of the recorder's own: as many of the program's found no id there.
    let own = all - found["many"].len() as u64;
    assert!((1..16).contains(&own), "{own}");
    assert_eq!((tally.events, tally.discarded), (all - own, own));
    assert!(found["many"].iter().all(|number| *number < all));
}

#[test]
fn a_trace_that_has_no_more_ids_is_followed_by_another_one() {
    let stage = Stage::new();
    let mut all = ["first", "second", "third"].map(|prefix| program(&stage, prefix, 30_000));
    let path = stage.path("trace");
    let mut programs: Vec<Program> = all.iter().map(open).collect();
    let mut clock = kymo_recorder::clock::TickSource::begin(programs[0].identity().clock);
    let mut output = Output::create(&path, OutputOptions::default(), &mut clock, 0).expect("it can be made");
    for _ in 0..2 {
        for (running, program) in all.iter_mut().zip(&mut programs) {
            running.tell("all");
            running.wait_for("done");
            program.drain(DrainTiming::Now, &mut SingleTrace(&mut output)).expect("it is there");
        }
        output.beat(&mut clock);
    }
    let now = clock.now();
    programs.iter_mut().for_each(|it| it.end(now, &mut SingleTrace(&mut output)).expect("it is there"));
    let tally = output.finish(&mut clock).expect("it can be written");
    let traces: Vec<_> =
        ["trace", "trace-2", "trace-3"].iter().map(|name| stage.path(name)).filter(|path| path.exists()).collect();
    assert!(traces.len() > 1, "{tally:?}");
    let mut events = 0;
    for trace in &traces {
        let (lines, report) = read(trace);
        assert!(report.is_complete(), "{report:?}");
        let values = |line: &&String| line.contains("{ number = ");
        events += lines.iter().filter(values).count() as u64;
        for line in lines.iter().filter(values) {
            let name = line.split(' ').find(|word| word.contains(":n")).expect("it has a name").trim_end_matches(':');
            let called = name.split_once(":n").expect("it has a number").1;
            assert!(line.ends_with(&format!("{{ number = {called} }}")), "{line}");
        }
    }
    assert_eq!((events, events + tally.discarded), (tally.events, 180_000), "{tally:?}");
}
