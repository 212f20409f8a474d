//! The identity of a program, from its own point of view, and its arena for machine code.

use core::sync::atomic::Ordering::Relaxed;

use crate::layout::header;
use crate::memory::{MemoryView, ProgramMemory};
use crate::sides::{ProgramSide, RecorderSide};

/// Identity that a program publishes when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// Process ID, in its own PID namespace.
    pub pid: u32,
    /// Start time, in clock ticks of the system.
    pub started: u64,
    /// Inode of the PID namespace that `pid` belongs to; 0: unknown.
    pub pid_namespace: u64,
    /// Effective user ID.
    pub user: u32,
    /// Clock of the event timestamps.
    pub clock: ClockSource,
    /// Program name, padded with zeros.
    pub name: [u8; 16],
    /// Path of its executable, as the program sees it.
    pub path: &'a [u8],
    /// Its label, which tells it from other components; empty: it has none, or is older than labels. It stands behind
    /// the path, if there is room.
    pub label: &'a [u8],
    /// Memory for machine code.
    pub arena: Result<Arena, NoArena>,
    /// When it began, in ticks of its clock; 0: unknown.
    pub began: u64,
    /// Numbers of the published selections that it read then: of its user's recorder, and of root's;
    /// 0: it found none.
    pub began_with: [u64; 2],
    /// What machine code of judgements refers to.
    pub judge: JudgeAddresses,
    /// Addresses of the functions that machine code of users' programs calls; 0: none.
    pub objects: [u64; 4],
}

/// Addresses in a program that machine code of [judgements](crate::judgement) refers to; 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JudgeAddresses {
    /// Of the function that judges: it has the arguments of filters.
    pub function: u64,
    /// Of the byte with the groups that do not record. It stays there in child processes.
    pub stopped: u64,
}

/// Clock of the event timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockSource {
    /// The processor's counter: `rdtsc`, `cntvct_el0`.
    #[default]
    Counter,
    /// Nanoseconds of `CLOCK_MONOTONIC`, where the counter is unreliable.
    Monotonic,
}

/// Executable memory of a program. Other processes with sufficient permission can write to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arena {
    /// Inode of the file behind it.
    pub inode: u64,
    /// Address where the program maps it.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u32,
    /// File descriptor of the file in the program.
    pub descriptor: u32,
    /// ELF machine number of the program; under an emulator it differs from the host's.
    pub machine: u16,
}

/// Reason why a program has no arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoArena {
    /// Switched off: `KYMO_NATIVE=off`.
    Off,
    /// The program has privileges that its starter lacks.
    Privileged,
    /// The system refuses it.
    Refused,
}

/// An empty identity without an arena.
impl Default for Identity<'_> {
    fn default() -> Self {
        Self {
            pid: 0,
            started: 0,
            pid_namespace: 0,
            user: 0,
            clock: ClockSource::Counter,
            name: [0; 16],
            path: &[],
            label: &[],
            arena: Err(NoArena::Off),
            began: 0,
            began_with: [0; 2],
            judge: JudgeAddresses::default(),
            objects: [0; 4],
        }
    }
}

impl Identity<'_> {
    /// Writes the identity, before any recorder can see the memory.
    pub(crate) fn tell<M: ProgramMemory>(&self, memory: &M) {
        let (inode, address, bytes, descriptor) = match self.arena {
            Ok(Arena { inode, address, bytes, descriptor, machine }) => {
                (inode, address, u64::from(machine) << 32 | u64::from(bytes), u64::from(descriptor) + 1)
            }
            Err(why) => (0, why as u64, 0, 0),
        };
        let path = &self.path[..self.path.len().min(header::PATH_BYTES_MAX as usize)];
        let half = |half: usize| u64::from_le_bytes(core::array::from_fn(|byte| self.name[8 * half + byte]));
        for (at, value) in [
            (header::PID, self.pid.into()),
            (header::STARTED, self.started),
            (header::PID_NAMESPACE, self.pid_namespace),
            (header::USER, self.user.into()),
            (header::CLOCK, self.clock as u64),
            (header::NAME, half(0)),
            (header::NAME + 8, half(1)),
            (header::PATH_BYTES, path.len() as u64),
            (header::ARENA_INODE, inode),
            (header::ARENA_ADDRESS, address),
            (header::ARENA_BYTES, bytes),
            (header::ARENA_DESCRIPTOR, descriptor),
            (header::BEGAN, self.began),
            (header::BEGAN_WITH, self.began_with[0]),
            (header::BEGAN_WITH_ROOTS, self.began_with[1]),
            (header::JUDGE, self.judge.function),
            (header::JUDGE_STOPPED, self.judge.stopped),
            (header::APPLIES[0], self.began_with[0]),
            (header::APPLIES[1], self.began_with[1]),
        ] {
            memory.store(at, value, Relaxed);
        }
        header::OBJECT_FUNCTIONS.iter().zip(self.objects).for_each(|(at, address)| memory.store(*at, address, Relaxed));
        memory.put(header::PATH, path);
        // Between them is a zero, and all behind them are zeros.
        let at = path.len() as u64 + 1;
        if !self.label.is_empty() && at + (self.label.len() as u64) < header::PATH_BYTES_MAX {
            memory.put(header::PATH + at, self.label);
        }
    }
}

impl<M: ProgramMemory> ProgramSide<'_, M> {
    /// Numbers of the published selections that apply to events that are defined now, of the user's
    /// recorder and of root's; 0: none.
    #[must_use]
    pub fn applying(&self) -> [u64; 2] {
        header::APPLIES.map(|at| self.memory.load(at, Relaxed))
    }
}

impl<V: MemoryView> RecorderSide<V> {
    /// Says which selection of the user's recorder (0) or of root's (1) applies to events that the
    /// program defines from now on; 0: none.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn applies(&self, whose: usize, number: u64) -> Result<(), V::Fault> {
        self.view.set_word(header::APPLIES[whose], number)
    }

    /// Whether such a selection applies.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn is_applying(&self, whose: usize) -> Result<bool, V::Fault> {
        Ok(self.view.word(header::APPLIES[whose])? != 0)
    }

    /// Identity as the program claims it; none of it need be true. The path, and the label behind it, are truncated to
    /// the length of `texts`.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn identity<'a>(&self, texts: &'a mut [u8]) -> Result<Identity<'a>, V::Fault> {
        let word = |at| self.view.word(at);
        let mut name = [0; 16];
        name[..8].copy_from_slice(&word(header::NAME)?.to_le_bytes());
        name[8..].copy_from_slice(&word(header::NAME + 8)?.to_le_bytes());
        let room = texts.len().min(header::PATH_BYTES_MAX as usize);
        let texts = &mut texts[..room];
        self.view.copy(header::PATH, texts)?;
        let (path, label) = texts.split_at(word(header::PATH_BYTES)?.min(room as u64) as usize);
        let label = label.get(1..).and_then(|label| label.split(|byte| *byte == 0).next()).unwrap_or_default();
        Ok(Identity {
            pid: word(header::PID)? as u32,
            started: word(header::STARTED)?,
            pid_namespace: word(header::PID_NAMESPACE)?,
            user: word(header::USER)? as u32,
            clock: if word(header::CLOCK)? == ClockSource::Counter as u64 {
                ClockSource::Counter
            } else {
                ClockSource::Monotonic
            },
            name,
            path,
            label,
            arena: self.arena()?,
            began: word(header::BEGAN)?,
            began_with: [word(header::BEGAN_WITH)?, word(header::BEGAN_WITH_ROOTS)?],
            judge: self.judge()?,
            objects: self.object_functions()?,
        })
    }

    /// Addresses that machine code of judgements refers to.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn judge(&self) -> Result<JudgeAddresses, V::Fault> {
        let [function, stopped] = [self.view.word(header::JUDGE)?, self.view.word(header::JUDGE_STOPPED)?];
        Ok(JudgeAddresses { function, stopped })
    }

    /// Addresses of the functions that machine code of users' programs calls.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn object_functions(&self) -> Result<[u64; 4], V::Fault> {
        let mut found = [0; 4];
        for (found, at) in found.iter_mut().zip(header::OBJECT_FUNCTIONS) {
            *found = self.view.word(at)?;
        }
        Ok(found)
    }

    /// Bytes of the arena that have had code: none of them is ever written again. Recorders that are older than this number left 0.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn arena_used(&self) -> Result<u64, V::Fault> {
        self.view.word(header::ARENA_USED)
    }

    /// Says so, before the program learns of code there.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn set_arena_used(&self, bytes: u64) -> Result<(), V::Fault> {
        self.view.set_word(header::ARENA_USED, bytes)
    }

    fn arena(&self) -> Result<Result<Arena, NoArena>, V::Fault> {
        let address = self.view.word(header::ARENA_ADDRESS)?;
        let Some(descriptor) = self.view.word(header::ARENA_DESCRIPTOR)?.checked_sub(1) else {
            return Ok(Err(match address {
                0 => NoArena::Off,
                1 => NoArena::Privileged,
                _ => NoArena::Refused,
            }));
        };
        let (inode, bytes) = (self.view.word(header::ARENA_INODE)?, self.view.word(header::ARENA_BYTES)?);
        let (machine, bytes) = ((bytes >> 32) as u16, bytes as u32);
        Ok(Ok(Arena { inode, address, bytes, descriptor: descriptor as u32, machine }))
    }
}
