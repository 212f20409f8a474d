//! Packet indexes of earlier runs, on disk, outside of the traces. May be deleted at any time.
//!
//! ```text
//! one file per stream, named by a hash of the stream's path, little endian
//! ┌ magic, version │ device, inode, size, time │ first packet, last packet, metadata, rows: hashes ┬ row │ row │ …
//! ```
//!
//! Rows are believed while everything in the header agrees with the stream as it is now. A file
//! that only grew keeps its rows but for the last, which may have been cut by the old end. A broken
//! file is as good as absent; a folder that cannot be written is no problem of the user's, unless
//! they asked for the index: then [`PacketCache::look`] and [`PacketCache::write`] say why not.

pub(crate) mod indexed;
pub(crate) mod spool;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::SystemTime;

use kymo_scan::{KnownPackets, PacketRow, Packets};
use kymo_source::{FileIdentity, TraceFolder};

/// The last byte is the version of the data behind it.
const MAGIC: u64 = u64::from_le_bytes(*b"kymopkt\x01");
const HEADER_WORDS: usize = 11;
const ROW_WORDS: usize = 9;
const ROW_BYTES: usize = ROW_WORDS * 8;
/// Bytes of a packet that tell whether it is still the same; heads of packets are shorter.
const HEAD_BYTES: u64 = 256;
/// All files together.
pub(crate) const BYTES_MAX: u64 = 256 << 20;
/// Fewer packets are found faster than a file is opened and checked.
pub(crate) const PACKETS_MIN: usize = 64;
const EXTENSION: &str = "packets";

/// Packet indexes of earlier runs, in a folder.
#[derive(Debug)]
pub struct PacketCache {
    folder: PathBuf,
    packets_min: usize,
    bytes_max: u64,
    /// Hashes of metadata, by trace.
    metadata: Mutex<BTreeMap<PathBuf, u64>>,
    wrote: AtomicBool,
}

/// Why the rows of a stream are not believed: the rule of validity that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stale {
    /// It was never made, or it was removed.
    #[error("there was none")]
    Absent,
    /// Another version of this program wrote it.
    #[error("it was written by another version of kymo")]
    Version,
    /// It is not as it was written.
    #[error("it was damaged")]
    Broken,
    /// The stream or the metadata cannot be looked at.
    #[error("the trace changed while it was looked at")]
    Unreadable,
    /// Device or inode differ.
    #[error("the stream's file is another one now (device or inode differs)")]
    Replaced,
    /// The stream is smaller.
    #[error("the stream's file shrank from {then} to {now} bytes")]
    Shrank {
        /// Bytes when the index was made.
        then: u64,
        /// Bytes now.
        now: u64,
    },
    /// As large as before, but written to.
    #[error("the stream's file was written to (its time of change differs)")]
    Modified,
    /// The first packet's head differs.
    #[error("the stream's first packet is another one now")]
    FirstPacket,
    /// The last known packet's head differs.
    #[error("the last packet that was known is another one now")]
    LastPacket,
    /// The metadata differ, so that heads may mean something else.
    #[error("the metadata changed")]
    Metadata,
}

/// Where this user's caches are: `$XDG_CACHE_HOME/kymograph` or the platform's equivalent.
#[must_use]
pub fn cache_folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let of_platform = if cfg!(windows) {
        named("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        named("HOME").map(|home| home.join("Library/Caches"))
    } else {
        named("HOME").map(|home| home.join(".cache"))
    };
    named("XDG_CACHE_HOME").or(of_platform).map(|folder| folder.join("kymograph"))
}

impl PacketCache {
    /// The cache in that folder, which is made when there is something to write.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            packets_min: PACKETS_MIN,
            bytes_max: BYTES_MAX,
            metadata: Mutex::default(),
            wrote: AtomicBool::new(false),
        }
    }

    fn metadata_hash(&self, folder: &TraceFolder) -> Option<u64> {
        let mut known = self.metadata.lock().ok()?;
        if let Some(&hash) = known.get(folder.path()) {
            return Some(hash);
        }
        let hash = hash(&folder.metadata().ok()?);
        known.insert(folder.path().to_owned(), hash);
        Some(hash)
    }

    /// The file of a stream.
    pub(crate) fn path(&self, folder: &TraceFolder, file: usize) -> Option<PathBuf> {
        let stream = std::path::absolute(folder.stream(file).path()).ok()?;
        let name = hash(stream.as_os_str().as_encoded_bytes());
        Some(self.folder.join(format!("{name:016x}.{EXTENSION}")))
    }

    /// Writes the file of a stream.
    pub(crate) fn write(&self, folder: &TraceFolder, file: usize, rows: &Packets) -> io::Result<()> {
        let changed = || io::Error::other("the stream changed meanwhile");
        let metadata = self.metadata_hash(folder).ok_or_else(changed)?;
        let identity = identity(folder, file).ok_or_else(changed)?;
        let path = self.path(folder, file).ok_or_else(changed)?;
        fs::create_dir_all(&self.folder)?;
        // Readers see the old file or the whole new one.
        let mut fresh = BufWriter::new(tempfile::NamedTempFile::new_in(&self.folder)?);
        fresh.write_all(&[0; HEADER_WORDS * 8])?;
        let mut body = Hash::new(rows.len() * ROW_BYTES);
        for word in rows.iter().flat_map(|row| to_words(&row)) {
            body.add(word);
            fresh.write_all(&word.to_le_bytes())?;
        }
        let (first, last) = rows.first().zip(rows.last()).ok_or_else(changed)?;
        let facts =
            CacheHeader { identity, ends: [first, last], metadata, body: body.finish(0), rows: rows.len() as u64 };
        let header = facts.header(folder, file).ok_or_else(changed)?;
        fresh.rewind()?;
        fresh.write_all(&header.map(u64::to_le_bytes).concat())?;
        fresh.into_inner().map_err(io::IntoInnerError::into_error)?.persist(path)?;
        self.wrote.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The rows of a stream that may still be believed, or why none may.
    pub(crate) fn look(&self, folder: &TraceFolder, file: usize) -> Result<Packets, Stale> {
        let path = self.path(folder, file).ok_or(Stale::Absent)?;
        let kept = fs::File::open(path).map_err(|_| Stale::Absent)?;
        let bytes = kept.metadata().map_err(|_| Stale::Broken)?.len();
        let mut kept = BufReader::with_capacity(64 << 10, kept);
        let words: [u64; HEADER_WORDS] = words(&mut kept).ok_or(Stale::Broken)?;
        if words[0] != MAGIC {
            return Err(if words[0] << 8 == MAGIC << 8 { Stale::Version } else { Stale::Broken });
        }
        let body_bytes = bytes.saturating_sub(HEADER_WORDS as u64 * 8);
        if words[10] == 0 || words[10].checked_mul(ROW_BYTES as u64) != Some(body_bytes) {
            return Err(Stale::Broken);
        }
        let (rows, body) = rows(&mut kept, words[10] as usize, file).ok_or(Stale::Broken)?;
        if body != words[9] {
            return Err(Stale::Broken);
        }
        let then = FileIdentity {
            device: words[1],
            inode: words[2],
            size: words[3],
            modified_ns: i128::from(words[4]) | i128::from(words[5]) << 64,
        };
        let now = identity(folder, file).ok_or(Stale::Unreadable)?;
        let metadata = self.metadata_hash(folder).ok_or(Stale::Unreadable)?;
        let grew = same_file(&then, &now)?;
        // With the facts of then and the bytes of now, the header must come out the same.
        let ends = rows.first().zip(rows.last()).ok_or(Stale::Broken)?.into();
        let facts = CacheHeader { identity: then, ends, metadata, body, rows: rows.len() as u64 };
        let expected = facts.header(folder, file).ok_or(Stale::Unreadable)?;
        if let Some(word) = (0..HEADER_WORDS).find(|&word| words[word] != expected[word]) {
            return Err(match word {
                6 => Stale::FirstPacket,
                7 => Stale::LastPacket,
                8 => Stale::Metadata,
                _ => Stale::Broken,
            });
        }
        Ok(if grew { rows.range(0..rows.len() - 1).collect() } else { rows })
    }
}

impl KnownPackets for PacketCache {
    fn recall(&self, folder: &TraceFolder, file: usize) -> Option<Packets> {
        self.look(folder, file).ok()
    }

    fn remember(&self, folder: &TraceFolder, file: usize, rows: &Packets) {
        if rows.len() >= self.packets_min {
            // A cache that cannot be written only costs time.
            let _ = self.write(folder, file, rows);
        }
    }
}

/// A trace's remembered packets, looked up by a thread of its own while the metadata is understood:
/// a third of the time for opening a trace that was read before.
pub(crate) struct RecalledPackets<'a> {
    cache: &'a PacketCache,
    /// The files in their order, and the remembered packets of each.
    found: Mutex<Receiver<(usize, Option<Packets>)>>,
}

impl<'a> RecalledPackets<'a> {
    /// Has the thread started by `spawn`.
    pub(crate) fn new(
        cache: &'a PacketCache,
        folder: TraceFolder,
        spawn: impl FnOnce(Box<dyn FnOnce() + Send + 'a>),
    ) -> Self {
        let (sender, found) = channel();
        let look = move || {
            for file in 0..folder.streams().len() {
                let is_gone = sender.send((file, cache.recall(&folder, file))).is_err();
                // A receiver that is gone has met an error.
                if is_gone {
                    return;
                }
            }
        };
        spawn(Box::new(look));
        Self { cache, found: Mutex::new(found) }
    }
}

impl KnownPackets for RecalledPackets<'_> {
    fn recall(&self, folder: &TraceFolder, file: usize) -> Option<Packets> {
        let found = self.found.lock().ok().and_then(|found| found.recv().ok());
        match found {
            Some((number, packets)) if number == file => packets,
            _ => self.cache.recall(folder, file),
        }
    }

    fn remember(&self, folder: &TraceFolder, file: usize, rows: &Packets) {
        self.cache.remember(folder, file, rows);
    }
}

/// Whether the file only grew since; otherwise it must be just the same.
fn same_file(then: &FileIdentity, now: &FileIdentity) -> Result<bool, Stale> {
    if (now.device, now.inode) != (then.device, then.inode) {
        return Err(Stale::Replaced);
    }
    if now.size < then.size {
        return Err(Stale::Shrank { then: then.size, now: now.size });
    }
    let grew = now.size > then.size;
    if grew || now == then { Ok(grew) } else { Err(Stale::Modified) }
}

impl Drop for PacketCache {
    fn drop(&mut self) {
        if self.wrote.load(Ordering::Relaxed) {
            tidy(&self.folder, EXTENSION, self.bytes_max, None);
        }
    }
}

/// Removes the files of a kind that were written longest ago, until the rest is small enough; not the one in use.
pub(crate) fn tidy(folder: &Path, extension: &str, bytes_max: u64, used: Option<&Path>) {
    let mut files = list(folder, extension);
    files.sort();
    let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
    for (_, size, path) in files {
        if total <= bytes_max {
            return;
        }
        if used != Some(&path) && fs::remove_file(path).is_ok() {
            total -= size;
        }
    }
}

/// Files of a kind in a folder: when they were written, size, path.
fn list(folder: &Path, extension: &str) -> Vec<(SystemTime, u64, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.path().extension().is_some_and(|found| found == extension));
    let facts = ours.filter_map(|entry| {
        let facts = entry.metadata().ok()?;
        Some((facts.modified().ok()?, facts.len(), entry.path()))
    });
    facts.collect()
}

/// The identity of a file, unless it changed since the trace was opened.
fn identity(folder: &TraceFolder, file: usize) -> Option<FileIdentity> {
    let identity = folder.identity(file).ok()?;
    (identity.size == folder.streams()[file].size).then_some(identity)
}

/// The facts in the header of a cache file.
struct CacheHeader {
    identity: FileIdentity,
    /// The first and the last row.
    ends: [PacketRow; 2],
    /// Hashes.
    metadata: u64,
    body: u64,
    rows: u64,
}

impl CacheHeader {
    /// The header; the hashes of packets are those of the stream's current content.
    fn header(&self, folder: &TraceFolder, file: usize) -> Option<[u64; HEADER_WORDS]> {
        let stream = folder.stream(file);
        let packet = |row: &PacketRow| {
            let mut bytes = [0; HEAD_BYTES as usize];
            let size = (row.total_bits / 8).min(HEAD_BYTES) as usize;
            let read = stream.read_at(row.offset_bytes, &mut bytes[..size]).ok()?;
            Some(hash(&bytes[..read]))
        };
        let (first, last) = (packet(&self.ends[0])?, packet(&self.ends[1])?);
        let FileIdentity { device, inode, size, modified_ns } = self.identity;
        let (time_low, time_high) = (modified_ns as u64, (modified_ns >> 64) as u64);
        let Self { metadata, body, rows, .. } = *self;
        Some([MAGIC, device, inode, size, time_low, time_high, first, last, metadata, body, rows])
    }
}

fn to_words(row: &PacketRow) -> [u64; ROW_WORDS] {
    let options = [row.begin_cycles, row.end_cycles, row.discarded, row.sequence, row.stream_id];
    let present = options.iter().rev().fold(0, |flags, option| flags << 1 | u64::from(option.is_some()));
    let flags = u64::from(row.stream_class) << 32 | present << 1 | u64::from(row.cut);
    let [begin, end, discarded, sequence, stream] = options.map(Option::unwrap_or_default);
    [flags, row.offset_bytes, row.total_bits, row.content_bits, begin, end, discarded, sequence, stream]
}

fn from_words(words: [u64; ROW_WORDS], file: usize) -> PacketRow {
    let option = |index: usize| (words[0] >> (index + 1) & 1 == 1).then_some(words[index + 4]);
    PacketRow {
        file: file as u32,
        stream_class: (words[0] >> 32) as u32,
        offset_bytes: words[1],
        total_bits: words[2],
        content_bits: words[3],
        cut: words[0] & 1 == 1,
        begin_cycles: option(0),
        end_cycles: option(1),
        discarded: option(2),
        sequence: option(3),
        stream_id: option(4),
    }
}

/// So many rows of a cache file and the hash of their bytes; `None` unless they lie one behind the other.
fn rows(from: &mut impl Read, count: usize, file: usize) -> Option<(Packets, u64)> {
    let mut packets = Packets::default();
    let mut body = Hash::new(count * ROW_BYTES);
    let mut end = 0;
    for _ in 0..count {
        let words: [u64; ROW_WORDS] = words(from)?;
        words.iter().for_each(|&word| body.add(word));
        let row = from_words(words, file);
        let is_sane = row.offset_bytes == end
            && row.offset_bytes.checked_add(row.total_bits / 8).is_some()
            && row.content_bits <= row.total_bits;
        packets.push(is_sane.then_some(row)?);
        end = row.end_bytes();
    }
    Some((packets, body.finish(0)))
}

/// The next words of a file.
fn words<const COUNT: usize>(from: &mut impl Read) -> Option<[u64; COUNT]> {
    let mut words = [0; COUNT];
    for word in &mut words {
        let mut bytes = [0; 8];
        from.read_exact(&mut bytes).ok()?;
        *word = u64::from_le_bytes(bytes);
    }
    Some(words)
}

/// A hash that is the same for ever, eight bytes a step; it finds accidents, not attacks.
struct Hash(u64);

impl Hash {
    /// The hash of so many bytes to come.
    fn new(bytes: usize) -> Self {
        Self(bytes as u64)
    }

    fn add(&mut self, word: u64) {
        const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
        self.0 = (self.0 ^ word).wrapping_mul(ODD).rotate_left(29);
    }

    /// `last` are the bytes that are no whole word, as a number.
    fn finish(mut self, last: u64) -> u64 {
        self.add(last);
        self.add(0);
        self.0
    }
}

pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut hash = Hash::new(bytes.len());
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().for_each(|&word| hash.add(u64::from_le_bytes(word)));
    hash.finish(rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: usize = 512;

    /// A trace of one stream with three packets, a cache, and the rows.
    struct Setup {
        root: tempfile::TempDir,
        rows: Packets,
    }

    impl Setup {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir(root.path().join("trace")).unwrap();
            fs::write(root.path().join("trace/metadata"), "metadata").unwrap();
            let setup = Self { root, rows: (0..3).map(row).collect() };
            setup.write(&vec![1; 3 * PACKET]);
            setup.cache().remember(&setup.folder(), 0, &setup.rows);
            assert_eq!(setup.recalled(), Ok(3), "nothing changed");
            setup
        }

        fn write(&self, bytes: &[u8]) {
            // In place, so that the inode stays.
            fs::write(self.root.path().join("trace/stream"), bytes).unwrap();
        }

        fn folder(&self) -> TraceFolder {
            kymo_source::find(&self.root.path().join("trace")).unwrap().remove(0)
        }

        fn cache(&self) -> PacketCache {
            let mut cache = PacketCache::new(self.root.path().join("cache"));
            cache.packets_min = 1;
            cache
        }

        /// How many rows are recalled, which must be the right ones, or why none are.
        fn recalled(&self) -> Result<usize, Stale> {
            let rows = self.cache().look(&self.folder(), 0)?;
            assert!(rows.iter().eq(self.rows.range(0..rows.len())));
            Ok(rows.len())
        }

        fn cache_file(&self) -> PathBuf {
            list(&self.root.path().join("cache"), EXTENSION).remove(0).2
        }
    }

    fn row(number: u64) -> PacketRow {
        PacketRow {
            file: 0,
            stream_class: 3,
            offset_bytes: number * PACKET as u64,
            total_bits: PACKET as u64 * 8,
            content_bits: 77,
            cut: number == 2,
            begin_cycles: Some(number),
            end_cycles: None,
            discarded: (number > 0).then_some(number),
            sequence: Some(u64::MAX),
            stream_id: None,
        }
    }

    #[test]
    fn a_file_that_grew_keeps_all_but_its_last_packet() {
        let setup = Setup::new();
        setup.write(&vec![1; 3 * PACKET + 100]);
        assert_eq!(setup.recalled(), Ok(2));
    }

    #[test]
    fn a_file_that_grew_must_have_the_same_packets() {
        for (changed, why) in [(0, Stale::FirstPacket), (2 * PACKET, Stale::LastPacket)] {
            let setup = Setup::new();
            let mut bytes = vec![1; 4 * PACKET];
            bytes[changed + 20] = 9;
            setup.write(&bytes);
            assert_eq!(setup.recalled(), Err(why), "changed at {changed}");
        }
    }

    #[test]
    fn a_file_that_shrank_is_another() {
        let setup = Setup::new();
        setup.write(&vec![1; 2 * PACKET]);
        assert_eq!(setup.recalled(), Err(Stale::Shrank { then: 1536, now: 1024 }));
    }

    #[test]
    fn the_time_of_change_counts() {
        let setup = Setup::new();
        let file = fs::OpenOptions::new().write(true).open(setup.root.path().join("trace/stream")).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(setup.recalled(), Err(Stale::Modified));
    }

    #[test]
    fn first_and_last_packet_count_even_at_the_same_time() {
        for (changed, why) in [(0, Stale::FirstPacket), (2 * PACKET, Stale::LastPacket)] {
            let setup = Setup::new();
            let path = setup.root.path().join("trace/stream");
            let time = fs::metadata(&path).unwrap().modified().unwrap();
            let mut bytes = vec![1; 3 * PACKET];
            bytes[changed] = 9;
            setup.write(&bytes);
            fs::OpenOptions::new().write(true).open(path).unwrap().set_modified(time).unwrap();
            assert_eq!(setup.recalled(), Err(why), "changed at {changed}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_inode_counts() {
        let setup = Setup::new();
        let path = setup.root.path().join("trace/stream");
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        let copy = setup.root.path().join("trace/.copy");
        fs::copy(&path, &copy).unwrap();
        fs::OpenOptions::new().write(true).open(&copy).unwrap().set_modified(time).unwrap();
        fs::rename(copy, path).unwrap();
        assert_eq!(setup.recalled(), Err(Stale::Replaced));
    }

    #[test]
    fn the_metadata_counts() {
        let setup = Setup::new();
        fs::write(setup.root.path().join("trace/metadata"), "other").unwrap();
        assert_eq!(setup.recalled(), Err(Stale::Metadata));
    }

    #[test]
    fn every_word_of_the_header_counts() {
        // The words of device, inode, size, time, hashes and count: none may differ unnoticed.
        let setup = Setup::new();
        let path = setup.cache_file();
        let whole = fs::read(&path).unwrap();
        for word in 0..HEADER_WORDS {
            let mut bytes = whole.clone();
            bytes[word * 8] ^= 1;
            fs::write(&path, bytes).unwrap();
            assert!(setup.recalled().is_err(), "word {word}");
        }
    }

    #[test]
    fn a_broken_cache_is_as_good_as_absent() {
        let setup = Setup::new();
        let path = setup.cache_file();
        let whole = fs::read(&path).unwrap();
        for size in 0..whole.len() {
            fs::write(&path, &whole[..size]).unwrap();
            assert_eq!(setup.recalled(), Err(Stale::Broken), "cut to {size}");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            fs::write(&path, bytes).unwrap();
            assert!(setup.recalled().is_err(), "changed at {at}");
        }
        fs::write(&path, &whole).unwrap();
        assert_eq!(setup.recalled(), Ok(3));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_silent() {
        let setup = Setup::new();
        let file = setup.root.path().join("file");
        fs::write(&file, "").unwrap();
        let mut cache = PacketCache::new(file.join("below"));
        cache.packets_min = 1;
        cache.remember(&setup.folder(), 0, &setup.rows);
        assert_eq!(cache.recall(&setup.folder(), 0), None);
    }

    #[test]
    fn another_version_is_another() {
        let setup = Setup::new();
        let mut bytes = fs::read(setup.cache_file()).unwrap();
        bytes[7] += 1;
        fs::write(setup.cache_file(), bytes).unwrap();
        assert_eq!(setup.recalled(), Err(Stale::Version));
        fs::remove_file(setup.cache_file()).unwrap();
        assert_eq!(setup.recalled(), Err(Stale::Absent));
    }

    #[test]
    fn few_packets_are_not_worth_a_file() {
        let setup = Setup::new();
        let cache = PacketCache::new(setup.root.path().join("other"));
        cache.remember(&setup.folder(), 0, &setup.rows);
        assert_eq!(cache.recall(&setup.folder(), 0), None);
    }

    #[test]
    fn the_oldest_files_go_first() {
        let setup = Setup::new();
        let folder = setup.root.path().join("cache");
        for age in 1..=3u64 {
            let path = folder.join(format!("{age}.{EXTENSION}"));
            fs::write(&path, [0; 1000]).unwrap();
            let time = SystemTime::now() - std::time::Duration::from_secs(age * 1000);
            fs::OpenOptions::new().write(true).open(path).unwrap().set_modified(time).unwrap();
        }
        fs::write(folder.join("not-ours"), [0; 9000]).unwrap();
        let mut cache = setup.cache();
        cache.bytes_max = 1500;
        cache.remember(&setup.folder(), 0, &setup.rows);
        drop(cache);
        let mut left: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left.len(), 3, "{left:?}");
        assert!(left.contains(&"1.packets".into()) && left.contains(&"not-ours".into()), "{left:?}");
    }
}
