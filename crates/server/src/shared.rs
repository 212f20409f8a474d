//! The state that all requests about traces share.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use kymo_session::{Info, OwnTracks, Session, TimelineOptions, TraceNotes};
use tokio::sync::watch;

use crate::current::{CurrentTraces, GrowthStatus};
use crate::jobs::Jobs;
use crate::news::News;
use crate::pool::{Viewer, WorkerPool};
use crate::readers::ReaderPlaces;
use crate::recording::ShownRecorder;
use crate::refusal::RequestRefusal;
use crate::shown::Shown;

/// The traces, and the threads that ask them.
pub(crate) struct SharedTraces {
    pub(crate) current: CurrentTraces,
    pub(crate) pool: Arc<WorkerPool>,
    pub(crate) jobs: Jobs,
    pub(crate) shown: Shown,
    pub(crate) readers: ReaderPlaces,
    /// Notes on the traces, if there is a file for them.
    pub(crate) notes: Option<TraceNotes>,
    /// The states that listeners receive.
    pub(crate) news: watch::Sender<News>,
    /// The contents of the traces, once a request has asked, as they were then.
    info: Mutex<Option<(Arc<Session>, Arc<Info>)>>,
}

/// The means to respond, no matter which traces are open.
pub(crate) struct Means {
    pub(crate) pool: Arc<WorkerPool>,
    pub(crate) roles: Option<PathBuf>,
    /// The declarations of own analyses.
    pub(crate) own: Vec<OwnTracks>,
    /// The file of notes, if the user named one.
    pub(crate) notes: Option<PathBuf>,
    /// The recorder of the traces.
    pub(crate) recording: Arc<ShownRecorder>,
    /// Bytes for everything.
    pub(crate) memory: u64,
    /// A number that differs from that of any other server.
    pub(crate) salt: u64,
}

/// The traces as every request that is about them has them; such a request is refused before traces are open.
#[derive(Clone)]
pub(crate) struct OpenTraces(Arc<SharedTraces>);

impl From<SharedTraces> for OpenTraces {
    fn from(shared: SharedTraces) -> Self {
        Self(Arc::new(shared))
    }
}

impl Deref for OpenTraces {
    type Target = Arc<SharedTraces>;

    fn deref(&self) -> &Arc<SharedTraces> {
        &self.0
    }
}

impl SharedTraces {
    /// `live`: how far the traces are, if they grow.
    pub(crate) fn new(
        session: Arc<Session>,
        means: &Means,
        notes: Option<TraceNotes>,
        live: Option<GrowthStatus>,
    ) -> Self {
        let Means { pool, roles, own, memory, salt, .. } = means;
        let cache_bytes = Some(usize::try_from(memory / 16 * 3).unwrap_or(usize::MAX));
        let options = TimelineOptions { roles: roles.clone(), own: own.clone(), cache_bytes };
        let until = live.as_ref().filter(|live| live.is_recording).map(|live| live.watermark_ns);
        let shown = Shown::new(&session, options, until, *salt);
        let current = CurrentTraces::new(session, live);
        Self {
            jobs: Jobs::new(current.clone(), roles.clone(), memory / 4),
            current,
            pool: Arc::clone(pool),
            shown,
            readers: ReaderPlaces::default(),
            notes,
            news: watch::Sender::default(),
            info: Mutex::default(),
        }
    }

    /// The contents of the traces, without reading all of them.
    pub(crate) async fn info(self: &Arc<Self>, viewer: &Viewer) -> Result<Arc<Info>, RequestRefusal> {
        let asked = Arc::clone(self);
        let tell = move |_: &kymo_session::Progress| {
            let session = asked.current.session();
            // Requests that ask meanwhile wait for it.
            let mut held = asked.info.lock().unwrap_or_else(PoisonError::into_inner);
            match &*held {
                Some((of, info)) if Arc::ptr_eq(of, &session) => Arc::clone(info),
                _ => {
                    let info = Arc::new(session.info());
                    *held = Some((session, Arc::clone(&info)));
                    info
                }
            }
        };
        self.pool.ask(viewer, tell).await
    }
}

/// The header by which a page identifies itself, on all of its connections.
const VIEWER: HeaderName = HeaderName::from_static("kymo-viewer");
/// Characters of such a name.
const NAME_MAX: usize = 64;

impl<S: Sync> FromRequestParts<S> for Viewer {
    type Rejection = RequestRefusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RequestRefusal> {
        if let Some(name) = named(&parts.headers)? {
            return Ok(name);
        }
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or(Self::Connection(0)))
    }
}

fn named(headers: &HeaderMap) -> Result<Option<Viewer>, RequestRefusal> {
    let Some(name) = headers.get(VIEWER) else { return Ok(None) };
    let is_name = |name: &&str| (1..=NAME_MAX).contains(&name.len());
    match name.to_str().ok().filter(is_name) {
        Some(name) => Ok(Some(Viewer::Named(name.to_owned()))),
        None => Err(RequestRefusal::parameter(
            "Kymo-Viewer",
            format!("the name of a viewer has 1 to {NAME_MAX} characters"),
        )),
    }
}
