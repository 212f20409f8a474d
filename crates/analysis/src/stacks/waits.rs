//! The waits of a thread, each with the stack in which it began.
//!
//! ```text
//! runs ──── stack ─ out ──── in      the kernel tells stack and switch at one instant, by two clocks: either may come first
//! runs ──── out ─ stack ──── in
//! ```
//!
//! A part of the trace does not know whether a thread waits when it begins. What happens until the first moment from which on
//! that does not matter (`head`) is kept, and happens again behind the part before.

use serde::{Deserialize, Serialize};

use crate::resolve::StackId;

/// A stack that is further from the switch is not the stack of it, in nanoseconds: a hypervisor may stop a CPU between both.
const APART_NS: i64 = 100_000_000;

/// Something that happens to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum WaitMoment {
    /// It has this stack where it stops running.
    Stack(i64, StackId),
    /// It stops running; whether it could go on.
    Out(i64, bool),
    /// It is woken, in this stack of another thread.
    Woken(StackId),
    /// It runs.
    In(i64),
    /// It is dead.
    End,
}

/// A wait that is over, or of which no more is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitOutcome {
    /// From when to when it was, whether the thread could run, its stack, and that of the thread that ended it.
    Whole((i64, i64), bool, StackId, Option<StackId>),
    /// No event tells its stack.
    WithoutStack,
    /// No event tells that the thread ran again.
    WithoutEnd,
}

/// The waits of a thread in a part of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ThreadWaits {
    /// Until it is known how the thread is: a few moments at most.
    head: Vec<WaitMoment>,
    is_known: bool,
    now: WaitNow,
}

/// How a thread is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct WaitNow {
    /// A stack of a switch that is yet to come.
    pending: Option<(i64, StackId)>,
    /// It waits since then, and whether it could run.
    out: Option<(i64, bool)>,
    /// In which stack.
    of: Option<(i64, StackId)>,
    /// It was woken in this one.
    waker: Option<StackId>,
}

impl WaitNow {
    fn push(&mut self, moment: WaitMoment) -> Option<WaitOutcome> {
        match (moment, self.out) {
            (WaitMoment::Stack(time, stack), out) => {
                let is_nearer =
                    |begin: i64| self.of.is_none_or(|(of, _)| time.saturating_sub(begin) < begin.saturating_sub(of));
                match out {
                    Some((begin, _)) if is_near(begin, time) && is_nearer(begin) => self.of = Some((time, stack)),
                    Some(_) | None => self.pending = Some((time, stack)),
                }
                None
            }
            (WaitMoment::Out(time, can_run), out) => {
                // Where the event is missing with which the thread ran meanwhile, the last stack is that of the nearer switch.
                let last = self.pending.take().or(self.of);
                let is_its = |of: i64| {
                    out.is_none_or(|(begin, _)| begin <= of && time.saturating_sub(of) < of.saturating_sub(begin))
                };
                self.of = last.filter(|(of, _)| is_near(*of, time) && is_its(*of));
                (self.out, self.waker) = (Some((time, can_run)), None);
                out.map(|_| WaitOutcome::WithoutEnd)
            }
            (WaitMoment::Woken(stack), out) => {
                self.waker = out.map(|_| stack);
                None
            }
            (WaitMoment::End, out) => {
                *self = Self::default();
                out.map(|_| WaitOutcome::WithoutEnd)
            }
            (WaitMoment::In(time), out) => {
                let Self { of, waker, .. } = std::mem::take(self);
                let (begin, can_run) = out?;
                Some(match of {
                    Some((_, stack)) => WaitOutcome::Whole((begin, time), can_run, stack, waker),
                    None => WaitOutcome::WithoutStack,
                })
            }
        }
    }
}

/// Whether a stack and a switch may be of one instant.
fn is_near(one: i64, other: i64) -> bool {
    other.saturating_sub(one) <= APART_NS
}

impl ThreadWaits {
    /// Of a thread that is new; `is_first`: nothing comes before.
    pub(super) fn new(is_first: bool) -> Self {
        Self { is_known: is_first, ..Self::default() }
    }

    /// Something happens; returns a wait that it ends.
    pub(super) fn push(&mut self, moment: WaitMoment) -> Option<WaitOutcome> {
        if self.is_known {
            return self.now.push(moment);
        }
        let out = self.head.iter().position(|moment| matches!(moment, WaitMoment::Out(..)));
        match (moment, out) {
            (WaitMoment::In(_) | WaitMoment::End, _) => self.is_known = true,
            // Nothing of the wait before matters.
            (WaitMoment::Out(..), Some(out)) => {
                self.is_known = true;
                for moment in self.head[out..].iter().chain([&moment]) {
                    self.now.push(*moment);
                }
            }
            (WaitMoment::Out(..), None) => {}
            // Of stacks between two switches, the first may be that of the one before, and the last that of the one behind; of those
            // that wake it, the last counts.
            (WaitMoment::Stack(..) | WaitMoment::Woken(_), _) => {
                let is_alike = |known: &WaitMoment| std::mem::discriminant(known) == std::mem::discriminant(&moment);
                let begin = out.map_or(0, |out| out + 1);
                let alike = (begin..self.head.len()).filter(|at| is_alike(&self.head[*at]));
                let alike: Vec<usize> = alike.collect();
                if alike.len() > usize::from(matches!(moment, WaitMoment::Stack(..))) {
                    self.head.remove(alike[alike.len() - 1]);
                }
            }
        }
        self.head.push(moment);
        None
    }

    /// The moments that happen again behind the part before.
    pub(super) fn head(&self) -> impl Iterator<Item = WaitMoment> + use<> {
        self.head.clone().into_iter()
    }

    /// The part that follows, whose head has happened here, is over.
    pub(super) fn follow(&mut self, right: &Self) {
        if right.is_known {
            self.now = right.now;
        }
    }

    /// Nothing comes before: the thread ran. Returns the waits that are over.
    pub(super) fn begin(&mut self) -> Vec<WaitOutcome> {
        if self.is_known && self.head.is_empty() {
            return Vec::new();
        }
        let (head, is_known, now) = (std::mem::take(&mut self.head), self.is_known, self.now);
        (self.now, self.is_known) = (WaitNow::default(), true);
        let ended = head.into_iter().filter_map(|moment| self.now.push(moment)).collect();
        if is_known {
            self.now = now;
        }
        ended
    }

    /// The stack in which it still waits, and since when.
    pub(super) fn open(&self) -> Option<(i64, bool, StackId)> {
        let ((begin, can_run), (_, stack)) = self.now.out.zip(self.now.of)?;
        Some((begin, can_run, stack))
    }
}
