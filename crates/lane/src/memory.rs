//! The memory, as each side sees it.
//!
//! ```text
//! Memory   the program: mapped, cannot fail      words, whole and in order; bytes of events, plain
//! View     the recorder: read by system calls,   the same words, each of them whole; everything may be a lie
//!          as the program may take it away
//! ```
//!
//! The protocol is written once over these two, so that a model checker runs what programs run.

use core::sync::atomic::Ordering;

/// The memory as the program sees it, which made it. Places are bytes from its begin; words lie at multiples of 8.
pub trait Memory {
    /// A word.
    fn load(&self, at: u64, order: Ordering) -> u64;
    /// Changes one.
    fn store(&self, at: u64, value: u64, order: Ordering);
    /// Changes one if it is what it was; what was done before by whoever changed it last is seen, and what was done here is seen
    /// by whoever does next.
    fn exchange(&self, at: u64, old: u64, new: u64) -> bool;
    /// Adds to one, in one step also for handlers of signals; what it was.
    fn add(&self, at: u64, more: u64) -> u64;
    /// A byte; what the recorder did before it set that is done.
    fn byte(&self, at: u64) -> u8;
    /// Makes a byte 0.
    fn clear(&self, at: u64);
    /// Writes bytes that nobody looks at before they are published.
    fn put(&self, at: u64, bytes: &[u8]);
    /// Orders what is before it and what is behind it.
    fn fence(&self, order: Ordering);
    /// Makes sure that there is memory; whether there is.
    fn reserve(&self, at: u64, bytes: u64) -> bool;
    /// Rings the bell; whether there is one.
    fn ring(&self) -> bool;
}

/// The memory as the recorder sees it, who trusts nobody.
pub trait View {
    /// Why it cannot be seen.
    type Fault;

    /// A word; what was written before it is seen by who looks later.
    ///
    /// # Errors
    ///
    /// It is not there.
    fn word(&self, at: u64) -> Result<u64, Self::Fault>;

    /// Bytes, in no order.
    ///
    /// # Errors
    ///
    /// They are not there.
    fn copy(&self, at: u64, into: &mut [u8]) -> Result<(), Self::Fault>;

    /// What is looked at before this is not looked at behind it.
    fn fence(&self);

    /// What was changed before this is seen by others before anything is looked at behind it.
    fn settle(&self);

    /// Changes a byte, when all that was looked at before has been.
    ///
    /// # Errors
    ///
    /// It is not there.
    fn set_byte(&self, at: u64, value: u8) -> Result<(), Self::Fault>;

    /// Changes a word of which only matters whether it is another one; it need not change in one step.
    ///
    /// # Errors
    ///
    /// It is not there.
    fn set_word(&self, at: u64, value: u64) -> Result<(), Self::Fault>;
}
