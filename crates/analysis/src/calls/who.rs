//! The owner of rows, where lives of threads are numbered before all are known.

use hashbrown::HashSet;
use serde::{Deserialize, Serialize};

use super::Bases;
use super::report::life_cells;
use crate::Comm;
use crate::answer::Cell;
use crate::threads::ThreadKey;

/// A life of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadLife {
    /// The thread.
    pub key: ThreadKey,
    /// See [`LifeView::number`](super::LifeView::number).
    pub number: u32,
    /// Its name.
    pub comm: Comm,
    /// Its process, if known.
    pub pid: Option<i32>,
}

impl ThreadLife {
    /// Counts its number on from others.
    pub fn rebase(&mut self, bases: &Bases) {
        self.number += bases.get(&self.key).copied().unwrap_or(0);
    }
}

/// The meaning of the lives' numbers when the trace is over.
#[derive(Clone, Copy, Debug)]
pub struct LifeNumbering<'a> {
    /// How many lives were settled before.
    pub bases: &'a Bases,
    /// Threads with a life that was there from the beginning: they count from 0, others from 1.
    pub firsts: &'a HashSet<ThreadKey>,
}

impl LifeNumbering<'_> {
    /// Which life of its thread this is, numbered before the trace was over, or when it was.
    #[must_use]
    pub fn incarnation(&self, who: &ThreadLife, is_early: bool) -> u64 {
        let base = if is_early { self.bases.get(&who.key).copied().unwrap_or(0) } else { 0 };
        u64::from(base + who.number).saturating_sub(u64::from(!self.firsts.contains(&who.key)))
    }

    /// Its cells.
    #[must_use]
    pub fn cells(&self, who: &ThreadLife, is_early: bool) -> Vec<Cell> {
        life_cells(who.key, self.incarnation(who, is_early), who.comm, who.pid)
    }
}
