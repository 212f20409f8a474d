//! `kymo print --follow` and `kymo count --follow`: traces that are still being recorded.

use std::collections::HashSet;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kymo_session::{
    Continued, CountOptions, Follow, OpenFailure, PrintFormat, Printed, Progress, Report, Window, Zone,
};

use crate::answer::screen::Screen;
use crate::arguments::{Color, CountArguments, PrintArguments};
use crate::select::selection;
use crate::stop::StopReason;
use crate::{CommandOutcome, ReadingOptions, count, print, show};

/// Counts are shown so often.
const COUNTS_EVERY: Duration = Duration::from_secs(1);

/// Prints events as they come.
pub(crate) fn print(arguments: &PrintArguments) -> Result<CommandOutcome, StopReason> {
    let (mut follow, progress) = (follow(arguments, arguments.common.traces.clone()), Progress::default());
    let mut printer = EventPrinter::new(arguments);
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    while let Some(window) = told(follow.next(&progress))? {
        if printer.print(window, &mut out)? {
            break;
        }
    }
    Ok(printer.outcome())
}

/// Follows traces as the arguments ask.
pub(crate) fn follow(arguments: &PrintArguments, traces: Vec<PathBuf>) -> Follow {
    let reading = ReadingOptions { clock_shift_ns: arguments.shift_ns(), ..arguments.common.reading.options() };
    let options = crate::options(arguments.common.threads, reading, kymo_session::cache_folder());
    Follow::new(traces, options)
}

/// Prints one window of growing traces after another.
pub(crate) struct EventPrinter<'a> {
    arguments: &'a PrintArguments,
    progress: Progress,
    continued: Option<Continued>,
    left: Option<u64>,
    warned: String,
    report: Report,
    losses: KnownLosses,
    is_whole: bool,
    /// Printed events.
    pub(crate) events: u64,
}

impl<'a> EventPrinter<'a> {
    pub(crate) fn new(arguments: &'a PrintArguments) -> Self {
        Self {
            arguments,
            progress: Progress::default(),
            continued: None,
            left: arguments.limit,
            warned: String::new(),
            report: Report::default(),
            losses: KnownLosses::default(),
            is_whole: true,
            events: 0,
        }
    }

    /// Prints the events of a window; whether the arguments ask for no later ones.
    pub(crate) fn print(&mut self, window: Window, out: &mut impl Write) -> Result<bool, StopReason> {
        self.is_whole &= has_all(&window);
        let (mut options, warnings) = print::asked(&window.session, self.arguments)?;
        if options.format == PrintFormat::Details {
            return Err(StopReason::Usage("--format details tells of whole packets; it cannot follow".to_owned()));
        }
        if warnings != self.warned {
            message_text!("{warnings}");
            self.warned = warnings;
        }
        let wanted_end = options.end_ns;
        options.begins_ns.clone_from(&window.begins_ns);
        options.end_ns = [options.end_ns, window.end_ns].into_iter().flatten().min();
        (options.continued, options.limit) = (self.continued.take(), self.left);
        let first = window.begins_ns.iter().copied().min().flatten().max(options.begin_ns);
        let is_empty = first.zip(options.end_ns).is_some_and(|(begin, end)| begin > end);
        if !is_empty {
            let mut printed = window.session.print(&options, out, &self.progress)?;
            out.flush()?;
            self.losses.keep_new(&mut printed);
            if print::tells_of_losses(options.format) {
                show::each_loss(&printed.losses);
            }
            self.continued = Some(printed.ended);
            self.events += printed.events;
            self.left = self.left.map(|left| left - printed.events);
            join(&mut self.report, printed.report, &window);
        } else {
            self.continued = options.continued;
            self.report.unreadable.extend(window.undefined);
        }
        let is_behind = wanted_end.zip(window.end_ns).is_some_and(|(wanted, end)| end >= wanted);
        Ok(self.left == Some(0) || is_behind)
    }

    /// Tells of the parts that could not be read.
    pub(crate) fn outcome(&self) -> CommandOutcome {
        outcome_of(show::report(&self.report, self.arguments.common.strict), self.is_whole)
    }
}

/// Tells of files that are gone, at once; whether there are none.
fn has_all(window: &Window) -> bool {
    window.gone.iter().for_each(|gone| message!("error: {gone}"));
    window.gone.is_empty()
}

fn outcome_of(outcome: CommandOutcome, is_whole: bool) -> CommandOutcome {
    match outcome {
        CommandOutcome::Complete if !is_whole => CommandOutcome::Incomplete,
        outcome => outcome,
    }
}

/// The losses that were told. A packet may lie in two windows, and the loss before it counts once.
#[derive(Default)]
struct KnownLosses(HashSet<String>);

impl KnownLosses {
    /// Takes out those that are known, also of the report.
    fn keep_new(&mut self, printed: &mut Printed) {
        let Printed { losses, report, .. } = printed;
        losses.retain(|loss| {
            let is_new = !self.0.contains(&loss.sentence);
            if !is_new {
                let counted = if loss.of_packets { &mut report.packets_lost } else { &mut report.events_discarded };
                *counted = counted.saturating_sub(loss.count.unwrap_or(0));
            }
            is_new
        });
        self.0.extend(losses.iter().map(|loss| loss.sentence.clone()));
    }
}

/// The final report. An unreadable part of a trace that is being written may be half of a packet,
/// which is whole in the next window; the window is sure only of events without a definition after a while.
fn join(all: &mut Report, part: Report, window: &Window) {
    let mut unreadable = std::mem::take(&mut all.unreadable);
    unreadable.extend(window.undefined.iter().cloned());
    if window.end_ns.is_none() {
        unreadable.extend(part.unreadable);
        let mut known = HashSet::new();
        unreadable.retain(|problem| known.insert((problem.place.clone(), problem.message.clone())));
    }
    *all = Report {
        unreadable,
        assumptions: part.assumptions,
        events_discarded: all.events_discarded.saturating_add(part.events_discarded),
        discarded_is_lower_bound: all.discarded_is_lower_bound | part.discarded_is_lower_bound,
        packets_lost: all.packets_lost.saturating_add(part.packets_lost),
        ends_missing: part.ends_missing,
        thinned: part.thinned,
    };
}

/// Counts, again and again. On a terminal a table replaces the one before.
pub(crate) fn count(arguments: &CountArguments) -> Result<CommandOutcome, StopReason> {
    let reading = arguments.common.reading.options();
    let options = crate::options(arguments.common.threads, reading, kymo_session::cache_folder());
    let mut follow = Follow::new(arguments.common.traces.clone(), options);
    let progress = Progress::default();
    let mut out = io::stdout().lock();
    let screen = Screen::of_output(Color::Auto, arguments.wide);
    let is_terminal = out.is_terminal() && !arguments.json;
    let (mut shown, mut lines, mut outcome) = (None::<Instant>, 0, CommandOutcome::Complete);
    let mut is_whole = true;
    while let Some(window) = told(follow.next(&progress))? {
        is_whole &= has_all(&window);
        let is_due = shown.is_none_or(|shown| shown.elapsed() >= COUNTS_EVERY);
        if !is_due && window.end_ns.is_some() {
            continue;
        }
        let selection = selection(&window.session, &arguments.event, arguments.filter.as_deref(), Zone::Local)?;
        let options = CountOptions { selection, sizes: arguments.sizes };
        let counts = window.session.count(&options, &progress).map_err(io::Error::other)?;
        let mut text = count::text(&counts, arguments, screen)?;
        if !arguments.json {
            text += &match window.end_ns {
                Some(end) => format!("exact up to {}; later counts are provisional\n", instant(end)),
                None => "the recording has ended\n".to_owned(),
            };
        }
        if is_terminal && lines > 0 {
            // Back to where the table began, and nothing of it stays.
            write!(out, "\x1b[{lines}A\x1b[J")?;
        } else if lines > 0 && !arguments.json {
            writeln!(out)?;
        }
        out.write_all(text.as_bytes())?;
        out.flush()?;
        (lines, shown) = (text.lines().count(), Some(Instant::now()));
        if window.end_ns.is_none() {
            outcome = show::report(&counts.report, arguments.common.strict);
        }
    }
    Ok(outcome_of(outcome, is_whole))
}

/// A time, for people; a clock of its own is seconds.
fn instant(nanos: i64) -> String {
    Timestamp::from_nanosecond(nanos.into()).map_or_else(|_| nanos.to_string(), |time| time.to_string())
}

fn told(window: Result<Option<Window>, OpenFailure>) -> Result<Option<Window>, StopReason> {
    window.map_err(|failure| StopReason::Expression(failure.render()))
}
