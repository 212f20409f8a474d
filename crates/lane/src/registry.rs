//! Registry of a program's event definitions. They lie one after the other; they are never changed
//! or removed.
//!
//! ```text
//! definition   word: 1 << 63 | is it a context's << 62 | id << 32 | bytes      written last: 0 before it is whole
//!              bytes, zeros up to a multiple of 8
//! ```
//!
//! This crate does not interpret the text of definitions. No ID is used twice.

use core::sync::atomic::Ordering::{Relaxed, Release};

use crate::bell::Rings;
use crate::judgement::VERDICT_ID;
use crate::layout::{MemoryLayout, PAGE, header};
use crate::memory::{MemoryView, ProgramMemory};
use crate::sides::{ProgramSide, RecorderSide};

const IS_WHOLE: u64 = 1 << 63;
const IS_CONTEXT: u64 = 1 << 62;

/// Location of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefinitionPlace {
    /// ID of the event, or number of the context.
    pub id: u16,
    /// `true`: it defines a context, whose bit is [`FIRST_OWN`](crate::contexts::FIRST_OWN) shifted
    /// left by `id`.
    pub is_context: bool,
    /// Size in bytes.
    pub bytes: u32,
    at: u64,
    next: u64,
}

impl<M: ProgramMemory> ProgramSide<'_, M> {
    /// Registers an event and returns its ID; `None`: there is no room for more. Constructors of
    /// several libraries may call this concurrently.
    pub fn define(&self, definition: &[u8]) -> Option<u16> {
        self.tell(definition, 0, || self.memory.add(header::IDS, 1))
    }

    /// Like [`define`](Self::define), but sets the control byte before any recorder can see the
    /// event.
    pub fn define_switched(&self, definition: &[u8], to: u8) -> Option<u16> {
        let id = || {
            let id = self.memory.add(header::IDS, 1);
            if id < self.layout.events.into() {
                self.switch(id as u16, to);
            }
            id
        };
        self.tell(definition, 0, id)
    }

    /// Registers an event under a given ID, as a child process does for events that its parent
    /// defined. Returns whether there was room.
    pub fn define_as(&self, id: u16, definition: &[u8]) -> bool {
        let next = u64::from(id) + 1;
        let id = || {
            let mut ids = self.memory.load(header::IDS, Relaxed);
            while ids < next && !self.memory.compare_exchange(header::IDS, ids, next) {
                ids = self.memory.load(header::IDS, Relaxed);
            }
            next - 1
        };
        self.tell(definition, 0, id).is_some()
    }

    /// Registers a context that events can carry. Returns whether there was room.
    pub fn define_context(&self, number: u16, definition: &[u8]) -> bool {
        self.tell(definition, IS_CONTEXT, || number.into()).is_some()
    }

    fn tell(&self, definition: &[u8], kind: u64, id: impl FnOnce() -> u64) -> Option<u16> {
        let MemoryLayout { events, registry_bytes, .. } = self.layout;
        let all = 8 + (definition.len() as u64).next_multiple_of(8);
        let bytes = definition.len() as u32;
        let room = |taken| {
            let fits = taken + all <= registry_bytes.into();
            if !fits {
                self.memory.store(header::IS_FULL, 1, Relaxed);
            }
            fits && self.has_registry(taken + all)
        };
        if !room(self.memory.load(header::REGISTRY_TAKEN, Relaxed)) {
            return None;
        }
        let id = id();
        // An ID may be that of verdicts.
        let is_full = id >= events.into() || kind != IS_CONTEXT && id == VERDICT_ID.into();
        if is_full {
            self.memory.store(header::IS_FULL, 1, Relaxed);
        }
        // The first page of control bytes always has memory.
        if is_full || id >= PAGE && !self.memory.reserve(self.layout.control(id as u16), 1) {
            return None;
        }
        // A reserved but unwritten entry would hide all later entries from the recorder. So the
        // loop reserves space only when the write is certain to follow.
        let begin = loop {
            let taken = self.memory.load(header::REGISTRY_TAKEN, Relaxed);
            if !room(taken) {
                return None;
            }
            if self.memory.compare_exchange(header::REGISTRY_TAKEN, taken, taken + all) {
                break taken;
            }
        };
        let at = self.layout.registry() + begin;
        self.memory.put(at + 8, definition);
        self.memory.store(at, IS_WHOLE | kind | id << 32 | u64::from(bytes), Release);
        self.ring(Rings::ForDefinitions);
        Some(id as u16)
    }
}

impl<M: ProgramMemory> ProgramSide<'_, M> {
    /// Ensures that the registry has memory up to `end`.
    fn has_registry(&self, end: u64) -> bool {
        loop {
            let ready = self.memory.load(header::REGISTRY_READY, Relaxed);
            if end <= ready {
                return true;
            }
            let more = end.next_multiple_of(PAGE);
            if !self.memory.reserve(self.layout.registry() + ready, more - ready) {
                return false;
            }
            self.memory.compare_exchange(header::REGISTRY_READY, ready, more);
        }
    }
}

impl<V: MemoryView> RecorderSide<V> {
    /// Definition after the given one, or the first; `None`: there is none yet.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn definition(&self, after: Option<&DefinitionPlace>) -> Result<Option<DefinitionPlace>, V::Fault> {
        let begin = after.map_or(0, |definition| definition.next);
        let end = u64::from(self.layout.registry_bytes);
        if begin + 8 > end {
            return Ok(None);
        }
        let at = self.layout.registry() + begin;
        let word = self.view.word(at)?;
        let (id, bytes) = ((word >> 32) as u16, word as u32);
        let next = begin + 8 + u64::from(bytes).next_multiple_of(8);
        let is_one = word & IS_WHOLE != 0 && next <= end && u32::from(id) < self.layout.events;
        let is_context = word & IS_CONTEXT != 0;
        Ok(is_one.then_some(DefinitionPlace { id, is_context, bytes, at: at + 8, next }))
    }

    /// Whether the program had a definition for which there was no room.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn is_full(&self) -> Result<bool, V::Fault> {
        Ok(self.view.word(header::IS_FULL)? != 0)
    }

    /// Copies the text of a definition.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn said(&self, definition: &DefinitionPlace, into: &mut [u8]) -> Result<(), V::Fault> {
        let length = into.len().min(definition.bytes as usize);
        self.view.copy(definition.at, &mut into[..length])
    }
}
