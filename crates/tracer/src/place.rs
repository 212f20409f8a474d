//! The folder where a recorder looks for programs, accessible to its user alone.

#![allow(unsafe_code, reason = "system calls")]

use core::ffi::CStr;

/// Maximum bytes of a path.
const PATH_MAX: usize = 256;

/// A path that is built without allocating memory.
pub(crate) struct PathBuffer {
    bytes: [u8; PATH_MAX],
    length: usize,
}

impl PathBuffer {
    /// An empty path.
    pub(crate) fn new() -> Self {
        Self { bytes: [0; PATH_MAX], length: 0 }
    }

    /// The folder: `kymo` in `$XDG_RUNTIME_DIR`, else `/dev/shm/kymo-UID`.
    pub(crate) fn folder() -> Option<Self> {
        let mut path = Self::new();
        let named = secure_variable(c"XDG_RUNTIME_DIR").map(CStr::to_bytes);
        match named.filter(|folder| folder.first() == Some(&b'/')) {
            Some(folder) => path.push(folder)?.push(b"/kymo")?,
            None => {
                // Safety: it cannot fail.
                let user = unsafe { libc::geteuid() };
                path.push(b"/dev/shm/kymo-")?.push_number(user.into(), 10)?
            }
        };
        Some(path)
    }

    pub(crate) fn push(&mut self, more: &[u8]) -> Option<&mut Self> {
        // The last byte stays zero, as the terminator.
        let room = self.bytes.get_mut(self.length..PATH_MAX - 1)?.get_mut(..more.len())?;
        room.copy_from_slice(more);
        self.length += more.len();
        Some(self)
    }

    pub(crate) fn push_number(&mut self, number: u64, base: u64) -> Option<&mut Self> {
        if number >= base {
            self.push_number(number / base, base)?;
        }
        self.push(&[b"0123456789abcdef"[(number % base) as usize]])
    }

    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }

    /// Opens the folder, and creates it if necessary. It must belong to this user, and must be
    /// inaccessible to others.
    pub(crate) fn open_folder(&self) -> Option<Descriptor> {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_RDONLY;
        // Safety: the path is NUL-terminated, and `found` has room for the result.
        unsafe {
            libc::mkdir(self.as_c_str().as_ptr(), 0o700);
            let folder = Descriptor::open(self.as_c_str(), flags)?;
            let mut found: libc::stat = core::mem::zeroed();
            let is_ours = libc::fstat(folder.0, &raw mut found) == 0
                && found.st_uid == libc::geteuid()
                && found.st_mode & 0o077 == 0;
            is_ours.then_some(folder)
        }
    }
}

/// An open file descriptor.
pub(crate) struct Descriptor(pub(crate) libc::c_int);

impl Descriptor {
    /// Wraps a descriptor, and moves it if it has the number of a standard stream: a program that
    /// closed its standard streams may still write to these numbers.
    pub(crate) fn new(number: libc::c_int) -> Option<Self> {
        let this = (number >= 0).then_some(Self(number))?;
        if number > libc::STDERR_FILENO { Some(this) } else { this.numbered(libc::STDERR_FILENO + 1) }
    }

    /// Opens a file. This type uses plain system calls, because the C library's functions are
    /// cancellation points of threads; events are not.
    pub(crate) fn open(path: &CStr, flags: libc::c_int) -> Option<Self> {
        Self::open_in(libc::AT_FDCWD, path, flags)
    }

    /// Like [`open`](Self::open), relative to an open folder. A new file is accessible to this user
    /// alone.
    pub(crate) fn open_in(folder: libc::c_int, path: &CStr, flags: libc::c_int) -> Option<Self> {
        // Safety: the path is NUL-terminated.
        Self::new(unsafe { libc::syscall(libc::SYS_openat, folder, path.as_ptr(), flags, 0o600) } as libc::c_int)
    }

    /// Reads the next bytes and returns their number; 0 also on errors.
    pub(crate) fn read(&self, into: &mut [u8]) -> usize {
        // Safety: the buffer has that length.
        let read = unsafe { libc::syscall(libc::SYS_read, self.0, into.as_mut_ptr(), into.len()) };
        usize::try_from(read).unwrap_or(0)
    }

    /// Duplicates the descriptor to the first free number from `least` on.
    pub(crate) fn numbered(&self, least: libc::c_int) -> Option<Self> {
        // Safety: the descriptor belongs to this value.
        let number = unsafe { libc::fcntl(self.0, libc::F_DUPFD_CLOEXEC, least) };
        (number >= 0).then_some(Self(number))
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // Safety: the descriptor belongs to this value.
        unsafe { libc::syscall(libc::SYS_close, self.0) };
    }
}

/// An environment variable; `None` in a program with privileges.
pub(crate) fn secure_variable(name: &CStr) -> Option<&'static CStr> {
    if is_privileged() {
        return None;
    }
    // Safety: the name is NUL-terminated, and so is the value.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value))
    }
}

/// Whether every process that may write to this user's files may also inspect this process. If not,
/// this process evaluates no filters.
pub(crate) fn may_be_looked_into() -> bool {
    // Safety: the call has no side effects.
    !is_privileged() && unsafe { libc::prctl(libc::PR_GET_DUMPABLE) } == 1
}

/// Whether the program has more privileges than its user, who would own its memory: another group,
/// or capabilities. Such a program has no memory that a recorder could find.
pub(crate) fn has_more_than_its_user() -> bool {
    // Safety: they cannot fail.
    is_privileged() && unsafe { libc::geteuid() == libc::getuid() }
}

/// Whether the program has privileges that its starter lacks: `AT_SECURE`.
pub(crate) fn is_privileged() -> bool {
    // Safety: the call returns a value that the kernel set when the program began.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// A field of `/proc/PID/stat`: 0 is the state, the first one after the process name. The name may
/// contain any character; it ends at the last parenthesis.
pub(crate) fn stat_field(text: &[u8], field: usize) -> Option<&[u8]> {
    let behind = text.iter().rposition(|byte| *byte == b')').map(|at| &text[at + 1..])?;
    behind.split(|byte| *byte == b' ').filter(|field| !field.is_empty()).nth(field)
}

/// Maximum bytes of a session's name.
pub(crate) const SESSION_BYTES_MAX: usize = 64;

/// Inode of a file; 0: the file does not exist.
pub(crate) fn inode(path: &CStr) -> u64 {
    // Safety: the path is NUL-terminated, and `found` has room for the result.
    unsafe {
        let mut found: libc::stat = core::mem::zeroed();
        if libc::stat(path.as_ptr(), &raw mut found) == 0 { found.st_ino } else { 0 }
    }
}

/// Parses decimal digits.
pub(crate) fn number(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |number: u64, digit| number.wrapping_mul(10).wrapping_add(digit.wrapping_sub(b'0').into()))
}

/// Bytes of the executable's path that a program tells.
pub(crate) const EXECUTABLE_MAX: usize = 3072;

/// The path of the executable; empty: unknown.
pub(crate) fn executable_path(buffer: &mut [u8; EXECUTABLE_MAX]) -> &[u8] {
    // Safety: the buffer has that length, and only the bytes that were written are used.
    let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) };
    buffer.get(..usize::try_from(length).unwrap_or(0)).unwrap_or(&[])
}
