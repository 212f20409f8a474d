//! The conditions for calling machine code: checked before a program is compiled, and at each call.
//!
//! Machine code checks its bounds as the program says, and trusts the program to say so. A program
//! that the verifier refuses is never compiled, whatever its origin; nor is one that would take
//! long to compile. At a call, positions must lie in the window and slots must be there; `PacketWindow`
//! itself promises its bytes.

use kymo_ir::{Op, PacketWindow, ReadProgram, verify};

/// Operations of a program that is worth compiling; longer ones are left to the evaluator.
const OPERATIONS_MAX: usize = 4096;

/// Slots that a program needs, if it may be compiled.
///
/// A program is let through if its loops inside each other may take no bits for long: the
/// evaluator would take as long, and no bound is passed.
pub(crate) fn slots(program: &ReadProgram) -> Option<usize> {
    let is_sound = verify::verify_bounds(program).is_ok();
    let mut facts = ProgramSize::default();
    facts.block(&program.body);
    (is_sound && facts.operations <= OPERATIONS_MAX).then_some(facts.slots)
}

/// As [`slots`], for a program that is not compiled yet and may never be.
pub(crate) fn slots_used(program: &ReadProgram) -> usize {
    let mut facts = ProgramSize::default();
    facts.block(&program.body);
    facts.slots
}

#[derive(Default)]
struct ProgramSize {
    operations: usize,
    slots: usize,
}

impl ProgramSize {
    fn block(&mut self, block: &[Op]) {
        self.operations += block.len();
        for op in block {
            match op {
                Op::Load { slot, .. } | Op::Out { slot, .. } => self.slots = self.slots.max(usize::from(slot.0) + 1),
                Op::Repeat { body, .. } => self.block(body),
                Op::Switch { arms, default, .. } => {
                    arms.iter().for_each(|(_, block)| self.block(block));
                    default.iter().for_each(|block| self.block(block));
                }
                _ => {}
            }
        }
    }
}

/// Machine code may begin at these positions.
///
/// # Panics
///
/// If one lies outside of the window, or there are too few slots: machine code would touch memory that is not its own.
pub(crate) fn check(window: PacketWindow<'_>, positions: &[u64], slots: &[u64], needed: usize) {
    assert!(slots.len() >= needed, "{} slots; the program needs {needed}", slots.len());
    let lowest = window.origin() * 8;
    // Without branches, so that the compiler checks several at a time.
    let inside = positions.iter().fold(true, |inside, &at| inside & (lowest <= at) & (at <= window.end()));
    assert!(inside, "a position lies outside of the window, bits {lowest} to {}", window.end());
}
