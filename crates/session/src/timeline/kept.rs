//! The pyramid in the cache: a file that belongs to the traces as they are.
//!
//! ```text
//! nodes, in the order in which they were made │ index: where they are, names, what is known behind the last one
//! ```
//!
//! A process that ends before everything is built leaves the built part, and the next one goes on
//! from there.

use std::path::{Path, PathBuf};

use kymo_analysis::timeline::TimelinePart;
use serde::{Deserialize, Serialize};

use super::Timeline;
use super::catalogue::CatalogueFacts;
use super::pyramid::{NodePlace, Pyramid, heights};
use crate::cache::indexed::{FileKind, IndexedFile};

const KIND: FileKind = FileKind { magic: u64::from_le_bytes(*b"kymotil\x0a"), extension: "tiles", bytes_max: 4 << 30 };

/// The index of a file's nodes.
#[derive(Serialize, Deserialize)]
struct NodeIndex<S> {
    places: Vec<Vec<Option<NodePlace>>>,
    known: CatalogueFacts,
    /// From when to when chunks are: others have other nodes.
    spans: Vec<(i64, i64)>,
    /// The state behind the last chunk that has a node, if some have none.
    before: Option<S>,
}

/// A file that there is, or may be.
#[derive(Clone, Debug)]
pub(super) struct Home {
    path: PathBuf,
    /// The sources of its content.
    belongs: u64,
}

/// The results of an earlier run.
pub(super) struct EarlierRun {
    pub(super) pyramid: Pyramid,
    pub(super) known: CatalogueFacts,
    /// How many of the first chunks have nodes.
    pub(super) built: usize,
    /// The state behind these, if there are others.
    pub(super) before: Option<TimelinePart>,
}

impl Home {
    /// Where the pyramid of traces lies, which are known by a number; `belongs`: another number when they change.
    pub(super) fn new(folder: &Path, traces: u64, belongs: u64) -> Self {
        Self { path: KIND.path(folder, traces), belongs }
    }

    /// The pyramid that the cache has, if it is of these traces.
    pub(super) fn recall(&self, spans: &[(i64, i64)]) -> Option<EarlierRun> {
        let (file, index) = IndexedFile::open::<NodeIndex<TimelinePart>>(&KIND, &self.path, self.belongs)?;
        let NodeIndex { places, known, before, .. } = index;
        if index.spans != spans || !places.iter().map(Vec::len).eq(heights(spans.len())) {
            return None;
        }
        // The next process goes on from one state, so nodes behind a gap would be of no use.
        let built = places[0].iter().take_while(|place| place.is_some()).count();
        if places[0][built..].iter().any(Option::is_some) || before.is_some() == (built == spans.len()) {
            return None;
        }
        // A file that others read stays as it is.
        let (file, named) = match before {
            None => (file, None),
            Some(_) => file.copied(self.path.parent()).ok()?,
        };
        Some(EarlierRun { pyramid: Pyramid::of(file, named, places), known, built, before })
    }
}

impl Timeline {
    /// Leaves the pyramid in the cache, as far as it is built. `before`: the state behind that, if
    /// it is not all.
    pub(super) fn keep(&self, before: Option<&TimelinePart>) {
        let (Some(home), Some(named)) = (&self.home, self.pyramid.take_named()) else { return };
        let spans = self.chunks.iter().map(|chunk| chunk.span).collect();
        let index = NodeIndex { places: self.pyramid.places(), known: self.names.known(), spans, before };
        if self.pyramid.file.finish(&KIND, &index, home.belongs).is_ok() {
            KIND.keep(named, &home.path);
        }
    }
}
