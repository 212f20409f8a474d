//! The tables of operations: how long they took, by their steps, and the longest ones step by step.

use std::collections::HashMap;

use super::{LongOperation, OperationContext, OperationGroup, OperationStep, Operations, StepSums};
use crate::answer::{Bounded, Cell, CellClass, Column, Plot, Table};
use crate::headline::{Headline, HeadlineRow, HeadlineTables};
use crate::hosts::HostNames;
use crate::key::Key;
use crate::statistics::{cells, columns, distribution_of, percentile_cells, percentile_columns, saturated, shorten};
use crate::{Histogram, Merge};

/// What people call an item, events by their places, and machines.
#[derive(Clone, Copy)]
pub(in super::super) struct OperationNames<'a> {
    pub(in super::super) item: &'a str,
    pub(in super::super) events: &'a [String],
    pub(in super::super) hosts: &'a HostNames,
}

/// Operations without a group, of an item without a name.
const UNNAMED: &str = "operation";

impl OperationNames<'_> {
    fn group(self, group: &Key) -> Cell {
        let name = if self.item.is_empty() { UNNAMED } else { self.item };
        if *group == Key::Empty { Cell::Text(name.to_owned()) } else { group.cell() }
    }

    fn event(self, place: u32) -> Cell {
        self.events.get(place as usize).map_or(Cell::Unknown, |name| Cell::Text(name.clone()))
    }
}

fn exact(count: u64) -> Cell {
    Cell::Count(Bounded::exact(count))
}

fn between(begin: OperationStep, end: OperationStep) -> Cell {
    Cell::Duration(Bounded::exact(begin.time.abs_diff(end.time)))
}

/// The least, the average, the 50th and 99th percentile, and the greatest.
fn figures(durations: &Histogram) -> [Cell; 5] {
    let [_, _, least, average, most, _]: [Cell; 6] =
        cells(durations).try_into().expect("there are as many cells as columns");
    let [median, p99] = durations.quantiles([0.5, 0.99]).map(|found| found.map_or(Cell::Empty, Cell::Duration));
    [least, average, median, p99, most]
}

impl Operations {
    /// The answer so far.
    pub(in super::super) fn tables(&self, context: &OperationContext<'_>, names: OperationNames<'_>) -> Vec<Table> {
        if !self.posts.is_empty() {
            let mut played = self.clone();
            played.anchor(context);
            return played.tables(context, names);
        }
        let mut sums = self.sums.clone();
        self.keys.values().flat_map(|open| &open.operations).for_each(|open| sums.never_ended(context, open));
        let mut durations = Histogram::default();
        sums.groups.values().chain([&sums.others]).for_each(|group| durations.merge_from(&group.durations));
        let mut tables = vec![
            Self::operations(&sums.groups, &sums.others, names),
            self.steps(&sums.groups, context, names),
            self.longest(names),
            self.breakdown(context, names),
            self.unmatched(),
            distribution_of(
                "operation-durations",
                "How long operations last",
                (&durations, &durations),
                context.wishes,
            ),
        ];
        tables[0].omitted = crate::statistics::leave(&mut tables[0].rows, context.wishes.top);
        if !names.item.is_empty() {
            tables.iter_mut().for_each(|table| table.title = format!("{}: {}", names.item, table.title));
        }
        tables
    }

    /// The first things to say of an item: how long its operations take, and which step takes longest.
    pub(in super::super) fn headline(tables: &HeadlineTables<'_>) -> Headline {
        let mut headline = Headline::default();
        let Some(most) = tables.most("operations", "total") else { return headline };
        // An operation without a group is called so.
        let is_named = |row: &HeadlineRow<'_>| *row.cell("operation") != Cell::Text(UNNAMED.to_owned());
        headline.say(
            &most,
            match (is_named(&most), tables.is_lossy()) {
                (true, true) => "Of {count:operation} called {operation} seen, 99 % took at most {p99-}",
                (true, false) => "Of {count:operation} called {operation}, 99 % took at most {p99-}",
                (false, true) => "Of {count:operation} seen, 99 % took at most {p99-}",
                (false, false) => "Of {count:operation}, 99 % took at most {p99-}",
            },
        );
        if let Some(step) = tables.most("steps", "total") {
            headline.say(
                &step,
                match is_named(&step) {
                    true => "The step to {step} took most: {total+}, {share} of the time of {operation}",
                    false => "The step to {step} took most: {total+}, {share} of the time",
                },
            );
        }
        headline
    }

    fn operations(groups: &HashMap<Key, OperationGroup>, others: &OperationGroup, names: OperationNames<'_>) -> Table {
        let mut columns_of = vec![Column::new("operation", "Operation", CellClass::Mixed)];
        columns_of.extend(columns());
        columns_of[1].unit = Some("operations");
        columns_of.extend(percentile_columns());
        columns_of.push(Column::of("never_ended", "Never ended", "operations").rest());
        columns_of.push(Column::of("lost_inside", "Lost inside", "operations").rest());
        columns_of.push(Column::of("out_of_order", "Out of order", "operations").rest());
        let mut table = Table::new("operations", "Operations", columns_of);
        table.plot = Some(Plot::Bars { value: 2 });
        let mut sorted: Vec<(&Key, &OperationGroup)> = groups.iter().collect();
        sorted.sort_unstable_by(|one, other| {
            other.1.durations.sum().cmp(&one.1.durations.sum()).then_with(|| one.0.cmp(other.0))
        });
        let row = |name: Cell, group: &OperationGroup| {
            let mut row = vec![name];
            row.extend(cells(&group.durations));
            row.extend(percentile_cells(&group.durations));
            row.extend([group.never_ended, group.lost_inside, group.out_of_order].map(exact));
            row
        };
        table.rows = sorted.into_iter().map(|(key, group)| row(names.group(key), group)).collect();
        if !others.durations.is_empty() || others.never_ended + others.lost_inside + others.out_of_order > 0 {
            table.rows.push(row(Cell::Unknown, others));
        }
        table
    }

    fn steps(
        &self,
        groups: &HashMap<Key, OperationGroup>,
        context: &OperationContext<'_>,
        names: OperationNames<'_>,
    ) -> Table {
        let duration = |name, title| Column::new(name, title, CellClass::Duration);
        let columns = vec![
            Column::new("operation", "Operation", CellClass::Mixed),
            Column::new("step", "Step", CellClass::Text),
            Column::of("count", "Count", "steps"),
            duration("total", "Total"),
            Column::new("share", "Share", CellClass::Ratio),
            duration("min", "Min").detail(),
            duration("avg", "Average"),
            duration("p50", "50 %").detail(),
            duration("p99", "99 %"),
            duration("max", "Max"),
            duration("offset_min", "Offset min").detail(),
            duration("offset_avg", "Offset"),
            duration("offset_p50", "Offset 50 %").detail(),
            duration("offset_p99", "Offset 99 %").detail(),
            duration("offset_max", "Offset max").detail(),
        ];
        let mut table = Table::new("steps", "Steps", columns);
        table.plot = Some(Plot::Bars { value: 3 });
        let total = |group: &Key| groups.get(group).map_or(0, |group| group.durations.sum());
        // Those that take most time are kept, and shown in the order in which operations take them.
        let mut sorted: Vec<(&(Key, u32), &StepSums)> = self.sums.steps.iter().collect();
        let name = |place: u32| names.events.get(place as usize);
        sorted.sort_unstable_by(|((group, step), sums), ((other_group, other_step), other)| {
            other
                .latencies
                .sum()
                .cmp(&sums.latencies.sum())
                .then_with(|| group.cmp(other_group).then_with(|| name(*step).cmp(&name(*other_step))))
        });
        table.omitted = crate::statistics::leave(&mut sorted, context.wishes.top);
        let offset = |sums: &StepSums| sums.offsets.sum() / u128::from(sums.offsets.count().max(1));
        sorted.sort_by_key(|((group, _), sums)| (std::cmp::Reverse(total(group)), group.clone(), offset(sums)));
        let row = |operation: Cell, step: Cell, sums: &StepSums, all: u128| {
            let whole = sums.latencies.sum();
            let share = if all == 0 { Cell::Empty } else { Cell::Ratio(Bounded::exact(whole as f64 / all as f64)) };
            let mut row = vec![operation, step, exact(sums.latencies.count())];
            row.extend([Cell::Duration(Bounded::exact(saturated(whole))), share]);
            row.extend(figures(&sums.latencies));
            row.extend(figures(&sums.offsets));
            row
        };
        table.rows = sorted
            .into_iter()
            .map(|((group, step), sums)| row(names.group(group), names.event(*step), sums, total(group)))
            .collect();
        if !self.sums.other_steps.latencies.is_empty() {
            table.rows.push(row(Cell::Unknown, Cell::Unknown, &self.sums.other_steps, 0));
        }
        table
    }

    fn longest(&self, names: OperationNames<'_>) -> Table {
        let columns = vec![
            Column::new("duration", "Duration", CellClass::Duration),
            Column::new("begin", "Begin", CellClass::Timestamp),
            Column::new("operation", "Operation", CellClass::Mixed),
            Column::new("key", "Key", CellClass::Mixed),
            Column::new("cpu", "CPU", CellClass::Cpu),
            Column::of("steps", "Steps", "steps"),
        ];
        let mut table = Table::new("longest-operations", "The longest", columns);
        table.plot = Some(Plot::Bars { value: 0 });
        let rows = self.sums.longest.sorted();
        let hosts: Vec<u16> = rows.iter().map(|(_, long)| long.begin.host).collect();
        for (duration, LongOperation { begin, group, key, steps }) in rows {
            table.rows.push(vec![
                Cell::Duration(Bounded::exact(duration)),
                Cell::Timestamp(begin.time),
                names.group(group),
                key.cell(),
                begin.cpu.map_or(Cell::Unknown, Cell::Cpu),
                exact(steps.len() as u64),
            ]);
        }
        names.hosts.put(&mut table, hosts);
        table
    }

    /// Each step of the longest operations.
    fn breakdown(&self, context: &OperationContext<'_>, names: OperationNames<'_>) -> Table {
        let columns = vec![
            Column::new("operation", "Operation", CellClass::Mixed),
            Column::new("key", "Key", CellClass::Mixed),
            Column::new("step", "Step", CellClass::Text),
            Column::new("cpu", "CPU", CellClass::Cpu),
            Column::new("time", "Time", CellClass::Timestamp).detail(),
            Column::new("offset", "Offset", CellClass::Duration),
            Column::new("latency", "Latency", CellClass::Duration),
        ];
        let mut table = Table::new("breakdown", "Steps of the longest", columns);
        let mut hosts = Vec::new();
        for (_, LongOperation { begin, group, key, steps }) in self.sums.longest.sorted() {
            let mut before = *begin;
            for step in [begin].into_iter().chain(steps) {
                table.rows.push(vec![
                    names.group(group),
                    key.cell(),
                    names.event(step.name),
                    step.cpu.map_or(Cell::Unknown, Cell::Cpu),
                    Cell::Timestamp(step.time),
                    between(*begin, *step),
                    between(before, *step),
                ]);
                hosts.push(step.host);
                before = *step;
            }
        }
        names.hosts.put(&mut table, hosts);
        shorten(&mut table, context.wishes.top);
        table
    }

    /// Events without an operation; no row, if there are none.
    fn unmatched(&self) -> Table {
        let columns = vec![
            Column::of("began_before", "Began before", "operations"),
            Column::of("lost_inside", "Lost inside", "operations").rest(),
            Column::of("loose_steps", "Steps of no operation", "steps"),
            Column::of("without_field", "Without a field", "events").rest(),
            Column::of("given_up", "Given up", "operations").rest(),
        ];
        let mut table = Table::new("unmatched", "Unmatched events", columns);
        let sums = self.sums.unmatched;
        let counts = [sums.began_before, sums.lost_inside, sums.loose_steps, self.lacking, sums.given_up];
        if counts != [0; 5] {
            table.rows.push(counts.map(exact).to_vec());
        }
        table
    }
}
