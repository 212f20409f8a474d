//! Counters: numbers that events add to or set.
//!
//! ```text
//! part k      +1 +1 -1                    adds 1; on the way between 1 and 2 more than before
//! part k+1    +2  to 7  -3                adds 2, then is 7, then 4: from here on it is known whatever came before
//! ```
//!
//! A part knows the sum that was added before the counter was first set, and how far that went up
//! and down; and where it stood after. That is enough to join parts. A counter that is never set
//! begins at 0 with the trace.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::answer::{Bounded, Cell, CellClass, Column, Plot, Table};
use crate::key::Key;
use crate::rates::{Course, CoursePeriods};
use crate::statistics::shorten;
use crate::{Merge, Wishes};

/// State of one item.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Counters {
    keys: HashMap<Key, CounterSums>,
    /// Changes of keys beyond [`KEYS_MAX`].
    others: u64,
    /// The same by period and key; `None` if that would be too much.
    course: CourseOf,
    /// Events that lack a field.
    pub(super) lacking: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct CourseOf {
    is_too_much: bool,
    periods: BTreeMap<(i64, Key), CounterSums>,
}

/// A counter in some time. Sums are wide, so that their order does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CounterSums {
    changes: u64,
    /// Changes before it was set, relative to the begin.
    before: Option<CounterCourse>,
    /// Where it stood since it was set.
    since: Option<CounterCourse>,
}

/// How a number went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CounterCourse {
    last: i128,
    min: i128,
    max: i128,
}

/// Keys that are told apart.
const KEYS_MAX: usize = 1 << 16;
/// Periods of all keys that are kept.
const COURSE_MAX: usize = 1 << 16;
/// Number of keys with a course by default.
const COURSES: usize = 10;

impl CounterCourse {
    fn at(value: i128) -> Self {
        Self { last: value, min: value, max: value }
    }

    /// Goes on as another walk does from here.
    fn walk(self, other: Self) -> Self {
        let (min, max) = (self.min.min(self.last + other.min), self.max.max(self.last + other.max));
        Self { last: self.last + other.last, min, max }
    }

    /// Goes on elsewhere.
    fn jump(self, other: Self) -> Self {
        Self { last: other.last, min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl CounterSums {
    fn add(value: i64) -> Self {
        Self { changes: 1, before: Some(CounterCourse::at(value.into())), since: None }
    }

    fn to(value: i64) -> Self {
        Self { changes: 1, before: None, since: Some(CounterCourse::at(value.into())) }
    }

    /// Where it stood, if it began at this number: after each change.
    fn from(&self, begin: i128) -> Option<CounterCourse> {
        let shifted = |walk: CounterCourse| CounterCourse {
            last: begin + walk.last,
            min: begin + walk.min,
            max: begin + walk.max,
        };
        match (self.before.map(shifted), self.since) {
            (Some(before), Some(since)) => Some(before.jump(since)),
            (before, since) => since.or(before),
        }
    }
}

impl Merge for CounterSums {
    fn merge(&mut self, later: Self) {
        self.changes += later.changes;
        match (self.since, later.before) {
            (Some(since), Some(walk)) => self.since = Some(since.walk(walk)),
            (None, Some(walk)) => self.before = Some(self.before.map_or(walk, |before| before.walk(walk))),
            (_, None) => {}
        }
        self.since = match (self.since, later.since) {
            (Some(since), Some(later)) => Some(since.jump(later)),
            (since, later) => later.or(since),
        };
    }
}

impl Counters {
    /// So much more.
    pub(super) fn add(&mut self, period: Option<i64>, key: &Key, value: i64) {
        self.change(period, key, CounterSums::add(value));
    }

    /// So much.
    pub(super) fn to(&mut self, period: Option<i64>, key: &Key, value: i64) {
        self.change(period, key, CounterSums::to(value));
    }

    fn change(&mut self, period: Option<i64>, key: &Key, change: CounterSums) {
        self.join(key.clone(), change);
        if let Some(period) = period {
            self.course.join(period, key, change);
        }
    }

    fn join(&mut self, key: Key, change: CounterSums) {
        if self.keys.len() >= KEYS_MAX && !self.keys.contains_key(&key) {
            self.others += change.changes;
        } else {
            self.keys.entry(key).or_default().merge(change);
        }
    }

    pub(super) fn merge(&mut self, later: Self) {
        self.lacking += later.lacking;
        self.others += later.others;
        for (key, counter) in later.keys {
            self.join(key, counter);
        }
        if later.course.is_too_much {
            self.course = CourseOf { is_too_much: true, periods: BTreeMap::new() };
        }
        for ((period, key), counter) in later.course.periods {
            self.course.join(period, &key, counter);
        }
    }

    /// The counters, and how they went.
    pub(super) fn tables(&self, name: &str, is_doubtful: bool, periods: &CoursePeriods, wishes: &Wishes) -> [Table; 2] {
        let columns = vec![
            Column::new("key", "Key", CellClass::Mixed),
            Column::of("changes", "Changes", "changes").detail(),
            Column::of("min", "Min", "units"),
            Column::of("max", "Max", "units"),
            Column::of("last", "Last", "units"),
            Column::new("in_doubt", "In doubt", CellClass::Flag).rest(),
        ];
        let mut table = Table::new("counters", format!("{name}: counters"), columns);
        table.plot = Some(Plot::Bars { value: 3 });
        let mut rows: Vec<(&Key, u64, CounterCourse)> = Vec::new();
        rows.extend(self.keys.iter().filter_map(|(key, counter)| Some((key, counter.changes, counter.from(0)?))));
        rows.sort_by(|one, other| other.2.max.cmp(&one.2.max).then_with(|| one.0.cmp(other.0)));
        for (key, changes, walk) in &rows {
            let mut row = vec![key.cell(), Cell::Count(Bounded::exact(*changes))];
            row.extend([walk.min, walk.max, walk.last].map(integer));
            row.push(Cell::Flag(is_doubtful));
            table.rows.push(row);
        }
        shorten(&mut table, wishes.top);
        table.omitted += self.others;
        let shown: Vec<&Key> = rows.iter().map(|row| row.0).take(wishes.top.unwrap_or(COURSES)).collect();
        [table, self.course.table(name, &shown, periods)]
    }
}

impl CourseOf {
    fn join(&mut self, period: i64, key: &Key, change: CounterSums) {
        if self.is_too_much {
            return;
        }
        self.periods.entry((period, key.clone())).or_default().merge(change);
        if self.periods.len() > COURSE_MAX {
            *self = Self { is_too_much: true, periods: BTreeMap::new() };
        }
    }

    /// Where each counter stood at the end of each period, and on the way.
    fn table(&self, name: &str, shown: &[&Key], periods: &CoursePeriods) -> Table {
        let columns = vec![
            Column::new("period", "Period", CellClass::TimeRange),
            Column::new("key", "Key", CellClass::Mixed),
            Column::of("value", "Value", "units"),
            Column::of("min", "Min", "units"),
            Column::of("max", "Max", "units"),
        ];
        let mut table = Table::new("counter-course", format!("{name}: over time"), columns);
        table.plot = Some(Plot::Course { time: 0, series: Some(1), value: 2 });
        let course: Course = periods.course();
        let mut standing: HashMap<&Key, i128> = HashMap::new();
        for ((period, key), change) in self.periods.iter().filter(|((_, key), _)| shown.contains(&key)) {
            let begin = standing.get(key).copied().unwrap_or(0);
            let Some(walk) = change.from(begin) else { continue };
            standing.insert(key, walk.last);
            let (from, to) = periods.at(&course, *period);
            let mut row = vec![Cell::TimeRange(Some(from), Some(to)), key.cell()];
            row.extend([walk.last, walk.min, walk.max].map(integer));
            table.rows.push(row);
        }
        table
    }
}

fn integer(value: i128) -> Cell {
    Cell::Integer(value.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However changes are grouped, they join to the same.
    #[test]
    fn joining_is_associative() {
        let changes = [
            CounterSums::add(3),
            CounterSums::add(-5),
            CounterSums::to(7),
            CounterSums::add(-9),
            CounterSums::to(-1),
            CounterSums::add(2),
        ];
        let join = |changes: &[CounterSums]| {
            let mut all = CounterSums::default();
            changes.iter().for_each(|change| all.merge(*change));
            all
        };
        let whole = join(&changes);
        assert_eq!(whole.from(10), Some(CounterCourse { last: 1, min: -2, max: 13 }));
        for cut in 0..=changes.len() {
            let mut left = join(&changes[..cut]);
            left.merge(join(&changes[cut..]));
            assert_eq!(left, whole, "cut at {cut}");
        }
    }
}
