//! Creates the memory of a process, with its first event or before: a file in the folder that
//! recorders watch, with all data that recorders need. A child process creates its own, with the
//! events of its parent.

#![allow(unsafe_code, reason = "memory that is shared")]

use core::ffi::CStr;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use kymo_lane::{
    Arena, BellIdentity, FilterEngine, Identity, JudgeAddresses, Mapped, MemoryLayout, ProgramMemory, ProgramSide,
    STOPPED_AT,
};

use crate::leftovers::{in_parent, sweep};
use crate::pages::{self, PAGE};
use crate::place::{
    Descriptor, EXECUTABLE_MAX, PathBuffer, SESSION_BYTES_MAX, executable_path, has_more_than_its_user, inode, number,
    secure_variable, stat_field,
};
use crate::process::{PROCESS, ProcessState, WINDOW};
use crate::selection::{StartFacts, StartSelection};
use crate::{arena, bell, clock, context, event, filter, interrupted, judge, selection, thread};

/// The memory of this process; creates it if necessary.
pub(crate) fn here() -> Option<&'static ProcessState> {
    ProcessState::now().or_else(begin).or_else(give_up)
}

/// Called when the memory cannot be created. Turns all events off, so that later events do not try
/// again.
#[cold]
fn give_up() -> Option<&'static ProcessState> {
    if let Some(window) = NonNull::new(WINDOW.load(Ordering::Acquire)) {
        pages::make_zero(window, MemoryLayout::default().inherited_bytes() as usize);
    }
    None
}

#[cold]
fn begin() -> Option<&'static ProcessState> {
    let before = PROCESS.load(Ordering::Acquire);
    // Safety: a stored `ProcessState` is never removed.
    if let Some(begun) = unsafe { before.as_ref() }.filter(|begun| begun.is_own()) {
        // A handler called fork while the parent's memory was checked; its child has created its
        // memory by now.
        return Some(begun);
    }
    if has_more_than_its_user() || before.is_null() && is_off() {
        return None;
    }
    let layout = pages::layout()?;
    // A page that children get as zeros: `is_there` is then 0 in them, however they were made.
    let page = pages::own(PAGE)?;
    let mut executable = [0; EXECUTABLE_MAX];
    let executable = executable_path(&mut executable);
    let Some((MappedFile { base, window, path, bell }, selection, session, facts)) = found_place(&layout, executable)
    else {
        pages::unmap(page, PAGE);
        return None;
    };
    if before.is_null() {
        first();
    }
    // Safety: the whole layout is mapped there as long as the process lives.
    let memory = unsafe { Mapped::new(base.as_ptr(), pages::reserve, bell::ring) };
    const { assert!(size_of::<ProcessState>() <= PAGE, "it fits into its page") };
    let process = page.cast::<ProcessState>();
    let arena = arena::map();
    let (pid, is_there) = (facts.pid(), AtomicU32::new(0));
    // In a child process, the control bytes stay at the address that they have in the parent.
    let seen = NonNull::new(WINDOW.load(Ordering::Acquire));
    // Safety: the page is exclusive to this function, and large enough.
    unsafe {
        let window = seen.unwrap_or(window);
        let arena = arena.ok();
        process.write(ProcessState { is_there, pid, memory, base, window, layout, path, arena, selection, facts });
    };
    // Safety: it was just written, and stays mapped if it is used after this function.
    let this: &'static ProcessState = unsafe { process.as_ref() };
    // The file is complete before `show` writes its magic number, and before other threads can find
    // it: a recorder never sees half of it.
    let is_told = this.tell(arena, session, executable);
    if is_told {
        this.inherit();
        bell.iter().for_each(|bell| this.program().has_bell(bell));
        this.program().show();
    }
    // Before the pointer is stored, so that each thread that sees the pointer finds valid fields.
    this.is_there.store(1, Ordering::Release);
    let begins = || PROCESS.compare_exchange(before, process.as_ptr(), Ordering::AcqRel, Ordering::Acquire).is_ok();
    if !is_told || !begins() {
        // Another thread was faster, or there is no memory.
        this.remove();
        arena::unmap(this.arena);
        this.selection.into_iter().for_each(StartSelection::forget);
        pages::unmap(window, layout.inherited_bytes() as usize);
        pages::unmap(base, layout.bytes() as usize);
        pages::unmap(page, PAGE);
        return ProcessState::now();
    }
    // Only the thread that won moves its window. Until then, control bytes are still the parent's,
    // and callsites keep reading them at the same address.
    match seen {
        Some(seen) => pages::move_to(window, seen, layout.inherited_bytes() as usize),
        None => WINDOW.store(window.as_ptr(), Ordering::Release),
    }
    Some(this)
}

/// Whether the environment switches the tracer off.
fn is_off() -> bool {
    secure_variable(c"KYMO").is_some_and(|value| value.to_bytes() == b"off")
}

/// A session's name, and contexts of its events.
type SessionName = (&'static [u8], u64);

/// Creates the file of this process, for the session that it belongs to, if any; with the selections
/// that recorders published there.
fn found_place(
    layout: &MemoryLayout,
    executable: &[u8],
) -> Option<(MappedFile, Option<&'static StartSelection>, Option<SessionName>, StartFacts)> {
    let path = PathBuffer::folder()?;
    let folder = path.open_folder()?;
    let named = session();
    let facts = StartFacts::new(thread::name(), named.map(|(name, _)| name));
    let selection: Option<&'static StartSelection> = selection::read(&folder, &facts, executable).map(|selection| {
        selection.adopt();
        &*selection
    });
    let session = named.or_else(|| selection.and_then(StartSelection::session));
    match file(layout, path, folder, session) {
        Some(file) => Some((file, selection, session, selection.map_or(facts, |selection| selection.facts))),
        None => {
            selection.into_iter().for_each(StartSelection::forget);
            None
        }
    }
}

impl ProcessState {
    /// Writes all data that a recorder needs; returns whether there is memory for it.
    fn tell(&self, arena: Result<Arena, kymo_lane::NoArena>, session: Option<(&[u8], u64)>, executable: &[u8]) -> bool {
        let identity = Identity {
            pid: self.pid,
            started: started(),
            pid_namespace: inode(c"/proc/self/ns/pid"),
            // Safety: it cannot fail.
            user: unsafe { libc::geteuid() },
            clock: clock::choose(secure_variable(c"KYMO_CLOCK").is_none_or(|value| value.to_bytes() != b"monotonic")),
            name: thread::name(),
            path: executable,
            label: secure_variable(c"KYMO_LABEL").map_or(&[], |label| bounded(label.to_bytes())),
            arena,
            // By the clock that was chosen above.
            began: clock::ticks(),
            began_with: self.selection.map_or([0; 2], |selection| selection.numbers),
            // A child has these addresses where its parent has them: it keeps code that refers to them.
            judge: JudgeAddresses {
                function: judge::judge as *const () as u64,
                stopped: self.window.as_ptr() as u64 + STOPPED_AT,
            },
            objects: crate::objects::functions(),
        };
        let (from, to) = (self.layout.control(0), self.layout.inherited_bytes());
        // Without a published selection of the session, all events are on.
        let is_unknown = session.is_some() && !self.selection.is_some_and(StartSelection::has_session);
        if is_unknown && is_open_in_parent() && self.memory.reserve(from, to - from) {
            // The recorder attaches later, and turns off the events that it does not want; it can
            // discard the events recorded until then. When the session ends, it also turns off the
            // control bytes without an event.
            (from..to).step_by(ON.len()).for_each(|at| self.memory.put(at, &ON));
        }
        let Some(program) = ProgramSide::begin(&self.memory, self.layout, &identity) else { return false };
        let selected = self.selection.map_or(0, StartSelection::contexts);
        let contexts = session.map_or(0, |(_, contexts)| contexts) | selected;
        if contexts != 0 {
            program.carry(contexts);
        }
        if let Some(bytes) = self.selection.and_then(StartSelection::pool_bytes) {
            program.limit_pool(bytes);
        }
        // In a child, the events and contexts of its parent, with the same IDs: callsites know the
        // addresses of their control bytes.
        event::define_all(&program);
        context::define_all(&program);
        true
    }

    /// Copies the control bytes of the parent's events. An event with a filter that the parent
    /// never evaluated is turned on instead, because this process does not know the filter.
    fn inherit(&self) {
        let window = WINDOW.load(Ordering::Acquire);
        if window.is_null() {
            return;
        }
        filter::inherit(&self.program());
        for (id, event) in event::events() {
            // Safety: each ID has a control byte.
            let was = unsafe { window.add(self.layout.control(id) as usize).read_volatile() };
            let is_unknown = was > 1 && filter::known(was) == FilterEngine::NotYet;
            let is_wanted = was == 0 && self.begins_on(event.definition());
            self.program().switch(id, if is_unknown || is_wanted { 1 } else { was });
        }
    }
}

/// Whether events that the parent of this process would define now are on from the start; also
/// `true` if there is no parent with events.
fn is_open_in_parent() -> bool {
    let Some(window) = NonNull::new(WINDOW.load(Ordering::Acquire)) else { return true };
    // The last control byte that has memory because an event before it has.
    let id = (event::ids().max(1).next_multiple_of(PAGE as u32) - 1) as u16;
    // Safety: the byte is mapped. If that event exists, its control byte reflects its own switch,
    // and does not stand for later events.
    u32::from(id) >= event::ids()
        && unsafe { window.add(MemoryLayout::default().control(id) as usize).read_volatile() } == 1
}

/// One-time initialization, which child processes inherit.
fn first() {
    thread::find_cpu();
    thread::make_key();
    stay();
    // For systems that only claim to give children zeroed pages, as emulators do; there, children
    // that were not made by `fork` do not work.
    //
    // Safety: the handlers may run in a child.
    unsafe { libc::pthread_atfork(Some(interrupted::before_fork), Some(in_parent), Some(in_child)) };
}

/// Keeps the library that contains this code loaded, even if the program unloads it: the destructor
/// that runs when threads end is part of it.
fn stay() {
    // Safety: the address is in this library, and the result lives as long as the library.
    unsafe {
        let mut found: libc::Dl_info = core::mem::zeroed();
        let here = stay as *const libc::c_void;
        if libc::dladdr(here, &raw mut found) != 0 && !found.dli_fname.is_null() {
            libc::dlopen(found.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}

/// Resets the state in a forked child.
unsafe extern "C" fn in_child() {
    // In this order: `forget` zeros the page of this thread, then interrupted writes are entered
    // there again. `is_there` is last, because `interrupted` still replaces the parent's memory.
    thread::forget();
    interrupted::in_child();
    // Safety: a stored `ProcessState` is never removed.
    if let Some(process) = unsafe { PROCESS.load(Ordering::Acquire).as_ref() } {
        process.is_there.store(0, Ordering::Release);
    }
}

/// A new file: the addresses of its whole mapping and of the window of control bytes, and the bell
/// of its folder.
struct MappedFile {
    base: NonNull<u8>,
    window: NonNull<u8>,
    path: PathBuffer,
    bell: Option<BellIdentity>,
}

/// Creates a file with the given layout in a folder, whose path is given too.
fn file(
    layout: &MemoryLayout,
    mut path: PathBuffer,
    folder: Descriptor,
    session: Option<(&[u8], u64)>,
) -> Option<MappedFile> {
    let mut name = [0; 8];
    // Safety: the buffer has that length.
    let random = unsafe { libc::syscall(libc::SYS_getrandom, name.as_mut_ptr(), name.len(), 0) };
    if random != name.len() as libc::c_long {
        return None;
    }
    // The top bit makes the number 16 digits long. Recorders recognize control files by that.
    path.push(b"/")?.push_number(u64::from_le_bytes(name) | 1 << 63, 16)?;
    if let Some((session, _)) = session {
        path.push(b"-")?.push(session)?;
    }
    path.push(b".ctl")?;
    // In a folder that other users can write to, a name may be taken in advance, also by a link:
    // `O_EXCL` and `O_NOFOLLOW` then refuse it.
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let made = Descriptor::open(path.as_c_str(), flags)?;
    sweep(&folder);
    let bell = bell::of_folder(&folder);
    drop(folder);
    let (all, seen) = (layout.bytes() as usize, layout.inherited_bytes() as usize);
    let base = pages::share(made.0, all).filter(|base| {
        // A child must not write to its parent's lanes, so it does not get this mapping at all. The
        // window below is inherited: callsites read their control bytes without a check.
        // Safety: the range is mapped.
        let is_ours = unsafe { libc::madvise(base.as_ptr().cast(), all, libc::MADV_DONTFORK) == 0 };
        is_ours && pages::reserve_first(&made, base.as_ptr(), layout)
    });
    let window = base.and_then(|_| pages::share(made.0, seen));
    let (Some(base), Some(window)) = (base, window) else {
        base.into_iter().for_each(|base| pages::unmap(base, all));
        // Safety: the path is NUL-terminated.
        unsafe { libc::unlink(path.as_c_str().as_ptr()) };
        return None;
    };
    Some(MappedFile { base, window, path, bell })
}

/// The beginning of a label.
fn bounded(label: &[u8]) -> &[u8] {
    &label[..label.len().min(LABEL_BYTES_MAX)]
}

/// Bytes of a label: as many as Genode has.
const LABEL_BYTES_MAX: usize = 160;

/// One page of control bytes of events that are on.
const ON: [u8; PAGE] = [1; PAGE];

/// The session that this process was started for, if any: `KYMO_SESSION`. The name identifies the
/// file for the recorder. All events are on from the start, so that none is lost before the
/// recorder finds the file; they carry the contexts of the bits in `KYMO_CONTEXTS`. A session that
/// has ended counts as none. A call of [`record_for`] takes precedence over both variables.
fn session() -> Option<(&'static [u8], u64)> {
    if let Some(name) = NonNull::new(SESSION.load(Ordering::Acquire)) {
        // Safety: the length was stored before the pointer, and the name is static.
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

/// Sets the session for which this process records, like `KYMO_SESSION` and `KYMO_CONTEXTS`. The
/// call must precede the registration of any event; the first call counts. A name has 1 to 64
/// letters, digits, `-`, `_` and `.`.
pub fn record_for(session: &'static str, contexts: u64) {
    let is_first = || SESSION_BYTES.compare_exchange(0, session.len(), Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if is_plain(session.as_bytes()) && is_first() {
        // The pointer comes last (release), so that a thread that sees it also sees the other two.
        SESSION_CONTEXTS.store(contexts, Ordering::Relaxed);
        SESSION.store(session.as_ptr().cast_mut(), Ordering::Release);
    }
}

/// Arguments of [`record_for`].
static SESSION: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static SESSION_BYTES: AtomicUsize = AtomicUsize::new(0);
static SESSION_CONTEXTS: AtomicU64 = AtomicU64::new(0);

/// Whether the recorder has removed the marker of a session from the folder that `KYMO_SESSIONS`
/// names. `false` if this process cannot see the folder, in a container or as another user.
fn is_over(session: &[u8]) -> bool {
    let Some(folder) = secure_variable(c"KYMO_SESSIONS").map(CStr::to_bytes) else { return false };
    // Safety: the path is NUL-terminated.
    let allows = |path: &PathBuffer, what| unsafe { libc::access(path.as_c_str().as_ptr(), what) == 0 };
    let mut path = PathBuffer::new();
    let is_visible = path.push(folder).is_some_and(|path| allows(path, libc::X_OK));
    let is_named = [&b"/"[..], session, b".started"].iter().all(|part| path.push(part).is_some());
    is_visible && is_named && !allows(&path, libc::F_OK)
}

/// Start time of this process, in clock ticks of the system; 0: unknown.
fn started() -> u64 {
    let mut text = [0; 1024];
    let file = Descriptor::open(c"/proc/self/stat", libc::O_RDONLY | libc::O_CLOEXEC);
    let length = file.map_or(0, |file| file.read(&mut text));
    number(stat_field(&text[..length], 19).unwrap_or(&[]))
}
