//! The surroundings of a run, and why it stops.

use super::numbers::ObjectChange;

/// A fact about a run, which programs ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFact {
    /// Nanoseconds since the system has started.
    Nanos,
    /// The CPU.
    Cpu,
    /// The process in the upper half, and the thread.
    ProcessAndThread,
    /// Any number of 32 bits.
    Random,
}

/// The surroundings of a program: maps, and facts about the run.
pub trait ObjectSurroundings {
    /// The offset of a key's value in the values of a map.
    fn look_up(&mut self, map: usize, key: &[u8]) -> Option<u32>;
    /// Sets a value; 0, or an error number of Linux, which is negative. Flags: 1 only a key that is new, 2 only one that is there.
    fn update(&mut self, map: usize, key: &[u8], value: &[u8], flags: u64) -> i64;
    /// Removes a key; 0, or an error number.
    fn remove(&mut self, map: usize, key: &[u8]) -> i64;
    /// The place of so many bytes at an offset in the values of a map; `None`: they are not inside of one.
    fn place(&self, map: usize, offset: u32, bytes: usize) -> Option<u64>;
    /// A number of so many bytes at a place.
    fn load(&self, place: u64, bytes: u8) -> u64;
    /// Writes such a number.
    fn store(&mut self, place: u64, bytes: u8, value: u64);
    /// Changes such a number, at a multiple of its size; the one that was there.
    fn change(&mut self, place: u64, bytes: u8, change: ObjectChange, numbers: (u64, u64)) -> u64;
    /// A fact.
    fn fact(&mut self, fact: ObjectFact) -> u64;
    /// The name of the thread.
    fn thread_name(&self) -> [u8; 16];
    /// The text that a part of the context leads to, by the number of its move.
    fn text(&self, number: usize) -> Option<&[u8]>;
}

/// Why a program stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectStopKind {
    /// An access outside of memory, or to memory that is only read.
    OutsideMemory = 1,
    /// It took too many steps.
    NoEnd = 2,
    /// Functions are called too deep inside of each other.
    DeepCalls = 3,
    /// It needs a field or type that is not there.
    Absent = 4,
    /// A helper function was called with something that is no map.
    NoMap = 5,
}

impl ObjectStopKind {
    /// That of a number.
    #[must_use]
    pub fn of(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::OutsideMemory,
            2 => Self::NoEnd,
            3 => Self::DeepCalls,
            4 => Self::Absent,
            5 => Self::NoMap,
            _ => return None,
        })
    }
}

/// Where and why a program stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectStop {
    /// The instruction.
    pub at: u32,
    /// The reason.
    pub kind: ObjectStopKind,
}
