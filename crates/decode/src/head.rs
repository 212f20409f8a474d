//! The head of a packet: its header and context, read once per packet by the evaluator.

use std::sync::Arc;

use kymo_format::model::TraceClass;
use kymo_ir::{PacketWindow, ProgramFault, ReadState, eval};

use crate::plan::TracePlan;
use crate::slots;

/// The head of a packet, as far as it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketHead {
    /// Index into [`TraceClass::stream_classes`].
    pub stream_class: usize,
    /// The data stream, where packets name it.
    pub stream_id: Option<u64>,
    /// The packet's length in bits.
    pub total_bits: Option<u64>,
    /// The length of its content, in bits.
    pub content_bits: Option<u64>,
    /// The clock behind the packet's context, if it has a timestamp.
    pub begin_cycles: Option<u64>,
    /// The end timestamp as written.
    pub end_cycles: Option<u64>,
    /// Snapshot of the counter of discarded event records.
    pub discarded: Option<u64>,
    /// Sequence number.
    pub sequence: Option<u64>,
    /// Where the packet's header ends and its context begins, in bits.
    pub context_start: u64,
    /// Where the first event record may begin, in bits.
    pub body_start: u64,
    /// The packet's UUID differs from the metadata's.
    pub uuid_differs: bool,
    /// The values that later programs load.
    pub slots: Arc<[u64]>,
}

/// Why a packet's head cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// A field cannot be read.
    #[error("at bit {at}: {kind}", at = .0.at, kind = .0.kind)]
    Fault(ProgramFault),
    /// Not a CTF packet.
    #[error("at bit 0: the packet begins with {found:#010x}; the magic number is 0xc1fc1fc1")]
    Magic {
        /// The value in the packet.
        found: u64,
    },
    /// No data stream class has the id.
    #[error("no data stream class has the id {id}")]
    StreamClass {
        /// The id.
        id: u64,
    },
    /// Sizes contradict each other or the bits read.
    #[error(
        "the packet says it has {total} bits, of which {content} are content; its head alone has {head} \
         (content is at least the head and at most the packet, which is whole bytes){}", hint(*total, *content, *head)
    )]
    Sizes {
        /// Bits of the packet.
        total: u64,
        /// Bits of content.
        content: u64,
        /// Bits of its header and context.
        head: u64,
    },
}

const MAGIC: u64 = 0xc1fc_1fc1;

/// The common cause of sizes that cannot be.
fn hint(total: u64, content: u64, head: u64) -> &'static str {
    let is_possible = |content: u64, total: u64| head <= content && content <= total;
    let in_bytes = is_possible(content.saturating_mul(8), total.saturating_mul(8));
    if content < head && in_bytes { "; its sizes look like bytes, where bits are expected" } else { "" }
}

pub(crate) fn read(
    trace: &TraceClass,
    plan: &TracePlan,
    window: PacketWindow<'_>,
    clock: u64,
) -> Result<PacketHead, HeadError> {
    let mut state = ReadState { clock, slots: vec![0; slots::count(&plan.slots)] };
    let context_start = eval::record(&plan.packet_header, window, 0, &mut state).map_err(HeadError::Fault)?;
    if let Some(found) = slots::value(&state.slots, slots::MAGIC).filter(|found| *found != MAGIC) {
        return Err(HeadError::Magic { found });
    }
    let stream_class = stream_class(trace, slots::value(&state.slots, slots::STREAM_CLASS))?;
    let context = &plan.streams[stream_class].packet_context;
    let body_start = eval::record(context, window, context_start, &mut state).map_err(HeadError::Fault)?;
    let value = |slot| slots::value(&state.slots, slot);
    let head = PacketHead {
        stream_class,
        stream_id: value(slots::STREAM_ID),
        total_bits: value(slots::TOTAL),
        content_bits: value(slots::CONTENT),
        // The clock and not the field: the field may hold only the low bits of the time.
        begin_cycles: value(slots::BEGIN).map(|_| state.clock),
        end_cycles: value(slots::END),
        discarded: value(slots::DISCARDED),
        sequence: value(slots::SEQUENCE),
        context_start,
        body_start,
        uuid_differs: uuid_differs(trace, window, value(slots::UUID)),
        slots: state.slots.clone().into(),
    };
    check_sizes(&head)?;
    Ok(head)
}

fn stream_class(trace: &TraceClass, id: Option<u64>) -> Result<usize, HeadError> {
    let Some(id) = id else {
        return if trace.stream_classes.is_empty() { Err(HeadError::StreamClass { id: 0 }) } else { Ok(0) };
    };
    let found = trace.stream_classes.iter().position(|class| class.id == id);
    found.ok_or(HeadError::StreamClass { id })
}

/// `start`: the first byte of the 16 in the packet.
fn uuid_differs(trace: &TraceClass, window: PacketWindow<'_>, start: Option<u64>) -> bool {
    let (Some(start), Some(uuid)) = (start, trace.uuid) else {
        return false;
    };
    let at = (start - window.origin()) as usize;
    window.bytes().get(at..at + 16).is_some_and(|bytes| bytes != uuid.0)
}

fn check_sizes(head: &PacketHead) -> Result<(), HeadError> {
    let total = head.total_bits.or(head.content_bits);
    let content = head.content_bits.or(head.total_bits);
    let (Some(total), Some(content)) = (total, content) else {
        return Ok(());
    };
    let whole = head.total_bits.is_none() || total % 8 == 0;
    if whole && content <= total && content >= head.body_start {
        return Ok(());
    }
    Err(HeadError::Sizes { total, content, head: head.body_start })
}
