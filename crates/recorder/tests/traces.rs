//! What programs record is read again: every event, in order, or counted.

#![cfg(target_os = "linux")]

mod recording;

use kymo_recorder::output::{Format, OutputOptions};
use kymo_recorder::program::Patience;

use recording::{Recording, Stage, WANTS, check, numbers, read, read_as_babeltrace};

#[test]
fn child() {
    recording::child();
}

#[test]
fn every_event_is_there_in_order_and_babeltrace_says_the_same() {
    let stage = Stage::new();
    let mut running = stage.program(3);
    let path = stage.path("trace");
    let mut recording = Recording::begin(running.open(), &path, OutputOptions::default(), &WANTS);
    recording.until_done(&mut running, "numbers 20000");
    recording.until_done(&mut running, "all 300");
    let tally = recording.finish(Patience::Now);
    assert_eq!((tally.events, tally.discarded, tally.unreadable), (60_900, 0, 0));
    let (lines, report) = read(&path);
    assert!(report.is_complete() && !report.has_losses() && report.assumptions.is_empty(), "{report:?}");
    assert_eq!(lines.len() as u64, tally.events + tally.own);
    let expected: Vec<u64> = (0..20_000).collect();
    let found = numbers(&lines);
    assert!((1..=3).all(|thread| found[&thread] == expected), "numbers are missing or out of order");
    let all: Vec<_> = lines.iter().filter(|line| line.contains(" app:all: ")).collect();
    assert_eq!(all.len(), 900);
    let fields = "_what_length = 6, what = \"text 3\", state = ( \"busy\" : container = 1 ), _some_length = 2, some = [ [0] = 1, \
                  [1] = 3 ], three = [ [0] = 0x1, [1] = 0x2, [2] = 0xFF ], yes = 1, real = 1.5, less = -3, where_is_it = 0x1003, \
                  _bytes_length = 3, bytes = [ [0] = 7, [1] = 8, [2] = 9 ] }";
    assert!(all.iter().any(|line| line.ends_with(fields)), "{}", all[9]);
    check(&path);
    if let Some(theirs) = read_as_babeltrace(&path) {
        let differs = theirs.iter().zip(&lines).find(|(theirs, ours)| !is_same(theirs, ours));
        assert!(differs.is_none() && theirs.len() == lines.len(), "babeltrace2 prints something else: {differs:#?}");
    }
}

/// Whether two lines are the same, but for a nanosecond: babeltrace2 rounds cycles as floating-point numbers.
fn is_same(theirs: &str, ours: &str) -> bool {
    let split = |line: &str| {
        let (time, rest) = line.split_once("] (").expect("a time");
        let digits =
            |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0_u64);
        let (delta, rest) = rest.split_once(") ").expect("a time between lines");
        (digits(time), digits(delta), rest.to_owned())
    };
    let ((time, delta, rest), (our_time, our_delta, our_rest)) = (split(theirs), split(ours));
    time.abs_diff(our_time) <= 1 && delta.abs_diff(our_delta) <= 1 && rest == our_rest
}

#[test]
fn ctf_2_says_the_same() {
    let stage = Stage::new();
    let mut running = stage.program(1);
    let path = stage.path("trace");
    let options = OutputOptions { format: Format::Ctf2, ..OutputOptions::default() };
    let mut recording = Recording::begin(running.open(), &path, options, &WANTS);
    recording.until_done(&mut running, "all 10");
    let tally = recording.finish(Patience::Now);
    let (lines, report) = read(&path);
    assert!(report.is_complete() && !report.has_losses(), "{report:?}");
    assert_eq!((tally.events, lines.len() as u64), (10, 10 + tally.own));
    check(&path);
}
