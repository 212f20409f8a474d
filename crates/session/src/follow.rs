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

#[cfg(test)]
mod tests;
mod undefined;

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kymo_scan::Trace;
use kymo_source::{LiveState, SourceErrorKind};

use crate::open::again::EarlierTraces;
use crate::open::discover::{self, discover_machines, discover_recorded};
use crate::open::offsets::Offsets;
use crate::open::progress::Progress;
use crate::open::report::ReportProblem;
use crate::open::{OpenFailure, OpenOptions, Session};
use undefined::UndefinedEvents;

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
    /// The events that wait for their definitions.
    undefined: UndefinedEvents,
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
            undefined: UndefinedEvents::default(),
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
        may_have_more |= is_silent && self.opened != now || self.undefined.are_awaited();
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
            let (undefined, gone) = (self.undefined.take_given_up(), self.newly_gone(&session));
            return Some(Window { session, begins_ns, end_ns: None, undefined, gone });
        }
        let watermark_ns =
            reached.watermark_ns.min(self.undefined.up_to(&session, (self.behind_ns, reached.watermark_ns)));
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
        let undefined = self.undefined.take_given_up();
        Some(Window { session, begins_ns, end_ns: Some(end_ns), undefined, gone })
    }

    /// Files that are gone and that no window has told of.
    fn newly_gone(&mut self, session: &Session) -> Vec<ReportProblem> {
        let gone = session.gone_files().into_iter().filter(|gone| !self.gone.contains(gone)).collect::<Vec<_>>();
        self.gone.extend(gone.iter().cloned());
        gone
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
