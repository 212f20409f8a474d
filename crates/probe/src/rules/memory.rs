//! The memory of a rule: limits and counts, one value of an array that is mapped by the programs in the kernel, a recorder, and programs
//! of its user that move limits.
//!
//! ```text
//! 0      number of kinds that have a slot of their own (it may be asked for more)
//! 64     slot 0, of events without a kind, and of kinds without a slot; slots 1 to 64
//!          0 limit that was set, in nanoseconds, 0: none    8 running limit, in 2^-16 ns    16 events
//!          24 it is used    32 the kind: a number, or a text up to a zero byte
//! 8384   counts of the first event by CPU, then those of the others
//!          0 kept    8 let go    16 without a known begin, of those that were kept    24 lost, of those that were kept
//! ```

/// Bytes of a slot, as a power of two.
pub(super) const SLOT_BITS: i32 = 7;
/// Bytes of the counts of an event on a CPU: no other CPU writes there.
pub(super) const COUNT_BYTES: usize = 64;

/// Places in a slot.
pub(super) mod slot {
    pub(crate) const SET: i16 = 0;
    pub(crate) const RUNNING: i16 = 8;
    pub(crate) const EVENTS: i16 = 16;
    pub(crate) const IS_USED: i16 = 24;
    pub(crate) const KEY: i16 = 32;
}

/// Places in counts.
pub(super) mod count {
    pub(crate) const KEPT: i16 = 0;
    pub(crate) const LET_GO: i16 = 8;
    pub(crate) const UNKNOWN: i16 = 16;
    pub(crate) const LOST: i16 = 24;
}

/// The shape of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuleMemory {
    /// CPUs that there may be.
    pub(super) cpus: usize,
    /// Events of the rule that end something.
    pub(super) events: usize,
}

impl RuleMemory {
    pub(super) const SLOTS_AT: usize = 64;
    const COUNTS_AT: usize = Self::SLOTS_AT + ((super::RULE_KINDS_MAX + 1) << SLOT_BITS);

    pub(super) fn slot_at(slot: usize) -> usize {
        Self::SLOTS_AT + (slot << SLOT_BITS)
    }

    /// Where the counts of an event begin.
    pub(super) fn counts_at(self, event: usize) -> usize {
        Self::COUNTS_AT + event * self.cpus * COUNT_BYTES
    }

    pub(super) fn counts_of(self, event: usize, cpu: usize) -> usize {
        self.counts_at(event) + cpu * COUNT_BYTES
    }

    /// Where the counts of each event and CPU begin.
    pub(super) fn all_counts(self) -> impl Iterator<Item = usize> {
        (self.counts_at(0)..self.bytes()).step_by(COUNT_BYTES)
    }

    pub(super) fn bytes(self) -> usize {
        self.counts_at(self.events)
    }
}
