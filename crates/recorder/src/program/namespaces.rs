//! Namespaces of threads, read from the kernel from outside: programs do no work for it.
//!
//! ```text
//! run of a lane ── thread ──> /proc/PID/task/TID/ns/*      asked again when what is known is a tenth of a second old
//!                    └ gone: what was known last, else what the process is in, else 0
//! ```

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::program::ProgramFacts;
use crate::program::find::{innermost_pid, namespace, start_time};

/// All kinds, with LTTng's names; without the ending they are the kernel's.
pub const NAMES: [&str; 8] = ["cgroup_ns", "ipc_ns", "mnt_ns", "net_ns", "pid_ns", "time_ns", "user_ns", "uts_ns"];

/// Kinds that a trace tells: bits in the order of [`NAMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NamespaceKinds(u8);

impl NamespaceKinds {
    /// All of them.
    pub const ALL: Self = Self(u8::MAX);

    /// The kind of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().position(|known| *known == name).map(|kind| Self(1 << kind))
    }

    /// Both these kinds and others.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Names of the kinds.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        self.of(&NAMES)
    }

    /// The entries of these kinds, from a list for all kinds.
    pub(crate) fn of<T: Copy>(self, all: &[T; NAMES.len()]) -> impl Iterator<Item = T> {
        all.iter().enumerate().filter(move |(kind, _)| self.0 & 1 << kind != 0).map(|(_, one)| *one)
    }
}

/// Inodes of namespaces, by kind; 0: unknown.
pub(crate) type Inodes = [u32; NAMES.len()];

/// How long the namespaces of a thread count as known: threads that move to another namespace are
/// rare.
const FRESH: Duration = Duration::from_millis(100);
/// Threads of a program that are known at the same time.
const THREADS_MAX: usize = 4096;

/// Known namespaces of programs' threads.
#[derive(Debug)]
pub(crate) struct Namespaces {
    kinds: NamespaceKinds,
    programs: HashMap<u64, NamespaceProgram>,
}

#[derive(Debug)]
struct NamespaceProgram {
    /// When the process with this PID began: another process may have the PID later.
    started: Option<u64>,
    /// TIDs differ here from those that the program sees.
    is_elsewhere: bool,
    process: Inodes,
    threads: HashMap<u32, NamespaceThread>,
}

#[derive(Clone, Copy, Debug)]
struct NamespaceThread {
    /// Its TID in the recorder's namespace.
    tid: Option<u32>,
    inodes: Inodes,
    asked: Instant,
}

impl Namespaces {
    /// Reads these kinds.
    pub(crate) fn new(kinds: NamespaceKinds) -> Self {
        Self { kinds, programs: HashMap::new() }
    }

    /// Namespaces of a thread, by its TID in its own namespace.
    pub(crate) fn of(&mut self, program: &ProgramFacts, tid: u32) -> Inodes {
        let Some(pid) = program.pid_outside.filter(|_| self.kinds != NamespaceKinds::default()) else {
            return Inodes::default();
        };
        let kinds = self.kinds;
        let its = self.programs.entry(program.identity.key).or_insert_with(|| NamespaceProgram {
            started: start_time(pid),
            is_elsewhere: namespace("self", "pid") != Some(program.identity.pid_namespace),
            process: Inodes::default(),
            threads: HashMap::new(),
        });
        match its.threads.get(&tid) {
            Some(known) if known.asked.elapsed() < FRESH => known.inodes,
            known => {
                let known = known.copied();
                its.ask(kinds, pid, tid, known)
            }
        }
    }

    /// A program is gone.
    pub(crate) fn forget(&mut self, program: u64) {
        self.programs.remove(&program);
    }
}

impl NamespaceProgram {
    fn ask(&mut self, kinds: NamespaceKinds, pid: u32, tid: u32, known: Option<NamespaceThread>) -> Inodes {
        let is_it = self.started.is_some() && start_time(pid) == self.started;
        let here = || if self.is_elsewhere { outer_tid(pid, tid) } else { Some(tid) };
        let outer = known.and_then(|known| known.tid).or_else(|| is_it.then(here).flatten());
        let read = |folder: String| read(kinds, Path::new(&folder));
        let of_thread = outer.filter(|_| is_it).and_then(|outer| read(format!("/proc/{pid}/task/{outer}/ns")));
        let of_process = || is_it.then(|| read(format!("/proc/{pid}/ns"))).flatten();
        let inodes = match (of_thread, known) {
            (Some(inodes), _) => {
                self.process = inodes;
                inodes
            }
            (None, Some(known)) => known.inodes,
            (None, None) => of_process().unwrap_or(self.process),
        };
        if self.threads.len() >= THREADS_MAX {
            self.threads.clear();
        }
        self.threads.insert(tid, NamespaceThread { tid: outer, inodes, asked: Instant::now() });
        inodes
    }
}

/// Namespaces in a folder; `None`: none is visible.
fn read(kinds: NamespaceKinds, folder: &Path) -> Option<Inodes> {
    let inode = |kind: usize| {
        let file = folder.join(NAMES[kind].strip_suffix("_ns").unwrap_or_default());
        let is_wanted = kinds.0 & 1 << kind != 0;
        is_wanted.then(|| std::fs::metadata(file).ok()).flatten().map_or(0, |found| found.ino() as u32)
    };
    let inodes = std::array::from_fn(inode);
    (inodes != Inodes::default()).then_some(inodes)
}

/// The TID here of a thread with that TID in its own namespace.
fn outer_tid(pid: u32, tid: u32) -> Option<u32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let mut all = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    all.find(|outer| innermost_pid(*outer) == Some(tid))
}
