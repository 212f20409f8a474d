//! More streams than the process may open files.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use kymo_source::find;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::alone;

const STREAMS: usize = 5000;

fn limit_files(count: u64) {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(count);
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// Alone: the limit is the whole process's, and others open files too.
#[test]
fn few_files_may_be_open() {
    alone::run("limits::few_files_may_be_open", |_| open_few_files());
}

fn open_few_files() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("metadata"), "").unwrap();
    for index in 0..STREAMS {
        fs::write(root.path().join(format!("{index:05}")), format!("{index:05}")).unwrap();
    }
    // From wide to narrow; 16 is about what the test harness itself needs.
    for limit in [1024, 64, 16] {
        limit_files(limit);
        reads_many_streams(root.path());
    }
    limit_files(64);
    reads_while_others_hold_the_files();
}

fn reads_many_streams(root: &Path) {
    let trace = &find(root).unwrap()[0];
    let streams: Vec<_> = (0..trace.streams().len()).map(|index| trace.stream(index)).collect();
    assert_eq!(streams.len(), STREAMS);
    for round in 0..2 {
        for (index, stream) in streams.iter().enumerate() {
            let mut bytes = [0; 8];
            let read = stream.read_at(round, &mut bytes).unwrap();
            assert_eq!(&bytes[..read], &format!("{index:05}").as_bytes()[round as usize..]);
        }
    }
}

/// Somebody else holds nearly all files that the process may open.
fn reads_while_others_hold_the_files() {
    let root = tempfile::tempdir().unwrap();
    for name in ["metadata", "a", "b", "c"] {
        fs::write(root.path().join(name), name).unwrap();
    }
    let trace = &find(root.path()).unwrap()[0];
    let streams: Vec<_> = (0..3).map(|index| trace.stream(index)).collect();
    streams[0].read_at(0, &mut [0]).unwrap();
    streams[1].read_at(0, &mut [0]).unwrap();
    let held: Vec<_> = std::iter::from_fn(|| fs::File::open(root.path().join("a")).ok()).collect();
    let mut byte = [0];
    for (stream, expected) in streams.iter().zip(b"abc") {
        assert_eq!(stream.read_at(0, &mut byte).unwrap(), 1);
        assert_eq!(byte[0], *expected);
    }
    drop(held);
}
