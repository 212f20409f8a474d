//! Numbers with a meaning: clock cycles, nanoseconds, bit lengths, byte orders and ids.
//!
//! It must never know any format: these types give the meaning of a number, not its source.

#![no_std]

#[cfg(test)]
extern crate std;

mod uuid;

pub use uuid::{ParseUuidError, Uuid};

use core::fmt;

/// A raw value of a clock: ticks since the clock's own zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycles(pub u64);

/// Nanoseconds, since the Unix epoch where a clock has that origin, else since the clock's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub i64);

/// A length or a position in bits. Positions count from the first bit of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitLen(pub u64);

impl BitLen {
    /// The length of `bytes` bytes; `None` past 2^64 bits.
    #[must_use]
    pub fn from_bytes(bytes: u64) -> Option<Self> {
        bytes.checked_mul(8).map(Self)
    }
}

/// The order in which the bytes of a number follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl fmt::Display for Cycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for BitLen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
