//! Traces that are being written: up to when everything is in the files.
//!
//! A recorder of ours keeps a file `.kymo-live` beside the metadata, which it writes as a whole:
//!
//! ```text
//! kymo-live 1 recording 1763824089123456789 4711      watermark in ns, and who writes
//! /run/user/1000/kymo/day.session                     while this file is there, somebody else goes on where that one was killed
//! ```
//!
//! A reader that waits for more has a shared lock of the file. So the recorder knows, and does not put work off.

use std::fs::{self, File};
use std::path::Path;

/// Its name.
pub const LIVE_FILE: &str = ".kymo-live";

/// The folder of a snapshot that a recorder of ours still writes; whole ones have other names.
pub(crate) const UNFINISHED_FOLDER: &str = ".flush";

/// The state that a recorder reports of a trace that it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveState {
    /// More may come.
    pub is_recording: bool,
    /// All events before this time are in the files; nanoseconds, as the trace's clock has them.
    pub watermark_ns: i64,
    /// The process that writes.
    pub recorder: u32,
    /// If that one was killed, another one goes on.
    pub goes_on: bool,
}

impl LiveState {
    /// Of the trace in a folder, which may have no metadata yet; `None`: no recorder reports
    /// anything.
    #[must_use]
    pub fn of(folder: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(folder.join(LIVE_FILE)).ok()?)
    }

    /// Lets the recorder of a folder know that a reader waits for its events, while the file is open; `None`: the folder has no
    /// recorder, or it looks for that just now.
    #[must_use]
    pub fn wait(folder: &Path) -> Option<File> {
        let file = File::open(folder.join(LIVE_FILE)).ok()?;
        file.try_lock_shared().is_ok().then_some(file)
    }

    /// The state in the lines; `None` for other ones.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (line, rest) = line.split_once('\n').unwrap_or((line, ""));
        let session = rest.strip_suffix('\n').map(Path::new);
        let goes_on = session.is_some_and(|session| session.is_absolute() && session.exists());
        let mut words = line.split_ascii_whitespace();
        let mut next = || words.next();
        if (next(), next()) != (Some("kymo-live"), Some("1")) {
            return None;
        }
        let is_recording = match next()? {
            "recording" => true,
            "ended" => false,
            _ => return None,
        };
        Some(Self { is_recording, watermark_ns: next()?.parse().ok()?, recorder: next()?.parse().ok()?, goes_on })
    }
}

#[cfg(test)]
mod tests {
    use super::LiveState;

    #[test]
    fn lines_that_recorders_write() {
        let live =
            |is_recording, watermark_ns| Some(LiveState { is_recording, watermark_ns, recorder: 7, goes_on: false });
        assert_eq!(LiveState::parse("kymo-live 1 recording 12 7        \n"), live(true, 12));
        assert_eq!(LiveState::parse("kymo-live 1 ended -5 7"), live(false, -5));
        let there = std::env::current_exe().expect("it runs").display().to_string();
        for (session, goes_on) in [(&*there, true), ("/no/such/file", false), ("relative", false)] {
            let found = LiveState::parse(&format!("kymo-live 1 recording 12 7        \n{session}\n"));
            assert_eq!(found.map(|found| found.goes_on), Some(goes_on), "{session}");
        }
        for other in
            ["", "kymo-live 2 recording 12 7", "kymo-live 1 asleep 12 7", "kymo-live 1 ended x 7", "kymo-live 1"]
        {
            assert_eq!(LiveState::parse(other), None, "{other:?}");
        }
    }
}
