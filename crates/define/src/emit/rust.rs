//! A module of Rust: each event is a function of `kymo_tracer::event!`, in a module for its subsystem.

use std::fmt::Write;

use super::{comment, lines, notice};
use crate::model::{Schema, SchemaDuration, SchemaEnumeration, SchemaEvent, SchemaField, SchemaSubsystem, SchemaType};

/// The module's text, for `include!` or as a file of a crate.
///
/// # Errors
///
/// A name of a file of `pleco` is none in Rust, or stands twice.
pub fn module(schema: &Schema) -> Result<String, String> {
    super::check_names(schema, "Rust")?;
    let mut out = format!("// {}\n", notice(schema));
    for enumeration in &schema.enumerations {
        let _ = write!(out, "\n{}", labels(enumeration));
    }
    for subsystem in 0..schema.subsystems.len() {
        let _ = write!(out, "\n{}", of_subsystem(schema, subsystem));
    }
    Ok(out)
}

/// `some_name` as `SomeName`.
pub(crate) fn type_name(name: &str) -> String {
    let word = |word: &str| {
        let mut chars = word.chars();
        chars.next().map(|first| first.to_ascii_uppercase().to_string() + chars.as_str()).unwrap_or_default()
    };
    let camel: String = name.split('_').map(word).collect();
    if camel == "Self" { "Self_".to_owned() } else { camel }
}

fn documentation(text: &str, otherwise: &str, indent: &str) -> String {
    let text = if text.is_empty() { otherwise } else { text };
    comment(text, &format!("{indent}/// "))
}

fn labels(enumeration: &SchemaEnumeration) -> String {
    let mut out = String::from("kymo_tracer::labels! {\n");
    out += &documentation(&enumeration.text, &format!("Values of `{}`.", enumeration.name), "    ");
    let _ = writeln!(out, "    pub enum {}: {} {{", type_name(&enumeration.name), enumeration.word);
    for label in &enumeration.labels {
        let _ = writeln!(out, "        {} \"{}\" = {},", type_name(&label.name), label.name, label.value);
    }
    out + "    }\n}\n"
}

fn of_subsystem(schema: &Schema, place: usize) -> String {
    let subsystem = &schema.subsystems[place];
    let mut out = documentation(&subsystem.text, &format!("Events of `{}`.", subsystem.name), "");
    let _ = writeln!(out, "pub mod {} {{", raw(&subsystem.name.to_lowercase()));
    out.push_str("    kymo_tracer::event! {\n");
    for event in 0..subsystem.events.len() {
        out += &of_event(schema, (place, event));
    }
    out += "    }\n";
    for duration in &subsystem.durations {
        out += &of_duration(schema, subsystem, duration);
    }
    out + "}\n"
}

/// A function that begins a duration, and its guard, which ends it.
fn of_duration(schema: &Schema, subsystem: &SchemaSubsystem, duration: &SchemaDuration) -> String {
    let begin = &subsystem.events[duration.begin];
    let otherwise = format!("`{}:{}`", subsystem.name, duration.name);
    let about = documentation(&begin.text, &otherwise, "        ");
    let (name, guard, fields) =
        (raw(&duration.name.to_lowercase()), type_name(&duration.name), arguments(schema, begin));
    let function = |event: &SchemaEvent| raw(&event.name.to_lowercase());
    let (begins, ends) = (function(begin), function(&subsystem.events[duration.begin + 1]));
    format!(
        "    kymo_tracer::duration! {{\n{about}        pub fn {name}({fields}) -> {guard} = {begins}, {ends};\n    }}\n"
    )
}

/// The arguments of an event's function.
fn arguments(schema: &Schema, event: &SchemaEvent) -> String {
    let fields = event.fields.iter().map(|field| format!("{}: {}", raw(&field.name), kind(schema, &field.kind)));
    fields.collect::<Vec<_>>().join(", ")
}

fn of_event(schema: &Schema, places: (usize, usize)) -> String {
    let subsystem = &schema.subsystems[places.0];
    let event = &subsystem.events[places.1];
    let mut out = documentation(&event.text, &format!("`{}:{}`", subsystem.name, event.name), "        ");
    let about = |field: &&SchemaField| !field.text.is_empty() || field.unit.is_some();
    for (place, field) in event.fields.iter().filter(about).enumerate() {
        let gap = if place == 0 { "        ///\n" } else { "" };
        let unit = field.unit.as_ref().map(|unit| format!(" ({unit})")).unwrap_or_default();
        let text = if field.text.is_empty() { String::new() } else { format!(": {}", field.text.replace('\n', " ")) };
        let _ = writeln!(out, "{gap}        /// - `{}`{unit}{text}", field.name);
    }
    let said = lines(schema, places);
    // The level has a word of its own.
    let said: String =
        said.iter().skip(1).map(|line| format!("{}\\n", line.replace('\\', "\\\\").replace('"', "\\\""))).collect();
    let name = raw(&event.name.to_lowercase());
    let (fields, title, level) = (arguments(schema, event), format!("{}:{}", subsystem.name, event.name), event.level);
    let _ =
        writeln!(out, "        pub fn {name}({fields}) = \"{title}\", level {level},\n            lines \"{said}\";");
    out
}

fn kind(schema: &Schema, kind: &SchemaType) -> String {
    let element = |word: &str| match (word, word.strip_prefix('x')) {
        ("pointer", _) => "*const u8".to_owned(),
        (_, Some(bits)) => format!("kymo_tracer::Hex<u{bits}>"),
        _ => word.to_owned(),
    };
    match kind {
        SchemaType::Scalar(word) => element(word),
        SchemaType::Enumeration(place) => format!("super::{}", type_name(&schema.enumerations[*place].name)),
        SchemaType::Text => "&str".to_owned(),
        SchemaType::Array(word, count) => format!("[{}; {count}]", element(word)),
        SchemaType::Sequence(word) => format!("&[{}]", element(word)),
    }
}

/// A name that may be a keyword.
fn raw(name: &str) -> String {
    if KEYWORDS.contains(&name) { format!("r#{name}") } else { name.to_owned() }
}

/// Those of all editions, and those that are reserved.
const KEYWORDS: [&str; 50] = [
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "return",
    "static",
    "struct",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "union",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
    "macro_rules",
];
