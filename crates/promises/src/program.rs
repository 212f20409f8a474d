//! A traced program with memory that other code damages: its actions there are those of the
//! tracer's own lines.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

use kymo_lane::{ClockSource, Identity, Lane, MemoryLayout, ProgramMemory, ProgramSide, WriterThread, contexts};

use crate::random::RandomNumbers;

/// How large the program's memory is.
pub(crate) const LAYOUT: MemoryLayout = MemoryLayout {
    events: 64,
    lanes: 8,
    sub_buffers: 16,
    sub_buffer_bytes: 1024,
    registry_bytes: 8 << 10,
    filter_bytes: 4 << 10,
    object_bytes: 1 << 20,
};

/// Its definitions of events and of the fields that they carry; one is of no use.
const EVENTS: [&[u8]; 6] = [
    b"event a:small\nlevel 6\nfield u32 number\n",
    b"event a:text\nsource a.c:7\nfield text what\nfield u8 x\n",
    b"event b:sequence\nrole begin\nfield sequence u16 some\nfield enum u8(idle=0, busy) state\n",
    b"event b:large\nfield array 100 x8 bytes\nfield f64 real\n",
    b"event c:none\n",
    b"event broken\n",
];
const CONTEXT: &[u8] = b"context request\nfield u32 request\n";

/// A file as memory.
#[derive(Debug)]
pub(crate) struct InFile(pub(crate) File);

impl InFile {
    /// Whether the file is not cut off: a signal would have ended it.
    pub(crate) fn is_whole(&self) -> bool {
        self.0.metadata().is_ok_and(|found| found.len() >= LAYOUT.bytes())
    }

    fn word(&self, at: u64) -> u64 {
        let mut word = [0; 8];
        let _ = self.0.read_at(&mut word, at);
        u64::from_le_bytes(word)
    }
}

impl ProgramMemory for InFile {
    fn load(&self, at: u64, _: Ordering) -> u64 {
        self.word(at)
    }

    fn store(&self, at: u64, value: u64, _: Ordering) {
        self.put(at, &value.to_le_bytes());
    }

    fn compare_exchange(&self, at: u64, old: u64, new: u64) -> bool {
        let is_old = self.word(at) == old;
        if is_old {
            self.put(at, &new.to_le_bytes());
        }
        is_old
    }

    fn add(&self, at: u64, more: u64) -> u64 {
        let was = self.word(at);
        self.put(at, &was.wrapping_add(more).to_le_bytes());
        was
    }

    fn byte(&self, at: u64) -> u8 {
        self.word(at) as u8
    }

    fn clear(&self, at: u64) {
        self.put(at, &[0]);
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        self.0.write_all_at(bytes, at).expect("there is room");
    }

    fn fence(&self, _: Ordering) {}

    fn reserve(&self, _: u64, _: u64) -> bool {
        true
    }

    fn ring(&self) -> bool {
        false
    }
}

/// A program that runs.
pub(crate) struct RunningProgram<'m> {
    memory: &'m InFile,
    program: ProgramSide<'m, InFile>,
    lanes: Vec<Lane>,
    ticks: u64,
}

impl<'m> RunningProgram<'m> {
    /// Begins: three threads, one of which is in a handler too.
    pub(crate) fn begin(memory: &'m InFile, ticks: u64) -> Self {
        let identity = Identity {
            pid: 7,
            started: 9,
            user: 1,
            clock: ClockSource::Counter,
            path: b"/a/program",
            ..Identity::default()
        };
        let program = ProgramSide::begin(memory, LAYOUT, &identity).expect("there is room");
        for event in EVENTS {
            program.define(event).expect("there is room");
        }
        assert!(program.define_context(0, CONTEXT), "there is room");
        program.show();
        let thread = |tid, level| WriterThread { tid, level, name: *b"thread\0\0\0\0\0\0\0\0\0\0" };
        let lanes = [(11, 0), (11, 1), (12, 0), (13, 0)];
        let lanes = lanes.map(|(tid, level)| program.lane(thread(tid, level)).expect("there are some"));
        Self { memory, program, lanes: lanes.into(), ticks }
    }

    /// Records an event; `Err`: it was lost, and counted.
    pub(crate) fn record(&mut self, random: &mut RandomNumbers) -> Result<(), ()> {
        if !self.memory.is_whole() {
            return Err(());
        }
        let (lane, event) = (random.below(self.lanes.len()), random.below(5));
        let carried = self.program.contexts();
        let mut bytes = (event as u16).to_le_bytes().to_vec();
        bytes.extend([0; 4]);
        carry(&mut bytes, carried, random);
        match event {
            0 => bytes.extend((random.any() as u32).to_le_bytes()),
            1 => {
                let length = random.below(40);
                bytes.extend((length as u16).to_le_bytes());
                bytes.extend(random.bytes(length + 1));
            }
            2 => {
                let count = random.below(9);
                bytes.extend((count as u16).to_le_bytes());
                bytes.extend(random.bytes(2 * count));
                bytes.push(random.below(3) as u8);
            }
            3 => bytes.extend(random.bytes(108)),
            _ => {}
        }
        self.ticks += 1 + random.below(1000) as u64;
        let ticks = self.ticks;
        let lane = &mut self.lanes[lane];
        let slot = self.program.room(lane, carried, bytes.len() as u64, || ticks).ok_or(())?;
        bytes[2..6].copy_from_slice(&(slot.ticks as u32).to_le_bytes());
        self.program.put(slot.at, &bytes);
        self.program.publish(lane, slot);
        Ok(())
    }

    /// A thread ends.
    pub(crate) fn leave(&mut self) {
        if self.lanes.len() > 1
            && let Some(lane) = self.lanes.pop()
        {
            self.program.leave(lane);
        }
    }
}

/// The contexts of events that the recorder wants.
fn carry(bytes: &mut Vec<u8>, carried: u64, random: &mut RandomNumbers) {
    for (bit, size) in
        [(contexts::CPU, 2), (contexts::PID, 4), (contexts::TID, 4), (contexts::NAME, 16), (contexts::IP, 8)]
    {
        if carried & bit != 0 {
            bytes.extend(random.bytes(size));
        }
    }
    if carried & contexts::STACK != 0 {
        let count = random.below(4);
        bytes.extend((count as u16).to_le_bytes());
        bytes.extend(random.bytes(8 * count));
    }
    if carried & contexts::FIRST_OWN != 0 {
        bytes.extend(random.bytes(4));
    }
}
