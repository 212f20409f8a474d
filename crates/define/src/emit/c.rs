//! A header for C11 to C23 and C++17 on: each event is a `KYMO_EVENT` of kymo/kymo.h.

use std::fmt::Write;

use super::{comment, lines, notice, quoted};
use crate::model::{Schema, SchemaDuration, SchemaEnumeration, SchemaField, SchemaSubsystem, SchemaType};

/// Definitions of events may be longer than texts of old compilers.
const LONG_BEGIN: &str = "\n#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n";
const LONG_END: &str = "\n#pragma GCC diagnostic pop\n";

/// The header.
///
/// # Errors
///
/// A name of a file of `pleco` is none in C, or stands twice.
pub fn header(schema: &Schema) -> Result<String, String> {
    super::check_names(schema, "C")?;
    let guard = format!("KYMO_SCHEMA_{}_H", super::identifier(&schema.name).to_uppercase());
    let mut out =
        format!("/* {} */\n#ifndef {guard}\n#define {guard}\n\n#include <kymo/kymo.h>\n{LONG_BEGIN}", notice(schema));
    if !schema.text.is_empty() {
        let _ = write!(out, "\n{}", c_comment(&schema.text));
    }
    for enumeration in &schema.enumerations {
        let _ = write!(out, "\n{}", constants(schema, enumeration));
    }
    for (place, subsystem) in schema.subsystems.iter().enumerate() {
        let _ = write!(out, "\n{}", c_comment(&titled(&subsystem.name, &subsystem.text)));
        for event in 0..subsystem.events.len() {
            let _ = write!(out, "\n{}", of_event(schema, (place, event)));
        }
        for duration in &subsystem.durations {
            let _ = write!(out, "\n{}", of_duration(subsystem, duration));
        }
    }
    let _ = write!(out, "{LONG_END}\n#endif\n");
    Ok(out)
}

/// `NAME: text`
fn titled(name: &str, text: &str) -> String {
    if text.is_empty() { name.to_owned() } else { format!("{name}: {text}") }
}

/// A comment that the text cannot end.
fn c_comment(text: &str) -> String {
    let text = text.replace("*/", "* /").replace("/*", "/ *");
    match text.lines().count() {
        0 => String::new(),
        1 => format!("/* {} */\n", text.trim()),
        _ => format!("/*\n{} */\n", comment(&text, " * ")),
    }
}

/// The beginning of the names of an enumeration's constants.
pub(crate) fn constants_prefix(schema: &Schema, enumeration: &SchemaEnumeration) -> String {
    format!("{}_{}", schema.name, enumeration.name).to_uppercase()
}

/// Constants for the values of an enumeration: an `enum` where an `int` holds them.
fn constants(schema: &Schema, enumeration: &SchemaEnumeration) -> String {
    let prefix = constants_prefix(schema, enumeration);
    let mut out = c_comment(&titled(&enumeration.name, &enumeration.text));
    let name = |label: &str| format!("{prefix}_{}", label.to_uppercase());
    let are_small = enumeration.labels.iter().all(|label| i32::try_from(label.value).is_ok());
    if are_small {
        let _ = writeln!(out, "enum {}_{} {{", schema.name, enumeration.name);
        for label in &enumeration.labels {
            let text =
                if label.text.is_empty() { String::new() } else { format!(" {}", c_comment(&label.text).trim_end()) };
            let _ = writeln!(out, "    {} = {},{text}", name(&label.name), small(label.value));
        }
        out.push_str("};\n");
    } else {
        for label in &enumeration.labels {
            let value = if label.value < 0 {
                format!("INT64_C({})", label.value)
            } else {
                format!("UINT64_C({})", label.value)
            };
            let _ = writeln!(out, "#define {} {value}", name(&label.name));
        }
    }
    out
}

/// `-2147483648` is no `int` in C, but the result of a subtraction.
fn small(value: i128) -> String {
    if value == i128::from(i32::MIN) { "(-2147483647 - 1)".to_owned() } else { value.to_string() }
}

fn of_event(schema: &Schema, places: (usize, usize)) -> String {
    let subsystem = &schema.subsystems[places.0];
    let event = &subsystem.events[places.1];
    let mut about = event.text.clone();
    for field in &event.fields {
        let unit = field.unit.as_ref().map(|unit| format!(" ({unit})")).unwrap_or_default();
        if !field.text.is_empty() || !unit.is_empty() {
            let gap = if about.is_empty() { "" } else { "\n" };
            let _ = write!(
                about,
                "{gap}{}{unit}{}",
                field.name,
                if field.text.is_empty() { String::new() } else { format!(": {}", field.text) }
            );
        }
    }
    let mut out = c_comment(&about);
    let said: Vec<String> = lines(schema, places).iter().map(|line| said(line)).collect();
    let mut arguments = vec![said.join("\n                 "), subsystem.name.clone(), event.name.clone()];
    arguments.extend(event.fields.iter().map(|field| argument(schema, field)));
    let _ = writeln!(out, "KYMO_EVENT_LINES({});", arguments.join(", "));
    out
}

/// A macro that records a duration to the end of a block.
fn of_duration(subsystem: &SchemaSubsystem, duration: &SchemaDuration) -> String {
    let function = format!("kymo_{}_{}", subsystem.name, duration.name);
    let about = format!(
        "{}(...); records `{}:{}` from here to the end of the block. Its arguments are those of {function}_begin().",
        scope_name(subsystem, duration),
        subsystem.name,
        duration.name
    );
    let scope = scope_name(subsystem, duration);
    format!(
        "{}KYMO_SCOPE_END({function});\n#define {scope}(...) KYMO_SCOPE_OF({function}, __COUNTER__, __VA_ARGS__)\n",
        c_comment(&about)
    )
}

/// The name of a duration's macro.
pub(crate) fn scope_name(subsystem: &SchemaSubsystem, duration: &SchemaDuration) -> String {
    format!("KYMO_{}_{}_SCOPE", subsystem.name, duration.name).to_uppercase()
}

/// A line of the definition as a literal.
fn said(line: &str) -> String {
    let literal = quoted(line);
    // Two question marks begin a trigraph.
    let mut plain = String::with_capacity(literal.len());
    for c in literal.chars() {
        if c == '?' && plain.ends_with('?') {
            plain.push('\\');
        }
        plain.push(c);
    }
    let literal = plain;
    format!("{}\\n\"", &literal[..literal.len() - 1])
}

fn argument(schema: &Schema, field: &SchemaField) -> String {
    let name = &field.name;
    match &field.kind {
        SchemaType::Scalar(word) => {
            let kind = match (*word, word.strip_prefix('x')) {
                ("pointer", _) => "POINTER".to_owned(),
                ("bool", _) => "BOOL".to_owned(),
                (_, Some(bits)) => format!("HEX{bits}"),
                _ => word.to_uppercase(),
            };
            format!("KYMO_{kind}({name})")
        }
        SchemaType::Enumeration(place) => {
            let enumeration = &schema.enumerations[*place];
            let labels: Vec<String> =
                enumeration.labels.iter().map(|label| format!("{}={}", label.name, label.value)).collect();
            format!("KYMO_ENUM_LABELS({}, {name}, \"{}\")", enumeration.word, labels.join(", "))
        }
        SchemaType::Text => format!("KYMO_TEXT({name})"),
        SchemaType::Array(word, count) => format!("KYMO_ARRAY({word}, {count}, {name})"),
        SchemaType::Sequence(word) => format!("KYMO_SEQUENCE({word}, {name})"),
    }
}
