//! Periods add up to the answer for the whole trace.

use std::collections::BTreeMap;
use std::path::Path;

use kymo_analysis::{Bounded, Cell, Wishes};

use super::*;
use crate::answers::analyse::states::tests::{raw_events, write_trace};
use crate::answers::analyse::tests::{corpus, kind};
use crate::{AnalysisKind, Definitions, OpenOptions, PairsQuestion};

/// Sums of a column, by the cells of another one.
fn sums(answer: &Answer, class: &str, key: &str, column: &str) -> BTreeMap<String, u64> {
    let Some(table) = answer.tables.iter().find(|table| table.class == class) else { return BTreeMap::new() };
    let place = |name: &str| table.columns.iter().position(|column| column.name == name);
    let (key, column) = place(key).zip(place(column)).expect("there are these columns");
    let mut sums = BTreeMap::new();
    // Of all lanes together only long gaps are looked for, and how long depends on the period.
    let is_of_one = |row: &&Vec<Cell>| class != "gaps" || row[key] != Cell::Empty;
    for row in table.rows.iter().filter(is_of_one) {
        if let Cell::Count(Bounded { value, .. }) | Cell::Duration(Bounded { value, .. }) = row[column] {
            // Names and processes of threads may become known later.
            let key = match row[key] {
                Cell::Process { tid: Some(tid), .. } => tid.to_string(),
                ref cell => format!("{cell:?}"),
            };
            *sums.entry(key).or_default() += value;
        }
    }
    sums.retain(|_, sum| *sum > 0);
    sums
}

/// An analysis, one of its tables, the subject of its rows, and a column.
type Row = (&'static str, &'static str, &'static str, &'static str);

/// Sums.
const SUMS: &[Row] = &[
    ("count", "per-class", "name", "count"),
    ("cpu", "per-cpu", "cpu", "busy"),
    ("cpu", "per-cpu", "cpu", "idle"),
    ("cpu", "per-cpu", "cpu", "switches"),
    ("cpu", "per-thread", "thread", "run_time"),
    ("cpu", "per-thread", "thread", "runs"),
    ("cpu", "per-thread", "thread", "migrations"),
    ("irq", "hard", "irq", "count"),
    ("irq", "hard", "irq", "total"),
    ("irq", "soft", "irq", "count"),
    ("irq", "soft", "irq", "raises"),
    ("gaps", "gaps", "stream", "length"),
    ("block", "per-device", "device", "reads"),
    ("block", "per-device", "device", "writes"),
    ("block", "per-device", "device", "count"),
    ("block", "per-device", "device", "total"),
    ("block", "per-device", "device", "queue_total"),
    ("syscalls", "per-syscall", "syscall", "count"),
    ("syscalls", "per-syscall", "syscall", "total"),
    ("syscalls", "per-syscall", "syscall", "errors"),
    ("syscalls", "per-thread", "thread", "count"),
    ("syscalls", "per-thread", "thread", "total"),
    ("io", "per-thread", "thread", "read"),
    ("io", "per-thread", "thread", "write"),
    ("io", "per-thread", "thread", "read_disk"),
    ("io", "per-thread", "thread", "write_unknown"),
    ("io", "per-thread", "thread", "opens"),
    ("io", "per-file", "path", "read"),
    ("io", "per-file", "path", "write"),
    ("io", "per-file", "path", "opens"),
    ("io", "per-category", "category", "count"),
    ("io", "per-category", "category", "total"),
    ("sched", "per-thread", "thread", "count"),
    ("sched", "per-thread", "thread", "total"),
    ("sched", "per-priority", "priority", "total"),
    ("sched", "wakers", "waker", "count"),
    ("sched", "runs", "thread", "count"),
    ("sched", "runs", "thread", "total"),
    ("sched", "runs", "thread", "migrations"),
    ("sched", "states", "thread", "running"),
    ("sched", "states", "thread", "preempted"),
    ("sched", "states", "thread", "waiting"),
    ("sched", "states", "thread", "blocked"),
    ("sched", "blocked", "syscall", "count"),
    ("sched", "blocked", "syscall", "total"),
];

fn asked(path: &Path, kind: &AnalysisKind, threads: usize, period_ns: Option<u64>) -> Option<Answer> {
    let options = OpenOptions { threads, ..OpenOptions::default() };
    let session = Session::open(&[path.to_path_buf()], &options).ok()?;
    let wishes = Wishes { period_ns, top: Some(1 << 20), ..Wishes::default() };
    let options = AnalysisOptions { wishes, ..AnalysisOptions::default() };
    let asked = session.ask(kind, &options, &Progress::default());
    asked.ok().map(|analysed| analysed.answer)
}

fn check(path: &Path, periods: &[u64]) -> usize {
    let is_same_kind = |one: &Row, other: &Row| one.0 == other.0;
    let mut checked = 0;
    for rows in SUMS.chunk_by(is_same_kind) {
        let name = rows[0].0;
        let of_rows = kind(name);
        let Some(whole) = asked(path, of_rows, 1, None) else { continue };
        for &period_ns in periods {
            let Some(answer) = asked(path, of_rows, 2, Some(period_ns)) else { continue };
            // The thread before the first switch of a CPU is known only in the period of that
            // switch.
            let cpu = asked(path, kind("cpu"), 2, Some(period_ns));
            let unknown: u64 = cpu.map_or(0, |cpu| sums(&cpu, "per-cpu", "cpu", "unknown").values().sum());
            for &(_, class, key, column) in rows {
                let (wanted, found) = (sums(&whole, class, key, column), sums(&answer, class, key, column));
                let depends = name == "cpu" || column == "running";
                let is_near = |wanted: &u64, found: &u64| found <= wanted && wanted - found <= unknown;
                let is_same = match unknown {
                    1.. if depends => wanted.iter().all(|(key, wanted)| is_near(wanted, found.get(key).unwrap_or(&0))),
                    _ => found == wanted,
                };
                assert!(is_same, "{}: {class} {column}: {wanted:#?} became {found:#?}", path.display());
                checked += wanted.len();
            }
        }
    }
    checked
}

#[test]
fn periods_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    write_trace(&trace, 3, 3000);
    assert!(check(&trace, &[9_973, 40_000, 1_000_000]) > 50);
    let none = asked(&trace, kind("cpu"), 1, Some(1));
    assert!(none.is_none(), "that would be too many");
}

/// A span that begins in one period and ends in another counts in the one in which it ends.
#[test]
fn pairs_go_on_from_period_to_period() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    write_trace(&trace, 4, 3000);
    let names = |name: &str| vec![name.to_owned()];
    let (start, stop) = (names("syscall_entry_read"), names("syscall_exit_read"));
    let kind =
        PairsQuestion::parse(&start, &stop, &names("packet.cpu_id"), None, false).map(AnalysisKind::Pairs).unwrap();
    let sum = |period_ns, column: &str| {
        let answer = asked(&trace, &kind, 2, period_ns).unwrap();
        let table = answer.tables.iter().find(|table| table.class == "total").unwrap();
        let place = table.columns.iter().position(|known| known.name == column).unwrap();
        let number = |row: &Vec<Cell>| match row[place] {
            Cell::Count(Bounded { value, .. }) | Cell::Duration(Bounded { value, .. }) => value,
            _ => 0,
        };
        table.rows.iter().map(number).sum::<u64>()
    };
    assert!(sum(None, "count") > 300);
    for column in ["count", "total", "began_before"] {
        assert_eq!(sum(Some(997), column), sum(None, column), "{column}");
    }
}

/// Asks for periods that begin and end with events.
fn by_events(path: &Path, kind: &AnalysisKind, definitions: &[&str], captures: &[&str]) -> Analysed {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let definitions = Definitions::parse(&owned(definitions), &owned(captures)).unwrap();
    let options = OpenOptions { threads: 2, ..OpenOptions::default() };
    let session = Session::open(&[path.to_path_buf()], &options).unwrap();
    let options = AnalysisOptions { periods: Some(definitions), ..AnalysisOptions::default() };
    session.ask(kind, &options, &Progress::default()).unwrap()
}

/// Calls of two CPUs, which overlap: each with its own events, counted here byte by byte.
#[test]
fn periods_from_event_to_event() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    write_trace(&trace, 4, 1000);
    let definition = "read : syscall_entry_read : syscall_exit_read if $begin.packet.cpu_id == packet.cpu_id";
    let found = by_events(&trace, kind("count"), &[definition], &["read : cpu=packet.cpu_id, fd=fd : ret=ret"]);
    let events: Vec<Vec<(i64, u64)>> = (0..2).map(|cpu| raw_events(&trace, cpu)).collect();
    let (mut wanted, mut never_ended) = (Vec::new(), 0);
    for (cpu, of_cpu) in events.iter().enumerate() {
        let mut open = Vec::new();
        for (time, id) in of_cpu {
            match id {
                1 => open.push(*time),
                2 => wanted.extend(open.drain(..).map(|begin| (begin, *time, cpu))),
                _ => {}
            }
        }
        never_ended += open.len();
    }
    wanted.sort_unstable();
    let within = |(begin, end, cpu): &(i64, i64, usize)| {
        let is_in = |(time, _): &&(i64, u64)| begin <= time && time < end;
        let count = events.iter().flatten().filter(is_in).count() as u64;
        (*begin, *end, *cpu as i64, count)
    };
    let table = found.answer.tables.iter().find(|table| table.class == "total").unwrap();
    let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    assert_eq!(names[..6], ["period", "period_name", "capture_1", "capture_2", "capture_3", "period_uncertain"]);
    let count = names.iter().position(|name| *name == "count").unwrap();
    let row = |row: &Vec<Cell>| match (&row[0], &row[2], &row[count]) {
        (Cell::TimeRange(Some(begin), Some(end)), Cell::Integer(cpu), Cell::Count(count)) => {
            assert_eq!(row[3..6], [Cell::Integer(3), Cell::Integer(5), Cell::Flag(false)]);
            (*begin, *end, *cpu, count.value)
        }
        row => panic!("{row:?}"),
    };
    let mut rows: Vec<_> = table.rows.iter().map(row).collect();
    rows.sort_unstable();
    let mut wanted: Vec<_> = wanted.iter().map(within).collect();
    wanted.sort_unstable();
    assert!(wanted.len() > 100);
    assert_eq!(rows, wanted);
    let notes: Vec<&str> = found.report.assumptions.iter().map(|note| note.message.as_str()).collect();
    assert!(never_ended == 0 || notes.iter().any(|note| note.starts_with(&format!("{never_ended} never ended"))));
}

/// Periods that follow each other add up to the time from the first to the last, also where something goes on in between.
#[test]
fn periods_between_equal_events_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    write_trace(&trace, 5, 3000);
    let definition = "turn : sched_switch if next_tid == 101";
    let ends = |answer: &Answer| {
        let rows = answer.tables.iter().flat_map(|table| &table.rows);
        let spans = rows.filter_map(|row| if let Cell::TimeRange(begin, end) = row[0] { begin.zip(end) } else { None });
        spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))).unwrap()
    };
    for (name, class, key, column) in [("cpu", "per-cpu", "cpu", "busy"), ("cpu", "per-thread", "thread", "run_time")] {
        let answer = by_events(&trace, kind(name), &[definition], &[]).answer;
        let (begin, end) = ends(&answer);
        let session = Session::open(std::slice::from_ref(&trace), &OpenOptions::default()).unwrap();
        let options = AnalysisOptions { begin_ns: Some(begin), end_ns: Some(end - 1), ..AnalysisOptions::default() };
        let whole = session.ask(kind(name), &options, &Progress::default()).unwrap().answer;
        let (found, wanted) = (sums(&answer, class, key, column), sums(&whole, class, key, column));
        // The last nanosecond is in no span that has a last event.
        let is_near = |key: &String, wanted: &u64| found.get(key).unwrap_or(&0).abs_diff(*wanted) <= 1;
        assert!(!wanted.is_empty() && wanted.iter().all(|(key, wanted)| is_near(key, wanted)), "{wanted:?} {found:?}");
    }
}

#[test]
fn periods_of_the_corpus_add_up() {
    // Not perf's: its CPUs are told by events only, so that no period has a row for a CPU before its first one.
    let names = ["many-threads", "bug446190", "flipping-endianness"];
    let traces = corpus();
    let wanted = traces.iter().filter(|trace| names.iter().any(|name| trace.ends_with(name)));
    let checked: usize = wanted.map(|trace| check(trace, &[33_333_333])).sum();
    assert!(traces.is_empty() || checked > 1_000, "{checked}");
}
