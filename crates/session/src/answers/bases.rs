//! In which base integers of fields are written for people, as the trace wishes and `kymo print` does.
//!
//! Tables and JSON have plain numbers, which programs read; a face that shows them asks here. A
//! field that is no plain integer has a base for each integer in it, by the names that lead there:
//! of members, and of options for columns. Elements of arrays are all alike.

use kymo_format::model::{
    DataStreamClass, Dialect, DisplayBase, FieldClass, FieldKind, IntegerMeaning, Member, Scope, TraceClass,
    display_name,
};
use serde::Serialize;

/// Scopes of the reported fields.
const SCOPES: [Scope; 4] =
    [Scope::PacketContext, Scope::EventCommonContext, Scope::EventSpecificContext, Scope::EventPayload];

/// How integers are written that are not written in base 10.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FieldBase {
    /// The names that lead to the integer.
    pub path: Vec<String>,
    /// 2, 8 or 16.
    pub base: u8,
    /// How many bits it has: those of negative ones are shown, and in base 2 all.
    pub bits: u8,
}

/// Of all integers in a field, those of base 10 left out; `path` leads to the field.
fn bases(dialect: Dialect, class: &FieldClass, path: &mut Vec<String>, found: &mut Vec<FieldBase>) {
    let mut add = |base, bits| found.push(FieldBase { path: path.clone(), base, bits });
    match &class.kind {
        FieldKind::BitArray(bits) => add(16, bits.length as u8),
        FieldKind::BitMap(map) => add(16, map.bits.length as u8),
        FieldKind::Integer(integer) => {
            base(&integer.meaning).into_iter().for_each(|base| add(base, integer.bits.length as u8));
        }
        FieldKind::VariableInteger(integer) => base(&integer.meaning).into_iter().for_each(|base| add(base, 64)),
        FieldKind::StaticArray(array) => bases(dialect, &array.element, path, found),
        FieldKind::DynamicArray(array) => bases(dialect, &array.element, path, found),
        FieldKind::Optional(optional) => bases(dialect, &optional.content, path, found),
        FieldKind::Structure(structure) => {
            for member in &structure.members {
                path.push(display_name(dialect, &member.name).to_owned());
                bases(dialect, &member.class, path, found);
                path.pop();
            }
        }
        FieldKind::Variant(variant) => {
            for (number, option) in variant.options.iter().enumerate() {
                // JSON has the option's value in place of the variant, columns have members for all options.
                bases(dialect, &option.class, path, found);
                path.push(option.name.clone().unwrap_or_else(|| format!("option{number}")));
                bases(dialect, &option.class, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

fn base(meaning: &IntegerMeaning) -> Option<u8> {
    match meaning.base {
        DisplayBase::Decimal => None,
        DisplayBase::Binary => Some(2),
        DisplayBase::Octal => Some(8),
        DisplayBase::Hexadecimal => Some(16),
    }
}

/// Bases of a field, by the names inside it.
#[cfg(feature = "columns")]
pub(crate) fn bases_of_field(dialect: Dialect, class: &FieldClass) -> Vec<FieldBase> {
    let mut found = Vec::new();
    bases(dialect, class, &mut Vec::new(), &mut found);
    found
}

/// Of all fields of a class of events; the first name is that of the scope, as in JSON.
pub(crate) fn bases_of_event(trace: &TraceClass, stream: usize, event: usize) -> Vec<FieldBase> {
    let mut found = Vec::new();
    for (scope, member) in fields(&trace.stream_classes[stream], event) {
        let scope = match scope {
            Scope::PacketContext => "packet_context",
            Scope::EventCommonContext => "common_context",
            Scope::EventSpecificContext => "context",
            _ => "payload",
        };
        let name = display_name(trace.dialect, &member.name);
        bases(trace.dialect, &member.class, &mut vec![scope.to_owned(), name.to_owned()], &mut found);
    }
    found
}

/// The fields that an event shows, with their scopes.
pub(crate) fn fields(stream: &DataStreamClass, event: usize) -> impl Iterator<Item = (Scope, &Member)> {
    let event = stream.event_classes.get(event);
    SCOPES.into_iter().flat_map(move |scope| {
        let class = match scope {
            Scope::PacketContext => stream.packet_context.as_ref(),
            Scope::EventCommonContext => stream.event_common_context.as_ref(),
            Scope::EventSpecificContext => event.and_then(|event| event.specific_context.as_ref()),
            _ => event.and_then(|event| event.payload.as_ref()),
        };
        let members = match class.map(|class| &class.kind) {
            Some(FieldKind::Structure(structure)) => &structure.members[..],
            _ => &[],
        };
        // Fields with a role in a packet's context are for readers of packets.
        let is_shown = move |member: &&Member| scope != Scope::PacketContext || member.class.roles().is_empty();
        members.iter().filter(is_shown).map(move |member| (scope, member))
    })
}
