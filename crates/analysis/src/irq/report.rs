//! The tables of `irq`.

use std::collections::BTreeMap;

use super::{FirstEdge, Irq, IrqScope, IrqSource, IrqState, LongIrq, Service};
use crate::answer::{Answer, Bounded, Cell, CellClass, Column, Plot, Table};
use crate::headline::{Headline, HeadlineTables};
use crate::hosts::HostNames;
use crate::ranking::Ranking;
use crate::statistics::{self, distribution_of, percentile_cells, percentile_columns};
use crate::{Histogram, Merge};

/// An interrupt of a machine, on any CPU.
type Key = (u16, bool, i64);

/// State of an interrupt.
#[derive(Default)]
struct IrqRow {
    durations: Histogram,
    began_before: u64,
    never_ended: u64,
    lost_inside: u64,
    raises: u64,
    waits: Histogram,
    /// Raised, and not served.
    raise_never_ended: u64,
    /// When its name was said last, and the name.
    name: Option<(i64, String)>,
}

/// Everything that is known.
struct IrqTotals {
    all: BTreeMap<Key, IrqRow>,
    per_cpu: BTreeMap<(u16, u32, bool, i64), IrqRow>,
    served: Ranking<LongIrq>,
    waited: Ranking<LongIrq>,
}

impl IrqRow {
    /// Adds the state of a CPU, up to the trace's end.
    fn add(&mut self, scope: IrqScope<'_>, service: &Service) {
        self.durations.merge_from(&service.durations);
        self.waits.merge_from(&service.waits);
        self.raises += service.raises;
        self.lost_inside += service.lost_inside;
        if let Some(FirstEdge::Exit(time)) = service.first {
            let began_before = scope.is_whole(i64::MIN, time);
            self.began_before += u64::from(began_before);
            self.lost_inside += u64::from(!began_before);
        }
        if let Some(time) = service.open {
            let never_ended = scope.is_whole(time, i64::MAX);
            self.never_ended += u64::from(never_ended);
            self.lost_inside += u64::from(!never_ended);
        }
        let raised = if service.first_entry.is_some() { service.raised } else { service.first_raise };
        self.raise_never_ended += u64::from(raised.is_some());
        if let Some(time) = service.named.filter(|time| self.name.as_ref().is_none_or(|name| name.0 <= *time)) {
            self.name = Some((time, String::from_utf8_lossy(&service.name).into_owned()));
        }
    }

    fn is_empty(&self) -> bool {
        let others = self.began_before + self.never_ended + self.lost_inside + self.raises;
        others == 0 && self.durations.is_empty() && self.waits.is_empty()
    }

    fn class_cells(&self) -> [Cell; 3] {
        [self.began_before, self.never_ended, self.lost_inside].map(count)
    }
}

impl Irq {
    /// The answer so far.
    pub(super) fn report(&self, state: &IrqState) -> Answer {
        let whole = self.whole(state);
        let is_named = |name: &str| self.wishes.by.iter().any(|wanted| wanted == name);
        // Another word, which only separates interrupts, selects no table: then all are wanted.
        let is_any = !["hard", "soft", "top"].into_iter().any(is_named);
        let wants = |name: &str| is_any || is_named(name);
        let mut tables = Vec::new();
        for (name, is_hard) in [("hard", true), ("soft", false)] {
            if wants(name) {
                tables.push(self.per_irq(&whole, is_hard));
                tables.push(self.per_cpu(&whole, is_hard));
                tables.extend(self.distributions(&whole, is_hard));
            }
        }
        if wants("top") {
            tables.push(self.longest(&whole, &whole.served, "top", "Longest interrupts"));
            tables.push(self.longest(&whole, &whole.waited, "top-raised", "Longest from raise to softirq"));
        }
        let span_ns = crate::setup::span_ns(&self.lanes);
        tables.iter_mut().for_each(|table| table.span_ns = span_ns);
        Answer { tables }
    }

    /// The interrupt that took most time, and the longest one.
    pub(super) fn headline(tables: &HeadlineTables<'_>) -> Headline {
        let mut headline = Headline::default();
        if let Some(irq) = tables.greatest(&["hard", "soft"], &["total"]) {
            headline.say(&irq, "Most time was spent in {irq}: {total+} in {count+:interrupt}");
        }
        if let Some(longest) = tables.most("top", "duration") {
            headline.say(&longest, "The longest interrupt took {duration+}: {irq} on CPU {cpu}");
        }
        headline
    }

    fn whole(&self, state: &IrqState) -> IrqTotals {
        let super::IrqLaneState { served, waited, .. } = super::IrqLaneState::new(&self.wishes);
        let mut whole = IrqTotals { all: BTreeMap::new(), per_cpu: BTreeMap::new(), served, waited };
        for (lane, known) in state.lanes.iter().enumerate() {
            let scope = self.scope(lane);
            let mut services: Vec<(&IrqSource, &Service)> = known.services.iter().collect();
            services.sort_unstable_by_key(|service| service.0);
            for (source, service) in services.into_iter().filter(|service| scope.wants_source(*service.0)) {
                // The first raise is known to be that only now.
                let mut service = service.clone();
                if let Some((raise, entry)) = service.first_raise.zip(service.first_entry) {
                    service.waited(scope, *source, (raise, entry), &mut whole.waited);
                }
                let IrqSource { cpu, is_hard, number } = *source;
                let host = scope.facts.host;
                whole.all.entry((host, is_hard, number)).or_default().add(scope, &service);
                whole.per_cpu.entry((host, cpu, is_hard, number)).or_default().add(scope, &service);
            }
            whole.served.merge(known.served.clone());
            whole.waited.merge(known.waited.clone());
        }
        whole
    }

    fn per_irq(&self, whole: &IrqTotals, is_hard: bool) -> Table {
        let mut columns = vec![irq_column()];
        columns.extend(statistics::columns());
        columns.extend(percentile_columns());
        columns.extend([
            Column::of("began_before", "Began before", "times").rest(),
            Column::of("never_ended", "Never ended", "times").rest(),
            Column::of("lost_inside", "In doubt", "times").rest(),
        ]);
        let (class, title) = if is_hard { ("hard", "Interrupts") } else { ("soft", "Softirqs") };
        if !is_hard {
            columns.push(Column::of("raises", "Raises", "times").detail());
            columns.extend(raise_columns());
        }
        let mut table = Table::new(class, title, columns);
        table.plot = Some(Plot::Bars { value: 2 });
        let rows = self.largest(whole.all.iter().filter(|(key, _)| key.1 == is_hard), &mut table.omitted);
        let hosts: Vec<u16> = rows.iter().map(|(key, _)| key.0).collect();
        for (key, row) in rows {
            let mut cells = vec![whole.irq(*key)];
            cells.extend(statistics::cells(&row.durations));
            cells.extend(percentile_cells(&row.durations));
            cells.extend(row.class_cells());
            if !is_hard {
                cells.push(count(row.raises));
                cells.extend(statistics::cells(&row.waits));
                cells.push(count(row.raise_never_ended));
            }
            table.rows.push(cells);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    fn per_cpu(&self, whole: &IrqTotals, is_hard: bool) -> Table {
        let columns = vec![
            Column::new("cpu", "CPU", CellClass::Cpu),
            irq_column(),
            Column::of("count", "Count", "times"),
            Column::new("total", "Total", CellClass::Duration),
            Column::new("min", "Min", CellClass::Duration),
            Column::new("max", "Max", CellClass::Duration),
        ];
        let (class, title) =
            if is_hard { ("hard-per-cpu", "Interrupts by CPU") } else { ("soft-per-cpu", "Softirqs by CPU") };
        let mut table = Table::new(class, title, columns);
        table.plot = Some(Plot::Bars { value: 3 });
        let rows = whole.per_cpu.iter().filter(|(key, row)| key.2 == is_hard && !row.durations.is_empty());
        let rows = self.largest(rows, &mut table.omitted);
        let hosts: Vec<u16> = rows.iter().map(|(key, _)| key.0).collect();
        for ((host, cpu, _, number), row) in rows {
            let mut cells = vec![Cell::Cpu(*cpu), whole.irq((*host, is_hard, *number))];
            let mut all = statistics::cells(&row.durations);
            all.truncate(5);
            // The mean is left out.
            all.remove(3);
            cells.extend(all);
            table.rows.push(cells);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    /// The rows that add up to most, in the order of their keys where they are equal; those of nothing are left out.
    fn largest<'a, K: Ord>(
        &self,
        rows: impl Iterator<Item = (&'a K, &'a IrqRow)>,
        omitted: &mut u64,
    ) -> Vec<(&'a K, &'a IrqRow)> {
        let mut rows: Vec<(&K, &IrqRow)> = rows.filter(|(_, row)| !row.is_empty()).collect();
        rows.sort_by_key(|(key, row)| (std::cmp::Reverse(row.durations.sum()), *key));
        let kept = self.wishes.top.unwrap_or(rows.len()).min(rows.len());
        *omitted = (rows.len() - kept) as u64;
        rows.truncate(kept);
        rows
    }

    fn longest(&self, whole: &IrqTotals, longest: &Ranking<LongIrq>, class: &'static str, title: &str) -> Table {
        let columns = vec![
            Column::new("begin", "Begin", CellClass::Timestamp),
            Column::new("duration", "Duration", CellClass::Duration),
            Column::new("cpu", "CPU", CellClass::Cpu),
            irq_column(),
        ];
        let mut table = Table::new(class, title, columns);
        table.plot = Some(Plot::Bars { value: 1 });
        let rows = longest.sorted();
        let hosts: Vec<u16> = rows.iter().map(|(_, long)| long.host).collect();
        for (ns, long) in rows {
            let IrqSource { cpu, is_hard, number } = long.source;
            let irq = whole.irq((long.host, is_hard, number));
            table.rows.push(vec![Cell::Timestamp(long.begin), duration(ns), Cell::Cpu(cpu), irq]);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    /// Distributions over all of a kind; of each interrupt on request.
    fn distributions(&self, whole: &IrqTotals, is_hard: bool) -> Vec<Table> {
        let rows = || whole.all.iter().filter(move |(key, _)| key.1 == is_hard);
        let sum = |values: &dyn Fn(&IrqRow) -> &Histogram| {
            let mut all = Histogram::default();
            rows().for_each(|(_, row)| all.merge_from(values(row)));
            all
        };
        let (durations, waits) = (sum(&|row| &row.durations), sum(&|row| &row.waits));
        let mut tables = Vec::new();
        let mut add = |class: &'static str, title: String, values: &Histogram, all: &Histogram| {
            if !values.is_empty() {
                tables.push(distribution_of(class, title, (values, all), &self.wishes));
            }
        };
        let (class, title) =
            if is_hard { ("hard-distribution", "Interrupts") } else { ("soft-distribution", "Softirqs") };
        add(class, title.to_owned(), &durations, &durations);
        add("raise-distribution", "From raise to softirq".to_owned(), &waits, &waits);
        if self.wishes.by.iter().any(|by| by == "irq") {
            let class = if is_hard { "hard-distribution-of" } else { "soft-distribution-of" };
            for (key, row) in rows() {
                let name = row.name.as_ref().map_or("", |name| &name.1);
                add(class, format!("{title}, {} {name}", key.2), &row.durations, &durations);
            }
        }
        tables
    }
}

impl IrqScope<'_> {
    pub(super) fn wants_cpu(&self, cpu: u32) -> bool {
        self.wishes.cpus.is_empty() || self.wishes.cpus.contains(&cpu)
    }
}

impl IrqTotals {
    fn irq(&self, key: Key) -> Cell {
        let name = self.all.get(&key).and_then(|row| row.name.as_ref()).map(|name| name.1.clone());
        Cell::Irq { is_hard: key.1, number: key.2, name }
    }
}

fn irq_column() -> Column {
    Column::new("irq", "Interrupt", CellClass::Irq)
}

fn raise_columns() -> Vec<Column> {
    vec![
        Column::of("raise_count", "Served", "times"),
        Column::new("raise_total", "Waiting", CellClass::Duration),
        Column::new("raise_min", "Min wait", CellClass::Duration).detail(),
        Column::new("raise_avg", "Average wait", CellClass::Duration).detail(),
        Column::new("raise_max", "Max wait", CellClass::Duration),
        Column::new("raise_stdev", "Wait deviation", CellClass::Duration).detail(),
        Column::of("raise_never_ended", "Not served", "times").rest(),
    ]
}

fn count(count: u64) -> Cell {
    Cell::Count(Bounded::exact(count))
}

fn duration(ns: u64) -> Cell {
    Cell::Duration(Bounded::exact(ns))
}
