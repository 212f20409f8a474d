//! `kymo recover DIR`: completes a trace after its recorder was killed, wherever it is now.
//!
//! ```text
//! metadata   the last part of it is half ──> said again from the journal, or cut
//! lane_N     packet │ packet │ pack      ──> cut; but what has whole packets behind it stays, and is told
//! index/     made of the packets
//! ```
//!
//! Complete parts are not touched.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use kymo_wire::magic::RECORD_SEPARATOR;
use kymo_wire::{index, magic};
use serde::{Deserialize, Serialize};

use crate::layout::{KERNEL_FOLDER, PROGRAMS_FOLDER, is_kernel_stream};
use crate::trace::chunk::{TraceChunk, stream_number};
use crate::trace::journal::Journal;
use crate::trace::live::{self, LiveStatus};
use crate::trace::repair::{cut, packets};

/// State of a trace, and its repairs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mended {
    /// Folder of the trace.
    pub path: PathBuf,
    /// Events of programs in its complete packets.
    pub events: u64,
    /// Complete packets.
    pub packets: u64,
    /// Bytes of incomplete packets that were cut.
    pub cut_bytes: u64,
    /// Indexes that were made.
    pub indexes: u64,
    /// Its metadata was incomplete.
    pub metadata: bool,
    /// Its recorder had not ended it.
    pub was_left: bool,
    /// Bytes that are no packet though packets follow them: they stay as they are.
    pub damaged: Vec<FileDamage>,
}

/// A place in a file that is no packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDamage {
    /// The file.
    pub path: PathBuf,
    /// Its first byte.
    pub at: u64,
    /// Bytes from there on.
    pub bytes: u64,
}

/// Why a trace is not touched.
#[derive(Debug, thiserror::Error)]
pub enum MendProblem {
    /// A recorder writes it.
    #[error("{}: process {recorder} is recording it: it is whole when that session has ended", path.display())]
    Recorded {
        /// The trace.
        path: PathBuf,
        /// The recorder.
        recorder: u32,
    },
    /// A later recorder will write it.
    #[error(
        "{}: its session goes on with the next command, as {} says; `kymo recover` without a folder ends it",
        path.display(), session.display()
    )]
    GoesOn {
        /// The trace.
        path: PathBuf,
        /// The file with the session's state.
        session: PathBuf,
    },
    /// There is no trace.
    #[error("{}: there is no trace of `kymo record` in it", path.display())]
    NoTrace {
        /// The folder.
        path: PathBuf,
    },
    /// The trace cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

impl Mended {
    /// Whether the trace was complete, and has no damage.
    #[must_use]
    pub fn was_whole(&self) -> bool {
        let Self { cut_bytes, indexes, metadata, was_left, damaged, .. } = self;
        (*cut_bytes, *indexes, *metadata, *was_left) == (0, 0, false, false) && damaged.is_empty()
    }

    fn join(&mut self, other: Self) {
        self.events += other.events;
        self.packets += other.packets;
        self.cut_bytes += other.cut_bytes;
        self.indexes += other.indexes;
        self.metadata |= other.metadata;
        self.was_left |= other.was_left;
        self.damaged.extend(other.damaged);
    }
}

/// Repairs a trace of a session, or all parts of it; in a dated folder, the traces of all components.
///
/// # Errors
///
/// There is no trace, a recorder records it, or it cannot be read or written. In the first two
/// cases the function touches no file.
pub fn mend(path: &Path) -> Result<Mended, MendProblem> {
    let fault = |error| MendProblem::File { path: path.to_owned(), error };
    let folders = folders(path, is_dated(path)).map_err(fault)?;
    if folders.is_empty() {
        return Err(MendProblem::NoTrace { path: path.to_owned() });
    }
    // All folders are checked before the first is touched.
    for folder in &folders {
        match live::said(folder) {
            Some(LiveStatus { is_recording: true, recorder, .. }) if live::runs(recorder) => {
                return Err(MendProblem::Recorded { path: folder.clone(), recorder });
            }
            Some(LiveStatus { is_recording: true, session: Some(session), .. }) if session.exists() => {
                return Err(MendProblem::GoesOn { path: folder.clone(), session });
            }
            _ => {}
        }
    }
    let mut mended = Mended { path: path.to_owned(), ..Mended::default() };
    for folder in folders {
        let one = mend_folder(&folder).map_err(|error| MendProblem::File { path: folder.clone(), error })?;
        mended.join(one);
    }
    Ok(mended)
}

/// Whether a folder is called by a date, as trees of components are: `2026-11-27 22:3:9`.
fn is_dated(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let are_numbers = |text: &str, between: char| {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
        text.split(between).count() == 3 && text.split(between).all(is_number)
    };
    name.split_once(' ').is_some_and(|(date, time)| are_numbers(date, '-') && are_numbers(time, ':'))
}

/// The folder, its chunks, and the trace of another clock in it, as far as kymo wrote them; in a tree, all folders.
fn folders(path: &Path, is_tree: bool) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let (mut has_streams, mut below) = (false, Vec::new());
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_folder = entry.file_type()?.is_dir();
        let is_chunk = name.len() >= 6 && name.bytes().all(|digit| digit.is_ascii_digit());
        let is_part = is_chunk
            || [KERNEL_FOLDER, PROGRAMS_FOLDER, "monotonic"].contains(&name)
            || ["resumed-", "snapshot-", "kernel-"].iter().any(|begin| name.starts_with(begin));
        if is_folder && (is_part || is_tree) {
            below.push(entry.path());
        }
        has_streams |= !is_folder && is_stream(name);
    }
    let has_journal = Journal::read(path).is_ok_and(|journal| journal.is_some());
    if (has_streams && path.join("metadata").exists()) || has_journal {
        found.push(path.to_owned());
    }
    below.sort();
    for folder in below {
        found.extend(folders(&folder, is_tree)?);
    }
    Ok(found)
}

/// Whether a file is a stream of a session.
fn is_stream(name: &str) -> bool {
    stream_number(name).is_some() || is_kernel_stream(name)
}

/// Repairs a trace without chunks.
pub(crate) fn mend_folder(folder: &Path) -> io::Result<Mended> {
    let was_left = live::said(folder).is_some_and(|said| said.is_recording);
    let mut mended = Mended { was_left, metadata: mend_metadata(folder)?, ..Mended::default() };
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if is_stream(name) && entry.file_type()?.is_file() {
            mend_stream(folder, name, &mut mended)?;
        }
    }
    // After the streams: if this function fails before, the next call finds the trace as it was
    // left.
    if was_left {
        live::say(folder, false, None, None);
    }
    Journal::delete(folder);
    Ok(mended)
}

fn mend_stream(folder: &Path, name: &str, mended: &mut Mended) -> io::Result<()> {
    let path = folder.join(name);
    let mut file = File::open(&path)?;
    let mut events = 0;
    let left = packets(&file, |packet| {
        events += if packet.is_of_program() { u64::from(packet.events) } else { 0 };
        Ok(())
    })?;
    mended.packets += left.packets;
    mended.events += events;
    let (at, length) = (left.rest.offset, file.metadata()?.len());
    // Cutting would delete complete packets. Readers skip damage, and report it.
    if at < length && has_packets(&file, at, length)? {
        mended.damaged.push(FileDamage { path, at, bytes: length - at });
        return Ok(());
    }
    if at < length {
        file = File::options().read(true).write(true).open(&path)?;
        mended.cut_bytes += cut(&file, &left)?;
    }
    let index = folder.join("index").join(format!("{name}.idx"));
    match fs::remove_file(index.with_extension("idx.part")) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if left.packets == 0 {
        // Readers take an empty file for no stream.
        return if length > 0 { fs::remove_file(&path) } else { Ok(()) };
    }
    let bytes = [&index::header()[..], &left.rest.entries].concat();
    // A complete index stays untouched, with its times.
    if fs::read(&index).ok().as_ref() != Some(&bytes) {
        fs::create_dir_all(folder.join("index"))?;
        fs::write(&index, &bytes)?;
        mended.indexes += 1;
    }
    Ok(())
}

/// Whether packets begin after a place that is none: then the place is damage, and not an
/// incomplete last write.
fn has_packets(file: &File, at: u64, length: u64) -> io::Result<bool> {
    let mut own = [0; 20];
    file.read_exact_at(&mut own[..length.min(20) as usize], 0)?;
    // The first packet may itself be damaged, so the magic number is not taken from the file. With
    // the UUID behind it, 20 bytes do not occur in events by chance.
    own[..4].copy_from_slice(&magic::PACKET.to_le_bytes());
    let mut piece = vec![0; 1 << 20];
    let mut from = at + 1;
    while from + own.len() as u64 <= length {
        let bytes = (length - from).min(piece.len() as u64) as usize;
        file.read_exact_at(&mut piece[..bytes], from)?;
        if piece[..bytes].windows(own.len()).any(|window| window == own) {
            return Ok(true);
        }
        // Pieces overlap by one byte less than the pattern, which may lie across their border.
        from += (bytes - own.len() + 1) as u64;
    }
    Ok(false)
}

/// Repairs the metadata, the last part of which may be incomplete; returns whether that was
/// necessary.
fn mend_metadata(folder: &Path) -> io::Result<bool> {
    let path = folder.join("metadata");
    let _ = fs::remove_file(folder.join("metadata.new"));
    let found = match fs::read(&path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let whole = match Journal::read(folder)? {
        Some((beginning, lines, _)) => {
            let (text, begin) = TraceChunk::metadata(folder, &beginning, lines).map_err(io::Error::other)?;
            // The metadata may describe the clock better than the journal does.
            if found.ends_with(&text.as_bytes()[begin..]) && found.len() >= text.len() - begin {
                return Ok(false);
            }
            text.into_bytes()
        }
        None => found[..whole_parts(&found)].to_vec(),
    };
    if whole == found || whole.is_empty() {
        return Ok(false);
    }
    let new = folder.join("metadata.new");
    // Renaming is atomic, so a reader never meets metadata that is half repaired.
    fs::write(&new, whole).and_then(|()| fs::rename(&new, &path))?;
    Ok(true)
}

/// Bytes of the complete parts, each of which ends with a brace, and a semicolon in CTF 1.8, at the
/// begin of a line.
fn whole_parts(metadata: &[u8]) -> usize {
    if metadata.first() == Some(&RECORD_SEPARATOR) {
        // A text sequence of JSON: each part begins with this byte and ends with a line.
        let Some(last) = metadata.iter().rposition(|byte| *byte == RECORD_SEPARATOR) else { return 0 };
        let rest = &metadata[last + 1..];
        let is_whole = rest.ends_with(b"\n") && serde_json::from_slice::<serde::de::IgnoredAny>(rest).is_ok();
        return if is_whole { metadata.len() } else { last };
    }
    let end = metadata.windows(4).rposition(|window| window == b"\n};\n");
    end.map_or(0, |at| {
        let end = at + 4;
        end + metadata[end..].iter().take_while(|byte| **byte == b'\n').count()
    })
}

#[cfg(test)]
mod tests {
    use super::whole_parts;

    #[test]
    fn parts_are_whole_or_none() {
        let tsdl =
            b"/* CTF 1.8 */\n\ntrace {\n\tmajor = 1;\n};\n\nevent {\n\tid = 1;\n\tfields := struct {\n\t} x;\n};\n\n";
        assert_eq!(whole_parts(tsdl), tsdl.len());
        assert_eq!(
            &tsdl[..whole_parts(&tsdl[..tsdl.len() - 5])],
            &tsdl[..tsdl.windows(5).position(|it| it == b"event").unwrap_or(0)]
        );
        let json = b"\x1e{\"type\":\"preamble\"}\n\x1e{\"type\":\"a\",\"b\":[1]}\n";
        assert_eq!(whole_parts(json), json.len());
        for cut in 1..22 {
            assert_eq!(whole_parts(&json[..json.len() - cut]), 21, "{cut}");
        }
    }
}
