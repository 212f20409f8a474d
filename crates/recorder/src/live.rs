//! What readers that follow a trace are told: up to when everything is in its files. `kymo-source` reads it.
//!
//! ```text
//! DIR/.kymo-live    kymo-live 1 recording WATERMARK PID      one line of 64 bytes, always written as a whole
//! ```

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Its name: readers pass over names that begin with a dot.
const NAME: &str = ".kymo-live";

/// How old events may be that come yet: they wait in programs for others, for the next look at them, and for threads that were stopped
/// between reading the clock and publishing.
const LATE: Duration = Duration::from_millis(300);

/// Says so of the trace in a folder. A folder that is gone, or a full disk, has other ways to be told of.
pub(crate) fn say(folder: &Path, is_recording: bool) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let watermark = if is_recording { now.saturating_sub(LATE) } else { now };
    let state = if is_recording { "recording" } else { "ended" };
    let line = format!("kymo-live 1 {state} {} {}", watermark.as_nanos(), std::process::id());
    let file = File::options().write(true).create(true).truncate(false).open(folder.join(NAME));
    let _ = file.and_then(|file| file.write_all_at(format!("{line:63}\n").as_bytes(), 0));
}
