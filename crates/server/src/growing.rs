//! Traces that grow: the server looks at them again and again as long as a recorder writes them, or
//! might.
//!
//! ```text
//! waiting ──first events──> recording ──> ended ──more comes──> recording
//! ```
//!
//! A recorder of ours says when it has ended; for other recorders the server guesses that, after a
//! while without anything new.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kymo_session::{Follow, Look, OpenFailure, OpenOptions, Session};

use crate::begin::Growing;
use crate::current::GrowthStatus;
use crate::stage::ServerStage;

/// How often the server looks for more events.
const INTERVAL: Duration = Duration::from_millis(250);
/// How often the server looks whether traces that seem to have no writer have grown.
const QUIET_INTERVAL: Duration = Duration::from_secs(1);
/// A recorder that does not announce its end has ended when nothing came for so long.
const ENDED: Duration = Duration::from_secs(10);

/// Traces to look at again and again, as soon as there is a stage to show them.
pub(crate) struct Followed {
    /// `None`: they are recorded. Else they may be, if there is more than this.
    session: Option<Arc<Session>>,
    paths: Vec<PathBuf>,
    open: OpenOptions,
}

impl Followed {
    pub(crate) fn new(Growing { session, paths, open }: Growing) -> Self {
        let is_recorded = session.is_none() || Follow::is_recorded(&paths);
        Self { session: session.filter(|_| !is_recorded), paths, open }
    }

    /// The traces that are open, unless they are recorded.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    /// Looks from now on, as long as the server runs.
    pub(crate) fn begin(self, stage: &Arc<ServerStage>) -> std::io::Result<()> {
        match &self.session {
            Some(session) => follow_if_grown(stage, session, self.paths, self.open),
            None => follow(stage, self.paths, self.open),
        }
    }
}

/// Follows traces on a thread of its own, as long as the server runs.
fn follow(stage: &Arc<ServerStage>, paths: Vec<PathBuf>, options: OpenOptions) -> std::io::Result<()> {
    let stage = Arc::downgrade(stage);
    let work = move || {
        let mut following = GrowthFollower { follow: Follow::new(paths, options), came: Instant::now() };
        while let Some(stage) = stage.upgrade().filter(|stage| !stage.is_over()) {
            let goes_on = following.look(&stage);
            drop(stage);
            if !goes_on {
                return;
            }
            std::thread::sleep(INTERVAL);
        }
    };
    std::thread::Builder::new().name("kymo-follows".to_owned()).spawn(work).map(drop)
}

/// Follows traces that are not known to be recorded, as soon as there is more of them.
fn follow_if_grown(
    stage: &Arc<ServerStage>,
    session: &Arc<Session>,
    paths: Vec<PathBuf>,
    options: OpenOptions,
) -> std::io::Result<()> {
    let (stage, session) = (Arc::downgrade(stage), Arc::clone(session));
    let work = move || {
        while let Some(stage) = stage.upgrade().filter(|stage| !stage.is_over()) {
            if session.has_grown() {
                // Without a thread, the page receives nothing new.
                let _ = follow(&stage, paths, options);
                return;
            }
            drop(stage);
            std::thread::sleep(QUIET_INTERVAL);
        }
    };
    std::thread::Builder::new().name("kymo-watches".to_owned()).spawn(work).map(drop)
}

struct GrowthFollower {
    follow: Follow,
    /// When something new was seen last.
    came: Instant,
}

impl GrowthFollower {
    /// Looks once; whether it is worth while to look again.
    fn look(&mut self, stage: &ServerStage) -> bool {
        match self.follow.look() {
            Ok(Look::Nothing) => self.nothing(stage),
            Ok(Look::More(window)) => {
                self.came = Instant::now();
                let until = window.end_ns.map(|end| end.saturating_add(1));
                if let Err(failure) = stage.grown(&window.session, until) {
                    tell(stage, failure.to_string());
                }
                return until.is_some();
            }
            Ok(Look::Over) => return false,
            // A half-written part is whole at the next look.
            Err(failure) => tell(stage, told(&failure)),
        }
        true
    }

    fn nothing(&self, stage: &ServerStage) {
        let Some(asked) = stage.asked() else { return };
        if self.came.elapsed() < ENDED || self.follow.is_told() {
            return;
        }
        if let Some(live) = asked.current.live().filter(|live| live.is_recording) {
            asked.current.set_live(Some(GrowthStatus { is_recording: false, ..live }));
        }
    }
}

fn told(failure: &OpenFailure) -> String {
    let text = failure.render();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// Says why nothing new is seen.
fn tell(stage: &ServerStage, problem: String) {
    match stage.asked() {
        Some(asked) => {
            if let Some(live) = asked.current.live() {
                asked.current.set_live(Some(GrowthStatus { problem: Some(problem), ..live }));
            }
        }
        None => stage.tell_waiting(problem),
    }
}
