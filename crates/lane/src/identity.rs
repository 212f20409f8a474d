//! Who a program is, as it sees itself, and what it offers.

use core::sync::atomic::Ordering::Relaxed;

use crate::layout::header;
use crate::memory::{Memory, View};
use crate::sides::Recorder;

/// What a program says of itself when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// Its number, in its namespace.
    pub pid: u32,
    /// When it began, in the clock ticks that the system counts it in.
    pub started: u64,
    /// The inode of the namespace that its number is of; 0: it cannot say.
    pub pid_namespace: u64,
    /// Its effective user.
    pub user: u32,
    /// What events are stamped with.
    pub clock: Clock,
    /// What it is called; zeros behind.
    pub name: [u8; 16],
    /// The path of what it runs, as it sees it.
    pub path: &'a [u8],
    /// Where machine code can be put.
    pub arena: Result<Arena, NoArena>,
}

/// What events are stamped with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// The processor's counter: `rdtsc`, `cntvct_el0`.
    #[default]
    Counter,
    /// Nanoseconds of `CLOCK_MONOTONIC`, where the counter cannot be relied on.
    Monotonic,
}

/// Memory of a program that it can execute and that others, who may do that, write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arena {
    /// Of the file behind it.
    pub inode: u64,
    /// Where it is mapped.
    pub address: u64,
    /// Its size.
    pub bytes: u32,
    /// The program's descriptor of the file.
    pub descriptor: u32,
    /// What ELF calls the machine that it runs on: an emulator has another one than its host.
    pub machine: u16,
}

/// Why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoArena {
    /// Nobody wants it: `KYMO_NATIVE=off`.
    Off,
    /// The program has privileges that who started it has not.
    Privileged,
    /// The system does not give it.
    Refused,
}

/// Nobody, who offers nothing.
impl Default for Identity<'_> {
    fn default() -> Self {
        Self {
            pid: 0,
            started: 0,
            pid_namespace: 0,
            user: 0,
            clock: Clock::Counter,
            name: [0; 16],
            path: &[],
            arena: Err(NoArena::Off),
        }
    }
}

impl Identity<'_> {
    /// Writes it down, before anybody can see it.
    pub(crate) fn tell<M: Memory>(&self, memory: &M) {
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
        ] {
            memory.store(at, value, Relaxed);
        }
        memory.put(header::PATH, path);
    }
}

impl<V: View> Recorder<V> {
    /// Who the program says it is; nothing of it need be true. The path has as many bytes as fit into `path`.
    ///
    /// # Errors
    ///
    /// The memory is gone.
    pub fn identity<'a>(&self, path: &'a mut [u8]) -> Result<Identity<'a>, V::Fault> {
        let word = |at| self.view.word(at);
        let mut name = [0; 16];
        name[..8].copy_from_slice(&word(header::NAME)?.to_le_bytes());
        name[8..].copy_from_slice(&word(header::NAME + 8)?.to_le_bytes());
        let length = word(header::PATH_BYTES)?.min(header::PATH_BYTES_MAX).min(path.len() as u64) as usize;
        let path = &mut path[..length];
        self.view.copy(header::PATH, path)?;
        Ok(Identity {
            pid: word(header::PID)? as u32,
            started: word(header::STARTED)?,
            pid_namespace: word(header::PID_NAMESPACE)?,
            user: word(header::USER)? as u32,
            clock: if word(header::CLOCK)? == Clock::Counter as u64 { Clock::Counter } else { Clock::Monotonic },
            name,
            path,
            arena: self.arena()?,
        })
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
