//! The losses between two packets of a data stream, according to their counters.
//!
//! A counter has as many bits as its field, and wraps. A step of a large counter by more than half
//! of its range is one back: the tracer began anew, or the packets are not in order, and the number
//! of lost events is unknown. A small counter may have gone so far.

use kymo_format::DataStreamClass;
use kymo_format::model::{FieldClass, FieldKind, Role};

use crate::batch::Loss;
use crate::index::PacketRow;

/// The bits of a data stream's counters, and of the clock in its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterBits {
    /// Of the time at which packets begin.
    pub begin: u32,
    /// Of the time at which they end.
    pub end: u32,
    /// Of discarded events.
    pub discarded: u32,
    /// Of packets.
    pub sequence: u32,
}

/// How far a counter went from one packet to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterStep {
    /// So far ahead, or not at all.
    Ahead(u64),
    /// Back.
    Back,
}

impl Default for CounterBits {
    fn default() -> Self {
        Self { begin: u64::BITS, end: u64::BITS, discarded: u64::BITS, sequence: u64::BITS }
    }
}

impl CounterBits {
    /// Those of a class, by the fields in its packet context.
    #[must_use]
    pub fn of(class: &DataStreamClass) -> Self {
        let bits = |role| class.packet_context.as_ref().and_then(|context| bits_of(context, role));
        Self {
            begin: bits(Role::DefaultClockTimestamp).unwrap_or(u64::BITS),
            end: bits(Role::PacketEndDefaultClockTimestamp).unwrap_or(u64::BITS),
            discarded: bits(Role::DiscardedEventRecordCounterSnapshot).unwrap_or(u64::BITS),
            sequence: bits(Role::PacketSequenceNumber).unwrap_or(u64::BITS),
        }
    }

    /// How far the counter of discarded events went between two packets, if both have it.
    #[must_use]
    pub fn discarded_between(self, before: &PacketRow, row: &PacketRow) -> Option<CounterStep> {
        Some(step(before.discarded?, row.discarded?, self.discarded))
    }

    /// How far the sequence number went between two packets, if both have it.
    #[must_use]
    pub fn sequence_between(self, before: &PacketRow, row: &PacketRow) -> Option<CounterStep> {
        Some(step(before.sequence?, row.sequence?, self.sequence))
    }

    /// Packets that are missing before one.
    #[must_use]
    pub fn lost_packets(self, before: Option<&PacketRow>, row: &PacketRow) -> Option<Loss> {
        let before = before?;
        let CounterStep::Ahead(step) = self.sequence_between(before, row)? else { return None };
        let gap = step.checked_sub(1).filter(|gap| *gap > 0)?;
        Some(Loss { count: Some(gap), begin_cycles: before.end_cycles, end_cycles: row.begin_cycles })
    }

    /// Events that were discarded before a packet ended. The count of the first packet was lost
    /// before it, and it is unknown how many of them belong to this trace; a counter that went back
    /// tells as little.
    #[must_use]
    pub fn lost_events(self, before: Option<&PacketRow>, row: &PacketRow) -> Option<Loss> {
        let now = row.discarded?;
        let Some(before) = before else {
            let loss = Loss { count: None, begin_cycles: row.begin_cycles, end_cycles: row.end_cycles };
            return (now != 0).then_some(loss);
        };
        let count = match self.discarded_between(before, row)? {
            CounterStep::Ahead(0) => return None,
            CounterStep::Ahead(count) => Some(count),
            CounterStep::Back => None,
        };
        Some(Loss { count, begin_cycles: before.end_cycles, end_cycles: row.end_cycles })
    }
}

/// Bits of a counter of which nothing uses up half between two packets.
const LARGE_BITS: u32 = 32;

/// How far it is from `before` to `now`, modulo a counter with that many bits.
pub(crate) fn ahead(before: u64, now: u64, bits: u32) -> u64 {
    let unused = u64::BITS - bits.clamp(1, u64::BITS);
    now.wrapping_sub(before) << unused >> unused
}

/// From `before` to `now`, of a counter with that many bits.
fn step(before: u64, now: u64, bits: u32) -> CounterStep {
    let ahead = ahead(before, now, bits);
    let half = 1_u64 << (bits.clamp(1, u64::BITS) - 1);
    if bits >= LARGE_BITS && ahead >= half { CounterStep::Back } else { CounterStep::Ahead(ahead) }
}

/// The bits of the field with that role that is read last.
fn bits_of(class: &FieldClass, role: Role) -> Option<u32> {
    match &class.kind {
        FieldKind::Structure(structure) => {
            structure.members.iter().rev().find_map(|member| bits_of(&member.class, role))
        }
        FieldKind::Integer(integer) => integer.meaning.roles.contains(&role).then_some(integer.bits.length),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_taken_modulo_the_counter() {
        assert_eq!(step(3, 8, 64), CounterStep::Ahead(5));
        assert_eq!(step(u32::MAX.into(), 4, 32), CounterStep::Ahead(5));
        assert_eq!(step(u64::MAX, 4, 64), CounterStep::Ahead(5));
        assert_eq!(step(250, 4, 8), CounterStep::Ahead(10));
        assert_eq!(step(3, 3, 8), CounterStep::Ahead(0));
    }

    #[test]
    fn more_than_half_of_the_range_is_a_step_back() {
        assert_eq!(step(8, 3, 64), CounterStep::Back);
        assert_eq!(step(8, 3, 32), CounterStep::Back);
        assert_eq!(step(0, (1 << 31) - 1, 32), CounterStep::Ahead((1 << 31) - 1));
        assert_eq!(step(0, 1 << 31, 32), CounterStep::Back);
        assert_eq!(step(100, 1, 8), CounterStep::Ahead(157));
        assert_eq!(step(1, 0, 1), CounterStep::Ahead(1));
    }
}
