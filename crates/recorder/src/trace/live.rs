//! Status for readers that follow a trace: up to which time all events are in its files.
//! `kymo-source` reads it.
//!
//! ```text
//! DIR/.kymo-live    kymo-live 1 recording WATERMARK PID      one line of 64 bytes, always written as a whole
//!                   /run/user/1000/kymo/day.session          while this is there, another recorder goes on when PID is gone
//! ```

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Name of the file: readers skip names that begin with a dot.
const NAME: &str = ".kymo-live";

/// How old events may be that are still to come: they wait in programs for more events, for the
/// next look, and for threads that were stopped between reading the clock and publishing.
const LATE: Duration = Duration::from_millis(300);

/// Writes the status of the trace in a folder. A missing folder, or a full disk, is reported
/// elsewhere.
///
/// `drained` is when the last look that took the events of all programs began: a recorder that was
/// delayed has not seen later events.
pub(crate) fn say(folder: &Path, is_recording: bool, drained: Option<SystemTime>, session: Option<&Path>) {
    let now = drained.unwrap_or_else(SystemTime::now).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let watermark = if is_recording { now.saturating_sub(LATE) } else { now };
    let state = if is_recording { "recording" } else { "ended" };
    let line = format!("kymo-live 1 {state} {} {}", watermark.as_nanos(), std::process::id());
    let file = File::options().write(true).create(true).truncate(false).open(folder.join(NAME));
    // A line of a fixed length, in one write: a reader never meets the rest of a longer one.
    let mut bytes = format!("{line:63}\n").into_bytes();
    if let Some(session) = session {
        bytes.extend(session.as_os_str().as_encoded_bytes());
        bytes.push(b'\n');
    }
    let _ = file.and_then(|file| file.write_all_at(&bytes, 0));
}

/// Reports that a trace has begun, and that none of its events is certain to be there: readers take
/// a folder without a status for another tracer's.
pub(crate) fn begin(folder: &Path, session: Option<&Path>) {
    if session.is_some() && said(folder).is_none() {
        say(folder, true, Some(SystemTime::UNIX_EPOCH), session);
    }
}

/// Copies the status of a chunk to the next one, before the first one ends: readers must not take
/// that end for the end of the trace.
pub(crate) fn go_on(before: &Path, next: &Path) {
    let _ = std::fs::copy(before.join(NAME), next.join(NAME));
}

/// Whether a reader follows the trace in a folder: it has a lock of the status file.
pub(crate) fn is_followed(folder: &Path) -> bool {
    let file = File::open(folder.join(NAME));
    file.is_ok_and(|file| matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

/// Content of a status file.
pub(crate) struct LiveStatus {
    pub(crate) is_recording: bool,
    pub(crate) recorder: u32,
    /// While this file exists, another recorder continues the trace.
    pub(crate) session: Option<PathBuf>,
}

/// Status of the trace in a folder; `None`: there is none.
pub(crate) fn said(folder: &Path) -> Option<LiveStatus> {
    let text = std::fs::read_to_string(folder.join(NAME)).ok()?;
    let (line, rest) = text.split_once('\n')?;
    let mut words = line.split_ascii_whitespace().skip(2);
    let (is_recording, recorder) = (words.next()? == "recording", words.nth(1)?.parse().ok()?);
    let session = rest.strip_suffix('\n').map(PathBuf::from).filter(|session| session.is_absolute());
    Some(LiveStatus { is_recording, recorder, session })
}

/// Whether a process runs; a zombie does not.
pub(crate) fn runs(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with(['Z', 'X'])))
}
