//! Answers as one JSON object: exact numbers, and nothing left out; docs/analyses-json.md describes it.
//!
//! ```text
//! { "tables": [{ "class", "title", "span", "columns": [...], "rows": [[...], ...], "omitted" }, ...],
//!   "events_discarded", "events_discarded_is_lower_bound", "packets_lost", "complete" }
//! ```
//!
//! Rows are written one by one.

use std::io::{self, Write};

use kymo_analysis::{Bounded, Cell, CellClass, Column, Table};
use serde_json::{Value, json};

use super::losses;
use crate::open::report::Report;

/// Writes the object and ends the line.
///
/// # Errors
///
/// Nothing more can be written.
pub fn write_answer(tables: &[&Table], report: &Report, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{{\"tables\":[")?;
    for (number, table) in tables.iter().enumerate() {
        write!(out, "{}", if number > 0 { "," } else { "" })?;
        write_table(table, out)?;
    }
    write!(out, "]")?;
    for (name, value) in losses(report) {
        write!(out, ",{}:{value}", json!(name))?;
    }
    writeln!(out, "}}")
}

fn write_table(table: &Table, out: &mut impl Write) -> io::Result<()> {
    let span = table.span_ns.map(|(begin, end)| json!({"begin": begin, "end": end}));
    let columns: Vec<Value> = table.columns.iter().map(column).collect();
    write!(out, "{{\"class\":{},\"title\":{}", json!(table.class), json!(table.title))?;
    write!(out, ",\"span\":{},\"columns\":{},\"rows\":[", json!(span), json!(columns))?;
    for (number, row) in table.rows.iter().enumerate() {
        write!(out, "{}", if number > 0 { ",\n" } else { "\n" })?;
        let cells = row.iter().zip(&table.columns).map(|(value, column)| cell(value, column.class));
        serde_json::to_writer(&mut *out, &Value::Array(cells.collect()))?;
    }
    write!(out, "],\"omitted\":{}}}", table.omitted)
}

fn column(column: &Column) -> Value {
    json!({"name": column.name, "title": column.title, "class": column.class.name(), "unit": column.unit})
}

/// The cell as it is; in columns of several classes with its own.
fn cell(cell: &Cell, class: CellClass) -> Value {
    let plain = plain(cell);
    match cell.class() {
        Some(own) if class == CellClass::Mixed => json!({"class": own.name(), "value": plain}),
        _ => plain,
    }
}

fn plain(cell: &Cell) -> Value {
    match cell {
        Cell::Empty => Value::Null,
        Cell::Unknown => json!({"unknown": true}),
        Cell::Flag(flag) => json!(flag),
        Cell::Count(number) | Cell::Duration(number) | Cell::Size(number) => whole(*number),
        Cell::Integer(number) | Cell::Based(number, _) | Cell::Timestamp(number) | Cell::Fd(number) => json!(number),
        Cell::Number(number) => float(*number),
        Cell::Text(text) | Cell::Syscall(text) | Cell::Path(text) => json!(text),
        Cell::Disk(name) | Cell::NetworkInterface(name) => json!(name),
        Cell::Ratio(number) | Cell::Bitrate(number) => real(*number),
        Cell::TimeRange(begin, end) => json!({"begin": begin, "end": end}),
        Cell::Process { name, pid, tid } => json!({"name": name, "pid": pid, "tid": tid}),
        Cell::Irq { is_hard, number, name } => json!({"hard": is_hard, "number": number, "name": name}),
        Cell::Cpu(cpu) => json!(cpu),
    }
}

fn whole(number: Bounded<u64>) -> Value {
    if number.is_exact() {
        return json!(number.value);
    }
    let high = (number.high < u64::MAX).then_some(number.high);
    json!({"value": number.value, "low": number.low, "high": high})
}

fn real(number: Bounded<f64>) -> Value {
    if number.is_exact() || number.value.is_nan() {
        return float(number.value);
    }
    let bound = |bound: f64| bound.is_finite().then_some(bound);
    json!({"value": float(number.value), "low": bound(number.low), "high": bound(number.high)})
}

/// JSON has no word for what is not finite.
fn float(number: f64) -> Value {
    match number {
        number if number.is_nan() => json!({"unknown": true}),
        f64::INFINITY => json!("inf"),
        f64::NEG_INFINITY => json!("-inf"),
        number => json!(number),
    }
}
