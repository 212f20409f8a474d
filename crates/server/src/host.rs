//! The state that all requests share: the access checks, the threads that work for them, the
//! recorder of the traces, and the served traces.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use tokio::sync::oneshot;

use crate::begin::{Begin, Growing};
use crate::growing::Followed;
use crate::guard::Guard;
use crate::pool::Pool;
use crate::recording::Recording;
use crate::refusal::Refusal;
use crate::shared::{Asked, Means};
use crate::stage::{Chosen, Stage};

/// The state that all requests share, no matter which traces the server shows.
pub(crate) struct Host {
    pub(crate) guard: Arc<Guard>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) recording: Arc<Recording>,
    pub(crate) stage: Arc<Stage>,
}

/// As every request has it.
pub(crate) type Hosted = Arc<Host>;

impl Host {
    /// Serves the traces or the choice that the server begins with, and follows traces from now on
    /// if they may grow.
    pub(crate) fn new(guard: Guard, begin: Begin, means: Means) -> std::io::Result<Self> {
        let (choice, session, followed) = match begin {
            Begin::Traces(session) => (None, Some(session), None),
            Begin::Choice(choice) => (Some(choice), None, None),
            Begin::Growing(growing) => {
                let followed = Followed::new(growing);
                (None, followed.session().cloned(), Some(followed))
            }
        };
        let (pool, recording) = (Arc::clone(&means.pool), Arc::clone(&means.recording));
        let stage = Arc::new(Stage::new(session, choice, means));
        if let Some(followed) = followed {
            followed.begin(&stage)?;
        }
        Ok(Self { guard: Arc::new(guard), pool, recording, stage })
    }

    /// Opens the chosen traces, even if the client does not wait for it: only one request does so
    /// at a time.
    pub(crate) async fn open(
        &self,
        find: impl FnOnce(&Stage) -> Result<Chosen, Refusal> + Send + 'static,
    ) -> Result<(), Refusal> {
        // Other requests to open are refused from here on.
        let opens = self.stage.begin_opening()?;
        let (tell, told) = oneshot::channel();
        // The server does not wait for this thread when it ends.
        let work = move || {
            let stage = opens.stage();
            let opened = find(stage).and_then(|chosen| {
                stage.open(&chosen)?;
                // Uploaded files do not change.
                if let (true, Some(asked), Some(choice)) = (chosen.stays, stage.asked(), &stage.choice) {
                    let growing = Growing {
                        session: Some(asked.current.session()),
                        paths: chosen.paths,
                        open: choice.open.clone(),
                    };
                    Followed::new(growing).begin(stage).map_err(Refusal::fault)?;
                }
                Ok(())
            });
            stage.tell_failure(opened.as_ref().err().map(Refusal::message));
            drop(opens);
            let _ = tell.send(opened);
        };
        std::thread::Builder::new().name("kymo-opens".to_owned()).spawn(work).map_err(Refusal::fault)?;
        told.await
            .map_err(|_| Refusal::fault("the traces were not opened: that is a mistake in kymo; please report it"))?
    }
}

/// Requests about traces are refused before there are any.
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
