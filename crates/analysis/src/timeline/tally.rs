//! How many things there are at a time, as a number over time: how many threads run, how many wait.

use hashbrown::HashMap;

use super::changes::{ChangesSequel, NewValue, TrackChange};
use super::numbers::value;

/// How many things there are at a time, from when each of them begins and ends.
#[derive(Debug, Default)]
pub(super) struct OverlapTally {
    /// In any order.
    pub(super) begins: Vec<i64>,
    pub(super) ends: Vec<i64>,
}

impl OverlapTally {
    pub(super) fn is_empty(&self) -> bool {
        self.begins.is_empty() && self.ends.is_empty()
    }

    /// How many more there are behind all than before.
    pub(super) fn net(&self) -> i64 {
        self.begins.len() as i64 - self.ends.len() as i64
    }

    /// How many there are since when, if there are so many before; a time at which as many begin as end is none.
    pub(super) fn sequel(mut self, key: u64, before: i64) -> ChangesSequel {
        // They come in about the order of time.
        self.begins.sort();
        self.ends.sort();
        let (mut begins, mut ends) = (&self.begins[..], &self.ends[..]);
        let (mut now, mut changes) = (before, Vec::with_capacity(begins.len()));
        while let Some(&time) = begins.first().into_iter().chain(ends.first()).min() {
            let step = drop_at(&mut begins, time) - drop_at(&mut ends, time);
            now += step;
            if step != 0 {
                changes.push(TrackChange { time, key, to: NewValue::Value(value(now as f64)) });
            }
        }
        ChangesSequel { changes, before: HashMap::from([(key, Some(value(before as f64)))]) }
    }
}

/// Leaves out those that are at a time; how many these are.
fn drop_at(times: &mut &[i64], at: i64) -> i64 {
    let count = times.iter().take_while(|time| **time == at).count();
    *times = &times[count..];
    count as i64
}
