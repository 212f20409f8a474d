//! The traces as they are now. Those that grow are opened again and again; a request that has begun
//! to read goes on with its session.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use kymo_session::Session;
use serde_json::{Value, json};

/// The current traces, for all requests.
#[derive(Clone, Debug)]
pub(crate) struct CurrentTraces(Arc<RwLock<CurrentState>>);

#[derive(Clone, Debug)]
struct CurrentState {
    session: Arc<Session>,
    /// `None`: they do not grow.
    live: Option<GrowthStatus>,
}

/// How far traces are that grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GrowthStatus {
    /// More may come.
    pub(crate) is_recording: bool,
    /// Everything before is there.
    pub(crate) watermark_ns: i64,
    /// How old that was when it was said, in milliseconds.
    pub(crate) behind_ms: Option<u64>,
    /// Why nothing new is seen, if that is so.
    pub(crate) problem: Option<String>,
}

impl GrowthStatus {
    /// Recording has come so far now.
    pub(crate) fn now(session: &Session, watermark_ns: i64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let behind = || u64::try_from((now as i128 - i128::from(watermark_ns)) / 1_000_000).ok();
        let behind_ms = if session.times_are_unix() { behind() } else { None };
        Self { is_recording: true, watermark_ns, behind_ms, problem: None }
    }

    /// The state as all pages receive it.
    pub(crate) fn told(&self) -> Value {
        let state = if self.is_recording { "recording" } else { "ended" };
        json!({
            "behind_ms": self.behind_ms.filter(|_| self.is_recording),
            "problem": self.problem,
            "state": state,
            "watermark_ns": self.watermark_ns,
        })
    }
}

impl CurrentTraces {
    pub(crate) fn new(session: Arc<Session>, live: Option<GrowthStatus>) -> Self {
        Self(Arc::new(RwLock::new(CurrentState { session, live })))
    }

    fn now(&self) -> CurrentState {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The traces.
    pub(crate) fn session(&self) -> Arc<Session> {
        self.now().session
    }

    /// How far they are, if they grow.
    pub(crate) fn live(&self) -> Option<GrowthStatus> {
        self.now().live
    }

    /// The last nanosecond before which all events are there, of traces that are recorded right
    /// now: later data may still change.
    pub(crate) fn last_ns(&self) -> Option<i64> {
        let live = self.live().filter(|live| live.is_recording)?;
        Some(live.watermark_ns.saturating_sub(1))
    }

    /// There is more of them now.
    pub(crate) fn set(&self, session: Arc<Session>, live: Option<GrowthStatus>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = CurrentState { session, live };
    }

    /// Sets the state that pages receive of how far they are.
    pub(crate) fn set_live(&self, live: Option<GrowthStatus>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).live = live;
    }
}
