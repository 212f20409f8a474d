//! What a program has recorded, as text: a recorder that reads as real ones do.

#![allow(dead_code, reason = "tests and an example need some of it each")]

#[path = "../../../../recorder/src/program/control.rs"]
mod control;

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use kymo_lane::{DefinitionPlace, MemoryLayout, RecorderSide};

use control::Control;

/// A program's memory, and how far it was read.
pub struct Read {
    pub recorder: RecorderSide<Control>,
    last: Option<DefinitionPlace>,
    classes: HashMap<u16, Class>,
    /// By lane: the next sub-buffer, and how much of it was read.
    lanes: HashMap<u16, (u64, u32)>,
    epoch: u64,
}

/// What a definition says: a name, and types and names of fields.
struct Class {
    name: String,
    fields: Vec<(String, String)>,
}

impl Class {
    fn new(text: &str) -> Self {
        let (first, lines) = text.split_once('\n').expect("it has lines");
        let fields = lines.lines().filter_map(|line| line.strip_prefix("field "));
        let fields = fields.map(|field| field.rsplit_once(' ').expect("a type and a name"));
        let fields = fields.map(|(kind, name)| (kind.to_owned(), name.to_owned())).collect();
        Self { name: first.strip_prefix("event ").expect("it is an event").to_owned(), fields }
    }
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
        let view = Control(file);
        let layout = MemoryLayout::read(&view, bytes).expect("it can be read").expect("it is a program's");
        let recorder = RecorderSide::new(view, layout);
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
            self.classes.insert(next.id, Class::new(&said));
            all.push((next.id, said));
            self.last = Some(next);
        }
        all
    }

    /// Switches all events of a name that are there.
    pub fn switch(&mut self, name: &str, to: u8) {
        self.defined();
        let all: Vec<_> = self
            .classes
            .iter()
            .filter(|(_, class)| class.name.split_once(':').is_some_and(|of| of.1 == name))
            .collect();
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

fn text(class: &Class, bytes: &mut &[u8]) -> String {
    let fields = class.fields.iter().map(|(kind, name)| format!(" {name}={}", value(kind, bytes)));
    let fields: String = fields.collect();
    format!("{}{fields}", class.name)
}

fn value(kind: &str, bytes: &mut &[u8]) -> String {
    match kind {
        "u64" | "x64" | "pointer" => u64::from_le_bytes(take(bytes)).to_string(),
        "i64" => i64::from_le_bytes(take(bytes)).to_string(),
        "u32" => u32::from_le_bytes(take(bytes)).to_string(),
        "i32" => i32::from_le_bytes(take(bytes)).to_string(),
        "f64" => format!("{:?}", f64::from_le_bytes(take(bytes))),
        "bool" => (take::<1>(bytes) == [1]).to_string(),
        "text" | "sequence u8" => {
            let length = usize::from(u16::from_le_bytes(take(bytes)));
            let (these, rest) = bytes.split_at(length);
            *bytes = rest;
            if kind == "text" {
                format!("{:?}", std::str::from_utf8(these).expect("it is text"))
            } else {
                format!("{these:?}")
            }
        }
        _ if kind.starts_with("enum u8(") => take::<1>(bytes)[0].to_string(),
        _ if kind.starts_with("enum u16(") => u16::from_le_bytes(take(bytes)).to_string(),
        other => panic!("nothing here has {other}"),
    }
}
