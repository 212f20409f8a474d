//! Triggers of a session: whether it records, in each program, and since when.
//!
//! ```text
//! firing in a program ──> windows: ticks from which and to which the session records ──> events of the trace
//!                    └──> is it on? ──> the program's groups, and those of the others (`serve`)
//! ```
//!
//! Programs act at their events, and the recorder cuts by time: an event belongs to the session if it lies
//! in a window of its program.

use std::collections::{BTreeMap, HashMap};

use kymo_lane::{ClockSource, Firing};
use serde::{Deserialize, Serialize};

use crate::clock::uptime_ns;
use crate::select::SelectionRule;
use crate::trigger::{TriggerEffect, TriggerFiring, TriggerOptions, TriggerScope, TriggerStatus};

/// Windows of a program that are kept: those before them are over for long.
const WINDOWS_MAX: usize = 4096;

/// Ticks at which a session records: first and last ones, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TriggerWindows(Vec<(u64, u64)>);

impl TriggerWindows {
    /// The session records all the time.
    fn always() -> Self {
        Self(vec![(0, u64::MAX)])
    }

    fn is_open(&self, now: u64) -> bool {
        self.0.last().is_some_and(|(first, last)| (*first..=*last).contains(&now))
    }

    fn open(&mut self, first: u64, last: u64) {
        match self.0.last_mut() {
            // It is open already.
            Some(known) if known.1 >= first => known.1 = known.1.max(last),
            _ => self.0.push((first, last)),
        }
        let too_many = self.0.len().saturating_sub(WINDOWS_MAX);
        self.0.drain(..too_many);
    }

    fn close(&mut self, at: u64) {
        if let Some(known) = self.0.last_mut().filter(|known| known.0 <= at) {
            known.1 = known.1.min(at);
        }
    }
}

/// Numbers of a session and its triggers in a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TriggerPlaces {
    /// The session's group.
    pub(crate) group: Option<u8>,
    /// Triggers by name.
    pub(crate) triggers: BTreeMap<String, u8>,
    /// Firings of the program that the session knows.
    pub(crate) firings: u64,
}

/// A trigger, and whether it is armed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionTrigger {
    pub(crate) options: TriggerOptions,
    /// A number that grows whenever any trigger of the session is armed.
    pub(crate) epoch: u64,
    pub(crate) is_armed: bool,
    firings: u64,
    last: Option<TriggerFiring>,
}

/// A firing, and where it happened.
#[derive(Clone, Debug)]
pub(crate) struct ProgramFiring {
    /// The program.
    pub(crate) program: u64,
    /// The clock of its ticks.
    pub(crate) clock: ClockSource,
    /// The firing.
    pub(crate) firing: Firing,
    /// The same for people.
    pub(crate) told: TriggerFiring,
    /// Ticks of each clock in a second.
    pub(crate) frequencies: [u64; 2],
}

/// All triggers of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionTriggers {
    all: Vec<SessionTrigger>,
    /// Windows of programs that come, by clock.
    shared: [TriggerWindows; 2],
    /// Windows of each program, with the number of its clock.
    own: BTreeMap<u64, (usize, TriggerWindows)>,
    pub(crate) places: HashMap<u64, TriggerPlaces>,
    /// The session has or had triggers: windows count.
    is_limited: bool,
    epoch: u64,
    /// Snapshots to take.
    snapshots: u32,
}

impl SessionTriggers {
    /// Those of a session that begins at these ticks.
    pub(crate) fn new(all: &[TriggerOptions], now: [u64; 2]) -> Self {
        let mut this = Self { shared: [TriggerWindows::always(), TriggerWindows::always()], ..Self::default() };
        all.iter().for_each(|options| this.set(options.clone(), now));
        this
    }

    /// Whether triggers control the session, or have done so.
    pub(crate) fn is_limited(&self) -> bool {
        self.is_limited
    }

    pub(crate) fn all(&self) -> &[SessionTrigger] {
        &self.all
    }

    /// Adds a trigger, or replaces that of its name, and arms it. The first start turns the session off.
    pub(crate) fn set(&mut self, options: TriggerOptions, now: [u64; 2]) {
        let is_start = |trigger: &SessionTrigger| trigger.options.effect == TriggerEffect::Start;
        let is_first_start = options.effect == TriggerEffect::Start && !self.all.iter().any(is_start);
        self.is_limited = true;
        self.next_epoch();
        self.all.retain(|known| known.options.name != options.name);
        self.all.push(SessionTrigger { options, epoch: self.epoch, is_armed: true, firings: 0, last: None });
        if is_first_start {
            self.each_window(now, TriggerWindows::close);
        }
    }

    /// Epochs grow, also from one recorder to the next: programs remember them.
    fn next_epoch(&mut self) {
        self.epoch = self.epoch.saturating_add(1).max(uptime_ns().max(0).cast_unsigned());
    }

    /// Removes a trigger; returns whether it was there. A session without triggers records.
    pub(crate) fn remove(&mut self, name: &str, now: [u64; 2]) -> bool {
        let before = self.all.len();
        self.all.retain(|known| known.options.name != name);
        self.places.values_mut().for_each(|places| _ = places.triggers.remove(name));
        if self.all.is_empty() {
            self.each_window(now, |windows, at| windows.open(at, u64::MAX));
        }
        self.all.len() < before
    }

    /// Arms triggers anew, all of them without a name, or disarms them. Returns how many.
    pub(crate) fn arm(&mut self, name: Option<&str>, is_armed: bool) -> usize {
        self.next_epoch();
        let its = |trigger: &&mut SessionTrigger| name.is_none_or(|name| trigger.options.name == name);
        let mut count = 0;
        for trigger in self.all.iter_mut().filter(its) {
            (trigger.is_armed, trigger.epoch) = (is_armed, self.epoch);
            count += 1;
        }
        count
    }

    /// Starts or stops the session now, in all programs.
    pub(crate) fn turn(&mut self, is_on: bool, now: [u64; 2]) {
        self.is_limited = true;
        match is_on {
            true => self.each_window(now, |windows, at| windows.open(at, u64::MAX)),
            false => self.each_window(now, TriggerWindows::close),
        }
    }

    fn each_window(&mut self, now: [u64; 2], act: impl Fn(&mut TriggerWindows, u64)) {
        let shared = self.shared.iter_mut().enumerate();
        let own = self.own.values_mut().map(|(clock, windows)| (*clock, windows));
        shared.chain(own).for_each(|(clock, windows)| act(windows, now[clock % 2]));
    }

    /// A program is there: it has the windows of all.
    pub(crate) fn meets(&mut self, program: u64, clock: ClockSource) {
        if self.is_limited {
            let shared = &self.shared[clock as usize];
            self.own.entry(program).or_insert_with(|| (clock as usize, shared.clone()));
        }
    }

    /// A program is gone.
    pub(crate) fn parts(&mut self, program: u64) {
        self.own.remove(&program);
        self.places.remove(&program);
    }

    /// Number of a trigger in a program.
    pub(crate) fn number(&self, program: u64, name: &str) -> Option<u8> {
        self.places.get(&program)?.triggers.get(name).copied()
    }

    /// The session's group in a program.
    pub(crate) fn group(&self, program: u64) -> Option<u8> {
        self.places.get(&program)?.group
    }

    /// Events that they watch.
    pub(crate) fn rules(&self) -> Vec<SelectionRule> {
        self.all.iter().map(|trigger| trigger.options.rule.clone()).collect()
    }

    /// Windows of a program; `None`: the session records all the time.
    pub(crate) fn windows(&self, program: u64, clock: ClockSource) -> Option<&[(u64, u64)]> {
        let its = self.own.get(&program).map_or(&self.shared[clock as usize], |(_, windows)| windows);
        self.is_limited.then_some(&its.0)
    }

    /// Whether the session records in a program.
    pub(crate) fn is_on(&self, program: u64, clock: ClockSource, now: u64) -> bool {
        let its = self.own.get(&program).map_or(&self.shared[clock as usize], |(_, windows)| windows);
        !self.is_limited || its.is_open(now)
    }

    /// Whether it records in programs that come.
    pub(crate) fn is_on_for_all(&self, now: [u64; 2]) -> bool {
        !self.is_limited || self.shared.iter().zip(now).any(|(windows, now)| windows.is_open(now))
    }

    /// A trigger has fired; returns whether it was armed. Firings come in the order of their times. Programs
    /// of another clock follow `now`: their ticks cannot be compared with those of the firing.
    pub(crate) fn fired(&mut self, name: &str, at: &ProgramFiring, now: [u64; 2]) -> bool {
        let Some(trigger) = self.all.iter_mut().find(|trigger| trigger.options.name == name) else { return false };
        let its = self.own.get(&at.program).map_or(&self.shared[at.clock as usize], |(_, windows)| windows);
        let has_effect = its.is_open(at.firing.ticks) != (trigger.options.effect == TriggerEffect::Start);
        let last = trigger.last.as_ref().map_or(i64::MIN, |last| last.ns);
        let interval = i64::try_from(trigger.options.interval_ns.unwrap_or(0)).unwrap_or(i64::MAX);
        // Another program was first; or the recorder watches, and sees events that change nothing.
        let is_early = interval > 0 && at.told.ns < last.saturating_add(interval);
        if !trigger.is_armed || !has_effect || is_early {
            return false;
        }
        trigger.is_armed = trigger.options.repeats;
        trigger.firings += 1;
        trigger.last = Some(at.told.clone());
        let (effect, scope, length) = (trigger.options.effect, trigger.options.scope, trigger.options.for_ns);
        let ticks = at.firing.ticks;
        let end = |begin: u64, clock: usize| {
            length.map_or(u64::MAX, |ns| {
                let more = u128::from(ns) * u128::from(at.frequencies[clock % 2]) / 1_000_000_000;
                begin.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
            })
        };
        self.meets(at.program, at.clock);
        let own = at.clock as usize;
        let act = |windows: &mut TriggerWindows, clock: usize| match effect {
            TriggerEffect::Start if clock == own => windows.open(ticks, end(ticks, clock)),
            TriggerEffect::Start => windows.open(now[clock % 2], end(now[clock % 2], clock)),
            TriggerEffect::Stop | TriggerEffect::Snapshot if clock == own => windows.close(ticks),
            TriggerEffect::Stop | TriggerEffect::Snapshot => windows.close(now[clock % 2]),
        };
        match scope {
            TriggerScope::Program => {
                self.own.get_mut(&at.program).into_iter().for_each(|(clock, windows)| act(windows, *clock));
            }
            TriggerScope::Session => {
                self.shared.iter_mut().enumerate().for_each(|(clock, windows)| act(windows, clock));
                self.own.values_mut().for_each(|(clock, windows)| act(windows, *clock));
            }
        }
        self.snapshots += u32::from(effect == TriggerEffect::Snapshot);
        true
    }

    /// Snapshots that triggers have asked for since the last call.
    pub(crate) fn take_snapshots(&mut self) -> u32 {
        std::mem::take(&mut self.snapshots)
    }

    /// States for people; programs are counted by the caller.
    pub(crate) fn statuses(&self) -> Vec<TriggerStatus> {
        let status = |trigger: &SessionTrigger| TriggerStatus {
            options: trigger.options.clone(),
            is_armed: trigger.is_armed,
            firings: trigger.firings,
            suppressed: 0,
            last: trigger.last.clone(),
            programs: 0,
            watched: 0,
            why: Vec::new(),
        };
        self.all.iter().map(status).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_open_and_close() {
        let mut windows = TriggerWindows::always();
        windows.close(10);
        assert!(windows.is_open(10) && !windows.is_open(11));
        windows.open(20, u64::MAX);
        windows.open(25, u64::MAX);
        // A stop that is older than the start has no effect any more.
        windows.close(15);
        assert!(windows.is_open(1 << 40));
        windows.close(30);
        windows.open(40, 50);
        assert_eq!(windows.0, [(0, 10), (20, 30), (40, 50)]);
        assert!(windows.is_open(45) && !windows.is_open(51));
        (0..2 * WINDOWS_MAX as u64).for_each(|at| windows.open(100 + 2 * at, 100 + 2 * at));
        assert_eq!(windows.0.len(), WINDOWS_MAX);
    }
}
