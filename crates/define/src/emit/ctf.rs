//! Metadata of CTF 1.8 and 2 as a recorder writes it for these events, for readers that want it before there is a trace.

use std::path::Path;

use kymo_format::model::EnvironmentValue;
use kymo_schema::field::DefinedField;
use kymo_schema::meaning::{self, DefinedMeaning, SchemaOrigin};
use kymo_units::Uuid;
pub use kymo_writer::CtfVersion;
use kymo_writer::{RawClock, RawEvent, RawOptions, RawTrace};

use crate::model::{Schema, SchemaSubsystem};

/// The metadata in this version of CTF.
///
/// # Errors
///
/// It cannot express them, in words.
pub fn metadata(schema: &Schema, format: CtfVersion) -> Result<String, String> {
    let clock = RawClock {
        name: "monotonic".to_owned(),
        description: "Monotonic clock".to_owned(),
        frequency_hz: 1_000_000_000,
        precision_cycles: 0,
        offset_s: 0,
        offset_cycles: 0,
        is_absolute: false,
    };
    let text = |text: &str| EnvironmentValue::Text(text.to_owned());
    let environment = vec![
        ("schema".to_owned(), text(&schema.name)),
        ("schema_version".to_owned(), EnvironmentValue::Integer(schema.version.into())),
    ];
    let options =
        RawOptions { format, uuid: Uuid([0; 16]), clock, environment, packet_fields: Vec::new(), is_private: false };
    let wrong = |error: kymo_writer::WriteError| error.to_string();
    // Nothing is written: the text stays in memory.
    let mut trace = RawTrace::go_on(Path::new(""), options).map_err(wrong)?;
    let stream = trace.stream_class(&[]).map_err(wrong)?;
    let of_subsystem =
        |(place, subsystem): (usize, &SchemaSubsystem)| (0..subsystem.events.len()).map(move |event| (place, event));
    for (id, places) in schema.subsystems.iter().enumerate().flat_map(of_subsystem).enumerate() {
        let subsystem = &schema.subsystems[places.0];
        let event = &subsystem.events[places.1];
        let id = u16::try_from(id).map_err(|_| "metadata has at most 65,536 events")?;
        let field = |field: &crate::model::SchemaField| DefinedField {
            name: field.name.clone(),
            kind: schema.field_type(&field.kind),
        };
        let fields: Vec<DefinedField> = event.fields.iter().map(field).collect();
        let lines = super::lines(schema, places);
        let origin = lines.iter().find_map(|line| SchemaOrigin::parse(line.strip_prefix("schema ")?));
        let meanings: Vec<DefinedMeaning> =
            lines.iter().filter_map(|line| DefinedMeaning::parse(line.strip_prefix("as ")?)).collect();
        let uri = meaning::uri("", None, origin.as_ref(), &meanings);
        let name = format!("{}:{}", subsystem.name, event.name);
        let class = RawEvent { id, name: &name, level: Some(event.level), uri: uri.as_deref(), fields: &fields };
        trace.event_class(stream, &class).map_err(wrong)?;
    }
    Ok(trace.into_metadata().0)
}
