//! Threads, processes and figures as cells of tables.

use std::collections::BTreeMap;

use super::{Figures, LifeView};
use crate::answer::{Bounded, Cell, Class, Column};
use crate::threads::ThreadKey;
use crate::{Histogram, Wishes};

/// Columns of a thread.
#[must_use]
pub fn thread_columns() -> Vec<Column> {
    vec![Column::new("thread", "Thread", Class::Process), Column::of("incarnation", "Life", "lives")]
}

/// Names of threads and processes, for rows that come one by one.
#[derive(Debug, Default)]
pub struct Names {
    /// For each thread its lives: since when, what it is called, and its process.
    lives: BTreeMap<ThreadKey, Vec<Named>>,
}

#[derive(Debug)]
struct Named {
    since: Option<super::Place>,
    comm: Option<String>,
    pid: Option<i32>,
    incarnation: u64,
}

impl Names {
    /// Keeps the names of a life; lives of a thread come in their order.
    pub fn add<R>(&mut self, life: &LifeView<R>) {
        if life.key.tid > 0 {
            let LifeView { since, ref comm, pid, incarnation, .. } = *life;
            self.lives.entry(life.key).or_default().push(Named { since, comm: comm.clone(), pid, incarnation });
        }
    }

    fn at(&self, key: ThreadKey, place: super::Place) -> Option<&Named> {
        let lives = self.lives.get(&key)?;
        let behind = lives.partition_point(|life| life.since.is_none_or(|since| since <= place));
        lives.get(behind.saturating_sub(1))
    }

    /// The thread that did something at a place.
    #[must_use]
    pub fn thread(&self, key: ThreadKey, place: super::Place) -> Cell {
        let named = self.at(key, place);
        if key.tid <= 0 {
            return Cell::Unknown;
        }
        let (name, pid) = named.map_or((None, None), |named| (named.comm.clone(), named.pid));
        Cell::Process { name, pid: pid.map(i64::from), tid: Some(i64::from(key.tid)) }
    }

    /// The last life of a thread.
    #[must_use]
    pub fn last(&self, key: ThreadKey) -> Cell {
        self.thread(key, super::Place { time: i64::MAX, lane: u32::MAX, nth: u32::MAX })
    }

    /// A process: its name is that of the last life of the thread with its number.
    #[must_use]
    pub fn process(&self, host: u16, pid: Option<i32>) -> Cell {
        let Some(pid) = pid else { return Cell::Unknown };
        let name = self.lives.get(&ThreadKey { host, tid: pid }).and_then(|lives| lives.last()?.comm.clone());
        Cell::Process { name, pid: Some(i64::from(pid)), tid: None }
    }

    /// Which life of its thread did something at a place.
    #[must_use]
    pub fn incarnation(&self, key: ThreadKey, place: super::Place) -> Option<u64> {
        self.at(key, place).map(|named| named.incarnation)
    }
}

/// Cells of a life.
#[must_use]
pub fn thread_cells<R>(life: &LifeView<R>) -> Vec<Cell> {
    if life.key.tid <= 0 {
        return vec![Cell::Unknown, Cell::Empty];
    }
    let (pid, tid) = (life.pid.map(i64::from), Some(i64::from(life.key.tid)));
    let thread = Cell::Process { name: life.comm.clone(), pid, tid };
    vec![thread, Cell::Count(Bounded::exact(life.incarnation))]
}

/// Whether somebody wants to know of a thread.
#[must_use]
pub fn wants<R>(wishes: &Wishes, life: &LifeView<R>) -> bool {
    wishes.wants_thread(life.key.tid, || life.comm.clone())
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
