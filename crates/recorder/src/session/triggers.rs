//! Triggers of a session: whether it records, in each program, and since when.
//!
//! ```text
//! firing in a program ──> windows: ticks from which and to which the session records ──> events of the trace
//!                    └──> is it on? ──> the program's groups, and those of the others (`serve`)
//! ```
//!
//! Programs act at their events, and the recorder cuts by time: an event belongs to the session if it lies
//! in a window of its program.

use std::collections::{BTreeMap, HashMap, VecDeque};

use kymo_lane::{ClockSource, Firing};
use kymo_schema::definition::EventClass;
use serde::{Deserialize, Serialize};

use crate::clock::uptime_ns;
use crate::filters::ProgramConstants;
use crate::kernel::wanted::joined;
use crate::select::{ProgramCandidate, SelectionRule};
use crate::session::matches::TriggerMatches;
use crate::trigger::{TriggerEffect, TriggerFiring, TriggerOptions, TriggerScope, TriggerStatus};

/// Windows of a program that are kept: those before them are over for long.
const WINDOWS_MAX: usize = 4096;
/// Changes of a program that are kept: events that made them are taken in the next round.
const CHANGES_MAX: usize = 1024;

/// Ticks at which a session records: first and last ones, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TriggerWindows(Vec<(u64, u64)>);

impl TriggerWindows {
    /// The session records all the time.
    fn always() -> Self {
        Self(vec![(0, u64::MAX)])
    }

    /// Whether it records behind these ticks.
    fn is_open(&self, now: u64) -> bool {
        self.0.last().is_some_and(|(first, last)| (*first..*last).contains(&now))
    }

    fn open(&mut self, first: u64, last: u64) {
        match self.0.last_mut() {
            // It is open already.
            Some(known) if known.1 >= first && known.0 <= first => known.1 = known.1.max(last),
            // A later window is known, or it was closed after this start.
            Some(known) if known.0 > first => {}
            _ => self.0.push((first, last)),
        }
        let too_many = self.0.len().saturating_sub(WINDOWS_MAX);
        self.0.drain(..too_many);
    }

    /// Returns when the window would have ended, if it was open.
    fn close(&mut self, at: u64) -> Option<u64> {
        let known = self.0.last_mut().filter(|known| (known.0..known.1).contains(&at))?;
        Some(std::mem::replace(&mut known.1, at))
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
    /// Changes of the last ones that counted.
    #[serde(default)]
    pub(crate) changes: VecDeque<u32>,
    /// Events that have fired triggers which the recorder watches, by their ticks and threads: the last ones.
    #[serde(default)]
    pub(crate) late: VecDeque<(u64, u32)>,
}

/// Place of a firing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LatestFiring {
    program: u64,
    /// The clock's number, and its ticks: of the event, if they are known.
    clock: usize,
    ticks: u64,
    /// Number of the change of the program's groups; `None`: the recorder has found the event.
    change: Option<u32>,
}

impl LatestFiring {
    fn of(at: &ProgramFiring) -> Self {
        let change = (!at.told.is_late).then_some(at.firing.number as u32);
        Self { program: at.program, clock: at.clock as usize, ticks: at.firing.ticks, change }
    }
}

/// A trigger, and whether it is armed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionTrigger {
    pub(crate) options: TriggerOptions,
    /// A number that grows whenever any trigger of the session is armed.
    pub(crate) epoch: u64,
    pub(crate) is_armed: bool,
    /// Ticks of each clock since which it is.
    #[serde(default)]
    pub(crate) since: [u64; 2],
    firings: u64,
    last: Option<TriggerFiring>,
    /// Where its last firing was.
    #[serde(default)]
    last_at: LatestFiring,
    /// Matches that the recorder has found, by program, since it is armed or has fired.
    #[serde(default)]
    counted: BTreeMap<u64, u64>,
    /// Of programs that are gone: firings that came too early, and the most matches of one.
    #[serde(default)]
    suppressed: u64,
    #[serde(default)]
    counted_most: u64,
    #[serde(default)]
    matches: TriggerMatches,
}

impl SessionTrigger {
    fn of(options: TriggerOptions, epoch: u64, since: [u64; 2]) -> Self {
        let matches = TriggerMatches::of(&options.rule);
        Self {
            options,
            epoch,
            is_armed: true,
            since,
            firings: 0,
            last: None,
            last_at: LatestFiring::default(),
            counted: BTreeMap::new(),
            suppressed: 0,
            counted_most: 0,
            matches,
        }
    }

    /// Its state for people; the caller adds that of programs. `nanos` are the nanoseconds since 1970 of ticks of a
    /// clock, as the trace tells them.
    fn status(&self, nanos: impl Fn(usize, u64) -> Option<i64>) -> TriggerStatus {
        let LatestFiring { clock, ticks, .. } = self.last_at;
        let last =
            self.last.clone().map(|last| TriggerFiring { ns: nanos(clock, ticks).unwrap_or(last.ns), ticks, ..last });
        TriggerStatus {
            options: self.options.clone(),
            is_armed: self.is_armed,
            firings: self.firings,
            suppressed: self.suppressed,
            counted: self.counted_most,
            unmatched: self.matches.unmatched.clone(),
            never: self.matches.never().map(str::to_owned),
            notes: self.matches.notes.clone(),
            last,
            programs: 0,
            watched: 0,
            why: Vec::new(),
        }
    }

    /// The recorder has found a match in a program: whether that is the one that fires. Programs count theirs.
    fn is_reached(&mut self, program: u64) -> bool {
        let Some(count) = self.options.after.filter(|count| *count > 1) else { return true };
        let counted = self.counted.entry(program).or_default();
        *counted += 1;
        *counted >= count.into()
    }

    /// Whether a firing is too early after the last one. Those of one program are not: it has compared their
    /// ticks.
    fn is_early(&self, at: &ProgramFiring) -> bool {
        let (Some(ns), Some(last)) = (self.options.interval_ns, &self.last) else { return false };
        let has_compared = self.last_at.program == at.program && !at.told.is_late;
        !has_compared && at.told.ns < last.ns.saturating_add(i64::try_from(ns).unwrap_or(i64::MAX))
    }
}

/// A firing, and where it happened.
#[derive(Clone, Debug)]
pub(crate) struct ProgramFiring {
    /// The program, and its PID as it sees itself.
    pub(crate) program: u64,
    pub(crate) vpid: u32,
    /// The clock of its ticks.
    pub(crate) clock: ClockSource,
    /// The firing.
    pub(crate) firing: Firing,
    /// The same for people.
    pub(crate) told: TriggerFiring,
    /// Ticks of each clock in a second.
    pub(crate) frequencies: [u64; 2],
}

/// A snapshot that triggers have asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SnapshotWish {
    /// So many events, the last ones; `None`: all.
    pub(crate) events: Option<u32>,
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
    /// Windows that programs had which are gone, by clock.
    gone: [Vec<(u64, u64)>; 2],
    pub(crate) places: HashMap<u64, TriggerPlaces>,
    /// The session has or had triggers: windows count.
    is_limited: bool,
    epoch: u64,
    /// Firings have armed or disarmed triggers.
    has_changed: bool,
    /// A snapshot is to be taken.
    wants_snapshot: Option<SnapshotWish>,
    /// Windows that its trigger has closed, and when they would have ended: of programs, or of those that come
    /// (`None`), and of which clock.
    interrupted: Vec<(Option<u64>, usize, u64)>,
}

impl SessionTriggers {
    /// Those of a session that begins at these ticks.
    pub(crate) fn new(all: &[TriggerOptions], now: [u64; 2]) -> Self {
        let mut this = Self { shared: [TriggerWindows::always(), TriggerWindows::always()], ..Self::default() };
        all.iter().for_each(|options| this.set(options.clone(), now));
        this
    }

    /// What people should know of its triggers, in sentences with lines that show the place.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let told = |status: &TriggerStatus| {
            let all = status.warnings().into_iter().chain(status.notes.iter().cloned());
            all.map(|warning| format!("trigger `{}`: {warning}", status.options.name)).collect::<Vec<_>>()
        };
        self.statuses(|_, _| None).iter().flat_map(told).collect()
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
        self.all.push(SessionTrigger::of(options, self.epoch, now));
        if is_first_start {
            self.each_window(now, |windows, at| _ = windows.close(at));
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
    pub(crate) fn arm(&mut self, name: Option<&str>, is_armed: bool, now: [u64; 2]) -> usize {
        self.next_epoch();
        let its = |trigger: &&mut SessionTrigger| name.is_none_or(|name| trigger.options.name == name);
        let mut count = 0;
        for trigger in self.all.iter_mut().filter(its) {
            if is_armed && !trigger.is_armed {
                trigger.since = now;
            }
            (trigger.is_armed, trigger.epoch) = (is_armed, self.epoch);
            trigger.counted.clear();
            trigger.counted_most = 0;
            count += 1;
        }
        count
    }

    /// Starts or stops the session now, in all programs.
    pub(crate) fn turn(&mut self, is_on: bool, now: [u64; 2]) {
        self.is_limited = true;
        match is_on {
            true => self.each_window(now, |windows, at| windows.open(at, u64::MAX)),
            false => self.each_window(now, |windows, at| _ = windows.close(at)),
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
        if let Some((clock, windows)) = self.own.remove(&program) {
            let source =
                if clock == ClockSource::Counter as usize { ClockSource::Counter } else { ClockSource::Monotonic };
            let now = crate::clock::ticks(source);
            let its = windows.0.iter().map(|(first, last)| (*first, (*last).min(now)));
            let gone = &mut self.gone[clock % 2];
            *gone = joined(gone.iter().copied().chain(its.filter(|(first, last)| first <= last)).collect());
            let too_many = gone.len().saturating_sub(WINDOWS_MAX);
            gone.drain(..too_many);
        }
        self.places.remove(&program);
        self.all.iter_mut().for_each(|trigger| _ = trigger.counted.remove(&program));
    }

    /// A program is about to be gone, with its counts of a trigger.
    pub(crate) fn leaves(&mut self, name: &str, suppressed: u64, counted: u64) {
        for trigger in self.all.iter_mut().filter(|trigger| trigger.options.name == name) {
            trigger.suppressed += suppressed;
            trigger.counted_most = trigger.counted_most.max(counted);
        }
    }

    /// A program has an event.
    pub(crate) fn sees(&mut self, program: &ProgramCandidate<'_>, class: &EventClass, facts: ProgramConstants<'_>) {
        self.all.iter_mut().for_each(|trigger| trigger.matches.sees(&trigger.options.rule, program, class, facts));
    }

    /// Number of a trigger in a program.
    pub(crate) fn number(&self, program: u64, name: &str) -> Option<u8> {
        self.places.get(&program)?.triggers.get(name).copied()
    }

    /// Matches of a trigger in a program that the recorder has found, and the program has not counted.
    pub(crate) fn counted(&self, program: u64, name: &str) -> u64 {
        let trigger = self.all.iter().find(|trigger| trigger.options.name == name);
        trigger.and_then(|trigger| trigger.counted.get(&program)).copied().unwrap_or(0)
    }

    /// The same of all triggers with a number in that program.
    pub(crate) fn counts(&self, program: u64) -> Vec<(u8, u64)> {
        let its = |trigger: &SessionTrigger| {
            Some((self.number(program, &trigger.options.name)?, *trigger.counted.get(&program)?))
        };
        self.all.iter().filter_map(its).collect()
    }

    /// The session's group in a program.
    pub(crate) fn group(&self, program: u64) -> Option<u8> {
        self.places.get(&program)?.group
    }

    /// Events that they watch.
    pub(crate) fn rules(&self) -> Vec<SelectionRule> {
        self.all.iter().map(|trigger| trigger.options.rule.clone()).collect()
    }

    /// Changes of a program's groups that firings have made which counted: the last ones.
    pub(crate) fn changes(&self, program: u64) -> impl Iterator<Item = u32> {
        self.places.get(&program).into_iter().flat_map(|places| places.changes.iter().copied())
    }

    /// Events of a program that have fired triggers which the recorder watches.
    pub(crate) fn late_events(&self, program: u64) -> impl Iterator<Item = (u64, u32)> {
        self.places.get(&program).into_iter().flat_map(|places| places.late.iter().copied())
    }

    /// Windows of a program; `None`: the session records all the time.
    pub(crate) fn windows(&self, program: u64, clock: ClockSource) -> Option<&[(u64, u64)]> {
        let its = self.own.get(&program).map_or(&self.shared[clock as usize], |(_, windows)| windows);
        self.is_limited.then_some(&its.0)
    }

    /// Windows of a clock in which it records in any program, also in those that come or are gone; `None`: it records all the time.
    pub(crate) fn all_windows(&self, clock: ClockSource) -> Option<Vec<(u64, u64)>> {
        let own = self.own.values().filter(|(of, _)| *of == clock as usize);
        let all = own.flat_map(|(_, windows)| &windows.0).chain(&self.shared[clock as usize].0);
        self.is_limited.then(|| all.chain(&self.gone[clock as usize]).copied().collect())
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

    /// A trigger has fired; returns its effect if it was armed. Firings come in the order of their times. Programs
    /// of another clock follow `now`: their ticks cannot be compared with those of the firing.
    pub(crate) fn fired(&mut self, name: &str, at: &ProgramFiring, now: [u64; 2]) -> Option<TriggerEffect> {
        let place = self.all.iter().position(|trigger| trigger.options.name == name)?;
        let its = self.own.get(&at.program).map_or(&self.shared[at.clock as usize], |(_, windows)| windows);
        let is_start = self.all[place].options.effect == TriggerEffect::Start;
        let is_gate = self.all[place].options.effect.is_gate();
        let has_effect = is_gate || its.is_open(at.firing.ticks) != is_start;
        // Another program was first; or the recorder watches, and sees events that change nothing.
        if !self.all[place].is_armed || !has_effect || self.all[place].is_early(at) {
            let is_spent = !self.all[place].options.repeats && !at.told.is_late;
            if self.all[place].is_armed && is_spent {
                // The program could not know that, and does not fire it again as it is.
                self.next_epoch();
                self.all[place].epoch = self.epoch;
                self.has_changed = true;
            }
            return None;
        }
        let trigger = &mut self.all[place];
        if at.told.is_late && !trigger.is_reached(at.program) {
            return None;
        }
        self.has_changed |= !trigger.options.repeats;
        trigger.counted.remove(&at.program);
        trigger.counted_most = 0;
        if at.told.is_late {
            let places = self.places.entry(at.program).or_default();
            push_last(&mut places.late, (at.firing.ticks, at.firing.tid));
        } else if let Some(places) = self.places.get_mut(&at.program) {
            push_last(&mut places.changes, at.firing.number as u32);
        }
        trigger.is_armed = trigger.options.repeats;
        trigger.firings += 1;
        (trigger.last, trigger.last_at) = (Some(at.told.clone()), LatestFiring::of(at));
        let (effect, scope, length) = (trigger.options.effect, trigger.options.scope, trigger.options.for_ns);
        let last_events = trigger.options.last;
        let ticks = at.firing.ticks;
        let end = |begin: u64, clock: usize| {
            length.map_or(u64::MAX, |ns| {
                let more = u128::from(ns) * u128::from(at.frequencies[clock % 2]) / 1_000_000_000;
                begin.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
            })
        };
        self.meets(at.program, at.clock);
        let own = at.clock as usize;
        let interrupted = &mut self.interrupted;
        let mut act = |windows: &mut TriggerWindows, program: Option<u64>, clock: usize| {
            let when = if clock == own { ticks } else { now[clock % 2] };
            match effect {
                // A window that was closed later stays closed.
                TriggerEffect::Start if windows.is_open(when) => {}
                TriggerEffect::Start => windows.open(when, end(when, clock)),
                TriggerEffect::Open | TriggerEffect::Close => {}
                TriggerEffect::Stop => _ = windows.close(when),
                TriggerEffect::Snapshot => {
                    interrupted.extend(windows.close(when).map(|last| (program, clock, last)));
                }
            }
        };
        match scope {
            TriggerScope::Program => {
                let its = self.own.get_mut(&at.program).into_iter();
                its.for_each(|(clock, windows)| act(windows, Some(at.program), *clock));
            }
            TriggerScope::Session => {
                self.shared.iter_mut().enumerate().for_each(|(clock, windows)| act(windows, None, clock));
                self.own.iter_mut().for_each(|(program, (clock, windows))| act(windows, Some(*program), *clock));
            }
        }
        if effect == TriggerEffect::Snapshot {
            let events = self.wants_snapshot.map_or(last_events, |wish| Some(wish.events?.max(last_events?)));
            self.wants_snapshot = Some(SnapshotWish { events });
        }
        Some(effect)
    }

    /// The rule that a trigger opens or closes by a firing at that time; `None`: none, or a later firing has turned it already.
    pub(crate) fn gate(&self, trigger: &str, ns: i64) -> Option<&str> {
        let known = self.all.iter().find(|known| known.options.name == trigger)?;
        let rule = known.options.gate.as_deref()?;
        let mut of_rule = self.all.iter().filter(|known| known.options.gate.as_deref() == Some(rule));
        let is_last = of_rule.all(|known| known.last.as_ref().is_none_or(|last| last.ns <= ns));
        is_last.then_some(rule)
    }

    /// Whether firings have armed or disarmed triggers since the last call: programs have to hear of it.
    pub(crate) fn has_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// Whether triggers have asked for a snapshot since the last call.
    pub(crate) fn wants_snapshot(&mut self) -> Option<SnapshotWish> {
        self.wants_snapshot.take()
    }

    /// The snapshot is taken: what recorded before goes on.
    pub(crate) fn go_on(&mut self, now: [u64; 2]) {
        for (program, clock, last) in std::mem::take(&mut self.interrupted) {
            let windows = match program {
                Some(program) => self.own.get_mut(&program).map(|(_, windows)| windows),
                None => self.shared.get_mut(clock),
            };
            let first = now[clock % 2];
            windows.filter(|_| first <= last).into_iter().for_each(|windows| windows.open(first, last));
        }
    }

    /// States for people; the caller adds those of programs.
    pub(crate) fn statuses(&self, nanos: impl Fn(usize, u64) -> Option<i64>) -> Vec<TriggerStatus> {
        self.all.iter().map(|trigger| trigger.status(&nanos)).collect()
    }

    /// The recorder has come to the event that has fired triggers of a program with these changes, at these ticks.
    pub(crate) fn saw(&mut self, program: u64, [first, last]: [u32; 2], ticks: u64) {
        for trigger in &mut self.all {
            let at = &mut trigger.last_at;
            let is_its = |change: u32| change.wrapping_sub(first) <= last.wrapping_sub(first);
            if at.program == program
                && at.change.is_some_and(is_its)
                && let Some(told) = &mut trigger.last
            {
                // The event is not earlier than the firing.
                (at.ticks, told.is_exact) = (at.ticks.max(ticks), true);
            }
        }
    }
}

/// One more, of which the last ones are known.
fn push_last<T>(all: &mut VecDeque<T>, new: T) {
    all.push_back(new);
    if all.len() > CHANGES_MAX {
        all.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_open_and_close() {
        let mut windows = TriggerWindows::always();
        windows.close(10);
        assert!(windows.is_open(9) && !windows.is_open(10));
        windows.open(20, u64::MAX);
        windows.open(25, u64::MAX);
        // A stop that is older than the start has no effect any more.
        windows.close(15);
        assert!(windows.is_open(1 << 40));
        windows.close(30);
        windows.open(40, 50);
        // The windows of 20 and 40 are known: a start that is older has no effect any more.
        windows.open(35, u64::MAX);
        assert_eq!(windows.0, [(0, 10), (20, 30), (40, 50)]);
        assert!(windows.is_open(45) && !windows.is_open(51));
        (0..2 * WINDOWS_MAX as u64).for_each(|at| windows.open(100 + 2 * at, 100 + 2 * at));
        assert_eq!(windows.0.len(), WINDOWS_MAX);
    }

    const NOW: [u64; 2] = [1000, 1000];

    fn trigger(name: &str, effect: TriggerEffect, scope: TriggerScope) -> TriggerOptions {
        let name = name.to_owned();
        let (rule, repeats) = (SelectionRule::default(), effect != TriggerEffect::Start);
        TriggerOptions {
            name,
            rule,
            effect,
            scope,
            repeats,
            interval_ns: None,
            for_ns: None,
            after: None,
            asks: None,
            last: None,
            gate: None,
        }
    }

    fn at(program: u64, ticks: u64) -> ProgramFiring {
        let (number, action, groups) = (0, kymo_lane::TriggerAction::Start, 1);
        let told = TriggerFiring {
            ns: ticks.cast_signed(),
            ticks,
            event: "test:it".to_owned(),
            program: "it".to_owned(),
            pid: 1,
            tid: 1,
            is_late: false,
            is_exact: false,
        };
        let firing = Firing { number, ticks, trigger: 0, action, groups, event: 0, tid: 1 };
        ProgramFiring { program, vpid: 1, clock: ClockSource::Counter, firing, told, frequencies: [1_000_000_000; 2] }
    }

    #[test]
    fn a_stop_that_comes_later_outlasts_an_older_start() {
        let all = [
            trigger("begin", TriggerEffect::Start, TriggerScope::Session),
            trigger("end", TriggerEffect::Stop, TriggerScope::Session),
        ];
        let mut triggers = SessionTriggers::new(&all, [0; 2]);
        [1, 2].into_iter().for_each(|program| triggers.meets(program, ClockSource::Counter));
        assert!(triggers.fired("begin", &at(1, 20), NOW).is_some() && triggers.fired("end", &at(1, 30), NOW).is_some());
        // The program has fired it before it heard of the others: it is spent there, and still armed here.
        triggers.arm(Some("begin"), true, NOW);
        let epoch = triggers.all()[0].epoch;
        assert_eq!(triggers.fired("begin", &at(2, 25), NOW), None);
        assert!(triggers.all()[0].epoch > epoch && triggers.all()[0].is_armed);
        assert_eq!(triggers.windows(2, ClockSource::Counter), Some(&[(0, 0), (20, 30)][..]));
        // At the tick of the stop, a start is behind it.
        assert_eq!(triggers.fired("begin", &at(2, 30), NOW), Some(TriggerEffect::Start));
        assert!(triggers.is_on(1, ClockSource::Counter, 40));
    }

    #[test]
    fn after_a_snapshot_only_what_recorded_goes_on() {
        let all = [
            trigger("keep", TriggerEffect::Snapshot, TriggerScope::Session),
            trigger("end", TriggerEffect::Stop, TriggerScope::Program),
        ];
        let mut triggers = SessionTriggers::new(&all, [0; 2]);
        [1, 2].into_iter().for_each(|program| triggers.meets(program, ClockSource::Counter));
        assert!(triggers.fired("end", &at(1, 10), NOW).is_some() && triggers.fired("keep", &at(2, 20), NOW).is_some());
        assert_eq!((triggers.wants_snapshot(), triggers.wants_snapshot()), (Some(SnapshotWish { events: None }), None));
        assert!(!triggers.is_on(2, ClockSource::Counter, 25));
        triggers.go_on([50; 2]);
        assert!(triggers.is_on(2, ClockSource::Counter, 60) && triggers.is_on_for_all([60; 2]));
        assert!(!triggers.is_on(1, ClockSource::Counter, 60), "its stop was not the snapshot's");
    }
}
