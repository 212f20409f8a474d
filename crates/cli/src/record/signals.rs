//! Signals that come during a recording: their owners, and the work that they end.

use std::cell::Cell;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};

use super::child::ChildProcess;

/// Signals that end it.
pub(crate) struct Signals {
    /// The last signal received; 0: none.
    came: Arc<AtomicUsize>,
    /// A received signal asks for the end of everything: no key does that.
    end_all: Cell<bool>,
    /// They are for the command, which runs.
    are_of_command: Arc<AtomicBool>,
    /// The terminal has another size.
    resized: Arc<AtomicBool>,
    /// A folder that goes with this process, also where it does not wait for the end.
    temporary: Arc<OnceLock<PathBuf>>,
}

/// A second request comes later than this: `timeout` sends its signal to a process and to its
/// group, at once.
const AGAIN: Duration = Duration::from_millis(300);

impl Signals {
    pub(crate) fn catch() -> io::Result<Self> {
        let (came, are_of_command) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (told, tells) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_usize(signal, Arc::clone(&came), signal as usize)?;
            signal_hook::low_level::pipe::register(signal, tells.try_clone()?)?;
        }
        let (last, theirs) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&are_of_command));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_usize(signal, Arc::clone(&last), signal as usize)?;
        }
        let temporary = Arc::new(OnceLock::new());
        let removed = Arc::clone(&temporary);
        std::thread::spawn(move || hurry(told, &last, &theirs, &removed));
        let resized = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGWINCH, Arc::clone(&resized))?;
        Ok(Self { came, end_all: Cell::new(false), are_of_command, resized, temporary })
    }

    /// Removes a folder also if a second request ends this process.
    pub(crate) fn remove_at_exit(&self, folder: &Path) {
        let _ = self.temporary.set(folder.to_owned());
    }

    /// Whether the running command handles them as it likes.
    pub(crate) fn are_of_command(&self, are: bool) {
        self.are_of_command.store(are, Ordering::Relaxed);
    }

    /// Whether the terminal has got another size.
    pub(crate) fn has_resized(&self) -> bool {
        self.resized.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn take(&self) -> Option<i32> {
        match self.came.swap(0, Ordering::Relaxed) {
            0 => None,
            signal => {
                self.end_all.set(self.end_all.get() || signal as i32 != SIGINT);
                Some(signal as i32)
            }
        }
    }

    /// Whether a sender other than a key of a terminal has asked for the end of all that this
    /// process does.
    #[cfg_attr(not(feature = "view"), allow(dead_code, reason = "what goes on behind a session asks"))]
    pub(crate) fn end_all(&self) -> bool {
        let _ = self.take();
        self.end_all.get()
    }
}

/// A second request ends all waiting: the recorder ends the session then.
fn hurry(mut told: UnixStream, last: &AtomicUsize, are_of_command: &AtomicBool, temporary: &OnceLock<PathBuf>) {
    let mut first: Option<Instant> = None;
    while told.read_exact(&mut [0]).is_ok() {
        let asked = *first.get_or_insert_with(Instant::now);
        if asked.elapsed() >= AGAIN && !are_of_command.load(Ordering::Relaxed) {
            temporary.get().into_iter().for_each(|folder| _ = std::fs::remove_dir_all(folder));
            signal_hook::low_level::exit(128 + last.load(Ordering::Relaxed) as i32);
        }
    }
}

/// Ctrl-C on a terminal reaches the program by itself, if this process is in the foreground there.
pub(crate) fn forward(signal: i32, child: &ChildProcess) {
    let is_foreground = || {
        let terminal = std::fs::File::open("/dev/tty").ok()?;
        Some(rustix::termios::tcgetpgrp(terminal).ok()? == rustix::process::getpgrp())
    };
    let signal = match signal {
        SIGINT if is_foreground() == Some(true) => return,
        SIGINT => Signal::INT,
        SIGHUP => Signal::HUP,
        _ => Signal::TERM,
    };
    child.signal(signal);
}
