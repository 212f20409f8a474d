//! Traces that grow while they are read: the events of one time after another, each of them once.
//!
//! ```text
//! files     ████████████████████▒▒▒▒░░        what is written
//! time      ──────────┬─────────┬────────>
//!                  window    watermark        before it, everything is there
//! ```
//!
//! A recorder of ours says up to when everything is in the files, also while nothing happens. For
//! other recorders, a data stream is there up to the end of its last packet; when no file has grown
//! for a while, all of it is.
//!
//! Some recorders write the definition of an event later than the event. Such an event, and all that
//! are later, wait for it; all events wait for the definition of a stream.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kymo_decode::HeadError;
use kymo_ir::FaultKind;
use kymo_scan::index::HopFault;
use kymo_scan::{BrokenFile, Cursor, CursorItem, StreamFault, StreamFaultKind, Trace};
use kymo_source::{LiveState, SourceErrorKind};

use crate::open::again::EarlierTraces;
use crate::open::discover::{self, discover_machines, discover_recorded};
use crate::open::offsets::Offsets;
use crate::open::progress::Progress;
use crate::open::report::ReportProblem;
use crate::open::{OpenFailure, OpenOptions, Session};

/// How often to look for more.
const INTERVAL: Duration = Duration::from_millis(100);
/// A recorder that says nothing of its progress may hold back earlier events for so long, or the definitions of events.
const PATIENCE: Duration = Duration::from_secs(2);

/// Follows traces.
#[derive(Debug)]
pub struct Follow {
    paths: Vec<PathBuf>,
    options: OpenOptions,
    /// The events before this time were handed out.
    behind_ns: Option<i64>,
    /// Where that is in traces with clocks that have been redefined since.
    moved_ns: HashMap<PathBuf, i64>,
    is_over: bool,
    /// Bytes of all files and of metadata, and since when there are so many.
    grown: (u64, Option<Instant>),
    /// The state of the files when they were opened last: bytes, and whether they rested.
    opened: Option<(u64, bool)>,
    /// The recorders' statements before traces were opened last: events behind them may be missing
    /// in the open traces.
    lives: HashMap<PathBuf, LiveState>,
    /// Open files by which recorders see that this reader follows their traces.
    waits: HashMap<PathBuf, File>,
    /// The known facts about the traces as they were.
    earlier: EarlierTraces,
    /// Bytes of all files just before the traces were opened last.
    open_bytes: Option<u64>,
    /// Events without a definition that are in the next window, or were waited for.
    undefined: HashMap<EventPlace, Undefined>,
    /// Those of them that no window tells of yet, though it lacks them.
    given_up: Vec<ReportProblem>,
    /// Files that are gone, as windows have told.
    gone: Vec<ReportProblem>,
    /// A recorder's work between two reads.
    #[cfg(test)]
    meanwhile: tests::Meanwhile,
}

/// A time of which everything is there.
#[derive(Debug)]
pub struct Window {
    /// The traces as far as they are written.
    pub session: Arc<Session>,
    /// Its first nanosecond in each of the traces; `None`: it is the first window. At the end a
    /// recorder reports new knowledge of its clock, by which all times move: where the window
    /// before ended is somewhere else in that trace then.
    pub begins_ns: Vec<Option<i64>>,
    /// Its last nanosecond; `None`: nothing comes any more.
    pub end_ns: Option<i64>,
    /// The events that it lacks because they were not defined within a while, and what follows them in
    /// their packets.
    pub undefined: Vec<ReportProblem>,
    /// Files that were removed or truncated since the window before: their events that were not handed out yet are
    /// missing.
    pub gone: Vec<ReportProblem>,
}

/// The result of a look.
#[derive(Debug)]
pub enum Look {
    /// Nothing new.
    Nothing,
    /// Another window.
    More(Window),
    /// Nothing comes any more.
    Over,
}

/// Where an event is: its file, its packet's first byte there, its first bit in the packet.
type EventPlace = (PathBuf, u64, u64);

/// An event without a definition.
#[derive(Clone, Copy, Debug)]
struct Undefined {
    /// When it was seen first.
    since: Instant,
    /// The window tells of it.
    is_told: bool,
}

impl Undefined {
    fn is_awaited(&self) -> bool {
        self.since.elapsed() < PATIENCE
    }
}

/// How far traces are written.
struct Reached {
    /// Everything before is there.
    watermark_ns: i64,
    /// Nothing more comes.
    is_over: bool,
}

impl Follow {
    /// Follows every trace at or below the paths, from its begin.
    #[must_use]
    pub fn new(paths: Vec<PathBuf>, options: OpenOptions) -> Self {
        Self {
            earlier: EarlierTraces::new(&options.import),
            paths,
            options,
            behind_ns: None,
            moved_ns: HashMap::new(),
            is_over: false,
            grown: (0, None),
            opened: None,
            lives: HashMap::new(),
            waits: HashMap::new(),
            open_bytes: None,
            undefined: HashMap::new(),
            given_up: Vec::new(),
            gone: Vec::new(),
            #[cfg(test)]
            meanwhile: tests::Meanwhile::default(),
        }
    }

    /// Waits for the next window. `None`: nothing comes any more, as every recorder has said, or it was canceled.
    ///
    /// # Errors
    ///
    /// There is no trace, or it cannot be understood. A trace of which a recorder says that it has begun may have no metadata yet.
    pub fn next(&mut self, progress: &Progress) -> Result<Option<Window>, OpenFailure> {
        while !progress.is_cancelled() {
            match self.look()? {
                Look::More(window) => return Ok(Some(window)),
                Look::Over => break,
                Look::Nothing => std::thread::sleep(INTERVAL),
            }
        }
        Ok(None)
    }

    /// Looks once whether there is another window.
    ///
    /// # Errors
    ///
    /// As those of [`Follow::next`]. A half-written part may be whole the next time.
    pub fn look(&mut self) -> Result<Look, OpenFailure> {
        if self.is_over {
            return Ok(Look::Over);
        }
        if !self.has_more()? {
            return Ok(Look::Nothing);
        }
        let session = self.open()?;
        Ok(self.window(session).map_or(Look::Nothing, Look::More))
    }

    /// Whether a recorder says of all traces how far they are, as when they were looked at last.
    #[must_use]
    pub fn is_told(&self) -> bool {
        let session = self.earlier.session();
        session.is_none_or(|session| session.traces.iter().all(|trace| self.lives.contains_key(trace.folder.path())))
    }

    /// Whether one of these is a trace that a recorder has begun and that cannot be opened yet, as it has no metadata.
    #[must_use]
    pub fn is_awaited(paths: &[PathBuf]) -> bool {
        paths.iter().any(|path| is_awaited(path) && discover_recorded(path).iter().any(Result::is_err))
    }

    /// Whether a recorder says that it records a trace at or below these paths right now, or that it has begun one.
    #[must_use]
    pub fn is_recorded(paths: &[PathBuf]) -> bool {
        paths.iter().any(|path| {
            discover_recorded(path).iter().any(|found| match found {
                Ok(folder) => folder.live().is_some_and(|live| !is_over(live)),
                Err(_) => is_awaited(path),
            })
        })
    }

    /// The traces as they are now.
    fn open(&mut self) -> Result<Arc<Session>, OpenFailure> {
        let bytes = self.grown.0;
        // Time goes by also where nothing happens.
        if let Some(session) = self.earlier.session().filter(|_| self.open_bytes == Some(bytes)) {
            return Ok(Arc::clone(session));
        }
        let session = Arc::new(Session::open_again(&self.paths, &self.options, Some(&self.earlier))?);
        self.move_with_clocks(&session);
        self.earlier.opened(&session);
        self.open_bytes = Some(bytes);
        Ok(session)
    }

    /// Where a clock is redefined, the end of the handed-out events stays the same number of
    /// cycles.
    fn move_with_clocks(&mut self, session: &Session) {
        let Some(behind) = self.behind_ns else { return };
        for trace in &session.traces {
            let Some(before) = self.earlier.trace(&trace.folder) else { continue };
            let clock = |trace: &Trace| trace.streams.iter().find_map(|stream| stream.clock);
            let (Some(old), Some(new)) = (clock(before), clock(trace)) else { continue };
            if old != new {
                let path = trace.folder.path();
                let at = self.moved_ns.get(path).copied().unwrap_or(behind);
                let at = old.cycles_from(at).map_or(i64::MAX, |cycles| new.nanos_saturating(cycles));
                self.moved_ns.insert(path.to_owned(), at);
            }
        }
    }

    /// Whether it is worth while to open the traces again.
    fn has_more(&mut self) -> Result<bool, OpenFailure> {
        let offsets = Offsets::new(&self.options.trace_offsets)?;
        let (mut bytes, mut may_have_more, mut is_silent) = (0, false, false);
        self.lives.clear();
        // Statements are read before the sizes of files: a session of these sizes then has all events
        // before the stated time. In the other order, a recorder could write between the two reads.
        let known: Vec<PathBuf> = self.known_folders();
        let said: HashMap<PathBuf, Option<LiveState>> =
            known.into_iter().map(|path| (path.clone(), discover::live(&path))).collect();
        #[cfg(test)]
        self.meanwhile.run();
        let importing = self.earlier.importing();
        for found in discover_machines(&self.paths, importing, &|path| offsets.number_of(path)).found {
            let folder = match found {
                Ok(folder) => folder,
                // An error of this kind names the path that was asked for.
                Err(error) if matches!(error.kind, SourceErrorKind::NoTrace(_)) && is_awaited(&error.path) => continue,
                Err(error) => return Err(error.into()),
            };
            bytes += folder.streams().iter().map(|stream| stream.size).sum::<u64>() + folder.metadata_size();
            // A recorder's statement is in the trace's own time.
            let shift_ns = self.options.clock_shift_ns.saturating_add(offsets.of(folder.path()));
            let shifted =
                |live: LiveState| LiveState { watermark_ns: live.watermark_ns.saturating_add(shift_ns), ..live };
            let live = said.get(folder.path()).copied().unwrap_or_else(|| folder.live()).map(shifted);
            wait(&mut self.waits, folder.path(), live);
            self.lives.extend(live.map(|live| (folder.path().to_owned(), live)));
            let is_behind = |live: LiveState| self.behind_ns.is_none_or(|behind| behind < live.watermark_ns);
            may_have_more |= live.is_some_and(|live| is_behind(live) || is_over(live));
            is_silent |= live.is_none();
        }
        // Parts of a ring are deleted.
        self.waits.retain(|folder, _| self.lives.contains_key(folder));
        if self.grown.0 != bytes || self.grown.1.is_none() {
            self.grown = (bytes, Some(Instant::now()));
        }
        let now = Some((bytes, self.rests()));
        may_have_more |= is_silent && self.opened != now || self.awaits_definitions();
        if may_have_more {
            self.opened = now;
        }
        Ok(may_have_more)
    }

    /// The folders of the traces that were open last.
    fn known_folders(&self) -> Vec<PathBuf> {
        let traces = self.earlier.session().map_or(&[][..], |session| &session.traces);
        traces.iter().map(|trace| trace.folder.path().to_owned()).collect()
    }

    /// Whether no file has grown for a while.
    fn rests(&self) -> bool {
        self.grown.1.is_some_and(|since| since.elapsed() > PATIENCE)
    }

    /// The new window, of all that there is.
    fn window(&mut self, session: Arc<Session>) -> Option<Window> {
        let reached = self.reached(&session)?;
        let begin = |trace: &Arc<Trace>| self.moved_ns.get(trace.folder.path()).copied().or(self.behind_ns);
        let begins_ns = session.traces.iter().map(begin).collect();
        if reached.is_over {
            self.is_over = true;
            let (undefined, gone) = (std::mem::take(&mut self.given_up), self.newly_gone(&session));
            return Some(Window { session, begins_ns, end_ns: None, undefined, gone });
        }
        let watermark_ns = reached.watermark_ns.min(self.defined_up_to(&session, reached.watermark_ns));
        let gone = self.newly_gone(&session);
        let watermark_ns = match self.behind_ns.filter(|behind| watermark_ns <= *behind) {
            // A window without new events reports the files that are gone.
            Some(behind) if !gone.is_empty() => behind,
            Some(_) => return None,
            None => watermark_ns,
        };
        let end_ns = watermark_ns.checked_sub(1)?;
        self.behind_ns = Some(watermark_ns);
        // In these traces the end of the handed-out events is farther than that, still.
        self.moved_ns.retain(|_, moved| *moved > watermark_ns);
        let undefined = std::mem::take(&mut self.given_up);
        Some(Window { session, begins_ns, end_ns: Some(end_ns), undefined, gone })
    }

    /// Files that are gone and that no window has told of.
    fn newly_gone(&mut self, session: &Session) -> Vec<ReportProblem> {
        let gone = session.gone_files().into_iter().filter(|gone| !self.gone.contains(gone)).collect::<Vec<_>>();
        self.gone.extend(gone.iter().cloned());
        gone
    }

    /// Whether definitions may still come for which events wait.
    fn awaits_definitions(&self) -> bool {
        self.undefined.values().any(Undefined::is_awaited)
    }

    /// Up to when all new events before a time have definitions, or have waited for them long enough.
    fn defined_up_to(&mut self, session: &Session, watermark_ns: i64) -> i64 {
        let span = (self.behind_ns, watermark_ns.checked_sub(1));
        let cursors = session.cursors_between(true, span, &[], &Progress::default());
        let events =
            session.side_by_side(cursors, undefined_events).into_iter().flatten().map(|(time, fault, record)| {
                let (trace, _) = session.streams()[fault.stream];
                let path = trace.folder.stream(fault.file as usize).path().to_owned();
                (time, (path, fault.offset_bytes, record), session.problem(&fault))
            });
        let found: Vec<(i64, EventPlace, ReportProblem)> = events.chain(undefined_streams(session)).collect();
        let known = std::mem::take(&mut self.undefined);
        let mut up_to = i64::MAX;
        for (time, place, problem) in found {
            let new = Undefined { since: Instant::now(), is_told: false };
            let mut undefined = known.get(&place).copied().unwrap_or(new);
            if undefined.is_awaited() {
                up_to = up_to.min(time);
            } else if !undefined.is_told {
                undefined.is_told = true;
                self.given_up.push(problem);
            }
            self.undefined.insert(place, undefined);
        }
        up_to
    }

    /// How far all of the traces are written; `None`: one of them has not begun.
    fn reached(&self, session: &Session) -> Option<Reached> {
        let mut all = Reached { watermark_ns: i64::MAX, is_over: true };
        for trace in &session.traces {
            let reached = match self.lives.get(trace.folder.path()) {
                Some(live) => Reached { watermark_ns: live.watermark_ns, is_over: is_over(*live) },
                // Another part of a trace has begun meanwhile; up to when everything is there the one before it says.
                None if trace.folder.live().is_some() => Reached { watermark_ns: i64::MAX, is_over: false },
                None => Reached { watermark_ns: self.guess(&trace.streams)?, is_over: false },
            };
            if !reached.is_over {
                all.watermark_ns = all.watermark_ns.min(reached.watermark_ns);
            }
            all.is_over &= reached.is_over;
        }
        // Of parts that have all ended the next one says more.
        (all.is_over || all.watermark_ns < i64::MAX).then_some(all)
    }

    /// Up to when everything is there of a trace with a recorder that says nothing.
    fn guess(&self, streams: &[kymo_scan::DataStream]) -> Option<i64> {
        let ends = streams.iter().map(|stream| {
            let last = stream.packets.len().checked_sub(1).map(|last| stream.packets.get(last))?;
            Some(stream.clock?.nanos_saturating(last.end_cycles?))
        });
        if self.rests() { ends.flatten().max().map(|end| end.saturating_add(1)) } else { ends.min().flatten() }
    }
}

/// The events of a stream that no class describes: not before when they are, and their first bits.
fn undefined_events(mut cursor: Cursor) -> Vec<(i64, StreamFault, u64)> {
    let (mut found, mut last) = (Vec::new(), i64::MIN);
    while let Some(item) = cursor.next_item() {
        match item {
            CursorItem::Batch(batch) => {
                last = batch.keys.last().copied().unwrap_or(last);
                cursor.recycle(batch);
            }
            CursorItem::Fault(fault) => {
                if let StreamFaultKind::Record { record, fault: in_record } = &fault.kind
                    && matches!(in_record.kind, FaultKind::UnknownEventClass { .. })
                {
                    let record = *record;
                    found.push((last, fault, record));
                }
            }
        }
    }
    found
}

/// Files with packets of a stream class that the metadata lacks; the times of their events are unknown.
fn undefined_streams(session: &Session) -> Vec<(i64, EventPlace, ReportProblem)> {
    let mut found = Vec::new();
    for trace in &session.traces {
        for BrokenFile { file, error } in trace.broken_files.iter() {
            if matches!(error.fault, HopFault::Head(HeadError::StreamClass { .. })) {
                let path = trace.folder.stream(*file).path().to_owned();
                let problem = ReportProblem { place: path.display().to_string(), message: error.to_string() };
                found.push((i64::MIN, (path, error.offset_bytes, 0), problem));
            }
        }
    }
    found
}

/// Whether a recorder has begun with a trace without metadata yet.
fn is_awaited(path: &Path) -> bool {
    discover::live(path).is_some_and(|live| live.is_recording)
}

/// Whether nothing comes any more: the recorder has said so, or was killed and no other one goes
/// on.
fn is_over(live: LiveState) -> bool {
    !live.is_recording || (is_gone(live.recorder) && !live.goes_on)
}

/// Lets the recorder of a trace know that this reader waits.
fn wait(waits: &mut HashMap<PathBuf, File>, folder: &Path, live: Option<LiveState>) {
    if live.is_none_or(is_over) {
        waits.remove(folder);
    } else if !waits.contains_key(folder) {
        waits.extend(LiveState::wait(folder).map(|file| (folder.to_owned(), file)));
    }
}

/// Whether a process is gone, as far as this system tells: a killed one says nothing any more.
fn is_gone(process: u32) -> bool {
    let processes = Path::new("/proc");
    if !processes.join("self").exists() {
        return false;
    }
    // Its exit status may not be collected yet. Its name stands in parentheses, and may have
    // anything in it.
    let stat = std::fs::read_to_string(processes.join(process.to_string()).join("stat"));
    stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X'])))
        || !processes.join(process.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions as FileOptions;
    use std::io::Write;

    use super::*;
    use crate::made_traces::{METADATA, Random, packet};
    use crate::print::{PrintFormat, PrintOptions};
    use crate::{StampOptions, TraceOffset};

    /// Runs once, between the reads of statements and of the sizes of files.
    #[derive(Default)]
    pub(super) struct Meanwhile(Option<Box<dyn FnOnce() + Send>>);

    impl Meanwhile {
        pub(super) fn run(&mut self) {
            if let Some(work) = self.0.take() {
                work();
            }
        }
    }

    impl std::fmt::Debug for Meanwhile {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Meanwhile")
        }
    }

    /// A trace that grows: three streams, and its recorder's statement.
    struct Growing {
        folder: tempfile::TempDir,
        /// Events that are not in a file yet, by stream.
        waiting: [Vec<u64>; 3],
        sequences: [u64; 3],
    }

    impl Growing {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("metadata"), METADATA).unwrap();
            Self { folder, waiting: Default::default(), sequences: [0; 3] }
        }

        fn flush(&mut self, stream: usize) {
            let times = std::mem::take(&mut self.waiting[stream]);
            let (Some(first), Some(last)) = (times.first(), times.last()) else { return };
            let mut bytes = Vec::new();
            packet(&mut bytes, [*first, *last, 0, self.sequences[stream]], &times);
            self.sequences[stream] += 1;
            let path = self.folder.path().join(format!("stream_{stream}"));
            let mut file = FileOptions::new().append(true).create(true).open(path).unwrap();
            file.write_all(&bytes).unwrap();
        }

        fn say(&self, state: &str, watermark: u64) {
            let process = std::process::id();
            let line = format!("kymo-live 1 {state} {watermark} {process}");
            std::fs::write(self.folder.path().join(kymo_source::LIVE_FILE), format!("{line:63}\n")).unwrap();
        }

        fn follow(&self) -> Follow {
            self.follow_ahead(0)
        }

        /// Its clock is taken to be ahead.
        fn follow_ahead(&self, offset_ns: i64) -> Follow {
            let path = self.folder.path().to_owned();
            let trace_offsets = vec![TraceOffset { path: path.clone(), offset_ns }];
            Follow::new(vec![path], OpenOptions { trace_offsets, ..OpenOptions::default() })
        }
    }

    fn print(session: &Session, options: &PrintOptions, out: &mut Vec<u8>) -> crate::Printed {
        session.print(options, out, &Progress::default()).unwrap()
    }

    /// Events of all streams in turn; files get them late, but never later than the recorder says,
    /// with times that are the trace's own.
    #[test]
    fn each_event_is_in_one_window() {
        for seed in 0..5 {
            let mut random = Random(seed);
            let mut growing = Growing::new();
            let offset_ns = [0, 1000, -7][seed as usize % 3];
            let mut follow = growing.follow_ahead(offset_ns);
            let (mut out, mut continued, mut now) = (Vec::new(), None, 100);
            for _ in 0..6 {
                for _ in 0..random.below(60) {
                    now += random.below(4);
                    let stream = random.below(3) as usize;
                    growing.waiting[stream].push(now);
                    if random.one_in(7) {
                        growing.flush(stream);
                    }
                }
                // Everything before the watermark is there, and some later events.
                (0..3).for_each(|stream| growing.flush(stream));
                let watermark = now - random.below(20).min(now);
                growing.say("recording", watermark);
                // Events from now on have the watermark's time, or are later.
                let behind = follow.behind_ns;
                if behind.is_some_and(|behind| behind >= watermark as i64 + offset_ns) {
                    continue;
                }
                let window = follow.next(&Progress::default()).unwrap().unwrap();
                assert_eq!(
                    (&*window.begins_ns, window.end_ns),
                    (&[behind][..], Some(watermark as i64 + offset_ns - 1))
                );
                let options = PrintOptions {
                    format: PrintFormat::Csv,
                    begins_ns: window.begins_ns,
                    end_ns: window.end_ns,
                    continued,
                    ..PrintOptions::default()
                };
                continued = Some(print(&window.session, &options, &mut out).ended);
            }
            growing.say("ended", now);
            let window = follow.next(&Progress::default()).unwrap().unwrap();
            assert_eq!(window.end_ns, None);
            let options = PrintOptions {
                format: PrintFormat::Csv,
                begins_ns: window.begins_ns,
                continued,
                ..PrintOptions::default()
            };
            print(&window.session, &options, &mut out);
            assert!(follow.next(&Progress::default()).unwrap().is_none(), "it is over");
            let mut whole = Vec::new();
            let options = PrintOptions { format: PrintFormat::Csv, ..PrintOptions::default() };
            print(&window.session, &options, &mut whole);
            assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&whole), "seed {seed}");
        }
    }

    /// At which cycles printed events are.
    fn cycles(out: &[u8]) -> Vec<u64> {
        let text = std::str::from_utf8(out).unwrap();
        text.lines().map(|line| line[1..].split(']').next().unwrap().parse().unwrap()).collect()
    }

    /// A clock that is said anew, to which an event more or less is before the end of the last window.
    #[test]
    fn each_event_is_in_one_window_though_the_clock_is_learned() {
        let clocks = [(1_010_000_000_u64, 0_u64), (990_000_000, 0), (1_000_000_000, 12), (1_003_000_000, 7)];
        for (seed, (frequency, offset)) in (0..).zip(clocks) {
            let mut growing = Growing::new();
            let mut random = Random(seed);
            let mut follow = growing.follow();
            let mut out = Vec::new();
            for round in 1..4_u64 {
                for time in round * 1000..(round + 1) * 1000 {
                    growing.waiting[random.below(3) as usize].push(time);
                }
                (0..3).for_each(|stream| growing.flush(stream));
                let is_last = round == 3;
                growing.say(if is_last { "ended" } else { "recording" }, round * 1000 + 500);
                let window = follow.next(&Progress::default()).unwrap().unwrap();
                let options = PrintOptions {
                    stamp: StampOptions { cycles: true, ..StampOptions::default() },
                    begins_ns: window.begins_ns,
                    end_ns: window.end_ns,
                    ..PrintOptions::default()
                };
                print(&window.session, &options, &mut out);
                let clock = format!("clock {{ name = c; freq = {frequency}; offset = {}; }};", offset * round);
                let metadata = METADATA.replace("clock { name = c; freq = 1000000000; };", &clock);
                std::fs::write(growing.folder.path().join("metadata"), metadata).unwrap();
            }
            assert!(follow.next(&Progress::default()).unwrap().is_none(), "it is over");
            // In any order: windows are printed one after the other, each in its order.
            let mut cycles = cycles(&out);
            cycles.sort_unstable();
            assert_eq!(cycles, (1000..4000).collect::<Vec<u64>>(), "{frequency} Hz");
        }
    }

    /// A packet and a statement that come while the files are being looked at lose no event.
    #[test]
    fn events_written_between_two_reads_are_in_a_window() {
        for state in ["recording", "ended"] {
            let mut growing = Growing::new();
            growing.waiting[0].extend([1000, 1100]);
            growing.flush(0);
            growing.say("recording", 1500);
            let mut follow = growing.follow();
            let mut out = Vec::new();
            let mut show = |window: Window| {
                let options = PrintOptions {
                    stamp: StampOptions { cycles: true, ..StampOptions::default() },
                    begins_ns: window.begins_ns,
                    end_ns: window.end_ns,
                    ..PrintOptions::default()
                };
                print(&window.session, &options, &mut out);
            };
            show(follow.next(&Progress::default()).unwrap().unwrap());
            let folder = growing.folder.path().to_owned();
            growing.waiting[0].extend([1600, 1700]);
            follow.meanwhile = Meanwhile(Some(Box::new(move || {
                growing.flush(0);
                growing.say(state, 2000);
                // The folder stays until the test ends.
                std::mem::forget(growing);
            })));
            show(follow.next(&Progress::default()).unwrap().unwrap());
            assert_eq!(cycles(&out), [1000, 1100, 1600, 1700], "{state}");
            std::fs::remove_dir_all(folder).unwrap();
        }
    }

    /// An event that is written before its definition, and all that are later, wait for that; but not for ever.
    #[test]
    fn events_wait_for_their_definitions() {
        let (head, _) = METADATA.split_once("event {").unwrap();
        let with_ids = head.replace("} timestamp; };", "} timestamp; integer { size = 32; align = 8; } id; };");
        let define = |growing: &Growing, count: usize| {
            let events: String = (0..count).map(|id| format!("event {{ name = e{id}; id = {id}; }};\n")).collect();
            std::fs::write(growing.folder.path().join("metadata"), format!("{with_ids}{events}")).unwrap();
        };
        for comes in [true, false] {
            let mut growing = Growing::new();
            define(&growing, 1);
            // The number of an event in its packet is its id.
            growing.waiting = [vec![1000, 1100, 1200], vec![1050], vec![1150]];
            (0..3).for_each(|stream| growing.flush(stream));
            growing.say("recording", 5000);
            let mut follow = growing.follow();
            let mut out = Vec::new();
            let mut next = |follow: &mut Follow| {
                let window = follow.next(&Progress::default()).unwrap().unwrap();
                let options = PrintOptions {
                    stamp: StampOptions { cycles: true, ..StampOptions::default() },
                    begins_ns: window.begins_ns,
                    end_ns: window.end_ns,
                    ..PrintOptions::default()
                };
                print(&window.session, &options, &mut out);
                (window.end_ns, window.undefined.len())
            };
            assert_eq!(next(&mut follow), (Some(999), 0));
            if comes {
                define(&growing, 2);
                assert_eq!(next(&mut follow), (Some(1099), 0));
                assert!(matches!(follow.look().unwrap(), Look::Nothing), "the third one is not defined");
                define(&growing, 3);
                assert_eq!(next(&mut follow), (Some(4999), 0));
                assert_eq!(cycles(&out), [1000, 1050, 1100, 1150, 1200]);
            } else {
                assert!(matches!(follow.look().unwrap(), Look::Nothing), "it may still be defined");
                follow.undefined.values_mut().for_each(|undefined| undefined.since -= PATIENCE);
                assert_eq!(next(&mut follow), (Some(4999), 1), "the window tells what it lacks");
                assert_eq!(cycles(&out), [1000, 1050, 1150]);
            }
        }
    }

    /// Packets of a stream class that comes later: no event is handed out before that is known.
    #[test]
    fn events_wait_for_the_definitions_of_streams() {
        for comes in [true, false] {
            let mut growing = Growing::new();
            growing.waiting[0] = vec![1000, 1100];
            growing.flush(0);
            growing.say("recording", 5000);
            let metadata = growing.folder.path().join("metadata");
            let all = std::fs::read_to_string(&metadata).unwrap();
            std::fs::write(&metadata, all.split_once("stream {").unwrap().0).unwrap();
            let mut follow = growing.follow();
            assert!(matches!(follow.look().unwrap(), Look::Nothing), "the stream may still be defined");
            if comes {
                std::fs::write(&metadata, all).unwrap();
            } else {
                follow.undefined.values_mut().for_each(|undefined| undefined.since -= PATIENCE);
            }
            let window = follow.next(&Progress::default()).unwrap().unwrap();
            let mut out = Vec::new();
            let printed = print(&window.session, &PrintOptions::default(), &mut out);
            assert_eq!((printed.events, window.undefined.len()), if comes { (2, 0) } else { (0, 1) });
        }
    }

    /// The line of an event says how long after the one before it comes, which was in another window.
    #[test]
    fn text_goes_on() {
        let mut growing = Growing::new();
        let mut follow = growing.follow();
        let (mut out, mut continued) = (Vec::new(), None);
        for (state, now) in [("recording", 1000), ("recording", 2000), ("ended", 3000)] {
            growing.waiting[0].extend([now, now + 10]);
            growing.flush(0);
            growing.say(state, now + 500);
            let window = follow.next(&Progress::default()).unwrap().unwrap();
            let options = PrintOptions {
                begins_ns: window.begins_ns,
                end_ns: window.end_ns,
                continued,
                ..PrintOptions::default()
            };
            continued = Some(print(&window.session, &options, &mut out).ended);
        }
        let text = String::from_utf8(out).unwrap();
        let deltas: Vec<&str> = text.lines().map(|line| line.split(['(', ')']).nth(1).unwrap()).collect();
        let expected = ["+?.?????????", "+0.000000010", "+0.000000990", "+0.000000010", "+0.000000990", "+0.000000010"];
        assert_eq!(deltas, expected);
    }

    /// Other recorders do not say how far they are: the events that all streams have, and all that
    /// there is when nothing grows any more.
    #[test]
    fn traces_of_others_are_followed_too() {
        let mut growing = Growing::new();
        growing.waiting[0].extend([1000, 1500]);
        growing.waiting[1].extend([1200, 1300]);
        (0..2).for_each(|stream| growing.flush(stream));
        let mut follow = growing.follow();
        let next = |follow: &mut Follow| follow.next(&Progress::default()).unwrap().unwrap().end_ns;
        assert_eq!(next(&mut follow), Some(1299));
        assert_eq!(next(&mut follow), Some(1500), "nothing grows");
        growing.waiting[1].extend([1600, 1700]);
        growing.flush(1);
        // The other stream has nothing behind that, which is known when nothing grows again.
        assert_eq!(next(&mut follow), Some(1700));
    }

    /// A killed recorder does not say that it is over.
    #[test]
    fn a_recorder_that_is_gone_writes_nothing_more() {
        let mut growing = Growing::new();
        growing.waiting[0].extend([1000, 1500]);
        growing.flush(0);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = child.id();
        child.wait().unwrap();
        let line = format!("kymo-live 1 recording 1200 {process}");
        std::fs::write(growing.folder.path().join(kymo_source::LIVE_FILE), line).unwrap();
        let mut follow = growing.follow();
        let window = follow.next(&Progress::default()).unwrap().unwrap();
        assert_eq!(window.end_ns, if cfg!(target_os = "linux") { None } else { Some(1199) });
    }
}
