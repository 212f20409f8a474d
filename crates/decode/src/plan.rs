//! From a trace class to the programs that find its events: heads of packets, and the scan of each
//! data stream class.
//!
//! ```text
//! packet ──> header program ──(stream class id)──> context program ──> events
//!                                                                      └ scan plan: header, then one
//!                                                                        skipping body per layout
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use hashbrown::HashMap;
use kymo_format::model::{DataStreamClass, FieldPath, Role, Scope, TraceClass};
use kymo_ir::{BitPhase, ReadProgram, SLOT_EVENT_CLASS, ScanPlan};

use crate::builder::ProgramBuilder;
use crate::lower::{Face, LowerError, Passing, RoleEffects, ScopeLowering};
use crate::measure;
use crate::scopes::{Scopes, collect_references};
use crate::slots::{self, SlotMap};

/// The programs of a trace class.
#[derive(Debug)]
pub(crate) struct TracePlan {
    pub(crate) packet_header: ReadProgram,
    pub(crate) slots: SlotMap,
    pub(crate) streams: Vec<StreamPlan>,
    /// Byte orders may meet inside a byte.
    mixed_orders: bool,
}

/// The programs of a data stream class.
#[derive(Debug)]
pub(crate) struct StreamPlan {
    pub(crate) packet_context: ReadProgram,
    pub(crate) scan: Arc<ScanPlan>,
    /// The phase of the position where a record's body begins.
    body_entry: BitPhase,
}

const BODY_SCOPES: [Scope; 3] = [Scope::EventCommonContext, Scope::EventSpecificContext, Scope::EventPayload];

impl TracePlan {
    pub(crate) fn new(trace: &TraceClass) -> Result<Self, LowerError> {
        let slots = packet_references(trace);
        let mixed_orders = has_mixed_orders(trace);
        let wanted: HashSet<FieldPath> = slots.keys().cloned().collect();
        let start = BitPhase { modulus_log2: 32, phase: 0 };
        let mut lower =
            ScopeLowering::new(ProgramBuilder::new(start, mixed_orders), Scopes::of_trace(trace), &wanted, &slots);
        lower.scope(Scope::PacketHeader, RoleEffects::Followed { clock: None }, &mut Passing)?;
        let (packet_header, header_end) = lower.builder.finish();
        let mut plan = Self { packet_header, slots, streams: Vec::new(), mixed_orders };
        for stream in &trace.stream_classes {
            let stream = plan.stream(trace, stream, header_end, &wanted)?;
            plan.streams.push(stream);
        }
        Ok(plan)
    }

    fn stream(
        &self,
        trace: &TraceClass,
        stream: &DataStreamClass,
        header_end: BitPhase,
        packet_wanted: &HashSet<FieldPath>,
    ) -> Result<StreamPlan, LowerError> {
        let scopes = Scopes::of_stream(trace, stream);
        let followed = RoleEffects::Followed { clock: stream.default_clock };
        let builder = ProgramBuilder::new(header_end, self.mixed_orders);
        let mut lower = ScopeLowering::new(builder, scopes, packet_wanted, &self.slots);
        lower.scope(Scope::PacketContext, followed, &mut Passing)?;
        let (packet_context, _) = lower.builder.finish();
        let mut header_wanted = HashSet::new();
        collect_references(stream.event_header.as_ref(), &mut header_wanted);
        let builder = ProgramBuilder::new(BitPhase::default(), self.mixed_orders);
        let mut lower = ScopeLowering::new(builder, scopes, &header_wanted, &self.slots);
        let names_class = stream.event_header.as_ref().is_some_and(names_event_class);
        if !names_class {
            lower.builder.out_constant(SLOT_EVENT_CLASS, 0);
        }
        lower.scope(Scope::EventHeader, followed, &mut Passing)?;
        let (header, body_entry) = lower.builder.finish();
        // Where a body may begin inside a byte, the header's last byte order matters to its first field.
        let shares_byte = self.mixed_orders && !body_entry.is_aligned(3);
        let from_start = shares_byte || refers_to_header(stream);
        let mut scan = ScanPlan { header, from_start, ..ScanPlan::default() };
        scan.ids = event_ids(stream);
        if !names_class && stream.event_classes.len() == 1 {
            scan.only_class = Some(0);
        }
        let mut plan = StreamPlan { packet_context, scan: Arc::new(scan), body_entry };
        let mut scan = ScanPlan::clone(&plan.scan);
        self.bodies(trace, stream, &plan, &mut scan)?;
        plan.scan = Arc::new(scan);
        Ok(plan)
    }

    /// One skipping program per layout: classes that differ in names alone share it.
    fn bodies(
        &self,
        trace: &TraceClass,
        stream: &DataStreamClass,
        plan: &StreamPlan,
        scan: &mut ScanPlan,
    ) -> Result<(), LowerError> {
        let mut known: HashMap<ReadProgram, u32> = HashMap::new();
        for class in 0..stream.event_classes.len() {
            let program = self.body(trace, stream, plan, class, &mut Passing)?;
            let next = scan.bodies.len() as u32;
            let index = *known.entry(program).or_insert_with_key(|program| {
                scan.bodies.push(program.clone());
                next
            });
            scan.class_body.push(index);
        }
        Ok(())
    }

    /// The program that reads the body behind a record's header, for a face.
    pub(crate) fn body(
        &self,
        trace: &TraceClass,
        stream: &DataStreamClass,
        plan: &StreamPlan,
        class: usize,
        face: &mut dyn BodyFace,
    ) -> Result<ReadProgram, LowerError> {
        let event = &stream.event_classes[class];
        let scopes = Scopes::of_stream(trace, stream).of_event(event);
        let mut wanted = HashSet::new();
        for scope in BODY_SCOPES {
            collect_references(scopes.get(scope), &mut wanted);
        }
        if plan.scan.from_start {
            // The header is read once more, with the fields that its own need.
            collect_references(scopes.get(Scope::EventHeader), &mut wanted);
        }
        let entry = if plan.scan.from_start { BitPhase::default() } else { plan.body_entry };
        let mut lower = ScopeLowering::new(ProgramBuilder::new(entry, self.mixed_orders), scopes, &wanted, &self.slots);
        if plan.scan.from_start {
            lower.scope(Scope::EventHeader, RoleEffects::Ignored, &mut Passing)?;
        }
        face.begin(&mut lower.builder);
        for scope in BODY_SCOPES {
            if scopes.get(scope).is_some() {
                face.scope(&mut lower.builder, scope);
                lower.scope(scope, RoleEffects::Ignored, face.as_face())?;
                face.scope_end(&mut lower.builder);
            }
        }
        face.end(&mut lower.builder);
        Ok(lower.builder.finish().0)
    }

    /// The program that reads a packet's context once more, for a face. It begins where the packet's header ends.
    pub(crate) fn packet_context(
        &self,
        trace: &TraceClass,
        stream: &DataStreamClass,
        face: &mut dyn BodyFace,
    ) -> Result<ReadProgram, LowerError> {
        let scopes = Scopes::of_stream(trace, stream);
        let mut wanted = HashSet::new();
        collect_references(scopes.get(Scope::PacketContext), &mut wanted);
        let builder = ProgramBuilder::new(BitPhase::default(), self.mixed_orders);
        let mut lower = ScopeLowering::new(builder, scopes, &wanted, &self.slots);
        face.begin(&mut lower.builder);
        face.scope(&mut lower.builder, Scope::PacketContext);
        lower.scope(Scope::PacketContext, RoleEffects::Ignored, face.as_face())?;
        face.scope_end(&mut lower.builder);
        face.end(&mut lower.builder);
        Ok(lower.builder.finish().0)
    }
}

/// A face that also sees the scopes of a record.
pub(crate) trait BodyFace: Face {
    /// Before the first scope.
    fn begin(&mut self, builder: &mut ProgramBuilder) {
        let _ = builder;
    }
    /// The fields that follow are those of this scope.
    fn scope(&mut self, builder: &mut ProgramBuilder, scope: Scope) {
        let _ = (builder, scope);
    }
    /// The fields of the scope are complete.
    fn scope_end(&mut self, builder: &mut ProgramBuilder) {
        let _ = builder;
    }
    /// Behind the last scope.
    fn end(&mut self, builder: &mut ProgramBuilder) {
        let _ = builder;
    }
    /// The same object for the walk over fields.
    fn as_face(&mut self) -> &mut dyn Face;
}

impl BodyFace for Passing {
    fn as_face(&mut self) -> &mut dyn Face {
        self
    }
}

/// A slot for each field of a packet's head that fields elsewhere refer to.
fn packet_references(trace: &TraceClass) -> SlotMap {
    let mut references = HashSet::new();
    collect_references(trace.packet_header.as_ref(), &mut references);
    for stream in &trace.stream_classes {
        for scope in [&stream.packet_context, &stream.event_header, &stream.event_common_context] {
            collect_references(scope.as_ref(), &mut references);
        }
        for event in &stream.event_classes {
            collect_references(event.specific_context.as_ref(), &mut references);
            collect_references(event.payload.as_ref(), &mut references);
        }
    }
    let in_head = |path: &&FieldPath| matches!(path.scope, Scope::PacketHeader | Scope::PacketContext);
    slots::assign(references.iter().filter(in_head))
}

fn has_mixed_orders(trace: &TraceClass) -> bool {
    let mut orders = Vec::new();
    let mut add = |class: &Option<kymo_format::FieldClass>| {
        if let Some(class) = class {
            measure::collect_orders(class, &mut orders);
        }
    };
    add(&trace.packet_header);
    for stream in &trace.stream_classes {
        add(&stream.packet_context);
        add(&stream.event_header);
        add(&stream.event_common_context);
        for event in &stream.event_classes {
            add(&event.specific_context);
            add(&event.payload);
        }
    }
    orders.len() > 1
}

fn refers_to_header(stream: &DataStreamClass) -> bool {
    let mut references = HashSet::new();
    collect_references(stream.event_common_context.as_ref(), &mut references);
    for event in &stream.event_classes {
        collect_references(event.specific_context.as_ref(), &mut references);
        collect_references(event.payload.as_ref(), &mut references);
    }
    references.iter().any(|path| path.scope == Scope::EventHeader)
}

/// Whether a field of the header gives the event record class.
fn names_event_class(class: &kymo_format::FieldClass) -> bool {
    use kymo_format::FieldKind;
    match &class.kind {
        FieldKind::Structure(structure) => structure.members.iter().any(|member| names_event_class(&member.class)),
        FieldKind::Optional(optional) => names_event_class(&optional.content),
        FieldKind::Variant(variant) => variant.options.iter().any(|option| names_event_class(&option.class)),
        FieldKind::StaticArray(array) => names_event_class(&array.element),
        FieldKind::DynamicArray(array) => names_event_class(&array.element),
        _ => class.roles().contains(&Role::EventRecordClassId),
    }
}

fn event_ids(stream: &DataStreamClass) -> Vec<(u64, u32)> {
    let mut ids: Vec<(u64, u32)> =
        stream.event_classes.iter().enumerate().map(|(index, event)| (event.id, index as u32)).collect();
    ids.sort_unstable();
    ids
}
