//! Records that the kernel writes to other rings than those with pages, in a spool of their own: in rounds, each with a mark behind it.
//!
//! ```text
//! u32 length │ u32 CPU │ records of its ring     of each ring with records
//! 2^31 + 32  │ 0       │ nanos, ticks, lost, until     the mark
//! ```
//!
//! A round is there as a whole or not at all. A mark tells the clocks' times, as the kernel writes records with `CLOCK_MONOTONIC`, and
//! the trace has the clock of programs; how many records were lost until then; and until which ticks rings were read.
//!
//! The spool begins with a mark, which only tells the time before the first round; so does the rest of it when rounds are gone. So the
//! next recorder goes on where one was killed, and a flight recorder keeps the newest rounds.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use kymo_lane::ClockSource;
use rustix::time::{ClockId, clock_gettime};

use crate::clock;
use crate::kernel::spool::{PageSpool, SpoolProgress};

/// The bit of a length that makes an entry a mark.
pub(super) const MARK: u32 = 1 << 31;
/// Bytes before an entry.
const HEAD: u64 = 8;
/// Bytes of the spool that are read at a time.
const TURN: usize = 1 << 20;
/// How often clocks are compared for one mark.
const TRIES: usize = 5;

/// Ticks and `CLOCK_MONOTONIC` at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockPair {
    pub(super) nanos: u64,
    pub(super) ticks: u64,
}

impl ClockPair {
    pub(super) fn now(source: ClockSource) -> Self {
        let one = || {
            let before = clock::ticks(source);
            let time = clock_gettime(ClockId::Monotonic);
            let width = clock::ticks(source).saturating_sub(before);
            let nanos = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
            (width, Self { nanos, ticks: before + width / 2 })
        };
        let tries = std::iter::repeat_with(one).take(TRIES);
        tries.min_by_key(|(width, _)| *width).expect("it was tried").1
    }

    /// Ticks at a time, as two pairs tell.
    pub(super) fn ticks_at(self, later: Self, nanos: u64) -> u64 {
        let (ticks, span) = (i128::from(later.ticks) - i128::from(self.ticks), later.nanos.saturating_sub(self.nanos));
        let since = i128::from(nanos) - i128::from(self.nanos);
        let ticks = i128::from(self.ticks) + since * ticks / i128::from(span.max(1));
        u64::try_from(ticks).unwrap_or(0)
    }
}

/// The end of a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundMark {
    pub(super) pair: ClockPair,
    /// Records that were lost until then.
    pub(super) lost: u64,
    /// Until which ticks rings were read.
    pub(super) until: u64,
    /// Bytes of the spool before the mark.
    pub(super) place: u64,
}

/// A spool, and how much of it is kept for snapshots.
#[derive(Clone, Debug)]
pub(super) struct MarkedSpool {
    file: Arc<OwnedFd>,
    pub(super) spool: Arc<PageSpool>,
    /// Events of the trace and records of them that recorders before this one have written.
    pub(super) before: SpoolProgress,
    /// Bytes that a flight recorder keeps; `None`: all are there until they are in the trace.
    kept_bytes: Option<u64>,
}

impl MarkedSpool {
    pub(super) fn open(file: OwnedFd, kept_bytes: Option<u64>) -> io::Result<Self> {
        let (spool, before) = PageSpool::open((0, 0), file.try_clone()?.into())?;
        Ok(Self { file: Arc::new(file), spool, before, kept_bytes })
    }

    /// Rounds as they are added; of a flight recorder, all that are kept now.
    pub(super) fn rounds(&self) -> io::Result<MarkedRounds> {
        let spool = match self.kept_bytes {
            // The reader goes on with the other one.
            Some(_) => PageSpool::open((0, 0), self.file.try_clone()?.into())?.0,
            None => Arc::clone(&self.spool),
        };
        let is_kept = self.kept_bytes.is_some();
        Ok(MarkedRounds { spool, is_kept, last: None, entries: Vec::new(), turn: Vec::new() })
    }
}

/// Adds rounds.
#[derive(Debug)]
pub(super) struct MarkedWriter {
    marked: MarkedSpool,
    source: ClockSource,
    batch: Vec<u8>,
}

impl MarkedWriter {
    pub(super) fn new(marked: MarkedSpool, source: ClockSource) -> io::Result<Self> {
        let is_new = marked.spool.place() + marked.spool.waiting() == 0;
        let mut writer = Self { marked, source, batch: Vec::new() };
        if is_new {
            writer.end(0, 0)?;
        }
        Ok(writer)
    }

    /// Begins a round.
    pub(super) fn begin(&mut self) {
        self.marked.spool.free();
        self.batch.clear();
    }

    /// Adds what `fill` does, as records of a CPU's ring.
    pub(super) fn entry(&mut self, cpu: u32, fill: impl FnOnce(&mut Vec<u8>)) {
        let at = self.batch.len();
        self.batch.extend_from_slice(&[0; 4]);
        self.batch.extend_from_slice(&cpu.to_le_bytes());
        fill(&mut self.batch);
        let length = (self.batch.len() - at - HEAD as usize) as u32;
        self.batch[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// Ends the round.
    pub(super) fn end(&mut self, lost: u64, until: u64) -> io::Result<()> {
        let pair = ClockPair::now(self.source);
        put_mark(&mut self.batch, [pair.nanos, pair.ticks, lost, until]);
        self.marked.spool.put(&self.batch)
    }

    /// Tells the next recorder how many records were read.
    pub(super) fn told_read(&self, records: u64) {
        self.marked.spool.told_read(records);
    }

    /// Bytes that wait for conversion.
    pub(super) fn waiting(&self) -> u64 {
        if self.marked.kept_bytes.is_some() { 0 } else { self.marked.spool.waiting() }
    }

    /// Whether a flight recorder has much more than it keeps: a snapshot is being written for long.
    pub(super) fn is_crowded(&self) -> bool {
        self.marked.kept_bytes.is_some_and(|most| self.marked.spool.waiting() > 2 * most)
    }

    /// Lets the oldest rounds of a flight recorder go, and calls `each` with the records of each.
    pub(super) fn keep_newest(&self, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        let spool = &self.marked.spool;
        let Some(mut over) = self.marked.kept_bytes.and_then(|most| spool.waiting().checked_sub(most)) else {
            return Ok(());
        };
        let (mut at, mut done) = (spool.place(), None);
        let mut round = Vec::new();
        while let Some((length, _)) = spool.head_at(at)? {
            let bytes = HEAD + u64::from(length & !MARK);
            if length & MARK != 0 {
                done = Some(at);
                if !round.is_empty() {
                    each(&round);
                    round.clear();
                }
                if over == 0 {
                    break;
                }
            } else {
                let begin = round.len();
                round.resize(begin + length as usize, 0);
                spool.read_at(at + HEAD, &mut round[begin..])?;
            }
            (at, over) = (at + bytes, over.saturating_sub(bytes));
        }
        if let Some(done) = done {
            spool.let_go(done);
        }
        Ok(())
    }
}

/// Rounds for the converter.
#[derive(Debug)]
pub(super) struct MarkedRounds {
    spool: Arc<PageSpool>,
    /// Others need them after this reader.
    is_kept: bool,
    /// The mark before.
    last: Option<ClockPair>,
    /// Entries before the next mark.
    entries: Vec<u8>,
    turn: Vec<u8>,
}

impl MarkedRounds {
    /// Bytes before the next round.
    pub(super) fn place(&self) -> u64 {
        self.spool.place()
    }

    /// Whether there is more.
    pub(super) fn waits(&self) -> bool {
        self.spool.waiting() > 0
    }

    /// Ticks of the last mark.
    pub(super) fn last(&self) -> u64 {
        self.last.map_or(0, |last| last.ticks)
    }

    /// Reads the next round; `None`: there is none.
    pub(super) fn next(&mut self) -> io::Result<Option<RoundMark>> {
        let mut most = TURN;
        loop {
            let place = self.spool.place();
            self.spool.peek(most, &mut self.turn)?;
            let (mut rest, mut mark) = (&self.turn[..], None);
            while let Some((length, _, entry, behind)) = next_entry(rest) {
                let at = place + (self.turn.len() - rest.len()) as u64;
                if length & MARK == 0 {
                    self.entries.extend_from_slice(&rest[..rest.len() - behind.len()]);
                } else {
                    let number = |at: usize| entry.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
                    let [nanos, ticks, lost, until] = [0, 8, 16, 24].map(|at| number(at).unwrap_or(0));
                    mark = Some(RoundMark { pair: ClockPair { nanos, ticks }, lost, until, place: at });
                }
                rest = behind;
                if mark.is_some() {
                    break;
                }
            }
            let used = self.turn.len() - rest.len();
            self.spool.used(used);
            if mark.is_some() {
                return Ok(mark);
            }
            // One entry has all that a ring had.
            let next = rest.first_chunk().map_or(0, |length| (u32::from_le_bytes(*length) & !MARK) as usize + 8);
            if used == 0 && (next <= most || self.spool.waiting() < next as u64) {
                return Ok(None);
            }
            most = TURN.max(next);
        }
    }

    /// The entries of the round, which are not in it any more.
    pub(super) fn take_entries(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.entries)
    }

    /// Ticks of a time in the round before a mark.
    pub(super) fn ticks_at(&self, mark: &RoundMark, nanos: u64) -> u64 {
        self.last.unwrap_or(mark.pair).ticks_at(mark.pair, nanos)
    }

    /// The round is converted.
    pub(super) fn end(&mut self, mark: &RoundMark) {
        self.last = Some(mark.pair);
        self.entries.clear();
    }

    /// The trace has everything before the mark at this place, and so many events.
    pub(super) fn is_done(&self, done: u64, events: u64, understood: u64) {
        if !self.is_kept {
            self.spool.is_done(&SpoolProgress { done, events, understood });
        }
    }
}

/// CPUs and records of the entries of a round.
pub(super) fn all_entries(mut entries: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    std::iter::from_fn(move || {
        let (_, cpu, records, behind) = next_entry(entries)?;
        entries = behind;
        Some((cpu, records))
    })
}

/// Adds a mark of these numbers.
pub(super) fn put_mark(batch: &mut Vec<u8>, numbers: [u64; 4]) {
    batch.extend_from_slice(&(32 | MARK).to_le_bytes());
    batch.extend_from_slice(&0_u32.to_le_bytes());
    numbers.iter().for_each(|number| batch.extend_from_slice(&number.to_le_bytes()));
}

/// Splits off the first entry of a spool: its length with its mark, its CPU, its bytes, and the rest.
pub(super) fn next_entry(bytes: &[u8]) -> Option<(u32, u32, &[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (cpu, rest) = rest.split_first_chunk()?;
    let length = u32::from_le_bytes(*length);
    let (entry, rest) = rest.split_at_checked((length & !MARK) as usize)?;
    Some((length, u32::from_le_bytes(*cpu), entry, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(kept_bytes: Option<u64>) -> (MarkedSpool, MarkedWriter) {
        let file = OwnedFd::from(tempfile::tempfile().expect("there is room"));
        let marked = MarkedSpool::open(file, kept_bytes).expect("there is room");
        let writer = MarkedWriter::new(marked.clone(), ClockSource::Monotonic).expect("there is room");
        (marked, writer)
    }

    fn round(writer: &mut MarkedWriter, number: u64, entries: &[&[u8]]) {
        writer.begin();
        for (cpu, records) in (0..).zip(entries) {
            writer.entry(cpu, |batch| batch.extend_from_slice(records));
        }
        writer.end(number, 10 * number).expect("there is room");
    }

    fn next(rounds: &mut MarkedRounds) -> Option<(u64, Vec<Vec<u8>>)> {
        let mark = rounds.next().expect("it is there")?;
        let entries = all_entries(&rounds.take_entries()).map(|(_, records)| records.to_vec()).collect();
        rounds.end(&mark);
        Some((mark.lost, entries))
    }

    /// One look at a ring may find more than is read of the spool at a time.
    #[test]
    fn long_entries_are_read() {
        let (marked, mut writer) = marked(None);
        let long = vec![7; 3 * TURN];
        round(&mut writer, 1, &[b"short", &long, b"end"]);
        let mut rounds = marked.rounds().expect("it is there");
        assert_eq!(next(&mut rounds), Some((0, vec![])), "the time before the first one");
        assert_eq!(next(&mut rounds), Some((1, vec![b"short".to_vec(), long, b"end".to_vec()])));
        assert!(next(&mut rounds).is_none() && !rounds.waits());
    }

    #[test]
    fn the_next_recorder_goes_on_behind_the_last_round_that_is_done() {
        let (marked, mut writer) = marked(None);
        (1..4).for_each(|number| round(&mut writer, number, &[&[number as u8; 3]]));
        let mut rounds = marked.rounds().expect("it is there");
        assert!(next(&mut rounds).is_some() && next(&mut rounds).is_some());
        let second = rounds.next().expect("it is there").expect("it is whole");
        rounds.is_done(second.place, 5, 6);
        let again = MarkedSpool::open(marked.file.try_clone().expect("it is open"), None).expect("it is there");
        assert!(again.spool.place() > 0 && (again.before.events, again.before.understood) == (5, 6));
        let mut rounds = again.rounds().expect("it is there");
        assert_eq!([next(&mut rounds), next(&mut rounds)], [Some((2, vec![])), Some((3, vec![vec![3; 3]]))]);
    }

    #[test]
    fn the_newest_rounds_are_kept() {
        // A round has 40 bytes for its mark, and 108 for its entry.
        let (marked, mut writer) = marked(Some(3 * 148 + 50));
        let mut gone = Vec::new();
        for number in 1..=10 {
            round(&mut writer, number, &[&[number as u8; 100]]);
            writer.keep_newest(|records| gone.push(records[0])).expect("it can be read");
        }
        assert_eq!(gone, [1, 2, 3, 4, 5, 6, 7]);
        // Each snapshot has them.
        for _ in 0..2 {
            let mut rounds = marked.rounds().expect("it is there");
            let all: Vec<u64> = std::iter::from_fn(|| next(&mut rounds)).map(|(number, _)| number).collect();
            assert_eq!(all, [7, 8, 9, 10]);
        }
        assert!(!writer.is_crowded());
    }
}
