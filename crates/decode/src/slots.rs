//! Slots: the numbers that one program of a packet leaves for the caller and for later programs.
//!
//! ```text
//! 0        id of the event record class       (ir's own)
//! 1..=10   values of roles in the packet's head
//! 17..=26  1 where the role of slot - 16 occurred
//! 32..     fields of the packet's head that other fields refer to
//! ```

use std::collections::HashMap;

use kymo_format::model::{FieldPath, Role, Scope};
use kymo_ir::{OutputSlot, SLOT_EVENT_CLASS};

pub(crate) const MAGIC: OutputSlot = OutputSlot(1);
pub(crate) const UUID: OutputSlot = OutputSlot(2);
pub(crate) const STREAM_CLASS: OutputSlot = OutputSlot(3);
pub(crate) const STREAM_ID: OutputSlot = OutputSlot(4);
pub(crate) const TOTAL: OutputSlot = OutputSlot(5);
pub(crate) const CONTENT: OutputSlot = OutputSlot(6);
pub(crate) const BEGIN: OutputSlot = OutputSlot(7);
pub(crate) const END: OutputSlot = OutputSlot(8);
pub(crate) const DISCARDED: OutputSlot = OutputSlot(9);
pub(crate) const SEQUENCE: OutputSlot = OutputSlot(10);

/// The first slot for references.
const REFERENCES: u16 = 32;
const PRESENCE: u16 = 16;

/// Where programs find fields of the packet's head.
pub(crate) type SlotMap = HashMap<FieldPath, OutputSlot>;

/// The slot of a role; `None` where the role only acts on the clock.
pub(crate) fn of_role(role: Role, scope: Scope) -> Option<OutputSlot> {
    Some(match role {
        Role::PacketMagicNumber => MAGIC,
        Role::MetadataStreamUuid => UUID,
        Role::DataStreamClassId => STREAM_CLASS,
        Role::DataStreamId => STREAM_ID,
        Role::PacketTotalLength => TOTAL,
        Role::PacketContentLength => CONTENT,
        Role::DefaultClockTimestamp if scope == Scope::PacketContext => BEGIN,
        Role::DefaultClockTimestamp => return None,
        Role::PacketEndDefaultClockTimestamp => END,
        Role::DiscardedEventRecordCounterSnapshot => DISCARDED,
        Role::PacketSequenceNumber => SEQUENCE,
        Role::EventRecordClassId => SLOT_EVENT_CLASS,
    })
}

/// The slot with the presence of the role of `slot`.
pub(crate) fn presence(slot: OutputSlot) -> Option<OutputSlot> {
    (slot != SLOT_EVENT_CLASS).then(|| OutputSlot(slot.0 + PRESENCE))
}

/// The value of a role, if it occurred.
pub(crate) fn value(slots: &[u64], slot: OutputSlot) -> Option<u64> {
    let present = slots[usize::from(slot.0 + PRESENCE)] != 0;
    present.then(|| slots[usize::from(slot.0)])
}

/// Gives each path a slot: the same ones every time, for every order of the paths.
pub(crate) fn assign<'a>(paths: impl Iterator<Item = &'a FieldPath>) -> SlotMap {
    let mut paths: Vec<&FieldPath> = paths.collect();
    // The paths come from a set, in an order that differs from run to run.
    paths.sort_unstable();
    paths.dedup();
    let slots = (REFERENCES..u16::MAX).map(OutputSlot);
    paths.into_iter().cloned().zip(slots).collect()
}

/// How many slots there are.
pub(crate) fn count(map: &SlotMap) -> usize {
    usize::from(REFERENCES) + map.len()
}
