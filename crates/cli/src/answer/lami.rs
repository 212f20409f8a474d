//! Answers as LAMI 1.0, the machine interface of LTTng analyses: Trace Compass shows them as tables
//! and charts.
//!
//! ```text
//! metadata   what tables there can be     { "mi-version", "version", "title", ..., "table-classes": { name: {...} } }
//! results    tables of one run            { "results": [{ "time-range", "class", "data": [[cell, ...], ...] }, ...] }
//! error      instead of either            { "error-message", "error-code" }
//! ```
//!
//! A table of the metadata is named in results by its class; one with another title inherits; one
//! with other columns describes itself. The protocol (which of these when) is `crate::lami`.
//! Consumers ignore keys that they do not know, so results also report losses.

use std::io::{self, Write};

use kymo_session::{Answer, Bounded, Cell, CellClass, Column, Report, Table};
use serde_json::{Map, Value, json};

/// The version that this is.
pub(crate) const VERSION: &str = "1.0";

/// The parts of the metadata beside the tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LamiDescription<'a> {
    pub(crate) name: &'a str,
    pub(crate) title: &'a str,
    pub(crate) description: &'a str,
}

/// The tables with which the analysis answers; `tables` has no rows.
pub(crate) fn metadata(description: LamiDescription<'_>, tables: &Answer) -> Value {
    let number = |text: &str| text.parse::<u64>().unwrap_or(0);
    let classes: Map<String, Value> =
        tables.tables.iter().map(|table| (table.class.to_owned(), table_class(table))).collect();
    json!({
        "mi-version": {"major": 1, "minor": 0},
        "version": {
            "major": number(env!("CARGO_PKG_VERSION_MAJOR")),
            "minor": number(env!("CARGO_PKG_VERSION_MINOR")),
            "patch": number(env!("CARGO_PKG_VERSION_PATCH")),
        },
        "title": description.title,
        "description": description.description,
        "tags": ["kymograph", description.name],
        "table-classes": classes,
    })
}

/// The error of a failed command.
pub(crate) fn error(message: &str, code: u8) -> Value {
    json!({"error-message": message.trim_end(), "error-code": code})
}

/// Writes the result of an analysis; `known` are the tables of its metadata.
pub(crate) fn write(tables: &[&Table], known: &Answer, report: &Report, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{{\"results\":[")?;
    for (number, table) in tables.iter().enumerate() {
        write!(out, "{}", if number > 0 { "," } else { "" })?;
        write_table(table, known, out)?;
    }
    write!(out, "]")?;
    for (name, value) in kymo_session::json::losses(report) {
        write!(out, ",{}:{value}", json!(name))?;
    }
    writeln!(out, "}}")
}

fn write_table(table: &Table, known: &Answer, out: &mut impl Write) -> io::Result<()> {
    let span = table.span_ns.map_or((None, None), |(begin, end)| (Some(begin), Some(end)));
    let range = time_range(span, None);
    write!(out, "{{\"time-range\":{range},\"class\":{},\"data\":[", class_of(table, known))?;
    for (number, row) in table.rows.iter().enumerate() {
        write!(out, "{}", if number > 0 { ",\n" } else { "\n" })?;
        let cells = row.iter().map(|cell| data_object(cell, table.span_ns));
        serde_json::to_writer(&mut *out, &Value::Array(cells.collect()))?;
    }
    write!(out, "]}}")
}

/// As short as the metadata allows.
fn class_of(table: &Table, known: &Answer) -> Value {
    let same = known.tables.iter().find(|known| known.class == table.class && known.columns == table.columns);
    match same {
        Some(known) if known.title == table.title => json!(table.class),
        Some(_) => json!({"inherit": table.class, "title": table.title}),
        None => table_class(table),
    }
}

fn table_class(table: &Table) -> Value {
    let columns: Vec<Value> = table.columns.iter().map(column).collect();
    json!({"title": table.title, "column-descriptions": columns})
}

fn column(column: &Column) -> Value {
    let mut object = json!({"title": column.title, "class": column.class.name()});
    if let Some(unit) = column.unit.filter(|_| column.class == CellClass::Number) {
        object["unit"] = json!(unit);
    }
    object
}

fn data_object(cell: &Cell, span: Option<(i64, i64)>) -> Value {
    let class = cell.class().map_or("unknown", CellClass::name);
    match cell {
        Cell::Empty => Value::Null,
        Cell::Unknown => json!({"class": class}),
        Cell::Flag(flag) => json!({"class": class, "value": flag}),
        Cell::Count(number) | Cell::Duration(number) | Cell::Size(number) => whole(class, *number),
        Cell::Integer(number) | Cell::Based(number, _) | Cell::Timestamp(number) => {
            json!({"class": class, "value": number})
        }
        Cell::Number(number) => real(class, Bounded::exact(*number)),
        Cell::Ratio(number) | Cell::Bitrate(number) => real(class, *number),
        Cell::Text(text) => json!({"class": class, "value": text}),
        Cell::Syscall(name) | Cell::Disk(name) | Cell::NetworkInterface(name) => json!({"class": class, "name": name}),
        Cell::Path(path) => json!({"class": class, "path": path}),
        Cell::TimeRange(begin, end) => time_range((*begin, *end), span),
        Cell::Process { name, pid, tid } => {
            let properties = [("name", json!(name)), ("pid", json!(pid)), ("tid", json!(tid))];
            with_known(class, properties)
        }
        Cell::Fd(fd) => json!({"class": class, "fd": fd}),
        Cell::Irq { is_hard, number, name } => {
            with_known(class, [("hard", json!(is_hard)), ("nr", json!(number)), ("name", json!(name))])
        }
        Cell::Cpu(cpu) => json!({"class": class, "id": cpu}),
    }
}

/// Properties that are not known are left out.
fn with_known<const N: usize>(class: &str, properties: [(&str, Value); N]) -> Value {
    let known = properties.into_iter().filter(|(_, value)| !value.is_null());
    let all = [("class", json!(class))].into_iter().chain(known);
    Value::Object(all.map(|(name, value)| (name.to_owned(), value)).collect())
}

fn whole(class: &str, number: Bounded<u64>) -> Value {
    if number.is_exact() {
        return json!({"class": class, "value": number.value});
    }
    let high = if number.high == u64::MAX { json!("+inf") } else { json!(number.high) };
    json!({"class": class, "value": number.value, "low": number.low, "high": high})
}

/// Only bounds can be infinite; a value that is not a number is unknown.
fn real(class: &str, number: Bounded<f64>) -> Value {
    let bound = |bound: f64| match bound {
        f64::INFINITY => json!("+inf"),
        f64::NEG_INFINITY => json!("-inf"),
        bound => json!(bound),
    };
    match number {
        Bounded { value, low, high } if value.is_nan() || low.is_nan() || high.is_nan() => json!({"class": "unknown"}),
        number if number.is_exact() && number.value.is_finite() => json!({"class": class, "value": number.value}),
        Bounded { value, low, high } if value.is_infinite() => {
            json!({"class": class, "low": bound(low), "high": bound(high)})
        }
        Bounded { value, low, high } => json!({"class": class, "value": value, "low": bound(low), "high": bound(high)}),
    }
}

/// An interval that began earlier than the table's span or did not end in it has no value there,
/// only a bound.
fn time_range((begin, end): (Option<i64>, Option<i64>), span: Option<(i64, i64)>) -> Value {
    let instant = |nanos: i64| json!({"class": "timestamp", "value": nanos});
    let earlier = || {
        let high = span.map_or_else(|| json!("+inf"), |(begin, _)| json!(begin));
        json!({"class": "timestamp", "low": "-inf", "high": high})
    };
    let later = || {
        let low = span.map_or_else(|| json!("-inf"), |(_, end)| json!(end));
        json!({"class": "timestamp", "low": low, "high": "+inf"})
    };
    json!({
        "class": "time-range",
        "begin": begin.map_or_else(earlier, instant),
        "end": end.map_or_else(later, instant),
    })
}
