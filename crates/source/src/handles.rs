//! Open files, not too many at once: a trace may have more streams than a process may have files open.
//!
//! Files are opened when they are read, and the least recently read one is closed when there are
//! too many. A file that is being read stays open until that read is done.
//!
//! ```text
//! files the process may open   │ kept open here, at most 256 │ … │ left to others, 256 or half │
//!                              └ trace files                       └ output, caches, the caller's own
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// Files that are open at once, however many the process may open: more gain nothing.
const OPEN_MAX: usize = 256;
/// Files that the rest of the process may want to open, where the limit is wide enough to spare them.
const OTHERS_MAX: usize = 256;

/// The open files of one finder.
#[derive(Debug)]
pub(crate) struct Handles {
    /// Files that are open.
    open: Mutex<Vec<Weak<LazyFile>>>,
    /// How many there may be.
    most: usize,
    /// Counts reads, so that the least recently read file is known.
    reads: AtomicU64,
}

impl Default for Handles {
    fn default() -> Self {
        Self { open: Mutex::default(), most: open_max(soft_limit()), reads: AtomicU64::default() }
    }
}

/// How many files to keep open where the process may open `limit`.
fn open_max(limit: Option<u64>) -> usize {
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    (limit - OTHERS_MAX.min(limit / 2)).clamp(1, OPEN_MAX)
}

/// How many files the process may have open; `None` if there is no limit or it is unknown.
#[cfg(unix)]
fn soft_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(not(unix))]
fn soft_limit() -> Option<u64> {
    None
}

/// A file that is opened when it is read.
#[derive(Debug)]
pub(crate) struct LazyFile {
    path: PathBuf,
    handle: Mutex<Option<Arc<fs::File>>>,
    /// When it was read last, in the reads of its [`Handles`].
    used: AtomicU64,
    handles: Weak<Handles>,
    this: Weak<LazyFile>,
}

impl Handles {
    pub(crate) fn register(self: &Arc<Self>, path: PathBuf) -> Arc<LazyFile> {
        let handles = Arc::downgrade(self);
        let (handle, used) = (Mutex::new(None), AtomicU64::default());
        Arc::new_cyclic(|this| LazyFile { path, handle, used, handles, this: Weak::clone(this) })
    }

    /// Closes files until there are fewer than `most`, the least recently read ones first.
    fn close_beyond(open: &mut Vec<Weak<LazyFile>>, most: usize) {
        while open.len() >= most {
            let used = |file: &Weak<LazyFile>| file.upgrade().map_or(0, |file| file.used.load(Ordering::Relaxed));
            let Some(oldest) = (0..open.len()).min_by_key(|&index| used(&open[index])) else {
                return;
            };
            if let Some(file) = open.swap_remove(oldest).upgrade() {
                file.close();
            }
        }
    }
}

impl LazyFile {
    /// A file that is open already and stays so, because it cannot be opened again.
    pub(crate) fn kept(path: PathBuf, file: fs::File) -> Arc<Self> {
        let (handle, used) = (Mutex::new(Some(Arc::new(file))), AtomicU64::default());
        Arc::new_cyclic(|this| Self { path, handle, used, handles: Weak::new(), this: Weak::clone(this) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn close(&self) {
        if let Ok(mut handle) = self.handle.lock() {
            *handle = None;
        }
    }

    fn handle(&self) -> io::Result<Arc<fs::File>> {
        let handles = self.handles.upgrade();
        if let Some(handles) = &handles {
            self.used.store(handles.reads.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        }
        if let Some(handle) = self.handle.lock().ok().and_then(|handle| handle.clone()) {
            return Ok(handle);
        }
        // A file that is open when its finder is gone, is open until it is dropped.
        let Some(handles) = handles else {
            return fs::File::open(&self.path).map(Arc::new);
        };
        let mut open = handles.open.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Handles::close_beyond(&mut open, handles.most);
        let opened = fs::File::open(&self.path).or_else(|error| {
            if !is_too_many(&error) {
                return Err(error);
            }
            // Other parts of the process hold files too, more than was left to them.
            Handles::close_beyond(&mut open, 1);
            fs::File::open(&self.path)
        })?;
        let opened = Arc::new(opened);
        if let Ok(mut handle) = self.handle.lock()
            && handle.replace(Arc::clone(&opened)).is_none()
        {
            open.push(Weak::clone(&self.this));
        }
        Ok(opened)
    }

    pub(crate) fn size(&self) -> io::Result<u64> {
        Ok(self.handle()?.metadata()?.len())
    }

    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let handle = self.handle()?;
        let mut done = 0;
        while done < buffer.len() {
            match read_some(&handle, offset + done as u64, &mut buffer[done..]) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

/// Whether a file could not be opened because too many are: EMFILE, ENFILE or ERROR_TOO_MANY_OPEN_FILES.
fn is_too_many(error: &io::Error) -> bool {
    let codes: &[i32] = if cfg!(windows) { &[4] } else { &[23, 24] };
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

#[cfg(unix)]
fn read_some(file: &fs::File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_some(file: &fs::File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_limit_is_shared_with_the_rest_of_the_process() {
        let most = |limit| open_max(Some(limit));
        assert_eq!([most(0), most(1), most(32), most(64), most(256)], [1, 1, 16, 32, 128]);
        assert_eq!([most(400), most(600), most(1024), most(u64::MAX), open_max(None)], [200, 256, 256, 256, 256]);
    }

    #[test]
    fn the_file_read_longest_ago_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let handles = Arc::new(Handles { open: Mutex::default(), most: 2, reads: AtomicU64::default() });
        let file = |name: &str| {
            fs::write(folder.path().join(name), name).unwrap();
            handles.register(folder.path().join(name))
        };
        let files = [file("a"), file("b"), file("c")];
        let is_open = || files.each_ref().map(|file| file.handle.lock().unwrap().is_some());
        // Opened first, read again, and therefore kept.
        for (name, expected) in [(0, [true, false, false]), (1, [true, true, false]), (0, [true, true, false])] {
            files[name].read_at(0, &mut [0]).unwrap();
            assert_eq!(is_open(), expected);
        }
        files[2].read_at(0, &mut [0]).unwrap();
        assert_eq!(is_open(), [true, false, true]);
    }
}
