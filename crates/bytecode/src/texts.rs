//! Texts outside an event's arguments, which hold their addresses.

/// Texts that arguments point to. The provider of the arguments interprets their addresses.
pub trait Texts {
    /// Returns the bytes of a text. For an invalid address, return a substitute, for example an
    /// empty text. An instruction takes time proportional to the length: truncate longer texts if
    /// you want a limit.
    fn text(&self, address: u64, length: u64) -> &[u8];
}

/// There are no texts outside: every one is empty.
impl Texts for () {
    fn text(&self, _: u64, _: u64) -> &[u8] {
        &[]
    }
}
