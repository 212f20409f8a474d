//! The tables of `io`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::files::{FileKey, Files, Kinds, Owner};
use super::ops::Category;
use super::rows::{Sums, Totals};
use super::{Io, State};
use crate::answer::{Answer, Bounded, Cell, Class, Column, Plot, Table};
use crate::calls::LifeView;
use crate::calls::report::{Names, count, thread_cells, thread_columns, wants};
use crate::statistics::{cells, columns, distribution, leave, percentile_cells, percentile_columns};
use crate::threads::ThreadKey;
use crate::{Histogram, Merge};

/// Everything that is known.
struct Found<'a> {
    threads: Vec<ThreadRow>,
    processes: BTreeMap<(u16, Option<i32>), (Sums, Kinds)>,
    latencies: [Histogram; 4],
    names: Names,
    files: Cow<'a, Files>,
}

/// A life: its key and number, its cells, its process, and what it did.
struct ThreadRow {
    life: (ThreadKey, u64),
    cells: Vec<Cell>,
    process: (u16, Option<i32>),
    sums: Sums,
    kinds: Kinds,
}

impl Io {
    /// The answer so far.
    pub(super) fn report(&self, state: &State) -> Answer {
        let found = self.found(state);
        let by = &self.wishes.by;
        let wants = |name: &str| by.is_empty() || by.iter().any(|wanted| wanted == name);
        let mut tables = Vec::new();
        tables.extend(wants("thread").then(|| self.per_thread(&found)));
        tables.extend(wants("process").then(|| self.per_process(&found)));
        tables.extend(wants("file").then(|| self.per_file(&found)));
        tables.extend(wants("category").then(|| per_category(&found)));
        tables.extend(wants("disk").then(|| self.block.per_disk(&state.block)));
        tables.extend(wants("interface").then(|| self.per_interface(&state.totals)));
        tables.extend(wants("slowest").then(|| self.slowest(&found)));
        tables.extend(wants("distribution").then(|| {
            let mut all = Histogram::default();
            found.latencies.iter().for_each(|latencies| all.merge_from(latencies));
            distribution("How long operations took", &all, &self.wishes)
        }));
        let span_ns = crate::setup::span_ns(&self.settings.lanes);
        tables.iter_mut().for_each(|table| table.span_ns = span_ns);
        Answer { tables }
    }

    fn found<'a>(&self, state: &'a State) -> Found<'a> {
        let mut more = Totals::default();
        let mut names = Names::default();
        let mut threads: Vec<ThreadRow> = Vec::new();
        let mut latencies: [Histogram; 4] = Default::default();
        state.calls.finish(self, &mut more, |life| {
            names.add(&life);
            if wants(&self.wishes, &life) {
                if let Some(own) = &life.rows.latencies {
                    latencies.iter_mut().zip(own.iter()).for_each(|(all, own)| all.merge_from(own));
                }
                threads.push(thread_row(&life));
            }
        });
        for totals in [&state.totals, &more] {
            latencies.iter_mut().zip(&totals.latencies).for_each(|(all, more)| all.merge_from(more));
        }
        let log = state.totals.sorted_log(&more);
        let mut files = state.files.as_ref().map_or_else(|| Cow::Owned(Files::new(&self.limits)), Cow::Borrowed);
        if !log.is_empty() {
            files.to_mut().replay(&self.limits, log);
        }
        let places: BTreeMap<(ThreadKey, u64), usize> =
            threads.iter().enumerate().map(|(at, row)| (row.life, at)).collect();
        for (key, place, kinds) in files.kinds() {
            let number = names.incarnation(key, place).unwrap_or(0);
            if let Some(at) = places.get(&(key, number)) {
                threads[*at].kinds.add(kinds);
            }
        }
        let mut processes: BTreeMap<(u16, Option<i32>), (Sums, Kinds)> = BTreeMap::new();
        for row in &threads {
            let (sums, kinds) = processes.entry(row.process).or_default();
            sums.add(&row.sums);
            kinds.add(&row.kinds);
        }
        Found { threads: unknown_together(threads), processes, latencies, names, files }
    }

    /// A number of operations or bytes: where something was lost, there may be any number more.
    fn bounded(&self, value: u64) -> Bounded<u64> {
        let high = if self.settings.holes.is_empty() { value } else { u64::MAX };
        Bounded { value, low: value, high }
    }

    fn sum_cells(&self, sums: &Sums, kinds: Option<&Kinds>) -> Vec<Cell> {
        let mut cells: Vec<Cell> = [sums.read, sums.write].map(|bytes| Cell::Size(self.bounded(bytes))).into();
        if let Some(kinds) = kinds {
            for (all, [disk, net]) in [(sums.read, kinds.read), (sums.write, kinds.write)] {
                let unknown = all.saturating_sub(disk).saturating_sub(net);
                cells.extend([disk, net, unknown].map(|bytes| Cell::Size(self.bounded(bytes))));
            }
        }
        let counts = [sums.reads, sums.writes, sums.opens, sums.syncs, sums.errors];
        cells.extend(counts.map(|count| Cell::Count(self.bounded(count))));
        cells
    }

    fn per_thread(&self, found: &Found<'_>) -> Table {
        let mut columns = thread_columns();
        columns.extend(sum_columns(true));
        let mut table = Table::new("per-thread", "Input and output of threads", columns);
        table.plot = Some(Plot::Bars { value: 2 });
        let mut rows: Vec<&ThreadRow> = found.threads.iter().filter(|row| row.sums != Sums::default()).collect();
        rows.sort_by_key(|row| (rank(&row.sums), row.life));
        table.omitted = leave(&mut rows, self.wishes.top);
        for row in rows {
            let mut cells = row.cells.clone();
            cells.extend(self.sum_cells(&row.sums, Some(&row.kinds)));
            table.rows.push(cells);
        }
        table
    }

    fn per_process(&self, found: &Found<'_>) -> Table {
        let mut columns = vec![Column::new("process", "Process", Class::Process)];
        columns.extend(sum_columns(true));
        let mut table = Table::new("per-process", "Input and output of processes", columns);
        table.plot = Some(Plot::Bars { value: 1 });
        let mut rows: Vec<_> = found.processes.iter().filter(|(_, (sums, _))| *sums != Sums::default()).collect();
        rows.sort_by_key(|(process, (sums, _))| (rank(sums), **process));
        table.omitted = leave(&mut rows, self.wishes.top);
        for ((host, pid), (sums, kinds)) in rows {
            let mut cells = vec![found.names.process(*host, *pid)];
            cells.extend(self.sum_cells(sums, Some(kinds)));
            table.rows.push(cells);
        }
        table
    }

    fn per_file(&self, found: &Found<'_>) -> Table {
        let mut columns = file_columns();
        columns.extend(sum_columns(false));
        let mut table = Table::new("per-file", "Files", columns);
        table.plot = Some(Plot::Bars { value: 3 });
        let mut rows: Vec<(Vec<Cell>, String, &Sums)> = found
            .files
            .rows
            .iter()
            .filter(|(_, sums)| **sums != Sums::default())
            .map(|(file, sums)| (file_cells(found, *file), sort_key(found, *file), sums))
            .collect();
        rows.sort_by(|one, other| rank(one.2).cmp(&rank(other.2)).then_with(|| one.1.cmp(&other.1)));
        table.omitted = leave(&mut rows, self.wishes.top);
        for (mut cells, _, sums) in rows {
            cells.extend(self.sum_cells(sums, None));
            table.rows.push(cells);
        }
        table
    }

    fn per_interface(&self, totals: &Totals) -> Table {
        let columns = vec![
            Column::new("interface", "Interface", Class::NetworkInterface),
            Column::of("sent", "Sent", "packets"),
            Column::new("sent_bytes", "Sent bytes", Class::Size),
            Column::of("received", "Received", "packets"),
            Column::new("received_bytes", "Received bytes", Class::Size),
        ];
        let mut table = Table::new("per-interface", "Network interfaces", columns);
        table.plot = Some(Plot::Bars { value: 2 });
        for ((_, name), traffic) in &totals.interfaces {
            table.rows.push(vec![
                Cell::NetworkInterface(String::from_utf8_lossy(name).into_owned()),
                Cell::Count(self.bounded(traffic.sent)),
                Cell::Size(self.bounded(traffic.sent_bytes)),
                Cell::Count(self.bounded(traffic.received)),
                Cell::Size(self.bounded(traffic.received_bytes)),
            ]);
        }
        table
    }

    fn slowest(&self, found: &Found<'_>) -> Table {
        let mut columns =
            vec![Column::new("time", "Time", Class::TimeRange), Column::new("duration", "Duration", Class::Duration)];
        columns.extend(thread_columns());
        columns.push(Column::new("syscall", "System call", Class::Syscall));
        columns.extend(file_columns());
        columns.extend([Column::of("ret", "Result", "result")]);
        let mut table = Table::new("slowest", "Slowest operations", columns);
        table.plot = Some(Plot::Bars { value: 1 });
        for (ns, slow) in found.files.slow.sorted() {
            let thread = found.names.thread(slow.key, slow.slow.end);
            let name = if let Cell::Process { name, .. } = &thread { name.as_deref() } else { None };
            if !self.wishes.wants_name(name) {
                continue;
            }
            let mut cells = vec![
                Cell::TimeRange(Some(slow.slow.begin.time), Some(slow.slow.end.time)),
                Cell::Duration(Bounded::exact(ns)),
                thread,
                found.names.incarnation(slow.key, slow.slow.end).map_or(Cell::Empty, count),
                Cell::Syscall(self.names.name(slow.slow.call)),
            ];
            cells.extend(slow.file.map_or_else(|| vec![Cell::Empty; 3], |file| file_cells(found, file)));
            cells.push(slow.slow.ret.map_or(Cell::Empty, Cell::Integer));
            table.rows.push(cells);
        }
        table
    }
}

fn thread_row(life: &LifeView<super::IoRows>) -> ThreadRow {
    ThreadRow {
        life: (life.key, life.incarnation),
        cells: thread_cells(life),
        process: (life.key.host, life.pid),
        sums: life.rows.sums,
        kinds: Kinds::default(),
    }
}

/// Threads that nobody knows are one row.
fn unknown_together(threads: Vec<ThreadRow>) -> Vec<ThreadRow> {
    let (unknown, mut known): (Vec<ThreadRow>, Vec<ThreadRow>) =
        threads.into_iter().partition(|row| row.life.0.tid <= 0);
    let together = unknown.into_iter().reduce(|mut all, row| {
        all.sums.add(&row.sums);
        all.kinds.add(&row.kinds);
        all
    });
    known.extend(together);
    known
}

/// Most bytes first, then most operations.
fn rank(sums: &Sums) -> std::cmp::Reverse<(u64, u64)> {
    let operations = sums.reads + sums.writes + sums.opens + sums.syncs;
    std::cmp::Reverse((sums.read.saturating_add(sums.write), operations))
}

fn sum_columns(has_kinds: bool) -> Vec<Column> {
    let size = |(name, title)| Column::new(name, title, Class::Size);
    let mut columns: Vec<Column> = [("read", "Read"), ("write", "Written")].map(size).into();
    if has_kinds {
        let kinds = [
            ("read_disk", "Read: disk"),
            ("read_net", "Read: net"),
            ("read_unknown", "Read: other"),
            ("write_disk", "Written: disk"),
            ("write_net", "Written: net"),
            ("write_unknown", "Written: other"),
        ];
        columns.extend(kinds.map(size));
    }
    let counts =
        [("reads", "Reads"), ("writes", "Writes"), ("opens", "Opens"), ("syncs", "Syncs"), ("errors", "Errors")];
    columns.extend(counts.map(|(name, title)| Column::of(name, title, "operations")));
    columns
}

fn file_columns() -> Vec<Column> {
    vec![
        Column::new("path", "File", Class::Path),
        Column::new("fd", "FD", Class::Fd),
        Column::new("process", "Process", Class::Process),
    ]
}

fn file_cells(found: &Found<'_>, file: FileKey) -> Vec<Cell> {
    match file {
        FileKey::Named(name) => {
            let path = found.files.names.text(name).map_or(Cell::Unknown, |path| Cell::Path(path.into_owned()));
            vec![path, Cell::Empty, Cell::Empty]
        }
        FileKey::Fd(owner, fd) => {
            let owner = match owner {
                Owner::Process(host, pid) => found.names.process(host, Some(pid)),
                Owner::Thread(key) => found.names.last(key),
            };
            vec![Cell::Empty, Cell::Fd(i64::from(fd)), owner]
        }
        FileKey::None => vec![Cell::Unknown, Cell::Empty, Cell::Empty],
    }
}

/// Numbers of names depend on nothing but the trace, but names are easier to look at.
fn sort_key(found: &Found<'_>, file: FileKey) -> String {
    match file {
        FileKey::Named(name) => format!("0{}", found.files.names.text(name).unwrap_or_default()),
        other => format!("1{other:?}"),
    }
}

fn per_category(found: &Found<'_>) -> Table {
    let mut all = vec![Column::new("category", "Category", Class::Text)];
    all.extend(columns());
    all.extend(percentile_columns());
    let mut table = Table::new("per-category", "Latency of operations", all);
    table.plot = Some(Plot::Bars { value: 2 });
    for (category, latencies) in Category::ALL.iter().zip(&found.latencies).filter(|row| !row.1.is_empty()) {
        let mut row = vec![Cell::Text(category.name().to_owned())];
        row.extend(cells(latencies));
        row.extend(percentile_cells(latencies));
        table.rows.push(row);
    }
    table
}
