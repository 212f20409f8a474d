//! A storm of signals whose handlers record, and interrupt each other's: every event is there or counted, and none is torn.
#![allow(unsafe_code, reason = "handlers of signals")]

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kymo_tracer::{Event, control_file};

use crate::alone;
use crate::recorder::Watch;

static OUTSIDE: Event = Event::new(b"outside: value u64");
static HANDLED: Event = Event::new(b"handled: value u64");

/// Events of handlers.
static HANDLERS: AtomicU64 = AtomicU64::new(0);
const EVENTS: u64 = 5_000_000;
const SIGNALS: [(libc::c_int, libc::c_int); 3] =
    [(libc::SIGUSR1, 0), (libc::SIGUSR2, libc::SA_ONSTACK), (libc::SIGURG, 0)];

extern "C" fn handle(_: libc::c_int) {
    let number = HANDLERS.fetch_add(1, Ordering::Relaxed);
    HANDLED.record(&(!number).to_le_bytes());
}

/// Handlers interrupt those of other signals, so that up to four writes are under way; one has a stack of its own.
fn install(stack: &mut [u8]) {
    unsafe {
        let alternate = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
        assert_eq!(libc::sigaltstack(&raw const alternate, std::ptr::null_mut()), 0);
        for (signal, flags) in SIGNALS {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = flags | libc::SA_RESTART;
            assert_eq!(libc::sigaction(signal, &raw const action, std::ptr::null_mut()), 0);
        }
    }
}

/// Alone: handlers of signals are the process's, and so are lanes, of which none may be another test's.
#[test]
fn handlers_record() {
    alone::run("signals::handlers_record", |_| storm());
}

fn storm() {
    assert!(OUTSIDE.register() && HANDLED.register());
    let path = Path::new(std::ffi::OsStr::from_bytes(control_file().expect("it has begun").to_bytes()));
    let mut watch = Watch::new(path);
    let [outside, handled] = ["outside: ", "handled: "].map(|begin| watch.id(begin));
    [outside, handled].into_iter().for_each(|id| watch.recorder.switch(id, 1).expect("it can be written"));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (begun, begins) = std::sync::mpsc::channel();
        let is_over = &is_over;
        let writer = scope.spawn(move || {
            let mut stack = vec![0; 1 << 16];
            install(&mut stack);
            begun.send(unsafe { libc::pthread_self() }).expect("somebody waits");
            let mut number = 0;
            // However busy the machine is, handlers have interrupted it often enough in the end.
            while number < EVENTS || HANDLERS.load(Ordering::Relaxed) < 1000 {
                OUTSIDE.record(&number.to_le_bytes());
                number += 1;
            }
            is_over.store(true, Ordering::Release);
            // Signals that are still on their way find a stack.
            while HANDLERS.load(Ordering::Acquire) < u64::MAX / 2 {
                std::thread::yield_now();
            }
            unsafe {
                libc::sigaltstack(
                    &libc::stack_t { ss_flags: libc::SS_DISABLE, ..std::mem::zeroed() },
                    std::ptr::null_mut(),
                )
            };
            number
        });
        let thread = begins.recv().expect("it begins");
        let storm = scope.spawn(move || {
            let mut sent = 0_u64;
            while !is_over.load(Ordering::Acquire) {
                for (signal, _) in SIGNALS {
                    sent += 1;
                    assert_eq!(unsafe { libc::pthread_kill(thread, signal) }, 0);
                }
            }
            sent
        });
        while !is_over.load(Ordering::Acquire) {
            watch.drain();
        }
        let sent = storm.join().expect("it does not panic");
        assert!(sent >= 1000, "only {sent} signals were sent");
        let handled = HANDLERS.swap(u64::MAX / 2, Ordering::AcqRel);
        let outside = writer.join().expect("it does not panic");
        // Those that came after the count was taken.
        let handled = handled + (HANDLERS.load(Ordering::Acquire) - u64::MAX / 2);
        watch.drain();
        watch.drain();
        assert_eq!(watch.found.len() as u64 + watch.lost(), outside + handled, "{handled} handled");
    });
    let levels = levels(&watch, [outside, handled]);
    assert!(levels[1] > 0, "no handler interrupted a write: {levels:?}");
    watch.check_times();
    println!("levels {levels:?}, lost {}", watch.lost());
}

/// How many events each level of handlers recorded, all of which are whole and in order.
fn levels(watch: &Watch, [outside, handled]: [u16; 2]) -> [u64; 3] {
    let mut last: HashMap<u16, u64> = HashMap::new();
    let mut levels = [0_u64; 3];
    for found in &watch.found {
        levels[usize::from(found.thread.level)] += 1;
        if found.id == outside {
            assert!(last.insert(found.id, found.value).is_none_or(|last| last < found.value), "{found:?}");
        } else {
            assert_eq!(found.id, handled, "{found:?}");
            assert!(!found.value < u64::MAX / 2 + (1 << 40), "{found:?} is torn");
        }
    }
    levels
}
