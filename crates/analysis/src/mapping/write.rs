//! A mapping as text for [`super::read`], with the meaning of each role.

use std::fmt::{self, Formatter};

use super::{Alternatives, RoleMapping, Section, ValueSource};
use crate::roles::{CONTEXT, FieldFacts};

/// Writes a mapping.
pub(super) fn mapping(mapping: &RoleMapping, f: &mut Formatter<'_>) -> fmt::Result {
    writeln!(f, "name = {}", quoted(&mapping.name))?;
    if let Some(when) = &mapping.when {
        writeln!(f, "# Of which traces.\nwhen = {}", quoted(when.text()))?;
    }
    if mapping.context.iter().any(|said| !said.is_empty()) {
        writeln!(f, "\n# Who was there when an event happened.\n[context]")?;
        fields(CONTEXT, &mapping.context, f)?;
    }
    let mut known = None;
    for one in &mapping.sections {
        writeln!(f)?;
        if known.replace(one.role) != Some(one.role) {
            let meaning = one.role.facts().meaning;
            let (first, rest) = meaning.split_at(meaning.chars().next().map_or(0, char::len_utf8));
            writeln!(f, "# {}{rest}.", first.to_uppercase())?;
        }
        section(one, f)?;
    }
    Ok(())
}

pub(super) fn section(section: &Section, f: &mut Formatter<'_>) -> fmt::Result {
    writeln!(f, "[[{}]]", section.role.name())?;
    let events: Vec<String> = section.events.iter().map(|pattern| quoted(pattern.text())).collect();
    writeln!(f, "event = {}", list(&events))?;
    if let Some(when) = &section.when {
        writeln!(f, "when = {}", quoted(when.text()))?;
    }
    fields(section.role.facts().fields, &section.fields, f)?;
    fields(CONTEXT, &section.context, f)
}

fn fields(facts: &[FieldFacts], said: &[Alternatives], f: &mut Formatter<'_>) -> fmt::Result {
    for (field, sources) in facts.iter().zip(said) {
        if !sources.is_empty() {
            let sources: Vec<String> = sources.iter().map(ToString::to_string).collect();
            writeln!(f, "{} = {}", field.name, list(&sources))?;
        }
    }
    Ok(())
}

/// Writes where a field is.
pub(super) fn source(source: &ValueSource, f: &mut Formatter<'_>) -> fmt::Result {
    match source {
        ValueSource::Path(path) => f.write_str(&quoted(&path.to_string())),
        ValueSource::Integer(value) => write!(f, "{{ value = {value} }}"),
        ValueSource::Text(text) => write!(f, "{{ value = {} }}", quoted(text)),
        ValueSource::Capture(star) => write!(f, "{{ capture = {star} }}"),
    }
}

/// One alone, several in brackets.
fn list(values: &[String]) -> String {
    match values {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// A text as TOML has it: without escapes where that can be, since expressions have quotes.
fn quoted(text: &str) -> String {
    let is_plain = !text.contains('\'') && !text.contains(char::is_control);
    if is_plain && text.contains(['"', '\\']) { format!("'{text}'") } else { toml::Value::from(text).to_string() }
}
