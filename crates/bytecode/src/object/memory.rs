//! Memory of a run: pieces with a number each, in the upper half of addresses, as in `kymo_ir::machine`.
//!
//! ```text
//! 63           32 31            0
//! │ piece        │ offset in it │   1 the context   2 texts: number << 24 │ offset   3 the stack   1 << 28 .. values of a map
//! ```

use super::form::ObjectImage;
use super::limits::{FRAME_BYTES, FRAMES_MAX};
use super::numbers::{ObjectChange, low};
use super::surroundings::{ObjectStopKind, ObjectSurroundings};

const STACK_BYTES: usize = FRAME_BYTES * FRAMES_MAX;
/// Bits of a place in a text.
const TEXT_BITS: u32 = 24;

const CONTEXT: u32 = 1;
const DATA: u32 = 2;
const STACK: u32 = 3;
const VALUES: u32 = 1 << 28;
const MAPS: u32 = 4 << 28;
/// CPUs that addresses of values have room for.
const CPUS: u32 = 1 << 16;

const fn address(piece: u32, offset: u32) -> u64 {
    (piece as u64) << 32 | offset as u64
}

fn parts(address: u64) -> (u32, usize) {
    ((address >> 32) as u32, (address & 0xffff_ffff) as usize)
}

/// The address of the context.
pub(super) const CONTEXT_ADDRESS: u64 = address(CONTEXT, 0);

/// The end of the stack of the function that is called inside of so many others.
pub(super) fn stack_end(depth: usize) -> u64 {
    address(STACK, ((FRAMES_MAX - depth) * FRAME_BYTES) as u32)
}

/// The address of a map.
pub(super) fn map_at(address: u64) -> Option<usize> {
    let (piece, offset) = parts(address);
    (piece & 0xf << 28 == MAPS && offset == 0).then_some((piece & 0x0fff_ffff) as usize)
}

/// The address of a byte of a map's values.
pub(super) fn value_address(map: usize, offset: u32) -> u64 {
    address(VALUES + map as u32 * CPUS, offset)
}

/// The address, for programs, of the text that a move leads to.
#[must_use]
pub fn text_address(number: usize) -> u64 {
    address(DATA, (number as u32) << TEXT_BITS)
}

/// Where a piece of memory is.
pub(super) enum ProgramPlace {
    /// At an address of this process.
    Own(*mut u8),
    /// At an offset in the shared memory.
    Shared(u64),
}

/// A piece of memory: for programs it begins at `begin`.
pub(super) struct FoundPlace {
    pub(super) begin: u64,
    pub(super) bytes: u64,
    pub(super) is_writable: bool,
    pub(super) place: ProgramPlace,
}

/// The memory of a running program.
pub(super) struct RunMemory<'m, 'i, S> {
    pub(super) image: ObjectImage<'i>,
    pub(super) context: &'m mut [u8],
    /// The stack of as many functions as are called inside of each other.
    pub(super) stack: &'m mut [u8],
    pub(super) surroundings: &'m mut S,
}

impl<S: ObjectSurroundings> RunMemory<'_, '_, S> {
    /// Place in the stack of an offset in its piece.
    fn stack_place(&self, at: usize) -> Option<usize> {
        at.checked_sub(STACK_BYTES - self.stack.len())
    }

    /// The place of a value; to be written, if that is so.
    #[inline(always)]
    fn value(&self, piece: u32, at: usize, bytes: usize, is_write: bool) -> Option<u64> {
        let map = (piece.checked_sub(VALUES)? / CPUS) as usize;
        if is_write && self.image.is_read_only(map) {
            return None;
        }
        self.surroundings.place(map, at as u32, bytes)
    }

    /// The piece with so many bytes from an address; `None`: there is none.
    pub(super) fn find(&mut self, address: u64, bytes: usize) -> Option<FoundPlace> {
        static ZERO: u8 = 0;
        let (piece, at) = parts(address);
        let own = |place: &mut [u8], first: usize| {
            let (begin, length) = (address - (at as u64 - first as u64), place.len());
            let place = ProgramPlace::Own(place.as_mut_ptr());
            FoundPlace { begin, bytes: length as u64, is_writable: true, place }
        };
        let found = match piece {
            STACK if at >= STACK_BYTES - self.stack.len() => own(self.stack, STACK_BYTES - self.stack.len()),
            STACK => return None,
            CONTEXT => own(self.context, 0),
            DATA => {
                let text = self.surroundings.text(at >> TEXT_BITS)?;
                let inside = at & ((1 << TEXT_BITS) - 1);
                let (inside, text) =
                    if inside == text.len() { (0, core::slice::from_ref(&ZERO)) } else { (inside, text) };
                let place = ProgramPlace::Own(text.as_ptr().cast_mut());
                FoundPlace { begin: address - inside as u64, bytes: text.len() as u64, is_writable: false, place }
            }
            _ => {
                let map = (piece.checked_sub(VALUES)? / CPUS) as usize;
                let [_, value_bytes] = self.image.sizes(map)?;
                let inside = at % value_bytes.next_multiple_of(8);
                let place = ProgramPlace::Shared(self.value(piece, at - inside, value_bytes, false)?);
                let is_writable = !self.image.is_read_only(map);
                FoundPlace { begin: address - inside as u64, bytes: value_bytes as u64, is_writable, place }
            }
        };
        (address - found.begin).checked_add(bytes as u64).is_some_and(|end| end <= found.bytes).then_some(found)
    }

    /// A number of so many bytes.
    #[inline(always)]
    pub(super) fn load(&self, address: u64, bytes: u8) -> Result<u64, ObjectStopKind> {
        let ((piece, at), size) = (parts(address), usize::from(bytes));
        let found = match piece {
            STACK => self.stack_place(at).and_then(|at| number(self.stack, at, bytes)),
            CONTEXT => number(self.context, at, bytes),
            DATA => self.text_number(at, size),
            _ => self.value(piece, at, size, false).map(|place| self.surroundings.load(place, bytes)),
        };
        found.ok_or(ObjectStopKind::OutsideMemory)
    }

    #[inline(always)]
    pub(super) fn store(&mut self, address: u64, bytes: u8, value: u64) -> Result<(), ObjectStopKind> {
        let (piece, at) = parts(address);
        let place = match piece {
            STACK => self.stack_place(at).and_then(|at| self.stack.get_mut(at..)?.get_mut(..usize::from(bytes))),
            CONTEXT => self.context.get_mut(at..).and_then(|rest| rest.get_mut(..usize::from(bytes))),
            _ => {
                let place = self.value(piece, at, bytes.into(), true).ok_or(ObjectStopKind::OutsideMemory)?;
                self.surroundings.store(place, bytes, value);
                return Ok(());
            }
        };
        put(place.ok_or(ObjectStopKind::OutsideMemory)?, value);
        Ok(())
    }

    /// Changes a number; the one that was there.
    pub(super) fn change(
        &mut self,
        address: u64,
        bytes: u8,
        change: ObjectChange,
        (value, expected): (u64, u64),
    ) -> Result<u64, ObjectStopKind> {
        let (piece, at) = parts(address);
        let (value, expected) = (low(value, bytes), low(expected, bytes));
        if matches!(piece, STACK | CONTEXT) {
            let before = self.load(address, bytes)?;
            self.store(address, bytes, change.after(before, value, expected))?;
            return Ok(before);
        }
        // As on hardware, atomic numbers lie at multiples of their size.
        let place = self.value(piece, at, bytes.into(), true).filter(|_| at.is_multiple_of(bytes.into()));
        let place = place.ok_or(ObjectStopKind::OutsideMemory)?;
        Ok(self.surroundings.change(place, bytes, change, (value, expected)))
    }

    /// Copies memory.
    pub(super) fn copy(&self, from: u64, to: &mut [u8]) -> Result<(), ObjectStopKind> {
        let (piece, at) = parts(from);
        let bytes = match piece {
            STACK => self.stack_place(at).and_then(|at| self.stack.get(at..)?.get(..to.len())),
            CONTEXT => self.context.get(at..).and_then(|rest| rest.get(..to.len())),
            _ => {
                let found = if piece == DATA { Some(()) } else { self.value(piece, at, to.len(), false).map(drop) };
                found.ok_or(ObjectStopKind::OutsideMemory)?;
                let step = |to: usize| from.wrapping_add(to as u64);
                let (words, rest) = to.as_chunks_mut::<8>();
                for (number, word) in words.iter_mut().enumerate() {
                    *word = self.load(step(8 * number), 8)?.to_le_bytes();
                }
                let done = 8 * words.len();
                for (number, byte) in rest.iter_mut().enumerate() {
                    *byte = self.load(step(done + number), 1)? as u8;
                }
                return Ok(());
            }
        };
        to.copy_from_slice(bytes.ok_or(ObjectStopKind::OutsideMemory)?);
        Ok(())
    }

    /// Whether so many bytes from there may be written.
    pub(super) fn may_write(&self, address: u64, bytes: usize) -> bool {
        let (piece, at) = parts(address);
        let is_inside = |length: usize| at.checked_add(bytes).is_some_and(|end| end <= length);
        match piece {
            STACK => self.stack_place(at).is_some() && is_inside(STACK_BYTES),
            CONTEXT => is_inside(self.context.len()),
            _ => self.value(piece, at, bytes, true).is_some(),
        }
    }

    fn text_number(&self, at: usize, size: usize) -> Option<u64> {
        (0..size).rev().try_fold(0, |number, step| Some(number << 8 | u64::from(self.text_byte(at + step)?)))
    }

    /// A byte of a text, or the zero byte behind it.
    fn text_byte(&self, at: usize) -> Option<u8> {
        let text = self.surroundings.text(at >> TEXT_BITS)?;
        let at = at & ((1 << TEXT_BITS) - 1);
        if at == text.len() { Some(0) } else { text.get(at).copied() }
    }
}

/// A number of up to 8 bytes.
#[inline(always)]
fn number(bytes: &[u8], at: usize, size: u8) -> Option<u64> {
    let bytes = bytes.get(at..)?;
    Some(match size {
        1 => (*bytes.first()?).into(),
        2 => u16::from_le_bytes(*bytes.first_chunk()?).into(),
        4 => u32::from_le_bytes(*bytes.first_chunk()?).into(),
        _ => u64::from_le_bytes(*bytes.first_chunk()?),
    })
}

/// Writes the low bytes of a number.
#[inline(always)]
pub(super) fn put(place: &mut [u8], value: u64) {
    let bytes = value.to_le_bytes();
    match place {
        [one] => *one = bytes[0],
        [_, _] => place.copy_from_slice(&bytes[..2]),
        [_, _, _, _] => place.copy_from_slice(&bytes[..4]),
        _ => place.copy_from_slice(&bytes[..place.len().min(8)]),
    }
}
