//! Runs of programs' lanes that a session takes: which of their events, and since when.

use crate::program::ProgramFacts;
use crate::program::run::EventRun;
use crate::program::walk::EventVerdict;
use crate::protocol::Keep;
use crate::session::choosing::Choosing;
use crate::session::flush::FlushState;
use crate::session::remember::RecorderRules;
use crate::session::{RecordingSession, WatchedClocks};
use crate::trace::{Output, choose};

impl RecordingSession {
    pub(crate) fn take(&mut self, program: &ProgramFacts, run: &EventRun<'_>, clocks: &mut WatchedClocks) {
        if self.options.keep == Keep::Newest {
            let bytes_max = self.pool_bytes();
            if let Some(who) = self.choosing.known.get(&program.identity.key) {
                self.flight.take(who, program, run, bytes_max);
            }
            return;
        }
        let clock = program.identity.clock as usize;
        let (earliest, latest) = (self.earliest[clock], self.latest[clock]);
        if latest < u64::MAX {
            self.flush.finds(program.identity.key, run.lane, run.sequence);
        }
        let Some(windows) = self.turns_to(program, run, clocks) else { return };
        let is_wanted = windows.iter().any(|(first, last)| *first <= run.last && *last >= run.begin);
        // Losses from before the session began are not its losses, nor those while it was stopped.
        let is_since = run.begin >= earliest && is_wanted;
        let run = &if is_since { *run } else { EventRun { discarded: 0, missing: 0, ..*run } };
        if !self.contexts_missing.is_empty() {
            let all = program.contexts.iter().flatten();
            all.for_each(|context| _ = self.contexts_missing.remove(&context.field.name));
        }
        let take = |output: &mut Output, choosing: &mut Choosing| output.take_within(program, run, &windows, choosing);
        if !self.with_output(program.identity.place(), clocks, take) {
            // Without an output these events are lost, but they are counted, so that the summary
            // adds up.
            let unbegun = &mut self.unbegun[program.identity.clock as usize];
            unbegun.unwritten += choose::chosen(program, run, &windows, &mut self.choosing);
            unbegun.full += run.discarded;
        }
        let fired = std::mem::take(&mut self.choosing.run.fired);
        fired.iter().for_each(|(changes, ticks)| self.triggers.saw(program.identity.key, *changes, *ticks));
    }

    /// Ticks of the events of a run that its trace would have; `verdict` stands before them.
    pub(crate) fn each_time(
        &mut self,
        program: &ProgramFacts,
        run: &EventRun<'_>,
        clocks: &mut WatchedClocks,
        verdict: &mut Option<EventVerdict>,
        each: &mut dyn FnMut(u64),
    ) {
        if let Some(windows) = self.turns_to(program, run, clocks) {
            choose::each_chosen((program, run), &windows, &mut self.choosing, verdict, each);
        }
    }

    /// What was looked at for [`each_time`](Self::each_time) is looked at again, and counts then.
    pub(crate) fn looks_again(&mut self) {
        let Choosing { filtered, remembers, run, .. } = &mut self.choosing;
        (*filtered, *remembers) = (0, RecorderRules::default());
        run.fired.clear();
    }

    /// It has no events before these ticks of each clock.
    pub(crate) fn begins_at(&mut self, since: [u64; 2]) {
        self.earliest.iter_mut().zip(since).for_each(|(earliest, since)| *earliest = since.max(*earliest));
    }

    /// It is on already, and has no events before these ticks of each clock.
    pub(crate) fn begins_now_at(&mut self, since: [u64; 2]) {
        self.begins_at(since);
        self.flush = FlushState::begin(since);
    }

    /// It has no events from these ticks of each clock on.
    pub(crate) fn ends_before(&mut self, end: [u64; 2]) {
        self.latest = end.map(|ticks| ticks.saturating_sub(1));
        let (earliest, latest) = (self.earliest, self.latest);
        for (source, output) in &mut self.outputs {
            output.wants(earliest[*source as usize], latest[*source as usize]);
        }
    }

    /// Turns to a run of a program: times of it that the session wants, first and last ticks; `None`: it wants nothing of it.
    /// Ticks decide, not the order of drains: a session may meet a program with older events.
    fn turns_to(
        &mut self,
        program: &ProgramFacts,
        run: &EventRun<'_>,
        clocks: &mut WatchedClocks,
    ) -> Option<Vec<(u64, u64)>> {
        let (key, clock) = (program.identity.key, program.identity.clock);
        let (earliest, latest) = (self.earliest[clock as usize], self.latest[clock as usize]);
        if run.last < earliest || run.begin > latest {
            return None;
        }
        let facts = &mut self.choosing.run;
        facts.groups = self.triggers.group(key).map_or(0, |group| 1 << group);
        facts.changes.clear();
        facts.changes.extend(self.triggers.changes(key));
        facts.late.clear();
        let late = self.triggers.late_events(key);
        facts.late.extend(late.filter(|(ticks, _)| (run.begin..=run.last).contains(ticks)));
        facts.frequency = clocks.of(clock).frequency();
        (facts.contexts, facts.thread) = (run.contexts, run.thread);
        facts.own.clone_from(&program.contexts);
        Some(self.windows(program, (earliest, latest)))
    }

    /// Ticks at which it records in a program: first and last ones.
    fn windows(&self, program: &ProgramFacts, (earliest, latest): (u64, u64)) -> Vec<(u64, u64)> {
        let identity = &program.identity;
        let Some(windows) = self.triggers.windows(identity.key, identity.clock) else {
            return vec![(earliest, latest)];
        };
        let windows = windows.iter().map(|(first, last)| ((*first).max(earliest), (*last).min(latest)));
        windows.filter(|(first, last)| first <= last).collect()
    }
}
