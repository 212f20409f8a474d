//! Snapshots of a flight recorder. Those of a session that drains follow each other: each has the
//! events that those before it lack.
//!
//! ```text
//! ticks   ───────┬───────────┬─────────────────┬──────>
//!           snapshot-1   snapshot-2       the next one
//!                until[0]    until[1]
//! ```
//!
//! Times decide which snapshot has an event, and not where it lies in memory: so the events of all
//! threads and programs follow each other in time over all snapshots.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kymo_lane::ClockSource;
use serde::{Deserialize, Serialize};

use crate::protocol::{Keep, LostEvents, SessionOptions, SessionSummary};
use crate::session::{RecordingSession, WatchedClocks};

/// How old events are at least that a periodic snapshot takes: threads that were stopped between
/// reading the clock and publishing their event have gone on by then. Readers that follow a trace
/// wait as long.
pub(crate) const LATE: Duration = Duration::from_millis(300);
/// How long threads have to publish an event that they have begun, where a snapshot takes all events
/// until now.
const SETTLE: Duration = Duration::from_millis(2);

/// The snapshots of a session so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct FlushState {
    /// Ticks of each source of the first events that no snapshot has.
    next: [u64; 2],
    /// Events of programs in all snapshots, events of the recorder, and bytes.
    events: u64,
    own_events: u64,
    bytes: u64,
    /// Losses as snapshots tell them. Each counts the losses of a program again, so that of each
    /// reason the highest count stands.
    lost: LostEvents,
    /// Sub-buffers that were overwritten before a snapshot had them.
    overwritten: u64,
    /// The sub-buffers that the last snapshot found, by program and lane: their first and last
    /// numbers.
    #[serde(skip)]
    found: HashMap<(u64, u16), (u64, u64)>,
    /// The snapshots that are there, the oldest first, and their bytes.
    kept: VecDeque<(PathBuf, u64)>,
    /// When the last periodic snapshot was due.
    #[serde(skip)]
    flushed: Option<Instant>,
}

impl FlushState {
    /// Nothing is written, of events from these ticks on.
    pub(crate) fn begin(earliest: [u64; 2]) -> Self {
        Self { next: earliest, ..Self::default() }
    }

    /// Whether a snapshot is due that comes again and again with this period.
    pub(crate) fn is_due(&mut self, period: Duration) -> bool {
        let now = Instant::now();
        // The first period begins when the session does.
        let is_due = now.duration_since(*self.flushed.get_or_insert(now)) >= period;
        if is_due {
            self.flushed = Some(now);
        }
        is_due
    }

    /// A snapshot takes the events until these ticks; returns the ticks from which on it does.
    pub(crate) fn turn(&mut self, until: [u64; 2]) -> [u64; 2] {
        let next = [0, 1].map(|source| self.next[source].max(until[source].saturating_add(1)));
        std::mem::replace(&mut self.next, next)
    }

    /// A snapshot finds a sub-buffer of a program's lane.
    pub(crate) fn finds(&mut self, program: u64, lane: u16, sequence: u64) {
        let found = self.found.entry((program, lane)).or_insert((sequence, sequence));
        *found = (found.0.min(sequence), found.1.max(sequence));
    }

    /// A snapshot is written, which has found those sub-buffers. One without events is deleted again,
    /// or has been asked for alone.
    pub(crate) fn wrote(&mut self, snapshot: &SessionSummary, found: Self) {
        // Lanes that are gone have no later sub-buffers.
        for (lane, (first, _)) in &found.found {
            let last = self.found.get(lane).map_or(*first, |before| before.1);
            self.overwritten += first.saturating_sub(last.saturating_add(1));
        }
        self.found = found.found;
        self.overwritten += snapshot.overwritten;
        let LostEvents { full, no_lane, unwritten, undefined } = snapshot.lost;
        self.lost.full = self.lost.full.max(full);
        self.lost.no_lane = self.lost.no_lane.max(no_lane);
        self.lost.undefined = self.lost.undefined.max(undefined);
        self.lost.unwritten += unwritten;
        if snapshot.events > 0 {
            self.events += snapshot.events;
            self.own_events += snapshot.own_events;
            self.bytes += snapshot.bytes;
        }
    }

    /// A snapshot stays. Returns the oldest ones that exceed `bytes_max` together with it.
    pub(crate) fn keep(&mut self, snapshot: &SessionSummary, bytes_max: Option<u64>) -> Vec<PathBuf> {
        let Some(bytes_max) = bytes_max else { return Vec::new() };
        self.kept.push_back((snapshot.output.clone(), snapshot.bytes));
        let mut all: u64 = self.kept.iter().map(|(_, bytes)| bytes).sum();
        let mut old = Vec::new();
        while all > bytes_max && self.kept.len() > 1 {
            let Some((path, bytes)) = self.kept.pop_front() else { break };
            all -= bytes;
            old.push(path);
        }
        old
    }

    /// Adds the events and losses of all snapshots.
    pub(crate) fn add_to(&self, summary: &mut SessionSummary) {
        summary.events += self.events;
        summary.own_events += self.own_events;
        summary.bytes += self.bytes;
        summary.overwritten += self.overwritten;
        let LostEvents { full, no_lane, unwritten, undefined } = self.lost;
        summary.lost.full += full;
        summary.lost.no_lane += no_lane;
        summary.lost.unwritten += unwritten;
        summary.lost.undefined += undefined;
    }
}

impl RecordingSession {
    /// The number of the last snapshot.
    pub(crate) fn snapshots(&self) -> u32 {
        self.snapshots
    }

    /// The last snapshot has no events: the next one gets its number.
    pub(crate) fn has_no_snapshot(&mut self) {
        self.snapshots -= 1;
    }

    /// The folder of a snapshot in that of the session. Sessions may share a tree.
    pub(crate) fn snapshot_folder(&self, name: &str) -> PathBuf {
        match &self.options.components {
            Some(session) => self.options.output.join(match name.strip_prefix('.') {
                Some(hidden) => format!(".{session}-{hidden}"),
                None => format!("{session}-{name}"),
            }),
            None => self.options.output.join(name),
        }
    }

    /// That of a snapshot with this number, or the next one that is free: in a tree, an earlier session may have had the
    /// same name.
    pub(crate) fn free_snapshot_folder(&self, number: u32) -> PathBuf {
        let mut folders = (number..).map(|number| self.snapshot_folder(&format!("snapshot-{number}")));
        folders.find(|folder| !folder.exists()).expect("numbers do not end")
    }

    /// A session that writes the events that this one holds now, and no later ones.
    pub(crate) fn snapshot(&mut self, output: Option<PathBuf>, clocks: &mut WatchedClocks) -> std::io::Result<Self> {
        let until = if self.options.drains { settled(clocks) } else { [u64::MAX; 2] };
        self.snapshot_until(until, output, clocks)
    }

    /// The same, with the events up to these ticks of each source.
    pub(crate) fn snapshot_until(
        &mut self,
        until: [u64; 2],
        output: Option<PathBuf>,
        clocks: &mut WatchedClocks,
    ) -> std::io::Result<Self> {
        let number = self.snapshots + 1;
        let output = output.unwrap_or_else(|| self.free_snapshot_folder(number));
        let mut options = SessionOptions { keep: Keep::Oldest, output, ..self.options.clone() };
        if std::mem::take(&mut options.drains) {
            // The limit is that of all snapshots together, and a snapshot has no parts.
            (options.rotate_bytes, options.rotate_seconds, options.kept_bytes) = (None, None, None);
        }
        let mut session = Self::begin(options, None, clocks)?;
        self.snapshots = number;
        session.writing = self.writing.clone();
        // Not the time of the snapshot: the events that it writes were recorded since the session
        // began.
        (session.earliest, session.began_ns) = (self.earliest, self.began_ns);
        if self.options.drains {
            session.earliest = self.flush.turn(until);
            session.latest = [0, 1].map(|source| until[source].min(self.latest[source]));
        }
        session.choosing.known = self.choosing.known.clone();
        session.choosing.watched = self.triggers.rules();
        session.triggers = self.triggers.clone();
        session.rules = self.rules.clone();
        session.choosing.rules = self.rules.all().to_vec();
        session.choosing.removed_rules = self.choosing.removed_rules.clone();
        session.choosing.idle = self.choosing.idle.clone();
        session.firings = self.firings.clone();
        Ok(session)
    }
}

/// Ticks of each source now, when threads have published the events before them.
pub(crate) fn settled(clocks: &WatchedClocks) -> [u64; 2] {
    let now = clocks.now();
    std::thread::sleep(SETTLE);
    now
}

/// Ticks of each source a while ago, before which all events are published.
pub(crate) fn late(clocks: &mut WatchedClocks) -> [u64; 2] {
    let now = clocks.now();
    [ClockSource::Counter, ClockSource::Monotonic].map(|source| {
        let ticks = u128::from(clocks.of(source).frequency()) * LATE.as_nanos() / 1_000_000_000;
        now[source as usize].saturating_sub(u64::try_from(ticks).unwrap_or(u64::MAX))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_follow_each_other() {
        let mut flush = FlushState::begin([100, 7]);
        assert_eq!(flush.turn([200, 20]), [100, 7]);
        assert_eq!(flush.turn([150, 30]), [201, 21], "what is written is written once");
        assert_eq!(flush.turn([u64::MAX; 2]), [201, 31]);
        assert_eq!(flush.turn([300, 300]), [u64::MAX; 2]);
    }

    #[test]
    fn the_oldest_snapshots_are_deleted() {
        let mut flush = FlushState::default();
        let snapshot = |name: &str, bytes| SessionSummary {
            events: 5,
            own_events: 2,
            bytes,
            output: PathBuf::from(name),
            ..SessionSummary::default()
        };
        assert_eq!(flush.keep(&snapshot("a", 60), Some(100)), Vec::<PathBuf>::new());
        assert_eq!(flush.keep(&snapshot("b", 30), Some(100)), Vec::<PathBuf>::new());
        assert_eq!(flush.keep(&snapshot("c", 90), Some(100)), [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!(flush.keep(&snapshot("d", 900), Some(100)), [PathBuf::from("c")], "the newest one stays");
    }

    /// Snapshots with these sub-buffers of one lane.
    #[test]
    fn what_snapshots_have_and_lack_is_counted() {
        let mut flush = FlushState::default();
        let lost = |full, no_lane| LostEvents { full, no_lane, ..LostEvents::default() };
        for (events, lost, found) in
            [(5, lost(3, 0), 0..4), (7, lost(2, 1), 2..6), (0, lost(0, 0), 6..8), (1, lost(3, 1), 11..12)]
        {
            let mut snapshot = FlushState::default();
            found.for_each(|sequence| snapshot.finds(1, 2, sequence));
            let (own_events, bytes) = (2, 10 * events);
            let summary = SessionSummary { events, own_events, bytes, lost, ..SessionSummary::default() };
            flush.wrote(&summary, snapshot);
        }
        let mut summary = SessionSummary::default();
        flush.add_to(&mut summary);
        assert_eq!((summary.events, summary.own_events, summary.bytes), (13, 6, 130), "one had no events");
        assert_eq!((summary.lost, summary.overwritten), (lost(3, 1), 3), "8, 9 and 10 were overwritten");
    }
}
