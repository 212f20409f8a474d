//! Random values of field classes, such that a reader finds them again.
//!
//! ```text
//! len: u8, items: u32[len]    len is somebody's length: 0 to 4
//! tag: i8, v: variant <tag>   tag selects: mostly the lowest value of one of the options' ranges
//! ```

use std::collections::{HashMap, HashSet};

use kymo_format::model::{
    FieldClass, FieldKind, FieldPath, FieldPathStep, IntegerMeaning, IntegerRange, Role, Scope, TextEncoding,
};
use kymo_format::value::Value;

use crate::random::RandomNumbers;

/// Elements, bytes or code units of a value with a length, at most.
const LENGTH_MAX: i128 = 4;

/// Makes values of the scopes of one event record, in their order.
pub(crate) struct ScopeValues<'r> {
    random: &'r mut RandomNumbers,
    lengths: HashSet<FieldPath>,
    /// Values that select an option.
    selectors: HashMap<FieldPath, Vec<i128>>,
    saved: HashMap<FieldPath, i128>,
    /// The values that the writer puts into fields with roles.
    roles: Vec<(Role, u64)>,
    here: FieldPath,
}

impl<'r> ScopeValues<'r> {
    /// `classes`: all scopes that may refer to others.
    pub(crate) fn new<'c>(random: &'r mut RandomNumbers, classes: impl Iterator<Item = &'c FieldClass>) -> Self {
        let here = FieldPath { scope: Scope::PacketHeader, steps: Vec::new() };
        let (lengths, selectors, saved) = (HashSet::new(), HashMap::new(), HashMap::new());
        let mut values = Self { random, lengths, selectors, saved, roles: Vec::new(), here };
        classes.for_each(|class| values.note(class));
        values
    }

    /// Notes the fields that others need.
    fn note(&mut self, class: &FieldClass) {
        let lowest = |ranges: &[IntegerRange]| ranges.iter().map(|range| range.lower).collect::<Vec<i128>>();
        match &class.kind {
            FieldKind::DynamicText(text) => drop(self.lengths.insert(text.length.clone())),
            FieldKind::DynamicBlob(blob) => drop(self.lengths.insert(blob.length.clone())),
            FieldKind::DynamicArray(array) => {
                self.lengths.insert(array.length.clone());
                self.note(&array.element);
            }
            FieldKind::StaticArray(array) => self.note(&array.element),
            FieldKind::Structure(structure) => structure.members.iter().for_each(|member| self.note(&member.class)),
            FieldKind::Optional(optional) => {
                let selects = optional.ranges.as_deref().map_or(vec![0, 1], lowest);
                self.selectors.entry(optional.selector.clone()).or_default().extend(selects);
                self.note(&optional.content);
            }
            FieldKind::Variant(variant) => {
                for option in &variant.options {
                    self.selectors.entry(variant.selector.clone()).or_default().extend(lowest(&option.ranges));
                    self.note(&option.class);
                }
            }
            _ => {}
        }
    }

    /// A value of a scope; `None` if it needs values that only the writer knows, or a selector that
    /// selects nothing.
    pub(crate) fn scope(&mut self, class: &FieldClass, scope: Scope, roles: &[(Role, u64)]) -> Option<Value> {
        self.here = FieldPath { scope, steps: Vec::new() };
        self.roles = roles.to_vec();
        self.field(class)
    }

    fn field(&mut self, class: &FieldClass) -> Option<Value> {
        Some(match &class.kind {
            FieldKind::BitArray(bits) => Value::BitArray(self.random.any() >> (64 - bits.length)),
            FieldKind::BitMap(map) => Value::BitArray(self.random.any() >> (64 - map.bits.length)),
            FieldKind::Boolean(_) => {
                let value = self.random.below(2) == 1;
                self.saved.insert(self.here.clone(), value.into());
                Value::Boolean(value)
            }
            FieldKind::Integer(integer) => self.integer(integer.bits.length, &integer.meaning)?,
            FieldKind::VariableInteger(integer) => self.integer(64, &integer.meaning)?,
            FieldKind::Real(bits) => Value::Real((self.random.any() >> (64 - bits.length)).into()),
            FieldKind::NullTerminatedText(encoding) => {
                let length = self.random.below(4) as u64 * unit(*encoding);
                Value::Text(self.text(length))
            }
            FieldKind::StaticText(text) => {
                let length = self.random.below(text.length as usize + 1) as u64;
                Value::Text(self.text(length / unit(text.encoding) * unit(text.encoding)))
            }
            FieldKind::DynamicText(text) => {
                let length = self.length(&text.length)?;
                Value::Text(self.text(length))
            }
            FieldKind::StaticBlob(blob) => Value::Blob(self.random.bytes(blob.length as usize)),
            FieldKind::DynamicBlob(blob) => {
                let length = self.length(&blob.length)?;
                Value::Blob(self.random.bytes(length as usize))
            }
            FieldKind::Structure(structure) => {
                let members = structure.members.iter().enumerate();
                let values = members.map(|(index, member)| self.below(FieldPathStep::Member(index), &member.class));
                Value::Structure(values.collect::<Option<_>>()?)
            }
            FieldKind::StaticArray(array) => self.elements(array.length, &array.element)?,
            FieldKind::DynamicArray(array) => {
                let length = self.length(&array.length)?;
                self.elements(length, &array.element)?
            }
            FieldKind::Optional(optional) => {
                let selector = *self.saved.get(&optional.selector)?;
                let holds = |ranges: &Vec<IntegerRange>| ranges.iter().any(|range| range.contains(selector));
                let is_present = optional.ranges.as_ref().map_or(selector != 0, holds);
                let content =
                    if is_present { Some(self.below(FieldPathStep::Content, &optional.content)?) } else { None };
                Value::Optional(content.map(Box::new))
            }
            FieldKind::Variant(variant) => {
                let selector = *self.saved.get(&variant.selector)?;
                let holds = |ranges: &[IntegerRange]| ranges.iter().any(|range| range.contains(selector));
                let option = variant.options.iter().position(|option| holds(&option.ranges))?;
                let content = self.below(FieldPathStep::Option(option), &variant.options[option].class)?;
                Value::Variant { option, content: Box::new(content) }
            }
        })
    }

    fn below(&mut self, step: FieldPathStep, class: &FieldClass) -> Option<Value> {
        self.here.steps.push(step);
        let value = self.field(class);
        self.here.steps.pop();
        value
    }

    fn elements(&mut self, count: u64, class: &FieldClass) -> Option<Value> {
        let values = (0..count).map(|_| self.below(FieldPathStep::Element, class)).collect::<Option<_>>()?;
        Some(Value::Array(values))
    }

    fn integer(&mut self, bits: u32, meaning: &IntegerMeaning) -> Option<Value> {
        let any = self.random.any();
        let mut value =
            if meaning.signed { i128::from(any as i64 >> (64 - bits)) } else { i128::from(any >> (64 - bits)) };
        let role = |role: &Role| self.roles.iter().find(|(known, _)| known == role).map(|(_, value)| *value);
        if !meaning.roles.is_empty() {
            value = match meaning.roles.iter().rev().find_map(role) {
                Some(known) => known.into(),
                // Something needs a value that only the writer knows.
                None if self.is_needed() => return None,
                None => 0,
            };
        } else if let Some(selects) = self.selectors.get(&self.here).filter(|_| !any.is_multiple_of(8)) {
            value = selects[any as usize / 8 % selects.len()];
        }
        if self.lengths.contains(&self.here) && meaning.roles.is_empty() {
            let highest = LENGTH_MAX.min((1 << bits) - 1);
            value = if (0..=highest).contains(&value) { value } else { i128::from(any >> 1) % (highest + 1) };
        }
        self.saved.insert(self.here.clone(), value);
        Some(if meaning.signed { Value::Signed(value as i64) } else { Value::Unsigned(value as u64) })
    }

    fn is_needed(&self) -> bool {
        self.lengths.contains(&self.here) || self.selectors.contains_key(&self.here)
    }

    fn length(&self, path: &FieldPath) -> Option<u64> {
        let length = *self.saved.get(path)?;
        (0..=LENGTH_MAX).contains(&length).then_some(length as u64)
    }

    /// Bytes of which none is zero, so that no code unit is.
    fn text(&mut self, length: u64) -> Vec<u8> {
        (0..length).map(|_| self.random.below(255) as u8 + 1).collect()
    }
}

fn unit(encoding: TextEncoding) -> u64 {
    match encoding {
        TextEncoding::Ascii | TextEncoding::Utf8 => 1,
        TextEncoding::Utf16Be | TextEncoding::Utf16Le => 2,
        TextEncoding::Utf32Be | TextEncoding::Utf32Le => 4,
    }
}
