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
        let (mut outcomes, mut ending) = (Vec::new(), Vec::new());
        for edit in edits {
            let mut outcome = EditedSession::default();
            let mut ends = None;
            let done = match edit {
                SessionEdit::Select { session, selection } => self.select(&session, selection),
                SessionEdit::End { session } => {
                    ends = Some(session);
                    Ok(())
                }
                SessionEdit::Begin { instead_of, options } => self.start(who, *options).map(|(name, notes)| {
                    (outcome.begun, outcome.notes, ends) = (Some(name), notes, instead_of);
                }),
            };
            outcome.refused = done.err();
            outcomes.push(outcome);
            ending.push(ends);
        }
        self.has_changed = true;
        self.find();
        let now = self.clocks.now();
        let Self { served, sessions, .. } = self;
        for session in sessions {
            let name = Some(&session.name);
            if outcomes.iter().any(|outcome| outcome.begun.as_ref() == name) {
                session.begins_now_at(now);
                served.iter().for_each(|program| program.count_anew(session));
                session.keep_again();
            } else if ending.iter().any(|ends| ends.as_ref() == name) {
                session.ends_before(now);
            }
        }
        for (outcome, ends) in outcomes.iter_mut().zip(ending) {
            outcome.ended = ends.and_then(|name| self.end(&name));
        }
        self.give_room();
        RecorderReply::Edited { outcomes }
    }
}
