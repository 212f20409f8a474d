//! Parts that are read elsewhere, and sent as bytes, give the same answer as parts that are read
//! here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_script::Random;

use super::{corpus, difference, kind, kinds};
use crate::{AnalysisKind, AnalysisOptions, OpenOptions, Progress, Session, Share, ShareFailure, ShareProblem, Shares};

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo")
}

fn open(path: &Path, slice_bytes: u64) -> Arc<Session> {
    let options = OpenOptions { threads: 3, ..OpenOptions::default() };
    let mut session = Session::open(&[path.to_path_buf()], &options).expect("it was opened before");
    session.slice_bytes = Some(slice_bytes);
    Arc::new(session)
}

fn shares(path: &Path, kind: &AnalysisKind, slice_bytes: u64) -> Result<Shares, ShareFailure> {
    Shares::new(open(path, slice_bytes), kind.clone(), AnalysisOptions::default())
}

/// The state of each share, read by a session of its own each time.
fn read(path: &Path, kind: &AnalysisKind, all: &[Share]) -> Result<Vec<Vec<u8>>, ShareFailure> {
    let read = |share: &Share| shares(path, kind, 1)?.read(&Share::decode(&share.encode())?, &Progress::default());
    all.iter().map(read).collect()
}

fn borrowed(states: &[Vec<u8>]) -> Vec<&[u8]> {
    states.iter().map(Vec::as_slice).collect()
}

/// Merges neighbors here and there, until few are left.
fn merged(asked: &Shares, mut states: Vec<Vec<u8>>, random: &mut Random) -> Vec<Vec<u8>> {
    let left = 1 + random.below(4);
    while states.len() > left {
        let at = random.below(states.len() - 1);
        let end = (at + 2 + random.below(2)).min(states.len());
        let together = asked.merge(&borrowed(&states[at..end]), &Progress::default());
        states.splice(at..end, [together.expect("they follow each other")]);
    }
    states
}

/// How many shares of a trace were read.
fn check(path: &Path, slice_bytes: u64, random: &mut Random) -> usize {
    let mut count = 0;
    for (name, kind) in kinds() {
        let asked = open(path, slice_bytes).ask(kind, &AnalysisOptions::default(), &Progress::default());
        let (Ok(expected), Ok(asked)) = (asked, shares(path, kind, slice_bytes)) else { continue };
        let Ok(all) = asked.split(3) else { continue };
        let place = format!("{}, {name}", path.display());
        // Not everything can be read in parts.
        let states = match read(path, kind, &all) {
            Ok(states) => states,
            Err(ShareFailure::Whole(_)) => continue,
            Err(failure) => panic!("{place}: {failure}"),
        };
        count += all.len();
        let mut states = merged(&asked, states, random);
        states.sort_by_cached_key(|_| random.below(1000));
        let found = asked.finish(states.iter(), all.len(), &Progress::default());
        let found = found.unwrap_or_else(|failure| panic!("{place}: {failure}"));
        assert!(found.answer == expected.answer, "{place}: {}", difference(&expected.answer, &found.answer));
        assert_eq!(found.report, expected.report, "{place}");
    }
    count
}

#[test]
fn shares_come_to_the_same() {
    let mut random = Random(5);
    assert!(check(&demo(), 10_000, &mut random) > 20);
    let traces = corpus();
    if traces.is_empty() {
        return;
    }
    let opens = |path: &&PathBuf| Session::open(&[path.to_path_buf()], &OpenOptions::default()).is_ok();
    let shares: usize = traces.iter().filter(opens).map(|trace| check(trace, 20_000, &mut random)).sum();
    assert!(shares > 500, "only {shares} shares");
}

#[test]
fn what_does_not_belong_is_refused() {
    let counts = kind("count");
    let asked = shares(&demo(), counts, 10_000).unwrap();
    let all = asked.split(3).unwrap();
    let states = read(&demo(), counts, &all).unwrap();
    let finish = |states: &[Vec<u8>]| {
        let finished = asked.finish(states.iter(), all.len(), &Progress::default());
        finished.map(|_| ()).map_err(|failure| failure.to_string())
    };
    let merge = |states: &[Vec<u8>]| asked.merge(&borrowed(states), &Progress::default()).unwrap();
    let count = all.len();
    assert_eq!(finish(&states), Ok(()));
    assert_eq!(finish(&states[..count - 1]), Err(format!("{} of {count} shares are there", count - 1)));
    assert_eq!(finish(&states[1..]), Err("share 0 is missing: the next state begins with share 1".to_owned()));
    let gap: Vec<Vec<u8>> = [&states[..1], &states[2..]].concat();
    assert_eq!(finish(&gap), Err("share 1 is missing: the next state begins with share 2".to_owned()));
    let twice: Vec<Vec<u8>> = [&states[..2], &states[1..]].concat();
    assert_eq!(finish(&twice), Err("share 1 is there twice".to_owned()));
    let inside: Vec<Vec<u8>> = [vec![merge(&states[..3])], states[1..].to_vec()].concat();
    assert_eq!(finish(&inside), Err("share 1 is there twice".to_owned()));
    let around: Vec<Vec<u8>> = [vec![states[1].clone()], vec![merge(&states[..3])]].concat();
    assert_eq!(finish(&around), Err("share 1 is there twice".to_owned()));
    assert_eq!(finish(&[]), Err(format!("0 of {count} shares are there")));
    assert_eq!(finish(&[b"kymo".to_vec()]), Err("these bytes are no share of a trace".to_owned()));
    assert!(matches!(Share::decode(&states[0]), Err(ShareProblem::NoShare)));
    // Another question's.
    let other = shares(&demo(), kind("gaps"), 10_000).unwrap().finish(states.iter(), count, &Progress::default());
    assert!(matches!(other, Err(ShareFailure::State(_))), "{other:?}");
}

/// A trace without one of its packets is another trace.
#[test]
fn shares_of_another_trace_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(demo()).unwrap().flatten() {
        if file.path().is_file() {
            std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
    }
    let counts = kind("count");
    let all = shares(&demo(), counts, 10_000).unwrap().split(3).unwrap();
    let elsewhere = |path: &Path| shares(path, counts, 1).unwrap().read(&all[0], &Progress::default());
    assert!(elsewhere(folder.path()).is_ok(), "a copy is the same trace");
    let streams = std::fs::read_dir(folder.path()).unwrap().flatten();
    let stream = streams.map(|file| file.path()).filter(|path| !path.ends_with("metadata")).max().unwrap();
    std::fs::remove_file(stream).unwrap();
    let refused = elsewhere(folder.path()).unwrap_err();
    assert!(matches!(refused, ShareFailure::Share(ShareProblem::OtherTrace { .. })));
    assert!(refused.to_string().starts_with("these are other traces: here are "), "{refused}");
}

/// Changed bytes are refused, or give another answer; nothing breaks.
#[test]
fn damaged_shares_are_harmless() {
    let counts = kind("count");
    let asked = shares(&demo(), counts, 10_000).unwrap();
    let all = asked.split(3).unwrap();
    let states = read(&demo(), counts, &all).unwrap();
    let mut random = Random(9);
    let (mut refused, mut read) = (0, 0);
    for _ in 0..500 {
        let mut share = all[random.below(all.len())].encode();
        let at = random.below(share.len());
        share[at] ^= 1 << random.below(8);
        let known = Share::decode(&share);
        match known.map_err(ShareFailure::from).and_then(|share| asked.read(&share, &Progress::default())) {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
        let mut damaged = states.clone();
        let state = &mut damaged[random.below(states.len())];
        let at = random.below(state.len());
        state[at] ^= 1 << random.below(8);
        let _ = asked.finish(damaged.iter(), all.len(), &Progress::default());
    }
    assert!(refused > 100 && read > 0, "{refused} were refused, {read} were read");
}
