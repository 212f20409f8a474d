//! Analyses: from events to answers, as init, step, merge and finish over parts of a trace.
//!
//! It must never know threads, files, or SQL: the caller drives it.
//!
//! ```text
//! part of time    CPU 0: events ──step──> lane ┐ notes
//!                 CPU 1: events ──step──> lane ┴──in order of time──note──> state ─┐
//! next part       CPU 0: events ...                                        state ─┴─merge─> state ─finish─> Answer
//! ```
//!
//! A *lane* holds the events that one CPU recorded (or one data stream, where CPUs are not told
//! apart). Most events concern one lane alone; they are counted there, at the speed of reading.
//! Facts that concern several lanes are *noted*, and notes of all lanes are put in order of time.
//! Where a part of the trace begins, much is unknown: the running threads, the open calls. A state
//! keeps the facts that it could not resolve, and [`Analysis::merge`] resolves them from the part
//! before.

// Scripted traces (crate `script`) are compiled into the unit tests, where this crate needs the name that others call it by.
#[cfg(test)]
extern crate self as kymo_analysis;

pub mod answer;
pub mod bind;
pub mod block;
pub(crate) mod calls;
pub mod causes;
pub mod chains;
mod comm;
pub mod count;
pub mod cpu;
pub mod declared;
mod description;
mod erased;
pub mod events;
pub mod gaps;
pub mod guess;
mod headline;
mod histogram;
mod hosts;
pub mod io;
pub mod irq;
pub mod key;
mod keyed;
pub mod mapping;
pub mod memory;
mod merge;
pub mod messages;
mod names;
pub mod pairs;
pub mod part;
pub mod periods;
pub mod project;
mod question;
mod queues;
pub mod ranking;
pub mod rates;
mod registry;
pub mod resolve;
pub mod roles;
pub mod runs;
pub mod sched;
pub mod setup;
mod shares;
mod spool;
pub mod stacks;
mod state;
pub mod states;
mod statistics;
pub mod syscalls;
#[cfg(test)]
#[path = "../../script/src/trace/mod.rs"]
mod testing;
pub mod threads;
pub mod timeline;
mod uring;
pub mod whose;
pub mod windows;

use std::collections::VecDeque;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use answer::{Answer, Bounded, Cell, CellClass, Column, ColumnRank, ERRNO, Plot, RESULT, Table};
pub use comm::Comm;
pub use description::{SupportedOptions, Unsupported};
pub use erased::{AnyAnalysis, AnyState};
pub use events::{AnalysisEvent, BoundClass, BoundRole, ColumnKind, EventRows, EventValue, FieldSlot, RoleEvent};
pub use headline::{Headline, HeadlineMaker, HeadlinePart, HeadlineTables};
pub use histogram::{Bin, Bins, Distribution, Histogram, HistogramBucket};
pub use keyed::{KeyTable, KeyedRows, TableKey, TableValue, TopRows};
pub use merge::{Merge, Weight};
pub use names::{Interner, NameId, PaddedName, Renumbering};
pub use part::{AnyPart, Feed, RowsOf, TracePart};
pub use question::Question;
pub use registry::{AnalysisEntry, AnalysisKind, analyses, find_analysis};
pub use roles::{EventRole, FieldIndex};
pub use setup::{BINS, Setup, Wishes};
pub use spool::{MemorySpool, Room, Spool, SpoolBlock, SpoolError, SpoolErrorKind};
pub use state::{StateError, decode, encode};
pub use statistics::in_series;
pub use windows::Windows;

/// How a trace may be cut for an analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartShape {
    /// Runs of packets of one lane: lanes have nothing to do with each other.
    Lane,
    /// All lanes between two instants.
    Slice,
}

/// An analysis and its version: states of another version are of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnalysisIdentity {
    /// Its name.
    pub name: &'static str,
    /// Goes up whenever states change.
    pub version: u32,
}

/// The roles and fields that an analysis needs.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Roles, each with the fields that are asked for.
    pub roles: Vec<(EventRole, Vec<FieldIndex>)>,
    /// Of [`roles::CONTEXT`].
    pub context: Vec<FieldIndex>,
    /// Paths of the filter language, for events of all roles: [`BoundClass::extra`].
    pub extra: Vec<kymo_filter::NamePath>,
    /// Events of all classes, also of those that have no role.
    pub all: bool,
}

impl Needs {
    /// Whether events without any role are needed: an analysis that names no role gets all.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.all || self.roles.is_empty()
    }
}

/// The known facts about a lane before it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneFacts {
    /// The machine, numbered: threads of one are not those of another.
    pub host: u16,
    /// The machine's name, if it has one.
    pub host_name: Option<String>,
    /// The CPU, if the lane is one CPU's.
    pub cpu: Option<u32>,
    /// The name of the thread whose lane it is, if packets say so.
    pub name: Option<String>,
    /// Neither packets nor events say which CPU they are of: they are taken for those of one.
    pub names_no_cpu: bool,
    /// Though it names none, its switches between threads are of several CPUs.
    pub mixes_cpus: bool,
    /// Version of the machine's Linux kernel, if it is known.
    pub kernel: Option<(u32, u32)>,
    /// Places of its data streams among all.
    pub streams: Vec<usize>,
    /// When its first packet begins and its last one ends, in nanoseconds, within the requested
    /// time; `None` where packets do not say.
    pub span_ns: Option<(i64, i64)>,
    /// Spans of time in which events that are asked for may be missing.
    pub holes: Windows,
    /// How many events are lost, if all data streams that lost some say so.
    pub lost: Option<u64>,
    /// Times of different CPUs may be so many nanoseconds apart at one instant, as the recorder has measured;
    /// 0: it has not.
    pub apart_ns: u32,
}

/// The notes of lanes for the others.
#[derive(Debug)]
pub struct LaneNotes<N> {
    /// When; never less than the one before.
    pub times: Vec<i64>,
    /// The notes.
    pub notes: VecDeque<N>,
}

impl<N> Default for LaneNotes<N> {
    fn default() -> Self {
        Self { times: Vec::new(), notes: VecDeque::new() }
    }
}

impl<N> LaneNotes<N> {
    /// Notes something; times must not decrease, so that it is usually the time of the event that is being seen.
    pub fn push(&mut self, time: i64, note: N) {
        debug_assert!(self.times.last().is_none_or(|&last| last <= time), "notes are made in the order of time");
        self.times.push(time);
        self.notes.push_back(note);
    }
}

/// The remaining work of a merge.
pub trait Later<S>: Send {
    /// Does it, once.
    fn run(&mut self);

    /// Gives back the result.
    fn end(self: Box<Self>, state: &mut S);
}

/// From events to an answer.
///
/// The same parts in another order of reading, cut elsewhere, give the same answer: [`Analysis::merge`] is associative,
/// and merging the parts of a trace from left to right equals reading it as one part.
pub trait Analysis: Sync {
    /// The state behind a part of the trace.
    type State: Send + Serialize + DeserializeOwned + 'static;
    /// The state while a lane is read, in one part of the trace.
    type Lane<'a>: Send
    where
        Self: 'a;
    /// A note of a lane for the others.
    type Note: Send;

    /// Its name and version.
    fn identity(&self) -> AnalysisIdentity;

    /// How a trace may be cut for it.
    fn shape(&self) -> PartShape;

    /// Before anything was seen.
    fn init(&self) -> Self::State;

    /// A part of lane number `lane` begins.
    fn enter(&self, lane: usize) -> Self::Lane<'_>;

    /// An event of the lane; events of a lane come in the order of time.
    fn step(&self, lane: &mut Self::Lane<'_>, event: &AnalysisEvent<'_>, notes: &mut LaneNotes<Self::Note>);

    /// The events of a batch of the lane, with the classes that they are of and the bytes of the
    /// window that they were read from: the same as [`Analysis::step`] with one after the other,
    /// for analyses that can do that faster.
    fn steps(
        &self,
        lane: &mut Self::Lane<'_>,
        (rows, classes, bytes): (&EventRows, &[BoundClass], &[u8]),
        notes: &mut LaneNotes<Self::Note>,
    ) {
        for row in 0..rows.times.len() {
            self.step(lane, &rows.event(row, classes, bytes), notes);
        }
    }

    /// A note of lane number `lane`; notes come in the order of time, those of one time in the order of lanes.
    fn note(&self, state: &mut Self::State, lane: usize, time: i64, note: Self::Note);

    /// The part of lane number `lane` ends. All notes have come.
    fn leave(&self, state: &mut Self::State, lane: usize, end: Self::Lane<'_>);

    /// Adds the part that follows: of each lane the part behind those in `left`, or the first one.
    fn merge(&self, left: &mut Self::State, right: Self::State);

    /// Whether a part is best added to the state of all parts before it: states of neighbors in the
    /// middle of the trace have little to tell each other.
    fn merges_in_order(&self) -> bool {
        false
    }

    /// Of analyses that merge in order: the same as [`Analysis::merge`], except for work that needs
    /// nothing else that is merged. Any thread may do that meanwhile; it is given back in order,
    /// before anything is asked of `left` but to merge the parts that follow.
    fn merge_later<'a>(
        &'a self,
        left: &mut Self::State,
        right: Self::State,
    ) -> Option<Box<dyn Later<Self::State> + 'a>> {
        self.merge(left, right);
        None
    }

    /// Nothing comes before this state: unknown facts from before stay unknown. Said of the first
    /// part of a trace before its first event, so that it does not remember in vain; may be said at
    /// any time, and answers are the same if it is not.
    fn anchor(&self, _state: &mut Self::State) {}

    /// A period ends at `at`, and another one begins: the counts are forgotten, open intervals go
    /// on. False: this analysis cannot do that, and begins anew without knowing the state before.
    fn forget(&self, _state: &mut Self::State, _at: i64) -> bool {
        false
    }

    /// The state is of a part by itself, and will be merged elsewhere: work that needs nothing else
    /// of the trace is done, so that there is less to send, and to do there. Only a state that is
    /// the first part, or anchored, is merged with such a state then; and if [`Analysis::is_odd`]
    /// afterwards, with those that were not condensed instead.
    fn condense(&self, _state: &mut Self::State) {}

    /// Whether a state is useless: it comes of condensed ones, and the facts of a part alone
    /// contradict the state before.
    fn is_odd(&self, _state: &Self::State) -> bool {
        false
    }

    /// Whether a state has the places that merging and finishing rely on: a lane for each of this analysis' lanes, numbers
    /// that point into its tables. States from elsewhere are asked that before anything else; by default they have none.
    fn fits(&self, _state: &Self::State) -> bool {
        true
    }

    /// The answer so far.
    ///
    /// # Errors
    ///
    /// Rows that did not fit into memory cannot be put aside, or do not come back: see [`Room`].
    fn finish(&self, state: &Self::State) -> Result<Answer, SpoolError>;
}
