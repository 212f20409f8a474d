//! Code of filters in this process: machine code in its arena, or copies of the bytecode that recorders put
//! behind the slots.

#![allow(unsafe_code, reason = "machine code is called, and arguments lie in memory")]

use core::ptr::NonNull;

use kymo_bytecode::{BytecodeProgram, Texts};
use kymo_lane::FilterCode;

use crate::pages;
use crate::process::ProcessState;

/// Decides whether to keep an event with these arguments: 0 means no. The second parameter holds
/// the slot, and above it the size of the arguments in bytes.
pub(crate) type Filter = unsafe extern "C" fn(arguments: *const u8, slot_and_size: u64) -> u64;

/// Bits of the slot in the second parameter of a filter.
pub(crate) const SLOT_BITS: u32 = 8;

/// Maximum bytes of a text that filters look at.
pub(crate) const TEXT_BYTES_MAX: u64 = 1 << 16;

/// Machine code in the arena of this process.
pub(crate) fn native(process: &ProcessState, code: FilterCode) -> Option<Filter> {
    let arena = process.arena()?;
    let is_inside = u64::from(code.offset) + u64::from(code.bytes) <= arena.bytes.into();
    // Safety: the recorder states that this function exists, and is trusted: it could do anything to
    // this process.
    is_inside
        .then(|| unsafe { core::mem::transmute::<usize, Filter>((arena.address + u64::from(code.offset)) as usize) })
}

/// Bytes behind the slots that other processes may change at any time; `None`: they are not there.
pub(crate) fn code_bytes(process: &ProcessState, code: FilterCode) -> Option<*const [u8]> {
    let (begin, all) = process.filters();
    let is_inside = u64::from(code.offset) + u64::from(code.bytes) <= all.into();
    is_inside.then(|| core::ptr::slice_from_raw_parts(begin.wrapping_add(code.offset as usize), code.bytes as usize))
}

/// A copy of such bytes in pages of this process, `head` bytes behind their begin.
pub(crate) fn copied(bytes: *const [u8], head: usize) -> Option<(NonNull<u8>, &'static [u8])> {
    let page = pages::plain(head + bytes.len())?;
    // Safety: the pages have room for both, and the source is mapped; its content need not be valid.
    let copied = unsafe {
        let to = page.as_ptr().add(head);
        to.copy_from_nonoverlapping(bytes.cast(), bytes.len());
        core::slice::from_raw_parts(to, bytes.len())
    };
    Some((page, copied))
}

/// Runs bytecode on arguments of at least its size.
///
/// # Safety
///
/// The arguments have that size.
pub(crate) unsafe fn run(program: &BytecodeProgram<'_>, arguments: *const u8) -> bool {
    // Safety: see above.
    let arguments = unsafe { core::slice::from_raw_parts(arguments, program.size() as usize) };
    program.run(arguments, &Addresses).unwrap_or(true)
}

/// Texts at the addresses in the arguments.
pub(crate) struct Addresses;

impl Texts for Addresses {
    fn text(&self, address: u64, length: u64) -> &[u8] {
        if address == 0 {
            return &[];
        }
        // Safety: the callsite guarantees that the text has this length.
        unsafe { core::slice::from_raw_parts(address as *const u8, length.min(TEXT_BYTES_MAX) as usize) }
    }
}
