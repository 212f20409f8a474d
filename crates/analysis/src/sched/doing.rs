//! The state of a thread at a time, and how it came to that: the words for the story of a life
//! (`row`).

use serde::{Deserialize, Serialize};

use crate::Comm;
use crate::threads::ThreadId;

/// The system call that a thread is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum CurrentCall {
    /// None.
    None,
    /// The name of this class of events.
    Named(u32),
    /// One that is known by its number alone.
    Numbered(i32),
    /// The one that the thread was in when this part of its life began.
    #[default]
    BeforeRow,
    /// The one that the first run of this CPU of this lane, which began before this part, was in at its end.
    BeforeCpu(u32, u32),
}

/// A waker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum WakeSource {
    /// Unknown.
    #[default]
    Unknown,
    /// No thread ran.
    Idle,
    /// A thread; the life that was there at this time.
    Thread(ThreadId),
    /// The thread that ran on this CPU of this lane when the part began.
    Before(u32, u32),
}

/// A thread waits for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CpuWait {
    /// Its first waker.
    pub(super) waker: WakeSource,
    /// The CPU that it is meant to run on.
    pub(super) target: Option<u32>,
    /// The target is a wakeup's, which knows better than a waking.
    pub(super) is_woken: bool,
    /// The waker's life is over, and nothing else of it is to be counted.
    pub(super) is_last: bool,
}

impl CpuWait {
    /// It is woken again.
    pub(super) fn aim(&mut self, later: &Self) {
        if later.is_woken || !self.is_woken {
            self.target = later.target;
        }
        self.is_woken |= later.is_woken;
    }
}

/// The state of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SchedActivity {
    /// Its state when this piece of its life began, and woken since if its head says so.
    #[default]
    Before,
    /// Unknown, since nothing was seen of it.
    Unknown,
    /// It was made, and nothing else.
    New,
    /// It runs on this CPU.
    Running(u32),
    /// It could run.
    Preempted,
    /// It waits for something else than a CPU, in this call.
    Blocked(CurrentCall),
    /// It was woken.
    Waiting(CpuWait),
    /// Its CPU runs something else, after an unseen switch.
    Lost,
    /// It will never do anything again.
    Dead,
}

/// Names of states, in the order of [`SchedRow::times_ns`].
pub(super) const STATES: [&str; 6] = ["running", "preempted", "waiting", "blocked", "new", "unknown"];

impl SchedActivity {
    /// Its place among [`STATES`].
    pub(super) fn place(&self) -> Option<usize> {
        match self {
            Self::Before | Self::Dead => None,
            Self::Running(_) => Some(0),
            Self::Preempted => Some(1),
            Self::Waiting(_) => Some(2),
            Self::Blocked(_) => Some(3),
            Self::New => Some(4),
            Self::Unknown | Self::Lost => Some(5),
        }
    }
}

/// A run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Start {
    pub(super) cpu: u32,
    pub(super) prio: Option<i32>,
    /// The thread's name then.
    pub(super) comm: Comm,
}

/// A thread has waited for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EndedWait {
    pub(super) begin: i64,
    pub(super) end: i64,
    pub(super) wait: CpuWait,
    /// The run that ended it; none: it was switched away from, so a run must be missing.
    pub(super) start: Option<Start>,
}

/// How a thread leaves a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Away {
    /// It could run on.
    Preempted,
    /// It waits for something.
    Blocked,
    /// It will never run again.
    Dead,
}
