//! A trace class in the terms of CTF 1.8.
//!
//! The changes for one of CTF 2, while every bit of the data stays where it is (much of it as
//! Babeltrace does when it writes CTF 1.8):
//!
//! - fields with roles get the names that mean those roles, others are protected from such names;
//! - booleans, bit arrays and bit maps are unsigned integers, blobs are arrays of bytes;
//! - an optional is a variant of its content and of an empty structure;
//! - selectors are enumerations, and their labels are the names of the options;
//! - a label with several ranges is several labels;
//! - clocks have identifiers as names, and neither identity nor accuracy; attributes are gone;
//! - a data stream class has a default clock if a field gives its time;
//! - where no field gives the class of an event, only class 0 is there;
//! - ids that no field gives are 0, and are not written: other readers refuse them.

use std::collections::HashSet;

use kymo_units::ByteOrder;

use crate::check::has_role;
use crate::model::{
    ClockClass, ClockOrigin, DataStreamClass, Dialect, DisplayBase, DynamicArray, DynamicText, EnumerationMapping,
    FieldClass, FieldKind, FieldPath, FieldPathStep, FixedBits, FixedInteger, IntegerMeaning, Member, Optional, Role,
    Scope, StaticArray, Structure, TextEncoding, TraceClass, Variant, VariantOption, tell_apart,
};
use crate::tsdl::label_ranges;
use crate::write::selectors::{self, Claim, Selectors};
use crate::write::walk::{self, ScopeOwner};
use crate::write::{Reason, Unwritable, names};

type Result<T> = std::result::Result<T, Unwritable>;

/// The same trace class in the terms of CTF 1.8.
///
/// # Errors
///
/// The parts that TSDL cannot express; see [`Reason`].
pub fn as_ctf1(trace: &TraceClass) -> Result<TraceClass> {
    if trace.dialect == Dialect::Ctf1 {
        let mut out = trace.clone();
        unset_ids(&mut out);
        return Ok(out);
    }
    let selectors = selectors::collect(trace)?;
    let lower = |owner, scope| {
        let path = FieldPath { scope, steps: Vec::new() };
        Ctf1Lowering { trace, selectors: &selectors, owner, path, depth: 0 }.scope()
    };
    let mut out = trace.clone();
    out.dialect = Dialect::Ctf1;
    out.native_byte_order = Some(trace.native_byte_order.unwrap_or_else(|| first_byte_order(trace)));
    (out.namespace, out.name, out.uid, out.attributes) = (None, None, None, None);
    environment(trace)?;
    clock_classes(&mut out.clock_classes);
    out.packet_header = lower(ScopeOwner { stream: None, event: None }, Scope::PacketHeader)?;
    for (index, stream) in out.stream_classes.iter_mut().enumerate() {
        let owner = ScopeOwner { stream: Some(index), event: None };
        (stream.namespace, stream.name, stream.uid, stream.attributes) = (None, None, None, None);
        stream.packet_context = lower(owner, Scope::PacketContext)?;
        stream.event_header = lower(owner, Scope::EventHeader)?;
        stream.event_common_context = lower(owner, Scope::EventCommonContext)?;
        stream.default_clock = stream.default_clock.filter(|_| tells_time(stream));
        for (event_index, event) in stream.event_classes.iter_mut().enumerate() {
            let owner = ScopeOwner { event: Some(event_index), ..owner };
            (event.namespace, event.uid, event.attributes) = (None, None, None);
            event.specific_context = lower(owner, Scope::EventSpecificContext)?;
            event.payload = lower(owner, Scope::EventPayload)?;
        }
        // Where headers have no id, CTF 2 means class 0; in CTF 1.8 there may be no other.
        let tells_id = |header| has_role(header, Role::EventRecordClassId);
        if stream.event_classes.len() > 1 && !stream.event_header.as_ref().is_some_and(tells_id) {
            stream.event_classes.retain(|event| event.id == 0);
        }
    }
    unset_ids(&mut out);
    Ok(out)
}

/// Ids that no field of packets or events gives.
fn unset_ids(trace: &mut TraceClass) {
    let gives = |class: Option<&FieldClass>, role| class.is_some_and(|class| has_role(class, role));
    if let [stream] = &mut trace.stream_classes[..]
        && !gives(trace.packet_header.as_ref(), Role::DataStreamClassId)
    {
        stream.id = 0;
    }
    for stream in &mut trace.stream_classes {
        if let [event] = &mut stream.event_classes[..]
            && !gives(stream.event_header.as_ref(), Role::EventRecordClassId)
        {
            event.id = 0;
        }
    }
}

fn environment(trace: &TraceClass) -> Result<()> {
    let is_path = |name: &str| name.split('.').all(|part| names::tsdl(Scope::EventPayload, part).is_some());
    match trace.environment.iter().find(|(name, _)| !is_path(name)) {
        None => Ok(()),
        Some((name, _)) => Err(Unwritable { place: "environment".to_owned(), reason: Reason::Name(name.clone()) }),
    }
}

fn clock_classes(clocks: &mut [ClockClass]) {
    let mut taken = HashSet::new();
    for (index, clock) in clocks.iter_mut().enumerate() {
        let own = Some(clock.id.clone()).into_iter().chain(clock.name.take());
        let mut spellings = own.chain((index..).map(|number| format!("clock_{number}")));
        let free = |name: &String| names::is_identifier(name) && taken.insert(name.clone());
        let name = spellings.find(free).expect("there are more numbers than clocks");
        clock.uuid = clock.uuid.or_else(|| clock.uid.as_deref()?.parse().ok());
        if matches!(clock.origin, ClockOrigin::Custom { .. }) {
            clock.origin = ClockOrigin::Unknown;
        }
        clock.name = Some(name.clone());
        clock.id = name;
        (clock.namespace, clock.uid, clock.accuracy_cycles, clock.attributes) = (None, None, None, None);
    }
}

/// Most fields should need no byte order of their own.
fn first_byte_order(trace: &TraceClass) -> ByteOrder {
    let streams = trace.stream_classes.iter();
    let scopes = streams.flat_map(|stream| {
        let payloads = stream.event_classes.iter().map(|event| &event.payload);
        [&stream.packet_context, &stream.event_header].into_iter().chain(payloads)
    });
    let scopes = std::iter::once(&trace.packet_header).chain(scopes);
    scopes.flatten().find_map(byte_order).unwrap_or(ByteOrder::Little)
}

fn byte_order(class: &FieldClass) -> Option<ByteOrder> {
    match &class.kind {
        FieldKind::BitArray(bits) | FieldKind::Boolean(bits) | FieldKind::Real(bits) => Some(bits.byte_order),
        FieldKind::BitMap(map) => Some(map.bits.byte_order),
        FieldKind::Integer(integer) => Some(integer.bits.byte_order),
        FieldKind::Structure(structure) => structure.members.iter().find_map(|member| byte_order(&member.class)),
        FieldKind::StaticArray(array) => byte_order(&array.element),
        FieldKind::DynamicArray(array) => byte_order(&array.element),
        _ => None,
    }
}

fn tells_time(stream: &DataStreamClass) -> bool {
    fn timed(class: &FieldClass) -> bool {
        match &class.kind {
            FieldKind::Integer(integer) => integer.meaning.clock.is_some(),
            FieldKind::Structure(structure) => structure.members.iter().any(|member| timed(&member.class)),
            FieldKind::StaticArray(array) => timed(&array.element),
            FieldKind::DynamicArray(array) => timed(&array.element),
            FieldKind::Variant(variant) => variant.options.iter().any(|option| timed(&option.class)),
            _ => false,
        }
    }
    [&stream.packet_context, &stream.event_header].into_iter().flatten().any(timed)
}

/// Builds the class of one scope anew.
struct Ctf1Lowering<'t> {
    trace: &'t TraceClass,
    selectors: &'t Selectors,
    owner: ScopeOwner,
    /// Of the field that is being built, as it was.
    path: FieldPath,
    /// Structures around it.
    depth: usize,
}

impl<'t> Ctf1Lowering<'t> {
    fn scope(&mut self) -> Result<Option<FieldClass>> {
        let class = walk::root(self.trace, self.owner, self.path.scope);
        class.map(|class| self.field(class, "")).transpose()
    }

    fn fault<T>(&self, reason: Reason) -> Result<T> {
        Err(Unwritable { place: walk::place(self.trace, self.owner, &self.path), reason })
    }

    fn inside(&mut self, step: FieldPathStep, class: &FieldClass, name: &str) -> Result<FieldClass> {
        self.path.steps.push(step);
        let class = self.field(class, name)?;
        self.path.steps.pop();
        Ok(class)
    }

    /// `name`: the TSDL name of a member, empty for other fields.
    fn field(&mut self, class: &FieldClass, name: &str) -> Result<FieldClass> {
        let hexadecimal = IntegerMeaning { base: DisplayBase::Hexadecimal, ..IntegerMeaning::plain() };
        let kind = match &class.kind {
            FieldKind::BitArray(bits) => self.integer(bits, &hexadecimal, name)?,
            FieldKind::BitMap(map) => self.integer(&map.bits, &hexadecimal, name)?,
            FieldKind::Boolean(bits) => self.integer(bits, &IntegerMeaning::plain(), name)?,
            FieldKind::Integer(integer) => self.integer(&integer.bits, &integer.meaning, name)?,
            FieldKind::VariableInteger(_) => return self.fault(Reason::VariableLength),
            FieldKind::Real(bits) => self.real(bits)?,
            FieldKind::NullTerminatedText(encoding) => FieldKind::NullTerminatedText(self.encoding(*encoding)?),
            FieldKind::StaticText(text) => {
                self.encoding(text.encoding)?;
                FieldKind::StaticText(text.clone())
            }
            FieldKind::DynamicText(text) => {
                self.encoding(text.encoding)?;
                FieldKind::DynamicText(DynamicText { length: self.reference(&text.length)?, ..text.clone() })
            }
            FieldKind::StaticBlob(blob) if blob.roles.is_empty() => {
                let element = Box::new(self.byte());
                FieldKind::StaticArray(StaticArray { length: blob.length, element, minimum_alignment: 1 })
            }
            FieldKind::StaticBlob(blob) if name == "uuid" && self.depth == 1 => {
                let media_type = "application/octet-stream".to_owned();
                FieldKind::StaticBlob(crate::model::StaticBlob { media_type, ..blob.clone() })
            }
            FieldKind::StaticBlob(_) => return self.fault(Reason::Role(Role::MetadataStreamUuid)),
            FieldKind::DynamicBlob(blob) => {
                let (length, element) = (self.reference(&blob.length)?, Box::new(self.byte()));
                FieldKind::DynamicArray(DynamicArray { length, element, minimum_alignment: 1 })
            }
            FieldKind::Structure(structure) => FieldKind::Structure(self.structure(structure)?),
            FieldKind::StaticArray(array) => {
                let element = self.element(&array.element, array.minimum_alignment)?;
                FieldKind::StaticArray(StaticArray { length: array.length, element, minimum_alignment: 1 })
            }
            FieldKind::DynamicArray(array) => {
                let length = self.reference(&array.length)?;
                let element = self.element(&array.element, array.minimum_alignment)?;
                FieldKind::DynamicArray(DynamicArray { length, element, minimum_alignment: 1 })
            }
            FieldKind::Optional(optional) => FieldKind::Variant(self.optional(optional)?),
            FieldKind::Variant(variant) => FieldKind::Variant(self.variant(variant)?),
        };
        Ok(FieldClass::new(kind))
    }

    fn byte(&self) -> FieldClass {
        let byte_order = self.trace.native_byte_order.unwrap_or_else(|| first_byte_order(self.trace));
        let bits = FixedBits { length: 8, byte_order, reversed: false, alignment: 8 };
        FieldClass::new(FieldKind::Integer(FixedInteger { bits, meaning: IntegerMeaning::plain() }))
    }

    fn integer(&self, bits: &FixedBits, meaning: &IntegerMeaning, name: &str) -> Result<FieldKind> {
        if bits.reversed {
            return self.fault(Reason::BitOrder);
        }
        let mut meaning = meaning.clone();
        let place = (self.owner.of_scope(self.path.scope), self.path.clone());
        let claimed = self.selectors.mappings.get(&place).cloned();
        let labels = claimed.unwrap_or_else(|| selectors::labels(&meaning, bits));
        let one = |label: String, range| EnumerationMapping { label, ranges: vec![range] };
        let single = |mapping: EnumerationMapping| {
            mapping.ranges.into_iter().map(move |range| one(mapping.label.clone(), range))
        };
        meaning.mappings = labels.into_iter().flat_map(single).collect();
        meaning.enumeration = !meaning.mappings.is_empty();
        self.roles(&mut meaning, name)?;
        Ok(FieldKind::Integer(FixedInteger { bits: *bits, meaning }))
    }

    /// Roles that the field's name and clock will express.
    fn roles(&self, meaning: &mut IntegerMeaning, name: &str) -> Result<()> {
        let scope = self.path.scope;
        let named = |role: &Role| names::special(scope, *role).is_some();
        let mut roles = effective(meaning);
        roles.dedup();
        let lost = |role: &&Role| match role {
            Role::DefaultClockTimestamp if scope == Scope::EventHeader => false,
            Role::EventRecordClassId | Role::DataStreamClassId => names::special(scope, **role) != Some(name),
            _ => names::special(scope, **role) != Some(name) || self.depth != 1,
        };
        if let Some(role) = roles.iter().find(lost) {
            return self.fault(Reason::Role(*role));
        }
        roles.sort_by_key(|role| !named(role));
        meaning.roles = roles;
        Ok(())
    }

    fn real(&self, bits: &FixedBits) -> Result<FieldKind> {
        match bits.length {
            _ if bits.reversed => self.fault(Reason::BitOrder),
            16 | 32 | 64 | 128 => Ok(FieldKind::Real(*bits)),
            other => self.fault(Reason::RealLength(other)),
        }
    }

    fn encoding(&self, encoding: TextEncoding) -> Result<TextEncoding> {
        match encoding {
            TextEncoding::Ascii | TextEncoding::Utf8 => Ok(encoding),
            _ => self.fault(Reason::Encoding),
        }
    }

    fn structure(&mut self, structure: &Structure) -> Result<Structure> {
        let mut members: Vec<Member> = Vec::with_capacity(structure.members.len());
        let mut taken = HashSet::new();
        self.depth += 1;
        for (index, member) in structure.members.iter().enumerate() {
            self.path.steps.push(FieldPathStep::Member(index));
            let name = self.member_name(member)?;
            if !taken.insert(name.clone()) {
                return self.fault(Reason::Twice(name));
            }
            let class = self.field(&member.class, &name)?;
            self.path.steps.pop();
            members.push(Member { name, class });
        }
        self.depth -= 1;
        // A field that gets the name of its role may get another's, which is only protected by an
        // underscore.
        tell_apart(&mut members);
        Ok(Structure { members, minimum_alignment: structure.minimum_alignment })
    }

    /// A role's name, or the field's own.
    fn member_name(&self, member: &Member) -> Result<String> {
        let scope = self.path.scope;
        let roles = match &member.class.kind {
            FieldKind::StaticBlob(blob) => blob.roles.clone(),
            _ => member.class.integer_meaning().map(effective).unwrap_or_default(),
        };
        if let Some(name) = roles.iter().find_map(|role| names::special(scope, *role)) {
            return Ok(name.to_owned());
        }
        match names::tsdl(scope, &member.name) {
            Some(name) => Ok(name),
            None => self.fault(Reason::Name(member.name.clone())),
        }
    }

    fn element(&mut self, element: &FieldClass, minimum_alignment: u64) -> Result<Box<FieldClass>> {
        if minimum_alignment > element.alignment() {
            return self.fault(Reason::ArrayAlignment(minimum_alignment));
        }
        self.inside(FieldPathStep::Element, element, "").map(Box::new)
    }

    fn optional(&mut self, optional: &Optional) -> Result<Variant> {
        let selector = self.reference(&optional.selector)?;
        let [content, none] = self.options() else { unreachable!("an optional claims two labels") };
        let class = self.inside(FieldPathStep::Content, &optional.content, "")?;
        let empty = FieldClass::new(FieldKind::Structure(Structure { members: Vec::new(), minimum_alignment: 1 }));
        let there = self.option(content, &optional.selector, class)?;
        let absent = self.option(none, &optional.selector, empty)?;
        Ok(Variant { selector, options: vec![there, absent] })
    }

    fn variant(&mut self, variant: &Variant) -> Result<Variant> {
        let selector = self.reference(&variant.selector)?;
        let names = self.options();
        let mut options = Vec::with_capacity(variant.options.len());
        let mut taken = HashSet::new();
        for (index, (option, claim)) in variant.options.iter().zip(names).enumerate() {
            if !taken.insert(&claim.name) {
                return self.fault(Reason::Twice(claim.name.clone()));
            }
            let class = self.inside(FieldPathStep::Option(index), &option.class, "")?;
            options.push(self.option(claim, &variant.selector, class)?);
        }
        Ok(Variant { selector, options })
    }

    /// The names that the options of the variant or optional here have claimed.
    fn options(&self) -> &'t [Claim] {
        &self.selectors.options[&(self.owner, self.path.clone())]
    }

    fn option(&self, claim: &Claim, selector: &FieldPath, class: FieldClass) -> Result<VariantOption> {
        let labels = &self.selectors.mappings[&(self.owner.of_scope(selector.scope), selector.clone())];
        let ranges = label_ranges(labels, &claim.name);
        // Another variant with the same selector may have added a label that fits better.
        if !selectors::same(&ranges, &claim.ranges) {
            return self.fault(Reason::Label(claim.name.clone()));
        }
        Ok(VariantOption { name: Some(claim.name.clone()), ranges, class })
    }

    /// The path with optionals as variants. TSDL leads into an option only from inside it.
    fn reference(&self, path: &FieldPath) -> Result<FieldPath> {
        let mut steps = path.steps.clone();
        for (index, step) in steps.iter_mut().enumerate() {
            if matches!(step, FieldPathStep::Selected(options) if options.iter().any(|steps| enters_optional(steps))) {
                return self.fault(Reason::Reference);
            }
            if *step == FieldPathStep::Content {
                let around = &path.steps[..=index];
                if path.scope != self.path.scope || !self.path.steps.starts_with(around) {
                    return self.fault(Reason::Reference);
                }
                *step = FieldPathStep::Option(0);
            }
        }
        Ok(FieldPath { scope: path.scope, steps })
    }
}

/// Whether steps lead into an optional in any option.
fn enters_optional(steps: &[FieldPathStep]) -> bool {
    steps.iter().any(|step| match step {
        FieldPathStep::Content => true,
        FieldPathStep::Selected(options) => options.iter().any(|steps| enters_optional(steps)),
        _ => false,
    })
}

/// Roles with an effect: a timestamp needs a clock.
fn effective(meaning: &IntegerMeaning) -> Vec<Role> {
    let timed = |role: &Role| matches!(role, Role::DefaultClockTimestamp | Role::PacketEndDefaultClockTimestamp);
    meaning.roles.iter().copied().filter(|role| meaning.clock.is_some() || !timed(role)).collect()
}
