//! Commands that record: they send requests to the recorder of this user, which is a process of its
//! own, and show its answers.
//!
//! ```text
//! kymo record ──starts──> kymo recorder-of-this-user      if there is none
//! kymo record, enable, status, ... ── socket ──┘
//! ```

mod child;
mod console;
mod doctor;
mod kernel;
mod kernel_list;
mod kernel_options;
mod limit;
mod objects;
mod place;
mod policy;
mod recover;
mod scope;
mod session;
mod show;
mod signals;
mod status;
mod streams;
mod switch;
mod trigger;
mod user_objects;
#[cfg(feature = "view")]
mod view;
mod watch;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kymo_recorder::client::{Client, ClientProblem, RECORDER_WORD};
use kymo_recorder::protocol::{RecorderReply, RecorderRequest};

use crate::CommandOutcome;
use crate::arguments::{BpfRunArguments, Command};
use crate::message::write_line;
use crate::stop::StopReason;

/// Becomes the recorder, if these words ask for it; returns the exit status for the process then.
pub(crate) fn become_recorder(words: &[OsString]) -> Option<u8> {
    let is_asked = words.len() == 2 && words[1] == RECORDER_WORD;
    is_asked.then(|| {
        kernel::give_up_capabilities();
        u8::from(kymo_recorder::record_for_user().is_err())
    })
}

pub(crate) use kernel::become_helper;

/// Runs a command that records.
pub(crate) fn run(command: &Command) -> Result<CommandOutcome, StopReason> {
    let done = match command {
        Command::Record(arguments) => match &arguments.policy {
            Some(path) => policy::run(path, arguments),
            None => session::run(arguments),
        },
        #[cfg(feature = "view")]
        Command::View(arguments) => view::run(arguments),
        Command::Enable(arguments) => switch::enable(arguments),
        Command::Disable(arguments) => switch::disable(arguments),
        Command::Filter(arguments) => switch::filter(arguments),
        Command::Trigger(arguments) => trigger::run(arguments),
        Command::Limit(arguments) => limit::run(arguments),
        Command::Watch(arguments) => watch::run(arguments),
        Command::Snapshot(arguments) => switch::snapshot(arguments),
        Command::Stop(arguments) => switch::stop(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Sessions(arguments) => status::sessions(arguments),
        Command::Doctor(arguments) => doctor::run(arguments),
        Command::Recover(arguments) => recover::run(arguments),
        _ => unreachable!("only commands that record come here"),
    };
    done.or_else(outcome_of)
}

/// Runs an object of the user in the kernel.
pub(crate) fn run_object(arguments: &BpfRunArguments) -> Result<CommandOutcome, StopReason> {
    objects::run(arguments).or_else(outcome_of)
}

fn outcome_of(problem: RecordProblem) -> Result<CommandOutcome, StopReason> {
    match problem {
        RecordProblem::Stop(stop) => Err(stop),
        RecordProblem::Client(problem) => {
            let text = problem.to_string();
            let is_in_the_way = matches!(problem, ClientProblem::Folder(_) | ClientProblem::Start(_));
            let help = if is_in_the_way { "\nhelp: `kymo doctor` says more" } else { "" };
            write_line(&format!("error: {}{help}", text.trim_end()));
            // A request that the recorder refuses was wrong usage, and so is one without a session.
            let is_usage = matches!(problem, ClientProblem::Refused(_) | ClientProblem::Nobody);
            Ok(if is_usage { CommandOutcome::Status(2) } else { CommandOutcome::Incomplete })
        }
    }
}

/// Why a command failed.
pub(crate) enum RecordProblem {
    Stop(StopReason),
    Client(ClientProblem),
}

impl RecordProblem {
    /// Reports the problem, where it does not change the outcome.
    fn tell(&self) {
        match self {
            Self::Stop(stop) => write_line(&format!("error: {}", stop.text())),
            Self::Client(problem) => write_line(&format!("error: {}", problem.to_string().trim_end())),
        }
    }
}

impl From<StopReason> for RecordProblem {
    fn from(stop: StopReason) -> Self {
        Self::Stop(stop)
    }
}

impl From<ClientProblem> for RecordProblem {
    fn from(problem: ClientProblem) -> Self {
        Self::Client(problem)
    }
}

impl From<std::io::Error> for RecordProblem {
    fn from(error: std::io::Error) -> Self {
        Self::Stop(StopReason::Output(error))
    }
}

/// Why an answer takes long.
fn warn(why: &str) {
    write_line(&format!("warning: {why}"));
}

/// Whether a recorder was about to end at the time of the request, as it had no session any more: a
/// moment later there is no recorder.
fn has_just_ended(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof) && !kymo_recorder::client::has_sessions()
}

/// Asks the recorder for a session, and starts a recorder if there is none; returns the client and
/// the answer.
fn ask_to_start(question: &RecorderRequest) -> Result<(Client, RecorderReply), ClientProblem> {
    for _ in 0..50 {
        let mut client = Client::connect_or_start(&this_program())?.telling(warn);
        match client.ask(question) {
            Err(ClientProblem::Broken(error)) if has_just_ended(&error) => std::thread::sleep(BETWEEN),
            answer => return answer.map(|answer| (client, answer)),
        }
    }
    let mut client = Client::connect_or_start(&this_program())?.telling(warn);
    client.ask(question).map(|answer| (client, answer))
}

/// Between two tries to ask a recorder that is about to end.
const BETWEEN: std::time::Duration = std::time::Duration::from_millis(20);

/// Asks a recorder that is there already, or the next one, where one was killed that had sessions to go on with.
fn ask(question: &RecorderRequest) -> Result<RecorderReply, ClientProblem> {
    for _ in 0..50 {
        match ask_who_is_there(question) {
            Err(ClientProblem::Broken(error)) if has_just_ended(&error) => std::thread::sleep(BETWEEN),
            answer => return answer,
        }
    }
    ask_who_is_there(question)
}

fn ask_who_is_there(question: &RecorderRequest) -> Result<RecorderReply, ClientProblem> {
    let mut client = match Client::connect() {
        Err(ClientProblem::Nobody | ClientProblem::Broken(_)) if kymo_recorder::client::has_sessions() => {
            Client::connect_or_start(&this_program())?
        }
        client => client?,
    }
    .telling(warn);
    client.ask(question)
}

/// A folder of a trace as an absolute path, in a form that a recorder takes.
fn folder(path: &Path) -> Result<PathBuf, StopReason> {
    let path = std::path::absolute(path)?;
    match path.to_str() {
        Some(_) => Ok(path),
        None => Err(StopReason::Usage(format!(
            "{}: the recorder writes to folders whose names are UTF-8: `--output` names another one",
            path.display()
        ))),
    }
}

/// The program that this one is, to be started again: all words before its arguments.
fn this_program() -> Vec<OsString> {
    use std::os::unix::ffi::OsStringExt;
    let own = std::env::current_exe().map_or_else(|_| "/proc/self/exe".into(), OsString::from);
    let line = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let line: Vec<OsString> = line
        .strip_suffix(b"\0")
        .unwrap_or(&line)
        .split(|byte| *byte == 0)
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect();
    // Where an interpreter runs a script, the script is the second word; this program takes none that is a file's path.
    let script = line
        .get(1)
        .map(PathBuf::from)
        .filter(|path| path.is_file() && path.file_name().is_some_and(|name| name == "kymo"));
    match script.and_then(|path| std::path::absolute(path).ok()) {
        // It names its interpreter, which may be a link in an environment: the file behind it knows nothing of that.
        Some(script) if is_executable(&script) => vec![script.into()],
        script => std::iter::once(own).chain(script.map(OsString::from)).collect(),
    }
}

fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}
