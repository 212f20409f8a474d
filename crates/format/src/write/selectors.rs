//! The labels that selectors need in TSDL, where options are found by labels and not by ranges of
//! values.
//!
//! Before anything is changed, every variant and every optional claims the labels it needs of its selector;
//! a selector then gets the labels that it does not have, and becomes an enumeration by that:
//!
//! ```text
//! variant { a: 0..3, b: 4 }  ── claims ──>  selector: enum { a = 0 ... 3, b = 4 }
//! optional { 1..7 }          ── claims ──>  selector: enum { content = 1 ... 7, none = 0 }
//! ```

use std::collections::HashMap;

use crate::model::{
    EnumerationMapping, FieldClass, FieldKind, FieldPath, FieldPathStep, FixedBits, IntegerMeaning, IntegerRange,
    Optional, Scope, TraceClass, Variant,
};
use crate::tsdl::label_ranges;
use crate::write::ctf2::without;
use crate::write::walk::{self, ScopeOwner};
use crate::write::{Reason, Unwritable, names};

/// A field of the trace class: the owner of its scope, and its path.
pub(crate) type Place = (ScopeOwner, FieldPath);

/// Labels for the options of every variant and optional, by its own place.
#[derive(Default)]
pub(crate) struct Selectors {
    /// Labels that a selector must have, by its place.
    pub(crate) mappings: HashMap<Place, Vec<EnumerationMapping>>,
    /// The needs of a variant's or optional's options, by its place.
    pub(crate) options: HashMap<Place, Vec<Claim>>,
}

/// The name of an option, and the values that its labels must name.
pub(crate) struct Claim {
    pub(crate) name: String,
    pub(crate) ranges: Vec<IntegerRange>,
}

/// The labels that every selector of the trace class needs.
pub(crate) fn collect(trace: &TraceClass) -> Result<Selectors, Unwritable> {
    let mut selectors = Selectors::default();
    let mut visit = |owner: ScopeOwner, scope| match walk::root(trace, owner, scope) {
        None => Ok(()),
        Some(class) => {
            let path = FieldPath { scope, steps: Vec::new() };
            Collector { trace, owner, path, selectors: &mut selectors }.field(class)
        }
    };
    visit(ScopeOwner { stream: None, event: None }, Scope::PacketHeader)?;
    for (index, stream) in trace.stream_classes.iter().enumerate() {
        let owner = ScopeOwner { stream: Some(index), event: None };
        for scope in [Scope::PacketContext, Scope::EventHeader, Scope::EventCommonContext] {
            visit(owner, scope)?;
        }
        for event in 0..stream.event_classes.len() {
            let owner = ScopeOwner { event: Some(event), ..owner };
            visit(owner, Scope::EventSpecificContext)?;
            visit(owner, Scope::EventPayload)?;
        }
    }
    Ok(selectors)
}

struct Collector<'t, 's> {
    trace: &'t TraceClass,
    owner: ScopeOwner,
    path: FieldPath,
    selectors: &'s mut Selectors,
}

impl Collector<'_, '_> {
    fn inside(&mut self, step: FieldPathStep, class: &FieldClass) -> Result<(), Unwritable> {
        self.path.steps.push(step);
        self.field(class)?;
        self.path.steps.pop();
        Ok(())
    }

    fn field(&mut self, class: &FieldClass) -> Result<(), Unwritable> {
        match &class.kind {
            FieldKind::Structure(structure) => {
                for (index, member) in structure.members.iter().enumerate() {
                    self.inside(FieldPathStep::Member(index), &member.class)?;
                }
                Ok(())
            }
            FieldKind::StaticArray(array) => self.inside(FieldPathStep::Element, &array.element),
            FieldKind::DynamicArray(array) => self.inside(FieldPathStep::Element, &array.element),
            FieldKind::Optional(optional) => {
                self.optional(optional)?;
                self.inside(FieldPathStep::Content, &optional.content)
            }
            FieldKind::Variant(variant) => {
                self.variant(variant)?;
                for (index, option) in variant.options.iter().enumerate() {
                    self.inside(FieldPathStep::Option(index), &option.class)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn variant(&mut self, variant: &Variant) -> Result<(), Unwritable> {
        let (possible, mut mappings) = self.selector(&variant.selector)?;
        let mut options = Vec::with_capacity(variant.options.len());
        for (index, option) in variant.options.iter().enumerate() {
            let shown = option.name.clone().unwrap_or_else(|| format!("option_{index}"));
            let unspeakable = || self.fault(Reason::Name(shown.clone()));
            let name = names::tsdl(self.path.scope, &shown).ok_or_else(unspeakable)?;
            let wanted = clipped(&option.ranges, possible);
            let found = label_ranges(&mappings, &name);
            if found.is_empty() && !wanted.is_empty() {
                mappings.push(EnumerationMapping { label: name.clone(), ranges: wanted.clone() });
            } else if !same(&found, &wanted) {
                return Err(self.fault(Reason::Label(shown)));
            }
            options.push(Claim { name, ranges: wanted });
        }
        self.claim(&variant.selector, mappings, options);
        Ok(())
    }

    fn optional(&mut self, optional: &Optional) -> Result<(), Unwritable> {
        let (possible, mut mappings) = self.selector(&optional.selector)?;
        let not_zero = [IntegerRange { lower: 1, upper: possible.upper }];
        let there = clipped(optional.ranges.as_deref().unwrap_or(&not_zero), possible);
        let absent = without(&[possible], &there);
        let mut options = Vec::with_capacity(2);
        for (name, wanted) in [("content", there), ("none", absent)] {
            let spellings = (1..).map(|number| if number == 1 { name.to_owned() } else { format!("{name}_{number}") });
            let fits = |spelling: &String| {
                let found = label_ranges(&mappings, spelling);
                found.is_empty() || same(&found, &wanted)
            };
            let name = spellings.into_iter().find(fits).expect("there are more numbers than labels");
            if label_ranges(&mappings, &name).is_empty() && !wanted.is_empty() {
                mappings.push(EnumerationMapping { label: name.clone(), ranges: wanted.clone() });
            }
            options.push(Claim { name, ranges: wanted });
        }
        self.claim(&optional.selector, mappings, options);
        Ok(())
    }

    fn claim(&mut self, selector: &FieldPath, mappings: Vec<EnumerationMapping>, options: Vec<Claim>) {
        self.selectors.mappings.insert((self.owner.of_scope(selector.scope), selector.clone()), mappings);
        self.selectors.options.insert((self.owner, self.path.clone()), options);
    }

    /// The values that a selector can have, and the labels that it has so far.
    fn selector(&self, path: &FieldPath) -> Result<(IntegerRange, Vec<EnumerationMapping>), Unwritable> {
        let lost = || self.fault(Reason::Reference);
        if matches!(path.steps.last(), Some(FieldPathStep::Selected(_))) {
            return Err(lost());
        }
        let class = walk::target(self.trace, self.owner, path).ok_or_else(lost)?;
        let place = (self.owner.of_scope(path.scope), path.clone());
        let (possible, own) = match &class.kind {
            FieldKind::Boolean(bits) => (values(bits, false), Vec::new()),
            FieldKind::Integer(integer) => {
                (values(&integer.bits, integer.meaning.signed), labels(&integer.meaning, &integer.bits))
            }
            _ => return Err(self.fault(Reason::VariableLength)),
        };
        Ok((possible, self.selectors.mappings.get(&place).cloned().unwrap_or(own)))
    }

    fn fault(&self, reason: Reason) -> Unwritable {
        Unwritable { place: walk::place(self.trace, self.owner, &self.path), reason }
    }
}

/// The labels of an integer, for values that it can have.
pub(crate) fn labels(meaning: &IntegerMeaning, bits: &FixedBits) -> Vec<EnumerationMapping> {
    let possible = values(bits, meaning.signed);
    let clip = |mapping: &EnumerationMapping| EnumerationMapping {
        label: mapping.label.clone(),
        ranges: clipped(&mapping.ranges, possible),
    };
    meaning.mappings.iter().map(clip).filter(|mapping| !mapping.ranges.is_empty()).collect()
}

fn values(bits: &FixedBits, signed: bool) -> IntegerRange {
    match signed {
        true => IntegerRange { lower: -(1 << (bits.length - 1)), upper: (1 << (bits.length - 1)) - 1 },
        false => IntegerRange { lower: 0, upper: (1 << bits.length) - 1 },
    }
}

fn clipped(ranges: &[IntegerRange], possible: IntegerRange) -> Vec<IntegerRange> {
    let clip = |range: &IntegerRange| IntegerRange {
        lower: range.lower.max(possible.lower),
        upper: range.upper.min(possible.upper),
    };
    ranges.iter().map(clip).filter(|range| range.lower <= range.upper).collect()
}

/// Whether two lists of ranges hold the same values.
pub(crate) fn same(left: &[IntegerRange], right: &[IntegerRange]) -> bool {
    without(left, right).is_empty() && without(right, left).is_empty()
}
