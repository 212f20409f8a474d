//! The selections that recorders published in the folder of this process' memory. A program that
//! starts while a session runs records its first events by them, before any recorder knows it; it
//! never waits for one.
//!
//! ```text
//! begins ── own recorder's file, root's file ── a recorder holds the lock? ── no: nothing
//!                                                 └ yes: a copy, for events that are defined now
//! ```
//!
//! The copy applies as long as the recorder leaves its number in the program's memory.

#![allow(unsafe_code, reason = "system calls, and a copy in pages of its own")]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use kymo_schema::published::{BYTES_MAX, PublishedCandidate, PublishedSelection, PublishedSession, event_of};

use crate::pages;
use crate::place::{Descriptor, PathBuffer, stat_field};

/// Files that may be there: of the user's recorder, and of root's.
const FILES: usize = 2;
/// Longer paths of executables match no pattern.
const PATH_MAX: usize = 3072;
/// Ancestors that this process looks at.
const ANCESTORS_MAX: usize = 64;

/// A copy of published selections; zeros in a child, which reads them again.
pub(crate) struct StartSelection {
    /// Number of each selection; 0: there is none.
    pub(crate) numbers: [u64; FILES],
    /// The session that the process belongs to, if any.
    tag: AtomicPtr<u8>,
    tag_bytes: AtomicUsize,
    pid: u32,
    name: [u8; 16],
    path: [u8; PATH_MAX],
    path_bytes: usize,
    text_bytes: [usize; FILES],
    texts: [[u8; BYTES_MAX]; FILES],
}

/// Reads the selections; `None`: no recorder has published one here.
pub(crate) fn read(folder: &Descriptor, name: [u8; 16], path: &[u8]) -> Option<&'static StartSelection> {
    // Safety: they cannot fail.
    let (user, pid) = unsafe { (libc::geteuid(), libc::getpid() as u32) };
    let roots = open(folder, 0);
    let own = if user == 0 { None } else { open(folder, user) };
    if own.is_none() && roots.is_none() {
        return None;
    }
    let pages = pages::own(size_of::<StartSelection>())?.cast::<StartSelection>();
    // Safety: the pages are large enough, zeros are a valid value, and they stay mapped.
    let this: &'static mut StartSelection = unsafe { &mut *pages.as_ptr() };
    (this.pid, this.name) = (pid, name);
    if let Some(room) = this.path.get_mut(..path.len()) {
        room.copy_from_slice(path);
        this.path_bytes = path.len();
    }
    for (number, file) in [own, roots].into_iter().enumerate() {
        let Some(file) = file else { continue };
        let mut length = 0;
        while let Some(room) = this.texts[number].get_mut(length..).filter(|room| !room.is_empty()) {
            match file.read(room) {
                0 => break,
                read => length += read,
            }
        }
        this.text_bytes[number] = length;
        this.numbers[number] = this.selection(number).map_or(0, |selection| selection.number);
    }
    Some(this)
}

impl StartSelection {
    fn selection(&self, file: usize) -> Option<PublishedSelection<'_>> {
        PublishedSelection::read(core::str::from_utf8(&self.texts[file][..self.text_bytes[file]]).ok()?)
    }

    fn sessions(&self) -> impl Iterator<Item = PublishedSession<'_>> {
        (0..FILES).filter_map(|file| self.selection(file)).flat_map(PublishedSelection::sessions)
    }

    /// The number under which this copy applies.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.into_iter().max().unwrap_or(0)
    }

    fn candidate(&self) -> PublishedCandidate<'_> {
        let name = self.name.split(|byte| *byte == 0).next().unwrap_or_default();
        let text = |bytes| core::str::from_utf8(bytes).unwrap_or_default();
        PublishedCandidate {
            pid: self.pid,
            name: text(name),
            path: text(&self.path[..self.path_bytes]),
            tag: self.tag().and_then(|tag| core::str::from_utf8(tag).ok()),
        }
    }

    fn tag(&self) -> Option<&'static [u8]> {
        let tag = NonNull::new(self.tag.load(Ordering::Acquire))?;
        // Safety: the length was stored before the pointer, and the text is static.
        Some(unsafe { core::slice::from_raw_parts(tag.as_ptr(), self.tag_bytes.load(Ordering::Relaxed)) })
    }

    /// The process belongs to a session.
    pub(crate) fn is_of(&self, session: &'static [u8]) {
        self.tag_bytes.store(session.len(), Ordering::Relaxed);
        self.tag.store(session.as_ptr().cast_mut(), Ordering::Release);
    }

    /// Whether the session of the process is among these.
    pub(crate) fn has_session(&self) -> bool {
        let tag = self.tag();
        self.sessions().any(|session| session.starts.is_some_and(|(name, _)| tag == Some(name.as_bytes())))
    }

    /// Contexts that events of this process carry for sessions that take it.
    pub(crate) fn contexts(&self) -> u64 {
        let program = self.candidate();
        let wanting = self.sessions().filter(|session| session.takes_program(&program));
        wanting.fold(0, |all, session| all | session.contexts)
    }

    /// Whether a session may want an event.
    pub(crate) fn wants(&self, definition: &[u8]) -> bool {
        let (Some((event, level)), program) = (event_of(definition), self.candidate()) else { return false };
        self.sessions().any(|session| session.takes_program(&program) && session.takes(&program, event, level))
    }

    /// The session that an ancestor of this process was started for: the name, and contexts. So a
    /// program whose environment was cleared is found too.
    pub(crate) fn of_ancestors(&'static self) -> Option<(&'static [u8], u64)> {
        let mut starting = self.sessions().filter_map(|session| Some((session.starts?, session.contexts)));
        starting.find(|((_, pid), _)| descends_from(*pid)).map(|((tag, _), contexts)| (tag.as_bytes(), contexts))
    }
}

/// Opens the file of a user's recorder, if that recorder lives.
fn open(folder: &Descriptor, user: u32) -> Option<Descriptor> {
    let mut name = PathBuffer::new();
    name.push_number(user.into(), 10)?.push(b".selection")?;
    let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let file = Descriptor::open_in(folder.0, name.as_c_str(), flags)?;
    // Safety: `found` has room for the result, and the descriptor is open.
    unsafe {
        let mut found: libc::stat = core::mem::zeroed();
        let is_its = libc::fstat(file.0, &raw mut found) == 0
            && found.st_uid == user
            && found.st_mode & (libc::S_IFMT | 0o022) == libc::S_IFREG;
        // The recorder holds a lock as long as it lives, and the kernel gives it up with the
        // recorder. A file without a lock is a dead recorder's: no process would drain.
        let is_locked = || {
            let asked = libc::syscall(libc::SYS_flock, file.0, libc::LOCK_SH | libc::LOCK_NB);
            asked != 0 && *libc::__errno_location() == libc::EWOULDBLOCK
        };
        (is_its && is_locked()).then_some(file)
    }
}

/// Whether a process is an ancestor of this one.
fn descends_from(wanted: u32) -> bool {
    // Safety: it cannot fail.
    let mut pid = unsafe { libc::getppid() } as u32;
    for _ in 0..ANCESTORS_MAX {
        if pid == wanted {
            return true;
        }
        match parent(pid) {
            Some(parent) if pid > 1 => pid = parent,
            _ => return false,
        }
    }
    false
}

/// The parent of a process, as far as this process may know.
fn parent(pid: u32) -> Option<u32> {
    let mut path = PathBuffer::new();
    path.push(b"/proc/")?.push_number(pid.into(), 10)?.push(b"/stat")?;
    let mut text = [0; 512];
    let length = Descriptor::open(path.as_c_str(), libc::O_RDONLY | libc::O_CLOEXEC)?.read(&mut text);
    let field = stat_field(text.get(..length)?, 1)?;
    core::str::from_utf8(field).ok()?.parse().ok()
}
