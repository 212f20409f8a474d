//! The knowledge about a position before a program runs: its remainder modulo a power of two.
//!
//! ```text
//! entry 32 0 │ advance 8 → 32 8 │ align 5 → 32 0 │ skip r0 * 16 → 16 0 │ text → 8 0
//! ```
//!
//! A loop's head is known as far as every movement inside keeps it: all moves are multiples of
//! `2^granularity` bits, and alignments keep a remainder only if it is zero.

use crate::program::{BitPhase, NumberSource, Op};

/// Positions are numbers of 64 bits.
const MODULUS_LOG2_MAX: u8 = 63;

impl BitPhase {
    /// Whether every such position is a multiple of `2^log2` bits.
    #[must_use]
    pub fn is_aligned(self, log2: u8) -> bool {
        self.modulus_log2 >= log2 && self.phase & mask(log2) == 0
    }

    /// Behind a movement of exactly `bits`.
    #[must_use]
    pub fn advanced(self, bits: u64) -> Self {
        Self { phase: self.phase.wrapping_add(bits) & mask(self.modulus_log2), ..self }
    }

    /// Behind a movement by an unknown multiple of `2^log2` bits.
    #[must_use]
    pub fn moved(self, log2: u8) -> Self {
        let modulus_log2 = self.modulus_log2.min(log2).min(MODULUS_LOG2_MAX);
        Self { modulus_log2, phase: self.phase & mask(modulus_log2) }
    }

    /// Behind a movement up to a multiple of `2^log2` bits.
    #[must_use]
    pub fn aligned(self, log2: u8) -> Self {
        if log2 > self.modulus_log2 {
            return Self { modulus_log2: log2, phase: 0 };
        }
        self.advanced(self.phase.wrapping_neg() & mask(log2))
    }

    /// Where two paths meet: the part that both agree on.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        self.moved(other.modulus_log2.min((self.phase ^ other.phase).trailing_zeros() as u8))
    }

    /// At the head of every round of a loop over `body` that is entered here.
    #[must_use]
    pub fn loop_head(self, body: &[Op]) -> Self {
        let movement = Movement::of(body);
        let head = self.moved(movement.granularity_log2);
        if movement.aligns && head.phase != 0 { head.moved(head.phase.trailing_zeros() as u8) } else { head }
    }

    /// Behind an operation that has no blocks inside.
    #[must_use]
    pub fn behind(self, op: &Op) -> Self {
        match op {
            Op::Advance { bits } => self.advanced(*bits),
            Op::Skip { count: NumberSource::Constant(count), bits } => self.advanced(count.wrapping_mul(*bits)),
            Op::Bytes { length: NumberSource::Constant(length), .. } => self.advanced(length.wrapping_mul(8)),
            Op::Align { log2 } => self.aligned(*log2),
            _ => match granularity(op) {
                Some(log2) => self.moved(log2),
                None => self,
            },
        }
    }
}

/// How a block moves the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Movement {
    /// Every move but an alignment is a multiple of `2^granularity_log2` bits.
    pub granularity_log2: u8,
    /// There are alignments.
    pub aligns: bool,
}

impl Movement {
    /// Inspects all operations of a block, inner blocks included.
    #[must_use]
    pub fn of(block: &[Op]) -> Self {
        let mut movement = Self { granularity_log2: MODULUS_LOG2_MAX, aligns: false };
        movement.add(block);
        movement
    }

    fn add(&mut self, block: &[Op]) {
        for op in block {
            match op {
                Op::Align { .. } => self.aligns = true,
                Op::Repeat { body, .. } => self.add(body),
                Op::Switch { arms, default, .. } => {
                    arms.iter().map(|(_, block)| block).chain(default).for_each(|block| self.add(block));
                }
                _ => {
                    let log2 = granularity(op).unwrap_or(MODULUS_LOG2_MAX);
                    self.granularity_log2 = self.granularity_log2.min(log2);
                }
            }
        }
    }
}

/// The power of two that the movement of an operation without blocks is a multiple of; `None`: it does not move.
fn granularity(op: &Op) -> Option<u8> {
    let log2 = |bits: u64| (bits.trailing_zeros() as u8).min(MODULUS_LOG2_MAX);
    match op {
        Op::Advance { bits } => Some(log2(*bits)),
        Op::Skip { count: NumberSource::Constant(count), bits } => Some(log2(count.wrapping_mul(*bits))),
        Op::Skip { bits, .. } => Some(log2(*bits)),
        Op::Leb { .. } | Op::Text { .. } | Op::Bytes { .. } => Some(3),
        _ => None,
    }
}

fn mask(log2: u8) -> u64 {
    1_u64.checked_shl(u32::from(log2)).map_or(u64::MAX, |bit| bit - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(modulus_log2: u8, phase: u64) -> BitPhase {
        BitPhase { modulus_log2, phase }
    }

    #[test]
    fn alignment_keeps_what_is_finer() {
        assert_eq!(at(5, 3).aligned(3), at(5, 8));
        assert_eq!(at(5, 8).aligned(3), at(5, 8));
        assert_eq!(at(2, 1).aligned(3), at(3, 0));
    }

    #[test]
    fn paths_keep_what_they_agree_on() {
        assert_eq!(at(5, 8).join(at(5, 16)), at(3, 0));
        assert_eq!(at(5, 3).join(at(5, 4)), at(0, 0));
        assert_eq!(at(5, 8).join(at(5, 8)), at(5, 8));
    }

    #[test]
    fn a_loop_knows_what_every_round_keeps() {
        let skip = |bits| Op::Skip { count: NumberSource::Constant(1), bits };
        assert_eq!(at(5, 8).loop_head(&[skip(16)]), at(4, 8));
        assert_eq!(at(5, 8).loop_head(&[skip(16), Op::Align { log2: 4 }]), at(3, 0));
        assert_eq!(at(5, 0).loop_head(&[skip(1)]), at(0, 0));
    }
}
