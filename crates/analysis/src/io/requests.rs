//! Requests of io_uring as operations: their bytes, counts and latencies beside those of system calls.

use std::collections::BTreeMap;

use super::ops::Category;
use super::sums::IoSums;
use crate::answer::Cell;
use crate::calls::ThreadLife;
use crate::threads::ThreadKey;
use crate::uring::{SlowUringRequest, UringEffect, UringFindings, UringMoves};
use crate::{Histogram, Merge};

/// The requests of a life.
#[derive(Debug)]
pub(super) struct MovedRow {
    pub(super) who: ThreadLife,
    pub(super) sums: IoSums,
}

impl MovedRow {
    /// Its thread, and which life of that.
    pub(super) fn id(&self) -> (ThreadKey, u64) {
        (self.who.key, u64::from(self.who.number))
    }
}

/// The requests of each life that are operations on files.
pub(super) fn moved(uring: &UringFindings) -> Vec<MovedRow> {
    let mut rows: BTreeMap<(ThreadKey, u32), MovedRow> = BTreeMap::new();
    for (owner, life, effect, moves) in uring.moves() {
        let who = ThreadLife { key: owner.0, number: owner.1, comm: life.comm, pid: life.pid };
        let row = rows.entry(*owner).or_insert(MovedRow { who, sums: IoSums::default() });
        row.sums.add(&sums(effect, moves));
    }
    rows.into_values().filter(|row| row.sums != IoSums::default()).collect()
}

fn sums(effect: UringEffect, moves: UringMoves) -> IoSums {
    let UringMoves { read, write, requests, failures } = moves;
    let sums = IoSums { read, write, errors: failures, ..IoSums::default() };
    match effect {
        UringEffect::Read => IoSums { reads: requests, ..sums },
        UringEffect::Write => IoSums { writes: requests, ..sums },
        UringEffect::Both => IoSums { reads: requests, writes: requests, ..sums },
        UringEffect::Open => IoSums { opens: requests, ..sums },
        UringEffect::Sync => IoSums { syncs: requests, ..sums },
        // It is no operation on a file.
        UringEffect::Other => IoSums::default(),
    }
}

/// Adds how long they took to the latencies of categories.
pub(super) fn add_latencies(uring: &UringFindings, latencies: &mut [Histogram; 4]) {
    for (effect, more) in uring.latencies() {
        let categories: &[Category] = match effect {
            UringEffect::Read => &[Category::Read],
            UringEffect::Write => &[Category::Write],
            UringEffect::Both => &[Category::Read, Category::Write],
            UringEffect::Open => &[Category::Open],
            UringEffect::Sync => &[Category::Sync],
            UringEffect::Other => &[],
        };
        categories.iter().for_each(|category| latencies[*category as usize].merge_from(more));
    }
}

/// A request among the slowest operations: how long it took, its machine, and its cells.
pub(super) fn slow_row(uring: &UringFindings, slow: &SlowUringRequest) -> (u64, u16, Vec<Cell>) {
    let mut cells = vec![Cell::TimeRange(Some(slow.begin), Some(slow.end)), slow.duration()];
    cells.extend(uring.owner(&slow.owner));
    cells.push(Cell::Syscall(format!("io_uring {}", slow.opcode)));
    cells.extend([Cell::Empty, Cell::Empty, Cell::Empty, Cell::Integer(slow.result)]);
    (slow.begin.abs_diff(slow.end), slow.owner.0.host, cells)
}
