//! The terms of columns of events in the filter language.
//!
//! A column `x` is the field `x` that the language finds first, too: of the payload, else of the
//! contexts, the narrower one first. A column `payload.x` is `$payload.x`. Where classes of events
//! differ in the field, nothing is said of it.

use std::collections::BTreeSet;

use kymo_format::model::{self, DataStreamClass, EnumerationMapping, FieldClass, FieldKind, Scope};
use kymo_scan::Trace;
use kymo_sql::{Term, TermKind, ValueName};
use kymo_table::arrow::datatypes::{DataType, Schema};

use crate::open::Session;

/// The scopes of a record that fields are looked for in, the first one first.
const SCOPES: [Scope; 4] =
    [Scope::EventPayload, Scope::EventSpecificContext, Scope::EventCommonContext, Scope::PacketContext];
/// Columns of integers have their labels in another one, with this behind its name.
const LABEL: &str = "_label";

/// Meaning of each column, if all events of these names agree; no names: all events, without facts
/// about their fields.
pub(super) fn terms(session: &Session, events: &[String], schema: &Schema) -> Vec<Option<Term>> {
    let is_name = |index: usize| schema.field(index).name() == "name" && events.is_empty();
    let term = |index: usize| {
        let field = schema.field(index);
        let of_event = |text: &str, kind| Some(Term { text: text.to_owned(), kind });
        match field.name().as_str() {
            "time" => of_event("$time", TermKind::Time),
            "cycles" => of_event("$cycles", TermKind::Integer),
            "name" if is_name(index) => of_event("$event.name", TermKind::Name),
            "stream" => None,
            name if !events.is_empty() => of_field(session, events, name, field.data_type()),
            _ => None,
        }
    };
    (0..schema.fields().len()).map(term).collect()
}

/// The names of all fields that are columns of some table.
pub(super) fn all_fields(session: &Session) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for trace in &session.traces {
        for stream in &trace.class.stream_classes {
            for event in 0..stream.event_classes.len() {
                for scope in SCOPES {
                    let members = members(stream, event, scope).filter(|it| is_shown(scope, it));
                    names.extend(members.map(|member| shown(trace, member).to_owned()));
                }
            }
        }
    }
    names
}

fn members(stream: &DataStreamClass, event: usize, scope: Scope) -> impl Iterator<Item = &model::Member> {
    let event = &stream.event_classes[event];
    let class = match scope {
        Scope::PacketContext => &stream.packet_context,
        Scope::EventCommonContext => &stream.event_common_context,
        Scope::EventSpecificContext => &event.specific_context,
        _ => &event.payload,
    };
    let members = match class.as_ref().map(|class| &class.kind) {
        Some(FieldKind::Structure(structure)) => &structure.members[..],
        _ => &[],
    };
    members.iter()
}

/// Tables do not have the fields of packets with roles.
fn is_shown(scope: Scope, member: &model::Member) -> bool {
    scope != Scope::PacketContext || member.class.roles().is_empty()
}

fn shown<'m>(trace: &Trace, member: &'m model::Member) -> &'m str {
    model::display_name(trace.class.dialect, &member.name)
}

fn of_field(session: &Session, events: &[String], column: &str, data_type: &DataType) -> Option<Term> {
    let is_label = matches!(data_type, DataType::Dictionary(..));
    let column = if is_label { column.strip_suffix(LABEL)? } else { column };
    let (name, scopes) = match column.strip_prefix("payload.") {
        Some(name) => (name, &SCOPES[..1]),
        None => (column, &SCOPES[..]),
    };
    if name.contains('`') || name.contains(char::is_control) {
        return None;
    }
    let mut kind: Option<TermKind> = None;
    for trace in &session.traces {
        for stream in &trace.class.stream_classes {
            let chosen = stream.event_classes.iter().enumerate();
            for (event, _) in chosen.filter(|(_, class)| class.name.as_ref().is_some_and(|name| events.contains(name)))
            {
                let found = scopes.iter().find_map(|&scope| {
                    members(stream, event, scope).find(|it| shown(trace, it) == name).map(|member| (scope, member))
                });
                let Some((scope, member)) = found else { continue };
                // The language has it here, and the table does not.
                if !is_shown(scope, member) {
                    return None;
                }
                let this = term_kind(&member.class, is_label)?;
                if kind.as_ref().is_some_and(|kind| *kind != this) {
                    return None;
                }
                kind = Some(this);
            }
        }
    }
    let kind = kind.filter(|kind| agrees(kind, data_type))?;
    let text = if scopes.len() == 1 { format!("$payload.{}", quoted(name)) } else { quoted(name) };
    Some(Term { text, kind })
}

/// Plain names are written as they are.
fn quoted(name: &str) -> String {
    let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && !["in", "has", "time", "cycles"].contains(&name);
    if is_plain { name.to_owned() } else { format!("`{name}`") }
}

/// Whether the column has the values of the field as they are.
fn agrees(kind: &TermKind, data_type: &DataType) -> bool {
    match kind {
        TermKind::Integer => data_type.is_integer(),
        TermKind::Boolean => *data_type == DataType::Boolean,
        TermKind::Real => matches!(data_type, DataType::Float32 | DataType::Float64),
        TermKind::Text => *data_type == DataType::Utf8,
        TermKind::Label(_) => true,
        TermKind::Name | TermKind::Time => false,
    }
}

fn term_kind(class: &FieldClass, is_label: bool) -> Option<TermKind> {
    let meaning = match &class.kind {
        FieldKind::Optional(optional) => return term_kind(&optional.content, is_label),
        FieldKind::Integer(integer) => Some(&integer.meaning),
        FieldKind::VariableInteger(integer) => Some(&integer.meaning),
        _ => None,
    };
    if is_label {
        return Some(TermKind::Label(labels(&meaning?.mappings).into()));
    }
    Some(match &class.kind {
        FieldKind::Integer(_) | FieldKind::VariableInteger(_) | FieldKind::BitArray(_) | FieldKind::BitMap(_) => {
            TermKind::Integer
        }
        FieldKind::Boolean(_) => TermKind::Boolean,
        FieldKind::Real(_) => TermKind::Real,
        FieldKind::NullTerminatedText(_) | FieldKind::StaticText(_) | FieldKind::DynamicText(_) => TermKind::Text,
        _ => return None,
    })
}

/// Which values have which label: of several that a value has, tables show the first.
fn labels(mappings: &[EnumerationMapping]) -> Vec<ValueName> {
    let mut taken: Vec<(i128, i128)> = Vec::new();
    let mut labels = Vec::new();
    for mapping in mappings {
        let mut ranges = Vec::new();
        for range in &mapping.ranges {
            ranges.extend(without(range.lower, range.upper, &taken));
            taken.push((range.lower, range.upper));
            taken.sort_unstable();
        }
        labels.push(ValueName { name: mapping.label.clone(), ranges });
    }
    labels
}

/// The rest of a range; `taken` is sorted.
fn without(lower: i128, upper: i128, taken: &[(i128, i128)]) -> Vec<(i128, i128)> {
    let (mut next, mut left) = (lower, Vec::new());
    for &(low, high) in taken {
        if high < next || low > upper {
            continue;
        }
        if low > next {
            left.push((next, low - 1));
        }
        next = next.max(high.saturating_add(1));
    }
    if next <= upper {
        left.push((next, upper));
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_format::model::IntegerRange;

    #[test]
    fn of_several_labels_the_first_counts() {
        let mapping = |label: &str, lower, upper| {
            let ranges = vec![IntegerRange { lower, upper }];
            EnumerationMapping { label: label.to_owned(), ranges }
        };
        let found = labels(&[mapping("a", 3, 5), mapping("b", 0, 10), mapping("c", 4, 4), mapping("d", -1, 12)]);
        let ranges: Vec<Vec<(i128, i128)>> = found.into_iter().map(|label| label.ranges).collect();
        assert_eq!(ranges, [vec![(3, 5)], vec![(0, 2), (6, 10)], vec![], vec![(-1, -1), (11, 12)]]);
    }
}
