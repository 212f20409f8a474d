//! A recorder that reads as real ones do: the file of a process, by system calls.

#![allow(dead_code, reason = "tests and examples need some of it each")]
#![allow(unsafe_code, reason = "the environment is set before anybody reads it")]

#[path = "../../../../recorder/src/program/control.rs"]
mod control;

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use kymo_lane::{MemoryLayout, RecorderSide, VERDICT_BYTES, VERDICT_ID, WriterThread};

pub use control::Control;

/// An event that was found.
#[derive(Clone, Debug)]
pub struct Found {
    pub thread: WriterThread,
    pub lane: u16,
    pub id: u16,
    pub ticks: u64,
    pub value: u64,
}

/// Drains a process; all of its events have 8 bytes, and verdicts more.
pub struct Watch {
    pub recorder: RecorderSide<Control>,
    layout: MemoryLayout,
    known: HashMap<u16, (u64, u32)>,
    epoch: u64,
    pub found: Vec<Found>,
}

const EVENT_BYTES: usize = 14;

/// A folder of this program alone, for files of processes. Tests have one from `alone`.
pub fn folder() -> PathBuf {
    let folder = Path::new("/dev/shm").join(format!("kymo-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is room");
    // Safety: no other thread is there yet.
    unsafe { std::env::set_var("XDG_RUNTIME_DIR", &folder) };
    folder
}

/// The files of all processes whose folder that is.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("kymo")).expect("it is there");
    let all = entries.map(|entry| entry.expect("it is there").path());
    all.filter(|path| path.extension().is_some_and(|kind| kind == "ctl")).collect()
}

impl Watch {
    pub fn new(path: &Path) -> Self {
        let file = File::options().read(true).write(true).open(path).expect("it is there");
        let bytes = file.metadata().expect("it is there").len();
        let view = Control(file);
        let layout = MemoryLayout::read(&view, bytes).expect("it can be read").expect("it is a program's");
        let recorder = RecorderSide::new(view, layout);
        Self { recorder, layout, known: HashMap::new(), epoch: 0, found: Vec::new() }
    }

    /// The id of an event whose definition begins with these words. The first ids are those of events in `fields`, which
    /// make themselves known in each process of this binary.
    pub fn id(&self, begin: &str) -> u16 {
        let mut last = None;
        while let Some(next) = self.recorder.definition(last.as_ref()).expect("it can be read") {
            let mut text = vec![0; next.bytes as usize];
            self.recorder.said(&next, &mut text).expect("it can be read");
            if text.starts_with(begin.as_bytes()) {
                return next.id;
            }
            last = Some(next);
        }
        panic!("{begin} is not defined")
    }

    /// Takes what is there.
    pub fn drain(&mut self) {
        let look = |number| self.recorder.look(number).expect("it can be read");
        let mut all: Vec<_> = (0..self.recorder.ready().expect("it can be read")).filter_map(look).collect();
        all.sort_by_key(|seen| (seen.lane, seen.sequence));
        for seen in all {
            let (next, copied) = self.known.entry(seen.lane).or_default();
            if seen.sequence != *next {
                continue;
            }
            let mut bytes = vec![0; (seen.bytes - *copied) as usize];
            assert!(self.recorder.copy(&seen, *copied, &mut bytes).expect("it can be read"));
            *copied = seen.bytes;
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let is_verdict = rest[..2] == VERDICT_ID.to_le_bytes();
                let (event, others) = rest.split_at(if is_verdict { 6 + VERDICT_BYTES as usize } else { EVENT_BYTES });
                rest = others;
                let (head, value) = event.split_at(6);
                let low = u32::from_le_bytes(head[2..].try_into().expect("4 bytes"));
                self.found.push(Found {
                    thread: seen.thread,
                    lane: seen.lane,
                    id: u16::from_le_bytes(head[..2].try_into().expect("2 bytes")),
                    ticks: seen.begin + u64::from(low.wrapping_sub(seen.begin as u32)),
                    value: u64::from_le_bytes(value[..8].try_into().expect("8 bytes")),
                });
            }
            if seen.is_full {
                (*next, *copied) = (*next + 1, 0);
                self.recorder.free(&seen).expect("it can be written");
                self.epoch += 1;
                self.recorder.freed(self.epoch).expect("it can be written");
            }
        }
    }

    /// Events that were lost.
    pub fn lost(&self) -> u64 {
        let lanes =
            (0..self.layout.lanes as u16).map(|lane| self.recorder.losses(lane).expect("it is there").discarded);
        lanes.sum::<u64>() + self.recorder.discarded().expect("it is there")
    }

    /// Times never step back in a lane.
    pub fn check_times(&self) {
        let mut last = HashMap::new();
        for found in &self.found {
            let before = last.insert(found.lane, found.ticks);
            assert!(before.is_none_or(|before| before <= found.ticks), "{found:?} is before {before:?}");
        }
    }
}
