//! Children, however they are made, record to memory of their own, and go on with what was on in their parent.
#![allow(unsafe_code, reason = "children are made")]

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};

use kymo_lane::MemoryView;
use kymo_tracer::{Event, control_file};

use crate::alone;
use crate::recorder::{Control, Watch, files};

static OFF: Event = Event::new(b"off: value u64");
static ON: Event = Event::new(b"on: value u64");

const EVENTS: u64 = 1000;

/// What a child does; its parent's number tells whose events these are.
fn live(parent: i32) -> ! {
    for number in 0..EVENTS {
        OFF.record(&[0; 8]);
        ON.record(&((parent as u64) << 32 | number).to_le_bytes());
    }
    unsafe { libc::_exit(0) }
}

fn wait(child: libc::pid_t) -> libc::pid_t {
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status}");
    child
}

static OF_HANDLER: AtomicI32 = AtomicI32::new(0);

extern "C" fn fork_in_handler(_: libc::c_int) {
    ON.record(&[0; 8]);
    match unsafe { libc::fork() } {
        0 => live(unsafe { libc::getppid() }),
        child => OF_HANDLER.store(child, Ordering::Release),
    }
}

/// A child without the handlers that libraries have for forks. An emulator does not make its memory zeros, so that it needs those.
unsafe fn clone() -> libc::pid_t {
    if std::env::var_os("KYMO_TEST_EMULATOR").is_some() {
        eprintln!("NOT RUN in an emulator: a child of a raw clone");
        return unsafe { libc::fork() };
    }
    unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t }
}

/// The number of the process that has a file.
fn pid(path: &Path) -> i32 {
    let file = std::fs::File::options().read(true).write(true).open(path).expect("it is there");
    Control(file).word(56).expect("it can be read") as i32
}

/// Alone: it makes children of the whole process, and handles a signal of it.
#[test]
fn children_have_memory_of_their_own() {
    alone::run("forks::children_have_memory_of_their_own", make_children);
}

fn make_children(folder: &Path) {
    assert!(OFF.register() && ON.register());
    let own = PathBuf::from(std::ffi::OsStr::from_bytes(control_file().expect("it has begun").to_bytes()));
    let mut watch = Watch::new(&own);
    let on = watch.id("on: ");
    watch.recorder.switch(on, 1).expect("it can be written");
    ON.record(&[7; 8]);
    let parent = unsafe { libc::getpid() };

    let mut children = Vec::new();
    children.push(match unsafe { libc::fork() } {
        0 => live(parent),
        child => wait(child),
    });
    children.push(match unsafe { clone() } {
        0 => live(parent),
        child => wait(child),
    });
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = fork_in_handler as extern "C" fn(libc::c_int) as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
        assert_eq!(libc::raise(libc::SIGUSR1), 0);
    }
    children.push(wait(OF_HANDLER.load(Ordering::Acquire)));
    // A child of a child.
    children.push(match unsafe { libc::fork() } {
        0 => {
            ON.record(&[0; 8]);
            match unsafe { libc::fork() } {
                0 => live(parent),
                child => unsafe { libc::_exit(i32::from(libc::waitpid(child, std::ptr::null_mut(), 0) != child)) },
            }
        }
        child => wait(child),
    });
    // It shares its parent's memory until it is another program.
    assert!(std::process::Command::new("true").status().expect("it is there").success());
    ON.record(&[8; 8]);

    watch.drain();
    let values: Vec<u64> = watch.found.iter().map(|found| found.value).collect();
    assert_eq!(
        values,
        [u64::from_le_bytes([7; 8]), 0, u64::from_le_bytes([8; 8])],
        "its children's are not among them"
    );

    check_files(folder, &own, &children, on);
    std::fs::remove_dir_all(folder).expect("it is ours");
    check_without_room(folder);
}

/// Each child has a file, with what it recorded.
fn check_files(folder: &Path, own: &Path, children: &[libc::pid_t], on: u16) {
    let files: Vec<PathBuf> = files(folder).into_iter().filter(|path| path != own).collect();
    assert_eq!(files.len(), 5, "each has a file, and so has the child's child: {files:?}");
    let mut complete = 0;
    for path in &files {
        let mut watch = Watch::new(path);
        watch.drain();
        let numbers: Vec<u64> = watch.found.iter().map(|found| found.value & 0xffff_ffff).collect();
        assert!(watch.found.iter().all(|found| found.id == on), "what was off is off");
        assert_eq!(watch.lost(), 0);
        if children[..3].contains(&pid(path)) || numbers.len() > 1 {
            assert_eq!(numbers, (0..EVENTS).collect::<Vec<_>>());
            complete += 1;
        } else {
            assert_eq!((pid(path), numbers.len()), (children[3], 1));
        }
    }
    assert_eq!(complete, 4);
}

/// Where there is no room for a file, a child records nothing, and lives on.
fn check_without_room(folder: &Path) {
    std::fs::write(folder, b"no folder").expect("it is ours");
    wait(match unsafe { libc::fork() } {
        0 => {
            ON.record(&[0; 8]);
            unsafe { libc::_exit(i32::from(ON.is_on() || control_file().is_some())) }
        }
        child => child,
    });
    std::fs::remove_file(folder).expect("it is ours");
}
