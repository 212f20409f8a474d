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
use crate::roles::{CPU, Role, irq, softirq};
use crate::{
    Analysis, Answer, Event, Histogram, Identity, LaneFacts, Meaning, Merge, Needs, Notes, Question, Setup, Shape,
    SpoolError, Windows, Wishes,
};

/// The analysis.
#[derive(Debug)]
pub struct Irq {
    lanes: Vec<LaneFacts>,
    wishes: Wishes,
}

/// An interrupt on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Source {
    cpu: u32,
    is_hard: bool,
    number: i64,
}

/// The state of an interrupt on a CPU, in a part of the trace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Service {
    /// Its first entry or exit.
    first: Option<First>,
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
enum First {
    Entry,
    Exit(i64),
}

/// A long service or wait: when it began, and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Long {
    begin: i64,
    host: u16,
    source: Source,
}

/// The state of the CPUs of a lane, in a part of the trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaneState {
    services: HashMap<Source, Service>,
    served: Ranking<Long>,
    waited: Ranking<Long>,
}

/// The state behind a part of the trace.
#[derive(Debug, Serialize, Deserialize)]
pub struct State {
    lanes: Vec<LaneState>,
}

/// A lane while it is read.
#[derive(Debug)]
pub struct Lane<'a> {
    scope: Scope<'a>,
    /// The CPU of events that do not say it.
    cpu: u32,
    state: LaneState,
}

/// The scope of a lane.
#[derive(Clone, Copy, Debug)]
struct Scope<'a> {
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
        AnalysisDescription::new("irq", "Interrupts", SENTENCE, OPTIONS).with_examples(
            "kymo irq my-trace\n\
                 kymo irq --by soft --cpu 0 my-trace",
        )
    }

    /// The question that it answers.
    pub(crate) fn question() -> Question<'static> {
        Question::new(Self::needs(), &[Role::IrqEntry, Role::SoftirqEntry], Self::new)
    }

    /// The roles and fields that it needs.
    fn needs() -> Needs {
        use {irq::*, softirq::*};
        Needs {
            roles: vec![
                (Role::IrqEntry, vec![IRQ, IRQ_NAME]),
                (Role::IrqExit, vec![IRQ]),
                (Role::SoftirqRaise, vec![VEC]),
                (Role::SoftirqEntry, vec![VEC]),
                (Role::SoftirqExit, vec![VEC]),
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

    fn scope(&self, lane: usize) -> Scope<'_> {
        Scope { facts: &self.lanes[lane], wishes: &self.wishes }
    }
}

impl Scope<'_> {
    fn is_whole(&self, begin: i64, end: i64) -> bool {
        let holes: &Windows = &self.facts.holes;
        holes.is_empty() || !holes.touch(begin, end)
    }

    fn wants(&self, source: Source, ns: u64) -> bool {
        self.wishes.wants_duration(ns) && self.wants_source(source)
    }

    fn wants_source(&self, source: Source) -> bool {
        self.wants_cpu(source.cpu) && self.wishes.wants_irq(source.is_hard, source.number)
    }

    fn long(&self, source: Source, begin: i64) -> Long {
        Long { begin, host: self.facts.host, source }
    }
}

impl LaneState {
    fn new(wishes: &Wishes) -> Self {
        let longest = || Ranking::new(Some(wishes.top.unwrap_or(TOP)));
        Self { services: HashMap::default(), served: longest(), waited: longest() }
    }
}

impl Service {
    fn entry(&mut self, scope: Scope<'_>, source: Source, time: i64, waited: &mut Ranking<Long>) {
        self.first.get_or_insert(First::Entry);
        self.lost_inside += u64::from(self.open.is_some());
        self.open = Some(time);
        if self.first_entry.is_none() {
            self.first_entry = Some(time);
        } else if let Some(raised) = self.raised.take() {
            self.waited(scope, source, (raised, time), waited);
        }
    }

    fn exit(&mut self, scope: Scope<'_>, source: Source, time: i64, served: &mut Ranking<Long>) {
        match self.open.take() {
            Some(begin) => self.served(scope, source, (begin, time), served),
            None if self.first.is_some() => self.lost_inside += 1,
            None => self.first = Some(First::Exit(time)),
        }
    }

    /// Forgets the counts, but not open or waiting interrupts.
    fn forget(&mut self) {
        // An exit without entry did not begin before the trace any more.
        self.first = self.first.map(|_| First::Entry);
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

    fn served(&mut self, scope: Scope<'_>, source: Source, (begin, end): (i64, i64), served: &mut Ranking<Long>) {
        let ns = begin.abs_diff(end);
        if !scope.is_whole(begin, end) {
            self.lost_inside += 1;
        } else if scope.wants(source, ns) {
            self.durations.record(ns);
            served.push(ns, || scope.long(source, begin));
        }
    }

    fn waited(&mut self, scope: Scope<'_>, source: Source, (begin, end): (i64, i64), waited: &mut Ranking<Long>) {
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
        scope: Scope<'_>,
        source: Source,
        later: Self,
        longest: (&mut Ranking<Long>, &mut Ranking<Long>),
    ) {
        let (served, waited) = longest;
        match later.first {
            None => {}
            Some(First::Entry) => self.lost_inside += u64::from(self.open.is_some()),
            Some(First::Exit(time)) => self.exit(scope, source, time, served),
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

impl Lane<'_> {
    fn take(&mut self, meaning: Meaning<'_>) {
        let event = meaning.event;
        let (is_hard, field) = match meaning.role {
            Role::IrqEntry | Role::IrqExit => (true, irq::IRQ),
            Role::SoftirqRaise | Role::SoftirqEntry | Role::SoftirqExit => (false, softirq::VEC),
            _ => return,
        };
        let Some(number) = meaning.integer(field) else { return };
        let source = Source { cpu: event.cpu().unwrap_or(self.cpu), is_hard, number };
        let (scope, LaneState { services, served, waited }) = (self.scope, &mut self.state);
        let service = services.entry(source).or_default();
        match meaning.role {
            Role::IrqEntry | Role::SoftirqEntry => {
                service.entry(scope, source, event.time, waited);
                if let Some(name) = is_hard.then(|| meaning.text(irq::IRQ_NAME)).flatten() {
                    service.name_it(name, event.time);
                }
            }
            Role::SoftirqRaise => service.raise(event.time),
            _ => service.exit(scope, source, event.time, served),
        }
    }
}

impl Analysis for Irq {
    type State = State;
    type Lane<'a> = Lane<'a>;
    type Note = ();

    fn identity(&self) -> Identity {
        Identity { name: "irq", version: 1 }
    }

    fn shape(&self) -> Shape {
        Shape::Lane
    }

    fn init(&self) -> State {
        State { lanes: vec![LaneState::new(&self.wishes); self.lanes.len()] }
    }

    fn enter(&self, lane: usize) -> Lane<'_> {
        let scope = self.scope(lane);
        let cpu = scope.facts.cpu.unwrap_or(lane as u32);
        Lane { scope, cpu, state: LaneState::new(&self.wishes) }
    }

    fn step(&self, lane: &mut Lane<'_>, event: &Event<'_>, _: &mut Notes<()>) {
        event.roles().for_each(|meaning| lane.take(meaning));
    }

    fn note(&self, _: &mut State, _: usize, _: i64, (): ()) {}

    fn leave(&self, state: &mut State, lane: usize, end: Lane<'_>) {
        state.lanes[lane] = end.state;
    }

    fn merge(&self, left: &mut State, right: State) {
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

    fn forget(&self, state: &mut State, _: i64) -> bool {
        for lane in &mut state.lanes {
            let services = std::mem::take(&mut lane.services);
            *lane = LaneState::new(&self.wishes);
            lane.services = services;
            lane.services.values_mut().for_each(Service::forget);
        }
        true
    }

    fn fits(&self, state: &State) -> bool {
        state.lanes.len() == self.lanes.len()
    }

    fn finish(&self, state: &State) -> Result<Answer, SpoolError> {
        Ok(self.report(state))
    }
}
