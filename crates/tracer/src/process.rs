//! The memory of this process that a recorder finds. A child of it, however it was made, begins memory of its own with its first event.
//!
//! ```text
//! control file   control bytes │ lanes, sub-buffers, ...
//! in a child     the parent's    not there; ours are zeros: it begins anew
//! ```

#![allow(unsafe_code, reason = "memory that is shared")]

use core::ffi::CStr;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

use kymo_lane::{Identity, Layout, Mapped, Program};

use crate::pages::{self, PAGE};
use crate::place::{Descriptor, Path};
use crate::{event, thread};

/// What a process knows of its memory; all zeros in a child.
pub(crate) struct Process {
    /// Not 0: the rest is there.
    is_there: AtomicU32,
    memory: Mapped,
    layout: Layout,
    path: Path,
}

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(null_mut());

/// Control bytes before there are any: everything is off.
static NOTHING: [AtomicU8; 1 << 16] = [const { AtomicU8::new(0) }; 1 << 16];
static CONTROL: AtomicPtr<AtomicU8> = AtomicPtr::new((&raw const NOTHING).cast_mut().cast());

/// The control byte of an event: 0 is off.
#[inline]
pub(crate) fn control(id: u16) -> u8 {
    // Safety: there is one for each id, before and behind the begin.
    unsafe { (*CONTROL.load(Ordering::Relaxed).add(usize::from(id))).load(Ordering::Relaxed) }
}

impl Process {
    pub(crate) fn program(&self) -> Program<'_, Mapped> {
        Program::of(&self.memory, self.layout)
    }

    /// The memory of this process, if it has begun.
    pub(crate) fn now() -> Option<&'static Self> {
        // Safety: what was put there once stays, and is there when it says so.
        let process = unsafe { PROCESS.load(Ordering::Acquire).as_ref() }?;
        (process.is_there.load(Ordering::Acquire) != 0).then_some(process)
    }

    /// The same; it begins if it has not.
    pub(crate) fn here() -> Option<&'static Self> {
        Self::now().or_else(Self::begin).or_else(Self::give_up)
    }

    /// There is no memory to record to: nobody is to try that again with each event.
    #[cold]
    fn give_up() -> Option<&'static Self> {
        CONTROL.store((&raw const NOTHING).cast_mut().cast(), Ordering::Release);
        None
    }

    #[cold]
    fn begin() -> Option<&'static Self> {
        let before = PROCESS.load(Ordering::Acquire);
        let page = pages::own(PAGE)?;
        let layout = Layout::default();
        let Some((base, path)) = file(&layout) else {
            pages::unmap(page, PAGE);
            return None;
        };
        // Safety: all of the layout is mapped there, for as long as the process lives.
        let memory = unsafe { Mapped::new(base.as_ptr(), pages::reserve) };
        const { assert!(size_of::<Process>() <= PAGE, "it fits into its page") };
        let process = page.cast::<Self>();
        // Safety: the page is ours, and large enough.
        unsafe { process.write(Self { is_there: AtomicU32::new(0), memory, layout, path }) };
        // Safety: it was just written, and stays.
        let this: &'static Self = unsafe { process.as_ref() };
        if before.is_null() {
            // For systems that only say that they give children zeros, as emulators do; children that `fork` does not make go wrong there.
            // Safety: the function may be called in a child.
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        }
        // Safety: it cannot fail.
        let pid = unsafe { libc::getpid() } as u32;
        Program::begin(&this.memory, layout, &Identity { pid, started: started(), ..Identity::default() });
        event::define_all(&this.program());
        this.inherit();
        this.is_there.store(1, Ordering::Release);
        if PROCESS.compare_exchange(before, process.as_ptr(), Ordering::AcqRel, Ordering::Acquire).is_err() {
            // Another thread was faster.
            this.remove();
            pages::unmap(base, layout.bytes() as usize);
            pages::unmap(page, PAGE);
            return Self::now();
        }
        // Safety: it is mapped.
        let parents = CONTROL.swap(unsafe { base.as_ptr().add(layout.control(0) as usize) }.cast(), Ordering::AcqRel);
        if let Some(header) = NonNull::new(parents.cast::<u8>().wrapping_sub(PAGE)).filter(|_| !before.is_null()) {
            // The parent is dead when nobody has its memory any more.
            pages::unmap(header, layout.inherited_bytes() as usize);
        }
        Some(this)
    }

    /// What was on in the parent is on.
    fn inherit(&self) {
        for id in (0..=u16::MAX).take_while(|id| event::is_known(*id)) {
            self.program().switch(id, control(id));
        }
    }

    fn remove(&self) {
        // Safety: the path ends with a zero.
        unsafe { libc::unlink(self.path.as_c_str().as_ptr()) };
    }
}

/// In a child, nothing is there.
unsafe extern "C" fn in_child() {
    thread::forget();
    // Safety: what was put there stays.
    if let Some(process) = unsafe { PROCESS.load(Ordering::Acquire).as_ref() } {
        process.is_there.store(0, Ordering::Release);
    }
}

/// The file that this process records to; `None`: there is none yet.
#[must_use]
pub fn control_file() -> Option<&'static CStr> {
    Process::now().map(|process| process.path.as_c_str())
}

/// Makes a file of that layout and maps it; where it is.
fn file(layout: &Layout) -> Option<(NonNull<u8>, Path)> {
    let mut path = Path::folder()?;
    let folder = path.open_folder()?;
    let mut name = [0; 8];
    // Safety: so many bytes are there.
    if unsafe { libc::getrandom(name.as_mut_ptr().cast(), name.len(), 0) } != name.len() as isize {
        return None;
    }
    path.push(b"/")?.push_number(u64::from_le_bytes(name) | 1 << 63, 16)?.push(b".ctl")?;
    let bytes = layout.bytes() as usize;
    // Safety: the path ends with a zero, the file is ours, and what is mapped is nobody else's.
    let base = unsafe {
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let made = Descriptor::new(libc::open(path.as_c_str().as_ptr(), flags, 0o600 as libc::c_uint))?;
        drop(folder);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let is_long = libc::ftruncate(made.0, bytes as libc::off_t) == 0;
        let address = match is_long {
            true => libc::mmap(null_mut(), bytes, access, libc::MAP_SHARED, made.0, 0),
            false => libc::MAP_FAILED,
        };
        NonNull::new(address.cast::<u8>()).filter(|_| address != libc::MAP_FAILED)
    };
    let base = base.filter(|base| {
        let private = layout.inherited_bytes() as usize;
        // Safety: it is mapped.
        let is_ours =
            unsafe { libc::madvise(base.as_ptr().add(private).cast(), bytes - private, libc::MADV_DONTFORK) == 0 };
        is_ours && pages::reserve(base.as_ptr(), layout.fixed_bytes())
    });
    if base.is_none() {
        // Safety: the path ends with a zero.
        unsafe { libc::unlink(path.as_c_str().as_ptr()) };
    }
    base.map(|base| (base, path))
}

/// When this process began, in the clock ticks that the system counts it in; 0: it does not say.
fn started() -> u64 {
    let mut text = [0; 1024];
    // Safety: so many bytes are there.
    let length = unsafe {
        let Some(file) = Descriptor::new(libc::open(c"/proc/self/stat".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC))
        else {
            return 0;
        };
        libc::read(file.0, text.as_mut_ptr().cast(), text.len())
    };
    let text = text.get(..usize::try_from(length).unwrap_or(0)).unwrap_or(&[]);
    // The name before it may have anything in it but ends with the last parenthesis.
    let behind = text.iter().rposition(|byte| *byte == b')').map_or(&[][..], |at| &text[at + 1..]);
    let field = behind.split(|byte| *byte == b' ').filter(|field| !field.is_empty()).nth(19).unwrap_or(&[]);
    field.iter().fold(0, |number: u64, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0'))))
}
