//! The responses to a page's first requests, sent within the page, so that it can ask for tiles as
//! soon as it runs:
//!
//! ```text
//! <script type="application/json" id="told">{"timeline": "{...}", "traces": "{...}", ...}</script>
//! ```
//!
//! Paths of the API, each with its response, as text. Only a request with the token gets them.

use axum::http::Uri;
use kymo_session::json;
use serde_json::{Map, Value, json};

use crate::host::Host;
use crate::pool::Viewer;
use crate::refusal::RequestRefusal;
use crate::shared::OpenTraces;
use crate::start;

/// Entries of a catalogue that is sent with the page: with more, the page begins to read them
/// before all of them are there.
const ENTRIES_MAX: u32 = 4096;

/// The element for a request for the page with this URL; `None`: the page gets no such data.
pub(crate) async fn element(host: &Host, viewer: &Viewer, uri: &Uri) -> Option<String> {
    if !host.guard.is_known(uri) {
        return None;
    }
    // The page asks later for data that is unavailable now, and is refused then.
    let told = answers(host, viewer).await.ok()?;
    // Nothing in there ends the element: outside of texts, JSON has no such character.
    let text = Value::Object(told).to_string().replace('<', "\\u003c");
    Some(format!("<script type=\"application/json\" id=\"told\">{text}</script>"))
}

async fn answers(host: &Host, viewer: &Viewer) -> Result<Map<String, Value>, RequestRefusal> {
    let mut told = Map::new();
    let mut tell = |path: &str, answer: String| told.insert(path.to_owned(), Value::String(answer));
    tell("start", start::told(host, viewer).await?.to_string());
    let Some(asked) = host.stage.asked() else { return Ok(told) };
    tell("timeline", asked.shown.told(asked.current.live())?.to_string());
    tell("traces", traces(asked, viewer).await?.to_string());
    let timeline = asked.shown.timeline()?;
    let status = timeline.status();
    if status.tracks.saturating_add(status.values) <= ENTRIES_MAX {
        let catalogue = move || serde_json::to_string(&timeline.catalogue(0, 0)).map_err(RequestRefusal::fault);
        tell("catalogue?tracks_from=0&values_from=0", host.pool.ask(viewer, move |_| catalogue()).await??);
    }
    Ok(told)
}

/// The description of each trace by itself.
pub(crate) async fn traces(asked: &OpenTraces, viewer: &Viewer) -> Result<Value, RequestRefusal> {
    let shared = asked.clone();
    // A page asks this first of all: packets that say their times are not looked into for it.
    let traces = asked.pool.ask(viewer, move |_| shared.current.session().trace_infos()).await?;
    Ok(json!({"traces": json::traces(&traces)}))
}
