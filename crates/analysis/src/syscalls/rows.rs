//! The counts of calls: of a run a few records, of a thread's life a row for each call.
//!
//! ```text
//! run: [read 12 µs] [read 3 µs] [futex -110]  ──count──>  life: read 2 × ... futex 1 × ...  ──over──>  totals
//! ```

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::CallLimits;
use crate::calls::{CallId, EventPosition, Figures};
use crate::{Histogram, Merge};

/// Calls of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CallRun {
    count: u8,
    /// The first ones; most runs have no more.
    few: [Record; FEW],
    /// The others.
    many: Option<Box<CallRows>>,
    /// Candidates for the slowest ones; most calls are none.
    #[allow(clippy::box_collection, reason = "notes are moved several times, and almost none has any")]
    pub(super) slow: Option<Box<Vec<SlowCall>>>,
}

/// Calls that a run keeps one by one: half of all runs have fewer, and a note is still small.
const FEW: usize = 6;

/// A call, as far as its thread's row is concerned.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) ns: u64,
    pub(super) call: CallId,
    /// 0: none.
    pub(super) errno: u16,
    pub(super) fate: CallFate,
}

/// Outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub(super) enum CallFate {
    Completed,
    BeganBefore,
    ChildReturns,
    NeverEnded,
    LostInside,
}

/// Calls of a thread's life.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CallRows {
    /// By call; in the order in which they were made first.
    pub(super) rows: Vec<(CallId, CallRow)>,
    /// Candidates for the slowest ones.
    pub(super) slow: Vec<SlowCall>,
}

/// A thread's calls of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallRow {
    pub(super) figures: Figures,
    pub(super) errors: u64,
    /// If there are any; most calls are completed.
    others: Option<Box<Others>>,
    /// If only some threads are asked for.
    pub(super) detail: Option<Box<Detail>>,
}

/// Calls that are not completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Others {
    pub(super) began_before: u64,
    pub(super) child_returns: u64,
    pub(super) never_ended: u64,
    pub(super) lost_inside: u64,
}

/// The distribution of calls of one name, and their outcomes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    pub(super) latency_ns: Histogram,
    pub(super) errors: BTreeMap<u16, u64>,
}

/// A call that took long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SlowCall {
    pub(super) ns: u64,
    /// Of two that took as long, the earlier one comes first.
    pub(super) begin: Reverse<EventPosition>,
    pub(super) end: EventPosition,
    pub(super) call: CallId,
    pub(super) ret: Option<i64>,
}

impl Default for Record {
    fn default() -> Self {
        Self { ns: 0, call: CallId::NONE, errno: 0, fate: CallFate::Completed }
    }
}

impl Record {
    fn errno(self) -> Option<u16> {
        (self.errno != 0).then_some(self.errno)
    }
}

impl CallRun {
    /// Whether there is no call.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline]
    pub(super) fn push(&mut self, limits: &CallLimits, record: Record) {
        match self.few.get_mut(usize::from(self.count)) {
            Some(place) => {
                *place = record;
                self.count += 1;
            }
            None => self.many.get_or_insert_default().count(limits, record),
        }
    }

    fn records(&self) -> &[Record] {
        // A forged state may say that there are more.
        &self.few[..usize::from(self.count).min(FEW)]
    }

    /// Adds the later calls of the same run.
    pub(super) fn extend(&mut self, limits: &CallLimits, later: Self) {
        later.records().iter().for_each(|record| self.push(limits, *record));
        if let Some(many) = later.many {
            self.many.get_or_insert_default().add(*many);
        }
        if let Some(slow) = later.slow {
            self.slow.get_or_insert_default().extend(*slow);
        }
    }
}

impl CallRows {
    /// The row of a call.
    #[inline]
    pub(super) fn row(&mut self, call: CallId) -> &mut CallRow {
        // Threads make few different calls, mostly one of the last.
        let known = self.rows.iter().rposition(|row| row.0 == call);
        let at = known.unwrap_or_else(|| {
            self.rows.push((call, CallRow::default()));
            self.rows.len() - 1
        });
        &mut self.rows[at].1
    }

    #[inline]
    pub(super) fn count(&mut self, limits: &CallLimits, record: Record) {
        let row = self.row(record.call);
        match record.fate {
            CallFate::Completed => {
                row.figures.record(record.ns);
                row.errors += u64::from(record.errno != 0);
                if limits.is_by_thread {
                    row.detail.get_or_insert_default().record(record.ns, record.errno());
                }
            }
            fate => row.others.get_or_insert_default().count(fate),
        }
    }

    /// A run was this thread's.
    #[inline]
    pub(super) fn count_run(&mut self, limits: &CallLimits, run: CallRun) {
        for record in run.records() {
            self.count(limits, *record);
        }
        if let Some(many) = run.many {
            self.add(*many);
        }
        if let Some(slow) = run.slow {
            self.slow.extend(*slow);
            if self.slow.len() > limits.slow + CANDIDATES {
                shorten(limits, &mut self.slow);
            }
        }
    }

    /// Adds others.
    pub(super) fn add(&mut self, later: Self) {
        for (call, row) in &later.rows {
            self.row(*call).add(row);
        }
        self.slow.extend(later.slow);
    }
}

impl CallRow {
    /// Calls that are not completed.
    pub(super) fn others(&self) -> Others {
        self.others.as_deref().copied().unwrap_or_default()
    }

    /// Whether there is a call.
    pub(super) fn is_any(&self) -> bool {
        self.figures.count > 0 || self.others() != Others::default()
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.figures.add(&other.figures);
        self.errors += other.errors;
        if let Some(others) = &other.others {
            self.others.get_or_insert_default().add(others);
        }
        if let Some(detail) = &other.detail {
            self.detail.get_or_insert_default().add(detail);
        }
    }
}

impl Others {
    pub(super) fn add(&mut self, other: &Self) {
        self.began_before += other.began_before;
        self.child_returns += other.child_returns;
        self.never_ended += other.never_ended;
        self.lost_inside += other.lost_inside;
    }

    pub(super) fn count(&mut self, fate: CallFate) {
        match fate {
            CallFate::Completed => {}
            CallFate::BeganBefore => self.began_before += 1,
            CallFate::ChildReturns => self.child_returns += 1,
            CallFate::NeverEnded => self.never_ended += 1,
            CallFate::LostInside => self.lost_inside += 1,
        }
    }
}

impl Detail {
    pub(super) fn add(&mut self, other: &Self) {
        self.latency_ns.merge_from(&other.latency_ns);
        for (errno, count) in &other.errors {
            *self.errors.entry(*errno).or_default() += count;
        }
    }

    #[inline]
    pub(super) fn record(&mut self, ns: u64, errno: Option<u16>) {
        self.latency_ns.record(ns);
        if let Some(errno) = errno {
            *self.errors.entry(errno).or_default() += 1;
        }
    }
}

/// Leaves the slowest.
pub(super) fn shorten<T: Ord>(limits: &CallLimits, slow: &mut Vec<T>) {
    slow.sort_unstable_by(|one, other| other.cmp(one));
    slow.truncate(limits.slow);
}

/// Room for candidates beyond those that are asked for.
pub(super) const CANDIDATES: usize = 64;
