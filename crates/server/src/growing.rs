//! Traces that grow: looked at again and again as long as somebody writes them, or might.
//!
//! ```text
//! waiting ──first events──> recording ──> ended ──more comes──> recording
//! ```
//!
//! A recorder of ours says when it has ended; of what others write that is guessed, after a while without anything new.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kymo_session::{Follow, Look, OpenFailure, OpenOptions, Session};

use crate::current::Live;
use crate::stage::Host;

/// How often is looked whether there is more.
const INTERVAL: Duration = Duration::from_millis(250);
/// How often is looked whether traces that nobody seems to write have grown.
const QUIET_INTERVAL: Duration = Duration::from_secs(1);
/// Who writes without saying so has ended when nothing came for so long.
const ENDED: Duration = Duration::from_secs(10);

/// Follows traces on a thread of its own, as long as the server runs.
pub(crate) fn follow(host: &Arc<Host>, paths: Vec<PathBuf>, options: OpenOptions) -> std::io::Result<()> {
    let host = Arc::downgrade(host);
    let work = move || {
        let mut following = Following { follow: Follow::new(paths, options), came: Instant::now() };
        while let Some(host) = host.upgrade().filter(|host| !host.stage.is_over()) {
            let goes_on = following.look(&host);
            drop(host);
            if !goes_on {
                return;
            }
            std::thread::sleep(INTERVAL);
        }
    };
    std::thread::Builder::new().name("kymo-follows".to_owned()).spawn(work).map(drop)
}

/// Follows traces that nobody says are recorded, as soon as there is more of them.
pub(crate) fn follow_if_grown(
    host: &Arc<Host>,
    session: &Arc<Session>,
    paths: Vec<PathBuf>,
    options: OpenOptions,
) -> std::io::Result<()> {
    let (host, session) = (Arc::downgrade(host), Arc::clone(session));
    let work = move || {
        while let Some(host) = host.upgrade().filter(|host| !host.stage.is_over()) {
            if session.has_grown() {
                // Who cannot have a thread is told nothing new.
                let _ = follow(&host, paths, options);
                return;
            }
            drop(host);
            std::thread::sleep(QUIET_INTERVAL);
        }
    };
    std::thread::Builder::new().name("kymo-watches".to_owned()).spawn(work).map(drop)
}

struct Following {
    follow: Follow,
    /// When something new was seen last.
    came: Instant,
}

impl Following {
    /// Looks once; whether it is worth while to look again.
    fn look(&mut self, host: &Host) -> bool {
        match self.follow.look() {
            Ok(Look::Nothing) => self.nothing(host),
            Ok(Look::More(window)) => {
                self.came = Instant::now();
                let until = window.end_ns.map(|end| end.saturating_add(1));
                if let Err(failure) = host.stage.grown(&window.session, until) {
                    tell(host, failure.to_string());
                }
                return until.is_some();
            }
            Ok(Look::Over) => return false,
            // What is half written is whole the next time.
            Err(failure) => tell(host, told(&failure)),
        }
        true
    }

    fn nothing(&self, host: &Host) {
        let Some(asked) = host.stage.asked() else { return };
        if self.came.elapsed() < ENDED || self.follow.is_told() {
            return;
        }
        if let Some(live) = asked.current.live().filter(|live| live.is_recording) {
            asked.current.set_live(Some(Live { is_recording: false, ..live }));
        }
    }
}

fn told(failure: &OpenFailure) -> String {
    let text = failure.render();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// Says why nothing new is seen.
fn tell(host: &Host, problem: String) {
    match host.stage.asked() {
        Some(asked) => {
            if let Some(live) = asked.current.live() {
                asked.current.set_live(Some(Live { problem: Some(problem), ..live }));
            }
        }
        None => host.stage.tell_waiting(problem),
    }
}
