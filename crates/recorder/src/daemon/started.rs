//! Marks of sessions that start programs: a program that finds its session's mark begins with all
//! events on. A program without a mark does not, because no recorder would ever switch them off.
//!
//! ```text
//! NAME-PID.started     beside the programs' memory, as long as the session lasts, also while its recorder is killed and not there yet
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use crate::session::RecordingSession;

/// Marks that a session has begun that starts a program.
pub(crate) fn mark(folder: &Path, session: &RecordingSession) {
    // Without the mark, the program begins with all events off, and the recorder finds it a moment
    // later.
    session.tags().for_each(|tag| _ = fs::write(file(folder, tag), []));
}

/// Marks that the session is over.
pub(crate) fn unmark(folder: &Path, session: &RecordingSession) {
    session.tags().for_each(|tag| _ = fs::remove_file(file(folder, tag)));
}

/// Deletes the marks of sessions that no recorder continues.
pub(crate) fn sweep(folder: &Path, sessions: &[RecordingSession]) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let marks = entries.filter(|path| path.extension().is_some_and(|kind| kind == "started"));
    let is_known =
        |mark: &PathBuf| sessions.iter().flat_map(RecordingSession::tags).any(|tag| *mark == file(folder, tag));
    marks.filter(|mark| !is_known(mark)).for_each(|mark| _ = fs::remove_file(mark));
}

fn file(folder: &Path, tag: &str) -> PathBuf {
    folder.join(format!("{tag}.started"))
}
