//! Changes during a view: the progress of jobs, of the timeline and of a recording. The server
//! sends them as server-sent events, a whole state at a time; a slow listener misses states in
//! between, and gets the newest.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::Uri;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde_json::json;
use tokio::sync::watch;

use crate::host::Hosted;
use crate::news::News;
use crate::query::RequestParameters;
use crate::recording::ShownRecorder;
use crate::refusal::RequestRefusal;
use crate::shared::{OpenTraces, SharedTraces};

/// How often the server looks for changes.
const TICK: Duration = Duration::from_millis(200);
/// For so many looks the server does not build a timeline for which no request asks tiles: a user
/// that opens traces waits for a page that shows them, which needs the processors as much.
const LOOKS_BEFORE_BUILDING: u32 = 5;
/// How often the server sends something where nothing changes, so that it notices a listener that
/// is gone.
const ALIVE: Duration = Duration::from_secs(15);

/// The current state.
fn news_of(shared: &SharedTraces, recording: &ShownRecorder) -> News {
    let jobs = ("jobs", json!({"jobs": shared.jobs.all()}).to_string());
    let timeline = shared.shown.told(shared.current.live()).ok().map(|told| ("timeline", told.to_string()));
    let recording = recording.news().map(|told| ("recording", told));
    News { states: std::iter::once(jobs).chain(timeline).chain(recording).collect() }
}

/// Looks for changes as long as there are listeners.
pub(crate) async fn watch(host: Hosted) {
    let mut looks = 0;
    loop {
        tokio::time::sleep(TICK).await;
        let Some(shared) = host.stage.asked() else { continue };
        looks += 1;
        if looks == LOOKS_BEFORE_BUILDING {
            shared.shown.start();
        }
        if shared.news.receiver_count() > 0 {
            host.recording.refresh();
            let news = news_of(shared, &host.recording);
            shared.news.send_if_modified(|told| {
                let is_new = *told != news;
                *told = news;
                is_new
            });
        }
    }
}

/// The states that one listener has received.
struct Listener {
    news: watch::Receiver<News>,
    told: News,
    /// States to send before anything new.
    waiting: Vec<(&'static str, String)>,
}

impl Listener {
    /// The next state, once there is one.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            if let Some((name, state)) = self.waiting.pop() {
                return Some((Ok(Event::default().event(name).data(state)), self));
            }
            self.news.changed().await.ok()?;
            let news = self.news.borrow_and_update().clone();
            let is_new = |state: &&(&'static str, String)| !self.told.states.contains(state);
            self.waiting = news.states.iter().filter(is_new).cloned().collect();
            self.told = news;
        }
    }
}

/// Answers with all that changes from now on, first of all with how it is now.
pub(crate) async fn changes(
    State(host): State<Hosted>,
    asked: OpenTraces,
    uri: Uri,
) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    let told = news_of(&asked, &host.recording);
    let listener = Listener { news: asked.news.subscribe(), waiting: told.states.clone(), told };
    let events = stream::unfold(listener, Listener::next);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)).into_response())
}
