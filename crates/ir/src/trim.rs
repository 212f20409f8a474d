//! Programs that are run for some columns alone, without the operations that those do not need, in
//! a form in which programs that do the same are mostly equal: one that reads the first field is
//! the same for any fields behind it.
//!
//! ```text
//! need 32                       need 160
//! r2 = read 0 +32               r0 = read 0 +32
//! store 0 r2             ──>    store 0 r0
//! advance 32                    r1 = read 128 +32
//! r3 = bytes 12                 store 1 r1
//! need 64
//! r4 = read 0 +32
//! store 1 r4
//! r5 = read 32 +32
//! advance 64
//! ```
//!
//! Omitted parts are not checked for presence, either, and missing parts may be missed earlier.

use std::collections::HashMap;

use crate::program::{Block, Emit, InputOperand, NumberSource, Op, ReadProgram, Reg};

/// The use of a register in an operation.
#[derive(Clone, Copy, PartialEq)]
enum RegisterUse {
    Reads,
    Writes,
}

impl ReadProgram {
    /// The same columns, and no more, of records that can be read: the position behind the record,
    /// slots and the clock that the operations behind the last store would leave are lost.
    #[must_use]
    pub fn trimmed(mut self) -> Self {
        let last = self.body.iter().rposition(stores);
        self.body.truncate(last.map_or(0, |last| last + 1));
        while self.drop_unread() {}
        if self.entry.is_aligned(3) && moves_by_bytes(&self.body) {
            drop_orders(&mut self.body);
        }
        fuse(&mut self.body, true);
        self.renumber();
        self
    }

    /// Drops operations that only write registers without later reads; `true`: there were some.
    fn drop_unread(&mut self) -> bool {
        let mut sweep = Sweep { asked: Vec::new(), has_changed: false };
        for bound in &mut self.predicates {
            let mut asked = Vec::new();
            bound
                .operands
                .iter_mut()
                .for_each(|operand| each_of_operand(operand, &mut |register| asked.push(*register)));
            sweep.asked.push(asked);
        }
        sweep.block(&mut self.body, &mut vec![false; usize::from(self.registers)]);
        sweep.has_changed
    }

    /// Numbers registers in the order in which they occur.
    fn renumber(&mut self) {
        let mut known: HashMap<Reg, Reg> = HashMap::new();
        self.each_register(&mut |register, _| {
            let next = Reg(known.len() as u16);
            *register = *known.entry(*register).or_insert(next);
        });
        self.registers = known.len() as u16;
    }

    fn each_register(&mut self, see: &mut dyn FnMut(&mut Reg, RegisterUse)) {
        each_of_block(&mut self.body, see);
        let operands = self.predicates.iter_mut().flat_map(|bound| &mut bound.operands);
        operands.for_each(|operand| each_of_operand(operand, &mut |register| see(register, RegisterUse::Reads)));
    }
}

/// Whether an operation writes cells, or blocks inside it do.
fn stores(op: &Op) -> bool {
    match op {
        Op::Store { .. } | Op::StoreSpan { .. } | Op::StoreList { .. } | Op::Row { .. } => true,
        Op::Repeat { body, .. } => body.iter().any(stores),
        Op::Switch { arms, default, .. } => arms.iter().map(|(_, block)| block).chain(default).flatten().any(stores),
        _ => false,
    }
}

/// A walk over operations, the last one first, that knows which registers are read behind.
struct Sweep {
    /// Registers that each predicate asks for.
    asked: Vec<Vec<Reg>>,
    has_changed: bool,
}

impl Sweep {
    /// `live`: registers that are read behind the block, then those that are read in it or behind.
    fn block(&mut self, block: &mut Block, live: &mut Vec<bool>) {
        let mut kept = Block::new();
        for mut op in std::mem::take(block).into_iter().rev() {
            match &mut op {
                Op::Read { to, .. }
                | Op::Set { to, .. }
                | Op::Copy { to, .. }
                | Op::Load { to, .. }
                | Op::Cycles { to }
                | Op::Double { to, .. }
                    if !live[usize::from(to.0)] =>
                {
                    self.has_changed = true;
                    continue;
                }
                Op::Bytes { start, length } if !live[usize::from(start.0)] => {
                    op = Op::Skip { count: *length, bits: 8 };
                    self.has_changed = true;
                }
                Op::Switch { arms, default, .. } => {
                    self.arms(arms.iter_mut().map(|(_, block)| block).chain(default), live);
                }
                Op::Repeat { body, .. } => {
                    // The round before may have left the values that a round reads.
                    each_of_block(body, &mut |register, what| {
                        live[usize::from(register.0)] |= what == RegisterUse::Reads;
                    });
                    self.block(body, &mut live.clone());
                }
                Op::Keep { predicate } => {
                    self.asked[usize::from(*predicate)]
                        .iter()
                        .for_each(|register| live[usize::from(register.0)] = true);
                }
                _ => {}
            }
            // A loop may have no rounds.
            if !matches!(op, Op::Repeat { .. }) {
                each_of_operation(&mut op, &mut |to, what| live[usize::from(to.0)] &= what == RegisterUse::Reads);
            }
            each_of_operation(&mut op, &mut |from, what| live[usize::from(from.0)] |= what == RegisterUse::Reads);
            kept.push(op);
        }
        kept.reverse();
        *block = kept;
    }

    fn arms<'b>(&mut self, arms: impl Iterator<Item = &'b mut Block>, live: &mut Vec<bool>) {
        let behind = std::mem::replace(live, vec![false; live.len()]);
        for arm in arms {
            let mut inside = behind.clone();
            self.block(arm, &mut inside);
            live.iter_mut().zip(inside).for_each(|(live, inside)| *live |= inside);
        }
    }
}

/// Whether every position is at a byte's edge if the first one is: then no two orders can meet inside a byte.
fn moves_by_bytes(block: &Block) -> bool {
    block.iter().all(|op| match op {
        Op::Advance { bits } | Op::Skip { bits, .. } => bits.is_multiple_of(8),
        Op::Repeat { body, .. } => moves_by_bytes(body),
        Op::Switch { arms, default, .. } => arms.iter().map(|(_, block)| block).chain(default).all(moves_by_bytes),
        _ => true,
    })
}

fn drop_orders(block: &mut Block) {
    block.retain(|op| !matches!(op, Op::Order { .. }));
    inner_blocks(block, &mut |block| drop_orders(block));
}

fn inner_blocks(block: &mut Block, see: &mut dyn FnMut(&mut Block)) {
    for op in block {
        match op {
            Op::Repeat { body, .. } => see(body),
            Op::Switch { arms, default, .. } => {
                arms.iter_mut().map(|(_, block)| block).chain(default).for_each(&mut *see);
            }
            _ => {}
        }
    }
}

/// Neighboring runs of a fixed size, with the bits passed over between them.
#[derive(Default)]
struct MergedRun {
    /// The place of its check, if there is a run.
    need: Option<usize>,
    /// Bits that it moved on.
    moved: u64,
    /// Bits up to the end of the last read.
    read: u64,
}

/// Bits that a run has at most.
const RUN_BITS_MAX: u64 = u32::MAX as u64;

impl MergedRun {
    fn begin(&mut self, into: &mut Block) {
        if self.need.is_none() {
            *self = Self { need: Some(into.len()), moved: 0, read: 0 };
            into.push(Op::Need { bits: 0 });
        }
    }

    /// Moves on by bits that may be many; false: by too many.
    fn moves(&mut self, bits: Option<u64>, into: &mut Block) -> bool {
        let Some(bits) = bits.filter(|bits| bits.saturating_add(self.moved) <= RUN_BITS_MAX) else { return false };
        self.begin(into);
        self.moved += bits;
        true
    }

    fn reads(&mut self, mut op: Op, into: &mut Block) {
        if let Op::Read { offset, width, .. } = &mut op {
            *offset += self.moved as u32;
            self.read = self.read.max(u64::from(*offset) + u64::from(*width));
        }
        into.push(op);
    }

    /// The position is needed, or the record's end is reached, where it is of no use.
    fn end(&mut self, into: &mut Block, is_last: bool) {
        let Some(need) = self.need.take() else { return };
        let moved = if is_last { 0 } else { self.moved };
        into[need] = Op::Need { bits: moved.max(self.read) };
        if moved > 0 {
            into.push(Op::Advance { bits: moved });
        }
        *self = Self::default();
    }
}

/// One check for neighboring fields of fixed sizes; none of the bits behind the last one, if the
/// block is the last.
fn fuse(block: &mut Block, is_last: bool) {
    inner_blocks(block, &mut |block| fuse(block, false));
    let mut fused = Block::new();
    let mut run = MergedRun::default();
    for op in std::mem::take(block) {
        let moved = match &op {
            Op::Need { bits } if *bits <= RUN_BITS_MAX => Some(0),
            Op::Advance { bits } if run.need.is_some() => Some(*bits),
            Op::Skip { count: NumberSource::Constant(count), bits } => count.checked_mul(*bits),
            _ => None,
        };
        match op {
            _ if run.moves(moved, &mut fused) => {}
            Op::Read { offset, .. } if run.need.is_some() && run.moved + u64::from(offset) <= RUN_BITS_MAX => {
                run.reads(op, &mut fused);
            }
            op => {
                if !is_still(&op) {
                    run.end(&mut fused, false);
                }
                fused.push(op);
            }
        }
    }
    run.end(&mut fused, is_last);
    fused.retain(|op| !matches!(op, Op::Need { bits: 0 }));
    *block = fused;
}

/// Whether an operation does the same wherever the position is.
fn is_still(op: &Op) -> bool {
    match op {
        Op::Set { .. }
        | Op::Copy { .. }
        | Op::Load { .. }
        | Op::Out { .. }
        | Op::Clock { .. }
        | Op::Cycles { .. }
        | Op::Double { .. }
        | Op::Cut { .. }
        | Op::Store { .. }
        | Op::StoreSpan { .. } => true,
        Op::Switch { arms, default, .. } => arms.iter().map(|(_, block)| block).chain(default).flatten().all(is_still),
        _ => false,
    }
}

fn each_of_block(block: &mut Block, see: &mut dyn FnMut(&mut Reg, RegisterUse)) {
    block.iter_mut().for_each(|op| each_of_operation(op, see));
    inner_blocks(block, &mut |block| each_of_block(block, see));
}

fn each_of_operand(operand: &mut InputOperand, see: &mut dyn FnMut(&mut Reg)) {
    let (registers, present) = match operand {
        InputOperand::Number { value, present } => ([Some(value), None], present),
        InputOperand::Text { start, length, present } => ([Some(start), Some(length)], present),
    };
    registers.into_iter().flatten().chain(present).for_each(see);
}

/// Registers of an operation itself, without those of blocks inside.
fn each_of_operation(op: &mut Op, see: &mut dyn FnMut(&mut Reg, RegisterUse)) {
    let source = |from: &mut NumberSource, see: &mut dyn FnMut(&mut Reg, RegisterUse)| {
        if let NumberSource::Register(from) = from {
            see(from, RegisterUse::Reads);
        }
    };
    match op {
        Op::Read { to, .. } | Op::Set { to, .. } | Op::Load { to, .. } | Op::Cycles { to } => {
            see(to, RegisterUse::Writes);
        }
        Op::Skip { count, .. } | Op::StoreList { count, .. } => source(count, see),
        Op::Leb { to, bits, .. } => {
            [Some(to), bits.as_mut()].into_iter().flatten().for_each(|to| see(to, RegisterUse::Writes));
        }
        Op::Text { start, length, .. } => [start, length].into_iter().for_each(|to| see(to, RegisterUse::Writes)),
        Op::Bytes { start, length } => {
            source(length, see);
            see(start, RegisterUse::Writes);
        }
        Op::Cut { start, length, .. } | Op::StoreSpan { start, length, .. } => {
            [start, length].into_iter().for_each(|from| see(from, RegisterUse::Reads));
        }
        Op::Copy { to, from } | Op::Double { to, from, .. } => {
            see(from, RegisterUse::Reads);
            see(to, RegisterUse::Writes);
        }
        Op::Out { from, .. } | Op::Store { from, .. } | Op::Switch { on: from, .. } => see(from, RegisterUse::Reads),
        Op::Clock { from, bits } => {
            see(from, RegisterUse::Reads);
            source(bits, see);
        }
        Op::Repeat { count, index, .. } => {
            source(count, see);
            index.iter_mut().for_each(|index| see(index, RegisterUse::Writes));
        }
        Op::Emit(
            Emit::Integer { from, .. } | Emit::Real { from, .. } | Emit::Label { from, .. } | Emit::Flags { from, .. },
        ) => see(from, RegisterUse::Reads),
        Op::Emit(Emit::Text { start, length, .. } | Emit::Bytes { start, length, .. }) => {
            [start, length].into_iter().for_each(|from| see(from, RegisterUse::Reads));
        }
        Op::Emit(Emit::Literal(_))
        | Op::Align { .. }
        | Op::Need { .. }
        | Op::Advance { .. }
        | Op::Order { .. }
        | Op::Row { .. }
        | Op::Keep { .. } => {}
    }
}
