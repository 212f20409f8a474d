//! Count, sum, sum of squares, minimum and maximum: exact, and the same in any order.
//!
//! The count stops at `u64::MAX` and the sum at `u128::MAX`. That is still associative: the result is the smaller of
//! the true sum and the maximum. It is also theory: 2^64 events take centuries.

/// The sums of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moments {
    pub(super) count: u64,
    pub(super) sum: u128,
    pub(super) squares: Squares,
    /// `u64::MAX` while there is no value.
    pub(super) min: u64,
    pub(super) max: u64,
}

/// A sum of squares, in 192 bits: 2^64 squares of 64-bit numbers fit. In 128 bits, 120 times since the epoch would not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Squares {
    pub(super) high: u64,
    pub(super) low: u128,
}

impl Squares {
    #[inline]
    fn add(&mut self, square: u128) {
        let (low, carry) = self.low.overflowing_add(square);
        self.low = low;
        self.high = self.high.wrapping_add(u64::from(carry));
    }

    /// The sum; the largest number if it does not fit.
    pub(super) fn plus(self, other: Self) -> Self {
        let (low, carry) = self.low.overflowing_add(other.low);
        let high = self.high.checked_add(other.high).and_then(|high| high.checked_add(u64::from(carry)));
        high.map_or(Self { high: u64::MAX, low: u128::MAX }, |high| Self { high, low })
    }

    fn wrapping_minus(self, other: Self) -> Self {
        let (low, borrow) = self.low.overflowing_sub(other.low);
        Self { high: self.high.wrapping_sub(other.high).wrapping_sub(u64::from(borrow)), low }
    }

    /// `times` as much as `square`.
    pub(super) fn product(square: u128, times: u64) -> Self {
        let low = (square & u128::from(u64::MAX)) * u128::from(times);
        let high = (square >> 64) * u128::from(times);
        let (low, carry) = low.overflowing_add(high << 64);
        Self { high: (high >> 64) as u64 + u64::from(carry), low }
    }

    fn as_f64(self) -> f64 {
        const LOW_RANGE: f64 = 340_282_366_920_938_463_463_374_607_431_768_211_456.0;
        self.high as f64 * LOW_RANGE + self.low as f64
    }
}

impl Moments {
    pub(super) const NONE: Self =
        Self { count: 0, sum: 0, squares: Squares { high: 0, low: 0 }, min: u64::MAX, max: 0 };

    #[inline]
    pub(super) fn record(&mut self, value: u64) {
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(u128::from(value));
        self.squares.add(u128::from(value) * u128::from(value));
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    pub(super) fn record_many(&mut self, value: u64, count: u64) {
        let wide = u128::from(value);
        let squares = Squares::product(wide * wide, count);
        self.merge(&Self { count, sum: wide * u128::from(count), squares, min: value, max: value });
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.plus(other.squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The sum of the squared distances from the mean; `None` without values or if the count has stopped.
    ///
    /// With the mean's whole part q and sum = count q + r, the sum of (v - q)^2 is squares - count q^2 - 2 q r, all in
    /// integers. The true mean is r / count further, which takes r^2 / count off. So large values that differ little,
    /// such as times since the epoch, lose nothing.
    pub(super) fn squared_distances(&self) -> Option<f64> {
        if self.count == 0 || self.count == u64::MAX {
            return None;
        }
        let count = u128::from(self.count);
        // The count has not stopped, so the quotient is a mean of 64-bit values and the remainder is below the count.
        let (whole, rest) = (self.sum / count, self.sum % count);
        let from_whole = self
            .squares
            .wrapping_minus(Squares::product(whole * whole, self.count))
            .wrapping_minus(Squares::product(whole * rest, 2));
        let shift = rest * rest;
        let exact = from_whole.wrapping_minus(Squares { high: 0, low: shift / count });
        Some(exact.as_f64() - (shift % count) as f64 / self.count as f64)
    }
}
