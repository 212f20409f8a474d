//! Tests of texts that lie inside the structure: up to their first zero byte, or to the end of their place.
//!
//! A loop over bytes would need loads at changing offsets, so everything is unrolled. Equality takes the widest pieces that
//! are aligned, with the zero byte behind the text among them:
//!
//! ```text
//! comm == "swapper/0"       16 bytes at offset 8
//!    8 bytes at  8  == "swapper/"
//!    2 bytes at 16  == "0\0"
//! ```

use std::cmp::Ordering;

use kymo_ir::Encoding;
use kymo_ir::predicate::{Assembler, InputKind, InputPlace, Pattern, Refusal, Relation, Test, TextExpression};

use super::assembly::BpfLabel;
use super::instruction::{BpfInstruction, BpfOperand, JumpCondition};
use super::number::piece;
use super::{ANSWER, ARGUMENTS, BpfCompiler, SCRATCH, Targets};

/// Where a text is.
#[derive(Clone, Copy)]
pub(super) enum TextLocation<'t> {
    Literal(&'t [u8]),
    Inline(Inline),
}

#[derive(Clone, Copy)]
pub(super) struct Inline {
    pub offset: u32,
    pub capacity: u32,
}

/// Where to go for each order of two texts.
struct OrderTargets {
    less: BpfLabel,
    equal: BpfLabel,
    greater: BpfLabel,
}

impl OrderTargets {
    fn of(relation: Relation, targets: Targets) -> Self {
        let of = |order| targets.of(relation.holds(order));
        Self { less: of(Ordering::Less), equal: of(Ordering::Equal), greater: of(Ordering::Greater) }
    }
}

impl BpfCompiler<'_> {
    fn located<'t>(&self, test: &Test, text: &'t TextExpression) -> Result<TextLocation<'t>, Refusal> {
        let input = match text {
            TextExpression::Literal(bytes) => return Ok(TextLocation::Literal(bytes)),
            TextExpression::Input(input) => *input,
        };
        if self.predicate.kind(input) != InputKind::Text(Encoding::Utf8) {
            return Err(self.predicate.refusal(test, "eBPF takes text as UTF-8 only"));
        }
        match self.places[usize::from(input.0)] {
            InputPlace::Inline { offset, capacity } => Ok(TextLocation::Inline(Inline { offset, capacity })),
            _ => {
                Err(self.predicate.refusal(test, "eBPF takes text inside of the arguments only, not behind a pointer"))
            }
        }
    }

    pub(super) fn matches(
        &mut self,
        test: &Test,
        text: &TextExpression,
        pattern: &Pattern,
        targets: Targets,
    ) -> Result<(), Refusal> {
        let place = match self.located(test, text)? {
            TextLocation::Inline(place) => place,
            TextLocation::Literal(bytes) => {
                self.jump(targets.of(pattern.matches(bytes)));
                return Ok(());
            }
        };
        match pattern {
            Pattern::Exactly(bytes) => self.exactly(place, bytes, targets),
            Pattern::Prefix(bytes) => self.prefix(place, bytes, targets),
            Pattern::Glob(parts) => self.glob(place, parts, targets),
            Pattern::Regex(_) => return Err(self.predicate.refusal(test, "eBPF has no regular expressions")),
        }
        Ok(())
    }

    fn exactly(&mut self, place: Inline, bytes: &[u8], targets: Targets) {
        if !can_begin(place, bytes) {
            return self.jump(targets.on_false);
        }
        let with_end = [bytes, &[0]].concat();
        let count = with_end.len().min(place.capacity as usize);
        self.equal(place.offset, &with_end[..count], targets.on_false);
        self.jump(targets.on_true);
    }

    fn prefix(&mut self, place: Inline, bytes: &[u8], targets: Targets) {
        if !can_begin(place, bytes) {
            return self.jump(targets.on_false);
        }
        self.equal(place.offset, bytes, targets.on_false);
        self.jump(targets.on_true);
    }

    /// Goes on if these bytes are there.
    pub(super) fn equal(&mut self, mut offset: u32, mut bytes: &[u8], otherwise: BpfLabel) {
        while !bytes.is_empty() && !self.code.is_full() {
            let size = piece(offset, bytes.len() as u32);
            let (now, rest) = bytes.split_at(size as usize);
            self.code.push(BpfInstruction::load(ANSWER, ARGUMENTS, offset as i16, size as u8));
            let operand = self.constant_operand(i128::from(machine_number(now)), SCRATCH);
            self.code.jump_if(JumpCondition::NotEqual, ANSWER, operand, otherwise);
            (offset, bytes) = (offset + size, rest);
        }
    }

    pub(super) fn compare_text(
        &mut self,
        test: &Test,
        relation: Relation,
        left: &TextExpression,
        right: &TextExpression,
        targets: Targets,
    ) -> Result<(), Refusal> {
        match (self.located(test, left)?, self.located(test, right)?) {
            (TextLocation::Literal(left), TextLocation::Literal(right)) => {
                self.jump(targets.of(relation.holds(left.cmp(right))));
            }
            (TextLocation::Inline(place), TextLocation::Literal(bytes)) => {
                self.with_literal(relation, place, bytes, targets);
            }
            (TextLocation::Literal(bytes), TextLocation::Inline(place)) => {
                self.with_literal(relation.mirrored(), place, bytes, targets);
            }
            (TextLocation::Inline(left), TextLocation::Inline(right)) => {
                self.of_two(left, right, &OrderTargets::of(relation, targets));
            }
        }
        Ok(())
    }

    fn with_literal(&mut self, relation: Relation, place: Inline, bytes: &[u8], targets: Targets) {
        match relation {
            Relation::Equal => return self.exactly(place, bytes, targets),
            Relation::NotEqual => {
                return self.exactly(place, bytes, targets.swapped());
            }
            _ => {}
        }
        let orders = OrderTargets::of(relation, targets);
        for (index, byte) in (0..place.capacity).zip(bytes) {
            self.load_byte(place, index);
            if *byte == 0 || self.code.is_full() {
                // No text has a zero byte: it ends before, or has a higher one.
                return self.at_end(orders.less, orders.greater);
            }
            let operand = BpfOperand::Constant(i32::from(*byte));
            self.code.jump_if(JumpCondition::Less, ANSWER, operand, orders.less);
            self.code.jump_if(JumpCondition::Greater, ANSWER, operand, orders.greater);
        }
        match bytes.len().cmp(&(place.capacity as usize)) {
            Ordering::Greater => self.code.jump(orders.less),
            Ordering::Equal => self.code.jump(orders.equal),
            Ordering::Less => {
                self.load_byte(place, bytes.len() as u32);
                self.at_end(orders.equal, orders.greater);
            }
        }
    }

    fn of_two(&mut self, left: Inline, right: Inline, orders: &OrderTargets) {
        let both = left.capacity.min(right.capacity);
        for index in 0..both {
            if self.code.is_full() {
                break;
            }
            self.load_byte(left, index);
            self.code.push(BpfInstruction::load(SCRATCH, ARGUMENTS, (right.offset + index) as i16, 1));
            self.code.jump_if(JumpCondition::Less, ANSWER, BpfOperand::Register(SCRATCH), orders.less);
            self.code.jump_if(JumpCondition::Greater, ANSWER, BpfOperand::Register(SCRATCH), orders.greater);
            self.code.jump_if(JumpCondition::Equal, ANSWER, BpfOperand::Constant(0), orders.equal);
        }
        match left.capacity.cmp(&right.capacity) {
            Ordering::Equal => self.code.jump(orders.equal),
            Ordering::Greater => {
                self.load_byte(left, both);
                self.at_end(orders.equal, orders.greater);
            }
            Ordering::Less => {
                self.load_byte(right, both);
                self.at_end(orders.equal, orders.less);
            }
        }
    }

    pub(super) fn load_byte(&mut self, place: Inline, index: u32) {
        self.code.push(BpfInstruction::load(ANSWER, ARGUMENTS, (place.offset + index) as i16, 1));
    }

    /// The text ends with the byte that was loaded, or goes on.
    fn at_end(&mut self, ends: BpfLabel, goes_on: BpfLabel) {
        self.code.jump_if(JumpCondition::Equal, ANSWER, BpfOperand::Constant(0), ends);
        self.code.jump(goes_on);
    }
}

/// Texts at this place can begin with these bytes: there is room, and no zero byte.
pub(super) fn can_begin(place: Inline, bytes: &[u8]) -> bool {
    bytes.len() <= place.capacity as usize && !bytes.contains(&0)
}

/// The result of a load of these 1, 2, 4 or 8 bytes.
fn machine_number(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    if cfg!(target_endian = "big") {
        wide[8 - bytes.len()..].copy_from_slice(bytes);
    } else {
        wide[..bytes.len()].copy_from_slice(bytes);
    }
    u64::from_ne_bytes(wide)
}
