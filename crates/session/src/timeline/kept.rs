//! The pyramid in the cache: a file that belongs to the traces as they are.
//!
//! ```text
//! nodes, in the order in which they were made │ index: where they are, names │ trailer: where the index is, whose it is
//! ```

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::catalogue::Known;
use super::pyramid::{Place, Pyramid};
use super::{Timeline, TimelineFailure};
use crate::cache::{hash, tidy};
use crate::spool::read_exact_at;

/// The last byte is the version of what is before it.
const MAGIC: u64 = u64::from_le_bytes(*b"kymotil\x02");
const EXTENSION: &str = "tiles";
/// Behind all: where the index begins, its size, its hash, what the file belongs to, and the magic number.
const TRAILER_WORDS: usize = 5;
const WORD_BYTES: usize = 8;
/// All files together; the one that is in use may be larger.
const BYTES_MAX: u64 = 4 << 30;

/// What there is to know of the nodes of a file.
#[derive(Serialize, Deserialize)]
struct Index {
    places: Vec<Vec<Option<Place>>>,
    known: Known,
    /// From when to when chunks are: others have other nodes.
    spans: Vec<(i64, i64)>,
}

/// A file that there is, or may be.
#[derive(Clone, Debug)]
pub(super) struct Home {
    path: PathBuf,
    /// What its content belongs to.
    belongs: u64,
}

impl Home {
    pub(super) fn new(path: PathBuf, belongs: u64) -> Self {
        Self { path, belongs }
    }

    fn open(&self) -> Option<(File, Index, u64)> {
        let file = File::open(&self.path).ok()?;
        let size = file.metadata().ok()?.len();
        let mut trailer = [0; TRAILER_WORDS * WORD_BYTES];
        let end = size.checked_sub(trailer.len() as u64)?;
        read_exact_at(&file, &mut trailer, end).ok()?;
        let mut words = trailer.as_chunks::<WORD_BYTES>().0.iter().map(|word| u64::from_le_bytes(*word));
        let [at, index_size, check, belongs, magic] = std::array::from_fn(|_| words.next().unwrap_or(0));
        if (belongs, magic) != (self.belongs, MAGIC) || at.checked_add(index_size) != Some(end) {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(index_size).ok()?];
        read_exact_at(&file, &mut bytes, at).ok()?;
        let index = (hash(&bytes) == check).then(|| postcard::from_bytes(&bytes).ok())??;
        Some((file, index, at))
    }
}

impl Timeline {
    /// The pyramid that the cache has, if it is of these traces and whole.
    pub(super) fn recalled(home: Option<&Home>, spans: &[(i64, i64)]) -> Option<(Pyramid, Known)> {
        let home = home?;
        let (file, index, end) = home.open()?;
        let is_whole = index.places.iter().flatten().all(Option::is_some);
        let fits = index.spans == spans && index.places.iter().map(Vec::len).eq(super::pyramid::heights(spans.len()));
        let folder = home.path.parent().map(Path::to_owned).unwrap_or_default();
        (is_whole && fits).then(|| (Pyramid::of(file, None, folder, (index.places, end)), index.known))
    }

    /// Leaves the pyramid in the cache. A cache that cannot be written only costs time.
    pub(super) fn keep(&self) {
        let (Some(home), Some(named)) = (&self.home, self.pyramid.take_named()) else { return };
        if self.write_index(home).is_ok() && named.persist(&home.path).is_ok() {
            home.path.parent().into_iter().for_each(|folder| tidy(folder, EXTENSION, BYTES_MAX, Some(&home.path)));
        }
    }

    fn write_index(&self, home: &Home) -> Result<(), TimelineFailure> {
        let spans = self.chunks.iter().map(|chunk| chunk.span).collect();
        let index = Index { places: self.pyramid.places(), known: self.names.known(), spans };
        let mut bytes = postcard::to_allocvec(&index).expect("memory takes it");
        let (at, size) = (self.pyramid.end.load(Ordering::Relaxed), bytes.len() as u64);
        let trailer = [at, size, hash(&bytes), home.belongs, MAGIC];
        bytes.extend(trailer.iter().flat_map(|word| word.to_le_bytes()));
        self.pyramid.append(&bytes)?;
        Ok(())
    }
}

/// The name of the file of some traces.
pub(super) fn file_name(traces: u64) -> String {
    format!("{traces:016x}.{EXTENSION}")
}
