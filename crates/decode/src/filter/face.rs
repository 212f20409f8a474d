//! Writes the test of one event record class: reads the fields that a predicate needs, and asks each of its parts as
//! soon as what it needs is there.
//!
//! ```text
//! next_prio < 5 && prev_comm == "kworker*" && cycles > 7
//!
//! r0 = cycles   keep (cycles > 7)   ...   r5 = read +32   keep (next_prio < 5)   ...   keep (prev_comm ...)
//! ```
//!
//! Numbers are asked at once, texts at the end, in the order that the predicate has them.

use std::sync::Arc;

use kymo_format::model::{FieldClass, Optional, Scope, Structure, Variant};
use kymo_ir::predicate::{Bound, Input, InputKind, Operand, Test};
use kymo_ir::{Op, Predicate, Reg, Source as Count};

use super::ask;
use super::fields::{Part, Place, Source};
use super::packet::PacketPart;
use crate::builder::Builder;
use crate::lower::{Face, Value};
use crate::plan::BodyFace;

/// A field that is needed.
struct Wanted {
    place: Place,
    operand: Operand,
}

/// A part of the predicate that was not asked yet.
struct Question {
    predicate: Predicate,
    inputs: Vec<Input>,
    /// It needs text.
    is_late: bool,
}

pub(super) struct TestFace<'a> {
    predicate: &'a Predicate,
    sources: &'a [Source],
    packet: &'a mut PacketPart,
    walk: Walk,
    /// For each input.
    operands: Vec<Operand>,
    questions: Vec<Question>,
    /// It reads a packet's context, not an event.
    is_of_packet: bool,
}

/// Where the walk over fields is, and what it looks for.
pub(super) struct Walk {
    wanted: Vec<Wanted>,
    place: Place,
    /// The running index of each array that is open.
    indexes: Vec<Option<Reg>>,
    /// Loops and choices that are open.
    blocks: usize,
}

impl<'a> TestFace<'a> {
    /// `sources`: for each input of the predicate.
    pub(super) fn new(predicate: &'a Predicate, sources: &'a [Source], packet: &'a mut PacketPart) -> Self {
        let conjuncts = match &predicate.root {
            Test::All(tests) => tests.clone(),
            test => vec![test.clone()],
        };
        let question = |test| {
            let (predicate, inputs) = predicate.part(test);
            let is_late = predicate.inputs.iter().any(|input| matches!(input.kind, InputKind::Text(_)));
            Question { predicate, inputs, is_late }
        };
        let questions = conjuncts.into_iter().map(question).collect();
        let operands = Vec::new();
        Self { predicate, sources, packet, walk: Walk::new(), operands, questions, is_of_packet: false }
    }

    /// The same for a predicate over a packet's context, which is asked once, as a whole.
    pub(super) fn of_packet(predicate: &'a Predicate, sources: &'a [Source], packet: &'a mut PacketPart) -> Self {
        let inputs = (0..predicate.inputs.len() as u16).map(Input).collect();
        let questions = vec![Question { predicate: predicate.clone(), inputs, is_late: true }];
        Self { questions, is_of_packet: true, ..Self::new(predicate, sources, packet) }
    }

    /// Asks what can be asked now.
    fn ask(&mut self, builder: &mut Builder, at_end: bool) {
        if self.walk.blocks > 0 {
            return;
        }
        let (walk, sources) = (&self.walk, self.sources);
        let is_ready = |question: &Question| {
            let is_there = |input: &Input| walk.is_behind(&sources[usize::from(input.0)]);
            at_end || !question.is_late && question.inputs.iter().all(is_there)
        };
        let (ready, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.questions).into_iter().partition(is_ready);
        self.questions = left;
        for Question { predicate, inputs, .. } in ready {
            let operands = inputs.iter().map(|input| self.operands[usize::from(input.0)]).collect();
            let keep = ask(&mut builder.program, Bound { predicate: Arc::new(predicate), operands });
            builder.push(keep);
        }
    }
}

impl Walk {
    pub(super) fn new() -> Self {
        let place = Place { scope: Scope::PacketHeader, parts: Vec::new() };
        Self { wanted: Vec::new(), place, indexes: Vec::new(), blocks: 0 }
    }

    /// Looks for a field too: registers for its value, which has no value yet.
    pub(super) fn want(&mut self, builder: &mut Builder, places: &[Place], kind: InputKind, optional: bool) -> Operand {
        // The registers may have been used for a record's header.
        let present = optional.then(|| builder.register());
        cleared(builder, present);
        let operand = match kind {
            InputKind::Text(_) => {
                let (start, length) = (builder.register(), builder.register());
                // Text from inside of a loop or a choice is empty before.
                let mut parts = places.iter().flat_map(|place| &place.parts);
                let is_inside = parts.any(|part| !matches!(part, Part::Member(_)));
                cleared(builder, is_inside.then_some(length));
                Operand::Text { start, length, present }
            }
            InputKind::Integer { .. } | InputKind::Real => Operand::Number { value: builder.register(), present },
        };
        self.wanted.extend(places.iter().map(|place| Wanted { place: place.clone(), operand }));
        operand
    }

    /// Whether the walk has passed what the value comes from.
    fn is_behind(&self, source: &Source) -> bool {
        match source {
            Source::Fields(places) => source.is_of_packet() || places.iter().all(|place| *place < self.place),
            Source::Cycles | Source::StreamId | Source::Settled(_) => true,
        }
    }

    /// Whether something at or below the current field is wanted.
    fn wants(&self) -> bool {
        self.wanted.iter().any(|wanted| leads_to(&self.place, &wanted.place))
    }

    /// Puts a value where it is wanted.
    fn value(&self, builder: &mut Builder, value: Value<'_>) {
        for wanted in self.wanted.iter().filter(|wanted| is_at(&self.place, &wanted.place)) {
            let mut ops = Vec::new();
            take(&mut ops, value, wanted.operand);
            // Of all elements of an array the one that is asked for.
            let elements = wanted.place.parts.iter().filter_map(|part| match part {
                Part::Element(element) => Some(*element),
                _ => None,
            });
            for (element, index) in elements.zip(self.indexes.iter().flatten()) {
                let arms = vec![(vec![(element, element)], ops)];
                ops = vec![Op::Switch { on: *index, signed: false, arms, default: Some(Vec::new()) }];
            }
            ops.into_iter().for_each(|op| builder.push(op));
        }
    }
}

/// Sets a register to 0, if there is one.
fn cleared(builder: &mut Builder, register: Option<Reg>) {
    if let Some(to) = register {
        builder.push(Op::Set { to, value: 0 });
    }
}

/// Whether the way to `wanted` leads through `place`.
fn leads_to(place: &Place, wanted: &Place) -> bool {
    place.scope == wanted.scope
        && place.parts.len() <= wanted.parts.len()
        && place.parts.iter().zip(&wanted.parts).all(|(part, wanted)| is_same(part, wanted))
}

fn is_at(place: &Place, wanted: &Place) -> bool {
    place.parts.len() == wanted.parts.len() && leads_to(place, wanted)
}

/// A loop's body stands for all elements.
fn is_same(part: &Part, wanted: &Part) -> bool {
    part == wanted || matches!((part, wanted), (Part::Element(_), Part::Element(_)))
}

/// What copies a value into the registers of an operand.
fn take(ops: &mut Vec<Op>, value: Value<'_>, operand: Operand) {
    let present = match (value, operand) {
        (Value::Text { start: from, length: bytes, .. }, Operand::Text { start, length, present }) => {
            ops.extend([Op::Copy { to: start, from }, Op::Copy { to: length, from: bytes }]);
            present
        }
        (Value::Real { register, width }, Operand::Number { value, present }) => {
            ops.push(Op::Double { to: value, from: register, width });
            present
        }
        (Value::Boolean { register }, Operand::Number { value, present }) => {
            let is = |of: u64| vec![Op::Set { to: value, value: of }];
            let arms = vec![(vec![(0, 0)], is(0))];
            ops.push(Op::Switch { on: register, signed: false, arms, default: Some(is(1)) });
            present
        }
        (
            Value::Integer { register, .. } | Value::BitArray { register, .. } | Value::BitMap { register, .. },
            Operand::Number { value, present },
        ) => {
            ops.push(Op::Copy { to: value, from: register });
            present
        }
        // The field's kind said what it is.
        _ => None,
    };
    ops.extend(present.map(|to| Op::Set { to, value: 1 }));
}

/// The walk over fields as every face of it sees them: only the places differ in what they do with values.
impl Walk {
    fn member(&mut self, index: usize) -> bool {
        if let Some(last) = self.place.parts.last_mut() {
            *last = Part::Member(index);
        }
        self.wants()
    }
}

impl Face for Walk {
    fn wants(&self, _: &FieldClass) -> bool {
        Self::wants(self)
    }

    fn value(&mut self, builder: &mut Builder, value: Value<'_>) {
        Self::value(self, builder, value);
    }

    fn structure(&mut self, _: &mut Builder, _: &Structure) {
        self.place.parts.push(Part::Member(0));
    }

    fn member(&mut self, _: &mut Builder, _: &Structure, index: usize) -> bool {
        Self::member(self, index)
    }

    fn structure_end(&mut self, _: &mut Builder, _: &Structure) {
        self.place.parts.pop();
    }

    fn array(&mut self, _: &mut Builder, _: Count, _: &FieldClass) {
        self.place.parts.push(Part::Element(0));
        self.indexes.push(None);
        self.blocks += 1;
    }

    fn element(&mut self, _: &mut Builder, index: Reg) {
        if let Some(last) = self.indexes.last_mut() {
            *last = Some(index);
        }
    }

    fn array_end(&mut self, _: &mut Builder) {
        self.place.parts.pop();
        self.indexes.pop();
        self.blocks -= 1;
    }

    fn choice(&mut self, _: &mut Builder) {
        self.blocks += 1;
    }

    fn present(&mut self, _: &mut Builder, _: &Optional) {
        self.place.parts.push(Part::Content);
    }

    fn present_end(&mut self, _: &mut Builder, _: &Optional) {
        self.place.parts.pop();
    }

    fn option(&mut self, _: &mut Builder, _: &Variant, index: usize) {
        self.place.parts.push(Part::Option(index));
    }

    fn option_end(&mut self, _: &mut Builder, _: &Variant, _: usize) {
        self.place.parts.pop();
    }

    fn choice_end(&mut self, _: &mut Builder) {
        self.blocks -= 1;
    }
}

impl BodyFace for Walk {
    fn scope(&mut self, _: &mut Builder, scope: Scope) {
        self.place = Place { scope, parts: Vec::new() };
    }

    fn as_face(&mut self) -> &mut dyn Face {
        self
    }
}

impl Face for TestFace<'_> {
    fn wants(&self, _: &FieldClass) -> bool {
        self.walk.wants()
    }

    fn value(&mut self, builder: &mut Builder, value: Value<'_>) {
        self.walk.value(builder, value);
    }

    fn structure(&mut self, builder: &mut Builder, structure: &Structure) {
        Face::structure(&mut self.walk, builder, structure);
    }

    fn member(&mut self, builder: &mut Builder, _: &Structure, index: usize) -> bool {
        let wants = self.walk.member(index);
        self.ask(builder, false);
        wants
    }

    fn structure_end(&mut self, builder: &mut Builder, structure: &Structure) {
        Face::structure_end(&mut self.walk, builder, structure);
    }

    fn array(&mut self, builder: &mut Builder, count: Count, element: &FieldClass) {
        Face::array(&mut self.walk, builder, count, element);
    }

    fn element(&mut self, builder: &mut Builder, index: Reg) {
        Face::element(&mut self.walk, builder, index);
    }

    fn array_end(&mut self, builder: &mut Builder) {
        Face::array_end(&mut self.walk, builder);
    }

    fn choice(&mut self, builder: &mut Builder) {
        Face::choice(&mut self.walk, builder);
    }

    fn present(&mut self, builder: &mut Builder, optional: &Optional) {
        Face::present(&mut self.walk, builder, optional);
    }

    fn present_end(&mut self, builder: &mut Builder, optional: &Optional) {
        Face::present_end(&mut self.walk, builder, optional);
    }

    fn option(&mut self, builder: &mut Builder, variant: &Variant, index: usize) {
        Face::option(&mut self.walk, builder, variant, index);
    }

    fn option_end(&mut self, builder: &mut Builder, variant: &Variant, index: usize) {
        Face::option_end(&mut self.walk, builder, variant, index);
    }

    fn choice_end(&mut self, builder: &mut Builder) {
        Face::choice_end(&mut self.walk, builder);
    }
}

impl BodyFace for TestFace<'_> {
    fn begin(&mut self, builder: &mut Builder) {
        for (input, source) in self.predicate.inputs.iter().zip(self.sources) {
            let operand = match source {
                Source::Cycles => {
                    let value = builder.register();
                    builder.push(Op::Cycles { to: value });
                    Operand::Number { value, present: None }
                }
                Source::Fields(places) if self.is_of_packet || !source.is_of_packet() => {
                    self.walk.want(builder, places, input.kind, input.optional)
                }
                source => {
                    let (value, present) = self.packet.slots(source, input);
                    let mut load = |slot| {
                        let to = builder.register();
                        builder.push(Op::Load { to, slot });
                        to
                    };
                    Operand::Number { value: load(value), present: present.map(load) }
                }
            };
            self.operands.push(operand);
        }
        self.ask(builder, false);
    }

    fn scope(&mut self, builder: &mut Builder, scope: Scope) {
        BodyFace::scope(&mut self.walk, builder, scope);
        self.ask(builder, false);
    }

    fn end(&mut self, builder: &mut Builder) {
        builder.flush();
        self.ask(builder, true);
    }

    fn as_face(&mut self) -> &mut dyn Face {
        self
    }
}
