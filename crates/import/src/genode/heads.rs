//! The packets of a file, by their heads.

use std::collections::HashMap;
use std::ops::Range;

use kymo_source::{ImportProblems, SourceError, TreeFile};
use kymo_wire::magic;

use super::layout::EventLayouts;
use crate::window::FileWindow;

/// Bytes of a head before its texts.
const FIXED: usize = 33;
/// Bytes of a head at most: the recorder's labels are shorter.
const HEAD_MAX: usize = 4 << 10;
/// Bytes of a packet at most, so that one with a wrong size takes no memory. The recorder's have 32 KiB.
const PACKET_MAX: u64 = 16 << 20;

/// Where fields of a head are.
pub(super) const BEGIN: usize = 8;
pub(super) const END: usize = 16;
pub(super) const SIZE_BITS: usize = 24;
/// Affinity, priority, and the texts behind them.
const OWNER: usize = 30;

/// A packet in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundPacket {
    /// Its bytes, as far as they hold whole events.
    pub(super) place: Range<u64>,
    /// Bytes of its head.
    pub(super) head: u32,
    /// The first and the last time, as they are in the head.
    pub(super) begin: u64,
    pub(super) end: u64,
    /// The number of its thread's affinity, priority, label and name.
    pub(super) owner: usize,
}

/// The packets of a file.
#[derive(Debug, Default)]
pub(super) struct FilePackets {
    pub(super) packets: Vec<FoundPacket>,
    /// Numbers of owners: bytes of affinity, priority, label and name.
    owners: HashMap<Vec<u8>, usize>,
    /// Components and names of owners, as people read them.
    pub(super) names: Vec<Vec<u8>>,
}

/// A head that is whole.
struct Head<'b> {
    size: u64,
    head: usize,
    begin: u64,
    end: u64,
    owner: &'b [u8],
}

/// Reads the heads of a file's packets.
///
/// # Errors
///
/// The file cannot be read.
pub(super) fn read(
    file: &TreeFile,
    layouts: &EventLayouts,
    problems: &mut ImportProblems,
) -> Result<FilePackets, SourceError> {
    let mut window = FileWindow::new(&file.bytes);
    let mut found = FilePackets::default();
    let mut at = 0;
    loop {
        let head = match window.bytes(at, HEAD_MAX)? {
            [] => return Ok(found),
            bytes => Head::of(bytes),
        };
        match head {
            Ok(head) => {
                let (size, length) = (head.size, head.head as u64);
                let mut packet = found.add(at, &head);
                let there = window.bytes(at, size as usize)?;
                if (there.len() as u64) < size {
                    let (missing, events) =
                        (size - there.len() as u64, there.get(length as usize..).unwrap_or_default());
                    let (_, whole) = layouts.walk(events);
                    packet.place.end = at + length + whole as u64;
                    let name = &file.name;
                    problems.push(|| {
                        format!("{name}: byte {at}: the file ends {missing} bytes before this packet does; its whole events are read")
                    });
                }
                at += size;
                found.packets.push(packet);
            }
            Err(what) => {
                let next = next_head(&mut window, at + 1)?;
                let name = &file.name;
                problems.push(|| match next {
                    Some(next) => format!("{name}: byte {at}: {what}; reading goes on with the packet at byte {next}"),
                    None => format!("{name}: byte {at}: {what}; the rest of the file is not read"),
                });
                let Some(next) = next else { return Ok(found) };
                at = next;
            }
        }
    }
}

/// Where the next packet begins that looks like one.
fn next_head(window: &mut FileWindow<'_>, mut at: u64) -> Result<Option<u64>, SourceError> {
    const STEP: usize = 64 << 10;
    let mark = magic::PACKET.to_le_bytes();
    loop {
        let bytes = window.bytes(at, STEP)?;
        let Some(found) = memchr::memmem::find(bytes, &mark) else {
            if bytes.len() < STEP {
                return Ok(None);
            }
            at += (STEP - mark.len() + 1) as u64;
            continue;
        };
        at += found as u64;
        if Head::of(window.bytes(at, HEAD_MAX)?).is_ok() {
            return Ok(Some(at));
        }
        at += 1;
    }
}

impl FilePackets {
    fn add(&mut self, at: u64, head: &Head<'_>) -> FoundPacket {
        let next = self.owners.len();
        let owner = match self.owners.get(head.owner) {
            Some(known) => *known,
            None => {
                self.names.push(head.name());
                *self.owners.entry(head.owner.to_vec()).or_insert(next)
            }
        };
        FoundPacket { place: at..at + head.size, head: head.head as u32, begin: head.begin, end: head.end, owner }
    }
}

impl<'b> Head<'b> {
    /// `init -> timer: ep`.
    fn name(&self) -> Vec<u8> {
        let mut parts = self.owner[FIXED - OWNER..].split(|byte| *byte == 0);
        let (label, thread) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        [label, b": ", thread].concat()
    }

    fn of(bytes: &'b [u8]) -> Result<Self, String> {
        let u32_at = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let u64_at = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let short = || format!("expected the head of a packet, found {} bytes", bytes.len());
        let magic = u32_at(0).ok_or_else(short)?;
        if magic != magic::PACKET {
            return Err(format!("expected a packet, which begins with {:#010X}, found {magic:#010X}", magic::PACKET));
        }
        let class = u32_at(4).ok_or_else(short)?;
        if class != 0 {
            return Err(format!("expected a packet of the data stream class 0, found {class}"));
        }
        let (begin, end) = (u64_at(BEGIN).ok_or_else(short)?, u64_at(END).ok_or_else(short)?);
        let bits = u32_at(SIZE_BITS).ok_or_else(short)?;
        let texts = bytes.get(FIXED..).ok_or_else(short)?;
        let zeros: Vec<usize> = memchr::memchr_iter(0, texts).take(2).collect();
        let [_, last] = zeros[..] else {
            return Err("the names of the component and the thread have no end".to_owned());
        };
        let (size, head) = (u64::from(bits) / 8, FIXED + last + 1);
        if bits % 8 != 0 || size < head as u64 || size > PACKET_MAX {
            return Err(format!("a packet with a head of {head} bytes cannot have {bits} bits"));
        }
        Ok(Self { size, head, begin, end, owner: &bytes[OWNER..head] })
    }
}
