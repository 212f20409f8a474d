//! What is read elsewhere, and sent as bytes, comes to the same as what is read here.

use std::path::{Path, PathBuf};

use kymo_analysis::testing::Random;

use super::{corpus, difference, kinds};
use crate::{AnalysisKind, AnalysisOptions, OpenOptions, Progress, Session, Share, ShareFailure};

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo")
}

fn open(path: &Path, slice_bytes: u64) -> Session {
    let options = OpenOptions { threads: 3, ..OpenOptions::default() };
    let mut session = Session::open(&[path.to_path_buf()], &options).expect("it was opened before");
    session.slice_bytes = Some(slice_bytes);
    session
}

/// What is known of each share, read by a session of its own each time.
fn read(path: &Path, kind: &AnalysisKind, shares: &[Share]) -> Result<Vec<Vec<u8>>, ShareFailure> {
    let options = AnalysisOptions::default();
    let read = |share: &Share| {
        let share = Share::decode(&share.encode())?;
        open(path, 1).read_share(kind, &options, &share, &Progress::default())
    };
    shares.iter().map(read).collect()
}

fn borrowed(states: &[Vec<u8>]) -> Vec<&[u8]> {
    states.iter().map(Vec::as_slice).collect()
}

/// Merges neighbours here and there, until few are left.
fn merged(session: &Session, kind: &AnalysisKind, mut states: Vec<Vec<u8>>, random: &mut Random) -> Vec<Vec<u8>> {
    let left = 1 + random.below(4);
    while states.len() > left {
        let at = random.below(states.len() - 1);
        let end = (at + 2 + random.below(2)).min(states.len());
        let together = session.merge_shares(kind, &AnalysisOptions::default(), &borrowed(&states[at..end]));
        states.splice(at..end, [together.expect("they follow each other")]);
    }
    states
}

/// How many shares of a trace were read.
fn check(path: &Path, slice_bytes: u64, random: &mut Random) -> usize {
    let (options, mut count) = (AnalysisOptions::default(), 0);
    for kind in kinds() {
        let session = open(path, slice_bytes);
        let Ok(expected) = session.ask(&kind, &options, &Progress::default()) else { continue };
        let Ok(shares) = session.share(&kind, &options, 3) else { continue };
        // Parts of one lane say less of what is beside them; nor can everything be read in parts.
        let states = match read(path, &kind, &shares) {
            Ok(states) => states,
            Err(ShareFailure::Whole(_)) => continue,
            Err(failure) => panic!("{}, {kind:?}: {failure}", path.display()),
        };
        count += shares.len();
        let states = merged(&session, &kind, states, random);
        let found = session.finish_shares(&kind, &options, &borrowed(&states), shares.len());
        let found = found.unwrap_or_else(|failure| panic!("{}, {kind:?}: {failure}", path.display()));
        let place = path.display();
        assert!(found.answer == expected.answer, "{place}, {kind:?}: {}", difference(&expected.answer, &found.answer));
        assert_eq!(found.report, expected.report, "{place}, {kind:?}");
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
    let session = open(&demo(), 10_000);
    let (kind, options) = (AnalysisKind::Count, AnalysisOptions::default());
    let shares = session.share(&kind, &options, 3).unwrap();
    let states = read(&demo(), &kind, &shares).unwrap();
    let finish = |states: &[Vec<u8>]| {
        let finished = session.finish_shares(&kind, &options, &borrowed(states), shares.len());
        finished.map(|_| ()).map_err(|failure| failure.to_string())
    };
    let count = shares.len();
    assert_eq!(finish(&states), Ok(()));
    assert_eq!(finish(&states[..count - 1]), Err(format!("{} of {count} shares are there", count - 1)));
    assert_eq!(finish(&states[1..]), Err("share 0 is missing: what comes next begins with share 1".to_owned()));
    let twice: Vec<Vec<u8>> = [&states[..2], &states[1..]].concat();
    assert_eq!(finish(&twice), Err("share 2 is missing: what comes next begins with share 1".to_owned()));
    assert_eq!(finish(&[]), Err(format!("0 of {count} shares are there")));
    assert_eq!(finish(&[b"kymo".to_vec()]), Err("these bytes are no share of a trace".to_owned()));
    assert!(matches!(Share::decode(&states[0]), Err(ShareFailure::NoShare)));
    // Another question's.
    let other = session.finish_shares(&AnalysisKind::Gaps, &options, &borrowed(&states), count);
    assert!(matches!(other, Err(ShareFailure::State(_))), "{other:?}");
}

/// A trace whose packets are the same but for one that is missing is another trace.
#[test]
fn shares_of_another_trace_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(demo()).unwrap().flatten() {
        if file.path().is_file() {
            std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
    }
    let (kind, options) = (AnalysisKind::Count, AnalysisOptions::default());
    let shares = open(&demo(), 10_000).share(&kind, &options, 3).unwrap();
    let elsewhere = |path: &Path| open(path, 1).read_share(&kind, &options, &shares[0], &Progress::default());
    assert!(elsewhere(folder.path()).is_ok(), "a copy is the same trace");
    let streams = std::fs::read_dir(folder.path()).unwrap().flatten();
    let stream = streams.map(|file| file.path()).filter(|path| !path.ends_with("metadata")).max().unwrap();
    std::fs::remove_file(stream).unwrap();
    let refused = elsewhere(folder.path()).unwrap_err();
    assert!(matches!(refused, ShareFailure::OtherTrace { .. }));
    assert!(refused.to_string().starts_with("these are other traces: here are "), "{refused}");
}

/// Bytes that somebody changed are refused, or come to something else; nothing breaks.
#[test]
fn damaged_shares_are_harmless() {
    let session = open(&demo(), 10_000);
    let (kind, options) = (AnalysisKind::Count, AnalysisOptions::default());
    let shares = session.share(&kind, &options, 3).unwrap();
    let states = read(&demo(), &kind, &shares).unwrap();
    let mut random = Random(9);
    let (mut refused, mut read) = (0, 0);
    for _ in 0..500 {
        let mut share = shares[random.below(shares.len())].encode();
        let at = random.below(share.len());
        share[at] ^= 1 << random.below(8);
        let known = Share::decode(&share);
        match known.and_then(|share| session.read_share(&kind, &options, &share, &Progress::default())) {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
        let mut damaged = states.clone();
        let state = &mut damaged[random.below(states.len())];
        let at = random.below(state.len());
        state[at] ^= 1 << random.below(8);
        let _ = session.finish_shares(&kind, &options, &borrowed(&damaged), shares.len());
    }
    assert!(refused > 100 && read > 0, "{refused} were refused, {read} were read");
}
