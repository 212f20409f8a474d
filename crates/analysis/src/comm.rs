//! Names of threads as the kernel has them: up to 16 bytes, in two registers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A thread's name: its bytes, the first lowest. The empty one is that of no thread.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Comm([u64; 2]);

/// Bytes of a name at most.
pub(crate) const BYTES: usize = 16;

impl Comm {
    /// A name; of a longer one its beginning.
    #[must_use]
    pub fn new(name: &[u8]) -> Self {
        let mut bytes = [0; BYTES];
        let length = name.len().min(BYTES);
        bytes[..length].copy_from_slice(&name[..length]);
        Self::of_number(u128::from_le_bytes(bytes))
    }

    /// The name that so many of these bytes are: no byte is looked at alone, which would cost more than all else.
    #[inline]
    pub(crate) fn of_padded(bytes: [u8; BYTES], length: usize) -> Self {
        let all = u128::from_le_bytes(bytes);
        Self::of_number(if length < BYTES { all & !(u128::MAX << (8 * length)) } else { all })
    }

    /// The name that stands in a span (first byte, length) of bytes with slack behind them.
    #[inline]
    pub(crate) fn of_span(bytes: &[u8], (first, length): (usize, usize)) -> Self {
        let bytes = bytes.get(first..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(Self::default(), |bytes| Self::of_padded(*bytes, length))
    }

    #[inline]
    fn of_number(number: u128) -> Self {
        Self([number as u64, (number >> 64) as u64])
    }

    /// Whether there is no name.
    #[must_use]
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == [0, 0]
    }

    /// A number that stands for the name, the same everywhere; 0 for no name.
    #[must_use]
    #[inline]
    pub fn digest(self) -> u64 {
        let [low, high] = self.0;
        // Odd factors lose nothing of either half; the shifts bring high bits down.
        let mixed = (low ^ low >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ high.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        mixed ^ mixed >> 32
    }

    /// This name, or another one if there is none.
    #[must_use]
    #[inline]
    pub fn or(self, other: Self) -> Self {
        if self.is_empty() { other } else { self }
    }

    /// Its bytes; those behind it are 0.
    pub(crate) fn bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(self.0.map(u64::to_le_bytes).as_flattened());
        bytes
    }

    /// As text, if there is a name.
    #[must_use]
    pub fn text(self) -> Option<String> {
        (!self.is_empty()).then(|| self.to_string())
    }
}

impl fmt::Display for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let halves = self.0.map(u64::to_le_bytes);
        let bytes = halves.as_flattened();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(BYTES);
        f.write_str(&String::from_utf8_lossy(&bytes[..end]))
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_their_bytes() {
        assert_eq!(Comm::new(b"bash").text().as_deref(), Some("bash"));
        assert_eq!(Comm::new(b"").text(), None);
        assert_eq!(Comm::new(b"a name that is too long"), Comm::new(b"a name that is t"));
        for length in 0..=17 {
            let name = &b"0123456789abcdefg"[..length.min(16)];
            assert_eq!(Comm::of_padded(*b"0123456789abcdef", length), Comm::new(name), "{length}");
        }
    }
}
