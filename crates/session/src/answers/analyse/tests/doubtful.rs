//! Answers about traces that do not say everything: which CPU an event is of, when it was, how people read a number.

use std::path::Path;

use kymo_analysis::{Answer, Cell, Table};

use super::kind;
use super::tiny_trace::{Event, Packet, write};
use crate::answers::analyse::Analysed;
use crate::{AnalysisKind, AnalysisOptions, CutOptions, OpenOptions, PairsQuestion, Progress, Session};

/// A trace of one stream, whose metadata is changed.
fn trace(folder: &Path, events: Vec<Event>, change: impl Fn(String) -> String) {
    let end = events.last().map_or(0, |event| event.time) + 1000;
    write(folder, &[Packet { begin: 0, end, events, ..Packet::default() }]);
    let path = folder.join("metadata");
    let metadata = std::fs::read_to_string(&path).unwrap();
    let changed = change(metadata.clone());
    assert_ne!(changed, metadata, "nothing was changed");
    std::fs::write(path, changed).unwrap();
}

fn event(time: u64, name: &str, values: &[(&str, i64)]) -> Event {
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
    Event { time, name: name.to_owned(), values }
}

fn asked(folder: &Path, kind: &AnalysisKind, options: &AnalysisOptions, slice_bytes: Option<u64>) -> Analysed {
    let mut session = Session::open(&[folder.to_owned()], &OpenOptions::default()).unwrap();
    session.slice_bytes = slice_bytes;
    session.ask(kind, options, &Progress::default()).unwrap()
}

fn table<'a>(answer: &'a Answer, class: &str) -> &'a Table {
    answer.tables.iter().find(|table| table.class == class).expect("there is such a table")
}

/// The run times of threads: value, lower and upper bound.
fn run_times(answer: &Answer) -> Vec<(i64, u64, u64, u64)> {
    let threads = table(answer, "per-thread");
    let run = threads.columns.iter().position(|column| column.name == "run_time").unwrap();
    let of_row = |row: &Vec<Cell>| match (&row[0], &row[run]) {
        (Cell::Process { tid: Some(tid), .. }, Cell::Duration(run)) => (*tid, run.value, run.low, run.high),
        cells => panic!("{cells:?}"),
    };
    threads.rows.iter().map(of_row).collect()
}

const WITHOUT_CPU: fn(String) -> String = |metadata| metadata.replace("u32 cpu_id;", "u32 something_else;");

/// Thread 42 runs on one CPU all the time, 7 and 8 take turns on another one; the stream has the switches of both.
#[test]
fn bounds_hold_where_nothing_tells_cpus_apart() {
    let folder = tempfile::tempdir().unwrap();
    let switch =
        |time, prev, next| event(time, "sched_switch", &[("prev_tid", prev), ("next_tid", next), ("prev_state", 1)]);
    let turns = (1..50).map(|turn| {
        let [prev, next] = if turn == 1 { [0, 8] } else { [7 + turn % 2, 8 - turn % 2] };
        switch(1000 * turn as u64, prev, next)
    });
    trace(folder.path(), [switch(1, 0, 42)].into_iter().chain(turns).collect(), WITHOUT_CPU);
    for slice_bytes in [None, Some(1)] {
        let Analysed { answer, report } = asked(folder.path(), kind("cpu"), &AnalysisOptions::default(), slice_bytes);
        let runs = run_times(&answer);
        for (thread, truth) in [(42, 48_999), (8, 24_000), (7, 24_000)] {
            let (.., low, high) = *runs.iter().find(|run| run.0 == thread).unwrap();
            assert!(low <= truth && truth <= high, "{thread}: {runs:?}");
        }
        let process = &table(&answer, "per-process").rows[0];
        let Some(Cell::Duration(run)) = process.iter().find(|cell| matches!(cell, Cell::Duration(_))) else { panic!() };
        assert!(run.low <= 96_999 && 96_999 <= run.high, "{run:?}");
        let told: Vec<&str> = report.assumptions.iter().map(|note| &*note.message).collect();
        assert!(told.len() == 1 && told[0].contains("[cpu-unknown]") && told[0].contains("several CPUs"), "{told:?}");
    }
    let periods = AnalysisOptions {
        wishes: crate::Wishes { period_ns: Some(1_000), ..crate::Wishes::default() },
        ..AnalysisOptions::default()
    };
    let Analysed { answer, report } = asked(folder.path(), kind("cpu"), &periods, None);
    assert!(report.assumptions.iter().all(|note| note.message.contains("several CPUs")), "{report:?}");
    let tables = || answer.tables.iter().filter(|table| table.class == "per-thread");
    for row in tables().flat_map(|table| &table.rows) {
        let Some(Cell::Duration(run)) = row.iter().find(|cell| matches!(cell, Cell::Duration(_))) else { panic!() };
        assert!(run.low == 0 && run.high >= 999, "{row:?}");
    }
    assert!(tables().map(|table| table.rows.len()).sum::<usize>() > 40);
}

/// A clock that is set back: with no loss shares are shares, and with a loss nothing is said to be certain.
#[test]
fn a_clock_that_is_set_back_makes_no_impossible_numbers() {
    for discarded in [0, 3] {
        let folder = tempfile::tempdir().unwrap();
        let switch = |time, prev, next| event(time, "sched_switch", &[("prev_tid", prev), ("next_tid", next)]);
        let ms = 1_000_000;
        let runs = |runs: &[(u64, u64)]| {
            let events = runs.iter().flat_map(|(from, to)| [switch(from * ms, 0, 7), switch(to * ms, 7, 0)]);
            events.collect::<Vec<Event>>()
        };
        let packets = [
            Packet { begin: ms, end: 25 * ms, events: runs(&[(20, 24), (2, 6)]), ..Packet::default() },
            Packet { begin: 25 * ms, end: 30 * ms, discarded, events: runs(&[(26, 29)]), ..Packet::default() },
        ];
        write(folder.path(), &packets);
        let Analysed { answer, .. } = asked(folder.path(), kind("cpu"), &AnalysisOptions::default(), None);
        let (value, low, high) = run_times(&answer).iter().map(|run| (run.1, run.2, run.3)).next().unwrap();
        if discarded == 0 {
            assert_eq!((value, low, high), (11 * ms, 11 * ms, 11 * ms));
        } else {
            assert!(low == 0 && high >= 11 * ms, "{low} {value} {high}");
        }
        let cpu = table(&answer, "per-cpu");
        let share = cpu.columns.iter().position(|column| column.name == "share").unwrap();
        let Cell::Ratio(share) = &cpu.rows[0][share] else { panic!("{cpu:?}") };
        assert!(share.value <= 1.0 && share.low <= share.value && share.value <= share.high, "{share:?}");
    }
}

/// Where the switches of a stream fit together, it is one CPU's: the answer is exact, and says what it relies on.
#[test]
fn one_cpu_that_nothing_names_is_exact() {
    let folder = tempfile::tempdir().unwrap();
    let switch = |time, prev, next| event(time, "sched_switch", &[("prev_tid", prev), ("next_tid", next)]);
    trace(folder.path(), vec![switch(100, 0, 7), switch(300, 7, 8), switch(350, 8, 0)], WITHOUT_CPU);
    let Analysed { answer, report } = asked(folder.path(), kind("cpu"), &AnalysisOptions::default(), None);
    assert_eq!(run_times(&answer), [(7, 200, 200, 200), (8, 50, 50, 50)]);
    let told: Vec<&str> = report.assumptions.iter().map(|note| &*note.message).collect();
    assert!(told.len() == 1 && told[0].contains("taken for one CPU's"), "{told:?}");
    // An analysis to which CPUs do not matter says nothing of them.
    let Analysed { report, .. } = asked(folder.path(), kind("count"), &AnalysisOptions::default(), None);
    assert_eq!(report.assumptions, []);
}

/// An event of a time that does not fit 64 bits of nanoseconds has no place in an interval.
#[test]
fn events_without_a_place_in_time_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let entry = |time| event(time, "irq_handler_entry", &[("irq", 3)]);
    let exit = |time| event(time, "irq_handler_exit", &[("irq", 3)]);
    let far = (1 << 60) + 5;
    // One cycle is 30,517 ns and a part of one more.
    trace(folder.path(), vec![entry(10), exit(20), exit(far), entry(far + 1)], |metadata| {
        metadata.replace("freq = 1000000000;", "freq = 32768;")
    });
    let Analysed { answer, report } = asked(folder.path(), kind("irq"), &AnalysisOptions::default(), None);
    let hard = table(&answer, "hard");
    let column = |name: &str| hard.columns.iter().position(|column| column.name == name).unwrap();
    let [count, total] = ["count", "total"].map(|name| &hard.rows[0][column(name)]);
    let [Cell::Count(count), Cell::Duration(total)] = [count, total] else { panic!("{hard:?}") };
    assert_eq!((count.value, total.value), (1, 305_176));
    let told: Vec<&str> = report.assumptions.iter().map(|note| &*note.message).collect();
    assert!(told.iter().any(|told| told.contains("2 events do not fit") && told.contains("left out")), "{told:?}");
}

/// Pointers and other numbers that the metadata wants in base 16 are so in keys and groups, and numbers for programs.
#[test]
fn keys_are_in_the_base_that_the_metadata_says() {
    let folder = tempfile::tempdir().unwrap();
    let events = vec![
        event(10, "work_begin", &[("key", 0x7f00_dead_beef)]),
        event(30, "work_end", &[("key", 0x7f00_dead_beef)]),
        event(40, "work_begin", &[("key", 255)]),
    ];
    let hexadecimal = "integer { size = 64; align = 8; signed = true; base = 16; } _key;";
    trace(folder.path(), events, |metadata| metadata.replace("i64 _key;", hexadecimal));
    let ask = |keys: &[&str], group: Option<&str>| {
        let [begin, end] = ["work_begin", "work_end"].map(|name| vec![name.to_owned()]);
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let question = PairsQuestion::parse(&begin, &end, &keys, group, false).unwrap();
        asked(folder.path(), &AnalysisKind::Pairs(question), &AnalysisOptions::default(), None).answer
    };
    let answer = ask(&["key"], Some("key"));
    let row = &table(&answer, "longest").rows[0];
    assert_eq!(row[3..], [Cell::Based(0x7f00_dead_beef, 16), Cell::Based(0x7f00_dead_beef, 16)]);
    assert_eq!(table(&answer, "open").rows[0][1..], [Cell::Based(255, 16), Cell::Based(255, 16)]);
    let answer = ask(&["key", "packet.context.cpu_id"], None);
    assert_eq!(table(&answer, "longest").rows[0][3], Cell::Text("0x7F00DEADBEEF, 0".to_owned()));
}

/// A stream of LTTng that is cut at the border of a packet: the thread that ran there last may have gone on or not.
#[test]
fn a_stream_without_its_end_leaves_no_certainty_behind_it() {
    let ms = 1_000_000;
    let switch = |time, prev, next| event(time * ms, "sched_switch", &[("prev_tid", prev), ("next_tid", next)]);
    let wake = |time, tid| event(time * ms, "sched_wakeup", &[("tid", tid)]);
    // A packet that another one follows is full.
    let filled = std::iter::repeat_n(event(10 * ms, "mm_page_free", &[]), 218);
    let events = [switch(2, 0, 7), switch(9, 7, 0)].into_iter().chain(filled).collect();
    let first = Packet { begin: ms, end: 20 * ms, events, ..Packet::default() };
    let second = Packet { begin: 20 * ms, end: 50 * ms, events: vec![switch(22, 0, 8)], ..Packet::default() };
    let other = Packet {
        cpu: 1,
        begin: ms,
        end: 50 * ms,
        events: vec![switch(3, 0, 9), wake(21, 8), wake(49, 10)],
        ..Packet::default()
    };
    let longest = |in_pages: bool, packets: &[&Packet]| {
        let folder = tempfile::tempdir().unwrap();
        let written = |packet: &&Packet| Packet { in_pages, ..(*packet).clone() };
        write(folder.path(), &packets.iter().map(written).collect::<Vec<Packet>>());
        let session = Session::open(&[folder.path().to_owned()], &OpenOptions::default()).unwrap();
        let report = session.info().report;
        for slice_bytes in [None, Some(1)] {
            let Analysed { answer, report: same } =
                asked(folder.path(), kind("sched"), &AnalysisOptions::default(), slice_bytes);
            assert_eq!(same.ends_missing, report.ends_missing);
            let waits = table(&answer, "total");
            let count = |name: &str| {
                let column = waits.columns.iter().position(|column| column.name == name).unwrap();
                let Cell::Count(count) = waits.rows[0][column] else { panic!("{waits:?}") };
                count.value
            };
            let doubt = [count("count"), count("never_ended"), count("lost_inside")];
            let expected = if report.ends_missing == 0 {
                [packets.len() as u64 - 2, 4 - packets.len() as u64, 0]
            } else {
                [0, 0, 2]
            };
            assert_eq!(doubt, expected, "{slice_bytes:?}");
        }
        let busy = asked(folder.path(), kind("cpu"), &AnalysisOptions::default(), None).answer;
        let busy = table(&busy, "per-cpu").rows.iter().find(|row| row[0] == Cell::Cpu(0)).unwrap()[3].clone();
        let Cell::Duration(busy) = busy else { panic!("{busy:?}") };
        // A part that is cut out of it lacks no end.
        let (part, output) =
            (CutOptions { end_ns: Some(30_000_000), ..CutOptions::default() }, folder.path().join("part"));
        session.cut(&part, &output, &Progress::default()).unwrap();
        assert_eq!(Session::open(&[output], &OpenOptions::default()).unwrap().info().report.ends_missing, 0);
        let told: Vec<String> = report.assumptions.iter().map(|note| note.message.clone()).collect();
        (report.ends_missing, report.has_losses(), told, busy)
    };
    let (streams, is_lossy, told, truth) = longest(true, &[&first, &second, &other]);
    assert_eq!((streams, is_lossy, told), (0, false, vec![]));
    assert_eq!((truth.low, truth.value, truth.high), (34 * ms, 34 * ms, 34 * ms));
    // Other programs keep the name of the tracer, and end streams with their last events.
    assert_eq!(longest(false, &[&first, &other]).0, 0);
    let (streams, is_lossy, told, busy) = longest(true, &[&first, &other]);
    assert!(streams == 1 && is_lossy && told.len() == 1, "{told:?}");
    assert!(
        told[0].contains("channel0_0: warning[ends-early]: the stream ends with a full packet, 0.030 s"),
        "{told:?}"
    );
    assert!(busy.low <= truth.value && truth.value <= busy.high, "{busy:?}");
    // A packet that is not full is the last one of an idle CPU.
    let idle = Packet { events: first.events[..100].to_vec(), ..first.clone() };
    assert_eq!(longest(true, &[&idle, &other]).0, 0);
}
