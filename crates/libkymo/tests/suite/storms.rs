//! Signals: handlers record while they interrupt writes, and jump out of them.

use crate::programs::{Counts, Folder, Value};

/// Runs a storm; every event is there or counted, and whole.
fn storm(jumps: &str, stack: &str) {
    let folder = Folder::new();
    let Some(program) = folder.build("storm.c") else { return };
    let recordings = folder.run(folder.command(&program).args([jumps, stack]));
    let recording = &recordings[0];
    let counts = Counts::of(&folder);
    let (jumped, end) = (counts.begun(2), counts.begun(0) - 1);
    let (mut next, mut levels) = (0, [0_u64; 3]);
    for found in &recording.found {
        levels[usize::from(found.thread.level)] += 1;
        let (number, check) = (found.values[0].number(), found.values.last().expect("it is there").number());
        assert_eq!(number, !check, "{found:?}");
        if &*found.name == "storm:outside" && found.thread.level == 0 {
            assert!(number >= next, "{found:?} is behind {next}");
            next = number + 1;
            let texts = ["", "a", "some text", "a text that has 31 characters.."];
            let expected = if number == end { "last" } else { texts[number as usize % 4] };
            assert_eq!(found.values[1], Value::Text(expected.to_owned()));
        }
    }
    recording.check_times();
    let (outside, handled) = (recording.count("storm:outside"), recording.count("storm:handled"));
    // A write that was jumped over had not begun: of one outside of handlers, and of a handler that another one interrupted.
    let most = counts.begun(0) + counts.begun(1);
    let over = jumped + counts.begun(1) - counts.ended(1);
    let found = outside + handled + recording.lost();
    assert!(found <= most && found + over >= most, "{found} of {most}, {jumped} jumps over {over} at most");
    println!("{jumps} {stack}: {jumped} jumps, {handled} handled, levels {levels:?}, {} lost", recording.lost());
    assert!(handled > 100 && levels[1] > 0, "handlers interrupted writes: {levels:?}");
    assert!(jumps == "stay" || jumped > 10, "only {jumped} jumps");
    let last = recording.of_name("storm:outside").last().expect("it is there");
    assert_eq!(last.thread.level, 0, "what was left behind is over");
    assert!(last.values[0].number() == end || recording.lost() > 0);
}

#[test]
fn handlers_record_on_the_stack() {
    storm("stay", "stack");
}

#[test]
fn handlers_record_on_a_stack_of_their_own() {
    storm("stay", "alternate");
}

#[test]
fn handlers_record_on_both() {
    storm("stay", "both");
}

#[test]
fn handlers_jump_from_the_stack() {
    storm("jump", "stack");
}

#[test]
fn handlers_jump_from_a_stack_of_their_own() {
    storm("jump", "alternate");
}

#[test]
fn handlers_jump_from_both() {
    storm("jump", "both");
}
