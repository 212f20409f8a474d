//! The shared memory as mapped into this process.

#![allow(unsafe_code, reason = "what is mapped is reached by address")]

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use crate::memory::ProgramMemory;
use crate::sides::ProgramSide;

/// Memory that this process shares with other processes.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    base: *mut u8,
    /// Ensures that `bytes` bytes from `address` on have memory.
    reserve: fn(address: *mut u8, bytes: u64) -> bool,
    ring: fn() -> bool,
}

// All words are atomic. Event bytes are not: only the lane that owns their sub-buffer writes them.
unsafe impl Send for Mapped {}
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Wraps the mapping at `base`, which is a multiple of 4096.
    ///
    /// # Safety
    ///
    /// The caller must guarantee that all bytes of the layout used with this value are mapped
    /// there, readable and writable, as long as the value is used; that `reserve` returns the
    /// truth; and that all other writers of the memory follow this crate's protocol. `ring` rings
    /// the bell and returns whether there is one.
    #[must_use]
    pub unsafe fn new(base: *mut u8, reserve: fn(address: *mut u8, bytes: u64) -> bool, ring: fn() -> bool) -> Self {
        Self { base, reserve, ring }
    }

    #[inline]
    fn at(&self, at: u64) -> *mut u8 {
        // Safety: all places come from the layout.
        unsafe { self.base.add(at as usize) }
    }

    #[inline]
    fn cell(&self, at: u64) -> &AtomicU64 {
        debug_assert!(at.is_multiple_of(8), "words lie at multiples of 8");
        // Safety: the word is mapped and aligned, and all accesses to a word are atomic.
        unsafe { AtomicU64::from_ptr(self.at(at).cast()) }
    }

    #[inline]
    fn small(&self, at: u64) -> &AtomicU8 {
        // Safety: the byte is mapped, and all accesses to such a byte are atomic.
        unsafe { AtomicU8::from_ptr(self.at(at)) }
    }
}

impl ProgramSide<'_, Mapped> {
    /// The address of the memory.
    #[inline]
    #[must_use]
    pub fn memory_base(&self) -> *mut u8 {
        self.memory.base
    }
}

impl ProgramMemory for Mapped {
    #[inline]
    fn load(&self, at: u64, order: Ordering) -> u64 {
        u64::from_le(self.cell(at).load(order))
    }

    #[inline]
    fn store(&self, at: u64, value: u64, order: Ordering) {
        self.cell(at).store(value.to_le(), order);
    }

    #[inline]
    fn compare_exchange(&self, at: u64, old: u64, new: u64) -> bool {
        self.cell(at).compare_exchange(old.to_le(), new.to_le(), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn add(&self, at: u64, more: u64) -> u64 {
        // Both architectures are little-endian.
        const { assert!(cfg!(target_endian = "little"), "sums are of little-endian words") };
        self.cell(at).fetch_add(more, Ordering::Relaxed)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn add_alone(&self, at: u64, more: u64) {
        // Safety: the word is mapped and aligned. One instruction is not interrupted in the middle, and no other
        // thread writes the word; readers of a word see it whole.
        unsafe {
            core::arch::asm!("add qword ptr [{}], {}", in(reg) self.cell(at).as_ptr(), in(reg) more, options(nostack));
        }
    }

    #[inline]
    fn byte(&self, at: u64) -> u8 {
        self.small(at).load(Ordering::Acquire)
    }

    #[inline]
    fn clear(&self, at: u64) {
        self.small(at).store(0, Ordering::Relaxed);
    }

    #[inline]
    fn put(&self, at: u64, bytes: &[u8]) {
        // Safety: the sub-buffer is the caller's, and has room for it.
        unsafe { self.at(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    #[inline]
    fn load_part(&self, at: u64, bytes: u8) -> u64 {
        let place = self.at(at);
        // Safety: the bytes are mapped, and all accesses to aligned numbers are atomic; others are taken apart.
        unsafe {
            match bytes {
                1 => AtomicU8::from_ptr(place).load(Ordering::Relaxed).into(),
                2 if at.is_multiple_of(2) => AtomicU16::from_ptr(place.cast()).load(Ordering::Relaxed).into(),
                4 if at.is_multiple_of(4) => AtomicU32::from_ptr(place.cast()).load(Ordering::Relaxed).into(),
                8 if at.is_multiple_of(8) => self.cell(at).load(Ordering::Relaxed),
                _ => (0..bytes).rev().fold(0, |number, byte| number << 8 | self.load_part(at + u64::from(byte), 1)),
            }
        }
    }

    #[inline]
    fn store_part(&self, at: u64, bytes: u8, value: u64) {
        let place = self.at(at);
        // Safety: as above.
        unsafe {
            match bytes {
                1 => AtomicU8::from_ptr(place).store(value as u8, Ordering::Relaxed),
                2 if at.is_multiple_of(2) => AtomicU16::from_ptr(place.cast()).store(value as u16, Ordering::Relaxed),
                4 if at.is_multiple_of(4) => AtomicU32::from_ptr(place.cast()).store(value as u32, Ordering::Relaxed),
                8 if at.is_multiple_of(8) => self.cell(at).store(value, Ordering::Relaxed),
                _ => {
                    (0..bytes)
                        .for_each(|byte| self.store_part(at + u64::from(byte), 1, value >> (8 * u32::from(byte))));
                }
            }
        }
    }

    #[inline]
    fn fence(&self, order: Ordering) {
        fence(order);
    }

    fn reserve(&self, at: u64, bytes: u64) -> bool {
        (self.reserve)(self.at(at), bytes)
    }

    fn ring(&self) -> bool {
        (self.ring)()
    }
}
