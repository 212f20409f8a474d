//! The whole schema as JSON, for tools.

use serde_json::{Map, Value, json};

use crate::model::{
    EventUse, FactValue, Meaning, Schema, SchemaEnumeration, SchemaEvent, SchemaField, SchemaSubsystem,
};

/// The schema. Keys do not change their meaning; new ones may come.
#[must_use]
pub fn schema(schema: &Schema) -> Value {
    json!({
        "schema": schema.name,
        "version": schema.version,
        "text": schema.text,
        "language": if schema.is_plain { "pleco" } else { "kymo" },
        "enumerations": schema.enumerations.iter().map(enumeration).collect::<Vec<_>>(),
        "subsystems": schema.subsystems.iter().map(|subsystem| of_subsystem(schema, subsystem)).collect::<Vec<_>>(),
    })
}

fn enumeration(enumeration: &SchemaEnumeration) -> Value {
    let labels = enumeration.labels.iter().map(|label| {
        // Beyond 53 bits, readers of JSON may round.
        json!({"name": label.name, "value": label.value.to_string(), "text": label.text})
    });
    json!({
        "name": enumeration.name,
        "type": enumeration.word,
        "text": enumeration.text,
        "labels": labels.collect::<Vec<_>>(),
    })
}

fn of_subsystem(schema: &Schema, subsystem: &SchemaSubsystem) -> Value {
    json!({
        "name": subsystem.name,
        "id": subsystem.id,
        "text": subsystem.text,
        "events": subsystem.events.iter().map(|event| of_event(schema, event)).collect::<Vec<_>>(),
        "durations": subsystem.durations.iter().map(|duration| &duration.name).collect::<Vec<_>>(),
        "meanings": subsystem.meanings.iter().map(|meaning| of_meaning(schema, meaning)).collect::<Vec<_>>(),
    })
}

fn of_event(schema: &Schema, event: &SchemaEvent) -> Value {
    let field = |field: &SchemaField| json!({"name": field.name, "type": schema.type_word(&field.kind), "unit": field.unit, "text": field.text});
    let level = kymo_schema::level::LogLevel::of(event.level.into()).map(|level| level.name);
    json!({
        "name": event.name,
        "id": event.id,
        "level": level,
        "since": event.since,
        "text": event.text,
        "fields": event.fields.iter().map(field).collect::<Vec<_>>(),
    })
}

fn of_meaning(schema: &Schema, meaning: &Meaning) -> Value {
    let used = |used: &EventUse| {
        let (subsystem, event) = schema.event_of(used);
        let facts: Map<String, Value> =
            used.facts.iter().map(|(fact, value)| (fact.word().to_owned(), of_value(event, value))).collect();
        json!({"subsystem": subsystem.name, "event": event.name, "role": used.role.word(), "facts": facts})
    };
    json!({
        "name": meaning.name,
        "kind": meaning.word,
        "text": meaning.text,
        "events": meaning.events.iter().map(used).collect::<Vec<_>>(),
    })
}

fn of_value(event: &SchemaEvent, value: &FactValue) -> Value {
    match value {
        FactValue::Field(field) => json!({"field": event.fields[*field].name}),
        FactValue::Text(text) => json!({"text": text}),
        FactValue::Number(number) => json!({"number": number.to_string()}),
        FactValue::Thread => json!("thread"),
        FactValue::Process => json!("process"),
    }
}
