//! Checks before a program runs.
//!
//! They make sure that the machine can run any program that passes: jumps lead to instructions, registers, helper functions and maps
//! exist, the program does not run off its end. Whether it stays inside of its memory and comes to an end is checked while it runs.
//! The kernel's verifier asks for more: this is not a copy of it.

use super::helper::BpfHelper;
use super::instruction::{self, MachineInstruction, MachineOperand, STACK_POINTER, WideConstant};
use super::map::MapDefinition;
use super::problem::{MachineProblem, MachineProblemKind};

/// Instructions of a program at most, as in the kernel.
pub const INSTRUCTIONS_MAX: usize = 1_000_000;

/// A program that can run.
#[derive(Clone, Debug)]
pub struct MachineProgram {
    pub(super) instructions: Box<[MachineInstruction]>,
}

impl MachineProgram {
    /// Reads instructions, in the order of bytes of a little-endian machine, and checks them. Maps are those that the program
    /// names by their index in this list.
    ///
    /// # Errors
    ///
    /// The first instruction that cannot run, and why.
    ///
    /// ```
    /// use kymo_ir::machine::MachineProgram;
    ///
    /// // r0 = 7; exit
    /// let code = [[0xb7, 0, 0, 0, 7, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    /// assert!(MachineProgram::new(&code, &[]).is_ok());
    /// let problem = MachineProgram::new(&code[..1], &[]).unwrap_err();
    /// assert_eq!(
    ///     problem.to_string(),
    ///     "instruction 0: the program goes on behind its last instruction: it must end with an exit or a jump",
    /// );
    /// ```
    pub fn new(code: &[[u8; 8]], maps: &[MapDefinition]) -> Result<Self, MachineProblem> {
        if code.is_empty() {
            return Err(MachineProblem { at: 0, kind: MachineProblemKind::Empty });
        }
        if code.len() > INSTRUCTIONS_MAX {
            let kind = MachineProblemKind::TooLong { found: code.len(), limit: INSTRUCTIONS_MAX };
            return Err(MachineProblem { at: INSTRUCTIONS_MAX, kind });
        }
        let mut instructions = Vec::with_capacity(code.len());
        while instructions.len() < code.len() {
            let at = instructions.len();
            let decoded = instruction::decode(code, at).map_err(|kind| MachineProblem { at, kind })?;
            check(&decoded, maps).map_err(|kind| MachineProblem { at, kind })?;
            instructions.push(decoded);
            if matches!(decoded, MachineInstruction::LoadConstant { .. }) {
                instructions.push(MachineInstruction::SecondHalf);
            }
        }
        for (at, instruction) in instructions.iter().enumerate() {
            check_target(instruction, &instructions).map_err(|kind| MachineProblem { at, kind })?;
        }
        match instructions.last() {
            Some(MachineInstruction::Exit | MachineInstruction::Jump { .. }) => {}
            _ => return Err(MachineProblem { at: code.len() - 1, kind: MachineProblemKind::NoEnd }),
        }
        Ok(Self { instructions: instructions.into() })
    }

    /// Instructions, where a constant of 64 bits counts twice.
    #[must_use]
    pub fn instructions(&self) -> &[MachineInstruction] {
        &self.instructions
    }

    /// Helper functions that it calls, each once, in the order of their numbers.
    #[must_use]
    pub fn helpers(&self) -> Vec<&'static str> {
        let numbers = self.instructions.iter().filter_map(|instruction| match instruction {
            MachineInstruction::CallHelper { number } => Some(*number),
            _ => None,
        });
        let numbers: std::collections::BTreeSet<u32> = numbers.collect();
        numbers.into_iter().filter_map(super::helper::name_of).collect()
    }
}

fn is_register(register: u8) -> Result<(), MachineProblemKind> {
    if register <= STACK_POINTER { Ok(()) } else { Err(MachineProblemKind::UnknownRegister { register }) }
}

fn is_writable(register: u8) -> Result<(), MachineProblemKind> {
    is_register(register)?;
    if register == STACK_POINTER { Err(MachineProblemKind::WritesStackPointer) } else { Ok(()) }
}

fn is_operand(operand: MachineOperand) -> Result<(), MachineProblemKind> {
    match operand {
        MachineOperand::Register(register) => is_register(register),
        MachineOperand::Constant(_) => Ok(()),
    }
}

/// Registers, maps and helper functions exist.
fn check(instruction: &MachineInstruction, maps: &[MapDefinition]) -> Result<(), MachineProblemKind> {
    use MachineInstruction as I;
    match *instruction {
        I::Alu { to, from, .. } => is_writable(to).and_then(|()| is_operand(from)),
        I::SignExtend { to, from, .. } => is_writable(to).and_then(|()| is_register(from)),
        I::ByteSwap { to, .. } => is_writable(to),
        I::Load { to, base, .. } => is_writable(to).and_then(|()| is_register(base)),
        I::Store { base, from, .. } => is_register(base).and_then(|()| is_operand(from)),
        I::Atomic { base, from, fetches, .. } => {
            is_register(base).and_then(|()| if fetches { is_writable(from) } else { is_register(from) })
        }
        I::JumpIf { left, right, .. } => is_register(left).and_then(|()| is_operand(right)),
        I::LoadConstant { to, value } => is_writable(to).and_then(|()| is_constant(value, maps)),
        I::CallHelper { number } => is_helper(number),
        I::Jump { .. } | I::Call { .. } | I::SecondHalf | I::Absent | I::Exit => Ok(()),
    }
}

fn is_constant(value: WideConstant, maps: &[MapDefinition]) -> Result<(), MachineProblemKind> {
    let (map, offset) = match value {
        WideConstant::Number(_) | WideConstant::Function(_) => return Ok(()),
        WideConstant::Map(map) => (map, None),
        WideConstant::MapValue { map, offset } => (map, Some(offset)),
    };
    let found = maps.get(map as usize).ok_or(MachineProblemKind::UnknownMap { map, count: maps.len() })?;
    match offset {
        Some(offset) if offset >= found.value_bytes => {
            Err(MachineProblemKind::OutsideValue { map, offset, bytes: found.value_bytes })
        }
        _ => Ok(()),
    }
}

fn is_helper(number: u32) -> Result<(), MachineProblemKind> {
    match (BpfHelper::of(number), super::helper::name_of(number)) {
        (Some(_), _) => Ok(()),
        (None, Some(name)) => Err(MachineProblemKind::KernelHelper { number, name }),
        (None, None) => Err(MachineProblemKind::UnknownHelper { number }),
    }
}

fn check_target(instruction: &MachineInstruction, all: &[MachineInstruction]) -> Result<(), MachineProblemKind> {
    use MachineInstruction as I;
    let target = match *instruction {
        I::Jump { target } | I::JumpIf { target, .. } | I::Call { target } => target,
        I::LoadConstant { value: WideConstant::Function(target), .. } => target,
        _ => return Ok(()),
    };
    match all.get(target as usize) {
        None => Err(MachineProblemKind::JumpOutside { target: target.into() }),
        Some(I::SecondHalf) => Err(MachineProblemKind::JumpIntoConstant { target }),
        Some(_) => Ok(()),
    }
}
