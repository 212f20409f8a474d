//! A list of instructions with labels to jump to, and the kernel's demands on the finished list.
//!
//! The kernel refuses instructions that no path leads to, and jumps reach 32767 instructions far.
//! So the list is shorter than that, and unreachable instructions are left out at the end:
//!
//! ```text
//!    goto drop          goto drop +1
//!    r2 = 5        ->
//! drop:                 r0 = 0
//!    r0 = 0
//! ```

use super::SCRATCH;
use super::instruction::{BpfInstruction, BpfOperand, BpfRegister, JumpCondition, Operation};

/// Instructions of a program, at most: every jump inside it can be encoded.
pub const INSTRUCTIONS_MAX: usize = 1 << 15;

/// A place to jump to. Jumps go forward only: a label is placed behind all jumps to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BpfLabel(u32);

/// Where a label is that has not been placed.
const NOWHERE: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct Assembly {
    instructions: Vec<BpfInstruction>,
    /// For each label the instruction that it stands before.
    labels: Vec<u32>,
    /// Jumps in rising order, and where they go.
    jumps: Vec<(u32, BpfLabel)>,
}

impl Assembly {
    pub(super) fn label(&mut self) -> BpfLabel {
        self.labels.push(NOWHERE);
        BpfLabel(self.labels.len() as u32 - 1)
    }

    /// The next pushed instruction stands at the label.
    pub(super) fn place(&mut self, label: BpfLabel) {
        self.labels[label.0 as usize] = self.instructions.len() as u32;
    }

    pub(super) fn push(&mut self, instruction: BpfInstruction) {
        self.instructions.push(instruction);
    }

    /// It has become too long; further instructions are of no use.
    pub(super) fn is_full(&self) -> bool {
        self.instructions.len() > INSTRUCTIONS_MAX
    }

    pub(super) fn operation(&mut self, operation: Operation, destination: BpfRegister, operand: BpfOperand) {
        self.push(BpfInstruction::operation(operation, destination, operand));
    }

    pub(super) fn copy(&mut self, destination: BpfRegister, source: BpfRegister) {
        if destination != source {
            self.operation(Operation::Move, destination, BpfOperand::Register(source));
        }
    }

    pub(super) fn constant(&mut self, destination: BpfRegister, value: u64) {
        match i32::try_from(value as i64) {
            Ok(value) => self.operation(Operation::Move, destination, BpfOperand::Constant(value)),
            Err(_) => self.instructions.extend(BpfInstruction::constant(destination, value)),
        }
    }

    /// Goes to the target if the condition holds. May use the scratch register.
    pub(super) fn jump_if(&mut self, condition: JumpCondition, left: BpfRegister, right: BpfOperand, target: BpfLabel) {
        let right = match right {
            // The kernel sign-extends the constants of all jumps; virtual machines do not agree on unsigned ones.
            BpfOperand::Constant(value) if value < 0 && !condition.is_signed() => {
                assert!(left != SCRATCH, "what is compared is still needed");
                self.operation(Operation::Move, SCRATCH, right);
                BpfOperand::Register(SCRATCH)
            }
            same => same,
        };
        self.jumps.push((self.instructions.len() as u32, target));
        self.push(BpfInstruction::jump_if(condition, left, right));
    }

    pub(super) fn jump(&mut self, target: BpfLabel) {
        self.jumps.push((self.instructions.len() as u32, target));
        self.push(BpfInstruction::jump());
    }

    /// The program, without unreachable instructions; `None` if it is too long.
    pub(super) fn finish(self) -> Option<Vec<BpfInstruction>> {
        if self.is_full() {
            return None;
        }
        let targets = self.targets();
        let is_kept = kept(&targets, self.reached(&targets));
        let mut places = Vec::with_capacity(is_kept.len() + 1);
        let mut count = 0;
        for is_kept in is_kept {
            places.push(count);
            count += i32::from(is_kept);
        }
        places.push(count);
        let mut program = Vec::with_capacity(count as usize);
        for (index, instruction) in self.instructions.iter().enumerate() {
            if places[index] == places[index + 1] {
                continue;
            }
            let offset = targets[index].map_or(instruction.offset, |target| {
                let distance = places[target] - places[index] - 1;
                i16::try_from(distance).expect("the program is shorter than jumps are far")
            });
            program.push(BpfInstruction { offset, ..*instruction });
        }
        Some(program)
    }

    /// For each instruction the one that it may jump to.
    fn targets(&self) -> Vec<Option<usize>> {
        let mut targets = vec![None; self.instructions.len()];
        for &(from, label) in &self.jumps {
            let target = self.labels[label.0 as usize];
            assert!(target != NOWHERE && target > from, "labels are placed behind the jumps to them");
            targets[from as usize] = Some(target as usize);
        }
        targets
    }

    /// Whether a path leads to an instruction. As jumps go forward one pass finds out.
    fn reached(&self, targets: &[Option<usize>]) -> Vec<bool> {
        let mut is_reached = vec![false; self.instructions.len()];
        is_reached[0] = true;
        for (index, instruction) in self.instructions.iter().enumerate() {
            if !is_reached[index] {
                continue;
            }
            if let Some(target) = targets[index] {
                is_reached[target] = true;
            }
            if !instruction.is_end() {
                is_reached[index + 1] = true;
            }
        }
        is_reached
    }
}

/// Leaves out jumps to the next instruction, from the last one to the first, of the reachable
/// instructions.
fn kept(targets: &[Option<usize>], is_reached: Vec<bool>) -> Vec<bool> {
    let mut is_kept = is_reached;
    // For each instruction the first one from there on that is kept.
    let mut following = vec![is_kept.len(); is_kept.len() + 1];
    for index in (0..is_kept.len()).rev() {
        let is_idle = targets[index].is_some_and(|target| following[index + 1] == following[target]);
        is_kept[index] &= !is_idle;
        following[index] = if is_kept[index] { index } else { following[index + 1] };
    }
    is_kept
}
