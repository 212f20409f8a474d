//! The tables of requests: by opcode, by thread and opcode, errors, the slowest ones.

use std::collections::BTreeMap;

use super::opcodes::UringEffect;
use super::sums::{SlowUringRequest, UringLife, UringMoves, UringOwner, UringRow, UringSums};
use super::{Opcode, Uring};
use crate::answer::{Bounded, Cell, CellClass, Column, ERRNO, Plot, RESULT, Table};
use crate::calls::report::{count, life_cells, thread_columns};
use crate::hosts::HostNames;
use crate::statistics::{cells, columns, leave, percentile_cells, percentile_columns};
use crate::{Histogram, Merge};

/// Everything that is known when the trace is over.
#[derive(Debug)]
pub(crate) struct UringFindings {
    /// Those that are asked for.
    pub(crate) lives: BTreeMap<UringOwner, UringLife>,
    /// The slowest first.
    pub(crate) slow: Vec<SlowUringRequest>,
    loose: u64,
}

impl UringFindings {
    pub(super) fn new(uring: &Uring, sums: UringSums) -> Self {
        let UringSums { mut lives, slow, loose } = sums;
        lives.retain(|owner, life| uring.wishes.wants_thread(owner.0.tid, || life.comm.text()));
        let mut slow: Vec<SlowUringRequest> = slow.sorted().into_iter().map(|(_, slow)| *slow).collect();
        slow.retain(|slow| lives.contains_key(&slow.owner));
        slow.truncate(uring.slow);
        Self { lives, slow, loose }
    }

    /// Bytes and requests of each life, by opcode category.
    pub(crate) fn moves(&self) -> impl Iterator<Item = (&UringOwner, &UringLife, UringEffect, UringMoves)> {
        self.lives.iter().flat_map(|(owner, life)| {
            life.rows.iter().map(move |(opcode, row)| (owner, life, UringEffect::of(*opcode), row.moved))
        })
    }

    /// How long requests took, by what they do.
    pub(crate) fn latencies(&self) -> impl Iterator<Item = (UringEffect, &Histogram)> {
        let rows = self.lives.values().flat_map(|life| &life.rows);
        rows.map(|(opcode, row)| (UringEffect::of(*opcode), &row.latencies))
    }

    /// Cells of the thread that owns a request.
    pub(crate) fn owner(&self, owner: &UringOwner) -> Vec<Cell> {
        let (comm, pid) = self.lives.get(owner).map_or_else(Default::default, |life| (life.comm, life.pid));
        life_cells(owner.0, u64::from(owner.1), comm, pid)
    }

    /// All tables.
    pub(crate) fn tables(&self, uring: &Uring) -> Vec<Table> {
        vec![self.per_opcode(uring), self.per_thread(uring), self.errors(uring), self.slowest(uring)]
    }

    /// The requests of each opcode.
    pub(crate) fn per_opcode(&self, uring: &Uring) -> Table {
        let mut opcodes: BTreeMap<Opcode, UringRow> = BTreeMap::new();
        for (opcode, row) in self.lives.values().flat_map(|life| &life.rows) {
            opcodes.entry(*opcode).or_default().merge_from(row);
        }
        if self.loose > 0 {
            opcodes.entry(Opcode::default()).or_default();
        }
        let mut columns = vec![Column::new("opcode", "Request", CellClass::Text)];
        columns.extend(row_columns(true));
        columns.push(Column::of("loose", "Without request", "results").rest());
        let mut table = Table::new("uring", "Requests of io_uring", columns);
        table.plot = Some(Plot::Bars { value: 3 });
        let mut rows: Vec<(Opcode, UringRow)> = opcodes.into_iter().collect();
        rows.sort_by(|one, other| {
            other.1.latencies.sum().cmp(&one.1.latencies.sum()).then_with(|| text(one.0).cmp(&text(other.0)))
        });
        table.omitted = leave(&mut rows, uring.wishes.top);
        for (opcode, row) in rows {
            let mut cells = vec![opcode_cell(opcode)];
            cells.extend(row_cells(&row, true));
            cells.push(count(if opcode.is_empty() { self.loose } else { 0 }));
            table.rows.push(cells);
        }
        table
    }

    fn per_thread(&self, uring: &Uring) -> Table {
        let mut columns = thread_columns();
        columns.push(Column::new("opcode", "Request", CellClass::Text));
        columns.extend(row_columns(false));
        let mut table = Table::new("uring-threads", "Requests of io_uring of threads", columns);
        table.plot = Some(Plot::Bars { value: 5 });
        let rows = self.lives.iter().flat_map(|(owner, life)| life.rows.iter().map(move |row| (owner, row)));
        let mut rows: Vec<(&UringOwner, (&Opcode, &UringRow))> = rows.collect();
        rows.sort_by(|(owner, (opcode, row)), (others, (other, more))| {
            let by_time = more.latencies.sum().cmp(&row.latencies.sum());
            by_time.then_with(|| owner.cmp(others)).then_with(|| text(**opcode).cmp(&text(**other)))
        });
        table.omitted = leave(&mut rows, uring.wishes.top);
        for (owner, (opcode, row)) in &rows {
            let mut cells = self.owner(owner);
            cells.push(opcode_cell(**opcode));
            cells.extend(row_cells(row, false));
            table.rows.push(cells);
        }
        HostNames::new(&uring.lanes).put(&mut table, rows.iter().map(|row| row.0.0.host));
        table
    }

    fn errors(&self, uring: &Uring) -> Table {
        let columns = vec![
            Column::new("opcode", "Request", CellClass::Text),
            Column::of("errno", "Error", ERRNO),
            Column::of("count", "Requests", "requests"),
        ];
        let mut table = Table::new("uring-errors", "Errors of requests of io_uring", columns);
        table.plot = Some(Plot::Bars { value: 2 });
        let mut errors: BTreeMap<(Opcode, u16), u64> = BTreeMap::new();
        for (error, times) in self.lives.values().flat_map(|life| &life.errors) {
            *errors.entry(*error).or_default() += times;
        }
        let mut rows: Vec<((Opcode, u16), u64)> = errors.into_iter().collect();
        rows.sort_by(|((opcode, errno), times), ((other, number), more)| {
            more.cmp(times).then_with(|| text(*opcode).cmp(&text(*other))).then(errno.cmp(number))
        });
        table.omitted = leave(&mut rows, uring.wishes.top);
        for ((opcode, errno), times) in rows {
            table.rows.push(vec![opcode_cell(opcode), Cell::Integer(i64::from(errno)), count(times)]);
        }
        table
    }

    fn slowest(&self, uring: &Uring) -> Table {
        let mut columns = vec![
            Column::new("time", "Time", CellClass::TimeRange),
            Column::new("duration", "Duration", CellClass::Duration),
        ];
        columns.extend(thread_columns());
        columns.extend([
            Column::new("opcode", "Request", CellClass::Text),
            Column::of("ret", "Result", RESULT),
            Column::new("handed_over", "Handed over", CellClass::Flag).detail(),
            Column::new("worker_wait", "Waited for worker", CellClass::Duration),
            Column::of("blocks", "Disk requests", "requests"),
            Column::new("request", "Address", CellClass::Number).detail(),
            Column::new("user_data", "User data", CellClass::Number).detail(),
        ]);
        let mut table = Table::new("uring-slowest", "Slowest requests of io_uring", columns);
        table.plot = Some(Plot::Bars { value: 1 });
        for slow in &self.slow {
            let mut cells = vec![Cell::TimeRange(Some(slow.begin), Some(slow.end)), slow.duration()];
            cells.extend(self.owner(&slow.owner));
            cells.extend([
                opcode_cell(slow.opcode),
                Cell::Integer(slow.result),
                Cell::Flag(slow.is_handed_over),
                slow.wait_ns.map_or(Cell::Empty, |wait| Cell::Duration(Bounded::exact(wait))),
                count(slow.blocks),
                Cell::Based(slow.request, 16),
                Cell::Integer(slow.user_data),
            ]);
            table.rows.push(cells);
        }
        HostNames::new(&uring.lanes).put(&mut table, self.slow.iter().map(|slow| slow.owner.0.host));
        table
    }
}

impl SlowUringRequest {
    /// How long it took.
    pub(crate) fn duration(&self) -> Cell {
        Cell::Duration(Bounded::exact(self.begin.abs_diff(self.end)))
    }
}

/// The name of an opcode, if it is known.
pub(crate) fn opcode_cell(opcode: Opcode) -> Cell {
    opcode.text().map_or(Cell::Empty, Cell::Text)
}

fn row_columns(has_percentiles: bool) -> Vec<Column> {
    let durations = columns();
    let mut all = vec![Column::of("count", "Requests", "requests"), Column::of("errors", "Errors", "errors")];
    all.extend(durations.into_iter().skip(1));
    if has_percentiles {
        all.extend(percentile_columns());
    }
    all.extend([
        Column::new("read", "Read", CellClass::Size),
        Column::new("write", "Written", CellClass::Size),
        Column::of("handovers", "Handed over", "requests"),
        Column::of("waits", "Waits for worker", "requests").detail(),
        Column::new("worker_wait", "Waited for worker", CellClass::Duration),
        Column::new("worker_wait_max", "Longest wait", CellClass::Duration).detail(),
        Column::of("blocks", "Disk requests", "requests"),
        Column::of("more", "Further results", "results").rest(),
        Column::of("began_before", "Began before", "requests").rest(),
        Column::of("never_ended", "Never ended", "requests").rest(),
        Column::of("silent", "Silent", "requests").rest(),
        Column::of("lost_inside", "Lost inside", "requests").rest(),
    ]);
    all
}

fn row_cells(row: &UringRow, has_percentiles: bool) -> Vec<Cell> {
    let durations = cells(&row.latencies);
    let mut all = vec![durations[0].clone(), count(row.errors)];
    all.extend(durations.into_iter().skip(1));
    if has_percentiles {
        all.extend(percentile_cells(&row.latencies));
    }
    all.extend([row.moved.read, row.moved.write].map(|bytes| Cell::Size(Bounded::exact(bytes))));
    all.extend([count(row.handovers), count(row.waits)]);
    all.extend([row.wait_ns, row.wait_ns_max].map(|wait| match row.waits {
        0 => Cell::Empty,
        _ => Cell::Duration(Bounded::exact(wait)),
    }));
    all.extend([row.blocks, row.more, row.began_before, row.never_ended, row.silent, row.lost_inside].map(count));
    all
}

/// Opcodes in the order of the alphabet.
fn text(opcode: Opcode) -> [u8; 16] {
    opcode.bytes()
}
