//! All rows of a table in the order of their keys: its runs and its memory, merged.
//!
//! ```text
//! run      a 1   c 1   d 1     ┐
//! run      b 2   c 2           ├──>  a 1   b 2   c 1+2+3   d 1   e 3
//! memory   c 3   e 3           ┘
//! ```
//!
//! A heap holds the next key of each source. Equal keys come out in the order of the sources, which is the order in
//! which they were counted.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::vec;

use super::run::{RunReader, SpoolRun};
use super::{TableKey, TableValue};
use crate::spool::SpoolError;

/// Rows in the order of their keys; made by [`super::KeyTable::rows`] and [`super::KeyTable::finish`].
///
/// An error ends it.
pub struct KeyedRows<'a, K, V: Clone> {
    sources: Vec<KeyedSource<'a, K, V>>,
    /// The next key of each source that has one, and the source's place.
    heads: BinaryHeap<Reverse<(K, usize)>>,
    /// The values that go with `heads`, by place.
    values: Vec<Option<Cow<'a, V>>>,
    /// Found while beginning.
    error: Option<SpoolError>,
}

enum KeyedSource<'a, K, V> {
    Run(Box<RunReader<K, V>>),
    Borrowed(vec::IntoIter<(&'a K, &'a V)>),
    Owned(vec::IntoIter<(K, V)>),
}

impl<'a, K: TableKey, V: TableValue> KeyedSource<'a, K, V> {
    fn next_row(&mut self) -> Result<Option<(K, Cow<'a, V>)>, SpoolError> {
        Ok(match self {
            Self::Run(reader) => reader.next_row()?.map(|(key, value)| (key, Cow::Owned(value))),
            Self::Borrowed(rows) => rows.next().map(|(key, value)| (key.clone(), Cow::Borrowed(value))),
            Self::Owned(rows) => rows.next().map(|(key, value)| (key, Cow::Owned(value))),
        })
    }
}

impl<'a, K: TableKey, V: TableValue> KeyedRows<'a, K, V> {
    pub(super) fn of_runs(runs: &[Arc<SpoolRun<K>>]) -> Self {
        Self::begin(runs, None)
    }

    pub(super) fn borrowed(runs: &[Arc<SpoolRun<K>>], mut memory: Vec<(&'a K, &'a V)>) -> Self {
        memory.sort_unstable_by_key(|&(key, _)| key);
        Self::begin(runs, Some(KeyedSource::Borrowed(memory.into_iter())))
    }

    pub(super) fn owned(runs: &[Arc<SpoolRun<K>>], mut memory: Vec<(K, V)>) -> Self {
        memory.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
        Self::begin(runs, Some(KeyedSource::Owned(memory.into_iter())))
    }

    fn begin(runs: &[Arc<SpoolRun<K>>], memory: Option<KeyedSource<'a, K, V>>) -> Self {
        let readers = runs.iter().map(|run| KeyedSource::Run(Box::new(RunReader::new(Arc::clone(run)))));
        let sources: Vec<_> = readers.chain(memory).collect();
        let values = sources.iter().map(|_| None).collect();
        let mut rows = Self { heads: BinaryHeap::with_capacity(sources.len()), sources, values, error: None };
        for place in 0..rows.sources.len() {
            if let Err(error) = rows.advance(place) {
                rows.stop();
                rows.error = Some(error);
                break;
            }
        }
        rows
    }

    /// Fetches the next row of a source.
    fn advance(&mut self, place: usize) -> Result<(), SpoolError> {
        if let Some((key, value)) = self.sources[place].next_row()? {
            self.heads.push(Reverse((key, place)));
            self.values[place] = Some(value);
        }
        Ok(())
    }

    fn stop(&mut self) {
        self.sources.clear();
        self.heads.clear();
        self.values.clear();
    }

    fn next_row(&mut self) -> Result<Option<(K, Cow<'a, V>)>, SpoolError> {
        let Some(Reverse((key, place))) = self.heads.pop() else { return Ok(None) };
        let mut value = self.values[place].take().expect("each head has its value");
        self.advance(place)?;
        while let Some(Reverse((_, place))) = self.heads.peek().filter(|Reverse((next, _))| *next == key) {
            let place = *place;
            self.heads.pop();
            match self.values[place].take().expect("each head has its value") {
                Cow::Owned(later) => value.to_mut().merge(later),
                Cow::Borrowed(later) => value.to_mut().merge_from(later),
            }
            self.advance(place)?;
        }
        Ok(Some((key, value)))
    }
}

impl<'a, K: TableKey, V: TableValue> Iterator for KeyedRows<'a, K, V> {
    type Item = Result<(K, Cow<'a, V>), SpoolError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.error.take() {
            return Some(Err(error));
        }
        let row = self.next_row();
        if row.is_err() {
            self.stop();
        }
        row.transpose()
    }
}
