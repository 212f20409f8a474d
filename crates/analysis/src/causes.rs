//! `causes`: the requests of threads to the kernel and its disks, at some instants: why they wait
//! afterwards.
//!
//! ```text
//! entry of read, fd 5 │ insert (8,0) 64 ──> issue (8,0) 64..72 ──── the thread sleeps ────> complete ..72 │ wakeup
//! ```
//!
//! The caller says when the call was entered and from when to when requests are of interest, so
//! that little is kept of a part that is read for one thread. Nothing is added up; [`Requests`]
//! matches the steps of a request.

use serde::{Deserialize, Serialize};

use crate::roles::{EventRole, TID, block, syscall_entry};
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, LaneFacts, LaneNotes, Needs, PartShape, Question, RoleEvent,
    Setup, SpoolError,
};

/// The analysis, for one thread that waits.
#[derive(Clone, Debug)]
pub struct Causes {
    /// When the call was entered; `None`: that is not asked.
    pub call_at: Option<i64>,
    /// From when to when requests are of interest, both included; `None`: they are not.
    pub requests: Option<(i64, i64)>,
}

/// The facts from events, in the order of time; with their lanes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CauseState {
    /// Calls that are entered at the instant that was asked for.
    pub calls: Vec<(usize, EnteredCall)>,
    /// The steps of requests.
    pub steps: Vec<(usize, i64, RequestStep)>,
}

/// A call that is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnteredCall {
    /// The thread, if the event says so.
    pub tid: Option<i32>,
    /// The file that it is about, if the event says so.
    pub fd: Option<i64>,
}

/// A step of a request to a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestStep {
    /// It waits, or goes to its device.
    Asked {
        /// It goes to its device.
        is_issued: bool,
        /// The thread that asks, if the event says so.
        tid: Option<i32>,
        /// The sectors that it asks for.
        extent: Extent,
        /// Whether it writes.
        is_write: bool,
    },
    /// The device is done with all up to the end of these.
    Done(Extent),
}

/// Sectors of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// The device's number.
    pub device: i64,
    /// The first of them.
    pub sector: i64,
    /// How many.
    pub sectors: u64,
}

impl Extent {
    fn end(self) -> (i64, i64) {
        (self.device, self.sector.wrapping_add_unsigned(self.sectors))
    }
}

/// A request of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadRequest {
    /// The sectors that it asks for.
    pub extent: Extent,
    /// Whether it writes.
    pub is_write: bool,
    /// When it was asked for.
    pub begin: i64,
    /// When the device was done with it, if that was seen.
    pub end: Option<i64>,
    is_issued: bool,
}

/// The requests of one thread, from the steps of all.
#[derive(Clone, Debug, Default)]
pub struct Requests(Vec<ThreadRequest>);

impl Requests {
    /// Adds a step of a request, in the order of time. Those of the thread are found until it
    /// sleeps: requests at `sleeps` or before.
    pub fn step(&mut self, time: i64, step: RequestStep, (tid, sleeps): (i32, i64)) {
        let Self(known) = self;
        match step {
            RequestStep::Asked { is_issued, tid: of, extent, is_write } => {
                let start = (extent.device, extent.sector);
                let is_it = |known: &&mut ThreadRequest| {
                    !known.is_issued && known.end.is_none() && (known.extent.device, known.extent.sector) == start
                };
                match known.iter_mut().find(is_it).filter(|_| is_issued) {
                    // While it waited, others were added to it.
                    Some(known) => (known.extent, known.is_issued) = (extent, true),
                    None if of == Some(tid) && time <= sleeps => {
                        known.push(ThreadRequest { extent, is_write, begin: time, end: None, is_issued });
                    }
                    None => {}
                }
            }
            RequestStep::Done(extent) => {
                let is_it = |known: &&mut ThreadRequest| known.end.is_none() && known.extent.end() == extent.end();
                if let Some(known) = known.iter_mut().find(is_it) {
                    known.end = Some(time);
                }
            }
        }
    }

    /// Those that were not done when the thread began to sleep.
    #[must_use]
    pub fn open_at(self, sleeps: i64) -> Vec<ThreadRequest> {
        self.0.into_iter().filter(|request| request.end.is_none_or(|end| sleeps <= end)).collect()
    }
}

impl Causes {
    /// The question that it answers.
    #[must_use]
    pub fn question() -> Question<'static> {
        Question::new(Self::needs(), &[], Self::new)
    }

    /// Roles and fields that it needs.
    fn needs() -> Needs {
        use block::*;
        let asked = vec![DEV, SECTOR, SECTORS, BYTES, RWBS, BLOCK_TID];
        Needs {
            roles: vec![
                (EventRole::SyscallEntry, vec![syscall_entry::FD]),
                (EventRole::BlockInsert, asked.clone()),
                (EventRole::BlockIssue, asked),
                (EventRole::BlockComplete, vec![DEV, SECTOR, SECTORS, BYTES]),
            ],
            context: vec![TID],
            ..Needs::default()
        }
    }

    /// The analysis before its question is known.
    #[must_use]
    pub fn new(_: &Setup<'_>) -> Self {
        Self { call_at: None, requests: None }
    }
}

/// The note of an event.
#[derive(Clone, Copy, Debug)]
pub enum CauseNote {
    /// A call is entered.
    Call(EnteredCall),
    /// Something becomes of a request.
    Step(RequestStep),
}

fn small(number: Option<i64>) -> Option<i32> {
    number.and_then(|number| i32::try_from(number).ok())
}

fn step(meaning: &RoleEvent<'_>) -> Option<RequestStep> {
    let (device, sector) = (meaning.integer(block::DEV)?, meaning.integer(block::SECTOR)?);
    let extent = Extent { device, sector, sectors: crate::block::sectors(*meaning) };
    let asked = |is_issued| RequestStep::Asked {
        is_issued,
        tid: meaning.small(block::BLOCK_TID).or_else(|| small(meaning.event.context(TID))),
        extent,
        is_write: crate::block::is_write(meaning.value(block::RWBS)),
    };
    match meaning.role {
        EventRole::BlockInsert => Some(asked(false)),
        EventRole::BlockIssue => Some(asked(true)),
        EventRole::BlockComplete => Some(RequestStep::Done(extent)),
        _ => None,
    }
}

impl Analysis for Causes {
    type State = CauseState;
    type Lane<'a> = ();
    type Note = CauseNote;

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "causes", version: 1 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> CauseState {
        CauseState::default()
    }

    fn enter(&self, _: usize) {}

    fn step(&self, (): &mut (), event: &AnalysisEvent<'_>, notes: &mut LaneNotes<CauseNote>) {
        let (is_call, is_between) = (
            self.call_at == Some(event.time),
            self.requests.is_some_and(|(begin, end)| (begin..=end).contains(&event.time)),
        );
        if !is_call && !is_between {
            return;
        }
        for meaning in event.roles() {
            if meaning.role == EventRole::SyscallEntry {
                if is_call {
                    let fd = meaning.integer(syscall_entry::FD);
                    notes.push(event.time, CauseNote::Call(EnteredCall { tid: event.small_context(TID), fd }));
                }
            } else if let Some(step) = step(&meaning).filter(|_| is_between) {
                notes.push(event.time, CauseNote::Step(step));
            }
        }
    }

    fn note(&self, state: &mut CauseState, lane: usize, time: i64, note: CauseNote) {
        match note {
            CauseNote::Call(call) => state.calls.push((lane, call)),
            CauseNote::Step(step) => state.steps.push((lane, time, step)),
        }
    }

    fn leave(&self, _: &mut CauseState, _: usize, (): ()) {}

    fn merge(&self, left: &mut CauseState, right: CauseState) {
        left.calls.extend(right.calls);
        left.steps.extend(right.steps);
    }

    /// There is nothing to be shown of it by itself.
    fn finish(&self, _: &CauseState) -> Result<Answer, SpoolError> {
        Ok(Answer::default())
    }
}

/// Whether any event of a machine may have one of some roles.
#[must_use]
pub fn has_any<'a>(classes: impl IntoIterator<Item = &'a crate::BoundClass>, roles: &[EventRole]) -> bool {
    classes.into_iter().any(|class| class.roles.iter().any(|bound| roles.contains(&bound.role)))
}

/// The machine of a lane among others that have the same data streams.
#[must_use]
pub fn host_of(lane: &LaneFacts, lanes: &[LaneFacts]) -> Option<u16> {
    let stream = lane.streams.first()?;
    lanes.iter().find(|known| known.streams.contains(stream)).map(|known| known.host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(sector: i64, sectors: u64) -> Extent {
        Extent { device: 8 << 20, sector, sectors }
    }

    fn asked(is_issued: bool, tid: i32, extent: Extent) -> RequestStep {
        RequestStep::Asked { is_issued, tid: Some(tid), extent, is_write: false }
    }

    /// Thread 7 makes a request that waits, grows and ends after it slept. Requests of others,
    /// earlier ones and later ones do not count.
    #[test]
    fn requests_are_those_of_the_thread_that_were_open_when_it_slept() {
        let steps = [
            (1, asked(true, 7, extent(0, 8))),
            (2, RequestStep::Done(extent(0, 8))),
            (3, asked(false, 7, extent(64, 8))),
            (4, asked(true, 9, extent(512, 8))),
            (5, asked(true, 9, extent(64, 16))),
            (6, asked(true, 7, extent(1024, 8))),
            (8, asked(true, 7, extent(2048, 8))),
            (9, RequestStep::Done(extent(72, 8))),
            (10, RequestStep::Done(extent(512, 8))),
        ];
        let mut requests = Requests::default();
        steps.into_iter().for_each(|(time, step)| requests.step(time, step, (7, 7)));
        let open: Vec<_> =
            requests.open_at(7).iter().map(|request| (request.begin, request.extent, request.end)).collect();
        assert_eq!(open, [(3, extent(64, 16), Some(9)), (6, extent(1024, 8), None)]);
    }
}
