//! Threads, processes and figures as cells of tables.

use super::Figures;
use crate::answer::{Bounded, Cell, CellClass, Column};
use crate::threads::ThreadKey;
use crate::{Comm, statistics};

/// Columns of a thread.
#[must_use]
pub fn thread_columns() -> Vec<Column> {
    vec![Column::new("thread", "Thread", CellClass::Process), Column::of("incarnation", "Life", "lives").rest()]
}

/// Cells of a life.
#[must_use]
pub fn life_cells(key: ThreadKey, incarnation: u64, comm: Comm, pid: Option<i32>) -> Vec<Cell> {
    if key.tid <= 0 {
        return vec![Cell::Unknown, Cell::Empty];
    }
    let (pid, tid) = (pid.map(i64::from), Some(i64::from(key.tid)));
    let thread = Cell::Process { name: comm.text(), pid, tid };
    vec![thread, Cell::Count(Bounded::exact(incarnation))]
}

/// Columns of figures of durations.
#[must_use]
pub fn figure_columns() -> Vec<Column> {
    // How many there are has a column of its own.
    statistics::columns().split_off(1)
}

/// Cells of figures of durations.
#[must_use]
pub fn figure_cells(figures: &Figures) -> Vec<Cell> {
    let duration = |value: Option<u64>| value.map_or(Cell::Empty, |value| Cell::Duration(Bounded::exact(value)));
    let cells = [Some(figures.total), figures.min(), figures.mean(), figures.max(), figures.deviation()];
    cells.map(duration).into()
}

/// A count that is certain.
#[must_use]
pub fn count(value: u64) -> Cell {
    Cell::Count(Bounded::exact(value))
}
