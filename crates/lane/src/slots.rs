//! Filters of events: each has a slot, which is never another's while the program lives.
//!
//! ```text
//! recorder   bytes of the filter, to the arena or behind the slots ──> slot: which, where, how many (release)
//!            control byte of the event = number of the slot
//! program    control byte ── 2..255 ──> what the slot says, looked up once ──> what it did about it
//! ```

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::layout::slot;
use crate::memory::{Memory, View};
use crate::sides::{Program, Recorder};

const IS_SAID: u64 = 1 << 63;
const IS_NATIVE: u64 = 1 << 62;

/// The first slot: what is less says whether an event is on.
pub const FIRST_SLOT: u8 = 2;

/// Where a filter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// In the arena, as machine code; else it is bytecode.
    pub is_native: bool,
    /// Behind the begin of the arena, or of [`Layout::filters`](crate::Layout::filters).
    pub offset: u32,
    /// How large it is.
    pub bytes: u32,
}

/// What a program does about a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// No event has asked for it yet.
    NotYet,
    /// It runs the machine code.
    Native,
    /// It interprets the bytecode.
    Interpreted,
    /// It cannot run it: all events of that slot are recorded.
    Not,
}

impl<M: Memory> Program<'_, M> {
    /// Which filter a slot is of; `None`: the recorder has said nothing, or nothing that can be.
    #[must_use]
    pub fn code(&self, slot: u8, arena_bytes: u32) -> Option<Code> {
        let said = self.memory.load(self.layout.slot(slot) + slot::SAID, Acquire);
        let code =
            Code { is_native: said & IS_NATIVE != 0, offset: said as u32, bytes: (said >> 32) as u32 & 0x3fff_ffff };
        let room = if code.is_native { arena_bytes } else { self.layout.filter_bytes };
        let fits = u64::from(code.offset) + u64::from(code.bytes) <= room.into() && code.bytes > 0;
        (said & IS_SAID != 0 && slot >= FIRST_SLOT && fits).then_some(code)
    }

    /// Says what is done about a slot.
    pub fn runs(&self, slot: u8, runs: Runs) {
        self.memory.store(self.layout.slot(slot) + slot::DONE, runs as u64, Relaxed);
    }
}

impl<V: View> Recorder<V> {
    /// Says which filter a slot is of, when all of its bytes are where they are said to be.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn say_code(&self, slot: u8, code: Code) -> Result<(), V::Fault> {
        let native = if code.is_native { IS_NATIVE } else { 0 };
        let said = IS_SAID | native | u64::from(code.bytes & 0x3fff_ffff) << 32 | u64::from(code.offset);
        // The last byte says that the others are there.
        let at = self.layout.slot(slot) + slot::SAID;
        let bytes = said.to_le_bytes();
        self.view.set_word(at, said & !(0xff << 56))?;
        self.view.set_byte(at + 7, bytes[7])
    }

    /// Whether a slot was ever given to a filter: by this recorder or one before it.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn said_code(&self, slot: u8) -> Result<Option<Code>, V::Fault> {
        let said = self.view.word(self.layout.slot(slot) + slot::SAID)?;
        let code =
            Code { is_native: said & IS_NATIVE != 0, offset: said as u32, bytes: (said >> 32) as u32 & 0x3fff_ffff };
        Ok((said & IS_SAID != 0).then_some(code))
    }

    /// What the program does about a slot.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn runs(&self, slot: u8) -> Result<Runs, V::Fault> {
        Ok(match self.view.word(self.layout.slot(slot) + slot::DONE)? {
            0 => Runs::NotYet,
            1 => Runs::Native,
            2 => Runs::Interpreted,
            _ => Runs::Not,
        })
    }

    /// Writes the bytecode of a filter.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn put_bytecode(&self, offset: u32, bytes: &[u8]) -> Result<(), V::Fault> {
        let room = self.layout.filter_bytes.saturating_sub(offset) as usize;
        let at = self.layout.filters() + u64::from(offset);
        let bytes = &bytes[..bytes.len().min(room)];
        // Whole words where they lie, as each may be a call of the system; nobody looks before all of it is said to be there.
        let (front, rest) = bytes.split_at(bytes.len().min((at.next_multiple_of(8) - at) as usize));
        let (words, back) = rest.as_chunks::<8>();
        let put =
            |bytes: &[u8], at: u64| bytes.iter().zip(at..).try_for_each(|(byte, at)| self.view.set_byte(at, *byte));
        put(front, at)?;
        let at = at + front.len() as u64;
        words
            .iter()
            .zip((at..).step_by(8))
            .try_for_each(|(word, at)| self.view.set_word(at, u64::from_le_bytes(*word)))?;
        put(back, at + 8 * words.len() as u64)
    }
}
