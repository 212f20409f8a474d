//! What is counted of each stack.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::waits::WaitOutcome;
use crate::Wishes;
use crate::resolve::StackId;
use crate::threads::ThreadKey;
use crate::windows::Windows;

/// Why a stack was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum StackKind {
    /// The CPU was busy.
    Sample,
    /// The thread stopped running, as it waited for something.
    Wait,
    /// The thread stopped running, though it could go on.
    Preempted,
    /// An event happened, by the number that the trace gives it.
    Event(u16),
}

/// The sums of stacks and threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StackSums {
    stacks: HashMap<(StackKind, StackId, ThreadKey), StackSum>,
    /// Waits by their stacks, and those of the threads that ended them.
    wakers: HashMap<(StackId, StackId, ThreadKey), StackSum>,
    /// Waits that are in no sum.
    missed: HashMap<ThreadKey, MissedWaits>,
}

/// Waits of a thread of which an event is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MissedWaits {
    pub(super) without_stack: u64,
    /// Or where the thread may have run meanwhile, as events are missing.
    pub(super) without_end: u64,
}

/// Stacks of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StackSum {
    pub(super) count: u64,
    /// Of waits, how long they were together, and the longest one.
    pub(super) nanos: u64,
    pub(super) longest: u64,
    /// Waits that are not over.
    pub(super) open: u64,
}

impl StackKind {
    /// As a mapping calls it.
    pub(super) fn of(name: &[u8], event: u16) -> Self {
        match name {
            b"sample" => Self::Sample,
            b"wait" => Self::Wait,
            _ => Self::Event(event),
        }
    }

    pub(super) fn of_wait(can_run: bool) -> Self {
        if can_run { Self::Preempted } else { Self::Wait }
    }
}

impl StackSum {
    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.nanos = self.nanos.saturating_add(other.nanos);
        self.longest = self.longest.max(other.longest);
        self.open += other.open;
    }
}

impl StackSums {
    /// Counts a stack of a thread.
    pub(super) fn add(&mut self, thread: ThreadKey, kind: StackKind, stack: StackId) {
        self.stacks.entry((kind, stack, thread)).or_default().count += 1;
    }

    /// Counts a wait.
    pub(super) fn add_wait(&mut self, holes: &[Windows], wishes: &Wishes, thread: ThreadKey, wait: &WaitOutcome) {
        let is_doubtful =
            |(begin, end)| holes.get(usize::from(thread.host)).is_some_and(|holes| holes.touch(begin, end));
        match *wait {
            WaitOutcome::Whole(span, can_run, stack, waker) if !is_doubtful(span) => {
                let nanos = span.1.saturating_sub(span.0).max(0).cast_unsigned();
                if wishes.wants_duration(nanos) {
                    let sum = StackSum { count: 1, nanos, longest: nanos, open: 0 };
                    self.stacks.entry((StackKind::of_wait(can_run), stack, thread)).or_default().add(&sum);
                    if let Some(waker) = waker.filter(|_| !can_run) {
                        self.wakers.entry((stack, waker, thread)).or_default().add(&sum);
                    }
                }
            }
            WaitOutcome::Whole(..) | WaitOutcome::WithoutEnd => self.missed.entry(thread).or_default().without_end += 1,
            // Stacks of other CPUs are not asked for.
            WaitOutcome::WithoutStack if wishes.cpus.is_empty() => {
                self.missed.entry(thread).or_default().without_stack += 1;
            }
            WaitOutcome::WithoutStack => {}
        }
    }

    /// Counts a wait that is not over.
    pub(super) fn add_open(&mut self, thread: ThreadKey, kind: StackKind, stack: StackId) {
        self.stacks.entry((kind, stack, thread)).or_default().open += 1;
    }

    pub(super) fn merge(&mut self, other: Self) {
        other.stacks.into_iter().for_each(|(key, sum)| self.stacks.entry(key).or_default().add(&sum));
        other.wakers.into_iter().for_each(|(key, sum)| self.wakers.entry(key).or_default().add(&sum));
        for (thread, missed) in other.missed {
            let sum = self.missed.entry(thread).or_default();
            sum.without_stack += missed.without_stack;
            sum.without_end += missed.without_end;
        }
    }

    /// Waits by their stacks, those of the threads that ended them, and the threads that waited.
    pub(super) fn wakers(&self) -> impl Iterator<Item = (StackId, StackId, ThreadKey, &StackSum)> {
        self.wakers.iter().map(|((stack, waker, thread), sum)| (*stack, *waker, *thread, sum))
    }

    /// Waits that are in no sum, by thread.
    pub(super) fn missed(&self) -> impl Iterator<Item = (ThreadKey, MissedWaits)> {
        self.missed.iter().map(|(thread, missed)| (*thread, *missed))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (StackKind, StackId, ThreadKey, &StackSum)> {
        self.stacks.iter().map(|((kind, stack, thread), sum)| (*kind, *stack, *thread, sum))
    }
}
