//! The tables of `io`.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::file::{FdOwner, FileKey};
use super::files::Files;
use super::log;
use super::ops::Category;
use super::over::SlowUse;
use super::requests::{self, MovedRow};
use super::rows::IoTotals;
use super::sums::{BytesByKind, IoSums};
use super::{Io, IoState};
use crate::answer::{Answer, Bounded, Cell, CellClass, Column, Plot, RESULT, Table};
use crate::calls::report::{life_cells, thread_columns};
use crate::calls::{Bases, LifeNumbering, ThreadLife};
use crate::headline::{Headline, HeadlineTables};
use crate::hosts::HostNames;
use crate::statistics::{cells, columns, distribution, leave, percentile_cells, percentile_columns};
use crate::threads::ThreadKey;
use crate::uring::UringFindings;
use crate::{Histogram, Merge};

/// A thread's machine and cells, and its sums.
type ThreadRow = (Option<u16>, Vec<Cell>, IoSums, BytesByKind);

/// Everything that is known.
struct IoFindings<'a> {
    /// Most bytes first.
    threads: Vec<ThreadRow>,
    /// Rows of threads that others rank above.
    dropped: u64,
    processes: BTreeMap<(u16, Option<i32>), (IoSums, BytesByKind)>,
    latencies: [Histogram; 4],
    /// The slowest first.
    slow: Vec<(&'a SlowUse, Vec<Cell>)>,
    last: HashMap<ThreadKey, ThreadLife>,
    files: Files,
    uring: UringFindings,
}

impl Io {
    /// The answer so far.
    pub(super) fn report(&self, state: &IoState) -> Answer {
        let mut more = IoTotals::new(&self.kept);
        let bases = state.calls.finish(self, &mut more);
        let files = self.files(state, &mut more, &bases);
        let found = self.found(state, &more, &bases, files);
        let uring = &found.uring;
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
        tables.extend(wants("uring").then(|| uring.per_opcode(&self.uring)));
        let span_ns = crate::setup::span_ns(&self.settings.lanes);
        tables.iter_mut().for_each(|table| table.span_ns = span_ns);
        Answer { tables }
    }

    /// The thread that read and wrote most, and the slowest operation.
    pub(super) fn headline(tables: &HeadlineTables<'_>) -> Headline {
        const BOTH: &[&str] = &["read", "write"];
        const MOST: [(&str, &[&str], &str); 4] = [
            ("per-thread", BOTH, "Thread {thread} moved most: {read} read, {write} written"),
            ("per-process", BOTH, "Process {process} moved most: {read} read, {write} written"),
            ("per-file", BOTH, "Most was moved in file {path}: {read} read, {write} written"),
            ("per-disk", &["bytes"], "Disk {device} moved most: {bytes+}"),
        ];
        let mut headline = Headline::default();
        let most = |&(class, columns, sentence)| Some((tables.greatest(&[class], columns)?, sentence));
        let most = MOST.iter().find_map(most);
        if let Some((row, sentence)) = most.filter(|(row, _)| row.is_known()) {
            headline.say(&row, sentence);
        }
        if let Some(slow) = tables.most("slowest", "duration") {
            headline.say(
                &slow,
                match slow.has("path") {
                    true => "The slowest operation took {duration+}: {syscall} of {thread} in {path}",
                    false => "The slowest operation took {duration+}: {syscall} of {thread}",
                },
            );
        }
        headline
    }

    /// What fds were when the trace was over.
    fn files(&self, state: &IoState, more: &mut IoTotals, bases: &Bases) -> Files {
        let mut files = state.files.as_ref().map_or_else(|| Files::new(state.rows.clone()), Files::clone);
        let numbers = log::Renumbered { bases: bases.clone(), names: None };
        for logged in state.totals.log.sorted(&more.log, &numbers) {
            files.replay(&self.limits, &mut more.over, logged);
        }
        files
    }

    fn found<'a>(&self, state: &'a IoState, more: &'a IoTotals, bases: &Bases, files: Files) -> IoFindings<'a> {
        let numbers = LifeNumbering { bases, firsts: &more.over.firsts };
        let both = [(&state.totals, true), (more, false)];
        let mut latencies: [Histogram; 4] = Default::default();
        let mut processes: BTreeMap<(u16, Option<i32>), (IoSums, BytesByKind)> = BTreeMap::new();
        for (totals, _) in both {
            latencies.iter_mut().zip(&totals.latencies).for_each(|(all, more)| all.merge_from(more));
            for (process, (sums, kinds)) in &totals.over.processes {
                let (all, all_kinds) = processes.entry(*process).or_default();
                all.add(sums);
                all_kinds.add(kinds);
            }
        }
        let mut last = state.totals.over.last.clone();
        last.values_mut().for_each(|who| who.rebase(bases));
        for (key, who) in &more.over.last {
            let known = last.entry(*key).or_insert(*who);
            if known.number <= who.number {
                *known = *who;
            }
        }
        let uring = self.uring.finish(&state.uring);
        let moved = requests::moved(&uring);
        moved.iter().for_each(|row| {
            let pid = row.who.pid;
            processes.entry((row.who.key.host, pid)).or_default().0.add(&row.sums);
        });
        requests::add_latencies(&uring, &mut latencies);
        let (threads, dropped) = self.threads(both, &numbers, &moved);
        let slow = self.slow(both, &numbers);
        IoFindings { threads, dropped, processes, latencies, slow, last, files, uring }
    }

    /// Rows of threads, and how many others there are.
    fn threads(
        &self,
        both: [(&IoTotals, bool); 2],
        numbers: &LifeNumbering<'_>,
        moved: &[MovedRow],
    ) -> (Vec<ThreadRow>, u64) {
        let mut unknown: (IoSums, BytesByKind) = Default::default();
        let mut rows: Vec<_> = Vec::new();
        let mut count = 0;
        for (totals, is_early) in both {
            unknown.0.add(&totals.over.unknown.0);
            unknown.1.add(&totals.over.unknown.1);
            count += totals.over.threads.count();
            rows.extend(totals.over.threads.sorted().into_iter().map(|(_, row)| {
                let id = Some((row.who.key, numbers.incarnation(&row.who, is_early)));
                (rank(&row.sums), id, Some(&row.who), row.sums, row.kinds)
            }));
        }
        let mut moved: BTreeMap<(ThreadKey, u64), &MovedRow> = moved.iter().map(|row| (row.id(), row)).collect();
        for (rank_of, id, _, sums, _) in &mut rows {
            if let Some(row) = id.and_then(|id| moved.remove(&id)) {
                sums.add(&row.sums);
                *rank_of = rank(sums);
            }
        }
        for (id, row) in moved {
            if id.0.tid <= 0 {
                unknown.0.add(&row.sums);
                continue;
            }
            count += 1;
            rows.push((rank(&row.sums), Some(id), Some(&row.who), row.sums, BytesByKind::default()));
        }
        if unknown.0 != IoSums::default() {
            count += 1;
            rows.push((rank(&unknown.0), None, None, unknown.0, unknown.1));
        }
        rows.sort_unstable_by_key(|row| (row.0, row.1));
        leave(&mut rows, self.wishes.top);
        let dropped = count - rows.len() as u64;
        let cells = |who: Option<&ThreadLife>, id: Option<(ThreadKey, u64)>| match who.zip(id) {
            Some((who, (key, incarnation))) => life_cells(key, incarnation, who.comm, who.pid),
            None => vec![Cell::Unknown, Cell::Empty],
        };
        let host = |id: Option<(ThreadKey, u64)>| id.map(|(key, _)| key.host);
        (rows.into_iter().map(|(_, id, who, sums, kinds)| (host(id), cells(who, id), sums, kinds)).collect(), dropped)
    }

    fn slow<'a>(&self, both: [(&'a IoTotals, bool); 2], numbers: &LifeNumbering<'_>) -> Vec<(&'a SlowUse, Vec<Cell>)> {
        let mut slow: Vec<(&SlowUse, Vec<Cell>)> = Vec::new();
        for (totals, is_early) in both {
            let rows = totals.over.slow.sorted().into_iter();
            slow.extend(rows.map(|(_, slow)| (slow, numbers.cells(&slow.who, is_early))));
        }
        slow.sort_by(|one, other| other.0.slow.ns.cmp(&one.0.slow.ns).then_with(|| one.0.cmp(other.0)));
        slow.truncate(self.limits.slow);
        slow
    }

    /// A number of operations or bytes: where something was lost, there may be any number more.
    fn bounded(&self, value: u64) -> Bounded<u64> {
        let high = if self.settings.holes.is_empty() { value } else { u64::MAX };
        Bounded { value, low: value, high }
    }

    fn sum_cells(&self, sums: &IoSums, kinds: Option<&BytesByKind>) -> Vec<Cell> {
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

    fn per_thread(&self, found: &IoFindings<'_>) -> Table {
        let mut columns = thread_columns();
        columns.extend(sum_columns(true));
        let mut table = Table::new("per-thread", "Input and output of threads", columns);
        table.plot = Some(Plot::Sums { values: [2, 3] });
        table.omitted = found.dropped;
        for (_, thread, sums, kinds) in &found.threads {
            let mut cells = thread.clone();
            cells.extend(self.sum_cells(sums, Some(kinds)));
            table.rows.push(cells);
        }
        HostNames::new(&self.settings.lanes).put(&mut table, found.threads.iter().map(|row| row.0));
        table
    }

    fn per_process(&self, found: &IoFindings<'_>) -> Table {
        let mut columns = vec![Column::new("process", "Process", CellClass::Process)];
        columns.extend(sum_columns(true));
        let mut table = Table::new("per-process", "Input and output of processes", columns);
        table.plot = Some(Plot::Sums { values: [1, 2] });
        let mut rows: Vec<_> = found.processes.iter().filter(|(_, (sums, _))| *sums != IoSums::default()).collect();
        rows.sort_by_key(|(process, (sums, _))| (rank(sums), **process));
        table.omitted = leave(&mut rows, self.wishes.top);
        let hosts: Vec<u16> = rows.iter().map(|((host, _), _)| *host).collect();
        for ((host, pid), (sums, kinds)) in rows {
            let mut cells = vec![found.process(*host, *pid)];
            cells.extend(self.sum_cells(sums, Some(kinds)));
            table.rows.push(cells);
        }
        HostNames::new(&self.settings.lanes).put(&mut table, hosts);
        table
    }

    fn per_file(&self, found: &IoFindings<'_>) -> Table {
        let mut columns = file_columns();
        columns.extend(sum_columns(false));
        let mut table = Table::new("per-file", "Files", columns);
        table.plot = Some(Plot::Sums { values: [3, 4] });
        let mut rows: Vec<(FileKey, String, &IoSums)> =
            found.files.rows.all().map(|(file, sums)| (file, sort_key(found, file), sums)).collect();
        rows.sort_by(|one, other| rank(one.2).cmp(&rank(other.2)).then_with(|| one.1.cmp(&other.1)));
        table.omitted = leave(&mut rows, self.wishes.top);
        let hosts: Vec<Option<u16>> = rows.iter().map(|row| file_host(row.0)).collect();
        for (file, _, sums) in rows {
            let mut cells = file_cells(found, file);
            cells.extend(self.sum_cells(sums, None));
            table.rows.push(cells);
        }
        HostNames::new(&self.settings.lanes).put(&mut table, hosts);
        table
    }

    fn per_interface(&self, totals: &IoTotals) -> Table {
        let columns = vec![
            Column::new("interface", "Interface", CellClass::NetworkInterface),
            Column::of("sent", "Sent", "packets").detail(),
            Column::new("sent_bytes", "Sent bytes", CellClass::Size),
            Column::of("received", "Received", "packets").detail(),
            Column::new("received_bytes", "Received bytes", CellClass::Size),
        ];
        let mut table = Table::new("per-interface", "Network interfaces", columns);
        table.plot = Some(Plot::Sums { values: [2, 4] });
        for ((_, name), traffic) in &totals.interfaces {
            table.rows.push(vec![
                Cell::NetworkInterface(String::from_utf8_lossy(name).into_owned()),
                Cell::Count(self.bounded(traffic.sent)),
                Cell::Size(self.bounded(traffic.sent_bytes)),
                Cell::Count(self.bounded(traffic.received)),
                Cell::Size(self.bounded(traffic.received_bytes)),
            ]);
        }
        HostNames::new(&self.settings.lanes).put(&mut table, totals.interfaces.keys().map(|(host, _)| *host));
        table
    }

    fn slowest(&self, found: &IoFindings<'_>) -> Table {
        let mut columns = vec![
            Column::new("time", "Time", CellClass::TimeRange),
            Column::new("duration", "Duration", CellClass::Duration),
        ];
        columns.extend(thread_columns());
        columns.push(Column::new("syscall", "System call", CellClass::Syscall));
        columns.extend(file_columns());
        columns.extend([Column::of("ret", "Result", RESULT)]);
        let mut table = Table::new("slowest", "Slowest operations", columns);
        table.plot = Some(Plot::Bars { value: 1 });
        let mut rows: Vec<(u64, u16, Vec<Cell>)> = Vec::new();
        for (SlowUse { slow, file, who }, thread) in &found.slow {
            let mut cells = vec![
                Cell::TimeRange(Some(slow.begin.time), Some(slow.end.time)),
                Cell::Duration(Bounded::exact(slow.ns)),
            ];
            cells.extend_from_slice(thread);
            cells.push(Cell::Syscall(self.names.name(slow.call)));
            cells.extend(file.map_or_else(|| vec![Cell::Empty; 3], |file| file_cells(found, file)));
            cells.push(slow.ret.map_or(Cell::Empty, Cell::Integer));
            rows.push((slow.ns, who.key.host, cells));
        }
        rows.extend(found.uring.slow.iter().map(|slow| requests::slow_row(&found.uring, slow)));
        rows.sort_by_key(|row| std::cmp::Reverse(row.0));
        rows.truncate(self.limits.slow);
        let hosts: Vec<u16> = rows.iter().map(|row| row.1).collect();
        table.rows = rows.into_iter().map(|row| row.2).collect();
        HostNames::new(&self.settings.lanes).put(&mut table, hosts);
        table
    }
}

impl IoFindings<'_> {
    /// A process: its name is that of the last life of the thread with its number.
    fn process(&self, host: u16, pid: Option<i32>) -> Cell {
        let Some(pid) = pid else { return Cell::Unknown };
        let name = self.last.get(&ThreadKey { host, tid: pid }).and_then(|who| who.comm.text());
        Cell::Process { name, pid: Some(i64::from(pid)), tid: None }
    }

    /// The last life of a thread.
    fn thread(&self, key: ThreadKey) -> Cell {
        if key.tid <= 0 {
            return Cell::Unknown;
        }
        let who = self.last.get(&key);
        let (name, pid) = (who.and_then(|who| who.comm.text()), who.and_then(|who| who.pid));
        Cell::Process { name, pid: pid.map(i64::from), tid: Some(i64::from(key.tid)) }
    }
}

/// Most bytes first, then most operations.
fn rank(sums: &IoSums) -> std::cmp::Reverse<(u64, u64)> {
    std::cmp::Reverse((sums.bytes(), sums.operations()))
}

fn sum_columns(has_kinds: bool) -> Vec<Column> {
    let size = |(name, title)| Column::new(name, title, CellClass::Size);
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
        columns.extend(kinds.map(size).map(Column::detail));
    }
    let count = |(name, title)| Column::of(name, title, "operations");
    columns.extend([("reads", "Reads"), ("writes", "Writes")].map(count));
    columns.extend([("opens", "Opens"), ("syncs", "Syncs"), ("errors", "Errors")].map(count).map(Column::detail));
    columns
}

fn file_columns() -> Vec<Column> {
    vec![
        Column::new("path", "File", CellClass::Path),
        Column::new("fd", "FD", CellClass::Fd),
        Column::new("process", "Process", CellClass::Process),
    ]
}

fn file_cells(found: &IoFindings<'_>, file: FileKey) -> Vec<Cell> {
    match file {
        FileKey::Named(name) => {
            let path = found.files.rows.names.text(name).map_or(Cell::Unknown, |path| Cell::Path(path.into_owned()));
            vec![path, Cell::Empty, Cell::Empty]
        }
        FileKey::Fd(owner, fd) => {
            let owner = match owner {
                FdOwner::Process(host, pid) => found.process(host, Some(pid)),
                FdOwner::Thread(key) => found.thread(key),
            };
            vec![Cell::Empty, Cell::Fd(i64::from(fd)), owner]
        }
        FileKey::None => vec![Cell::Unknown, Cell::Empty, Cell::Empty],
    }
}

/// The machine of a file that has no path; files of one path are counted together.
fn file_host(file: FileKey) -> Option<u16> {
    match file {
        FileKey::Fd(FdOwner::Process(host, _), _) => Some(host),
        FileKey::Fd(FdOwner::Thread(key), _) => Some(key.host),
        FileKey::Named(_) | FileKey::None => None,
    }
}

/// Numbers of names depend on nothing but the trace, but names are easier to look at.
fn sort_key(found: &IoFindings<'_>, file: FileKey) -> String {
    match file {
        FileKey::Named(name) => format!("0{}", found.files.rows.names.text(name).unwrap_or_default()),
        other => format!("1{other:?}"),
    }
}

fn per_category(found: &IoFindings<'_>) -> Table {
    let mut all = vec![Column::new("category", "Category", CellClass::Text)];
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
