//! `kymo record --to console`: the events of a session on standard output, while it runs.
//!
//! ```text
//! recorder ──> folder of the trace ── follow, as `kymo print --follow` does ──> standard output
//!              └ temporary, and of a bounded size, unless --output keeps it
//! ```
//!
//! A thread prints. A flight recorder's folder has snapshots, which it prints one after another.

use std::io::{self, BufWriter};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use clap::Parser;
use kymo_recorder::protocol::SessionSummary;
use kymo_session::{Follow, Look, OpenFailure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::CommandOutcome;
use crate::arguments::{Arguments, Command, PrintArguments};
use crate::follow::{self, EventPrinter};
use crate::stop::StopReason;

use super::place::TemporaryFolder;

/// Between two looks at a session that has ended: its last events are there in a moment.
const LAST: Duration = Duration::from_millis(10);

/// Progress of the session, for the thread that prints it.
const RUNS: u8 = 0;
const ENDED: u8 = 1;
/// Nothing more is certain to come: the printer looks once more, and does not wait.
const ABANDONED: u8 = 2;
/// Nothing of the session is wanted.
const CANCELED: u8 = 3;

/// The thread that prints a session.
pub(crate) struct ConsolePrinter {
    state: Arc<AtomicU8>,
    thread: JoinHandle<ConsoleResult>,
    folder: PathBuf,
    temporary: Option<TemporaryFolder>,
}

/// The result of printing a session.
pub(crate) struct ConsoleResult {
    /// Printed events, including those of the recorder.
    events: u64,
    outcome: CommandOutcome,
    /// Why printing ended before the session did.
    stop: Option<StopReason>,
    /// Parts of the trace were deleted.
    has_deleted: bool,
    /// `--output` keeps the trace.
    pub(crate) is_kept: bool,
}

impl ConsolePrinter {
    /// Prints the session whose trace is in this folder, in batches with this period.
    pub(crate) fn begin(
        folder: &Path,
        temporary: Option<TemporaryFolder>,
        every: Duration,
        (is_flight, json): (bool, bool),
    ) -> io::Result<Self> {
        let state = Arc::new(AtomicU8::new(RUNS));
        let (told, path) = (Arc::clone(&state), folder.to_owned());
        let thread = std::thread::Builder::new().name("kymo-prints".to_owned()).spawn(move || {
            let traces = if is_flight { FollowedTraces::snapshots(&path) } else { FollowedTraces::one(&path) };
            let arguments = arguments(&path, is_flight, json);
            let mut printer = EventPrinter::new(&arguments);
            let stop = run(traces, &arguments, &mut printer, &told, every).err();
            let outcome = printer.outcome();
            ConsoleResult { events: printer.events, outcome, stop, has_deleted: false, is_kept: false }
        })?;
        Ok(Self { state, thread, folder: folder.to_owned(), temporary })
    }

    /// Whether nothing can be printed any more: its reader is gone, or the disk is full.
    pub(crate) fn has_stopped(&self) -> bool {
        self.thread.is_finished()
    }

    /// Whether the reader of standard output is gone.
    pub(crate) fn is_closed() -> bool {
        let out = io::stdout();
        let mut polled = [PollFd::from_borrowed_fd(out.as_fd(), PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&now)).is_ok() && polled[0].revents().contains(PollFlags::ERR)
    }

    /// The session has ended, or its recorder is gone: prints the remaining events.
    pub(crate) fn finish(self, has_ended: bool) -> ConsoleResult {
        self.end(if has_ended { ENDED } else { ABANDONED })
    }

    /// Prints no more.
    pub(crate) fn cancel(self) {
        drop(self.end(CANCELED));
    }

    fn end(self, state: u8) -> ConsoleResult {
        self.state.store(state, Ordering::Release);
        self.thread.thread().unpark();
        let is_kept = self.temporary.is_none();
        let has_deleted = has_deleted(&self.folder);
        match self.thread.join() {
            Ok(result) => ConsoleResult { has_deleted, is_kept, ..result },
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl ConsoleResult {
    /// Events of the session that were deleted before they could be printed.
    pub(crate) fn unprinted(&self, summary: &SessionSummary) -> u64 {
        let own_events = if summary.snapshots.is_some() { 0 } else { summary.own_events };
        let all = summary.events.saturating_add(own_events);
        if self.has_deleted && self.stop.is_none() { all.saturating_sub(self.events) } else { 0 }
    }

    /// The reader of standard output has seen enough.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(&self.stop, Some(StopReason::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Why it was not printed to its end, except that nothing reads it.
    pub(crate) fn problem(&self) -> Option<String> {
        self.stop.as_ref().filter(|_| !self.is_closed()).map(|stop| match stop {
            StopReason::Output(error) => format!("standard output: {error}"),
            other => other.text(),
        })
    }

    /// Whether all that the session has was printed, as far as anything reads it.
    pub(crate) fn is_whole(&self, summary: &SessionSummary) -> bool {
        matches!(self.outcome, CommandOutcome::Complete) && self.problem().is_none() && self.unprinted(summary) == 0
    }
}

/// Events that begin each snapshot again, with the time at which it was written.
const BEGINNING: &str = r#"event.name != "kymo:clock" && event.name != "kymo:cpu_clock" && event.name != "kymo:object" && event.name != "kymo:process""#;

/// The arguments of `kymo print` for a session.
fn arguments(folder: &Path, is_flight: bool, json: bool) -> PrintArguments {
    let mut words = vec!["kymo", "print", "--follow", "--format", if json { "json" } else { "text" }];
    words.extend(["--filter", BEGINNING].iter().filter(|_| is_flight));
    let words = words.into_iter().chain(["--"]).map(std::ffi::OsStr::new);
    let parsed = Arguments::parse_from(words.chain([folder.as_os_str()]));
    match parsed.command.0 {
        Command::Print(arguments) => arguments,
        _ => unreachable!("the words ask for `kymo print`"),
    }
}

/// Whether the recorder has deleted the oldest parts or snapshots.
fn has_deleted(folder: &Path) -> bool {
    let first = |name: &str, kind: &dyn Fn(&str) -> bool| {
        let others = std::fs::read_dir(folder).into_iter().flatten().flatten();
        others.into_iter().any(|entry| entry.file_name().to_str().is_some_and(kind)) && !folder.join(name).exists()
    };
    first("000001", &|name| name.len() == 6 && name.bytes().all(|byte| byte.is_ascii_digit()))
        || first("snapshot-1", &|name| number_of(name).is_some())
}

/// The number of a snapshot, of its folder's name.
fn number_of(name: &str) -> Option<u32> {
    name.strip_prefix("snapshot-")?.parse().ok()
}

/// The traces in the folder of a session.
struct FollowedTraces {
    folder: PathBuf,
    /// The trace that is printed.
    current: Option<(PathBuf, Follow)>,
    /// The last snapshot; `None`: the folder has one trace, or parts of it.
    snapshot: Option<u32>,
}

impl FollowedTraces {
    fn one(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), current: None, snapshot: None }
    }

    fn snapshots(folder: &Path) -> Self {
        Self { snapshot: Some(0), ..Self::one(folder) }
    }

    /// Turns to the next trace; whether there is one.
    fn turn(&mut self) -> Option<PathBuf> {
        let Some(last) = &mut self.snapshot else { return Some(self.folder.clone()) };
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| number_of(entry.file_name().to_str()?));
        *last = numbers.filter(|number| *number > *last).min()?;
        Some(self.folder.join(format!("snapshot-{last}")))
    }

    /// A trace is printed to its end. Of a session that writes all the time there is no other one.
    fn pass(&mut self) -> bool {
        self.current = self.current.take().filter(|_| self.snapshot.is_none());
        self.snapshot.is_some()
    }
}

/// Prints until the session has ended and nothing more comes.
fn run(
    mut traces: FollowedTraces,
    arguments: &PrintArguments,
    printer: &mut EventPrinter<'_>,
    state: &AtomicU8,
    every: Duration,
) -> Result<(), StopReason> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout());
    loop {
        // Before the look: what comes until the session ends is seen by one that begins afterwards.
        let seen = state.load(Ordering::Acquire);
        if seen == CANCELED {
            return Ok(());
        }
        let end = batch(&mut traces, arguments, printer, &mut out)?;
        match (seen, end) {
            (RUNS, _) => std::thread::park_timeout(every),
            // The trace of a session without a recorder may have no end.
            (ABANDONED, _) | (_, BatchEnd::All) => return Ok(()),
            (_, BatchEnd::Failed(failure)) => return Err(StopReason::Expression(failure.render())),
            (_, BatchEnd::Waits) => std::thread::sleep(LAST),
        }
        if ConsolePrinter::is_closed() {
            return Err(StopReason::Output(io::ErrorKind::BrokenPipe.into()));
        }
    }
}

/// How a batch ends.
enum BatchEnd {
    /// All traces that are there are printed to their ends.
    All,
    /// A trace goes on.
    Waits,
    /// A trace cannot be read, as far as it is written.
    Failed(OpenFailure),
}

/// Prints the events that are there now.
fn batch(
    traces: &mut FollowedTraces,
    arguments: &PrintArguments,
    printer: &mut EventPrinter<'_>,
    out: &mut BufWriter<io::Stdout>,
) -> Result<BatchEnd, StopReason> {
    loop {
        if traces.current.is_none() {
            let Some(path) = traces.turn() else { return Ok(BatchEnd::All) };
            traces.current = Some((path.clone(), follow::follow(arguments, vec![path])));
        }
        let (path, follow) = traces.current.as_mut().expect("it was just put there");
        match follow.look() {
            Ok(Look::More(window)) => _ = printer.print(window, out)?,
            Ok(Look::Nothing) => return Ok(BatchEnd::Waits),
            // The recorder may delete the oldest snapshots before they are printed.
            Err(_) if traces.snapshot.is_some() && !path.exists() => _ = traces.pass(),
            Err(failure) => return Ok(BatchEnd::Failed(failure)),
            Ok(Look::Over) if traces.pass() => {}
            Ok(Look::Over) => return Ok(BatchEnd::All),
        }
    }
}
