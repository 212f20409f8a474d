//! The walk over the fields of a record that looks for some of them, and leaves their values in registers, for tests, or
//! in columns, for readers.
//!
//! ```text
//! wanted: payload[2] -> r7, payload[4][3] -> column 0
//!
//! payload[0]   payload[1]   payload[2]     payload[3]   payload[4]
//!  passed over  passed over  read; r7 = r1  passed over  repeat { read; if the index is 3: store 0 r2 }
//! ```

use kymo_format::model::{FieldClass, Optional, Scope, Structure, Variant};
use kymo_ir::predicate::InputKind;
use kymo_ir::{CellType, InputOperand, NumberSource, Op, ProgramColumn, Reg};

use crate::builder::ProgramBuilder;
use crate::lower::{Face, FreshValue};
use crate::names::{NameSource, ScopePath, ScopePathPart};
use crate::plan::BodyFace;

/// A field that is needed.
struct NeededField {
    place: ScopePath,
    target: ValueTarget,
}

/// Where the value of a field goes.
#[derive(Clone, Copy)]
enum ValueTarget {
    Registers(InputOperand),
    Column(u16),
}

/// The position of the walk over fields, and its target.
pub(crate) struct FieldWalk {
    wanted: Vec<NeededField>,
    place: ScopePath,
    /// The running index of each array that is open.
    indexes: Vec<Option<Reg>>,
    /// Loops and choices that are open.
    pub(crate) blocks: usize,
}

impl FieldWalk {
    pub(crate) fn new() -> Self {
        let place = ScopePath { scope: Scope::PacketHeader, parts: Vec::new() };
        Self { wanted: Vec::new(), place, indexes: Vec::new(), blocks: 0 }
    }

    /// Looks for a field too: registers for its value, which has no value yet.
    pub(crate) fn want(
        &mut self,
        builder: &mut ProgramBuilder,
        places: &[ScopePath],
        kind: InputKind,
        optional: bool,
    ) -> InputOperand {
        // The registers may have been used for a record's header.
        let present = optional.then(|| builder.register());
        cleared(builder, present);
        let operand = match kind {
            InputKind::Text(_) => {
                let (start, length) = (builder.register(), builder.register());
                // Text from inside a loop or a choice is empty before.
                let mut parts = places.iter().flat_map(|place| &place.parts);
                let is_inside = parts.any(|part| !matches!(part, ScopePathPart::Member(_)));
                cleared(builder, is_inside.then_some(length));
                InputOperand::Text { start, length, present }
            }
            InputKind::Integer { .. } | InputKind::Real => InputOperand::Number { value: builder.register(), present },
        };
        self.add(places, ValueTarget::Registers(operand));
        operand
    }

    /// Looks for a field too: a column of table 0 for its value, of which some rows stay empty if it is optional.
    pub(crate) fn store(
        &mut self,
        builder: &mut ProgramBuilder,
        places: &[ScopePath],
        kind: InputKind,
        optional: bool,
    ) {
        let cell = if matches!(kind, InputKind::Text(_)) { CellType::Span } else { CellType::U64 };
        let columns = &mut builder.program.columns;
        columns.push(ProgramColumn { table: 0, cell, nullable: optional });
        let column = (columns.len() - 1) as u16;
        self.add(places, ValueTarget::Column(column));
    }

    fn add(&mut self, places: &[ScopePath], target: ValueTarget) {
        self.wanted.extend(places.iter().map(|place| NeededField { place: place.clone(), target }));
    }

    /// Whether the walk has passed the value's source.
    pub(crate) fn is_behind(&self, source: &NameSource) -> bool {
        match source {
            NameSource::Fields(places) => source.is_of_packet() || places.iter().all(|place| *place < self.place),
            NameSource::Cycles | NameSource::StreamId | NameSource::Settled(_) => true,
        }
    }

    /// Whether a value at or below the current field is wanted.
    pub(crate) fn wants(&self) -> bool {
        self.wanted.iter().any(|wanted| leads_to(&self.place, &wanted.place))
    }

    /// Puts a value where it is wanted.
    pub(crate) fn value(&self, builder: &mut ProgramBuilder, value: FreshValue<'_>) {
        for wanted in self.wanted.iter().filter(|wanted| is_at(&self.place, &wanted.place)) {
            let mut ops = Vec::new();
            match wanted.target {
                ValueTarget::Registers(operand) => take(&mut ops, value, operand),
                ValueTarget::Column(column) => store(builder, &mut ops, value, column),
            }
            // Of all elements of an array the one that is asked for.
            let elements = wanted.place.parts.iter().filter_map(|part| match part {
                ScopePathPart::Element(element) => Some(*element),
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
fn cleared(builder: &mut ProgramBuilder, register: Option<Reg>) {
    if let Some(to) = register {
        builder.push(Op::Set { to, value: 0 });
    }
}

/// Whether the way to `wanted` leads through `place`.
fn leads_to(place: &ScopePath, wanted: &ScopePath) -> bool {
    place.scope == wanted.scope
        && place.parts.len() <= wanted.parts.len()
        && place.parts.iter().zip(&wanted.parts).all(|(part, wanted)| is_same(part, wanted))
}

fn is_at(place: &ScopePath, wanted: &ScopePath) -> bool {
    place.parts.len() == wanted.parts.len() && leads_to(place, wanted)
}

/// A loop's body represents all elements.
fn is_same(part: &ScopePathPart, wanted: &ScopePathPart) -> bool {
    part == wanted || matches!((part, wanted), (ScopePathPart::Element(_), ScopePathPart::Element(_)))
}

/// The operations that copy a value into the registers of an operand.
fn take(ops: &mut Vec<Op>, value: FreshValue<'_>, operand: InputOperand) {
    let present = match (value, operand) {
        (FreshValue::Text { start: from, length: bytes, .. }, InputOperand::Text { start, length, present }) => {
            ops.extend([Op::Copy { to: start, from }, Op::Copy { to: length, from: bytes }]);
            present
        }
        (FreshValue::Real { register, width }, InputOperand::Number { value, present }) => {
            ops.push(Op::Double { to: value, from: register, width });
            present
        }
        (FreshValue::Boolean { register }, InputOperand::Number { value, present }) => {
            let is = |of: u64| vec![Op::Set { to: value, value: of }];
            let arms = vec![(vec![(0, 0)], is(0))];
            ops.push(Op::Switch { on: register, signed: false, arms, default: Some(is(1)) });
            present
        }
        (
            FreshValue::Integer { register, .. }
            | FreshValue::BitArray { register, .. }
            | FreshValue::BitMap { register, .. },
            InputOperand::Number { value, present },
        ) => {
            ops.push(Op::Copy { to: value, from: register });
            present
        }
        // The field's kind tells its type.
        _ => None,
    };
    ops.extend(present.map(|to| Op::Set { to, value: 1 }));
}

/// The operations that write a value into a column's cell.
fn store(builder: &mut ProgramBuilder, ops: &mut Vec<Op>, value: FreshValue<'_>, column: u16) {
    match value {
        FreshValue::Text { start, length, .. } => ops.push(Op::StoreSpan { column, start, length }),
        FreshValue::Integer { register, .. }
        | FreshValue::BitArray { register, .. }
        | FreshValue::BitMap { register, .. } => {
            ops.push(Op::Store { column, from: register });
        }
        FreshValue::Real { .. } | FreshValue::Boolean { .. } => {
            let from = builder.register();
            take(ops, value, InputOperand::Number { value: from, present: None });
            ops.push(Op::Store { column, from });
            builder.release(from);
        }
        // The field's kind said that it is no blob.
        FreshValue::Blob { .. } => {}
    }
}

/// The walk over fields as every face of it sees them: only the places differ in their use of
/// values.
impl FieldWalk {
    pub(crate) fn member(&mut self, index: usize) -> bool {
        if let Some(last) = self.place.parts.last_mut() {
            *last = ScopePathPart::Member(index);
        }
        self.wants()
    }
}

impl Face for FieldWalk {
    fn wants(&self, _: &FieldClass) -> bool {
        Self::wants(self)
    }

    fn value(&mut self, builder: &mut ProgramBuilder, value: FreshValue<'_>) {
        Self::value(self, builder, value);
    }

    fn structure(&mut self, _: &mut ProgramBuilder, _: &Structure) {
        self.place.parts.push(ScopePathPart::Member(0));
    }

    fn member(&mut self, _: &mut ProgramBuilder, _: &Structure, index: usize) -> bool {
        Self::member(self, index)
    }

    fn structure_end(&mut self, _: &mut ProgramBuilder, _: &Structure) {
        self.place.parts.pop();
    }

    fn array(&mut self, _: &mut ProgramBuilder, _: NumberSource, _: &FieldClass) {
        self.place.parts.push(ScopePathPart::Element(0));
        self.indexes.push(None);
        self.blocks += 1;
    }

    fn element(&mut self, _: &mut ProgramBuilder, index: Reg) {
        if let Some(last) = self.indexes.last_mut() {
            *last = Some(index);
        }
    }

    fn array_end(&mut self, _: &mut ProgramBuilder) {
        self.place.parts.pop();
        self.indexes.pop();
        self.blocks -= 1;
    }

    fn choice(&mut self, _: &mut ProgramBuilder) {
        self.blocks += 1;
    }

    fn present(&mut self, _: &mut ProgramBuilder, _: &Optional) {
        self.place.parts.push(ScopePathPart::Content);
    }

    fn present_end(&mut self, _: &mut ProgramBuilder, _: &Optional) {
        self.place.parts.pop();
    }

    fn option(&mut self, _: &mut ProgramBuilder, _: &Variant, index: usize) {
        self.place.parts.push(ScopePathPart::Option(index));
    }

    fn option_end(&mut self, _: &mut ProgramBuilder, _: &Variant, _: usize) {
        self.place.parts.pop();
    }

    fn choice_end(&mut self, _: &mut ProgramBuilder) {
        self.blocks -= 1;
    }
}

impl BodyFace for FieldWalk {
    fn scope(&mut self, _: &mut ProgramBuilder, scope: Scope) {
        self.place = ScopePath { scope, parts: Vec::new() };
    }

    fn as_face(&mut self) -> &mut dyn Face {
        self
    }
}
