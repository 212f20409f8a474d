//! Contexts: data that events carry besides their fields, if the recorder wants it.

#![allow(unsafe_code, reason = "frames are read, and the program's own functions are called")]

use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use kymo_lane::{Mapped, ProgramSide, contexts};

use crate::thread;
use crate::write::Write;

/// Maximum number of return addresses.
const FRAMES_MAX: usize = 32;
/// Maximum bytes of a text.
const TEXT_BYTES_MAX: u64 = 1024;
const OWN_MAX: usize = contexts::OWN_MAX as usize;

/// A context that the program defines. Each event that carries it calls `get`. The C headers depend
/// on this layout.
#[derive(Debug)]
#[repr(C)]
pub struct Context {
    /// Definition text for recorders.
    definition: *const u8,
    bytes: u32,
    /// Size of the value in bytes; 0: it is a text.
    size: u32,
    /// Returns the value; may be called in signal handlers.
    get: extern "C" fn(&mut Own),
    /// Its number plus one; 0: not registered.
    pub(crate) number: AtomicU32,
}

// Safety: the only mutable field is atomic.
unsafe impl Sync for Context {}

/// Value of a context that the program defines.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Own {
    /// A number; its first `size` bytes count.
    pub value: u64,
    /// A text.
    pub text: *const u8,
    /// Length of the text.
    pub length: u64,
}

const NONE: Own = Own { value: 0, text: core::ptr::null(), length: 0 };

pub(crate) static CONTEXTS: [AtomicPtr<Context>; OWN_MAX] = [const { AtomicPtr::new(null_mut()) }; OWN_MAX];

impl Context {
    /// A context with its definition, the size of its value in bytes (0: it is a text), and the
    /// function that returns the value.
    #[must_use]
    pub const fn new(definition: &'static [u8], size: u32, get: extern "C" fn(&mut Own)) -> Self {
        let bytes = definition.len() as u32;
        Self { definition: definition.as_ptr(), bytes, size, get, number: AtomicU32::new(0) }
    }

    pub(crate) fn definition(&self) -> &'static [u8] {
        // Safety: the definition has `bytes` bytes.
        unsafe { core::slice::from_raw_parts(self.definition, self.bytes as usize) }
    }

    fn ask(&self) -> Own {
        let mut own = NONE;
        (self.get)(&mut own);
        if self.size == 0 {
            // The program may change the text later. `put` writes exactly this length, because the
            // event's size was computed from it.
            own.length = if own.text.is_null() { 0 } else { own.length.min(TEXT_BYTES_MAX) };
        }
        own
    }
}

/// Registers all contexts again, in a child process.
pub(crate) fn define_all(program: &ProgramSide<'_, Mapped>) {
    for (number, context) in CONTEXTS.iter().enumerate() {
        // Safety: registered contexts are never removed.
        if let Some(context) = unsafe { context.load(Ordering::Acquire).as_ref() } {
            program.define_context(number as u16, context.definition());
        }
    }
}

/// The wanted contexts that exist. A session that starts a program does not know which contexts the
/// program will define.
pub(crate) fn there_are(wanted: u64) -> u64 {
    // Relaxed suffices: this only compares the pointer with null. `wanted_own` uses the pointer,
    // and loads it with acquire ordering.
    let is_there = |number: &usize| !CONTEXTS[*number].load(Ordering::Relaxed).is_null();
    numbers(wanted)
        .filter(is_there)
        .fold(wanted % contexts::FIRST_OWN, |all, number| all | contexts::FIRST_OWN << number)
}

/// Numbers of the program's own contexts in `wanted`. This iterates over set bits only, because
/// each event with such contexts runs it.
fn numbers(wanted: u64) -> impl Iterator<Item = usize> {
    let mut rest = (wanted & contexts::ALL_OWN) / contexts::FIRST_OWN;
    core::iter::from_fn(move || {
        let number = rest.trailing_zeros() as usize;
        (rest != 0).then(|| {
            rest &= rest - 1;
            number
        })
    })
}

/// Contexts of one event.
pub(crate) struct EventContexts {
    wanted: u64,
    site: u64,
    /// The first `count` are initialized. Zeroing the unused ones would cost as much as the rest of
    /// the event.
    frames: [MaybeUninit<u64>; FRAMES_MAX],
    count: usize,
    /// Initialized for each wanted context that the program has defined.
    own: [MaybeUninit<Own>; OWN_MAX],
    /// Sum over those contexts, so that [`bytes`](Self::bytes) does not call `get` again.
    own_bytes: u64,
}

impl EventContexts {
    /// Collects all values that determine the event's size. This happens before room is reserved,
    /// because `get` and the stack walk decide how much room the event needs.
    pub(crate) fn gather(wanted: u64, site: *const u8, frame: *const u8) -> Self {
        let (frames, own) = ([MaybeUninit::uninit(); FRAMES_MAX], [MaybeUninit::uninit(); OWN_MAX]);
        let mut this = Self { wanted, site: site as u64, frames, count: 0, own, own_bytes: 0 };
        if wanted & contexts::STACK != 0 {
            // The walk is not in `put`: the count of frames is part of the size that `enter`
            // reserves.
            this.count = walk(frame as usize, &mut this.frames);
        }
        for (number, context) in this.wanted_own() {
            // The program's function may record events itself. This level is busy, so they go to
            // the next one.
            let own = context.ask();
            this.own[number].write(own);
            this.own_bytes += if context.size == 0 { 2 + own.length } else { context.size.min(8).into() };
        }
        this
    }

    /// The program's own contexts that are wanted and defined.
    fn wanted_own(&self) -> impl Iterator<Item = (usize, &'static Context)> + use<> {
        // Safety: registered contexts are never removed.
        let context = |number: usize| Some((number, unsafe { CONTEXTS[number].load(Ordering::Acquire).as_ref() }?));
        numbers(self.wanted).filter_map(context)
    }

    pub(crate) fn bytes(&self) -> u64 {
        let has = |context: u64, bytes: u64| if self.wanted & context != 0 { bytes } else { 0 };
        has(contexts::CPU, 2)
            + has(contexts::PID, 4)
            + has(contexts::TID, 4)
            + has(contexts::NAME, 16)
            + has(contexts::IP, 8)
            + has(contexts::STACK, 2 + 8 * self.count as u64)
            + self.own_bytes
    }

    pub(crate) fn put(&self, write: &mut Write, pid: u32, tid: u32, name: &[u8; 16]) {
        // The order is that of the bits: the recorder describes the contexts to readers in this
        // order.
        let has = |context: u64| self.wanted & context != 0;
        if has(contexts::CPU) {
            write.put(&thread::cpu().to_le_bytes());
        }
        if has(contexts::PID) {
            write.put(&pid.to_le_bytes());
        }
        if has(contexts::TID) {
            write.put(&tid.to_le_bytes());
        }
        if has(contexts::NAME) {
            write.put(name);
        }
        if has(contexts::IP) {
            write.put(&self.site.to_le_bytes());
        }
        if has(contexts::STACK) {
            write.put(&(self.count as u16).to_le_bytes());
            // Safety: `walk` has written `count` addresses.
            let frame = |frame: &MaybeUninit<u64>| write.put(&unsafe { frame.assume_init() }.to_le_bytes());
            self.frames[..self.count].iter().for_each(frame);
        }
        // `wanted` names only contexts that were registered when the event began, and none is ever
        // removed. So this loop meets exactly the contexts that `gather` has measured.
        for (number, context) in self.wanted_own() {
            // Safety: `gather` has written it, and registered contexts are never removed.
            let own = unsafe { self.own[number].assume_init() };
            match context.size {
                0 => {
                    write.put(&(own.length as u16).to_le_bytes());
                    // Safety: the program guarantees that the text has `length` bytes.
                    write.put(match own.length {
                        0 => &[],
                        _ => unsafe { core::slice::from_raw_parts(own.text, own.length as usize) },
                    });
                }
                size => write.put(&own.value.to_le_bytes()[..(size as usize).min(8)]),
            }
        }
    }
}

/// Walks frame pointers from `frame` on and collects return addresses, as far as functions keep
/// frame pointers. The walk reads only inside the thread's stack, and each frame must lie above the
/// last one: code without frame pointers leaves arbitrary values in the register.
fn walk(frame: usize, into: &mut [MaybeUninit<u64>]) -> usize {
    let Some(stack) = thread::known_stack() else { return 0 };
    let here = thread::stack();
    // The bounds are looked up again if the thread is on another stack now, as in a handler with an
    // alternate signal stack.
    if !(stack.begin..stack.end).contains(&here) && !stack.find(here) {
        return 0;
    }
    let mut frame = frame;
    let mut lowest = here;
    for (count, into) in into.iter_mut().enumerate() {
        let is_one =
            frame >= lowest && frame.is_multiple_of(8) && frame.checked_add(16).is_some_and(|end| end <= stack.end);
        if !is_one {
            return count;
        }
        // Safety: the frame lies in the thread's stack, above the part in use now.
        let [next, back] = unsafe { (frame as *const [usize; 2]).read_volatile() };
        // The outermost frame has no return address, and no code lies in the first page.
        if back < 4096 {
            return count;
        }
        into.write(back as u64);
        // The lower bound rises with each frame, so a chain that points back to itself ends the
        // walk.
        (lowest, frame) = (frame + 16, next);
    }
    into.len()
}
