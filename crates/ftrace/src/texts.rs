//! Texts of system calls: records of another source, and which of them belong to a call.
//!
//! ```text
//! 0      8        16   20      22        23     24      28      32
//! nanos  address  tid  number  argument  flags  length  unused  text, with a zero byte at its end
//! ```
//!
//! The source notes a text just before the kernel's ring buffer notes the call, so that the last record of a thread before the
//! call is its. While records were lost, the last one may be of an earlier call with the same address: then only a record just
//! before it is taken. A record is of one call.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::CallRecord;
use crate::calls::CallTable;
use crate::plan::ARGUMENTS_MAX;
pub use crate::plan::{KnownTexts, NO_TEXTS};

/// Bytes of a record before its text.
pub const TEXT_HEAD_BYTES: usize = 32;
/// Bytes of a text at most, with its zero byte.
pub const TEXT_BYTES_MAX: usize = 4096;
/// The argument of records that only tell of a 32-bit call.
pub const NO_ARGUMENT: u8 = 0xff;
/// Flags of records: it was made at the end of the call; the caller is of 32 bits; the text could not be read.
pub const TEXT_AT_EXIT: u8 = 1;
/// See [`TEXT_AT_EXIT`].
pub const TEXT_COMPAT: u8 = 2;
/// See [`TEXT_AT_EXIT`].
pub const TEXT_UNREADABLE: u8 = 4;

/// Rounds for which a record waits for its call. Pages wait for some; their ends may be read a round later than their texts; and a
/// thread may be stopped between its text and its call.
const ROUNDS_KEPT: u64 = 16;
/// Nanoseconds that clocks may disagree.
const DISAGREEMENT_NS: u64 = 200;
/// Nanoseconds from a record to its call at most. Threads are often stopped between the two: the first moment at which they can be
/// is there. Where records were lost, the call follows at once.
const BEFORE_MAX_NS: u64 = 10_000_000_000;
const BEFORE_MAX_LOSSY_NS: u64 = 2_000;

/// A record of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextRecord<'a> {
    /// `CLOCK_MONOTONIC` when the call began, or when it ended in a record of its end without a text.
    pub nanos: u64,
    /// Where the text was.
    pub address: u64,
    /// The thread.
    pub tid: u32,
    /// The number of the call.
    pub number: u16,
    /// The number of the argument.
    pub argument: u8,
    /// Flags.
    pub flags: u8,
    /// The text, without its zero byte; `None`: it could not be read.
    pub text: Option<&'a [u8]>,
}

impl<'a> TextRecord<'a> {
    /// Reads a record; `None`: it is none.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (head, text) = bytes.split_first_chunk::<TEXT_HEAD_BYTES>()?;
        let word = |at: usize| head[at..at + 4].first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        let long = |at: usize| Some(u64::from(word(at)?) | u64::from(word(at + 4)?) << 32);
        let (argument, flags) = (head[22], head[23]);
        let has_text = flags & TEXT_UNREADABLE == 0 && argument != NO_ARGUMENT;
        let text = if has_text {
            let text = text.get(..usize::try_from(word(24)?).ok()?)?;
            Some(&text[..text.iter().position(|byte| *byte == 0)?])
        } else {
            None
        };
        if usize::from(argument) >= ARGUMENTS_MAX && argument != NO_ARGUMENT {
            return None;
        }
        let number = u16::from_le_bytes([head[20], head[21]]);
        Some(Self { nanos: long(0)?, address: long(8)?, tid: word(16)?, number, argument, flags, text })
    }
}

/// Records that wait for their calls.
#[derive(Clone, Debug)]
pub struct TextJoin {
    threads: HashMap<u32, Vec<KeptText>>,
    /// Ticks of a second.
    frequency: u64,
    /// Records are of rounds, the older of which are forgotten.
    round: u64,
    lossy_until: Option<u64>,
    compat_records: usize,
    /// Old rounds are not forgotten.
    keeps_all: bool,
}

#[derive(Clone, Debug)]
struct KeptText {
    ticks: u64,
    nanos: u64,
    address: u64,
    number: u16,
    argument: u8,
    flags: u8,
    is_taken: bool,
    round: u64,
    text: Option<Box<[u8]>>,
}

impl TextJoin {
    /// None yet; ticks have this frequency.
    #[must_use]
    pub fn new(frequency: u64) -> Self {
        let (threads, round, compat_records) = Default::default();
        Self { threads, frequency, round, lossy_until: None, compat_records, keeps_all: false }
    }

    /// The same, for records that are all there before any call is asked for.
    #[must_use]
    pub fn of_all(frequency: u64) -> Self {
        Self { keeps_all: true, ..Self::new(frequency) }
    }

    /// Adds a record that was made at these ticks.
    pub fn add(&mut self, ticks: u64, record: &TextRecord<'_>) {
        let texts = self.threads.entry(record.tid).or_default();
        let TextRecord { nanos, address, number, argument, flags, text, .. } = *record;
        // Texts that were read at the end of a call have the time of its beginning.
        let is_again = flags & TEXT_AT_EXIT != 0 && argument != NO_ARGUMENT;
        if is_again
            && let Some(first) = texts.iter_mut().rev().find(|kept| {
                (kept.nanos, kept.argument, kept.address, kept.number) == (nanos, argument, address, number)
            })
        {
            first.text = text.map(Box::from);
            return;
        }
        self.compat_records += usize::from(argument == NO_ARGUMENT);
        let flags = if is_again { flags & !TEXT_AT_EXIT } else { flags };
        let text = text.map(Box::from);
        let kept =
            KeptText { ticks, nanos, address, number, argument, flags, is_taken: false, round: self.round, text };
        // Nearly always at the end: only records of other CPUs are not in order.
        let at = texts.iter().rposition(|known| known.ticks <= ticks).map_or(0, |at| at + 1);
        texts.insert(at, kept);
    }

    /// All records of a round are there; `is_lossy`: others were lost. Forgets old ones.
    pub fn end_round(&mut self, is_lossy: bool) {
        self.round += 1;
        if is_lossy {
            // Texts of calls whose pages are converted later may be lost, too.
            self.lossy_until = Some(if self.keeps_all { u64::MAX } else { self.round + ROUNDS_KEPT });
        }
        if self.keeps_all {
            return;
        }
        let round = self.round;
        let mut forgotten = 0;
        self.threads.retain(|_, texts| {
            texts.retain(|kept| {
                let is_kept = !kept.is_taken && kept.round + ROUNDS_KEPT > round;
                forgotten += usize::from(!is_kept && kept.argument == NO_ARGUMENT);
                is_kept
            });
            !texts.is_empty()
        });
        self.compat_records -= forgotten;
    }

    /// The number of records that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.threads.values().map(Vec::len).sum()
    }

    /// The numbering of the call at these ticks has.
    #[inline]
    pub fn table(&mut self, ticks: u64, call: &CallRecord) -> CallTable {
        if self.compat_records == 0 {
            return CallTable::Native;
        }
        let flags = TEXT_COMPAT | if call.is_exit { TEXT_AT_EXIT } else { 0 };
        match self.find(ticks, call, (NO_ARGUMENT, 0, flags)) {
            Some(_) => CallTable::Compat,
            None => CallTable::Native,
        }
    }

    /// Texts of the call at these ticks, of arguments with a bit in the mask.
    pub fn take(&mut self, ticks: u64, call: &CallRecord, table: CallTable, mask: u8) -> KnownTexts {
        let flags = if table == CallTable::Compat { TEXT_COMPAT } else { 0 };
        let mut known = KnownTexts::default();
        for (argument, text) in (0_u8..).zip(&mut known.texts) {
            let address = call.arguments[usize::from(argument)];
            if mask & 1 << argument != 0 && address != 0 {
                *text = self.find(ticks, call, (argument, address, flags)).and_then(|kept| kept.text.take());
            }
        }
        known
    }

    /// The last record before a call, if it is of that call.
    fn find(&mut self, ticks: u64, call: &CallRecord, wanted: (u8, u64, u8)) -> Option<&mut KeptText> {
        let is_lossy = self.lossy_until.is_some_and(|until| self.round <= until);
        let before = if is_lossy { BEFORE_MAX_LOSSY_NS } else { BEFORE_MAX_NS };
        let in_ticks = |nanos: u64| (u128::from(nanos) * u128::from(self.frequency) / 1_000_000_000) as u64;
        let earliest = ticks.saturating_sub(in_ticks(before));
        let latest = ticks.saturating_add(in_ticks(DISAGREEMENT_NS));
        let Entry::Occupied(texts) = self.threads.entry(call.tid) else { return None };
        let texts = texts.into_mut();
        let (argument, address, flags) = wanted;
        let is_exit = call.is_exit;
        let end = texts.partition_point(|kept| kept.ticks <= latest);
        let near = texts[..end].iter_mut().rev().take_while(|kept| kept.ticks >= earliest);
        let last = { near }.find(|kept| kept.argument == argument && (kept.flags & TEXT_AT_EXIT != 0) == is_exit)?;
        let is_its = u64::from(last.number) == call.number
            && last.address == address
            && last.flags & !TEXT_UNREADABLE == flags
            && !last.is_taken;
        if !is_its {
            return None;
        }
        last.is_taken = true;
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENAT: u16 = 257;

    fn record(nanos: u64, argument: u8, flags: u8, text: &'static [u8]) -> TextRecord<'static> {
        let text = (flags & TEXT_UNREADABLE == 0 && argument != NO_ARGUMENT).then_some(text);
        let address = if argument == NO_ARGUMENT { 0 } else { 0x1000 };
        TextRecord { nanos, address, tid: 7, number: OPENAT, argument, flags, text }
    }

    fn call() -> CallRecord {
        CallRecord { tid: 7, number: OPENAT.into(), is_exit: false, arguments: [0, 0x1000, 0, 0, 0, 0] }
    }

    /// At 1 GHz, a tick is a nanosecond.
    fn join(records: &[TextRecord<'static>]) -> TextJoin {
        let mut join = TextJoin::new(1_000_000_000);
        records.iter().for_each(|record| join.add(record.nanos, record));
        join
    }

    fn text(join: &mut TextJoin, ticks: u64) -> Option<String> {
        let known = join.take(ticks, &call(), CallTable::Native, 0b10);
        known.texts[1].as_ref().map(|text| String::from_utf8_lossy(text).into_owned())
    }

    #[test]
    fn the_last_record_before_a_call_is_its() {
        let mut join = join(&[record(10_000, 1, 0, b"a"), record(20_000, 1, 0, b"b"), record(30_000, 1, 0, b"c")]);
        // In any order: CPUs are converted one after the other.
        assert_eq!(text(&mut join, 20_150).as_deref(), Some("b"));
        assert_eq!(text(&mut join, 10_100).as_deref(), Some("a"));
        // It was taken.
        assert_eq!(text(&mut join, 20_150), None);
        // The clocks may disagree.
        assert_eq!(text(&mut join, 29_900).as_deref(), Some("c"));
        // Other calls, other addresses, other callers.
        join.add(40_000, &record(40_000, 1, 0, b"d"));
        let other = CallRecord { number: 2, ..call() };
        assert_eq!(join.take(40_100, &other, CallTable::Native, 0b10), KnownTexts::default());
        let other = CallRecord { arguments: [0, 0x2000, 0, 0, 0, 0], ..call() };
        assert_eq!(join.take(40_100, &other, CallTable::Native, 0b10), KnownTexts::default());
        assert_eq!(join.take(40_100, &call(), CallTable::Compat, 0b10), KnownTexts::default());
        assert_eq!(text(&mut join, 40_100).as_deref(), Some("d"));
    }

    /// The record of the second call was lost, and the first call is converted later: its record is not taken.
    #[test]
    fn where_records_were_lost_only_a_near_one_is_taken() {
        let mut join = join(&[record(10_000, 1, 0, b"a")]);
        join.end_round(true);
        assert_eq!(text(&mut join, 15_000), None);
        assert_eq!(text(&mut join, 10_100).as_deref(), Some("a"));
    }

    #[test]
    fn a_text_that_was_read_at_the_end_is_that_of_the_beginning() {
        let unreadable = record(10_000, 1, TEXT_UNREADABLE, b"");
        let mut join = join(&[unreadable]);
        assert_eq!(text(&mut join.clone(), 10_100), None);
        join.add(10_000, &record(10_000, 1, TEXT_AT_EXIT, b"a"));
        assert_eq!(text(&mut join, 10_100).as_deref(), Some("a"));
    }

    #[test]
    fn callers_of_32_bits_are_told_apart() {
        let mut join =
            join(&[record(10_000, NO_ARGUMENT, TEXT_COMPAT, b""), record(10_500, NO_ARGUMENT, TEXT_COMPAT | 1, b"")]);
        let exit = CallRecord { is_exit: true, arguments: [0; 6], ..call() };
        assert_eq!(join.table(10_600, &exit), CallTable::Compat);
        assert_eq!(join.table(10_100, &call()), CallTable::Compat);
        assert_eq!(join.table(10_200, &call()), CallTable::Native);
    }

    #[test]
    fn records_are_forgotten() {
        let mut join = join(&[record(1, 1, 0, b"a"), record(2, NO_ARGUMENT, TEXT_COMPAT, b"")]);
        (1..ROUNDS_KEPT).for_each(|_| join.end_round(false));
        assert_eq!(join.waiting(), 2);
        join.end_round(false);
        assert_eq!((join.waiting(), join.compat_records), (0, 0));
    }

    #[test]
    fn all_records_are_kept_for_calls_that_are_asked_for_later() {
        let mut join = TextJoin::of_all(1_000_000_000);
        for number in 0..100 {
            join.add(1000 * number, &record(1000 * number, 1, 0, b"a"));
            join.end_round(false);
        }
        assert_eq!(join.waiting(), 100);
        assert_eq!(text(&mut join, 3_100).as_deref(), Some("a"));
        // Some were lost at some time: only near ones are taken.
        join.end_round(true);
        assert_eq!(text(&mut join, 9_500_000), None);
        assert_eq!(text(&mut join, 5_100).as_deref(), Some("a"));
    }

    #[test]
    fn bytes_are_a_record_or_none() {
        let mut bytes = vec![0; TEXT_HEAD_BYTES];
        bytes[16] = 7;
        (bytes[22], bytes[24]) = (1, 2);
        bytes.extend(b"x\0");
        let read = TextRecord::read(&bytes).expect("it is one");
        assert_eq!((read.tid, read.argument, read.text), (7, 1, Some(&b"x"[..])));
        assert_eq!(TextRecord::read(&bytes[..33]), None);
        bytes[22] = 6;
        assert_eq!(TextRecord::read(&bytes), None);
        (bytes[22], bytes[33]) = (1, b'y');
        assert_eq!(TextRecord::read(&bytes), None);
    }
}
