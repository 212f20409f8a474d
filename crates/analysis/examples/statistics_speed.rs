//! The cost of statistics: `cargo run --release -p kymo-analysis --example statistics_speed`.
//!
//! Prints `name<TAB>nanoseconds per operation`, the median of 15 runs.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use kymo_analysis::{Histogram, Interner, KeyTable, MemorySpool, Merge, Room, Weight};
use serde::{Deserialize, Serialize};

/// Runs of which the median is taken.
const RUNS: usize = 15;

/// Prints the time of one of `count` operations.
fn measure<T>(name: &str, count: usize, mut work: impl FnMut() -> T) {
    let mut runs: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            black_box(work());
            begin.elapsed().as_nanos() as f64 / count as f64
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    println!("{name}\t{:.2}", runs[RUNS / 2]);
}

/// Durations over many octaves, as system calls have them.
fn durations(count: usize) -> Vec<u64> {
    let mut state = 1u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..count).map(|_| (draw() >> 44) >> (draw() % 13)).collect()
}

fn recorded(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    values.iter().for_each(|&value| histogram.record(value));
    histogram
}

fn histograms() {
    let values = durations(1 << 20);
    let mut dense = recorded(&values);
    measure("histogram: record, many values", values.len(), || {
        values.iter().for_each(|&value| dense.record(black_box(value)));
    });
    measure("histogram: record, first 1000 values", 1000, || recorded(&values[..1000]));
    measure("histogram: record, first 5 values", 1000, || {
        values[..1000].chunks(5).map(|few| recorded(few).count()).sum::<u64>()
    });
    let part = recorded(&values[..1 << 19]);
    measure("histogram: merge large ones", 1, || dense.merge_from(&part));
    measure("histogram: five quantiles of a large one", 1, || dense.quantiles([0.5, 0.9, 0.95, 0.99, 0.999]));
    let listed = recorded(&values[..3000]);
    measure("histogram: five quantiles of 3000 values", 1, || listed.quantiles([0.5, 0.9, 0.95, 0.99, 0.999]));
}

/// Counts of a table of threads.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Busy {
    runs: u64,
    busy_ns: u64,
}

impl Merge for Busy {
    fn merge(&mut self, later: Self) {
        self.runs += later.runs;
        self.busy_ns += later.busy_ns;
    }
}

impl Weight for Busy {}

fn tables() {
    let keys: Vec<u64> = durations(1 << 20);
    for threads in [100, 10_000] {
        let mut table = KeyTable::<u32, Busy>::default();
        measure(&format!("table: entry, {threads} keys"), keys.len(), || {
            for &key in &keys {
                let busy = table.entry((key % threads) as u32);
                busy.runs += 1;
                busy.busy_ns += key;
            }
        });
    }
    let room = Room { spool: Arc::new(MemorySpool::default()), budget_bytes: 1 << 20 };
    measure("table: entry and finish, a million keys, spilled", keys.len(), || {
        let mut table = KeyTable::<u64, Busy>::new(room.clone());
        for number in 0..keys.len() as u64 {
            table.entry(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)).runs += 1;
        }
        table.finish().map(|row| row.expect("memory can be read").1.runs).sum::<u64>()
    });
}

fn names() {
    let names: Vec<[u8; 16]> = (0..1 << 16)
        .map(|number| {
            let mut padded = [0; 16];
            let name = format!("kworker/{}:{}", number % 4, number % 5);
            padded[..name.len()].copy_from_slice(name.as_bytes());
            padded
        })
        .collect();
    let mut interner = Interner::default();
    measure("names: 16 bytes, padded, 20 in turn", names.len(), || {
        names.iter().map(|name| u64::from(interner.intern_padded(name).0)).sum::<u64>()
    });
    measure("names: 11 bytes, 20 in turn", names.len(), || {
        names.iter().map(|name| u64::from(interner.intern(&name[..11]).0)).sum::<u64>()
    });
    measure("names: 11 bytes, always the same", names.len(), || {
        names.iter().map(|_| u64::from(interner.intern(black_box(b"kworker/0:0")).0)).sum::<u64>()
    });
}

fn main() {
    histograms();
    tables();
    names();
}
