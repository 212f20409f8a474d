//! Tracks: their things, the keys by which they are known, and the values that nodes tell apart.

use serde::{Deserialize, Serialize};

use super::cells::{OTHERS_AT_REST, is_several};
use super::thinning::AS_NUMBERS;
use crate::states::{EntityKind, FLAGS, ThreadState, cpu_track, thread_track};

/// The thing of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Thing {
    /// A CPU: see [`crate::states::cpu_track`].
    Cpu,
    /// A thread: see [`crate::states::thread_track`].
    Thread,
    /// Events that a lane recorded; values are classes of events.
    LaneEvents,
    /// Events that a thread recorded, where events tell it.
    ThreadEvents,
    /// How long something takes; values are bins of [`bin`]. The number is of [`Latency`].
    Latency,
    /// The wakers of a machine's threads: see [`wakeup`]. Each value is a wakeup.
    Wakeups,
    /// Durations that a thread tells of: see [`super::slices`]. The track is the depth; values stand for names.
    Slices,
    /// Those of which no event says the thread, by lane.
    LaneSlices,
    /// Hidden: the key of the open duration there.
    SliceKeys,
    /// The same, by lane.
    LaneSliceKeys,
    /// Hidden: the thread of the open duration with a key.
    SliceOwners,
    /// A counter of a program; number and track are a digest of its name.
    Counter,
    /// How many threads of a machine do something; the number is of [`Crowd`].
    Crowd,
    /// A component that events declare states of; number and track are a digest of its name.
    Component,
    /// Messages that arrive on a machine: see [`super::messages`]. Each value is a route.
    Messages,
    /// Hidden: the messages on their way.
    MessageQueues,
}

/// The kinds of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum Latency {
    /// System calls.
    Calls,
    /// Interrupts.
    Irqs,
    /// Softirqs.
    Softirqs,
    /// Threads that can run, until they do.
    Waiting,
}

impl Latency {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Calls, Self::Irqs, Self::Softirqs, Self::Waiting];
}

/// The states that threads of a machine are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum Crowd {
    /// They run.
    Running,
    /// They could run, and wait for a CPU.
    Waiting,
}

impl Crowd {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Running, Self::Waiting];

    pub(super) fn key(self, host: u16) -> u64 {
        TrackKey { thing: Thing::Crowd, host, number: self as i32, track: 0 }.key()
    }

    /// For what and on which machine a thread is counted as long as it has this value.
    pub(super) fn of(key: u64, value: u64) -> Option<(Self, u16)> {
        (key >> 48 == STATE).then_some(())?;
        let crowd = match ThreadState::of(value)?.0 {
            ThreadState::Running => Self::Running,
            ThreadState::Preempted | ThreadState::Woken | ThreadState::New => Self::Waiting,
            _ => return None,
        };
        Some((crowd, (key >> 32) as u16))
    }

    /// The track on which a thread is counted as long as it has this value.
    #[must_use]
    pub fn counting(key: u64, value: u64) -> Option<u64> {
        Self::of(key, value).map(|(crowd, host)| crowd.key(host))
    }
}

/// The upper bits of keys of what threads do.
pub(super) const STATE: u64 = (thread_track::STATE as u64) << 8 | EntityKind::Thread as u64;

/// Whether values of a track are numbers: see [`super::numbers`].
#[must_use]
pub fn is_number(key: u64) -> bool {
    TrackKey::of(key).is_some_and(|key| matches!(key.thing, Thing::Counter | Thing::Crowd))
}

/// Whether values of a track last until something else follows: see [`super::changes`].
pub(super) fn is_lasting(key: u64) -> bool {
    is_number(key) || TrackKey::of(key).is_some_and(|key| key.thing == Thing::Component)
}

/// A track's key: the same everywhere and always.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TrackKey {
    /// The thing.
    pub thing: Thing,
    /// The machine.
    pub host: u16,
    /// Which CPU, thread, lane.
    pub number: i32,
    /// Which of its values.
    pub track: u8,
}

impl TrackKey {
    const ALL: [Thing; 16] = [
        Thing::Cpu,
        Thing::Thread,
        Thing::LaneEvents,
        Thing::ThreadEvents,
        Thing::Latency,
        Thing::Wakeups,
        Thing::Slices,
        Thing::LaneSlices,
        Thing::SliceKeys,
        Thing::LaneSliceKeys,
        Thing::SliceOwners,
        Thing::Counter,
        Thing::Crowd,
        Thing::Component,
        Thing::Messages,
        Thing::MessageQueues,
    ];

    /// As a number, in the order of which nodes keep tracks.
    #[must_use]
    pub fn key(self) -> u64 {
        let Self { thing, host, number, track } = self;
        u64::from(track) << 56 | (thing as u64) << 48 | u64::from(host) << 32 | u64::from(number.cast_unsigned())
    }

    /// The track of a key.
    #[must_use]
    pub fn of(key: u64) -> Option<Self> {
        let thing = *Self::ALL.get((key >> 48 & 0xff) as usize)?;
        Some(Self { thing, host: (key >> 32) as u16, number: (key as u32).cast_signed(), track: (key >> 56) as u8 })
    }
}

/// The bin of a duration: an eighth of an octave wide.
#[must_use]
pub fn bin(duration_ns: u64) -> u32 {
    let octave = duration_ns.checked_ilog2().unwrap_or(0);
    if octave < 3 { duration_ns as u32 } else { (octave - 2) * 8 + ((duration_ns >> (octave - 3)) as u32 & 7) }
}

/// Where a bin begins, in nanoseconds.
#[must_use]
pub fn bin_begin(bin: u32) -> u64 {
    if bin < 8 { u64::from(bin) } else { u64::from(8 + bin % 8) << (bin / 8 - 1).min(60) }
}

/// A wakeup as a value: the CPU that does it and the thread that it wakes.
#[must_use]
pub fn wakeup(cpu: u32, tid: i32) -> u64 {
    u64::from(cpu) << 32 | u64::from(tid.cast_unsigned())
}

/// The thread of a wakeup that stands for all.
pub const ANYBODY: u64 = 0xffff_ffff;

/// Whether a value of a track means that nothing is done: a CPU is idle, a thread does not run.
#[must_use]
pub fn is_rest(key: u64, value: u64) -> bool {
    if is_several(value) {
        return value == OTHERS_AT_REST;
    }
    match TrackKey::of(key).map(|key| (key.thing, usize::from(key.track))) {
        Some((Thing::Cpu, cpu_track::THREAD)) => value & !FLAGS == 0,
        Some((Thing::Thread, thread_track::STATE)) => {
            ThreadState::of(value).is_some_and(|(state, _)| state != ThreadState::Running)
        }
        _ => false,
    }
}

/// Values of a bucket that nodes of the pyramid tell apart: all durations and wakeups; of instants
/// fewer than of lasting values, as one of them is drawn.
#[must_use]
pub fn values_max(key: u64) -> usize {
    match TrackKey::of(key).map(|key| key.thing) {
        Some(Thing::Latency | Thing::Wakeups) => usize::MAX,
        Some(Thing::LaneEvents | Thing::ThreadEvents) => 3,
        Some(Thing::Messages) => 64,
        Some(Thing::Counter | Thing::Crowd) => AS_NUMBERS,
        _ => 6,
    }
}
