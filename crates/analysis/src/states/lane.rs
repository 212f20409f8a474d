//! A lane while it is read: calls and interrupts that begin and end between two switches of a CPU
//! are known here.
//!
//! ```text
//! switch to 7     exit read   [open] [write]   entry futex    switch away from 7
//!                 └ first ┘   └ runs here ─┘   └── open ──┘   └─> one note with both
//! ```
//!
//! Before its first switch in a part, a CPU runs the thread that this switch tells; if there is none, the part before
//! knows.

use serde::{Deserialize, Serialize};

use super::attributes::DOUBT;
use crate::Comm;

/// Intervals that begin and end one after the other: calls of a thread, interrupts of a CPU.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct IntervalSequence {
    /// The first thing that was seen of it.
    pub(super) first: Option<(i64, Edge)>,
    /// Completed runs: begin, end and value.
    pub(super) done: Vec<(i64, i64, u64)>,
    /// The last run, if it has not ended.
    pub(super) open: Option<(i64, u64)>,
}

/// A begin or an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edge {
    /// Something begins.
    Begin,
    /// One ends; its value, if the event says it.
    End(Option<u64>),
}

impl IntervalSequence {
    pub(super) fn begin(&mut self, time: i64, what: u64) {
        self.first.get_or_insert((time, Edge::Begin));
        if let Some((begin, before)) = self.open.replace((time, what)) {
            self.done.push((begin, time, before | DOUBT));
        }
    }

    pub(super) fn end(&mut self, time: i64, what: Option<u64>) {
        self.first.get_or_insert((time, Edge::End(what)));
        if let Some((begin, before)) = self.open.take() {
            let is_it = what.is_none_or(|what| what == before);
            self.done.push((begin, time, before | if is_it { 0 } else { DOUBT }));
        }
    }

    /// Adds the part that follows.
    pub(super) fn then(&mut self, later: Self) {
        match later.first {
            None => return,
            Some((time, Edge::End(what))) => self.end(time, what),
            Some((time, Edge::Begin)) => {
                self.first.get_or_insert((time, Edge::Begin));
                self.done.extend(self.open.take().map(|(begin, before)| (begin, time, before | DOUBT)));
            }
        }
        self.done.extend(later.done);
        self.open = later.open;
    }
}

/// A CPU in a part of a lane.
#[derive(Debug, Default)]
pub(super) struct StatesCpu {
    pub(super) cpu: u32,
    /// The thread that it runs, since its last switch.
    pub(super) now: Option<i32>,
    /// The same as events say since then, if they are asked.
    pub(super) said: Option<i32>,
    /// The thread that it ran before its first switch.
    pub(super) head: Option<i32>,
    pub(super) calls: IntervalSequence,
    pub(super) irqs: IntervalSequence,
    pub(super) softirqs: IntervalSequence,
}

/// The notes about threads.
#[derive(Debug)]
pub enum StatesNote {
    /// A CPU changes threads.
    Switch(StatesSwitch),
    /// A thread can run.
    Wake(i32, Comm),
    /// A thread is made, of a process, by another one.
    Fork(StatesThreadFacts, Option<(i32, i32)>),
    /// A thread is known by its process and name.
    Known(StatesThreadFacts),
}

/// A CPU changes threads.
#[derive(Debug)]
pub struct StatesSwitch {
    pub(super) cpu: u32,
    pub(super) prev: i32,
    pub(super) next: i32,
    /// The previous thread's state from now on; `None`: it is dead.
    pub(super) away: Option<u64>,
    pub(super) names: [Comm; 2],
    /// See [`IntervalSequence`], of calls.
    pub(super) first: Option<(i64, Edge)>,
    pub(super) open: Option<(i64, u64)>,
}

/// A thread with the facts that an event tells about it.
#[derive(Debug)]
pub struct StatesThreadFacts {
    pub(super) tid: i32,
    pub(super) pid: Option<i32>,
    pub(super) comm: Comm,
}
