//! `kymo view --record`: the browser shows the recording meanwhile, and afterwards.
//!
//! ```text
//! ├── recorded: signals are the program's, or end the session ──┤── shown: Ctrl-C ends it ──┤
//! ├── the server, on a thread of its own ───────────────────────────────────────────────────┤
//! ```

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use kymo_server::{ServeFailure, Server};

use super::RecordProblem;
use super::session::{EndedSession, RecordingPlan};
use super::signals::Signals;
use crate::CommandOutcome;
use crate::arguments::ViewArguments;
use crate::message::write_line;
use crate::stop::StopReason;
use crate::view;

/// Between two checks whether it is over.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) fn run(arguments: &ViewArguments) -> Result<CommandOutcome, RecordProblem> {
    check(arguments)?;
    let plan = RecordingPlan::of(&arguments.recording, false, None)?;
    let trace = plan.output().to_owned();
    // If the server cannot listen, nothing has begun.
    let server = view::bind_recorded(&trace, arguments)?;
    let begun = plan.begin()?;
    let opened = match arguments.recording.command.is_empty() {
        true => {
            view::tell(&server, arguments, &mut io::stdout(), "Ctrl-C ends the recording, and another one the view.")
        }
        // Standard output is the program's.
        false => view::tell(
            &server,
            arguments,
            &mut io::stderr(),
            "Ctrl-C is the program's as long as that runs, and ends the view then.",
        ),
    }?;
    let serving = Serving::begin(server)?;
    let EndedSession { outcome, has_trace, signals } = begun.record(false)?;
    if has_trace {
        view::note_recent(&[trace]);
    }
    serving.end_when_asked(&signals, has_trace && !signals.end_all())?;
    drop(opened);
    Ok(outcome)
}

/// Rejects arguments that make no sense together.
fn check(arguments: &ViewArguments) -> Result<(), StopReason> {
    if let Some(trace) = arguments.traces.first().map(|trace| trace.display()) {
        return Err(StopReason::Usage(format!(
            "--record shows the trace that it records: `kymo view --record -- {trace}` records a program, `kymo view {trace}` shows a trace \
             that is there"
        )));
    }
    if let Some(option) = arguments.reading.given() {
        return Err(StopReason::Usage(format!(
            "{option} is of traces that are there, and `--record` records a new one"
        )));
    }
    Ok(())
}

/// A server on a thread of its own, which ends when this is dropped.
struct Serving {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), ServeFailure>>>,
}

impl Serving {
    fn begin(server: Server) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("kymo-serves".to_owned()).spawn(move || server.run(&told))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Serves until a signal comes, if there is anything to show; a second signal ends the wait for
    /// its end.
    fn end_when_asked(mut self, signals: &Signals, is_worth_while: bool) -> Result<(), StopReason> {
        signals.are_of_command(true);
        if is_worth_while && !self.is_over() {
            write_line("\nThe view goes on; Ctrl-C ends it.");
        }
        while is_worth_while && !self.is_over() && signals.take().is_none() {
            std::thread::sleep(LOOK);
        }
        self.stop.store(true, Ordering::Relaxed);
        while !self.is_over() && signals.take().is_none() {
            std::thread::sleep(LOOK);
        }
        match self.thread.take_if(|thread| thread.is_finished()).map(JoinHandle::join) {
            Some(Ok(Err(failure))) => Err(view::refused(&failure)),
            _ => Ok(()),
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
