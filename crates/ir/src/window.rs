//! The bytes of a packet that a program runs on.
//!
//! ```text
//!            origin            end of content known to be at hand
//! packet ──────┬──────────────────────┬───────┬──> bits
//!              │ window.bytes         │ slack │
//! ```
//!
//! Positions always count from the packet's first bit, so that alignment needs no other number.

/// Readable bytes behind `PacketWindow::end`: wide loads may touch them, no result depends on them.
pub const SLACK: usize = 16;

/// A part of a packet that is in memory.
#[derive(Clone, Copy, Debug)]
pub struct PacketWindow<'a> {
    bytes: &'a [u8],
    origin: u64,
    end: u64,
}

impl<'a> PacketWindow<'a> {
    /// `bytes` begin at byte `origin` of the packet, end with [`SLACK`] bytes of any value, and hold all
    /// bits before `end`, a position in bits.
    ///
    /// # Panics
    ///
    /// If `bytes` is shorter than that, or `end` lies before `origin`.
    #[must_use]
    pub fn new(bytes: &'a [u8], origin: u64, end: u64) -> Self {
        assert!(end / 8 >= origin, "the window ends at bit {end}, before its first byte {origin}");
        let needed = end.div_ceil(8) - origin + SLACK as u64;
        assert!(bytes.len() as u64 >= needed, "{} bytes at hand, {needed} needed", bytes.len());
        Self { bytes, origin, end }
    }

    /// The bytes, slack included.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The byte of the packet that `bytes()[0]` is.
    #[must_use]
    pub fn origin(&self) -> u64 {
        self.origin
    }

    /// The first position that must not be read.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }
}
