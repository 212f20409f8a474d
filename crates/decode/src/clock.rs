//! From a clock's cycles to nanoseconds.
//!
//! ```text
//! ns = offset_s * 10^9 + floor((offset_cycles + cycles) * 10^9 / frequency)
//! ```
//!
//! in 128 bits: defined for every input. A check at the end decides whether the result fits 64
//! bits. Offset and cycles are rounded together, so that the result is the nanosecond that the
//! event was in. Babeltrace rounds them apart and goes through doubles where the frequency is not
//! 1 GHz, so that its times are off by a nanosecond now and then.

use kymo_format::ClockClass;

const NANOS: i128 = 1_000_000_000;

/// Converts the cycles of one clock.
///
/// ```
/// # use kymo_format::ClockClass;
/// let clock = ClockClass { frequency_hz: 1_000, offset_s: 10, offset_cycles: 5, ..ClockClass::default() };
/// let converter = kymo_decode::ClockConverter::new(&clock, 0);
/// assert_eq!(converter.nanos(1), Some(10_006_000_000));
/// assert_eq!(converter.nanos(u64::MAX), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockConverter {
    frequency_hz: u64,
    /// From the origin to the whole second at or before cycle 0, and the shift.
    base_ns: i128,
    /// From there to cycle 0: less than a second.
    rest_cycles: u64,
    /// With 10^9 cycles a second: the addend, if it fits.
    addend: Option<i64>,
}

impl ClockConverter {
    /// A converter for `clock`, with times shifted by `shift_ns`.
    #[must_use]
    pub fn new(clock: &ClockClass, shift_ns: i64) -> Self {
        let frequency_hz = clock.frequency_hz.max(1);
        let frequency = i128::from(frequency_hz);
        let (seconds, rest) = (clock.offset_cycles.div_euclid(frequency), clock.offset_cycles.rem_euclid(frequency));
        let seconds = seconds.saturating_add(i128::from(clock.offset_s));
        let base_ns = seconds.saturating_mul(NANOS).saturating_add(i128::from(shift_ns));
        let addend = (frequency == NANOS).then(|| i64::try_from(base_ns.saturating_add(rest)).ok()).flatten();
        Self { frequency_hz, base_ns, rest_cycles: rest as u64, addend }
    }

    /// Cycles in a second.
    #[must_use]
    pub fn frequency_hz(&self) -> u64 {
        self.frequency_hz
    }

    /// Nanoseconds from the origin to the whole second at or before cycle 0; see
    /// [`Self::rest_cycles`].
    #[must_use]
    pub fn base_ns(&self) -> i128 {
        self.base_ns
    }

    /// Cycles from there to cycle 0: less than a second.
    #[must_use]
    pub fn rest_cycles(&self) -> u64 {
        self.rest_cycles
    }

    /// Nanoseconds since the clock's origin, rounded down, however large.
    #[must_use]
    pub fn nanos_wide(&self, cycles: u64) -> i128 {
        let frequency = self.frequency_hz;
        // Whole seconds apart: the rest times 10^9 mostly fits 64 bits, and divisions of 128 bits
        // are slow.
        let nanos = match cycles.checked_add(self.rest_cycles) {
            Some(total) => {
                let (seconds, rest) = (total / frequency, total % frequency);
                let nanos = match rest.checked_mul(NANOS as u64) {
                    Some(product) => i128::from(product / frequency),
                    None => i128::from(rest) * NANOS / i128::from(frequency),
                };
                i128::from(seconds) * NANOS + nanos
            }
            // Below 2^65 * 2^30.
            None => (i128::from(cycles) + i128::from(self.rest_cycles)) * NANOS / i128::from(frequency),
        };
        nanos.saturating_add(self.base_ns)
    }

    /// Nanoseconds since the clock's origin, rounded down; `None` if they do not fit.
    #[must_use]
    pub fn nanos(&self, cycles: u64) -> Option<i64> {
        match (self.addend, i64::try_from(cycles)) {
            (Some(addend), Ok(cycles)) => cycles.checked_add(addend),
            _ => i64::try_from(self.nanos_wide(cycles)).ok(),
        }
    }

    /// The same, as near as 64 bits come.
    #[must_use]
    pub fn nanos_saturating(&self, cycles: u64) -> i64 {
        let saturate = || self.nanos_wide(cycles).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        self.nanos(cycles).unwrap_or_else(saturate)
    }

    /// Appends [`ClockConverter::nanos_saturating`] of each.
    pub fn nanos_saturating_all(&self, cycles: &[u64], into: &mut Vec<i64>) {
        // At least the highest, and found sooner.
        let highest = cycles.iter().fold(0, |all, cycles| all | cycles);
        match self.addend {
            Some(addend) if i64::try_from(highest).is_ok_and(|highest| highest.checked_add(addend).is_some()) => {
                into.extend(cycles.iter().map(|&cycles| cycles as i64 + addend));
            }
            _ => into.extend(cycles.iter().map(|&cycles| self.nanos_saturating(cycles))),
        }
    }

    /// The first cycles that are not before `nanos`; 0 if all are, `None` if none is.
    #[must_use]
    pub fn cycles_from(&self, nanos: i64) -> Option<u64> {
        let nanos = i128::from(nanos) - self.base_ns;
        let frequency = i128::from(self.frequency_hz);
        let (seconds, rest) = (nanos.div_euclid(NANOS), nanos.rem_euclid(NANOS));
        // Rounded up, because `nanos` rounds down: a cycle less would be before the time.
        let cycles = seconds.saturating_mul(frequency) + (rest * frequency + NANOS - 1) / NANOS;
        let cycles = cycles.saturating_sub(i128::from(self.rest_cycles));
        if cycles < 0 { Some(0) } else { u64::try_from(cycles).ok() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(frequency_hz: u64, offset_s: i64, offset_cycles: i128) -> ClockConverter {
        let class = ClockClass { frequency_hz, offset_s, offset_cycles, ..ClockClass::default() };
        ClockConverter::new(&class, 0)
    }

    #[test]
    fn rounds_down_also_below_zero() {
        assert_eq!(clock(3, 0, 0).nanos(1), Some(333_333_333));
        assert_eq!(clock(3, 0, -2).nanos(1), Some(-333_333_334));
        assert_eq!(clock(3, -1, 0).nanos(1), Some(-666_666_667));
    }

    /// The offset's rest and the cycles make a whole nanosecond together that each of them alone
    /// does not.
    #[test]
    fn the_offset_and_the_cycles_are_rounded_together() {
        assert_eq!(clock(3, 0, 1).nanos(1), Some(666_666_666));
        assert_eq!(clock(3, 0, 2).nanos(1), Some(1_000_000_000));
        let tsc = clock(3_293_841_647, 1_641_387_136, 958_208_802);
        assert_eq!(tsc.nanos(30_402_051_103_446), Some(1_641_396_366_258_333_741));
        assert_eq!(tsc.nanos(30_402_051_116_068), Some(1_641_396_366_258_337_573));
        assert_eq!(tsc.nanos(30_402_051_116_069), Some(1_641_396_366_258_337_574));
        for (frequency, offset) in [(3, 2), (7, -5), (1_000_000_000, 999_999_999), (u64::MAX, i128::from(u64::MAX) - 1)]
        {
            let clock = clock(frequency, 1, offset);
            for cycles in [0, 1, 2, 1 << 40, u64::MAX - 1, u64::MAX] {
                // Exact: (offset + cycles) * 10^9 fits 128 bits.
                let exact = (offset + i128::from(cycles)) * NANOS;
                let exact = exact.div_euclid(i128::from(frequency)) + NANOS;
                assert_eq!(clock.nanos_wide(cycles), exact, "{frequency} {offset} {cycles}");
            }
        }
    }

    #[test]
    fn the_fast_path_agrees_at_the_edges() {
        let fast = clock(1_000_000_000, i64::MAX / 1_000_000_000, 0);
        for cycles in [0, 1, 854_775_807, 854_775_808, i64::MAX as u64, u64::MAX] {
            let wide = fast.nanos_wide(cycles);
            assert_eq!(fast.nanos(cycles), i64::try_from(wide).ok(), "{cycles}");
        }
    }

    #[test]
    fn the_first_cycle_not_before_a_time() {
        for (frequency, offset) in [(1, 10_000), (3, 5), (1_000_000_000, 7), (3_293_832_152, 1)] {
            let clock = clock(frequency, offset, 2);
            for nanos in [offset * 1_000_000_000 + 1, offset * 1_000_000_000 + 7_777_777_777] {
                let cycles = clock.cycles_from(nanos).unwrap();
                assert!(clock.nanos(cycles).unwrap() >= nanos, "{frequency} {nanos}");
                assert!(cycles == 0 || clock.nanos(cycles - 1).unwrap() < nanos, "{frequency} {nanos}");
            }
        }
    }
}
