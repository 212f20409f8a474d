//! Where tables of analyses put rows beyond their budget of memory: one temporary file for all threads.
//!
//! ```text
//! file   block  block  (released)  block │ end: the next block goes here
//! ```
//!
//! The file is made when the first block is written, which most answers never need, and has no name
//! where the system can do without (it is removed when closed elsewhere), so that nothing stays
//! behind after a crash. It lies in the first folder that takes it: that of `TMPDIR` if set, the
//! cache's, the system's for temporary files. The cache's comes before the system's because the
//! latter is often memory, which rows are put aside to save.
//!
//! Released blocks leave holes. The file shrinks when all are released, which is the case between answers.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo_analysis::{Spool, SpoolBlock, SpoolError, SpoolErrorKind};

/// A spool in a temporary file.
#[derive(Debug)]
pub struct FileSpool {
    /// Folders for the file, in the order in which they are tried.
    folders: Vec<PathBuf>,
    state: Mutex<SpoolState>,
}

#[derive(Debug, Default)]
struct SpoolState {
    open: Option<OpenSpool>,
    /// Where the next block goes.
    end: u64,
    /// The size of all blocks that are not released.
    kept_bytes: u64,
    /// The size of all blocks ever written.
    written_bytes: u64,
}

#[derive(Clone, Debug)]
struct OpenSpool {
    file: Arc<File>,
    /// The folder that it is in.
    folder: Arc<PathBuf>,
}

impl Default for FileSpool {
    fn default() -> Self {
        let named = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        Self::new(named.into_iter().chain(crate::cache_folder()).chain([std::env::temp_dir()]).collect())
    }
}

impl FileSpool {
    /// A spool with its file in the first of these folders where one can be made.
    #[must_use]
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self { folders, state: Mutex::default() }
    }

    /// How many bytes were written in all.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.lock().written_bytes
    }

    /// How many bytes are kept now.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        self.lock().kept_bytes
    }

    fn lock(&self) -> MutexGuard<'_, SpoolState> {
        // Nothing in here panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> io::Result<OpenSpool> {
        let mut error = io::Error::from(ErrorKind::NotFound);
        for folder in &self.folders {
            // An error shows in the next step.
            let _ = fs::create_dir_all(folder);
            match tempfile::tempfile_in(folder) {
                Ok(file) => return Ok(OpenSpool { file: Arc::new(file), folder: Arc::new(folder.clone()) }),
                Err(cause) => error = cause,
            }
        }
        Err(error)
    }

    /// Takes a place for so many bytes, and makes the file if there is none.
    fn reserve(&self, size_bytes: usize) -> Result<(OpenSpool, SpoolBlock), SpoolError> {
        let mut state = self.lock();
        let open = match &state.open {
            Some(open) => open.clone(),
            None => {
                let place = self.folders.last().cloned().unwrap_or_default();
                self.open().map_err(|cause| unwritten(0, size_bytes, place, cause))?
            }
        };
        state.open = Some(open.clone());
        let block = SpoolBlock { at: state.end, size_bytes };
        state.end += size_bytes as u64;
        state.kept_bytes += size_bytes as u64;
        state.written_bytes += size_bytes as u64;
        Ok((open, block))
    }
}

/// Meaning of a failed write.
pub(crate) fn unwritten(at: u64, needed_bytes: usize, folder: PathBuf, cause: io::Error) -> SpoolError {
    let kind = match cause.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            SpoolErrorKind::Full { needed_bytes, folder }
        }
        _ => SpoolErrorKind::Write { needed_bytes, folder, cause },
    };
    SpoolError { at, kind }
}

impl Spool for FileSpool {
    fn write(&self, bytes: &[u8]) -> Result<SpoolBlock, SpoolError> {
        let (OpenSpool { file, folder }, block) = self.reserve(bytes.len())?;
        // Outside of the lock: threads write side by side.
        write_all_at(&file, bytes, block.at).map_err(|cause| {
            self.release(block);
            unwritten(block.at, bytes.len(), folder.to_path_buf(), cause)
        })?;
        Ok(block)
    }

    fn read(&self, block: SpoolBlock, bytes: &mut Vec<u8>) -> Result<(), SpoolError> {
        let unread =
            |cause| SpoolError { at: block.at, kind: SpoolErrorKind::Read { wanted_bytes: block.size_bytes, cause } };
        let open = self.lock().open.clone().ok_or_else(|| unread(ErrorKind::NotFound.into()))?;
        bytes.resize(block.size_bytes, 0);
        read_exact_at(&open.file, bytes, block.at).map_err(unread)
    }

    fn release(&self, block: SpoolBlock) {
        let mut state = self.lock();
        state.kept_bytes -= block.size_bytes as u64;
        if state.kept_bytes == 0 {
            state.end = 0;
            // Where it does not shrink, it is at least written over.
            let _ = state.open.as_ref().map(|open| open.file.set_len(0));
        }
    }
}

#[cfg(unix)]
pub(crate) fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_write(file, bytes, at)? {
            0 => return Err(ErrorKind::WriteZero.into()),
            count => {
                bytes = &bytes[count..];
                at += count as u64;
            }
        }
    }
    Ok(())
}

#[cfg(windows)]
pub(crate) fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, at)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => {
                bytes = &mut bytes[count..];
                at += count as u64;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_analysis::{Histogram, KeyTable, Merge, Room};

    fn spool() -> (tempfile::TempDir, FileSpool) {
        let folder = tempfile::tempdir().unwrap();
        // The first folder cannot be made: it would have to be inside of a file.
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let spool = FileSpool::new(vec![file.join("inside"), folder.path().join("made")]);
        (folder, spool)
    }

    fn content(spool: &FileSpool, block: SpoolBlock) -> Vec<u8> {
        let mut bytes = vec![1, 2, 3];
        spool.read(block, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn threads_read_what_they_wrote() {
        let (_folder, spool) = spool();
        std::thread::scope(|scope| {
            for thread in 0u8..4 {
                let spool = &spool;
                scope.spawn(move || {
                    let written: Vec<_> = (0..50u8)
                        .map(|number| {
                            let bytes = vec![thread ^ number; usize::from(number) * 97];
                            (spool.write(&bytes).unwrap(), bytes)
                        })
                        .collect();
                    for (block, bytes) in &written {
                        assert_eq!(content(spool, *block), *bytes);
                    }
                    written.iter().for_each(|(block, _)| spool.release(*block));
                });
            }
        });
        assert_eq!((spool.kept_bytes(), spool.written_bytes()), (0, 4 * 97 * (49 * 50 / 2)));
    }

    /// The file begins anew when nothing in it is needed, and is nowhere to be found.
    #[test]
    fn nothing_stays_behind() {
        let (folder, spool) = spool();
        let first = spool.write(b"first").unwrap();
        let second = spool.write(b"second").unwrap();
        spool.release(first);
        assert_eq!(spool.write(b"third").unwrap().at, 11);
        assert_eq!(content(&spool, second), b"second");
        spool.release(second);
        spool.release(SpoolBlock { at: 11, size_bytes: 5 });
        assert_eq!(spool.lock().open.as_ref().unwrap().file.metadata().unwrap().len(), 0);
        assert_eq!(spool.write(b"again").unwrap().at, 0);
        if cfg!(unix) {
            assert_eq!(fs::read_dir(folder.path().join("made")).unwrap().count(), 0);
        }
        drop(spool);
        assert_eq!(fs::read_dir(folder.path().join("made")).unwrap().count(), 0);
    }

    /// Whole tables, from several threads at once.
    #[test]
    fn tables_come_back_as_they_were() {
        let (_folder, spool) = spool();
        let spool = Arc::new(spool);
        let table = |begin: u32| {
            let room = Room { spool: Arc::<FileSpool>::clone(&spool), budget_bytes: 50_000 };
            let mut table = KeyTable::<u32, Histogram>::new(room);
            (begin..begin + 20_000).for_each(|number| table.entry(number % 3000).record(u64::from(number)));
            table
        };
        let mut tables = std::thread::scope(|scope| {
            let threads = [0, 20_000, 40_000].map(|begin| scope.spawn(move || table(begin)));
            threads.map(|thread| thread.join().unwrap()).into_iter()
        });
        let mut merged = tables.next().unwrap();
        tables.for_each(|later| merged.merge(later));
        assert!(merged.is_spilled() && merged.fault().is_none());
        let mut rows = 0;
        for (row, expected) in merged.finish().zip(0..) {
            let (key, values) = row.unwrap();
            let mut wanted = Histogram::default();
            (expected..60_000).step_by(3000).for_each(|number| wanted.record(u64::from(number)));
            assert_eq!((key, values), (expected, wanted));
            rows += 1;
        }
        assert_eq!((rows, spool.kept_bytes()), (3000, 0));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_told() {
        let (_folder, spool) = spool();
        let file = Arc::new(File::options().read(true).write(true).open("/dev/full").unwrap());
        spool.lock().open = Some(OpenSpool { file, folder: Arc::new("/scratch".into()) });
        let error = spool.write(&[0; 100]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "at byte 0 of the spool for tables: there is no space for 100 more bytes in /scratch"
        );
        assert_eq!(spool.kept_bytes(), 0);
    }

    #[test]
    fn no_folder_at_all_is_told() {
        let (folder, _) = spool();
        let spool = FileSpool::new(vec![folder.path().join("file").join("inside")]);
        let error = spool.write(b"bytes").unwrap_err();
        assert!(matches!(error.kind, SpoolErrorKind::Write { needed_bytes: 5, .. }), "{error}");
    }
}
