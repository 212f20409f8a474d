//! Crash recovery: continues a trace after its recorder was killed, in its own files.
//!
//! ```text
//! journal    classes, clock ──> metadata, said again if a part of it is half
//! packets    cut behind the last whole one ──> number of the next, what was lost, where each lane is
//! kymo       what was said of programs and of losses without a lane
//! ```
//!
//! Of several chunks, the last one that has begun continues; those before it are completed.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::clock::{TickSource, uptime_ns};
use crate::program::drain::{DrainProgress, Position, lost_since};
use crate::program::run::EventRun;
use crate::trace::chunk::{LeftoverStream, TraceChunk, stream_number};
use crate::trace::file_error;
use crate::trace::journal::{Journal, JournalHead, JournalLine};
use crate::trace::live;
use crate::trace::own::{self, LossCause, OwnEvents, TraceLoss};
use crate::trace::repair::{CompletePacket, advance, cut, packets, repair};
use crate::trace::{Output, OutputOptions, Tally, TraceError};

/// A trace that continues.
#[derive(Debug)]
pub struct Resumed {
    /// The trace to write to.
    pub output: Output,
    /// How far the trace is, by the program's key; programs are to be
    /// [resumed](crate::program::Program::resume) there, or before that.
    pub programs: HashMap<u64, DrainProgress>,
}

/// A chunk that continues.
struct ResumedChunk {
    path: PathBuf,
    beginning: JournalHead,
    lines: Vec<JournalLine>,
    journal: Journal,
}

/// Content of the chunk's files.
#[derive(Default)]
struct ChunkContent {
    left: BTreeMap<u32, LeftoverStream>,
    programs: HashMap<u64, DrainProgress>,
    tally: Tally,
    unreadable: u64,
}

impl Output {
    /// Continues a trace after its recorder was killed. That recorder could not write `untold` events,
    /// and had not counted them in the trace. `None`: the trace had not begun, and can be
    /// [created](Output::create).
    ///
    /// # Errors
    ///
    /// The trace cannot be read or written, or it cannot be continued. Its content stays.
    pub fn resume(
        path: &Path,
        options: OutputOptions,
        clock: &mut TickSource,
        untold: u64,
    ) -> Result<Option<Resumed>, TraceError> {
        let fault = |error| file_error(path, error);
        if !path.exists() {
            return Ok(None);
        }
        let Some(begun) = last_begun(path, options.has_chunks()).map_err(fault)? else { return Ok(None) };
        let ResumedChunk { path: folder, beginning, lines, journal } = begun;
        let mut read = ChunkContent { programs: beginning.programs.clone(), ..ChunkContent::default() };
        read.all(&folder, &beginning).map_err(fault)?;
        live::begin(&folder, options.session.as_deref());
        let chunk = TraceChunk::go_on(&folder, (&beginning, lines, journal), read.left)?;
        clock.was_watched(beginning.watched);
        let facts = beginning.facts;
        // Not before the last packet of the recorder's own stream, so that its time never steps
        // back.
        let now = clock.now().saturating_sub(facts.base).max(chunk.end(0));
        // `last_begun` has checked that the journal gives the recorder's own events these ids.
        let own = OwnEvents::new([0, 1, 2, 3, 4], chunk.before_events(), now);
        let mut output = Self::of(path, options, clock, (facts, chunk, own, 0));
        let since = Duration::from_nanos(uptime_ns().saturating_sub(beginning.began_ns).try_into().unwrap_or(0));
        output.chunk_begin = Instant::now().checked_sub(since).unwrap_or_else(Instant::now);
        output.tally = joined(&beginning, &read.tally, output.chunk.files() as u64);
        output.tally.discarded += untold;
        // Stream 0, because the lanes that lost these events are not known any more.
        output.chunk.lose_unwritten(0, untold);
        output.chunks = earlier(path, beginning.chunk).map_err(fault)?.into();
        output.tally.deleted = (beginning.chunk - 1).saturating_sub(output.chunks.len() as u64);
        output.resumed.clone_from(&read.programs);
        output.count();
        Ok(Some(Resumed { output, programs: read.programs }))
    }

    /// Events that could not be written, as far as the trace does not count them yet.
    #[must_use]
    pub fn untold(&self) -> u64 {
        self.chunk.untold()
    }

    /// Another recorder continues the trace while this file exists.
    pub(crate) fn is_kept(&mut self, session: Option<PathBuf>) {
        self.options.session = session;
    }

    /// Progress of earlier recorders with programs, as far as the trace cannot tell it.
    pub(crate) fn is_resumed_at(&mut self, programs: &HashMap<u64, DrainProgress>) {
        for (program, progress) in programs {
            let known = self.resumed.entry(*program).or_default();
            *known = std::mem::take(known).later(progress);
        }
    }

    /// An earlier recorder could not write so many events.
    pub(crate) fn has_not_written(&mut self, events: u64) {
        self.tally.unwritten = events;
    }
}

/// The part of a run that no earlier recorder has written; `None`: all of it is written.
pub(crate) fn rest<'r>(resumed: &mut HashMap<u16, Position>, mut run: EventRun<'r>) -> Option<EventRun<'r>> {
    let Some(position) = resumed.get(&run.lane) else { return Some(run) };
    let end = run.from.saturating_add(run.bytes.len() as u32);
    if run.sequence < position.sequence || (run.sequence == position.sequence && end <= position.bytes) {
        return None;
    }
    // A part of the sub-buffer is written: packets end between events, so the rest begins with one.
    if run.sequence == position.sequence && run.from < position.bytes {
        run.bytes = &run.bytes[(position.bytes - run.from) as usize..];
        run.from = position.bytes;
    }
    run.begin = run.begin.max(position.last.min(run.last));
    // The earlier recorder has reported the losses up to its position.
    run.discarded = lost_since(position.discarded, run.discarded_ever);
    // The earlier recorder gave back the sub-buffers that it wrote, and programs overwrite
    // sub-buffers only for flight recorders.
    run.missing = 0;
    // From here on this recorder's own position counts.
    resumed.remove(&run.lane);
    Some(run)
}

fn joined(beginning: &JournalHead, found: &Tally, files: u64) -> Tally {
    let before = &beginning.before;
    Tally {
        events: before.events + found.events,
        own: before.own + found.own,
        discarded: before.discarded + found.discarded,
        no_lane: before.no_lane + found.no_lane,
        undefined: before.undefined + found.undefined,
        missing: before.missing + found.missing,
        unreadable: before.unreadable + found.unreadable,
        chunks: beginning.chunk,
        files: before.files.max(files),
        ..before.clone()
    }
}

/// The last chunk of a trace that has begun. Deletes one that has not, and completes those before
/// it.
fn last_begun(path: &Path, has_chunks: bool) -> io::Result<Option<ResumedChunk>> {
    let mut folders = chunks(path)?;
    if !has_chunks {
        folders = std::iter::once((1, path.to_owned())).chain(siblings(path)?).collect();
    }
    let mut last = None;
    // From the last one back: only one chunk continues, and all before it are completed.
    for (_, folder) in folders.into_iter().rev() {
        if last.is_some() {
            if Journal::read(&folder).is_ok_and(|journal| journal.is_some()) {
                repair(&folder)?;
                live::say(&folder, false, None, None);
                Journal::delete(&folder);
            }
            continue;
        }
        match Journal::read(&folder)? {
            Some((beginning, lines, journal)) if begins_as_ours(&lines) => {
                last = Some(ResumedChunk { path: folder, beginning, lines, journal });
            }
            // The recorder was killed while it wrote the first classes: there is no packet.
            Some(_) | None if streams(&folder)?.is_empty() => unmake(&folder, path)?,
            _ => {
                let what = "there is nothing that says how it goes on";
                return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", folder.display())));
            }
        }
    }
    Ok(last)
}

/// Whether the recorder's own events have the ids that this recorder gives them.
fn begins_as_ours(lines: &[JournalLine]) -> bool {
    let mut events = lines.iter().filter_map(|line| match line {
        JournalLine::Event { stream_class: 0, id, class } => Some((*id, class)),
        _ => None,
    });
    let is_same = |(number, class): (u16, &_)| events.next().is_some_and(|(id, found)| id == number && found == class);
    (0..).zip(own::CLASSES.iter().map(AsRef::as_ref)).all(is_same)
}

/// Chunks in the folder of a trace, with their numbers, in order.
pub(crate) fn chunks(path: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let number = entry.file_name().to_str().and_then(|name| {
            let is_number = name.len() >= 6 && name.bytes().all(|digit| digit.is_ascii_digit());
            is_number.then(|| name.parse::<u64>().ok())?
        });
        found.extend(number.map(|number| (number, entry.path())));
    }
    found.sort();
    Ok(found)
}

/// Parts beside a trace that ran out of event ids: `DIR-2` and so on.
fn siblings(path: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let name = path.file_name().map_or_else(Default::default, std::ffi::OsStr::to_string_lossy);
    let mut found = Vec::new();
    for number in 2.. {
        let folder = path.with_file_name(format!("{name}-{number}"));
        match Journal::read(&folder) {
            Ok(Some((beginning, ..))) if beginning.root == path => found.push((number, folder)),
            // Its journal was deleted when the next part began.
            Ok(None) if folder.join("metadata").exists() => {}
            _ => break,
        }
    }
    Ok(found)
}

/// Files of streams, with their numbers.
fn streams(folder: &Path) -> io::Result<Vec<(u32, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        found.extend(entry.file_name().to_str().and_then(stream_number).map(|number| (number, entry.path())));
    }
    found.sort();
    Ok(found)
}

/// Deletes the files of a chunk that has not begun.
fn unmake(folder: &Path, root: &Path) -> io::Result<()> {
    for name in ["metadata", "metadata.new", ".kymo-live"] {
        match fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Journal::delete(folder);
    if folder == root { Ok(()) } else { fs::remove_dir(folder) }
}

/// Chunks before one, and their bytes.
fn earlier(path: &Path, chunk: u64) -> io::Result<Vec<(PathBuf, u64)>> {
    let mut found = Vec::new();
    for (number, folder) in chunks(path)? {
        if number < chunk {
            let files = fs::read_dir(&folder)?.filter_map(|entry| entry.ok()?.metadata().ok());
            found.push((folder, files.filter(fs::Metadata::is_file).map(|file| file.len()).sum()));
        }
    }
    Ok(found)
}

impl ChunkContent {
    /// Reads all streams of a chunk, and cuts incomplete packets.
    fn all(&mut self, folder: &Path, beginning: &JournalHead) -> io::Result<()> {
        let base = beginning.facts.base;
        let before = crate::trace::chunk::before_events(beginning.namespaces);
        let mut gaps = 0;
        for (number, path) in streams(folder)? {
            let file = File::options().read(true).write(true).open(&path)?;
            let mut next = 0;
            let left = packets(&file, |packet| {
                // Numbers of packets that are missing: losses of an earlier recorder that are not
                // counted in events.
                gaps += packet.entry.sequence.saturating_sub(next);
                next = packet.entry.sequence.wrapping_add(1);
                advance(&mut self.programs, packet, Some(base));
                self.count(&file, (number, before), packet)
            })?;
            cut(&file, &left)?;
            // Its number may be used for a stream of another class.
            if left.packets == 0 {
                fs::remove_file(&path)?;
                continue;
            }
            self.tally.discarded = self.tally.discarded.saturating_add(left.discarded);
            self.left.insert(number, left);
        }
        self.tally.missing = gaps.saturating_sub(self.unreadable);
        Ok(())
    }

    fn count(&mut self, file: &File, (number, before): (u32, usize), packet: &CompletePacket) -> io::Result<()> {
        if packet.is_of_program() {
            self.tally.events += u64::from(packet.events);
            return Ok(());
        }
        self.tally.own += u64::from(packet.events);
        // Firings of triggers.
        if number > 0 {
            return Ok(());
        }
        let content = (packet.entry.content_bits / 8) as usize;
        let mut events = vec![0; content.saturating_sub(before)];
        // The recorder's own events say what the counters of packets cannot: damage, and losses
        // without a lane.
        file.read_exact_at(&mut events, packet.entry.offset + before as u64)?;
        own::read(&events).iter().for_each(|loss| self.lost(loss));
        Ok(())
    }

    fn lost(&mut self, loss: &TraceLoss) {
        self.tally.unreadable += loss.bytes;
        self.unreadable += u64::from(loss.why == LossCause::Unreadable);
        match (loss.why, loss.lane) {
            (LossCause::Undefined, _) => self.tally.undefined += loss.events,
            (LossCause::NoLane, u16::MAX) => self.tally.no_lane += loss.events,
            _ => {}
        }
        if !matches!(loss.why, LossCause::NoLane | LossCause::Full) || loss.events_ever == 0 {
            return;
        }
        let known = self.programs.entry(loss.program).or_default();
        if loss.lane == u16::MAX {
            known.discarded = known.discarded.max(loss.events_ever);
        } else {
            let position = known.positions.entry(loss.lane).or_default();
            position.discarded = position.discarded.max(loss.events_ever);
        }
    }
}
