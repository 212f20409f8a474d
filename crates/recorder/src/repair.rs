//! A trace whose recorder was killed: what is half written goes, indexes come, and where each lane's trace ends is known.
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

use crate::chunk::{BEFORE_EVENTS, BEHIND_EVENTS, FURTHER_BYTES, Origin};
use crate::drain::{Position, Progress};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Where the trace of each lane ends, by the program's key.
    pub programs: HashMap<u64, Progress>,
    /// Whole packets.
    pub packets: u64,
    /// Bytes that were none.
    pub cut_bytes: u64,
}

/// Repairs a trace of [`Output`](crate::output::Output), or all chunks in its folder. One that is whole stays as it is.
///
/// # Errors
///
/// It cannot be read or written.
pub fn repair(path: &Path) -> io::Result<Repaired> {
    let mut repaired = Repaired::default();
    for entry in fs::read_dir(path)? {
        let (entry, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let name = name.to_str().unwrap_or_default();
        if entry.is_dir() && !name.is_empty() && name.bytes().all(|digit| digit.is_ascii_digit()) {
            repaired.add(repair(&entry)?);
        }
        if entry.is_file() && (name == "kymo" || name.starts_with("lane_")) {
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
            progress.positions.into_iter().for_each(|(lane, position)| self.advance(program, lane, position));
        }
    }

    fn advance(&mut self, program: u64, lane: u16, position: Position) {
        let known = self.programs.entry(program).or_default().positions.entry(lane).or_default();
        let discarded = known.discarded.max(position.discarded);
        if (position.sequence, position.bytes) >= (known.sequence, known.bytes) {
            *known = position;
        }
        known.discarded = discarded;
    }
}

fn stream(folder: &Path, name: &str, repaired: &mut Repaired) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(folder.join(name))?;
    let length = file.metadata()?.len();
    let (mut at, mut bytes) = (0, index::header().to_vec());
    while let Some((entry, origin)) = packet(&file, at, length)? {
        bytes.extend(entry.to_bytes());
        at += entry.packet_bits / 8;
        repaired.packets += 1;
        let position =
            Position { sequence: origin.sequence, bytes: origin.bytes, last: 0, discarded: origin.discarded };
        if origin.program != 0 {
            repaired.advance(origin.program, origin.lane, position);
        }
    }
    if at < length {
        file.set_len(at)?;
        repaired.cut_bytes += length - at;
    }
    let path = folder.join("index").join(format!("{name}.idx"));
    let _ = fs::remove_file(path.with_extension("idx.part"));
    if at > 0 && fs::read(&path).ok().as_ref() != Some(&bytes) {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(OsStr::new("."))))?;
        fs::write(&path, &bytes)?;
    }
    Ok(())
}

/// A packet, if a whole one is there.
fn packet(file: &File, at: u64, length: u64) -> io::Result<Option<(index::Entry, Origin)>> {
    let mut head = [0; BEFORE_EVENTS];
    if length - at < (BEFORE_EVENTS + BEHIND_EVENTS) as u64 {
        return Ok(None);
    }
    file.read_exact_at(&mut head, at)?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
    let entry = index::Entry {
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
        && ((BEFORE_EVENTS + BEHIND_EVENTS) as u64..=length - at).contains(&(entry.packet_bits / 8));
    if !is_one {
        return Ok(None);
    }
    let mut behind = [0; BEHIND_EVENTS];
    file.read_exact_at(&mut behind, at + entry.packet_bits / 8 - BEHIND_EVENTS as u64)?;
    let (_, before) = head.split_last_chunk::<FURTHER_BYTES>().expect("it is longer");
    Ok(Some((entry, Origin::of(before, &behind))))
}
