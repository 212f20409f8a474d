//! The served state: traces that are open, or before there are any, the choice of them.
//!
//! ```text
//! choosing ──> opening ──> open       for as long as the server runs
//!    ^            │
//!    └── failed ──┘                   with why; all that was there to choose from still is
//! ```
//!
//! Traces are opened once: a user that looks at others runs another server. So no response is about
//! other traces than the one before.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use axum::http::StatusCode;
use kymo_session::{Recent, Session, TimelineFailure, TraceNotes};

use crate::begin::TraceChoice;
use crate::current::GrowthStatus;
use crate::refusal::RequestRefusal;
use crate::shared::{Means, OpenTraces, SharedTraces};
use crate::uploads::Uploads;

/// The served state now.
pub(crate) struct ServerStage {
    means: Means,
    /// The traces, once they are open.
    asked: OnceLock<OpenTraces>,
    /// The choice that there was, if the server began with one.
    pub(crate) choice: Option<TraceChoice>,
    pub(crate) uploads: Arc<Uploads>,
    progress: Mutex<OpeningProgress>,
}

/// The progress of opening the chosen traces.
#[derive(Default)]
struct OpeningProgress {
    is_opening: bool,
    is_over: bool,
    /// Why the traces chosen last could not be opened.
    failure: Option<String>,
    /// Traces are recorded that have no events yet; and why not, if that is known.
    is_waiting: bool,
    why_waiting: Option<String>,
}

/// How far it is, for people.
pub(crate) enum StageState {
    Choosing(Option<String>),
    Opening,
    /// For the first events; and why there are none, if that is known.
    Waiting(Option<String>),
    Open,
}

/// The chosen traces.
pub(crate) struct ChosenTraces {
    pub(crate) paths: Vec<PathBuf>,
    /// They stay where they are when the server ends, so that notes lie beside them, and they can be opened again.
    pub(crate) stays: bool,
}

impl ServerStage {
    /// Of traces that are open, of a choice, or, without both, of traces whose first events are waited for.
    pub(crate) fn new(session: Option<Arc<Session>>, choice: Option<TraceChoice>, means: Means) -> Self {
        let is_waiting = choice.is_none() && session.is_none();
        let bytes_max = choice.as_ref().map_or(0, |choice| choice.upload_bytes_max);
        let uploads = Arc::new(Uploads::new(bytes_max));
        let progress = Mutex::new(OpeningProgress { is_waiting, ..OpeningProgress::default() });
        let stage = Self { means, asked: OnceLock::new(), choice, uploads, progress };
        if let Some(session) = session {
            let notes = stage.means.notes.clone();
            stage.take(session, notes, None);
        }
        stage
    }

    fn progress(&self) -> MutexGuard<'_, OpeningProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn asked(&self) -> Option<&OpenTraces> {
        self.asked.get()
    }

    pub(crate) fn state(&self) -> StageState {
        let progress = self.progress();
        match (self.asked(), progress.is_opening, progress.is_waiting) {
            (Some(_), ..) => StageState::Open,
            (None, _, true) => StageState::Waiting(progress.why_waiting.clone()),
            (None, true, _) => StageState::Opening,
            (None, false, _) => StageState::Choosing(progress.failure.clone()),
        }
    }

    /// The traces that were looked at last, if that is noted.
    pub(crate) fn recent(&self) -> Option<Recent> {
        self.choice.as_ref()?.open.cache.as_deref().map(Recent::in_folder)
    }

    /// The choice, as long as no traces are chosen.
    pub(crate) fn choosing(&self) -> Result<&TraceChoice, RequestRefusal> {
        match (&self.choice, self.state()) {
            (Some(choice), StageState::Choosing(_)) => Ok(choice),
            (_, StageState::Opening | StageState::Waiting(_)) => {
                Err(taken("traces are being opened already; GET /api/v1/start says how far that is"))
            }
            _ => Err(taken("traces are open already; another `kymo view` shows others")),
        }
    }

    /// Traces are open from now on; how far they are, if they grow.
    fn take(&self, session: Arc<Session>, notes: Option<PathBuf>, live: Option<GrowthStatus>) {
        let asked = OpenTraces::from(SharedTraces::new(session, &self.means, notes.map(TraceNotes::new), live));
        let progress = self.progress();
        if !progress.is_over {
            let _ = self.asked.set(asked);
        }
    }

    /// There is more of traces that grow: everything before `until`, or all that ever will be.
    pub(crate) fn grown(&self, session: &Arc<Session>, until: Option<i64>) -> Result<(), TimelineFailure> {
        let Some(asked) = self.asked() else {
            let last = until.or_else(|| session.last_ns().map(|last| last.saturating_add(1)));
            let live = last.map(|watermark| GrowthStatus {
                is_recording: until.is_some(),
                ..GrowthStatus::now(session, watermark)
            });
            // Before the first event there is nothing to be seen.
            if until.is_none() || session.first_ns().is_some_and(|first| until.is_some_and(|until| first < until)) {
                self.take(Arc::clone(session), self.means.notes.clone(), live);
            }
            return Ok(());
        };
        asked.shown.grow(session, until)?;
        let live = match until {
            Some(until) => Some(GrowthStatus::now(session, until)),
            None => asked.current.live().map(|live| {
                let end_ns = asked.shown.status().ok().map(|status| status.end_ns.saturating_add(1));
                let watermark_ns = end_ns.unwrap_or(live.watermark_ns);
                GrowthStatus { is_recording: false, problem: None, watermark_ns, ..live }
            }),
        };
        asked.current.set(Arc::clone(session), live);
        Ok(())
    }

    /// Why there are no events yet.
    pub(crate) fn tell_waiting(&self, why: String) {
        self.progress().why_waiting = Some(why);
    }

    /// The server ends.
    pub(crate) fn is_over(&self) -> bool {
        self.progress().is_over
    }

    /// Ends all work that requests began; nothing begins any more.
    pub(crate) fn end(&self) {
        self.progress().is_over = true;
        if let Some(asked) = self.asked() {
            asked.jobs.stop();
            asked.shown.stop();
        }
        self.uploads.end();
    }

    /// No other request opens anything until the returned value is dropped.
    pub(crate) fn begin_opening(self: &Arc<Self>) -> Result<Opens, RequestRefusal> {
        self.choosing()?;
        let mut progress = self.progress();
        if progress.is_opening || self.asked().is_some() {
            return Err(taken("another client has just chosen; GET /api/v1/start shows its progress"));
        }
        progress.is_opening = true;
        Ok(Opens(Arc::clone(self)))
    }

    /// Sets why the traces chosen last could not be opened, if they could not.
    pub(crate) fn tell_failure(&self, why: Option<String>) {
        self.progress().failure = why;
    }

    /// Opens the chosen traces, on this thread.
    pub(crate) fn open(&self, chosen: &ChosenTraces) -> Result<(), RequestRefusal> {
        let ChosenTraces { paths, stays } = chosen;
        let choice = self.choice.as_ref().expect("only who has a choice opens anything");
        // The sender of uploaded files does not know where they lie.
        let own = paths.first().and_then(|path| path.parent()).filter(|_| !stays);
        let own = own.map(|folder| format!("{}{}", folder.display(), std::path::MAIN_SEPARATOR));
        let session = Session::open(paths, &choice.open).map_err(|failure| {
            let text = failure.render();
            unopened(own.map_or_else(|| text.clone(), |own| text.replace(&own, "")))
        })?;
        let beside = || paths.first().filter(|_| *stays).map(|path| TraceNotes::beside(path));
        let notes = self.means.notes.clone().or_else(beside);
        if *stays {
            self.means.recording.shows(paths);
        }
        if let Some(recent) = self.recent().filter(|_| *stays) {
            // Without the note, the traces are shown all the same.
            let _ = recent.note(paths, SystemTime::now());
        }
        self.take(Arc::new(session), notes, None);
        Ok(())
    }
}

/// Chosen traces are being opened. Nothing is being opened any more once this is dropped, however
/// that has ended.
pub(crate) struct Opens(Arc<ServerStage>);

impl Opens {
    pub(crate) fn stage(&self) -> &Arc<ServerStage> {
        &self.0
    }
}

impl Drop for Opens {
    fn drop(&mut self) {
        self.0.progress().is_opening = false;
    }
}

fn taken(message: &str) -> RequestRefusal {
    RequestRefusal::new(StatusCode::CONFLICT, "open", message)
}

/// The chosen traces cannot be opened.
fn unopened(text: impl AsRef<str>) -> RequestRefusal {
    let text = text.as_ref().trim();
    RequestRefusal::new(StatusCode::BAD_REQUEST, "unopened", text.strip_prefix("error: ").unwrap_or(text))
}
