//! A trace of a session: runs of lanes become packets, and what they consist of becomes metadata.
//!
//! ```text
//! Run ── choose ── which events of it ── name ── ids of the trace ──> packet ──> lane_N (and index/lane_N.idx)
//!                                           └ the first time: metadata
//! ```
//!
//! All programs of a trace have one clock; those of another one go to another trace.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::{Clock, Facts};
use crate::definition::EventClass;
use crate::program::{Identity, Known};
use crate::run::{End, Run};

/// How a trace is written.
#[derive(Clone, Debug, Default)]
pub struct OutputOptions {
    /// Which version of CTF.
    pub format: Format,
    /// A chunk ends when it has so many bytes, and the next begins: each is a trace of its own, in a folder of its own.
    pub chunk_bytes: Option<u64>,
    /// A chunk ends after so long.
    pub chunk_time: Option<Duration>,
    /// The oldest chunks are deleted when all have more bytes than this.
    pub ring_bytes: Option<u64>,
    /// What else to say of where it was recorded; the rest is known.
    pub environment: Vec<(String, String)>,
}

/// A version of CTF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// 1.8, which every tool reads.
    #[default]
    Ctf18,
    /// 2.
    Ctf2,
}

/// What becomes of events of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// None is wanted.
    Drop,
    /// All are.
    Keep,
    /// It depends: [`Choose::passes`].
    Ask,
}

/// Which events a session wants.
pub trait Choose {
    /// Asked once for each class of each program, and again after [`Output::choose_again`].
    fn choose(&mut self, program: &Identity, class: &EventClass) -> Choice;

    /// Asked for each event of classes that are [`Choice::Ask`]: its contexts and its fields, as they are.
    fn passes(&mut self, program: &Identity, class: &EventClass, contexts: &[u8], fields: &[u8]) -> bool;
}

/// All of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Everything;

impl Choose for Everything {
    fn choose(&mut self, _: &Identity, _: &EventClass) -> Choice {
        Choice::Keep
    }

    fn passes(&mut self, _: &Identity, _: &EventClass, _: &[u8], _: &[u8]) -> bool {
        true
    }
}

/// How far a trace is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events that are in files.
    pub events: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes of packets.
    pub bytes: u64,
    /// Events that are known to be lost, and counted in the trace: by programs without room, by files that could not be written.
    pub discarded: u64,
    /// Of those, the ones that could not be written.
    pub unwritten: u64,
    /// Sub-buffers that programs have overwritten before they were read: nobody knows how many events that is.
    pub missing: u64,
    /// Bytes of programs that are no events.
    pub unreadable: u64,
    /// Files of lanes.
    pub files: u64,
    /// Chunks that were begun, and that were deleted.
    pub chunks: u64,
    /// See [`Tally::chunks`].
    pub deleted: u64,
}

/// A trace that is written.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    options: OutputOptions,
    facts: Facts,
    tally: Tally,
}

/// Why a trace is not written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {error}", path = .path.display())]
pub struct Error {
    /// The file or folder.
    pub path: PathBuf,
    /// What the system says.
    pub error: std::io::Error,
}

impl Output {
    /// Begins a trace in a folder, which is made. Events before `earliest` cannot be in it.
    ///
    /// # Errors
    ///
    /// The folder cannot be made, or has a trace.
    pub fn create(path: &Path, options: OutputOptions, clock: &mut Clock, earliest: u64) -> Result<Self, Error> {
        std::fs::create_dir_all(path).map_err(|error| Error { path: path.to_owned(), error })?;
        Ok(Self { path: path.to_owned(), options, facts: clock.facts(earliest), tally: Tally::default() })
    }

    /// Takes a run of a program's lane. What cannot be written is counted; [`Output::error`] says why.
    pub fn take(&mut self, program: &Known, run: &Run<'_>, choose: &mut dyn Choose) {
        let _ = (program, run, choose, &self.path, &self.options, self.facts);
    }

    /// A lane ends, or the session does: says what it has lost.
    pub fn end(&mut self, program: &Known, end: &End) {
        let _ = (program, end);
    }

    /// A program is there: its name, path and numbers are in the trace from now on.
    pub fn program(&mut self, program: &Known) {
        let _ = program;
    }

    /// Events that a program has lost where no lane could count them.
    pub fn lost(&mut self, program: &Known, events: u64) {
        let _ = program;
        self.tally.discarded += events;
    }

    /// To be called about ten times in a second: samples of the clock, rotation. With `is_followed`, lanes in which nothing happens say so.
    pub fn beat(&mut self, clock: &mut Clock, is_followed: bool) {
        let _ = (clock, is_followed);
    }

    /// What is wanted has changed.
    pub fn choose_again(&mut self) {}

    /// How far it is.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Why something could not be written, last; `None`: everything could since.
    #[must_use]
    pub fn error(&self) -> Option<&Error> {
        None
    }

    /// Ends the trace: all files are whole, and the clock is said as well as it is known now.
    ///
    /// # Errors
    ///
    /// Something could not be written.
    pub fn finish(self, clock: &mut Clock) -> Result<Tally, Error> {
        let _ = clock;
        Ok(self.tally)
    }
}
