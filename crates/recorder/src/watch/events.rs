//! Counts as events of a trace, the same ones in a trace of their own and in that of a recording.
//!
//! | event | there is one for | its fields, behind `watch`, the name of the question |
//! |---|---|---|
//! | `watch:row` | each row and interval | `row`, keys, numbers |
//! | `watch:interval` | each interval | `time_ns`, numbers of all rows, losses |
//! | `watch:total` | each row, at the end | as `watch:row`, of the whole time |
//! | `watch:bucket` | each bucket of a row with events, at the end | `row`, keys, `low`, `high`, `events` |
//! | `watch:end` | the end | as `watch:interval`, of the whole time; `rows`, `is_complete`, `question` |
//!
//! A row that has events in one interval and none in the next one is told with none, once: its number is another one from then on.

use std::collections::{BTreeSet, HashSet};

use kymo_format::model::EventRecordClass;
use kymo_ftrace::fields::{FieldList, KernelValue};

use super::{CountedColumns, WatchColumn, WatchGroup, WatchHistogram, WatchKey, WatchMeaning, WatchTotals};

/// Percentiles of a distribution, by the names of their fields.
const PARTS: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];
/// Fields that are no keys.
const OTHERS: [&str; 13] =
    ["watch", "row", "time_ns", "events", "sum", "total", "p50", "p90", "p99", "p999", "most", "low", "high"];
/// The URI of classes of a question, before its name.
const URI: &str = "kymo:watch/";
/// The only row of a question without keys.
const ONLY: &str = "all";

/// A kind of these events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CountEvent {
    Row,
    Interval,
    Total,
    Bucket,
    End,
}

impl CountEvent {
    /// The name of its class.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Row => "watch:row",
            Self::Interval => "watch:interval",
            Self::Total => "watch:total",
            Self::Bucket => "watch:bucket",
            Self::End => "watch:end",
        }
    }
}

/// The class of an event of a question with this name: by its URI, readers know the question before they read any event.
pub(crate) fn count_class(name: &str, id: u16, event: CountEvent, fields: &FieldList) -> EventRecordClass {
    EventRecordClass {
        id: id.into(),
        namespace: None,
        name: Some(event.name().to_owned()),
        uid: None,
        log_level: None,
        emf_uri: Some(format!("{URI}{name}")),
        specific_context: None,
        payload: Some(fields.class()),
        attributes: None,
    }
}

/// Makes events of the counts of a question.
#[derive(Clone, Debug)]
pub(crate) struct CountEvents {
    name: String,
    words: String,
    columns: CountedColumns,
    /// Names of the fields of keys.
    keys: Vec<String>,
    /// Rows that had events in the last interval.
    busy: BTreeSet<Vec<WatchKey>>,
}

impl CountEvents {
    /// Those of a question with this name, in these words.
    pub(crate) fn new(name: &str, words: &str, columns: CountedColumns) -> Self {
        let keys = field_names(columns.keys.iter().map(|column| column.name.as_str()));
        Self { name: name.to_owned(), words: words.to_owned(), columns, keys, busy: BTreeSet::new() }
    }

    /// Hands over the events of an interval, which took so long.
    pub(crate) fn interval<E>(
        &mut self,
        counts: &WatchTotals,
        time_ns: u64,
        mut put: impl FnMut(CountEvent, &FieldList) -> Result<(), E>,
    ) -> Result<(), E> {
        for (keys, group) in &counts.groups {
            put(CountEvent::Row, &self.row(keys, group))?;
        }
        let silent = self.busy.iter().filter(|keys| !counts.groups.contains_key(*keys));
        for keys in silent {
            put(CountEvent::Row, &self.row(keys, &WatchGroup::default()))?;
        }
        self.busy = counts.groups.keys().cloned().collect();
        put(CountEvent::Interval, &self.all(counts, time_ns))
    }

    /// Hands over the events of the end: the counts of the whole time, and whether they are complete.
    pub(crate) fn end<E>(
        &self,
        counts: &WatchTotals,
        (time_ns, is_complete): (u64, bool),
        mut put: impl FnMut(CountEvent, &FieldList) -> Result<(), E>,
    ) -> Result<(), E> {
        for (keys, group) in &counts.groups {
            put(CountEvent::Total, &self.row(keys, group))?;
        }
        let histograms = counts.groups.iter().filter_map(|(keys, group)| Some((keys, group.histogram.as_ref()?)));
        for (keys, histogram) in histograms {
            for bar in histogram.buckets() {
                let mut fields = self.beginning(keys);
                let (low, high) = self.bounds(bar.from, bar.to);
                fields.add("low", low);
                fields.add("high", high);
                fields.add("events", KernelValue::U64(bar.count));
                put(CountEvent::Bucket, &fields)?;
            }
        }
        let mut fields = self.all(counts, time_ns);
        fields.add("rows", KernelValue::U64(counts.groups.len() as u64));
        fields.add("is_complete", KernelValue::U8(is_complete.into()));
        fields.add("question", KernelValue::Text(&self.words));
        put(CountEvent::End, &fields)
    }

    /// Numbers of all rows together, and losses.
    fn all(&self, counts: &WatchTotals, time_ns: u64) -> FieldList {
        let mut fields = FieldList::default();
        fields.add("watch", KernelValue::Text(&self.name));
        fields.add("time_ns", KernelValue::U64(time_ns));
        let sums = counts.groups.values().filter_map(|group| group.sum);
        let sum = sums.reduce(i128::saturating_add);
        self.numbers(&mut fields, &WatchGroup { count: counts.count(), sum, histogram: counts.histogram() });
        fields.add("lost_map_full", KernelValue::U64(counts.unplaced));
        fields.add("lost_interrupted", KernelValue::U64(counts.missed));
        if self.columns.is_pair {
            fields.add("unbegun", KernelValue::U64(counts.unbegun));
        }
        fields
    }

    fn row(&self, keys: &[WatchKey], group: &WatchGroup) -> FieldList {
        let mut fields = self.beginning(keys);
        self.numbers(&mut fields, group);
        fields
    }

    /// The name of the question, and the row with its keys.
    fn beginning(&self, keys: &[WatchKey]) -> FieldList {
        let mut fields = FieldList::default();
        let words: Vec<String> = keys.iter().map(word).collect();
        let row = if words.is_empty() { ONLY.to_owned() } else { words.join(", ") };
        fields.add("watch", KernelValue::Text(&self.name));
        fields.add("row", KernelValue::Text(&row));
        for (((name, column), key), word) in self.keys.iter().zip(&self.columns.keys).zip(keys).zip(&words) {
            let value = match key {
                WatchKey::Number(number) if !column.is_told_in_words() => integer(column, *number),
                _ => KernelValue::Text(word),
            };
            fields.add(name.clone(), value);
        }
        fields
    }

    fn numbers(&self, fields: &mut FieldList, group: &WatchGroup) {
        fields.add("events", KernelValue::U64(group.count));
        if let Some(column) = &self.columns.sum {
            fields.add("sum", integer(column, group.sum.unwrap_or(0)));
        }
        if let Some(column) = &self.columns.histogram {
            let none = WatchHistogram::default();
            let histogram = group.histogram.as_ref().unwrap_or(&none);
            // Of a value that is negative, no more is known: it is at most -1.
            let least = if histogram.count() == 0 || !column.is_signed { 0 } else { -1 };
            let bound = |value: Option<u64>| integer(column, value.map_or(least, i128::from));
            fields.add("total", integer(column, histogram.sum));
            PARTS.iter().for_each(|(name, part)| fields.add(*name, bound(histogram.percentile(*part))));
            fields.add("most", bound(histogram.most()));
        }
    }

    /// The lowest and the highest number of a bucket.
    fn bounds(&self, from: Option<u64>, to: Option<u64>) -> (KernelValue<'static>, KernelValue<'static>) {
        let Some(column) = &self.columns.histogram else { return (KernelValue::U64(0), KernelValue::U64(0)) };
        let low = from.map_or(i128::from(i64::MIN), i128::from);
        let high = to.map_or(i128::from(u64::MAX), |to| i128::from(to) - 1);
        (integer(column, low), integer(column, high))
    }
}

fn word(key: &WatchKey) -> String {
    match key {
        WatchKey::Text(text) => text.clone(),
        WatchKey::Number(number) => number.to_string(),
    }
}

/// A number of a column; one that does not fit into 64 bits is the nearest that does.
fn integer(column: &WatchColumn, number: i128) -> KernelValue<'static> {
    let unsigned = || u64::try_from(number.max(0)).unwrap_or(u64::MAX);
    let signed = || i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX });
    match column.meaning {
        WatchMeaning::Address => KernelValue::Hex(unsigned()),
        _ if column.is_signed => KernelValue::I64(signed()),
        _ => KernelValue::U64(unsigned()),
    }
}

/// Names of fields for keys: `skb.dev.name` is `skb_dev_name`. They differ, also from those of numbers.
fn field_names<'n>(keys: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut taken: HashSet<String> = OTHERS.iter().map(|name| (*name).to_owned()).collect();
    let mut free = |key: &str| {
        let words = key.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let mut name = words.join("_");
        // Readers take an underscore at the beginning away.
        name = name.trim_start_matches('_').to_owned();
        if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            name.insert_str(0, "key");
        }
        while !taken.insert(name.clone()) {
            name.push('_');
        }
        name
    };
    keys.map(&mut free).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kymo_probe::watch::{AnyInteger, WatchCounts, WatchRow, WatchValue, bucket_of};

    use super::*;

    fn column(name: &str, is_text: bool, is_signed: bool) -> WatchColumn {
        let (name, meaning) = (name.to_owned(), WatchMeaning::Plain);
        WatchColumn { name, meaning, labels: Vec::new(), is_text, is_signed, is_wide: false }
    }

    fn columns(is_signed: bool) -> CountedColumns {
        CountedColumns {
            keys: vec![column("$ctx.comm", true, false), column("sum", false, true)],
            sum: Some(column("ret", false, is_signed)),
            histogram: Some(column("ret", false, is_signed)),
            events: vec!["a:b".to_owned()],
            is_pair: true,
            histogram_sum: Some(0),
        }
    }

    fn totals(columns: &CountedColumns, rows: &[(&str, i64, u32, u64, i128)]) -> WatchTotals {
        let row = |(text, number, bucket, count, sum): &(&str, i64, u32, u64, i128)| WatchRow {
            keys: vec![WatchValue::Text((*text).to_owned()), WatchValue::Number(*number)],
            bucket: Some(*bucket),
            count: *count,
            sums: vec![AnyInteger(*sum)],
        };
        let rows = rows.iter().map(row).collect();
        WatchTotals::new(WatchCounts { rows, unplaced: 7, unbegun: 8, missed: 9, ..WatchCounts::default() }, columns)
    }

    /// Events by name, with the names and bytes of their fields.
    fn put(all: &mut Vec<(&'static str, Vec<String>, Vec<u8>)>, event: CountEvent, fields: &FieldList) {
        let kymo_format::model::FieldKind::Structure(structure) = fields.class().kind else { panic!("it is none") };
        let names = structure.members.into_iter().map(|member| member.name).collect();
        all.push((event.name(), names, fields.bytes().to_vec()));
    }

    #[test]
    fn names_of_fields_differ() {
        let names = ["skb.dev.name", "args[0]", "$ctx.tid", "tid", "events", "most", "0", "_x", "tid"];
        let wanted = ["skb_dev_name", "args_0", "ctx_tid", "tid", "events_", "most_", "key0", "x", "tid_"];
        assert_eq!(field_names(names.into_iter()), wanted);
    }

    #[test]
    fn a_row_that_becomes_silent_is_told_once() {
        let columns = columns(false);
        let mut events = CountEvents::new("calls", "a:b", columns.clone());
        let busy = totals(&columns, &[("x", 1, bucket_of(5), 2, 10)]);
        let all = totals(&columns, &[]);
        let mut counts = BTreeMap::<&str, usize>::new();
        for (counted, rows) in [(&busy, 1), (&all, 1), (&all, 0), (&busy, 1)] {
            let mut told = Vec::new();
            let done: Result<(), ()> = events.interval(counted, 1, |event, fields| {
                put(&mut told, event, fields);
                Ok(())
            });
            assert!(done.is_ok());
            assert_eq!(told.iter().filter(|(name, ..)| *name == "watch:row").count(), rows);
            told.iter().for_each(|(name, ..)| *counts.entry(name).or_default() += 1);
        }
        assert_eq!(counts, BTreeMap::from([("watch:row", 3), ("watch:interval", 4)]));
    }

    #[test]
    fn the_end_has_totals_and_buckets() {
        let columns = columns(true);
        let events = CountEvents::new("calls", "a:b --by comm", columns.clone());
        let negative = kymo_probe::watch::BUCKETS;
        let counts = totals(&columns, &[("x", -1, bucket_of(5), 2, 10), ("x", -1, negative, 1, -20)]);
        let mut told = Vec::new();
        let done: Result<(), ()> = events.end(&counts, (5, true), |event, fields| {
            put(&mut told, event, fields);
            Ok(())
        });
        assert!(done.is_ok());
        let names: Vec<&str> = told.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, ["watch:total", "watch:bucket", "watch:bucket", "watch:end"]);
        let row = ["watch", "row", "ctx_comm", "sum_", "events", "sum", "total", "p50", "p90", "p99", "p999", "most"];
        assert_eq!(told[0].1, row);
        assert_eq!(told[1].1, ["watch", "row", "ctx_comm", "sum_", "low", "high", "events"]);
        let beginning = b"calls\0x, -1\0x\0\xff\xff\xff\xff\xff\xff\xff\xff".to_vec();
        let with = |numbers: &[i64]| -> Vec<u8> {
            beginning.iter().copied().chain(numbers.iter().flat_map(|number| number.to_le_bytes())).collect()
        };
        assert_eq!(told[0].2, with(&[3, -10, -10, 5, 5, 5, 5, 5]));
        assert_eq!(told[1].2, with(&[i64::MIN, -1, 1]));
        assert_eq!(told[2].2, with(&[5, 5, 2]));
        let end = &told[3].1;
        assert_eq!(
            end[end.len() - 6..],
            ["lost_map_full", "lost_interrupted", "unbegun", "rows", "is_complete", "question"]
        );
    }

    #[test]
    fn numbers_beyond_64_bits_are_the_nearest() {
        let (signed, unsigned) = (column("a", false, true), column("a", false, false));
        assert_eq!(integer(&signed, i128::MAX), KernelValue::I64(i64::MAX));
        assert_eq!(integer(&signed, i128::MIN), KernelValue::I64(i64::MIN));
        assert_eq!(integer(&unsigned, i128::MAX), KernelValue::U64(u64::MAX));
        assert_eq!(integer(&unsigned, -1), KernelValue::U64(0));
        let address = WatchColumn { meaning: WatchMeaning::Address, ..unsigned };
        assert_eq!(integer(&address, 16), KernelValue::Hex(16));
    }
}
