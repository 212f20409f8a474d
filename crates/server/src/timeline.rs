//! The timeline: how far it is, its tracks, and their content on the screen.
//!
//! Tiles have an ETag. Those that are exact stay the same as long as this server runs; others may
//! change with the next version. A client with a tag that is still right is not sent them again.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use kymo_session::{
    BUCKETS_MAX, ITEMS_MAX, ItemQuestion, Progress, Quality, TRACKS_MAX, TileQuestion, Timeline, TimelineFailure,
};

use crate::held;
use crate::pool::Viewer;
use crate::query::RequestParameters;
use crate::refusal::{RequestRefusal, answer};
use crate::selection::PATTERNS_MAX;
use crate::shared::OpenTraces;
use crate::shown::{ShownEvents, refusal};
use crate::tags;
use crate::tiles::encode;

/// The widest buckets.
const LEVEL_MAX: u8 = 62;
/// Items of a response, if the request does not limit them.
const ITEMS: u32 = 100;
/// Bytes of memory that an item takes, about, and an entry of the catalogue: as they are and as they are sent.
const ITEM_BYTES: u64 = 4096;
const ENTRY_BYTES: u64 = 1024;
/// The media type of objects.
const JSON: &str = "application/json";
/// The media type of tiles.
const KIND: &str = "application/vnd.kymograph.tiles";

/// How far it is.
pub(crate) async fn status(asked: OpenTraces, uri: Uri) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    Ok(answer(&asked.shown.told(asked.current.live())?))
}

/// The known problems of the traces so far, and when events were lost.
pub(crate) async fn findings(asked: OpenTraces, viewer: Viewer, uri: Uri) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    let timeline = asked.shown.timeline()?;
    Ok(answer(&asked.pool.ask(&viewer, move |_| timeline.told_findings()).await?))
}

/// The tracks and values; both lists only grow.
pub(crate) async fn catalogue(asked: OpenTraces, viewer: Viewer, uri: Uri) -> Result<Response, RequestRefusal> {
    let query = RequestParameters::new(&uri, &["tracks_from", "values_from"])?;
    let from = |name| Ok::<u32, RequestRefusal>(query.number(name, 0..=u32::MAX)?.unwrap_or(0));
    let (tracks, values) = (from("tracks_from")?, from("values_from")?);
    let timeline = asked.shown.timeline()?;
    let status = timeline.status();
    let entries = status.tracks.saturating_sub(tracks) + status.values.saturating_sub(values);
    let told = move |_: &Progress| serde_json::to_vec(&timeline.catalogue(tracks, values));
    let bytes = u64::from(entries) * ENTRY_BYTES;
    let (told, held) = asked.pool.ask_heavy(&viewer, bytes, Arc::default(), told).await?;
    Ok(held::answer(JSON, told.map_err(RequestRefusal::fault)?, held))
}

/// So long after the first tiles the timeline is not built yet: they are being drawn.
const DRAWING: Duration = Duration::from_millis(50);

/// The content of some tracks in a window, as bytes; of all events or of some.
pub(crate) async fn tiles(
    asked: OpenTraces,
    viewer: Viewer,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, RequestRefusal> {
    let query = RequestParameters::new(&uri, &["level", "first", "count", "tracks", "filter", "event"])?;
    let question = TileQuestion {
        level: query.needed("level", 0..=LEVEL_MAX)?,
        first: query.needed("first", 0..=i64::MAX as u64)?,
        count: query.needed("count", 1..=BUCKETS_MAX)?,
        tracks: query.numbers("tracks", &(0..=u32::MAX), TRACKS_MAX)?,
    };
    let chosen = chosen(&query)?;
    let timeline = timeline_of(&asked, &viewer, &chosen, &question.tracks).await?;
    // The tag is made before the tiles are read: its version may be older than the tiles, never
    // newer.
    let version = asked.shown.tag(&chosen, asked.shown.status()?.version);
    let exact = asked.shown.exact_tag(&chosen);
    let known = headers.get(header::IF_NONE_MATCH);
    let holds = |tag: &&String| known.is_some_and(|known| tags::matches(known, tag));
    if let Some(tag) = [&exact, &version].into_iter().find(holds) {
        return Ok(tagged(StatusCode::NOT_MODIFIED.into_response(), tag));
    }
    let needed = timeline.tiles_bytes(&question);
    let asks = move |progress: &Progress| {
        let tiles = timeline.tiles(&question, progress)?;
        let is_exact = tiles.spans.iter().all(|span| span.quality == Quality::Exact);
        Ok::<_, TimelineFailure>((encode(&tiles), is_exact))
    };
    let (found, held) = asked.pool.ask_heavy(&viewer, needed, Arc::default(), asks).await?;
    let (bytes, is_exact) = found.map_err(|failure| refusal(&failure))?;
    if asked.shown.is_waiting() {
        tokio::spawn(async move {
            tokio::time::sleep(DRAWING).await;
            asked.shown.start();
        });
    }
    Ok(tagged(held::answer(KIND, bytes, held), if is_exact { &exact } else { &version }))
}

/// Which events are looked at.
fn chosen(query: &RequestParameters) -> Result<ShownEvents, RequestRefusal> {
    let events: Vec<String> = query.all("event").map(str::to_owned).collect();
    if events.len() > PATTERNS_MAX {
        let message = format!("`event` has {} names; {PATTERNS_MAX} are the most", events.len());
        return Err(RequestRefusal::parameter("event", message));
    }
    Ok(ShownEvents { events, filter: query.text("filter")?.map(str::to_owned) })
}

/// The timeline of these events; for some events it answers as [`Timeline::selected`] says.
async fn timeline_of(
    asked: &OpenTraces,
    viewer: &Viewer,
    chosen: &ShownEvents,
    tracks: &[u32],
) -> Result<Arc<Timeline>, RequestRefusal> {
    if chosen.is_all() {
        return asked.shown.timeline();
    }
    if let Some(track) = asked.shown.timeline()?.first_told_by_all(tracks) {
        let message = format!(
            "with `filter` or `event` tracks of events, heat and arrows can be asked for; track {track} is another one"
        );
        return Err(RequestRefusal::parameter("tracks", message));
    }
    let (shared, chosen) = (asked.clone(), chosen.clone());
    asked.pool.ask(viewer, move |_| shared.shown.selected(&shared.current.session(), &chosen)).await?
}

/// The items of a track at a time, or from one to another, with all that is known of them.
pub(crate) async fn items(asked: OpenTraces, viewer: Viewer, uri: Uri) -> Result<Response, RequestRefusal> {
    let question = item_question(&RequestParameters::new(&uri, &["track", "at", "begin", "end", "limit"])?)?;
    let timeline = asked.shown.timeline()?;
    let needed = timeline.items_bytes() + u64::from(question.limit) * ITEM_BYTES;
    let asks = move |progress: &Progress| timeline.items(&question, progress).map(|found| serde_json::to_vec(&found));
    let (found, held) = asked.pool.ask_heavy(&viewer, needed, Arc::default(), asks).await?;
    let found = found.map_err(|failure| refusal(&failure))?;
    Ok(held::answer(JSON, found.map_err(RequestRefusal::fault)?, held))
}

fn item_question(query: &RequestParameters) -> Result<ItemQuestion, RequestRefusal> {
    let any = || i64::MIN..=i64::MAX;
    let (at, begin, end) = (query.number("at", any())?, query.number("begin", any())?, query.number("end", any())?);
    let (begin_ns, end_ns) = match (at, begin, end) {
        (Some(at), None, None) => (at, at),
        (None, Some(begin), Some(end)) if begin < end => (begin, end),
        (None, Some(_), Some(_)) => return Err(RequestRefusal::parameter("end", "`end` is not behind `begin`")),
        (Some(_), ..) => return Err(RequestRefusal::parameter("at", "`at` stands without `begin` and `end`")),
        (None, begin, _) => {
            let missing = if begin.is_none() { "begin" } else { "end" };
            return Err(RequestRefusal::parameter(
                missing,
                format!("`{missing}` is missing; or `at` alone is asked for"),
            ));
        }
    };
    Ok(ItemQuestion {
        track: query.needed("track", 0..=u32::MAX)?,
        begin_ns,
        end_ns,
        limit: query.number("limit", 1..=ITEMS_MAX)?.unwrap_or(ITEMS),
    })
}

fn tagged(mut response: Response, tag: &str) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(KIND));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::ETAG, HeaderValue::from_str(tag).expect("it is digits and letters"));
    response
}
