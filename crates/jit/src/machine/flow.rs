//! The ways through a function of a program, and the registers that matter at each instruction.
//!
//! A function is the instructions that are reached from its first one; functions may share some. A register is *live* at an instruction
//! if its number may still be read: when the evaluator goes on in the middle of a function, it is handed those alone.

use std::collections::{BTreeMap, BTreeSet};

use kymo_ir::machine::native::argument_count;
use kymo_ir::machine::{AluOperation, AtomicOperation, MachineInstruction, MachineOperand};

/// A set of registers, one bit each.
pub(super) type RegisterSet = u16;

/// r1 to r5.
pub(super) const ARGUMENTS: RegisterSet = 0b11_1110;
/// Registers that a caller may leave to a function beside its arguments: r0 and r6 to r9.
pub(super) const LEFT: RegisterSet = 0b11_1100_0001;

/// Instructions that follow each other.
#[derive(Clone, Debug)]
pub(super) struct FlowBlock {
    /// Behind its last instruction.
    pub(super) end: usize,
    /// Blocks that it leads to: where a jump leads, then the next instruction.
    pub(super) next: Vec<usize>,
}

/// A function.
#[derive(Clone, Debug)]
pub(super) struct FunctionFlow {
    pub(super) start: usize,
    /// Blocks by their first instruction.
    pub(super) blocks: BTreeMap<usize, FlowBlock>,
}

/// What functions do with registers beyond the convention: programs of compilers never do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RegisterHabits {
    /// A function reads registers that its caller left.
    pub(super) reads_left: bool,
    /// A caller reads arguments that a function left.
    pub(super) reads_arguments: bool,
}

/// Where the instruction may lead; `None`: to the next one alone.
fn targets(code: &[MachineInstruction], at: usize) -> Option<Vec<usize>> {
    match code[at] {
        MachineInstruction::Jump { target } => Some(vec![target as usize]),
        MachineInstruction::JumpIf { target, .. } => Some(vec![target as usize, at + 1]),
        MachineInstruction::Exit | MachineInstruction::Absent => Some(Vec::new()),
        _ => None,
    }
}

impl FunctionFlow {
    pub(super) fn new(code: &[MachineInstruction], start: usize) -> Self {
        let (mut firsts, mut seen, mut todo) = (BTreeSet::from([start]), BTreeSet::new(), vec![start]);
        while let Some(at) = todo.pop() {
            if seen.insert(at) {
                match targets(code, at) {
                    Some(targets) => {
                        firsts.extend(&targets);
                        todo.extend(targets);
                    }
                    None => todo.push(at + 1),
                }
            }
        }
        let block = |first: usize| {
            let mut at = first;
            loop {
                if let Some(next) = targets(code, at) {
                    return (first, FlowBlock { end: at + 1, next });
                }
                at += 1;
                if firsts.contains(&at) {
                    return (first, FlowBlock { end: at, next: vec![at] });
                }
            }
        };
        Self { start, blocks: firsts.iter().copied().map(block).collect() }
    }

    /// Instructions of all blocks.
    pub(super) fn size(&self) -> usize {
        self.blocks.iter().map(|(first, block)| block.end - first).sum()
    }

    /// Registers that are live at each instruction.
    pub(super) fn live(&self, code: &[MachineInstruction], habits: RegisterHabits) -> BTreeMap<usize, RegisterSet> {
        let mut live: BTreeMap<usize, RegisterSet> = BTreeMap::new();
        loop {
            let mut is_changed = false;
            for (first, block) in self.blocks.iter().rev() {
                let behind = block.next.iter().map(|next| live.get(next).copied().unwrap_or(0));
                let mut now = behind.fold(0, |all, live| all | live);
                for at in (*first..block.end).rev() {
                    let (reads, writes) = touched(&code[at], habits);
                    now = now & !writes | reads;
                    is_changed |= live.insert(at, now) != Some(now);
                }
            }
            if !is_changed {
                return live;
            }
        }
    }

    /// Whether a caller in this function reads arguments behind a call.
    pub(super) fn reads_arguments(&self, code: &[MachineInstruction], live: &BTreeMap<usize, RegisterSet>) -> bool {
        let is_call = |at: &&usize| matches!(code[**at], MachineInstruction::Call { .. });
        live.keys().filter(is_call).any(|at| live.get(&(at + 1)).is_some_and(|live| live & ARGUMENTS != 0))
    }
}

fn one(register: u8) -> RegisterSet {
    // The end of the stack is known everywhere.
    if register < 10 { 1 << register } else { 0 }
}

fn operand(operand: MachineOperand) -> RegisterSet {
    match operand {
        MachineOperand::Register(register) => one(register),
        MachineOperand::Constant(_) => 0,
    }
}

/// Registers that an instruction reads, and those that it writes.
fn touched(instruction: &MachineInstruction, habits: RegisterHabits) -> (RegisterSet, RegisterSet) {
    use MachineInstruction as I;
    match *instruction {
        I::Alu { operation: AluOperation::Move, to, from, .. } => (operand(from), one(to)),
        I::Alu { to, from, .. } => (one(to) | operand(from), one(to)),
        I::SignExtend { to, from, .. } => (one(from), one(to)),
        I::ByteSwap { to, .. } => (one(to), one(to)),
        I::Load { to, base, .. } => (one(base), one(to)),
        I::Store { base, from, .. } => (one(base) | operand(from), 0),
        I::Atomic { operation: AtomicOperation::CompareExchange, base, from, .. } => (one(base) | one(from) | 1, 1),
        I::Atomic { base, from, fetches, .. } => (one(base) | one(from), if fetches { one(from) } else { 0 }),
        I::JumpIf { left, right, .. } => (one(left) | operand(right), 0),
        I::Call { .. } => {
            let left = if habits.reads_left { LEFT } else { 0 };
            (ARGUMENTS | left, 1 | if habits.reads_arguments { ARGUMENTS } else { 0 })
        }
        I::CallHelper { number } => (ARGUMENTS & ((1 << (argument_count(number) + 1)) - 1), 1),
        I::LoadConstant { to, .. } => (0, one(to)),
        I::Exit => (1 | if habits.reads_arguments { ARGUMENTS } else { 0 }, 0),
        I::Jump { .. } | I::SecondHalf | I::Absent => (0, 0),
    }
}
