//! Memory of a program: pieces with a number each, in the upper half of addresses.
//!
//! ```text
//! 63           32 31            0
//! │ piece        │ offset in it │       a pointer moves inside of its piece by plain arithmetic; each access is checked
//!
//!   0            nothing: small numbers are no addresses
//!   1            the context of the program
//!   2            data that the context points to, which is only read
//!   3            the stack: 512 bytes for each function on it
//!   1 << 28 ..   values of a map, of each CPU
//!   4 << 28 ..   a map itself: not memory
//!   5 << 28 ..   a reserved record of a ring
//!   6 << 28 ..   keys that a helper function shows
//!   7 << 28 ..   a function: not memory
//! ```

use std::ops::Range;

use super::map::{BpfMap, TOO_BIG};
use super::problem::MachineFaultKind;

/// Bytes of stack for each function.
pub const FRAME_BYTES: usize = 512;
/// Functions that are called inside of each other at most, as in the kernel.
pub const FRAMES_MAX: usize = 8;
/// Bytes of the stack of a run.
pub(super) const STACK_BYTES: usize = FRAME_BYTES * FRAMES_MAX;
/// Maps of a machine at most.
pub(super) const MAPS_MAX: usize = 1 << 12;
/// CPUs that addresses have room for.
const CPUS: u32 = 1 << 16;

/// Bytes of a text that are looked at together.
const TEXT_STEP: usize = 64;

const CONTEXT: u32 = 1;
const DATA: u32 = 2;
const STACK: u32 = 3;
const VALUES: u32 = 1 << 28;
const MAPS: u32 = 4 << 28;
const RECORDS: u32 = 5 << 28;
const KEYS: u32 = 6 << 28;
const FUNCTIONS: u32 = 7 << 28;
const KIND: u32 = 0xf << 28;

fn address(piece: u32, offset: u32) -> u64 {
    u64::from(piece) << 32 | u64::from(offset)
}

fn parts(address: u64) -> (u32, usize) {
    ((address >> 32) as u32, (address & 0xffff_ffff) as usize)
}

/// A record that a program has reserved in a ring, until it hands it over.
#[derive(Debug)]
pub(super) struct ReservedRecord {
    pub(super) map: usize,
    /// None: it was handed over, or thrown away.
    pub(super) bytes: Option<Vec<u8>>,
}

/// A place in memory that a program may use.
#[derive(Clone, Copy, Debug)]
pub struct MemoryPlace {
    /// Its address for the program.
    pub begin: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its first byte.
    pub pointer: *mut u8,
    /// It may be written.
    pub is_writable: bool,
}

/// The memory of a running program.
#[derive(Debug)]
pub(super) struct MachineMemory<'m> {
    pub(super) context: &'m mut [u8],
    pub(super) data: &'m [u8],
    /// The stack, which is zeros where no function has written.
    pub(super) stack: &'m mut [u8],
    /// Where the written part of the stack begins, at most.
    pub(super) stack_low: &'m mut usize,
    pub(super) maps: &'m mut [BpfMap],
    pub(super) reserved: Vec<ReservedRecord>,
    pub(super) keys: Vec<Box<[u8]>>,
}

/// The address of the context.
#[must_use]
pub fn context_address() -> u64 {
    address(CONTEXT, 0)
}

/// The address of a byte of the data.
pub(super) fn data_address(offset: u32) -> u64 {
    address(DATA, offset)
}

/// The part of the stack of the function that is called inside of so many others: below those.
pub(super) fn frame(depth: usize) -> Range<usize> {
    let end = (FRAMES_MAX - depth) * FRAME_BYTES;
    end - FRAME_BYTES..end
}

/// The end of the stack of the function that is called inside of so many others.
#[must_use]
pub fn stack_end(depth: usize) -> u64 {
    address(STACK, frame(depth).end as u32)
}

/// The address of a map.
#[must_use]
pub fn map_address(map: u32) -> u64 {
    address(MAPS | map, 0)
}

/// The map at an address.
#[must_use]
pub fn map_at(address: u64) -> Option<usize> {
    let (piece, offset) = parts(address);
    (piece & KIND == MAPS && offset == 0).then_some((piece & !KIND) as usize)
}

/// The address of a byte of a map's values.
#[must_use]
pub fn value_address(map: usize, cpu: u32, offset: u32) -> u64 {
    address(VALUES + map as u32 * CPUS + cpu, offset)
}

/// The address of a reserved record.
pub(super) fn record_address(index: usize) -> u64 {
    address(RECORDS | index as u32, 0)
}

/// The reserved record at an address.
pub(super) fn record_at(address: u64) -> Option<usize> {
    let (piece, offset) = parts(address);
    (piece & KIND == RECORDS && offset == 0).then_some((piece & !KIND) as usize)
}

/// The address of a key that is shown.
pub(super) fn key_address(index: usize) -> u64 {
    address(KEYS | index as u32, 0)
}

/// The address of a function, by the index of its first instruction.
#[must_use]
pub fn function_address(target: u32) -> u64 {
    address(FUNCTIONS, target)
}

/// The function at an address.
pub(super) fn function_at(address: u64) -> Option<usize> {
    let (piece, offset) = parts(address);
    (piece == FUNCTIONS).then_some(offset)
}

impl MachineMemory<'_> {
    /// Bytes from an address.
    pub(super) fn bytes(&self, address: u64, size: u64) -> Result<&[u8], MachineFaultKind> {
        self.find(address, size).ok_or_else(|| self.fault(address, size, false))
    }

    /// The same, to be written.
    pub(super) fn bytes_mut(&mut self, address: u64, size: u64) -> Result<&mut [u8], MachineFaultKind> {
        // Once for the error: a borrow that is returned in one branch is held in all.
        if self.find_mut(address, size).is_none() {
            return Err(self.fault(address, size, true));
        }
        Ok(self.find_mut(address, size).expect("it was there"))
    }

    /// Bytes from an address; `None`: they are not there.
    pub(super) fn find(&self, address: u64, size: u64) -> Option<&[u8]> {
        let (piece, at) = parts(address);
        let size = usize::try_from(size).ok()?;
        let end = at.checked_add(size)?;
        match piece & KIND {
            0 => match piece {
                CONTEXT => self.context.get(at..end),
                DATA => self.data.get(at..end),
                STACK => self.stack.get(at..end),
                _ => None,
            },
            RECORDS => self.reserved.get((piece & !KIND) as usize)?.bytes.as_ref()?.get(at..end),
            KEYS => self.keys.get((piece & !KIND) as usize)?.get(at..end),
            MAPS | FUNCTIONS => None,
            _ => {
                let (map, cpu) = map_and_cpu(piece)?;
                self.maps.get(map)?.value_at(cpu, at, size)
            }
        }
    }

    fn find_mut(&mut self, address: u64, size: u64) -> Option<&mut [u8]> {
        let (piece, at) = parts(address);
        let size = usize::try_from(size).ok()?;
        let end = at.checked_add(size)?;
        match piece & KIND {
            0 => match piece {
                CONTEXT => self.context.get_mut(at..end),
                STACK => {
                    let found = self.stack.get_mut(at..end)?;
                    *self.stack_low = at.min(*self.stack_low);
                    Some(found)
                }
                _ => None,
            },
            RECORDS => self.reserved.get_mut((piece & !KIND) as usize)?.bytes.as_mut()?.get_mut(at..end),
            KEYS | MAPS | FUNCTIONS => None,
            _ => {
                let (map, cpu) = map_and_cpu(piece)?;
                let map = self.maps.get_mut(map).filter(|map| !map.definition().is_read_only)?;
                map.value_at_mut(cpu, at, size)
            }
        }
    }

    /// The whole place around bytes from an address: a piece, or a value of a map.
    pub(super) fn place_of(&mut self, address: u64, bytes: u64, is_write: bool) -> Option<MemoryPlace> {
        let (piece, at) = parts(address);
        let is_found =
            if is_write { self.find_mut(address, bytes).is_some() } else { self.find(address, bytes).is_some() };
        if !is_found {
            return None;
        }
        let index = (piece & !KIND) as usize;
        let whole = |bytes: &mut [u8]| MemoryPlace {
            begin: u64::from(piece) << 32,
            bytes: bytes.len() as u64,
            pointer: bytes.as_mut_ptr(),
            is_writable: true,
        };
        let constant = |bytes: &[u8]| MemoryPlace {
            begin: u64::from(piece) << 32,
            bytes: bytes.len() as u64,
            pointer: bytes.as_ptr().cast_mut(),
            is_writable: false,
        };
        match piece & KIND {
            0 => match piece {
                CONTEXT => Some(whole(self.context)),
                DATA => Some(constant(self.data)),
                _ => {
                    // It may be written anywhere without another question.
                    if is_write {
                        *self.stack_low = 0;
                    }
                    Some(MemoryPlace { is_writable: is_write, ..whole(self.stack) })
                }
            },
            RECORDS => self.reserved.get_mut(index)?.bytes.as_deref_mut().map(whole),
            KEYS => self.keys.get(index).map(|key| constant(key)),
            _ => {
                let (map, cpu) = map_and_cpu(piece)?;
                let map = self.maps.get_mut(map)?;
                let (is_writable, size) = (!map.definition().is_read_only, map.definition().value_bytes as usize);
                let begin = at - at % map.stride();
                let pointer = map.values_mut(cpu).get_mut(begin..begin + size)?.as_mut_ptr();
                let first = u64::from(piece) << 32 | begin as u64;
                Some(MemoryPlace { begin: first, bytes: size as u64, pointer, is_writable })
            }
        }
    }

    /// Clears the stack of the function that is called inside of so many others.
    pub(super) fn clear_frame(&mut self, depth: usize) {
        let frame = frame(depth);
        *self.stack_low = frame.start.min(*self.stack_low);
        self.stack[frame].fill(0);
    }

    /// A text that ends with a zero byte, with so many bytes before it at most; `None`: it is not in memory.
    pub(super) fn text(&self, address: u64, limit: usize) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        while text.len() < limit {
            let at = address.checked_add(text.len() as u64)?;
            // Before the end of memory, one by one.
            let some = (limit - text.len()).min(TEXT_STEP);
            let bytes = self.find(at, some as u64).or_else(|| self.find(at, 1))?;
            let end = bytes.iter().position(|byte| *byte == 0);
            text.extend(&bytes[..end.unwrap_or(bytes.len())]);
            if end.is_some() {
                break;
            }
        }
        Some(text)
    }

    fn fault(&self, address: u64, bytes: u64, is_write: bool) -> MachineFaultKind {
        MachineFaultKind::OutsideMemory { is_write, bytes, place: self.place(address).into() }
    }

    /// An address in words.
    fn place(&self, address: u64) -> String {
        let (piece, at) = parts(address);
        let index = (piece & !KIND) as usize;
        let of = |name: &str, size: usize| format!("offset {} of {name}, which has {size}", at as u32 as i32);
        match piece & KIND {
            0 => match piece {
                0 => format!("{address:#x}: a null pointer, or a number that is no pointer"),
                CONTEXT => of("the context", self.context.len()),
                DATA => format!("{}, and can only be read", of("the data of the context", self.data.len())),
                STACK => of("the stack", self.stack.len()),
                _ => format!("{address:#x}, where nothing is"),
            },
            RECORDS => match self.reserved.get(index).map(|record| record.bytes.as_ref().map(Vec::len)) {
                Some(Some(size)) => of("a record", size),
                _ => "a record that the program has already given away".to_owned(),
            },
            KEYS => "a key, which can only be read".to_owned(),
            MAPS => "a map: values are found by bpf_map_lookup_elem".to_owned(),
            FUNCTIONS => "a function".to_owned(),
            _ => match map_and_cpu(piece).and_then(|(map, _)| self.maps.get(map)) {
                Some(map) => {
                    let definition = map.definition();
                    let writable = if definition.is_read_only { ", and can only be read" } else { "" };
                    let size = definition.value_bytes;
                    format!("byte {at} of the values of map {}, of {size} bytes each{writable}", definition.name)
                }
                None => format!("{address:#x}, where nothing is"),
            },
        }
    }
}

/// The map and CPU of a piece with values.
fn map_and_cpu(piece: u32) -> Option<(usize, usize)> {
    let index = piece.checked_sub(VALUES).filter(|index| *index < MAPS_MAX as u32 * CPUS)?;
    Some(((index / CPUS) as usize, (index % CPUS) as usize))
}

/// The CPU as a number of addresses.
pub(super) fn cpu_of(cpu: u32) -> Result<u32, i64> {
    if cpu < CPUS { Ok(cpu) } else { Err(TOO_BIG) }
}
