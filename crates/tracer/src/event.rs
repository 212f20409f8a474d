//! Events that a program has.

#![allow(unsafe_code, reason = "events are found again by their ids")]

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

use kymo_lane::{Mapped, Program};

use crate::filter::is_kept;
use crate::pages::Errno;
use crate::process::Process;
use crate::write::{Write, enter};

/// An event of this program. Headers for C know what it looks like.
#[derive(Debug)]
#[repr(C)]
pub struct Event {
    /// Its control byte: 0 is off.
    control: AtomicPtr<u8>,
    /// One more than its id; 0: it has none.
    number: AtomicU32,
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
const BEGINS: u32 = u32::MAX;

/// All of them, by id: a child tells them again.
static EVENTS: [AtomicPtr<Event>; 1 << 16] = [const { AtomicPtr::new(null_mut()) }; 1 << 16];
/// Behind the last one that there ever was.
static IDS: AtomicU32 = AtomicU32::new(0);

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

    /// Makes it known to recorders; whether it is.
    pub fn register(&'static self) -> bool {
        self.register_as(None)
    }

    /// The same, for one that is as another one but for its fields: it is on from the begin if that one is, and a recorder that filters
    /// that one decides what becomes of it.
    pub fn register_like(&'static self, other: &Self) -> bool {
        self.register_as(Some(other))
    }

    fn register_as(&'static self, like: Option<&Self>) -> bool {
        match self.number.compare_exchange(0, BEGINS, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => {}
            Err(number) => return number != BEGINS,
        }
        let _errno = Errno::keep();
        let define = |process: &Process| match like {
            Some(other) => process.program().define_switched(self.definition(), other.is_on().into()),
            None => process.program().define(self.definition()),
        };
        let process = Process::here();
        let Some((process, id)) = process.and_then(|process| Some((process, define(process)?))) else {
            self.number.store(0, Ordering::Release);
            return false;
        };
        EVENTS[usize::from(id)].store((&raw const *self).cast_mut(), Ordering::Release);
        IDS.fetch_max(u32::from(id) + 1, Ordering::AcqRel);
        self.number.store(u32::from(id) + 1, Ordering::Release);
        self.control.store(process.control(id), Ordering::Release);
        true
    }

    /// Takes it back, before its memory goes away: nobody may record it any more, and its id is never another's.
    pub fn unregister(&self) {
        self.control.store((&raw const OFF).cast_mut().cast(), Ordering::Release);
        if let Some(id) = self.number.swap(0, Ordering::AcqRel).checked_sub(1).filter(|id| *id < 1 << 16) {
            EVENTS[id as usize].store(null_mut(), Ordering::Release);
        }
    }

    fn definition(&self) -> &'static [u8] {
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

    /// Whether somebody wants it with these arguments, for whose filter they lie in memory as in C; asked once it
    /// [is on](Self::is_on).
    #[inline]
    pub fn is_kept<T: ?Sized>(&self, arguments: &T) -> bool {
        match self.control() {
            0 => false,
            1 => true,
            slot => is_kept(slot, (&raw const *arguments).cast(), size_of_val(arguments)),
        }
    }

    /// Begins to record it, with so many bytes of fields. `None`: it is lost, and was counted.
    #[inline]
    pub fn enter(&self, bytes: u64) -> Option<Write> {
        enter(self, bytes)
    }

    /// Records it, if somebody wants it, with the bytes that its definition says; no filter is asked.
    #[inline]
    pub fn record(&self, bytes: &[u8]) {
        if self.is_on() {
            self.put(bytes);
        }
    }

    #[inline(never)]
    fn put(&self, bytes: &[u8]) {
        if let Some(mut write) = self.enter(bytes.len() as u64) {
            write.put(bytes);
            write.leave();
        }
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
