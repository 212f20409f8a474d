//! Key tables against a sorted map that never spills.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::collection::vec;
use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::Histogram;
use crate::spool::{MemorySpool, Spool, SpoolBlock, SpoolErrorKind};

/// Merges associatively, but not commutatively: it notices when rows are merged in another order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Seen {
    order: Vec<u16>,
    sizes: Histogram,
}

impl Merge for Seen {
    fn merge(&mut self, mut later: Self) {
        self.order.append(&mut later.order);
        self.sizes.merge(later.sizes);
    }
}

impl Weight for Seen {
    fn weight(&self) -> usize {
        self.order.weight() + self.sizes.weight()
    }
}

type Key = (u8, String);

fn key(number: u16) -> Key {
    ((number % 7) as u8, format!("file {}", number / 7))
}

fn see(table: &mut KeyTable<Key, Seen>, number: u16, size: u16) {
    let seen = table.entry(key(number));
    seen.order.push(size);
    seen.sizes.record(u64::from(size));
}

/// The rows that must come out.
fn expected(events: &[(u16, u16)]) -> Vec<(Key, Seen)> {
    let mut rows: BTreeMap<Key, Seen> = BTreeMap::new();
    for &(number, size) in events {
        let seen = rows.entry(key(number)).or_default();
        seen.order.push(size);
        seen.sizes.record(u64::from(size));
    }
    rows.into_iter().collect()
}

fn rows(table: &KeyTable<Key, Seen>) -> Vec<(Key, Seen)> {
    table.rows().map(|row| row.map(|(key, value)| (key, value.into_owned())).unwrap()).collect()
}

fn table(events: &[(u16, u16)], room: Option<&Room>) -> KeyTable<Key, Seen> {
    let mut table = room.map_or_else(KeyTable::default, |room| KeyTable::new(room.clone()));
    events.iter().for_each(|&(number, size)| see(&mut table, number, size));
    table
}

fn room(budget_bytes: usize) -> (Arc<MemorySpool>, Room) {
    let spool = Arc::new(MemorySpool::default());
    (Arc::clone(&spool), Room { spool, budget_bytes })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// However parts are cut, grouped and spilled, the rows are those of one table in memory.
    #[test]
    fn spilled_parts_make_the_same_table(
        events in vec((0u16..300, any::<u16>()), 0..3000),
        cuts in vec((0usize..3000, proptest::option::of(300usize..20_000)), 1..7),
        seed in any::<u64>(),
    ) {
        let (spool, _) = room(0);
        let mut cuts = cuts;
        cuts.sort_unstable();
        let mut begin = 0;
        let mut parts = Vec::new();
        let last = cuts.len() - 1;
        for (number, (cut, budget)) in cuts.into_iter().enumerate() {
            let end = if number == last { events.len() } else { cut.clamp(begin, events.len()) };
            let spool: Arc<dyn Spool> = Arc::<MemorySpool>::clone(&spool);
            let room = budget.map(|budget_bytes| Room { spool, budget_bytes });
            parts.push(table(&events[begin..end], room.as_ref()));
            begin = end;
        }
        let mut draw = seed;
        while parts.len() > 1 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let left = (draw >> 33) as usize % (parts.len() - 1);
            let later = parts.remove(left + 1);
            parts[left].merge(later);
        }
        let merged = parts.pop().unwrap();
        let wanted = expected(&events);
        prop_assert_eq!(merged.fault().is_none(), true);
        prop_assert_eq!(&rows(&merged), &wanted);
        prop_assert_eq!(merged.count_rows().unwrap(), wanted.len());
        for (key, value) in wanted.iter().step_by(17) {
            prop_assert_eq!(&*merged.get(key).unwrap().unwrap(), value);
        }
        prop_assert!(merged.get(&(9, String::new())).unwrap().is_none());
        let bytes = postcard::to_allocvec(&merged).unwrap();
        prop_assert_eq!(&bytes, &postcard::to_allocvec(&table(&events, None)).unwrap());
        prop_assert_eq!(&rows(&postcard::from_bytes(&bytes).unwrap()), &wanted);
        let finished: Vec<_> = merged.finish().map(Result::unwrap).collect();
        prop_assert_eq!(finished, wanted);
        prop_assert_eq!(spool.kept_bytes(), 0, "what is not needed any more is given up");
    }

    #[test]
    fn the_largest_rows_and_the_rest_are_all(
        events in vec((0u16..60, any::<u16>()), 0..400), count in 0usize..80, budget in 300usize..5000,
    ) {
        let table = table(&events, Some(&room(budget).1));
        let mut wanted = expected(&events);
        wanted.sort_by_key(|(key, value)| (std::cmp::Reverse(value.order.len()), key.clone()));
        let others = wanted.split_off(count.min(wanted.len()));
        let top = table.top(count, |_, value| value.order.len()).unwrap();
        prop_assert_eq!(top.rows, wanted);
        prop_assert_eq!(top.others_count, others.len() as u64);
        let mut sizes = Histogram::default();
        others.iter().for_each(|(_, value)| sizes.merge_from(&value.sizes));
        prop_assert_eq!(top.others.sizes, sizes);
    }

    #[test]
    fn rows_under_other_keys_are_the_same(
        events in vec((0u16..300, any::<u16>()), 0..1000), budget in 300usize..5000, is_spilled in any::<bool>(),
    ) {
        let room = room(budget).1;
        let table = table(&events, is_spilled.then_some(&room)).rekeyed(|(group, _)| 250 - group).unwrap();
        let mut wanted: BTreeMap<u8, Histogram> = BTreeMap::new();
        for (key, value) in expected(&events) {
            wanted.entry(250 - key.0).or_default().merge(value.sizes);
        }
        let found: BTreeMap<u8, Histogram> =
            table.finish().map(|row| row.map(|(key, value)| (key, value.sizes)).unwrap()).collect();
        prop_assert_eq!(found, wanted);
    }

    /// Untrusted bytes: an error, or a table that works.
    #[test]
    fn damaged_tables_are_refused_or_harmless(
        events in vec((0u16..20, any::<u16>()), 1..60),
        damage in vec((any::<usize>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = postcard::to_allocvec(&table(&events, None)).unwrap();
        for (position, byte) in damage {
            let position = position % bytes.len();
            bytes[position] = byte;
        }
        if let Ok(table) = postcard::from_bytes::<KeyTable<Key, Seen>>(&bytes) {
            prop_assert!(table.weight() < 1 << 20);
            rows(&table);
        }
    }
}

#[test]
fn a_count_that_no_rows_follow_costs_nothing() {
    let mut bytes = vec![0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F];
    assert!(postcard::from_bytes::<KeyTable<Key, Seen>>(&bytes).is_err());
    bytes.extend([0; 40]);
    assert!(postcard::from_bytes::<KeyTable<(), Nothing>>(&bytes).is_err(), "rows without bytes are no endless table");
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Nothing;

impl Merge for Nothing {
    fn merge(&mut self, _: Self) {}
}

impl Weight for Nothing {}

/// More than 64 runs are merged in between, and none is left behind.
#[test]
fn many_runs_become_fewer() {
    let events: Vec<(u16, u16)> = (0..40_000u32).map(|number| ((number * 7919 % 3001) as u16, number as u16)).collect();
    let (spool, room) = room(8 << 10);
    let table = table(&events, Some(&room));
    assert!(table.is_spilled() && table.runs.len() <= RUNS_MAX, "{}", table.runs.len());
    assert_eq!(rows(&table), expected(&events));
    drop(table);
    assert_eq!(spool.kept_bytes(), 0);
}

/// The memory of the table is close to its budget at any time, whether keys or values grow.
#[test]
fn memory_stays_within_the_budget() {
    let budget_bytes = 1 << 20;
    for keys in [50u32, 2000, 50_000] {
        let mut most_bytes = 0;
        let mut table = KeyTable::<u32, Seen>::new(room(budget_bytes).1);
        for number in 0..300_000u32 {
            let seen = table.entry(number % keys);
            seen.sizes.record(u64::from(number.wrapping_mul(2_654_435_769) >> (number % 24)));
            if number % 512 == 0 {
                most_bytes = most_bytes.max(table.memory_bytes());
            }
        }
        assert!((budget_bytes / 4..=budget_bytes).contains(&most_bytes), "{most_bytes} bytes with {keys} keys");
        let total: u64 = table.rows().map(|row| row.unwrap().1.sizes.count()).sum();
        assert_eq!((total, table.count_rows().unwrap()), (300_000, keys as usize));
    }
}

/// A spool that takes a number of blocks, and gives back changed ones.
#[derive(Debug, Default)]
struct BadSpool {
    kept: MemorySpool,
    writes_left: AtomicUsize,
    /// The byte of each block that comes back changed, if it has so many.
    changed: Option<usize>,
}

impl Spool for BadSpool {
    fn write(&self, bytes: &[u8]) -> Result<SpoolBlock, SpoolError> {
        if self.writes_left.fetch_sub(1, Ordering::Relaxed) == 0 {
            self.writes_left.store(0, Ordering::Relaxed);
            return Err(SpoolError {
                at: 7,
                kind: SpoolErrorKind::Full { needed_bytes: bytes.len(), folder: "full".into() },
            });
        }
        self.kept.write(bytes)
    }

    fn read(&self, block: SpoolBlock, bytes: &mut Vec<u8>) -> Result<(), SpoolError> {
        self.kept.read(block, bytes)?;
        if let Some(byte) = self.changed.and_then(|position| bytes.get_mut(position)) {
            *byte ^= 4;
        }
        Ok(())
    }

    fn release(&self, block: SpoolBlock) {
        self.kept.release(block);
    }
}

fn events() -> Vec<(u16, u16)> {
    (0..2000).map(|number| (number % 200, number)).collect()
}

#[test]
fn a_full_spool_is_told_and_no_row_is_missing() {
    for writes_left in [0, 1, 5] {
        let spool = Arc::new(BadSpool { writes_left: AtomicUsize::new(writes_left), ..BadSpool::default() });
        let table = table(&events(), Some(&Room { spool, budget_bytes: 4000 }));
        assert_eq!(table.fault().unwrap().to_string().split_once(": ").unwrap().0, "at byte 7 of the spool for tables");
        assert_eq!(rows(&table), expected(&events()));
    }
}

/// Any changed byte of a block is noticed.
#[test]
fn a_block_that_was_changed_is_an_error() {
    for position in [0, 7, 8, 9, 12, 40, 300, 1000] {
        let spool = BadSpool { writes_left: AtomicUsize::new(999), changed: Some(position), ..BadSpool::default() };
        let table = table(&events(), Some(&Room { spool: Arc::new(spool), budget_bytes: 12_000 }));
        assert!(table.is_spilled());
        let mut rows = table.rows();
        let error = rows.find_map(Result::err).expect("the block was changed");
        assert!(matches!(error.kind, SpoolErrorKind::Changed { .. }), "{position}: {error}");
        assert!(rows.next().is_none(), "an error ends the rows");
        assert!(table.count_rows().is_err());
        assert!(postcard::to_allocvec(&table).is_err());
    }
}
