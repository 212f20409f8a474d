//! Names in both languages.
//!
//! TSDL names are identifiers and no keywords; where a name would be one, an underscore precedes
//! it, which readers take away again. Readers show CTF 2 names.

use std::collections::{HashMap, HashSet};

use crate::model::{Dialect, Role, Scope, display_name};
use crate::tsdl::RESERVED;

/// Names with a meaning in a scope, and their role.
const SPECIAL: [(Scope, &str, Role); 11] = [
    (Scope::PacketHeader, "magic", Role::PacketMagicNumber),
    (Scope::PacketHeader, "uuid", Role::MetadataStreamUuid),
    (Scope::PacketHeader, "stream_id", Role::DataStreamClassId),
    (Scope::PacketHeader, "stream_instance_id", Role::DataStreamId),
    (Scope::PacketContext, "packet_size", Role::PacketTotalLength),
    (Scope::PacketContext, "content_size", Role::PacketContentLength),
    (Scope::PacketContext, "timestamp_begin", Role::DefaultClockTimestamp),
    (Scope::PacketContext, "timestamp_end", Role::PacketEndDefaultClockTimestamp),
    (Scope::PacketContext, "events_discarded", Role::DiscardedEventRecordCounterSnapshot),
    (Scope::PacketContext, "packet_seq_num", Role::PacketSequenceNumber),
    (Scope::EventHeader, "id", Role::EventRecordClassId),
];

/// The name that gives a field its role in TSDL.
pub(crate) fn special(scope: Scope, role: Role) -> Option<&'static str> {
    SPECIAL.iter().find(|(known, _, means)| (*known, *means) == (scope, role)).map(|(_, name, _)| *name)
}

/// A word that TSDL takes for a name.
pub(crate) fn is_identifier(name: &str) -> bool {
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

/// The TSDL spelling of a name that people see; `None` if there is none.
pub(crate) fn tsdl(scope: Scope, name: &str) -> Option<String> {
    let is_special = SPECIAL.iter().any(|(known, special, _)| *known == scope && *special == name);
    let protect = name.starts_with('_') || RESERVED.contains(&name) || is_special;
    is_identifier(name).then(|| if protect { format!("_{name}") } else { name.to_owned() })
}

/// The names that people see of one structure's members, or of one variant's options.
/// Where two would be the same, all stay as they were written.
pub(crate) fn displayed<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Vec<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in names.clone() {
        *counts.entry(display_name(Dialect::Ctf1, name)).or_default() += 1;
    }
    let choose = |name: &'n str| match display_name(Dialect::Ctf1, name) {
        shown if counts[shown] == 1 => shown,
        _ => name,
    };
    let chosen: Vec<&str> = names.clone().map(choose).collect();
    let unique = chosen.iter().collect::<HashSet<_>>().len() == chosen.len();
    if unique { chosen.into_iter().map(str::to_owned).collect() } else { names.map(str::to_owned).collect() }
}
