//! The spool: pages of ring buffers in memory, one for each CPU, between reading and conversion.
//!
//! ```text
//! memory of a file without a name, which the helper keeps open:
//! written │ done │ events │ understood │ state │ cost │ read │ 0 ... 4096 │ page │ page │ page ...
//!                                                                           └ u32 length │ u64 ticks when it was read │ bytes, as far as they are used
//! ```
//!
//! The reader must never wait for the converter, which runs only when a CPU has nothing else to do. So the converter takes no
//! lock that writing needs: it reads, and says how far it is; the reader gives the memory back. On a disk, either could wait for
//! that, too.
//!
//! When a recorder is killed, the next one gets the same memory: pages from `done` on are in no packet yet.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, fallocate};

/// Converted bytes that are given back at a time.
const HOLE: u64 = 1 << 20;
/// Bytes before the pages.
const BEGIN: u64 = 4096;
/// Bytes before each page.
pub(super) const PAGE_HEAD: usize = 12;

/// The pages of a ring buffer.
#[derive(Debug)]
pub(super) struct PageSpool {
    /// Which of the CPU's ring buffers.
    pub(super) ring: u8,
    pub(super) cpu: u32,
    file: File,
    /// Bytes that the reader has written.
    written: AtomicU64,
    /// Bytes that the converter has read, those that are in packets, and those that were given back.
    read: AtomicU64,
    done: AtomicU64,
    freed: AtomicU64,
}

/// What is in packets of a CPU's stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SpoolProgress {
    /// Bytes of the spool.
    pub(super) done: u64,
    /// Events of the trace.
    pub(super) events: u64,
    /// Records that became events, or needed not.
    pub(super) understood: u64,
}

impl PageSpool {
    /// The spool in a file, and what a recorder before this one has made of it. A new file is empty.
    pub(super) fn open((ring, cpu): (u8, u32), file: File) -> io::Result<(Arc<Self>, SpoolProgress)> {
        let mut head = [0; 32];
        let length = file.metadata()?.len();
        if length >= BEGIN {
            file.read_exact_at(&mut head, 0)?;
        } else {
            file.set_len(BEGIN)?;
        }
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[8 * at + byte]));
        let (written, done) = (word(0), word(1).min(word(0)));
        let spool = Self {
            ring,
            cpu,
            file,
            written: written.into(),
            read: done.into(),
            done: done.into(),
            freed: (done & !(HOLE - 1)).into(),
        };
        Ok((Arc::new(spool), SpoolProgress { done, events: word(2), understood: word(3) }))
    }

    /// Adds pages with their heads.
    pub(super) fn put(&self, pages: &[u8]) -> io::Result<()> {
        let at = self.written.load(Ordering::Relaxed);
        self.file.write_all_at(pages, BEGIN + at)?;
        let written = at + pages.len() as u64;
        self.file.write_all_at(&written.to_le_bytes(), 0)?;
        self.written.store(written, Ordering::Release);
        Ok(())
    }

    /// Gives back memory of pages that are in packets.
    pub(super) fn free(&self) {
        let freed = self.freed.load(Ordering::Relaxed);
        let whole = self.done.load(Ordering::Acquire).saturating_sub(freed) & !(HOLE - 1);
        if whole > 0 {
            let _ = fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, BEGIN + freed, whole);
            self.freed.store(freed + whole, Ordering::Relaxed);
        }
    }

    /// Bytes that wait for conversion.
    pub(super) fn waiting(&self) -> u64 {
        self.written.load(Ordering::Acquire) - self.read.load(Ordering::Acquire)
    }

    /// Reads pages with their heads, at most about so many bytes; the caller says how many of them it has used.
    pub(super) fn peek(&self, most: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let bytes = usize::try_from(self.waiting()).unwrap_or(usize::MAX).min(most);
        into.resize(bytes, 0);
        self.file.read_exact_at(into, BEGIN + self.place())
    }

    /// Reads bytes behind a place.
    pub(super) fn read_at(&self, place: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, BEGIN + place)
    }

    /// The two words at a place, if there is something.
    pub(super) fn head_at(&self, place: u64) -> io::Result<Option<(u32, u32)>> {
        if place + 8 > self.written.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut head = [0; 8];
        self.read_at(place, &mut head)?;
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
        Ok(Some((word(0), word(4))))
    }

    /// Lets everything before a place go.
    pub(super) fn let_go(&self, done: u64) {
        self.is_done(&SpoolProgress { done, ..SpoolProgress::default() });
        self.rewind();
        self.free();
    }

    /// Bytes before those that [`peek`](Self::peek) reads.
    pub(super) fn place(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// So many bytes are converted.
    pub(super) fn used(&self, bytes: usize) {
        self.read.fetch_add(bytes as u64, Ordering::Release);
    }

    /// So much is in packets.
    pub(super) fn is_done(&self, progress: &SpoolProgress) {
        let SpoolProgress { done, events, understood } = *progress;
        let words = [done, events, understood].map(u64::to_le_bytes).concat();
        // A recorder after this one would write some events again, and not know them: it looks at the times of packets, too.
        let _ = self.file.write_all_at(&words, 8);
        self.done.store(done, Ordering::Release);
    }

    /// So many events about the state of the system are in packets.
    pub(super) fn told_state(&self, events: u64) {
        let _ = self.file.write_all_at(&events.to_le_bytes(), 32);
    }

    /// The number of events about the state of the system that earlier recorders have written.
    pub(super) fn state_events(&self) -> u64 {
        self.word(32)
    }

    /// Recording has taken so many nanoseconds of processor time.
    pub(super) fn told_cost(&self, ns: u64) {
        let _ = self.file.write_all_at(&ns.to_le_bytes(), 40);
    }

    /// Nanoseconds of processor time that earlier recorders took.
    pub(super) fn cost(&self) -> u64 {
        self.word(40)
    }

    /// So many records were read from rings.
    pub(super) fn told_read(&self, records: u64) {
        let _ = self.file.write_all_at(&records.to_le_bytes(), 48);
    }

    /// The number of records that were read until now, by earlier recorders, too.
    pub(super) fn read_before(&self) -> u64 {
        self.word(48)
    }

    fn word(&self, at: u64) -> u64 {
        let mut word = [0; 8];
        self.file.read_exact_at(&mut word, at).map_or(0, |()| u64::from_le_bytes(word))
    }

    /// Starts again with the pages that are kept: for another trace of the same pages.
    pub(super) fn rewind(&self) {
        self.read.store(self.done.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Lets the oldest pages go until there are at most so many bytes.
    pub(super) fn keep_newest(&self, most: u64) -> io::Result<()> {
        let (written, mut done) = (self.written.load(Ordering::Relaxed), self.done.load(Ordering::Relaxed));
        while written - done > most {
            let mut length = [0; 4];
            self.read_at(done, &mut length)?;
            done += PAGE_HEAD as u64 + u64::from(u32::from_le_bytes(length));
        }
        self.let_go(done.min(written));
        Ok(())
    }
}

/// The next page of some bytes of a spool: its bytes, when it was read, and the bytes behind it; `None`: it is not whole.
pub(super) fn next_page(bytes: &[u8]) -> Option<(&[u8], u64, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (ticks, rest) = rest.split_first_chunk::<8>()?;
    let (page, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((page, u64::from_le_bytes(*ticks), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(ticks: u64, bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u32).to_le_bytes()[..], &ticks.to_le_bytes(), bytes].concat()
    }

    fn file() -> File {
        tempfile::tempfile().expect("there is room")
    }

    #[test]
    fn the_next_recorder_goes_on_where_packets_end() {
        let file = file();
        let (spool, before) = PageSpool::open((0, 3), file.try_clone().expect("it is open")).expect("there is room");
        assert_eq!(before, SpoolProgress::default());
        spool.put(&page(7, b"first")).expect("there is room");
        spool.put(&page(8, b"second")).expect("there is room");
        let mut pages = Vec::new();
        spool.peek(1 << 20, &mut pages).expect("it is there");
        let (first, ticks, rest) = next_page(&pages).expect("it is whole");
        assert_eq!((first, ticks), (&b"first"[..], 7));
        let progress = SpoolProgress { done: (pages.len() - rest.len()) as u64, events: 5, understood: 6 };
        spool.is_done(&progress);
        // A page of which the recorder did not say that it is there.
        spool.file.write_all_at(b"half", BEGIN + spool.written.load(Ordering::Relaxed)).expect("there is room");
        let (again, before) = PageSpool::open((0, 3), file).expect("it can be read");
        assert_eq!(before, progress);
        again.peek(1 << 20, &mut pages).expect("it is there");
        let (second, ticks, rest) = next_page(&pages).expect("it is whole");
        assert_eq!((second, ticks, rest), (&b"second"[..], 8, &b""[..]));
    }

    #[test]
    fn the_newest_pages_are_kept() {
        let (spool, _) = PageSpool::open((0, 0), file()).expect("there is room");
        for number in 0..10 {
            spool.put(&page(number, &[number as u8; 100])).expect("there is room");
        }
        spool.keep_newest(3 * 112 + 50).expect("it can be read");
        for _ in 0..2 {
            let mut pages = Vec::new();
            spool.peek(1 << 20, &mut pages).expect("it is there");
            let mut ticks = Vec::new();
            let mut rest = &pages[..];
            while let Some((_, at, behind)) = next_page(rest) {
                ticks.push(at);
                rest = behind;
            }
            assert_eq!((ticks, rest.len()), (vec![7, 8, 9], 0));
            spool.used(pages.len());
            spool.rewind();
        }
    }

    #[test]
    fn pages_that_are_not_whole_are_none() {
        let whole = page(1, b"bytes");
        assert!((0..whole.len()).all(|length| next_page(&whole[..length]).is_none()));
    }
}
