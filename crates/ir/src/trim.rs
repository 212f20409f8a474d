//! Programs that are run for some columns alone, without what those do not need, in a form in which programs that do
//! the same are mostly equal: one that reads the first field is the same whatever fields follow.
//!
//! ```text
//! need 128                      need 64
//! r2 = read 0 +64               r0 = read 0 +64
//! store 0 r2             ──>    store 0 r0
//! r0 = read 64 +64
//! advance 128
//! ```
//!
//! What is left out is not asked whether it is there, either.

use std::collections::HashMap;

use crate::predicate::Operand;
use crate::program::{Block, Emit, Op, Program, Reg, Source};

/// What an operation does with a register.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    Reads,
    Writes,
}

impl Program {
    /// The same columns, and no more: the position behind the record, slots and the clock that what follows the last
    /// store would leave are lost.
    #[must_use]
    pub fn trimmed(mut self) -> Self {
        let last = self.body.iter().rposition(stores);
        self.body.truncate(last.map_or(0, |last| last + 1));
        while self.drop_unread() {}
        tighten(&mut self.body);
        self.renumber();
        self
    }

    /// Drops operations that only write a register which nobody reads; `true`: there were some.
    fn drop_unread(&mut self) -> bool {
        let mut is_read = vec![false; usize::from(self.registers)];
        self.each_register(&mut |register, what| is_read[usize::from(register.0)] |= what == Use::Reads);
        drop_unread(&mut self.body, &is_read)
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

    fn each_register(&mut self, see: &mut dyn FnMut(&mut Reg, Use)) {
        each_of_block(&mut self.body, see);
        for operand in self.predicates.iter_mut().flat_map(|bound| &mut bound.operands) {
            let (registers, present) = match operand {
                Operand::Number { value, present } => ([Some(value), None], present),
                Operand::Text { start, length, present } => ([Some(start), Some(length)], present),
            };
            registers.into_iter().flatten().chain(present).for_each(|register| see(register, Use::Reads));
        }
    }
}

/// Whether an operation writes cells, or blocks inside of it do.
fn stores(op: &Op) -> bool {
    match op {
        Op::Store { .. } | Op::StoreSpan { .. } | Op::StoreList { .. } | Op::Row { .. } => true,
        Op::Repeat { body, .. } => body.iter().any(stores),
        Op::Switch { arms, default, .. } => arms.iter().map(|(_, block)| block).chain(default).flatten().any(stores),
        _ => false,
    }
}

fn drop_unread(block: &mut Block, is_read: &[bool]) -> bool {
    let before = block.len();
    block.retain(|op| match op {
        Op::Read { to, .. }
        | Op::Set { to, .. }
        | Op::Copy { to, .. }
        | Op::Load { to, .. }
        | Op::Cycles { to }
        | Op::Double { to, .. } => is_read[usize::from(to.0)],
        _ => true,
    });
    let mut dropped = block.len() < before;
    for op in block {
        match op {
            Op::Repeat { body, .. } => dropped |= drop_unread(body, is_read),
            Op::Switch { arms, default, .. } => {
                for block in arms.iter_mut().map(|(_, block)| block).chain(default) {
                    dropped |= drop_unread(block, is_read);
                }
            }
            _ => {}
        }
    }
    dropped
}

/// The last check of the outermost block covers no more than what is left of its run.
fn tighten(block: &mut Block) {
    let Some(need) = block.iter().rposition(|op| matches!(op, Op::Need { .. })) else { return };
    let (mut behind, mut end) = (0, 0);
    for op in &block[need + 1..] {
        match op {
            Op::Advance { bits } => behind += bits,
            Op::Read { offset, width, .. } => end = end.max(behind + u64::from(*offset) + u64::from(*width)),
            _ => {}
        }
    }
    match end.max(behind) {
        0 => drop(block.remove(need)),
        bits => block[need] = Op::Need { bits },
    }
}

fn each_of_block(block: &mut Block, see: &mut dyn FnMut(&mut Reg, Use)) {
    for op in block {
        each_of_operation(op, see);
        match op {
            Op::Repeat { body, .. } => each_of_block(body, see),
            Op::Switch { arms, default, .. } => {
                arms.iter_mut().map(|(_, block)| block).chain(default).for_each(|block| each_of_block(block, see));
            }
            _ => {}
        }
    }
}

/// Registers of an operation itself, without those of blocks inside.
fn each_of_operation(op: &mut Op, see: &mut dyn FnMut(&mut Reg, Use)) {
    let source = |from: &mut Source, see: &mut dyn FnMut(&mut Reg, Use)| {
        if let Source::Register(from) = from {
            see(from, Use::Reads);
        }
    };
    match op {
        Op::Read { to, .. } | Op::Set { to, .. } | Op::Load { to, .. } | Op::Cycles { to } => see(to, Use::Writes),
        Op::Skip { count, .. } | Op::StoreList { count, .. } => source(count, see),
        Op::Leb { to, bits, .. } => [Some(to), bits.as_mut()].into_iter().flatten().for_each(|to| see(to, Use::Writes)),
        Op::Text { start, length, .. } => [start, length].into_iter().for_each(|to| see(to, Use::Writes)),
        Op::Bytes { start, length } => {
            source(length, see);
            see(start, Use::Writes);
        }
        Op::Cut { start, length, .. } | Op::StoreSpan { start, length, .. } => {
            [start, length].into_iter().for_each(|from| see(from, Use::Reads));
        }
        Op::Copy { to, from } | Op::Double { to, from, .. } => {
            see(from, Use::Reads);
            see(to, Use::Writes);
        }
        Op::Out { from, .. } | Op::Store { from, .. } | Op::Switch { on: from, .. } => see(from, Use::Reads),
        Op::Clock { from, bits } => {
            see(from, Use::Reads);
            source(bits, see);
        }
        Op::Repeat { count, index, .. } => {
            source(count, see);
            index.iter_mut().for_each(|index| see(index, Use::Writes));
        }
        Op::Emit(
            Emit::Integer { from, .. } | Emit::Real { from, .. } | Emit::Label { from, .. } | Emit::Flags { from, .. },
        ) => see(from, Use::Reads),
        Op::Emit(Emit::Text { start, length, .. } | Emit::Bytes { start, length, .. }) => {
            [start, length].into_iter().for_each(|from| see(from, Use::Reads));
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
