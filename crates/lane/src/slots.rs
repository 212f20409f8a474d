//! Filters of events. Each filter has a slot; a slot belongs to one filter as long as the program
//! lives.
//!
//! ```text
//! recorder   bytes of the filter, to the arena or behind the slots ──> slot: which, where, how many (release)
//!            control byte of the event = number of the slot
//! program    control byte ── 2..255 ──> what the slot says, looked up once ──> what it did about it
//! ```

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::layout::slot;
use crate::memory::{MemoryView, ProgramMemory};
use crate::sides::{ProgramSide, RecorderSide};

const IS_SAID: u64 = 1 << 63;
const IS_NATIVE: u64 = 1 << 62;
const IS_JUDGED: u64 = 1 << 61;
const BYTES_MAX: u32 = (1 << 29) - 1;

/// Number of the first slot. Smaller control bytes mean off (0) and on (1).
pub const FIRST_SLOT: u8 = 2;

/// Location of a filter's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterCode {
    /// Its kind.
    pub kind: FilterCodeKind,
    /// Offset from the beginning of the arena, or of [`MemoryLayout::filters`](crate::MemoryLayout::filters).
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
}

fn code_of(said: u64) -> FilterCode {
    let kind = match (said & IS_NATIVE != 0, said & IS_JUDGED != 0) {
        (true, _) => FilterCodeKind::Native,
        (false, false) => FilterCodeKind::Bytecode,
        (false, true) => FilterCodeKind::Judgement,
    };
    FilterCode { kind, offset: said as u32, bytes: (said >> 32) as u32 & BYTES_MAX }
}

/// Kind of a filter's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterCodeKind {
    /// Machine code in the arena.
    Native,
    /// Bytecode behind the slots.
    Bytecode,
    /// Not one filter, but a [`judgement`](crate::judgement) behind the slots: filters of groups of
    /// sessions, and triggers.
    Judgement,
}

/// How a program runs a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterEngine {
    /// No event has evaluated the filter yet.
    NotYet,
    /// The program runs the machine code.
    Native,
    /// The program interprets the bytecode.
    Interpreted,
    /// The program cannot run the filter: it records all events of the slot.
    Not,
}

impl<M: ProgramMemory> ProgramSide<'_, M> {
    /// Filter of a slot; `None`: the recorder has assigned none, or one with an impossible
    /// location.
    #[must_use]
    pub fn code(&self, slot: u8, arena_bytes: u32) -> Option<FilterCode> {
        let said = self.memory.load(self.layout.slot(slot) + slot::SAID, Acquire);
        let code = code_of(said);
        let room = if code.kind == FilterCodeKind::Native { arena_bytes } else { self.layout.filter_bytes };
        let fits = u64::from(code.offset) + u64::from(code.bytes) <= room.into() && code.bytes > 0;
        (said & IS_SAID != 0 && slot >= FIRST_SLOT && fits).then_some(code)
    }

    /// Publishes how the program runs the filter of a slot.
    pub fn runs(&self, slot: u8, runs: FilterEngine) {
        self.memory.store(self.layout.slot(slot) + slot::DONE, runs as u64, Relaxed);
    }
}

impl<V: MemoryView> RecorderSide<V> {
    /// Assigns a filter to a slot. All bytes of the filter must already be at the given location.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn say_code(&self, slot: u8, code: FilterCode) -> Result<(), V::Fault> {
        let kind = match code.kind {
            FilterCodeKind::Native => IS_NATIVE,
            FilterCodeKind::Bytecode => 0,
            FilterCodeKind::Judgement => IS_JUDGED,
        };
        let said = IS_SAID | kind | u64::from(code.bytes & BYTES_MAX) << 32 | u64::from(code.offset);
        // The last byte publishes the word: it holds the flag that the other bytes are valid.
        let at = self.layout.slot(slot) + slot::SAID;
        let bytes = said.to_le_bytes();
        self.view.set_word(at, said & !(0xff << 56))?;
        self.view.set_byte(at + 7, bytes[7])
    }

    /// Filter that this recorder or an earlier one assigned to a slot, if any.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn said_code(&self, slot: u8) -> Result<Option<FilterCode>, V::Fault> {
        let said = self.view.word(self.layout.slot(slot) + slot::SAID)?;
        let code = code_of(said);
        Ok((said & IS_SAID != 0).then_some(code))
    }

    /// How the program runs the filter of a slot.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn runs(&self, slot: u8) -> Result<FilterEngine, V::Fault> {
        Ok(match self.view.word(self.layout.slot(slot) + slot::DONE)? {
            0 => FilterEngine::NotYet,
            1 => FilterEngine::Native,
            2 => FilterEngine::Interpreted,
            _ => FilterEngine::Not,
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
        // Writes whole aligned words, because each write may be a system call. The program reads
        // these bytes only after the slot announces them, so their order does not matter.
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
