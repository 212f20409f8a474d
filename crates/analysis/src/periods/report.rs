//! Tables of periods: how long they last by name and group, the parts that they consist of, each of
//! them, and which never ended.

use std::collections::HashMap;

use super::analysis::PeriodsAnalysis;
use super::sums::{GroupKey, NamedParts, NamedPeriods, Order, PeriodPart, PeriodView};
use super::{CAPTURES_MAX, FoundPeriods, PeriodEnd};
use crate::answer::{Answer, Bounded, Cell, CellClass, Column, Plot, Table};
use crate::headline::{Headline, HeadlineTables};
use crate::key::KeyValue;
use crate::statistics::{cells, columns, distribution_of, percentile_cells, percentile_columns, saturated, shorten};
use crate::{Histogram, Merge};

/// Columns of captures; their titles are the words that the user chose.
pub const CAPTURES: [&str; CAPTURES_MAX] =
    ["capture_1", "capture_2", "capture_3", "capture_4", "capture_5", "capture_6", "capture_7", "capture_8"];

/// Columns of the values that distinguish groups.
const GROUPS: [&str; CAPTURES_MAX] =
    ["group_1", "group_2", "group_3", "group_4", "group_5", "group_6", "group_7", "group_8"];

/// Distributions that are shown: one for each of the first rows of `statistics`.
const DISTRIBUTIONS_MAX: usize = 64;

impl PeriodsAnalysis {
    /// The tables of these periods.
    #[must_use]
    pub fn tables(&self, found: &FoundPeriods) -> Answer {
        let view = PeriodView { found, sums: &self.sums, holes: self.borders.holes(), wishes: &self.wishes };
        let mut named: Vec<_> = view.named().into_iter().collect();
        named.sort_unstable_by(|one, other| {
            let rank =
                |row: &((usize, GroupKey<'_>), NamedPeriods)| (row.0.0, std::cmp::Reverse(row.1.durations.sum()));
            rank(one).cmp(&rank(other)).then_with(|| one.0.cmp(&other.0))
        });
        let mut tables = vec![self.statistics(&named)];
        if self.sums.parent.is_some() {
            let within = view.within();
            tables.push(self.per_part(&view, &within));
            tables.push(self.per_parent(&view, &within));
        }
        tables.push(self.log(&view));
        tables.push(self.open(&view));
        tables.extend(self.distributions(&named));
        tables.iter_mut().for_each(|table| table.span_ns = self.span_ns);
        Answer { tables }
    }

    /// How many periods there are, and the longest.
    pub(super) fn headline(tables: &HeadlineTables<'_>) -> Headline {
        let mut headline = Headline::default();
        let Some(longest) = tables.most_of_all("statistics", "max") else {
            return headline;
        };
        headline.say(
            &longest,
            match tables.rows("statistics").count() {
                1 if tables.is_lossy() => "Of {count:period} seen, 99 % took at most {p99-}, and the longest {max+}",
                1 => "Of {count:period}, 99 % took at most {p99-}, and the longest {max}",
                _ => "The longest period took {max+}: of {name}, which has {count+:period}",
            },
        );
        headline
    }

    fn name(&self, definition: usize) -> &str {
        &self.definitions.definitions[definition].name
    }

    fn group_columns(&self) -> Vec<Column> {
        let captures = self.definitions.captures();
        let title = |&(of, at): &(usize, usize)| match self.name(of) {
            "" => captures[at].to_owned(),
            name => format!("{name}.{}", captures[at]),
        };
        let groups = GROUPS.into_iter().zip(&self.sums.groups);
        groups.map(|(name, group)| Column::new(name, title(group), CellClass::Mixed)).collect()
    }

    fn group_cells(&self, key: &GroupKey<'_>) -> Vec<Cell> {
        match key {
            Some(labels) => labels.iter().map(|label| label.map_or(Cell::Empty, KeyValue::cell)).collect(),
            None => vec![Cell::Unknown; self.sums.groups.len()],
        }
    }

    fn capture_columns(&self) -> Vec<Column> {
        let captures = CAPTURES.into_iter().zip(self.definitions.captures());
        captures.map(|(name, title)| Column::new(name, title, CellClass::Mixed)).collect()
    }

    fn statistics(&self, named: &[((usize, GroupKey<'_>), NamedPeriods)]) -> Table {
        let mut all = vec![Column::new("name", "Name", CellClass::Text)];
        all.extend(self.group_columns());
        let total = all.len() + 1;
        all.extend(columns());
        all.extend(percentile_columns());
        all.push(Column::of("never_ended", "Never ended", "periods").rest());
        all.push(Column::of("lost_inside", "Lost inside", "periods").rest());
        all.push(Column::of("ended_nothing", "Ended nothing", "events").rest());
        let mut table = Table::new("statistics", "Periods by name", all);
        table.plot = Some(Plot::Bars { value: total });
        for ((definition, group), sums) in named {
            let mut row = vec![Cell::Text(self.name(*definition).to_owned())];
            row.extend(self.group_cells(group));
            row.extend(cells(&sums.durations));
            row.extend(percentile_cells(&sums.durations));
            row.extend([sums.never_ended, sums.lost_inside, sums.ended_nothing].map(count));
            table.rows.push(row);
        }
        shorten(&mut table, self.wishes.top);
        table
    }

    /// Parts of all periods of a name.
    fn per_part(&self, view: &PeriodView<'_>, within: &[(usize, usize)]) -> Table {
        let mut all = vec![Column::new("part", "Part", CellClass::Text)];
        all.extend(self.group_columns());
        all.push(Column::of("periods", "Periods", "periods"));
        all.push(Column::of("with", "With it", "periods").detail());
        all.push(Column::of("count", "Parts", "periods"));
        let total = all.len();
        all.extend(columns().into_iter().skip(1));
        all.extend(percentile_columns());
        all.extend(share_columns());
        all.push(Column::of("never_ended", "Never ended", "periods").rest());
        all.push(Column::of("lost_inside", "Lost inside", "periods").rest());
        let name = self.sums.parent.map_or("", |parent| self.name(parent));
        let mut table = Table::new("per-part", format!("Time in {name}"), all);
        table.plot = Some(Plot::Bars { value: total });
        let mut groups: Vec<_> = view.wholes(within).into_iter().collect();
        groups.sort_unstable_by(|one, other| other.1.total.cmp(&one.1.total).then_with(|| one.0.cmp(&other.0)));
        for ((_, group), mut whole) in groups {
            if whole.parts.is_empty() {
                let none = |definition| NamedParts { definition, ..NamedParts::default() };
                whole.parts = self.sums.parts.iter().map(|of| none(Some(*of))).chain([none(None)]).collect();
            }
            for part in &whole.parts {
                let mut row = vec![self.part(part.definition)];
                row.extend(self.group_cells(&group));
                row.extend([whole.count, part.with].map(count));
                row.push(if part.definition.is_some() { count(part.count) } else { Cell::Empty });
                row.extend(cells(&part.times).into_iter().skip(1));
                row.extend(percentile_cells(&part.times));
                row.extend(share_cells(part.times.sum(), part.covered, whole.total));
                row.extend([part.never_ended, whole.lost_inside].map(count));
                table.rows.push(row);
            }
        }
        shorten(&mut table, self.wishes.top);
        table
    }

    /// Parts of each period of a name.
    fn per_parent(&self, view: &PeriodView<'_>, within: &[(usize, usize)]) -> Table {
        let mut all = vec![
            Column::new("duration", "Duration", CellClass::Duration),
            Column::new("begin", "Begin", CellClass::Timestamp),
            Column::new("end", "End", CellClass::Timestamp).detail(),
        ];
        all.extend(self.capture_columns());
        all.push(Column::new("part", "Part", CellClass::Text));
        let total = all.len() + 1;
        all.extend(columns());
        all.extend(share_columns());
        all.push(Column::of("never_ended", "Never ended", "periods").rest());
        all.push(Column::new("uncertain", "Uncertain", CellClass::Flag).rest());
        let name = self.sums.parent.map_or("", |parent| self.name(parent));
        let mut table = Table::new("per-parent", format!("Each {name}"), all);
        table.plot = Some(Plot::Bars { value: total });
        let is_parent = |place: &usize| Some(view.found.periods[*place].definition) == self.sums.parent;
        let parents: Vec<usize> = self.ordered(view).into_iter().filter(is_parent).collect();
        let wanted = self.wishes.top.unwrap_or(usize::MAX);
        for place in parents {
            let parts = view.parts(place, within);
            let is_told =
                |part: &&PeriodPart| part.definition.is_none() || !part.durations.is_empty() || part.never_ended > 0;
            for part in parts.iter().filter(is_told) {
                if table.rows.len() < wanted {
                    table.rows.push(self.part_row(view, place, part));
                } else {
                    table.omitted += 1;
                }
            }
        }
        table
    }

    fn part_row(&self, view: &PeriodView<'_>, place: usize, part: &PeriodPart) -> Vec<Cell> {
        let period = &view.found.periods[place];
        let duration = view.duration(place).unwrap_or(0);
        let mut row = vec![
            Cell::Duration(Bounded::exact(duration)),
            Cell::Timestamp(period.begin),
            period.ended().map_or(Cell::Empty, Cell::Timestamp),
        ];
        row.extend(period.captures.iter().map(label));
        row.push(self.part(part.definition));
        let mut sums = cells(&part.durations);
        if part.definition.is_none() {
            sums.fill(Cell::Empty);
            sums[1] = Cell::Duration(Bounded::exact(part.covered));
        }
        row.extend(sums);
        row.extend(share_cells(part.total(), u128::from(part.covered), u128::from(duration)));
        row.extend([count(part.never_ended), Cell::Flag(view.is_uncertain(place))]);
        row
    }

    /// A part's name; empty for the time in which there is none.
    fn part(&self, definition: Option<usize>) -> Cell {
        definition.map_or(Cell::Empty, |definition| Cell::Text(self.name(definition).to_owned()))
    }

    /// Periods that have ended, with a wanted duration, in the order of the table.
    fn ordered(&self, view: &PeriodView<'_>) -> Vec<usize> {
        let mut places: Vec<usize> = match self.sums.order {
            Order::Hierarchy => hierarchy(view.found),
            Order::Time | Order::Duration => (0..view.found.periods.len()).collect(),
        };
        places.retain(|place| view.duration(*place).is_some());
        if self.sums.order == Order::Duration {
            places.sort_by_key(|place| std::cmp::Reverse(view.duration(*place)));
        }
        places
    }

    fn log(&self, view: &PeriodView<'_>) -> Table {
        let mut columns = vec![
            Column::new("duration", "Duration", CellClass::Duration),
            Column::new("begin", "Begin", CellClass::Timestamp),
            Column::new("end", "End", CellClass::Timestamp).detail(),
            Column::new("name", "Name", CellClass::Text),
            Column::new("parent", "Within that of", CellClass::Timestamp).detail(),
        ];
        columns.extend(self.capture_columns());
        columns.push(Column::new("uncertain", "Uncertain", CellClass::Flag).rest());
        let title = if self.sums.order == Order::Duration { "The longest periods" } else { "Periods" };
        let mut table = Table::new("periods", title, columns);
        table.plot = Some(Plot::Bars { value: 0 });
        let places = self.ordered(view);
        let kept = self.wishes.top.unwrap_or(places.len()).min(places.len());
        table.omitted = (places.len() - kept) as u64;
        for &place in &places[..kept] {
            let period = &view.found.periods[place];
            let mut row = vec![
                Cell::Duration(Bounded::exact(view.duration(place).unwrap_or(0))),
                Cell::Timestamp(period.begin),
                period.ended().map_or(Cell::Empty, Cell::Timestamp),
                Cell::Text(self.name(period.definition).to_owned()),
                period.parent.map_or(Cell::Empty, |parent| Cell::Timestamp(view.found.periods[parent].begin)),
            ];
            row.extend(period.captures.iter().map(label));
            row.push(Cell::Flag(view.is_uncertain(place)));
            table.rows.push(row);
        }
        table
    }

    fn open(&self, view: &PeriodView<'_>) -> Table {
        let mut columns = vec![
            Column::new("begin", "Begin", CellClass::Timestamp),
            Column::new("name", "Name", CellClass::Text),
            Column::new("parent", "Within that of", CellClass::Timestamp).detail(),
            Column::new("parent_end", "Which ended", CellClass::Timestamp).detail(),
        ];
        columns.extend(self.capture_columns());
        columns.push(Column::new("uncertain", "Uncertain", CellClass::Flag).rest());
        let mut table = Table::new("open", "Never ended", columns);
        let wanted = self.wishes.top.unwrap_or(usize::MAX);
        for (place, period) in view.found.periods.iter().enumerate() {
            let parent_end = match period.end {
                PeriodEnd::At(_) => continue,
                PeriodEnd::WithParent(end) => Cell::Timestamp(end),
                PeriodEnd::Never => Cell::Empty,
            };
            if table.rows.len() >= wanted {
                table.omitted += 1;
                continue;
            }
            let mut row = vec![
                Cell::Timestamp(period.begin),
                Cell::Text(self.name(period.definition).to_owned()),
                period.parent.map_or(Cell::Empty, |parent| Cell::Timestamp(view.found.periods[parent].begin)),
                parent_end,
            ];
            row.extend(period.captures.iter().map(label));
            row.push(Cell::Flag(view.is_uncertain(place)));
            table.rows.push(row);
        }
        table
    }

    /// Distributions of periods, by name and group.
    fn distributions(&self, named: &[((usize, GroupKey<'_>), NamedPeriods)]) -> Vec<Table> {
        let mut all: HashMap<usize, Histogram> = HashMap::new();
        for ((definition, _), sums) in named {
            all.entry(*definition).or_default().merge_from(&sums.durations);
        }
        let none = Histogram::default();
        let title = |definition: usize, group: &GroupKey<'_>| {
            let name = [self.name(definition)].into_iter().filter(|name| !name.is_empty()).map(str::to_owned);
            let value = |label: &Option<&KeyValue>| label.map_or_else(|| "-".to_owned(), ToString::to_string);
            let values = match group {
                Some(labels) => labels.iter().map(value).collect(),
                None => vec!["others".to_owned()],
            };
            let words: Vec<String> = name.chain(values).collect();
            if words.is_empty() { TITLE.to_owned() } else { format!("{TITLE}, {}", words.join(" ")) }
        };
        const TITLE: &str = "How long periods last";
        let kept = named.len().min(self.wishes.top.unwrap_or(DISTRIBUTIONS_MAX)).min(DISTRIBUTIONS_MAX);
        let of = |((definition, group), sums): &((usize, GroupKey<'_>), NamedPeriods)| {
            let whole = all.get(definition).unwrap_or(&none);
            distribution_of("distribution", title(*definition, group), (&sums.durations, whole), &self.wishes)
        };
        if kept == 0 {
            return vec![distribution_of("distribution", TITLE, (&none, &none), &self.wishes)];
        }
        named[..kept].iter().map(of).collect()
    }
}

/// All periods, each behind the one that it is within.
fn hierarchy(found: &FoundPeriods) -> Vec<usize> {
    let mut children: Vec<(Option<usize>, usize)> =
        found.periods.iter().enumerate().map(|(place, period)| (period.parent, place)).collect();
    children.sort_unstable();
    let of = |parent: Option<usize>| {
        let from = children.partition_point(|child| child.0 < parent);
        let to = children.partition_point(|child| child.0 <= parent);
        children[from..to].iter().rev().map(|child| child.1)
    };
    let (mut order, mut next): (Vec<usize>, Vec<usize>) = (Vec::new(), of(None).collect());
    while let Some(place) = next.pop() {
        order.push(place);
        next.extend(of(Some(place)));
    }
    order
}

fn share_columns() -> Vec<Column> {
    vec![
        Column::new("share", "Share", CellClass::Ratio),
        Column::new("covered", "Covered", CellClass::Duration).detail(),
        Column::new("covered_share", "Share covered", CellClass::Ratio).detail(),
    ]
}

fn share_cells(total: u128, covered: u128, whole: u128) -> Vec<Cell> {
    let ratio = |part: u128| match whole {
        0 => Cell::Empty,
        whole => Cell::Ratio(Bounded::exact(part as f64 / whole as f64)),
    };
    vec![ratio(total), Cell::Duration(Bounded::exact(saturated(covered))), ratio(covered)]
}

fn label(value: &Option<KeyValue>) -> Cell {
    value.as_ref().map_or(Cell::Empty, KeyValue::cell)
}

fn count(count: u64) -> Cell {
    Cell::Count(Bounded::exact(count))
}
