//! Walks the field classes of some scopes in the order of the bytes and writes the program that reads them.
//!
//! A [`Face`] decides the use of the values: nothing (the scan only moves on), columns, or text.
//! Lengths and selectors are kept in registers here, for every face:
//!
//! ```text
//! len: u8, items: u32[len]      r0 = read 0 +8      kept: somebody refers to it
//!                               repeat r0 { align 32; need 32; r1 = read 0 +32; face(r1) }
//! ```

use std::collections::{HashMap, HashSet};

use kymo_format::model::{
    DynamicArray, FieldClass, FieldKind, FieldPath, FieldPathStep, FixedBits, IntegerMeaning, IntegerRange, Optional,
    Role, Scope, Structure, TextEncoding, Variant,
};
use kymo_ir::{BitPhase, NumberSource, Op, Reg};

use crate::builder::{Bits, ProgramBuilder, join, loop_phase};
use crate::measure;
use crate::scopes::Scopes;
use crate::slots::{self, SlotMap};

/// A value that was just read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FreshValue<'a> {
    /// An integer or an enumeration, of a fixed width or LEB128 (`None`).
    Integer { register: Reg, width: Option<u8>, meaning: &'a IntegerMeaning },
    /// True if not zero.
    Boolean { register: Reg },
    /// Bits.
    BitArray { register: Reg, width: u8 },
    /// Bits with names.
    BitMap { register: Reg, map: &'a kymo_format::model::BitMap },
    /// A real number's bits: 16, 32 or 64.
    Real { register: Reg, width: u8 },
    /// Text: first byte, bytes.
    Text { start: Reg, length: Reg, encoding: TextEncoding },
    /// Bytes: first byte, bytes.
    Blob { start: Reg, length: Reg },
}

/// The operations on the fields of a record.
pub(crate) trait Face {
    /// Whether anything below this field matters; if not, nothing of it is reported.
    fn wants(&self, class: &FieldClass) -> bool {
        let _ = class;
        true
    }
    /// A value.
    fn value(&mut self, builder: &mut ProgramBuilder, value: FreshValue<'_>);
    /// Members follow.
    fn structure(&mut self, builder: &mut ProgramBuilder, structure: &Structure) {
        let _ = (builder, structure);
    }
    /// The field that follows is this member; false: it is not wanted.
    fn member(&mut self, builder: &mut ProgramBuilder, structure: &Structure, index: usize) -> bool {
        let _ = (builder, structure, index);
        true
    }
    /// No more members.
    fn structure_end(&mut self, builder: &mut ProgramBuilder, structure: &Structure) {
        let _ = (builder, structure);
    }
    /// `count` elements follow, written once as a loop's body.
    fn array(&mut self, builder: &mut ProgramBuilder, count: NumberSource, element: &FieldClass) {
        let _ = (builder, count, element);
    }
    /// The field that follows is the element `index`.
    fn element(&mut self, builder: &mut ProgramBuilder, index: Reg) {
        let _ = (builder, index);
    }
    /// The element is complete.
    fn element_end(&mut self, builder: &mut ProgramBuilder) {
        let _ = builder;
    }
    /// Behind the loop.
    fn array_end(&mut self, builder: &mut ProgramBuilder) {
        let _ = builder;
    }
    /// An optional or a variant follows: blocks of which one is run.
    fn choice(&mut self, builder: &mut ProgramBuilder) {
        let _ = builder;
    }
    /// An optional's content follows, in a block of its own.
    fn present(&mut self, builder: &mut ProgramBuilder, optional: &Optional) {
        let _ = (builder, optional);
    }
    /// The content is complete.
    fn present_end(&mut self, builder: &mut ProgramBuilder, optional: &Optional) {
        let _ = (builder, optional);
    }
    /// An optional has no content, in a block of its own.
    fn absent(&mut self, builder: &mut ProgramBuilder, optional: &Optional) {
        let _ = (builder, optional);
    }
    /// A variant's option follows, in a block of its own.
    fn option(&mut self, builder: &mut ProgramBuilder, variant: &Variant, index: usize) {
        let _ = (builder, variant, index);
    }
    /// The option is complete.
    fn option_end(&mut self, builder: &mut ProgramBuilder, variant: &Variant, index: usize) {
        let _ = (builder, variant, index);
    }
    /// Behind an optional or a variant.
    fn choice_end(&mut self, builder: &mut ProgramBuilder) {
        let _ = builder;
    }
}

/// Nothing is done: the program only finds where the fields end.
pub(crate) struct Passing;

impl Face for Passing {
    fn wants(&self, _: &FieldClass) -> bool {
        false
    }
    fn value(&mut self, _: &mut ProgramBuilder, _: FreshValue<'_>) {}
}

/// The effect of roles while the fields of a scope are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoleEffects {
    /// Nothing: the scope was read before.
    Ignored,
    /// Slots are written; fields mapped to the stream's clock (index into the clock classes) update it.
    Followed { clock: Option<usize> },
}

/// The walk over the scopes of one program.
pub(crate) struct ScopeLowering<'a> {
    pub(crate) builder: ProgramBuilder,
    /// Fields that others refer to.
    wanted: &'a HashSet<FieldPath>,
    /// Of these, the ones in slots: written when read, loaded when needed.
    slots: &'a SlotMap,
    scopes: Scopes<'a>,
    kept: HashMap<FieldPath, Reg>,
    path: FieldPath,
    roles: RoleEffects,
}

/// The class cannot be read at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// Length of a real number.
    #[error("a floating point number of {length} bits cannot be decoded; 16, 32 and 64 can")]
    RealLength {
        /// In bits.
        length: u32,
    },
    /// A reference to a field that no scope before it has.
    #[error("the field refers to another one that is not read before it")]
    Reference,
}

impl<'a> ScopeLowering<'a> {
    pub(crate) fn new(
        builder: ProgramBuilder,
        scopes: Scopes<'a>,
        wanted: &'a HashSet<FieldPath>,
        slots: &'a SlotMap,
    ) -> Self {
        let path = FieldPath { scope: Scope::PacketHeader, steps: Vec::new() };
        Self { builder, wanted, slots, scopes, kept: HashMap::new(), path, roles: RoleEffects::Ignored }
    }

    /// Reads all fields of a scope, if there are any.
    pub(crate) fn scope(&mut self, scope: Scope, roles: RoleEffects, face: &mut dyn Face) -> Result<(), LowerError> {
        let Some(class) = self.scopes.get(scope) else {
            return Ok(());
        };
        self.path = FieldPath { scope, steps: Vec::new() };
        self.roles = roles;
        self.field(class, face)
    }

    fn field(&mut self, class: &FieldClass, face: &mut dyn Face) -> Result<(), LowerError> {
        if !face.wants(class) && self.pass_over(class) {
            return Ok(());
        }
        match &class.kind {
            FieldKind::BitArray(bits) => {
                let (register, width) = self.number(*bits, false)?;
                self.value(face, FreshValue::BitArray { register, width }, &[register]);
            }
            FieldKind::BitMap(map) => {
                let (register, _) = self.number(map.bits, false)?;
                self.value(face, FreshValue::BitMap { register, map }, &[register]);
            }
            FieldKind::Boolean(bits) => {
                let (register, _) = self.number(*bits, false)?;
                self.value(face, FreshValue::Boolean { register }, &[register]);
            }
            FieldKind::Integer(integer) => {
                let (register, width) = self.number(integer.bits, integer.meaning.signed)?;
                self.follow_roles(register, NumberSource::Constant(u64::from(width)), &integer.meaning);
                let value = FreshValue::Integer { register, width: Some(width), meaning: &integer.meaning };
                self.value(face, value, &[register]);
            }
            FieldKind::VariableInteger(integer) => self.variable_integer(&integer.meaning, face),
            FieldKind::Real(bits) => self.real(*bits, face)?,
            FieldKind::NullTerminatedText(encoding) => {
                let (start, length) = self.builder.text(measure::unit(*encoding));
                self.value(face, FreshValue::Text { start, length, encoding: *encoding }, &[start, length]);
            }
            FieldKind::StaticText(text) => {
                self.builder.align(text.alignment);
                self.counted_text(NumberSource::Constant(text.length), text.encoding, face.wants(class), face);
            }
            FieldKind::DynamicText(text) => {
                self.builder.align(text.alignment);
                let length = NumberSource::Register(self.referred(&text.length)?);
                self.counted_text(length, text.encoding, face.wants(class), face);
            }
            FieldKind::StaticBlob(blob) => {
                self.builder.align(8);
                self.blob(NumberSource::Constant(blob.length), &blob.roles, face);
            }
            FieldKind::DynamicBlob(blob) => {
                self.builder.align(8);
                let length = NumberSource::Register(self.referred(&blob.length)?);
                self.blob(length, &[], face);
            }
            FieldKind::Structure(structure) => self.structure(structure, face)?,
            FieldKind::StaticArray(array) => {
                self.array(NumberSource::Constant(array.length), &array.element, array.minimum_alignment, face)?;
            }
            FieldKind::DynamicArray(array) => self.dynamic_array(array, face)?,
            FieldKind::Optional(optional) => self.optional(optional, face)?,
            FieldKind::Variant(variant) => self.variant(variant, face)?,
        }
        Ok(())
    }

    /// Moves over a field of a fixed size without readers; false if it must be walked through.
    fn pass_over(&mut self, class: &FieldClass) -> bool {
        if self.roles != RoleEffects::Ignored && measure::has_roles(class) || self.is_referred() {
            return false;
        }
        // Where byte orders may meet inside a byte, each number states its own, and one pass over
        // several could not.
        if self.builder.mixed_orders() && measure::only_order(class).is_none() {
            return false;
        }
        let Some(size) = measure::fixed_size(class) else {
            return false;
        };
        self.builder.align(class.alignment());
        if size > 0 {
            self.builder.pass(size, measure::only_order(class));
        }
        true
    }

    /// Whether another field refers to this field or to one inside it.
    fn is_referred(&self) -> bool {
        self.wanted.iter().any(|path| path.left_at(&self.path).is_some())
    }

    fn number(&mut self, bits: FixedBits, signed: bool) -> Result<(Reg, u8), LowerError> {
        self.builder.align(bits.alignment);
        let width = u8::try_from(bits.length).map_err(|_| LowerError::RealLength { length: bits.length })?;
        let register = self.builder.read(Bits { width, order: bits.byte_order, reversed: bits.reversed, signed });
        Ok((register, width))
    }

    fn real(&mut self, bits: FixedBits, face: &mut dyn Face) -> Result<(), LowerError> {
        if !matches!(bits.length, 16 | 32 | 64) {
            return Err(LowerError::RealLength { length: bits.length });
        }
        let (register, width) = self.number(bits, false)?;
        self.value(face, FreshValue::Real { register, width }, &[register]);
        Ok(())
    }

    fn variable_integer(&mut self, meaning: &IntegerMeaning, face: &mut dyn Face) {
        self.builder.align(8);
        let counts = self.clock_of(meaning).is_some();
        let bits = counts.then(|| self.builder.register());
        let register = self.builder.leb(meaning.signed, bits);
        let width = bits.map_or(NumberSource::Constant(64), NumberSource::Register);
        self.follow_roles(register, width, meaning);
        self.value(face, FreshValue::Integer { register, width: None, meaning }, &[register]);
        if let Some(bits) = bits {
            self.builder.release(bits);
        }
    }

    /// Hands a value to the face and keeps it if another field refers to it.
    fn value(&mut self, face: &mut dyn Face, value: FreshValue<'_>, registers: &[Reg]) {
        face.value(&mut self.builder, value);
        if let [register] = *registers {
            self.keep_for_selected(register);
            if self.wanted.contains(&self.path) {
                if let Some(&slot) = self.slots.get(&self.path) {
                    self.builder.push(Op::Out { slot, from: register });
                }
                self.kept.insert(self.path.clone(), register);
                return;
            }
        }
        for &register in registers {
            self.builder.release(register);
        }
    }

    /// References that lead through a variant mean whichever option is there: all of them leave their value in
    /// one register.
    fn keep_for_selected(&mut self, from: Reg) {
        let means = |path: &&FieldPath| path.left_at(&self.path) == Some(0) && **path != self.path;
        let meant: Vec<&FieldPath> = self.wanted.iter().filter(means).collect();
        for path in meant {
            if let Some(&slot) = self.slots.get(path) {
                self.builder.push(Op::Out { slot, from });
                continue;
            }
            let to = match self.kept.get(path) {
                Some(&to) => to,
                None => {
                    let to = self.builder.register();
                    self.kept.insert(path.clone(), to);
                    to
                }
            };
            self.builder.push(Op::Copy { to, from });
        }
    }

    fn clock_of(&self, meaning: &IntegerMeaning) -> Option<usize> {
        let RoleEffects::Followed { clock } = self.roles else {
            return None;
        };
        let ends = meaning.roles.contains(&Role::PacketEndDefaultClockTimestamp);
        meaning.clock.filter(|_| !ends && !meaning.signed).filter(|mapped| Some(*mapped) == clock)
    }

    fn follow_roles(&mut self, register: Reg, bits: NumberSource, meaning: &IntegerMeaning) {
        if self.roles == RoleEffects::Ignored {
            return;
        }
        if self.clock_of(meaning).is_some() {
            self.builder.push(Op::Clock { from: register, bits });
        }
        for &role in &meaning.roles {
            self.leave(role, register);
        }
    }

    fn leave(&mut self, role: Role, from: Reg) {
        let Some(slot) = slots::of_role(role, self.path.scope) else {
            return;
        };
        self.builder.push(Op::Out { slot, from });
        if let Some(present) = slots::presence(slot) {
            self.builder.out_constant(present, 1);
        }
    }

    fn counted_text(&mut self, length: NumberSource, encoding: TextEncoding, wanted: bool, face: &mut dyn Face) {
        let start = self.builder.bytes(length);
        if !wanted {
            return self.builder.release(start);
        }
        let to = self.builder.register();
        self.builder.push(match length {
            NumberSource::Constant(value) => Op::Set { to, value },
            NumberSource::Register(from) => Op::Copy { to, from },
        });
        // In a register of its own: the position moves by the whole length, and other fields may
        // refer to it.
        self.builder.push(Op::Cut { start, length: to, unit: measure::unit(encoding) });
        self.value(face, FreshValue::Text { start, length: to, encoding }, &[start, to]);
    }

    fn blob(&mut self, length: NumberSource, roles: &[Role], face: &mut dyn Face) {
        let start = self.builder.bytes(length);
        if self.roles != RoleEffects::Ignored {
            for &role in roles {
                self.leave(role, start);
            }
        }
        let to = self.builder.register();
        self.builder.push(match length {
            NumberSource::Constant(value) => Op::Set { to, value },
            NumberSource::Register(from) => Op::Copy { to, from },
        });
        self.value(face, FreshValue::Blob { start, length: to }, &[start, to]);
    }

    fn structure(&mut self, structure: &Structure, face: &mut dyn Face) -> Result<(), LowerError> {
        self.builder.align(structure.alignment());
        face.structure(&mut self.builder, structure);
        for (index, member) in structure.members.iter().enumerate() {
            self.path.steps.push(FieldPathStep::Member(index));
            let result = if face.member(&mut self.builder, structure, index) {
                self.field(&member.class, face)
            } else {
                self.field(&member.class, &mut Passing)
            };
            self.path.steps.pop();
            result?;
        }
        face.structure_end(&mut self.builder, structure);
        Ok(())
    }

    fn dynamic_array(&mut self, array: &DynamicArray, face: &mut dyn Face) -> Result<(), LowerError> {
        self.builder.align(array.minimum_alignment.max(array.element.alignment()));
        let count = NumberSource::Register(self.referred(&array.length)?);
        self.path.steps.push(FieldPathStep::Element);
        // Inside a byte the elements' order matters, but only if there are elements: the loop knows.
        let order_is_fine = !self.builder.mixed_orders()
            || measure::only_order(&array.element).is_some() && self.builder.phase().is_aligned(3);
        let passes = !face.wants(&array.element) && !self.is_referred() && order_is_fine;
        self.path.steps.pop();
        if let (true, Some(stride)) = (passes, measure::stride(&array.element)) {
            if let Some(order) = measure::only_order(&array.element) {
                self.builder.order(order);
            }
            self.builder.skip(count, stride);
            return Ok(());
        }
        self.array(count, &array.element, array.minimum_alignment, face)
    }

    fn array(
        &mut self,
        count: NumberSource,
        element: &FieldClass,
        minimum_alignment: u64,
        face: &mut dyn Face,
    ) -> Result<(), LowerError> {
        self.builder.align(minimum_alignment.max(element.alignment()));
        face.array(&mut self.builder, count, element);
        self.builder.flush();
        let before = self.builder.phase();
        let head = loop_phase(before, measure::granularity(element), measure::aligns(element));
        self.builder.resume(head);
        let index = self.builder.register();
        self.path.steps.push(FieldPathStep::Element);
        let body = self.in_block(|lower| {
            face.element(&mut lower.builder, index);
            lower.field(element, face)?;
            face.element_end(&mut lower.builder);
            Ok(())
        });
        self.path.steps.pop();
        let (body, _) = body?;
        self.builder.push(Op::Repeat { count, index: Some(index), body });
        self.builder.resume(head);
        face.array_end(&mut self.builder);
        Ok(())
    }

    fn in_block(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), LowerError>,
    ) -> Result<(kymo_ir::Block, BitPhase), LowerError> {
        let mut outer = std::mem::replace(&mut self.builder, ProgramBuilder::new(BitPhase::default(), false));
        let result = outer.block(|builder| {
            std::mem::swap(&mut self.builder, builder);
            let result = write(self);
            std::mem::swap(&mut self.builder, builder);
            result
        });
        self.builder = outer;
        result
    }

    fn optional(&mut self, optional: &Optional, face: &mut dyn Face) -> Result<(), LowerError> {
        let on = self.referred(&optional.selector)?;
        face.choice(&mut self.builder);
        let (ranges, signed) = match &optional.ranges {
            Some(ranges) => self.ranges(&optional.selector, ranges),
            None => (vec![(1, u64::MAX)], false),
        };
        self.path.steps.push(FieldPathStep::Content);
        let content = self.in_block(|lower| {
            face.present(&mut lower.builder, optional);
            lower.field(&optional.content, face)?;
            face.present_end(&mut lower.builder, optional);
            Ok(())
        });
        self.path.steps.pop();
        let (content, after) = content?;
        let (nothing, before) = self.in_block(|lower| {
            face.absent(&mut lower.builder, optional);
            Ok(())
        })?;
        self.builder.push(Op::Switch { on, signed, arms: vec![(ranges, content)], default: Some(nothing) });
        self.builder.resume(join(before, after));
        face.choice_end(&mut self.builder);
        Ok(())
    }

    fn variant(&mut self, variant: &Variant, face: &mut dyn Face) -> Result<(), LowerError> {
        let on = self.referred(&variant.selector)?;
        face.choice(&mut self.builder);
        let mut arms = Vec::new();
        let mut phase: Option<BitPhase> = None;
        let mut signed = false;
        for (index, option) in variant.options.iter().enumerate() {
            let ranges;
            (ranges, signed) = self.ranges(&variant.selector, &option.ranges);
            self.path.steps.push(FieldPathStep::Option(index));
            let block = self.in_block(|lower| {
                face.option(&mut lower.builder, variant, index);
                lower.field(&option.class, face)?;
                face.option_end(&mut lower.builder, variant, index);
                Ok(())
            });
            self.path.steps.pop();
            let (block, after) = block?;
            // No value selects this option. Its block was written nevertheless, so that faces meet
            // every option.
            if ranges.is_empty() {
                continue;
            }
            phase = Some(phase.map_or(after, |phase| join(phase, after)));
            arms.push((ranges, block));
        }
        self.builder.flush();
        self.builder.push(Op::Switch { on, signed, arms, default: None });
        if let Some(phase) = phase {
            self.builder.resume(phase);
        }
        face.choice_end(&mut self.builder);
        Ok(())
    }

    /// Ranges of the selector at `path` as registers hold its values, and whether they compare as signed.
    fn ranges(&self, path: &FieldPath, ranges: &[IntegerRange]) -> (Vec<(u64, u64)>, bool) {
        let class = self.scopes.field(path);
        let signed = class.and_then(FieldClass::integer_meaning).is_some_and(|meaning| meaning.signed);
        let (lowest, highest) =
            if signed { (i128::from(i64::MIN), i128::from(i64::MAX)) } else { (0, i128::from(u64::MAX)) };
        // Ranges come from metadata and may exceed the values of the selector's type.
        let inside = ranges.iter().filter(|range| range.upper >= lowest && range.lower <= highest);
        let ranges = inside.map(|range| (range.lower.max(lowest) as u64, range.upper.min(highest) as u64));
        (ranges.collect(), signed)
    }

    /// The register that holds the field at `path`.
    fn referred(&mut self, path: &FieldPath) -> Result<Reg, LowerError> {
        if let Some(&register) = self.kept.get(path) {
            return Ok(register);
        }
        let &slot = self.slots.get(path).ok_or(LowerError::Reference)?;
        let to = self.builder.register();
        self.builder.push(Op::Load { to, slot });
        Ok(to)
    }
}
