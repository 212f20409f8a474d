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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kymo_source::{LiveState, SourceErrorKind, TraceFolder};

use crate::open::Session;
use crate::open::report::ReportProblem;

/// How often files are looked at, however often they are asked for.
const EVERY: Duration = Duration::from_secs(1);
/// So long after a file of a part was missed it counts as removed: its recorder may be deleting the part, file by file.
const GRACE: Duration = Duration::from_secs(1);

/// The files that are gone, by their paths: shared by sessions of the same traces.
#[derive(Clone, Debug, Default)]
pub(crate) struct GoneFiles(Arc<Mutex<GoneState>>);

#[derive(Clone, Debug, Default)]
struct GoneState {
    looked: Option<Instant>,
    /// A thread looks at the files.
    is_looking: bool,
    found: BTreeMap<String, GoneFile>,
    /// Files of parts that were missed, and since when.
    suspected: BTreeMap<String, Instant>,
    /// Folders of parts that were deleted as a whole.
    parts: BTreeSet<PathBuf>,
}

/// A file that was removed or truncated.
#[derive(Clone, Debug)]
struct GoneFile {
    /// The folder of its trace.
    folder: PathBuf,
    message: String,
}

/// The files of a trace at one look.
enum SeenFolder {
    DeletedPart,
    /// Places of files that are gone, with messages; whether the folder is a part of a recording.
    Gone(Vec<(String, String)>, bool),
}

impl GoneFiles {
    fn lock(&self) -> MutexGuard<'_, GoneState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Files of these traces that were removed or are shorter than when they were opened, as of the last second.
    #[must_use]
    pub fn gone_files(&self) -> Vec<ReportProblem> {
        self.look_for_gone(EVERY)
    }

    /// The same as a look before saw it, which is a second old at most where the disk answers: a thread looks meanwhile. For
    /// callers that must not wait for a disk.
    pub(crate) fn gone_files_seen(self: &Arc<Self>) -> Vec<ReportProblem> {
        let mut state = self.gone.lock();
        if state.is_due(EVERY) && !state.is_looking {
            state.is_looking = true;
            let session = Arc::clone(self);
            let looks = std::thread::Builder::new().name("gone files".to_owned()).spawn(move || {
                session.look_for_gone(Duration::ZERO);
                session.gone.lock().is_looking = false;
            });
            state.is_looking = looks.is_ok();
        }
        state.problems()
    }

    /// How many parts of a recording were deleted since they were opened, and the folder that had them, as
    /// [`Session::gone_files`] saw it last: a recorder that keeps the latest parts deletes older ones.
    #[must_use]
    pub fn deleted_parts(&self) -> Option<(usize, String)> {
        let state = self.gone.lock();
        let folder = state.parts.first()?.parent()?.display().to_string();
        Some((state.parts.len(), folder))
    }

    /// The files that are gone now, for a later session of the same traces.
    pub(crate) fn gone_for_later(&self) -> GoneFiles {
        self.look_for_gone(Duration::ZERO);
        let state = GoneState { looked: None, is_looking: false, ..self.gone.lock().clone() };
        GoneFiles(Arc::new(Mutex::new(state)))
    }

    fn look_for_gone(&self, every: Duration) -> Vec<ReportProblem> {
        let state = self.gone.lock();
        if !state.is_due(every) {
            return state.problems();
        }
        let parts = state.parts.clone();
        // Others need not wait for the disk.
        drop(state);
        let folders = self.traces.iter().map(|trace| &trace.folder).filter(|folder| !parts.contains(folder.path()));
        let seen: Vec<(PathBuf, SeenFolder)> = folders.map(|folder| (folder.path().to_owned(), look(folder))).collect();
        let mut state = self.gone.lock();
        state.take(seen);
        state.problems()
    }
}

impl GoneState {
    fn is_due(&self, every: Duration) -> bool {
        self.looked.is_none_or(|looked| looked.elapsed() >= every)
    }

    fn take(&mut self, seen: Vec<(PathBuf, SeenFolder)>) {
        let before = std::mem::take(&mut self.suspected);
        let now = Instant::now();
        for (folder, seen) in seen {
            let (gone, is_part) = match seen {
                SeenFolder::Gone(gone, is_part) => (gone, is_part),
                SeenFolder::DeletedPart => {
                    self.parts.insert(folder);
                    continue;
                }
            };
            for (place, message) in gone {
                let since = *before.get(&place).unwrap_or(&now);
                if is_part && now.duration_since(since) < GRACE {
                    self.suspected.insert(place, since);
                } else {
                    self.found.entry(place).or_insert_with(|| GoneFile { folder: folder.clone(), message });
                }
            }
        }
        // Files of a part whose deletion took long were missed first. Later sessions do not have that part.
        let folders: BTreeSet<&PathBuf> = self.found.values().map(|gone| &gone.folder).collect();
        self.parts.extend(
            folders.into_iter().filter(|folder| is_part(folder) && is_gone(folder)).cloned().collect::<Vec<_>>(),
        );
        self.found.retain(|_, gone| !self.parts.contains(&gone.folder));
        self.looked = Some(now);
    }

    fn problems(&self) -> Vec<ReportProblem> {
        let problem =
            |(place, gone): (&String, &GoneFile)| ReportProblem { place: place.clone(), message: gone.message.clone() };
        self.found.iter().map(problem).collect()
    }
}

/// Looks at the files of a trace.
fn look(folder: &TraceFolder) -> SeenFolder {
    let is_part = is_part(folder.path());
    if is_part && is_gone(folder.path()) {
        return SeenFolder::DeletedPart;
    }
    let gone = folder.streams().iter().enumerate().filter_map(|(number, entry)| match folder.identity(number) {
        Ok(now) if now.size < entry.size => {
            let place = folder.stream(number).path().display().to_string();
            Some((
                place,
                format!("the file was truncated while it was open, from {} to {} bytes", entry.size, now.size),
            ))
        }
        Err(error) if is_absent(&error.kind) => {
            Some((error.path.display().to_string(), "the file was removed while it was open".to_owned()))
        }
        // Readers of the file report other errors.
        Ok(_) | Err(_) => None,
    });
    SeenFolder::Gone(gone.collect(), is_part)
}

/// Whether a folder is a part of a recording, with others beside it. Recorders number parts: `000017`.
fn is_part(folder: &Path) -> bool {
    let has_number = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        name.len() >= 6 && name.bytes().all(|byte| byte.is_ascii_digit())
    };
    let others = || folder.parent().and_then(|above| above.read_dir().ok()).into_iter().flatten().flatten();
    let is_other = |path: &Path| path != folder && has_number(path) && LiveState::of(path).is_some();
    has_number(folder) && others().any(|other| is_other(&other.path()))
}

fn is_gone(folder: &Path) -> bool {
    matches!(folder.symlink_metadata(), Err(error) if error.kind() == ErrorKind::NotFound)
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
        assert_eq!(told(&session.gone_for_later().lock().problems(), folder.path()), expected);
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
        // A thread looks at the files.
        let failed = || Some(built.status()).filter(|status| status.state == TimelineState::Failed);
        let status = std::iter::repeat_with(|| (std::thread::yield_now(), failed()).1).flatten().next().unwrap();
        assert_eq!(status.events, Some(8));
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
        // A file of the other one is missed: after a while, for its part may be about to be deleted.
        fs::create_dir(folder.path().join("000003")).unwrap();
        fs::write(folder.path().join("000003").join(kymo_source::LIVE_FILE), "kymo-live 1 recording 189 1\n").unwrap();
        fs::remove_file(parts[1].join("one")).unwrap();
        assert_eq!((session.look_for_gone(Duration::ZERO).len(), session.deleted_parts()), (0, deleted));
        let missed = std::iter::repeat_with(|| session.look_for_gone(Duration::ZERO)).find(|gone| !gone.is_empty());
        assert_eq!(told(&missed.unwrap(), folder.path()), ["000002/one: the file was removed while it was open"]);
        // It was, and took long; a later session, which does not have the part any more, knows it as well.
        let later = Session { gone: session.gone_for_later(), ..Session::open(&[], &OpenOptions::default()).unwrap() };
        assert_eq!(later.look_for_gone(Duration::ZERO).len(), 1);
        fs::remove_dir_all(&parts[1]).unwrap();
        let deleted = Some((2, folder.path().display().to_string()));
        for session in [&later, &*session] {
            assert_eq!((session.look_for_gone(Duration::ZERO).len(), session.deleted_parts()), (0, deleted.clone()));
        }
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
