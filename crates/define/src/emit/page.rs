//! A page of documentation, in Markdown.

use std::fmt::Write;

use super::meaning_words;
use crate::model::{Schema, SchemaEvent, SchemaSubsystem};

/// The page.
#[must_use]
pub fn page(schema: &Schema) -> String {
    let version = if schema.version == 0 { String::new() } else { format!(", version {}", schema.version) };
    let mut out = format!("# {}{version}\n", schema.name);
    paragraph(&mut out, &schema.text);
    let counts = schema.subsystems.iter().map(|subsystem| subsystem.events.len()).sum::<usize>();
    let plural = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let _ = write!(out, "\n{} of {}:", plural(counts, "event"), plural(schema.subsystems.len(), "subsystem"));
    for (place, subsystem) in schema.subsystems.iter().enumerate() {
        let gap = if place == 0 { " " } else { ", " };
        let _ = write!(out, "{gap}[{0}](#{0})", subsystem.name);
    }
    out.push_str(".\n");
    for subsystem in &schema.subsystems {
        of_subsystem(&mut out, schema, subsystem);
    }
    if !schema.enumerations.is_empty() {
        out.push_str("\n## Enumerations\n");
    }
    for enumeration in &schema.enumerations {
        let _ = writeln!(out, "\n### {} ({})", enumeration.name, enumeration.word);
        paragraph(&mut out, &enumeration.text);
        out.push_str("\n| value | label | meaning |\n|---|---|---|\n");
        for label in &enumeration.labels {
            let _ = writeln!(out, "| {} | `{}` | {} |", label.value, label.name, cell(&label.text));
        }
    }
    out
}

fn paragraph(out: &mut String, text: &str) {
    if !text.is_empty() {
        let _ = writeln!(out, "\n{text}");
    }
}

/// Text within a row of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn of_subsystem(out: &mut String, schema: &Schema, subsystem: &SchemaSubsystem) {
    let _ = writeln!(out, "\n## {}", subsystem.name);
    paragraph(out, &subsystem.text);
    for event in &subsystem.events {
        of_event(out, schema, subsystem, event);
    }
    for meaning in &subsystem.meanings {
        let text = if meaning.text.is_empty() { String::new() } else { format!(". {}", meaning.text) };
        let _ = write!(out, "\n{}{text}\n", meaning_words(schema, meaning, subsystem));
    }
}

fn of_event(out: &mut String, schema: &Schema, subsystem: &SchemaSubsystem, event: &SchemaEvent) {
    let _ = writeln!(out, "\n### {}:{}", subsystem.name, event.name);
    paragraph(out, &event.text);
    let level = kymo_schema::level::LogLevel::of(event.level.into()).map_or("debug", |level| level.name);
    let since = if event.since > 1 { format!(", since version {}", event.since) } else { String::new() };
    let _ = writeln!(out, "\nLevel {level}, id {}.{}{since}.", subsystem.id, event.id);
    if event.fields.is_empty() {
        return;
    }
    out.push_str("\n| field | type | unit | meaning |\n|---|---|---|---|\n");
    for field in &event.fields {
        let unit = field.unit.as_deref().map(cell).unwrap_or_default();
        let _ = writeln!(
            out,
            "| `{}` | `{}` | {unit} | {} |",
            field.name,
            schema.type_word(&field.kind),
            cell(&field.text)
        );
    }
}
