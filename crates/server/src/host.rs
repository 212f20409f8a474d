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
use crate::pool::WorkerPool;
use crate::recording::ShownRecorder;
use crate::refusal::RequestRefusal;
use crate::shared::{Means, OpenTraces};
use crate::stage::{ChosenTraces, ServerStage};

/// The state that all requests share, no matter which traces the server shows.
pub(crate) struct Host {
    pub(crate) guard: Arc<Guard>,
    pub(crate) pool: Arc<WorkerPool>,
    pub(crate) recording: Arc<ShownRecorder>,
    pub(crate) stage: Arc<ServerStage>,
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
        let stage = Arc::new(ServerStage::new(session, choice, means));
        if let Some(followed) = followed {
            followed.begin(&stage)?;
        }
        Ok(Self { guard: Arc::new(guard), pool, recording, stage })
    }

    /// Opens the chosen traces, even if the client does not wait for it: only one request does so
    /// at a time.
    pub(crate) async fn open(
        &self,
        find: impl FnOnce(&ServerStage) -> Result<ChosenTraces, RequestRefusal> + Send + 'static,
    ) -> Result<(), RequestRefusal> {
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
                    Followed::new(growing).begin(stage).map_err(RequestRefusal::fault)?;
                }
                Ok(())
            });
            stage.tell_failure(opened.as_ref().err().map(RequestRefusal::message));
            drop(opens);
            let _ = tell.send(opened);
        };
        std::thread::Builder::new().name("kymo-opens".to_owned()).spawn(work).map_err(RequestRefusal::fault)?;
        told.await.map_err(|_| {
            RequestRefusal::fault("the traces were not opened: that is a mistake in kymo; please report it")
        })?
    }
}

/// Requests about traces are refused before there are any.
impl FromRequestParts<Hosted> for OpenTraces {
    type Rejection = RequestRefusal;

    async fn from_request_parts(_: &mut Parts, host: &Hosted) -> Result<Self, RequestRefusal> {
        host.stage.asked().cloned().ok_or_else(|| {
            RequestRefusal::new(
                StatusCode::CONFLICT,
                "start",
                "no traces are open yet; /api/v1/start says which can be opened",
            )
        })
    }
}
