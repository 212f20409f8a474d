//! However a trace is cut, every analysis says the same.

mod cuts;
mod doubtful;
pub(crate) mod made;
mod odd_traces;
mod selected;
mod shares;
mod threads;
pub(crate) mod tiny_trace;

use std::path::{Path, PathBuf};

use kymo_analysis::{AnalysisEntry, AnalysisKind, Answer, analyses, find_analysis};
use kymo_script::Random;

use crate::{AnalysisOptions, OpenOptions, Progress, Session, Took, WorkKind};

/// Every analysis that needs no more than a trace, with its name.
fn kinds() -> impl Iterator<Item = (&'static str, &'static AnalysisKind)> {
    let is_alone = |entry: &&AnalysisEntry| !matches!(entry.kind, AnalysisKind::Periods(_));
    analyses().iter().filter(is_alone).map(|entry| (&*entry.name, &entry.kind))
}

/// The analysis of this name.
pub(crate) fn kind(name: &str) -> &'static AnalysisKind {
    &find_analysis(name).unwrap_or_else(|| panic!("there is no analysis `{name}`")).kind
}

/// All traces of the corpus; none where it is absent.
pub(super) fn corpus() -> Vec<PathBuf> {
    let corpus = std::env::var_os("KYMO_CORPUS").map(PathBuf::from);
    let corpus = corpus.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"));
    if !corpus.is_dir() {
        println!("CORPUS ABSENT: tests of its traces not run");
    }
    let (mut folders, mut traces) = (vec![corpus], Vec::new());
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(entries.map(|entry| entry.path()).filter(|path| path.is_dir()));
        traces.extend(folder.join("metadata").is_file().then_some(folder));
    }
    traces.sort();
    traces
}

fn asked(path: &Path, kind: &AnalysisKind, threads: usize, slice_bytes: Option<u64>) -> Option<Answer> {
    let options = OpenOptions { threads, ..OpenOptions::default() };
    let mut session = Session::open(&[path.to_path_buf()], &options).ok()?;
    session.slice_bytes = slice_bytes;
    let asked = session.ask(kind, &AnalysisOptions::default(), &Progress::default());
    asked.ok().map(|analysed| analysed.answer)
}

/// The first rows that differ.
fn difference(one: &Answer, other: &Answer) -> String {
    for (table, other) in one.tables.iter().zip(&other.tables) {
        if let Some((row, (one, other))) =
            table.rows.iter().zip(&other.rows).enumerate().find(|(_, (one, other))| one != other)
        {
            let cells = table.columns.iter().zip(one.iter().zip(other)).filter(|(_, (one, other))| one != other);
            let cells: Vec<String> =
                cells.map(|(column, (one, other))| format!("{}: {one:?} became {other:?}", column.name)).collect();
            return format!("{}, row {row}: {} of {one:?}", table.class, cells.join(", "));
        }
        if table != other {
            return format!("{}: {} rows became {}", table.class, table.rows.len(), other.rows.len());
        }
    }
    "another number of tables".to_owned()
}

/// Reads a trace as one part, and cut: into parts of these bytes, by so many threads.
fn check(path: &Path, cuts: &[(usize, u64)]) -> usize {
    let mut answered = 0;
    for (name, kind) in kinds() {
        let Some(whole) = asked(path, kind, 1, None) else { continue };
        answered += 1;
        for &(threads, slice_bytes) in cuts {
            let cut = asked(path, kind, threads, Some(slice_bytes)).expect("it was answered before");
            let place = path.display();
            assert!(cut == whole, "{place}, {name}, parts of {slice_bytes} bytes: {}", difference(&whole, &cut));
        }
    }
    answered
}

#[test]
fn the_demo_says_the_same_however_it_is_cut() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo");
    assert!(check(&demo, &[(1, 4096), (3, 4096), (3, 20_000), (2, 1 << 20)]) >= 3);
}

/// A rehearsal of several threads gives their answer, and no thread does two things at a time.
#[test]
fn a_rehearsal_says_the_same() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo");
    let whole = asked(&demo, kind("count"), 1, None);
    let mut session = Session::open(&[demo], &OpenOptions { threads: 1, ..OpenOptions::default() }).unwrap();
    session.slice_bytes = Some(4096);
    let progress = Progress::rehearsing(3);
    let asked = session.ask(kind("count"), &AnalysisOptions::default(), &progress);
    assert_eq!(asked.ok().map(|analysed| analysed.answer), whole);
    let took = progress.took();
    for thread in 0..3 {
        let its: Vec<&Took> = took.iter().filter(|took| took.thread == thread).collect();
        assert!(!its.is_empty() && its.windows(2).all(|pair| pair[0].begin + pair[0].time <= pair[1].begin), "{its:?}");
    }
    let count = |work| took.iter().filter(|took| took.work == work).count();
    let reads = count(WorkKind::Read);
    assert!(
        reads > 3 && count(WorkKind::Merge) == reads - 1 && count(WorkKind::Leave) == 3,
        "{reads} of {}",
        took.len()
    );
    assert!(progress.rehearsed() >= took.iter().map(|took| took.time).sum());
}

/// Every trace that can be read, also those whose packets have no times or cannot all be read.
#[test]
fn the_corpus_says_the_same_however_it_is_cut() {
    let traces = corpus();
    if traces.is_empty() {
        return;
    }
    let answered: usize = traces.iter().map(|trace| check(trace, &[(1, 30_000), (3, 5_000)])).sum();
    let merged = super::parts::MERGED.load(std::sync::atomic::Ordering::Relaxed);
    let traces = traces.len();
    assert!(traces > 100 && answered > 300 && merged > 1_000, "{traces} traces, {answered} answers, {merged} parts");
}
