//! Several changes of sessions at one moment, as an edit of a policy file makes them.
//!
//! ```text
//! old session   ──────────────────┤ T
//! new session                  ····├──────────────────     it is on before T, and its events begin at T
//! other session  old selection ──┤├── new selection
//! ```

use super::Daemon;
use crate::program::DrainTiming;
use crate::protocol::{EditedSession, RecorderReply, SessionEdit};

impl Daemon {
    /// Makes these changes: no event belongs to two of the sessions that begin and end, or to none.
    pub(super) fn edit(&mut self, who: u64, edits: Vec<SessionEdit>) -> RecorderReply {
        self.find();
        // Events recorded until now follow the old selections.
        self.drain(DrainTiming::Now);
        let mut outcomes = Vec::new();
        for edit in edits {
            let mut outcome = EditedSession::default();
            let done = match edit {
                SessionEdit::Select { session, selection } => self.select(&session, selection),
                SessionEdit::End { session } => {
                    outcome.ends = Some(session);
                    Ok(())
                }
                SessionEdit::Begin { instead_of, options } => self.start(who, *options).map(|(name, notes)| {
                    (outcome.begun, outcome.notes, outcome.ends) = (Some(name), notes, instead_of);
                }),
            };
            outcome.refused = done.err();
            outcomes.push(outcome);
        }
        self.has_changed = true;
        self.find();
        let now = self.clocks.now();
        for session in &mut self.sessions {
            let is_its = |name: &Option<String>| name.as_ref() == Some(&session.name);
            if outcomes.iter().any(|outcome| is_its(&outcome.begun)) {
                session.begins_now_at(now);
                session.keep_again();
            } else if outcomes.iter().any(|outcome| is_its(&outcome.ends)) {
                session.ends_before(now);
            }
        }
        for outcome in &mut outcomes {
            let name = outcome.ends.take();
            outcome.ended = name.and_then(|name| self.end(&name));
        }
        RecorderReply::Edited { outcomes }
    }
}
