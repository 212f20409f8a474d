//! The bell that programs ring while the recorder looks at them seldom: a word in a file, in the
//! folder where they keep their memory.
//!
//! ```text
//! program ── adds 1, wakes ──> bell ── thread that waits for another number ──> has_rung, and the recorder goes on at once
//! ```
//!
//! The memory of each program says whether it has rung. The recorder hears a program that rings
//! without end once in a millisecond. A bell with a truncated file is gone; then the recorder looks
//! at all programs all the time.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{FallocateFlags, OFlags};

/// Time between two times that the bell is heard.
const PAUSE: Duration = Duration::from_millis(1);

/// The bell of a folder, and the thread that hears it.
#[derive(Debug)]
pub(crate) struct FolderBell {
    which: kymo_lane::BellIdentity,
    said: Arc<BellState>,
}

#[derive(Debug, Default)]
struct BellState {
    has_rung: AtomicBool,
    is_gone: AtomicBool,
}

impl FolderBell {
    /// The bell of a folder, which is made if there is none; `tell` is called when it has rung, or
    /// is gone.
    pub(crate) fn hear(folder: &Path, tell: impl Fn() + Send + 'static) -> io::Result<Self> {
        let path = folder.join(OsStr::from_bytes(kymo_tracer::BELL_NAME.to_bytes()));
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let file = file.open(path)?;
        let bell = kymo_tracer::Bell::map(file.as_raw_fd()).ok_or_else(|| io::Error::other("it is no bell"))?;
        // If this fails, the file gets its memory with the first ring.
        let _ = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 4);
        let (which, said) = (bell.which(), Arc::new(BellState::default()));
        let (its, known) = (Arc::clone(&said), count(&file));
        let wait = move || {
            wait(&file, &bell, known, || {
                its.has_rung.store(true, Ordering::Release);
                tell();
            });
            its.is_gone.store(true, Ordering::Release);
            tell();
        };
        std::thread::Builder::new().name("kymo-hears".to_owned()).spawn(wait)?;
        Ok(Self { which, said })
    }

    /// Identity of the bell; `None`: it is gone.
    pub(crate) fn which(&self) -> Option<kymo_lane::BellIdentity> {
        (!self.said.is_gone.load(Ordering::Acquire)).then_some(self.which)
    }

    /// Whether it has rung since the last call.
    pub(crate) fn has_rung(&self) -> bool {
        self.said.has_rung.swap(false, Ordering::AcqRel)
    }
}

/// How often it was rung.
fn count(file: &File) -> Option<u32> {
    let mut word = [0; 4];
    file.read_exact_at(&mut word, 0).ok().map(|()| u32::from_ne_bytes(word))
}

/// Waits for rings until the bell is gone.
fn wait(file: &File, bell: &kymo_tracer::Bell, mut known: Option<u32>, rung: impl Fn()) {
    while let Some(was) = known {
        if !bell.wait(was) {
            return;
        }
        known = count(file);
        if known != Some(was) {
            rung();
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn it_is_heard_until_somebody_cuts_it_off() {
        let folder = tempfile::tempdir().expect("there is room");
        let (say, told) = mpsc::channel();
        let bell =
            FolderBell::hear(folder.path(), move || say.send(()).expect("somebody waits")).expect("it can be made");
        assert!(bell.which().is_some() && !bell.has_rung());
        let file = File::options().read(true).write(true).open(folder.path().join("bell")).expect("it is there");
        let rings = kymo_tracer::Bell::map(file.as_raw_fd()).expect("it is a bell");
        assert_eq!(Some(rings.which()), bell.which());
        for _ in 0..3 {
            assert!(rings.ring());
            told.recv_timeout(Duration::from_secs(20)).expect("it is heard");
            assert!(bell.has_rung() && !bell.has_rung());
        }
        // The waiting thread may or may not learn that the bell is gone; it is woken when the bell
        // is back.
        file.set_len(0).expect("it is ours");
        assert!(!rings.ring());
        let another = FolderBell::hear(folder.path(), || {}).expect("it is made as long again");
        assert_eq!(another.which(), Some(rings.which()));
        assert!(rings.ring());
        told.recv_timeout(Duration::from_secs(20)).expect("it is heard again");
    }
}
