//! Open files, not too many at once: a trace may have more streams than a process may have files open.
//!
//! Files are opened when they are read and the one that was opened first is closed when there are too many. A file that is being read stays open until that read is done.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

/// Files that are open at once.
const OPEN_MAX: usize = 256;

/// The open files of what one finder found.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    /// Files that are open, the one opened first in front.
    open: Mutex<VecDeque<Weak<File>>>,
}

/// A file that is opened when it is read.
#[derive(Debug)]
pub(crate) struct File {
    path: PathBuf,
    handle: Mutex<Option<Arc<fs::File>>>,
    handles: Weak<Handles>,
    this: Weak<File>,
}

impl Handles {
    pub(crate) fn register(self: &Arc<Self>, path: PathBuf) -> Arc<File> {
        let handles = Arc::downgrade(self);
        Arc::new_cyclic(|this| File { path, handle: Mutex::new(None), handles, this: Weak::clone(this) })
    }

    /// A file was opened: closes others beyond `most`.
    fn opened(&self, file: Weak<File>, most: usize) {
        let Ok(mut open) = self.open.lock() else {
            return;
        };
        open.push_back(file);
        while open.len() > most {
            if let Some(oldest) = open.pop_front().and_then(|file| file.upgrade()) {
                oldest.close();
            }
        }
    }
}

impl File {
    /// A file that is open already and stays so, because it cannot be opened again.
    pub(crate) fn kept(path: PathBuf, file: fs::File) -> Arc<Self> {
        let handle = Mutex::new(Some(Arc::new(file)));
        Arc::new_cyclic(|this| Self { path, handle, handles: Weak::new(), this: Weak::clone(this) })
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
        if let Some(handle) = self.handle.lock().ok().and_then(|handle| handle.clone()) {
            return Ok(handle);
        }
        let opened = fs::File::open(&self.path).or_else(|error| {
            // Other parts of the process may hold files too.
            let Some(handles) = self.handles.upgrade().filter(|_| is_too_many(&error)) else {
                return Err(error);
            };
            handles.opened(Weak::new(), 1);
            fs::File::open(&self.path)
        })?;
        let opened = Arc::new(opened);
        if let Ok(mut handle) = self.handle.lock() {
            *handle = Some(Arc::clone(&opened));
        }
        if let Some(handles) = self.handles.upgrade() {
            handles.opened(Weak::clone(&self.this), OPEN_MAX);
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
