//! Runs: from when to when something had a value. Written in any order, asked for by time.
//!
//! ```text
//! push   (key, begin, end, value) ──> a drawer for each magnitude of length
//!
//!        < 4 µs   ▪▪ ▪▪▪ ▪ ▪▪ ▪▪▪    a full drawer becomes a block, which lies at [first begin, last end]
//!        < 16 µs  ▬▬ ▬  ▬▬  ▬▬       in a spool: runs of alike length and of about the same time, so that
//!        ...                         few blocks lie around any instant, and these hold little else
//!        open     ━━━━━━━━━━━━━━━
//! ```
//!
//! An analysis that reads a trace in parts knows the runs of a later part before those of an
//! earlier one. Nothing is sorted but the runs of one block: order costs nothing where it is there,
//! and blocks that overlap in time where it is not.

use std::sync::Arc;

use hashbrown::HashMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::spool::{Room, Spool, SpoolBlock, SpoolError, SpoolErrorKind};

/// From when to when something had a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StateRun {
    /// The owner of the value.
    pub key: u64,
    /// Since when; `i64::MIN`: since before the begin of reading.
    pub begin: i64,
    /// Until when, not included; `i64::MAX`: it has it still.
    pub end: i64,
    /// The value.
    pub value: u64,
}

/// Runs in a spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunBlock {
    /// Where its bytes begin.
    pub at: u64,
    /// How many there are.
    pub size_bytes: u64,
    /// When the first of its runs begins.
    pub begin: i64,
    /// When the last of them ends.
    pub end: i64,
}

/// Puts runs into blocks.
#[derive(Clone, Debug)]
pub struct RunWriter {
    /// Where blocks go; without it, runs stay in memory.
    spool: Option<Arc<dyn Spool>>,
    /// By magnitude of their length.
    drawers: Vec<Vec<StateRun>>,
    blocks: Vec<RunBlock>,
    fault: Option<Arc<SpoolError>>,
}

/// Runs of a block at most: few enough to be read for the sake of one, enough for their keys and values to repeat.
const BLOCK_RUNS: usize = 2048;
/// Lengths of a drawer lie within a factor of four; the last one is for runs without a begin or an end.
const DRAWERS: usize = 34;

fn drawer(run: &StateRun) -> usize {
    if run.begin == i64::MIN || run.end == i64::MAX {
        return DRAWERS - 1;
    }
    (64 - run.begin.abs_diff(run.end).leading_zeros() as usize) / 2
}

impl RunWriter {
    /// Runs that go to the room's spool, if there is room.
    #[must_use]
    pub fn new(room: Option<&Room>) -> Self {
        let spool = room.map(|room| Arc::clone(&room.spool));
        Self { spool, drawers: vec![Vec::new(); DRAWERS], blocks: Vec::new(), fault: None }
    }

    /// Adds a run. Of those that take no time nothing is kept: there is no instant at which they could be seen.
    #[inline]
    pub fn push(&mut self, run: StateRun) {
        if run.begin >= run.end {
            return;
        }
        // In memory they stay in their order, which is almost that of time.
        let at = if self.spool.is_some() { drawer(&run) } else { DRAWERS - 1 };
        self.drawers[at].push(run);
        if self.spool.is_some() && self.drawers[at].len() >= BLOCK_RUNS {
            self.close(at);
        }
    }

    /// All runs of a writer without a spool, in no order.
    #[must_use]
    pub fn into_memory(mut self) -> Vec<StateRun> {
        debug_assert!(self.blocks.is_empty(), "some of the runs are in a spool");
        // Without a spool all are in the last drawer.
        let mut runs = self.drawers.pop().unwrap_or_default();
        self.drawers.iter().for_each(|others| runs.extend_from_slice(others));
        runs
    }

    /// Adds those of another writer with the same spool, or without one.
    pub fn append(&mut self, other: Self) {
        self.spool = self.spool.take().or(other.spool);
        self.fault = self.fault.take().or(other.fault);
        self.blocks.extend(other.blocks);
        if self.spool.is_none() {
            let all = &mut self.drawers[DRAWERS - 1];
            for mut runs in other.drawers {
                match all.is_empty() {
                    true => std::mem::swap(all, &mut runs),
                    false => all.append(&mut runs),
                }
            }
            return;
        }
        for run in other.drawers.into_iter().flatten() {
            self.push(run);
        }
    }

    /// Empties a drawer, if there is a spool.
    #[cold]
    fn close(&mut self, at: usize) {
        let Some(spool) = &self.spool else { return };
        let runs = &mut self.drawers[at];
        if runs.is_empty() || self.fault.is_some() {
            return;
        }
        match write(&**spool, runs) {
            Ok(block) => {
                self.blocks.push(block);
                runs.clear();
            }
            Err(error) => self.fault = Some(Arc::new(error)),
        }
    }

    /// Blocks with all runs, and where they are.
    ///
    /// # Errors
    ///
    /// Some could not be written.
    pub fn finish(mut self) -> Result<Vec<RunBlock>, Arc<SpoolError>> {
        (0..DRAWERS).for_each(|at| self.close(at));
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(self.blocks),
        }
    }

    /// All runs, in no order.
    ///
    /// # Errors
    ///
    /// Some cannot be read.
    pub fn each(&self, mut each: impl FnMut(StateRun)) -> Result<(), SpoolError> {
        if let Some(spool) = &self.spool {
            read(&**spool, &self.blocks, &mut each)?;
        }
        self.drawers.iter().flatten().copied().for_each(each);
        Ok(())
    }
}

impl Serialize for RunWriter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut runs = Vec::new();
        self.each(|run| runs.push(run)).map_err(serde::ser::Error::custom)?;
        runs.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RunWriter {
    /// They are in memory until they are appended to others with a spool.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut writer = Self::new(None);
        Vec::<StateRun>::deserialize(deserializer)?.into_iter().for_each(|run| writer.push(run));
        Ok(writer)
    }
}

/// Runs as they are written: begins as steps, keys and values as places among the different ones.
#[derive(Serialize, Deserialize)]
struct EncodedRuns {
    first: i64,
    steps: Vec<u64>,
    lengths: Vec<u64>,
    keys: Dictionary,
    values: Dictionary,
}

#[derive(Serialize, Deserialize)]
struct Dictionary {
    words: Vec<u64>,
    places: Vec<u16>,
}

impl Dictionary {
    fn of(words: impl Iterator<Item = u64>) -> Self {
        let (mut different, mut known) = (Vec::new(), HashMap::new());
        let place = |word: u64| {
            *known.entry(word).or_insert_with(|| {
                different.push(word);
                different.len() as u16 - 1
            })
        };
        let places = words.map(place).collect();
        Self { words: different, places }
    }

    fn get(&self, at: usize) -> Option<u64> {
        self.words.get(usize::from(*self.places.get(at)?)).copied()
    }
}

fn write(spool: &dyn Spool, runs: &mut [StateRun]) -> Result<RunBlock, SpoolError> {
    runs.sort_unstable_by_key(|run| run.begin);
    let first = runs[0].begin;
    let mut before = first;
    let step = |run: &StateRun| run.begin.abs_diff(std::mem::replace(&mut before, run.begin));
    let steps = runs.iter().map(step).collect();
    let written = EncodedRuns {
        first,
        steps,
        lengths: runs.iter().map(|run| run.begin.abs_diff(run.end)).collect(),
        keys: Dictionary::of(runs.iter().map(|run| run.key)),
        values: Dictionary::of(runs.iter().map(|run| run.value)),
    };
    let unwritable = |error| SpoolError { at: 0, kind: SpoolErrorKind::Unwritable(error) };
    let SpoolBlock { at, size_bytes } = spool.write(&postcard::to_allocvec(&written).map_err(unwritable)?)?;
    let end = runs.iter().map(|run| run.end).max().unwrap_or(first);
    Ok(RunBlock { at, size_bytes: size_bytes as u64, begin: first, end })
}

/// All runs of these blocks.
fn read(spool: &dyn Spool, blocks: &[RunBlock], each: &mut impl FnMut(StateRun)) -> Result<(), SpoolError> {
    let mut bytes = Vec::new();
    for block in blocks {
        let (at, size_bytes) = (block.at, usize::try_from(block.size_bytes).unwrap_or(usize::MAX));
        spool.read(SpoolBlock { at, size_bytes }, &mut bytes)?;
        let written =
            postcard::from_bytes(&bytes).map_err(|error| SpoolError { at, kind: SpoolErrorKind::Row(error) })?;
        written_runs(&written, each).ok_or(SpoolError { at, kind: SpoolErrorKind::Changed { size_bytes } })?;
    }
    Ok(())
}

/// The runs of a block; `None`: it is not what anybody wrote.
fn written_runs(written: &EncodedRuns, each: &mut impl FnMut(StateRun)) -> Option<()> {
    let mut begin = written.first;
    for (at, (&step, &length)) in written.steps.iter().zip(&written.lengths).enumerate() {
        begin = begin.checked_add_unsigned(step)?;
        let end = begin.checked_add_unsigned(length)?;
        each(StateRun { key: written.keys.get(at)?, begin, end, value: written.values.get(at)? });
    }
    Some(())
}

/// The runs of these blocks that a span of time touches; its end is included.
///
/// # Errors
///
/// A block cannot be read.
pub fn runs_between(
    spool: &dyn Spool,
    blocks: &[RunBlock],
    (begin, end): (i64, i64),
    mut each: impl FnMut(StateRun),
) -> Result<(), SpoolError> {
    let touches = |from: i64, to: i64| from <= end && begin < to;
    for block in blocks.iter().filter(|block| touches(block.begin, block.end)) {
        let mut wanted = |run: StateRun| {
            if touches(run.begin, run.end) {
                each(run);
            }
        };
        read(spool, std::slice::from_ref(block), &mut wanted)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySpool;
    use crate::testing::Random;

    fn random(random: &mut Random) -> StateRun {
        let begin = match random.below(50) {
            0 => i64::MIN,
            _ => random.below(1 << 30) as i64 - (1 << 20),
        };
        let magnitude = random.below(30) as u32;
        let end = match random.below(50) {
            0 => i64::MAX,
            _ => begin.max(-(1 << 20)) + random.below(1 << magnitude) as i64,
        };
        StateRun { key: random.below(40) as u64, begin, end, value: u64::MAX / (1 + random.below(9) as u64) }
    }

    /// In whatever order they came, by whichever writer: at any instant the runs are those that a look at all of them
    /// finds.
    #[test]
    fn any_instant_can_be_asked() {
        let mut numbers = Random(11);
        let spool = Arc::new(MemorySpool::default());
        let room = Room { spool: Arc::<MemorySpool>::clone(&spool), budget_bytes: 0 };
        let mut all = Vec::new();
        let mut writer = RunWriter::new(Some(&room));
        for part in 0..5 {
            let mut of_part = RunWriter::new((part != 3).then_some(&room));
            for _ in 0..20_000 {
                let run = random(&mut numbers);
                of_part.push(run);
                all.extend((run.begin < run.end).then_some(run));
            }
            let bytes = postcard::to_allocvec(&of_part).unwrap();
            writer.append(if part == 2 { postcard::from_bytes(&bytes).unwrap() } else { of_part });
        }
        let blocks = writer.finish().unwrap();
        all.sort_unstable();
        for _ in 0..50 {
            let begin = numbers.below(1 << 30) as i64 - (1 << 20);
            let end = begin + (numbers.below(2) * numbers.below(1 << 20)) as i64;
            let mut found = Vec::new();
            runs_between(&*spool, &blocks, (begin, end), |run| found.push(run)).unwrap();
            found.sort_unstable();
            let wanted = all.iter().filter(|run| run.begin <= end && begin < run.end);
            assert!(found.iter().eq(wanted), "between {begin} and {end}");
        }
    }

    /// Runs that come in about the order of time: what is read for an instant does not grow with the trace.
    #[test]
    fn few_blocks_lie_around_an_instant() {
        let mut numbers = Random(3);
        let spool = Arc::new(MemorySpool::default());
        let mut writer = RunWriter::new(Some(&Room { spool: Arc::<MemorySpool>::clone(&spool), budget_bytes: 0 }));
        for number in 0..400_000 {
            let begin = number * 100 + numbers.below(1000) as i64;
            let length = 1 << numbers.below(20);
            writer.push(StateRun {
                key: numbers.below(100) as u64,
                begin,
                end: begin + length,
                value: number as u64 % 7,
            });
        }
        let blocks = writer.finish().unwrap();
        let around = blocks.iter().filter(|block| block.begin <= 20_000_000 && 20_000_000 < block.end).count();
        assert!(blocks.len() > 190 && around <= 2 * 10 + 2, "{around} of {}", blocks.len());
        let bytes = blocks.iter().map(|block| block.size_bytes).sum::<u64>();
        assert!(bytes < 400_000 * 9, "{bytes}");
    }

    #[test]
    fn damage_is_told() {
        let spool = Arc::new(MemorySpool::default());
        let mut writer = RunWriter::new(Some(&Room { spool: Arc::<MemorySpool>::clone(&spool), budget_bytes: 0 }));
        (0..100).for_each(|number| writer.push(StateRun { key: 1, begin: number, end: number + 5, value: 9 }));
        let mut blocks = writer.finish().unwrap();
        blocks.iter_mut().for_each(|block| block.at += 1);
        let error = runs_between(&*spool, &blocks, (50, 50), |_| {}).unwrap_err();
        assert!(matches!(error.kind, SpoolErrorKind::Changed { .. }), "{error}");
        let bytes = postcard::to_allocvec(&(5i64, vec![1u64; 3], vec![i64::MAX as u64; 3])).unwrap();
        for cut in 0..bytes.len() {
            let block = spool.write(&bytes[..cut]).unwrap();
            let blocks = [RunBlock { at: block.at, size_bytes: cut as u64, begin: 0, end: 10 }];
            assert!(runs_between(&*spool, &blocks, (5, 5), |_| {}).is_err());
        }
    }
}
