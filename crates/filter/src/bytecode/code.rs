//! Instructions with labels in place of counts, and their final form.
//!
//! ```text
//! emitted     1  cpu == 2 -> L1      2  jump -> L2    L1: 3  keep     L2: 4  jump -> L3     L3: 5  drop
//! finished    1  cpu != 2 -> 3       2  keep                          3  drop
//!
//! Jumps lead past jumps, a test that jumps around a jump is inverted, what nobody reaches and jumps to what is next are gone,
//! labels are counts, and each instruction says which registers it and those behind it need.
//! ```
//!
//! Labels are placed behind all jumps to them, so that one look from the end to the beginning is enough.

use std::collections::HashMap;

use kymo_bytecode::{
    CONSTANTS_MAX, INSTRUCTIONS_MAX, Instruction, LiteralBytes, RegisterSet, TEXTS, find_needs, header,
};
use kymo_ir::predicate::Input;

/// A place in the code that jumps lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodeLabel(usize);

/// Which text each register of texts holds.
type Held = [Option<Input>; TEXTS as usize];

#[derive(Debug, Default)]
pub(super) struct CodeBuffer {
    instructions: Vec<(Instruction, Option<CodeLabel>)>,
    /// For each label: where it is, and the texts that registers hold on all the ways there;
    /// `None`: no way is known.
    labels: Vec<(usize, Option<Held>)>,
    constants: Vec<u8>,
    known: HashMap<Box<[u8]>, u32>,
    /// The texts that registers hold here; `None`: nothing leads here.
    held: Option<Held>,
    /// The register of texts that is written next.
    next_text: u8,
}

impl CodeBuffer {
    pub(super) fn new() -> Self {
        Self { held: Some(Held::default()), ..Self::default() }
    }

    /// Whether it has more than fits, so that one may as well stop.
    pub(super) fn is_full(&self) -> bool {
        self.instructions.len() > 4 * INSTRUCTIONS_MAX || self.constants.len() > CONSTANTS_MAX
    }

    pub(super) fn label(&mut self) -> CodeLabel {
        self.labels.push((0, None));
        CodeLabel(self.labels.len() - 1)
    }

    /// An instruction that does not jump. An unreachable one is not written.
    pub(super) fn push(&mut self, instruction: Instruction) {
        if self.held.is_some() {
            self.instructions.push((instruction, None));
        }
        if !instruction.falls_through() {
            self.held = None;
        }
    }

    /// An instruction that may jump to a label, if it is one that jumps at all.
    pub(super) fn push_to(&mut self, instruction: Instruction, label: CodeLabel) {
        let Some(here) = self.held else { return };
        if instruction.skip().is_none() {
            return self.push(instruction);
        }
        self.instructions.push((instruction, Some(label)));
        let there = &mut self.labels[label.0].1;
        *there = Some(there.map_or(here, |there| common(there, here)));
        if !instruction.falls_through() {
            self.held = None;
        }
    }

    pub(super) fn jump(&mut self, label: CodeLabel) {
        self.push_to(Instruction::Jump { skip: 0 }, label);
    }

    /// The label stands here. It was not placed before.
    pub(super) fn place(&mut self, label: CodeLabel) {
        let (position, there) = &mut self.labels[label.0];
        *position = self.instructions.len();
        self.held = match (self.held, *there) {
            (Some(here), Some(there)) => Some(common(here, there)),
            (here, there) => here.or(there),
        };
    }

    /// The register that holds a text on all ways here.
    pub(super) fn text(&self, input: Input) -> Option<u8> {
        let held = self.held?;
        (0..TEXTS).find(|&register| held[usize::from(register)] == Some(input))
    }

    /// A register for a text, that keeps the text of another one.
    pub(super) fn new_text(&mut self, input: Input, keep: Option<u8>) -> u8 {
        if Some(self.next_text) == keep {
            self.next_text = (self.next_text + 1) % TEXTS;
        }
        let register = self.next_text;
        self.next_text = (register + 1) % TEXTS;
        if let Some(held) = &mut self.held {
            held[usize::from(register)] = Some(input);
        }
        register
    }

    /// Bytes among the constants; `None`: there is no room for them.
    pub(super) fn constant(&mut self, bytes: &[u8]) -> Option<LiteralBytes> {
        let length = u32::try_from(bytes.len()).ok()?;
        if let Some(&offset) = self.known.get(bytes) {
            return Some(LiteralBytes { offset, length });
        }
        if self.constants.len() + bytes.len() > CONSTANTS_MAX {
            return None;
        }
        let offset = self.constants.len() as u32;
        self.constants.extend_from_slice(bytes);
        self.known.insert(bytes.into(), offset);
        Some(LiteralBytes { offset, length })
    }

    /// The program for arguments of `size` bytes; `None`: it has too many instructions.
    pub(super) fn finish(self, size: u32) -> Option<Vec<u8>> {
        let mut linked = compacted(&self.linked());
        straighten(&mut linked);
        let linked = compacted(&linked);
        if linked.len() > INSTRUCTIONS_MAX {
            return None;
        }
        let skip = |index: usize, target: usize| (target - index - 1) as u16;
        let instructions: Vec<Instruction> = linked
            .into_iter()
            .enumerate()
            .map(|(index, (mut instruction, target))| {
                instruction.set_skip(target.map_or(0, |target| skip(index, target)));
                instruction
            })
            .collect();
        let mut needs = vec![RegisterSet::default(); instructions.len()];
        find_needs(&instructions, &mut needs);
        let mut bytes = header(size, instructions.len() as u16, self.constants.len() as u32).to_vec();
        for (instruction, needs) in instructions.iter().zip(needs) {
            bytes.extend(instruction.encode(needs));
        }
        bytes.extend(self.constants);
        Some(bytes)
    }

    /// Instructions with numbers in place of labels; jumps lead past other jumps.
    fn linked(&self) -> Linked {
        let mut targets: Vec<Option<usize>> = vec![None; self.instructions.len()];
        for (index, (_, label)) in self.instructions.iter().enumerate().rev() {
            let Some(label) = label else { continue };
            let target = self.labels[label.0].0;
            let past = targets[target].filter(|_| is_jump(&self.instructions[target].0));
            targets[index] = Some(past.unwrap_or(target));
        }
        self.instructions.iter().zip(targets).map(|((instruction, _), target)| (*instruction, target)).collect()
    }
}

/// Instructions, and the numbers of those that they jump to.
type Linked = Vec<(Instruction, Option<usize>)>;

fn is_jump(instruction: &Instruction) -> bool {
    matches!(instruction, Instruction::Jump { .. })
}

/// Inverts tests that jump around a jump, which then jumps to the next instruction.
fn straighten(linked: &mut Linked) {
    let mut is_target = vec![false; linked.len()];
    linked.iter().filter_map(|(_, target)| *target).for_each(|target| is_target[target] = true);
    for index in 0..linked.len().saturating_sub(2) {
        let (around, behind) = (index + 1, index + 2);
        if linked[index].1 != Some(behind) || is_target[around] || !is_jump(&linked[around].0) {
            continue;
        }
        if let Some(inverted) = linked[index].0.inverted() {
            linked[index] = (inverted, linked[around].1);
            linked[around].1 = Some(behind);
        }
    }
}

/// Without unreachable instructions, and without those that just lead to the next one.
fn compacted(linked: &Linked) -> Linked {
    let count = linked.len();
    let mut kept = vec![false; count];
    kept[0] = true;
    for (index, (instruction, target)) in linked.iter().enumerate() {
        if kept[index] {
            if instruction.falls_through() {
                kept[index + 1] = true;
            }
            target.iter().for_each(|&target| kept[target] = true);
        }
    }
    // The first one that is kept at or behind each index.
    let mut first_kept = vec![count; count + 1];
    for (index, (instruction, target)) in linked.iter().enumerate().rev() {
        let is_idle = instruction.writes() == RegisterSet::default()
            && target.is_some_and(|target| first_kept[target] == first_kept[index + 1]);
        kept[index] &= !is_idle;
        first_kept[index] = if kept[index] { index } else { first_kept[index + 1] };
    }
    // The new number of each one is how many are kept before it.
    let mut numbers = Vec::with_capacity(count + 1);
    numbers.push(0);
    for is_kept in &kept {
        numbers.push(numbers[numbers.len() - 1] + usize::from(*is_kept));
    }
    let kept_ones = linked.iter().zip(kept).filter(|(_, is_kept)| *is_kept);
    kept_ones.map(|((instruction, target), _)| (*instruction, target.map(|target| numbers[target]))).collect()
}

/// The texts that both ways hold.
fn common(one: Held, other: Held) -> Held {
    std::array::from_fn(|register| one[register].filter(|input| other[register] == Some(*input)))
}
