//! The measurement: two threads for each CPU, pinned, for a moment.
//!
//! ```text
//! caller         first CPU          CPU i
//!   ├ start ───────> answer
//!   ├ start ──────────────────────────> ask ── best round ─┐
//!   ├ waits, 50 ms at most <─────────────── is found ──────┘
//!   └ all is over ──> ends               ends
//! ```
//!
//! The caller never waits for a thread. A thread that does not run, because its CPU is busy, or gone, or
//! the machine is stopped, finds later that all is over, and ends. The memory of an exchange belongs to
//! all three, and the last one gives it back.

#![allow(unsafe_code, reason = "threads are pinned by system calls, and have memory of their own")]

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::exchange::{Exchange, answer, ask};
use crate::{CounterOffset, CpuCounter};

/// Rounds of each CPU.
const ROUNDS: u64 = 4000;
/// How long they take at most.
const ASKING_NS: u64 = 40_000_000;
/// How long the caller waits for a CPU at most.
const WAITING_NS: u64 = 50_000_000;
/// How often a side that hears nothing asks whether all is over, each time after some microseconds, before it
/// sleeps for a moment.
const ASKED_BEFORE_REST: u32 = 16;
const REST_NS: u64 = 20_000;
/// How long the counter is watched at least, for its frequency.
const WATCHED_NS: u64 = 2_000_000;
/// CPUs that a kernel knows at most.
const CPUS_MAX: usize = 8192;

/// How a thread is started: `pthread_create` of the caller's C library.
pub type StartThread = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    extern "C" fn(*mut c_void) -> *mut c_void,
    *mut c_void,
) -> c_int;

/// That of the C library that this crate is linked with.
pub const PTHREAD_CREATE: StartThread = libc::pthread_create;

/// Measures the counter of each CPU that the calling thread may run on, against that of the first one,
/// which is told first, without an offset.
///
/// Returns the counter's frequency in Hz, to about a ten-thousandth, for the conversion of differences.
///
/// It takes 1 to 5 ms for a CPU, and 50 ms at most for one that does not answer. Two threads exist
/// meanwhile, which block all signals. They may be there a little longer, if their CPU is busy.
pub fn measure(start: StartThread, tell: impl FnMut(CpuCounter)) -> u64 {
    let begin = (counter(), now_ns());
    let mut allowed = [0; CPUS_MAX / 64];
    if affinity(0, &mut allowed) {
        compare_all(start, &allowed, tell);
    }
    let passed = now_ns() - begin.1;
    // A signal may end it: then the frequency is less exact.
    sleep(WATCHED_NS.saturating_sub(passed));
    let (ticks, nanos) = (counter().wrapping_sub(begin.0), (now_ns() - begin.1).max(1));
    ((u128::from(ticks) * 1_000_000_000 / u128::from(nanos)) as u64).max(1)
}

fn compare_all(start: StartThread, allowed: &[u64; CPUS_MAX / 64], mut tell: impl FnMut(CpuCounter)) {
    let is_allowed = |cpu: &u32| allowed[*cpu as usize / 64] & 1 << (cpu % 64) != 0;
    let mut cpus = (0..CPUS_MAX as u32).filter(is_allowed);
    let Some(first) = cpus.next() else { return };
    tell(CpuCounter { cpu: first, offset: Some(CounterOffset::default()) });
    cpus.for_each(|cpu| tell(CpuCounter { cpu, offset: compare(start, first, cpu) }));
}

/// States of a pair.
const RUNNING: u32 = 0;
const IS_FOUND: u32 = 1;
const IS_OVER: u32 = 2;

/// The memory of a pair, which is shared by the caller and both threads.
#[repr(C)]
struct PinnedPair {
    exchange: Exchange,
    owners: AtomicU32,
    state: AtomicU32,
    /// Number of the answering thread when it is pinned.
    answers: AtomicU32,
    first: u32,
    cpu: u32,
    begin_ns: u64,
    /// Offset, error and trip.
    found: [AtomicU64; 3],
}

/// The offset of a CPU.
fn compare(start: StartThread, first: u32, cpu: u32) -> Option<CounterOffset> {
    let size = size_of::<PinnedPair>();
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // Safety: new memory is mapped.
    let memory = unsafe { libc::mmap(core::ptr::null_mut(), size, access, kind, -1, 0) };
    if memory == libc::MAP_FAILED {
        return None;
    }
    let begin = now_ns();
    let pair = PinnedPair {
        exchange: Exchange::default(),
        owners: AtomicU32::new(1),
        state: AtomicU32::new(RUNNING),
        answers: AtomicU32::new(0),
        first,
        cpu,
        begin_ns: begin,
        found: [const { AtomicU64::new(0) }; 3],
    };
    // Safety: the mapping is as large, aligned to a page, and only the caller knows it.
    unsafe { memory.cast::<PinnedPair>().write(pair) };
    // Safety: the caller is one of the owners, so that it stays mapped until `release`.
    let pair = unsafe { &*memory.cast::<PinnedPair>() };
    if started(start, pair, [answers, asks]) {
        pair.wait(begin + WAITING_NS);
    }
    let is_found = pair.state.swap(IS_OVER, Ordering::AcqRel) == IS_FOUND;
    let [offset, error, trip] = [0, 1, 2].map(|at: usize| pair.found[at].load(Ordering::Relaxed));
    let found = CounterOffset { offset_ticks: offset as i64, error_ticks: error, trip_ticks: trip };
    release(memory);
    is_found.then_some(found)
}

/// Starts both threads, detached, with all signals blocked: handlers of the program are not for them.
/// Returns whether both run.
fn started(start: StartThread, pair: &PinnedPair, mains: [extern "C" fn(*mut c_void) -> *mut c_void; 2]) -> bool {
    // Safety: zeros are a value of these plain structures; the calls write to them alone. The kernel knows
    // the old mask as 8 bytes, which is as long as its sets are.
    unsafe {
        let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
        if libc::pthread_attr_init(&raw mut attributes) != 0 {
            return false;
        }
        libc::pthread_attr_setdetachstate(&raw mut attributes, libc::PTHREAD_CREATE_DETACHED);
        let (all, mut before) = (u64::MAX, 0_u64);
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const all, &raw mut before, 8);
        let are_started = mains.iter().all(|main| {
            pair.owners.fetch_add(1, Ordering::Relaxed);
            let mut thread: libc::pthread_t = core::mem::zeroed();
            let shared = core::ptr::from_ref(pair).cast_mut().cast::<c_void>();
            let is_started = start(&raw mut thread, &raw const attributes, *main, shared) == 0;
            if !is_started {
                pair.owners.fetch_sub(1, Ordering::Relaxed);
            }
            is_started
        });
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const before, core::ptr::null_mut::<u64>(), 8);
        libc::pthread_attr_destroy(&raw mut attributes);
        are_started
    }
}

/// The thread on the first CPU.
extern "C" fn answers(memory: *mut c_void) -> *mut c_void {
    // Safety: this thread is one of the owners.
    let pair = unsafe { &*memory.cast::<PinnedPair>() };
    if pin(pair.first) {
        pair.answers.store(own_tid(), Ordering::Release);
        // It stays longer than the other one, which looks in the end whether it was pinned.
        answer(&pair.exchange, counter, pair.until(WAITING_NS));
    } else {
        pair.end(IS_OVER);
    }
    release(memory);
    core::ptr::null_mut()
}

/// The thread on the other CPU.
extern "C" fn asks(memory: *mut c_void) -> *mut c_void {
    // Safety: this thread is one of the owners.
    let pair = unsafe { &*memory.cast::<PinnedPair>() };
    let found = if pin(pair.cpu) { ask(&pair.exchange, ROUNDS, counter, pair.until(ASKING_NS)) } else { None };
    // If a CPU goes offline, the kernel moves its threads elsewhere, and changes their masks.
    let were_pinned = || is_pinned(0, pair.cpu) && is_pinned(pair.answers.load(Ordering::Acquire), pair.first);
    match found.filter(|_| were_pinned()) {
        Some(CounterOffset { offset_ticks, error_ticks, trip_ticks }) => {
            let all = [offset_ticks as u64, error_ticks, trip_ticks];
            pair.found.iter().zip(all).for_each(|(place, number)| place.store(number, Ordering::Relaxed));
            pair.end(IS_FOUND);
        }
        None => pair.end(IS_OVER),
    }
    release(memory);
    core::ptr::null_mut()
}

impl PinnedPair {
    /// Whether the caller is gone, or so much time; asked by a side that has heard nothing for some microseconds.
    ///
    /// If the other side has its turn at other times, because both CPUs are busy, both would spin without ever
    /// meeting: schedulers give turns in a fixed order. A thread that sleeps for a moment has a turn soon after it.
    fn until(&self, most_ns: u64) -> impl Fn() -> bool {
        let asked = Cell::new(0_u32);
        move || {
            asked.set(asked.get().wrapping_add(1));
            if asked.get().is_multiple_of(ASKED_BEFORE_REST) {
                sleep(REST_NS);
            }
            self.state.load(Ordering::Relaxed) != RUNNING || now_ns() - self.begin_ns > most_ns
        }
    }

    /// Ends it, unless it is over, and wakes the caller.
    fn end(&self, state: u32) {
        if self.state.compare_exchange(RUNNING, state, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            let word = self.state.as_ptr();
            // Safety: the word is mapped, as this thread is one of the owners.
            unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
        }
    }

    /// Waits until it has ended, until then at most.
    fn wait(&self, until_ns: u64) {
        loop {
            let left = until_ns.saturating_sub(now_ns());
            if left == 0 || self.state.load(Ordering::Relaxed) != RUNNING {
                return;
            }
            let time = libc::timespec { tv_sec: 0, tv_nsec: left as _ };
            let word = self.state.as_ptr();
            // Safety: word and time are there while it waits. Woken early, it looks again.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    word,
                    libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                    RUNNING,
                    &raw const time,
                );
            }
        }
    }
}

/// One owner needs the memory no longer.
fn release(memory: *mut c_void) {
    // Safety: the caller is an owner until here, and uses it no more after it.
    let is_last = unsafe { &*memory.cast::<PinnedPair>() }.owners.fetch_sub(1, Ordering::AcqRel) == 1;
    if is_last {
        // Safety: it was mapped with that size, and has no owner.
        unsafe { libc::munmap(memory, size_of::<PinnedPair>()) };
    }
}

/// Pins the calling thread.
fn pin(cpu: u32) -> bool {
    let mut wanted = [0_u64; CPUS_MAX / 64];
    wanted[cpu as usize / 64] = 1 << (cpu % 64);
    // Safety: the kernel reads that many bytes.
    let done = unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&wanted), wanted.as_ptr()) };
    done == 0
}

/// Whether a thread, or the calling one (0), can run on that CPU alone.
fn is_pinned(tid: u32, cpu: u32) -> bool {
    let mut found = [0; CPUS_MAX / 64];
    let is_here = |(at, word): (usize, &u64)| *word == if at == cpu as usize / 64 { 1 << (cpu % 64) } else { 0 };
    affinity(tid, &mut found) && found.iter().enumerate().all(is_here)
}

/// The CPUs on which a thread may run.
fn affinity(tid: u32, into: &mut [u64; CPUS_MAX / 64]) -> bool {
    // Safety: the kernel writes that many bytes at most.
    let bytes = unsafe { libc::syscall(libc::SYS_sched_getaffinity, tid, size_of_val(into), into.as_mut_ptr()) };
    bytes > 0
}

fn own_tid() -> u32 {
    // Safety: it always succeeds.
    (unsafe { libc::syscall(libc::SYS_gettid) }) as u32
}

fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Safety: `time` has room for the result, and the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps for less than a second.
fn sleep(nanos: u64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: nanos as _ };
    // Safety: the time is there while it sleeps.
    unsafe { libc::nanosleep(&raw const time, core::ptr::null_mut()) };
}

/// Reads the counter, ordered with all loads before it and all loads and stores behind it.
#[inline]
pub(crate) fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // Safety: all processors of this architecture have these instructions.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        let ticks = core::arch::x86_64::_rdtsc();
        core::arch::x86_64::_mm_lfence();
        ticks
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // Safety: Linux allows programs to read it.
        unsafe { core::arch::asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack)) };
        ticks
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::apart;

    fn measured() -> Vec<CpuCounter> {
        let mut all = Vec::new();
        let frequency_hz = measure(libc::pthread_create, |counter| all.push(counter));
        assert!(frequency_hz > 1_000_000, "{frequency_hz}");
        all
    }

    #[test]
    fn counters_of_this_machine_are_compared() {
        let all = measured();
        let mut allowed = [0; CPUS_MAX / 64];
        assert!(affinity(0, &mut allowed));
        assert_eq!(all.len(), allowed.iter().map(|word| word.count_ones() as usize).sum::<usize>());
        assert_eq!(all[0].offset, Some(CounterOffset::default()));
        // A busy machine answers for some of them only. Errors are half of a trip, which any machine makes
        // in less than a thousand seconds.
        for offset in all[1..].iter().filter_map(|counter| counter.offset) {
            assert_eq!(offset.error_ticks, offset.trip_ticks / 2 + 1);
            assert!(offset.trip_ticks < 1 << 42, "{offset:?}");
        }
        std::eprintln!("{:?} ticks: {all:?}", apart(&all));
    }

    #[test]
    fn a_cpu_on_which_no_thread_may_run_is_unknown() {
        let nowhere = CPUS_MAX as u32 - 1;
        assert_eq!(compare(libc::pthread_create, 0, nowhere), None);
        assert_eq!(compare(libc::pthread_create, nowhere, 0), None);
    }

    #[test]
    fn a_thread_that_is_not_started_or_never_runs_leaves_the_cpu_unknown() {
        unsafe extern "C" fn fails(
            _: *mut libc::pthread_t,
            _: *const libc::pthread_attr_t,
            _: extern "C" fn(*mut c_void) -> *mut c_void,
            _: *mut c_void,
        ) -> c_int {
            libc::EAGAIN
        }
        /// Starts only the one that asks: nothing answers it.
        unsafe extern "C" fn silent(
            thread: *mut libc::pthread_t,
            attributes: *const libc::pthread_attr_t,
            main: extern "C" fn(*mut c_void) -> *mut c_void,
            argument: *mut c_void,
        ) -> c_int {
            if main as usize == answers as extern "C" fn(*mut c_void) -> *mut c_void as usize {
                // As if it ran and ended.
                release(argument);
                return 0;
            }
            // Safety: all arguments are the caller's.
            unsafe { libc::pthread_create(thread, attributes, main, argument) }
        }
        assert_eq!(compare(fails, 0, 0), None);
        assert_eq!(compare(silent, 0, 0), None);
    }

    #[test]
    fn one_cpu_is_compared_with_none() {
        let thread = std::thread::spawn(|| {
            let mut allowed = [0; CPUS_MAX / 64];
            assert!(affinity(0, &mut allowed));
            let cpu = (0..CPUS_MAX as u32).find(|cpu| allowed[*cpu as usize / 64] & 1 << (cpu % 64) != 0);
            assert!(pin(cpu.expect("it runs somewhere")));
            measured()
        });
        let all = thread.join().expect("it does not panic");
        assert_eq!((all.len(), apart(&all)), (1, None));
    }
}
