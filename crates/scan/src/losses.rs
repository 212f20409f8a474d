//! The losses between two packets of a data stream, according to their counters.

use crate::batch::Loss;
use crate::index::PacketRow;

/// Packets that are missing before one.
#[must_use]
pub fn lost_packets(before: Option<&PacketRow>, row: &PacketRow) -> Option<Loss> {
    let before = before?;
    let gap = row.sequence?.checked_sub(before.sequence?)?.checked_sub(1)?;
    let loss = Loss { count: Some(gap), begin_cycles: before.end_cycles, end_cycles: row.begin_cycles };
    (gap > 0).then_some(loss)
}

/// Events that were discarded before a packet ended. The count of the first packet was lost before
/// it, and it is unknown how many of them belong to this trace.
#[must_use]
pub fn lost_events(before: Option<&PacketRow>, row: &PacketRow) -> Option<Loss> {
    let now = row.discarded?;
    let Some(before) = before else {
        let loss = Loss { count: None, begin_cycles: row.begin_cycles, end_cycles: row.end_cycles };
        return (now != 0).then_some(loss);
    };
    let count = now.wrapping_sub(before.discarded?);
    let loss = Loss { count: Some(count), begin_cycles: before.end_cycles, end_cycles: row.end_cycles };
    (count != 0).then_some(loss)
}
