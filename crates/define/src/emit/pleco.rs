//! Barrelfish's own files: the header with numbers, and the JSON that its readers use; byte for byte as `pleco` writes them.

use std::fmt::Write;

use crate::model::{Schema, SchemaEvent, SchemaSubsystem};

/// Subsystems, and events of each, in the order of their ids.
fn by_id(schema: &Schema) -> Vec<(&SchemaSubsystem, Vec<&SchemaEvent>)> {
    let mut all: Vec<(&SchemaSubsystem, Vec<&SchemaEvent>)> =
        schema.subsystems.iter().map(|subsystem| (subsystem, subsystem.events.iter().collect())).collect();
    all.sort_by_key(|(subsystem, _)| subsystem.id);
    all.iter_mut().for_each(|(_, events)| events.sort_by_key(|event| event.id));
    all
}

/// As `pleco` has it: each character by itself, where it is one then.
fn upper(name: &str) -> String {
    let upper = |c: char| {
        let mut all = c.to_uppercase();
        all.next().filter(|_| all.next().is_none()).unwrap_or(c)
    };
    name.chars().map(upper).collect()
}

/// The header; `stem` is the name of its file without `.h`.
#[must_use]
pub fn header(schema: &Schema, stem: &str) -> String {
    let guard = format!("{}_BARRELFISH__", upper(stem));
    let mut out = format!("#ifndef {guard}\n#define {guard}\n\n");
    for (subsystem, events) in by_id(schema) {
        let name = upper(&subsystem.name);
        let _ = writeln!(out, "#define TRACE_SUBSYS_{name}\t{}", subsystem.id);
        for event in events {
            let _ = writeln!(out, "#define TRACE_EVENT_{name}_{}\t{}", upper(&event.name), event.id);
        }
        out.push('\n');
    }
    // Arrays have a place for each id.
    let count = schema.subsystems.iter().map(|subsystem| u32::from(subsystem.id) + 1).max().unwrap_or(0);
    let _ = write!(out, "\n\n#define TRACE_NUM_SUBSYSTEMS\t{count}\n\n#endif // {guard}\n");
    out
}

/// The JSON of the current dialect. As there, texts are not escaped, and messages between cores are two subsystems
/// with negative numbers.
#[must_use]
pub fn json(schema: &Schema) -> String {
    let mut out = String::from("{\n");
    for (subsystem, events) in by_id(schema) {
        let event = |event: &&SchemaEvent| {
            let text = if event.text.is_empty() { &event.name } else { &event.text };
            format!("\t\t\"{}\" : [\"{}\", \"{text}\" ]", event.id, event.name)
        };
        let events: Vec<String> = events.iter().map(event).collect();
        let (id, name) = (subsystem.id, &subsystem.name);
        let _ = write!(
            out,
            "\"{id}\" : {{\n\t\"name\" : \"{name}\",\n\t\"events\" : {{\n{}\n\t}}\n}},\n",
            events.join(",\n")
        );
    }
    out.push_str("\"-5632\" : {\n\t\"name\" : \"ump send\"\n\t},\n\"-5376\" : {\n\t\"name\" : \"ump receive\"\n\t}\n}");
    out
}
