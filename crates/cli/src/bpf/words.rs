//! Types, values and maps of eBPF programs as text and JSON.

use std::io::{self, Write};

use kymo_session::bpf::{BpfMapContents, BpfValue, BpfValueType};
use serde_json::{Map, Value, json};

/// A type with its members.
pub(super) fn definition(value_type: &BpfValueType) -> String {
    match value_type {
        BpfValueType::Structure { name, members } => {
            let members: Vec<String> =
                members.iter().map(|member| format!("{} {}", member.value_type.name(), member.name)).collect();
            let name = if name.is_empty() { String::new() } else { format!("struct {name} ") };
            format!("{name}{{ {} }}", members.join(", "))
        }
        other => other.name(),
    }
}

/// A type for programs: its name, or its members.
pub(super) fn type_json(value_type: &BpfValueType) -> Value {
    match value_type {
        BpfValueType::Structure { name, members } => {
            let members: Vec<Value> = members
                .iter()
                .map(|member| {
                    json!({ "name": member.name, "bit_offset": member.bit_offset, "type": type_json(&member.value_type) })
                })
                .collect();
            json!({ "struct": name, "members": members })
        }
        BpfValueType::Array { element, count, .. } => json!({ "array": type_json(element), "count": count }),
        BpfValueType::Enumeration { names, .. } => {
            let names: Map<String, Value> =
                names.iter().map(|(value, name)| (name.to_string(), json!(value))).collect();
            json!({ "enum": names })
        }
        other => json!(other.name()),
    }
}

/// A value on one line.
pub(super) fn text(value: &BpfValue) -> String {
    match value {
        BpfValue::Integer(number) | BpfValue::Label(number, None) => number.to_string(),
        BpfValue::Bool(flag) => flag.to_string(),
        BpfValue::Real(number) => number.to_string(),
        BpfValue::Label(_, Some(name)) => name.to_string(),
        BpfValue::Text(text) => text.clone(),
        BpfValue::List(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        BpfValue::Members(members) => {
            let members = members.iter().map(|(name, value)| match name.is_empty() {
                true => text(value),
                false => format!("{name} = {}", text(value)),
            });
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        BpfValue::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "),
    }
}

/// A value for programs.
pub(super) fn value_json(value: &BpfValue) -> Value {
    match value {
        BpfValue::Integer(number) | BpfValue::Label(number, None) => number_json(*number),
        BpfValue::Bool(flag) => json!(flag),
        BpfValue::Real(number) => json!(number),
        BpfValue::Label(_, Some(name)) => json!(name),
        BpfValue::Text(text) => json!(text),
        BpfValue::List(items) => items.iter().map(value_json).collect(),
        BpfValue::Members(members) => {
            let members = members.iter().enumerate().map(|(index, (name, value))| {
                let name = if name.is_empty() { format!("member_{index}") } else { name.to_string() };
                (name, value_json(value))
            });
            Value::Object(members.collect())
        }
        BpfValue::Bytes(bytes) => json!(bytes),
    }
}

/// A number; one that JSON's readers would not keep is a text.
fn number_json(number: i128) -> Value {
    match (i64::try_from(number), u64::try_from(number)) {
        (Ok(number), _) => json!(number),
        (_, Ok(number)) => json!(number),
        _ => json!(number.to_string()),
    }
}

/// A map as a table: members of keys and values are columns.
pub(crate) fn show_map(contents: &BpfMapContents, out: &mut impl Write) -> io::Result<()> {
    let map = &contents.map;
    writeln!(out, "{} ({})", map.name, map.type_name())?;
    if map.is_variables() {
        let variables =
            contents.entries.iter().flat_map(|entry| &entry.values).map(|(_, value)| columns(value, "bytes"));
        for (name, value) in variables.flatten() {
            writeln!(out, "  {name} = {value}")?;
        }
        return Ok(());
    }
    let is_per_cpu = map.type_name().contains("percpu");
    let mut rows: Vec<Vec<(String, String)>> = Vec::new();
    for entry in &contents.entries {
        for (cpu, value) in &entry.values {
            let mut row = columns(&entry.key, "key");
            if is_per_cpu {
                row.push(("cpu".to_owned(), cpu.to_string()));
            }
            row.extend(columns(value, "value"));
            rows.push(row);
        }
    }
    show_rows(&rows, out)?;
    match contents.zeros {
        0 if rows.is_empty() => writeln!(out, "  no entries"),
        0 => Ok(()),
        zeros => writeln!(out, "  {} with 0 are not shown", crate::show::counted(zeros, "more value")),
    }
}

fn columns(value: &BpfValue, name: &str) -> Vec<(String, String)> {
    match value {
        BpfValue::Members(members) => members
            .iter()
            .map(|(member, value)| (if member.is_empty() { name.to_owned() } else { member.to_string() }, text(value)))
            .collect(),
        other => vec![(name.to_owned(), text(other))],
    }
}

/// Rows that have the same columns.
fn show_rows(rows: &[Vec<(String, String)>], out: &mut impl Write) -> io::Result<()> {
    let Some(first) = rows.first() else { return Ok(()) };
    let mut widths: Vec<usize> = first.iter().map(|(name, _)| name.chars().count()).collect();
    for row in rows {
        for (width, (_, cell)) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &String>| {
        let cells = cells.zip(&widths).map(|(cell, width)| format!("  {cell:>width$}"));
        cells.collect::<String>()
    };
    writeln!(out, "{}", line(&mut first.iter().map(|(name, _)| name)))?;
    rows.iter().try_for_each(|row| writeln!(out, "{}", line(&mut row.iter().map(|(_, cell)| cell))))
}
