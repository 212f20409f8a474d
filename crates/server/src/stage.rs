//! What is served: traces that are open, or before there are any, the choice of them.
//!
//! ```text
//! choosing ──> opening ──> open       for as long as the server runs
//!    ^            │
//!    └── failed ──┘                   with why; all that was there to choose from still is
//! ```
//!
//! Traces are opened once: whoever looks at others runs another server. So no answer is about other traces than the one before.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use kymo_session::{Notes, OpenOptions, Recent, Session};
use tokio::sync::oneshot;

use crate::guard::Guard;
use crate::pool::Pool;
use crate::refusal::Refusal;
use crate::shared::{Asked, Means, Shared};
use crate::uploads::Uploads;

/// What a server begins with.
#[derive(Debug)]
pub enum Begin {
    /// Traces that are open.
    Traces(Arc<Session>),
    /// Whoever looks chooses some.
    Choice(Choice),
}

impl From<Arc<Session>> for Begin {
    fn from(session: Arc<Session>) -> Self {
        Self::Traces(session)
    }
}

impl From<Choice> for Begin {
    fn from(choice: Choice) -> Self {
        Self::Choice(choice)
    }
}

/// What there is to choose from.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// How traces are opened. Recent ones are known where these have a cache.
    pub open: OpenOptions,
    /// A trace that whoever has none can look at.
    pub sample: Option<Sample>,
    /// How to get traces of one's own.
    pub record: &'static [RecordHint],
    /// Bytes of all files together that may be sent; 0: none may.
    pub upload_bytes_max: u64,
}

/// A trace as the bytes of an archive.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The archive's name, whose end says of what kind it is.
    pub name: &'static str,
    /// What is in it.
    pub bytes: &'static [u8],
}

/// One way to record a trace.
#[derive(Clone, Copy, Debug)]
pub struct RecordHint {
    /// What is typed.
    pub command: &'static str,
    /// What becomes of that.
    pub what: &'static str,
}

/// All that requests share, whatever is served.
pub(crate) struct Host {
    pub(crate) guard: Guard,
    pub(crate) pool: Arc<Pool>,
    pub(crate) stage: Stage,
}

/// As every request has it.
pub(crate) type Hosted = Arc<Host>;

/// What is served now.
pub(crate) struct Stage {
    means: Means,
    /// The traces, once they are open.
    asked: OnceLock<Asked>,
    /// What there was to choose from, if there was a choice.
    pub(crate) choice: Option<Choice>,
    pub(crate) uploads: Arc<Uploads>,
    progress: Mutex<Opening>,
}

/// How far whoever chose has come.
#[derive(Default)]
struct Opening {
    is_opening: bool,
    is_over: bool,
    /// Why what was chosen last could not be opened.
    failure: Option<String>,
}

/// How far it is, for people.
pub(crate) enum State {
    Choosing(Option<String>),
    Opening,
    Open,
}

/// What somebody chose.
pub(crate) struct Chosen {
    pub(crate) paths: Vec<PathBuf>,
    /// They stay where they are when the server ends, so that notes lie beside them, and they can be opened again.
    pub(crate) stays: bool,
}

impl Stage {
    pub(crate) fn new(begin: Begin, means: Means) -> Self {
        let (choice, session) = match begin {
            Begin::Traces(session) => (None, Some(session)),
            Begin::Choice(choice) => (Some(choice), None),
        };
        let bytes_max = choice.as_ref().map_or(0, |choice| choice.upload_bytes_max);
        let uploads = Arc::new(Uploads::new(bytes_max));
        let stage = Self { means, asked: OnceLock::new(), choice, uploads, progress: Mutex::default() };
        if let Some(session) = session {
            let notes = stage.means.notes.clone();
            stage.take(session, notes);
        }
        stage
    }

    fn progress(&self) -> MutexGuard<'_, Opening> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn asked(&self) -> Option<&Asked> {
        self.asked.get()
    }

    pub(crate) fn state(&self) -> State {
        let progress = self.progress();
        match (self.asked(), progress.is_opening) {
            (Some(_), _) => State::Open,
            (None, true) => State::Opening,
            (None, false) => State::Choosing(progress.failure.clone()),
        }
    }

    /// The traces that were looked at last, if that is noted.
    pub(crate) fn recent(&self) -> Option<Recent> {
        self.choice.as_ref()?.open.cache.as_deref().map(Recent::in_folder)
    }

    /// What there is to choose from, as long as nobody has chosen.
    pub(crate) fn choosing(&self) -> Result<&Choice, Refusal> {
        match (&self.choice, self.state()) {
            (Some(choice), State::Choosing(_)) => Ok(choice),
            (_, State::Opening) => {
                Err(taken("traces are being opened already; GET /api/v1/start says how far that is"))
            }
            _ => Err(taken("traces are open already; another `kymo view` shows others")),
        }
    }

    /// Traces are open from now on.
    fn take(&self, session: Arc<Session>, notes: Option<PathBuf>) {
        let asked = Asked::from(Shared::new(session, &self.means, notes.map(Notes::new)));
        let progress = self.progress();
        if !progress.is_over {
            asked.shown.start();
            let _ = self.asked.set(asked);
        }
    }

    /// Ends everything that somebody has it do; nothing begins any more.
    pub(crate) fn end(&self) {
        self.progress().is_over = true;
        if let Some(asked) = self.asked() {
            asked.jobs.stop();
            asked.shown.stop();
        }
        self.uploads.end();
    }

    fn open(&self, chosen: &Chosen) -> Result<(), Refusal> {
        let Chosen { paths, stays } = chosen;
        let choice = self.choice.as_ref().expect("only who has a choice opens anything");
        // Where files that were sent lie is nothing that their sender knows.
        let own = paths.first().and_then(|path| path.parent()).filter(|_| !stays);
        let own = own.map(|folder| format!("{}{}", folder.display(), std::path::MAIN_SEPARATOR));
        let session = Session::open(paths, &choice.open).map_err(|failure| {
            let text = failure.render();
            unopened(own.map_or_else(|| text.clone(), |own| text.replace(&own, "")))
        })?;
        let beside = || paths.first().filter(|_| *stays).map(|path| Notes::beside(path));
        let notes = self.means.notes.clone().or_else(beside);
        if let Some(recent) = self.recent().filter(|_| *stays) {
            // Who cannot note it looks at it all the same.
            let _ = recent.note(paths, SystemTime::now());
        }
        self.take(Arc::new(session), notes);
        Ok(())
    }
}

impl Host {
    /// Opens what somebody chose, also when he does not wait for it: only one does at a time.
    pub(crate) async fn open(
        self: &Arc<Self>,
        find: impl FnOnce(&Stage) -> Result<Chosen, Refusal> + Send + 'static,
    ) -> Result<(), Refusal> {
        // Whoever asks at the same time is refused from here on.
        let ended = {
            self.stage.choosing()?;
            let mut progress = self.stage.progress();
            if progress.is_opening || self.stage.asked().is_some() {
                return Err(taken("somebody else has just chosen; GET /api/v1/start says how far that is"));
            }
            progress.is_opening = true;
            Ended(Arc::clone(self))
        };
        let (tell, told) = oneshot::channel();
        // Nobody waits for this thread when the server ends.
        let work = move || {
            let stage = &ended.0.stage;
            let opened = find(stage).and_then(|chosen| stage.open(&chosen));
            stage.progress().failure = opened.as_ref().err().map(Refusal::message);
            drop(ended);
            let _ = tell.send(opened);
        };
        std::thread::Builder::new().name("kymo-opens".to_owned()).spawn(work).map_err(Refusal::fault)?;
        told.await
            .map_err(|_| Refusal::fault("the traces were not opened: that is a mistake in kymo; please report it"))?
    }
}

/// Says that nothing is being opened any more, however that has ended.
struct Ended(Hosted);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.stage.progress().is_opening = false;
    }
}

fn taken(message: &str) -> Refusal {
    Refusal::new(StatusCode::CONFLICT, "open", message)
}

/// What was chosen cannot be opened.
pub(crate) fn unopened(text: impl AsRef<str>) -> Refusal {
    let text = text.as_ref().trim();
    Refusal::new(StatusCode::BAD_REQUEST, "unopened", text.strip_prefix("error: ").unwrap_or(text))
}

/// Whatever is about traces is refused before there are any.
impl FromRequestParts<Hosted> for Asked {
    type Rejection = Refusal;

    async fn from_request_parts(_: &mut Parts, host: &Hosted) -> Result<Self, Refusal> {
        host.stage.asked().cloned().ok_or_else(|| {
            Refusal::new(
                StatusCode::CONFLICT,
                "start",
                "no traces are open yet; /api/v1/start says which can be opened",
            )
        })
    }
}

/// A path as somebody has typed it: `~` is his own folder.
pub(crate) fn typed(text: &str) -> PathBuf {
    let home = || std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    match text.strip_prefix('~') {
        Some("") => home().unwrap_or_else(|| text.into()),
        Some(rest) if rest.starts_with('/') => home().map_or_else(|| text.into(), |home| home.join(&rest[1..])),
        _ => Path::new(text).to_owned(),
    }
}
