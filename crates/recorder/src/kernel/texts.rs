//! Texts of system calls, beside the pages: read after them, and there before those are converted.
//!
//! ```text
//! look n      pages of all CPUs ──> spools of pages          texts of all CPUs, and a mark ──> spool of texts
//! converter   texts up to mark n+4, and then pages that were read before the texts of mark n
//! ```
//!
//! So the texts of a call are there when its page is converted, also those that could only be read at the end of a call, if that
//! came within four looks. A mark says since when texts were read, what the clocks told, and how many texts were lost.

use std::collections::VecDeque;
use std::io;

use kymo_ftrace::texts::{KnownTexts, TextJoin, TextRecord};
use kymo_ftrace::{CallTable, EventCatalog};
use kymo_lane::ClockSource;
use kymo_probe::rings::{ProgramRingFiles, ProgramRings};

use crate::clock;
use crate::kernel::marked::{MarkedRounds, MarkedSpool, MarkedWriter, RoundMark, all_entries};

/// Marks that pages wait for.
const MARKS_WAITED: usize = 4;

/// Moves texts from rings to their spool.
#[derive(Debug)]
pub(super) struct TextReader {
    rings: ProgramRings,
    writer: MarkedWriter,
    source: ClockSource,
    /// All texts of calls before these ticks were read.
    until: u64,
    /// Texts that were lost, and those that were read, until now.
    pub(super) lost: u64,
    pub(super) read: u64,
}

impl TextReader {
    /// Moves all texts, if there is room for them, and marks that: pages that were read until now have all of theirs. `may_forget`:
    /// no snapshot needs the oldest.
    pub(super) fn read(&mut self, has_room: bool, may_forget: bool) -> io::Result<()> {
        let Self { rings, writer, .. } = self;
        writer.begin();
        if has_room && !writer.is_crowded() {
            self.until = clock::ticks(self.source);
            let mut read = 0;
            writer.entry(0, |batch| read = rings.drain(batch));
            self.read += read;
        }
        // Behind the texts: what was lost before them is counted.
        self.lost = rings.lost();
        writer.end(self.lost, self.until)?;
        writer.told_read(self.read);
        rings.release();
        if may_forget { writer.keep_newest(|_| {}) } else { Ok(()) }
    }

    /// Bytes that wait for conversion.
    pub(super) fn waiting(&self) -> u64 {
        self.writer.waiting()
    }
}

/// The way of texts to converters.
#[derive(Clone, Debug)]
pub(super) struct TextSource {
    marked: MarkedSpool,
    /// About so many ticks are a second.
    frequency: u64,
}

/// The reader of texts, and their way to converters; an error: why there are none. A flight recorder keeps so many bytes.
pub(super) fn begin(
    files: Option<Result<ProgramRingFiles, String>>,
    (source, frequency): (ClockSource, u64),
    kept_bytes: Option<u64>,
) -> Result<Option<(TextReader, TextSource)>, String> {
    let Some(files) = files else { return Ok(None) };
    let files = files?;
    let rings = ProgramRings::map(&files).map_err(|error| format!("their rings cannot be mapped: {error}"))?;
    let kept_bytes = kept_bytes.map(|bytes| bytes * files.cpus.len() as u64);
    let marked = MarkedSpool::open(files.spool, kept_bytes).map_err(|error| error.to_string())?;
    let read = marked.spool.read_before();
    let writer = MarkedWriter::new(marked.clone(), source).map_err(|error| error.to_string())?;
    let reader = TextReader { rings, writer, source, until: 0, lost: 0, read };
    Ok(Some((reader, TextSource { marked, frequency })))
}

impl TextSource {
    /// Texts as they are added.
    pub(super) fn feed(&self) -> io::Result<TextFeed> {
        let (until, next, done) = Default::default();
        let (join, rounds) = (TextJoin::new(self.frequency), self.marked.rounds()?);
        let before = rounds.place();
        Ok(TextFeed { rounds, join, lost: None, until, next, before, done })
    }

    /// Texts that are kept now.
    pub(super) fn kept(&self) -> io::Result<TextFeed> {
        let mut feed = TextFeed { join: TextJoin::of_all(self.frequency), ..self.feed()? };
        while let Some(mark) = feed.rounds.next()? {
            feed.end_round(&mark);
        }
        feed.give_up();
        Ok(feed)
    }
}

/// The origin of texts, for the environment of the trace; `None`: there are no calls.
pub(super) fn origin<T>(texts: &Result<Option<T>, String>, are_wanted: bool) -> Option<String> {
    match texts {
        Ok(None) if are_wanted => None,
        Ok(None) => Some("addresses: texts were not wanted".to_owned()),
        Ok(Some(_)) => Some("eBPF".to_owned()),
        Err(why) => Some(format!("addresses: {why}")),
    }
}

/// Texts for the converter.
#[derive(Debug)]
pub(super) struct TextFeed {
    rounds: MarkedRounds,
    join: TextJoin,
    /// Those that were lost until the last mark.
    lost: Option<u64>,
    /// Pages that were read until these ticks may be converted, and those when the next marks are there; with the place of the spool
    /// that later pages need.
    pub(super) until: u64,
    next: VecDeque<(u64, u64)>,
    /// The place of the last mark, and that which pages need that were read after `until`.
    before: u64,
    done: Option<u64>,
}

impl TextFeed {
    /// Texts cannot be read any more: pages wait no longer for them.
    pub(super) fn give_up(&mut self) {
        self.until = u64::MAX;
        self.next.clear();
    }

    /// Takes texts up to the next mark, where packets have all pages that were read until `until`; `false`: there is none. `is_all`:
    /// none will come.
    pub(super) fn advance(&mut self, is_all: bool) -> io::Result<bool> {
        if let Some(done) = self.done.take() {
            self.rounds.is_done(done, 0, 0);
        }
        if let Some(mark) = self.rounds.next()? {
            self.end_round(&mark);
            return Ok(true);
        }
        let is_new = is_all && self.until != u64::MAX;
        if is_all {
            self.until = u64::MAX;
        }
        Ok(is_new)
    }

    fn end_round(&mut self, mark: &RoundMark) {
        for (_, mut rest) in all_entries(&self.rounds.take_entries()) {
            while let Some((length, behind)) = rest.split_first_chunk::<4>() {
                let Some((record, behind)) = behind.split_at_checked(u32::from_le_bytes(*length) as usize) else {
                    break;
                };
                if let Some(record) = TextRecord::read(record) {
                    self.join.add(self.rounds.ticks_at(mark, record.nanos), &record);
                }
                rest = behind;
            }
        }
        self.rounds.end(mark);
        self.join.end_round(self.lost.is_some_and(|lost| lost != mark.lost));
        self.lost = Some(mark.lost);
        // Texts of pages that are read later are behind the mark before this one: events are noted after their texts.
        self.next.push_back((mark.until, std::mem::replace(&mut self.before, mark.place)));
        if self.next.len() > MARKS_WAITED {
            let (until, place) = self.next.pop_front().unwrap_or_default();
            (self.until, self.done) = (until, Some(place));
        }
    }

    /// Whose numbers a call at these ticks has, and its texts; `unknown` counts those that are not there.
    pub(super) fn of(
        &mut self,
        catalog: &mut EventCatalog,
        ticks: u64,
        record: &[u8],
        unknown: &mut u64,
    ) -> (CallTable, Option<KnownTexts>) {
        let Some(call) = catalog.call(record) else { return (CallTable::Native, None) };
        let table = self.join.table(ticks, &call);
        let texts = if call.is_exit { 0 } else { catalog.texts(table, call.number) };
        if texts == 0 {
            return (table, None);
        }
        let known = self.join.take(ticks, &call, table, texts);
        let missing = |at: usize| texts & 1 << at != 0 && call.arguments[at] != 0 && known.texts[at].is_none();
        *unknown += (0..known.texts.len()).filter(|at| missing(*at)).count() as u64;
        (table, Some(known))
    }
}
