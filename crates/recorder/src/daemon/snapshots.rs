//! Snapshots of flight recorders.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::path::PathBuf;

use super::reply::not_begun;
use super::{Daemon, Everybody, SETTLE, is_drained};
use crate::program::drain::DrainProgress;
use crate::program::run::{EventRun, LaneEnd, RunSink};
use crate::program::walk::EventVerdict;
use crate::program::{DrainTiming, ProgramFacts};
use crate::protocol::{Keep, RecorderReply, SessionSummary};
use crate::session::flight::FlightRecorder;
use crate::session::triggers::SnapshotWish;
use crate::session::{RecordingSession, WatchedClocks};

impl Daemon {
    pub(super) fn snapshot(&mut self, session: Option<&str>, output: Option<PathBuf>) -> Result<RecorderReply, String> {
        let at = self.named(session)?;
        if self.sessions[at].options.keep == Keep::Oldest {
            return Err(format!(
                "session `{}` writes everything to {}: snapshots are of sessions with `--mode overwrite`",
                self.sessions[at].name,
                self.sessions[at].options.output.display()
            ));
        }
        // A trigger's snapshot may have come into the folder meanwhile: this one is beside it.
        let own = &self.sessions[at].options.output;
        let has_others = || std::fs::read_dir(own).is_ok_and(|mut entries| entries.next().is_some());
        let output = output.filter(|output| output != own || !has_others());
        self.find();
        // The session keeps the events that other sessions drain.
        self.drain(DrainTiming::Now);
        self.bury();
        let summary = self.snapshot_of(at, output, None)?;
        Ok(RecorderReply::Snapshot { output: summary.output.clone(), summary })
    }

    /// Writes the events that a session holds, or so many of them, the last ones.
    fn snapshot_of(
        &mut self,
        at: usize,
        output: Option<PathBuf>,
        events: Option<u32>,
    ) -> Result<SessionSummary, String> {
        self.count_rules(false);
        let there = output.clone().unwrap_or_else(|| self.sessions[at].options.output.clone());
        let snapshot = self.sessions[at].snapshot(output, &mut self.clocks);
        let mut snapshot = snapshot.map_err(|error| not_begun(&there, &error))?;
        let flight = std::mem::take(&mut self.sessions[at].flight);
        if let Some(events) = events {
            let since = self.last_events(&mut snapshot, &flight, events as usize);
            snapshot.begins_at(since);
        }
        let summary = self.write_snapshot(snapshot, &flight);
        self.sessions[at].flight = flight;
        Ok(summary)
    }

    /// Takes the snapshots that triggers have asked for: sessions stopped at those events, and go on now.
    pub(crate) fn take_snapshots(&mut self) {
        for at in 0..self.sessions.len() {
            let Some(SnapshotWish { events }) = self.sessions[at].triggers.wants_snapshot() else { continue };
            // The thread that has fired it records its event.
            std::thread::sleep(SETTLE);
            if let Err(problem) = self.snapshot_of(at, None, events) {
                self.sessions[at].problem(format!("a trigger's snapshot was not written: {problem}"));
            }
            let now = self.clocks.now();
            self.sessions[at].trigger(|triggers| triggers.go_on(now));
            self.act(&[]);
        }
    }

    /// Ticks of each clock from which on so many events are in a snapshot.
    fn last_events(&mut self, snapshot: &mut RecordingSession, flight: &FlightRecorder, events: usize) -> [u64; 2] {
        let Self { served, sessions, clocks, .. } = self;
        let mut last = LastEvents { snapshot, clocks, events, times: Default::default(), verdicts: HashMap::new() };
        for (key, program) in flight.programs() {
            let held = served.iter_mut().find(|served| served.key() == key).filter(|it| !is_drained(it, sessions));
            let (held, bytes) = held.and_then(|served| served.program.held().ok()).unwrap_or_default();
            let runs = program.runs_but(&held, last.snapshot.pool_bytes().saturating_sub(bytes));
            last.snapshot.hears_of(&program.who);
            runs.iter().for_each(|run| last.take(&program.known, run));
        }
        for program in served.iter_mut() {
            if last.snapshot.takes_program(&program.who) && !is_drained(program, sessions) {
                last.snapshot.hears_of(&program.who);
                // If the program is gone, it has no events.
                let _ = program.program.snapshot(&mut last);
            }
        }
        let since = last.times.each_ref().map(|times| times.peek().map_or(0, |Reverse(ticks)| *ticks));
        last.snapshot.looks_again();
        since
    }

    /// Writes the events that programs of a flight recorder hold now, and those that its session
    /// has kept, as a session that ends at once.
    pub(crate) fn write_snapshot(&mut self, mut snapshot: RecordingSession, flight: &FlightRecorder) -> SessionSummary {
        let Self { served, sessions, clocks, .. } = self;
        for (key, program) in flight.programs() {
            // Sub-buffers that the program still holds are copied below; here they would be written
            // twice.
            let held = served.iter_mut().find(|served| served.key() == key).filter(|it| !is_drained(it, sessions));
            let (held, bytes) = held.and_then(|served| served.program.held().ok()).unwrap_or_default();
            let runs = program.runs_but(&held, snapshot.pool_bytes().saturating_sub(bytes));
            snapshot.meets(&program.who, &program.known, DrainProgress::default(), clocks);
            if !served.iter().any(|served| served.key() == key && !served.is_dead) {
                snapshot.has_ended(key);
            }
            runs.iter().for_each(|run| snapshot.take(&program.known, run, clocks));
        }
        for program in served.iter_mut() {
            if !snapshot.takes_program(&program.who) || is_drained(program, sessions) {
                continue;
            }
            snapshot.meets(&program.who, program.program.known(), DrainProgress::default(), clocks);
            if program.is_dead {
                snapshot.has_ended(program.key());
            }
            program.tell_objects(std::slice::from_mut(&mut snapshot), clocks);
            let mut sink = Everybody { sessions: std::slice::from_mut(&mut snapshot), clocks };
            if let Ok(drained) = program.program.snapshot(&mut sink) {
                snapshot.lost(program.program.known(), &drained, clocks);
            }
        }
        if let Some(session) = sessions.iter().find(|session| session.name == snapshot.name) {
            snapshot.take_kernel(session, clocks);
        }
        let found = std::mem::take(&mut snapshot.flush);
        let asked = snapshot.has_asked();
        let drains = sessions.iter().any(|session| session.name == snapshot.name && session.options.drains);
        snapshot.rules.are_asked_of_snapshot(&asked, drains);
        let summary = snapshot.finish(clocks);
        if let Some(session) = sessions.iter_mut().find(|session| session.name == summary.session) {
            session.flush.wrote(&summary, found);
            session.rules.are_asked_of_snapshot(&asked, drains);
        }
        summary
    }
}

/// Times of the last events of a snapshot, by clock.
struct LastEvents<'a> {
    snapshot: &'a mut RecordingSession,
    clocks: &'a mut WatchedClocks,
    events: usize,
    /// The first of them on top.
    times: [BinaryHeap<Reverse<u64>>; 2],
    /// Verdicts at the end of a run, by program and lane.
    verdicts: HashMap<(u64, u16), EventVerdict>,
}

impl RunSink for LastEvents<'_> {
    fn take(&mut self, program: &ProgramFacts, run: &EventRun<'_>) {
        let Self { snapshot, clocks, events, times, verdicts } = self;
        let (key, times) = (program.identity.key, &mut times[program.identity.clock as usize]);
        let mut verdict = verdicts.remove(&(key, run.lane));
        snapshot.each_time(program, run, clocks, &mut verdict, &mut |ticks| {
            times.push(Reverse(ticks));
            // The event that has fired the trigger comes to them.
            if times.len() > *events + 1 {
                times.pop();
            }
        });
        verdicts.extend(verdict.map(|verdict| ((key, run.lane), verdict)));
    }

    fn end(&mut self, _: &ProgramFacts, _: &LaneEnd) {}
}
