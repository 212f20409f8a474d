//! Access to the memory, one trait for each side.
//!
//! ```text
//! ProgramMemory   the program: mapped, cannot fail      words, whole and in order; bytes of events, plain
//! MemoryView      the recorder: read by system calls,   the same words, each of them whole; everything may be a lie
//!                 as the program may take it away
//! ```
//!
//! The protocol is written once over these two traits, so that a model checker runs the code that
//! programs run.

use core::sync::atomic::Ordering;

/// The memory as seen by the program that created it. Places are byte offsets from its beginning;
/// words lie at multiples of 8.
pub trait ProgramMemory {
    /// Loads a word.
    fn load(&self, at: u64, order: Ordering) -> u64;
    /// Stores a word.
    fn store(&self, at: u64, value: u64, order: Ordering);
    /// Compare-and-swap of a word, with acquire ordering and release ordering on success: this side
    /// sees all writes that preceded the last exchange of the word, and the next exchange sees all
    /// writes that precede this one. Returns whether it succeeded.
    fn compare_exchange(&self, at: u64, old: u64, new: u64) -> bool;
    /// Atomic fetch-and-add, also with respect to signal handlers. Returns the old value.
    fn add(&self, at: u64, more: u64) -> u64;
    /// Adds to a word that no other thread writes, atomically with respect to signal handlers of this one.
    fn add_alone(&self, at: u64, more: u64) {
        self.add(at, more);
    }
    /// Loads a byte (acquire): all writes of the recorder before it set the byte are visible.
    fn byte(&self, at: u64) -> u8;
    /// Stores 0 to a byte.
    fn clear(&self, at: u64);
    /// Writes bytes that no reader looks at before they are published.
    fn put(&self, at: u64, bytes: &[u8]);
    /// Loads a number of 1, 2, 4 or 8 bytes at any place.
    fn load_part(&self, at: u64, bytes: u8) -> u64 {
        let (word, shift, mask) = part(at, bytes);
        let low = self.load(word, Ordering::Relaxed) >> shift;
        if shift + 8 * u32::from(bytes) > 64 {
            return (low | self.load(word + 8, Ordering::Relaxed) << (64 - shift)) & mask;
        }
        low & mask
    }
    /// Stores such a number; bytes beside it stay as other threads write them.
    fn store_part(&self, at: u64, bytes: u8, value: u64) {
        let (word, shift, _) = part(at, bytes);
        if shift + 8 * u32::from(bytes) > 64 {
            (0..u64::from(bytes)).for_each(|byte| self.store_part(at + byte, 1, value >> (8 * byte)));
        } else {
            debug_assert!(word % 8 == 0, "words lie at multiples of 8");
            self.change_part(at, bytes, |_| value);
        }
    }
    /// Changes such a number, at a multiple of its size, as no other thread sees half done; the one that was there.
    fn change_part(&self, at: u64, bytes: u8, change: impl Fn(u64) -> u64) -> u64 {
        let (word, shift, mask) = part(at, bytes);
        loop {
            let whole = self.load(word, Ordering::Relaxed);
            let before = whole >> shift & mask;
            let after = whole & !(mask << shift) | (change(before) & mask) << shift;
            if self.compare_exchange(word, whole, after) {
                return before;
            }
        }
    }
    /// Memory fence.
    fn fence(&self, order: Ordering);
    /// Ensures that the range has memory; returns whether it has.
    fn reserve(&self, at: u64, bytes: u64) -> bool;
    /// Rings the bell; returns whether there is one.
    fn ring(&self) -> bool;
}

/// The word with a number, the bits below it, and a mask of its size.
fn part(at: u64, bytes: u8) -> (u64, u32, u64) {
    (at & !7, 8 * (at & 7) as u32, u64::MAX >> (64 - 8 * u32::from(bytes)))
}

/// The memory as seen by the recorder, which trusts none of its contents.
pub trait MemoryView {
    /// Reason why the memory cannot be accessed.
    type Fault;

    /// Loads a word (acquire): later reads see all writes that preceded it.
    ///
    /// # Errors
    ///
    /// It is not there.
    fn word(&self, at: u64) -> Result<u64, Self::Fault>;

    /// Copies bytes, in no particular order.
    ///
    /// # Errors
    ///
    /// They are not there.
    fn copy(&self, at: u64, into: &mut [u8]) -> Result<(), Self::Fault>;

    /// Load fence: reads before it are not delayed past it.
    fn fence(&self);

    /// Full fence: other processes see all writes before it before any read after it happens.
    fn settle(&self);

    /// Stores a byte after all earlier reads have completed.
    ///
    /// # Errors
    ///
    /// It is not there.
    fn set_byte(&self, at: u64, value: u8) -> Result<(), Self::Fault>;

    /// Stores a word for which only a change matters; the store need not be atomic.
    ///
    /// # Errors
    ///
    /// It is not there.
    fn set_word(&self, at: u64, value: u64) -> Result<(), Self::Fault>;
}
