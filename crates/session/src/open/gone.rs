//! Files of open traces that are removed or become shorter: everything that was read of them stays, and the
//! rest is missing.
//!
//! A session that follows another one, of the same traces a little later, knows the files that were gone then:
//! it has no entry of them any more.
//!
//! A recorder that keeps the latest parts of a trace (`--keep`) deletes the folders of older ones. That is no
//! fault: such parts are counted.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kymo_source::{LiveState, SourceErrorKind, TraceFolder};

use crate::open::Session;
use crate::open::report::ReportProblem;

/// How often files are looked at, however often they are asked for.
const EVERY: Duration = Duration::from_secs(1);

/// The files that are gone, by their paths: shared by sessions of the same traces.
#[derive(Clone, Debug, Default)]
pub(crate) struct GoneFiles(Arc<Mutex<GoneState>>);

#[derive(Debug, Default)]
struct GoneState {
    looked: Option<Instant>,
    found: BTreeMap<String, String>,
    /// Folders of parts that were deleted as a whole.
    parts: BTreeSet<PathBuf>,
}

impl Session {
    /// Files of these traces that were removed or are shorter than when they were opened, as of the last second.
    #[must_use]
    pub fn gone_files(&self) -> Vec<ReportProblem> {
        self.look_for_gone(EVERY)
    }

    /// How many parts of a recording were deleted since they were opened, and the folder that had them, as
    /// [`Session::gone_files`] saw it last: a recorder that keeps the latest parts deletes older ones.
    #[must_use]
    pub fn deleted_parts(&self) -> Option<(usize, String)> {
        let state = self.gone.0.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = state.parts.first()?.parent()?.display().to_string();
        Some((state.parts.len(), folder))
    }

    /// The files that are gone now, for a later session of the same traces.
    pub(crate) fn gone_for_later(&self) -> GoneFiles {
        self.look_for_gone(Duration::ZERO);
        let state = self.gone.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (found, parts) = (state.found.clone(), state.parts.clone());
        GoneFiles(Arc::new(Mutex::new(GoneState { looked: None, found, parts })))
    }

    fn look_for_gone(&self, every: Duration) -> Vec<ReportProblem> {
        let mut state = self.gone.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.is_none_or(|looked| looked.elapsed() >= every) {
            self.traces.iter().for_each(|trace| state.look(&trace.folder));
            state.looked = Some(Instant::now());
        }
        state.problems()
    }
}

impl GoneState {
    /// Looks at the files of a trace.
    fn look(&mut self, folder: &TraceFolder) {
        if self.parts.contains(folder.path()) {
            return;
        }
        if is_deleted_part(folder.path()) {
            self.parts.insert(folder.path().to_owned());
            return;
        }
        look(folder, &mut self.found);
    }

    fn problems(&self) -> Vec<ReportProblem> {
        let problem =
            |(place, message): (&String, &String)| ReportProblem { place: place.clone(), message: message.clone() };
        self.found.iter().map(problem).collect()
    }
}

/// Looks at the files of a trace.
fn look(folder: &TraceFolder, found: &mut BTreeMap<String, String>) {
    for (number, entry) in folder.streams().iter().enumerate() {
        let (place, message) = match folder.identity(number) {
            Ok(now) if now.size < entry.size => {
                let place = folder.stream(number).path().display().to_string();
                (place, format!("the file was truncated while it was open, from {} to {} bytes", entry.size, now.size))
            }
            Err(error) if is_absent(&error.kind) => {
                (error.path.display().to_string(), "the file was removed while it was open".to_owned())
            }
            // Other errors are told by those that read the file.
            Ok(_) | Err(_) => continue,
        };
        found.entry(place).or_insert(message);
    }
}

/// Whether a folder is gone that had other parts of the same recording beside it. Recorders number parts: `000017`.
fn is_deleted_part(folder: &Path) -> bool {
    let is_part = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        name.len() >= 6 && name.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_gone = || matches!(folder.symlink_metadata(), Err(error) if error.kind() == ErrorKind::NotFound);
    let others = || folder.parent().and_then(|above| above.read_dir().ok()).into_iter().flatten().flatten();
    let is_other = |path: &Path| is_part(path) && LiveState::of(path).is_some();
    is_part(folder) && is_gone() && others().any(|other| is_other(&other.path()))
}

fn is_absent(kind: &SourceErrorKind) -> bool {
    matches!(kind, SourceErrorKind::Io(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::follow::{Follow, Look};
    use crate::made_traces::{METADATA, packet};
    use crate::open::OpenOptions;
    use crate::open::progress::Progress;
    use crate::timeline::{TimelineOptions, TimelineState};

    /// A trace with two streams of two packets each.
    fn trace(folder: &Path) {
        fs::write(folder.join("metadata"), METADATA).unwrap();
        for (name, at) in [("one", 100), ("other", 200)] {
            let mut file = Vec::new();
            packet(&mut file, [at, at + 50, 0, 0], &[at, at + 10]);
            packet(&mut file, [at + 60, at + 90, 0, 1], &[at + 60, at + 90]);
            fs::write(folder.join(name), file).unwrap();
        }
    }

    fn opened(folder: &Path) -> Arc<Session> {
        Arc::new(Session::open(&[folder.to_owned()], &OpenOptions::default()).unwrap())
    }

    fn told(gone: &[ReportProblem], folder: &Path) -> Vec<String> {
        let place = |gone: &ReportProblem| gone.to_string().replace(&format!("{}/", folder.display()), "");
        gone.iter().map(place).collect()
    }

    #[test]
    fn removed_and_truncated_files_are_told_and_stay_told() {
        let folder = tempfile::tempdir().unwrap();
        trace(folder.path());
        let session = opened(folder.path());
        let now = || told(&session.look_for_gone(Duration::ZERO), folder.path());
        assert_eq!(now(), [""; 0]);
        let other = fs::read(folder.path().join("other")).unwrap();
        fs::remove_file(folder.path().join("one")).unwrap();
        fs::write(folder.path().join("other"), &other[..80]).unwrap();
        let expected = [
            "one: the file was removed while it was open",
            "other: the file was truncated while it was open, from 144 to 80 bytes",
        ];
        assert_eq!(now(), expected);
        // Something may have been read meanwhile.
        fs::write(folder.path().join("other"), &other).unwrap();
        assert_eq!(now(), expected);
        assert_eq!(told(&session.gone_for_later().0.lock().unwrap().problems(), folder.path()), expected);
    }

    #[test]
    fn a_timeline_without_a_file_is_not_complete_and_keeps_what_it_has() {
        let folder = tempfile::tempdir().unwrap();
        trace(folder.path());
        let timeline = |session: &Arc<Session>| {
            let timeline = session.timeline(&TimelineOptions::default()).unwrap();
            timeline.start();
            timeline.wait(&Progress::default()).unwrap();
            timeline
        };
        assert_eq!(timeline(&opened(folder.path())).status().state, TimelineState::Complete);
        let session = opened(folder.path());
        let built = timeline(&session);
        fs::remove_dir_all(folder.path()).unwrap();
        let status = built.status();
        assert_eq!((status.state, status.events), (TimelineState::Failed, Some(8)));
        let failure = status.failure.unwrap();
        let expected = format!("the file was removed while it was open: {}/one; another file", folder.path().display());
        assert!(failure.starts_with(&expected), "{failure}");
        let findings = built.findings();
        assert_eq!(findings.iter().filter(|found| found.message.contains("was removed")).count(), 2, "{findings:?}");
    }

    #[cfg(feature = "columns")]
    #[test]
    fn lists_say_that_events_are_missing() {
        use crate::{EventsQuestion, PageOf, RowPlace};

        let folder = tempfile::tempdir().unwrap();
        trace(folder.path());
        let session = opened(folder.path());
        let other = fs::read(folder.path().join("other")).unwrap();
        fs::write(folder.path().join("other"), &other[..80]).unwrap();
        let pages = session.event_pages(&EventsQuestion::default()).unwrap();
        let progress = Arc::new(Progress::default());
        let page = pages.page(PageOf::From(RowPlace { time_ns: i64::MIN, behind: 0 }), 100, &progress).unwrap();
        assert_eq!(page.missing.len(), 1);
        assert!(!pages.count(u64::MAX, &progress).unwrap().is_exact);
    }

    #[test]
    fn those_that_follow_a_trace_are_told_once() {
        let folder = tempfile::tempdir().unwrap();
        trace(folder.path());
        let mut follow = Follow::new(vec![folder.path().to_owned()], OpenOptions::default());
        let window = |follow: &mut Follow| match follow.look().unwrap() {
            Look::More(window) => Some(window),
            Look::Nothing | Look::Over => None,
        };
        let first = window(&mut follow).expect("there are events");
        assert_eq!(first.gone, []);
        fs::remove_file(folder.path().join("one")).unwrap();
        let mut file = fs::read(folder.path().join("other")).unwrap();
        packet(&mut file, [400, 500, 0, 2], &[400, 500]);
        fs::write(folder.path().join("other"), &file).unwrap();
        let second = window(&mut follow).expect("there is more");
        assert_eq!(told(&second.gone, folder.path()), ["one: the file was removed while it was open"]);
        packet(&mut file, [600, 700, 0, 3], &[600, 700]);
        fs::write(folder.path().join("other"), &file).unwrap();
        let third = window(&mut follow).expect("there is more");
        assert_eq!(third.gone, []);
        assert_eq!(third.session.gone_files().len(), 1);
    }

    #[test]
    fn a_part_that_its_recorder_deletes_is_counted_and_is_no_fault() {
        let folder = tempfile::tempdir().unwrap();
        let parts = ["000001", "000002"].map(|name| folder.path().join(name));
        for part in &parts {
            fs::create_dir(part).unwrap();
            trace(part);
            fs::write(part.join(kymo_source::LIVE_FILE), "kymo-live 1 recording 189 1\n").unwrap();
        }
        assert!(LiveState::of(&parts[1]).is_some());
        let session = opened(folder.path());
        assert_eq!((session.look_for_gone(Duration::ZERO).len(), session.deleted_parts()), (0, None));
        fs::remove_dir_all(&parts[0]).unwrap();
        let deleted = Some((1, folder.path().display().to_string()));
        assert_eq!((session.look_for_gone(Duration::ZERO).len(), session.deleted_parts()), (0, deleted.clone()));
        // A file of the other one is missed.
        fs::remove_file(parts[1].join("one")).unwrap();
        assert_eq!((session.look_for_gone(Duration::ZERO).len(), session.deleted_parts()), (1, deleted));
    }

    #[test]
    fn a_file_that_is_gone_is_told_also_where_nothing_is_new() {
        let folder = tempfile::tempdir().unwrap();
        trace(folder.path());
        let mut follow = Follow::new(vec![folder.path().to_owned()], OpenOptions::default());
        let mut window = || match follow.look().unwrap() {
            Look::More(window) => Some((told(&window.gone, folder.path()), window.end_ns)),
            Look::Nothing | Look::Over => None,
        };
        assert_eq!(window(), Some((Vec::new(), Some(189))));
        fs::remove_file(folder.path().join("other")).unwrap();
        assert_eq!(window(), Some((vec!["other: the file was removed while it was open".to_owned()], Some(189))));
        assert_eq!(window(), None);
    }
}
