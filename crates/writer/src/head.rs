//! Values of headers from roles: the writer's known values go where the class wants them.
//!
//! A header may have several forms (LTTng: few bits, or an escape id and many). A form is one choice
//! for each variant and optional in it:
//!
//! ```text
//! for each form, in the order of the options:
//!     selectors get a value that selects the form's options; the id itself where that does
//!     ids get the id, clock fields the low bits of the clock, others what the caller gave
//! the first form that a reader would understand as (id, clock) is taken
//! ```

use std::collections::HashMap;

use kymo_format::model::{FieldClass, FieldKind, FieldPath, FieldPathStep, IntegerRange, Role, Scope};
use kymo_format::value::Value;
use kymo_wire::clock;

use crate::encode::{holds, is_present, moves_clock};
use crate::error::{WriteError, WriteProblem};

/// Forms of one header that are tried, at most.
pub(crate) const FORMS_MAX: usize = 256;

/// The values that a writer knows when it writes a header or a packet context.
pub(crate) struct HeadValues<'a> {
    pub(crate) scope: Scope,
    pub(crate) roles: &'a [(Role, u64)],
    pub(crate) uuid: Option<[u8; 16]>,
    pub(crate) clock: Option<(usize, u64)>,
    /// Values for the fields that have no role: a structure like the class.
    pub(crate) given: Option<&'a Value>,
}

/// A value of `class` in its form number `form`; nothing when there are no more forms.
pub(crate) fn build(class: &FieldClass, known: &HeadValues<'_>, form: usize) -> Option<Result<Value, WriteError>> {
    let mut choices = HashMap::new();
    let mut forced = HashMap::new();
    let mut path = FieldPath { scope: known.scope, steps: Vec::new() };
    let mut rest = form;
    let id = known.role(Role::EventRecordClassId);
    choose(class, &mut path, &mut rest, id, &mut choices, &mut forced);
    if rest != 0 {
        return None;
    }
    let mut builder = HeadBuilder { known, choices, forced, path };
    Some(builder.value(class, known.given))
}

impl HeadValues<'_> {
    fn role(&self, role: Role) -> Option<u64> {
        let found = self.roles.iter().find(|(known, _)| *known == role);
        found.map(|(_, value)| *value)
    }
}

/// Takes one digit of the form's number for each variant and optional, which are its choices.
fn choose(
    class: &FieldClass,
    path: &mut FieldPath,
    rest: &mut usize,
    id: Option<u64>,
    choices: &mut HashMap<FieldPath, usize>,
    forced: &mut HashMap<FieldPath, i128>,
) {
    let mut take = |count: usize| {
        let digit = *rest % count;
        *rest /= count;
        digit
    };
    let (step, inner) = match &class.kind {
        FieldKind::Structure(structure) => {
            for (index, member) in structure.members.iter().enumerate() {
                path.steps.push(FieldPathStep::Member(index));
                choose(&member.class, path, rest, id, choices, forced);
                path.steps.pop();
            }
            return;
        }
        FieldKind::Variant(variant) if !variant.options.is_empty() => {
            let option = take(variant.options.len());
            choices.insert(path.clone(), option);
            if let Some(value) = selecting(&variant.options[option].ranges, id) {
                forced.insert(variant.selector.clone(), value);
            }
            (FieldPathStep::Option(option), &variant.options[option].class)
        }
        FieldKind::Optional(optional) => {
            let present = take(2);
            choices.insert(path.clone(), present);
            let value = match (&optional.ranges, present) {
                (Some(ranges), 1) => selecting(ranges, id),
                (_, present) => Some(present as i128),
            };
            let fits = value.filter(|value| is_present(optional.ranges.as_deref(), *value) == (present == 1));
            forced.extend(fits.map(|value| (optional.selector.clone(), value)));
            if present == 0 {
                return;
            }
            (FieldPathStep::Content, &optional.content)
        }
        _ => return,
    };
    path.steps.push(step);
    choose(inner, path, rest, id, choices, forced);
    path.steps.pop();
}

/// The id if it selects, else the first value that does.
fn selecting(ranges: &[IntegerRange], id: Option<u64>) -> Option<i128> {
    let id = id.map(i128::from).filter(|id| holds(ranges, *id));
    id.or_else(|| ranges.first().map(|range| range.lower))
}

struct HeadBuilder<'a> {
    known: &'a HeadValues<'a>,
    choices: HashMap<FieldPath, usize>,
    forced: HashMap<FieldPath, i128>,
    path: FieldPath,
}

impl HeadBuilder<'_> {
    fn value(&mut self, class: &FieldClass, given: Option<&Value>) -> Result<Value, WriteError> {
        match &class.kind {
            FieldKind::Structure(structure) => {
                let mut values = Vec::new();
                for (index, member) in structure.members.iter().enumerate() {
                    let given = given.and_then(|given| member_of(given, index));
                    let value = self.below(FieldPathStep::Member(index), &member.class, given);
                    values.push(value.map_err(|error| error.inside(&member.name))?);
                }
                Ok(Value::Structure(values))
            }
            FieldKind::Variant(variant) if given.is_none() && !variant.options.is_empty() => {
                let option = self.choices.get(&self.path).copied().unwrap_or(0);
                let content = self.below(FieldPathStep::Option(option), &variant.options[option].class, None)?;
                Ok(Value::Variant { option, content: Box::new(content) })
            }
            FieldKind::Optional(optional) if given.is_none() => {
                if self.choices.get(&self.path) != Some(&1) {
                    return Ok(Value::Optional(None));
                }
                let content = self.below(FieldPathStep::Content, &optional.content, None)?;
                Ok(Value::Optional(Some(Box::new(content))))
            }
            _ => self.leaf(class, given).ok_or_else(|| WriteProblem::Missing.into()),
        }
    }

    fn below(&mut self, step: FieldPathStep, class: &FieldClass, given: Option<&Value>) -> Result<Value, WriteError> {
        self.path.steps.push(step);
        let value = self.value(class, given);
        self.path.steps.pop();
        value
    }

    fn leaf(&self, class: &FieldClass, given: Option<&Value>) -> Option<Value> {
        if let FieldKind::StaticBlob(blob) = &class.kind {
            let uuid = self.known.uuid.filter(|_| blob.roles.contains(&Role::MetadataStreamUuid));
            return uuid.map(|uuid| Value::Blob(uuid.to_vec())).or_else(|| given.cloned());
        }
        let signed = class.integer_meaning().is_some_and(|meaning| meaning.signed);
        if let (Some(value), None) = (self.forced.get(&self.path), given) {
            return match (&class.kind, signed) {
                (FieldKind::Boolean(_), _) => Some(Value::Boolean(*value != 0)),
                (_, true) => i64::try_from(*value).ok().map(Value::Signed),
                (_, false) => u64::try_from(*value).ok().map(Value::Unsigned),
            };
        }
        let by_role = class.roles().iter().rev().find_map(|role| {
            let is_begin = *role == Role::DefaultClockTimestamp;
            let value = self.known.role(*role).filter(|_| !is_begin)?;
            // It counts on from 0 when its bits are used up.
            let wraps = *role == Role::PacketSequenceNumber;
            Some(Value::Unsigned(if wraps { clock::low_bits(value, bits(class)) } else { value }))
        });
        by_role.or_else(|| self.timestamp(class)).or_else(|| given.cloned())
    }

    /// The low bits of the clock, for a field that moves it.
    fn timestamp(&self, class: &FieldClass) -> Option<Value> {
        let (index, cycles) = self.known.clock?;
        let meaning = class.integer_meaning()?;
        let moves = moves_clock(meaning, Some(index));
        moves.then(|| Value::Unsigned(clock::low_bits(cycles, bits(class))))
    }
}

/// Bits of an integer.
fn bits(class: &FieldClass) -> u32 {
    match &class.kind {
        FieldKind::Integer(integer) => integer.bits.length,
        _ => u64::BITS,
    }
}

fn member_of(given: &Value, index: usize) -> Option<&Value> {
    match given {
        Value::Structure(values) => values.get(index),
        _ => None,
    }
}
