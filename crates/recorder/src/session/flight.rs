//! The events that a flight recorder's session keeps itself: those of programs that the recorder
//! drains meanwhile for another session.
//!
//! ```text
//! program ── drained ──> session that writes
//!               └──────> Flight: as much of each program as its own memory would have kept ── snapshot ──> trace
//! ```

use std::collections::{HashMap, HashSet, VecDeque};

use kymo_lane::WriterThread;

use crate::program::ProgramFacts;
use crate::program::run::EventRun;
use crate::session::serve::ProgramId;

/// Programs that are gone, while their events are still kept.
const GONE_MAX: usize = 64;

/// The newest runs of programs.
#[derive(Debug, Default)]
pub(crate) struct FlightRecorder {
    programs: HashMap<u64, OfProgram>,
    /// Programs that are gone; the first one is forgotten first.
    gone: VecDeque<u64>,
}

/// The newest runs of one program.
#[derive(Debug)]
pub(crate) struct OfProgram {
    pub(crate) who: ProgramId,
    pub(crate) known: ProgramFacts,
    runs: VecDeque<OwnRun>,
    bytes: u64,
}

/// A run with bytes of its own.
#[derive(Debug)]
struct OwnRun {
    lane: u16,
    thread: WriterThread,
    sequence: u64,
    from: u32,
    contexts: u64,
    begin: u64,
    last: u64,
    bytes: Vec<u8>,
    discarded: u64,
    discarded_ever: u64,
    missing: u64,
}

impl OwnRun {
    fn of(run: &EventRun<'_>) -> Self {
        let EventRun { lane, thread, sequence, from, contexts, begin, last, bytes, discarded, discarded_ever, missing } =
            *run;
        let bytes = bytes.to_vec();
        Self { lane, thread, sequence, from, contexts, begin, last, bytes, discarded, discarded_ever, missing }
    }

    fn run(&self) -> EventRun<'_> {
        let Self { lane, thread, sequence, from, contexts, begin, last, ref bytes, discarded, discarded_ever, missing } =
            *self;
        EventRun { lane, thread, sequence, from, contexts, begin, last, bytes, discarded, discarded_ever, missing }
    }
}

impl FlightRecorder {
    /// Keeps a run of a program, and forgets the oldest ones beyond `bytes_max`.
    pub(crate) fn take(&mut self, who: &ProgramId, known: &ProgramFacts, run: &EventRun<'_>, bytes_max: u64) {
        let new = || OfProgram { who: who.clone(), known: known.clone(), runs: VecDeque::new(), bytes: 0 };
        let program = self.programs.entry(known.identity.key).or_insert_with(new);
        if (program.known.events.len(), program.known.contexts.len()) != (known.events.len(), known.contexts.len()) {
            program.known = known.clone();
        }
        program.bytes += run.bytes.len() as u64;
        program.runs.push_back(OwnRun::of(run));
        while program.bytes > bytes_max
            && let Some(oldest) = program.runs.pop_front()
        {
            program.bytes -= oldest.bytes.len() as u64;
        }
    }

    /// A program is gone; its events stay for a while. Returns the program of which nothing is kept any more: this one,
    /// or the one that is gone for longest.
    pub(crate) fn leave(&mut self, key: u64) -> Option<u64> {
        if !self.programs.contains_key(&key) {
            return Some(key);
        }
        if !self.gone.contains(&key) {
            self.gone.push_back(key);
        }
        let forgotten = if self.gone.len() > GONE_MAX { self.gone.pop_front() } else { None };
        forgotten.iter().for_each(|first| _ = self.programs.remove(first));
        forgotten
    }

    /// The kept runs, by program.
    pub(crate) fn programs(&self) -> impl Iterator<Item = (u64, &OfProgram)> {
        self.programs.iter().map(|(key, program)| (*key, program))
    }
}

impl OfProgram {
    /// The newest runs of a program, in order and of at most so many bytes, without those of
    /// sub-buffers that the program still holds.
    pub(crate) fn runs_but(&self, held: &HashSet<(u16, u64)>, bytes_max: u64) -> Vec<EventRun<'_>> {
        let mut bytes = 0;
        let is_in = |run: &&OwnRun| {
            bytes += run.bytes.len() as u64;
            bytes <= bytes_max
        };
        let others = self.runs.iter().rev().filter(|run| !held.contains(&(run.lane, run.sequence)));
        let mut runs: Vec<_> = others.take_while(is_in).map(OwnRun::run).collect();
        runs.reverse();
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::ProgramIdentity;

    fn known(key: u64) -> (ProgramId, ProgramFacts) {
        let identity = ProgramIdentity { key, pid: 1, ..ProgramIdentity::default() };
        let known = ProgramFacts { identity: identity.clone(), ..ProgramFacts::default() };
        (ProgramId { identity, ..ProgramId::default() }, known)
    }

    fn run(sequence: u64, bytes: &[u8]) -> EventRun<'_> {
        let thread = WriterThread::default();
        let (from, contexts, begin, last, discarded, discarded_ever, missing) = (0, 0, 1, 2, 3, 4, 5);
        EventRun { lane: 7, thread, sequence, from, contexts, begin, last, bytes, discarded, discarded_ever, missing }
    }

    #[test]
    fn the_newest_runs_are_kept_of_each_program() {
        let mut flight = FlightRecorder::default();
        for key in [1, 2] {
            let (who, known) = known(key);
            (0..10).for_each(|sequence| flight.take(&who, &known, &run(sequence, &[key as u8; 10]), 35));
        }
        for (key, program) in flight.programs() {
            let runs = program.runs_but(&HashSet::from([(7, 8), (6, 9)]), 25);
            let found: Vec<_> = runs.iter().map(|run| (run.sequence, run.bytes, run.missing)).collect();
            assert_eq!(found, [(7, &[key as u8; 10][..], 5), (9, &[key as u8; 10][..], 5)]);
            assert_eq!(
                program.runs_but(&HashSet::new(), 19).len(),
                1,
                "its current events are newer than the kept ones"
            );
        }
    }

    #[test]
    fn of_those_that_are_gone_the_last_ones_are_kept() {
        let mut flight = FlightRecorder::default();
        for key in 0..100 {
            let (who, known) = known(key);
            flight.take(&who, &known, &run(0, &[1]), 100);
            let forgotten = flight.leave(key);
            assert_eq!(forgotten, key.checked_sub(GONE_MAX as u64));
            assert_eq!(flight.leave(key), None);
        }
        assert_eq!(flight.leave(1000), Some(1000), "nothing is kept of it");
        let mut found: Vec<_> = flight.programs().map(|(key, _)| key).collect();
        found.sort_unstable();
        assert_eq!(found, (36..100).collect::<Vec<_>>());
    }
}
