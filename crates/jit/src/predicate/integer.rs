//! Comparisons of integers, which are held in 64 bits each as its range says: without a sign where it cannot be negative.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use kymo_ir::predicate::{Number, Range, Relation};

use super::{Exits, Operands, Writer, signed, unsigned};

/// An integer in 64 bits.
#[derive(Clone, Copy)]
pub(super) struct Integer {
    pub(super) value: Value,
    pub(super) range: Range,
}

impl Integer {
    fn is_within(self, lowest: i128, highest: i128) -> bool {
        lowest <= self.range.lowest && self.range.highest <= highest
    }

    pub(super) fn fits_signed(self) -> bool {
        !self.range.needs_unsigned()
    }
}

/// Ranges that are looked at one after the other.
const RANGES_FEW: usize = 4;

impl<O: Operands> Writer<'_, '_, O> {
    pub(super) fn compare_integers(&mut self, relation: Relation, left: Integer, right: Integer, exits: Exits) {
        if let Some(value) = certain(relation, left.range, right.range) {
            return self.jump(exits.of(value));
        }
        let both = |lowest, highest| left.is_within(lowest, highest) && right.is_within(lowest, highest);
        // Constants of 32 bits stand in the instruction itself.
        let holds = if both(i128::from(i32::MIN), i128::from(i32::MAX)) {
            self.narrow(signed(relation), left, right)
        } else if both(0, i128::from(u32::MAX)) {
            self.narrow(unsigned(relation), left, right)
        } else if left.fits_signed() && right.fits_signed() {
            self.builder.ins().icmp(signed(relation), left.value, right.value)
        } else if left.range.is_unsigned() && right.range.is_unsigned() {
            self.builder.ins().icmp(unsigned(relation), left.value, right.value)
        } else if right.range.is_unsigned() {
            self.mixed(relation, left, right, exits)
        } else {
            self.mixed(relation.mirrored(), right, left, exits)
        };
        self.branch(holds, exits.is_true, exits.is_false);
    }

    fn narrow(&mut self, condition: IntCC, left: Integer, right: Integer) -> Value {
        let [left, right] = [left, right].map(|of| self.builder.ins().ireduce(types::I32, of.value));
        self.builder.ins().icmp(condition, left, right)
    }

    /// One that may be negative with one that may be too high for signed 64 bits.
    fn mixed(&mut self, relation: Relation, left: Integer, right: Integer, exits: Exits) -> Value {
        let is_negative = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, left.value, 0);
        self.leave_if(is_negative, exits.of(relation.holds(std::cmp::Ordering::Less)));
        self.builder.ins().icmp(unsigned(relation), left.value, right.value)
    }

    pub(super) fn among(&mut self, value: &Number, ranges: &[(i128, i128)], exits: Exits) {
        let value = self.whole(value, exits.unknown);
        let inside = |&(lowest, highest): &(i128, i128)| {
            let (lowest, highest) = (lowest.max(value.range.lowest), highest.min(value.range.highest));
            (lowest <= highest).then_some((lowest, highest))
        };
        let ranges: Vec<(i128, i128)> = ranges.iter().filter_map(inside).collect();
        self.among_these(value, &ranges, exits.is_true, exits.is_false);
    }

    /// Halves the ranges until they are few.
    fn among_these(&mut self, value: Integer, ranges: &[(i128, i128)], inside: Block, outside: Block) {
        if ranges.len() > RANGES_FEW {
            let (low, high) = ranges.split_at(ranges.len() / 2);
            let (lower, upper) = (self.builder.create_block(), self.builder.create_block());
            let first = self.constant(high[0].0 as u64);
            let less = if value.range.is_unsigned() { IntCC::UnsignedLessThan } else { IntCC::SignedLessThan };
            let is_lower = self.builder.ins().icmp(less, value.value, first);
            self.branch(is_lower, lower, upper);
            for (block, ranges) in [(lower, low), (upper, high)] {
                self.builder.switch_to_block(block);
                self.among_these(value, ranges, inside, outside);
            }
            return;
        }
        for &(lowest, highest) in ranges {
            let first = self.constant(lowest as u64);
            let holds = if lowest == highest {
                self.builder.ins().icmp(IntCC::Equal, value.value, first)
            } else {
                // value - lowest <= highest - lowest, unsigned, holds for both kinds of order.
                let distance = self.builder.ins().isub(value.value, first);
                let width = self.constant((highest - lowest) as u64);
                self.builder.ins().icmp(IntCC::UnsignedLessThanOrEqual, distance, width)
            };
            self.leave_if(holds, inside);
        }
        self.jump(outside);
    }
}

/// What comes out whatever the values are.
fn certain(relation: Relation, left: Range, right: Range) -> Option<bool> {
    let orders = [
        (left.lowest < right.highest, std::cmp::Ordering::Less),
        (left.lowest <= right.highest && right.lowest <= left.highest, std::cmp::Ordering::Equal),
        (left.highest > right.lowest, std::cmp::Ordering::Greater),
    ];
    let mut possible = orders.into_iter().filter(|order| order.0).map(|order| relation.holds(order.1));
    let first = possible.next()?;
    possible.all(|value| value == first).then_some(first)
}
