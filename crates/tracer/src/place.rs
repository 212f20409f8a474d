//! Where a recorder looks for programs: a folder that is its user's alone.

#![allow(unsafe_code, reason = "system calls")]

use core::ffi::CStr;

/// Bytes of a path, at most.
const PATH_MAX: usize = 256;

/// A path that is built without memory of anybody's.
pub(crate) struct Path {
    bytes: [u8; PATH_MAX],
    length: usize,
}

impl Path {
    /// An empty one.
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
        // A zero stays behind it.
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

    /// Opens the folder, and makes it if it is not there. It has to be this user's, and nobody else's business.
    pub(crate) fn open_folder(&self) -> Option<Descriptor> {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_RDONLY;
        // Safety: the path ends with a zero, and what is filled in is there.
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

/// An open file.
pub(crate) struct Descriptor(pub(crate) libc::c_int);

impl Descriptor {
    /// It never has the number of a standard file, as what a program closed it still writes to.
    pub(crate) fn new(number: libc::c_int) -> Option<Self> {
        let this = (number >= 0).then_some(Self(number))?;
        if number > libc::STDERR_FILENO { Some(this) } else { this.numbered(libc::STDERR_FILENO + 1) }
    }

    /// Opens a file. What is done with it is done by plain system calls: those of the C library are where threads are cancelled, which
    /// events are not.
    pub(crate) fn open(path: &CStr, flags: libc::c_int) -> Option<Self> {
        Self::open_in(libc::AT_FDCWD, path, flags)
    }

    /// The same, in a folder that is open. A file that is made is this user's alone.
    pub(crate) fn open_in(folder: libc::c_int, path: &CStr, flags: libc::c_int) -> Option<Self> {
        // Safety: the path ends with a zero.
        Self::new(unsafe { libc::syscall(libc::SYS_openat, folder, path.as_ptr(), flags, 0o600) } as libc::c_int)
    }

    /// The next bytes; how many there are, 0 also where they cannot be read.
    pub(crate) fn read(&self, into: &mut [u8]) -> usize {
        // Safety: there is so much room.
        let read = unsafe { libc::syscall(libc::SYS_read, self.0, into.as_mut_ptr(), into.len()) };
        usize::try_from(read).unwrap_or(0)
    }

    /// The same file, with another number: the first one from there on that is free.
    pub(crate) fn numbered(&self, least: libc::c_int) -> Option<Self> {
        // Safety: it is ours.
        let number = unsafe { libc::fcntl(self.0, libc::F_DUPFD_CLOEXEC, least) };
        (number >= 0).then_some(Self(number))
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // Safety: it is ours.
        unsafe { libc::syscall(libc::SYS_close, self.0) };
    }
}

/// A variable of the environment; of a program with privileges, there is none.
pub(crate) fn secure_variable(name: &CStr) -> Option<&'static CStr> {
    if is_privileged() {
        return None;
    }
    // Safety: the name ends with a zero, and what is found does too.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value))
    }
}

/// Whether whoever may write to what this user owns may also look into this process; if not, no filter is asked in it.
pub(crate) fn may_be_looked_into() -> bool {
    // Safety: it only asks.
    !is_privileged() && unsafe { libc::prctl(libc::PR_GET_DUMPABLE) } == 1
}

/// Whether the program has more privileges than its user, to whom its memory would belong: its group or its capabilities are others. Such
/// a one has no memory that a recorder could find.
pub(crate) fn has_more_than_its_user() -> bool {
    // Safety: they cannot fail.
    is_privileged() && unsafe { libc::geteuid() == libc::getuid() }
}

/// Whether the program has privileges that who started it has not.
pub(crate) fn is_privileged() -> bool {
    // Safety: it asks what the system said when the program began.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}
