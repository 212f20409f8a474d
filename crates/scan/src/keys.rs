//! Merge keys: clock values as nanoseconds that never decrease within a stream.
//!
//! Babeltrace's muxer always takes the stream whose *next* event is earliest. If a stream's clock
//! steps back, the stream is therefore emptied at once up to where it left off. Giving every row
//! the largest time so far as its key has the same effect, and lets a round be sorted.

use kymo_decode::ClockConverter;

/// Makes the keys of one stream.
#[derive(Clone, Debug)]
pub struct KeyMaker {
    clock: Option<ClockConverter>,
    last: i64,
    seen: TimesSeen,
    /// Up to the events before the last ones.
    seen_before: TimesSeen,
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
        Self { clock, last: i64::MIN, seen: TimesSeen::NOTHING, seen_before: TimesSeen::NOTHING }
    }

    /// How often an event's or packet's time was below the one before it.
    #[must_use]
    pub fn steps_back(&self) -> u64 {
        self.seen.steps_back
    }

    /// How many events have a time that does not fit 64 bits of nanoseconds.
    #[must_use]
    pub fn out_of_range(&self) -> u64 {
        self.seen.out_of_range
    }

    /// Forgets earlier times, but not their faults.
    pub fn restart(&mut self) {
        self.last = i64::MIN;
        self.seen.last = i64::MIN;
    }

    /// A time in nanoseconds; the lowest if there is none.
    pub(crate) fn time(&self, cycles: Option<u64>) -> i64 {
        let time = cycles.zip(self.clock.as_ref()).map(|(cycles, clock)| clock.nanos_saturating(cycles));
        time.unwrap_or(i64::MIN)
    }

    /// The key of a row that is not an event.
    pub fn mark(&mut self, cycles: Option<u64>) -> i64 {
        self.last = self.last.max(self.time(cycles));
        self.last
    }

    /// A packet begins: its time is one of the clock's, too.
    pub(crate) fn packet(&mut self, begin_cycles: Option<u64>) {
        if begin_cycles.is_some() && self.clock.is_some() {
            self.seen.see(self.time(begin_cycles));
        }
    }

    /// The keys of events.
    pub fn events(&mut self, cycles: &[u64], keys: &mut Vec<i64>) {
        keys.clear();
        match &self.clock {
            None => keys.resize(cycles.len(), self.last),
            Some(clock) => {
                clock.nanos_saturating_all(cycles, keys);
                self.rise(keys);
                self.seen.out_of_range += self.count_out_of_range(cycles);
            }
        }
    }

    /// Only these of the last events are wanted: counts again, without the others.
    pub(crate) fn only(&mut self, cycles: &[u64]) {
        let Some(clock) = &self.clock else { return };
        let (seen, before) = (self.seen, self.seen_before);
        self.seen = before;
        if (seen.steps_back, seen.out_of_range) == (before.steps_back, before.out_of_range) {
            self.seen.last = cycles.last().map_or(before.last, |last| clock.nanos_saturating(*last));
            return;
        }
        cycles.iter().for_each(|cycles| self.seen.see(clock.nanos_saturating(*cycles)));
        self.seen.out_of_range += self.count_out_of_range(cycles);
    }

    /// Makes keys never decrease.
    fn rise(&mut self, keys: &mut [i64]) {
        self.seen_before = self.seen;
        let (mut last, mut seen) = (self.last, self.seen);
        for key in keys {
            seen.see(*key);
            last = last.max(*key);
            *key = last;
        }
        (self.last, self.seen) = (last, seen);
    }

    /// How many of these times do not fit. Only where one may be too late, because the latest key is
    /// the last of all, or too early, because the clock's first time is, each has to be looked at.
    fn count_out_of_range(&self, cycles: &[u64]) -> u64 {
        let Some(clock) = &self.clock else { return 0 };
        if self.last < i64::MAX && clock.nanos(0).is_some() {
            return 0;
        }
        cycles.iter().filter(|cycles| clock.nanos(**cycles).is_none()).count() as u64
    }
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
        assert_eq!(maker.steps_back(), 2);
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
    fn times_that_do_not_fit_are_counted() {
        let (mut maker, mut found) = (keys(32_768), Vec::new());
        maker.events(&[1, 1 << 60, u64::MAX], &mut found);
        assert_eq!((&*found, maker.out_of_range()), (&[30_517, i64::MAX, i64::MAX][..], 2));
        maker.events(&[u64::MAX, u64::MAX], &mut found);
        maker.only(&[u64::MAX]);
        assert_eq!((maker.out_of_range(), maker.steps_back()), (3, 0));
    }
}
