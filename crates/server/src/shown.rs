//! The timeline of the traces, and those of some of their events that were asked for last.
//!
//! A filter in view has a timeline of its own, which is built in the background like that of all
//! events. There are a few at a time: a page that comes back to one that is gone waits for it
//! again.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use axum::http::StatusCode;
use kymo_session::{Session, Timeline, TimelineFailure, TimelineOptions, TimelineStatus};
use serde_json::Value;

use crate::current::GrowthStatus;
use crate::refusal::RequestRefusal;
use crate::selection::selection;

/// Filters that have a timeline at a time.
const SELECTED_MAX: usize = 4;
/// Memory of each of them for its recently viewed parts.
const SELECTED_BYTES: usize = 6 << 20;

/// The events in view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ShownEvents {
    /// Patterns of names.
    pub(crate) events: Vec<String>,
    /// An expression.
    pub(crate) filter: Option<String>,
}

/// The timeline of the traces, or why there is none.
pub(crate) struct Shown {
    timeline: RwLock<Result<Arc<Timeline>, TimelineFailure>>,
    options: TimelineOptions,
    /// Building has begun: before that, the request for the first picture has the processors.
    is_started: AtomicBool,
    /// Those of some events; the last one was asked for last. The lock is held for moments only:
    /// the thread that makes one holds just its own place.
    selected: Mutex<Vec<(ShownEvents, Arc<Place>)>>,
    /// The sum of the versions of those that are gone: a version never goes back.
    past: AtomicU64,
    /// Tells tags of this server from those of others, whose tracks have other numbers.
    salt: u64,
}

/// The timeline of some events, once it is there.
type Place = OnceLock<Result<Arc<Timeline>, RequestRefusal>>;

impl ShownEvents {
    /// All events.
    pub(crate) fn is_all(&self) -> bool {
        self.events.is_empty() && self.filter.is_none()
    }
}

impl Shown {
    /// `until`: the traces grow, and everything before is there.
    pub(crate) fn new(session: &Arc<Session>, options: TimelineOptions, until: Option<i64>, salt: u64) -> Self {
        let timeline = RwLock::new(timeline_of(session, &options, until));
        let is_started = AtomicBool::new(false);
        Self { timeline, options, is_started, selected: Mutex::default(), past: AtomicU64::new(0), salt }
    }

    /// Begins to build it, if it has not begun yet.
    pub(crate) fn start(&self) {
        self.is_started.store(true, Ordering::Relaxed);
        if let Ok(timeline) = self.timeline() {
            timeline.start();
        }
    }

    /// There is more of the traces: everything before `until`, or all.
    pub(crate) fn grow(&self, session: &Arc<Session>, until: Option<i64>) -> Result<(), TimelineFailure> {
        let before = self.timeline.read().unwrap_or_else(PoisonError::into_inner).clone();
        let grown = match before {
            // There was no event.
            Err(TimelineFailure::NoTimes) => timeline_of(session, &self.options, until)?,
            before => before?.grown(session, until)?,
        };
        grown.start();
        let all = Arc::clone(&grown);
        *self.timeline.write().unwrap_or_else(PoisonError::into_inner) = Ok(grown);
        let mut places = self.places().clone();
        for (_, place) in &mut places {
            let Some(selected) = made(place) else { continue };
            let grown = selected.grown_beside(Some(&all), session, until)?;
            grown.start();
            *place = Arc::new(OnceLock::from(Ok(grown)));
        }
        let mut known = self.places();
        for (chosen, place) in places {
            // Other requests may have changed the places meanwhile.
            if let Some((_, known)) = known.iter_mut().find(|(known, _)| *known == chosen) {
                *known = place;
            }
        }
        Ok(())
    }

    /// Whether building has not begun yet.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.is_started.load(Ordering::Relaxed)
    }

    /// Ends building; it does not begin any more.
    pub(crate) fn stop(&self) {
        let selected = std::mem::take(&mut *self.places());
        selected.iter().filter_map(|(_, place)| made(place)).for_each(|timeline| timeline.stop());
        if let Ok(timeline) = self.timeline() {
            timeline.stop();
        }
    }

    /// How far it is; its version goes up, too, when there is more of the selected timelines.
    pub(crate) fn status(&self) -> Result<TimelineStatus, RequestRefusal> {
        let status = self.timeline()?.status();
        let more: u64 = self.places().iter().filter_map(|(_, place)| made(place)).map(|made| progressed(made)).sum();
        Ok(TimelineStatus { version: status.version + more + self.past.load(Ordering::Relaxed), ..status })
    }

    /// How far it is, as all pages receive it, with a name of this server's run: numbers of tracks
    /// hold as long as that is the same.
    pub(crate) fn told(&self, live: Option<GrowthStatus>) -> Result<Value, RequestRefusal> {
        let mut told = serde_json::to_value(self.status()?).map_err(RequestRefusal::fault)?;
        told["live"] = live.map_or(Value::Null, |live| live.told());
        told["instance"] = Value::from(format!("{:016x}", self.salt));
        Ok(told)
    }

    pub(crate) fn timeline(&self) -> Result<Arc<Timeline>, RequestRefusal> {
        self.timeline.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(Arc::clone).map_err(refusal)
    }

    /// The timeline of some events, which is begun if there is none.
    pub(crate) fn selected(&self, session: &Session, chosen: &ShownEvents) -> Result<Arc<Timeline>, RequestRefusal> {
        let all = self.timeline()?;
        if chosen.is_all() {
            return Ok(all);
        }
        let place = self.place(chosen);
        // Requests for the same meanwhile wait for it.
        let found = place.get_or_init(|| begin(session, &all, chosen)).clone();
        let mut places = self.places();
        match &found {
            Err(_) => places.retain(|(_, known)| !Arc::ptr_eq(known, &place)),
            // It was pushed out before it was there, or the server ends.
            Ok(timeline) if !places.iter().any(|(_, known)| Arc::ptr_eq(known, &place)) => timeline.cancel(),
            Ok(_) => {}
        }
        found
    }

    /// Where the timeline of some events is or will be. If there are too many, the one with the
    /// oldest request goes.
    fn place(&self, chosen: &ShownEvents) -> Arc<Place> {
        let mut places = self.places();
        if let Some(number) = places.iter().position(|(known, _)| known == chosen) {
            places[number..].rotate_left(1);
            return Arc::clone(&places[places.len() - 1].1);
        }
        let place = Arc::new(Place::new());
        places.push((chosen.clone(), Arc::clone(&place)));
        if places.len() > SELECTED_MAX {
            let (_, gone) = places.remove(0);
            if let Some(gone) = made(&gone) {
                self.past.fetch_add(progressed(gone), Ordering::Relaxed);
                // A request that asks it still has it until its response; it is not built any more.
                gone.cancel();
            }
        }
        place
    }

    fn places(&self) -> MutexGuard<'_, Vec<(ShownEvents, Arc<Place>)>> {
        self.selected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tag of tiles that will not change any more, of some events.
    pub(crate) fn exact_tag(&self, chosen: &ShownEvents) -> String {
        format!("\"{:016x}-exact\"", self.salted(chosen))
    }

    pub(crate) fn tag(&self, chosen: &ShownEvents, version: u64) -> String {
        format!("\"{:016x}-{version}\"", self.salted(chosen))
    }

    fn salted(&self, chosen: &ShownEvents) -> u64 {
        match chosen.is_all() {
            true => self.salt,
            false => self.salt ^ hash(chosen),
        }
    }
}

/// Why there is no timeline, or no answer about it.
pub(crate) fn refusal(failure: &TimelineFailure) -> RequestRefusal {
    match failure {
        TimelineFailure::Bounds { name, .. } => RequestRefusal::parameter(name, failure),
        TimelineFailure::NoTimes | TimelineFailure::Roles(_) => {
            RequestRefusal::new(StatusCode::CONFLICT, "traces", failure)
        }
        failure => RequestRefusal::fault(failure),
    }
}

/// A timeline of all, or up to a time.
fn timeline_of(
    session: &Arc<Session>,
    options: &TimelineOptions,
    until: Option<i64>,
) -> Result<Arc<Timeline>, TimelineFailure> {
    match until {
        Some(until) => session.growing_timeline(options, until),
        None => session.timeline(options),
    }
}

/// Begins to build the timeline of some events.
fn begin(session: &Session, all: &Arc<Timeline>, chosen: &ShownEvents) -> Result<Arc<Timeline>, RequestRefusal> {
    let asked = selection(session, chosen.events.clone(), chosen.filter.as_deref())?;
    let timeline = all.selected(asked).map_err(|failure| refusal(&failure))?;
    timeline.hold(SELECTED_BYTES);
    timeline.start();
    Ok(timeline)
}

/// The timeline that is there already.
fn made(place: &Place) -> Option<&Arc<Timeline>> {
    place.get()?.as_ref().ok()
}

/// How often a timeline of some events has changed; tracks are those of the one of all.
fn progressed(timeline: &Timeline) -> u64 {
    let status = timeline.status();
    status.version - u64::from(status.tracks)
}

/// The same for the same, as long as this server runs.
fn hash(chosen: &ShownEvents) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    chosen.hash(&mut hasher);
    hasher.finish()
}
