//! The bell of a folder, with which programs wake the recorder: a word of a file that only the
//! kernel reads and writes.
//!
//! ```text
//! program    one system call: the system adds 1 to the word, and wakes waiters       no descriptor, no path, no lock
//! recorder   one system call: waits unless the word is another than it was
//! ```
//!
//! All programs and recorders of a folder map the file, and each of them may truncate it; an
//! ordinary access would then raise a signal. So only the kernel accesses the word, in system calls
//! that return an error instead. A program maps the bell when it begins, and its children inherit
//! the mapping.

#![allow(unsafe_code, reason = "system calls")]

use core::ffi::{CStr, c_int};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::pages::{self, Errno, PAGE};
use crate::place::Descriptor;

/// File name of the bell in its folder.
pub const BELL_NAME: &CStr = c"bell";

/// Futex operation that adds 1 unconditionally. The comparison that the operation also has stays 0,
/// and its count of wakeups is 0: it wakes no second set of waiters.
const ADD_ONE: c_int = libc::FUTEX_OP_ADD << 28 | 1 << 12;

/// The word of the bell that this process rings, and the device and inode of its file.
static WORD: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static DEVICE: AtomicU64 = AtomicU64::new(0);
static INODE: AtomicU64 = AtomicU64::new(0);

/// A mapped bell.
#[derive(Debug)]
pub struct Bell {
    word: NonNull<u8>,
    which: kymo_lane::BellIdentity,
}

// Safety: only the kernel accesses the mapped word.
unsafe impl Send for Bell {}
// Safety: only the kernel accesses the mapped word.
unsafe impl Sync for Bell {}

impl Bell {
    /// Maps the bell of a file, which must be accessible to this user alone; extends the file if
    /// necessary. `None`: the file cannot be a bell.
    #[must_use]
    pub fn map(descriptor: c_int) -> Option<Self> {
        // Safety: `found` has room for the result.
        let found = unsafe {
            let mut found: libc::stat = core::mem::zeroed();
            (libc::fstat(descriptor, &raw mut found) == 0).then_some(found)
        }?;
        let which = which(&found)?;
        let word = pages::share(descriptor, PAGE)?;
        Some(Self { word, which })
    }

    /// Identity of the bell.
    #[must_use]
    pub fn which(&self) -> kymo_lane::BellIdentity {
        self.which
    }

    /// Rings the bell; returns whether it still is one.
    pub fn ring(&self) -> bool {
        ring_at(self.word.as_ptr())
    }

    /// Waits until the word differs from `known`; may return early. `false`: it no longer is a
    /// bell.
    #[must_use]
    pub fn wait(&self, known: u32) -> bool {
        let _errno = Errno::keep();
        // Safety: the kernel returns an error if the word is not mapped.
        unsafe {
            let forever = core::ptr::null::<libc::timespec>();
            // The operation is not the private one: programs and recorder are different processes.
            let woken = libc::syscall(libc::SYS_futex, self.word.as_ptr(), libc::FUTEX_WAIT, known, forever);
            // `EAGAIN`: it has rung before the call. Any other error means that the page is gone,
            // and waiting again would spin.
            woken == 0 || matches!(*libc::__errno_location(), libc::EAGAIN | libc::EINTR)
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        pages::unmap(self.word, PAGE);
    }
}

/// Identity of a bell from its file's status; `None`: the file cannot be a bell.
fn which(found: &libc::stat) -> Option<kymo_lane::BellIdentity> {
    // Safety: it cannot fail.
    let user = unsafe { libc::geteuid() };
    // Another user with access to the file could ring without end, or truncate it.
    let is_one = found.st_mode & libc::S_IFMT == libc::S_IFREG && found.st_uid == user && found.st_mode & 0o077 == 0;
    is_one.then_some(kymo_lane::BellIdentity { device: found.st_dev, inode: found.st_ino })
}

/// The bell of a folder, created if necessary. This process rings it from now on.
pub(crate) fn of_folder(folder: &Descriptor) -> Option<kymo_lane::BellIdentity> {
    if !WORD.load(Ordering::Acquire).is_null()
        && let Some(of_parent) = still_there(folder)
    {
        return Some(of_parent);
    }
    // Without `O_NONBLOCK`, a named pipe in this place could block the program in its first event.
    let flags = libc::O_CREAT | libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let bell = Bell::map(Descriptor::open_in(folder.0, BELL_NAME, flags)?.0)?;
    let which = bell.which;
    // Before the word: its release publishes both.
    DEVICE.store(which.device, Ordering::Relaxed);
    INODE.store(which.inode, Ordering::Relaxed);
    // Another thread may still ring the previous bell: it stays mapped, like this one.
    WORD.store(bell.word.as_ptr(), Ordering::Release);
    // Unmapping it would turn a ring of another thread into a write to other memory that is mapped
    // there later.
    core::mem::forget(bell);
    Some(which)
}

/// The bell that this process inherited from its parent, if it is still the folder's bell.
fn still_there(folder: &Descriptor) -> Option<kymo_lane::BellIdentity> {
    let (device, inode) = (DEVICE.load(Ordering::Relaxed), INODE.load(Ordering::Relaxed));
    // Safety: the name is NUL-terminated, and `found` has room for the result.
    let found = unsafe {
        let mut found: libc::stat = core::mem::zeroed();
        let flags = libc::AT_SYMLINK_NOFOLLOW;
        (libc::fstatat(folder.0, BELL_NAME.as_ptr(), &raw mut found, flags) == 0).then_some(found)
    };
    which(&found?).filter(|known| *known == kymo_lane::BellIdentity { device, inode })
}

/// Rings this process' bell; returns whether there is one.
pub(crate) fn ring() -> bool {
    let word = WORD.load(Ordering::Acquire);
    !word.is_null() && ring_at(word)
}

fn ring_at(word: *mut u8) -> bool {
    let _errno = Errno::keep();
    // Safety: the kernel returns an error if the word is not mapped.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE_OP, c_int::MAX, 0_usize, word, ADD_ONE) >= 0 }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    use super::*;

    /// A single test, because a process has one bell.
    #[test]
    fn a_bell_is_heard_until_it_is_cut_off() {
        let path = std::env::temp_dir().join(std::format!("kymo-bell-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("temporary files may be written");
        let folder = std::ffi::CString::new(path.to_str().expect("it is text")).expect("it has no zeros");
        let folder = Descriptor::open(&folder, libc::O_RDONLY | libc::O_DIRECTORY).expect("it is there");
        assert!(!ring(), "there is none yet");
        let which = of_folder(&folder).expect("it can be made");
        assert_eq!(of_folder(&folder), Some(which), "it is the same");

        let file = std::fs::File::options().read(true).write(true).open(path.join("bell")).expect("it is there");
        let bell = Bell::map(file.as_raw_fd()).expect("it is a bell");
        assert_eq!(bell.which(), which);
        let rung = || {
            let mut word = [0; 4];
            file.read_exact_at(&mut word, 0).expect("it is there");
            u32::from_le_bytes(word)
        };
        // Safety: each thread has its own `errno`.
        unsafe { *libc::__errno_location() = 77 };
        assert!(ring());
        // Safety: each thread has its own `errno`.
        assert_eq!(unsafe { *libc::__errno_location() }, 77);
        assert_eq!(rung(), 1);
        assert!(bell.wait(0), "it was rung before");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                while rung() == 1 {
                    assert!(bell.wait(1));
                }
            });
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(ring());
            waits.join().expect("it is woken");
        });

        // Truncating the file does no harm, and is detected.
        file.set_len(0).expect("it is ours");
        assert!(!ring() && !bell.wait(2));
        // Another file in its place is another bell; a file that is not a regular file of this user
        // alone is no bell.
        std::fs::remove_file(path.join("bell")).expect("it is ours");
        let other = of_folder(&folder).expect("it can be made");
        assert!(other != which && ring());
        std::fs::remove_file(path.join("bell")).expect("it is ours");
        std::fs::write(path.join("bell"), "").expect("it can be made");
        std::fs::set_permissions(path.join("bell"), std::os::unix::fs::PermissionsExt::from_mode(0o622)).expect("so");
        assert_eq!(of_folder(&folder), None);
        std::fs::remove_dir_all(&path).expect("it is ours");
    }
}
