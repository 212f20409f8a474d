//! The recorder of the traces that are shown: its progress, and changes to it from here. The
//! recorder knows the events of programs and those that a session records, and answers over its
//! socket; here its answers become JSON.
//!
//! ```text
//! GET, listeners ──> look ──┐ one at a time                 ┌──> session whose folder is a trace that is shown, or in it, or around it
//!                           ├──> thread ── socket ── recorder
//! POST ────────────> change ┘ a few at a time               └──> its events
//! ```
//!
//! A recorder may be slow, stopped or gone: only threads of their own wait for it here, and none of
//! them for long.

#[cfg_attr(not(target_os = "linux"), path = "recording/nobody.rs")]
mod recorder;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use crate::body;
use crate::query::RequestParameters;
use crate::refusal::{RequestRefusal, answer};
use recorder::Recorded;

/// How often the server looks while there are listeners and something is recorded.
const OFTEN: Duration = Duration::from_millis(500);
/// The same while nothing is: a recorder stays for half a second behind its last session, and looks
/// must not keep it alive.
const SELDOM: Duration = Duration::from_secs(2);
/// Changes that are asked for at a time.
const CHANGES_MAX: usize = 8;
/// Patterns of one change.
const EVENTS_MAX: usize = 256;
/// Characters of each.
const EVENT_MAX: usize = 256;
/// Characters of a filter.
const FILTER_MAX: usize = 16 << 10;

/// The change to make.
#[derive(Debug, Deserialize)]
#[serde(tag = "act", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum RecordingChange {
    /// Records events too; with a filter, those for which it is true.
    Enable {
        events: Vec<String>,
        #[serde(default)]
        filter: Option<String>,
    },
    /// Does not record them any more.
    Disable { events: Vec<String> },
    /// Keeps, of those that are recorded, the events for which the filter is true; without one,
    /// all.
    Filter {
        events: Vec<String>,
        #[serde(default)]
        filter: Option<String>,
    },
    /// Starts, stops or snapshots the session at such an event.
    Trigger {
        events: Vec<String>,
        #[serde(default)]
        filter: Option<String>,
        effect: TriggerWord,
        #[serde(default)]
        repeat: bool,
    },
    /// Arms a trigger anew; without a name, all.
    Arm {
        #[serde(default)]
        trigger: Option<String>,
    },
    /// Removes a trigger.
    Remove { trigger: String },
    /// Records from now on, or no more; the session stays.
    Turn { on: bool },
    /// Sets the limit of a rule, in words, of one kind of its events or of all; without one, that of its words again.
    Limit {
        rule: String,
        #[serde(default)]
        kind: Option<String>,
        #[serde(default)]
        limit: Option<String>,
    },
    /// Writes the current content of a flight recorder.
    Snapshot {},
    /// Ends the session.
    Stop {},
}

/// Effect of a trigger.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TriggerWord {
    Start,
    Stop,
    Snapshot,
}

/// The recorder of the traces that are shown, as far as it is known.
pub(crate) struct ShownRecorder {
    shown: Mutex<Vec<PathBuf>>,
    state: Mutex<LastFinding>,
    /// Number of the last finding.
    found: watch::Sender<u64>,
    changes: AtomicUsize,
}

/// The last finding. Looks have numbers, so that one that began before a change does not hide the
/// result of that change.
#[derive(Default)]
struct LastFinding {
    /// Number of the look that began last.
    begun: u64,
    /// Number of the look with this finding; 0: there was no look yet.
    number: u64,
    is_looking: bool,
    looked: Option<Instant>,
    recorded: Option<Recorded>,
    /// Why the recorder could not be asked, in a sentence.
    problem: Option<String>,
    /// Listeners were told of something.
    is_told: bool,
}

impl LastFinding {
    fn as_json(&self) -> Value {
        json!({"recording": self.recorded.as_ref().map(|recorded| &recorded.told), "problem": self.problem})
    }
}

impl ShownRecorder {
    /// Of these traces.
    pub(crate) fn of(traces: Vec<PathBuf>) -> Arc<Self> {
        let (state, found) = (Mutex::default(), watch::Sender::default());
        Arc::new(Self { shown: Mutex::new(traces), state, found, changes: AtomicUsize::new(0) })
    }

    /// These traces are shown from now on.
    pub(crate) fn shows(&self, traces: &[PathBuf]) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = traces.to_vec();
        let mut state = self.state();
        // Looks that have begun find the state of other traces.
        (state.recorded, state.problem, state.looked, state.number) = (None, None, None, state.begun);
    }

    fn traces(&self) -> Vec<PathBuf> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn state(&self) -> MutexGuard<'_, LastFinding> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state that listeners receive, if there ever was one to send.
    pub(crate) fn news(&self) -> Option<String> {
        let mut state = self.state();
        state.is_told |= state.recorded.is_some() || state.problem.is_some();
        state.is_told.then(|| state.as_json().to_string())
    }

    /// There is a listener: looks again if it is time.
    pub(crate) fn refresh(self: &Arc<Self>) {
        let state = self.state();
        let is_going_on = state.recorded.as_ref().is_some_and(|recorded| !recorded.is_over);
        let every = if is_going_on { OFTEN } else { SELDOM };
        let is_due = state.looked.is_none_or(|looked| looked.elapsed() >= every);
        drop(state);
        if is_due && cfg!(target_os = "linux") && !self.traces().is_empty() {
            // Without a thread for it now, a later call looks.
            let _ = self.look();
        }
    }

    /// The current state: the finding of a look that began after this call.
    async fn now(self: &Arc<Self>) -> Result<Value, RequestRefusal> {
        let mut found = self.found.subscribe();
        let wanted = self.state().begun + 1;
        loop {
            if let Some(told) = self.since(wanted) {
                return Ok(told);
            }
            self.look()?;
            found.changed().await.map_err(RequestRefusal::fault)?;
        }
    }

    /// The finding of a look of this number or a later one.
    fn since(&self, number: u64) -> Option<Value> {
        let state = self.state();
        (state.number >= number).then(|| state.as_json())
    }

    /// Begins to look, unless another look is in progress.
    fn look(self: &Arc<Self>) -> Result<(), RequestRefusal> {
        let mut state = self.state();
        if state.is_looking {
            return Ok(());
        }
        state.is_looking = true;
        drop(state);
        let looks = Looks(Arc::clone(self));
        spawn(move || {
            let number = looks.0.begin();
            looks.0.find(number);
        })
    }

    fn begin(&self) -> u64 {
        let mut state = self.state();
        state.begun += 1;
        state.begun
    }

    /// Asks the recorder for its state, and keeps the finding unless there is a newer one; tells
    /// it, too.
    fn find(&self, number: u64) -> Value {
        let before = self.state().recorded.clone();
        let found = recorder::look(&self.traces(), before.as_ref());
        let mut state = self.state();
        if number > state.number {
            state.number = number;
            (state.recorded, state.problem) = match found {
                Ok(recorded) => (recorded, None),
                Err(problem) => (before, Some(problem)),
            };
            state.looked = Some(Instant::now());
        }
        state.as_json()
    }

    /// Changes it, on this thread; then how it is.
    fn change(&self, wanted: &RecordingChange) -> Result<Value, RequestRefusal> {
        let changed = recorder::change(&self.traces(), wanted).map(|(changed, recorded)| {
            // Only a state that is known already can tell how an ended session was.
            self.state().recorded.get_or_insert(recorded);
            changed
        });
        let told = self.find(self.begin());
        self.found.send_modify(|_| ());
        let mut all = changed.map_err(|problem| {
            let problem = problem.trim();
            refused(problem.strip_prefix("error: ").unwrap_or(problem))
        })?;
        all["recording"] = told["recording"].clone();
        Ok(all)
    }
}

/// A look in progress: it is over when this is dropped, however it ended.
struct Looks(Arc<ShownRecorder>);

impl Drop for Looks {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_looking = false;
        if std::thread::panicking() {
            state.problem = Some("asking the recorder met a mistake in kymo; please report it".to_owned());
            (state.number, state.looked) = (state.begun, Some(Instant::now()));
        }
        drop(state);
        self.0.found.send_modify(|_| ());
    }
}

/// One of the changes that are asked for at a time.
struct ChangeSlot(Arc<ShownRecorder>);

impl Drop for ChangeSlot {
    fn drop(&mut self) {
        self.0.changes.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The server does not wait for this thread when it ends.
fn spawn(work: impl FnOnce() + Send + 'static) -> Result<(), RequestRefusal> {
    let thread = std::thread::Builder::new().name("kymo-recorder".to_owned()).spawn(work);
    thread.map(drop).map_err(RequestRefusal::fault)
}

fn refused(message: &str) -> RequestRefusal {
    RequestRefusal::new(StatusCode::CONFLICT, "recording", message)
}

/// The recorder of the traces that are shown, and its progress.
pub(crate) async fn get(State(recording): State<Arc<ShownRecorder>>, uri: Uri) -> Result<Response, RequestRefusal> {
    RequestParameters::new(&uri, &[])?;
    Ok(answer(&recording.now().await?))
}

/// Changes the recording.
pub(crate) async fn post(
    State(recording): State<Arc<ShownRecorder>>,
    request: Request,
) -> Result<Response, RequestRefusal> {
    RequestParameters::new(request.uri(), &[])?;
    let wanted: RecordingChange = body::read(request).await?;
    check(&wanted)?;
    recording.changes.fetch_add(1, Ordering::AcqRel);
    let place = ChangeSlot(Arc::clone(&recording));
    if recording.changes.load(Ordering::Acquire) > CHANGES_MAX {
        return Err(RequestRefusal::busy(format!("{CHANGES_MAX} changes of the recording are in progress")));
    }
    let (tell, told) = oneshot::channel();
    spawn(move || {
        let _ = tell.send(place.0.change(&wanted));
    })?;
    let changed = told.await;
    changed
        .map_err(|_| RequestRefusal::fault("nothing was changed: that is a mistake in kymo; please report it"))?
        .map(|told| answer(&told))
}

fn check(wanted: &RecordingChange) -> Result<(), RequestRefusal> {
    let (events, filter) = match wanted {
        RecordingChange::Enable { events, filter }
        | RecordingChange::Filter { events, filter }
        | RecordingChange::Trigger { events, filter, .. } => (events, filter.as_deref()),
        RecordingChange::Disable { events } => (events, None),
        RecordingChange::Arm { .. }
        | RecordingChange::Remove { .. }
        | RecordingChange::Turn { .. }
        | RecordingChange::Limit { .. }
        | RecordingChange::Snapshot {}
        | RecordingChange::Stop {} => return Ok(()),
    };
    if !(1..=EVENTS_MAX).contains(&events.len()) {
        let message = format!("`events` has {} patterns; 1 to {EVENTS_MAX} are expected, all are `*`", events.len());
        return Err(RequestRefusal::parameter("events", message));
    }
    let is_name = |event: &&String| event.contains([':', '*', '?']) && event.chars().count() <= EVENT_MAX;
    if let Some(event) = events.iter().find(|event| !is_name(event)) {
        let shown: String = event.chars().take(40).collect();
        let message = format!(
            "`{shown}` is no name of events: that is PROVIDER:NAME with {EVENT_MAX} characters at most; `*` and `?` in it are any text and \
             any character, `!` before it takes out"
        );
        return Err(RequestRefusal::parameter("events", message));
    }
    match filter.map(|filter| filter.chars().count()) {
        Some(0) => Err(RequestRefusal::parameter("filter", "`filter` is empty; without one it is `null`")),
        Some(count) if count > FILTER_MAX => Err(RequestRefusal::parameter(
            "filter",
            format!("`filter` has {count} characters; {FILTER_MAX} are the most"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<(), String> {
        let wanted: RecordingChange = serde_json::from_value(body).map_err(|error| error.to_string())?;
        check(&wanted).map_err(|refusal| refusal.message())
    }

    #[test]
    fn changes_are_one_of_five() {
        for good in [
            json!({"act": "enable", "events": ["net:*", "!net:poll"], "filter": "port == 443"}),
            json!({"act": "enable", "events": ["*"], "filter": null}),
            json!({"act": "disable", "events": ["net:sent"]}),
            json!({"act": "filter", "events": ["net:sent"]}),
            json!({"act": "snapshot"}),
            json!({"act": "stop"}),
        ] {
            assert_eq!(read(good.clone()), Ok(()), "{good}");
        }
        for (bad, why) in [
            (json!({"act": "begin"}), "unknown variant"),
            (json!({"act": "stop", "session": "a"}), "unknown field"),
            (json!({"act": "snapshot", "output": "/"}), "unknown field"),
            (json!({"act": "disable", "events": ["a:b"], "filter": "x"}), "unknown field"),
            (json!({"act": "enable"}), "missing field"),
            (json!({"events": ["a:b"]}), "missing field"),
            (json!({"act": "enable", "events": []}), "`events` has 0 patterns"),
            (json!({"act": "enable", "events": vec!["a:b"; EVENTS_MAX + 1]}), "`events` has 257 patterns"),
            (json!({"act": "enable", "events": ["net"]}), "`net` is no name of events"),
            (json!({"act": "enable", "events": [":".repeat(EVENT_MAX + 1)]}), "is no name of events"),
            (json!({"act": "filter", "events": ["a:b"], "filter": ""}), "`filter` is empty"),
            (json!({"act": "filter", "events": ["a:b"], "filter": "x".repeat(FILTER_MAX + 1)}), "`filter` has 16385"),
        ] {
            let refused = read(bad.clone()).unwrap_err();
            assert!(refused.contains(why), "{bad}: {refused}");
        }
    }
}
