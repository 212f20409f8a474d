//! Traces that are opened again and again while they grow: earlier findings are not computed anew.
//!
//! Packets of a file that only grew are where they were, and their readers are the same as long as
//! the metadata is. That is in memory, for traces that are open; [`crate::PacketCache`] keeps data
//! on disk for later.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use kymo_scan::{KnownPackets, NothingKnown, Packets, Trace};
use kymo_source::{FileIdentity, ImportOptions, TraceFolder};

use crate::cache::PacketCache;
use crate::open::Session;
use crate::open::discover::Importing;

/// Facts about traces that were open before.
#[derive(Debug, Default)]
pub(crate) struct EarlierTraces {
    /// As they were opened last.
    session: Option<Arc<Session>>,
    importing: Importing,
    files: Mutex<HashMap<(PathBuf, String), (FileIdentity, Packets)>>,
}

impl EarlierTraces {
    /// Of none; later ones are imported with these options.
    pub(crate) fn new(options: &ImportOptions) -> Self {
        Self { importing: Importing::new(options), ..Self::default() }
    }

    /// How files in other formats are read.
    pub(crate) fn importing(&self) -> &Importing {
        &self.importing
    }

    /// These are the traces as they were opened last.
    pub(crate) fn opened(&mut self, session: &Arc<Session>) {
        let is_there = |path: &PathBuf| session.traces.iter().any(|trace| trace.folder.path() == path);
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|(path, _), _| is_there(path));
        drop(files);
        self.session = Some(Arc::clone(session));
    }

    /// The traces as they were opened last.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    /// The trace of a folder.
    pub(crate) fn trace(&self, folder: &TraceFolder) -> Option<&Trace> {
        let traces = &self.session.as_ref()?.traces;
        traces.iter().find(|trace| trace.folder.path() == folder.path()).map(|trace| &**trace)
    }

    /// Facts about its packets.
    pub(crate) fn packets<'a>(&'a self, cache: Option<&'a PacketCache>) -> EarlierPackets<'a> {
        EarlierPackets { earlier: self, cache }
    }
}

/// Packets that are known from an earlier look, or from the cache.
pub(crate) struct EarlierPackets<'a> {
    earlier: &'a EarlierTraces,
    cache: Option<&'a PacketCache>,
}

impl EarlierPackets<'_> {
    fn cache(&self) -> &dyn KnownPackets {
        self.cache.map_or(&NothingKnown, |cache| cache)
    }
}

impl KnownPackets for EarlierPackets<'_> {
    fn recall(&self, folder: &TraceFolder, file: usize) -> Option<Packets> {
        let key = (folder.path().to_owned(), folder.streams()[file].name.clone());
        let files = self.earlier.files.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((then, packets)) = files.get(&key) else {
            drop(files);
            return self.cache().recall(folder, file);
        };
        let now = folder.identity(file).ok()?;
        let is_same = (now.device, now.inode) == (then.device, then.inode) && then.size <= now.size;
        // The last one may have been cut by the file's end.
        let whole = if now.size == then.size { packets.len() } else { packets.len().saturating_sub(1) };
        // Files have other numbers when there are more of them.
        is_same.then(|| packets.range(0..whole).map(|row| kymo_scan::PacketRow { file: file as u32, ..row }).collect())
    }

    fn remember(&self, folder: &TraceFolder, file: usize, packets: &Packets) {
        if let Ok(identity) = folder.identity(file) {
            let key = (folder.path().to_owned(), folder.streams()[file].name.clone());
            // It may have grown since its packets were looked for.
            let identity = FileIdentity { size: folder.streams()[file].size, ..identity };
            let mut files = self.earlier.files.lock().unwrap_or_else(PoisonError::into_inner);
            files.insert(key, (identity, packets.clone()));
        }
    }
}
