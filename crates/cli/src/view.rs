//! `kymo view`: serves the traces to a browser on this machine, and opens it; without traces, the
//! page asks for them.
//!
//! The URL has a token; the server rejects requests without it. The command prints it for the user
//! of this terminal; the browser finds it in a file that only its user may read, as all users see
//! the arguments of programs.

mod token_file;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use kymo_server::{Begin, Growing, RecordHint, SampleTrace, ServeFailure, Server, ServerOptions, TraceChoice};
use kymo_session::{OwnTracks, Recent, Session, TraceNotes, cache_folder};
use signal_hook::consts::{SIGINT, SIGTERM};
use tempfile::NamedTempFile;

use crate::arguments::{Listen, ViewArguments};
use crate::stop::StopReason;
use crate::{CommandOutcome, ReadingOptions};

/// A tenth of a second of `examples/server`, for users without a trace; `examples/server/record.sh`
/// made it.
const SAMPLE: SampleTrace =
    SampleTrace { name: "server.tar.gz", bytes: include_bytes!("../../../examples/traces/server.tar.gz") };

/// Bytes of files that a browser may send: they lie in the folder of temporary files until the server ends.
const UPLOAD_BYTES_MAX: u64 = 2 << 30;

/// How to get traces of one's own.
const RECORD: &[RecordHint] = &[
    RecordHint {
        command: "kymo view --record -- ./app",
        what: "A live program: the timeline follows, and the page changes the recorded events",
    },
    RecordHint {
        command: "kymo record -- ./app",
        what: "A program from its first event to its last; the trace is in kymo-traces/ then",
    },
    RecordHint { command: "kymo record", what: "All your running programs that have events, until Ctrl-C" },
    RecordHint {
        command: "kymo record --capture-output -- make",
        what: "A program without events of its own: the lines that it writes, with their times",
    },
    RecordHint { command: "kymo record --help", what: "Events by name, level and process, filters, flight recorders" },
];

/// Serves traces that are open until Ctrl-C.
pub(crate) fn show(session: Session, arguments: &ViewArguments) -> Result<CommandOutcome, StopReason> {
    note_recent(&arguments.traces);
    let growing = Growing {
        session: Some(Arc::new(session)),
        paths: arguments.traces.clone(),
        open: crate::options(arguments.threads, arguments.reading.options(), cache_folder()),
    };
    run(growing.into(), notes_beside(arguments), arguments)
}

/// Serves traces that a recorder has begun and that have no events yet.
pub(crate) fn wait(arguments: &ViewArguments) -> Result<CommandOutcome, StopReason> {
    let growing = Growing {
        session: None,
        paths: arguments.traces.clone(),
        open: crate::options(arguments.threads, arguments.reading.options(), cache_folder()),
    };
    run(growing.into(), notes_beside(arguments), arguments)
}

/// Notes the traces that were viewed last.
pub(crate) fn note_recent(traces: &[PathBuf]) {
    if let Some(cache) = cache_folder() {
        // If noting fails, the view goes on all the same.
        let _ = Recent::in_folder(&cache).note(traces, SystemTime::now());
    }
}

fn notes_beside(arguments: &ViewArguments) -> Option<PathBuf> {
    arguments.notes.clone().or_else(|| arguments.traces.first().map(|trace| TraceNotes::beside(trace)))
}

/// Serves the trace chosen in the browser until Ctrl-C.
pub(crate) fn choose(arguments: &ViewArguments) -> Result<CommandOutcome, StopReason> {
    if let Some(option) = arguments.reading.given() {
        return Err(StopReason::Usage(format!("{option} is of a trace that is named: kymo view {option} ... TRACE")));
    }
    let choice = TraceChoice {
        open: crate::options(arguments.threads, ReadingOptions::default(), cache_folder()),
        sample: Some(SAMPLE),
        record: if cfg!(target_os = "linux") { RECORD } else { &[] },
        upload_bytes_max: UPLOAD_BYTES_MAX,
    };
    run(choice.into(), arguments.notes.clone(), arguments)
}

fn run(begin: Begin, notes: Option<PathBuf>, arguments: &ViewArguments) -> Result<CommandOutcome, StopReason> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // A second signal ends the process at once.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let server = bind(begin, notes, arguments)?;
    // The file is there as long as the server is.
    let _opened = tell(&server, arguments, &mut io::stdout(), "Ctrl-C ends it.")?;
    server.run(&stop).map_err(|failure| refused(&failure))?;
    Ok(CommandOutcome::Complete)
}

/// Listens, for viewers of a trace that is about to be recorded.
#[cfg(target_os = "linux")]
pub(crate) fn bind_recorded(trace: &Path, arguments: &ViewArguments) -> Result<Server, StopReason> {
    let open = crate::options(arguments.threads, ReadingOptions::default(), cache_folder());
    let growing = Growing { session: None, paths: vec![trace.to_owned()], open };
    let notes = arguments.notes.clone().unwrap_or_else(|| TraceNotes::beside(trace));
    bind(growing.into(), Some(notes), arguments)
}

fn bind(begin: Begin, notes: Option<PathBuf>, arguments: &ViewArguments) -> Result<Server, StopReason> {
    let mut options = ServerOptions::default();
    options.listen = listen(arguments)?;
    options.roles.clone_from(&arguments.roles);
    options.own =
        arguments.own.iter().map(|path| OwnTracks::read(path)).collect::<Result<_, _>>().map_err(StopReason::Usage)?;
    options.memory_bytes = arguments.memory;
    options.notes = notes;
    options.token = arguments.token_file.as_deref().map(token_file::token).transpose().map_err(StopReason::Usage)?;
    Server::bind(begin, options).map_err(|failure| refused(&failure))
}

/// Why nothing is served.
pub(crate) fn refused(failure: &ServeFailure) -> StopReason {
    StopReason::Expression(format!("error: {failure}\n"))
}

/// A page that leads to the server, and the process that has opened it; `None`: nothing was to be
/// opened.
pub(crate) type Opened = Option<io::Result<(NamedTempFile, Child)>>;

/// Prints the server's address and how to end it, and opens the browser there.
pub(crate) fn tell(
    server: &Server,
    arguments: &ViewArguments,
    out: &mut impl Write,
    ends: &str,
) -> Result<Opened, StopReason> {
    let url = server.url();
    writeln!(out, "{url}")?;
    out.flush()?;
    if !server.address().ip().is_loopback() {
        crate::message::write_line(
            "warning: other machines can connect; every client with the token can read these traces, and the token is sent unencrypted",
        );
    }
    let opened = (!arguments.no_browser && has_display()).then(|| open(&url));
    match &opened {
        Some(Err(error)) => {
            message!("note: no browser was opened: {error}; open the address above");
        }
        Some(Ok(_)) => message!("{ends}"),
        None => message!("Open the address above in a browser; {ends}"),
    }
    Ok(opened)
}

fn listen(arguments: &ViewArguments) -> Result<SocketAddr, StopReason> {
    let Listen { address, port } =
        arguments.listen.unwrap_or(Listen { address: Ipv4Addr::LOCALHOST.into(), port: None });
    match (port, arguments.port) {
        (Some(one), Some(other)) if one != other => {
            Err(StopReason::Usage(format!("--listen says port {one}, --port {other}")))
        }
        (one, other) => Ok(SocketAddr::new(address, one.or(other).unwrap_or(0))),
    }
}

/// Whether windows can be shown.
fn has_display() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !cfg!(target_os = "linux") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// Opens the browser with a page that leads to the URL, which only this user may read.
fn open(url: &str) -> io::Result<(NamedTempFile, Child)> {
    let mut page = tempfile::Builder::new().prefix("kymo-view-").suffix(".html").tempfile()?;
    let refresh = format!("<meta http-equiv=\"refresh\" content=\"0; url={url}\">");
    writeln!(page, "<!doctype html>{refresh}<a href=\"{url}\">Kymograph</a>")?;
    page.flush()?;
    let child = opener(page.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    Ok((page, child))
}

/// The program that opens a file as its user would.
fn opener(page: &Path) -> Command {
    let (program, arguments): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("cmd", &["/C", "start", ""]),
        _ => ("xdg-open", &[]),
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(page);
    command
}
