//! Losses of a trace, by reason: in its counters, in its tally, and in the recorder's own events.

use crate::program::ProgramFacts;
use crate::program::run::EventRun;
use crate::program::walk::EventWalk;
use crate::protocol::LostEvents;
use crate::trace::choose::{Choose, chosen};
use crate::trace::own::{LossCause, TraceLoss};
use crate::trace::{Output, add, file_error};

impl Output {
    /// Counts the events of a run that the trace does not have.
    pub(super) fn count_walk(&mut self, program: &ProgramFacts, run: &EventRun<'_>, walk: &EventWalk) {
        self.tally.outside += walk.outside;
        add(&mut self.tally.stepped, walk.stepped);
        add(&mut self.tally.discarded, walk.lost + walk.refused);
        add(&mut self.tally.unwritten, walk.lost);
        add(&mut self.tally.undefined, walk.refused);
        self.say_lost(program, run, LossCause::Undefined, walk.refused);
        self.say_lost(program, run, LossCause::Unwritten, walk.lost);
    }

    /// No class of events can be written: counts the events of a run, as far as they are known.
    pub(super) fn unwalked(
        &mut self,
        program: &ProgramFacts,
        run: &EventRun<'_>,
        windows: &[(u64, u64)],
        choose: &mut dyn Choose,
    ) {
        let events = if self.error.is_some() { chosen(program, run, windows, choose) } else { 0 };
        if events == 0 {
            return self.unreadable(program, run, LossCause::Unwritten, run.bytes.len());
        }
        add(&mut self.tally.discarded, events);
        add(&mut self.tally.unwritten, events);
        self.say_lost(program, run, LossCause::Unwritten, events);
        self.chunk.lose_unwritten(self.own_stream, events);
    }

    /// Says why events are lost that packets of their lane count.
    pub(super) fn say_lost(&mut self, program: &ProgramFacts, run: &EventRun<'_>, why: LossCause, events: u64) {
        if events > 0 {
            let now = self.cycles();
            let (program, lane) = (program.identity.key, run.lane);
            self.own.lost(now, &TraceLoss { program, lane, why, events, events_ever: 0, bytes: 0 });
        }
    }

    pub(super) fn unreadable(&mut self, program: &ProgramFacts, run: &EventRun<'_>, why: LossCause, bytes: usize) {
        add(&mut self.tally.unreadable, bytes as u64);
        let now = self.cycles();
        let (program, lane, bytes) = (program.identity.key, run.lane, bytes as u64);
        self.own.lost(now, &TraceLoss { program, lane, why, events: 0, events_ever: 0, bytes });
    }

    /// Counts losses of a lane in the recorder's own stream.
    pub(super) fn lose_quietly(&mut self, program: &ProgramFacts, lane: u16, events: u64, events_ever: u64) {
        if events > 0 {
            let now = self.cycles();
            let program = program.identity.key;
            let why = if lane == u16::MAX { LossCause::NoLane } else { LossCause::Full };
            self.own.lost(now, &TraceLoss { program, lane, why, events, events_ever, bytes: 0 });
            self.chunk.lose(self.own_stream, events, 0);
        }
    }

    /// Counts losses from before the trace could be begun.
    pub(crate) fn lost_before(&mut self, lost: &LostEvents) {
        let events = lost.events();
        add(&mut self.tally.discarded, events);
        add(&mut self.tally.unwritten, lost.unwritten);
        add(&mut self.tally.no_lane, lost.no_lane);
        add(&mut self.tally.undefined, lost.undefined);
        let causes = [
            (lost.full, LossCause::Full),
            (lost.no_lane, LossCause::NoLane),
            (lost.unwritten, LossCause::Unwritten),
            (lost.undefined, LossCause::Undefined),
        ];
        for (events, why) in causes.into_iter().filter(|(events, _)| *events > 0) {
            let now = self.cycles();
            self.own.lost(now, &TraceLoss { program: 0, lane: u16::MAX, why, events, events_ever: 0, bytes: 0 });
            self.chunk.lose(self.own_stream, events, 0);
        }
    }

    /// Counts events of files that were removed.
    pub(crate) fn look_after_files(&mut self) {
        for (stream, path, events) in self.chunk.removed() {
            let what = if stream == self.own_stream {
                self.tally.own = self.tally.own.saturating_sub(events);
                "was removed while it was written: facts about programs and clocks are lost".to_owned()
            } else {
                self.tally.events = self.tally.events.saturating_sub(events);
                add(&mut self.tally.discarded, events);
                add(&mut self.tally.unwritten, events);
                let are = if events == 1 { "event, which is" } else { "events, which are" };
                format!("was removed while it was written, with {events} {are} counted as lost")
            };
            self.error = Some(file_error(&path, std::io::Error::other(what)).into());
        }
        if let Some((path, bytes)) = self.chunk.truncated().next() {
            let are = if bytes == 1 { "byte of events is" } else { "bytes of events are" };
            let what = format!("was truncated while it was written: {bytes} {are} lost, how many events is not known");
            self.error = Some(file_error(&path, std::io::Error::other(what)).into());
        }
    }
}
