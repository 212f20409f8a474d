//! Registers events and contexts with recorders. The first registration creates the memory of this
//! process.

use core::ptr::null_mut;
use core::sync::atomic::Ordering;

use crate::begin::here;
use crate::context::{CONTEXTS, Context};
use crate::event::{BEGINS, EVENTS, Event, IDS};
use crate::pages::Errno;
use crate::process::ProcessState;

impl Event {
    /// Registers the event; returns whether recorders know it now.
    pub fn register(&'static self) -> bool {
        self.register_as(None)
    }

    /// Like [`register`](Self::register), for an event that differs from `other` only in its
    /// fields. It is on from the start if `other` is; a recorder that filters `other` decides
    /// whether this event is recorded.
    pub fn register_like(&'static self, other: &Self) -> bool {
        self.register_as(Some(other))
    }

    fn register_as(&'static self, like: Option<&Self>) -> bool {
        let known = self.number.load(Ordering::Acquire);
        let begins = match Self::is_free(known) {
            true => self.number.compare_exchange(known, BEGINS, Ordering::Acquire, Ordering::Acquire),
            false => Err(known),
        };
        match begins {
            Ok(_) => {}
            Err(number) => return number != BEGINS,
        }
        let _errno = Errno::keep();
        let define = |process: &ProcessState| match like {
            Some(other) => process.program().define_switched(self.definition(), other.is_on().into()),
            None if process.begins_on(self.definition()) => process.program().define_switched(self.definition(), 1),
            None => process.program().define(self.definition()),
        };
        let process = here();
        let Some((process, id)) = process.and_then(|process| Some((process, define(process)?))) else {
            self.number.store(0, Ordering::Release);
            return false;
        };
        EVENTS[usize::from(id)].store((&raw const *self).cast_mut(), Ordering::Release);
        // After the event, so that each id below `IDS` leads to one.
        IDS.fetch_max(u32::from(id) + 1, Ordering::AcqRel);
        self.number.store(u32::from(id) + 1, Ordering::Release);
        // Last: an event is off until it has a control byte, and on only with an ID.
        self.control.store(process.control(id), Ordering::Release);
        process.wait_for(id, self.definition());
        true
    }
}

impl Context {
    /// Registers the context; returns whether recorders know it now. It must never be removed.
    pub fn register(&'static self) -> bool {
        // Of two threads that register one context, the second returns before it has a number, as
        // with events.
        match self.number.compare_exchange(0, BEGINS, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => {}
            Err(number) => return number != BEGINS,
        }
        let Some(process) = here() else {
            self.number.store(0, Ordering::Release);
            return false;
        };
        let this = (&raw const *self).cast_mut();
        for (number, place) in CONTEXTS.iter().enumerate() {
            if place.compare_exchange(null_mut(), this, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                self.number.store(number as u32 + 1, Ordering::Release);
                return process.program().define_context(number as u16, self.definition());
            }
        }
        self.number.store(0, Ordering::Release);
        false
    }
}
