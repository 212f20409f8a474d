//! Merge keys: clock values as nanoseconds that never decrease within a stream.
//!
//! Babeltrace's muxer always takes the stream whose *next* event is earliest. If a stream's clock
//! steps back, the stream is therefore emptied at once up to where it left off. Giving every row
//! the largest time so far as its key has the same effect, and lets a round be sorted.
//!
//! Analyses measure intervals between keys. For them a clock that is set back goes on from its
//! latest time, or each interval until it gets there again would be 0.

use kymo_decode::ClockConverter;
use kymo_ir::Records;

/// A time that is so many nanoseconds or more below the latest one means that the clock was set
/// back. Less comes from events that overtake each other, behind which time is right again.
const SET_BACK_NS: i64 = 1_000_000;

/// Makes the keys of one stream.
#[derive(Clone, Debug)]
pub struct KeyMaker {
    clock: Option<ClockConverter>,
    at: KeyState,
    /// Before the last events.
    before: KeyState,
    is_for_intervals: bool,
}

/// Where keys are.
#[derive(Clone, Copy, Debug)]
struct KeyState {
    /// The last key.
    last: i64,
    /// Keys are by so much above times, because the clock was set back.
    ahead: i64,
    /// The clock was set back, so far.
    was_set_back: bool,
    seen: TimesSeen,
}

/// Facts about the times of a stream's events so far.
#[derive(Clone, Copy, Debug)]
struct TimesSeen {
    /// That of the last event or packet's beginning.
    last: i64,
    steps_back: u64,
    out_of_range: u64,
}

impl TimesSeen {
    const NOTHING: Self = Self { last: i64::MIN, steps_back: 0, out_of_range: 0 };

    fn see(&mut self, time: i64) {
        self.steps_back += u64::from(time < self.last);
        self.last = time;
    }
}

impl KeyMaker {
    /// Keys of a stream with that clock; without one, nothing has a time.
    #[must_use]
    pub fn new(clock: Option<ClockConverter>) -> Self {
        let nothing = KeyState { last: i64::MIN, ahead: 0, was_set_back: false, seen: TimesSeen::NOTHING };
        Self { clock, at: nothing, before: nothing, is_for_intervals: false }
    }

    /// Keys are for measuring intervals, or only for order.
    pub(crate) fn set_for_intervals(&mut self, is_for_intervals: bool) {
        self.is_for_intervals = is_for_intervals;
    }

    /// Whether keys are for measuring intervals: times that do not fit are none then.
    pub(crate) fn is_for_intervals(&self) -> bool {
        self.is_for_intervals
    }

    /// How often an event's or packet's time was below the one before it.
    #[must_use]
    pub fn steps_back(&self) -> u64 {
        self.at.seen.steps_back
    }

    /// Whether the clock was set back, by far more than events overtake each other.
    #[must_use]
    pub fn was_set_back(&self) -> bool {
        self.at.was_set_back
    }

    /// How many events have a time that does not fit 64 bits of nanoseconds.
    #[must_use]
    pub fn out_of_range(&self) -> u64 {
        self.at.seen.out_of_range
    }

    /// Forgets earlier times, but not their faults.
    pub fn restart(&mut self) {
        (self.at.last, self.at.ahead) = (i64::MIN, 0);
        self.at.seen.last = i64::MIN;
    }

    /// A time in nanoseconds; the lowest if there is none.
    pub(crate) fn time(&self, cycles: Option<u64>) -> i64 {
        let time = cycles.zip(self.clock.as_ref()).map(|(cycles, clock)| clock.nanos_saturating(cycles));
        time.unwrap_or(i64::MIN)
    }

    /// The key of a row that is not an event.
    pub fn mark(&mut self, cycles: Option<u64>) -> i64 {
        if let Some(time) = self.point_in_time(cycles) {
            self.at.last = self.at.last.max(time.saturating_add(self.at.ahead));
        }
        self.at.last
    }

    /// A packet begins: its time is one of the clock's, too.
    pub(crate) fn packet(&mut self, begin_cycles: Option<u64>) {
        // Some tracers write no begin, or a wrong one: only events tell that the clock was set.
        if let Some(time) = self.point_in_time(begin_cycles) {
            self.at.seen.see(time);
        }
    }

    /// The time of a row that is not an event, if it has one.
    fn point_in_time(&self, cycles: Option<u64>) -> Option<i64> {
        let (clock, cycles) = (self.clock?, cycles?);
        if self.is_for_intervals { clock.nanos(cycles) } else { Some(clock.nanos_saturating(cycles)) }
    }

    /// The keys of events.
    pub fn events(&mut self, cycles: &[u64], keys: &mut Vec<i64>) {
        keys.clear();
        match &self.clock {
            None => keys.resize(cycles.len(), self.at.last),
            Some(clock) => {
                clock.nanos_saturating_all(cycles, keys);
                self.before = self.at;
                self.at.rise(keys);
                let first = cycles.first().map_or(i64::MAX, |cycles| clock.nanos_saturating(*cycles));
                let has_steps = self.at.seen.steps_back > self.before.seen.steps_back || first < self.before.last;
                if self.is_for_intervals && (has_steps || self.at.ahead != 0) {
                    self.at = self.before;
                    keys.clear();
                    clock.nanos_saturating_all(cycles, keys);
                    self.at.go_on(keys);
                }
                self.at.seen.out_of_range += self.count_out_of_range(cycles);
                if has_steps && !self.is_for_intervals {
                    let mut latest = self.before.last;
                    self.at.was_set_back |= cycles.iter().any(|cycles| {
                        let time = clock.nanos_saturating(*cycles);
                        latest = latest.max(time);
                        is_set_back(time, latest)
                    });
                }
            }
        }
    }

    /// Leaves out the last events with times that do not fit.
    pub(crate) fn in_range_only(&mut self, records: &mut Records, keys: &mut Vec<i64>) {
        let out_of_range = self.at.seen.out_of_range;
        if out_of_range == self.before.seen.out_of_range {
            return;
        }
        let Some(clock) = self.clock else { return };
        let fits: Vec<bool> = records.cycles.iter().map(|cycles| clock.nanos(*cycles).is_some()).collect();
        retain(&mut records.cycles, &fits);
        retain(&mut records.classes, &fits);
        retain(&mut records.positions, &fits);
        self.at = self.before;
        self.at.seen.out_of_range = out_of_range;
        self.events(&records.cycles, keys);
    }

    /// Only these of the last events are wanted: counts again, without the others.
    pub(crate) fn only(&mut self, cycles: &[u64]) {
        let Some(clock) = &self.clock else { return };
        let (seen, before) = (self.at.seen, self.before.seen);
        self.at.seen = before;
        if (seen.steps_back, seen.out_of_range) == (before.steps_back, before.out_of_range) {
            self.at.seen.last = cycles.last().map_or(before.last, |last| clock.nanos_saturating(*last));
            return;
        }
        cycles.iter().for_each(|cycles| self.at.seen.see(clock.nanos_saturating(*cycles)));
        self.at.seen.out_of_range += self.count_out_of_range(cycles);
    }

    /// How many of these times do not fit. Only where one may be too late, because the latest key is
    /// the last of all, or too early, because the clock's first time is, each has to be looked at.
    fn count_out_of_range(&self, cycles: &[u64]) -> u64 {
        let Some(clock) = &self.clock else { return 0 };
        if self.at.last < i64::MAX && clock.nanos(0).is_some() {
            return 0;
        }
        cycles.iter().filter(|cycles| clock.nanos(**cycles).is_none()).count() as u64
    }
}

impl KeyState {
    /// Makes keys of times: they never decrease.
    fn rise(&mut self, keys: &mut [i64]) {
        let (mut last, mut seen) = (self.last, self.seen);
        for key in keys {
            seen.see(*key);
            last = last.max(*key);
            *key = last;
        }
        (self.last, self.seen) = (last, seen);
    }

    /// The same, where a clock that is set back goes on from its latest time.
    fn go_on(&mut self, keys: &mut [i64]) {
        for key in keys {
            self.get_ahead(*key);
            self.seen.see(*key);
            self.last = self.last.max(key.saturating_add(self.ahead));
            *key = self.last;
        }
    }

    /// This is the next time: if the clock was set back to it, it stands for the latest time from now on, until times are
    /// as late as that again.
    fn get_ahead(&mut self, time: i64) {
        if time >= self.last {
            self.ahead = 0;
        } else if is_set_back(time.saturating_add(self.ahead), self.last) {
            self.ahead = self.last.saturating_sub(time);
            self.was_set_back = true;
        }
    }
}

/// Whether the clock was set back, if that time follows the latest one.
fn is_set_back(time: i64, latest: i64) -> bool {
    latest.saturating_sub(time) >= SET_BACK_NS
}

/// Keeps the values at marked places.
fn retain<T>(values: &mut Vec<T>, is_kept: &[bool]) {
    let mut marks = is_kept.iter();
    values.retain(|_| *marks.next().expect("one mark for each value"));
}

#[cfg(test)]
mod tests {
    use kymo_format::ClockClass;

    use super::*;

    fn keys(frequency_hz: u64) -> KeyMaker {
        let class = ClockClass { frequency_hz, ..ClockClass::default() };
        KeyMaker::new(Some(ClockConverter::new(&class, 0)))
    }

    #[test]
    fn a_clock_that_was_reset_steps_back_once() {
        let (mut maker, mut found) = (keys(1_000_000_000), Vec::new());
        maker.events(&[100, 200, 10, 20], &mut found);
        assert_eq!((&*found, maker.steps_back()), (&[100, 200, 200, 200][..], 1));
        maker.events(&[30, 40, 300], &mut found);
        assert_eq!((&*found, maker.steps_back()), (&[200, 200, 300][..], 1));
        maker.events(&[299], &mut found);
        assert_eq!((maker.steps_back(), maker.was_set_back()), (2, false), "events overtook each other");
        maker.events(&[1_000_298], &mut found);
        maker.events(&[300], &mut found);
        assert!(!maker.was_set_back());
        maker.events(&[298], &mut found);
        assert_eq!((&*found, maker.was_set_back()), (&[1_000_298][..], true));
    }

    #[test]
    fn packets_begin_at_times_of_the_clock() {
        let (mut maker, mut found) = (keys(1_000_000_000), Vec::new());
        maker.packet(Some(100));
        maker.events(&[100, 200], &mut found);
        maker.packet(Some(10));
        maker.events(&[20], &mut found);
        assert_eq!(maker.steps_back(), 1, "the clock was reset between the packets");
        maker.packet(Some(50));
        maker.packet(None);
        maker.events(&[40, 60], &mut found);
        assert_eq!(maker.steps_back(), 2, "an event before its packet");
    }

    #[test]
    fn of_events_that_are_left_out_nothing_is_counted() {
        let (mut maker, mut found) = (keys(1_000_000_000), Vec::new());
        maker.events(&[100, 50, 60], &mut found);
        maker.only(&[50, 60]);
        assert_eq!(maker.steps_back(), 0);
        maker.events(&[55, 70], &mut found);
        maker.only(&[70]);
        assert_eq!(maker.steps_back(), 0);
        maker.events(&[80, 65], &mut found);
        maker.only(&[65]);
        assert_eq!(maker.steps_back(), 1, "65 follows 70");
    }

    #[test]
    fn a_clock_that_is_set_back_goes_on_where_intervals_count() {
        let (mut maker, mut found) = (keys(1_000_000_000), Vec::new());
        maker.set_for_intervals(true);
        let ms = 1_000_000;
        maker.events(&[9 * ms, 10 * ms, 10 * ms - 5, 10 * ms + 7], &mut found);
        assert_eq!(found, [9 * ms as i64, 10 * ms as i64, 10 * ms as i64, 10 * ms as i64 + 7], "events that overtake");
        maker.events(&[0, 30, 50], &mut found);
        let at = 10 * ms as i64 + 7;
        assert_eq!((&*found, maker.steps_back()), (&[at, at + 30, at + 50][..], 2));
        assert!(maker.was_set_back());
        maker.packet(Some(60));
        assert_eq!(maker.mark(Some(70)), at + 70);
        maker.events(&[80], &mut found);
        assert_eq!(found, [at + 80]);
        // Times as late as the latest one are taken as they are; then it is set back a second time, between packets.
        maker.events(&[60 * ms], &mut found);
        maker.packet(Some(10));
        maker.events(&[10, 12], &mut found);
        let at = 60 * ms as i64;
        assert_eq!((&*found, maker.steps_back()), (&[at, at + 2][..], 3));
        maker.restart();
        maker.events(&[5], &mut found);
        assert_eq!(found, [5]);
    }

    #[test]
    fn one_late_event_moves_no_other() {
        let (mut maker, mut found) = (keys(1_000_000_000), Vec::new());
        maker.set_for_intervals(true);
        let ms = 1_000_000;
        maker.events(&[10 * ms, 8 * ms, 20 * ms, 18 * ms, 30 * ms], &mut found);
        assert_eq!(found, [10, 10, 20, 20, 30].map(|at| at * ms as i64));
        // Beginnings of packets that say nothing.
        maker.packet(Some(0));
        maker.events(&[40 * ms], &mut found);
        assert_eq!(found, [40 * ms as i64]);
    }

    #[test]
    fn times_that_do_not_fit_are_left_out_where_intervals_count() {
        let (mut maker, mut found) = (keys(32_768), Vec::new());
        maker.set_for_intervals(true);
        maker.packet(Some(1 << 61));
        assert_eq!(maker.mark(Some(1 << 61)), i64::MIN);
        let cycles = vec![1, 1 << 60, 2, u64::MAX];
        let mut records = Records { cycles, classes: vec![7, 8, 9, 10], positions: vec![0, 8, 16, 24] };
        maker.events(&records.cycles, &mut found);
        maker.in_range_only(&mut records, &mut found);
        assert_eq!(
            (&*found, &*records.classes, &*records.positions),
            (&[30_517, 61_035][..], &[7, 9][..], &[0, 16][..])
        );
        maker.only(&[1]);
        assert_eq!((maker.out_of_range(), maker.steps_back()), (2, 0));
        maker.events(&[3], &mut found);
        assert_eq!(found, [91_552]);
    }

    #[test]
    fn times_that_do_not_fit_are_counted() {
        let (mut maker, mut found) = (keys(32_768), Vec::new());
        maker.events(&[1, 1 << 60, u64::MAX], &mut found);
        assert_eq!((&*found, maker.out_of_range()), (&[30_517, i64::MAX, i64::MAX][..], 2));
        maker.events(&[u64::MAX, u64::MAX], &mut found);
        maker.only(&[u64::MAX]);
        assert_eq!((maker.out_of_range(), maker.steps_back()), (3, 0));
    }
}
