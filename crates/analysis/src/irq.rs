//! `irq`: how long CPUs serve interrupts, and how long softirqs wait until they are served.
//!
//! ```text
//! CPU 0   irq 17 ├──────────────┤            softirq 3 (net)   raise ─ wait ─ ├─ served ─┤
//!         irq 18      ├────┤     nested
//! ```
//!
//! A CPU does not serve the same interrupt twice at a time, so each number on each CPU is on its
//! own: it is entered, and left. A part of the trace does not know the entry of its first exit; it
//! keeps that until it is merged. CPUs have nothing to do with each other.

mod report;
#[cfg(test)]
mod tests;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::description::{AnalysisDescription, SupportedOptions};
use crate::ranking::Ranking;
use crate::roles::{CPU, EventRole, irq, softirq};
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, Histogram, LaneFacts, LaneNotes, Merge, Needs, PartShape,
    Question, RoleEvent, Setup, SpoolError, Windows, Wishes,
};

/// The analysis.
#[derive(Debug)]
pub struct Irq {
    lanes: Vec<LaneFacts>,
    wishes: Wishes,
}

/// An interrupt on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct IrqSource {
    cpu: u32,
    is_hard: bool,
    number: i64,
}

/// The state of an interrupt on a CPU, in a part of the trace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Service {
    /// Its first entry or exit.
    first: Option<FirstEdge>,
    /// It is being served since then.
    open: Option<i64>,
    /// How long it was served, where that is certain.
    durations: Histogram,
    lost_inside: u64,
    raises: u64,
    /// Its first raise, if that was before its first entry.
    first_raise: Option<i64>,
    first_entry: Option<i64>,
    /// Its first raise since its last entry, if there was an entry.
    raised: Option<i64>,
    /// How long it waited, where that is certain.
    waits: Histogram,
    /// Its name, and when that was said last.
    name: Vec<u8>,
    named: Option<i64>,
}

/// The first entry or exit.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum FirstEdge {
    Entry,
    Exit(i64),
}

/// A long service or wait: when it began, and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct LongIrq {
    begin: i64,
    host: u16,
    source: IrqSource,
}

/// The state of the CPUs of a lane, in a part of the trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IrqLaneState {
    services: HashMap<IrqSource, Service>,
    served: Ranking<LongIrq>,
    waited: Ranking<LongIrq>,
}

/// The state behind a part of the trace.
#[derive(Debug, Serialize, Deserialize)]
pub struct IrqState {
    lanes: Vec<IrqLaneState>,
}

/// A lane while it is read.
#[derive(Debug)]
pub struct IrqLane<'a> {
    scope: IrqScope<'a>,
    /// The CPU of events that do not say it.
    cpu: u32,
    state: IrqLaneState,
}

/// The scope of a lane.
#[derive(Clone, Copy, Debug)]
struct IrqScope<'a> {
    facts: &'a LaneFacts,
    wishes: &'a Wishes,
}

/// The default number of rows in tables of the longest ones.
const TOP: usize = 10;

impl Irq {
    /// The description that people see before they ask.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions = SupportedOptions {
            by: &["hard", "soft", "top", "irq"],
            threads: false,
            interrupts: true,
            ..SupportedOptions::COMMON
        };
        const SENTENCE: &str = "Durations of interrupts and softirqs, and how long softirqs waited";
        AnalysisDescription::new("irq", "Interrupts", SENTENCE, OPTIONS)
            .with_examples(
                "kymo irq my-trace\n\
                 kymo irq --by soft --cpu 0 my-trace",
            )
            .with_view(&["hard", "soft", "top"], Self::headline)
    }

    /// The question that it answers.
    pub(crate) fn question() -> Question<'static> {
        Question::new(Self::needs(), &[EventRole::IrqEntry, EventRole::SoftirqEntry], Self::new)
    }

    /// The roles and fields that it needs.
    fn needs() -> Needs {
        use {irq::*, softirq::*};
        Needs {
            roles: vec![
                (EventRole::IrqEntry, vec![IRQ, IRQ_NAME]),
                (EventRole::IrqExit, vec![IRQ]),
                (EventRole::SoftirqRaise, vec![VEC]),
                (EventRole::SoftirqEntry, vec![VEC]),
                (EventRole::SoftirqExit, vec![VEC]),
            ],
            context: vec![CPU],
            ..Needs::default()
        }
    }

    /// The analysis of these lanes.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        Self { lanes: setup.lanes.to_vec(), wishes: setup.wishes.clone() }
    }

    fn scope(&self, lane: usize) -> IrqScope<'_> {
        IrqScope { facts: &self.lanes[lane], wishes: &self.wishes }
    }
}

impl IrqScope<'_> {
    fn is_whole(&self, begin: i64, end: i64) -> bool {
        let holes: &Windows = &self.facts.holes;
        holes.is_empty() || !holes.touch(begin, end)
    }

    fn wants(&self, source: IrqSource, ns: u64) -> bool {
        self.wishes.wants_duration(ns) && self.wants_source(source)
    }

    fn wants_source(&self, source: IrqSource) -> bool {
        self.wants_cpu(source.cpu) && self.wishes.wants_irq(source.is_hard, source.number)
    }

    fn long(&self, source: IrqSource, begin: i64) -> LongIrq {
        LongIrq { begin, host: self.facts.host, source }
    }
}

impl IrqLaneState {
    fn new(wishes: &Wishes) -> Self {
        let longest = || Ranking::new(Some(wishes.top.unwrap_or(TOP)));
        Self { services: HashMap::default(), served: longest(), waited: longest() }
    }
}

impl Service {
    fn entry(&mut self, scope: IrqScope<'_>, source: IrqSource, time: i64, waited: &mut Ranking<LongIrq>) {
        self.first.get_or_insert(FirstEdge::Entry);
        self.lost_inside += u64::from(self.open.is_some());
        self.open = Some(time);
        if self.first_entry.is_none() {
            self.first_entry = Some(time);
        } else if let Some(raised) = self.raised.take() {
            self.waited(scope, source, (raised, time), waited);
        }
    }

    fn exit(&mut self, scope: IrqScope<'_>, source: IrqSource, time: i64, served: &mut Ranking<LongIrq>) {
        match self.open.take() {
            Some(begin) => self.served(scope, source, (begin, time), served),
            None if self.first.is_some() => self.lost_inside += 1,
            None => self.first = Some(FirstEdge::Exit(time)),
        }
    }

    /// Forgets the counts, but not open or waiting interrupts.
    fn forget(&mut self) {
        // An exit without entry did not begin before the trace any more.
        self.first = self.first.map(|_| FirstEdge::Entry);
        if self.first_entry.is_some() {
            self.first_raise = None;
        }
        (self.durations, self.waits) = (Histogram::default(), Histogram::default());
        (self.lost_inside, self.raises) = (0, 0);
    }

    fn raise(&mut self, time: i64) {
        self.raises += 1;
        let raised = if self.first_entry.is_some() { &mut self.raised } else { &mut self.first_raise };
        raised.get_or_insert(time);
    }

    fn served(
        &mut self,
        scope: IrqScope<'_>,
        source: IrqSource,
        (begin, end): (i64, i64),
        served: &mut Ranking<LongIrq>,
    ) {
        let ns = begin.abs_diff(end);
        if !scope.is_whole(begin, end) {
            self.lost_inside += 1;
        } else if scope.wants(source, ns) {
            self.durations.record(ns);
            served.push(ns, || scope.long(source, begin));
        }
    }

    fn waited(
        &mut self,
        scope: IrqScope<'_>,
        source: IrqSource,
        (begin, end): (i64, i64),
        waited: &mut Ranking<LongIrq>,
    ) {
        let ns = begin.abs_diff(end);
        if scope.is_whole(begin, end) && scope.wants(source, ns) {
            self.waits.record(ns);
            waited.push(ns, || scope.long(source, begin));
        }
    }

    fn name_it(&mut self, name: &[u8], time: i64) {
        self.named = Some(time);
        if self.name != name {
            name.clone_into(&mut self.name);
        }
    }

    /// Adds the part that follows; that knows now whether it was being served, and since when it
    /// was raised.
    fn append(
        &mut self,
        scope: IrqScope<'_>,
        source: IrqSource,
        later: Self,
        longest: (&mut Ranking<LongIrq>, &mut Ranking<LongIrq>),
    ) {
        let (served, waited) = longest;
        match later.first {
            None => {}
            Some(FirstEdge::Entry) => self.lost_inside += u64::from(self.open.is_some()),
            Some(FirstEdge::Exit(time)) => self.exit(scope, source, time, served),
        }
        if later.first.is_some() {
            self.first = self.first.or(later.first);
            self.open = later.open;
        }
        let raised = if self.first_entry.is_some() { self.raised } else { self.first_raise }.or(later.first_raise);
        match (self.first_entry, later.first_entry) {
            (None, entry) => (self.first_raise, self.first_entry, self.raised) = (raised, entry, later.raised),
            (Some(_), None) => self.raised = raised,
            (Some(_), Some(entry)) => {
                if let Some(raised) = raised {
                    self.waited(scope, source, (raised, entry), waited);
                }
                self.raised = later.raised;
            }
        }
        self.durations.merge(later.durations);
        self.waits.merge(later.waits);
        self.lost_inside += later.lost_inside;
        self.raises += later.raises;
        if later.named.is_some() {
            (self.name, self.named) = (later.name, later.named);
        }
    }
}

impl IrqLane<'_> {
    fn take(&mut self, meaning: RoleEvent<'_>) {
        let event = meaning.event;
        let (is_hard, field) = match meaning.role {
            EventRole::IrqEntry | EventRole::IrqExit => (true, irq::IRQ),
            EventRole::SoftirqRaise | EventRole::SoftirqEntry | EventRole::SoftirqExit => (false, softirq::VEC),
            _ => return,
        };
        let Some(number) = meaning.integer(field) else { return };
        let source = IrqSource { cpu: event.cpu().unwrap_or(self.cpu), is_hard, number };
        let (scope, IrqLaneState { services, served, waited }) = (self.scope, &mut self.state);
        let service = services.entry(source).or_default();
        match meaning.role {
            EventRole::IrqEntry | EventRole::SoftirqEntry => {
                service.entry(scope, source, event.time, waited);
                if let Some(name) = is_hard.then(|| meaning.text(irq::IRQ_NAME)).flatten() {
                    service.name_it(name, event.time);
                }
            }
            EventRole::SoftirqRaise => service.raise(event.time),
            _ => service.exit(scope, source, event.time, served),
        }
    }
}

impl Analysis for Irq {
    type State = IrqState;
    type Lane<'a> = IrqLane<'a>;
    type Note = ();

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "irq", version: 1 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Lane
    }

    fn init(&self) -> IrqState {
        IrqState { lanes: vec![IrqLaneState::new(&self.wishes); self.lanes.len()] }
    }

    fn enter(&self, lane: usize) -> IrqLane<'_> {
        let scope = self.scope(lane);
        let cpu = scope.facts.cpu.unwrap_or(lane as u32);
        IrqLane { scope, cpu, state: IrqLaneState::new(&self.wishes) }
    }

    fn step(&self, lane: &mut IrqLane<'_>, event: &AnalysisEvent<'_>, _: &mut LaneNotes<()>) {
        event.roles().for_each(|meaning| lane.take(meaning));
    }

    fn note(&self, _: &mut IrqState, _: usize, _: i64, (): ()) {}

    fn leave(&self, state: &mut IrqState, lane: usize, end: IrqLane<'_>) {
        state.lanes[lane] = end.state;
    }

    fn merge(&self, left: &mut IrqState, right: IrqState) {
        for (lane, later) in right.lanes.into_iter().enumerate() {
            let (scope, known) = (self.scope(lane), &mut left.lanes[lane]);
            for (source, service) in later.services {
                let longest = (&mut known.served, &mut known.waited);
                known.services.entry(source).or_default().append(scope, source, service, longest);
            }
            known.served.merge(later.served);
            known.waited.merge(later.waited);
        }
    }

    fn forget(&self, state: &mut IrqState, _: i64) -> bool {
        for lane in &mut state.lanes {
            let services = std::mem::take(&mut lane.services);
            *lane = IrqLaneState::new(&self.wishes);
            lane.services = services;
            lane.services.values_mut().for_each(Service::forget);
        }
        true
    }

    fn fits(&self, state: &IrqState) -> bool {
        state.lanes.len() == self.lanes.len()
    }

    fn finish(&self, state: &IrqState) -> Result<Answer, SpoolError> {
        Ok(self.report(state))
    }
}
