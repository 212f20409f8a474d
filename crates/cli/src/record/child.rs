//! The program that a session is for: started, waited for, and ended with.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, TryRecvError};

/// A program that runs.
pub(crate) struct Child {
    pid: rustix::process::Pid,
    ended: Receiver<io::Result<ExitStatus>>,
}

impl Child {
    /// Starts it for a session, by whose name it is known, with what its events are to carry. Its terminal is this process' one.
    pub(crate) fn start(words: &[OsString], tag: &str, contexts: u64) -> io::Result<Self> {
        let (program, words) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(words).env("KYMO_SESSION", tag).env("KYMO_CONTEXTS", contexts.to_string());
        command.env("KYMO_SESSIONS", kymo_recorder::folder::own_folder());
        let mut child = command.spawn()?;
        let pid = rustix::process::Pid::from_child(&child);
        let (say, ended) = mpsc::channel();
        std::thread::spawn(move || say.send(child.wait()));
        Ok(Self { pid, ended })
    }

    /// What it ended with; `None`: it runs.
    pub(crate) fn status(&self) -> Option<u8> {
        match self.ended.try_recv() {
            Ok(Ok(status)) => Some(code(status)),
            // It cannot be waited for: nobody knows.
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

/// As shells say it.
fn code(status: ExitStatus) -> u8 {
    let signal = || status.signal().map(|signal| 128 + signal);
    status.code().or_else(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
