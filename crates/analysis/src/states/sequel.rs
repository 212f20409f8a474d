//! The runs that a part of the trace adds to all that is before it, as soon as that is known: for
//! readers that take parts in order and are done with each.
//!
//! ```text
//! before        ── blocked ──┐                        ┌ running ── ...
//! part                       └ woken ─┴─ running ─ … ─┘
//! its results  ends: blocked; runs: woken, ...; open: running
//! ```

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::attributes::{Entity, EntityKind, TRACKS};
use super::lane::IntervalSequence;
use super::{CpuEnd, StatesAnalysis, StatesPart, cpu_track, nobody};
use crate::runs::{RunWriter, StateRun};
use crate::{Analysis, Comm};

/// The runs that a part adds.
#[derive(Debug)]
pub struct StatesSequel {
    /// Runs that begin and end in it, in no order.
    pub inner: RunWriter,
    /// Runs that end in it, wherever they begin; `i64::MIN`: before the begin of reading.
    pub ended: Vec<StateRun>,
    /// Runs that begin in it and go on behind it.
    pub open: Vec<StateRun>,
}

impl StatesAnalysis {
    /// Before the first part of a trace.
    #[must_use]
    pub fn begin(&self) -> StatesPart {
        let mut state = self.init();
        self.anchor(&mut state);
        state.runs = RunWriter::new(None);
        state
    }

    /// The keys of all values before a part that it needs.
    #[must_use]
    pub fn asked(&self, part: &StatesPart) -> Vec<u64> {
        let cpus = part.cpus.iter().enumerate().flat_map(|(lane, cpus)| cpus.iter().map(move |end| (lane, end.cpu)));
        let ends = part.cpus.iter().enumerate().flat_map(|(lane, cpus)| cpus.iter().map(move |end| (lane, end)));
        let ends = ends.filter(|_| self.lacks_switches());
        let callers =
            ends.flat_map(|(lane, end)| [Some(nobody(end.cpu)), end.now].map(|tid| Some(self.thread(lane, tid?))));
        let of_cpus = cpus.map(|(lane, cpu)| Entity::new(EntityKind::Cpu, self.lanes[lane].host, cpu.cast_signed()));
        let mut entities = part.attributes.entities();
        entities.extend(of_cpus.chain(callers.flatten()));
        // Calls belong to the thread that a CPU runs, so a question for that thread needs a second
        // look.
        entities.into_iter().flat_map(keys).collect()
    }

    /// The name of a call.
    #[must_use]
    pub fn call(&self, value: u64) -> String {
        match self.texts.calls.get(usize::try_from(value).unwrap_or(usize::MAX)) {
            Some(name) => name.clone(),
            None => format!("#{}", value as u32),
        }
    }

    /// The state before a part, from others' findings: for the keys that were asked, their values
    /// and since when. Values of other keys are unknown.
    #[must_use]
    pub fn before(&self, part: &StatesPart, known: &HashMap<u64, Option<(u64, i64)>>) -> StatesPart {
        let mut state = self.begin();
        for (&key, &now) in known {
            state.attributes.put(key, now.map_or((None, i64::MIN), |(value, since)| (Some(value), since)));
        }
        for (lane, cpus) in part.cpus.iter().enumerate() {
            for end in cpus {
                let entity = Entity::new(EntityKind::Cpu, self.lanes[lane].host, end.cpu.cast_signed());
                let now = known.get(&entity.key(cpu_track::THREAD)).copied().flatten();
                let now = now.map(|(tid, _)| (tid as u32).cast_signed());
                state.cpus[lane].push(CpuEnd { cpu: end.cpu, head: now, now, calls: IntervalSequence::default() });
            }
        }
        state
    }

    /// Adds a part that begins at `begin` to all that was before it. Runs are handed over: the state has none afterwards.
    pub fn follow(&self, before: &mut StatesPart, mut part: StatesPart, begin: i64) -> StatesSequel {
        let inner = std::mem::replace(&mut part.runs, RunWriter::new(None));
        let mut changed = part.attributes.entities();
        self.merge(before, part);
        changed.extend(self.settle_calls(before));
        let ended = std::mem::replace(&mut before.runs, RunWriter::new(None)).into_memory();
        let mut open = Vec::new();
        changed.sort_unstable();
        changed.dedup();
        for entity in changed {
            open.extend(before.attributes.since(entity, begin));
        }
        StatesSequel { inner, ended, open }
    }

    /// Calls of threads that run go to them. As long as a CPU has not changed threads since the
    /// trace began, their thread is unknown: they wait, or stay without one. Returns the things
    /// that this changes.
    fn settle_calls(&self, state: &mut StatesPart) -> Vec<Entity> {
        let mut changed = Vec::new();
        for lane in 0..state.cpus.len() {
            for place in 0..state.cpus[lane].len() {
                let end = &mut state.cpus[lane][place];
                let Some(tid) = self.whose(end) else { continue };
                let calls = std::mem::take(&mut end.calls);
                state.calls(self, lane, tid, &calls);
                changed.push(self.thread(lane, tid));
            }
        }
        changed
    }
}

/// The keys of all values of a thing.
pub fn keys(entity: Entity) -> impl Iterator<Item = u64> {
    (0..TRACKS).map(move |track| entity.key(track))
}

impl StatesPart {
    /// Interrupts' names, by machine and number.
    #[must_use]
    pub fn irqs(&self) -> &BTreeMap<(u16, u64), String> {
        &self.irqs
    }

    /// Threads' names by their digest.
    #[must_use]
    pub fn names(&self) -> &HashMap<u64, Comm> {
        &self.names
    }
}
