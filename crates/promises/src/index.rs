//! Index files, LTTng's and our own, are believed only as far as they can be true; no bytes make reading them panic.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_decode::{Compile, Decoder};
use kymo_scan::index::{hop, parse_lttng_index, rows_of_lttng_index};
use kymo_scan::{KnownPackets, Packets};
use kymo_session::PacketCache;
use kymo_source::TraceFolder;

/// Packets of four bytes each, with their sizes.
const METADATA: &str = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; \
     stream { packet.context := struct { integer { size = 8; align = 8; } packet_size; \
     integer { size = 8; align = 8; } content_size; }; }; \
     event { name = e; fields := struct { integer { size = 8; align = 8; } a; }; };";
/// More packets than are worth a file of ours.
const PACKETS: usize = 100;

/// A trace in a folder of its own, which has an index file of ours.
#[derive(Debug)]
pub struct IndexedFolder {
    _root: tempfile::TempDir,
    folder: TraceFolder,
    decoder: Decoder,
    rows: Packets,
    cache: PacketCache,
    cache_file: PathBuf,
}

impl IndexedFolder {
    /// Writes the trace and its index file.
    ///
    /// # Panics
    ///
    /// If a temporary folder cannot be written.
    #[must_use]
    pub fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary folder can be made");
        let write = |name: &str, bytes: &[u8]| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("inside of the root")).expect("a folder can be made");
            fs::write(path, bytes).expect("a temporary file can be written");
        };
        write("trace/metadata", METADATA.as_bytes());
        write("trace/stream", &[32, 32, 7, 8].repeat(PACKETS));
        let mut folders = kymo_source::find(&root.path().join("trace")).expect("a trace was just written");
        let folder = folders.pop().expect("a trace was just written");
        let trace = kymo_format::parse(METADATA.as_bytes()).trace_class.expect("the metadata is sound");
        let decoder = Decoder::new(Arc::new(trace), Compile::Never).expect("integers can be decoded");
        let (rows, fault) = hop(&decoder, &folder.stream(0), 0, 4 * PACKETS as u64);
        assert!(fault.is_none() && rows.len() == PACKETS, "{} packets, {fault:?}", rows.len());
        let cache = PacketCache::new(root.path().join("cache"));
        cache.remember(&folder, 0, &rows);
        let cache_file = only_file(&root.path().join("cache"));
        Self { _root: root, folder, decoder, rows, cache, cache_file }
    }

    /// An index file of LTTng and the one of ours, to begin with.
    ///
    /// # Panics
    ///
    /// If the file cannot be read.
    #[must_use]
    pub fn seeds(&self) -> [Vec<u8>; 2] {
        [lttng_index(&self.rows), fs::read(&self.cache_file).expect("the file was written")]
    }

    /// The promise for the bytes of an index file.
    ///
    /// # Panics
    ///
    /// If it is broken.
    pub fn hold(&self, data: &[u8]) {
        let file_bytes = 4 * PACKETS as u64;
        if let Ok(entries) = parse_lttng_index(data, file_bytes) {
            let end = entries.iter().fold(0, |end, entry| end + entry.total_bits / 8);
            assert!(end <= file_bytes, "entries reach byte {end}");
        }
        if let Ok(rows) = rows_of_lttng_index(&self.decoder, &self.folder.stream(0), 0, file_bytes, data) {
            assert!(rows.iter().all(|row| row.end_bytes() <= file_bytes), "a packet behind the end");
        }
        fs::write(&self.cache_file, data).expect("a temporary file can be written");
        if let Some(rows) = self.cache.recall(&self.folder, 0) {
            assert_eq!(rows, self.rows, "a damaged index file of ours is believed");
        }
    }
}

impl Default for IndexedFolder {
    fn default() -> Self {
        Self::new()
    }
}

fn only_file(folder: &Path) -> PathBuf {
    let mut files = fs::read_dir(folder).expect("the index file was written");
    files.next().expect("the index file was written").expect("the folder can be listed").path()
}

/// As LTTng writes it, version 1.1.
fn lttng_index(rows: &Packets) -> Vec<u8> {
    let mut bytes: Vec<u8> = [0xC1F1_DCC1_u32, 1, 1, 72].iter().flat_map(|word| word.to_be_bytes()).collect();
    for row in rows {
        let entry = [row.offset_bytes, row.total_bits, row.content_bits, 0, 0, 0, 0, 0, 0];
        bytes.extend(entry.iter().flat_map(|word| word.to_be_bytes()));
    }
    bytes
}
