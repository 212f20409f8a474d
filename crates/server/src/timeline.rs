//! The timeline: how far it is, which tracks there are, and what of them is on the screen.
//!
//! Tiles have a tag. Those that are exact stay what they are as long as this server runs; others may be other ones with the next
//! version. Whoever says a tag that is still right is not sent them again.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use kymo_session::{
    BUCKETS_MAX, Quality, Session, TRACKS_MAX, TileQuestion, Timeline, TimelineFailure, TimelineOptions,
};

use crate::pages::matches;
use crate::pool::Viewer;
use crate::query::Query;
use crate::refusal::{Refusal, answer};
use crate::shared::Asked;
use crate::tiles::encode;

/// The widest buckets.
const LEVEL_MAX: u8 = 62;
/// What tiles are called.
const KIND: &str = "application/vnd.kymograph.tiles";

/// The timeline of the traces, or why there is none.
pub(crate) struct Shown {
    timeline: Result<Arc<Timeline>, TimelineFailure>,
    /// Tells tags of this server from those of others, whose tracks have other numbers.
    salt: u64,
}

impl Shown {
    pub(crate) fn new(session: &Arc<Session>, options: &TimelineOptions, salt: u64) -> Self {
        Self { timeline: session.timeline(options), salt }
    }

    /// Begins to build it.
    pub(crate) fn start(&self) {
        if let Ok(timeline) = &self.timeline {
            timeline.start();
        }
    }

    /// Ends building.
    pub(crate) fn stop(&self) {
        if let Ok(timeline) = &self.timeline {
            timeline.stop();
        }
    }

    /// How far it is, as everybody is told; nothing, if there is none.
    pub(crate) fn told(&self) -> Option<String> {
        serde_json::to_string(&self.timeline.as_ref().ok()?.status()).ok()
    }

    fn timeline(&self) -> Result<Arc<Timeline>, Refusal> {
        self.timeline.as_ref().map(Arc::clone).map_err(refusal)
    }

    /// The tag of what will not change any more.
    fn exact_tag(&self) -> String {
        format!("\"{:016x}-exact\"", self.salt)
    }

    fn tag(&self, version: u64) -> String {
        format!("\"{:016x}-{version}\"", self.salt)
    }
}

fn refusal(failure: &TimelineFailure) -> Refusal {
    match failure {
        TimelineFailure::Bounds { name, .. } => Refusal::parameter(name, failure),
        TimelineFailure::NoTimes | TimelineFailure::Incomparable | TimelineFailure::Roles(_) => {
            Refusal::new(StatusCode::CONFLICT, "traces", failure)
        }
        failure => Refusal::fault(failure),
    }
}

/// How far it is.
pub(crate) async fn status(State(asked): State<Asked>, uri: Uri) -> Result<Response, Refusal> {
    Query::new(&uri, &[])?;
    let status = serde_json::to_value(asked.shown.timeline()?.status()).map_err(Refusal::fault)?;
    Ok(answer(&status))
}

/// Which tracks and values there are; both lists only grow.
pub(crate) async fn catalogue(State(asked): State<Asked>, viewer: Viewer, uri: Uri) -> Result<Response, Refusal> {
    let query = Query::new(&uri, &["tracks_from", "values_from"])?;
    let from = |name| Ok::<u32, Refusal>(query.number(name, 0..=u32::MAX)?.unwrap_or(0));
    let (tracks, values) = (from("tracks_from")?, from("values_from")?);
    let timeline = asked.shown.timeline()?;
    let told = asked.pool.ask(&viewer, move |_| serde_json::to_value(timeline.catalogue(tracks, values))).await?;
    Ok(answer(&told.map_err(Refusal::fault)?))
}

/// What of some tracks is in a window, as bytes.
pub(crate) async fn tiles(
    State(asked): State<Asked>,
    viewer: Viewer,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let query = Query::new(&uri, &["level", "first", "count", "tracks"])?;
    let question = TileQuestion {
        level: query.needed("level", 0..=LEVEL_MAX)?,
        first: query.needed("first", 0..=i64::MAX as u64)?,
        count: query.needed("count", 1..=BUCKETS_MAX)?,
        tracks: query.numbers("tracks", &(0..=u32::MAX), TRACKS_MAX)?,
    };
    let timeline = asked.shown.timeline()?;
    // What was known before is asked for with what it is known by: it may be older than the tiles, never newer.
    let version = asked.shown.tag(timeline.status().version);
    let exact = asked.shown.exact_tag();
    let known = headers.get(header::IF_NONE_MATCH);
    let holds = |tag: &&String| known.is_some_and(|known| matches(known, tag));
    if let Some(tag) = [&exact, &version].into_iter().find(holds) {
        return Ok(tagged(StatusCode::NOT_MODIFIED, tag, Vec::new()));
    }
    let asks = move |progress: &kymo_session::Progress| {
        let tiles = timeline.tiles(&question, progress)?;
        let is_exact = tiles.spans.iter().all(|span| span.quality == Quality::Exact);
        Ok::<_, TimelineFailure>((encode(&tiles), is_exact))
    };
    let (bytes, is_exact) = asked.pool.ask(&viewer, asks).await?.map_err(|failure| refusal(&failure))?;
    Ok(tagged(StatusCode::OK, if is_exact { &exact } else { &version }, bytes))
}

fn tagged(status: StatusCode, tag: &str, bytes: Vec<u8>) -> Response {
    let mut response = (status, bytes).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(KIND));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::ETAG, HeaderValue::from_str(tag).expect("it is digits and letters"));
    response
}
