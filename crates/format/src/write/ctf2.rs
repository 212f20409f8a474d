//! A trace class in the terms of CTF 2.
//!
//! The changes for one of CTF 1.8, while every bit of the data stays where it is:
//!
//! - members and options have the names that people see;
//! - a label that names values several times does it once, with several ranges;
//! - options that no label names get a range that the selector cannot have, and of options whose
//!   ranges overlap only the first keeps the shared values: the first was the one that is there;
//! - only timestamps of the data stream class' own clock keep their roles; other integers lose their clock;
//! - integers that are characters lose their encoding, and ASCII is UTF-8;
//! - a clock's UUID is its `uid`; its offset is whole seconds and less than a second;
//! - log levels and EMF URIs are attributes, too;
//! - of environment entries with the same name the first stays.

use std::collections::{BTreeMap, HashSet};

use crate::model::{
    ClockClass, DataStreamClass, Dialect, EnumerationMapping, EventRecordClass, FieldClass, FieldKind, FieldPath,
    FieldPathStep, IntegerMeaning, IntegerRange, Role, Scope, TextEncoding, TraceClass, Variant,
};
use crate::write::walk::{self, ScopeOwner};
use crate::write::{Reason, Unwritable, names};

/// The same trace class in the terms of CTF 2.
///
/// # Errors
///
/// The parts that CTF 2 cannot express; see [`Reason`].
pub fn as_ctf2(trace: &TraceClass) -> Result<TraceClass, Unwritable> {
    let mut out = trace.clone();
    let events = out.stream_classes.iter_mut().flat_map(|stream| &mut stream.event_classes);
    events.for_each(EventRecordClass::fill_attributes);
    if trace.dialect == Dialect::Ctf2 {
        return Ok(out);
    }
    out.dialect = Dialect::Ctf2;
    out.native_byte_order = None;
    let mut seen = HashSet::new();
    out.environment.retain(|(name, _)| seen.insert(name.clone()));
    for clock in &mut out.clock_classes {
        clock_class(clock)?;
    }
    if trace.dialect == Dialect::Ctf2Candidate {
        return Ok(out);
    }
    let lower = |owner, clock| Ctf2Lowering { trace, owner, clock, steps: Vec::new(), scope: Scope::PacketHeader };
    lower(ScopeOwner { stream: None, event: None }, None).scope(Scope::PacketHeader, &mut out.packet_header)?;
    for (index, stream) in out.stream_classes.iter_mut().enumerate() {
        let DataStreamClass { packet_context, event_header, event_common_context, event_classes, .. } = stream;
        let mut shared = lower(ScopeOwner { stream: Some(index), event: None }, stream.default_clock);
        shared.scope(Scope::PacketContext, packet_context)?;
        shared.scope(Scope::EventHeader, event_header)?;
        shared.scope(Scope::EventCommonContext, event_common_context)?;
        for (event_index, event) in event_classes.iter_mut().enumerate() {
            let mut own = lower(ScopeOwner { stream: Some(index), event: Some(event_index) }, None);
            own.scope(Scope::EventSpecificContext, &mut event.specific_context)?;
            own.scope(Scope::EventPayload, &mut event.payload)?;
        }
    }
    Ok(out)
}

fn clock_class(clock: &mut ClockClass) -> Result<(), Unwritable> {
    if let Some(uuid) = clock.uuid.take() {
        clock.uid.get_or_insert_with(|| uuid.to_string());
    }
    let frequency = i128::from(clock.frequency_hz);
    let seconds = i128::from(clock.offset_s) + clock.offset_cycles.div_euclid(frequency);
    let too_much = |_| Unwritable { place: format!("clock class `{}`", clock.id), reason: Reason::ClockOffset };
    clock.offset_s = i64::try_from(seconds).map_err(too_much)?;
    clock.offset_cycles = clock.offset_cycles.rem_euclid(frequency);
    Ok(())
}

/// Changes the classes of one owner's scopes.
struct Ctf2Lowering<'t> {
    /// As it was: selectors are looked up here.
    trace: &'t TraceClass,
    owner: ScopeOwner,
    clock: Option<usize>,
    scope: Scope,
    steps: Vec<FieldPathStep>,
}

impl Ctf2Lowering<'_> {
    fn scope(&mut self, scope: Scope, class: &mut Option<FieldClass>) -> Result<(), Unwritable> {
        self.scope = scope;
        class.as_mut().map_or(Ok(()), |class| self.field(class))
    }

    fn inside(&mut self, step: FieldPathStep, class: &mut FieldClass) -> Result<(), Unwritable> {
        self.steps.push(step);
        self.field(class)?;
        self.steps.pop();
        Ok(())
    }

    fn field(&mut self, class: &mut FieldClass) -> Result<(), Unwritable> {
        match &mut class.kind {
            FieldKind::Integer(integer) => meaning(&mut integer.meaning, self.clock),
            FieldKind::VariableInteger(integer) => meaning(&mut integer.meaning, self.clock),
            FieldKind::NullTerminatedText(encoding) => utf8(encoding),
            FieldKind::StaticText(text) => utf8(&mut text.encoding),
            FieldKind::DynamicText(text) => utf8(&mut text.encoding),
            FieldKind::Structure(structure) => {
                let shown = names::displayed(structure.members.iter().map(|member| member.name.as_str()));
                for (index, (member, name)) in structure.members.iter_mut().zip(shown).enumerate() {
                    self.inside(FieldPathStep::Member(index), &mut member.class)?;
                    member.name = name;
                }
            }
            FieldKind::StaticArray(array) => self.inside(FieldPathStep::Element, &mut array.element)?,
            FieldKind::DynamicArray(array) => self.inside(FieldPathStep::Element, &mut array.element)?,
            FieldKind::Optional(optional) => self.inside(FieldPathStep::Content, &mut optional.content)?,
            FieldKind::Variant(variant) => self.variant(variant)?,
            FieldKind::BitArray(_)
            | FieldKind::BitMap(_)
            | FieldKind::Boolean(_)
            | FieldKind::Real(_)
            | FieldKind::StaticBlob(_)
            | FieldKind::DynamicBlob(_) => {}
        }
        Ok(())
    }

    fn variant(&mut self, variant: &mut Variant) -> Result<(), Unwritable> {
        let shown = names::displayed(variant.options.iter().filter_map(|option| option.name.as_deref()));
        for (option, name) in variant.options.iter_mut().zip(shown) {
            option.name = Some(name);
        }
        if variant.options.is_empty() {
            return Err(self.fault(Reason::NoRange));
        }
        let beyond = self.beyond(&variant.selector);
        let mut taken = Taken::default();
        for (index, option) in variant.options.iter_mut().enumerate() {
            self.inside(FieldPathStep::Option(index), &mut option.class)?;
            let mut free = taken.claim(&option.ranges);
            if free.is_empty() {
                let none_left = || self.fault(Reason::NoRange);
                let value = beyond.ok_or_else(none_left)?.checked_add(index as u64).ok_or_else(none_left)?;
                free.push(IntegerRange::single(value.into()));
            }
            option.ranges = free;
        }
        Ok(())
    }

    /// The lowest value that a selector cannot have and that JSON readers understand.
    fn beyond(&self, selector: &FieldPath) -> Option<u64> {
        match &walk::target(self.trace, self.owner, selector)?.kind {
            FieldKind::Integer(integer) => {
                let bits = integer.bits.length - u32::from(integer.meaning.signed);
                1_u64.checked_shl(bits)
            }
            _ => None,
        }
    }

    fn fault(&self, reason: Reason) -> Unwritable {
        let path = FieldPath { scope: self.scope, steps: self.steps.clone() };
        Unwritable { place: walk::place(self.trace, self.owner, &path), reason }
    }
}

fn utf8(encoding: &mut TextEncoding) {
    if *encoding == TextEncoding::Ascii {
        *encoding = TextEncoding::Utf8;
    }
}

fn meaning(meaning: &mut IntegerMeaning, default_clock: Option<usize>) {
    meaning.encoding = None;
    let timed = |role: &Role| matches!(role, Role::DefaultClockTimestamp | Role::PacketEndDefaultClockTimestamp);
    let own_clock = meaning.clock.is_some() && meaning.clock == default_clock;
    meaning.roles.retain(|role| own_clock || !timed(role));
    meaning.clock = meaning.clock.filter(|_| meaning.roles.iter().any(timed));
    meaning.mappings = merged(&meaning.mappings, meaning.signed);
    meaning.enumeration = !meaning.mappings.is_empty();
}

/// Labels that occur once each, and values that the integer can have.
fn merged(mappings: &[EnumerationMapping], signed: bool) -> Vec<EnumerationMapping> {
    let mut places = std::collections::HashMap::new();
    let mut merged: Vec<EnumerationMapping> = Vec::with_capacity(mappings.len());
    for mapping in mappings {
        let place = *places.entry(mapping.label.as_str()).or_insert_with(|| {
            merged.push(EnumerationMapping { label: mapping.label.clone(), ranges: Vec::new() });
            merged.len() - 1
        });
        let lowest = if signed { i128::MIN } else { 0 };
        let possible = mapping.ranges.iter().filter(|range| range.upper >= lowest);
        merged[place].ranges.extend(possible.map(|range| IntegerRange { lower: range.lower.max(lowest), ..*range }));
    }
    merged.retain(|mapping| !mapping.ranges.is_empty());
    merged
}

/// Values that options have claimed: ranges by their lower ends, which do not overlap.
#[derive(Default)]
struct Taken(BTreeMap<i128, i128>);

impl Taken {
    /// Takes the part of these ranges that is still free.
    fn claim(&mut self, ranges: &[IntegerRange]) -> Vec<IntegerRange> {
        let mut free = Vec::new();
        for range in ranges {
            let first = self.0.range(..range.lower).next_back().filter(|(_, upper)| **upper >= range.lower);
            let first = first.map_or(range.lower, |(lower, _)| *lower);
            let near: Vec<IntegerRange> =
                self.0.range(first..=range.upper).map(|(&lower, &upper)| IntegerRange { lower, upper }).collect();
            for part in without(&[*range], &near) {
                self.0.insert(part.lower, part.upper);
                free.push(part);
            }
        }
        free
    }
}

/// The rest of ranges without the values that are taken.
pub(crate) fn without(ranges: &[IntegerRange], taken: &[IntegerRange]) -> Vec<IntegerRange> {
    let mut free = ranges.to_vec();
    for other in taken {
        let mut next = Vec::with_capacity(free.len());
        for range in free {
            if range.upper < other.lower || range.lower > other.upper {
                next.push(range);
                continue;
            }
            if range.lower < other.lower {
                next.push(IntegerRange { lower: range.lower, upper: other.lower - 1 });
            }
            if range.upper > other.upper {
                next.push(IntegerRange { lower: other.upper + 1, upper: range.upper });
            }
        }
        free = next;
    }
    free
}
