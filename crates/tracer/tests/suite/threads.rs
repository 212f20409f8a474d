//! Threads record, a recorder drains: every event is there or counted.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use kymo_tracer::{Event, control_file};

use crate::alone;
use crate::recorder::Watch;

static FIRST: Event = Event::new(b"first: value u64");
static SECOND: Event = Event::new(b"second: value u64");

const THREADS: u64 = 4;
const EVENTS: u64 = 200_000;

/// Alone: lanes are the process's, and what is lost in any of them is counted.
#[test]
fn every_event_is_there_or_counted() {
    alone::run("threads::every_event_is_there_or_counted", |_| record_and_drain());
}

fn record_and_drain() {
    assert!(FIRST.register() && SECOND.register() && FIRST.register());
    let path = Path::new(std::ffi::OsStr::from_bytes(control_file().expect("it has begun").to_bytes()));
    let mut watch = Watch::new(path);
    let mut definitions = Vec::new();
    while let Some(next) = watch.recorder.definition(definitions.last()).expect("it can be read") {
        definitions.push(next);
    }
    let first = watch.id("first: ");
    let own = definitions.iter().map(|definition| definition.id).skip_while(|id| *id < first);
    assert_eq!(own.collect::<Vec<_>>(), [first, first + 1]);
    FIRST.record(&[0; 8]);
    watch.drain();
    assert!(watch.found.is_empty(), "nobody wants it");
    watch.recorder.switch(first, 1).expect("it can be written");
    assert!(FIRST.is_on() && !SECOND.is_on());
    std::thread::scope(|scope| {
        let write = |thread: u64| {
            for number in 0..EVENTS {
                FIRST.record(&(thread << 32 | number).to_le_bytes());
                SECOND.record(&[0; 8]);
            }
        };
        // Threads come and go, and take over lanes.
        let writers: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || write(thread))).collect();
        while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            watch.drain();
        }
    });
    watch.drain();
    watch.drain();
    assert_eq!(watch.found.len() as u64 + watch.lost(), THREADS * EVENTS);
    let mut last: HashMap<u64, u64> = HashMap::new();
    for found in &watch.found {
        assert!(found.id == first && found.thread.level == 0);
        let (thread, number) = (found.value >> 32, found.value & 0xffff_ffff);
        assert!(last.insert(thread, number).is_none_or(|last| last < number), "{found:?}");
    }
    watch.check_times();
}
