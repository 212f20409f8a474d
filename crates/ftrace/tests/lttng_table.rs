//! The table of LTTng's events and fields is true: each field of traces of LTTng's kernel tracer is here, or a row says why not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kymo_ftrace::format::EventFormat;
use kymo_ftrace::listing::{ListedEvent, list};
use kymo_ftrace::lttng::{LttngEvent, ROWS, compare};

/// Descriptions of Linux 6.18's events, as `tracefs` has them: `system NAME`, then a file `format` without common fields.
const FORMATS: &str = include_str!("formats-6.18.txt");

/// Events about the state of the system: the recorder makes and compares them.
const STATE: &str = "lttng_statedump_";

fn corpus() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    std::env::var_os("KYMO_CORPUS").map_or_else(beside, PathBuf::from)
}

/// Events of this project for Linux 6.18, by name.
fn ours() -> BTreeMap<String, ListedEvent> {
    let common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";
    let parsed: Vec<EventFormat> = FORMATS
        .split("\nsystem ")
        .skip(1)
        .map(|text| {
            let (system, rest) = text.split_once('\n').expect("it has lines");
            EventFormat::parse(system, &rest.replacen("format:\n", &format!("format:\n{common}"), 1))
                .expect("it is one")
        })
        .collect();
    list(&parsed).into_iter().map(|event| (event.name.clone(), event)).collect()
}

/// Traces of `lttng-modules` in the corpus.
fn traces() -> Vec<(PathBuf, Vec<LttngEvent>)> {
    let mut folders = vec![corpus().join("ctf")];
    let mut all = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        folders.extend(entries.filter(|path| path.is_dir() && !path.is_symlink()));
        let Ok(bytes) = std::fs::read(folder.join("metadata")) else { continue };
        let Some(class) = kymo_format::parse(&bytes).trace_class else { continue };
        let of_kernel =
            class.environment("tracer_name").is_some_and(|name| format!("{name:?}").contains("lttng-modules"));
        if of_kernel {
            let events = class.stream_classes.iter().flat_map(|stream| &stream.event_classes).map(LttngEvent::of);
            all.push((folder, events.collect()));
        }
    }
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

#[test]
fn the_table_is_true() {
    let (ours, traces) = (ours(), traces());
    if traces.is_empty() {
        eprintln!("CORPUS ABSENT: the table of LTTng's events was not compared with any trace");
        return;
    }
    let (mut used, mut untrue, mut events, mut fields) = (BTreeSet::new(), BTreeSet::new(), 0, 0);
    for (folder, classes) in &traces {
        // `long` is the word of a machine.
        let switch = classes.iter().find(|event| event.name == "sched_switch");
        let state = switch.and_then(|event| event.fields.iter().find(|(name, _)| name == "prev_state"));
        let has_short_words = state.is_some_and(|(_, shape)| shape.to_string() == "i32");
        for event in classes.iter().filter(|event| !event.name.starts_with(STATE)) {
            events += 1;
            fields += event.fields.len();
            let found = compare(event, |name| ours.get(name), has_short_words, &mut used);
            untrue.extend(
                found
                    .into_iter()
                    .map(|found| format!("{found}  ({})", folder.file_name().unwrap_or_default().display())),
            );
        }
    }
    println!("{} traces, {events} events, {fields} fields, {} rows", traces.len(), ROWS.len());
    assert!(traces.len() >= 8 && events > 3000 && fields > 8000, "{events} {fields}");
    let unused = ROWS.iter().enumerate().filter(|(at, row)| !used.contains(at) && !row.event.starts_with(STATE));
    untrue.extend(unused.map(|(_, row)| format!("no trace needs the row {} {}", row.event, row.field)));
    let untrue: Vec<String> = untrue.into_iter().collect();
    assert!(untrue.is_empty(), "{} untrue:\n{}", untrue.len(), untrue.join("\n"));
}
