//! JSON text that people can read: a value that fits on a line stays on one.

use crate::model::Attributes;

/// A line that is longer is broken.
const LINE_LENGTH: usize = 110;

/// A JSON value with exact integers and members in their order.
pub(crate) enum Json {
    Integer(i128),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
    /// Members with names of the trace's own.
    Map(Vec<(String, Json)>),
    Plain(Attributes),
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Json {
    fn from(number: u64) -> Self {
        Self::Integer(number.into())
    }
}

/// Appends the value; `indent` levels are already on the line.
pub(crate) fn write(value: &Json, indent: usize, out: &mut String) {
    let start = out.len();
    let line_start = out.rfind('\n').map_or(0, |at| at + 1);
    if flat(value, out, line_start + LINE_LENGTH) {
        return;
    }
    out.truncate(start);
    match value {
        Json::Array(elements) => {
            let elements = elements.iter().map(|element| (None, element));
            broken(['[', ']'], elements, indent, out);
        }
        Json::Object(members) => {
            let members = members.iter().map(|(name, value)| (Some(*name), value));
            broken(['{', '}'], members, indent, out);
        }
        Json::Map(members) => {
            let members = members.iter().map(|(name, value)| (Some(name.as_str()), value));
            broken(['{', '}'], members, indent, out);
        }
        Json::Integer(_) | Json::Text(_) | Json::Plain(_) => drop(flat(value, out, usize::MAX)),
    }
}

fn broken<'v>(
    brackets: [char; 2],
    members: impl Iterator<Item = (Option<&'v str>, &'v Json)>,
    indent: usize,
    out: &mut String,
) {
    out.push(brackets[0]);
    for (index, (name, value)) in members.enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        out.extend(std::iter::repeat_n("  ", indent + 1));
        if let Some(name) = name {
            quoted(name, out);
            out.push_str(": ");
        }
        write(value, indent + 1, out);
    }
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", indent));
    out.push(brackets[1]);
}

/// Appends the value on one line; `false` as soon as `out` is longer than `end`.
fn flat(value: &Json, out: &mut String, end: usize) -> bool {
    match value {
        Json::Integer(number) => out.push_str(&number.to_string()),
        Json::Text(text) => quoted(text, out),
        Json::Plain(value) => out.push_str(&value.to_string()),
        Json::Array(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                if !flat(element, out, end) {
                    return false;
                }
            }
            out.push(']');
        }
        Json::Object(members) => return flat_members(members.iter().map(|(name, value)| (*name, value)), out, end),
        Json::Map(members) => {
            return flat_members(members.iter().map(|(name, value)| (name.as_str(), value)), out, end);
        }
    }
    out.len() <= end
}

fn flat_members<'v>(members: impl Iterator<Item = (&'v str, &'v Json)>, out: &mut String, end: usize) -> bool {
    out.push('{');
    for (index, (name, value)) in members.enumerate() {
        out.push_str(if index == 0 { "" } else { ", " });
        quoted(name, out);
        out.push_str(": ");
        if !flat(value, out, end) {
            return false;
        }
    }
    out.push('}');
    out.len() <= end
}

fn quoted(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
}
