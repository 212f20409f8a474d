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
use kymo_session::{Follow, Notes, OpenOptions, Recent, Session, TimelineFailure};
use tokio::sync::oneshot;

use crate::current::Live;
use crate::growing;
use crate::guard::Guard;
use crate::pool::Pool;
use crate::recording::Recording;
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
    /// Traces that are open, and may be recorded right now: they are looked at as long as the server runs.
    Growing(Growing),
}

/// Traces that may grow.
#[derive(Debug)]
pub struct Growing {
    /// As they are open; `None`: there is no event yet.
    pub session: Option<Arc<Session>>,
    /// What was named.
    pub paths: Vec<PathBuf>,
    /// How they are opened.
    pub open: OpenOptions,
}

impl Begin {
    /// Where the traces are, as far as that is known: whoever records them is asked by that.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        match self {
            Self::Growing(growing) => growing.paths.clone(),
            Self::Traces(_) | Self::Choice(_) => Vec::new(),
        }
    }
}

impl From<Growing> for Begin {
    fn from(growing: Growing) -> Self {
        Self::Growing(growing)
    }
}

/// What is to be looked at again and again, as soon as there is somebody to look.
pub(crate) struct Followed {
    /// `None`: they are recorded. Else they may be, if there is more than this.
    session: Option<Arc<Session>>,
    paths: Vec<PathBuf>,
    open: OpenOptions,
}

impl Followed {
    fn new(Growing { session, paths, open }: Growing) -> Self {
        let is_recorded = session.is_none() || Follow::is_recorded(&paths);
        Self { session: session.filter(|_| !is_recorded), paths, open }
    }

    pub(crate) fn begin(self, host: &Hosted) -> std::io::Result<()> {
        match &self.session {
            Some(session) => growing::follow_if_grown(host, session, self.paths, self.open),
            None => growing::follow(host, self.paths, self.open),
        }
    }
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
    pub(crate) recording: Arc<Recording>,
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
    /// Traces are recorded that have no events yet; and why not, if that is known.
    is_waiting: bool,
    why_waiting: Option<String>,
}

/// How far it is, for people.
pub(crate) enum State {
    Choosing(Option<String>),
    Opening,
    /// For the first events; and why there are none, if that is known.
    Waiting(Option<String>),
    Open,
}

/// What somebody chose.
pub(crate) struct Chosen {
    pub(crate) paths: Vec<PathBuf>,
    /// They stay where they are when the server ends, so that notes lie beside them, and they can be opened again.
    pub(crate) stays: bool,
}

impl Stage {
    /// And what is to be followed from now on.
    pub(crate) fn new(begin: Begin, means: Means) -> (Self, Option<Followed>) {
        let (choice, session, followed) = match begin {
            Begin::Traces(session) => (None, Some(session), None),
            Begin::Choice(choice) => (Some(choice), None, None),
            Begin::Growing(growing) => {
                let followed = Followed::new(growing);
                (None, followed.session.clone(), Some(followed))
            }
        };
        let is_waiting = choice.is_none() && session.is_none();
        let bytes_max = choice.as_ref().map_or(0, |choice| choice.upload_bytes_max);
        let uploads = Arc::new(Uploads::new(bytes_max));
        let progress = Mutex::new(Opening { is_waiting, ..Opening::default() });
        let stage = Self { means, asked: OnceLock::new(), choice, uploads, progress };
        if let Some(session) = session {
            let notes = stage.means.notes.clone();
            stage.take(session, notes, None);
        }
        (stage, followed)
    }

    fn progress(&self) -> MutexGuard<'_, Opening> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn asked(&self) -> Option<&Asked> {
        self.asked.get()
    }

    pub(crate) fn state(&self) -> State {
        let progress = self.progress();
        match (self.asked(), progress.is_opening, progress.is_waiting) {
            (Some(_), ..) => State::Open,
            (None, _, true) => State::Waiting(progress.why_waiting.clone()),
            (None, true, _) => State::Opening,
            (None, false, _) => State::Choosing(progress.failure.clone()),
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
            (_, State::Opening | State::Waiting(_)) => {
                Err(taken("traces are being opened already; GET /api/v1/start says how far that is"))
            }
            _ => Err(taken("traces are open already; another `kymo view` shows others")),
        }
    }

    /// Traces are open from now on; how far they are, if they grow.
    fn take(&self, session: Arc<Session>, notes: Option<PathBuf>, live: Option<Live>) {
        let asked = Asked::from(Shared::new(session, &self.means, notes.map(Notes::new), live));
        let progress = self.progress();
        if !progress.is_over {
            let _ = self.asked.set(asked);
        }
    }

    /// There is more of traces that grow: everything before `until`, or all that ever will be.
    pub(crate) fn grown(&self, session: &Arc<Session>, until: Option<i64>) -> Result<(), TimelineFailure> {
        let Some(asked) = self.asked() else {
            let last = until.or_else(|| session.last_ns().map(|last| last.saturating_add(1)));
            let live = last.map(|watermark| Live { is_recording: until.is_some(), ..Live::now(session, watermark) });
            // Before the first event there is nothing to be seen.
            if until.is_none() || session.first_ns().is_some_and(|first| until.is_some_and(|until| first < until)) {
                self.take(Arc::clone(session), self.means.notes.clone(), live);
            }
            return Ok(());
        };
        asked.shown.grow(session, until)?;
        let live = match until {
            Some(until) => Some(Live::now(session, until)),
            None => asked.current.live().map(|live| {
                let end_ns = asked.shown.status().ok().map(|status| status.end_ns.saturating_add(1));
                let watermark_ns = end_ns.unwrap_or(live.watermark_ns);
                Live { is_recording: false, problem: None, watermark_ns, ..live }
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
        if *stays {
            self.means.recording.shows(paths);
        }
        if let Some(recent) = self.recent().filter(|_| *stays) {
            // Who cannot note it looks at it all the same.
            let _ = recent.note(paths, SystemTime::now());
        }
        self.take(Arc::new(session), notes, None);
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
            let opened = find(stage).and_then(|chosen| {
                stage.open(&chosen)?;
                // What was sent stays as it is.
                if let (true, Some(asked), Some(choice)) = (chosen.stays, stage.asked(), &stage.choice) {
                    let growing = Growing {
                        session: Some(asked.current.session()),
                        paths: chosen.paths,
                        open: choice.open.clone(),
                    };
                    Followed::new(growing).begin(&ended.0).map_err(Refusal::fault)?;
                }
                Ok(())
            });
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
