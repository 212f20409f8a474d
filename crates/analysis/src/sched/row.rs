//! The states of a thread, from event to event, and their sums.
//!
//! ```text
//! unknown ─┐          ┌────────── begin of a run ───────────> running ──switch away──> preempted, blocked, dead
//! new ─────┼─ wake ─> waiting          (from any state)          │
//! blocked ─┘                                             an odd switch: lost
//! ```
//!
//! Switches are certain: the state of a thread behind one does not depend on the state before.
//! Wakes are not: they change nothing if the thread runs or could run already. So a piece of a life
//! that a part of the trace sees keeps its events before its first switch (its [`RowHead`]), and
//! joining it with the piece before says which state that was.

use serde::{Deserialize, Serialize};

use super::doing::{Away, CpuWait, CurrentCall, EndedWait, STATES, SchedActivity, Start, WakeSource};
use super::sums::{DurationSums, DurationsByKey};
use crate::{Comm, Histogram, Merge};

/// The events before the first switch of a piece of a life, and that switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct RowHead {
    /// It was woken: when first, and how.
    woken: Option<(i64, CpuWait)>,
    switch: Option<FirstSwitch>,
}

/// The first switch of a piece of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FirstSwitch {
    time: i64,
    /// To it; none: away from it.
    start: Option<Start>,
    /// Away from it, in a dead state.
    is_death: bool,
}

/// The state of a life.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SchedRow {
    comm: Comm,
    /// When that was said last.
    named: i64,
    pub(super) pid: Option<i32>,
    pub(super) is_forked: bool,
    /// It has woken a thread, or is in a row that may be shown.
    pub(super) is_referred: bool,
    /// It was switched to or away from.
    is_switched: bool,
    pub(super) now: SchedActivity,
    /// Since when it is in its state.
    pub(super) since: i64,
    /// The call that it was in when it was last switched away from.
    pub(super) call: CurrentCall,
    head: Option<Box<RowHead>>,
    pub(super) times_ns: [u64; STATES.len()],
    pub(super) blocked: DurationsByKey<CurrentCall>,
    /// By waker: all waits, and the time of those that were measured.
    pub(super) wakers: DurationsByKey<WakeSource>,
    /// It waited for a CPU when it, or the trace, ended.
    pub(super) never_ended: bool,
    /// Of completed wakeups.
    pub(super) latencies: Histogram,
    /// Wakeups in doubt.
    pub(super) lost_inside: u64,
    /// Wakeups that were not seen.
    pub(super) unseen: u64,
    /// Of whole runs.
    pub(super) lengths: Histogram,
    /// Runs in doubt.
    pub(super) cut: u64,
    pub(super) preemptions: u64,
    pub(super) migrations: u64,
    first_cpu: Option<u32>,
    last_cpu: Option<u32>,
    /// When the period began, if others were before: earlier time is counted.
    period: Option<i64>,
}

impl SchedRow {
    /// A life of which nothing is known but that it was there.
    pub(super) fn unknown(since: i64) -> Self {
        let mut row = Self::default();
        row.begin_unknown(since);
        row
    }

    /// It is there, and its state is unknown.
    pub(super) fn begin_unknown(&mut self, since: i64) {
        (self.now, self.since, self.call) = (SchedActivity::Unknown, since, CurrentCall::None);
    }

    /// Something says its name.
    pub(super) fn name_it(&mut self, comm: Comm, time: i64) {
        if !comm.is_empty() && (self.comm.is_empty() || self.named <= time) {
            (self.comm, self.named) = (comm, time);
        }
    }

    pub(super) fn comm(&self) -> Comm {
        self.comm
    }

    /// Makes place for another life; keeps memory that is usual. Field by field: a whole new row would be made elsewhere
    /// first, and copied.
    pub(super) fn clear(&mut self) {
        (self.comm, self.named, self.pid) = (Comm::default(), 0, None);
        (self.is_forked, self.is_referred, self.is_switched, self.never_ended) = (false, false, false, false);
        (self.now, self.since, self.call, self.head) = (SchedActivity::Before, 0, CurrentCall::BeforeRow, None);
        self.times_ns = [0; STATES.len()];
        self.blocked.clear();
        self.wakers.clear();
        self.latencies.clear();
        self.lengths.clear();
        (self.lost_inside, self.unseen, self.cut) = (0, 0, 0);
        (self.preemptions, self.migrations) = (0, 0);
        (self.first_cpu, self.last_cpu, self.period) = (None, None, None);
    }

    /// A period begins: the counts are forgotten, its state goes on.
    pub(super) fn forget(&mut self, at: i64) {
        self.period = Some(at);
        self.times_ns = [0; STATES.len()];
        self.blocked.clear();
        self.wakers.clear();
        self.latencies.clear();
        self.lengths.clear();
        self.never_ended = false;
        (self.lost_inside, self.unseen, self.cut) = (0, 0, 0);
        (self.preemptions, self.migrations) = (0, 0);
        self.first_cpu = self.last_cpu;
    }

    /// Whether an interval that began then was counted in a period before.
    pub(super) fn has_counted(&self, since: i64) -> bool {
        self.period.is_some_and(|period| since < period)
    }

    /// It is made.
    pub(super) fn fork(&mut self, time: i64) {
        (self.now, self.since, self.call, self.is_forked) = (SchedActivity::New, time, CurrentCall::None, true);
    }

    /// It was made and has done nothing since: a thread that dies now under its number is an older
    /// one.
    pub(super) fn is_unborn(&self) -> bool {
        self.is_forked && !self.is_switched
    }

    /// It was switched to or away from.
    pub(super) fn is_switched(&self) -> bool {
        self.is_switched
    }

    pub(super) fn is_dead(&self) -> bool {
        self.now == SchedActivity::Dead
    }

    /// Its state does not depend on its state before this piece of its life.
    pub(super) fn is_known(&self) -> bool {
        self.now != SchedActivity::Before
    }

    /// It is woken; whether it waits since then.
    pub(super) fn wake(&mut self, time: i64, wait: &CpuWait) -> bool {
        match &mut self.now {
            SchedActivity::Before => match &mut self.head.get_or_insert_default().woken {
                Some((_, known)) => known.aim(wait),
                woken @ None => {
                    *woken = Some((time, *wait));
                    return true;
                }
            },
            SchedActivity::Unknown | SchedActivity::New | SchedActivity::Blocked(_) | SchedActivity::Dead => {
                self.close(time);
                (self.now, self.since) = (SchedActivity::Waiting(*wait), time);
                return true;
            }
            SchedActivity::Waiting(known) => known.aim(wait),
            SchedActivity::Running(_) | SchedActivity::Preempted | SchedActivity::Lost => {}
        }
        false
    }

    /// A run of it begins; maybe that ends a wait.
    pub(super) fn begin(&mut self, time: i64, start: Start) -> Option<EndedWait> {
        let waited = self.switched(&FirstSwitch { time, start: Some(start), is_death: false });
        self.migrations += u64::from(self.last_cpu.is_some_and(|last| last != start.cpu));
        self.first_cpu.get_or_insert(start.cpu);
        self.last_cpu = Some(start.cpu);
        (self.now, self.since) = (SchedActivity::Running(start.cpu), time);
        waited
    }

    /// It was running on a CPU when that began to record.
    pub(super) fn was_on(&mut self, cpu: u32, time: i64) {
        self.begin(time, Start { cpu, prio: None, comm: Comm::default() });
    }

    /// A run of it has ended.
    pub(super) fn ran(&mut self, ns: u64, is_cut: bool) {
        if is_cut {
            self.cut += 1;
        } else {
            self.lengths.record(ns);
        }
    }

    /// It leaves a CPU, in a call; maybe that shows that a wait has ended unseen.
    pub(super) fn away(&mut self, time: i64, away: Away, call: CurrentCall) -> Option<EndedWait> {
        let is_death = away == Away::Dead;
        let waited = self.switched(&FirstSwitch { time, start: None, is_death });
        self.preemptions += u64::from(away == Away::Preempted);
        self.call = call;
        self.since = time;
        self.now = match away {
            Away::Preempted => SchedActivity::Preempted,
            Away::Blocked => SchedActivity::Blocked(call),
            Away::Dead => SchedActivity::Dead,
        };
        waited
    }

    /// Its run on a CPU ended, but it was another thread that left.
    pub(super) fn lose(&mut self, cpu: u32, time: i64) {
        if self.now == SchedActivity::Running(cpu) {
            self.close(time);
            (self.now, self.since) = (SchedActivity::Lost, time);
        }
    }

    /// When its first switch in this piece of its life was.
    pub(super) fn first_switch(&self) -> Option<i64> {
        Some(self.head.as_ref()?.switch?.time)
    }

    /// Its state ends with a switch.
    fn switched(&mut self, switch: &FirstSwitch) -> Option<EndedWait> {
        self.is_switched = true;
        self.close(switch.time);
        match self.now {
            SchedActivity::Before => self.head.get_or_insert_default().switch = Some(*switch),
            SchedActivity::Blocked(_) => self.unseen += u64::from(switch.start.is_some()),
            SchedActivity::Waiting(wait) => {
                return Some(EndedWait { begin: self.since, end: switch.time, wait, start: switch.start });
            }
            _ => {}
        }
        None
    }

    /// Its state ends.
    pub(super) fn close(&mut self, time: i64) {
        let Some(place) = self.now.place() else { return };
        if self.now == SchedActivity::Lost && time < self.since {
            // It was over before its CPU was found to run something else.
            self.times_ns[0] = self.times_ns[0].saturating_sub(time.abs_diff(self.since));
        }
        let since = self.period.map_or(self.since, |period| period.max(self.since));
        let ns = time.max(since).abs_diff(since);
        self.times_ns[place] += ns;
        if let SchedActivity::Blocked(call) = self.now {
            let count = u64::from(!self.has_counted(self.since));
            self.blocked.of(call).add(DurationSums { count, total_ns: ns });
        }
    }

    /// It is over, or the trace is; `is_whole` says whether no event between two instants is missing.
    pub(super) fn end(&mut self, time: i64, is_whole: impl Fn(i64, i64) -> bool) {
        if self.now == SchedActivity::Dead {
            return;
        }
        if let SchedActivity::Waiting(wait) = self.now {
            self.never_ended = is_whole(self.since, time);
            self.lost_inside += u64::from(!self.never_ended);
            self.wakers.of(wait.waker).count += u64::from(!self.has_counted(self.since));
        }
        self.close(time);
        self.now = SchedActivity::Dead;
    }

    /// Calls that were not known. The value of [`CurrentCall::BeforeRow`] must be said before rows are
    /// joined.
    pub(super) fn resolve(&mut self, known: impl Fn(CurrentCall) -> CurrentCall) {
        self.blocked.rekey(&known);
        self.call = known(self.call);
        if let SchedActivity::Blocked(call) = &mut self.now {
            *call = known(*call);
        }
    }

    /// Resolves wakers that were not known.
    pub(super) fn identify(&mut self, known: impl Fn(WakeSource) -> WakeSource) {
        self.wakers.rekey(&known);
        if let SchedActivity::Waiting(wait) = &mut self.now {
            wait.waker = known(wait.waker);
        }
        if let Some((_, wait)) = self.head.as_mut().and_then(|head| head.woken.as_mut()) {
            wait.waker = known(wait.waker);
        }
    }

    /// All its wakers.
    pub(super) fn who(&self) -> impl Iterator<Item = WakeSource> {
        self.wakers.iter().map(|(who, _)| who).chain(self.awaited())
    }

    /// Its wakers in waits that are not counted yet.
    fn awaited(&self) -> impl Iterator<Item = WakeSource> + use<> {
        let now = if let SchedActivity::Waiting(wait) = self.now { Some(wait.waker) } else { None };
        let before = self.head.as_ref().and_then(|head| Some(head.woken?.1.waker));
        now.into_iter().chain(before)
    }

    /// A life is over that may have woken it; returns whether there is such a wait that is not
    /// counted yet.
    pub(super) fn awaits_last(&mut self, who: WakeSource) -> bool {
        let now = if let SchedActivity::Waiting(wait) = &mut self.now { Some(wait) } else { None };
        let before = self.head.as_mut().and_then(|head| Some(&mut head.woken.as_mut()?.1));
        let mut is_awaited = false;
        for wait in now.into_iter().chain(before).filter(|wait| wait.waker == who) {
            (wait.is_last, is_awaited) = (true, true);
        }
        is_awaited
    }

    /// It may have been another thread that died: nothing else was seen of it.
    pub(super) fn is_only_death(&self) -> bool {
        self.head.as_ref().and_then(|head| head.switch).is_some_and(|switch| switch.is_death)
    }

    /// Goes on as a piece that follows does; maybe that ends a wait.
    fn follow(&mut self, later: &mut Self) -> Option<EndedWait> {
        let head = later.head.take()?;
        let mut waited = None;
        if self.now == SchedActivity::Before {
            let own = self.head.get_or_insert_default();
            match (&mut own.woken, &head.woken) {
                (Some((_, known)), Some((_, wait))) => known.aim(wait),
                (known, woken) => *known = known.or(*woken),
            }
            own.switch = head.switch;
        } else {
            if let Some((time, wait)) = &head.woken {
                self.wake(*time, wait);
            }
            if head.switch.is_some_and(|switch| switch.is_death) && self.is_unborn() {
                return None;
            }
            waited = head.switch.and_then(|switch| self.switched(&switch));
        }
        if head.switch.is_some() {
            (self.now, self.since, self.is_switched) = (later.now, later.since, true);
        }
        waited
    }

    /// Adds the later piece; maybe that ends a wait.
    pub(super) fn join(&mut self, mut later: Self) -> Option<EndedWait> {
        let has_moved = self.last_cpu.zip(later.first_cpu).is_some_and(|(last, first)| last != first);
        self.migrations += later.migrations + u64::from(has_moved);
        self.first_cpu = self.first_cpu.or(later.first_cpu);
        self.last_cpu = later.last_cpu.or(self.last_cpu);
        self.name_it(later.comm, later.named);
        self.pid = later.pid.or(self.pid);
        if later.is_switched {
            self.call = later.call;
        }
        let waited = self.follow(&mut later);
        self.times_ns.iter_mut().zip(later.times_ns).for_each(|(sum, more)| *sum += more);
        self.blocked.merge(later.blocked);
        self.wakers.merge(later.wakers);
        self.never_ended |= later.never_ended;
        self.is_referred |= later.is_referred;
        self.latencies.merge(later.latencies);
        self.lengths.merge(later.lengths);
        self.lost_inside += later.lost_inside;
        self.unseen += later.unseen;
        self.cut += later.cut;
        self.preemptions += later.preemptions;
        waited
    }
}
