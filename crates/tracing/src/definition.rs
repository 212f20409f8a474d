//! Definitions of callsites for recorders, as text.

use std::fmt::Write;

use tracing_core::{Level, Metadata};

use crate::values::ValueKind;

/// Maximum bytes of a name.
const NAME_BYTES_MAX: usize = 200;

/// The definition of an event of a callsite. `before` names fields that precede the callsite's own
/// (`span`); the numbers in `fields` are indexes of the callsite's fields.
pub(crate) fn definition(
    of: &Metadata<'_>,
    suffix: &str,
    role: Option<&str>,
    before: &[&str],
    fields: impl Iterator<Item = (usize, ValueKind)>,
) -> String {
    let provider = name(&of.target().replace("::", "."), |letter| letter.is_control() || letter == ':');
    let title = name(of.name(), char::is_control);
    let mut text = format!("event {provider}:{title}{suffix}\nlevel {}\n", level(*of.level()));
    if let (Some(file), Some(line)) = (of.file(), of.line()) {
        put(&mut text, format_args!("source {}:{line}\n", name(file, char::is_control)));
    }
    if let Some(role) = role {
        put(&mut text, format_args!("role {role}\n"));
    }
    let mut names: Vec<String> = Vec::new();
    let before = before.iter().map(|name| (*name, ValueKind::U64));
    let all = of.fields();
    let own = fields.filter_map(|(index, kind)| Some((all.iter().nth(index)?.name(), kind)));
    for (field, kind) in before.chain(own) {
        let mut field =
            name(field.strip_prefix("r#").unwrap_or(field), |letter| letter.is_control() || letter.is_whitespace());
        if field.is_empty() || names.contains(&field) {
            field.push('_');
            (2..).find(|number| !names.contains(&format!("{field}{number}"))).into_iter().for_each(|number| {
                put(&mut field, format_args!("{number}"));
            });
        }
        let (class, element) = kind.words();
        let element = element.map(|element| format!(" {element}")).unwrap_or_default();
        put(&mut text, format_args!("field {class}{element} {field}\n"));
        names.push(field);
    }
    text
}

/// Log level in LTTng's numbering. LTTng's levels between `info` and `debug` make it possible to
/// distinguish DEBUG from TRACE.
fn level(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG => 13,
        Level::TRACE => 14,
    }
}

/// Replaces the characters that a name cannot contain.
fn name(text: &str, is_refused: impl Fn(char) -> bool) -> String {
    let text = &text[..text.floor_char_boundary(NAME_BYTES_MAX)];
    text.chars().map(|letter| if is_refused(letter) { '_' } else { letter }).collect()
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("memory takes what is written");
}
