//! Answers as comma-separated values, RFC 4180: a column for each number, so that nothing has to be taken apart.
//!
//! ```text
//! process  thread        ──> thread, thread_pid, thread_tid
//! bounds   run_time      ──> run_time, run_time_low, run_time_high    where any row has some
//! ranges   time          ──> time_begin, time_end
//! ```
//!
//! An empty cell is an empty field, an unknown one is `NA`.

use std::io::{self, Write};

use kymo_session::{Bounded, Cell, CellClass, Table};

/// Stands for an unknown value.
const UNKNOWN: &str = "NA";

/// Writes tables; several with a line before each that names it.
pub(crate) fn write(tables: &[&Table], out: &mut impl Write) -> io::Result<()> {
    for (number, table) in tables.iter().enumerate() {
        if tables.len() > 1 {
            let gap = if number > 0 { "\r\n" } else { "" };
            let title = table.title.replace(['\r', '\n'], " ");
            write!(out, "{gap}# {}: {title}\r\n", table.class)?;
        }
        write_table(table, out)?;
    }
    Ok(())
}

fn write_table(table: &Table, out: &mut impl Write) -> io::Result<()> {
    let parts: Vec<ColumnParts> = (0..table.columns.len()).map(|column| ColumnParts::of(table, column)).collect();
    let mut line = CsvLine::default();
    for (column, parts) in table.columns.iter().zip(&parts) {
        for part in parts.names() {
            line.field(&format!("{}{part}", column.name));
        }
    }
    line.end(out)?;
    for row in &table.rows {
        for (cell, parts) in row.iter().zip(&parts) {
            parts.fields(cell, &mut line);
        }
        line.end(out)?;
    }
    Ok(())
}

/// The fields that a column becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnParts {
    One,
    Bounds,
    Process,
    Range,
    Irq,
}

impl ColumnParts {
    /// By the class, and by the cells present in columns of several classes.
    fn of(table: &Table, column: usize) -> Self {
        let cells = || table.rows.iter().filter_map(|row| row.get(column));
        match table.columns[column].class {
            CellClass::Process => Self::Process,
            CellClass::TimeRange => Self::Range,
            CellClass::Irq => Self::Irq,
            _ if cells().any(has_bounds) => Self::Bounds,
            _ => Self::One,
        }
    }

    fn names(self) -> &'static [&'static str] {
        match self {
            Self::One => &[""],
            Self::Bounds => &["", "_low", "_high"],
            Self::Process => &["", "_pid", "_tid"],
            Self::Range => &["_begin", "_end"],
            Self::Irq => &["", "_number", "_hard"],
        }
    }

    /// As many fields as names.
    fn fields(self, cell: &Cell, line: &mut CsvLine) {
        let optional = |number: Option<i64>| number.map_or_else(|| UNKNOWN.to_owned(), |number| number.to_string());
        match (self, cell) {
            (Self::Process, Cell::Process { name, pid, tid }) => {
                line.field(name.as_deref().unwrap_or(UNKNOWN));
                line.field(&optional(*pid));
                line.field(&optional(*tid));
            }
            (Self::Range, Cell::TimeRange(begin, end)) => {
                line.field(&begin.map_or_else(String::new, |begin| begin.to_string()));
                line.field(&end.map_or_else(String::new, |end| end.to_string()));
            }
            (Self::Irq, Cell::Irq { is_hard, number, name }) => {
                line.field(name.as_deref().unwrap_or(UNKNOWN));
                line.field(&number.to_string());
                line.field(&is_hard.to_string());
            }
            (parts, Cell::Unknown) => (0..parts.names().len()).for_each(|_| line.field(UNKNOWN)),
            (Self::Bounds, cell) => {
                let (low, high) = bounds(cell).unwrap_or_default();
                [value(cell), low, high].iter().for_each(|field| line.field(field));
            }
            // A cell that does not fit its column becomes one field.
            (parts, cell) => {
                line.field(&value(cell));
                (1..parts.names().len()).for_each(|_| line.field(""));
            }
        }
    }
}

fn has_bounds(cell: &Cell) -> bool {
    match cell {
        Cell::Count(number) | Cell::Duration(number) | Cell::Size(number) => !number.is_exact(),
        Cell::Ratio(number) | Cell::Bitrate(number) => !number.is_exact() && !number.value.is_nan(),
        _ => false,
    }
}

fn bounds(cell: &Cell) -> Option<(String, String)> {
    let whole = |number: &Bounded<u64>| {
        let is_unbounded = number.high == u64::MAX && !number.is_exact();
        (number.low.to_string(), if is_unbounded { "inf".to_owned() } else { number.high.to_string() })
    };
    match cell {
        Cell::Count(number) | Cell::Duration(number) | Cell::Size(number) => Some(whole(number)),
        Cell::Ratio(number) | Cell::Bitrate(number) => Some((float(number.low), float(number.high))),
        _ => None,
    }
}

/// The cell in one field.
fn value(cell: &Cell) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Unknown => UNKNOWN.to_owned(),
        Cell::Flag(flag) => flag.to_string(),
        Cell::Count(number) | Cell::Duration(number) | Cell::Size(number) => number.value.to_string(),
        Cell::Integer(number) | Cell::Based(number, _) | Cell::Timestamp(number) | Cell::Fd(number) => {
            number.to_string()
        }
        Cell::Number(number) => float(*number),
        Cell::Ratio(number) | Cell::Bitrate(number) => float(number.value),
        Cell::Text(text) | Cell::Syscall(text) | Cell::Path(text) => text.clone(),
        Cell::Disk(name) | Cell::NetworkInterface(name) => name.clone(),
        Cell::Cpu(cpu) => cpu.to_string(),
        Cell::TimeRange(begin, end) => {
            let text = |time: Option<i64>| time.map_or_else(String::new, |time| time.to_string());
            format!("{}..{}", text(*begin), text(*end))
        }
        Cell::Process { name, pid, tid } => {
            let id = tid.or(*pid).map_or_else(String::new, |id| format!(" ({id})"));
            format!("{}{id}", name.as_deref().unwrap_or(UNKNOWN))
        }
        Cell::Irq { number, name, .. } => name.clone().unwrap_or_else(|| number.to_string()),
    }
}

fn float(number: f64) -> String {
    match number {
        number if number.is_nan() => UNKNOWN.to_owned(),
        number if number.is_finite() && number != 0.0 && !(1e-6..1e17).contains(&number.abs()) => format!("{number:e}"),
        number => number.to_string(),
    }
}

/// A line that is being made.
#[derive(Default)]
struct CsvLine {
    text: String,
    fields: usize,
}

impl CsvLine {
    fn field(&mut self, text: &str) {
        if self.fields > 0 {
            self.text.push(',');
        }
        self.fields += 1;
        if text.contains(['"', ',', '\r', '\n']) || text.starts_with([' ', '#']) || text.ends_with(' ') {
            self.text.push('"');
            self.text.push_str(&text.replace('"', "\"\""));
            self.text.push('"');
        } else {
            self.text.push_str(text);
        }
    }

    fn end(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.text.push_str("\r\n");
        out.write_all(self.text.as_bytes())?;
        self.text.clear();
        self.fields = 0;
        Ok(())
    }
}
