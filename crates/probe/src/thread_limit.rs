//! Threads that are recorded, if not all are: those of some processes, and all that they start. Programs in the kernel keep them in a
//! map, so that other programs decide as the ring buffers do (`set_event_pid` of tracefs).
//!
//! ```text
//! a thread starts another one   is it in the map? ── yes ──> the new one, too
//! a thread is forgotten         it is in the map no more
//! sample of a busy CPU          is the thread in the map? ── no ──> the kernel writes none
//! event with a call stack       is the thread in the map, or the one that it wakes? ── yes ──> a perf event, which has the stack
//! ```
//!
//! A perf event of a tracepoint cannot have a program of its own: its result would be that of all users of the tracepoint. So the
//! tracepoint has a program, which makes an event of another kind (`PERF_COUNT_SW_BPF_OUTPUT`).

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::assembly::{BpfAssembly, Condition, KernelFunction, Label, R0, R1, R2, R3, R4, R5, R6, Register, STACK};
use crate::btf::KernelTypes;
use crate::error::KernelAction;
use crate::linux::{self, BpfMapShape, Loaded, MapKind};
use crate::loading::{attach, load, map, put, told};

/// Threads, at most: later ones are not recorded.
const THREADS_MAX: u32 = 1 << 16;
const THREADS: BpfMapShape<'_> =
    BpfMapShape { kind: MapKind::Hash, key_bytes: 4, value_bytes: 4, entries: THREADS_MAX, flags: 0, inner: None };
/// How often the threads are looked at that are there already, at most: they may start others meanwhile.
const LOOKS_MAX: usize = 8;
/// Tracepoints that are about the thread that is woken, too. Its description is their first argument.
pub(crate) const WAKING: [&str; 3] = ["sched_waking", "sched_wakeup", "sched_wakeup_new"];
/// Subsystems with events of the thread that runs, or about threads. All others may run for a thread while another one does.
pub(crate) const OF_THREADS: [&str; 8] =
    ["sched", "raw_syscalls", "syscalls", "signal", "task", "lock", "exceptions", "kvm"];
/// Places on the stack.
const THREAD: i16 = -4;
const VALUE: i16 = -8;
const NOTHING: i16 = -16;

/// Threads that are recorded.
#[derive(Debug)]
pub(crate) struct ThreadLimit {
    threads: OwnedFd,
    /// Programs are attached as long as these are open.
    _links: [OwnedFd; 2],
    types: KernelTypes,
    /// Where the description of a thread has its number.
    number: i16,
}

/// Threads that an event is recorded of, if not all are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordedThreads {
    /// Any.
    All,
    /// The one that runs.
    Running,
    /// That one, and another: its description is the argument of this number.
    Two(u8),
}

impl RecordedThreads {
    /// Those of an event of a subsystem.
    pub(crate) fn of(system: &str, name: &str) -> Self {
        match name {
            _ if !OF_THREADS.contains(&system) => Self::All,
            "sched_switch" => Self::Two(2),
            name if WAKING.contains(&name) => Self::Two(0),
            _ => Self::Running,
        }
    }

    /// To `end` if the event is of none of them: its arguments are behind r6. Changes 4 bytes at a place on the stack.
    pub(crate) fn check(self, code: &mut BpfAssembly, limit: &ThreadLimit, place: i16, end: Label) {
        if self == Self::All {
            return;
        }
        let is_recorded = code.label();
        code.call(KernelFunction::ProcessAndThread);
        code.store((STACK, place), R0, 4);
        code.look_up(limit.threads(), place);
        if let Self::Two(argument) = self {
            code.jump_if(Condition::NotEqual, R0, 0, is_recorded);
            code.load(R1, (R6, 8 * i16::from(argument)), 8);
            code.load(R1, (R1, limit.number), 4);
            code.store((STACK, place), R1, 4);
            code.look_up(limit.threads(), place);
        }
        code.jump_if(Condition::Equal, R0, 0, end);
        code.place(is_recorded);
    }
}

/// The event of a tracepoint for the threads that are recorded.
#[derive(Debug)]
pub(crate) struct LimitedEvent {
    /// The kernel forgets the perf events when it is closed.
    _events: OwnedFd,
    _link: OwnedFd,
}

impl ThreadLimit {
    /// Limits to the threads that `now` tells, and to those that they start from then on.
    ///
    /// # Errors
    ///
    /// Why not, in a sentence; with the verifier's log.
    pub(crate) fn follow(now: impl Fn() -> Result<Vec<u32>, String>) -> Result<Self, String> {
        let types = KernelTypes::of_this_kernel()?;
        let number = types.place("task_struct", &["pid"]).and_then(|place| i16::try_from(place).ok());
        let number = number.ok_or("the kernel does not describe its threads")?;
        let threads = map(THREADS, "kymo_threads")?;
        let begin = load(&begins(threads.as_fd(), number), "kymo_begin", tracepoint(&types, "sched_process_fork")?)?;
        let end = load(&ends(threads.as_fd(), number), "kymo_end", tracepoint(&types, "sched_process_free")?)?;
        let links = [attach(&end)?, attach(&begin)?];
        let mut known = HashSet::new();
        // The next look finds threads that were started before their starters were in the map.
        for _ in 0..LOOKS_MAX {
            let before = known.len();
            for thread in now()? {
                if known.insert(thread) {
                    put(&threads, THREADS, thread, &[0; 4])?;
                }
            }
            if known.len() == before {
                break;
            }
        }
        Ok(Self { threads, _links: links, types, number })
    }

    /// The map, by the number of the thread.
    pub(crate) fn threads(&self) -> BorrowedFd<'_> {
        self.threads.as_fd()
    }

    /// A program that lets the kernel write samples of these threads alone.
    pub(crate) fn samples(&self) -> Result<Loaded, String> {
        linux::load_sampling(&is_recorded(self.threads()), "kymo_samples").map_err(told(KernelAction::Load))
    }

    /// Makes events of a tracepoint for these threads, by perf events of CPUs.
    pub(crate) fn event(&self, name: &str, events: &[(u32, BorrowedFd<'_>)]) -> Result<LimitedEvent, String> {
        let number = tracepoint(&self.types, name)?;
        let entries = events.iter().map(|(cpu, _)| cpu + 1).max().unwrap_or(1);
        let shape = BpfMapShape { kind: MapKind::Events, entries, ..THREADS };
        let by_cpu = map(shape, "kymo_stacks")?;
        for (cpu, event) in events {
            put(&by_cpu, shape, *cpu, &std::os::fd::AsRawFd::as_raw_fd(event).to_ne_bytes())?;
        }
        let woken = WAKING.contains(&name).then_some(self.number);
        let program = load(&output(self.threads(), by_cpu.as_fd(), woken), "kymo_event", number)?;
        Ok(LimitedEvent { _link: attach(&program)?, _events: by_cpu })
    }
}

fn tracepoint(types: &KernelTypes, name: &str) -> Result<u32, String> {
    types.typedef(&format!("btf_trace_{name}")).ok_or_else(|| format!("the kernel does not describe `{name}`"))
}

/// r0 is 0 if the thread that runs is not recorded.
fn find(code: &mut BpfAssembly, threads: BorrowedFd<'_>) {
    code.call(KernelFunction::ProcessAndThread);
    code.store((STACK, THREAD), R0, 4);
    code.look_up(threads, THREAD);
}

fn point(code: &mut BpfAssembly, register: Register, place: i16) {
    code.copy(register, STACK);
    code.add(register, place.into());
}

/// Adds the threads that recorded ones start.
fn begins(threads: BorrowedFd<'_>, number: i16) -> Vec<[u8; 8]> {
    let mut code = BpfAssembly::default();
    let end = code.label();
    code.copy(R6, R1);
    find(&mut code, threads);
    code.jump_if(Condition::Equal, R0, 0, end);
    code.load(R1, (R6, 8), 8);
    code.load(R1, (R1, number), 4);
    code.store((STACK, THREAD), R1, 4);
    code.store_constant((STACK, VALUE), 0, 4);
    code.map(R1, threads);
    point(&mut code, R2, THREAD);
    point(&mut code, R3, VALUE);
    code.set(R4, 0);
    code.call(KernelFunction::Update);
    code.place(end);
    code.exit();
    code.finish()
}

/// Removes threads that the kernel forgets: until they have ended, they wake others.
fn ends(threads: BorrowedFd<'_>, number: i16) -> Vec<[u8; 8]> {
    let mut code = BpfAssembly::default();
    code.load(R1, (R1, 0), 8);
    code.load(R1, (R1, number), 4);
    code.store((STACK, THREAD), R1, 4);
    code.map(R1, threads);
    point(&mut code, R2, THREAD);
    code.call(KernelFunction::Delete);
    code.exit();
    code.finish()
}

/// Says whether a thread is recorded.
fn is_recorded(threads: BorrowedFd<'_>) -> Vec<[u8; 8]> {
    let mut code = BpfAssembly::default();
    let other = code.label();
    find(&mut code, threads);
    code.jump_if(Condition::Equal, R0, 0, other);
    code.exit_with(1);
    code.place(other);
    code.exit();
    code.finish()
}

/// Makes an event of this CPU if the thread that runs is recorded, or the woken one, whose description has its number there; the
/// event has that number, too.
fn output(threads: BorrowedFd<'_>, by_cpu: BorrowedFd<'_>, woken: Option<i16>) -> Vec<[u8; 8]> {
    let mut code = BpfAssembly::default();
    let (is_wanted, end) = (code.label(), code.label());
    code.copy(R6, R1);
    find(&mut code, threads);
    code.jump_if(Condition::NotEqual, R0, 0, is_wanted);
    if let Some(number) = woken {
        code.load(R1, (R6, 0), 8);
        code.load(R1, (R1, number), 4);
        code.store((STACK, THREAD), R1, 4);
        code.look_up(threads, THREAD);
        code.jump_if(Condition::NotEqual, R0, 0, is_wanted);
    }
    code.jump(end);
    code.place(is_wanted);
    code.store_constant((STACK, NOTHING), 0, 8);
    if let Some(number) = woken {
        code.load(R1, (R6, 0), 8);
        code.load(R1, (R1, number), 4);
        code.store((STACK, NOTHING), R1, 4);
    }
    code.call(KernelFunction::Cpu);
    code.copy(R3, R0);
    code.copy(R1, R6);
    code.map(R2, by_cpu);
    point(&mut code, R4, NOTHING);
    code.set(R5, 8);
    code.call(KernelFunction::EventOutput);
    code.place(end);
    code.exit();
    code.finish()
}
