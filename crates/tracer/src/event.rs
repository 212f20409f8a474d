//! Events of a program. `register` registers them, `filter` evaluates their filters, and `enter`
//! writes them.

#![allow(unsafe_code, reason = "events are found again by their ids")]

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

use kymo_lane::{Mapped, ProgramSide};

/// An event of this program. The C headers depend on this layout.
#[derive(Debug)]
#[repr(C, align(32))]
pub struct Event {
    /// Address of its control byte: 0 is off.
    pub(crate) control: AtomicPtr<u8>,
    /// Its ID plus one; 0: never registered.
    pub(crate) number: AtomicU32,
    /// Length of the definition text for recorders.
    bytes: u32,
    definition: *const u8,
    /// For the C headers: the control byte of an unregistered event.
    off: AtomicU8,
    /// Its upper half is the semaphore of its USDT probes: the kernel counts there. Nothing else writes to it.
    attached: AtomicU32,
}

const _: () = assert!(core::mem::offset_of!(Event, attached) == 28, "notes say so");

// Safety: the mutable fields are atomic, and definitions never change.
unsafe impl Sync for Event {}

/// Control byte of unregistered events.
static OFF: AtomicU8 = AtomicU8::new(0);
/// `number` of an event while its registration is in progress.
pub(crate) const BEGINS: u32 = u32::MAX;
/// Added to `number` when the event is unregistered. The ID stays in the low bits: a thread that is
/// just recording the event, while another one ends the program, still writes the right one.
const UNREGISTERED: u32 = 1 << 31;

/// All events by ID, because a child process registers them again.
pub(crate) static EVENTS: [AtomicPtr<Event>; 1 << 16] = [const { AtomicPtr::new(null_mut()) }; 1 << 16];
/// Highest ID that was ever assigned, plus one.
pub(crate) static IDS: AtomicU32 = AtomicU32::new(0);

impl Event {
    /// An unregistered event; `kymo-recorder` describes the format of definitions.
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
            attached: AtomicU32::new(0),
        }
    }

    /// An event that has an ID and is in no registry.
    pub(crate) const fn unnamed(id: u16) -> Self {
        Self { number: AtomicU32::new(id as u32 + 1), ..Self::new(&[]) }
    }

    /// Unregisters the event before its memory goes away. No thread may record it any more; its ID
    /// is never reused.
    pub fn unregister(&self) {
        self.control.store((&raw const OFF).cast_mut().cast(), Ordering::Release);
        if let Some(id) = self.number.fetch_or(UNREGISTERED, Ordering::AcqRel).checked_sub(1).filter(|id| *id < 1 << 16)
        {
            EVENTS[id as usize].store(null_mut(), Ordering::Release);
        }
    }

    /// Whether the event can be registered: it never was, or it was unregistered.
    pub(crate) fn is_free(number: u32) -> bool {
        number == 0 || number & UNREGISTERED != 0 && number != BEGINS
    }

    pub(crate) fn definition(&self) -> &'static [u8] {
        // Safety: the definition has `bytes` bytes and lives as long as the event.
        unsafe { core::slice::from_raw_parts(self.definition, self.bytes as usize) }
    }

    /// Value of its control byte: 0 is off, 1 is on, larger values are the slot of a filter.
    #[inline]
    #[must_use]
    pub fn control(&self) -> u8 {
        // Safety: the pointer is valid before and after the registration, and control bytes stay
        // mapped.
        unsafe { (*self.control.load(Ordering::Relaxed).cast::<AtomicU8>()).load(Ordering::Relaxed) }
    }

    /// Whether the event is on, with or without a filter.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.control() != 0
    }

    /// Whether a tool is attached to the event's USDT probes in this process.
    #[inline]
    #[must_use]
    pub fn is_attached(&self) -> bool {
        self.attached.load(Ordering::Relaxed) != 0
    }

    /// Whether the event is [on](Self::is_on) or a tool [is attached](Self::is_attached). One comparison tells, because the lower
    /// half of `attached` is always 0.
    #[inline]
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        // Safety: as in `control`. What LLVM loads as an atomic byte it extends in an instruction more.
        let control = unsafe { self.control.load(Ordering::Relaxed).read_volatile() };
        u32::from(control) != self.attached.load(Ordering::Relaxed)
    }

    /// The event's ID. An event has an ID once it is on.
    #[inline]
    pub(crate) fn id(&self) -> u16 {
        self.number.load(Ordering::Relaxed).wrapping_sub(1) as u16
    }
}

/// Registers all events again, with their IDs.
pub(crate) fn define_all(program: &ProgramSide<'_, Mapped>) {
    events().for_each(|(id, event)| _ = program.define_as(id, event.definition()));
}

/// Highest ID that was ever assigned, plus one.
pub(crate) fn ids() -> u32 {
    IDS.load(Ordering::Acquire)
}

/// All registered events and their IDs.
pub(crate) fn events() -> impl Iterator<Item = (u16, &'static Event)> {
    let all = EVENTS.iter().take(IDS.load(Ordering::Acquire) as usize).enumerate();
    // Safety: a stored event lives until it is unregistered.
    all.filter_map(|(id, event)| Some((id as u16, unsafe { event.load(Ordering::Acquire).as_ref() }?)))
}
