//! A program that lies: for any damage to its memory, at any time, the recorder goes on, and its
//! traces can be read.
//!
//! ```text
//! bytes ── choices ──┬── the program records, as the tracer does ────────┐
//!                    ├── its memory: words, bytes, cut off, as it was ───┤── a file ── Program, Output ── traces ── read: no error,
//!                    └── the recorder drains, copies, skips, is killed ──┘                                          everything counted
//! ```

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use kymo_lane::{OverflowMode, RecordingSettings};
use kymo_recorder::clock::TickSource;
use kymo_recorder::program::{DrainTiming, Program};
use kymo_recorder::repair;
use kymo_recorder::trace::{CtfVersion, Output, OutputOptions, SingleTrace};

use crate::program::{InFile, LAYOUT, RunningProgram};
use crate::random::RandomNumbers;
use crate::recorded::{RecordingStage, TraceReading};

/// Counts of the tries.
#[derive(Clone, Copy, Debug, Default)]
pub struct TryCounts {
    /// Events that are in traces.
    pub events: u64,
    /// Bytes that were none.
    pub unreadable: u64,
    /// Whether all of it was damaged so that it is no program.
    pub is_refused: bool,
}

/// The promise for choices of damage to a program and its recorder.
///
/// # Panics
///
/// If it is broken, or a temporary folder cannot be written.
pub fn hold(random: &mut RandomNumbers, stage: &RecordingStage) -> TryCounts {
    let folder = tempfile::tempdir_in(stage.path()).expect("there is room");
    let path = folder.path().join("0123456789abcdef.ctl");
    let file = File::options().read(true).write(true).create_new(true).open(&path).expect("there is room");
    file.set_len(LAYOUT.bytes()).expect("there is room");
    let memory = InFile(file);
    let clock = stage.clock();
    let earliest = clock.now().saturating_sub(1 << 30);
    let mut running = RunningProgram::begin(&memory, earliest);
    for _ in 0..random.below(120) {
        let _ = running.record(random);
    }
    let format = if random.below(2) == 0 { CtfVersion::Ctf18 } else { CtfVersion::Ctf2 };
    let mut damage = MemoryDamage::new(&memory);
    let mut recorder = Recorder { folder: folder.path(), path: &path, stage, clock, earliest, format, traces: 0 };
    let mut outcome = TryCounts::default();
    let mut recording = None;
    for _ in 0..random.below(40) {
        match random.below(4) {
            0 | 1 => damage.some(random),
            2 => {
                for _ in 0..random.below(30) {
                    let _ = running.record(random);
                }
                if random.below(8) == 0 && memory.is_whole() {
                    running.leave();
                }
            }
            _ => {
                let current = recording.take().or_else(|| recorder.begin(None));
                recording = current.and_then(|current| recorder.step(current, random, &mut outcome));
            }
        }
    }
    match recording.or_else(|| recorder.begin(None)) {
        Some(recording) => recorder.finish(recording, &mut outcome),
        None => outcome.is_refused = true,
    }
    outcome
}

/// Damage to the memory behind the program's back.
struct MemoryDamage<'m> {
    memory: &'m InFile,
    /// How it was once.
    before: Vec<u8>,
}

impl<'m> MemoryDamage<'m> {
    fn new(memory: &'m InFile) -> Self {
        let mut this = Self { memory, before: Vec::new() };
        this.remember();
        this
    }

    fn remember(&mut self) {
        // Behind that, nothing is read but by users' programs.
        self.before = vec![0; LAYOUT.objects() as usize];
        let mut at = 0;
        while let Ok(count) = self.memory.0.read_at(&mut self.before[at..], at as u64)
            && count > 0
        {
            at += count;
        }
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        if self.memory.0.metadata().is_ok_and(|found| found.len() >= at + bytes.len() as u64) {
            self.memory.0.write_all_at(bytes, at).expect("there is room");
        }
    }

    fn some(&mut self, random: &mut RandomNumbers) {
        match random.below(12) {
            0..5 => {
                let at = place(random) & !7;
                let value = self.value(at, random);
                self.put(at, &value.to_le_bytes());
            }
            5 | 6 => {
                let (at, count) = (place(random), 1 + random.below(12));
                self.put(at, &random.bytes(count));
            }
            7 => self.remember(),
            8 => {
                // A sub-buffer and its descriptor, as it was.
                let (from, to) = (random.below(16), random.below(16));
                let to = if random.below(2) == 0 { from } else { to };
                self.again(descriptor(from), descriptor(to), 128);
                self.again(LAYOUT.sub_buffer(from as u32), LAYOUT.sub_buffer(to as u32), 1024);
            }
            9 => {
                let at = place(random) & !4095;
                self.again(at, at, 4096);
            }
            10 => {
                // Cut off, and larger again: zeros are behind that.
                let bytes = [0, 100, 4096, LAYOUT.sub_buffer(0), LAYOUT.sub_buffer(3) + 5, LAYOUT.bytes() - 1];
                let bytes = bytes[random.below(bytes.len())];
                self.memory.0.set_len(bytes).expect("there is room");
                if random.below(3) > 0 {
                    self.memory.0.set_len(LAYOUT.bytes()).expect("there is room");
                }
            }
            _ => {
                let at = place(random) & !7;
                let other = place(random) & !7;
                self.again(other, at, 8);
            }
        }
    }

    fn again(&self, from: u64, to: u64, bytes: usize) {
        let from = from as usize;
        self.put(to, &self.before[from..(from + bytes).min(self.before.len())]);
    }

    /// The new value of a word: an end of the range, any, small, or a little more or less than it
    /// was.
    fn value(&self, at: u64, random: &mut RandomNumbers) -> u64 {
        let was = u64::from_le_bytes(std::array::from_fn(|byte| self.before[at as usize + byte]));
        match random.below(8) {
            0 => 0,
            1 => u64::MAX,
            2 => random.any() & 0xffff,
            3 => random.any() << random.below(64),
            4 => was.wrapping_add(1 << random.below(64)),
            5 => was.wrapping_sub(1 << random.below(64)),
            6 => was ^ 1 << random.below(64),
            _ => was.wrapping_add(random.below(64) as u64).wrapping_sub(32),
        }
    }
}

/// The place of damage: the probability of regions follows the worth of their contents.
fn place(random: &mut RandomNumbers) -> u64 {
    let (begin, bytes) = match random.below(10) {
        0 => (0, 600),
        1 => (LAYOUT.control(0), 64),
        2 => (LAYOUT.inherited_bytes(), 8 * 64),
        3..6 => (descriptor(0), 16 * 128),
        6 => (descriptor(0) + 4096, 16),
        7 => (LAYOUT.filters() - 8192, 8192),
        8 => (LAYOUT.filters() + 4096, 700),
        _ => (LAYOUT.sub_buffer(0), 16 * 1024),
    };
    begin + random.below(bytes - 8) as u64
}

/// The descriptor of a sub-buffer: behind the lanes, which take one page.
fn descriptor(number: usize) -> u64 {
    LAYOUT.inherited_bytes() + 4096 + 128 * number as u64
}

/// A program that is recorded, and where.
struct RecordedProgram {
    program: Program,
    output: Output,
    trace: PathBuf,
}

struct Recorder<'a> {
    folder: &'a Path,
    path: &'a Path,
    stage: &'a RecordingStage,
    clock: TickSource,
    earliest: u64,
    format: CtfVersion,
    traces: u32,
}

impl Recorder<'_> {
    /// Begins, behind the remains of an earlier recorder in a trace; `None`: it is no program's
    /// memory any more.
    fn begin(&mut self, left: Option<&Path>) -> Option<RecordedProgram> {
        let repaired = left.map(|left| repair(left).expect("it can be repaired"));
        let mut program = Program::open(self.path, self.stage.user()).ok()?;
        self.traces += 1;
        let trace = self.folder.join(format!("trace-{}", self.traces));
        let options = OutputOptions { format: self.format, ..OutputOptions::default() };
        let mut output = Output::create(&trace, options, &mut self.clock, self.earliest).expect("there is room");
        let progress = repaired.as_ref().and_then(|all| all.programs.get(&program.identity().key));
        progress.into_iter().for_each(|progress| program.resume(progress));
        let _ = program.definitions();
        output.program(program.known());
        Some(RecordedProgram { program, output, trace })
    }

    /// Does one step; returns the recording if it goes on.
    fn step(
        &mut self,
        mut this: RecordedProgram,
        random: &mut RandomNumbers,
        outcome: &mut TryCounts,
    ) -> Option<RecordedProgram> {
        let patience = [DrainTiming::Wait, DrainTiming::Now, DrainTiming::Now, DrainTiming::Last][random.below(4)];
        let RecordedProgram { program, output, trace } = &mut this;
        match random.below(16) {
            0..6 => {
                let drained = program.drain(patience, &mut SingleTrace(output)).unwrap_or_default();
                let most = u64::from(LAYOUT.sub_buffers * LAYOUT.sub_buffer_bytes);
                assert!(drained.bytes <= most, "{drained:?}: there is no more than {most}");
                if drained.discarded > 0 {
                    output.lost(program.known(), drained.discarded, drained.discarded_ever);
                }
            }
            6 => drop(program.snapshot(&mut SingleTrace(output))),
            7 => drop(program.past().and_then(|past| program.skip(&past))),
            8 => drop(program.reap(true, &mut SingleTrace(output))),
            9 => drop(program.end(self.clock.now(), &mut SingleTrace(output))),
            10 => drop(program.end_one(self.earliest + random.any(), &mut SingleTrace(output))),
            11 => {
                let _ = program.definitions();
                let _ = program.switch(random.below(80) as u16, 1);
                let contexts = [0, 1, 0x3f, 0x1_0001, random.any()][random.below(5)];
                let mode =
                    if random.below(2) == 0 { OverflowMode::DiscardNewest } else { OverflowMode::OverwriteOldest };
                let (lane, pool) = (random.below(20) as u32, random.below(20) as u32);
                let _ = program.say(&RecordingSettings { mode, lane, pool, contexts });
            }
            12 => output.beat(&mut self.clock),
            13 => output.choose_again(),
            14 => output.forget(program.identity().key),
            _ => {
                let trace = trace.clone();
                // It is killed: nothing is finished. Its data is a trace that another one
                // continues.
                let written = this.output.tally().clone();
                drop(this);
                let next = self.begin(Some(&trace));
                if next.is_none() {
                    drop(repair(&trace).expect("it can be repaired"));
                }
                outcome.events += written.events;
                let read = TraceReading::read(&trace);
                assert_eq!(read.events, written.events + written.own, "{written:?}");
                return next;
            }
        }
        Some(this)
    }

    /// Ends it as it should be ended; its trace is read.
    fn finish(&mut self, this: RecordedProgram, outcome: &mut TryCounts) {
        let RecordedProgram { mut program, mut output, trace } = this;
        let _ = program.drain(DrainTiming::Last, &mut SingleTrace(&mut output));
        let _ = program.end(self.clock.now(), &mut SingleTrace(&mut output));
        let tally = output.finish(&mut self.clock).expect("there is room");
        outcome.events += tally.events;
        outcome.unreadable += tally.unreadable;
        TraceReading::read(&trace).is_what(&tally);
    }
}
