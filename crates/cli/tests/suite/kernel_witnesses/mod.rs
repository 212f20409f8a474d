//! Recordings of the kernel beside other witnesses of the same load: tools that record it, too, numbers that the kernel keeps itself, and
//! programs that know what they did.
//!
//! ```text
//! load ─┬─ kymo record --kernel ── events, analyses ─┐
//!       └─ witness ── its own numbers ───────────────┴─ equal; a difference has a reason, which the test states
//! ```
//!
//! Other tests record and work beside these, so each load has marks and names of its own. Requests of io_uring are compared in
//! `kernel_uring`, counts of `kymo watch` in `watch`.

mod bytes;
mod crowd;
mod frames;
mod names;
mod processor_time;
mod strace;
mod trace_cmd;

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value};

use crate::c_programs::compile;
use crate::kernel::{can_record, name};
use crate::recorded::Place;

/// The call that loads make to mark a moment: no timer has such a number.
const MARK: &str = "syscall_entry_timer_getoverrun";
/// Each load has so many marks.
const MARKS: u64 = 1000;

/// The first mark of a load.
fn first_mark() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1_000_000_000);
    NEXT.fetch_add(MARKS, Ordering::Relaxed)
}

/// A load, and where it is recorded; `None`: it was said why not.
fn load(name: &str, source: &str, words: &[&str]) -> Option<(Place, PathBuf)> {
    load_in(Place::new(), name, source, words)
}

fn load_in(place: Place, name: &str, source: &str, words: &[&str]) -> Option<(Place, PathBuf)> {
    if !can_record(&place) {
        return None;
    }
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("NOT TESTED: there is no C compiler");
        return None;
    }
    let program = compile(&place.path("."), name, source, words);
    Some((place, program))
}

/// Whether a tool is here; otherwise it is said.
fn has_tool(tool: &str, word: &str) -> bool {
    let is_here = Command::new(tool).arg(word).output().is_ok();
    if !is_here {
        eprintln!("NOT TESTED: there is no {tool}");
    }
    is_here
}

/// The output of the load, and the summary behind it: nothing was lost.
fn told(output: &Output) -> (String, Value) {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout.clone()).expect("it is text");
    let at = text.rfind("{\"session\"").unwrap_or_else(|| panic!("no summary: {text}"));
    let summary: Value = serde_json::from_str(&text[at..]).expect("it is JSON");
    assert_eq!(summary["problems"], serde_json::json!([]), "{summary}");
    let kernel = &summary["kernel"];
    assert_eq!((&kernel["lost"], &kernel["unreadable"]), (&0.into(), &0.into()), "{summary}");
    (text[..at].to_owned(), summary)
}

/// Rows of a table as objects, by the names of its columns.
fn rows(answer: &Value, class: &str) -> Vec<Map<String, Value>> {
    let tables = answer["tables"].as_array().expect("there are tables");
    let table = tables.iter().find(|table| table["class"] == class).unwrap_or_else(|| panic!("no table {class}"));
    let names: Vec<&str> = table["columns"].as_array().expect("it has columns").iter().map(text_of_name).collect();
    let row = |row: &Value| {
        let cells = row.as_array().expect("it is a row").iter().cloned();
        names.iter().map(|name| (*name).to_owned()).zip(cells).collect()
    };
    table["rows"].as_array().expect("it has rows").iter().map(row).collect()
}

fn text_of_name(column: &Value) -> &str {
    column["name"].as_str().expect("it has a name")
}

/// A number of an analysis, which may have bounds.
fn value(cell: &Value) -> u64 {
    let number = if cell.is_object() { &cell["value"] } else { cell };
    number.as_u64().unwrap_or_else(|| panic!("no number: {cell}"))
}

/// Nanoseconds of marks, in the order of the trace.
fn moments(events: &[Value], mark: u64) -> Vec<u64> {
    let marks = events.iter().filter(|event| name(event) == MARK && event["payload"]["timer_id"] == mark);
    marks.map(|event| event["time"].as_u64().expect("it has a time")).collect()
}

/// The words for a range of times.
fn range(begin: u64, end: u64) -> String {
    let seconds = |nanos: u64| format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    format!("{},{}", seconds(begin), seconds(end))
}
