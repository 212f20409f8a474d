//! Arrows: wakeups, each from the CPU where it happens to the woken thread; and messages, from
//! where they are sent to where they are received.
//!
//! ```text
//! wakeups     a cell when one leaves; when it has come, the states of whoever was woken say, as all events tell them
//! messages    a cell when one has come, with how long that took
//! ```

use hashbrown::HashMap;
use kymo_analysis::states::{ThreadState, thread_track};
use kymo_analysis::timeline::cells::{Level, OTHERS};
use kymo_analysis::timeline::{ANYBODY, Thing, TrackKey};

use super::catalogue::ValueMeaning;
use super::exact::{Exactly, TrackRequest, TrackRun, instants, runs};
use super::tiles::{ArrowBucket, END_UNKNOWN, ExactArrow, Items, RECEIVED_FIRST};
use super::{Timeline, TimelineFailure};

/// A wakeup: when, and when the woken thread runs. A message: when it is sent and received, the
/// earlier first. And the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArrowFlight {
    pub(super) begin: i64,
    pub(super) end: i64,
    pub(super) value: u64,
    pub(super) flags: u32,
}

/// From which track to which, as their numbers; absent: several, or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) from: Option<u32>,
    pub(super) to: Option<u32>,
}

/// Whether arrows of a track are messages.
pub(super) fn are_messages(key: u64) -> bool {
    TrackKey::of(key).is_some_and(|key| key.thing == Thing::Messages)
}

/// Whether arrows of a track are wakeups.
pub(super) fn are_wakeups(key: u64) -> bool {
    TrackKey::of(key).is_some_and(|key| key.thing == Thing::Wakeups)
}

/// When a thread that is woken at a time runs, from the runs of its states: it waits for a CPU
/// until then. `None`: unknown.
pub(super) fn runs_at(states: &[TrackRun], at: i64) -> Option<i64> {
    let first = states.partition_point(|run| run.end <= at);
    for run in &states[first..] {
        match ThreadState::of(run.value)?.0 {
            ThreadState::Running => return Some(run.begin.max(at)),
            ThreadState::Woken | ThreadState::New | ThreadState::Preempted if run.flags & END_UNKNOWN == 0 => {}
            _ => return None,
        }
    }
    None
}

/// The track of the states of the thread that a wakeup wakes.
pub(super) fn thread(key: u64, wakeup: u64) -> u64 {
    let host = TrackKey::of(key).map_or(0, |key| key.host);
    let number = (wakeup as u32).cast_signed();
    TrackKey { thing: Thing::Thread, host, number, track: thread_track::STATE as u8 }.key()
}

impl Exactly<'_> {
    /// Wakeups that leave in the window; messages that are on their way in it, and come in the read
    /// chunks. In the order of their begins.
    pub(super) fn flights(&self, wanted: TrackRequest) -> Result<Vec<ArrowFlight>, TimelineFailure> {
        match are_messages(wanted.key) {
            true => Ok(self.messages(wanted)),
            false => self.wakeups(wanted),
        }
    }

    fn messages(&self, wanted: TrackRequest) -> Vec<ArrowFlight> {
        let mut found = Vec::new();
        for cell in self.cells(wanted.key) {
            let end = cell.bucket.cast_signed();
            // Those that go the same way and come at the same nanosecond are told with the average
            // of their durations.
            let begin = end - cell.time / i64::from(cell.begins.max(1));
            if wanted.has(begin, end) {
                let is_early = self.timeline.names.route(cell.value).is_some_and(|route| route.is_early);
                let flags = if is_early { RECEIVED_FIRST } else { 0 };
                let flight = ArrowFlight { begin, end, value: cell.value, flags };
                found.extend(std::iter::repeat_n(flight, cell.begins as usize));
            }
        }
        found.sort_by_key(|flight| flight.begin);
        found
    }

    /// Wakeups in the window, each with the time when the woken thread runs.
    fn wakeups(&self, wanted: TrackRequest) -> Result<Vec<ArrowFlight>, TimelineFailure> {
        let found = instants(self.cells(wanted.key), wanted).unwrap_or_default();
        let mut keys: Vec<u64> = found.iter().map(|(_, value)| thread(wanted.key, *value)).collect();
        keys.sort_unstable();
        keys.dedup();
        let states = match (&self.timeline.all, found.first()) {
            (Some(all), Some((first, _))) => all.states_in(&keys, (*first, wanted.window.1), self.progress)?,
            _ => self.states(&keys, wanted.window.0)?,
        };
        let flight = |(at, value): (i64, u64)| {
            let end = states.get(&thread(wanted.key, value)).and_then(|states| runs_at(states, at));
            let flags = if end.is_some() { 0 } else { END_UNKNOWN };
            ArrowFlight { begin: at, end: end.unwrap_or(at), value, flags }
        };
        Ok(found.into_iter().map(flight).collect())
    }

    /// The states of threads from a time on, by the keys of their tracks.
    pub(super) fn states(&self, keys: &[u64], from: i64) -> Result<HashMap<u64, Vec<TrackRun>>, TimelineFailure> {
        let known = self.timeline.known_before(keys.to_vec(), self.first_chunk)?;
        let states = |&key: &u64| {
            let before = self.timeline.before_of(known.get(&key).copied().flatten());
            let wanted = TrackRequest { key, read: self.read, window: (from, i64::MAX), most: usize::MAX };
            (key, runs(self.cells(key), before, wanted).unwrap_or_default())
        };
        Ok(keys.iter().map(states).collect())
    }

    /// Arrows one by one if they are few, else by bucket and from where to where.
    pub(super) fn arrows(&self, key: u64, flights: &[ArrowFlight], window: ((i64, i64), Level, usize)) -> Items {
        let ((first, end), level, most) = window;
        if flights.len() <= most {
            let arrow = |&ArrowFlight { begin, end, value, flags }: &ArrowFlight| {
                let Way { from, to } = self.timeline.way_of(key, value);
                let value = self.timeline.going(key, value);
                ExactArrow { begin: begin - first, end: end - first, from, to, value, flags }
            };
            return Items::ExactArrows(flights.iter().map(arrow).collect());
        }
        // As cells count them: a message where it comes, a wakeup where it leaves. Otherwise the
        // numbers would change with the zoom.
        let counted = |flight: &ArrowFlight| if are_messages(key) { flight.end } else { flight.begin };
        let mut flights: Vec<&ArrowFlight> =
            flights.iter().filter(|flight| (first..end).contains(&counted(flight))).collect();
        flights.sort_by_key(|flight| counted(flight));
        let mut buckets: Vec<ArrowBucket> = Vec::new();
        for flight in flights {
            let bucket = ((counted(flight) - first) >> level) as u32;
            let Way { from, to } = self.timeline.way_of(key, flight.value);
            let longest = (flight.flags & END_UNKNOWN == 0).then(|| flight.begin.abs_diff(flight.end));
            let is_same = |known: &&mut ArrowBucket| (known.from, known.to) == (from, to);
            let of_bucket = buckets.partition_point(|known| known.bucket < bucket);
            match buckets[of_bucket..].iter_mut().find(is_same) {
                Some(known) => {
                    known.count += 1;
                    known.longest_ns = known.longest_ns.max(longest);
                }
                None => buckets.push(ArrowBucket { bucket, from, to, count: 1, longest_ns: longest }),
            }
        }
        Items::Arrows(buckets)
    }
}

impl Timeline {
    /// The tracks of a wakeup: the CPU that does it, the thread that is woken. Of a message, the
    /// events of the sender and of the receiver.
    pub(super) fn way_of(&self, key: u64, value: u64) -> Way {
        let host = TrackKey::of(key).map_or(0, |key| key.host);
        if are_messages(key) {
            let route = (value != OTHERS).then(|| self.names.route(value)).flatten();
            let track = |key: u64| self.names.number(key);
            return Way { from: route.map(|route| track(route.from)), to: route.map(|route| track(route.to)) };
        }
        let cpu = TrackKey { thing: Thing::Cpu, host, number: (value >> 32) as i32, track: 0 };
        let is_one = value & ANYBODY != ANYBODY;
        Way { from: Some(self.names.number(cpu.key())), to: is_one.then(|| self.names.number(thread(key, value))) }
    }

    /// The woken thread, or the name of a message, as the number of a value.
    pub(super) fn going(&self, key: u64, value: u64) -> u32 {
        let host = TrackKey::of(key).map_or(0, |key| key.host);
        if are_messages(key) {
            let name = self.names.route(value).map_or(OTHERS, |route| route.name);
            return self.names.value(&self.analysis, ValueMeaning::Message, name);
        }
        self.names.value(&self.analysis, ValueMeaning::Thread(host), value & ANYBODY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_woken_runs_when_it_has_waited() {
        let doing = |doing: ThreadState, begin, end, flags| TrackRun { begin, end, value: (doing as u64) << 32, flags };
        let states = [
            doing(ThreadState::Blocked, 0, 10, 0),
            doing(ThreadState::Woken, 10, 15, 0),
            doing(ThreadState::Running, 15, 20, 0),
            doing(ThreadState::Blocked, 20, 30, 0),
            doing(ThreadState::Woken, 30, 40, END_UNKNOWN),
        ];
        let asked = [10, 12, 16, 22, 30, 50].map(|at| runs_at(&states, at));
        assert_eq!(asked, [Some(15), Some(15), Some(16), None, None, None]);
    }
}
