//! The tables of `pairs`: how long pairs lasted, which lasted longest, and which are still open.

use std::collections::{HashMap, HashSet};

use super::{OpenPair, PairGroup, PairState, PairsAnalysis};
use crate::answer::{Answer, Bounded, Cell, CellClass, Column, Plot, Table};
use crate::headline::{Headline, HeadlineTables};
use crate::hosts::HostNames;
use crate::key::{Key, KeyValue};
use crate::statistics::{cells, columns, distribution, percentile_cells, percentile_columns, shorten};
use crate::{Histogram, Merge};

/// The names that several groups of the mapping have.
struct SharedNames<'k>(HashSet<&'k KeyValue>);

impl<'k> SharedNames<'k> {
    fn of(groups: impl Iterator<Item = &'k Key>) -> Self {
        let (mut seen, mut shared) = (HashMap::new(), HashSet::new());
        for key in groups {
            let Key::Labels(labels) = key else { continue };
            let [.., name] = &**labels else { continue };
            if *seen.entry(name).or_insert(key) != key {
                shared.insert(name);
            }
        }
        Self(shared)
    }
}

impl PairsAnalysis {
    /// The group as people read it: its name, and the mapping's group before it where others have the same name.
    fn group_cell(&self, group: &Key, shared: &SharedNames<'_>) -> Cell {
        match group {
            _ if self.is_by_key => self.key_cell(group),
            Key::Labels(labels) if labels.len() == 2 && !shared.0.contains(&labels[1]) => labels[1].cell(),
            _ => group.cell_in(&[self.bases.group]),
        }
    }

    /// The answer so far.
    pub(super) fn report(&self, state: &PairState) -> Answer {
        let mut open: Vec<(&Key, &OpenPair)> = state.chains.open().filter(|(_, open)| open.is_wanted).collect();
        open.sort_unstable_by(|one, other| {
            (one.1.time, one.0, &one.1.group).cmp(&(other.1.time, other.0, &other.1.group))
        });
        let mut still: HashMap<&Key, PairGroup> = HashMap::new();
        for (_, open) in &open {
            self.left_open(still.entry(&open.group).or_default(), open);
        }
        let mut durations = Histogram::default();
        state.sums.groups.values().chain([&state.sums.others]).for_each(|group| durations.merge_from(&group.durations));
        let shared = SharedNames::of(state.sums.groups.keys().chain(still.keys().copied()));
        let mut tables = vec![
            self.total(state, &durations, &still),
            self.per_group(state, &still, &shared),
            self.longest(state, &shared),
            self.open(&open, &shared),
            distribution("How long pairs last", &durations, &self.wishes),
        ];
        let span_ns = crate::setup::span_ns(&self.lanes);
        tables.iter_mut().for_each(|table| table.span_ns = span_ns);
        Answer { tables }
    }

    /// How many pairs there are, how long most of them lasted, and the longest.
    pub(crate) fn headline(tables: &HeadlineTables<'_>) -> Headline {
        let mut headline = Headline::default();
        let Some(total) = tables.first("total") else { return headline };
        if total.is_zero("count") {
            let is_open = ["never_ended", "lost_inside", "began_before"].iter().any(|class| !total.is_zero(class));
            if is_open {
                headline.say(&total, "No pair has both ends: {never_ended} never ended, {began_before} began before");
            }
            return headline;
        }
        headline.say(
            &total,
            match tables.is_lossy() {
                true => "Of {count:pair} seen, 99 % took at most {p99-}",
                false => "Of {count:pair}, 99 % took at most {p99-}",
            },
        );
        if let Some(longest) = tables.most("longest", "duration") {
            headline.say(
                &longest,
                match longest.has("group") {
                    true => "The longest took {duration+}, from {begin} on, in group {group}",
                    false => "The longest took {duration+}, from {begin} on",
                },
            );
        }
        headline
    }

    fn total(&self, state: &PairState, durations: &Histogram, still: &HashMap<&Key, PairGroup>) -> Table {
        let mut columns = columns();
        columns.extend(percentile_columns());
        columns.push(Column::of("never_ended", "Never ended", "pairs").rest());
        columns.push(Column::of("lost_inside", "Lost inside", "pairs").rest());
        columns.push(Column::of("began_before", "Began before", "pairs").rest());
        columns.push(Column::of("without_key", "Without key", "events").rest());
        columns.push(Column::of("given_up", "Given up", "pairs").rest());
        let sums = &state.sums;
        let groups = || sums.groups.values().chain([&sums.others]).chain(still.values());
        let mut alone = sums.alone;
        state.chains.alone().for_each(|(_, end)| self.ended_alone(&mut alone, *end));
        let mut row = cells(durations);
        row.extend(percentile_cells(durations));
        let counts = [
            groups().map(|group| group.never_ended).sum(),
            groups().map(|group| group.lost_inside).sum::<u64>() + alone.lost_inside,
            alone.began_before,
            sums.without_key,
            sums.given_up,
        ];
        row.extend(counts.map(|count| Cell::Count(Bounded::exact(count))));
        let mut table = Table::new("total", "All pairs", columns);
        table.rows.push(row);
        table
    }

    fn per_group(&self, state: &PairState, still: &HashMap<&Key, PairGroup>, shared: &SharedNames<'_>) -> Table {
        let mut columns_of = vec![Column::new("group", "Group", CellClass::Mixed)];
        columns_of.extend(columns());
        columns_of.extend(percentile_columns());
        columns_of.push(Column::of("never_ended", "Never ended", "pairs").rest());
        columns_of.push(Column::of("lost_inside", "Lost inside", "pairs").rest());
        let mut table = Table::new("per-group", "Groups", columns_of);
        table.plot = Some(Plot::Bars { value: 2 });
        let none = PairGroup::default();
        let mut groups: Vec<(&Key, &PairGroup)> = state.sums.groups.iter().collect();
        groups.extend(still.keys().filter(|key| !state.sums.groups.contains_key(**key)).map(|key| (*key, &none)));
        groups.sort_unstable_by(|one, other| {
            other.1.durations.sum().cmp(&one.1.durations.sum()).then_with(|| one.0.cmp(other.0))
        });
        let row = |name: Cell, group: &PairGroup, open: &PairGroup| {
            let mut row = vec![name];
            row.extend(cells(&group.durations));
            row.extend(percentile_cells(&group.durations));
            let counts = [group.never_ended + open.never_ended, group.lost_inside + open.lost_inside];
            row.extend(counts.map(|count| Cell::Count(Bounded::exact(count))));
            row
        };
        let open = |key: &Key| still.get(key).unwrap_or(&none);
        table.rows =
            groups.into_iter().map(|(key, group)| row(self.group_cell(key, shared), group, open(key))).collect();
        let others = &state.sums.others;
        if !others.durations.is_empty() || others.never_ended + others.lost_inside > 0 {
            table.rows.push(row(Cell::Unknown, others, &none));
        }
        shorten(&mut table, self.wishes.top);
        table
    }

    fn longest(&self, state: &PairState, shared: &SharedNames<'_>) -> Table {
        let columns = vec![
            Column::new("duration", "Duration", CellClass::Duration),
            Column::new("begin", "Begin", CellClass::Timestamp),
            Column::new("end", "End", CellClass::Timestamp).detail(),
            Column::new("key", "Key", CellClass::Mixed),
            Column::new("group", "Group", CellClass::Mixed),
        ];
        let mut table = Table::new("longest", "The longest", columns);
        table.plot = Some(Plot::Bars { value: 0 });
        let rows = state.sums.longest.sorted();
        let hosts: Vec<Option<u16>> = rows.iter().map(|(_, long)| long.host).collect();
        for (duration, long) in rows {
            table.rows.push(vec![
                Cell::Duration(Bounded::exact(duration)),
                Cell::Timestamp(long.begin),
                Cell::Timestamp(long.end),
                self.key_cell_of(&long.key, long.host),
                self.group_cell(&long.group, shared),
            ]);
        }
        self.put_hosts(&mut table, hosts);
        table
    }

    fn open(&self, open: &[(&Key, &OpenPair)], shared: &SharedNames<'_>) -> Table {
        let columns = vec![
            Column::new("begin", "Begin", CellClass::Timestamp),
            Column::new("key", "Key", CellClass::Mixed),
            Column::new("group", "Group", CellClass::Mixed),
        ];
        let mut table = Table::new("open", "Never ended", columns);
        let kept = self.wishes.top.unwrap_or(open.len()).min(open.len());
        table.omitted = (open.len() - kept) as u64;
        for (key, open) in &open[..kept] {
            table.rows.push(vec![
                Cell::Timestamp(open.time),
                self.key_cell_of(key, open.host),
                self.group_cell(&open.group, shared),
            ]);
        }
        self.put_hosts(&mut table, open[..kept].iter().map(|(_, open)| open.host));
        table
    }

    /// The machine of each row, before its key, if pairs stay on one.
    fn put_hosts(&self, table: &mut Table, hosts: impl IntoIterator<Item = Option<u16>>) {
        let key = table.columns.iter().position(|column| column.name == "key");
        if let Some(place) = key.filter(|_| self.is_by_host) {
            HostNames::new(&self.lanes).put_behind(table, place - 1, hosts);
        }
    }
}
