//! The packet index of traces, made ahead of time, looked at, or removed.
//!
//! ```text
//! stream ── look into the cache ── believed whole ─────────────────────> valid
//!                └─ believed in part, or not (why) ── hop heads ─ write ─> built
//! ```
//!
//! Every command makes and uses the same index by itself; here the result is reported.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kymo_decode::Compile;
use kymo_scan::{KnownPackets, Packets, Trace, TraceOptions};
use kymo_source::{ImportOptions, TraceFolder};

use crate::cache::{BYTES_MAX, PACKETS_MIN, PacketCache, Stale};
use crate::open::OpenFailure;
use crate::open::discover::{self, discover};
use crate::open::progress::Progress;
use crate::open::report::ReportProblem;

/// The results for the indexes of some traces.
#[derive(Debug, Default)]
pub struct IndexResults {
    /// One for each trace.
    pub traces: Vec<IndexedTrace>,
    /// Paths without traces.
    pub unreadable: Vec<ReportProblem>,
}

/// The results for the index of one trace.
#[derive(Debug)]
pub struct IndexedTrace {
    /// Where it is.
    pub path: PathBuf,
    /// One for each file with packets; none if the trace cannot be opened.
    pub streams: Vec<IndexedStream>,
    /// How long it took.
    pub elapsed: Duration,
    /// Why it cannot be opened.
    pub failure: Option<OpenFailure>,
}

/// The result for the index of one file with packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedStream {
    /// The file's name in its folder.
    pub name: String,
    /// The file's size in bytes.
    pub size_bytes: u64,
    /// Packets that were found; 0 where the index was only removed.
    pub packets: u64,
    /// The index' file, whether it is there or not.
    pub index: Option<PathBuf>,
    /// Size of the index' file in bytes; 0 if it is not there.
    pub index_bytes: u64,
    /// The result.
    pub state: IndexState,
}

/// The result for an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// It was there and is still true.
    Valid,
    /// The file only grew: the rows of so many packets are kept, the others were added.
    Extended(u64),
    /// It was made anew, because of this problem of the one before.
    Built(Stale),
    /// It has so few packets that finding them is faster than reading an index.
    Small,
    /// Not all packets can be found; the reason why the search ended.
    Broken(String),
    /// It cannot be written.
    Unwritable(String),
    /// It was there and was deleted.
    Removed,
    /// It was to be deleted, but is not there.
    Absent,
}

impl IndexResults {
    /// Whether all packets of all traces were found, and all indexes that are wanted are written or deleted.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let spoilt = |stream: &IndexedStream| matches!(stream.state, IndexState::Broken(_) | IndexState::Unwritable(_));
        let sound = |trace: &IndexedTrace| trace.failure.is_none() && !trace.streams.iter().any(spoilt);
        self.unreadable.is_empty() && self.traces.iter().all(sound)
    }
}

/// Makes or refreshes the indexes of every trace at or below the paths; `cache` is where they are kept.
#[must_use]
pub fn index(paths: &[PathBuf], cache: &Path, options: &ImportOptions, progress: &Progress) -> IndexResults {
    let (folders, unreadable) = folders(paths, options);
    let bytes = |folder: &TraceFolder| folder.streams().iter().map(|stream| stream.size).sum::<u64>();
    progress.expect(folders.iter().map(bytes).sum());
    let cache = PacketCache::new(cache.to_owned());
    let mut traces: Vec<_> = folders.into_iter().map(|folder| index_trace(folder, &cache, progress)).collect();
    // Makes room, which may take what was written just now.
    drop(cache);
    traces.iter_mut().flat_map(|trace| &mut trace.streams).for_each(miss);
    IndexResults { traces, unreadable }
}

/// An index that is not there any more was too large together with the others.
fn miss(stream: &mut IndexedStream) {
    let is_kept = matches!(stream.state, IndexState::Valid | IndexState::Extended(_) | IndexState::Built(_));
    if is_kept && !stream.index.as_ref().is_some_and(|path| path.exists()) {
        stream.index_bytes = 0;
        stream.state = IndexState::Unwritable(format!("all indexes together may have {} MiB", BYTES_MAX >> 20));
    }
}

/// Deletes the indexes of every trace at or below the paths.
#[must_use]
pub fn remove_index(paths: &[PathBuf], cache: &Path, options: &ImportOptions) -> IndexResults {
    let (folders, unreadable) = folders(paths, options);
    let cache = PacketCache::new(cache.to_owned());
    let remove = |folder: TraceFolder| {
        let began = Instant::now();
        let state = |file| match cache.path(&folder, file).map(std::fs::remove_file) {
            Some(Ok(())) => IndexState::Removed,
            Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => {
                IndexState::Unwritable(error.to_string())
            }
            _ => IndexState::Absent,
        };
        let states = (0..folder.streams().len()).map(state).collect();
        let streams = streams(&folder, &cache, states, &[]);
        IndexedTrace { path: folder.path().to_owned(), streams, elapsed: began.elapsed(), failure: None }
    };
    IndexResults { traces: folders.into_iter().map(remove).collect(), unreadable }
}

fn folders(paths: &[PathBuf], options: &ImportOptions) -> (Vec<TraceFolder>, Vec<ReportProblem>) {
    let (folders, errors) = discover(paths, options).split();
    (folders, errors.iter().map(discover::problem).collect())
}

/// Writes down what the cache does while a trace is opened.
struct Watched<'a> {
    cache: &'a PacketCache,
    progress: &'a Progress,
    /// By file.
    states: RefCell<Vec<IndexState>>,
}

impl KnownPackets for Watched<'_> {
    fn recall(&self, folder: &TraceFolder, file: usize) -> Option<Packets> {
        let looked = self.cache.look(folder, file);
        self.states.borrow_mut()[file] = match &looked {
            Ok(rows) => {
                let known = rows.last().map_or(0, |row| row.end_bytes());
                self.progress.add(known);
                let is_whole = known == folder.streams()[file].size;
                if is_whole { IndexState::Valid } else { IndexState::Extended(rows.len() as u64) }
            }
            Err(why) => IndexState::Built(*why),
        };
        looked.ok()
    }

    fn remember(&self, folder: &TraceFolder, file: usize, rows: &Packets) {
        let state = &mut self.states.borrow_mut()[file];
        if rows.len() < PACKETS_MIN {
            *state = IndexState::Small;
        } else if let Err(error) = self.cache.write(folder, file, rows) {
            *state = IndexState::Unwritable(error.to_string());
        }
    }

    fn found(&self, bytes: u64) {
        self.progress.add(bytes);
    }
}

fn index_trace(folder: TraceFolder, cache: &PacketCache, progress: &Progress) -> IndexedTrace {
    let (began, path) = (Instant::now(), folder.path().to_owned());
    let unknown = vec![IndexState::Small; folder.streams().len()];
    let watched = Watched { cache, progress, states: RefCell::new(unknown) };
    let options = TraceOptions { clock_shift_ns: 0, compile: Compile::Never };
    match Trace::open(folder, options, &watched) {
        Ok(trace) => {
            let mut states = watched.states.into_inner();
            for broken in trace.broken_files.iter() {
                states[broken.file] = IndexState::Broken(broken.error.to_string());
            }
            let mut packets = vec![0; states.len()];
            for row in trace.streams.iter().flat_map(|stream| stream.packets.iter()) {
                packets[row.file as usize] += 1;
            }
            let streams = streams(&trace.folder, cache, states, &packets);
            IndexedTrace { path, streams, elapsed: began.elapsed(), failure: None }
        }
        Err(error) => {
            let failure = Some(OpenFailure::Trace { path: path.clone(), error });
            IndexedTrace { path, streams: Vec::new(), elapsed: began.elapsed(), failure }
        }
    }
}

fn streams(folder: &TraceFolder, cache: &PacketCache, states: Vec<IndexState>, packets: &[u64]) -> Vec<IndexedStream> {
    let stream = |(file, state): (usize, IndexState)| {
        let entry = &folder.streams()[file];
        let index = cache.path(folder, file);
        let facts = index.as_ref().and_then(|path| std::fs::metadata(path).ok());
        IndexedStream {
            name: entry.name.clone(),
            size_bytes: entry.size,
            packets: packets.get(file).copied().unwrap_or(0),
            index,
            index_bytes: facts.map_or(0, |facts| facts.len()),
            state,
        }
    };
    states.into_iter().enumerate().map(stream).collect()
}
