//! What a program has recorded, as text: a recorder that reads as real ones do.

#![allow(dead_code, reason = "each test needs some of it")]

use std::collections::HashMap;
use std::env;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{Ordering, fence};

use kymo_lane::{Definition, Layout, Recorder, View};
use kymo_recorder::definition::{Definition as Parsed, EventClass, parse};
use kymo_writer::packed::{Integer, Kind, Scalar};

/// Runs a test of this program in a process of its own, whose files go to a folder that nobody else has.
pub fn alone(test: &str, run: impl FnOnce()) {
    const ALONE: &str = "KYMO_TEST_ALONE";
    if env::var_os(ALONE).is_some() {
        return run();
    }
    let folder = PathBuf::from(format!("/dev/shm/kymo-test-{}-{test}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is room");
    let mut command = Command::new(env::current_exe().expect("it has a path"));
    command.args([test, "--exact", "--nocapture"]).env(ALONE, "1").env("XDG_RUNTIME_DIR", &folder);
    let status = command.status().expect("it runs");
    std::fs::remove_dir_all(&folder).expect("it is ours");
    assert!(status.success(), "{status}");
}

/// The file of a process.
pub struct Opened(File);

impl View for Opened {
    type Fault = io::Error;

    fn word(&self, at: u64) -> io::Result<u64> {
        let mut word = [0; 8];
        self.0.read_exact_at(&mut word, at)?;
        fence(Ordering::Acquire);
        Ok(u64::from_le_bytes(word))
    }

    fn copy(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(into, at)
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    fn set_byte(&self, at: u64, value: u8) -> io::Result<()> {
        fence(Ordering::Release);
        self.0.write_all_at(&[value], at)
    }

    fn set_word(&self, at: u64, value: u64) -> io::Result<()> {
        self.0.write_all_at(&value.to_le_bytes(), at)
    }
}

/// A program's memory, and how far it was read.
pub struct Read {
    pub recorder: Recorder<Opened>,
    last: Option<Definition>,
    classes: HashMap<u16, EventClass>,
    /// By lane: the next sub-buffer, and how much of it was read.
    lanes: HashMap<u16, (u64, u32)>,
    epoch: u64,
}

/// An event.
pub struct Event {
    pub tid: u32,
    pub ticks: u64,
    /// Its name, and its fields.
    pub text: String,
}

impl Read {
    pub fn new(path: &Path) -> Self {
        let file = File::options().read(true).write(true).open(path).expect("it is there");
        let bytes = file.metadata().expect("it is there").len();
        let view = Opened(file);
        let layout = Layout::read(&view, bytes).expect("it can be read").expect("it is a program's");
        let recorder = Recorder::new(view, layout);
        Self { recorder, last: None, classes: HashMap::new(), lanes: HashMap::new(), epoch: 0 }
    }

    /// That of this process.
    pub fn own() -> Self {
        let path = kymo_tracer::control_file().expect("it has begun").to_bytes();
        Self::new(Path::new(std::ffi::OsStr::from_bytes(path)))
    }

    /// What was defined since, as text.
    pub fn defined(&mut self) -> Vec<(u16, String)> {
        let mut all = Vec::new();
        while let Some(next) = self.recorder.definition(self.last.as_ref()).expect("it can be read") {
            let mut text = vec![0; next.bytes as usize];
            self.recorder.said(&next, &mut text).expect("it can be read");
            let said = String::from_utf8(text).expect("it is text");
            match parse(said.as_bytes()) {
                Ok(Parsed::Event(class)) => _ = self.classes.insert(next.id, class),
                other => panic!("{said}: {other:?}"),
            }
            all.push((next.id, said));
            self.last = Some(next);
        }
        all
    }

    /// Switches all events of a name that are there.
    pub fn switch(&mut self, name: &str, to: u8) {
        self.defined();
        let all: Vec<_> = self.classes.iter().filter(|(_, class)| class.name == name).collect();
        assert!(!all.is_empty(), "no event is called {name}");
        all.iter().for_each(|(id, _)| self.recorder.switch(**id, to).expect("it can be written"));
    }

    /// What was recorded since, by lane.
    pub fn events(&mut self) -> Vec<Event> {
        let mut found = Vec::new();
        let look = |number| self.recorder.look(number).expect("it can be read");
        let mut all: Vec<_> = (0..self.recorder.ready().expect("it can be read")).filter_map(look).collect();
        all.sort_by_key(|seen| (seen.lane, seen.sequence));
        // Definitions are there before the events.
        self.defined();
        for seen in all {
            let (next, copied) = self.lanes.entry(seen.lane).or_default();
            if seen.sequence < *next {
                continue;
            }
            assert_eq!((seen.sequence, seen.contexts), (*next, 0), "nothing is lost, and nothing else is carried");
            let mut bytes = vec![0; (seen.bytes - *copied) as usize];
            assert!(self.recorder.copy(&seen, *copied, &mut bytes).expect("it can be read"));
            *copied = seen.bytes;
            let mut bytes = &bytes[..];
            while !bytes.is_empty() {
                let class = &self.classes[&u16::from_le_bytes(take(&mut bytes))];
                let low = u32::from_le_bytes(take(&mut bytes));
                let ticks = seen.begin + u64::from(low.wrapping_sub(seen.begin as u32));
                found.push(Event { tid: seen.thread.tid, ticks, text: text(class, &mut bytes) });
            }
            if seen.is_full {
                (*next, *copied) = (*next + 1, 0);
                self.recorder.free(&seen).expect("it can be written");
                self.epoch += 1;
                self.recorder.freed(self.epoch).expect("it can be written");
            }
        }
        found
    }

    /// The same in the order of time, as text.
    pub fn text(&mut self) -> String {
        let mut events = self.events();
        events.sort_by_key(|event| event.ticks);
        events.iter().map(|event| format!("{}\n", event.text)).collect()
    }
}

fn take<const BYTES: usize>(from: &mut &[u8]) -> [u8; BYTES] {
    let (first, rest) = from.split_first_chunk().expect("it is whole");
    *from = rest;
    *first
}

fn number(integer: Integer, bytes: &mut &[u8]) -> String {
    let (these, rest) = bytes.split_at(integer.bytes.into());
    *bytes = rest;
    let mut all = [0; 8];
    all[..these.len()].copy_from_slice(these);
    let (number, unused) = (u64::from_le_bytes(all), 64 - 8 * u32::from(integer.bytes));
    if integer.is_signed { (((number << unused) as i64) >> unused).to_string() } else { number.to_string() }
}

fn text(class: &EventClass, bytes: &mut &[u8]) -> String {
    let mut fields = class.fields.iter().map(|field| {
        let value = match &field.kind {
            Kind::Scalar(Scalar::Integer(integer) | Scalar::Enumeration(integer, _)) => number(*integer, bytes),
            Kind::Scalar(Scalar::Real(8)) => format!("{:?}", f64::from_le_bytes(take(bytes))),
            Kind::Scalar(Scalar::Boolean) => (take::<1>(bytes) == [1]).to_string(),
            Kind::Text | Kind::Sequence(_) => {
                let length = usize::from(u16::from_le_bytes(take(bytes)));
                let (these, rest) = bytes.split_at(length);
                *bytes = rest;
                if field.kind == Kind::Text {
                    format!("{:?}", std::str::from_utf8(these).expect("it is text"))
                } else {
                    format!("{these:?}")
                }
            }
            other => panic!("no {other:?} comes from tracing"),
        };
        format!(" {}={value}", field.name)
    });
    let fields: String = fields.by_ref().collect();
    format!("{}:{}{fields}", class.provider, class.name)
}
