//! Texts that are not among the arguments of an event, but behind an address there.

/// The texts that arguments point to. Whoever has the arguments knows what their addresses mean.
pub trait Texts {
    /// The bytes of a text; for an address of nothing whatever shall stand for it, as an empty text. An instruction takes
    /// time for each of them: who wants a limit cuts what is longer.
    fn text(&self, address: u64, length: u64) -> &[u8];
}

/// No text is elsewhere: every one is empty.
impl Texts for () {
    fn text(&self, _: u64, _: u64) -> &[u8] {
        &[]
    }
}
