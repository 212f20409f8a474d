//! Events that a program has.

#![allow(unsafe_code, reason = "events are found again by their ids")]

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use kymo_lane::{Mapped, Program};

use crate::process::{Process, control};
use crate::thread;

/// An event of this program, which lives as long as it does.
#[derive(Debug)]
pub struct Event {
    /// What recorders are told of it.
    definition: &'static [u8],
    /// One more than its id; 0: it has none.
    number: AtomicU32,
}

/// All of them, by id: a child tells them again.
static EVENTS: [AtomicPtr<Event>; 1 << 16] = [const { AtomicPtr::new(null_mut()) }; 1 << 16];

impl Event {
    /// An event that nobody knows yet.
    #[must_use]
    pub const fn new(definition: &'static [u8]) -> Self {
        Self { definition, number: AtomicU32::new(0) }
    }

    /// Makes it known to recorders; whether it is.
    pub fn register(&'static self) -> bool {
        if self.number.load(Ordering::Acquire) > 0 {
            return true;
        }
        let Some(id) = Process::here().and_then(|process| process.program().define(self.definition)) else {
            return false;
        };
        EVENTS[usize::from(id)].store((&raw const *self).cast_mut(), Ordering::Release);
        self.number.store(u32::from(id) + 1, Ordering::Release);
        true
    }

    /// Whether somebody wants it.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        match self.number.load(Ordering::Relaxed) {
            0 => false,
            number => control((number - 1) as u16) != 0,
        }
    }

    /// Records it, if somebody wants it, with the bytes that its definition says.
    #[inline]
    pub fn record(&self, bytes: &[u8]) {
        if self.is_on() {
            thread::record((self.number.load(Ordering::Relaxed) - 1) as u16, bytes);
        }
    }
}

/// Whether an event has this id.
pub(crate) fn is_known(id: u16) -> bool {
    !EVENTS[usize::from(id)].load(Ordering::Acquire).is_null()
}

/// Tells all events that there are, with the ids that they have.
pub(crate) fn define_all(program: &Program<'_, Mapped>) {
    // Safety: what is there lives as long as the program.
    let events = EVENTS.iter().map_while(|event| unsafe { event.load(Ordering::Acquire).as_ref() });
    events.for_each(|event| _ = program.define(event.definition));
}
