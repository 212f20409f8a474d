//! What readers that follow a trace are told: up to when everything is in its files. `kymo-source` reads it.
//!
//! ```text
//! DIR/.kymo-live    kymo-live 1 recording WATERMARK PID      one line of 64 bytes, always written as a whole
//!                   /run/user/1000/kymo/day.session          while this is there, another recorder goes on when PID is gone
//! ```

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Its name: readers pass over names that begin with a dot.
const NAME: &str = ".kymo-live";

/// How old events may be that come yet: they wait in programs for others, for the next look at them, and for threads that were stopped
/// between reading the clock and publishing.
const LATE: Duration = Duration::from_millis(300);

/// Says so of the trace in a folder. A folder that is gone, or a full disk, has other ways to be told of.
///
/// `drained` is when the last look at everything began that took what was there: a recorder that was kept waiting has not seen what came since.
pub(crate) fn say(folder: &Path, is_recording: bool, drained: Option<SystemTime>, session: Option<&Path>) {
    let now = drained.unwrap_or_else(SystemTime::now).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let watermark = if is_recording { now.saturating_sub(LATE) } else { now };
    let state = if is_recording { "recording" } else { "ended" };
    let line = format!("kymo-live 1 {state} {} {}", watermark.as_nanos(), std::process::id());
    let file = File::options().write(true).create(true).truncate(false).open(folder.join(NAME));
    let mut bytes = format!("{line:63}\n").into_bytes();
    if let Some(session) = session {
        bytes.extend(session.as_os_str().as_encoded_bytes());
        bytes.push(b'\n');
    }
    let _ = file.and_then(|file| file.write_all_at(&bytes, 0));
}

/// Says of a trace that it has begun, and that nothing of it is there for sure: a folder of which nobody says anything is another tracer's.
pub(crate) fn begin(folder: &Path, session: Option<&Path>) {
    if session.is_some() && said(folder).is_none() {
        say(folder, true, Some(SystemTime::UNIX_EPOCH), session);
    }
}

/// Says of the next chunk of a trace what was said of the one before, which ends then: readers must not take that for the end of all.
pub(crate) fn go_on(before: &Path, next: &Path) {
    let _ = std::fs::copy(before.join(NAME), next.join(NAME));
}

/// What was said.
pub(crate) struct Said {
    pub(crate) is_recording: bool,
    pub(crate) recorder: u32,
    /// While this is there, another recorder goes on.
    pub(crate) session: Option<PathBuf>,
}

/// What a recorder has said of the trace in a folder; `None`: nothing.
pub(crate) fn said(folder: &Path) -> Option<Said> {
    let text = std::fs::read_to_string(folder.join(NAME)).ok()?;
    let (line, rest) = text.split_once('\n')?;
    let mut words = line.split_ascii_whitespace().skip(2);
    let (is_recording, recorder) = (words.next()? == "recording", words.nth(1)?.parse().ok()?);
    let session = rest.strip_suffix('\n').map(PathBuf::from).filter(|session| session.is_absolute());
    Some(Said { is_recording, recorder, session })
}

/// Whether a process runs; one that has ended and of which nobody has asked how does not.
pub(crate) fn runs(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with(['Z', 'X'])))
}
