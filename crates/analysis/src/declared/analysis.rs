//! The results of an own analysis: its rules applied to events, in parts that merge.

use serde::{Deserialize, Serialize};

use super::counters::Counters;
use super::operations::{
    OperationAct, OperationContext, OperationIdentity, OperationNames, OperationPost, OperationStep, Operations,
};
use super::states::{ItemStates, StateContext};
use super::{AnalysisDeclaration, ItemKind, KEY_FIELDS_MAX, RuleAction};
use crate::hosts::HostNames;
use crate::key::{Key, KeyValue};
use crate::pairs::{self, OpenPair, PairsAnalysis, PairsOptions, UnmatchedEnd};
use crate::rates::CoursePeriods;
use crate::roles::{EventRole, rule};
use crate::windows::Windows;
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, Cell, Column, LaneFacts, LaneNotes, PartShape, RoleEvent, Setup,
    SpoolError, Table, Wishes,
};

/// The analysis.
#[derive(Debug)]
pub struct DeclaredAnalysis {
    name: String,
    items: Vec<(String, DeclaredKind)>,
    rules: Vec<RuleFacts>,
    /// Names of classes of events, each once, in order: steps have places of them.
    events: Vec<String>,
    lanes: Vec<LaneFacts>,
    /// Where events of any lane may be missing.
    holes: Windows,
    periods: CoursePeriods,
    wishes: Wishes,
}

#[derive(Debug)]
enum DeclaredKind {
    Pairs(Box<PairsAnalysis>),
    Operations { key_fields: usize, early_ns: u64 },
    States,
    Counter,
}

/// Fields of a rule that an event which matches it must have.
#[derive(Clone, Copy, Debug)]
struct RuleFacts {
    item: usize,
    act: RuleAction,
    key_fields: usize,
    has_value: bool,
}

/// The state behind a part of the trace: for each item.
#[derive(Debug, Serialize, Deserialize)]
pub struct DeclaredState {
    items: Vec<ItemState>,
}

#[derive(Debug, Serialize, Deserialize)]
enum ItemState {
    Pairs(pairs::PairState),
    Operations(Box<Operations>),
    States(ItemStates),
    Counter(Counters),
}

/// A lane while it is read.
#[derive(Debug)]
pub struct DeclaredLane<'a> {
    facts: &'a LaneFacts,
    /// For each item the events that lack a field.
    pub(super) lacking: Vec<u64>,
}

/// The note of a lane: about an item.
#[derive(Debug)]
pub struct DeclaredNote {
    pub(super) item: usize,
    pub(super) change: ItemChange,
}

#[derive(Debug)]
pub(super) enum ItemChange {
    Pair(pairs::PairNote),
    Operation(Box<OperationPost>),
    Set(Key, Option<KeyValue>),
    Add(Key, i64),
    To(Key, i64),
}

impl DeclaredAnalysis {
    /// The analysis of these lanes; its classes are bound by [`AnalysisDeclaration::mapping`].
    #[must_use]
    pub fn new(setup: &Setup<'_>, declaration: &AnalysisDeclaration) -> Self {
        let lanes = setup.lanes.to_vec();
        let holes = setup.holes();
        let kind = |kind: ItemKind| match kind {
            ItemKind::Pairs { is_nested } => DeclaredKind::Pairs(Box::new(PairsAnalysis::new(
                setup,
                &PairsOptions { is_nested, ..PairsOptions::default() },
            ))),
            ItemKind::Operations { key_fields, early_ns } => DeclaredKind::Operations { key_fields, early_ns },
            ItemKind::States => DeclaredKind::States,
            ItemKind::Counter => DeclaredKind::Counter,
        };
        let facts = |rule: &super::EventRule| RuleFacts {
            item: rule.item,
            act: rule.act,
            key_fields: rule.key.len().min(KEY_FIELDS_MAX),
            has_value: rule.value.is_some(),
        };
        let mut events: Vec<String> = setup.classes.iter().map(|class| (*class.name).to_owned()).collect();
        events.sort_unstable();
        events.dedup();
        Self {
            name: declaration.name.clone(),
            events,
            items: declaration.items.iter().map(|item| (item.name.clone(), kind(item.kind))).collect(),
            rules: declaration.rules.iter().map(facts).collect(),
            periods: CoursePeriods::new(setup),
            wishes: setup.wishes.clone(),
            lanes,
            holes,
        }
    }

    /// Its name in its file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn frame(&self) -> StateContext<'_> {
        StateContext { holes: &self.holes, span_ns: crate::setup::span_ns(&self.lanes), wishes: &self.wishes }
    }

    /// Effect of an event by a rule; `None` if it lacks a field.
    fn change(&self, rule: RuleFacts, meaning: RoleEvent<'_>, is_wanted: bool) -> Option<ItemChange> {
        let labels = (0..rule.key_fields).map(|place| meaning.value(rule::KEY_1 + place).map(KeyValue::from));
        let key = Key::from(labels.collect::<Option<Vec<KeyValue>>>()?);
        let label = || meaning.value(rule::VALUE).map(KeyValue::from);
        let number = || meaning.integer(rule::VALUE);
        let time = meaning.event.time;
        Some(match rule.act {
            RuleAction::Begin => {
                let group = if rule.has_value { label().map_or(Key::Empty, Key::one) } else { Key::Empty };
                let is_by_key = self.wishes.by.iter().any(|by| by == "key");
                let group = if is_by_key { key.clone() } else { group };
                ItemChange::Pair(pairs::PairNote::Begin(key, OpenPair::anywhere(time, group, is_wanted)))
            }
            RuleAction::End => ItemChange::Pair(pairs::PairNote::End(key, UnmatchedEnd::anywhere(time, is_wanted))),
            RuleAction::Step => return None,
            RuleAction::Set => ItemChange::Set(key, Some(label()?)),
            RuleAction::Clear => ItemChange::Set(key, None),
            RuleAction::Add => ItemChange::Add(key, number()?),
            RuleAction::To => ItemChange::To(key, number()?),
        })
    }

    /// The effect of an event on operations; `None` if it lacks a field. `is_again`: another rule has told it already.
    fn operation(
        &self,
        (rule, key_fields): (RuleFacts, usize),
        meaning: RoleEvent<'_>,
        (lane, is_wanted): (&LaneFacts, bool),
        is_again: bool,
    ) -> Option<OperationPost> {
        let event = meaning.event;
        let part = |places: std::ops::Range<usize>| -> Option<Key> {
            let labels = places.map(|place| meaning.value(rule::KEY_1 + place).map(KeyValue::from));
            Some(Key::from(labels.collect::<Option<Vec<KeyValue>>>()?))
        };
        let identity = || {
            let group = meaning.value(rule::VALUE).map(KeyValue::from).map_or(Key::Empty, Key::one);
            Some(OperationIdentity { group, within: part(key_fields..rule.key_fields)? })
        };
        let act = match rule.act {
            RuleAction::Begin => OperationAct::Begin(identity()?),
            RuleAction::End => OperationAct::End(identity()?),
            _ => OperationAct::Step,
        };
        let name = self.events.binary_search_by(|known| known.as_str().cmp(&event.class.name)).ok()?;
        let cpu = event.cpu().or(lane.cpu);
        let step = OperationStep { time: event.time, name: u32::try_from(name).ok()?, cpu, host: lane.host };
        Some(OperationPost { key: part(0..key_fields)?, act, step, is_step: !is_again, is_wanted })
    }

    /// Whether one of the first rules of an event is about an item.
    fn is_told(&self, item: usize, event: &AnalysisEvent<'_>, rules: usize) -> bool {
        event.roles().take(rules).filter_map(|other| self.rule(other)).any(|other| other.item == item)
    }

    fn rule(&self, meaning: RoleEvent<'_>) -> Option<RuleFacts> {
        let number = meaning.integer(rule::NUMBER).and_then(|number| usize::try_from(number).ok())?;
        self.rules.get(number).copied()
    }

    fn operations(&self, early_ns: u64) -> OperationContext<'_> {
        OperationContext { holes: &self.holes, wishes: &self.wishes, early_ns }
    }

    /// The period of a time, where the trace says when it begins and ends.
    fn period(&self, time: i64) -> Option<i64> {
        crate::setup::span_ns(&self.lanes).filter(|_| time != i64::MIN).map(|_| self.periods.of(time).0)
    }

    /// Note on events that an item leaves out, if any.
    pub(super) fn left_out(name: &str, lacking: u64, given_up: u64) -> Option<Table> {
        let columns = vec![
            Column::of("without_field", "Without a field", "events").rest(),
            Column::of("given_up", "Given up", "keys").rest(),
        ];
        let mut table = Table::new("left-out", format!("{name}: left out"), columns);
        table.rows.push([lacking, given_up].map(|count| Cell::Count(crate::Bounded::exact(count))).to_vec());
        (lacking + given_up > 0).then_some(table)
    }
}

impl Analysis for DeclaredAnalysis {
    type State = DeclaredState;
    type Lane<'a> = DeclaredLane<'a>;
    type Note = DeclaredNote;

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "declared", version: 4 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> DeclaredState {
        let state = |(_, kind): &(String, DeclaredKind)| match kind {
            DeclaredKind::Pairs(pairs) => ItemState::Pairs(pairs.init()),
            DeclaredKind::Operations { .. } => ItemState::Operations(Box::new(Operations::new(&self.wishes))),
            DeclaredKind::States => ItemState::States(ItemStates::default()),
            DeclaredKind::Counter => ItemState::Counter(Counters::default()),
        };
        DeclaredState { items: self.items.iter().map(state).collect() }
    }

    fn enter(&self, lane: usize) -> DeclaredLane<'_> {
        DeclaredLane { facts: &self.lanes[lane], lacking: vec![0; self.items.len()] }
    }

    fn step(&self, lane: &mut DeclaredLane<'_>, event: &AnalysisEvent<'_>, notes: &mut LaneNotes<DeclaredNote>) {
        let is_wanted = self.wishes.wants(lane.facts, event);
        for (place, meaning) in event.roles().enumerate().filter(|(_, meaning)| meaning.role == EventRole::Rule) {
            let Some(rule) = self.rule(meaning) else { continue };
            if let DeclaredKind::Operations { key_fields, .. } = self.items[rule.item].1 {
                let is_again = self.is_told(rule.item, event, place);
                if is_again && rule.act == RuleAction::Step {
                    continue;
                }
                let facts = (lane.facts, is_wanted);
                match self.operation((rule, key_fields), meaning, facts, is_again) {
                    Some(post) => {
                        let change = ItemChange::Operation(Box::new(post));
                        notes.push(event.time, DeclaredNote { item: rule.item, change });
                    }
                    None => lane.lacking[rule.item] += 1,
                }
                continue;
            }
            if !is_wanted && !matches!(rule.act, RuleAction::Begin | RuleAction::End) {
                continue;
            }
            match self.change(rule, meaning, is_wanted) {
                Some(change) => notes.push(event.time, DeclaredNote { item: rule.item, change }),
                None => lane.lacking[rule.item] += 1,
            }
        }
    }

    fn note(&self, state: &mut DeclaredState, lane: usize, time: i64, note: DeclaredNote) {
        match (&mut state.items[note.item], note.change, &self.items[note.item].1) {
            (ItemState::Pairs(state), ItemChange::Pair(note), DeclaredKind::Pairs(pairs)) => {
                pairs.note(state, lane, time, note);
            }
            (ItemState::Operations(state), ItemChange::Operation(post), DeclaredKind::Operations { early_ns, .. }) => {
                state.note(&self.operations(*early_ns), *post);
            }
            (ItemState::States(states), ItemChange::Set(key, value), _) => {
                states.set(&self.frame(), time, &key, value.as_ref());
            }
            (ItemState::Counter(counters), ItemChange::Add(key, value), _) => {
                counters.add(self.period(time), &key, value);
            }
            (ItemState::Counter(counters), ItemChange::To(key, value), _) => {
                counters.to(self.period(time), &key, value);
            }
            _ => {}
        }
    }

    fn leave(&self, state: &mut DeclaredState, _: usize, end: DeclaredLane<'_>) {
        for (item, count) in state.items.iter_mut().zip(end.lacking) {
            match item {
                ItemState::Pairs(pairs) => pairs.lack_key(count),
                ItemState::Operations(operations) => operations.lacking += count,
                ItemState::States(states) => states.lacking += count,
                ItemState::Counter(counters) => counters.lacking += count,
            }
        }
    }

    fn merge(&self, left: &mut DeclaredState, right: DeclaredState) {
        for ((left, right), (_, kind)) in left.items.iter_mut().zip(right.items).zip(&self.items) {
            match (left, right, kind) {
                (ItemState::Pairs(left), ItemState::Pairs(right), DeclaredKind::Pairs(pairs)) => {
                    pairs.merge(left, right);
                }
                (
                    ItemState::Operations(left),
                    ItemState::Operations(right),
                    DeclaredKind::Operations { early_ns, .. },
                ) => left.merge(&self.operations(*early_ns), *right),
                (ItemState::States(left), ItemState::States(right), _) => left.merge(&self.frame(), right),
                (ItemState::Counter(left), ItemState::Counter(right), _) => left.merge(right),
                _ => {}
            }
        }
    }

    fn merges_in_order(&self) -> bool {
        self.items.iter().any(|(_, kind)| matches!(kind, DeclaredKind::Operations { .. }))
    }

    fn anchor(&self, state: &mut DeclaredState) {
        for (state, (_, kind)) in state.items.iter_mut().zip(&self.items) {
            match (state, kind) {
                (ItemState::Pairs(state), DeclaredKind::Pairs(pairs)) => pairs.anchor(state),
                (ItemState::Operations(state), DeclaredKind::Operations { early_ns, .. }) => {
                    state.anchor(&self.operations(*early_ns));
                }
                (ItemState::States(states), _) => states.anchor(&self.frame()),
                _ => {}
            }
        }
    }

    fn fits(&self, state: &DeclaredState) -> bool {
        let is_alike = |(state, (_, kind)): (&ItemState, &(String, DeclaredKind))| {
            matches!(
                (state, kind),
                (ItemState::Pairs(_), DeclaredKind::Pairs(_))
                    | (ItemState::Operations(_), DeclaredKind::Operations { .. })
                    | (ItemState::States(_), DeclaredKind::States)
                    | (ItemState::Counter(_), DeclaredKind::Counter)
            )
        };
        let has_names = |state: &ItemState| match state {
            ItemState::Operations(operations) => operations.fits(self.events.len()),
            _ => true,
        };
        state.items.iter().all(has_names)
            && state.items.len() == self.items.len()
            && state.items.iter().zip(&self.items).all(is_alike)
    }

    fn finish(&self, state: &DeclaredState) -> Result<Answer, SpoolError> {
        let (frame, hosts) = (self.frame(), HostNames::new(&self.lanes));
        let mut tables = Vec::new();
        for (state, (name, kind)) in state.items.iter().zip(&self.items) {
            match (state, kind) {
                (ItemState::Pairs(state), DeclaredKind::Pairs(pairs)) => {
                    let mut answer = pairs.finish(state)?;
                    answer.tables.iter_mut().for_each(|table| table.title = format!("{name}: {}", table.title));
                    tables.extend(answer.tables);
                }
                (ItemState::Operations(state), DeclaredKind::Operations { early_ns, .. }) => {
                    let names = OperationNames { item: name, events: &self.events, hosts: &hosts };
                    tables.extend(state.tables(&self.operations(*early_ns), names));
                }
                (ItemState::States(states), _) => {
                    tables.push(states.table(&frame, name));
                    tables.extend(Self::left_out(name, states.lacking, states.given_up()));
                }
                (ItemState::Counter(counters), _) => {
                    tables.extend(counters.tables(name, !self.holes.is_empty(), &self.periods, &self.wishes));
                    tables.extend(Self::left_out(name, counters.lacking, 0));
                }
                _ => {}
            }
        }
        tables.iter_mut().for_each(|table| table.span_ns = frame.span_ns);
        Ok(Answer { tables })
    }
}
