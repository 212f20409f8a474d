//! The threads that events are of: those that they name, otherwise those that their CPUs ran.
//!
//! ```text
//! CPU 0   ├──────── bash ────────┤├─ idle ─┤├──── make ────┤
//!             │ bash            │ a switch is an event of the thread before it: bash
//! ```

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use kymo_analysis::timeline::{Thing, TrackKey};
use kymo_filter::{NamePath, NameStep};
use serde_json::Value;

use super::{FoundItem, TrackWalk};
use crate::open::progress::Progress;
use crate::timeline::catalogue::ValueMeaning;
use crate::timeline::exact::{TrackRequest, TrackRun, wanted_of};
use crate::timeline::tiles::BEGIN_UNKNOWN;
use crate::timeline::{Timeline, TimelineFailure, TrackValue};

impl Timeline {
    /// For each thing that was found the thread of its event, if it is one and that is known.
    pub(super) fn threads_of(
        &self,
        found: &[FoundItem],
        events: &[Option<Value>],
        progress: &Progress,
    ) -> Result<Vec<Option<TrackValue>>, TimelineFailure> {
        let mut ran: BTreeMap<(u64, usize), Vec<TrackRun>> = BTreeMap::new();
        let mut threads = Vec::new();
        for (found, event) in found.iter().zip(events) {
            let thread = match (found, event) {
                (FoundItem::Instant(at, _), Some(event)) => self.thread_of(*at, event, &mut ran, progress)?,
                _ => None,
            };
            threads.push(thread.and_then(|(host, tid)| {
                self.names.told(self.names.value(&self.analysis, ValueMeaning::Thread(host), tid))
            }));
        }
        Ok(threads)
    }

    /// The thread that an event names, by the field that analyses take it from.
    pub(super) fn told_tid(&self, event: &Value) -> Option<i32> {
        let stream = usize::try_from(event["stream"].as_u64()?).ok()?;
        let kind = self.prepared.streams.get(stream).copied().flatten()?;
        let name = event["event"].as_str()?;
        let class = self.prepared.bindings.classes_of(kind).iter().find(|class| &*class.name == name)?;
        let (scopes, steps) = scopes_of(class.tid_path.as_ref()?);
        let value = |scope: &&str| {
            let mut value = &event[*scope];
            for step in steps {
                value = match step {
                    NameStep::Name(name) => &value[name.as_str()],
                    NameStep::Index(index) => &value[usize::try_from(*index).ok()?],
                };
            }
            value.as_i64()
        };
        i32::try_from(scopes.iter().find_map(value)?).ok()
    }

    /// The machine and the thread, as values of tracks have it.
    fn thread_of(
        &self,
        at: i64,
        event: &Value,
        ran: &mut BTreeMap<(u64, usize), Vec<TrackRun>>,
        progress: &Progress,
    ) -> Result<Option<(u16, u64)>, TimelineFailure> {
        let stream = event["stream"].as_u64().unwrap_or(u64::MAX) as usize;
        let Some(lane) = self.analysis.lanes().iter().find(|lane| lane.streams.contains(&stream)) else {
            return Ok(None);
        };
        if let Some(tid) = self.told_tid(event) {
            return Ok(Some((lane.host, u64::from(tid.cast_unsigned()))));
        }
        let Some(cpu) = lane.cpu else { return Ok(None) };
        let key = TrackKey { thing: Thing::Cpu, host: lane.host, number: cpu.cast_signed(), track: 0 }.key();
        let chunk = self.chunk_at(at);
        let runs = match ran.entry((key, chunk)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(self.runs_of(key, chunk, progress)?.runs),
        };
        let is_there = |run: &&TrackRun| begin_of(run) < at && at <= run.end;
        Ok(runs.iter().find(is_there).map(|run| (lane.host, run.value)))
    }

    /// The threads that a CPU ran in a chunk.
    pub(in crate::timeline) fn runs_of(
        &self,
        key: u64,
        chunk: usize,
        progress: &Progress,
    ) -> Result<ChunkRuns, TimelineFailure> {
        let mut walk = TrackWalk {
            timeline: self,
            progress,
            known: self.desk.known(),
            key,
            keys: wanted_of(&[key]),
            window: (i64::MIN, i64::MAX),
            most: usize::MAX,
            found: Vec::new(),
            is_complete: true,
        };
        let before = walk.before(key, chunk)?;
        let wanted = TrackRequest { key, ..walk.wanted(chunk) };
        let runs = walk.runs(chunk, before, wanted)?;
        Ok(ChunkRuns { runs, is_complete: walk.is_complete })
    }
}

/// The scopes of an event, as it is printed, that a path may lie in, and the rest of the path.
fn scopes_of(path: &NamePath) -> (&'static [&'static str], &[NameStep]) {
    const CONTEXTS: &[&str] = &["context", "common_context", "packet_context"];
    match &*path.steps {
        [NameStep::Name(first), rest @ ..] if path.is_global && first == "ctx" => (CONTEXTS, rest),
        [NameStep::Name(first), rest @ ..] if first == "packet" => (&["packet_context"], rest),
        all => (&["payload", "context", "common_context"], all),
    }
}

/// When threads ran on a CPU.
pub(in crate::timeline) struct ChunkRuns {
    pub(in crate::timeline) runs: Vec<TrackRun>,
    /// Everything before the chunk is read already. Otherwise the thread that ran at its begin is unknown.
    #[cfg_attr(not(feature = "columns"), expect(dead_code, reason = "only columns ask for it"))]
    pub(in crate::timeline) is_complete: bool,
}

/// Since when a thread ran at the latest: the first event of a trace is of the thread that ran before it, too.
pub(in crate::timeline) fn begin_of(run: &TrackRun) -> i64 {
    if run.flags & BEGIN_UNKNOWN == 0 { run.begin } else { i64::MIN }
}
