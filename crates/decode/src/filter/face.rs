//! Writes the test of one event record class: reads the fields that a predicate needs, and asks
//! each of its parts as soon as the needed values are there.
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
use kymo_ir::predicate::{Input, InputKind, Test};
use kymo_ir::{BoundInputs, InputOperand, NumberSource, Op, Predicate, Reg};

use super::ask;
use super::packet::PacketPart;
use crate::builder::ProgramBuilder;
use crate::lower::{Face, FreshValue};
use crate::names::NameSource;
use crate::plan::BodyFace;
use crate::walk::FieldWalk;

/// A part of the predicate that was not asked yet.
struct PendingTest {
    predicate: Predicate,
    inputs: Vec<Input>,
    /// It needs text.
    is_late: bool,
}

pub(super) struct TestFace<'a> {
    predicate: &'a Predicate,
    sources: &'a [NameSource],
    packet: &'a mut PacketPart,
    walk: FieldWalk,
    /// For each input.
    operands: Vec<InputOperand>,
    questions: Vec<PendingTest>,
    /// It reads a packet's context, not an event.
    is_of_packet: bool,
}

impl<'a> TestFace<'a> {
    /// `sources`: for each input of the predicate.
    pub(super) fn new(predicate: &'a Predicate, sources: &'a [NameSource], packet: &'a mut PacketPart) -> Self {
        let conjuncts = match &predicate.root {
            Test::All(tests) => tests.clone(),
            test => vec![test.clone()],
        };
        let question = |test| {
            let (predicate, inputs) = predicate.part(test);
            let is_late = predicate.inputs.iter().any(|input| matches!(input.kind, InputKind::Text(_)));
            PendingTest { predicate, inputs, is_late }
        };
        let questions = conjuncts.into_iter().map(question).collect();
        let operands = Vec::new();
        Self { predicate, sources, packet, walk: FieldWalk::new(), operands, questions, is_of_packet: false }
    }

    /// The same for a predicate over a packet's context, which is asked once, as a whole.
    pub(super) fn of_packet(predicate: &'a Predicate, sources: &'a [NameSource], packet: &'a mut PacketPart) -> Self {
        let inputs = (0..predicate.inputs.len() as u16).map(Input).collect();
        let questions = vec![PendingTest { predicate: predicate.clone(), inputs, is_late: true }];
        Self { questions, is_of_packet: true, ..Self::new(predicate, sources, packet) }
    }

    /// Asks the questions with known values.
    fn ask(&mut self, builder: &mut ProgramBuilder, at_end: bool) {
        if self.walk.blocks > 0 {
            return;
        }
        let (walk, sources) = (&self.walk, self.sources);
        let is_ready = |question: &PendingTest| {
            let is_there = |input: &Input| walk.is_behind(&sources[usize::from(input.0)]);
            at_end || !question.is_late && question.inputs.iter().all(is_there)
        };
        let (ready, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.questions).into_iter().partition(is_ready);
        self.questions = left;
        for PendingTest { predicate, inputs, .. } in ready {
            let operands = inputs.iter().map(|input| self.operands[usize::from(input.0)]).collect();
            let keep = ask(&mut builder.program, BoundInputs { predicate: Arc::new(predicate), operands });
            builder.push(keep);
        }
    }
}

impl Face for TestFace<'_> {
    fn wants(&self, _: &FieldClass) -> bool {
        self.walk.wants()
    }

    fn value(&mut self, builder: &mut ProgramBuilder, value: FreshValue<'_>) {
        self.walk.value(builder, value);
    }

    fn structure(&mut self, builder: &mut ProgramBuilder, structure: &Structure) {
        Face::structure(&mut self.walk, builder, structure);
    }

    fn member(&mut self, builder: &mut ProgramBuilder, _: &Structure, index: usize) -> bool {
        let wants = self.walk.member(index);
        self.ask(builder, false);
        wants
    }

    fn structure_end(&mut self, builder: &mut ProgramBuilder, structure: &Structure) {
        Face::structure_end(&mut self.walk, builder, structure);
    }

    fn array(&mut self, builder: &mut ProgramBuilder, count: NumberSource, element: &FieldClass) {
        Face::array(&mut self.walk, builder, count, element);
    }

    fn element(&mut self, builder: &mut ProgramBuilder, index: Reg) {
        Face::element(&mut self.walk, builder, index);
    }

    fn array_end(&mut self, builder: &mut ProgramBuilder) {
        Face::array_end(&mut self.walk, builder);
    }

    fn choice(&mut self, builder: &mut ProgramBuilder) {
        Face::choice(&mut self.walk, builder);
    }

    fn present(&mut self, builder: &mut ProgramBuilder, optional: &Optional) {
        Face::present(&mut self.walk, builder, optional);
    }

    fn present_end(&mut self, builder: &mut ProgramBuilder, optional: &Optional) {
        Face::present_end(&mut self.walk, builder, optional);
    }

    fn option(&mut self, builder: &mut ProgramBuilder, variant: &Variant, index: usize) {
        Face::option(&mut self.walk, builder, variant, index);
    }

    fn option_end(&mut self, builder: &mut ProgramBuilder, variant: &Variant, index: usize) {
        Face::option_end(&mut self.walk, builder, variant, index);
    }

    fn choice_end(&mut self, builder: &mut ProgramBuilder) {
        Face::choice_end(&mut self.walk, builder);
    }
}

impl BodyFace for TestFace<'_> {
    fn begin(&mut self, builder: &mut ProgramBuilder) {
        for (input, source) in self.predicate.inputs.iter().zip(self.sources) {
            let operand = match source {
                NameSource::Cycles => {
                    let value = builder.register();
                    builder.push(Op::Cycles { to: value });
                    InputOperand::Number { value, present: None }
                }
                NameSource::Fields(places) if self.is_of_packet || !source.is_of_packet() => {
                    self.walk.want(builder, places, input.kind, input.optional)
                }
                source => {
                    let (value, present) = self.packet.slots(source, input);
                    let mut load = |slot| {
                        let to = builder.register();
                        builder.push(Op::Load { to, slot });
                        to
                    };
                    InputOperand::Number { value: load(value), present: present.map(load) }
                }
            };
            self.operands.push(operand);
        }
        self.ask(builder, false);
    }

    fn scope(&mut self, builder: &mut ProgramBuilder, scope: Scope) {
        BodyFace::scope(&mut self.walk, builder, scope);
        self.ask(builder, false);
    }

    fn end(&mut self, builder: &mut ProgramBuilder) {
        builder.flush();
        self.ask(builder, true);
    }

    fn as_face(&mut self) -> &mut dyn Face {
        self
    }
}
