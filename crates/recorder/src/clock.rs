//! Clocks that stamp events, and their conversion to seconds.
//!
//! ```text
//! ticks ───┬────────────────────────┬──────> the counter
//! seconds  └ begin                  └ now    CLOCK_MONOTONIC_RAW: how long; CLOCK_REALTIME: since when
//! ```
//!
//! The longer the recorder watches a clock, the better it knows the frequency.
//! `CLOCK_MONOTONIC_RAW` runs as the counter does and is not slewed. Where the processor gives the
//! frequency (aarch64), the recorder uses that, and measures no other.
//!
//! While a machine is suspended the counter may go on or begin again, and the clock stands still:
//! two samples with a suspension in between allow no conclusion. `CLOCK_BOOTTIME` shows
//! suspensions. The recorder measures the longest time without one.

use std::time::Duration;

use kymo_lane::ClockSource;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// How long the counter is watched at least: then the frequency is known to a few millionths.
const WATCHED_MIN: Duration = Duration::from_millis(20);
/// How often the clocks are read for one sample.
const TRIES: usize = 8;
/// How often to wait until the counter was watched for that long: the system may be suspended
/// meanwhile.
const SLEEPS_MAX: usize = 3;
/// A millisecond of a counter that runs at 1 GHz, and less of a faster one: the processor does not
/// give its frequency.
const STEP_MAX_UNKNOWN: u32 = 1_000_000;
/// Shorter suspensions are not detected.
const SUSPENSION_MIN_NS: i64 = 1_000_000;

/// One instant, in all clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockSample {
    /// Ticks of the source.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC`.
    pub monotonic_ns: i64,
    /// `CLOCK_REALTIME`.
    pub realtime_ns: i64,
    /// `CLOCK_MONOTONIC_RAW`.
    raw_ns: i64,
    /// How long the system was suspended until then; `None`: an older recorder has not read it.
    #[serde(default)]
    suspended_ns: Option<i64>,
    /// Ticks from before the clocks were read to after it: the others are at most half of that off.
    pub width_ticks: u64,
}

/// A source of ticks, and its frequency.
#[derive(Clone, Copy, Debug)]
pub struct TickSource {
    source: ClockSource,
    begin: ClockSample,
    last: ClockSample,
    /// Ticks and nanoseconds that were watched before the system was suspended.
    before: (u64, i64),
    /// The clock stands still there: its relation to other clocks is unknown.
    still: Option<u64>,
}

/// Description of the clock in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockDescription {
    /// Ticks of a second.
    pub frequency: u64,
    /// Ticks that are 0 in the trace: a multiple of 2^32, so that low halves stay the same.
    pub base: u64,
    /// When that was, in seconds since 1970, rounded down.
    pub offset_seconds: i64,
    /// The rest of it, in ticks.
    pub offset_ticks: u64,
    /// How far off that may be.
    pub error_ns: u64,
    /// The date is known at all; otherwise times are only relative to each other.
    pub is_absolute: bool,
}

impl ClockDescription {
    /// The time of so many cycles of the trace, in nanoseconds since 1970.
    pub(crate) fn nanos(&self, cycles: u64) -> i128 {
        let ticks = i128::from(self.offset_ticks) + i128::from(cycles);
        i128::from(self.offset_seconds) * 1_000_000_000 + ticks * 1_000_000_000 / i128::from(self.frequency)
    }
}

impl TickSource {
    /// Watches a source from now on.
    #[must_use]
    pub fn begin(source: ClockSource) -> Self {
        let begin = sample(source);
        Self { source, begin, last: begin, before: (0, 0), still: None }
    }

    /// A clock of another boot: only the frequency of such clocks here is known. It stands at these
    /// ticks.
    #[must_use]
    pub fn still(source: ClockSource, ticks: u64) -> Self {
        Self { still: Some(ticks), ..Self::begin(source) }
    }

    /// Whether it tells the time.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.still.is_none()
    }

    /// Since when it is watched.
    #[must_use]
    pub fn watched(&self) -> ClockSample {
        self.begin
    }

    /// Adds the time that an earlier recorder watched it, since the same boot: then the frequency
    /// is better known.
    pub fn was_watched(&mut self, since: ClockSample) {
        if since.ticks < self.begin.ticks && since.raw_ns < self.begin.raw_ns && !self.begin.has_slept_since(&since) {
            self.begin = since;
        }
    }

    /// The source that it counts.
    #[must_use]
    pub fn source(&self) -> ClockSource {
        self.source
    }

    /// Ticks, now.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.still.unwrap_or_else(|| ticks(self.source))
    }

    /// Watches on: reads all clocks now.
    pub fn sample(&mut self) -> ClockSample {
        self.watch(sample(self.source));
        self.last
    }

    fn watch(&mut self, now: ClockSample) {
        // A counter that begins again does so when the system wakes; one that steps back without a
        // reason allows no conclusion either.
        if now.has_slept_since(&self.last) || now.ticks < self.last.ticks {
            self.before = self.watched_longest();
            self.begin = now;
        }
        self.last = now;
    }

    /// Ticks and nanoseconds of the longest time that was watched without a suspension.
    fn watched_longest(&self) -> (u64, i64) {
        let now = (self.last.ticks.saturating_sub(self.begin.ticks), self.last.raw_ns - self.begin.raw_ns);
        if now.1 >= self.before.1 { now } else { self.before }
    }

    /// Ticks of a second, as far as it was watched, which takes a moment when it has just begun.
    pub fn frequency(&mut self) -> u64 {
        if let Some(known) = known_frequency(self.source) {
            return known;
        }
        for _ in 0..SLEEPS_MAX {
            let missing = WATCHED_MIN.saturating_sub(Duration::from_nanos(self.watched_longest().1.max(0) as u64));
            if missing.is_zero() {
                break;
            }
            std::thread::sleep(missing);
            self.sample();
        }
        self.measured()
    }

    fn measured(&self) -> u64 {
        let (ticks, nanos) = self.watched_longest();
        let (ticks, nanos) = (u128::from(ticks), nanos.max(1) as u128);
        ((ticks * 1_000_000_000 + nanos / 2) / nanos).clamp(1, u64::MAX.into()) as u64
    }

    /// Facts for a trace that has no events before some ticks.
    pub fn facts(&mut self, earliest: u64) -> ClockDescription {
        let frequency = self.frequency();
        let base = earliest & !0xffff_ffff;
        if !self.runs() {
            return ClockDescription {
                frequency,
                base,
                offset_seconds: 0,
                offset_ticks: 0,
                error_ns: 0,
                is_absolute: false,
            };
        }
        let nanos = |ticks: u64| (u128::from(ticks) * 1_000_000_000 / u128::from(frequency)) as i64;
        let begin_ns = self.last.realtime_ns.saturating_sub(nanos(self.last.ticks.saturating_sub(base)));
        let rest_ns = begin_ns.rem_euclid(1_000_000_000) as u128;
        ClockDescription {
            frequency,
            base,
            offset_seconds: begin_ns.div_euclid(1_000_000_000),
            offset_ticks: (rest_ns * u128::from(frequency) / 1_000_000_000) as u64,
            error_ns: nanos(self.last.width_ticks.div_ceil(2)) as u64,
            is_absolute: true,
        }
    }
}

impl ClockSample {
    fn has_slept_since(&self, before: &Self) -> bool {
        let both = self.suspended_ns.zip(before.suspended_ns);
        both.is_some_and(|(now, then)| now.saturating_sub(then).saturating_abs() > SUSPENSION_MIN_NS)
    }
}

/// How far a time may be before the previous one when another processor took that one, with a
/// counter slightly ahead: about a millisecond. A larger step has another cause.
pub(crate) fn step_max(source: ClockSource) -> u32 {
    known_frequency(source).map_or(STEP_MAX_UNKNOWN, |frequency| (frequency / 1000).min(u32::MAX.into()) as u32)
}

fn known_frequency(source: ClockSource) -> Option<u64> {
    match source {
        ClockSource::Counter => kymo_tracer::counter_frequency(),
        ClockSource::Monotonic => Some(1_000_000_000),
    }
}

pub(crate) fn ticks(source: ClockSource) -> u64 {
    match source {
        ClockSource::Counter => kymo_tracer::counter(),
        ClockSource::Monotonic => nanos(ClockId::Monotonic) as u64,
    }
}

/// Nanoseconds since the system booted, for times that several recorders use.
pub(crate) fn uptime_ns() -> i64 {
    nanos(ClockId::Boottime)
}

fn nanos(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

/// Of several tries, the sample that was interrupted least.
fn sample(source: ClockSource) -> ClockSample {
    let one = || {
        let before = ticks(source);
        let (raw_ns, monotonic_ns) = (nanos(ClockId::MonotonicRaw), nanos(ClockId::Monotonic));
        let (realtime_ns, boot_ns) = (nanos(ClockId::Realtime), nanos(ClockId::Boottime));
        let width_ticks = ticks(source).saturating_sub(before);
        let suspended_ns = Some(boot_ns.saturating_sub(monotonic_ns));
        ClockSample { ticks: before + width_ticks / 2, monotonic_ns, realtime_ns, raw_ns, suspended_ns, width_ticks }
    };
    let tries = std::iter::repeat_with(one).take(TRIES);
    tries.min_by_key(|sample| sample.width_ticks).expect("it was tried")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_known_to_a_thousandth_at_once_and_times_fit_each_other() {
        let mut clock = TickSource::begin(ClockSource::Counter);
        let quick = clock.frequency();
        std::thread::sleep(Duration::from_millis(200));
        clock.sample();
        let better = clock.frequency();
        assert!(quick.abs_diff(better) < better / 1000, "{quick} and {better}");
        let facts = clock.facts(clock.begin.ticks);
        let offset_ns = i128::from(facts.offset_ticks) * 1_000_000_000 / i128::from(facts.frequency);
        let begin_ns = i128::from(facts.offset_seconds) * 1_000_000_000 + offset_ns;
        let last_ns =
            begin_ns + i128::from(clock.last.ticks - facts.base) * 1_000_000_000 / i128::from(facts.frequency);
        assert!((last_ns - i128::from(clock.last.realtime_ns)).abs() < 10, "{last_ns} is {}", clock.last.realtime_ns);
        assert!(facts.base.is_multiple_of(1 << 32) && facts.base <= clock.begin.ticks);
    }

    const GHZ: u64 = 1_000_000_000;

    /// A sample of a counter of 2 GHz, so many seconds after the others began; for some of these
    /// the system was suspended, while the counter went on.
    fn sample_at(seconds: u64, suspended: u64) -> ClockSample {
        let (ticks, raw_ns) = (2 * GHZ * seconds, ((seconds - suspended) * GHZ) as i64);
        let suspended_ns = Some((suspended * GHZ) as i64);
        ClockSample {
            ticks,
            monotonic_ns: raw_ns,
            realtime_ns: (seconds * GHZ) as i64,
            raw_ns,
            suspended_ns,
            width_ticks: 10,
        }
    }

    fn clock_since(begin: ClockSample) -> TickSource {
        TickSource { source: ClockSource::Counter, begin, last: begin, before: (0, 0), still: None }
    }

    #[test]
    fn what_is_measured_has_no_suspension_in_it() {
        let mut clock = clock_since(sample_at(100, 0));
        clock.watch(sample_at(110, 0));
        assert_eq!(clock.measured(), 2 * GHZ);
        // An hour of suspension: known facts stay known.
        let again = |seconds| ClockSample { ticks: 2 * GHZ * (seconds - 3711), ..sample_at(seconds, 3600) };
        clock.watch(again(3711));
        assert_eq!((clock.measured(), clock.before), (2 * GHZ, (20 * GHZ, 10 * GHZ as i64)));
        // Later time counts when it is longer. A counter that began again makes no difference.
        clock.watch(again(3720));
        assert_eq!(clock.watched_longest(), (20 * GHZ, 10 * GHZ as i64));
        clock.watch(again(3730));
        assert_eq!((clock.watched_longest(), clock.measured()), ((38 * GHZ, 19 * GHZ as i64), 2 * GHZ));
        // Suspended before the first measurement, and again: the time between is measured.
        let mut clock = clock_since(sample_at(100, 0));
        [(200, 50), (201, 50), (300, 100)].into_iter().for_each(|(at, slept)| clock.watch(sample_at(at, slept)));
        assert_eq!((clock.watched_longest(), clock.measured()), ((2 * GHZ, GHZ as i64), 2 * GHZ));
    }

    #[test]
    fn what_another_recorder_watched_before_a_suspension_says_nothing() {
        let mut clock = clock_since(sample_at(4000, 3600));
        clock.was_watched(sample_at(100, 0));
        assert_eq!(clock.watched(), sample_at(4000, 3600));
        clock.was_watched(sample_at(3800, 3600));
        assert_eq!(clock.watched(), sample_at(3800, 3600));
        // An older recorder has not read it: the sample is believed.
        clock.was_watched(ClockSample { suspended_ns: None, ..sample_at(3790, 3600) });
        assert_eq!(clock.watched().ticks, 2 * GHZ * 3790);
    }

    #[test]
    fn nanoseconds_are_nanoseconds() {
        let mut clock = TickSource::begin(ClockSource::Monotonic);
        assert_eq!(clock.frequency(), 1_000_000_000);
        let sample = clock.sample();
        assert!(sample.ticks.abs_diff(sample.monotonic_ns as u64) <= sample.width_ticks);
    }
}
