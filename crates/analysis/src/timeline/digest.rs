//! Numbers that stand for values of events: keys of tracks, of pairs of begins and ends, of
//! messages.

use crate::EventValue;

/// Bits of numbers that stand for something: those above say what it is.
pub(super) const NUMBER_BITS: u32 = 62;
pub(super) const NUMBER: u64 = (1 << NUMBER_BITS) - 1;

/// A number that stands for values, the same everywhere and always.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Digest(u64);

impl Digest {
    pub(super) fn word(self, word: u64) -> Self {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(mixed ^ mixed >> 29)
    }

    /// A value follows.
    pub(super) fn with(self, value: EventValue<'_>) -> Self {
        match value {
            EventValue::Integer(integer) => self.word(1).word(integer.cast_unsigned()),
            EventValue::Real(real) => self.word(2).word(real.to_bits()),
            EventValue::Text(text) => {
                let (words, rest) = text.as_chunks::<8>();
                let mut last = [0; 8];
                last[..rest.len()].copy_from_slice(rest);
                let all = words
                    .iter()
                    .fold(self.word(3 + text.len() as u64), |all, word| all.word(u64::from_le_bytes(*word)));
                all.word(u64::from_le_bytes(last))
            }
        }
    }

    /// The number; never 0.
    pub(super) fn number(self) -> u64 {
        let Self(spread) = self.word(0xc2b2_ae3d_27d4_eb4f);
        (spread & NUMBER).max(1)
    }
}
