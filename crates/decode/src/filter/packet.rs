//! Questions of filters about packets: values of their contexts, which stay the same for all of a
//! packet's events, and whether it is worth reading at all.
//!
//! ```text
//! cpu_id == 3 && next_prio < 5 && time > T     of the class
//! cpu_id == 3 && ?             && time > T     of the packet: never true for cpu_id 2, nor for one that ends before T
//! ```

use std::collections::HashSet;

use kymo_ir::predicate::{Fact, Input, InputClass, InputKind, Number, Relation, Test, ValueRange};
use kymo_ir::{OutputSlot, PacketWindow, Predicate, ReadProgram, ReadState, eval};

use crate::head::PacketHead;
use crate::names::{NameSource, ScopePath};
use crate::slots;

/// A requested field of packets' contexts.
#[derive(Debug)]
pub(super) struct PacketField {
    pub(super) places: Vec<ScopePath>,
    pub(super) kind: InputKind,
    pub(super) value: OutputSlot,
    pub(super) present: OutputSlot,
}

/// A part of a predicate that is about packets alone, and asks for text: it is settled once for all events of a packet.
#[derive(Debug)]
pub(super) struct PacketTest {
    pub(super) predicate: Predicate,
    pub(super) sources: Vec<NameSource>,
    pub(super) program: Option<ReadProgram>,
    pub(super) value: OutputSlot,
    pub(super) present: OutputSlot,
}

/// The part of a filter that is about packets.
#[derive(Debug)]
pub(super) struct PacketPart {
    /// Slots that the decoder has itself.
    base: usize,
    pub(super) fields: Vec<PacketField>,
    /// Leaves the fields in slots.
    pub(super) program: Option<ReadProgram>,
    pub(super) settled: Vec<PacketTest>,
    /// The questions of the classes about packets, each once.
    asked: HashSet<ReducedPredicate>,
    /// Some class takes everything, or asks nothing of packets.
    is_always_read: bool,
}

/// A predicate reduced to its part about packets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ReducedPredicate {
    predicate: Predicate,
    /// For each input.
    facts: Vec<InputSubject>,
}

/// The object that an input is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum InputSubject {
    /// The event.
    Event,
    /// Its time.
    Cycles,
    /// The packet: value and presence.
    Packet(OutputSlot, OutputSlot),
}

impl PacketPart {
    pub(super) fn new(base: usize) -> Self {
        let (fields, settled) = (Vec::new(), Vec::new());
        Self { base, fields, program: None, settled, asked: HashSet::new(), is_always_read: false }
    }

    /// A predicate in which each test that is about packets alone and asks for text is an input, and where inputs come
    /// from. `Err`: an input that is text of a packet is asked for together with something of the event.
    pub(super) fn settle(
        &mut self,
        predicate: &Predicate,
        sources: &[NameSource],
    ) -> Result<(Predicate, Vec<NameSource>), Input> {
        let mut all = predicate.clone();
        let mut sources = sources.to_vec();
        let root = self.settled(predicate.root.clone(), &mut all.inputs, &mut sources)?;
        let (predicate, used) = Predicate { root, ..all }.part_of_root();
        Ok((predicate, used.iter().map(|input| sources[usize::from(input.0)].clone()).collect()))
    }

    fn settled(
        &mut self,
        mut test: Test,
        inputs: &mut Vec<InputClass>,
        sources: &mut Vec<NameSource>,
    ) -> Result<Test, Input> {
        let (mut text, mut is_of_packet) = (None, true);
        test.each_input(&mut |input| {
            let index = usize::from(input.0);
            let is_inside = sources[index].is_of_packet();
            is_of_packet &= is_inside;
            if is_inside && matches!(inputs[index].kind, InputKind::Text(_)) {
                text = Some(*input);
            }
        });
        let Some(text) = text else { return Ok(test) };
        if is_of_packet {
            return Ok(self.add_settled(test, inputs, sources));
        }
        let mut each = |tests: Vec<Test>| {
            tests.into_iter().map(|test| self.settled(test, inputs, sources)).collect::<Result<Vec<_>, _>>()
        };
        match test {
            Test::All(tests) => Ok(Test::All(each(tests)?)),
            Test::Any(tests) => Ok(Test::Any(each(tests)?)),
            Test::Not(test) => Ok(Test::Not(Box::new(self.settled(*test, inputs, sources)?))),
            _ => Err(text),
        }
    }

    /// The test that asks for the result of a test about packets.
    fn add_settled(&mut self, test: Test, inputs: &mut Vec<InputClass>, sources: &mut Vec<NameSource>) -> Test {
        let (predicate, used) = Predicate { inputs: inputs.clone(), root: test }.part_of_root();
        let of: Vec<NameSource> = used.iter().map(|input| sources[usize::from(input.0)].clone()).collect();
        let is_same = |known: &PacketTest| known.predicate == predicate && known.sources == of;
        let number = self.settled.iter().position(is_same).unwrap_or_else(|| {
            let (value, present) = self.next_slots();
            let (predicate, sources) = (predicate.clone(), of.clone());
            self.settled.push(PacketTest { predicate, sources, program: None, value, present });
            self.settled.len() - 1
        });
        let name = predicate.to_string();
        let name = name.lines().last().unwrap_or_default().into();
        inputs.push(InputClass { name, kind: InputKind::Integer { signed: false, bits: 1 }, optional: true });
        sources.push(NameSource::Settled(number));
        let input = Number::Input(Input(inputs.len() as u16 - 1));
        Test::Compare { relation: Relation::NotEqual, left: input, right: Number::Integer(0) }
    }

    fn next_slots(&self) -> (OutputSlot, OutputSlot) {
        let next = (self.base + 2 * (self.fields.len() + self.settled.len())) as u16;
        (OutputSlot(next), OutputSlot(next + 1))
    }

    /// Some class takes every event.
    pub(super) fn add_always(&mut self) {
        self.is_always_read = true;
    }

    /// Adds the questions of a class.
    pub(super) fn add(&mut self, predicate: &Predicate, sources: &[NameSource]) {
        if self.is_always_read {
            return;
        }
        let facts: Vec<InputSubject> =
            predicate.inputs.iter().zip(sources).map(|(input, source)| self.of(source, input)).collect();
        let mut inputs = predicate.inputs.clone();
        let anything = Input(inputs.len() as u16);
        inputs.push(InputClass {
            name: "?".into(),
            kind: InputKind::Integer { signed: false, bits: 64 },
            optional: true,
        });
        let about_packets = |test: &mut Test| {
            let mut is_about = false;
            test.each_input(&mut |input| is_about |= facts[usize::from(input.0)] != InputSubject::Event);
            is_about
        };
        let root = reduced(predicate.root.clone(), &about_packets, anything);
        let (predicate, used) = Predicate { inputs, root }.part_of_root();
        let facts: Vec<InputSubject> =
            used.iter().map(|input| facts.get(usize::from(input.0)).copied().unwrap_or(InputSubject::Event)).collect();
        if facts.iter().all(|fact| *fact == InputSubject::Event) {
            self.is_always_read = true;
            return;
        }
        self.asked.insert(ReducedPredicate { predicate, facts });
    }

    fn of(&mut self, source: &NameSource, input: &InputClass) -> InputSubject {
        match source {
            NameSource::Cycles => InputSubject::Cycles,
            source if !source.is_of_packet() => InputSubject::Event,
            source => {
                let (value, present) = self.both_slots(source, input);
                InputSubject::Packet(value, present)
            }
        }
    }

    /// Where programs find a value of packets, and whether it is there.
    pub(super) fn slots(&mut self, source: &NameSource, input: &InputClass) -> (OutputSlot, Option<OutputSlot>) {
        let (value, present) = self.both_slots(source, input);
        (value, input.optional.then_some(present))
    }

    fn both_slots(&mut self, source: &NameSource, input: &InputClass) -> (OutputSlot, OutputSlot) {
        let places = match source {
            NameSource::Fields(places) => places,
            NameSource::Settled(number) => return (self.settled[*number].value, self.settled[*number].present),
            NameSource::StreamId | NameSource::Cycles => {
                return (slots::STREAM_ID, slots::presence(slots::STREAM_ID).unwrap_or(slots::STREAM_ID));
            }
        };
        if let Some(known) = self.fields.iter().find(|field| field.places == *places) {
            return (known.value, known.present);
        }
        let (value, present) = self.next_slots();
        self.fields.push(PacketField { places: places.clone(), kind: input.kind, value, present });
        (value, present)
    }

    /// Leaves the fields of a packet in its state.
    pub(super) fn enter(&self, head: &PacketHead, window: PacketWindow<'_>, state: &mut ReadState) {
        state.slots.resize(self.base + 2 * (self.fields.len() + self.settled.len()), 0);
        let clock = state.clock;
        if let Some(program) = &self.program {
            // The head was read before: the same fields can be read again.
            let read = eval::record(program, window, head.context_start, state);
            debug_assert!(read.is_ok(), "{read:?}");
        }
        for settled in &self.settled {
            let Some(program) = &settled.program else { continue };
            let answer = eval::answer(program, window, head.context_start, state);
            let answer = answer.unwrap_or_default();
            state.slots[usize::from(settled.value.0)] = u64::from(answer == Some(true));
            state.slots[usize::from(settled.present.0)] = u64::from(answer.is_some());
        }
        state.clock = clock;
    }

    /// Whether an event of the packet may be found.
    pub(super) fn may_match(&self, slots: &[u64], times: impl FnOnce() -> Option<(u64, u64)>) -> bool {
        if self.is_always_read {
            return true;
        }
        let times = times();
        self.asked.iter().any(|asked| asked.may_be_true(Some(slots), times))
    }

    /// The same, where no more is known than when its events are.
    pub(super) fn may_match_between(&self, times: (u64, u64)) -> bool {
        self.is_always_read || self.asked.iter().any(|asked| asked.may_be_true(None, Some(times)))
    }
}

impl ReducedPredicate {
    fn may_be_true(&self, slots: Option<&[u64]>, times: Option<(u64, u64)>) -> bool {
        let facts = self.facts.iter().enumerate().map(|(input, of)| {
            let input = Number::Input(Input(input as u16));
            match (of, slots, times) {
                (InputSubject::Cycles, _, Some((first, last))) => {
                    Fact::Integer(ValueRange { lowest: i128::from(first), highest: i128::from(last.max(first)) })
                }
                (InputSubject::Packet(value, present), Some(slots), _) => {
                    let (value, present) = (slots[usize::from(value.0)], slots[usize::from(present.0)]);
                    match present {
                        0 => Fact::Missing,
                        _ if self.predicate.is_real(&input) => Fact::Present,
                        _ => Fact::Integer(ValueRange::single(self.predicate.range(&input).of_bits(value))),
                    }
                }
                _ => Fact::Anything,
            }
        });
        self.predicate.outcomes(&facts.collect::<Vec<_>>()).is_true
    }
}

/// A test in which inputs that are not about packets may be anything.
fn reduced(test: Test, is_about: &impl Fn(&mut Test) -> bool, anything: Input) -> Test {
    match test {
        Test::All(tests) => Test::All(tests.into_iter().map(|test| reduced(test, is_about, anything)).collect()),
        Test::Any(tests) => Test::Any(tests.into_iter().map(|test| reduced(test, is_about, anything)).collect()),
        Test::Not(test) => Test::Not(Box::new(reduced(*test, is_about, anything))),
        Test::Constant(value) => Test::Constant(value),
        mut test => {
            if is_about(&mut test) {
                return test;
            }
            Test::Compare { relation: Relation::Equal, left: Number::Input(anything), right: Number::Integer(0) }
        }
    }
}
