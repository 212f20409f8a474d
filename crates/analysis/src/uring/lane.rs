//! The notes of a CPU: events of io_uring with the thread that ran, and those that tell of threads.

use super::{Completion, Opcode, Runner, SKIPS_COMPLETION, Submission, Uring, UringFact, UringNote, WORKER, works_for};
use crate::events::RoleEvent;
use crate::roles::{EventRole, TID, fork, switch, thread_state, uring};
use crate::threads::is_dead;
use crate::{AnalysisEvent, Comm, EventValue, LaneFacts};

/// A lane while it is read.
#[derive(Debug)]
pub(crate) struct UringLane<'a> {
    facts: &'a LaneFacts,
    number: u32,
    is_any: bool,
    /// By CPU; almost always one.
    cpus: Vec<(u32, Option<Runner>)>,
}

impl<'a> UringLane<'a> {
    pub(crate) fn new(uring: &'a Uring, lane: usize) -> Self {
        Self { facts: &uring.lanes[lane], number: lane as u32, is_any: uring.is_any, cpus: Vec::new() }
    }

    /// An event in one of its roles: its notes go to `tell`.
    #[inline]
    pub(crate) fn step(&mut self, meaning: &RoleEvent<'_>, mut tell: impl FnMut(UringNote)) {
        if !self.is_any {
            return;
        }
        let cpu = self.facts.cpu.or_else(|| meaning.event.cpu()).unwrap_or(self.number);
        if meaning.role == EventRole::Switch {
            return self.switch(cpu, meaning, &mut tell);
        }
        let Some(fact) = fact(meaning) else { return };
        let runner = self.runner(cpu, meaning.event);
        tell(UringNote { cpu, runner, fact });
    }

    /// The thread that an event says, or that the CPU runs.
    fn runner(&self, cpu: u32, event: &AnalysisEvent<'_>) -> Option<Runner> {
        let known = self.cpus.iter().find(|known| known.0 == cpu).and_then(|known| known.1);
        match event.small_context(TID).filter(|&tid| tid > 0) {
            Some(tid) => Some(known.filter(|known| known.tid == tid).unwrap_or(Runner { tid, comm: Comm::default() })),
            None => known,
        }
    }

    fn switch(&mut self, cpu: u32, meaning: &RoleEvent<'_>, tell: &mut impl FnMut(UringNote)) {
        let (Some(prev), Some(next)) = (meaning.small(switch::PREV_TID), meaning.small(switch::NEXT_TID)) else {
            return;
        };
        let at = self.cpus.iter().position(|known| known.0 == cpu).unwrap_or_else(|| {
            self.cpus.push((cpu, None));
            self.cpus.len() - 1
        });
        let before = self.cpus[at].1;
        let prev_comm = meaning.comm(switch::PREV_COMM);
        let runner =
            Runner { tid: next, comm: if next == 0 { Comm::default() } else { meaning.comm(switch::NEXT_COMM) } };
        self.cpus[at].1 = Some(runner);
        let mut say = |runner, fact| tell(UringNote { cpu, runner, fact });
        match before {
            None => say(None, UringFact::First(Runner { tid: prev, comm: prev_comm })),
            Some(before) if before.tid == prev && prev > 0 && before.comm != prev_comm && !prev_comm.is_empty() => {
                say(None, UringFact::Renamed(prev, prev_comm));
            }
            Some(_) => {}
        }
        let state = meaning.integer(switch::PREV_STATE);
        if prev > 0 && state.is_some_and(|state| is_dead(state, self.facts.kernel)) {
            say(None, UringFact::Died(prev));
        }
        if works_for(runner.comm, WORKER).is_some() {
            say(Some(runner), UringFact::Work);
        }
    }

    /// The notes that the part's end makes.
    pub(super) fn last(self) -> impl Iterator<Item = UringNote> {
        let running = self.cpus.into_iter().filter(|(_, runner)| runner.is_some());
        running.map(|(cpu, runner)| UringNote { cpu, runner, fact: UringFact::Last })
    }
}

/// What an event tells that is no switch.
fn fact(meaning: &RoleEvent<'_>) -> Option<UringFact> {
    use uring::{BY_KERNEL, REQUEST, REQUEST_FLAGS, RESULT, RESULT_FLAGS, RING, RING_FD, USER_DATA};
    let tid = |field| meaning.small(field).filter(|&tid| tid > 0);
    let integer = |field| meaning.integer(field).unwrap_or(0);
    Some(match meaning.role {
        EventRole::UringSubmit => UringFact::Submit(Submission {
            ring: integer(RING),
            request: meaning.integer(REQUEST)?,
            user_data: integer(USER_DATA),
            opcode: opcode(meaning.value(uring::OPCODE)),
            is_silent: integer(REQUEST_FLAGS) & SKIPS_COMPLETION != 0,
            is_by_kernel: integer(BY_KERNEL) != 0,
        }),
        EventRole::UringQueue => UringFact::Queue(meaning.integer(REQUEST)?),
        EventRole::UringFile => UringFact::File(meaning.integer(REQUEST)?),
        EventRole::UringComplete => UringFact::Complete(Completion {
            ring: integer(RING),
            request: integer(REQUEST),
            user_data: integer(USER_DATA),
            result: integer(RESULT),
            flags: integer(RESULT_FLAGS),
        }),
        EventRole::UringRing => UringFact::Ring(integer(RING), meaning.integer(RING_FD).is_some()),
        EventRole::BlockIssue => UringFact::Block,
        EventRole::Fork => {
            UringFact::Fork(tid(fork::CHILD_TID)?, meaning.small(fork::CHILD_PID), meaning.comm(fork::CHILD_COMM))
        }
        EventRole::ThreadState => {
            let (pid, comm) = (meaning.small(thread_state::KNOWN_PID), meaning.comm(thread_state::KNOWN_COMM));
            UringFact::Known(tid(thread_state::KNOWN_TID)?, pid, comm)
        }
        _ => return None,
    })
}

/// An opcode has a name, or only its number.
fn opcode(value: Option<EventValue<'_>>) -> Opcode {
    match value {
        Some(EventValue::Text(name)) => Opcode::new(name),
        Some(EventValue::Integer(number)) => Opcode::new(number.to_string().as_bytes()),
        _ => Opcode::default(),
    }
}
