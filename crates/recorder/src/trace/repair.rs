//! Repairs a trace after its recorder was killed: cuts incomplete packets, completes indexes, and finds
//! where the trace of each lane ends.
//!
//! ```text
//! lane_N   packet │ packet │ pack          cut behind the last whole one
//!             └ program, lane, sub-buffer, bytes of it: what a recorder after it need not take again
//! ```

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use kymo_wire::{index, magic};
use kymo_writer::{HEAD_BYTES, RawRest};

use crate::program::drain::{DrainProgress, Position};
use crate::trace::chunk::{BEFORE_EVENTS, BEHIND_EVENTS, FURTHER_BYTES, LeftoverStream, PacketOrigin, stream_number};

/// Result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Where the trace of each lane ends, by the program's key.
    pub programs: HashMap<u64, DrainProgress>,
    /// Complete packets.
    pub packets: u64,
    /// Bytes of incomplete packets.
    pub cut_bytes: u64,
}

/// Repairs a trace of [`Output`](crate::trace::Output), or all chunks in its folder. A complete one
/// stays as it is.
///
/// # Errors
///
/// The trace cannot be read or written.
pub fn repair(path: &Path) -> io::Result<Repaired> {
    let mut repaired = Repaired::default();
    for entry in fs::read_dir(path)? {
        let (entry, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let name = name.to_str().unwrap_or_default();
        if entry.is_dir() && !name.is_empty() && name.bytes().all(|digit| digit.is_ascii_digit()) {
            repaired.add(repair(&entry)?);
        }
        if entry.is_file() && stream_number(name).is_some() {
            stream(path, name, &mut repaired)?;
        }
    }
    Ok(repaired)
}

impl Repaired {
    fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.cut_bytes += other.cut_bytes;
        for (program, progress) in other.programs {
            let known = self.programs.entry(program).or_default();
            *known = std::mem::take(known).later(&progress);
        }
    }
}

/// Advances the position from which a later recorder continues behind a packet.
pub(crate) fn advance(programs: &mut HashMap<u64, DrainProgress>, packet: &CompletePacket, base: Option<u64>) {
    let PacketOrigin { program, lane, sequence, bytes, discarded, .. } = packet.origin;
    if packet.is_of_program() {
        let last = base.map_or(0, |base| base.saturating_add(packet.entry.end_cycles));
        let known = programs.entry(program).or_default().positions.entry(lane).or_default();
        *known = known.later(Position { sequence, bytes, last, discarded });
    }
}

fn stream(folder: &Path, name: &str, repaired: &mut Repaired) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(folder.join(name))?;
    let left = packets(&file, |packet| {
        advance(&mut repaired.programs, packet, None);
        Ok(())
    })?;
    repaired.packets += left.packets;
    repaired.cut_bytes += cut(&file, &left)?;
    let path = folder.join("index").join(format!("{name}.idx"));
    let _ = fs::remove_file(path.with_extension("idx.part"));
    let bytes = [&index::header()[..], &left.rest.entries].concat();
    if left.packets > 0 && fs::read(&path).ok().as_ref() != Some(&bytes) {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(OsStr::new("."))))?;
        fs::write(&path, &bytes)?;
    }
    Ok(())
}

/// Cuts incomplete packets; returns how many bytes that is.
pub(crate) fn cut(file: &File, left: &LeftoverStream) -> io::Result<u64> {
    let length = file.metadata()?.len();
    if left.rest.offset < length {
        file.set_len(left.rest.offset)?;
    }
    Ok(length.saturating_sub(left.rest.offset))
}

/// A complete packet.
pub(crate) struct CompletePacket {
    pub(crate) entry: index::IndexEntry,
    pub(crate) origin: PacketOrigin,
    /// Events in it.
    pub(crate) events: u32,
    uuid: [u8; 16],
}

impl CompletePacket {
    /// The recorder's own packets have no program.
    pub(crate) fn is_of_program(&self) -> bool {
        self.origin.program != 0
    }
}

/// Calls `each` for all complete packets, in order.
pub(crate) fn packets(
    file: &File,
    mut each: impl FnMut(&CompletePacket) -> io::Result<()>,
) -> io::Result<LeftoverStream> {
    let length = file.metadata()?.len();
    let (mut left, mut uuid) = (LeftoverStream::default(), None);
    while let Some(packet) = packet(file, left.rest.offset, length)? {
        // The rest of an older file with the same name looks like packets, but has another UUID.
        if *uuid.get_or_insert(packet.uuid) != packet.uuid {
            break;
        }
        each(&packet)?;
        let LeftoverStream { rest, discarded, packets } = &mut left;
        let entry = &packet.entry;
        rest.entries.extend(entry.to_bytes());
        *rest = RawRest {
            stream_class: entry.stream_class_id as u32,
            id: entry.stream_id,
            offset: rest.offset + entry.packet_bits / 8,
            sequence: entry.sequence.wrapping_add(1),
            end: entry.end_cycles,
            entries: std::mem::take(&mut rest.entries),
        };
        (*discarded, *packets) = (entry.discarded, *packets + 1);
    }
    Ok(left)
}

/// Reads a packet, if there is a complete one.
fn packet(file: &File, at: u64, length: u64) -> io::Result<Option<CompletePacket>> {
    if length - at < HEAD_BYTES as u64 {
        return Ok(None);
    }
    // Those of the kernel have fewer fields than this.
    let mut head = [0; BEFORE_EVENTS];
    let there = BEFORE_EVENTS.min(usize::try_from(length - at).unwrap_or(BEFORE_EVENTS));
    file.read_exact_at(&mut head[..there], at)?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
    let entry = index::IndexEntry {
        offset: at,
        packet_bits: word(56),
        content_bits: word(48),
        begin_cycles: word(32),
        end_cycles: word(40),
        discarded: word(72),
        stream_class_id: word(20) & 0xffff_ffff,
        stream_id: word(24),
        sequence: word(64),
    };
    let is_one = word(0) as u32 == magic::PACKET
        && entry.packet_bits.is_multiple_of(8)
        && (8 * HEAD_BYTES as u64..=entry.packet_bits).contains(&entry.content_bits)
        && entry.packet_bits / 8 <= length - at;
    if !is_one {
        return Ok(None);
    }
    let mut behind = [0; BEHIND_EVENTS];
    let has_origin = entry.packet_bits - entry.content_bits == 8 * BEHIND_EVENTS as u64;
    if has_origin {
        file.read_exact_at(&mut behind, at + entry.content_bits / 8)?;
    }
    let (_, before) = head.split_last_chunk::<FURTHER_BYTES>().expect("it is longer");
    let (origin, events) = PacketOrigin::of(before, &behind);
    let uuid = std::array::from_fn(|byte| head[4 + byte]);
    Ok(Some(CompletePacket { entry, origin, events, uuid }))
}
