//! What recorders are told of a callsite, as text.

use std::fmt::Write;

use tracing_core::{Level, Metadata};

use crate::values::Kind;

/// Bytes of a name, at most.
const NAME_BYTES_MAX: usize = 200;

/// The definition of an event of a callsite. Fields of which it is known before (`span`) stand before its own, which are numbered by where
/// they stand in the callsite.
pub(crate) fn definition(
    of: &Metadata<'_>,
    suffix: &str,
    role: Option<&str>,
    before: &[&str],
    fields: impl Iterator<Item = (usize, Kind)>,
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
    let before = before.iter().map(|name| (*name, Kind::U64));
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

/// As LTTng counts levels. What it has between `info` and `debug` tells DEBUG from TRACE.
fn level(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG => 13,
        Level::TRACE => 14,
    }
}

/// A name without letters that cannot stand in one.
fn name(text: &str, is_refused: impl Fn(char) -> bool) -> String {
    let text = &text[..text.floor_char_boundary(NAME_BYTES_MAX)];
    text.chars().map(|letter| if is_refused(letter) { '_' } else { letter }).collect()
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("memory takes what is written");
}
