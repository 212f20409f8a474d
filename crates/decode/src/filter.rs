//! Filters in the read program: which records of a data stream class are found at all.
//!
//! ```text
//! expression ── for each event record class ──> never, always, or a test: a program that reads the fields it
//!                                               needs and asks as soon as it has them
//!            ── for each packet ──────────────> may one of its records be found? else it is not read
//! ```
//!
//! The tests become part of the scan, so that a dropped record costs no more than the tests that
//! decide it.

mod alike;
mod context;
mod face;
mod packet;

use std::collections::HashMap;
use std::sync::Arc;

use kymo_filter::{Binding, Filter, FilterProblem, Verdict};
use kymo_format::model::EventRecordClass;
use kymo_ir::{
    BoundInputs, ClassTest, Op, PacketWindow, Predicate, ReadProgram, ReadState, Records, ScanPlan, ScanStop, eval,
};

use crate::decoder::{Decoder, LazyScan};
use crate::lower::LowerError;
use crate::names::{EventClassFields, FilterFacts, NameSource};

use self::alike::ExpressionMeanings;
use self::face::TestFace;
use self::packet::PacketPart;

/// The wanted events of a data stream class.
#[derive(Debug)]
pub struct StreamFilter {
    decoder: Arc<Decoder>,
    stream_class: usize,
    plan: Arc<ScanPlan>,
    scan: LazyScan,
    packet: PacketPart,
    outcomes: Vec<ClassOutcome>,
    /// For each test, whether it asks for the CPU of packets and for ids of streams, and for nothing else.
    is_of_streams: Vec<bool>,
}

/// Which events of a class are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    /// Those for which the expression is true.
    Asked,
    /// All.
    All,
}

/// The meaning of a filter for one event record class.
#[derive(Clone, Debug)]
pub enum ClassOutcome {
    /// Its name is not among the wanted ones.
    NotSelected,
    /// There is no expression, or it is asked, always true, or never: see [`Binding::verdict`].
    Bound(Option<Arc<Binding>>),
    /// The expression cannot be typed there: no event is kept.
    Untyped(Vec<FilterProblem>),
}

impl StreamFilter {
    /// Binds an expression to every event record class of a data stream class for which `selected`
    /// returns true.
    ///
    /// # Errors
    ///
    /// A field class that cannot be decoded.
    pub fn new(
        decoder: &Arc<Decoder>,
        stream_class: usize,
        filter: Option<&Filter>,
        selected: &dyn Fn(&EventRecordClass) -> bool,
        facts: &FilterFacts<'_>,
    ) -> Result<Self, LowerError> {
        let selected = |_: usize, event: &EventRecordClass| selected(event).then_some(Selected::Asked);
        Self::keeping(decoder, stream_class, filter, &selected, facts)
    }

    /// As [`StreamFilter::new`], with classes of which all events are found, for example those that say which thread a CPU runs.
    /// `selected` gets the place of a class, too.
    ///
    /// # Errors
    ///
    /// A field class that cannot be decoded.
    pub fn keeping(
        decoder: &Arc<Decoder>,
        stream_class: usize,
        filter: Option<&Filter>,
        selected: &dyn Fn(usize, &EventRecordClass) -> Option<Selected>,
        facts: &FilterFacts<'_>,
    ) -> Result<Self, LowerError> {
        let stream = decoder.stream_class(stream_class);
        let plan = ScanPlan::clone(&decoder.plan.streams[stream_class].scan);
        let packet = PacketPart::new(decoder.slot_count());
        let (known, is_of_streams) = (HashMap::new(), Vec::new());
        let mut making = FilterBuilder { decoder, stream_class, plan, packet, known, is_of_streams };
        let mut meanings = filter.map(ExpressionMeanings::new);
        let mut outcomes = Vec::with_capacity(stream.event_classes.len());
        for (number, event) in stream.event_classes.iter().enumerate() {
            let (outcome, test) = match (selected(number, event), &mut meanings) {
                (None, _) => (ClassOutcome::NotSelected, ClassTest::Never),
                (Some(Selected::All), _) | (_, None) => (ClassOutcome::Bound(None), ClassTest::Always),
                (Some(Selected::Asked), Some(meanings)) => making.class(number, meanings, facts)?,
            };
            if test == ClassTest::Always {
                making.packet.add_always();
            }
            outcomes.push(outcome);
            making.plan.class_test.push(test);
        }
        let FilterBuilder { plan, mut packet, is_of_streams, .. } = making;
        context::write(&mut packet, decoder, stream_class)?;
        let decoder = Arc::clone(decoder);
        Ok(Self {
            decoder,
            stream_class,
            plan: Arc::new(plan),
            scan: LazyScan::default(),
            packet,
            outcomes,
            is_of_streams,
        })
    }

    /// The outcome for each event record class.
    #[must_use]
    pub fn outcomes(&self) -> &[ClassOutcome] {
        &self.outcomes
    }

    /// Which events of each class are found.
    #[must_use]
    pub fn class_tests(&self) -> &[ClassTest] {
        &self.plan.class_test
    }

    /// The program that asks, for a class that has one.
    #[must_use]
    pub fn test(&self, event_class: usize) -> Option<&ReadProgram> {
        match self.plan.class_test.get(event_class)? {
            ClassTest::Test(test) => self.plan.tests.get(*test as usize),
            ClassTest::Always | ClassTest::Never => None,
        }
    }

    /// Whether the answer of the expression is the same for all events of a class in a data stream: it asks for nothing, or
    /// for the CPU of packets and for ids of streams.
    #[must_use]
    pub fn asks_stream_alone(&self, event_class: usize) -> bool {
        match self.plan.class_test[event_class] {
            ClassTest::Test(test) => self.is_of_streams[test as usize],
            ClassTest::Always | ClassTest::Never => true,
        }
    }

    /// The filter finds no event in any packet.
    #[must_use]
    pub fn is_never(&self) -> bool {
        self.plan.class_test.iter().all(|test| *test == ClassTest::Never)
    }

    /// Prepares a packet's state: leaves the packet's values that tests need.
    pub fn enter(&self, head: &crate::PacketHead, window: PacketWindow<'_>, state: &mut ReadState) {
        self.packet.enter(head, window, state);
    }

    /// Whether events may be found in a packet with a prepared state; `times`: the cycles of its
    /// first and last event are not outside of these.
    pub fn may_match(&self, state: &ReadState, times: impl FnOnce() -> Option<(u64, u64)>) -> bool {
        self.packet.may_match(&state.slots, times)
    }

    /// Whether events may be found in a packet of which no more is known than its times.
    #[must_use]
    pub fn may_match_between(&self, times: (u64, u64)) -> bool {
        self.packet.may_match_between(times)
    }

    /// As [`Decoder::scan`], for the events that are wanted.
    pub fn scan(
        &self,
        window: PacketWindow<'_>,
        position: &mut u64,
        state: &mut ReadState,
        records: &mut Records,
        limit: usize,
    ) -> ScanStop {
        self.decoder.scan_plan(&self.plan, &self.scan, window, position, state, records, limit)
    }

    /// Whether a record that was found without the filter is wanted. `state` was prepared by [`StreamFilter::enter`].
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn keeps(
        &self,
        event_class: usize,
        window: PacketWindow<'_>,
        position: u64,
        cycles: u64,
        state: &mut ReadState,
    ) -> Result<bool, kymo_ir::ProgramFault> {
        match self.plan.class_test[event_class] {
            ClassTest::Always => Ok(true),
            ClassTest::Never => Ok(false),
            ClassTest::Test(test) => {
                state.clock = cycles;
                eval::keeps(&self.plan.tests[test as usize], window, position, state)
            }
        }
    }

    /// The decoder that reads the packets.
    #[must_use]
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// The data stream class that it is made for.
    #[must_use]
    pub fn stream_class(&self) -> usize {
        self.stream_class
    }
}

/// A filter being made.
struct FilterBuilder<'a> {
    decoder: &'a Decoder,
    stream_class: usize,
    plan: ScanPlan,
    packet: PacketPart,
    /// Tests that classes share.
    known: HashMap<ReadProgram, u32>,
    /// See [`StreamFilter`].
    is_of_streams: Vec<bool>,
}

impl FilterBuilder<'_> {
    /// The meaning of the expression for a class.
    fn class(
        &mut self,
        number: usize,
        meanings: &mut ExpressionMeanings<'_>,
        facts: &FilterFacts<'_>,
    ) -> Result<(ClassOutcome, ClassTest), LowerError> {
        let stream = self.decoder.stream_class(self.stream_class);
        let fields = EventClassFields::new(self.decoder.trace_class(), stream, &stream.event_classes[number], facts);
        let filter = meanings.filter();
        let (alike, binding) = meanings.of(&fields);
        let binding = match binding {
            Ok(binding) => binding,
            Err(problems) => return Ok((ClassOutcome::Untyped(problems), ClassTest::Never)),
        };
        if let Some(test) = alike.test() {
            return Ok((ClassOutcome::Bound(Some(binding)), test));
        }
        let test = match binding.verdict() {
            Verdict::AlwaysTrue => ClassTest::Always,
            Verdict::NeverTrue => ClassTest::Never,
            Verdict::Depends => {
                let sources = fields.sources(&binding.keys);
                let mut asked = binding.predicate.inputs.iter().zip(&sources);
                let is_of_streams = asked.all(|(input, source)| is_of_stream(&input.name, source));
                let (predicate, sources) = match self.packet.settle(&binding.predicate, &sources) {
                    Ok(settled) => settled,
                    Err(input) => {
                        let name = &binding.predicate.inputs[usize::from(input.0)].name;
                        let problem = filter.text_of_packet(name);
                        return Ok((ClassOutcome::Untyped(vec![problem]), ClassTest::Never));
                    }
                };
                let test = self.test(number, &predicate, &sources)?;
                self.is_of_streams.resize(self.plan.tests.len(), is_of_streams);
                test
            }
        };
        alike.remember(test);
        Ok((ClassOutcome::Bound(Some(binding)), test))
    }

    /// The program that asks a predicate.
    fn test(&mut self, number: usize, predicate: &Predicate, sources: &[NameSource]) -> Result<ClassTest, LowerError> {
        self.packet.add(predicate, sources);
        let mut face = TestFace::new(predicate, sources, &mut self.packet);
        let program = trimmed(self.decoder.body(self.stream_class, number, &mut face)?);
        let next = self.plan.tests.len() as u32;
        let test = *self.known.entry(program).or_insert_with_key(|program| {
            self.plan.tests.push(program.clone());
            next
        });
        Ok(ClassTest::Test(test))
    }
}

/// Whether an input is the same for all packets of a stream: its id, or the CPU that recorded it.
fn is_of_stream(name: &str, source: &NameSource) -> bool {
    let is_cpu = name.rsplit('.').next() == Some("cpu_id");
    *source == NameSource::StreamId || is_cpu && source.is_of_packet()
}

/// Without the operations behind the last question.
fn trimmed(mut program: ReadProgram) -> ReadProgram {
    let last = program.body.iter().rposition(|op| matches!(op, Op::Keep { .. }));
    program.body.truncate(last.map_or(0, |last| last + 1));
    program
}

/// Adds a question to a program.
fn ask(program: &mut ReadProgram, bound: BoundInputs) -> Op {
    program.predicates.push(bound);
    Op::Keep { predicate: (program.predicates.len() - 1) as u16 }
}
