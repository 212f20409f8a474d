//! Mappings that travel in traces: each event of a schema has its roles in its URI (`kymo_schema::meaning`).

use kymo_filter::{Filter, NamePath};
use kymo_format::TraceClass;
use kymo_schema::meaning::{self, DefinedFact, DefinedMeaning};

use super::{Alternatives, NamePattern, RoleMapping, Section, ValueSource};
use crate::roles::EventRole;

/// The mapping of a trace, if its events have meanings.
pub(super) fn mapping(trace: &TraceClass) -> Option<RoleMapping> {
    let mut mapping = RoleMapping::new("schema");
    for event in trace.stream_classes.iter().flat_map(|stream| &stream.event_classes) {
        let (Some(name), Some(uri)) = (&event.name, &event.emf_uri) else { continue };
        let sections = meaning::meanings(uri).into_iter().filter_map(|meaning| section(name, &meaning));
        mapping.sections.extend(sections);
    }
    (!mapping.sections.is_empty()).then_some(mapping)
}

/// A role of events of that name; `None` if it is of a later version.
fn section(name: &str, meaning: &DefinedMeaning) -> Option<Section> {
    let role = EventRole::named(&meaning.role)?;
    let mut section = Section::new(role, vec![NamePattern::new(name)]);
    // Other traces may have other events of that name. A star is any text; the part has none.
    section.when = Some(Filter::parse(&format!("event.emf_uri == \"*{}*\"", meaning.part())).ok()?);
    for (word, value) in &meaning.facts {
        if let Some(field) = role.field(word) {
            section.fields[field] = source(value)?;
        }
    }
    Some(section)
}

fn source(value: &DefinedFact) -> Option<Alternatives> {
    let path = |path: &str| NamePath::parse(path).ok().map(ValueSource::Path);
    Some(match value {
        DefinedFact::Field(field) => vec![path(field)?],
        DefinedFact::Text(text) => vec![ValueSource::Text(text.clone())],
        DefinedFact::Integer(integer) => vec![ValueSource::Integer(*integer)],
        DefinedFact::Thread => vec![path("packet.vtid")?, path("$ctx.vtid")?],
        DefinedFact::Process => vec![path("packet.vpid")?, path("$ctx.vpid")?],
    })
}
