//! The selections that recorders published in the folder of this process' memory. A program that
//! starts while a session runs records its first events by them, before any recorder knows it; it
//! waits for one only where a user's program runs at an event: no recorder can run that later.
//!
//! ```text
//! begins ── own.selection, root.selection ── a recorder holds the lock? ── no: nothing
//!                                                 └ yes: a copy, for events that are defined now
//! ```
//!
//! The copy applies as long as its number is in the program's memory. A recorder that publishes
//! another one writes the new number there: then each definition reads the file again.

#![allow(unsafe_code, reason = "system calls, and a copy in pages of its own")]

use core::ffi::CStr;
use core::ptr::NonNull;

use kymo_schema::published::{BYTES_MAX, PublishedCandidate, PublishedSelection, PublishedSession, Starter, event_of};

use crate::pages;
use crate::place::{
    Descriptor, EXECUTABLE_MAX, PathBuffer, SESSION_BYTES_MAX, executable_path, inode, number, stat_field,
};

/// Files that may be there: of the user's recorder, and of root's.
const FILES: usize = 2;
/// Ancestors that this process looks at.
const ANCESTORS_MAX: usize = 64;

/// A copy of published selections; zeros in a child, which reads them again.
pub(crate) struct StartSelection {
    /// Number of each selection; 0: there is none.
    pub(crate) numbers: [u64; FILES],
    pub(crate) facts: StartFacts,
    /// Contexts of the session's events, if ancestors of the process told its session.
    adopted: Option<u64>,
    path: [u8; EXECUTABLE_MAX],
    path_bytes: usize,
    text_bytes: [usize; FILES],
    texts: [[u8; BYTES_MAX]; FILES],
}

/// Facts about a process when it began.
#[derive(Clone, Copy)]
pub(crate) struct StartFacts {
    pid: u32,
    name: [u8; 16],
    /// The session that the process belongs to, if any: a copy, because programs may overwrite their
    /// environment.
    tag: [u8; SESSION_BYTES_MAX],
    tag_bytes: usize,
}

impl StartFacts {
    /// Of this process, which was started for a session.
    pub(crate) fn new(name: [u8; 16], session: Option<&[u8]>) -> Self {
        // Safety: it cannot fail.
        let pid = unsafe { libc::getpid() } as u32;
        let mut facts = Self { pid, name, tag: [0; SESSION_BYTES_MAX], tag_bytes: 0 };
        session.into_iter().for_each(|session| facts.belongs_to(session));
        facts
    }

    fn belongs_to(&mut self, session: &[u8]) {
        if let Some(room) = self.tag.get_mut(..session.len()) {
            room.copy_from_slice(session);
            self.tag_bytes = session.len();
        }
    }

    /// The PID.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    fn tag(&self) -> Option<&str> {
        (self.tag_bytes > 0).then(|| text(&self.tag[..self.tag_bytes]))
    }
}

/// Reads the selections; `None`: no recorder has published one here.
pub(crate) fn read(folder: &Descriptor, facts: &StartFacts, path: &[u8]) -> Option<&'static mut StartSelection> {
    let files = [c"own.selection", c"root.selection"].map(|name| open(folder, name));
    if files.iter().all(Option::is_none) {
        return None;
    }
    let pages = pages::own(size_of::<StartSelection>())?.cast::<StartSelection>();
    // Safety: the pages are large enough, zeros are a valid value, and they stay mapped.
    let this: &'static mut StartSelection = unsafe { &mut *pages.as_ptr() };
    (this.facts, this.adopted) = (*facts, None);
    if let Some(room) = this.path.get_mut(..path.len()) {
        room.copy_from_slice(path);
        this.path_bytes = path.len();
    }
    for (number, file) in files.into_iter().enumerate() {
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

/// A copy that is used once.
pub(crate) struct ReadAgain(&'static StartSelection);

impl core::ops::Deref for ReadAgain {
    type Target = StartSelection;

    fn deref(&self) -> &StartSelection {
        self.0
    }
}

impl Drop for ReadAgain {
    fn drop(&mut self) {
        self.0.forget();
    }
}

impl StartSelection {
    /// Reads the selections that are published now, beside the file of this process.
    pub(crate) fn read_again(file: &CStr, facts: &StartFacts) -> Option<ReadAgain> {
        let end = file.to_bytes().iter().rposition(|byte| *byte == b'/')?;
        let mut path = PathBuffer::new();
        path.push(&file.to_bytes()[..end])?;
        let folder = path.open_folder()?;
        let mut executable = [0; EXECUTABLE_MAX];
        read(&folder, facts, executable_path(&mut executable)).map(|copy| ReadAgain(copy))
    }

    /// Whether it has all selections with these numbers.
    pub(crate) fn has(&self, applying: [u64; FILES]) -> bool {
        (0..FILES).all(|file| applying[file] == 0 || applying[file] == self.numbers[file])
    }

    /// Unmaps a copy that was not used after all.
    pub(crate) fn forget(&'static self) {
        pages::unmap(NonNull::from(self).cast(), size_of::<Self>());
    }

    fn selection(&self, file: usize) -> Option<PublishedSelection<'_>> {
        PublishedSelection::read(core::str::from_utf8(&self.texts[file][..self.text_bytes[file]]).ok()?)
    }

    fn sessions(&self) -> impl Iterator<Item = PublishedSession<'_>> {
        (0..FILES).filter_map(|file| self.selection(file)).flat_map(PublishedSelection::sessions)
    }

    fn candidate(&self) -> PublishedCandidate<'_> {
        let StartFacts { pid, name, .. } = &self.facts;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        PublishedCandidate {
            pid: *pid,
            name: text(name),
            path: text(&self.path[..self.path_bytes]),
            tag: self.facts.tag(),
        }
    }

    /// The session that the nearest ancestor of this process was started for, or starts programs for.
    /// So a program whose environment was cleared is found too.
    pub(crate) fn adopt(&mut self) {
        if self.facts.tag_bytes > 0 || self.sessions().all(|session| session.starts.is_none()) {
            return;
        }
        let mut tag = [0; SESSION_BYTES_MAX];
        let mut found = None;
        // Safety: it cannot fail.
        let (mut pid, namespace) = (unsafe { libc::getppid() } as u32, inode(c"/proc/self/ns/pid"));
        for _ in 0..ANCESTORS_MAX {
            let Some((parent, started)) = parent(pid) else { break };
            // The same number may be another process' in another namespace, or later.
            let is_its =
                |starter: &Starter<'_>| (starter.pid, starter.namespace, starter.started) == (pid, namespace, started);
            let mut its =
                self.sessions().filter_map(|session| Some((session.starts.filter(is_its)?.tag, session.contexts)));
            if let Some((name, contexts)) = its.next() {
                if let Some(room) = tag.get_mut(..name.len()) {
                    room.copy_from_slice(name.as_bytes());
                    found = Some((name.len(), contexts));
                }
                break;
            }
            if pid <= 1 {
                break;
            }
            pid = parent;
        }
        if let Some((bytes, contexts)) = found {
            self.facts.belongs_to(&tag[..bytes]);
            self.adopted = Some(contexts);
        }
    }

    /// The session that was found by ancestors: its name, and contexts of its events.
    pub(crate) fn session(&'static self) -> Option<(&'static [u8], u64)> {
        Some((&self.facts.tag[..self.facts.tag_bytes], self.adopted?))
    }

    /// Whether the session of the process is among these.
    pub(crate) fn has_session(&self) -> bool {
        let tag = self.candidate().tag;
        self.sessions().any(|session| session.starts.is_some_and(|starter| tag == Some(starter.tag)))
    }

    /// Contexts that events of this process carry for sessions that take it.
    pub(crate) fn contexts(&self) -> u64 {
        let program = self.candidate();
        let wanting = self.sessions().filter(|session| session.takes_program(&program));
        wanting.fold(0, |all, session| all | session.contexts)
    }

    /// Bytes of this process' pool, if a session takes it: the largest wish, as recorders decide it.
    pub(crate) fn pool_bytes(&self) -> Option<u64> {
        let program = self.candidate();
        self.sessions().filter(|session| session.takes_program(&program)).map(|session| session.pool_bytes).max()
    }

    /// Whether a session may want an event, by the selections with these numbers.
    pub(crate) fn wants(&self, definition: &[u8], applying: [u64; FILES]) -> bool {
        let (Some((event, level)), program) = (event_of(definition), self.candidate()) else { return false };
        let applies = |file: &usize| self.numbers[*file] != 0 && self.numbers[*file] == applying[*file];
        let all = (0..FILES).filter(applies).filter_map(|file| self.selection(file));
        all.flat_map(PublishedSelection::sessions)
            .any(|session| session.takes_program(&program) && session.takes(&program, event, level))
    }
}

impl StartSelection {
    /// Whether this process waits when it defines an event, until its recorder knows it.
    pub(crate) fn waits_for(&self, definition: &[u8]) -> bool {
        let (Some((event, _)), program) = (event_of(definition), self.candidate()) else { return false };
        self.sessions().any(|session| session.takes_program(&program) && session.waits_for(event))
    }
}

/// The text in these bytes, up to the first that is none: the kernel may cut a name inside a
/// character.
fn text(bytes: &[u8]) -> &str {
    match core::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// Opens the file of a recorder that lives.
fn open(folder: &Descriptor, name: &CStr) -> Option<Descriptor> {
    let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let file = Descriptor::open_in(folder.0, name, flags)?;
    // Safety: `found` has room for the result, and the descriptor is open.
    unsafe {
        // Only the folder's owner and root can make files in it. The owner of the file has no
        // meaning here: in a user namespace it may be a number for all users that are unknown there.
        let mut found: libc::stat = core::mem::zeroed();
        let is_its =
            libc::fstat(file.0, &raw mut found) == 0 && found.st_mode & (libc::S_IFMT | 0o022) == libc::S_IFREG;
        // The recorder holds a lock as long as it lives, and the kernel gives it up with the
        // recorder. A file without a lock is a dead recorder's: no process would drain.
        let is_locked = || {
            let asked = libc::syscall(libc::SYS_flock, file.0, libc::LOCK_SH | libc::LOCK_NB);
            asked != 0 && *libc::__errno_location() == libc::EWOULDBLOCK
        };
        (is_its && is_locked()).then_some(file)
    }
}

/// The parent of a process, and when the process started, as far as this process may know.
fn parent(pid: u32) -> Option<(u32, u64)> {
    let mut path = PathBuffer::new();
    path.push(b"/proc/")?.push_number(pid.into(), 10)?.push(b"/stat")?;
    let mut text = [0; 1024];
    let length = Descriptor::open(path.as_c_str(), libc::O_RDONLY | libc::O_CLOEXEC)?.read(&mut text);
    let text = text.get(..length)?;
    Some((number(stat_field(text, 1)?) as u32, number(stat_field(text, 19)?)))
}
