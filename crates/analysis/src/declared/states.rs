//! States: the state of each key, since when, and how long each state took.
//!
//! ```text
//! key 5   ? ──────┤ busy ├──── idle ────┤ busy ├── (nothing) ──┤ busy ── still at the end
//!         unknown until the first event that sets one
//! ```
//!
//! Each setting ends the state before and begins one, also if it is the same again. "Nothing" is a state too, which is not
//! shown; so a key that was seen once is always in some state.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::answer::{Bounded, Cell, CellClass, Column, Plot, Table};
use crate::chains::{ChainFate, Chains, OPEN_MAX, Timed};
use crate::key::{Key, KeyValue};
use crate::statistics::{saturated, shorten};
use crate::windows::Windows;
use crate::{Histogram, Merge, Wishes};

/// State of one item.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ItemStates {
    chains: Chains<Key, StateStart, i64>,
    sums: StateSums,
    /// Events that lack a field.
    pub(super) lacking: u64,
}

/// Settings for looking at states.
pub(super) struct StateContext<'a> {
    pub(super) holes: &'a Windows,
    pub(super) span_ns: Option<(i64, i64)>,
    pub(super) wishes: &'a Wishes,
}

/// A state since a time.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct StateStart {
    time: i64,
    value: StateValue,
}

/// How something is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum StateValue {
    /// No event has set it yet.
    Unknown,
    Is(KeyValue),
    /// It is in no state.
    Nothing,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct StateSums {
    rows: HashMap<(Key, StateValue), StateRow>,
    /// Rows beyond [`ROWS_MAX`] together.
    others: StateRow,
    given_up: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct StateRow {
    durations: Histogram,
    /// Of these, those that a hole overlaps: how many, how long.
    doubtful: u64,
    doubt_ns: u128,
    /// Those that the trace's end cuts.
    never_ended: u64,
}

/// Rows that are told apart.
const ROWS_MAX: usize = 1 << 16;

impl Timed for StateStart {
    fn time(&self) -> i64 {
        self.time
    }
}

impl Default for ItemStates {
    fn default() -> Self {
        Self { chains: Chains::new(false, OPEN_MAX), sums: StateSums::default(), lacking: 0 }
    }
}

impl ItemStates {
    /// A key is in a state from now on; in none without one.
    pub(super) fn set(&mut self, frame: &StateContext<'_>, time: i64, key: &Key, value: Option<&KeyValue>) {
        let Self { chains, sums, .. } = self;
        let mut tell = |key: &Key, fate| sums.decide(frame, key, fate);
        chains.end(key, time, &mut tell);
        let value = value.map_or(StateValue::Nothing, |label| StateValue::Is(label.clone()));
        chains.begin(key.clone(), StateStart { time, value }, tell);
    }

    pub(super) fn merge(&mut self, frame: &StateContext<'_>, later: Self) {
        let Self { chains, sums, lacking } = self;
        *lacking += later.lacking;
        sums.given_up += later.sums.given_up;
        for (key, row) in later.sums.rows {
            sums.row(key).merge(row);
        }
        sums.others.merge(later.sums.others);
        chains.merge(later.chains, |key, fate| sums.decide(frame, key, fate));
    }

    pub(super) fn anchor(&mut self, frame: &StateContext<'_>) {
        let Self { chains, sums, .. } = self;
        chains.anchor(|key, fate| sums.decide(frame, key, fate));
    }

    /// Keys that were forgotten because there were too many.
    pub(super) fn given_up(&self) -> u64 {
        self.sums.given_up
    }

    /// A row for each key and state.
    pub(super) fn table(&self, frame: &StateContext<'_>, name: &str) -> Table {
        let sums = self.whole(frame);
        let mut table = Table::new("states", format!("{name}: time in each state"), columns());
        table.plot = Some(Plot::Bars { value: 2 });
        let mut doubts: HashMap<&Key, u128> = HashMap::new();
        for ((key, _), row) in &sums.rows {
            *doubts.entry(key).or_default() += row.doubt_ns;
        }
        let mut rows: Vec<(&(Key, StateValue), &StateRow)> =
            sums.rows.iter().filter(|row| row.0.1 != StateValue::Nothing).collect();
        rows.sort_by(|one, other| other.1.durations.sum().cmp(&one.1.durations.sum()).then_with(|| one.0.cmp(other.0)));
        for ((key, how), row) in rows {
            let doubt = doubts.get(key).copied().unwrap_or(0) - row.doubt_ns;
            table.rows.push(row.cells(frame, key.cell(), how, doubt));
        }
        if !sums.others.durations.is_empty() {
            table.rows.push(sums.others.cells(frame, Cell::Unknown, &StateValue::Unknown, 0));
        }
        shorten(&mut table, frame.wishes.top);
        table
    }

    /// With the runs that the edges of the trace cut.
    fn whole(&self, frame: &StateContext<'_>) -> StateSums {
        let mut sums = self.sums.clone();
        for (key, &time) in self.chains.alone() {
            sums.decide(frame, key, ChainFate::Alone(time));
        }
        for (key, since) in self.chains.open() {
            if let Some((_, end)) = frame.span_ns {
                sums.last(frame, key, since, since.time.max(end));
            }
            let key = sums.key(frame, key);
            sums.row((key, since.value.clone())).never_ended += 1;
        }
        sums
    }
}

impl StateSums {
    fn decide(&mut self, frame: &StateContext<'_>, key: &Key, fate: ChainFate<StateStart, i64>) {
        match fate {
            ChainFate::Pair(since, end) => self.last(frame, key, &since, end),
            ChainFate::Alone(end) => {
                if let Some((begin, _)) = frame.span_ns {
                    self.last(frame, key, &StateStart { time: begin.min(end), value: StateValue::Unknown }, end);
                }
            }
            ChainFate::Replaced(_) => {}
            ChainFate::GivenUp(_) => self.given_up += 1,
        }
    }

    /// A state lasted until a time.
    fn last(&mut self, frame: &StateContext<'_>, key: &Key, since: &StateStart, end: i64) {
        let duration = since.time.abs_diff(end);
        let is_doubtful = frame.holes.touch(since.time, end);
        let key = self.key(frame, key);
        let row = self.row((key, since.value.clone()));
        row.durations.record(duration);
        row.doubtful += u64::from(is_doubtful);
        row.doubt_ns += if is_doubtful { u128::from(duration) } else { 0 };
    }

    fn key(&self, frame: &StateContext<'_>, key: &Key) -> Key {
        let is_by_value = frame.wishes.by.iter().any(|by| by == "value");
        if is_by_value { Key::Empty } else { key.clone() }
    }

    fn row(&mut self, key: (Key, StateValue)) -> &mut StateRow {
        let is_full = self.rows.len() >= ROWS_MAX && !self.rows.contains_key(&key);
        if is_full { &mut self.others } else { self.rows.entry(key).or_default() }
    }
}

impl Merge for StateRow {
    fn merge(&mut self, later: Self) {
        self.durations.merge(later.durations);
        self.doubtful += later.doubtful;
        self.doubt_ns += later.doubt_ns;
        self.never_ended += later.never_ended;
    }
}

impl StateRow {
    /// `others_doubt_ns`: how long the key was doubtfully in other states.
    fn cells(&self, frame: &StateContext<'_>, key: Cell, how: &StateValue, others_doubt_ns: u128) -> Vec<Cell> {
        let sum = self.durations.sum();
        let total = Bounded {
            value: saturated(sum),
            low: saturated(sum - self.doubt_ns),
            high: saturated(sum + others_doubt_ns),
        };
        let whole = frame.span_ns.map(|(begin, end)| begin.abs_diff(end)).filter(|&whole| whole > 0);
        let share = |whole: u64| {
            let of = |part: u64| part as f64 / whole as f64;
            Cell::Ratio(Bounded { value: of(total.value), low: of(total.low), high: of(total.high) })
        };
        let value = match how {
            StateValue::Unknown => Cell::Unknown,
            StateValue::Is(label) => label.cell(),
            StateValue::Nothing => Cell::Empty,
        };
        let duration = |value: Option<u64>| value.map_or(Cell::Empty, |value| Cell::Duration(Bounded::exact(value)));
        let count = |count: u64| Cell::Count(Bounded::exact(count));
        vec![
            key,
            value,
            Cell::Duration(total),
            whole.map_or(Cell::Empty, share),
            count(self.durations.count()),
            duration(self.durations.min()),
            duration(self.durations.max()),
            count(self.never_ended),
            count(self.doubtful),
        ]
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("key", "Key", CellClass::Mixed),
        Column::new("value", "State", CellClass::Mixed),
        Column::new("total", "Total", CellClass::Duration),
        Column::new("share", "Share", CellClass::Ratio),
        Column::of("count", "Count", "times"),
        Column::new("min", "Min", CellClass::Duration).detail(),
        Column::new("max", "Max", CellClass::Duration),
        Column::of("never_ended", "Never ended", "times").rest(),
        Column::of("lost_inside", "Lost inside", "times").rest(),
    ]
}
