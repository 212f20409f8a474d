//! Reads the events that tell of stacks.

use std::collections::HashMap;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use kymo_format::TraceClass;
use kymo_format::model::{EnvironmentValue, EventRecordClass, FieldKind};

use crate::messages::{ClassFields, EventAt, FieldRef, MessageBatch, MessageRow, MessageValue, each_batch};
use crate::open::Session;
use crate::open::progress::Progress;
use crate::open::select::Selection;
use crate::open::stacks::{FileMapping, FunctionRange, ProcessCode, StackFacts, ToldStack, TraceStacks};

/// Events that tell of stacks, and the fields of each.
const EVENTS: [(&str, &[&str]); 6] = [
    ("kymo_stack", &["stack", "pid", "kernel", "user"]),
    ("kymo_map", &["pid", "start", "end", "pgoff", "inode", "build_id", "filename"]),
    ("lttng_statedump_vm_map", &["pid", "start", "end", "pgoff", "inode", "filename"]),
    ("kymo_statedump_build_id", &["inode", "build_id", "filename"]),
    ("kymo_kernel_function", &["start", "end", "name", "module"]),
    ("sched_process_fork", &["parent_pid", "child_pid", "child_tid"]),
];

/// A class of events, and where its fields are.
type EventPlaces = (usize, Vec<Option<usize>>);

/// A trace while its events are read.
#[derive(Default)]
struct ReadTrace {
    facts: TraceStacks,
    code: ProcessCode,
}

impl StackFacts {
    /// Reads the events of all traces, as far as they can be read.
    pub(super) fn read(session: &Session, progress: &Progress) -> Self {
        let mut traces: Vec<ReadTrace> = session.traces.iter().map(|_| ReadTrace::default()).collect();
        let events = EVENTS.iter().map(|(name, _)| (*name).to_owned()).collect();
        let selection = Selection { events, ..Selection::default() };
        let mut places: HashMap<*const ClassFields, EventPlaces> = HashMap::new();
        let faults = each_batch(session, &selection, progress, &mut |batch| {
            for row in batch.rows() {
                let MessageRow::Event(at) = *row else { continue };
                let class = batch.class_fields(at);
                let (event, fields) = places.entry(Arc::as_ptr(class)).or_insert_with(|| event_places(batch, at));
                let trace = batch.facts().streams[batch.stream(at)].trace;
                traces[trace].event(*event, &EventFields { batch, at, fields });
            }
            if progress.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let here = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let whole = traces.into_iter().zip(&session.traces).map(|(ReadTrace { facts, code }, trace)| {
            let (stacks, sources) = code.placed();
            let host = trace.class.environment("hostname");
            let is_here =
                matches!(host, Some(EnvironmentValue::Text(name)) if !name.is_empty() && name == here.trim_end());
            TraceStacks { stacks, sources, events: event_names(&trace.class), is_here, ..facts }
        });
        Self { traces: whole.collect(), faults }
    }
}

/// The fields of an event.
struct EventFields<'a> {
    batch: &'a MessageBatch,
    at: EventAt,
    fields: &'a [Option<usize>],
}

impl EventFields<'_> {
    fn value(&self, field: usize) -> Option<FieldRef<'_>> {
        self.batch.field(self.at, self.fields.get(field).copied()??)
    }

    fn number(&self, field: usize) -> u64 {
        self.value(field).and_then(|field| number(field.value())).unwrap_or_default()
    }

    fn pid(&self, field: usize) -> i32 {
        self.number(field) as i32
    }

    fn text(&self, field: usize) -> String {
        match self.value(field).map(|field| field.value()) {
            Some(MessageValue::Text(text, _)) => String::from_utf8_lossy(text).into_owned(),
            _ => String::new(),
        }
    }

    fn addresses(&self, field: usize) -> Box<[u64]> {
        let elements = self.value(field).into_iter().flat_map(|field| field.elements());
        elements.filter_map(|element| number(element.value())).collect()
    }
}

fn number(value: MessageValue<'_>) -> Option<u64> {
    match value {
        MessageValue::Unsigned(value) | MessageValue::Bits(value) => Some(value),
        MessageValue::Signed(value) => Some(value.cast_unsigned()),
        _ => None,
    }
}

impl ReadTrace {
    fn event(&mut self, event: usize, fields: &EventFields<'_>) {
        let nanos = fields.batch.nanos(fields.at).unwrap_or(i64::MIN);
        match event {
            0 => {
                let Ok(number) = u32::try_from(fields.number(0)) else { return };
                // Those of callers are behind the call, which may be the last instruction of its function.
                let calls = |addresses: Box<[u64]>| {
                    let call = |(at, address): (usize, &u64)| address.wrapping_sub(u64::from(at > 0));
                    addresses.iter().enumerate().map(call).collect()
                };
                let (kernel, user) = (calls(fields.addresses(2)), calls(fields.addresses(3)));
                self.code.stack(ToldStack { number, nanos, pid: fields.pid(1), kernel, user });
            }
            1 | 2 => {
                let has_build_id = event == 1;
                let map = FileMapping {
                    pid: fields.pid(0),
                    start: fields.number(1),
                    end: fields.number(2),
                    offset: fields.number(3),
                    inode: fields.number(4),
                    build_id: if has_build_id { fields.text(5) } else { String::new() },
                    path: fields.text(if has_build_id { 6 } else { 5 }),
                };
                self.code.map(nanos, map);
            }
            3 => self.code.build_id(fields.number(0), fields.text(2), fields.text(1)),
            4 => {
                let (end, name, module) = (fields.number(1), fields.text(2), fields.text(3));
                self.facts.functions.insert(fields.number(0), FunctionRange { end, name, module });
            }
            5 => {
                let (parent, child) = (fields.pid(0), fields.pid(1));
                if child > 0 && parent != child && child == fields.pid(2) {
                    self.code.fork(nanos, (parent, child));
                }
            }
            _ => {}
        }
    }
}

/// The names of events that have stacks, by the numbers that events of stacks have.
fn event_names(trace: &TraceClass) -> Vec<(RangeInclusive<i128>, String)> {
    let classes = trace.stream_classes.iter().flat_map(|stream| &stream.event_classes);
    let of_stacks = classes.filter(|class| class.name.as_deref() == Some("kymo_callstack"));
    let members = of_stacks.filter_map(|class: &EventRecordClass| match &class.payload.as_ref()?.kind {
        FieldKind::Structure(fields) => {
            fields.members.iter().find(|member| member.name.trim_start_matches('_') == "event")
        }
        _ => None,
    });
    let mappings = members.flat_map(|member| match &member.class.kind {
        FieldKind::Integer(integer) => &integer.meaning.mappings[..],
        _ => &[],
    });
    mappings
        .flat_map(|mapping| mapping.ranges.iter().map(|range| (range.lower..=range.upper, mapping.label.clone())))
        .collect()
}

/// Which of [`EVENTS`] an event is, and where its fields are.
fn event_places(batch: &MessageBatch, at: EventAt) -> EventPlaces {
    let facts = batch.facts();
    let stream = &facts.streams[batch.stream(at)];
    let classes = &facts.traces[stream.trace].class.stream_classes[stream.class].event_classes;
    let name = classes[batch.class(at)].name.as_deref().unwrap_or_default();
    let event = EVENTS.iter().position(|(known, _)| *known == name).unwrap_or(EVENTS.len());
    let fields = EVENTS.get(event).map_or(&[][..], |(_, fields)| fields);
    let class = batch.class_fields(at);
    (event, fields.iter().map(|field| class.position(field)).collect())
}
