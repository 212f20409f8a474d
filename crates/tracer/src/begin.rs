//! How the memory of a process begins, with its first event or before it: a file in the folder that recorders look at, and everything that
//! they find in it. A child begins again, with what was there in its parent.

#![allow(unsafe_code, reason = "memory that is shared")]

use core::ffi::CStr;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use kymo_lane::{Arena, Bell, Identity, Layout, Mapped, Memory, Program, Runs};

use crate::leftovers::{in_parent, sweep};
use crate::pages::{self, PAGE};
use crate::place::{Descriptor, Path, has_more_than_its_user, secure_variable};
use crate::process::{PROCESS, Process, WINDOW};
use crate::{arena, bell, clock, context, event, filter, interrupted, thread};

/// The memory of this process; it begins if it has not.
pub(crate) fn here() -> Option<&'static Process> {
    Process::now().or_else(begin).or_else(give_up)
}

/// There is no memory to record to: nobody is to try that again with each event.
#[cold]
fn give_up() -> Option<&'static Process> {
    if let Some(window) = NonNull::new(WINDOW.load(Ordering::Acquire)) {
        pages::make_zero(window, Layout::default().inherited_bytes() as usize);
    }
    None
}

#[cold]
fn begin() -> Option<&'static Process> {
    let before = PROCESS.load(Ordering::Acquire);
    // Safety: what was put there once stays.
    if let Some(begun) = unsafe { before.as_ref() }.filter(|begun| begun.is_own()) {
        // A handler has called fork while its parent's was looked at, and its child has begun by now.
        return Some(begun);
    }
    let is_off = || secure_variable(c"KYMO").is_some_and(|value| value.to_bytes() == b"off");
    if has_more_than_its_user() || before.is_null() && is_off() {
        return None;
    }
    let layout = pages::layout()?;
    let page = pages::own(PAGE)?;
    let session = session();
    let Some(File { base, window, path, bell }) = file(&layout, session) else {
        pages::unmap(page, PAGE);
        return None;
    };
    if before.is_null() {
        first();
    }
    // Safety: all of the layout is mapped there, for as long as the process lives.
    let memory = unsafe { Mapped::new(base.as_ptr(), pages::reserve, bell::ring) };
    const { assert!(size_of::<Process>() <= PAGE, "it fits into its page") };
    let process = page.cast::<Process>();
    let arena = arena::map();
    // Safety: it cannot fail.
    let pid = unsafe { libc::getpid() } as u32;
    let is_there = AtomicU32::new(0);
    // In a child it is where its parent's was.
    let seen = NonNull::new(WINDOW.load(Ordering::Acquire));
    // Safety: the page is ours, and large enough.
    unsafe {
        let window = seen.unwrap_or(window);
        process.write(Process { is_there, pid, memory, base, window, layout, path, arena: arena.ok() });
    };
    // Safety: it was just written, and stays.
    let this: &'static Process = unsafe { process.as_ref() };
    let is_told = this.tell(arena, session);
    if is_told {
        this.inherit();
        bell.iter().for_each(|bell| this.program().has_bell(bell));
        this.program().show();
    }
    this.is_there.store(1, Ordering::Release);
    let begins = || PROCESS.compare_exchange(before, process.as_ptr(), Ordering::AcqRel, Ordering::Acquire).is_ok();
    if !is_told || !begins() {
        // Another thread was faster, or there is no memory.
        this.remove();
        arena::unmap(this.arena);
        pages::unmap(window, layout.inherited_bytes() as usize);
        pages::unmap(base, layout.bytes() as usize);
        pages::unmap(page, PAGE);
        return Process::now();
    }
    match seen {
        Some(seen) => pages::move_to(window, seen, layout.inherited_bytes() as usize),
        None => WINDOW.store(window.as_ptr(), Ordering::Release),
    }
    Some(this)
}

impl Process {
    /// Everything that a recorder finds; whether there is memory for it.
    fn tell(&self, arena: Result<Arena, kymo_lane::NoArena>, session: Option<(&[u8], u64)>) -> bool {
        let mut path = [0; 3072];
        // Safety: so many bytes are there, and nothing is done with what is not.
        let (user, length) = unsafe {
            let length = libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast(), path.len());
            (libc::geteuid(), length)
        };
        let identity = Identity {
            pid: self.pid,
            started: started(),
            pid_namespace: inode(c"/proc/self/ns/pid"),
            user,
            clock: clock::choose(secure_variable(c"KYMO_CLOCK").is_none_or(|value| value.to_bytes() != b"monotonic")),
            name: thread::name(),
            path: path.get(..usize::try_from(length).unwrap_or(0)).unwrap_or(&[]),
            arena,
        };
        let (from, to) = (self.layout.control(0), self.layout.inherited_bytes());
        if session.is_some() && is_open_in_parent() && self.memory.reserve(from, to - from) {
            // The recorder comes later, and switches off what it does not want; what is recorded until then it can throw away. When the
            // session is over, it also switches off what has no event yet.
            (from..to).step_by(ON.len()).for_each(|at| self.memory.put(at, &ON));
        }
        let Some(program) = Program::begin(&self.memory, self.layout, &identity) else { return false };
        if let Some((_, contexts)) = session {
            program.carry(contexts);
        }
        event::define_all(&program);
        context::define_all(&program);
        true
    }

    /// What was on in the parent is on. Filters that the parent has never asked are not known here: their events are on.
    fn inherit(&self) {
        let window = WINDOW.load(Ordering::Acquire);
        if window.is_null() {
            return;
        }
        filter::inherit(&self.program());
        for (id, _) in event::events() {
            // Safety: a control byte is there for each id.
            let was = unsafe { window.add(self.layout.control(id) as usize).read_volatile() };
            let is_unknown = was > 1 && filter::known(was) == Runs::NotYet;
            self.program().switch(id, if is_unknown { 1 } else { was });
        }
    }
}

/// Whether events that a parent of this process would define now are on from the begin; without a parent that has any, they may be.
fn is_open_in_parent() -> bool {
    let Some(window) = NonNull::new(WINDOW.load(Ordering::Acquire)) else { return true };
    // The last one that has memory, as an event before it has.
    let id = (event::ids().max(1).next_multiple_of(PAGE as u32) - 1) as u16;
    // Safety: it is mapped. Where that event is there, it is switched as it is wanted, and not as those behind it.
    u32::from(id) >= event::ids() && unsafe { window.add(Layout::default().control(id) as usize).read_volatile() } == 1
}

/// What is done once, and not again in children.
fn first() {
    thread::find_cpu();
    thread::make_key();
    stay();
    // For systems that only say that they give children zeros, as emulators do; children that `fork` does not make go wrong there.
    // Safety: the function may be called in a child.
    unsafe { libc::pthread_atfork(Some(interrupted::before_fork), Some(in_parent), Some(in_child)) };
}

/// The library that this is part of stays, also when a program lets go of it: what threads do when they end is part of it.
fn stay() {
    // Safety: an address of this library is looked up, and what is found lives while the library does.
    unsafe {
        let mut found: libc::Dl_info = core::mem::zeroed();
        let here = stay as *const libc::c_void;
        if libc::dladdr(here, &raw mut found) != 0 && !found.dli_fname.is_null() {
            libc::dlopen(found.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}

/// In a child, nothing is there.
unsafe extern "C" fn in_child() {
    thread::forget();
    interrupted::in_child();
    // Safety: what was put there stays.
    if let Some(process) = unsafe { PROCESS.load(Ordering::Acquire).as_ref() } {
        process.is_there.store(0, Ordering::Release);
    }
}

/// A file that was made: where all of it and the window of control bytes are mapped, and the bell of its folder.
struct File {
    base: NonNull<u8>,
    window: NonNull<u8>,
    path: Path,
    bell: Option<Bell>,
}

/// Makes a file of that layout.
fn file(layout: &Layout, session: Option<(&[u8], u64)>) -> Option<File> {
    let mut path = Path::folder()?;
    let folder = path.open_folder()?;
    let mut name = [0; 8];
    // Safety: so many bytes are there.
    let random = unsafe { libc::syscall(libc::SYS_getrandom, name.as_mut_ptr(), name.len(), 0) };
    if random != name.len() as libc::c_long {
        return None;
    }
    path.push(b"/")?.push_number(u64::from_le_bytes(name) | 1 << 63, 16)?;
    if let Some((session, _)) = session {
        path.push(b"-")?.push(session)?;
    }
    path.push(b".ctl")?;
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let made = Descriptor::open(path.as_c_str(), flags)?;
    sweep(&folder);
    let bell = bell::of_folder(&folder);
    drop(folder);
    let (all, seen) = (layout.bytes() as usize, layout.inherited_bytes() as usize);
    let base = pages::share(made.0, all).filter(|base| {
        // Safety: it is mapped.
        let is_ours = unsafe { libc::madvise(base.as_ptr().cast(), all, libc::MADV_DONTFORK) == 0 };
        is_ours && pages::reserve_first(&made, base.as_ptr(), layout)
    });
    let window = base.and_then(|_| pages::share(made.0, seen));
    let (Some(base), Some(window)) = (base, window) else {
        base.into_iter().for_each(|base| pages::unmap(base, all));
        // Safety: the path ends with a zero.
        unsafe { libc::unlink(path.as_c_str().as_ptr()) };
        return None;
    };
    Some(File { base, window, path, bell })
}

/// Control bytes of events that are on.
const ON: [u8; PAGE] = [1; PAGE];

/// The session of a recorder that this process was started for, if any: `KYMO_SESSION`. Its memory is known by it, and all of its events
/// are on from the begin, so that nothing is lost before the recorder has found it; they carry what the bits of `KYMO_CONTEXTS` say. A
/// session that is over is none. What was [told](record_for) has its say over both.
fn session() -> Option<(&'static [u8], u64)> {
    if let Some(name) = NonNull::new(SESSION.load(Ordering::Acquire)) {
        // Safety: so many bytes were put there before that was seen, and stay.
        let name = unsafe { core::slice::from_raw_parts(name.as_ptr(), SESSION_BYTES.load(Ordering::Relaxed)) };
        return Some((name, SESSION_CONTEXTS.load(Ordering::Relaxed)));
    }
    let session = secure_variable(c"KYMO_SESSION")?.to_bytes();
    let contexts = secure_variable(c"KYMO_CONTEXTS").map_or(0, |value| number(value.to_bytes()));
    (is_plain(session) && !is_over(session)).then_some((session, contexts))
}

fn is_plain(session: &[u8]) -> bool {
    let is_plain = session.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
    is_plain && (1..=SESSION_BYTES_MAX).contains(&session.len())
}

/// Says for which session this process records, as `KYMO_SESSION` and `KYMO_CONTEXTS` do. It holds if no event was registered before; the
/// first call counts. A name has 1 to 64 letters, digits, `-`, `_` and `.`.
pub fn record_for(session: &'static str, contexts: u64) {
    let is_first = || SESSION_BYTES.compare_exchange(0, session.len(), Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if is_plain(session.as_bytes()) && is_first() {
        SESSION_CONTEXTS.store(contexts, Ordering::Relaxed);
        SESSION.store(session.as_ptr().cast_mut(), Ordering::Release);
    }
}

/// What [`record_for`] was told.
static SESSION: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static SESSION_BYTES: AtomicUsize = AtomicUsize::new(0);
static SESSION_CONTEXTS: AtomicU64 = AtomicU64::new(0);

/// Whether the recorder has taken back the mark of a session, in the folder that `KYMO_SESSIONS` names. Who does not see that folder, in
/// a container or as another user, does not know.
fn is_over(session: &[u8]) -> bool {
    let Some(folder) = secure_variable(c"KYMO_SESSIONS").map(CStr::to_bytes) else { return false };
    // Safety: the path ends with a zero.
    let allows = |path: &Path, what| unsafe { libc::access(path.as_c_str().as_ptr(), what) == 0 };
    let mut path = Path::new();
    let is_visible = path.push(folder).is_some_and(|path| allows(path, libc::X_OK));
    let is_named = [&b"/"[..], session, b".started"].iter().all(|part| path.push(part).is_some());
    is_visible && is_named && !allows(&path, libc::F_OK)
}

/// Bytes of a session's name.
const SESSION_BYTES_MAX: usize = 64;

/// The inode of a file; 0: there is none.
fn inode(path: &CStr) -> u64 {
    // Safety: the path ends with a zero, and what is filled in is there.
    unsafe {
        let mut found: libc::stat = core::mem::zeroed();
        if libc::stat(path.as_ptr(), &raw mut found) == 0 { found.st_ino } else { 0 }
    }
}

/// When this process began, in the clock ticks that the system counts it in; 0: it does not say.
fn started() -> u64 {
    let mut text = [0; 1024];
    let file = Descriptor::open(c"/proc/self/stat", libc::O_RDONLY | libc::O_CLOEXEC);
    let length = file.map_or(0, |file| file.read(&mut text));
    let text = &text[..length];
    // The name before it may have anything in it but ends with the last parenthesis.
    let behind = text.iter().rposition(|byte| *byte == b')').map_or(&[][..], |at| &text[at + 1..]);
    number(behind.split(|byte| *byte == b' ').filter(|field| !field.is_empty()).nth(19).unwrap_or(&[]))
}

/// The number that decimal digits say.
fn number(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |number: u64, digit| number.wrapping_mul(10).wrapping_add(digit.wrapping_sub(b'0').into()))
}
