//! Events that a program has. How they become known stands in `register`, how they are asked for in `filter`, and written in `enter`.

#![allow(unsafe_code, reason = "events are found again by their ids")]

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

use kymo_lane::{Mapped, Program};

/// An event of this program. Headers for C know what it looks like.
#[derive(Debug)]
#[repr(C)]
pub struct Event {
    /// Its control byte: 0 is off.
    pub(crate) control: AtomicPtr<u8>,
    /// One more than its id; 0: it has none.
    pub(crate) number: AtomicU32,
    /// What recorders are told of it, and how many bytes that has.
    bytes: u32,
    definition: *const u8,
    /// For headers for C: the control byte of an event that nobody knows.
    off: AtomicU8,
}

// Safety: what is changed is atomic, and definitions do not change.
unsafe impl Sync for Event {}

/// The control byte of events that nobody knows.
static OFF: AtomicU8 = AtomicU8::new(0);
/// The number of an event that somebody is about to make known.
pub(crate) const BEGINS: u32 = u32::MAX;

/// All of them, by id: a child tells them again.
pub(crate) static EVENTS: [AtomicPtr<Event>; 1 << 16] = [const { AtomicPtr::new(null_mut()) }; 1 << 16];
/// Behind the last one that there ever was.
pub(crate) static IDS: AtomicU32 = AtomicU32::new(0);

impl Event {
    /// An event that nobody knows yet; what its definition looks like stands in `kymo-recorder`.
    ///
    /// ```
    /// static SENT: kymo_tracer::Event = kymo_tracer::Event::new(b"event net:sent\nfield u16 port\n");
    /// assert!(!SENT.is_on());
    /// ```
    #[must_use]
    pub const fn new(definition: &'static [u8]) -> Self {
        Self {
            control: AtomicPtr::new((&raw const OFF).cast_mut().cast()),
            number: AtomicU32::new(0),
            bytes: definition.len() as u32,
            definition: definition.as_ptr(),
            off: AtomicU8::new(0),
        }
    }

    /// Takes it back, before its memory goes away: nobody may record it any more, and its id is never another's.
    pub fn unregister(&self) {
        self.control.store((&raw const OFF).cast_mut().cast(), Ordering::Release);
        if let Some(id) = self.number.swap(0, Ordering::AcqRel).checked_sub(1).filter(|id| *id < 1 << 16) {
            EVENTS[id as usize].store(null_mut(), Ordering::Release);
        }
    }

    pub(crate) fn definition(&self) -> &'static [u8] {
        // Safety: so many bytes are there, as long as the event is.
        unsafe { core::slice::from_raw_parts(self.definition, self.bytes as usize) }
    }

    /// What its control byte says: 0 is off, 1 on, more is the slot of a filter.
    #[inline]
    #[must_use]
    pub fn control(&self) -> u8 {
        // Safety: there is one before and behind the registration, and it stays.
        unsafe { (*self.control.load(Ordering::Relaxed).cast::<AtomicU8>()).load(Ordering::Relaxed) }
    }

    /// Whether somebody wants it.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.control() != 0
    }

    /// Its id, which it has once it is on.
    #[inline]
    pub(crate) fn id(&self) -> u16 {
        self.number.load(Ordering::Relaxed).wrapping_sub(1) as u16
    }
}

/// Tells all events that there are, with the ids that they have.
pub(crate) fn define_all(program: &Program<'_, Mapped>) {
    events().for_each(|(id, event)| _ = program.define_as(id, event.definition()));
}

/// Behind the last id that there ever was.
pub(crate) fn ids() -> u32 {
    IDS.load(Ordering::Acquire)
}

/// All events that there are, and their ids.
pub(crate) fn events() -> impl Iterator<Item = (u16, &'static Event)> {
    let all = EVENTS.iter().take(IDS.load(Ordering::Acquire) as usize).enumerate();
    // Safety: what is there lives until it is taken away.
    all.filter_map(|(id, event)| Some((id as u16, unsafe { event.load(Ordering::Acquire).as_ref() }?)))
}
