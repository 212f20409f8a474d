//! How far the counters of a machine's CPUs are apart: the measurement, and the bounds that follow from it.
//!
//! It must never know traces, tracers or recorders.
//!
//! ```text
//! CPU i       t0 ──────────────────────────────> t3      offset = ((t1 - t0) + (t2 - t3)) / 2
//!              └─ a cache line ─┐       ┌────────┘       trip   = (t3 - t0) - (t2 - t1)
//! first CPU                     t1 ──> t2                |offset - true offset| <= trip / 2
//! ```
//!
//! Barrelfish measures its cores this way before it traces (its technical note 8), with messages between
//! cores. Here two threads exchange the stamps, each pinned to its CPU. Of many rounds the one with the
//! least trip counts. Its error is a bound, not an estimate: the question left before it arrived, and the
//! answer too, so the true offset is not below `t2 - t3` and not above `t1 - t0`.
//!
//! The measurement needs Linux on x86-64 or aarch64 ([`measure`]); the bounds need nothing.

#![no_std]

#[cfg(test)]
extern crate std;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod exchange;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod measure;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use measure::{PTHREAD_CREATE, StartThread, measure};

/// The counter of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CpuCounter {
    /// The number of the CPU.
    pub cpu: u32,
    /// How it relates to that of the first CPU; `None`: the CPU did not answer.
    pub offset: Option<CounterOffset>,
}

/// How the counter of a CPU relates to that of the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CounterOffset {
    /// Ticks to add to this counter, to get the first CPU's.
    pub offset_ticks: i64,
    /// The true offset differs by at most so many ticks.
    pub error_ticks: u64,
    /// Ticks that question and answer were on their way, both together.
    pub trip_ticks: u64,
}

impl CounterOffset {
    /// Both ends of the interval of the true offset.
    fn ends(&self) -> (i128, i128) {
        let (offset, error) = (i128::from(self.offset_ticks), i128::from(self.error_ticks));
        (offset - error, offset + error)
    }

    /// Whether the counter may be the same as the first CPU's.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.offset_ticks.unsigned_abs() <= self.error_ticks
    }
}

/// Stamps of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundStamps {
    /// The CPU asks: its own counter.
    pub asked: u64,
    /// The question arrives: the first CPU's counter.
    pub received: u64,
    /// The answer leaves: the first CPU's counter.
    pub answered: u64,
    /// The answer arrives: the CPU's own counter.
    pub returned: u64,
}

impl RoundStamps {
    /// The offset, with its error.
    #[must_use]
    pub fn offset(&self) -> CounterOffset {
        // Counters of 64 bits may wrap between two stamps; differences do not.
        let there = i128::from(self.received.wrapping_sub(self.asked) as i64);
        let back = i128::from(self.answered.wrapping_sub(self.returned) as i64);
        // A counter that is not constant may make it negative: then the round says nothing.
        let trip_ticks = u64::try_from(there - back).unwrap_or(u64::MAX);
        CounterOffset {
            offset_ticks: ((there + back) / 2) as i64,
            // Rounded up, for the half tick that the offset may have lost too.
            error_ticks: if trip_ticks == u64::MAX { u64::MAX } else { trip_ticks / 2 + 1 },
            trip_ticks,
        }
    }
}

/// Whether all counters that are known may be the same.
#[must_use]
pub fn agree(counters: &[CpuCounter]) -> bool {
    counters.iter().filter_map(|counter| counter.offset).all(|offset| offset.agrees())
}

/// An upper bound of the difference between any two of the counters, in ticks. `None`: fewer than two are
/// known.
///
/// ```
/// use kymo_skew::{CounterOffset, CpuCounter, apart};
/// let counter = |cpu, offset_ticks, error_ticks| {
///     CpuCounter { cpu, offset: Some(CounterOffset { offset_ticks, error_ticks, trip_ticks: 2 * error_ticks }) }
/// };
/// assert_eq!(apart(&[counter(0, 0, 0), counter(1, -3, 20), counter(2, 500, 30)]), Some(503 + 20 + 30));
/// assert_eq!(apart(&[counter(0, 0, 0)]), None);
/// ```
#[must_use]
pub fn apart(counters: &[CpuCounter]) -> Option<u64> {
    most_apart(counters, CounterOffset::ends)
}

/// The same after each counter was corrected by its offset: only the errors remain.
#[must_use]
pub fn apart_corrected(counters: &[CpuCounter]) -> Option<u64> {
    most_apart(counters, |offset| (-i128::from(offset.error_ticks), i128::from(offset.error_ticks)))
}

/// The greatest distance from the low end of one counter to the high end of another one.
fn most_apart(counters: &[CpuCounter], ends: impl Fn(&CounterOffset) -> (i128, i128)) -> Option<u64> {
    let mut spread = CounterSpread::default();
    counters.iter().filter_map(|counter| counter.offset.as_ref()).map(ends).for_each(|ends| spread.add_ends(ends));
    spread.apart()
}

/// The same bound of counters that come one by one.
#[derive(Clone, Copy, Debug, Default)]
pub struct CounterSpread {
    known: usize,
    /// The two lowest ends, and the two highest ones, each with the place of its counter.
    lows: [Option<(i128, usize)>; 2],
    highs: [Option<(i128, usize)>; 2],
}

impl CounterSpread {
    /// Another counter.
    pub fn add(&mut self, counter: &CpuCounter) {
        counter.offset.iter().for_each(|offset| self.add_ends(offset.ends()));
    }

    fn add_ends(&mut self, (low, high): (i128, i128)) {
        insert(&mut self.lows, (low, self.known), |one, other| one < other);
        insert(&mut self.highs, (high, self.known), |one, other| one > other);
        self.known += 1;
    }

    /// An upper bound of the difference between any two of them, in ticks. `None`: fewer than two are known.
    #[must_use]
    pub fn apart(&self) -> Option<u64> {
        // Both ends may be of one counter: the other one of the pair is then the next.
        let pairs = self.highs.iter().flatten().flat_map(|high| self.lows.iter().flatten().map(move |low| (high, low)));
        let apart = pairs.filter(|(high, low)| high.1 != low.1).map(|(high, low)| high.0 - low.0).max()?;
        Some(u64::try_from(apart).unwrap_or(u64::MAX))
    }
}

/// Keeps the first two.
fn insert(kept: &mut [Option<(i128, usize)>; 2], new: (i128, usize), is_before: impl Fn(i128, i128) -> bool) {
    let goes_before = |known: Option<(i128, usize)>| known.is_none_or(|known| is_before(new.0, known.0));
    if goes_before(kept[0]) {
        *kept = [Some(new), kept[0]];
    } else if goes_before(kept[1]) {
        kept[1] = Some(new);
    }
}

/// Ticks in nanoseconds, rounded up.
#[must_use]
pub fn nanos_at_most(ticks: u64, frequency_hz: u64) -> u64 {
    let nanos = (u128::from(ticks) * 1_000_000_000).div_ceil(u128::from(frequency_hz.max(1)));
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

/// Ticks in nanoseconds, to the nearest one.
#[must_use]
pub fn nanos(ticks: i64, frequency_hz: u64) -> i64 {
    let frequency = i128::from(frequency_hz.max(1));
    let nanos = (i128::from(ticks) * 1_000_000_000 + frequency / 2).div_euclid(frequency);
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round that begins at a true time, with so long ways there and back, to a CPU whose counter is so
    /// far behind the first one's.
    fn round(begin: u64, (there, back): (u64, u64), behind: i64) -> RoundStamps {
        let own = |time: u64| time.wrapping_sub(behind as u64);
        let (received, answered) = (begin + there, begin + there + 30);
        RoundStamps { asked: own(begin), received, answered, returned: own(answered + back) }
    }

    #[test]
    fn the_true_offset_is_within_the_error_however_long_each_way_is() {
        for behind in [0, 1, -1, 12_345, -12_345, 1 << 40, -(1 << 40), i64::MAX / 4, i64::MIN / 4] {
            for ways in [(50, 50), (50, 51), (1, 900), (900, 1), (70_000, 70_000)] {
                let found = round(1 << 20, ways, behind).offset();
                assert_eq!(found.trip_ticks, ways.0 + ways.1);
                assert!(found.offset_ticks.abs_diff(behind) <= found.error_ticks, "{behind} {ways:?} {found:?}");
                assert!(found.error_ticks <= (ways.0 + ways.1) / 2 + 1);
            }
        }
    }

    #[test]
    fn a_round_that_ends_before_it_begins_says_nothing() {
        let stamps = RoundStamps { asked: 100, received: 1000, answered: 1010, returned: 90 };
        assert_eq!(stamps.offset().error_ticks, u64::MAX);
        assert!(stamps.offset().agrees());
    }

    fn counters(all: &[Option<(i64, u64)>]) -> std::vec::Vec<CpuCounter> {
        let offset = |(offset_ticks, error_ticks): (i64, u64)| CounterOffset {
            offset_ticks,
            error_ticks,
            trip_ticks: 2 * error_ticks,
        };
        (0..).zip(all).map(|(cpu, known)| CpuCounter { cpu, offset: known.map(offset) }).collect()
    }

    #[test]
    fn bounds_are_those_of_the_pair_that_is_farthest_apart() {
        let two = counters(&[Some((0, 0)), Some((1, 20))]);
        assert_eq!((apart(&two), apart_corrected(&two), agree(&two)), (Some(21), Some(20), true));
        let far = counters(&[Some((0, 0)), Some((-500, 20)), None, Some((800, 30))]);
        assert_eq!((apart(&far), apart_corrected(&far), agree(&far)), (Some(1350), Some(50), false));
        let alone = counters(&[Some((0, 0)), None]);
        assert_eq!((apart(&alone), apart(&[]), agree(&alone)), (None, None, true));
        // All pairs, against the shortcut.
        let mut seed = 1_u64;
        for _ in 0..200 {
            let mut next = |most: u64| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 33) % most
            };
            let all: std::vec::Vec<_> = (0..5).map(|_| Some((next(100) as i64 - 50, next(100)))).collect();
            let pairs = (0..5).flat_map(|one| (0..5).filter(move |other| *other != one).map(move |other| (one, other)));
            let ends = |at: usize| all[at].expect("all are known");
            let each = pairs.map(|(one, other)| {
                let ((offset, error), (offset_2, error_2)) = (ends(one), ends(other));
                offset.abs_diff(offset_2) + error + error_2
            });
            assert_eq!(apart(&counters(&all)), each.max(), "{all:?}");
        }
    }

    #[test]
    fn nanoseconds_are_rounded_to_the_safe_side() {
        assert_eq!((nanos_at_most(1, 3_000_000_000), nanos_at_most(u64::MAX, 1)), (1, u64::MAX));
        assert_eq!((nanos(-5, 2_000_000_000), nanos(4, 2_000_000_000), nanos(i64::MIN, 1)), (-2, 2, i64::MIN));
    }
}
