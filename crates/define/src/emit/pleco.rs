//! Barrelfish's own files: the header with numbers, and the JSON that its readers use; byte for byte as `pleco` writes them.

use std::fmt::Write;

use crate::model::Schema;

/// The header; `stem` is the name of its file without `.h`.
#[must_use]
pub fn header(schema: &Schema, stem: &str) -> String {
    let guard = format!("{}_BARRELFISH__", stem.to_uppercase());
    let mut out = format!("#ifndef {guard}\n#define {guard}\n\n");
    for subsystem in &schema.subsystems {
        let name = subsystem.name.to_uppercase();
        let _ = writeln!(out, "#define TRACE_SUBSYS_{name}\t{}", subsystem.id);
        for event in &subsystem.events {
            let _ = writeln!(out, "#define TRACE_EVENT_{name}_{}\t{}", event.name.to_uppercase(), event.id);
        }
        out.push('\n');
    }
    let _ = write!(out, "\n\n#define TRACE_NUM_SUBSYSTEMS\t{}\n\n#endif // {guard}\n", schema.subsystems.len());
    out
}

/// The JSON of the current dialect. As there, texts are not escaped, and messages between cores are two subsystems
/// with negative numbers.
#[must_use]
pub fn json(schema: &Schema) -> String {
    let mut out = String::from("{\n");
    for subsystem in &schema.subsystems {
        let event = |event: &crate::model::SchemaEvent| {
            let text = if event.text.is_empty() { &event.name } else { &event.text };
            format!("\t\t\"{}\" : [\"{}\", \"{text}\" ]", event.id, event.name)
        };
        let events: Vec<String> = subsystem.events.iter().map(event).collect();
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
