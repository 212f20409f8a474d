//! Filters, called at the callsites of events: machine code where another process may put it into
//! this one, else bytecode, which is copied before it is validated.
//!
//! ```text
//! control byte 2..255 ──> table of functions ─┬─ first: what does the slot say? ──> machine code, or validated bytecode
//!                                             ├─ machine code
//!                                             ├─ interpret
//!                                             └─ judge: several of them (`judge`)
//! ```
//!
//! If a filter cannot run, its events are recorded, and the recorder filters them. The same holds
//! for programs that other processes may not inspect: a process that can write to such a program's
//! memory could otherwise probe an address with one filter after the other.

#![allow(unsafe_code, reason = "machine code is called, and arguments lie in memory")]

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use kymo_bytecode::{BytecodeProgram, validate};
use kymo_lane::{FIRST_SLOT, FilterCode, FilterCodeKind, FilterEngine, Mapped, ProgramSide};

use crate::code::{Filter, SLOT_BITS, code_bytes, copied, native, run};
use crate::event::Event;
use crate::judge;
use crate::pages::{self, Errno};
use crate::place::may_be_looked_into;
use crate::process::ProcessState;

/// Filter of each slot; the C headers call it. Entries change once, from `first`.
#[unsafe(no_mangle)]
pub static mut kymo_filters: [Filter; 256] = [first; 256];

/// Bytecode by slot, in pages of this process.
static BYTECODE: [AtomicPtr<Interpreted>; 256] = [const { AtomicPtr::new(null_mut()) }; 256];

struct Interpreted {
    program: BytecodeProgram<'static>,
}

impl Event {
    /// Whether to record the event with these arguments, which lie in memory as in C for its
    /// filter. Call this when the event [is on](Self::is_on).
    #[inline]
    pub fn is_kept<T: ?Sized>(&self, arguments: &T) -> bool {
        match self.control() {
            0 => false,
            1 => true,
            slot => is_kept(slot, (&raw const *arguments).cast(), size_of_val(arguments)),
        }
    }
}

/// Evaluates the filter of a slot on `size` bytes of arguments.
#[inline]
fn is_kept(slot: u8, arguments: *const u8, size: usize) -> bool {
    // Safety: each slot has a function, and the recorder has chosen one for these arguments.
    unsafe { entry(slot)(arguments, u64::from(slot) | (size as u64) << SLOT_BITS) != 0 }
}

fn place(slot: u8) -> &'static AtomicPtr<()> {
    // Safety: entries have the size of pointers, and only this module changes them.
    unsafe { AtomicPtr::from_ptr((&raw mut kymo_filters).cast::<*mut ()>().add(slot.into())) }
}

#[inline]
fn entry(slot: u8) -> Filter {
    // Safety: the table contains only functions of this type.
    unsafe { core::mem::transmute::<*mut (), Filter>(place(slot).load(Ordering::Relaxed)) }
}

/// Initial entry of each slot: the first event that uses the slot looks up its filter.
#[cold]
unsafe extern "C" fn first(arguments: *const u8, slot_and_size: u64) -> u64 {
    let _errno = Errno::keep();
    let slot = slot_and_size as u8;
    let Some(process) = ProcessState::now() else { return 1 };
    let program = process.program();
    let arena = process.arena();
    let Some(code) = program.code(slot, arena.map_or(0, |arena| arena.bytes)) else { return 1 };
    let (filter, runs) =
        match () {
            _ if !may_be_looked_into() => (keep as Filter, FilterEngine::Not),
            _ if code.kind == FilterCodeKind::Native => native(process, code)
                .map_or((keep as Filter, FilterEngine::Not), |filter| (filter, FilterEngine::Native)),
            _ if code.kind == FilterCodeKind::Judgement => judge::read(process, slot, code, slot_and_size >> SLOT_BITS)
                .unwrap_or((keep as Filter, FilterEngine::Not)),
            _ if has_bytecode(process, slot, code, slot_and_size >> SLOT_BITS) => {
                (interpret as Filter, FilterEngine::Interpreted)
            }
            _ => (keep as Filter, FilterEngine::Not),
        };
    place(slot).store(filter as *mut (), Ordering::Release);
    program.runs(slot, runs);
    // Safety: the filter was made for these arguments.
    unsafe { filter(arguments, slot_and_size) }
}

/// Entry of a filter that cannot run.
unsafe extern "C" fn keep(_: *const u8, _: u64) -> u64 {
    1
}

/// Copies bytecode, then validates the copy, because other processes may change the original at any
/// time. It must need no more than `size` bytes of arguments.
fn has_bytecode(process: &ProcessState, slot: u8, code: FilterCode, size: u64) -> bool {
    let Some(bytes) = code_bytes(process, code).filter(|_| code.kind == FilterCodeKind::Bytecode) else {
        return false;
    };
    let head = size_of::<Interpreted>();
    let Some((page, copied)) = copied(bytes, head) else { return false };
    let Some(program) = validate(copied).ok().filter(|program| u64::from(program.size()) <= size) else {
        pages::unmap(page, head + code.bytes as usize);
        return false;
    };
    let interpreted = page.cast::<Interpreted>();
    // Safety: pages are aligned, and have room.
    unsafe { interpreted.write(Interpreted { program }) };
    let place = &BYTECODE[usize::from(slot)];
    if place.compare_exchange(null_mut(), interpreted.as_ptr(), Ordering::AcqRel, Ordering::Acquire).is_err() {
        // Another thread was faster, with the same bytecode.
        pages::unmap(page, head + code.bytes as usize);
    }
    true
}

unsafe extern "C" fn interpret(arguments: *const u8, slot_and_size: u64) -> u64 {
    // Safety: stored bytecode is never removed.
    let Some(interpreted) = (unsafe { BYTECODE[usize::from(slot_and_size as u8)].load(Ordering::Acquire).as_ref() })
    else {
        return 1;
    };
    let size = interpreted.program.size();
    // The recorder may have switched another event to this slot.
    if u64::from(size) > slot_and_size >> SLOT_BITS {
        return 1;
    }
    // Safety: the callsite guarantees that its arguments have at least this size.
    u64::from(unsafe { run(&interpreted.program, arguments) })
}

/// Publishes the parent's filters in a child process, so that the recorder sees that their slots
/// are taken.
pub(crate) fn inherit(program: &ProgramSide<'_, Mapped>) {
    for slot in FIRST_SLOT..=u8::MAX {
        match known(slot) {
            FilterEngine::NotYet => {}
            runs => program.runs(slot, runs),
        }
    }
}

/// State of a slot in this process.
pub(crate) fn known(slot: u8) -> FilterEngine {
    let now = place(slot).load(Ordering::Relaxed);
    let is = |filter: Filter| core::ptr::eq(now, filter as *const ());
    match () {
        () if is(first) => FilterEngine::NotYet,
        () if is(interpret) || judge::is_entry(now) => FilterEngine::Interpreted,
        () if is(keep) => FilterEngine::Not,
        () => FilterEngine::Native,
    }
}
