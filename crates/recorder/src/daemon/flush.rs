//! Periodic snapshots of flight recorders (autoflush), and the last one of a session.
//!
//! ```text
//! DIR/.flush      while it is written
//! DIR/snapshot-1  complete: it has got its name in one step, so that readers never meet a part of it
//! ```

use std::io;
use std::time::Duration;

use crate::daemon::Daemon;
use crate::program::DrainTiming;
use crate::protocol::Keep;
use crate::session::flush;

impl Daemon {
    /// Writes the periodic snapshots that are due.
    pub(super) fn flush_due(&mut self) {
        let period = |milliseconds| Duration::from_millis(milliseconds);
        for at in 0..self.sessions.len() {
            let session = &mut self.sessions[at];
            if session.options.flush_ms.is_some_and(|every| session.flush.is_due(period(every))) {
                // A program that rests may have events all the same.
                self.drain(DrainTiming::Now);
                let until = flush::late(&mut self.clocks);
                self.flush(at, until);
            }
        }
    }

    /// Writes the events of a session that ends, if its snapshots follow each other.
    pub(super) fn flush_last(&mut self, at: usize) {
        if self.sessions[at].options.drains {
            let until = flush::settled(&self.clocks);
            self.flush(at, until);
        }
    }

    /// Writes a snapshot with the events until these ticks, if there are any.
    fn flush(&mut self, at: usize, until: [u64; 2]) {
        if self.sessions[at].options.keep == Keep::Oldest {
            return;
        }
        if let Err(error) = self.write_flush(at, until) {
            let folder = self.sessions[at].options.output.display().to_string();
            self.sessions[at].problem(format!("{folder}: a snapshot was not written: {error}"));
        }
    }

    fn write_flush(&mut self, at: usize, until: [u64; 2]) -> io::Result<()> {
        self.count_rules(false);
        let session = &mut self.sessions[at];
        let new = session.snapshot_folder(".flush");
        // A recorder may have been killed while it wrote one.
        let _ = std::fs::remove_dir_all(&new);
        let snapshot = session.snapshot_until(until, Some(new.clone()), &mut self.clocks)?;
        let kept = std::mem::take(&mut session.flight);
        let mut summary = self.write_snapshot(snapshot, &kept);
        let session = &mut self.sessions[at];
        session.flight = kept;
        summary.problems.iter().for_each(|problem| session.problem(problem.clone()));
        if summary.events == 0 {
            session.has_no_snapshot();
            return std::fs::remove_dir_all(&new);
        }
        summary.output = session.free_snapshot_folder(session.snapshots());
        std::fs::rename(&new, &summary.output)?;
        // A reader may have deleted them already.
        let old = session.flush.keep(&summary, session.options.kept_bytes);
        old.iter().for_each(|old| _ = std::fs::remove_dir_all(old));
        session.keep_again();
        Ok(())
    }
}
