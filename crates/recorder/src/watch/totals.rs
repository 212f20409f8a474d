//! Counts as rows of a table: the buckets of a key together, numbers with their names.

use std::collections::BTreeMap;

use kymo_probe::watch::{BUCKETS, WatchCost, WatchCounts, WatchMeaning, WatchValue, bucket_begin};

use super::{CountedColumns, WatchColumn};

/// The counts of a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchTotals {
    /// By their keys.
    pub groups: BTreeMap<Vec<WatchKey>, WatchGroup>,
    /// Events without a row, because the map was full.
    pub unplaced: u64,
    /// Events that end something of which no begin is known.
    pub unbegun: u64,
    /// Times that a program did not run, because it ran already on that CPU.
    pub missed: u64,
    /// Nanoseconds in which they were counted.
    pub counted_ns: u64,
    /// What it cost since the beginning.
    pub cost: WatchCost,
}

/// A value of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchKey {
    /// A number.
    Number(i128),
    /// A text, or the name of a number.
    Text(String),
}

/// What events of one key have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchGroup {
    /// Events.
    pub count: u64,
    /// The sum of a field.
    pub sum: Option<i128>,
    /// The distribution of a field.
    pub histogram: Option<WatchHistogram>,
}

/// A distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchHistogram {
    /// Events by their buckets.
    buckets: BTreeMap<u32, u64>,
    /// The sum of all values.
    pub sum: i128,
}

/// A part of a distribution: values from one number to another, which is not one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramBar {
    /// `None`: negative numbers.
    pub from: Option<u64>,
    /// `None`: the highest numbers there are.
    pub to: Option<u64>,
    /// Events.
    pub count: u64,
}

impl WatchTotals {
    pub(crate) fn new(counts: WatchCounts, columns: &CountedColumns) -> Self {
        let WatchCounts { rows, unplaced, unbegun, missed, counted_ns, cost } = counts;
        let mut groups: BTreeMap<Vec<WatchKey>, WatchGroup> = BTreeMap::new();
        for row in rows {
            let keys = row.keys.into_iter().zip(&columns.keys).map(|(value, column)| key(value, column, columns));
            let group = groups.entry(keys.collect()).or_default();
            group.count += row.count;
            if columns.sum.is_some() {
                let sum = row.sums.first().map_or(0, |sum| sum.0);
                group.sum = Some(group.sum.unwrap_or(0).saturating_add(sum));
            }
            if let (Some(bucket), Some(at)) = (row.bucket, columns.histogram_sum) {
                let histogram = group.histogram.get_or_insert_default();
                *histogram.buckets.entry(bucket).or_default() += row.count;
                histogram.sum = histogram.sum.saturating_add(row.sums.get(at).map_or(0, |sum| sum.0));
            }
        }
        Self { groups, unplaced, unbegun, missed, counted_ns, cost }
    }

    /// The counts after others, which were earlier; the cost is that since the beginning.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let none = WatchGroup::default();
        let groups = self.groups.iter().map(|(key, group)| {
            let before = before.groups.get(key).unwrap_or(&none);
            (key.clone(), group.since(before))
        });
        Self {
            groups: groups.filter(|(_, group)| group.count > 0).collect(),
            unplaced: self.unplaced.saturating_sub(before.unplaced),
            unbegun: self.unbegun.saturating_sub(before.unbegun),
            missed: self.missed.saturating_sub(before.missed),
            counted_ns: self.counted_ns.saturating_sub(before.counted_ns),
            cost: self.cost,
        }
    }

    /// Events of all keys.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.groups.values().map(|group| group.count).sum()
    }

    /// The distribution of all keys together; `None`: none was asked for.
    #[must_use]
    pub fn histogram(&self) -> Option<WatchHistogram> {
        let mut all: Option<WatchHistogram> = None;
        for histogram in self.groups.values().filter_map(|group| group.histogram.as_ref()) {
            let all = all.get_or_insert_default();
            histogram.buckets.iter().for_each(|(bucket, count)| *all.buckets.entry(*bucket).or_default() += count);
            all.sum = all.sum.saturating_add(histogram.sum);
        }
        all
    }
}

impl WatchGroup {
    fn since(&self, before: &Self) -> Self {
        let histogram = self.histogram.as_ref().map(|histogram| match &before.histogram {
            Some(before) => histogram.since(before),
            None => histogram.clone(),
        });
        Self {
            count: self.count.saturating_sub(before.count),
            sum: self.sum.map(|sum| sum.saturating_sub(before.sum.unwrap_or(0))),
            histogram,
        }
    }
}

impl WatchHistogram {
    fn since(&self, before: &Self) -> Self {
        let less = |(bucket, count): (&u32, &u64)| {
            (*bucket, count.saturating_sub(before.buckets.get(bucket).copied().unwrap_or(0)))
        };
        let buckets = self.buckets.iter().map(less).filter(|(_, count)| *count > 0).collect();
        Self { buckets, sum: self.sum.saturating_sub(before.sum) }
    }

    /// Events.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.values().sum()
    }

    /// About the value that this part of the values, from 0 to 1, is not above: the middle of its bucket, at most 1/16 away from it.
    /// `None`: it is negative, or there is no value.
    #[must_use]
    pub fn percentile(&self, part: f64) -> Option<u64> {
        let wanted = (part * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        // Negative numbers have the last bucket, and are the lowest.
        let negative = self.buckets.range(BUCKETS..);
        for (bucket, count) in negative.chain(self.buckets.range(..BUCKETS)) {
            seen += count;
            if seen >= wanted {
                let (from, to) = (bucket_begin(*bucket)?, bucket_begin(*bucket + 1));
                return Some(to.map_or(from, |to| from + (to - 1 - from) / 2));
            }
        }
        None
    }

    /// The end of the last bucket with a value: no value is above.
    #[must_use]
    pub fn most(&self) -> Option<u64> {
        let (last, _) = self.buckets.range(..BUCKETS).next_back()?;
        Some(bucket_begin(*last + 1).map_or(u64::MAX, |next| next - 1))
    }

    /// The distribution by powers of two, without gaps.
    #[must_use]
    pub fn bars(&self) -> Vec<HistogramBar> {
        let mut bars = BTreeMap::<u32, u64>::new();
        for (bucket, count) in self.buckets.range(..BUCKETS) {
            let bits = bucket_begin(*bucket).map_or(0, |begin| u64::BITS - begin.leading_zeros());
            *bars.entry(bits).or_default() += count;
        }
        let range = bars.keys().next().copied().zip(bars.keys().next_back().copied());
        let negative: u64 = self.buckets.range(BUCKETS..).map(|(_, count)| count).sum();
        let negative = (negative > 0).then_some(HistogramBar { from: None, to: Some(0), count: negative });
        let bar = |bits: u32| {
            let from = Some(if bits == 0 { 0 } else { 1 << (bits - 1) });
            HistogramBar { from, to: 1_u64.checked_shl(bits), count: bars.get(&bits).copied().unwrap_or(0) }
        };
        let others = range.map(|(first, last)| (first..=last).map(bar));
        negative.into_iter().chain(others.into_iter().flatten()).collect()
    }

    /// Buckets with events, in order: from where, to where, how many.
    #[must_use]
    pub fn buckets(&self) -> Vec<HistogramBar> {
        let bar = |(bucket, count): (&u32, &u64)| {
            let from = bucket_begin(*bucket);
            let to = if from.is_some() { bucket_begin(*bucket + 1) } else { Some(0) };
            HistogramBar { from, to, count: *count }
        };
        self.buckets.range(BUCKETS..).chain(self.buckets.range(..BUCKETS)).map(bar).collect()
    }
}

/// A value as people know it.
fn key(value: WatchValue, column: &WatchColumn, columns: &CountedColumns) -> WatchKey {
    let number = match value {
        WatchValue::Text(text) => return WatchKey::Text(text),
        WatchValue::Number(number) => number,
    };
    if column.meaning == WatchMeaning::Event {
        let name = usize::try_from(number).ok().and_then(|number| columns.events.get(number));
        return name.map_or(WatchKey::Number(number.into()), |name| WatchKey::Text(name.clone()));
    }
    match column.labels.iter().find(|(_, value)| *value == number) {
        Some((name, _)) => WatchKey::Text(name.clone()),
        None if column.is_signed => WatchKey::Number(number.into()),
        None => WatchKey::Number((number as u64).into()),
    }
}

#[cfg(test)]
mod tests {
    use kymo_probe::watch::bucket_of;

    use super::*;

    fn histogram(values: impl IntoIterator<Item = u64>) -> WatchHistogram {
        let mut all = WatchHistogram::default();
        for value in values {
            *all.buckets.entry(bucket_of(value)).or_default() += 1;
            all.sum += i128::from(value);
        }
        all
    }

    /// A percentile is as near to the exact one as buckets are.
    #[test]
    fn percentiles_are_near() {
        let mut values: Vec<u64> = (0..5000_u64).map(|number| number.pow(3) % 1_000_003 + number * 7).collect();
        let all = histogram(values.iter().copied());
        values.sort_unstable();
        for part in [0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let exact = values[(part * values.len() as f64).ceil() as usize - 1];
            let told = all.percentile(part).expect("there are values");
            assert!(exact.abs_diff(told) <= exact / 16, "{part}: {told} for {exact}");
        }
        assert!(all.most().expect("there are values") >= values[values.len() - 1]);
        assert_eq!(WatchHistogram::default().percentile(0.5), None);
    }

    #[test]
    fn bars_have_no_gaps() {
        let mut all = histogram([0, 1, 5, 64, 65]);
        all.buckets.insert(BUCKETS, 3);
        let bar = |from, to, count| HistogramBar { from, to, count };
        let wanted = [
            bar(None, Some(0), 3),
            bar(Some(0), Some(1), 1),
            bar(Some(1), Some(2), 1),
            bar(Some(2), Some(4), 0),
            bar(Some(4), Some(8), 1),
            bar(Some(8), Some(16), 0),
            bar(Some(16), Some(32), 0),
            bar(Some(32), Some(64), 0),
            bar(Some(64), Some(128), 2),
        ];
        assert_eq!(all.bars(), wanted);
        assert_eq!((all.percentile(0.1), all.percentile(0.5), all.count()), (None, Some(0), 8));
    }

    #[test]
    fn intervals_are_differences() {
        let (early, late) = (histogram([1, 2, 900]), histogram([1, 2, 900, 900, 7]));
        assert_eq!(late.since(&early), histogram([900, 7]));
    }
}
