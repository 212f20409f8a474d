//! A recorder that sleeps is rung when a program turns to its next sub-buffer or defines something, wherever the program is by then.
#![allow(unsafe_code, reason = "children are made")]

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use kymo_lane::Rings;
use kymo_tracer::{Event, control_file};

use crate::alone;
use crate::recorder::{Watch, files};

static EVENT: Event = Event::new(b"event test:one\nfield u64 value\n");
static LATER: Event = Event::new(b"event test:later\nfield u64 value\n");

/// Events of which a sub-buffer of 32 KiB has no more: they have 14 bytes each.
const SUB_BUFFER: usize = (32 << 10) / 14;

fn record(events: usize) {
    (0..events).for_each(|_| EVENT.record(&[0; 8]));
}

/// How often the bell of a folder was rung.
fn rung(bell: &File) -> u32 {
    let mut word = [0; 4];
    bell.read_exact_at(&mut word, 0).expect("it is there");
    u32::from_le_bytes(word)
}

/// Alone: the tracer of a process has one memory and one bell, and children are made of all that the process is.
#[test]
fn a_recorder_that_sleeps_is_rung() {
    alone::run("bell::a_recorder_that_sleeps_is_rung", sleep_and_be_rung);
}

fn sleep_and_be_rung(folder: &Path) {
    assert!(EVENT.register());
    let own = PathBuf::from(std::ffi::OsStr::from_bytes(control_file().expect("it has begun").to_bytes()));
    let bell = File::options().read(true).write(true).open(folder.join("kymo/bell")).expect("it is there");
    let watch = Watch::new(&own);
    watch.recorder.switch(watch.id("event test:one\n"), 1).expect("it can be written");
    let is_rung = || watch.recorder.has_rung().expect("it can be read");
    let sleep = |wants| watch.recorder.sleep(wants).expect("it can be written");
    assert!(watch.recorder.bell().expect("it can be read").is_some());

    record(10 * SUB_BUFFER);
    assert_eq!(rung(&bell), 0, "nobody sleeps");
    sleep(Rings::ForAll);
    unsafe { *libc::__errno_location() = 77 };
    record(SUB_BUFFER);
    assert!(rung(&bell) == 1 && is_rung() && unsafe { *libc::__errno_location() } == 77);
    record(10 * SUB_BUFFER);
    assert_eq!(rung(&bell), 1, "once is enough");
    sleep(Rings::ForDefinitions);
    record(10 * SUB_BUFFER);
    assert!(rung(&bell) == 1 && !is_rung(), "that is not what it is rung for");
    assert!(LATER.register());
    assert!(rung(&bell) == 2 && is_rung());
    sleep(Rings::ForAll);
    watch.recorder.wake().expect("it can be written");
    record(SUB_BUFFER);
    assert_eq!(rung(&bell), 2, "it is awake");
    // Where there is no room, too.
    record(520 * SUB_BUFFER);
    assert!(watch.lost() > 0);
    sleep(Rings::ForAll);
    record(1);
    assert_eq!(rung(&bell), 3);

    children_ring(folder, &own, &bell);
    bell.set_len(0).expect("it is ours");
    sleep(Rings::ForAll);
    record(1);
    assert_eq!(watch.recorder.bell().expect("it can be read"), None, "nobody hears it, and it says so");
}

/// What becomes of a child before it records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Nothing,
    OtherRoot,
    NoSuchCall,
}

fn children_ring(folder: &Path, own: &Path, bell: &File) {
    for fate in [Fate::Nothing, Fate::OtherRoot, Fate::NoSuchCall] {
        let is_possible = match fate {
            Fate::Nothing => true,
            Fate::OtherRoot => unsafe { libc::geteuid() == 0 },
            Fate::NoSuchCall => std::env::var_os("KYMO_TEST_EMULATOR").is_none(),
        };
        if !is_possible {
            eprintln!("NOT RUN without privileges or in an emulator: {fate:?}");
            continue;
        }
        let before = rung(bell);
        let child = match unsafe { libc::fork() } {
            0 => live(fate, folder),
            child => child,
        };
        let mut status = 0;
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{fate:?}: status {status}");
        let file = files(folder).into_iter().find(|path| path != own).expect("it has a file");
        let watch = Watch::new(&file);
        let has_bell = watch.recorder.bell().expect("it can be read").is_some();
        let is_heard = rung(bell) == before + 1;
        let can = fate != Fate::NoSuchCall;
        assert!(watch.recorder.has_rung().expect("it can be read"), "{fate:?}");
        assert_eq!((has_bell, is_heard, watch.lost()), (can, can, 0), "{fate:?}");
        std::fs::remove_file(file).expect("it is ours");
    }
}

fn live(fate: Fate, folder: &Path) -> ! {
    record(1);
    let own = PathBuf::from(std::ffi::OsStr::from_bytes(control_file().expect("it has begun").to_bytes()));
    Watch::new(&own).recorder.sleep(Rings::ForAll).expect("it can be written");
    match fate {
        Fate::Nothing => {}
        Fate::OtherRoot => {
            let root = std::ffi::CString::new(folder.as_os_str().as_bytes()).expect("it has no zeros");
            assert_eq!(unsafe { libc::chroot(root.as_ptr()) }, 0);
        }
        Fate::NoSuchCall => forbid(libc::SYS_futex as u32),
    }
    record(2 * SUB_BUFFER);
    unsafe { libc::_exit(0) }
}

/// The system says no to a call from now on.
fn forbid(call: u32) {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let (is, say) = ((libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, (libc::BPF_RET | libc::BPF_K) as u16);
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut steps = [
        step(load, 0, 0, 0),
        step(is, 0, 1, call),
        step(say, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(say, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter), 0);
    }
}
