//! Threads, processes and figures as cells of tables.

use super::Figures;
use crate::answer::{Bounded, Cell, Class, Column};
use crate::threads::ThreadKey;
use crate::{Comm, Histogram};

/// Columns of a thread.
#[must_use]
pub fn thread_columns() -> Vec<Column> {
    vec![Column::new("thread", "Thread", Class::Process), Column::of("incarnation", "Life", "lives")]
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
    let titles = [("total", "Total"), ("min", "Min"), ("avg", "Average"), ("max", "Max"), ("stdev", "Deviation")];
    titles.into_iter().map(|(name, title)| Column::new(name, title, Class::Duration)).collect()
}

/// Cells of figures of durations.
#[must_use]
pub fn figure_cells(figures: &Figures) -> Vec<Cell> {
    let duration = |value: Option<u64>| value.map_or(Cell::Empty, |value| Cell::Duration(Bounded::exact(value)));
    let cells = [Some(figures.total), figures.min(), figures.mean(), figures.max(), figures.deviation()];
    cells.map(duration).into()
}

/// Columns of percentiles.
#[must_use]
pub fn percentile_columns() -> Vec<Column> {
    let titles = [("p50", "50 %"), ("p90", "90 %"), ("p99", "99 %"), ("p999", "99.9 %")];
    titles.into_iter().map(|(name, title)| Column::new(name, title, Class::Duration)).collect()
}

/// Cells of percentiles: the estimates alone, as their error is known.
#[must_use]
pub fn percentile_cells(histogram: &Histogram) -> Vec<Cell> {
    let cell =
        |value: Option<Bounded<u64>>| value.map_or(Cell::Empty, |found| Cell::Duration(Bounded::exact(found.value)));
    histogram.quantiles([0.5, 0.9, 0.99, 0.999]).map(cell).into()
}

/// A count that is certain.
#[must_use]
pub fn count(value: u64) -> Cell {
    Cell::Count(Bounded::exact(value))
}
