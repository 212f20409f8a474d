//! Selection of the events that a trace has.

use crate::clock::step_max;
use crate::program::run::{EventRun, LaneEnd, RunSink};
use crate::program::walk::{
    self, EventFate, EventTreatment, EventVerdict, EventWalk, JudgeEvents, TickRange, TreatmentTable, WalkStop,
    wanted_parts,
};
use crate::program::{ProgramFacts, ProgramIdentity};
use crate::trace::Output;
use kymo_schema::definition::EventClass;

/// Decision for the events of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassDecision {
    /// The trace wants none of them.
    Drop,
    /// The trace wants all of them.
    Keep,
    /// It depends on the event: [`Choose::passes`].
    Ask,
    /// The same, and some events have a time since their begin.
    AskSince,
}

/// Selects the events that a session wants.
pub trait Choose {
    /// Called once for each class of each program, and again after
    /// [`Output::choose_again`](crate::trace::Output::choose_again).
    fn choose(&mut self, program: &ProgramIdentity, class: &EventClass) -> ClassDecision;

    /// Called for each event of classes that are [`ClassDecision::Ask`] or [`ClassDecision::AskSince`]: its contexts and
    /// its fields, as encoded, and its verdict.
    fn passes(&mut self, event: &AskedEvent<'_>) -> EventFate;

    /// Whether events may be kept with the time since their begin, although no verdict stands before them.
    fn measures(&self) -> bool {
        false
    }

    /// Nanoseconds since the begin of an event with this verdict; `None`: none is known.
    fn since(&self, _: &EventVerdict) -> Option<u64> {
        None
    }

    /// Whether the trace has an event because of its verdict: it has started or stopped recording. Its
    /// class is not [`ClassDecision::Drop`]. `ticks`: its time.
    fn forces(&mut self, _: &ProgramIdentity, _: &EventVerdict, _ticks: u64) -> bool {
        false
    }
}

/// An event that a trace may have.
#[derive(Clone, Copy, Debug)]
pub struct AskedEvent<'e> {
    /// Its program.
    pub program: &'e ProgramIdentity,
    /// Its class.
    pub class: &'e EventClass,
    /// Its contexts, as encoded.
    pub contexts: &'e [u8],
    /// Its fields, as encoded.
    pub fields: &'e [u8],
    /// Its time.
    pub ticks: u64,
    /// What the program says about it.
    pub verdict: Option<&'e EventVerdict>,
}

/// Decides on the events of a walk over a run of a program.
pub(crate) struct RunJudge<'a> {
    pub(crate) program: &'a ProgramFacts,
    /// Ticks of the clock at the begin of the run.
    pub(crate) begin: u64,
    pub(crate) table: &'a TreatmentTable,
    pub(crate) choose: &'a mut dyn Choose,
}

impl JudgeEvents for RunJudge<'_> {
    fn passes(&mut self, id: u16, offset: u32, event: &[u8], verdict: Option<&EventVerdict>) -> EventFate {
        let (contexts, fields) = event.split_at(self.table.context_bytes(event));
        let (program, ticks) = (&self.program.identity, self.begin + u64::from(offset));
        match self.program.events.get(usize::from(id)) {
            Some(Some(class)) => self.choose.passes(&AskedEvent { program, class, contexts, fields, ticks, verdict }),
            _ => EventFate::Drop,
        }
    }

    fn since(&self, verdict: &EventVerdict) -> Option<u64> {
        self.choose.since(verdict)
    }

    fn forces(&mut self, offset: u32, verdict: &EventVerdict) -> bool {
        self.choose.forces(&self.program.identity, verdict, self.begin + u64::from(offset))
    }
}

/// Selects all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Everything;

impl Choose for Everything {
    fn choose(&mut self, _: &ProgramIdentity, _: &EventClass) -> ClassDecision {
        ClassDecision::Keep
    }

    fn passes(&mut self, _: &AskedEvent<'_>) -> EventFate {
        EventFate::Keep
    }
}

/// Sends all events to one trace.
#[derive(Debug)]
pub struct SingleTrace<'o>(pub &'o mut Output);

impl RunSink for SingleTrace<'_> {
    fn take(&mut self, program: &ProgramFacts, run: &EventRun<'_>) {
        self.0.take(program, run, &mut Everything);
    }

    fn end(&mut self, program: &ProgramFacts, end: &LaneEnd) {
        self.0.end(program, end);
    }
}

/// Number of events of a run that would be in a trace that cannot be begun.
pub(crate) fn chosen(
    program: &ProgramFacts,
    run: &EventRun<'_>,
    windows: &[(u64, u64)],
    choose: &mut dyn Choose,
) -> u64 {
    let mut events = 0;
    each_chosen((program, run), windows, choose, &mut None, &mut |_| events += 1);
    events
}

/// Ticks of the events of a run that would be in a trace. A verdict may stand at the end of the run of the lane before this
/// one.
pub(crate) fn each_chosen(
    (program, run): (&ProgramFacts, &EventRun<'_>),
    windows: &[(u64, u64)],
    choose: &mut dyn Choose,
    verdict: &mut Option<EventVerdict>,
    each: &mut dyn FnMut(u64),
) {
    let Some(carried) = walk::carried(program, run.contexts) else { return };
    let (mut bytes, mut table) = (run.bytes.to_vec(), TreatmentTable::new(&carried));
    let mut walk = EventWalk::begin();
    walk.verdict = verdict.take();
    let parts = wanted_parts(run, windows, 0);
    let times = TickRange::of(run, &parts, step_max(program.identity.clock));
    loop {
        let judge = RunJudge { program, begin: run.begin, table: &table, choose };
        let stop = table.walk(&mut bytes, &times, &mut walk, &mut TimeJudge { judge, each });
        let WalkStop::Unknown(id) = stop else { break };
        if let Some(fields) = program.refused.get(&id) {
            table.say(id, fields, EventTreatment::Refuse);
            continue;
        }
        let Some(event) = program.events.get(usize::from(id)).and_then(Option::as_ref) else { break };
        let what = match choose.choose(&program.identity, event) {
            ClassDecision::Drop => EventTreatment::Drop,
            ClassDecision::Keep => EventTreatment::Keep(0),
            ClassDecision::Ask | ClassDecision::AskSince => EventTreatment::Ask(0),
        };
        table.say(id, &event.fields, what);
    }
    *verdict = walk.verdict;
}

/// Notes the times of events that are kept.
struct TimeJudge<'a, 'e> {
    judge: RunJudge<'a>,
    each: &'e mut dyn FnMut(u64),
}

impl JudgeEvents for TimeJudge<'_, '_> {
    fn passes(&mut self, id: u16, offset: u32, event: &[u8], verdict: Option<&EventVerdict>) -> EventFate {
        self.judge.passes(id, offset, event, verdict)
    }

    fn keeps(&mut self, offset: u32) {
        (self.each)(self.judge.begin + u64::from(offset));
    }

    fn forces(&mut self, offset: u32, verdict: &EventVerdict) -> bool {
        self.judge.forces(offset, verdict)
    }
}
