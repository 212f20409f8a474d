//! A line on standard error with the progress of a long job and its remaining time; only on a
//! terminal.
//!
//! A thread of its own polls the job's progress a few times a second; a job that is done soon shows
//! nothing.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use kymo_session::Progress;

use crate::show::bytes;

/// Work that ends sooner than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);
/// Time between two looks.
const TICK: Duration = Duration::from_millis(200);

/// Does the work, and shows how far it is meanwhile.
pub(crate) fn watched<R>(progress: &Progress, work: impl FnOnce() -> R) -> R {
    if !io::stderr().is_terminal() {
        return work();
    }
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || watch(progress, &is_done));
        let result = work();
        // The watcher ends when this end of the channel is gone.
        drop(done);
        result
    })
}

fn watch(progress: &Progress, is_done: &mpsc::Receiver<()>) {
    let began = Instant::now();
    let mut wait = PATIENCE;
    let mut shown = false;
    while is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        wait = TICK;
        shown = true;
        let (done, total) = progress.bytes();
        // A terminal that cannot be written to is no reason to stop the job.
        let _ = write!(io::stderr(), "\r\x1b[K{}", line(done, total, began.elapsed()));
    }
    if shown {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

fn line(done: u64, total: u64, elapsed: Duration) -> String {
    if total == 0 {
        return format!("{} read", bytes(done));
    }
    let share = done as f64 / total as f64;
    let left = if done == 0 {
        String::new()
    } else {
        format!(", {:.0} s left", elapsed.as_secs_f64() * (1.0 - share) / share)
    };
    format!("{:>3.0}%  {} of {}{left}", share * 100.0, bytes(done), bytes(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is divided by zero, and the remaining time follows from the elapsed time.
    #[test]
    fn lines() {
        assert_eq!(line(0, 0, Duration::ZERO), "0 B read");
        assert_eq!(line(2048, 0, Duration::from_secs(1)), "2.0 KiB read");
        assert_eq!(line(0, 2048, Duration::from_secs(1)), "  0%  0 B of 2.0 KiB");
        assert_eq!(line(512, 2048, Duration::from_secs(2)), " 25%  512 B of 2.0 KiB, 6 s left");
        assert_eq!(line(2048, 2048, Duration::from_secs(2)), "100%  2.0 KiB of 2.0 KiB, 0 s left");
    }
}
