//! What crashes leave: sessions without a recorder, memory of programs that are gone, halves of traces.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::recorded::{self, Place, Program};

fn kill_recorder(place: &Place) {
    let pid = place.json(&["status", "--json"])["pid"].as_u64().expect("it runs");
    let pid = rustix::process::Pid::from_raw(pid as i32).expect("it is a number");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
    let is_gone = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with('Z') || rest.is_empty())
    };
    recorded::until(is_gone);
}

/// Begins a session of a program, which has recorded so many events that are in the trace when the recorder is killed.
fn left(place: &Place, options: &[&str]) -> Program {
    let mut program = place.program();
    let pid = program.pid.to_string();
    let words = ["record", "--detach", "--name", "s", "--process", &pid, "--output", "trace", "--event", "test:count"];
    place.says(&[&words[..], options].concat(), 0);
    program.tell("on");
    program.tell("count 5000");
    recorded::until(|| {
        let sessions = place.json(&["sessions", "--json"]);
        sessions[0]["summary"]["events"].as_u64() == Some(5000)
    });
    program
}

/// All files below a folder, with what is in them.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("it can be read").path()) {
        if entry.is_dir() {
            found.extend(contents(&entry));
        } else {
            found.insert(entry.clone(), std::fs::read(&entry).expect("it can be read"));
        }
    }
    found
}

/// Memory of programs in a place.
fn memory(place: &Place) -> Vec<PathBuf> {
    let files = std::fs::read_dir(place.path("kymo")).expect("it is there").filter_map(Result::ok);
    files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|kind| kind == "ctl")).collect()
}

#[test]
fn there_may_be_nothing_to_recover() {
    let place = Place::new();
    let said = place.says(&["recover", "--output", "rescued"], 0);
    // Programs of other tests may have left something where all can see it.
    assert!(said.contains("nothing to recover") || said.contains("from memory"), "{said}");
    let said = place.says(&["recover", "nowhere"], 1);
    assert!(said.contains("error: nowhere: No such file"), "{said}");
    let said = place.says(&["recover", "."], 1);
    assert!(said.contains("there is no trace of `kymo record` in it"), "{said}");
    let said = place.says(&["recover", ".", "x.ctl"], 2);
    assert!(said.contains("one or the other"), "{said}");
    place.says(&["recover", ".", "--output", "x"], 2);
}

#[test]
fn sessions_whose_recorder_was_killed_end_with_what_programs_have() {
    let place = Place::new();
    let mut program = left(&place, &[]);
    kill_recorder(&place);
    program.tell("count 300");
    // It dies, and what it had recorded lies in its memory.
    program.say("die");
    program.end();
    let recovered = place.json(&["recover", "--json"]);
    let session = &recovered["sessions"][0];
    assert_eq!((session["events"].as_u64(), session["resumed"].as_u64()), (Some(5300), Some(5000)), "{recovered}");
    assert_eq!((&session["lost"]["full"], &session["lost"]["no_lane"]), (&0.into(), &0.into()), "{recovered}");
    assert_eq!(place.values(&place.path("trace"), "test:count"), (0..5300).collect::<Vec<_>>());
    place.says(&["check", "trace"], 0);
    assert!(memory(&place).is_empty(), "what is written is not kept");
    assert!(place.says(&["sessions"], 0).contains("no session"));
}

#[test]
fn sessions_of_a_recorder_that_runs_go_on() {
    let place = Place::new();
    let mut program = left(&place, &[]);
    let recovered = place.json(&["recover", "--json", "--output", "rescued"]);
    assert_eq!(recovered["sessions"], serde_json::json!([]), "{recovered}");
    program.tell("count 10");
    assert!(place.says(&["stop", "s"], 0).contains("recorded 5,010 events"));
}

#[test]
fn memory_that_no_session_knows_is_a_trace_of_its_own() {
    let place = Place::new();
    let mut program = left(&place, &[]);
    kill_recorder(&place);
    program.tell("count 300");
    program.say("die");
    program.end();
    // Nobody knows any more what it was recorded for.
    std::fs::remove_file(place.path("kymo/s.session")).expect("it is there");
    let files = memory(&place);
    assert_eq!(files.len(), 1);
    let saved = place.path("saved.ctl");
    std::fs::copy(&files[0], &saved).expect("there is room");
    let named = place.path(files[0].file_name().and_then(|name| name.to_str()).expect("it has one"));
    std::fs::copy(&files[0], &named).expect("there is room");
    // Its name tells that it is of this start of the system, as long as the program's memory is there.
    let named = named.display().to_string();
    let said = place.says(&["recover", &named, "--output", "timed"], 0);
    assert!(!said.contains("how long after each other"), "{said}");
    let recovered = place.json(&["recover", "--json", "--output", "rescued"]);
    let programs = recovered["memory"]["programs"].as_array().expect("there are some");
    let file = files[0].display().to_string();
    let found = programs.iter().find(|program| program["file"] == *file).unwrap_or_else(|| panic!("{recovered}"));
    let events = found["events"].as_u64().expect("a number");
    assert!((300..5300).contains(&events), "{recovered}");
    let expected: Vec<u64> = (5300 - events..5300).collect();
    assert_eq!(place.values(&place.path("timed"), "test:count"), expected);
    let rescued = place.values(&place.path("rescued"), "test:count");
    assert!(rescued.ends_with(&expected), "{} of {events}", rescued.len());
    assert!(memory(&place).is_empty(), "what is written is not kept");
    // The trace that was left is mended where it is.
    let said = place.says(&["recover", "trace"], 0);
    assert!(said.contains("trace: 5,000 events in "), "{said}");
    assert_eq!(place.values(&place.path("trace"), "test:count"), (0..5000).collect::<Vec<_>>());
    // A copy under another name, of which nobody knows when it was.
    let said = place.says(&["recover", "saved.ctl", "--output", "untimed"], 0);
    assert!(said.contains("how long after each other") && saved.exists(), "{said}");
    assert_eq!(place.values(&place.path("untimed"), "test:count"), expected);
    for trace in ["timed", "rescued", "untimed"] {
        place.says(&["check", trace], 0);
    }
    let metadata = place.says(&["metadata", "untimed"], 0);
    assert!(metadata.contains("absolute = FALSE") || metadata.contains("absolute = false"), "{metadata}");
    let said = place.says(&["recover", "trace/metadata", "--output", "no"], 1);
    assert!(said.contains("it is no traced program's"), "{said}");
    assert!(!place.path("no").exists(), "nothing is made of nothing");
}

#[test]
fn halves_are_cut_and_what_is_whole_stays() {
    for options in [&[][..], &["--format", "ctf2"], &["--rotate-size", "20KiB"]] {
        let place = Place::new();
        let program = left(&place, options);
        let said = place.says(&["recover", "trace"], 1);
        assert!(said.contains("is recording it"), "{said}");
        kill_recorder(&place);
        let said = place.says(&["recover", "trace"], 1);
        assert!(said.contains("goes on with the next command"), "{said}");
        // As it is on another machine, or after this one crashed.
        std::fs::remove_file(place.path("kymo/s.session")).expect("it is there");
        drop(program);
        let all: Vec<PathBuf> = contents(&place.path("trace")).into_keys().collect();
        let lane = all.iter().rfind(|path| path.ends_with("lane_1")).expect("it is there").clone();
        let metadata = lane.with_file_name("metadata");
        let append = |path: &Path, bytes: &[u8]| {
            let mut file = std::fs::File::options().append(true).open(path).expect("it is there");
            std::io::Write::write_all(&mut file, bytes).expect("there is room");
        };
        let half = std::fs::read(&lane).expect("it is there")[..100].to_vec();
        append(&lane, &half);
        append(
            &metadata,
            if options.contains(&"ctf2") { b"\x1e{\"type\":\"event-re" } else { b"event {\n\tname = \"te" },
        );
        let said = place.says(&["recover", "trace"], 0);
        assert!(
            said.contains("100 B of half packets were cut") && said.contains("metadata's end was mended"),
            "{said}"
        );
        assert_eq!(place.values(&place.path("trace"), "test:count"), (0..5000).collect::<Vec<_>>());
        place.says(&["check", "trace"], 0);
        let whole = contents(&place.path("trace"));
        let said = place.says(&["recover", "trace"], 0);
        assert!(said.contains("trace is whole: 5,000 events"), "{said}");
        assert_eq!(contents(&place.path("trace")), whole);
        // Without what the recorder has noted, metadata is cut where its last part begins.
        append(
            &metadata,
            if options.contains(&"ctf2") { b"\x1e{\"type\":\"event-re" } else { b"event {\n\tname = \"te" },
        );
        let said = place.says(&["recover", "trace"], 0);
        assert!(said.contains("metadata's end was mended"), "{said}");
        assert_eq!(contents(&place.path("trace")), whole);
        // What is damaged in the middle is not cut.
        let mut bytes = whole[&lane].clone();
        let packet = u64::from_le_bytes(std::array::from_fn(|byte| bytes[56 + byte])) as usize / 8;
        if packet < bytes.len() {
            bytes[packet] ^= 1;
            bytes.extend_from_slice(&whole[&lane][..packet]);
            std::fs::write(&lane, &bytes).expect("there is room");
            let said = place.says(&["recover", "trace"], 1);
            assert!(said.contains("damaged") && said.contains("are left as they are"), "{said}");
            assert_eq!(std::fs::read(&lane).expect("it is there"), bytes);
        }
    }
}
