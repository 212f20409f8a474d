//! Events as rows: an Arrow IPC stream that is read no faster than it is taken.
//!
//! ```text
//! question ──> table ──> one partition ──batch──> bytes ──> taken? ──> next batch ...
//! ```
//!
//! `from` and `before` ask for a page at a place: a few rows that are answered as a whole, with the places on both sides of them.
//!
//! Between two pieces no thread is kept; a slow client keeps no more than one batch and the buffers
//! of the streams. A limited number of requests read at a time; others wait for a while.

use std::ops::RangeInclusive;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use kymo_session::arrow::error::ArrowError;
use kymo_session::arrow::ipc::writer::StreamWriter;
use kymo_session::{
    EventPage, EventPages, EventPartition, EventsFailure, EventsOfThreads, EventsQuestion, NotAPlace, PAGE_ROWS_MAX,
    PageOf, Progress, RowPlace, Session, Timeline,
};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use crate::held;
use crate::pool::{HeldMemory, Viewer};
use crate::query::RequestParameters;
use crate::refusal::{RequestRefusal, answer};
use crate::selection::{PATTERNS_MAX, selection};
use crate::shared::OpenTraces;

/// Rows of a response, if the request does not limit them.
const LIMIT: u64 = 1000;
/// Rows of a batch.
const BATCH_ROWS: usize = 8192;
/// Columns of one request.
const COLUMNS_MAX: usize = 1024;
/// Bytes of memory of a request that reads events, about; and of a row of a page, as it is and as
/// it is sent.
const READ_BYTES: u64 = 1 << 20;
const ROW_BYTES: u64 = 1024;
/// Bytes of packets that are read to count events; of more, some are.
const COUNT_BYTES: u64 = 64 << 20;
/// Headers of a page: the places before and behind its rows, and whether there are no more in its direction.
const BEFORE: HeaderName = HeaderName::from_static("kymo-before");
const AFTER: HeaderName = HeaderName::from_static("kymo-after");
const END: HeaderName = HeaderName::from_static("kymo-end");
/// Header of a page: the number of files of which rows are missing.
const MISSING: HeaderName = HeaderName::from_static("kymo-missing");
/// Header of a page: `false` while rows of the wanted threads may be missing, because the timeline is still being read.
const COMPLETE: HeaderName = HeaderName::from_static("kymo-complete");
/// Ranges of threads of a question.
const THREADS_MAX: usize = 1024;
/// The media type of an Arrow IPC stream.
const KIND: &str = "application/vnd.apache.arrow.stream";

/// A question about events.
struct RowsQuestion {
    begin_ns: Option<i64>,
    end_ns: Option<i64>,
    events: Vec<String>,
    filter: Option<String>,
    columns: Option<Vec<String>>,
    limit: u64,
    page: Option<PageOf>,
    /// Only events of these threads: those that their CPUs ran.
    threads: Vec<RangeInclusive<i32>>,
}

/// A place between rows.
fn place(query: &RequestParameters, name: &str) -> Result<Option<RowPlace>, RequestRefusal> {
    let wrong = |error: NotAPlace| RequestRefusal::parameter(name, format!("`{name}` is no place: {error}"));
    query.text(name)?.map(|text| text.parse().map_err(wrong)).transpose()
}

fn page(query: &RequestParameters, limit: u64) -> Result<Option<PageOf>, RequestRefusal> {
    let page = match (place(query, "from")?, place(query, "before")?) {
        (None, None) => return Ok(None),
        (Some(place), None) => PageOf::From(place),
        (None, Some(place)) => PageOf::Before(place),
        (Some(_), Some(_)) => return Err(RequestRefusal::parameter("before", "`before` stands without `from`")),
    };
    match limit <= PAGE_ROWS_MAX {
        true => Ok(Some(page)),
        false => Err(RequestRefusal::parameter("limit", format!("a page has {PAGE_ROWS_MAX} rows at most"))),
    }
}

impl RowsQuestion {
    /// Events up to a time, or fewer if the request ends before: in traces that are recorded right
    /// now, others may come before those that are there behind it.
    fn up_to(self, last_ns: Option<i64>) -> Self {
        Self { end_ns: last_ns.into_iter().chain(self.end_ns).min(), ..self }
    }

    fn new(query: &RequestParameters) -> Result<Self, RequestRefusal> {
        let any = i64::MIN..=i64::MAX;
        let (begin_ns, end_ns) = (query.number("begin", any.clone())?, query.number("end", any)?);
        if begin_ns.zip(end_ns).is_some_and(|(begin, end)| begin > end) {
            return Err(RequestRefusal::parameter("end", "`end` is before `begin`"));
        }
        let events: Vec<String> = query.all("event").map(str::to_owned).collect();
        let columns: Option<Vec<String>> =
            query.text("columns")?.map(|text| text.split(',').map(str::to_owned).collect());
        for (name, count, most) in
            [("event", events.len(), PATTERNS_MAX), ("columns", columns.as_ref().map_or(0, Vec::len), COLUMNS_MAX)]
        {
            if count > most {
                return Err(RequestRefusal::parameter(
                    name,
                    format!("`{name}` has {count} names; {most} are the most"),
                ));
            }
        }
        let filter = query.text("filter")?.map(str::to_owned);
        let limit = query.number("limit", 1..=i64::MAX as u64)?.unwrap_or(LIMIT);
        let page = page(query, limit)?;
        let threads = query.ranges("threads", &(0..=i32::MAX), THREADS_MAX)?;
        Ok(Self { begin_ns, end_ns, events, filter, columns, limit, page, threads })
    }

    /// As the session is asked.
    fn asked(self, session: &Session) -> Result<EventsQuestion, RequestRefusal> {
        Ok(EventsQuestion {
            selection: selection(session, self.events, self.filter.as_deref())?,
            begin_ns: self.begin_ns,
            end_ns: self.end_ns,
            columns: self.columns,
            keep_bytes: false,
            batch_rows: BATCH_ROWS.min(usize::try_from(self.limit).unwrap_or(usize::MAX)),
        })
    }

    /// Begins to read.
    fn begin(self, session: &Arc<Session>) -> Result<ResponseRows, RequestRefusal> {
        let limit = self.limit;
        let question = self.asked(session)?;
        let table = session.events(&question).map_err(|failure| refusal(&failure))?;
        let writer = StreamWriter::try_new(Vec::new(), table.schema_to_show()).map_err(RequestRefusal::fault)?;
        // This request reads one part, as a whole and in order; a stream would read far ahead.
        let partition = table.partitions(1).pop().ok_or_else(|| RequestRefusal::fault("events have no part"))?;
        Ok(ResponseRows { partition, writer, left: limit, is_over: false })
    }

    /// The timeline that knows when threads ran, if that matters.
    fn timeline(&self, asked: &OpenTraces) -> Result<Option<Arc<Timeline>>, RequestRefusal> {
        (!self.threads.is_empty()).then(|| asked.shown.timeline()).transpose()
    }

    /// The events to be read in pages, with columns that are chosen or with these.
    fn pages(
        mut self,
        session: &Arc<Session>,
        timeline: Option<&Arc<Timeline>>,
        columns: Option<Vec<String>>,
    ) -> Result<EventPages, RequestRefusal> {
        let threads = std::mem::take(&mut self.threads);
        let question = self.asked(session)?;
        let question = EventsQuestion { columns: columns.or(question.columns.clone()), ..question };
        let pages = session.event_pages(&question).map_err(|failure| refusal(&failure))?;
        Ok(match timeline {
            Some(timeline) => pages.of_threads(EventsOfThreads::new(timeline, threads)),
            None => pages,
        })
    }

    /// A page as a whole: its places and its bytes.
    fn read_page(
        self,
        (session, timeline): (&Arc<Session>, Option<&Arc<Timeline>>),
        of: PageOf,
        progress: &Arc<Progress>,
    ) -> Result<(EventPage, Vec<u8>), RequestRefusal> {
        let limit = self.limit;
        let pages = self.pages(session, timeline, None)?;
        let page = pages.page(of, limit, progress).map_err(|failure| refusal(&failure))?;
        let mut writer = StreamWriter::try_new(Vec::new(), pages.schema_to_show()).map_err(RequestRefusal::fault)?;
        page.batches.iter().try_for_each(|batch| writer.write(batch)).map_err(RequestRefusal::fault)?;
        writer.finish().map_err(RequestRefusal::fault)?;
        Ok((page, writer.into_inner().map_err(RequestRefusal::fault)?))
    }
}

fn refusal(failure: &EventsFailure) -> RequestRefusal {
    match failure {
        EventsFailure::NoSuchEvent(_) => RequestRefusal::parameter("event", failure),
        EventsFailure::NoSuchColumn { name, near } => {
            let message = format!("no selected event has a column `{name}`");
            RequestRefusal::parameter("columns", message).with("near", json!(near))
        }
        EventsFailure::NoTimes => RequestRefusal::new(StatusCode::CONFLICT, "traces", failure),
        failure => RequestRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, "fault", failure),
    }
}

/// The remaining rows of a response.
struct ResponseRows {
    partition: EventPartition,
    writer: StreamWriter<Vec<u8>>,
    left: u64,
    is_over: bool,
}

impl ResponseRows {
    /// The next piece; nothing, if there are none any more.
    fn next(&mut self) -> Result<Option<Bytes>, EventsFailure> {
        if self.is_over {
            return Ok(None);
        }
        let batch = if self.left > 0 { self.partition.next().transpose()? } else { None };
        match batch {
            Some(batch) => {
                let rows = batch.num_rows().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.writer.write(&batch.slice(0, rows))?;
                self.left -= rows as u64;
            }
            None => self.end()?,
        }
        if self.left == 0 && !self.is_over {
            self.end()?;
        }
        Ok(Some(std::mem::take(self.writer.get_mut()).into()))
    }

    fn end(&mut self) -> Result<(), ArrowError> {
        self.is_over = true;
        self.writer.finish()
    }
}

/// The state of a response between two pieces.
struct ResponseState {
    asked: OpenTraces,
    viewer: Viewer,
    rows: ResponseRows,
    _place: OwnedSemaphorePermit,
    held: HeldMemory,
}

impl ResponseState {
    /// The next piece. An error from here on ends the connection, so that the client does not take
    /// a part for the whole.
    async fn next(self) -> Option<(Result<Bytes, std::io::Error>, Self)> {
        let Self { asked, viewer, mut rows, _place, held } = self;
        let progress = Arc::clone(rows.partition.progress());
        let work = move |_: &kymo_session::Progress| (rows.next(), rows);
        let (next, rows) = asked.pool.ask_more(&viewer, progress, work).await.ok()?;
        let bytes = next.map_err(std::io::Error::other).transpose()?;
        Some((bytes, Self { asked, viewer, rows, _place, held }))
    }
}

/// Answers with events.
pub(crate) async fn events(asked: OpenTraces, viewer: Viewer, uri: Uri) -> Result<Response, RequestRefusal> {
    let known = ["begin", "end", "filter", "event", "columns", "limit", "from", "before", "threads"];
    let question = RowsQuestion::new(&RequestParameters::new(&uri, &known)?)?.up_to(asked.current.last_ns());
    if question.page.is_none() && !question.threads.is_empty() {
        return Err(RequestRefusal::parameter("threads", "`threads` stands with `from` or `before`"));
    }
    let place = asked.readers.enter().await?;
    if let Some(of) = question.page {
        return answer_page(&asked, &viewer, question, of).await;
    }
    let session = asked.current.session();
    // The first piece decides whether there is an answer.
    let begins = move |_: &Progress| {
        let mut rows = question.begin(&session)?;
        let first = rows.next().map_err(|failure| refusal(&failure))?;
        Ok::<_, RequestRefusal>((first.unwrap_or_default(), rows))
    };
    let (begun, held) = asked.pool.ask_heavy(&viewer, READ_BYTES, Arc::default(), begins).await?;
    let (first, rows) = begun?;
    let reading = ResponseState { asked, viewer, rows, _place: place, held };
    let body = stream::unfold((Some(first), Some(reading)), |(first, reading)| async {
        if let Some(first) = first {
            return Some((Ok(first), (None, reading)));
        }
        let (next, reading) = reading?.next().await?;
        let reading = next.is_ok().then_some(reading);
        Some((next, (None, reading)))
    });
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static(KIND))], Body::from_stream(body)).into_response())
}

/// The traces as a timeline knows them, if there is one: of traces that grow, its numbers of streams may not be those of the
/// latest session.
fn session_of(asked: &OpenTraces, timeline: Option<&Arc<Timeline>>) -> Arc<Session> {
    timeline.map_or_else(|| asked.current.session(), |timeline| Arc::clone(timeline.session()))
}

/// Answers with a page.
async fn answer_page(
    asked: &OpenTraces,
    viewer: &Viewer,
    question: RowsQuestion,
    of: PageOf,
) -> Result<Response, RequestRefusal> {
    let progress = Arc::<Progress>::default();
    let own = Arc::clone(&progress);
    let timeline = question.timeline(asked)?;
    let session = session_of(asked, timeline.as_ref());
    let needed =
        timeline.as_ref().map_or(0, |timeline| timeline.items_bytes()) + READ_BYTES + question.limit * ROW_BYTES;
    let read = move |_: &Progress| question.read_page((&session, timeline.as_ref()), of, &own);
    let (read, memory) = asked.pool.ask_heavy(viewer, needed, progress, read).await?;
    let (page, bytes) = read?;
    let mut response = held::answer(KIND, bytes, memory);
    let places = [(BEFORE, page.before.to_string()), (AFTER, page.after.to_string())];
    let facts = [
        (END, page.is_end.to_string()),
        (MISSING, page.missing.len().to_string()),
        (COMPLETE, page.is_complete.to_string()),
    ];
    let said = places.into_iter().chain(facts);
    for (name, value) in said {
        response.headers_mut().insert(name, HeaderValue::from_str(&value).map_err(RequestRefusal::fault)?);
    }
    Ok(response)
}

/// How many events there are: counted, or guessed where that would take long.
pub(crate) async fn count(asked: OpenTraces, viewer: Viewer, uri: Uri) -> Result<Response, RequestRefusal> {
    let question = RowsQuestion::new(&RequestParameters::new(&uri, &["begin", "end", "filter", "event", "threads"])?)?;
    let question = question.up_to(asked.current.last_ns());
    let _place = asked.readers.enter().await?;
    let progress = Arc::<Progress>::default();
    let own = Arc::clone(&progress);
    let timeline = question.timeline(&asked)?;
    let session = session_of(&asked, timeline.as_ref());
    let needed = timeline.as_ref().map_or(0, |timeline| timeline.items_bytes()) + READ_BYTES;
    let counts = move |_: &Progress| {
        let question = RowsQuestion { limit: u64::MAX, ..question };
        let pages = question.pages(&session, timeline.as_ref(), Some(Vec::new()))?;
        pages.count(COUNT_BYTES, &own).map_err(|failure| refusal(&failure))
    };
    let (count, _held) = asked.pool.ask_heavy(&viewer, needed, progress, counts).await?;
    let count = count?;
    Ok(answer(&json!({"events": count.events, "exact": count.is_exact})))
}
