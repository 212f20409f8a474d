//! Rings that programs in the kernel write and a recorder reads: mapped into memory, so that reading costs no system call.
//!
//! ```text
//! page: how far the reader is │ page: how far the kernel is │ records │ the same records once more
//!                                                             └ u32 length and flags, u32 │ bytes │ up to 8
//! ```
//!
//! The kernel writes all but the first page, which is the only one that can be written here.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use crate::call_programs::COUNTS_AT;
use crate::mapped::Mapped;

/// Bytes before a record.
const HEAD: u64 = 8;
/// The kernel still writes it.
const BUSY: u32 = 1 << 31;
/// It is to be passed over.
const DISCARDED: u32 = 1 << 30;

/// Files of the rings of all CPUs, as the helper hands them over.
#[derive(Debug)]
pub struct ProgramRingFiles {
    /// Bytes of each ring.
    pub ring_bytes: u32,
    /// CPUs of the rings.
    pub cpus: Vec<u32>,
    /// Their rings.
    pub rings: Vec<OwnedFd>,
    /// Counts of lost records.
    pub counts: OwnedFd,
    /// Memory for their records, which the helper keeps for the next recorder, if this one is killed.
    pub spool: OwnedFd,
}

/// A ring, of one CPU or of all.
#[derive(Debug)]
pub(crate) struct KernelRing {
    position: Mapped,
    records: Mapped,
    page: usize,
    mask: u64,
    /// How far it was drained.
    drained: u64,
}

impl KernelRing {
    pub(crate) fn new(file: &OwnedFd, bytes: u32, page: usize) -> io::Result<Self> {
        if !bytes.is_power_of_two() || (bytes as usize) < page {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let position = Mapped::new(file, 0, page, libc::PROT_READ | libc::PROT_WRITE)?;
        let records = Mapped::new(file, page, page + 2 * bytes as usize, libc::PROT_READ)?;
        Ok(Self { position, records, page, mask: u64::from(bytes) - 1, drained: 0 })
    }

    /// Copies all records behind `into`, each with its length before it; returns how many.
    fn drain(&mut self, into: &mut Vec<u8>) -> u64 {
        self.drain_some(into, u64::MAX)
    }

    /// The same of about so many bytes.
    pub(crate) fn drain_some(&mut self, into: &mut Vec<u8>, bytes: u64) -> u64 {
        let (begin, end) =
            (self.position.long(0).load(Ordering::Relaxed), self.records.long(0).load(Ordering::Acquire));
        // The reader's page can be written by any process of this user: of a place that cannot be, nothing is read.
        if !begin.is_multiple_of(8) || end.wrapping_sub(begin) > self.mask + 1 {
            self.drained = end & !7;
            self.position.long(0).store(self.drained, Ordering::Release);
            return 0;
        }
        let (mut at, mut records) = (begin, 0);
        while at < end && at - begin < bytes {
            let place = self.page + (at & self.mask) as usize;
            let head = self.records.word(place).load(Ordering::Acquire);
            let length = head & !(BUSY | DISCARDED);
            if head & BUSY != 0 || HEAD + u64::from(length) > end - at {
                break;
            }
            if head & DISCARDED == 0 {
                into.extend_from_slice(&length.to_le_bytes());
                self.records.copy(place + HEAD as usize, length as usize, into);
                records += 1;
            }
            at += (u64::from(length) + HEAD).next_multiple_of(8);
        }
        self.drained = at;
        records
    }

    /// How far it was drained.
    pub(crate) fn drained(&self) -> u64 {
        self.drained
    }

    /// Gives the room of drained records back.
    pub(crate) fn release(&self) {
        if self.drained > self.position.long(0).load(Ordering::Relaxed) {
            self.position.long(0).store(self.drained, Ordering::Release);
        }
    }
}

/// Rings of all CPUs, mapped.
#[derive(Debug)]
pub struct ProgramRings {
    rings: Vec<KernelRing>,
    counts: Mapped,
    cpus: Vec<u32>,
}

impl ProgramRings {
    /// Maps them.
    ///
    /// # Errors
    ///
    /// The kernel does not allow it, or there are not as many rings as CPUs.
    pub fn map(files: &ProgramRingFiles) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let rings = files.rings.iter().map(|file| KernelRing::new(file, files.ring_bytes, page));
        let rings = rings.collect::<io::Result<Vec<_>>>()?;
        if rings.len() != files.cpus.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let highest = files.cpus.iter().max().map_or(0, |cpu| *cpu as usize);
        let bytes = (COUNTS_AT + 8 * (highest + 1)).next_multiple_of(page);
        let counts = Mapped::new(&files.counts, 0, bytes, libc::PROT_READ)?;
        Ok(Self { rings, counts, cpus: files.cpus.clone() })
    }

    /// Copies all records of all CPUs behind `into`, each with its length, 4 bytes, before it; returns how many. They are there
    /// until they are released.
    pub fn drain(&mut self, into: &mut Vec<u8>) -> u64 {
        self.rings.iter_mut().map(|ring| ring.drain(into)).sum()
    }

    /// How many rings there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.rings.len()
    }

    /// The CPU of a ring.
    ///
    /// # Panics
    ///
    /// If there are not as many.
    #[must_use]
    pub fn cpu(&self, number: usize) -> u32 {
        self.cpus[number]
    }

    /// As [`Self::drain`], of one ring.
    pub fn drain_one(&mut self, number: usize, into: &mut Vec<u8>) -> u64 {
        self.rings.get_mut(number).map_or(0, |ring| ring.drain(into))
    }

    /// Gives the room of drained records back.
    pub fn release(&self) {
        self.rings.iter().for_each(KernelRing::release);
    }

    /// Records that found no room, of all CPUs, until now.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let of = |cpu: &u32| self.counts.long(COUNTS_AT + 8 * *cpu as usize).load(Ordering::Relaxed);
        self.cpus.iter().map(of).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use kymo_random::RandomNumbers;

    use super::*;

    const BYTES: u32 = 4096;

    /// A ring as the kernel lays it out, in a file: its records are there twice.
    struct MadeRing {
        file: std::fs::File,
        page: u64,
        records: Vec<u8>,
    }

    impl MadeRing {
        fn new() -> Self {
            let page = rustix::param::page_size() as u64;
            let file = rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::empty()).expect("there is room");
            Self { file: file.into(), page, records: vec![0; BYTES as usize] }
        }

        fn set(&self, at: u64, bytes: &[u8]) {
            self.file.write_all_at(bytes, at).expect("there is room");
        }

        /// A record at a position; returns that of the next one.
        fn record(&mut self, at: u64, flags: u32, bytes: &[u8]) -> u64 {
            let head = [(bytes.len() as u32 | flags).to_le_bytes(), [0; 4]].concat();
            for (at, byte) in (at..).zip(head.iter().chain(bytes)) {
                self.records[(at % u64::from(BYTES)) as usize] = *byte;
            }
            (at + HEAD + bytes.len() as u64).next_multiple_of(8)
        }

        fn positions(&self, reader: u64, kernel: u64) {
            self.set(0, &reader.to_le_bytes());
            self.set(self.page, &kernel.to_le_bytes());
            self.set(2 * self.page, &self.records.repeat(2));
        }

        fn map(&self) -> KernelRing {
            let file = self.file.try_clone().expect("there is room").into();
            KernelRing::new(&file, BYTES, self.page as usize).expect("it is one")
        }
    }

    /// Records from `begin` on: the bytes that a reader gets, and where they end.
    fn written(ring: &mut MadeRing, random: &mut RandomNumbers, begin: u64) -> (Vec<u8>, u64) {
        let (mut wanted, mut at, mut is_before_busy) = (Vec::new(), begin, true);
        loop {
            let length = random.below(300);
            let bytes = random.bytes(length);
            if at + HEAD + bytes.len() as u64 + 8 > begin + u64::from(BYTES) {
                return (wanted, at);
            }
            let flags = [0, 0, 0, DISCARDED, BUSY][random.below(5)];
            is_before_busy &= flags != BUSY;
            if is_before_busy && flags == 0 {
                wanted.extend((bytes.len() as u32).to_le_bytes());
                wanted.extend(&bytes);
            }
            at = ring.record(at, flags, &bytes);
        }
    }

    /// Whole records, each with its length, and nothing else.
    fn whole(mut drained: &[u8]) -> u64 {
        let mut count = 0;
        while let Some((length, behind)) = drained.split_first_chunk() {
            drained = behind.get(u32::from_le_bytes(*length) as usize..).expect("a record is whole");
            count += 1;
        }
        assert!(drained.is_empty());
        count
    }

    #[test]
    fn records_are_drained_in_their_order_around_the_end() {
        let mut ring = MadeRing::new();
        let mut random = RandomNumbers::new(1);
        for _ in 0..200 {
            let begin = 8 * random.below(1 << 20) as u64;
            let (wanted, end) = written(&mut ring, &mut random, begin);
            ring.positions(begin, end);
            let (mut mapped, mut drained) = (ring.map(), Vec::new());
            assert_eq!(mapped.drain(&mut drained), whole(&wanted));
            assert_eq!(drained, wanted);
            // What was released is not drained again.
            mapped.release();
            assert_eq!(mapped.drain(&mut Vec::new()), 0);
            assert!(mapped.drained() <= end);
        }
    }

    #[test]
    fn damaged_rings_give_whole_records_and_no_more_than_they_have() {
        let mut ring = MadeRing::new();
        let (mut random, mut records) = (RandomNumbers::new(2), 0);
        for _ in 0..3000 {
            let begin = 8 * random.below(1 << 20) as u64;
            let (_, end) = written(&mut ring, &mut random, begin);
            for _ in 0..random.below(40) {
                ring.records[random.below(BYTES as usize)] = random.any() as u8;
            }
            let odd = [begin + 4, begin + 1, end + 8, u64::MAX, u64::MAX - 7, 0, end.wrapping_sub(1 << 40)];
            match random.below(4) {
                0 => ring.positions(odd[random.below(7)], end),
                1 => ring.positions(begin, odd[random.below(7)]),
                _ => ring.positions(begin, end),
            }
            let (mut mapped, mut drained) = (ring.map(), Vec::new());
            for _ in 0..3 {
                drained.clear();
                let count = mapped.drain(&mut drained);
                assert_eq!(count, whole(&drained));
                assert!(drained.len() <= BYTES as usize, "{} bytes of a ring of {BYTES}", drained.len());
                mapped.release();
                records += count;
            }
        }
        assert!(records > 3000, "{records} records: the test has become weak");
    }
}
