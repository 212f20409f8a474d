//! A mapping for `kymo roles` and `--roles`, for traces that do not carry it.

use std::fmt::Write;

use super::{meaning_words, notice, quoted};
use crate::model::{EventUse, FactValue, Schema};

/// The mapping; empty but for its name where nothing has a meaning.
#[must_use]
pub fn mapping(schema: &Schema) -> String {
    let mut out = format!("# {}\nname = {}\n", notice(schema), quoted(&schema.name));
    for subsystem in &schema.subsystems {
        for meaning in &subsystem.meanings {
            let _ = writeln!(out, "\n# {}", meaning_words(schema, meaning, subsystem));
            for used in &meaning.events {
                out += &section(schema, used);
            }
        }
    }
    out
}

fn section(schema: &Schema, used: &EventUse) -> String {
    let (subsystem, event) = schema.event_of(used);
    let mut out =
        format!("\n[[{}]]\nevent = {}\n", used.role.role(), quoted(&format!("{}:{}", subsystem.name, event.name)));
    for (fact, value) in &used.facts {
        let value = match value {
            FactValue::Field(field) => quoted(&event.fields[*field].name),
            FactValue::Text(text) => format!("{{ value = {} }}", quoted(text)),
            FactValue::Number(number) => format!("{{ value = {number} }}"),
            FactValue::Thread => "[\"packet.vtid\", \"$ctx.vtid\"]".to_owned(),
            FactValue::Process => "[\"packet.vpid\", \"$ctx.vpid\"]".to_owned(),
        };
        let _ = writeln!(out, "{} = {value}", fact.word());
    }
    out
}
