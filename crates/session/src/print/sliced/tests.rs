//! For any trace, several threads print the same as one.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crate::made_traces::{METADATA, Random, packet, trace};
use crate::open::report::Report;
use crate::{OpenOptions, PrintFormat, PrintOptions, Progress, Session};

/// Text, number of events, and the report.
fn printed(path: &Path, options: &PrintOptions, threads: usize, slice_bytes: Option<u64>) -> (String, u64, Report) {
    let opened = Session::open(&[path.to_owned()], &OpenOptions { threads, ..OpenOptions::default() });
    let Ok(mut session) = opened else { return (String::new(), 0, Report::default()) };
    session.slice_bytes = slice_bytes;
    let mut out = Vec::new();
    let printed = session.print(options, &mut out, &Progress::default());
    let printed = printed.expect("a vector takes everything");
    (String::from_utf8_lossy(&out).into_owned(), printed.events, printed.report)
}

fn check(name: &str, path: &Path, options: &PrintOptions, slice_bytes: u64) {
    let expected = printed(path, options, 1, None);
    let sliced = printed(path, options, 3, Some(slice_bytes));
    if sliced == expected {
        return;
    }
    let pairs = expected.0.lines().zip(sliced.0.lines()).enumerate();
    let first = pairs.filter(|(_, (one, other))| one != other).map(|(line, pair)| (line + 1, pair)).next();
    panic!(
        "{name}, slices of {slice_bytes} bytes: {} events became {}; first line that differs: {first:#?}; {:#?} became {:#?}",
        expected.1, sliced.1, expected.2, sliced.2
    );
}

/// Traces of few streams with short packets, so that cuts come everywhere.
#[test]
fn random_traces_sliced_at_random() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(1);
    for number in 0..600 {
        let path = folder.path().join(format!("trace{number}"));
        trace(&path, number, &mut random);
        let mut options = PrintOptions::default();
        if number % 4 == 3 {
            options.begin_ns = Some(random.below(3000) as i64);
            options.end_ns = Some(random.below(6000) as i64);
        }
        if number % 7 == 6 {
            options.format = PrintFormat::Json;
        }
        check(&format!("trace {number}"), &path, &options, 1 + random.below(3) * random.below(4000));
        std::fs::remove_dir_all(&path).unwrap();
    }
    let sliced = super::FINISHED.load(Ordering::Relaxed);
    assert!(sliced > 250, "of 600 traces only {sliced} were sliced to their end");
}

/// The first event of a late packet belongs where everything is printed long before that packet's turn; packets without
/// events lie between.
#[test]
fn an_event_far_before_its_packet() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("metadata"), METADATA).unwrap();
    let (mut steady, mut late) = (Vec::new(), Vec::new());
    for number in 0..100 {
        let begin = number * 50;
        packet(&mut steady, [begin, begin + 49, 0, number], &[begin, begin + 20, begin + 49]);
    }
    packet(&mut late, [0, 10, 0, 0], &[5]);
    packet(&mut late, [4000, 4010, 0, 1], &[]);
    packet(&mut late, [4100, 4110, 0, 2], &[]);
    packet(&mut late, [4500, 4510, 0, 3], &[105, 4505]);
    std::fs::write(folder.path().join("steady"), steady).unwrap();
    std::fs::write(folder.path().join("late"), late).unwrap();
    check("an event far before its packet", folder.path(), &PrintOptions::default(), 200);
}

/// Every trace of the corpus that is not large.
#[test]
fn real_traces() {
    let fallback = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus"));
    let corpus = std::env::var_os("KYMO_CORPUS").map_or_else(fallback, PathBuf::from).join("ctf");
    let Ok(list) = std::fs::read_to_string(corpus.join("expected.tsv")) else {
        println!("CORPUS ABSENT: {} is not there; real traces were not cut", corpus.display());
        return;
    };
    for line in list.lines().skip(1) {
        let name = line.split('\t').next().unwrap();
        let folder = corpus.join(name);
        let bytes: u64 = std::fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|file| file.metadata().map_or(0, |file| file.len()))
            .sum();
        if bytes < 2 << 20 {
            check(name, &folder, &PrintOptions::default(), 1 + bytes / 7);
        }
    }
}
