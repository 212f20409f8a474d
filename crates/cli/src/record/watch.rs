//! `kymo watch`: the kernel counts, and this shows the counts.
//!
//! ```text
//! sudo kymo watch QUESTION
//!   ├─ helper, as root ── programs and maps in the kernel; they go with it ──┐ rows, over a socket
//!   └─ the user again ── question, table, JSON ──────────────────────────────┘
//! ```

mod show;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use kymo_recorder::kernel::ProbeRights;
use kymo_recorder::watch::{
    HelperProblem, WatchColumns, WatchOptions, WatchProblem, WatchQuestion, WatchTotals, WatchTrace, WatchTraceProblem,
    Watcher,
};

use super::RecordProblem;
use super::child::ChildProcess;
use super::signals::{Signals, forward};
use crate::CommandOutcome;
use crate::answer::screen::Screen;
use crate::arguments::{Color, WatchArguments};
use crate::message::{plain_output, write_line};
use crate::stop::StopReason;
use show::{Interval, WatchView};

/// Between two looks at signals and clocks.
const LOOK: Duration = Duration::from_millis(10);
/// The kernel measures its programs this long, and again after the next time.
const MEASURED: Duration = Duration::from_millis(50);
const MEASURED_EVERY: Duration = Duration::from_secs(1);
/// Between two tables on a terminal, and between the counts of a trace.
const EACH: Duration = Duration::from_secs(1);

pub(super) fn run(arguments: &WatchArguments) -> Result<CommandOutcome, RecordProblem> {
    let question = WatchQuestion::parse(&arguments.question).map_err(|problem| told(&problem))?;
    let rights = ProbeRights { watch: true, ..ProbeRights::default() };
    super::kernel::become_user(&rights)?;
    let helper = super::kernel::helper(&rights)?;
    let signals = Signals::catch()?;
    let columns = WatchColumns {
        by: arguments.by.clone(),
        sum: arguments.sum.clone(),
        histogram: arguments.hist.clone(),
        rows: arguments.rows,
    };
    let watcher = Watcher::begin(&helper, &question, &columns).map_err(refused)?;
    watcher.notes.iter().for_each(|note| write_line(&format!("note: {note}")));
    let options = WatchOptions::of(&arguments.question, &question, &columns);
    let trace = arguments.output.as_deref().map(|folder| {
        let trace = WatchTrace::create(folder, &options, &watcher.columns);
        trace.map_err(|problem| unwritten(folder, &problem))
    });
    let trace = trace.transpose()?;
    let child = match &arguments.command[..] {
        [] => None,
        words => Some(ChildProcess::start_alone(words).map_err(|error| not_started(words, &error))?),
    };
    Watching::new(watcher, trace, arguments).run(&signals, child.as_ref())
}

fn unwritten(folder: &Path, problem: &WatchTraceProblem) -> RecordProblem {
    StopReason::unanswerable(&format!("{}: {problem}", folder.display())).into()
}

/// A problem of the question, in lines.
fn told(problem: &str) -> StopReason {
    StopReason::Expression(format!("error: {}\n", problem.trim_end()))
}

fn refused(problem: WatchProblem) -> RecordProblem {
    let help = "help: `sudo kymo watch ...` has the rights, and so has a process with CAP_BPF and CAP_PERFMON; `kymo doctor` says \
                what is missing";
    match problem {
        WatchProblem::Helper(problem @ HelperProblem::Forbidden(_)) => told(&format!("{problem}\n{help}")).into(),
        problem => told(&problem.to_string()).into(),
    }
}

fn not_started(words: &[std::ffi::OsString], error: &io::Error) -> StopReason {
    told(&format!("{} cannot be started: {error}", words[0].display()))
}

/// Counting, until it ends.
struct Watching<'a> {
    watcher: Watcher,
    /// A trace of the counts.
    trace: Option<WatchTrace>,
    arguments: &'a WatchArguments,
    begun: Instant,
    /// When the kernel began to measure, or has stopped.
    measured: (bool, Instant),
    /// The last counts that were shown, and when that was.
    shown: (WatchTotals, Instant),
    every: Option<Duration>,
    is_live: bool,
    /// Lines of the table on the terminal.
    lines: usize,
}

impl<'a> Watching<'a> {
    fn new(watcher: Watcher, trace: Option<WatchTrace>, arguments: &'a WatchArguments) -> Self {
        let begun = Instant::now();
        // Lines that are longer than the terminal cannot be drawn again.
        let is_live = !arguments.json && !arguments.wide && io::stdout().is_terminal();
        let every = arguments.every.map(Duration::from_nanos).or((is_live || trace.is_some()).then_some(EACH));
        let shown = (WatchTotals::default(), begun);
        Self { watcher, trace, arguments, begun, measured: (false, begun), shown, every, is_live, lines: 0 }
    }

    fn run(mut self, signals: &Signals, child: Option<&ChildProcess>) -> Result<CommandOutcome, RecordProblem> {
        let duration = self.arguments.duration.map(Duration::from_nanos);
        self.watcher.measure(true).map_err(broken)?;
        self.measured = (true, Instant::now());
        let (mut status, mut failure) = (None, None);
        loop {
            let now = Instant::now();
            status = status.or_else(|| child.and_then(ChildProcess::status));
            let is_over = status.is_some() || duration.is_some_and(|duration| now - self.begun >= duration);
            let signal = signals.take();
            if let (Some(signal), Some(child)) = (signal, child) {
                forward(signal, child);
            }
            // A command that gets a signal ends by itself.
            if is_over || signal.is_some() && child.is_none() {
                break;
            }
            failure = self.look(now)?.err();
            if failure.is_some() {
                break;
            }
            std::thread::sleep(self.rest(duration));
        }
        if !self.end(failure)? {
            return Ok(CommandOutcome::Incomplete);
        }
        Ok(status.map_or(CommandOutcome::Complete, CommandOutcome::Status))
    }

    /// Until there may be something to do.
    fn rest(&self, duration: Option<Duration>) -> Duration {
        let left = |from: Instant, time: Duration| time.saturating_sub(from.elapsed());
        let every = self.every.map(|every| left(self.shown.1, every));
        let end = duration.map(|duration| left(self.begun, duration));
        [every, end].into_iter().flatten().fold(LOOK, Duration::min)
    }

    /// Shows what it is time for; inside: whether the helper answers.
    fn look(&mut self, now: Instant) -> Result<Result<(), HelperProblem>, RecordProblem> {
        let (is_measuring, since) = self.measured;
        if now - since >= if is_measuring { MEASURED } else { MEASURED_EVERY } {
            if let Err(problem) = self.watcher.measure(!is_measuring) {
                return Ok(Err(problem));
            }
            self.measured = (!is_measuring, Instant::now());
        }
        if self.every.is_some_and(|every| now - self.shown.1 >= every) {
            match self.watcher.totals() {
                Ok(totals) => self.show(totals, false)?,
                Err(problem) => return Ok(Err(problem)),
            }
        }
        Ok(Ok(()))
    }

    /// Shows all counts, or the last ones that could be read; whether they are complete.
    fn end(&mut self, failure: Option<HelperProblem>) -> Result<bool, RecordProblem> {
        let read = match failure {
            Some(problem) => Err(problem),
            None => self.watcher.measure(false).and_then(|()| self.watcher.totals()),
        };
        let problem = match read {
            Ok(totals) => {
                self.show_rest(&totals)?;
                return self.show(totals, true).map(|()| true);
            }
            Err(problem) => problem,
        };
        let (last, at) = std::mem::replace(&mut self.shown, (WatchTotals::default(), self.begun));
        let all = at - self.begun;
        if at == self.begun {
            self.finish_trace(&last, all, false)?;
            return Err(broken(problem));
        }
        self.print(&Interval { counts: &last, time: all, all, is_final: true, is_complete: false })?;
        self.finish_trace(&last, all, false)?;
        let time = crate::show::duration(all.as_nanos() as i128);
        write_line(&format!("error: {problem}\nhelp: the counts are those of the first {time}"));
        Ok(false)
    }

    /// Shows the counts of the last time; at the end, and in a table that is drawn again, those of all times.
    fn show(&mut self, totals: WatchTotals, is_final: bool) -> Result<(), RecordProblem> {
        let now = Instant::now();
        let interval = totals.since(&self.shown.0);
        let (all, last) = (now - self.begun, now - self.shown.1);
        if !is_final {
            self.trace_interval(&interval, last)?;
        }
        let is_whole = is_final || self.is_live;
        let counts = if is_whole { &totals } else { &interval };
        let time = if is_whole { all } else { last };
        if is_final || self.shows_each() {
            self.print(&Interval { counts, time, all, is_final, is_complete: true })?;
        }
        if is_final {
            self.finish_trace(&totals, all, true)?;
        }
        self.shown = (totals, now);
        Ok(())
    }

    /// Whether counts are shown before the end.
    fn shows_each(&self) -> bool {
        self.is_live || self.arguments.every.is_some()
    }

    /// Writes the counts of a time that ends now.
    fn trace_interval(&mut self, counts: &WatchTotals, time: Duration) -> Result<(), RecordProblem> {
        let written = self.trace.as_mut().map_or(Ok(()), |trace| trace.interval(counts, nanos(time)));
        written.map_err(|problem| self.unwritten(&problem))
    }

    fn finish_trace(&mut self, counts: &WatchTotals, time: Duration, is_complete: bool) -> Result<(), RecordProblem> {
        let Some(trace) = self.trace.take() else { return Ok(()) };
        trace.finish(counts, nanos(time), is_complete).map_err(|problem| self.unwritten(&problem))?;
        if let Some(folder) = &self.arguments.output {
            write_line(&format!("counts are in {}", folder.display()));
        }
        Ok(())
    }

    fn unwritten(&self, problem: &WatchTraceProblem) -> RecordProblem {
        unwritten(self.arguments.output.as_deref().unwrap_or(Path::new("")), problem)
    }

    /// Shows the counts since the last time, which is not over: all times together have all counts.
    fn show_rest(&mut self, totals: &WatchTotals) -> Result<(), RecordProblem> {
        let (rest, now) = (totals.since(&self.shown.0), Instant::now());
        let (all, time) = (now - self.begun, now - self.shown.1);
        self.trace_interval(&rest, time)?;
        if self.is_live || !self.shows_each() {
            return Ok(());
        }
        self.print(&Interval { counts: &rest, time, all, is_final: false, is_complete: true })
    }

    fn print(&mut self, told: &Interval<'_>) -> Result<(), RecordProblem> {
        let view = WatchView { columns: &self.watcher.columns, arguments: self.arguments };
        if self.arguments.json {
            writeln!(plain_output(), "{}", view.json(told))?;
        } else {
            let screen = Screen::of_output(Color::Auto, self.arguments.wide);
            let text = view.text(told, screen)?;
            self.draw(&text, told.is_final)?;
        }
        Ok(())
    }

    fn draw(&mut self, text: &str, is_final: bool) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.is_live {
            if self.lines > 0 {
                // Back to where the table began, and nothing of it stays.
                write!(out, "\x1b[{}A\x1b[J", self.lines)?;
            }
            // A table that is higher than the terminal cannot be drawn again: its end comes last.
            let height = terminal_size::terminal_size().map_or(usize::MAX, |(_, height)| usize::from(height.0));
            let room = if is_final { usize::MAX } else { height.saturating_sub(1) };
            let lines: Vec<&str> = text.lines().take(room).collect();
            lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
            self.lines = if is_final { 0 } else { lines.len() };
            return out.flush();
        }
        drop(out);
        let mut out = plain_output();
        out.write_all(text.as_bytes())?;
        if !is_final {
            writeln!(out)?;
        }
        out.flush()
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The helper is gone before any count was read.
fn broken(problem: HelperProblem) -> RecordProblem {
    RecordProblem::Stop(StopReason::Output(io::Error::other(problem)))
}
