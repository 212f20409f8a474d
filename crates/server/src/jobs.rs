//! Analyses that run behind viewers: a few at a time, each with its progress, until a client
//! cancels it. Their results are kept as bytes, up to a limit.
//!
//! ```text
//! POST ──> waiting ──> running ──> done ──> forgotten, when there are more than so many
//!             └───────────┴──> failed
//! DELETE cancels and forgets
//! ```

use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::StatusCode;
use kymo_session::{AnalyseFailure, AnalysisKind, AnalysisOptions, Progress, Session, Table, json};
use serde_json::{Value, json};

use crate::current::CurrentTraces;
use crate::options::Asks;
use crate::refusal::RequestRefusal;

/// Jobs that run at a time; each reads with all threads of the session.
const RUNNING_MAX: usize = 2;
/// Jobs that are known.
const KNOWN_MAX: usize = 64;
/// Bytes of an answer at most, if there is memory for so many.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Analyses that run, will run, or have run.
pub(crate) struct Jobs {
    current: CurrentTraces,
    roles: Option<PathBuf>,
    list: Arc<Mutex<List>>,
}

#[derive(Default)]
struct List {
    /// In the order in which they were asked for.
    jobs: VecDeque<AnalysisJob>,
    /// How many there have been.
    count: u64,
    /// Bytes of all answers that are kept.
    kept_bytes_max: usize,
    is_over: bool,
}

struct AnalysisJob {
    id: u64,
    asks: Asks,
    progress: Arc<Progress>,
    state: JobState,
}

enum JobState {
    Waiting(Box<(AnalysisKind, AnalysisOptions)>),
    Running(Instant),
    Done(Bytes, Duration),
    Failed(RequestRefusal),
}

impl AnalysisJob {
    fn is_over(&self) -> bool {
        matches!(self.state, JobState::Done(..) | JobState::Failed(_))
    }

    fn kept_bytes(&self) -> usize {
        if let JobState::Done(bytes, _) = &self.state { bytes.len() } else { 0 }
    }

    fn as_json(&self) -> Value {
        let (mut done, total) = self.progress.bytes();
        if matches!(self.state, JobState::Done(..)) {
            // Parts that were not worth reading count as done, too.
            done = total;
        }
        let mut object = json!({
            "id": self.id.to_string(), "kind": self.asks.kind, "options": self.asks.options,
            "state": "waiting", "done": done, "total": total, "eta_ms": null, "elapsed_ms": null,
            "result_bytes": null, "failure": null,
        });
        match &self.state {
            JobState::Waiting(_) => {}
            JobState::Running(began) => {
                object["state"] = json!("running");
                object["elapsed_ms"] = json!(millis(began.elapsed()));
                object["eta_ms"] = json!(left(done, total, began.elapsed()).map(millis));
            }
            JobState::Done(bytes, took) => {
                object["state"] = json!("done");
                object["elapsed_ms"] = json!(millis(*took));
                object["result_bytes"] = json!(bytes.len());
            }
            JobState::Failed(refusal) => {
                object["state"] = json!("failed");
                object["failure"] = refusal.as_json();
            }
        }
        object
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The remaining time if it goes on at this rate; unknown at the beginning.
fn left(done: u64, total: u64, elapsed: Duration) -> Option<Duration> {
    let share = (done > 0 && total > 0).then(|| done as f64 / total as f64)?;
    Duration::try_from_secs_f64(elapsed.as_secs_f64() * (1.0 - share) / share).ok()
}

impl List {
    fn find(&self, id: &str) -> Result<&AnalysisJob, RequestRefusal> {
        let place = self.place(id)?;
        Ok(&self.jobs[place])
    }

    fn place(&self, id: &str) -> Result<usize, RequestRefusal> {
        let place = self.jobs.iter().position(|job| job.id.to_string() == id);
        place.ok_or_else(|| {
            RequestRefusal::absent(format!("there is no job `{}`", id.chars().take(40).collect::<String>()))
        })
    }

    /// Forgets finished jobs, the oldest first, until there is room.
    fn make_room(&mut self) -> Result<(), RequestRefusal> {
        while self.jobs.len() >= KNOWN_MAX {
            self.forget_oldest()
                .ok_or_else(|| RequestRefusal::busy(format!("{KNOWN_MAX} jobs run or wait; cancel one")))?;
        }
        Ok(())
    }

    fn forget_oldest(&mut self) -> Option<AnalysisJob> {
        let place = self.jobs.iter().position(AnalysisJob::is_over)?;
        self.jobs.remove(place)
    }

    /// The job that may run now.
    fn next(&mut self) -> Option<(u64, AnalysisKind, AnalysisOptions, Arc<Progress>)> {
        let running = self.jobs.iter().filter(|job| matches!(job.state, JobState::Running(_))).count();
        if running >= RUNNING_MAX || self.is_over {
            return None;
        }
        let job = self.jobs.iter_mut().find(|job| matches!(job.state, JobState::Waiting(_)))?;
        let JobState::Waiting(asked) = std::mem::replace(&mut job.state, JobState::Running(Instant::now())) else {
            unreachable!("it waits")
        };
        let (kind, options) = *asked;
        Some((job.id, kind, options, Arc::clone(&job.progress)))
    }

    /// A job has come to its end; it may have been forgotten meanwhile.
    fn end(&mut self, id: u64, found: Result<Bytes, RequestRefusal>) {
        let Some(job) = self.jobs.iter_mut().find(|job| job.id == id) else { return };
        let JobState::Running(began) = job.state else { return };
        job.state = match found {
            Ok(bytes) => JobState::Done(bytes, began.elapsed()),
            Err(refusal) => JobState::Failed(refusal),
        };
        while self.jobs.iter().map(AnalysisJob::kept_bytes).sum::<usize>() > self.kept_bytes_max {
            let oldest = self.jobs.iter().position(|job| job.kept_bytes() > 0 && job.id != id);
            let Some(oldest) = oldest else { break };
            self.jobs.remove(oldest);
        }
    }
}

impl Jobs {
    /// The jobs of a session; their results have so much memory.
    pub(crate) fn new(current: CurrentTraces, roles: Option<PathBuf>, memory: u64) -> Self {
        let kept_bytes_max = usize::try_from(memory).unwrap_or(usize::MAX);
        Self { current, roles, list: Arc::new(Mutex::new(List { kept_bytes_max, ..List::default() })) }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        locked(&self.list)
    }

    /// Creates a job, which begins as soon as it may run; returns its description.
    pub(crate) fn begin(&self, asks: Asks) -> Result<Value, RequestRefusal> {
        let (kind, options) = asks.question(&self.current.session(), self.roles.as_deref())?;
        // In traces that are recorded right now, data later than this may still change.
        let end_ns = self.current.last_ns().into_iter().chain(options.end_ns).min();
        let question = Box::new((kind, AnalysisOptions { end_ns, ..options }));
        let mut list = self.list();
        list.make_room()?;
        list.count += 1;
        let job = AnalysisJob { id: list.count, asks, progress: Arc::default(), state: JobState::Waiting(question) };
        let said = job.as_json();
        list.jobs.push_back(job);
        drop(list);
        work(&self.current, &self.list);
        Ok(said)
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Value> {
        self.list().jobs.iter().map(AnalysisJob::as_json).collect()
    }

    pub(crate) fn one(&self, id: &str) -> Result<Value, RequestRefusal> {
        self.list().find(id).map(AnalysisJob::as_json)
    }

    /// The result of a job.
    pub(crate) fn answer(&self, id: &str) -> Result<Bytes, RequestRefusal> {
        match &self.list().find(id)?.state {
            JobState::Done(bytes, _) => Ok(bytes.clone()),
            JobState::Failed(refusal) => Err(RequestRefusal::new(StatusCode::CONFLICT, "failed", "the job has failed")
                .with("failure", refusal.as_json())),
            JobState::Waiting(_) | JobState::Running(_) => {
                Err(RequestRefusal::new(StatusCode::CONFLICT, "unfinished", "the job has not ended yet"))
            }
        }
    }

    /// Cancels and forgets it.
    pub(crate) fn end(&self, id: &str) -> Result<(), RequestRefusal> {
        let mut list = self.list();
        let place = list.place(id)?;
        let job = list.jobs.remove(place).expect("it was found there");
        drop(list);
        job.progress.cancel();
        work(&self.current, &self.list);
        Ok(())
    }

    /// Cancels all of them; none begins any more.
    pub(crate) fn stop(&self) {
        let mut list = self.list();
        list.is_over = true;
        list.jobs.drain(..).for_each(|job| job.progress.cancel());
    }
}

fn locked(list: &Mutex<List>) -> MutexGuard<'_, List> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts jobs that may run, each on its own thread: a thread goes on with the next job, and ends
/// when there is none.
fn work(current: &CurrentTraces, list: &Arc<Mutex<List>>) {
    let Some(first) = locked(list).next() else { return };
    let (current, own, id) = (current.clone(), Arc::clone(list), first.0);
    let thread = std::thread::Builder::new().name("kymo-job".to_owned()).spawn(move || {
        behind_others();
        let mut next = Some(first);
        while let Some((id, kind, options, progress)) = next {
            let guard = Unwound { list: &own, id };
            let bytes_max = locked(&own).kept_bytes_max.min(ANSWER_BYTES_MAX);
            let found = found(&current.session(), (&kind, &options), bytes_max, &progress);
            std::mem::forget(guard);
            let mut list = locked(&own);
            list.end(id, found);
            next = list.next();
        }
    });
    if let Err(error) = thread {
        locked(list).end(id, Err(RequestRefusal::fault(format!("the system gives no thread: {error}"))));
    }
}

/// Says that a job is gone if its thread panics.
struct Unwound<'a> {
    list: &'a Mutex<List>,
    id: u64,
}

impl Drop for Unwound<'_> {
    fn drop(&mut self) {
        let refusal = RequestRefusal::fault("the job met a mistake in kymo; please report it");
        locked(self.list).end(self.id, Err(refusal));
    }
}

/// Viewers go first: this thread, and the threads that it starts, take the remaining processor
/// time.
fn behind_others() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 10);
}

/// The answer, as the command prints it with `--json`.
fn found(
    session: &Session,
    (kind, options): (&AnalysisKind, &AnalysisOptions),
    bytes_max: usize,
    progress: &Progress,
) -> Result<Bytes, RequestRefusal> {
    let analysed = session.ask(kind, options, progress).map_err(|failure| {
        let code = match failure {
            AnalyseFailure::NoRole { .. } | AnalyseFailure::NoName(_) => "traces",
            AnalyseFailure::Cancelled(_) => "cancelled",
            _ => "question",
        };
        RequestRefusal::new(StatusCode::BAD_REQUEST, code, failure)
    })?;
    let tables: Vec<&Table> = analysed.answer.tables.iter().collect();
    let mut bytes = LimitedBuffer { bytes: Vec::new(), most: bytes_max };
    json::write_answer(&tables, &analysed.report, &mut bytes).map_err(|_| {
        let most = bytes_max >> 20;
        RequestRefusal::new(
            StatusCode::BAD_REQUEST,
            "large",
            format!("the answer has more than {most} MiB: ask for fewer rows, `top`"),
        )
    })?;
    Ok(bytes.bytes.into())
}

/// So many bytes.
struct LimitedBuffer {
    bytes: Vec<u8>,
    most: usize,
}

impl Write for LimitedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.most {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_what_was() {
        let second = Duration::from_secs(1);
        assert_eq!(left(0, 100, second), None);
        assert_eq!(left(5, 0, second), None);
        assert_eq!(left(25, 100, second), Some(Duration::from_secs(3)));
        assert_eq!(left(100, 100, second), Some(Duration::ZERO));
    }

    #[test]
    fn answers_are_bounded() {
        let mut bytes = LimitedBuffer { bytes: vec![0; 9], most: 10 };
        assert!(bytes.write_all(b"1").is_ok() && bytes.write_all(b"2").is_err());
    }

    /// Finished jobs with kept results make room for others, running jobs do not.
    #[test]
    fn room_is_made_by_what_is_over() {
        let asks: Asks = serde_json::from_value(json!({"kind": "count"})).unwrap();
        let job = |id, state| AnalysisJob { id, asks: asks.clone(), progress: Arc::default(), state };
        let mut list = List { kept_bytes_max: 1000, ..List::default() };
        for id in 0..KNOWN_MAX as u64 {
            let done = JobState::Done(Bytes::from_static(b"{}"), Duration::ZERO);
            list.jobs.push_back(job(id, if id == 5 { done } else { JobState::Running(Instant::now()) }));
        }
        assert!(list.make_room().is_ok() && list.find("5").is_err() && list.jobs.len() == KNOWN_MAX - 1);
        list.jobs.push_back(job(99, JobState::Running(Instant::now())));
        assert_eq!(list.make_room().unwrap_err().status(), 503);
        list.end(99, Ok(Bytes::from(vec![0; 1000])));
        list.end(98, Ok(Bytes::new()));
        list.end(7, Ok(Bytes::from_static(b"{}")));
        assert!(list.find("99").is_err() && list.find("7").is_ok());
    }
}
