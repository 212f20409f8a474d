//! What events a program has: definitions, one behind the other, never changed and never taken away.
//!
//! ```text
//! definition   word: 1 << 63 | is it a context's << 62 | id << 32 | bytes      written last: 0 before it is whole
//!              bytes, zeros up to a multiple of 8
//! ```
//!
//! What a definition says is its reader's business. No id is used twice.

use core::sync::atomic::Ordering::{Relaxed, Release};

use crate::bell::Rings;
use crate::layout::{Layout, PAGE, header};
use crate::memory::{Memory, View};
use crate::sides::{Program, Recorder};

const IS_WHOLE: u64 = 1 << 63;
const IS_CONTEXT: u64 = 1 << 62;

/// Where a definition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The event's id, or the number of the context.
    pub id: u16,
    /// It is of something that events carry: bit [`FIRST_OWN`](crate::contexts::FIRST_OWN) and so many.
    pub is_context: bool,
    /// Bytes of it.
    pub bytes: u32,
    at: u64,
    next: u64,
}

impl<M: Memory> Program<'_, M> {
    /// Makes an event known; its id, or `None`: there is no room for more. Constructors of several libraries may do so at once.
    pub fn define(&self, definition: &[u8]) -> Option<u16> {
        self.tell(definition, 0, || self.memory.add(header::IDS, 1))
    }

    /// The same, switched before anybody knows of it.
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

    /// Makes one known that has an id, as in a child of the process where it was defined; whether there is room.
    pub fn define_as(&self, id: u16, definition: &[u8]) -> bool {
        let next = u64::from(id) + 1;
        let id = || {
            let mut ids = self.memory.load(header::IDS, Relaxed);
            while ids < next && !self.memory.exchange(header::IDS, ids, next) {
                ids = self.memory.load(header::IDS, Relaxed);
            }
            next - 1
        };
        self.tell(definition, 0, id).is_some()
    }

    /// Makes known what events can carry; whether there is room.
    pub fn define_context(&self, number: u16, definition: &[u8]) -> bool {
        self.tell(definition, IS_CONTEXT, || number.into()).is_some()
    }

    fn tell(&self, definition: &[u8], kind: u64, id: impl FnOnce() -> u64) -> Option<u16> {
        let Layout { events, registry_bytes, .. } = self.layout;
        let bytes = u32::try_from(definition.len()).ok().filter(|bytes| *bytes < registry_bytes)?;
        let all = 8 + u64::from(bytes).next_multiple_of(8);
        let room = |taken| taken + all <= registry_bytes.into() && self.has_registry(taken + all);
        if !room(self.memory.load(header::REGISTRY_TAKEN, Relaxed)) {
            return None;
        }
        let id = id();
        // The first control bytes are always there.
        if id >= events.into() || id >= PAGE && !self.memory.reserve(self.layout.control(id as u16), 1) {
            return None;
        }
        // Behind what is taken and never written nothing would be found: nothing is taken before it is sure to be.
        let begin = loop {
            let taken = self.memory.load(header::REGISTRY_TAKEN, Relaxed);
            if !room(taken) {
                return None;
            }
            if self.memory.exchange(header::REGISTRY_TAKEN, taken, taken + all) {
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

impl<M: Memory> Program<'_, M> {
    /// Whether the registry has memory up to there.
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
            self.memory.exchange(header::REGISTRY_READY, ready, more);
        }
    }
}

impl<V: View> Recorder<V> {
    /// The definition behind another one, or the first; `None`: there is none yet.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn definition(&self, after: Option<&Definition>) -> Result<Option<Definition>, V::Fault> {
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
        Ok(is_one.then_some(Definition { id, is_context, bytes, at: at + 8, next }))
    }

    /// Whether there was something to define for which there was no room.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn is_full(&self) -> Result<bool, V::Fault> {
        let (ids, taken) = (self.view.word(header::IDS)?, self.view.word(header::REGISTRY_TAKEN)?);
        Ok(ids > self.layout.events.into() || taken > self.layout.registry_bytes.into())
    }

    /// What a definition says.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn said(&self, definition: &Definition, into: &mut [u8]) -> Result<(), V::Fault> {
        let length = into.len().min(definition.bytes as usize);
        self.view.copy(definition.at, &mut into[..length])
    }
}
