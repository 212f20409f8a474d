//! Comparisons of integers, which are held in 64 bits each according to its range: without a sign
//! where it cannot be negative.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use kymo_ir::predicate::{Assembler, Relation, ValueRange};

use super::{Operands, PredicateWriter, Targets, signed, unsigned};

/// An integer in 64 bits.
#[derive(Clone, Copy)]
pub(super) struct WideInteger {
    pub(super) value: Value,
    pub(super) range: ValueRange,
}

impl WideInteger {
    fn is_within(self, lowest: i128, highest: i128) -> bool {
        lowest <= self.range.lowest && self.range.highest <= highest
    }

    pub(super) fn fits_signed(self) -> bool {
        !self.range.needs_unsigned()
    }
}

impl<O: Operands> PredicateWriter<'_, '_, O> {
    pub(super) fn compare_integers(
        &mut self,
        relation: Relation,
        left: WideInteger,
        right: WideInteger,
        targets: Targets,
    ) {
        if let Some(value) = certain(relation, left.range, right.range) {
            return self.jump(targets.of(value));
        }
        let both = |lowest, highest| left.is_within(lowest, highest) && right.is_within(lowest, highest);
        // Constants of 32 bits fit in the instruction itself.
        let holds = if both(i128::from(i32::MIN), i128::from(i32::MAX)) {
            self.narrow(signed(relation), left, right)
        } else if both(0, i128::from(u32::MAX)) {
            self.narrow(unsigned(relation), left, right)
        } else if left.fits_signed() && right.fits_signed() {
            self.builder.ins().icmp(signed(relation), left.value, right.value)
        } else if left.range.is_unsigned() && right.range.is_unsigned() {
            self.builder.ins().icmp(unsigned(relation), left.value, right.value)
        } else if right.range.is_unsigned() {
            self.mixed(relation, left, right, targets)
        } else {
            self.mixed(relation.mirrored(), right, left, targets)
        };
        self.branch(holds, targets.on_true, targets.on_false);
    }

    fn narrow(&mut self, condition: IntCC, left: WideInteger, right: WideInteger) -> Value {
        let [left, right] = [left, right].map(|of| self.builder.ins().ireduce(types::I32, of.value));
        self.builder.ins().icmp(condition, left, right)
    }

    /// One that may be negative with one that may be too high for signed 64 bits.
    fn mixed(&mut self, relation: Relation, left: WideInteger, right: WideInteger, targets: Targets) -> Value {
        let is_negative = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, left.value, 0);
        self.leave_if(is_negative, targets.of(relation.holds(std::cmp::Ordering::Less)));
        self.builder.ins().icmp(unsigned(relation), left.value, right.value)
    }
}

/// The certain result for all values.
fn certain(relation: Relation, left: ValueRange, right: ValueRange) -> Option<bool> {
    let orders = [
        (left.lowest < right.highest, std::cmp::Ordering::Less),
        (left.lowest <= right.highest && right.lowest <= left.highest, std::cmp::Ordering::Equal),
        (left.highest > right.lowest, std::cmp::Ordering::Greater),
    ];
    let mut possible = orders.into_iter().filter(|order| order.0).map(|order| relation.holds(order.1));
    let first = possible.next()?;
    possible.all(|value| value == first).then_some(first)
}
