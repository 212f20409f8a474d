//! What programs record is read again: every event, in order, or counted.

use std::path::Path;

use kymo_recorder::program::DrainTiming;
use kymo_recorder::trace::{CtfVersion, OutputOptions};
use kymo_schema::field::{DefinedField, FieldType, IntegerType, ScalarType};
use kymo_units::Uuid;
use kymo_writer::{EnvironmentValue, HEAD_BYTES, RawClock, RawEvent, RawOptions, RawPacket, RawTrace};

use crate::recording::{Recording, Stage, WANTS, check, compare_with_babeltrace, numbers, read};

#[test]
fn every_event_is_there_in_order_and_babeltrace_says_the_same() {
    let stage = Stage::new();
    let mut running = stage.program(3);
    let path = stage.path("trace");
    let mut recording = Recording::begin(running.open(), &path, OutputOptions::default(), &WANTS);
    recording.until_done(&mut running, "numbers 20000");
    recording.until_done(&mut running, "all 300");
    let tally = recording.finish(DrainTiming::Now);
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
    compare_with_babeltrace(&path, &lines);
}

/// Cycles that each of as many streams has an event at.
const CYCLES: u64 = 300;

/// A trace of streams whose events are at the same time, and of others that are a cycle later, which is most often the same nanosecond.
fn write_equal_stamps(path: &Path, streams: u32) {
    let field = |name: &str, bytes| {
        let kind = FieldType::Scalar(ScalarType::Integer(IntegerType::unsigned(bytes)));
        DefinedField { name: name.to_owned(), kind }
    };
    let clock = RawClock {
        name: "counter".to_owned(),
        description: "a counter".to_owned(),
        frequency_hz: 2_596_122_114,
        precision_cycles: 0,
        offset_s: 1_795_383_494,
        offset_cycles: 1_147_456_705,
        is_absolute: true,
    };
    let environment = vec![("hostname".to_owned(), EnvironmentValue::Text("host".to_owned()))];
    let (uuid, packet_fields) = (Uuid(*b"0123456789abcdef"), vec![field("vtid", 4)]);
    let options = RawOptions { format: CtfVersion::Ctf18, uuid, clock, environment, packet_fields, is_private: false };
    let mut trace = RawTrace::create(path, options).expect("there is room");
    let class = trace.stream_class(&[]).expect("there is room");
    let event = RawEvent { id: 0, name: "app:number", level: None, uri: None, fields: &[field("number", 8)] };
    trace.event_class(class, &event).expect("there is room");
    for number in 1..=streams {
        let mut bytes = vec![0; HEAD_BYTES];
        bytes.extend(number.to_le_bytes());
        for cycles in 0..CYCLES {
            bytes.extend(0_u16.to_le_bytes());
            bytes.extend((3 * cycles as u32 + number % 2).to_le_bytes());
            bytes.extend(cycles.to_le_bytes());
        }
        let mut stream = trace.stream(&format!("lane_{number}"), class, number.into());
        let packet = RawPacket { begin: 0, end: 3 * CYCLES, discarded: 0, missing: 0, padding: 0 };
        stream.packet(&mut bytes, &packet).expect("there is room");
        stream.close();
    }
}

#[test]
fn readers_agree_on_streams_that_are_at_the_same_time() {
    let stage = Stage::new();
    let path = stage.path("trace");
    write_equal_stamps(&path, 9);
    let (lines, report) = read(&path);
    assert!(report.is_complete() && lines.len() as u64 == 9 * CYCLES, "{report:?}");
    compare_with_babeltrace(&path, &lines);
}

#[test]
fn ctf_2_says_the_same() {
    let stage = Stage::new();
    let mut running = stage.program(1);
    let path = stage.path("trace");
    let options = OutputOptions { format: CtfVersion::Ctf2, ..OutputOptions::default() };
    let mut recording = Recording::begin(running.open(), &path, options, &WANTS);
    recording.until_done(&mut running, "all 10");
    let tally = recording.finish(DrainTiming::Now);
    let (lines, report) = read(&path);
    assert!(report.is_complete() && !report.has_losses(), "{report:?}");
    assert_eq!((tally.events, lines.len() as u64), (10, 10 + tally.own));
    check(&path);
}

/// A child may be met when it has memory already, but nothing that can be seen: what it records from then on is nobody's past.
#[test]
fn what_comes_after_the_past_was_seen_is_not_skipped_with_it() {
    let stage = Stage::new();
    let mut running = stage.program(2);
    let path = stage.path("trace");
    let mut recording = Recording::begin(running.open(), &path, OutputOptions::default(), &WANTS);
    let mut record = |count: u64| {
        running.tell(&format!("numbers {count}"));
        running.wait_for("done");
    };
    let past = recording.program.past().expect("it is there");
    record(100);
    recording.program.skip(&past).expect("it is there");
    recording.step(DrainTiming::Now).expect("it is there");
    assert_eq!(recording.output.tally().events, 200);
    // What was there is left, and what comes behind it is not.
    record(50);
    let past = recording.program.past().expect("it is there");
    record(10);
    recording.program.skip(&past).expect("it is there");
    let tally = recording.finish(DrainTiming::Now);
    assert_eq!((tally.events, tally.discarded, tally.missing, tally.unreadable), (220, 0, 0, 0));
    let found = numbers(&read(&path).0);
    assert!((1..=2).all(|thread| found[&thread] == (0..100).chain(0..10).collect::<Vec<_>>()), "{found:?}");
}
