//! Calls of threads into the kernel: entries and exits, matched on every CPU by itself where that is enough.
//!
//! ```text
//! CPU 0  ──┤ run of 5: [read] [open] futex… ├──┤ run of 8 ├──       […] within the run: counted there, no note
//! CPU 1  ─────────────────────────────────┤ run of 5: …futex [write] read… ├──
//!                                          one note at each run's end: what it asks for, what it leaves open
//! ```
//!
//! The thread of a run is the one that its end names (`prev_tid`). So a part of a trace knows the
//! threads of all runs that end in it, and the open calls at the part's end wait on their CPU. A
//! run that began before the part is a *head*: the part before says which life of its thread it
//! belongs to. The meaning of a run, or a sequence of runs, for its surroundings is small: a
//! [`CallSummary`].
//!
//! ```text
//! sequence      asks for                    leaves open
//! …futex [write] read…     exit of futex    read
//! ```
//!
//! Lives of a thread number are told apart by *borders* (deaths, forks), which have places in time; so that everything
//! can be given to its life whenever it becomes known. Traces without switches, where events say their thread, make a note of
//! every entry and every exit.

mod figures;
mod lane;
mod lives;
mod merging;
mod names;
pub(crate) mod report;
mod state;
mod who;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::roles::{EventRole, TID};
use crate::threads::ThreadKey;
use crate::windows::Windows;
use crate::{FieldSlot, LaneFacts, Setup};

pub use figures::Figures;
pub(crate) use lane::unknown_key;
pub use lane::{CallLane, CallNote, ToldRun};
pub use lives::CpuAt;
pub use names::{CallId, CallNames};
pub use state::{Bases, CallState, LifeView};
pub use who::{LifeNumbering, ThreadLife};

/// The error that a call returns, if it does.
pub(crate) fn errno(ret: Option<i64>) -> Option<u16> {
    ret.filter(|ret| (-4095..=-1).contains(ret)).map(|ret| ret.unsigned_abs() as u16)
}

/// Where an event is in the order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventPosition {
    /// When.
    pub time: i64,
    /// Lanes come one after the other at the same time.
    pub lane: u32,
    /// Which of the events of this lane at this time.
    pub nth: u32,
}

impl EventPosition {
    /// Behind all events.
    pub const LAST: Self = Self { time: i64::MAX, lane: u32::MAX, nth: u32::MAX };
}

/// A thread enters a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEntry<A> {
    /// Which call.
    pub call: CallId,
    /// When.
    pub place: EventPosition,
    /// On which CPU.
    pub cpu: u32,
    /// Further facts that the analysis needs about it.
    pub more: A,
}

/// A thread comes back from a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallExit<B> {
    /// Which call, if the event says so.
    pub call: CallId,
    /// When.
    pub place: EventPosition,
    /// On which CPU.
    pub cpu: u32,
    /// The kernel's return value.
    pub ret: Option<i64>,
    /// Further facts that the analysis needs about it.
    pub more: B,
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome<A, B> {
    /// Both ends were seen, nothing is in doubt.
    Completed(CallEntry<A>, CallExit<B>),
    /// Both ends were seen, but something may be missing between them.
    Doubtful(CallEntry<A>, CallExit<B>),
    /// Something came where the exit should have been.
    LostEntry(CallEntry<A>),
    /// Something came where the entry should have been.
    LostExit(CallExit<B>),
    /// It was entered before the trace began.
    BeganBefore(CallExit<B>),
    /// The other return of the call that made this thread.
    ChildReturns(CallExit<B>),
    /// The trace or the thread ended before it.
    NeverEnded(CallEntry<A>),
}

/// The meaning of a sequence of calls of one thread for the calls before and after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSummary<A, B> {
    /// An exit that came before everything else.
    pub asks: Option<CallExit<B>>,
    /// A call without an exit.
    pub open: Option<CallEntry<A>>,
    /// There was an entry or an exit.
    pub is_touched: bool,
}

impl<A, B> Default for CallSummary<A, B> {
    fn default() -> Self {
        Self { asks: None, open: None, is_touched: false }
    }
}

/// What is found where two sequences meet.
enum Meeting<A, B> {
    /// An entry and its exit.
    Pair(CallEntry<A>, CallExit<B>),
    LostEntry(CallEntry<A>),
    LostExit(CallExit<B>),
}

impl<A, B> CallSummary<A, B> {
    /// Adds an entry.
    fn enter(&mut self, entry: CallEntry<A>) -> Option<CallEntry<A>> {
        self.is_touched = true;
        self.open.replace(entry)
    }

    /// Adds an exit.
    #[inline]
    fn exit(&mut self, exit: CallExit<B>, mut meet: impl FnMut(Meeting<A, B>)) {
        match self.open.take() {
            // An event of an exit need not name its call. One without a name fits any entry.
            Some(entry) if exit.call == CallId::NONE || exit.call == entry.call => meet(Meeting::Pair(entry, exit)),
            Some(entry) => {
                meet(Meeting::LostEntry(entry));
                meet(Meeting::LostExit(exit));
            }
            // Something of the thread came before, without leaving a call open. So no earlier part
            // has the entry.
            None if self.is_touched => meet(Meeting::LostExit(exit)),
            None => self.asks = Some(exit),
        }
        self.is_touched = true;
    }

    /// Adds a sequence that comes after.
    fn then(&mut self, later: Self, mut meet: impl FnMut(Meeting<A, B>)) {
        if !later.is_touched {
            return;
        }
        match later.asks {
            Some(exit) => self.exit(exit, &mut meet),
            // The later sequence begins with an entry: the exit of the call that was open is
            // missing.
            None => self.open.take().into_iter().for_each(|entry| meet(Meeting::LostEntry(entry))),
        }
        self.open = later.open;
        self.is_touched = true;
    }
}

impl<A, B> Meeting<A, B> {
    fn outcome(self, is_certain: impl FnOnce(i64, i64) -> bool) -> CallOutcome<A, B> {
        match self {
            Self::Pair(entry, exit) if is_certain(entry.place.time, exit.place.time) => {
                CallOutcome::Completed(entry, exit)
            }
            Self::Pair(entry, exit) => CallOutcome::Doubtful(entry, exit),
            Self::LostEntry(entry) => CallOutcome::LostEntry(entry),
            Self::LostExit(exit) => CallOutcome::LostExit(exit),
        }
    }
}

/// Values that are kept across the borders of parts.
pub trait PartValue: Clone + std::fmt::Debug + Send + Serialize + DeserializeOwned {}
impl<T: Clone + std::fmt::Debug + Send + Serialize + DeserializeOwned> PartValue for T {}

/// An analysis' use of calls.
pub trait CallObserver: std::fmt::Debug + Sync + Sized {
    /// The facts that it needs about entries.
    type Entry: PartValue;
    /// The facts that it needs about exits.
    type Exit: PartValue;
    /// Its counts of a run, until its thread is known; small, as it is in notes.
    type Run: PartValue + Default;
    /// Its counts of a thread's life.
    type Rows: PartValue + Default;
    /// Its counts of all of them.
    type Totals: std::fmt::Debug + Send;

    /// The settings of the machine and its lanes.
    fn settings(&self) -> &Settings;

    /// A call was settled within its run.
    fn settle_in_run(
        &self,
        totals: &mut Self::Totals,
        run: &mut Self::Run,
        outcome: CallOutcome<Self::Entry, Self::Exit>,
    );

    /// Whether nothing was counted that waits for its thread.
    fn is_empty(&self, run: &Self::Run) -> bool;

    /// Forgets the counts of a run that goes on; untold notes are not forgotten.
    fn forget(&self, run: &mut Self::Run) {
        *run = Self::Run::default();
    }

    /// Adds the later counts of the same run.
    fn extend(&self, run: &mut Self::Run, later: Self::Run);

    /// A call was settled that left its run.
    fn settle(
        &self,
        totals: &mut Self::Totals,
        key: ThreadKey,
        rows: &mut Self::Rows,
        outcome: CallOutcome<Self::Entry, Self::Exit>,
    );

    /// A run was this thread's.
    fn count(&self, totals: &mut Self::Totals, key: ThreadKey, rows: &mut Self::Rows, run: Self::Run);

    /// Adds the later counts of the same life.
    fn add(&self, rows: &mut Self::Rows, later: Self::Rows);

    /// A life is over, and known whole; nothing shall be left in its rows.
    fn over(&self, totals: &mut Self::Totals, life: LifeView<'_, Self::Rows>);

    /// A thread's run, or several, end within a call. May be said more than once of the same.
    fn leaves_open(&self, _totals: &mut Self::Totals, _key: ThreadKey, _entry: &CallEntry<Self::Entry>) {}

    /// A thread leaves a call that it entered before this part; the outcome is known when the part
    /// is merged.
    fn asks(&self, _totals: &mut Self::Totals, _key: ThreadKey, _exit: &CallExit<Self::Exit>) {}

    /// An event says of which process a thread is; said for the first one of a run.
    fn says(&self, _run: &mut Self::Run, _place: EventPosition, _tid: i32, _pid: i32) {}
}

/// How calls are matched in a trace.
#[derive(Debug)]
pub struct Settings {
    /// The lanes.
    pub lanes: Vec<LaneFacts>,
    /// The holes of all of them.
    pub holes: Windows,
    /// There are no switches, but events say their thread.
    pub is_by_context: bool,
    /// What is known of lanes that there are not: states from elsewhere may name any.
    nothing: LaneFacts,
}

impl Settings {
    /// Those of a trace.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        let holes = setup.holes();
        let is =
            |wanted: EventRole| setup.classes.iter().any(|class| class.roles.iter().any(|role| role.role == wanted));
        let says_thread = setup.classes.iter().any(|class| class.context[TID] != FieldSlot::Absent);
        let (lanes, is_by_context) = (setup.lanes.to_vec(), !is(EventRole::Switch) && says_thread);
        Self { lanes, holes, is_by_context, nothing: LaneFacts::default() }
    }

    /// The facts about a lane.
    #[inline]
    #[must_use]
    pub fn facts(&self, lane: u32) -> &LaneFacts {
        self.lanes.get(lane as usize).unwrap_or(&self.nothing)
    }

    /// Whether nothing can be missing anywhere in a span of time.
    #[must_use]
    pub fn is_whole(&self, begin: i64, end: i64) -> bool {
        !touches(&self.holes, begin, end)
    }
}

/// Whether spans of time have a point in common.
fn touches(holes: &Windows, begin: i64, end: i64) -> bool {
    !holes.is_empty() && holes.touch(begin, end)
}

/// Whether a hole begins or ends between two times.
fn is_cut(holes: &Windows, begin: i64, end: i64) -> bool {
    // Two events in one hole, with no event of another kind between them, are not separated by its
    // borders.
    begin != end && touches(holes, begin, end) && holes.cover(begin, end) != begin.abs_diff(end)
}
