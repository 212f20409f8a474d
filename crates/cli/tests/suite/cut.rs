//! What `kymo cut` writes, as `babeltrace2` reads it: a part printed whole is the whole printed in part.
//!
//! ```text
//! trace ── kymo cut --begin --end ── part ── babeltrace2 ────────┐
//!   └─────────── babeltrace2 --begin --end ─────────────────── same text
//! ```
//!
//! Babeltrace 2.0 reads no CTF 2: there `kymo print` takes its place, which prints the same text. For an empty text
//! field 2.0 prints what such a field of an event before held; which event that was differs between a part and the
//! whole, so lines with such a field are not compared.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use expect_test::expect;

use crate::program;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("kymo-cut-{name}-{process}-{number}"));
        // What an earlier run left would be in the way.
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("the name is text")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is removed with the other temporary files some day.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo")
}

fn run(mut program: Command, arguments: &[&str]) -> Option<Output> {
    program.args(arguments).env("TZ", "UTC").output().ok()
}

fn kymo(arguments: &[&str]) -> Output {
    let done = run(program::kymo(), arguments).expect("the program is there");
    assert_ne!(done.status.code(), Some(2), "{}", String::from_utf8_lossy(&done.stderr));
    done
}

/// What Babeltrace prints; `None` if it is not there or cannot read the trace.
fn babeltrace(arguments: &[&str]) -> Option<String> {
    let done = run(Command::new("babeltrace2"), arguments)?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
}

fn babeltrace_is_there() -> bool {
    let is_there = run(Command::new("babeltrace2"), &["--version"]).is_some();
    if !is_there {
        println!("BABELTRACE2 ABSENT: comparison of cut traces with it not run");
    }
    is_there
}

/// A time as both programs take it.
fn seconds(nanos: i64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// The part that is cut out, printed by `print`, and the part that is printed of the whole; `None` if `print` cannot
/// read the whole.
fn both(trace: &str, span: [i64; 2], form: &[&str], print: impl Fn(&[&str]) -> Option<String>) -> Option<[String; 2]> {
    let part = Folder::new("part");
    let (begin, end) = (format!("--begin={}", seconds(span[0])), format!("--end={}", seconds(span[1])));
    let cut = kymo(&[&["cut", trace, &begin, &end, "--output", part.path()], form].concat());
    assert!(cut.status.success(), "{trace}: {}", String::from_utf8_lossy(&cut.stderr));
    let whole = print(&[trace, &begin, &end])?;
    let part = print(&[part.path()]).unwrap_or_else(|| panic!("who reads {trace} does not read a part of it"));
    Some([part, whole])
}

/// Whether the lines are the same, but for those whose true text has an empty field.
fn agree([part, whole]: &[String; 2], truth: &str) -> bool {
    let lines = part.lines().zip(whole.lines()).zip(truth.lines());
    let count = |text: &str| text.lines().count();
    count(part) == count(whole)
        && count(part) == count(truth)
        && lines.into_iter().all(|((part, whole), truth)| part == whole || truth.contains("\"\""))
}

/// What `kymo` prints of a part that is named by times; `None`: some of it cannot be read, or is not as its index says.
fn truth(trace: &str, span: [i64; 2]) -> Option<String> {
    let (begin, end) = (format!("--begin={}", seconds(span[0])), format!("--end={}", seconds(span[1])));
    printed(&[trace, &begin, &end])
}

fn printed(arguments: &[&str]) -> Option<String> {
    let done = kymo(&[&["print"], arguments].concat());
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
}

const DEMO_SPAN: [i64; 2] = [1_795_219_372_270_000_000, 1_795_219_372_300_000_000];

#[test]
fn babeltrace_reads_a_part_of_the_demo() {
    if !babeltrace_is_there() {
        return;
    }
    let demo = demo();
    let demo = demo.to_str().unwrap();
    let texts = both(demo, DEMO_SPAN, &[], babeltrace).expect("it reads the demo");
    assert!(agree(&texts, &truth(demo, DEMO_SPAN).expect("the demo is sound")), "{texts:#?}");
    assert!(texts[0].lines().count() > 500, "{} lines", texts[0].lines().count());
}

/// Both dialects say the same of the same bytes.
#[test]
fn both_dialects_print_as_the_demo() {
    let demo = demo();
    for form in ["ctf2", "tsdl"] {
        let both = both(demo.to_str().unwrap(), DEMO_SPAN, &["--as", form], printed);
        let [part, whole] = both.expect("the demo can be read");
        assert!(part == whole, "{form}: {} and {} lines", part.lines().count(), whole.lines().count());
    }
}

/// Babeltrace reads what was written as TSDL from CTF 2 that was written from TSDL.
#[test]
fn there_and_back() {
    if !babeltrace_is_there() {
        return;
    }
    let (there, back) = (Folder::new("there"), Folder::new("back"));
    let demo = demo();
    kymo(&["cut", demo.to_str().unwrap(), "--as", "ctf2", "--output", there.path()]);
    assert!(std::fs::read_to_string(there.0.join("metadata")).unwrap().contains("data-stream-class"));
    kymo(&["cut", there.path(), "--as", "tsdl", "--output", back.path()]);
    let demo = demo.to_str().unwrap();
    let texts = [back.path(), demo].map(|trace| babeltrace(&[trace]).expect("it reads both"));
    assert!(agree(&texts, &printed(&[demo]).expect("the demo can be read")), "{texts:#?}");
}

#[test]
fn several_classes() {
    let part = Folder::new("classes");
    let demo = demo();
    kymo(&["cut", demo.to_str().unwrap(), "--event", "jobs:e?d", "--event", "jobs:b*", "--output", part.path()]);
    let counts = kymo(&["count", part.path()]).stdout;
    let events: Vec<String> = String::from_utf8_lossy(&counts)
        .lines()
        .map(|line| {
            line.split_whitespace()
                .enumerate()
                .filter(|(column, _)| *column != 2)
                .map(|(_, cell)| cell)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    expect![[r#"
        events share event
        400 50.0% jobs:begin
        400 50.0% jobs:end
        800 100.0% all events"#]]
    .assert_eq(&events.join("\n"));
}

/// Traces of the same name go to folders of different names.
#[test]
fn several_traces() {
    let (part, other) = (Folder::new("several"), Folder::new("other"));
    let (demo, copy) = (demo(), Path::new(other.path()).join("demo"));
    crate::copies::copy(&demo, &copy);
    // Copies of one trace would be one trace: this one is of another machine.
    let metadata = std::fs::read(copy.join("metadata")).unwrap();
    let (name, at) =
        (b"hostname = \"vm\"", metadata.windows(15).position(|bytes| bytes == b"hostname = \"vm\"").unwrap());
    let renamed = [&metadata[..at], b"hostname = \"v2\"", &metadata[at + name.len()..]].concat();
    std::fs::write(copy.join("metadata"), renamed).unwrap();
    kymo(&["cut", demo.to_str().unwrap(), copy.to_str().unwrap(), "--output", part.path()]);
    let mut names: Vec<_> = std::fs::read_dir(&part.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["demo", "demo-2"]);
}

/// Of a packet that the file ends in, the part has the events that `print` shows.
#[test]
fn a_packet_that_the_file_ends_in() {
    let (short, part) = (Folder::new("short"), Folder::new("part"));
    let demo = demo();
    std::fs::create_dir_all(short.path()).unwrap();
    std::fs::copy(demo.join("metadata"), Path::new(short.path()).join("metadata")).unwrap();
    let bytes = std::fs::read(demo.join("jobs_0")).unwrap();
    std::fs::write(Path::new(short.path()).join("jobs_0"), &bytes[..20_000]).unwrap();
    let whole = kymo(&["print", short.path()]);
    assert_eq!(whole.status.code(), Some(1));
    let cut = kymo(&["cut", short.path(), "--output", part.path()]);
    assert_eq!(cut.status.code(), Some(1), "{}", String::from_utf8_lossy(&cut.stderr));
    let lines = String::from_utf8_lossy(&whole.stdout).into_owned();
    assert_eq!(printed(&[part.path()]).as_ref(), Some(&lines));
    // Two whole packets of 8 KiB have less.
    assert!(lines.lines().count() > 300, "{} lines", lines.lines().count());
}

/// A packet is read as a whole, but not one of any size.
#[test]
fn a_packet_that_is_too_large() {
    let (large, part) = (Folder::new("large"), Folder::new("part"));
    std::fs::create_dir_all(large.path()).unwrap();
    let metadata = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };
        event { name = \"e\"; fields := struct { integer { size = 8; } x; }; };";
    std::fs::write(Path::new(large.path()).join("metadata"), metadata).unwrap();
    let stream = std::fs::File::create(Path::new(large.path()).join("stream")).unwrap();
    stream.set_len(200_000_000).unwrap();
    let cut = kymo(&["cut", large.path(), "--output", part.path()]);
    let said = String::from_utf8_lossy(&cut.stderr).into_owned();
    assert!(said.contains("the packet has 200000000 bytes; those of more than 134217728 are not cut"), "{said}");
    assert_eq!(cut.status.code(), Some(1));
}

/// The middle of every trace of the corpus whose times are known, as it is, and in CTF 2.
#[test]
fn parts_of_the_corpus() {
    let nearby = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let corpus = std::env::var_os("KYMO_CORPUS").map_or(nearby, PathBuf::from);
    if !corpus.is_dir() {
        println!("CORPUS ABSENT: parts of its traces not run");
        return;
    }
    if !babeltrace_is_there() {
        return;
    }
    let (mut babeltraced, mut in_ctf2, mut different) = (0, 0, Vec::new());
    for trace in traces(&corpus) {
        let trace = trace.to_str().expect("the corpus has plain names");
        let Some(span) = middle(trace) else { continue };
        // An event without a known time is in every window, and in no part.
        let Some(truth) = truth(trace, span).filter(|text| !text.contains("[Error]")) else { continue };
        if let Some(texts) = both(trace, span, &[], babeltrace) {
            babeltraced += 1;
            if !agree(&texts, &truth) {
                different.push(format!("{trace} {span:?}"));
            }
        }
        let [part, whole] = both(trace, span, &["--as", "ctf2"], printed).expect("it was printed before");
        in_ctf2 += 1;
        if part != whole {
            different.push(format!("{trace} {span:?} as CTF 2"));
        }
    }
    println!("parts of traces: {babeltraced} compared with babeltrace2, {in_ctf2} in CTF 2");
    assert!(babeltraced > 20 && in_ctf2 > 20, "{babeltraced} and {in_ctf2} compared");
    assert!(different.is_empty(), "{}", different.join("\n"));
}

fn traces(folder: &Path) -> Vec<PathBuf> {
    if folder.join("metadata").is_file() {
        return vec![folder.to_owned()];
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.iter().flat_map(|folder| traces(folder)).collect()
}

/// The middle half of a trace that is read without any problem, and whose times are known; less of a large one.
fn middle(trace: &str) -> Option<[i64; 2]> {
    let done = kymo(&["info", "--json", trace]);
    let info: serde_json::Value = serde_json::from_slice(&done.stdout).ok().filter(|_| done.status.success())?;
    let (begin, end) = (info["begin_ns"].as_i64()?, info["end_ns"].as_i64()?);
    let is_large = info["events"]["value"].as_u64()? > 50_000;
    let length = (end - begin) / if is_large { 16 } else { 2 };
    let middle = begin + (end - begin) / 2;
    (begin >= 0 && length > 1).then_some([middle - length / 2, middle + length / 2])
}
