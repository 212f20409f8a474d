//! Packets of one file, told apart by threads, on a clock that goes on.
//!
//! ```text
//! two threads of one name    ├─a─┤├──a──┤ ├─a─┤      they overlap in time, so they are two
//!                              ├──b──┤   ├──b──┤
//! a clock of 32 bits         ├──┤├───┤  │├─┤├──┤      the second wrap begins where time steps back
//! ```

use kymo_source::{ImportedStream, TreeFile};
use kymo_wire::index::{self, IndexEntry};

use super::heads::{FilePackets, FoundPacket};

/// Threads of one name that are told apart.
const THREADS_MAX: usize = 64;

const WRAP: u64 = 1 << 32;

/// The meaning of a step back in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unwrapping {
    /// Another thread.
    Never,
    /// The clock has 32 bits, and began anew.
    Of32Bits,
}

/// The packets of a thread.
#[derive(Debug)]
pub(super) struct ThreadIndex {
    /// The number of its file.
    pub(super) file: usize,
    /// Its number among the threads of that file.
    pub(super) number: usize,
    /// Its component and its name, which no other thread has, with a zero: this is added to the head of each packet.
    pub(super) called: Vec<u8>,
    pub(super) packets: Vec<ThreadPacket>,
}

/// A packet of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadPacket {
    /// Where it is in the file.
    pub(super) at: u64,
    /// Bytes there.
    pub(super) bytes: u32,
    /// Bytes of its head.
    pub(super) head: u32,
    /// The first and the last time.
    pub(super) begin: u64,
    pub(super) end: u64,
    /// Cycles that its times in the file lack.
    pub(super) ahead: u64,
}

impl Unwrapping {
    /// As the packets of all files say it: a clock of 32 bits begins each packet below 2^32, and steps back by most of that.
    pub(super) fn of(files: &[FilePackets]) -> Self {
        let is_short = files.iter().all(|file| file.packets.iter().all(|packet| packet.begin < WRAP));
        let steps_back = |file: &FilePackets| {
            let mut before = vec![0; file.names.len()];
            file.packets.iter().any(|packet| {
                let end = std::mem::replace(&mut before[packet.owner], packet.end % WRAP);
                end.saturating_sub(packet.begin) > WRAP / 2
            })
        };
        if is_short && files.iter().any(steps_back) { Self::Of32Bits } else { Self::Never }
    }
}

/// The threads in a file.
pub(super) fn split(file: usize, found: FilePackets, unwrapping: Unwrapping) -> Vec<ThreadIndex> {
    let mut of_owner: Vec<Vec<Vec<ThreadPacket>>> = vec![Vec::new(); found.names.len()];
    for packet in found.packets {
        let threads = &mut of_owner[packet.owner];
        match unwrapping {
            Unwrapping::Of32Bits => {
                let end = threads.first().and_then(|thread| thread.last()).map_or(0, |last| last.end);
                let place = if threads.is_empty() { None } else { Some(0) };
                put(threads, place, ThreadPacket::new(&packet, ahead(end, packet.begin)));
            }
            Unwrapping::Never => {
                let place = thread_of(threads, packet.begin);
                put(threads, place, ThreadPacket::new(&packet, 0));
            }
        }
    }
    let called = |owner: usize, number: usize| {
        let mut name = found.names[owner].clone();
        if number > 0 {
            name.extend(format!(" ({})", number + 1).into_bytes());
        }
        name.push(0);
        name
    };
    let threads =
        of_owner.into_iter().enumerate().flat_map(|(owner, threads)| threads.into_iter().map(move |all| (owner, all)));
    let index = |(number, (owner, packets))| ThreadIndex { file, number, called: called(owner, number), packets };
    threads.enumerate().map(index).collect()
}

fn put(threads: &mut Vec<Vec<ThreadPacket>>, place: Option<usize>, packet: ThreadPacket) {
    match place {
        Some(place) => threads[place].push(packet),
        None => threads.push(vec![packet]),
    }
}

/// Of the threads of one name, the last to have ended a packet before this one begins; `None`: a new one.
fn thread_of(threads: &[Vec<ThreadPacket>], begin: u64) -> Option<usize> {
    let end = |number: &usize| threads[*number].last().map_or(0, |last| last.end);
    let free = (0..threads.len()).filter(|number| end(number) <= begin).max_by_key(end);
    // Of damaged files, any is as good.
    free.or_else(|| (threads.len() >= THREADS_MAX).then_some(THREADS_MAX - 1))
}

/// What a time of 32 bits lacks if it is not before `end`.
fn ahead(end: u64, begin: u64) -> u64 {
    let wraps = end - end % WRAP;
    if begin < end % WRAP { wraps + WRAP } else { wraps }
}

impl ThreadPacket {
    fn new(packet: &FoundPacket, ahead: u64) -> Self {
        Self {
            at: packet.place.start,
            bytes: (packet.place.end - packet.place.start) as u32,
            head: packet.head,
            begin: packet.begin.saturating_add(ahead),
            end: packet.end.saturating_add(ahead),
            ahead,
        }
    }
}

impl ThreadIndex {
    /// The bytes of a packet in the trace.
    pub(super) fn size(&self, packet: &ThreadPacket) -> u64 {
        u64::from(packet.bytes) + self.called.len() as u64
    }

    /// Its data stream.
    pub(super) fn stream(&self, file: &TreeFile) -> ImportedStream {
        let name = match self.number {
            0 => file.name.clone(),
            number => format!("{}-{}", file.name, number + 1),
        };
        let mut index = index::header().to_vec();
        let mut offset = 0;
        for packet in &self.packets {
            let (packet_bits, content_bits) = (self.size(packet) * 8, self.size(packet) * 8);
            let (begin_cycles, end_cycles) = (packet.begin, packet.end);
            let entry =
                IndexEntry { offset, packet_bits, content_bits, begin_cycles, end_cycles, ..IndexEntry::default() };
            index.extend(entry.to_bytes());
            offset += self.size(packet);
        }
        let packets = self.packets.iter().map(|packet| self.size(packet)).collect();
        ImportedStream { name, packets, index, lacks_end: false, file: Some(file.on_disk.clone()) }
    }
}
