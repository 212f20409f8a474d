//! Files that are made from a schema, each as its text.

pub mod c;
pub mod ctf;
pub mod json;
pub mod page;
pub mod pleco;
pub mod roles;
pub mod rust;

use std::collections::HashSet;
use std::fmt::Write;

use crate::model::{EventUse, FactValue, Meaning, Schema, SchemaEvent, SchemaSubsystem};

/// Names of Barrelfish's files may be any; those of the language are checked when they are read.
fn check_names(schema: &Schema, language: &str) -> Result<(), String> {
    let mut known = HashSet::new();
    for subsystem in &schema.subsystems {
        for event in &subsystem.events {
            let name = format!("{}_{}", subsystem.name, event.name).to_lowercase();
            if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(format!("`{}:{}` is no name in {language}: rename it", subsystem.name, event.name));
            }
            if !known.insert(name) {
                let title = format!("{}:{}", subsystem.name, event.name);
                return Err(format!("`{title}` stands twice, or differs from another event in `_`, `:` or case alone"));
            }
        }
    }
    Ok(())
}

/// The first line of files that are made.
pub(crate) fn notice(schema: &Schema) -> String {
    let version = if schema.version == 0 { String::new() } else { format!(", version {}", schema.version) };
    format!(
        "Made by `kymo schema build` from the schema {}{version}. Changes here are lost with the next build.",
        schema.name
    )
}

/// Lines of an event's definition besides its fields: its level, its ids, and its meanings. By the places of its subsystem
/// and of itself.
pub(crate) fn lines(schema: &Schema, (subsystem, event): (usize, usize)) -> Vec<String> {
    let of = &schema.subsystems[subsystem];
    let its = &of.events[event];
    let mut lines = vec![format!("level {}", its.level)];
    lines.push(format!("schema {} {} {} {}", schema.name, schema.version, of.id, its.id));
    lines.extend(schema.uses(subsystem, event).map(|(_, used)| as_line(used, its)));
    lines
}

/// `as begin key=id name="fetch" within=process`
fn as_line(used: &EventUse, event: &SchemaEvent) -> String {
    let mut line = format!("as {}", used.role.role());
    for (fact, value) in &used.facts {
        let value = match value {
            FactValue::Field(field) => event.fields[*field].name.clone(),
            FactValue::Text(text) => quoted(text),
            FactValue::Number(number) => number.to_string(),
            FactValue::Thread => "@thread".to_owned(),
            FactValue::Process => "@process".to_owned(),
        };
        let _ = write!(line, " {}={value}", fact.word());
    }
    line
}

/// A text in quotes, with escapes that C, Rust, TOML and definitions have in common.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            // Nothing that is shown in one line has these.
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A sentence about a meaning, for documents and comments.
pub(crate) fn meaning_words(schema: &Schema, meaning: &Meaning, of: &SchemaSubsystem) -> String {
    let event = |used: &EventUse| {
        let (subsystem, event) = schema.event_of(used);
        let before = if subsystem.name == of.name { String::new() } else { format!("{}.", subsystem.name) };
        format!("{} `{before}{}`", used.role.word(), event.name)
    };
    let events: Vec<String> = meaning.events.iter().map(event).collect();
    format!("{} `{}`: {}", meaning.word, meaning.name, events.join(", "))
}

/// A name as an identifier: other characters are `_`.
pub(crate) fn identifier(name: &str) -> String {
    let begins = name.starts_with(|first: char| first.is_ascii_digit());
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    begins.then_some('_').into_iter().chain(plain).collect()
}

/// Text as a paragraph of comments: each line begins with `before`.
pub(crate) fn comment(text: &str, before: &str) -> String {
    text.lines().map(|line| format!("{before}{}\n", line.trim_end())).collect()
}
