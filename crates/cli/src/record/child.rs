//! The program that a session is for: started, waited for, and ended with.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, TryRecvError};

use kymo_recorder::capture;

use super::streams::{OutputStreams, Passed, Pumps};

/// A program that runs.
pub(crate) struct ChildProcess {
    pid: rustix::process::Pid,
    ended: Receiver<io::Result<ExitStatus>>,
    /// The threads that pass on its output; `None`: it has our streams.
    pumps: Option<Pumps>,
}

impl ChildProcess {
    /// Starts it for a session, under the session's name, with the contexts of its events. Its
    /// terminal is this process' one; the lines that it writes are recorded for a session that
    /// selects `lines`.
    pub(crate) fn start(words: &[OsString], tag: &str, contexts: u64, lines: Option<&str>) -> io::Result<Self> {
        let (program, words) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(words).env("KYMO_SESSION", tag).env("KYMO_CONTEXTS", contexts.to_string());
        command.env("KYMO_SESSIONS", kymo_recorder::folder::own_folder());
        command.env_remove(super::kernel::HELPER_VARIABLE);
        let streams = lines.map(|lines| capture(&mut command, lines, contexts)).transpose()?;
        let child = command.spawn()?;
        // It had the other ends of pipes.
        drop(command);
        let pumps = streams.map(|streams| streams.pass(child.id())).transpose()?;
        Ok(Self::waited_for(child, pumps))
    }

    /// Starts it for no session.
    pub(crate) fn start_alone(words: &[OsString]) -> io::Result<Self> {
        let (program, words) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let child = Command::new(program).args(words).env_remove(super::kernel::HELPER_VARIABLE).spawn()?;
        Ok(Self::waited_for(child, None))
    }

    fn waited_for(mut child: Child, pumps: Option<Pumps>) -> Self {
        let pid = rustix::process::Pid::from_child(&child);
        let (say, ended) = mpsc::channel();
        std::thread::spawn(move || say.send(child.wait()));
        Self { pid, ended, pumps }
    }

    /// It has ended: passes on its last output, unless `is_over` says not to wait for that.
    pub(crate) fn pass_last(self, is_over: impl FnMut() -> bool) -> Option<Passed> {
        self.pumps.map(|pumps| pumps.end(is_over))
    }

    /// The terminal has another size.
    pub(crate) fn resize(&self) {
        if self.pumps.as_ref().is_some_and(Pumps::resize) {
            // It may have asked before its terminal knew.
            self.signal(rustix::process::Signal::WINCH);
        }
    }

    /// Its exit status; `None`: it runs.
    pub(crate) fn status(&self) -> Option<u8> {
        match self.ended.try_recv() {
            Ok(Ok(status)) => Some(code(status)),
            // Nothing can wait for it: its status is unknown.
            Ok(Err(_)) | Err(TryRecvError::Disconnected) => Some(1),
            Err(TryRecvError::Empty) => None,
        }
    }

    /// Sends it a signal that this process has got alone.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        // It may have ended meanwhile.
        let _ = rustix::process::kill_process(self.pid, signal);
    }
}

/// The exit code in the form of shells.
fn code(status: ExitStatus) -> u8 {
    let signal = || status.signal().map(|signal| 128 + signal);
    status.code().or_else(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Gives a program that is to be started streams whose lines are recorded.
fn capture(command: &mut Command, lines: &str, contexts: u64) -> io::Result<OutputStreams> {
    if !capture::begin(lines, contexts) {
        let why = match std::env::var_os("KYMO") {
            Some(value) if value == "off" => "`KYMO=off` forbids it",
            _ => "there is no memory for them; `kymo doctor` says more",
        };
        return Err(io::Error::other(format!("the lines that it writes cannot be recorded: {why}")));
    }
    let (streams, [stdout, stderr]) = OutputStreams::new()?;
    command.stdout(stdout).stderr(stderr);
    Ok(streams)
}
