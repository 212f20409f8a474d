//! The histogram against the plain list of values that it stands for.

use super::*;
use crate::merge::Merge;
use proptest::collection::vec;
use proptest::prelude::*;

/// Values as traces have them: small counts, durations over many octaves, and the largest numbers.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..40,
        (0u32..64, any::<u64>()).prop_map(|(shift, value)| value >> shift),
        (0u64..5000).prop_map(|value| 1_000_000 + value),
        Just(u64::MAX),
    ]
}

fn recorded(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    values.iter().for_each(|&value| histogram.record(value));
    histogram
}

#[test]
fn every_value_is_in_the_bucket_that_says_so() {
    for shift in 0..64 {
        for near in [0u64, 1, 2, 3, 511, 512, 513] {
            let base = 1u64 << shift;
            for value in [base.saturating_add(near), base.wrapping_sub(1 + near), u64::MAX - near] {
                let bucket = buckets::bucket_of(value);
                let (low, high) = buckets::range_of(bucket);
                assert!(bucket < buckets::BUCKETS && low <= value && value <= high, "{value} in {low}..={high}");
                let error = (high - low) as f64 / 2.0 / low.max(1) as f64;
                assert!(error <= 0.001, "{value}: {error}");
            }
        }
    }
    for bucket in 1..buckets::BUCKETS {
        assert_eq!(buckets::range_of(bucket - 1).1 + 1, buckets::range_of(bucket).0, "no gap before {bucket}");
    }
    assert_eq!(buckets::range_of(buckets::BUCKETS - 1).1, u64::MAX);
}

/// Compares all figures with those of the sorted values.
fn check(values: &[u64], histogram: &Histogram) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    assert_eq!(histogram.count(), sorted.len() as u64);
    assert_eq!(histogram.sum(), sorted.iter().map(|&value| u128::from(value)).sum::<u128>());
    assert_eq!(histogram.min(), sorted.first().copied());
    assert_eq!(histogram.max(), sorted.last().copied());
    assert_eq!(histogram.buckets().map(|bucket| bucket.count).sum::<u64>(), histogram.count());
    for (position, &value) in sorted.iter().enumerate() {
        let share = (position + 1) as f64 / sorted.len() as f64;
        let quantile = histogram.quantile(share).unwrap();
        assert!(quantile.low <= value && value <= quantile.high, "{value} at {share} is not in {quantile:?}");
        let error = quantile.value.abs_diff(value) as f64;
        assert!(error <= value as f64 * 0.001, "{value} at {share} is estimated as {}", quantile.value);
        let below = sorted.partition_point(|&other| other < value) as u64;
        let counted = histogram.count_below(value);
        assert!(counted.low <= below && below <= counted.high, "{below} below {value}: {counted:?}");
        assert!(counted.low <= counted.value && counted.value <= counted.high);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn figures_are_those_of_the_values(values in vec(value(), 0..300)) {
        check(&values, &recorded(&values));
    }

    #[test]
    fn cuts_and_groups_and_order_do_not_matter(
        values in vec(value(), 0..2000),
        cuts in vec(0usize..2000, 0..6),
        seed in any::<u64>(),
    ) {
        let whole = recorded(&values);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(values.len())).chain([0, values.len()]).collect();
        cuts.sort_unstable();
        let mut parts: Vec<Histogram> = cuts.windows(2).map(|cut| recorded(&values[cut[0]..cut[1]])).collect();
        let mut draw = seed;
        while parts.len() > 1 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let absorbed = parts.remove((draw >> 33) as usize % parts.len());
            let into = (draw >> 13) as usize % parts.len();
            if draw & 1 == 0 { parts[into].merge(absorbed) } else { parts[into].merge_from(&absorbed) }
        }
        prop_assert_eq!(&parts[0], &whole);
        prop_assert_eq!(postcard::to_allocvec(&parts[0]).unwrap(), postcard::to_allocvec(&whole).unwrap());
    }

    #[test]
    fn many_at_once_are_many_in_turn(values in vec((value(), 0u64..200), 0..40)) {
        let mut at_once = Histogram::default();
        let mut in_turn = Histogram::default();
        for (value, count) in values {
            at_once.record_many(value, count);
            (0..count).for_each(|_| in_turn.record(value));
        }
        prop_assert_eq!(at_once, in_turn);
    }

    #[test]
    fn what_is_written_is_read(values in vec(value(), 0..400), large in any::<u64>()) {
        let mut histogram = recorded(&values);
        histogram.record_many(large, large);
        let bytes = postcard::to_allocvec(&histogram).unwrap();
        prop_assert_eq!(postcard::from_bytes::<Histogram>(&bytes).unwrap(), histogram);
    }

    /// A changed byte gives an error or a histogram that works; never a panic, never endless memory.
    #[test]
    fn damaged_bytes_are_refused_or_harmless(
        values in vec(value(), 0..60),
        damage in vec((any::<usize>(), any::<u8>()), 1..4),
        cut in any::<usize>(),
    ) {
        let mut bytes = postcard::to_allocvec(&recorded(&values)).unwrap();
        for (position, byte) in damage {
            let position = position % bytes.len();
            bytes[position] = byte;
        }
        bytes.truncate(bytes.len() - cut % bytes.len() % 4);
        if let Ok(mut histogram) = postcard::from_bytes::<Histogram>(&bytes) {
            histogram.record(5);
            let _ = (histogram.variance(), histogram.quantiles([0.0, 0.5, 1.0]));
            prop_assert!(histogram.weight() < 1 << 20);
        }
    }

    #[test]
    fn bins_have_every_value_once(
        values in vec(value(), 0..300), low in value(), high in value(), count in 0u16..60, even in any::<bool>(),
    ) {
        let bins = if even { Bins::linear(low, high, count) } else { Bins::logarithmic(low, high, count) };
        let distribution = recorded(&values).distribution(&bins);
        let mut total = distribution.below.value + distribution.above.value;
        let mut next = low.min(high);
        for bin in &distribution.bins {
            prop_assert_eq!(bin.low, next);
            prop_assert!(bin.low <= bin.high);
            let truth = values.iter().filter(|&&value| bin.low <= value && value <= bin.high).count() as u64;
            prop_assert!(bin.count.low <= truth && truth <= bin.count.high, "{:?} has {}", bin, truth);
            total += bin.count.value;
            next = bin.high.wrapping_add(1);
        }
        prop_assert_eq!(next, low.max(high).wrapping_add(1));
        prop_assert_eq!(total, values.len() as u64);
    }
}

/// Nanoseconds since the epoch that differ little: a naive sum of squares in floating point loses all digits.
#[test]
fn variance_of_large_values_is_exact() {
    let base = 1_700_000_000_000_000_000;
    let histogram = recorded(&[base, base + 2, base + 4, base + 6]);
    assert_eq!(histogram.variance(), Some(5.0));
    assert_eq!(histogram.sample_variance(), Some(20.0 / 3.0));
    assert_eq!(histogram.mean(), Some((base + 3) as f64));
    let mut many = Histogram::default();
    many.record_many(base, 1_000_000);
    assert_eq!(many.variance(), Some(0.0));
    many.record_many(u64::MAX, 1 << 40);
    let share = 1_000_000.0 / (1_000_000.0 + (1u64 << 40) as f64);
    let expected = share * (1.0 - share) * ((u64::MAX - base) as f64).powi(2);
    assert!((many.variance().unwrap() / expected - 1.0).abs() < 1e-12);
}

#[test]
fn nothing_has_no_figures() {
    let histogram = Histogram::default();
    assert_eq!(histogram.quantile(0.5), None);
    assert_eq!((histogram.min(), histogram.mean(), histogram.variance()), (None, None, None));
    assert_eq!(recorded(&[3]).sample_variance(), None);
    assert_eq!(recorded(&[3]).quantile(f64::NAN), None);
}

#[test]
fn shares_that_are_no_binary_fractions_meet_their_rank() {
    let histogram = recorded(&(1..=1000).collect::<Vec<_>>());
    for percent in 1..=100 {
        let quantile = histogram.quantile(f64::from(percent) / 100.0).unwrap();
        assert_eq!(quantile.value, u64::from(percent as u32 * 10), "{percent} %");
    }
}

/// Counts past 2^32 in one bucket, and past 2^64 altogether.
#[test]
fn large_counts_carry_and_then_stop() {
    let mut histogram = Histogram::default();
    histogram.record_many(10, u64::from(u32::MAX));
    histogram.record(10);
    histogram.record(10);
    histogram.record_many(700, 5 << 32);
    assert_eq!(histogram.count_below(11), Bounded::exact((1 << 32) + 1));
    let mut twice = histogram.clone();
    twice.merge_from(&histogram);
    assert_eq!(twice.count_below(11), Bounded::exact((2 << 32) + 2));
    assert_eq!(twice.count(), (12 << 32) + 2);
    twice.record_many(10, u64::MAX);
    assert_eq!((twice.count(), twice.count_below(11).high), (u64::MAX, u64::MAX));
    let bytes = postcard::to_allocvec(&twice).unwrap();
    assert_eq!(postcard::from_bytes::<Histogram>(&bytes).unwrap(), twice);
}

#[test]
fn memory_follows_what_was_recorded() {
    assert_eq!(size_of::<Histogram>(), 64);
    assert_eq!(recorded(&[1, 1 << 20, 1 << 40]).weight(), 0);
    let spread: Vec<u64> = (0..1000u64).map(|value| value.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 30).collect();
    assert!(recorded(&spread).weight() < 3000, "{}", recorded(&spread).weight());
    let equal = recorded(&[77; 1000]);
    assert!(equal.weight() < 500, "{}", equal.weight());
    let all = recorded(&(0..200_000).map(|value| value * 50).collect::<Vec<_>>());
    assert!(all.weight() < 60_000, "{}", all.weight());
}
