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
    steps_back: u64,
    /// Those of the events before the last ones.
    steps_before: u64,
}

impl KeyMaker {
    /// Keys of a stream with that clock; without one, nothing has a time.
    #[must_use]
    pub fn new(clock: Option<ClockConverter>) -> Self {
        Self { clock, last: i64::MIN, steps_back: 0, steps_before: 0 }
    }

    /// How often a time was below the one before it.
    #[must_use]
    pub fn steps_back(&self) -> u64 {
        self.steps_back
    }

    /// Forgets earlier keys, except that times stepped back.
    pub fn restart(&mut self) {
        self.last = i64::MIN;
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

    /// The keys of events.
    pub fn events(&mut self, cycles: &[u64], keys: &mut Vec<i64>) {
        keys.clear();
        match &self.clock {
            None => keys.resize(cycles.len(), self.last),
            Some(clock) => {
                clock.nanos_saturating_all(cycles, keys);
                self.rise(keys);
            }
        }
    }

    /// Only these of the last events are wanted: counts where the time stepped back before one of them.
    pub(crate) fn count_steps(&mut self, cycles: &[u64], keys: &[i64]) {
        let (Some(clock), true) = (&self.clock, self.steps_back > self.steps_before) else { return };
        let steps = cycles.iter().zip(keys).filter(|(cycles, key)| clock.nanos_saturating(**cycles) < **key);
        self.steps_back = self.steps_before + steps.count() as u64;
    }

    /// Makes keys never decrease.
    fn rise(&mut self, keys: &mut [i64]) {
        let mut last = self.last;
        let mut steps_back = 0;
        for key in keys {
            steps_back += u64::from(*key < last);
            last = last.max(*key);
            *key = last;
        }
        self.last = last;
        self.steps_before = self.steps_back;
        self.steps_back += steps_back;
    }
}
