//! Count, total, smallest, largest and spread of durations, without their distribution.

use serde::{Deserialize, Serialize};

/// The figures of some durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub total: u64,
    // Not the distances to a mean: sums of squares can be added in any order, with the same result.
    squares: u128,
    min: u64,
    max: u64,
}

impl Figures {
    /// Adds one.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.total = self.total.saturating_add(value);
        self.squares = self.squares.saturating_add(u128::from(value) * u128::from(value));
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        self.squares = self.squares.saturating_add(other.squares);
    }

    /// The smallest.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The mean, halves rounded up.
    #[must_use]
    pub fn mean(&self) -> Option<u64> {
        let count = u128::from(self.count);
        (count > 0).then(|| ((u128::from(self.total) * 2 + count) / (count * 2)) as u64)
    }

    /// The standard deviation of the values as a sample, rounded.
    #[must_use]
    pub fn deviation(&self) -> Option<u64> {
        (self.count >= 2).then_some(())?;
        let (count, total) = (u128::from(self.count), u128::from(self.total));
        // In integers as long as they suffice: the difference of two large floating-point numbers
        // has few correct digits. Sums that are saturated may make it negative, which `min`
        // prevents.
        let distances = match (self.squares.checked_mul(count), total.checked_mul(total)) {
            (Some(squares), Some(total)) => (squares - total.min(squares)) as f64,
            _ => (self.squares as f64 * count as f64 - total as f64 * total as f64).max(0.0),
        };
        Some((distances / count as f64 / (self.count - 1) as f64).sqrt().round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::Figures;

    #[test]
    fn figures_are_those_of_a_sample() {
        let mut one = Figures::default();
        [2, 4, 4, 4].into_iter().for_each(|value| one.record(value));
        let mut other = Figures::default();
        [5, 5, 7, 9].into_iter().for_each(|value| other.record(value));
        one.add(&other);
        one.add(&Figures::default());
        assert_eq!((one.count, one.total, one.min(), one.max()), (8, 40, Some(2), Some(9)));
        assert_eq!((one.mean(), one.deviation()), (Some(5), Some(2)));
        assert_eq!((Figures::default().mean(), Figures::default().deviation()), (None, None));
    }
}
