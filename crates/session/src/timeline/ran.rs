//! Events of some threads, where events do not name theirs: those that happened while their CPU ran one of these
//! threads.
//!
//! ```text
//! CPU 0   ├──── bash ────┤├── make ──┤├── bash ──┤
//! wanted: bash    · · ·  s              ·  ·          a switch is an event of the thread before it
//! ```

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;
use kymo_analysis::timeline::{Thing, TrackKey};

use super::exact::TrackRun;
use super::items::begin_of;
use super::{Timeline, TimelineFailure};
use crate::open::progress::Progress;

/// When a CPU runs wanted threads, in the order of time, counted from the timeline's begin.
type WantedRuns = Arc<Vec<(i64, i64)>>;

/// Which events are of some threads.
#[derive(Debug)]
pub struct EventsOfThreads {
    timeline: Arc<Timeline>,
    /// Ranges of their numbers, in order and apart from each other.
    threads: Vec<RangeInclusive<u64>>,
    /// By CPU and chunk. Events are asked about in the order of time: those before the last chunk are forgotten.
    known: Mutex<HashMap<(u64, usize), WantedRuns>>,
    /// It was known of all chunks which thread ran at their begin.
    is_complete: AtomicBool,
}

impl EventsOfThreads {
    /// Of the threads with these numbers, on any machine. Threads of a process often have numbers in a row.
    #[must_use]
    pub fn new(timeline: &Arc<Timeline>, tids: Vec<RangeInclusive<i32>>) -> Self {
        let unsigned = |tid: i32| u64::from(tid.cast_unsigned());
        let mut ranges: Vec<(u64, u64)> =
            tids.into_iter().map(|tids| (unsigned(*tids.start()), unsigned(*tids.end()))).collect();
        ranges.sort_unstable();
        let mut threads: Vec<RangeInclusive<u64>> = Vec::new();
        for (begin, end) in ranges {
            match threads.last_mut().filter(|last| begin <= *last.end()) {
                Some(last) => *last = *last.start()..=end.max(*last.end()),
                None => threads.push(begin..=end),
            }
        }
        Self { timeline: Arc::clone(timeline), threads, known: Mutex::default(), is_complete: AtomicBool::new(true) }
    }

    fn has(&self, thread: u64) -> bool {
        let next = self.threads.partition_point(|range| *range.end() < thread);
        self.threads.get(next).is_some_and(|range| range.contains(&thread))
    }

    /// Whether all was known for the answers so far. As long as the timeline is being read, events may be missing: those at
    /// which a CPU goes on with a thread that it was switched to in a part that is not read yet.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Relaxed)
    }

    /// For each event whether it is of one of the threads, by its data stream and its time.
    pub(crate) fn are_of(
        &self,
        events: impl Iterator<Item = (Option<u32>, Option<i64>)>,
        progress: &Progress,
    ) -> Result<Vec<bool>, TimelineFailure> {
        let lanes = self.timeline.analysis.lanes();
        let mut cpus: HashMap<u32, Option<u64>> = HashMap::new();
        let cpu_of = |stream: u32| {
            let lane = lanes.iter().find(|lane| lane.streams.contains(&(stream as usize)))?;
            let number = lane.cpu?.cast_signed();
            Some(TrackKey { thing: Thing::Cpu, host: lane.host, number, track: 0 }.key())
        };
        let mut last: Option<((u64, usize), WantedRuns)> = None;
        let mut are_of = Vec::new();
        for (stream, time) in events {
            let cpu = stream.and_then(|stream| *cpus.entry(stream).or_insert_with(|| cpu_of(stream)));
            let Some((cpu, time)) = cpu.zip(time) else {
                are_of.push(false);
                continue;
            };
            let at = time.saturating_sub(self.timeline.span.0);
            let place = (cpu, self.timeline.chunk_at(at));
            let runs = match &last {
                Some((known, runs)) if *known == place => Arc::clone(runs),
                _ => self.runs(place, progress)?,
            };
            let next = runs.partition_point(|run| run.1 < at);
            are_of.push(runs.get(next).is_some_and(|run| run.0 < at));
            last = Some((place, runs));
        }
        Ok(are_of)
    }

    fn runs(&self, place: (u64, usize), progress: &Progress) -> Result<WantedRuns, TimelineFailure> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runs) = known().get(&place) {
            return Ok(Arc::clone(runs));
        }
        let found = self.timeline.runs_of(place.0, place.1, progress)?;
        if !found.is_complete {
            self.is_complete.store(false, Ordering::Relaxed);
        }
        let is_wanted = |run: &&TrackRun| self.has(run.value);
        let wanted = found.runs.iter().filter(is_wanted).map(|run| (begin_of(run), run.end));
        let runs: WantedRuns = Arc::new(wanted.collect());
        let mut known = known();
        // Packets of one time may lie in two chunks.
        known.retain(|(_, chunk), _| chunk.abs_diff(place.1) <= 1);
        known.insert(place, Arc::clone(&runs));
        Ok(runs)
    }
}
