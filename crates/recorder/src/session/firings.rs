//! Firings of a session's triggers: its traces tell them. A flight recorder keeps the last ones for its snapshots.

use std::collections::VecDeque;

use kymo_lane::ClockSource;

use crate::protocol::Keep;
use crate::session::triggers::ProgramFiring;
use crate::session::{RecordingSession, WatchedClocks};
use crate::trace::firings::TraceFiring;
use crate::trigger::TriggerEffect;

/// Firings that a flight recorder keeps.
const KEPT_MAX: usize = 256;
/// A snapshot has firings that are so much earlier than its first event, in parts of a second: the event of a
/// start is slightly later than its firing.
const BEFORE: u64 = 10;

/// The last firings of a flight recorder's triggers.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptFirings(VecDeque<(ClockSource, TraceFiring)>);

impl KeptFirings {
    fn keep(&mut self, clock: ClockSource, firing: TraceFiring) {
        self.0.push_back((clock, firing));
        let too_many = self.0.len().saturating_sub(KEPT_MAX);
        self.0.drain(..too_many);
    }

    /// Takes those of a clock, in the order of their times.
    fn take(&mut self, clock: ClockSource) -> Vec<TraceFiring> {
        let (its, others) = std::mem::take(&mut self.0).into_iter().partition::<VecDeque<_>, _>(|(of, _)| *of == clock);
        self.0 = others;
        let mut its: Vec<TraceFiring> = its.into_iter().map(|(_, firing)| firing).collect();
        its.sort_by_key(|firing| firing.ticks);
        its
    }
}

impl RecordingSession {
    /// A trigger has fired in a program. Firings come in the order of their times.
    pub(crate) fn fires(&mut self, trigger: &str, at: &ProgramFiring, clocks: &mut WatchedClocks) {
        let now = clocks.now();
        let Some(effect) = self.triggers.fired(trigger, at, now) else { return };
        if effect.is_gate() {
            self.turn_gate((trigger, effect), at.told.ns);
        }
        let firing = TraceFiring {
            trigger: trigger.to_owned(),
            effect,
            ticks: at.firing.ticks,
            program: at.program,
            vpid: at.vpid,
            told: at.told.clone(),
        };
        if self.options.keep == Keep::Newest {
            self.firings.keep(at.clock, firing);
        } else {
            self.with_output((at.program, at.clock), clocks, |output, _| output.fired(&firing));
        }
    }

    /// A rule about the kernel is opened or closed.
    fn turn_gate(&mut self, (trigger, effect): (&str, TriggerEffect), ns: i64) {
        // Programs are heard one after the other: the last firing counts, and not the one that was heard last.
        let Some(rule) = self.triggers.gate(trigger, ns).map(str::to_owned) else { return };
        let word = if effect == TriggerEffect::Open { "open" } else { "closed" };
        // That the rule is there was asked when the trigger was added, and rules about the kernel stay.
        let _ = self.limit_of_kernel(&rule, (None, Some(word)));
    }

    /// The time of ticks of a clock, as the trace tells it, if there is one.
    pub(super) fn nanos(&self, clock: usize, ticks: u64) -> Option<i64> {
        let its = self.outputs.iter().find(|(source, _)| *source as usize == clock);
        its.and_then(|(_, output)| output.nanos(ticks))
    }

    /// Writes the firings of the time that a snapshot has events of.
    pub(super) fn write_firings(&mut self, clocks: &mut WatchedClocks) {
        let (earliest, latest) = (self.earliest, self.latest);
        for (source, output) in &mut self.outputs {
            let (at, before) = (*source as usize, clocks.of(*source).frequency() / BEFORE);
            let Some(first) = output.first_event() else { continue };
            let is_within = |firing: &&TraceFiring| {
                (earliest[at]..=latest[at]).contains(&firing.ticks) && firing.ticks.saturating_add(before) >= first
            };
            let firings = self.firings.take(*source);
            firings.iter().filter(is_within).for_each(|firing| output.fired(firing));
        }
    }
}
