//! What filters ask of packets: values of their contexts, which stay the same for all of a packet's events, and
//! whether it is worth reading at all.
//!
//! ```text
//! cpu_id == 3 && next_prio < 5 && time > T     of the class
//! cpu_id == 3 && ?             && time > T     of the packet: never true for cpu_id 2, nor for one that ends before T
//! ```

use std::collections::HashSet;

use kymo_filter::{Path, Step};
use kymo_format::model::Scope;
use kymo_ir::predicate::{Fact, Input, InputClass, InputKind, Number, Operand, Range, Relation, Test};
use kymo_ir::{Op, Predicate, Program, Slot, State, Window, eval};

use super::face::Walk;
use super::fields::{Place, Source};
use crate::builder::Builder;
use crate::decoder::Decoder;
use crate::head::PacketHead;
use crate::lower::{Face, Value};
use crate::plan::BodyFace;
use crate::slots;

/// A field of packets' contexts that is asked for.
#[derive(Debug)]
struct PacketField {
    place: Place,
    kind: InputKind,
    value: Slot,
    present: Slot,
}

/// The part of a filter that is about packets.
#[derive(Debug)]
pub(super) struct PacketPart {
    /// Slots that the decoder has itself.
    base: usize,
    fields: Vec<PacketField>,
    /// Leaves the fields in slots.
    program: Option<Program>,
    /// What the classes ask of packets, each once.
    asked: HashSet<Asked>,
    /// Some class takes everything, or asks nothing of packets.
    is_always_read: bool,
}

/// A predicate of which only what is about packets is left.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Asked {
    predicate: Predicate,
    /// For each input.
    facts: Vec<Of>,
}

/// What an input is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Of {
    /// The event.
    Event,
    /// Its time.
    Cycles,
    /// The packet: value and presence.
    Packet(Slot, Slot),
}

impl PacketPart {
    pub(super) fn new(base: usize) -> Self {
        Self { base, fields: Vec::new(), program: None, asked: HashSet::new(), is_always_read: false }
    }

    /// Some class takes every event.
    pub(super) fn add_always(&mut self) {
        self.is_always_read = true;
    }

    /// What a class asks.
    pub(super) fn add(&mut self, predicate: &Predicate, sources: &[Source]) {
        if self.is_always_read {
            return;
        }
        let facts: Vec<Of> =
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
            test.each_input(&mut |input| is_about |= facts[usize::from(input.0)] != Of::Event);
            is_about
        };
        let root = reduced(predicate.root.clone(), &about_packets, anything);
        let (predicate, used) = Predicate { inputs, root }.part_of_root();
        let facts: Vec<Of> =
            used.iter().map(|input| facts.get(usize::from(input.0)).copied().unwrap_or(Of::Event)).collect();
        if facts.iter().all(|fact| *fact == Of::Event) {
            self.is_always_read = true;
            return;
        }
        self.asked.insert(Asked { predicate, facts });
    }

    fn of(&mut self, source: &Source, input: &InputClass) -> Of {
        match source {
            Source::Cycles => Of::Cycles,
            Source::Field(place) if place.scope != Scope::PacketContext => Of::Event,
            source => {
                let (value, present) = self.both_slots(source, input);
                Of::Packet(value, present)
            }
        }
    }

    /// Where programs find a value of packets, and whether it is there.
    pub(super) fn slots(&mut self, source: &Source, input: &InputClass) -> (Slot, Option<Slot>) {
        let (value, present) = self.both_slots(source, input);
        (value, input.optional.then_some(present))
    }

    fn both_slots(&mut self, source: &Source, input: &InputClass) -> (Slot, Slot) {
        let Source::Field(place) = source else {
            return (slots::STREAM_ID, slots::presence(slots::STREAM_ID).unwrap_or(slots::STREAM_ID));
        };
        if let Some(known) = self.fields.iter().find(|field| field.place == *place) {
            return (known.value, known.present);
        }
        let next = (self.base + 2 * self.fields.len()) as u16;
        let (value, present) = (Slot(next), Slot(next + 1));
        self.fields.push(PacketField { place: place.clone(), kind: input.kind, value, present });
        (value, present)
    }

    /// Writes the program that reads the fields, once all are known.
    pub(super) fn write(&mut self, decoder: &Decoder, stream_class: usize) -> Result<(), crate::LowerError> {
        if !self.fields.is_empty() {
            let mut face = PacketFace { fields: &self.fields, operands: Vec::new(), walk: Walk::new() };
            self.program = Some(decoder.packet_context(stream_class, &mut face)?);
        }
        Ok(())
    }

    /// Leaves the fields of a packet in its state.
    pub(super) fn enter(&self, head: &PacketHead, window: Window<'_>, state: &mut State) {
        state.slots.resize(self.base + 2 * self.fields.len(), 0);
        let Some(program) = &self.program else { return };
        let clock = state.clock;
        // The head was read before: what could be read then can be read again.
        let read = eval::record(program, window, head.context_start, state);
        debug_assert!(read.is_ok(), "{read:?}");
        state.clock = clock;
    }

    /// Whether an event of the packet may be found.
    pub(super) fn may_match(&self, slots: &[u64], times: Option<(u64, u64)>) -> bool {
        self.is_always_read || self.asked.iter().any(|asked| asked.may_be_true(Some(slots), times))
    }

    /// The same, where no more is known than when its events are.
    pub(super) fn may_match_between(&self, times: (u64, u64)) -> bool {
        self.is_always_read || self.asked.iter().any(|asked| asked.may_be_true(None, Some(times)))
    }
}

impl Asked {
    fn may_be_true(&self, slots: Option<&[u64]>, times: Option<(u64, u64)>) -> bool {
        let facts = self.facts.iter().enumerate().map(|(input, of)| {
            let input = Number::Input(Input(input as u16));
            match (of, slots, times) {
                (Of::Cycles, _, Some((first, last))) => {
                    Fact::Integer(Range { lowest: i128::from(first), highest: i128::from(last.max(first)) })
                }
                (Of::Packet(value, present), Some(slots), _) => {
                    let (value, present) = (slots[usize::from(value.0)], slots[usize::from(present.0)]);
                    match present {
                        0 => Fact::Missing,
                        _ if self.predicate.is_real(&input) => Fact::Present,
                        _ => Fact::Integer(Range::single(self.predicate.range(&input).of_bits(value))),
                    }
                }
                _ => Fact::Anything,
            }
        });
        self.predicate.outcomes(&facts.collect::<Vec<_>>()).is_true
    }
}

/// A test in which whatever is not about packets may be anything.
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

/// Reads fields of a packet's context into slots.
struct PacketFace<'a> {
    fields: &'a [PacketField],
    operands: Vec<Operand>,
    walk: Walk,
}

/// The walk itself is the face of the fields: only scopes and the ends concern this one.
impl Face for PacketFace<'_> {
    fn value(&mut self, builder: &mut Builder, value: Value<'_>) {
        Face::value(&mut self.walk, builder, value);
    }
}

impl BodyFace for PacketFace<'_> {
    fn begin(&mut self, builder: &mut Builder) {
        for field in self.fields {
            let operand = self.walk.want(builder, &field.place, field.kind, true);
            self.operands.push(operand);
        }
    }

    fn scope(&mut self, builder: &mut Builder, scope: Scope) {
        self.walk.scope(builder, scope);
    }

    fn end(&mut self, builder: &mut Builder) {
        builder.flush();
        for (field, operand) in self.fields.iter().zip(&self.operands) {
            if let Operand::Number { value, present: Some(present) } = *operand {
                builder.push(Op::Out { slot: field.value, from: value });
                builder.push(Op::Out { slot: field.present, from: present });
            }
        }
    }

    fn as_face(&mut self) -> &mut dyn Face {
        &mut self.walk
    }
}

/// A path as people write it.
pub(super) fn written(path: &Path) -> String {
    let mut text = if path.is_global { "$".to_owned() } else { String::new() };
    for (number, step) in path.steps.iter().enumerate() {
        match step {
            Step::Name(name) => {
                text.push_str(if number > 0 { "." } else { "" });
                text.push_str(name);
            }
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}
