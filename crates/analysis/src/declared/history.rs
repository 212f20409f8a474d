//! Own states as runs: in which state something was at any instant.
//!
//! ```text
//! key 5   ? ──────┤ busy ├──── idle ────┤ busy ├── (nothing) ──┤ busy ──
//! runs    └ from unknown ┘  └ key, begin, end, state ...        └ to no end
//! ```
//!
//! Runs have numbers for keys and states ([`crate::runs`]): digests, which are the same in every
//! part of the trace, so that no run needs to be looked at again when parts are put together. Their
//! texts are kept beside them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};

use super::analysis::{DeclaredLane, DeclaredNote, ItemChange};
use super::{AnalysisDeclaration, DeclaredAnalysis, ItemKind};
use crate::chains::{ChainFate, Chains, OPEN_MAX, Timed};
use crate::key::{Key, KeyValue};
use crate::runs::{RunWriter, StateRun};
use crate::states::times;
use crate::windows::Windows;
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, Cell, CellClass, Column, LaneNotes, PartShape, Room, Setup,
    SpoolError, Table, Wishes,
};

/// The states of an own analysis; other items of its file are left out.
#[derive(Debug)]
pub struct History {
    declared: DeclaredAnalysis,
    /// Names of items.
    items: Vec<String>,
    holes: Windows,
    room: Option<Room>,
}

/// The state behind a part of the trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HistoryState {
    chains: Chains<u64, OpenState, i64>,
    runs: RunWriter,
    texts: HistoryTexts,
}

/// The texts of runs' numbers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HistoryTexts {
    items: Vec<HistoryItem>,
    /// By digest: of which item, and the key.
    keys: HashMap<u64, (usize, Key)>,
    /// States by digest.
    values: HashMap<u64, KeyValue>,
    holes: Windows,
}

/// State of an item.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct HistoryItem {
    name: String,
    /// Events that lack a field.
    lacking: u64,
    /// Keys that were too many.
    given_up: u64,
}

/// A state since a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OpenState {
    time: i64,
    value: u64,
}

/// The state is still unknown; also for keys beyond the limit.
const UNKNOWN: u64 = 0;
/// It is in no state.
const NOTHING: u64 = 1;
/// Keys that are told apart: all of them are kept, beside the runs.
const KEYS_MAX: usize = OPEN_MAX;
/// States that are told apart.
const VALUES_MAX: usize = 1 << 16;

impl Timed for OpenState {
    fn time(&self) -> i64 {
        self.time
    }
}

/// A number that stands for something, the same in all parts; above those with a meaning of their own.
fn digest(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish().max(NOTHING + 1)
}

impl AnalysisDeclaration {
    /// Its states alone.
    #[must_use]
    pub fn states(&self) -> Self {
        let is_state = |place: usize| self.items[place].kind == ItemKind::States;
        let place = |old: usize| (0..old).filter(|place| is_state(*place)).count();
        let rules = self.rules.iter().filter(|rule| is_state(rule.item)).cloned();
        Self {
            name: self.name.clone(),
            items: self.items.iter().filter(|item| item.kind == ItemKind::States).cloned().collect(),
            rules: rules.map(|rule| super::EventRule { item: place(rule.item), ..rule }).collect(),
        }
    }
}

impl History {
    /// The analysis of these lanes; its classes are bound by [`AnalysisDeclaration::mapping`]. `states`: of
    /// [`AnalysisDeclaration::states`].
    #[must_use]
    pub fn new(setup: &Setup<'_>, states: &AnalysisDeclaration) -> Self {
        Self {
            declared: DeclaredAnalysis::new(setup, states),
            items: states.items.iter().map(|item| item.name.clone()).collect(),
            holes: setup.holes(),
            room: setup.room.cloned(),
        }
    }

    /// The results of a state: all runs, and the texts of their numbers.
    #[must_use]
    pub fn into_runs(&self, state: HistoryState) -> (RunWriter, HistoryTexts) {
        let HistoryState { chains, mut runs, texts } = state;
        for (&key, &end) in chains.alone() {
            runs.push(StateRun { key, begin: i64::MIN, end, value: UNKNOWN });
        }
        for (&key, since) in chains.open().filter(|(_, since)| since.value != NOTHING) {
            runs.push(StateRun { key, begin: since.time, end: i64::MAX, value: since.value });
        }
        (runs, texts)
    }
}

/// Writes the runs that have ended.
fn tell(runs: &mut RunWriter, texts: &mut HistoryTexts, key: u64, fate: &ChainFate<OpenState, i64>) {
    match *fate {
        ChainFate::Pair(OpenState { value: NOTHING, .. }, _) | ChainFate::Replaced(_) => {}
        ChainFate::Pair(since, end) => runs.push(StateRun { key, begin: since.time, end, value: since.value }),
        ChainFate::Alone(end) => runs.push(StateRun { key, begin: i64::MIN, end, value: UNKNOWN }),
        ChainFate::GivenUp(_) => {
            if let Some((item, _)) = texts.keys.get(&key) {
                texts.items[*item].given_up += 1;
            }
        }
    }
}

impl HistoryState {
    fn set(&mut self, item: usize, time: i64, key: Key, value: Option<KeyValue>) {
        let Some(key) = self.texts.key(item, key) else { return };
        let value = value.map_or(NOTHING, |value| self.texts.value(value));
        let Self { chains, runs, texts } = self;
        let mut tell = |key: &u64, fate| tell(runs, texts, *key, &fate);
        chains.end(&key, time, &mut tell);
        chains.begin(key, OpenState { time, value }, tell);
    }
}

impl HistoryTexts {
    /// The number of a key; `None`: there are too many.
    fn key(&mut self, item: usize, key: Key) -> Option<u64> {
        let number = digest((item, &key));
        if !self.keys.contains_key(&number) {
            if self.keys.len() >= KEYS_MAX {
                self.items[item].given_up += 1;
                return None;
            }
            self.keys.insert(number, (item, key));
        }
        Some(number)
    }

    fn value(&mut self, value: KeyValue) -> u64 {
        let number = digest(&value);
        if !self.values.contains_key(&number) {
            if self.values.len() >= VALUES_MAX {
                return UNKNOWN;
            }
            self.values.insert(number, value);
        }
        number
    }

    fn merge(&mut self, later: Self) {
        for (item, later) in self.items.iter_mut().zip(later.items) {
            item.lacking += later.lacking;
            item.given_up += later.given_up;
        }
        for (_, (item, key)) in later.keys {
            self.key(item, key);
        }
        later.values.into_values().for_each(|value| {
            self.value(value);
        });
    }

    fn state(&self, value: u64) -> Cell {
        self.values.get(&value).map_or(Cell::Unknown, KeyValue::cell)
    }

    /// In which state everything is at an instant; `runs`: all those of the instant.
    #[must_use]
    pub fn at(&self, at: i64, wishes: &Wishes, runs: &[StateRun]) -> Answer {
        let mut now: HashMap<u64, StateRun> = HashMap::new();
        for run in runs {
            // A later run tells more than one without a visible begin.
            let known = now.entry(run.key).or_insert(*run);
            if (known.begin, known.end) < (run.begin, run.end) {
                *known = *run;
            }
        }
        let mut rows: Vec<(usize, i64, &Key, StateRun)> = Vec::new();
        for run in now.into_values() {
            rows.extend(self.keys.get(&run.key).map(|(item, key)| (*item, run.begin, key, run)));
        }
        rows.sort_unstable_by_key(|(item, begin, key, _)| (*item, *begin, *key));
        let mut tables: Vec<Table> = self.items.iter().map(|item| table(&item.name)).collect();
        for (item, _, key, run) in rows {
            let Table { rows, omitted, .. } = &mut tables[item];
            if wishes.top.is_some_and(|top| rows.len() >= top) {
                *omitted += 1;
                continue;
            }
            let is_doubtful = self.holes.touch(run.begin, run.end);
            rows.push([key.cell(), self.state(run.value)].into_iter().chain(times(at, &run, is_doubtful)).collect());
        }
        tables.extend(
            self.items.iter().filter_map(|item| DeclaredAnalysis::left_out(&item.name, item.lacking, item.given_up)),
        );
        tables.iter_mut().for_each(|table| table.span_ns = Some((at, at)));
        Answer { tables }
    }
}

fn table(name: &str) -> Table {
    let columns = vec![
        Column::new("key", "Key", CellClass::Mixed),
        Column::new("state", "State", CellClass::Mixed),
        Column::new("since", "Since", CellClass::Timestamp),
        Column::new("for", "For", CellClass::Duration),
        Column::new("until", "Until", CellClass::Timestamp).detail(),
        Column::new("uncertain", "Uncertain", CellClass::Flag).rest(),
    ];
    Table::new("own-states", format!("{name}: in which state"), columns)
}

impl Analysis for History {
    type State = HistoryState;
    type Lane<'a> = DeclaredLane<'a>;
    type Note = DeclaredNote;

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "own-states", version: 1 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> HistoryState {
        let item = |name: &String| HistoryItem { name: name.clone(), ..HistoryItem::default() };
        let items = self.items.iter().map(item).collect();
        HistoryState {
            chains: Chains::new(false, OPEN_MAX),
            runs: RunWriter::new(self.room.as_ref()),
            texts: HistoryTexts { items, holes: self.holes.clone(), ..HistoryTexts::default() },
        }
    }

    fn enter(&self, lane: usize) -> DeclaredLane<'_> {
        self.declared.enter(lane)
    }

    fn step(&self, lane: &mut DeclaredLane<'_>, event: &AnalysisEvent<'_>, notes: &mut LaneNotes<DeclaredNote>) {
        self.declared.step(lane, event, notes);
    }

    fn note(&self, state: &mut HistoryState, _: usize, time: i64, note: DeclaredNote) {
        if let ItemChange::Set(key, value) = note.change {
            state.set(note.item, time, key, value);
        }
    }

    fn leave(&self, state: &mut HistoryState, _: usize, end: DeclaredLane<'_>) {
        for (item, count) in state.texts.items.iter_mut().zip(end.lacking) {
            item.lacking += count;
        }
    }

    fn merge(&self, left: &mut HistoryState, right: HistoryState) {
        let HistoryState { chains, runs, texts } = left;
        runs.append(right.runs);
        texts.merge(right.texts);
        chains.merge(right.chains, |key, fate| tell(runs, texts, *key, &fate));
    }

    fn anchor(&self, state: &mut HistoryState) {
        let HistoryState { chains, runs, texts } = state;
        chains.anchor(|key, fate| tell(runs, texts, *key, &fate));
    }

    fn finish(&self, state: &HistoryState) -> Result<Answer, SpoolError> {
        let (runs, texts) = self.into_runs(state.clone());
        let mut all = Vec::new();
        runs.each(|run| {
            all.extend(texts.keys.get(&run.key).map(|(item, key)| (*item, key, run.begin, run.end, run.value)));
        })?;
        all.sort_unstable();
        let columns = vec![
            Column::new("what", "What", CellClass::Text),
            Column::new("key", "Key", CellClass::Mixed),
            Column::new("begin", "Begin", CellClass::Timestamp),
            Column::new("end", "End", CellClass::Timestamp).detail(),
            Column::new("state", "State", CellClass::Mixed),
        ];
        let mut history = Table::new("history", "Which states things were in", columns);
        let time = |at: i64| if at == i64::MIN { Cell::Unknown } else { Cell::Timestamp(at) };
        for (item, key, begin, end, value) in all {
            let end = if end == i64::MAX { Cell::Empty } else { Cell::Timestamp(end) };
            let name = Cell::Text(self.items[item].clone());
            history.rows.push(vec![name, key.cell(), time(begin), end, texts.state(value)]);
        }
        let mut tables = vec![history];
        let item = |item: &HistoryItem| DeclaredAnalysis::left_out(&item.name, item.lacking, item.given_up);
        tables.extend(texts.items.iter().filter_map(item));
        Ok(Answer { tables })
    }
}
