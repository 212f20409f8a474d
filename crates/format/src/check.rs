//! Rules that hold for a trace class of any dialect, and the limits that keep hostile ones from hurting.
//!
//! Every loop that a reader runs must consume bits: an event without bits, or an array of endlessly
//! many elements without bits, would keep it busy forever. Such metadata are refused, and the
//! message gives the reason.

use std::ops::Range;

use crate::budget::ClassPlaces;
use crate::model::{DataStreamClass, Dialect, EventRecordClass, FieldClass, FieldKind, Role, TraceClass};

/// Elements without bits that an array may have.
const EMPTY_ELEMENTS_MAX: u64 = 1 << 16;

/// The problems of a trace class as a whole.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TraceClassProblem {
    /// There is something, but it takes no bits.
    #[error("the events of class {event} in data stream class {stream} take no bits: there would be endlessly many")]
    EmptyEvent {
        /// Id of the event record class.
        event: u64,
        /// Id of the data stream class.
        stream: u64,
    },
    /// Elements that take no bits.
    #[error("an array in {place} has {count} elements that take no bits; at most 65536 are read")]
    EmptyElements {
        /// Where.
        place: String,
        /// How many.
        count: u64,
    },
    /// The magic number is of another kind.
    #[error("the magic number of packets must be the first member of their header and an unsigned integer of 32 bits")]
    Magic,
    /// Packets lack their data stream class.
    #[error("there are {0} data stream classes, but the packet header has no field that tells a packet's")]
    NoStreamClassId(usize),
    /// Events lack their class.
    #[error("data stream class {stream} has {count} event record classes, but no header field tells an event's")]
    NoEventClassId {
        /// Id of the data stream class.
        stream: u64,
        /// How many.
        count: usize,
    },
    /// A list of findings that was cut.
    #[error("{0} more like these")]
    More(usize),
}

impl TraceClassProblem {
    /// Help for the author, where the message does not have it.
    pub(crate) fn help(&self) -> Option<&'static str> {
        match self {
            Self::EmptyEvent { .. } => Some("give the event's header or payload a field with at least one bit"),
            Self::EmptyElements { .. } => Some("give the element at least one bit, or the array fewer elements"),
            Self::NoStreamClassId(_) => Some("add the stream's id to the packet header"),
            Self::NoEventClassId { .. } => Some("add the event's id to the event header"),
            _ => None,
        }
    }
}

/// Everything that is wrong, and where the part that it is wrong with was written.
pub(crate) fn check(trace: &TraceClass, places: &ClassPlaces) -> Vec<(Range<usize>, TraceClassProblem)> {
    let mut found = Vec::new();
    let mut at = |place: &Range<usize>, problems: Vec<TraceClassProblem>| {
        found.extend(problems.into_iter().map(|problem| (place.clone(), problem)));
    };
    at(&places.packet_header, packet_header(trace));
    for (stream, place) in trace.stream_classes.iter().zip(&places.streams) {
        at(&place.own, stream_class(stream, trace.dialect));
        let common = [&stream.event_header, &stream.event_common_context];
        let common_is_empty = common.iter().all(|class| class.as_ref().is_none_or(takes_no_bits));
        for (event, place) in stream.event_classes.iter().zip(&place.events) {
            at(place, event_class(event, stream.id, common_is_empty));
        }
    }
    found
}

fn packet_header(trace: &TraceClass) -> Vec<TraceClassProblem> {
    let mut problems = Vec::new();
    if let Some(FieldKind::Structure(header)) = trace.packet_header.as_ref().map(|class| &class.kind) {
        let magic = header.members.iter().position(|member| member.class.roles().contains(&Role::PacketMagicNumber));
        let is_word =
            |class: &FieldClass| matches!(&class.kind, FieldKind::Integer(integer) if integer.bits.length == 32);
        if magic.is_some_and(|index| index != 0 || !is_word(&header.members[index].class)) {
            problems.push(TraceClassProblem::Magic);
        }
    }
    let classes = trace.stream_classes.len();
    if classes > 1 && !trace.packet_header.as_ref().is_some_and(|header| has_role(header, Role::DataStreamClassId)) {
        problems.push(TraceClassProblem::NoStreamClassId(classes));
    }
    elements(trace.packet_header.as_ref(), "the packet header", &mut problems);
    problems
}

fn stream_class(stream: &DataStreamClass, dialect: Dialect) -> Vec<TraceClassProblem> {
    let mut problems = Vec::new();
    let count = stream.event_classes.len();
    // In CTF 2 an event without an id in its header is of class 0.
    if dialect == Dialect::Ctf1
        && count > 1
        && !stream.event_header.as_ref().is_some_and(|header| has_role(header, Role::EventRecordClassId))
    {
        problems.push(TraceClassProblem::NoEventClassId { stream: stream.id, count });
    }
    elements(stream.packet_context.as_ref(), "the packet context", &mut problems);
    elements(stream.event_header.as_ref(), "the event record header", &mut problems);
    elements(stream.event_common_context.as_ref(), "the common context", &mut problems);
    problems
}

fn event_class(event: &EventRecordClass, stream: u64, common_is_empty: bool) -> Vec<TraceClassProblem> {
    let mut problems = Vec::new();
    if common_is_empty && own_scopes(event).all(takes_no_bits) {
        problems.push(TraceClassProblem::EmptyEvent { event: event.id, stream });
    }
    elements(event.specific_context.as_ref(), "an event's context", &mut problems);
    elements(event.payload.as_ref(), "an event's payload", &mut problems);
    problems
}

fn own_scopes(event: &EventRecordClass) -> impl Iterator<Item = &FieldClass> {
    event.specific_context.iter().chain(&event.payload)
}

/// Whether a field of the class never takes a bitfor any data.
fn takes_no_bits(class: &FieldClass) -> bool {
    match &class.kind {
        FieldKind::Structure(structure) => structure.members.iter().all(|member| takes_no_bits(&member.class)),
        FieldKind::StaticArray(array) => array.length == 0 || takes_no_bits(&array.element),
        FieldKind::DynamicArray(array) => takes_no_bits(&array.element),
        FieldKind::StaticText(text) => text.length == 0,
        FieldKind::StaticBlob(blob) => blob.length == 0,
        FieldKind::Variant(variant) => variant.options.iter().all(|option| takes_no_bits(&option.class)),
        FieldKind::Optional(optional) => takes_no_bits(&optional.content),
        _ => false,
    }
}

/// Looks for long arrays of elements that take no bits. Where the length stands in the data,
/// readers limit it.
fn elements(class: Option<&FieldClass>, place: &str, problems: &mut Vec<TraceClassProblem>) {
    let Some(class) = class else { return };
    match &class.kind {
        FieldKind::Structure(structure) => {
            structure.members.iter().for_each(|member| elements(Some(&member.class), place, problems));
        }
        FieldKind::Variant(variant) => {
            variant.options.iter().for_each(|option| elements(Some(&option.class), place, problems));
        }
        FieldKind::Optional(optional) => elements(Some(&optional.content), place, problems),
        FieldKind::StaticArray(array) => {
            if array.length > EMPTY_ELEMENTS_MAX && takes_no_bits(&array.element) {
                problems.push(TraceClassProblem::EmptyElements { place: place.to_owned(), count: array.length });
            }
            elements(Some(&array.element), place, problems);
        }
        FieldKind::DynamicArray(array) => elements(Some(&array.element), place, problems),
        _ => {}
    }
}

pub(crate) fn has_role(class: &FieldClass, role: Role) -> bool {
    match &class.kind {
        FieldKind::Structure(structure) => structure.members.iter().any(|member| has_role(&member.class, role)),
        FieldKind::StaticArray(array) => has_role(&array.element, role),
        FieldKind::DynamicArray(array) => has_role(&array.element, role),
        FieldKind::Optional(optional) => has_role(&optional.content, role),
        FieldKind::Variant(variant) => variant.options.iter().any(|option| has_role(&option.class, role)),
        _ => class.roles().contains(&role),
    }
}
