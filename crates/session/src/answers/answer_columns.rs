//! Tables of answers as Arrow columns, for every face that hands out columns.
//!
//! ```text
//! process  thread     ──> thread, thread_pid, thread_tid
//! bounds   run_time   ──> run_time, run_time_low, run_time_high    where any row has some
//! ranges   time       ──> time_begin, time_end
//! ```
//!
//! These are the columns of `--csv`. Numbers keep their meaning in the metadata of their fields:
//! `class`, `title` and `unit`. Empty and unknown values are null, and so is a bound that does not
//! exist.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_analysis::{Bounded, Cell, CellClass, Column, Table};
use kymo_table::RecordBatch;
use kymo_table::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray, TimestampNanosecondArray,
};
use kymo_table::arrow::datatypes::{Field, Schema};

/// A table as columns. `times_are_unix`: times are dates, see `Session::times_are_unix`; else they are plain nanoseconds.
#[must_use]
pub fn answer_columns(table: &Table, times_are_unix: bool) -> RecordBatch {
    let mut columns = AnswerColumns { times_are_unix, fields: Vec::new(), arrays: Vec::new() };
    for (number, column) in table.columns.iter().enumerate() {
        let cells: Vec<&Cell> = table.rows.iter().map(|row| row.get(number).unwrap_or(&Cell::Empty)).collect();
        columns.add(column, &cells);
    }
    let metadata =
        HashMap::from([("class".to_owned(), table.class.to_owned()), ("title".to_owned(), table.title.clone())]);
    let schema = Arc::new(Schema::new_with_metadata(columns.fields, metadata));
    if columns.arrays.is_empty() {
        return RecordBatch::new_empty(schema);
    }
    RecordBatch::try_new(schema, columns.arrays).expect("there is a cell for each row and column")
}

struct AnswerColumns {
    times_are_unix: bool,
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl AnswerColumns {
    fn add(&mut self, column: &Column, cells: &[&Cell]) {
        match column.class {
            CellClass::Flag => self.push(
                column,
                "",
                flags(cells, |cell| match cell {
                    Cell::Flag(flag) => Some(*flag),
                    _ => None,
                }),
            ),
            CellClass::Timestamp => {
                let times = self.times(integers(cells, |cell| as_integer(cell, NumberPart::Value)));
                self.push(column, "", times);
            }
            CellClass::TimeRange => self.ranges(column, cells),
            CellClass::Process => self.processes(column, cells),
            CellClass::Irq => self.interrupts(column, cells),
            CellClass::Fd | CellClass::Cpu => {
                self.push(column, "", integers(cells, |cell| as_integer(cell, NumberPart::Value)));
            }
            CellClass::Mixed => {
                self.push(column, "", texts(cells, said));
                let class = |cell: &Cell| cell.class().map(|class| class.name().to_owned());
                self.push(column, "_class", texts(cells, class));
            }
            CellClass::Number | CellClass::Ratio | CellClass::Duration | CellClass::Size | CellClass::Bitrate => {
                self.numbers(column, cells);
            }
            CellClass::Text | CellClass::Syscall | CellClass::Path | CellClass::Disk | CellClass::NetworkInterface => {
                self.push(column, "", texts(cells, said));
            }
        }
    }

    fn push(&mut self, column: &Column, part: &str, array: ArrayRef) {
        let field = Field::new(format!("{}{part}", column.name), array.data_type().clone(), true);
        let mut metadata = HashMap::from([("class".to_owned(), column.class.name().to_owned())]);
        metadata.insert("title".to_owned(), column.title.clone());
        let unit = match column.class {
            CellClass::Duration | CellClass::Timestamp | CellClass::TimeRange => Some("ns"),
            CellClass::Size => Some("B"),
            CellClass::Bitrate => Some("bit/s"),
            _ => column.unit,
        };
        metadata.extend(unit.map(|unit| ("unit".to_owned(), unit.to_owned())));
        self.fields.push(field.with_metadata(metadata));
        self.arrays.push(array);
    }

    /// Whole numbers, unless one is not.
    fn numbers(&mut self, column: &Column, cells: &[&Cell]) {
        let is_whole = match column.class {
            CellClass::Ratio | CellClass::Bitrate => false,
            _ => !cells.iter().any(|cell| matches!(cell, Cell::Number(_))),
        };
        let parts = [("", NumberPart::Value), ("_low", NumberPart::Low), ("_high", NumberPart::High)];
        let count = if cells.iter().any(|cell| has_bounds(cell)) { parts.len() } else { 1 };
        for (name, part) in parts.into_iter().take(count) {
            let array = if is_whole {
                integers(cells, |cell| as_integer(cell, part))
            } else {
                Arc::new(cells.iter().map(|cell| as_float(cell, part)).collect::<Float64Array>())
            };
            self.push(column, name, array);
        }
    }

    fn ranges(&mut self, column: &Column, cells: &[&Cell]) {
        let (begin, end) = (
            self.times(integers(cells, |cell| if let Cell::TimeRange(begin, _) = cell { *begin } else { None })),
            self.times(integers(cells, |cell| if let Cell::TimeRange(_, end) = cell { *end } else { None })),
        );
        self.push(column, "_begin", begin);
        self.push(column, "_end", end);
    }

    fn processes(&mut self, column: &Column, cells: &[&Cell]) {
        let name = |cell: &Cell| match cell {
            Cell::Process { name, .. } => name.clone(),
            other => said(other),
        };
        self.push(column, "", texts(cells, name));
        self.push(
            column,
            "_pid",
            integers(cells, |cell| if let Cell::Process { pid, .. } = cell { *pid } else { None }),
        );
        self.push(
            column,
            "_tid",
            integers(cells, |cell| if let Cell::Process { tid, .. } = cell { *tid } else { None }),
        );
    }

    fn interrupts(&mut self, column: &Column, cells: &[&Cell]) {
        let name = |cell: &Cell| match cell {
            Cell::Irq { name, .. } => name.clone(),
            other => said(other),
        };
        let number = |cell: &Cell| if let Cell::Irq { number, .. } = cell { Some(*number) } else { None };
        let is_hard = |cell: &Cell| if let Cell::Irq { is_hard, .. } = cell { Some(*is_hard) } else { None };
        self.push(column, "", texts(cells, name));
        self.push(column, "_number", integers(cells, number));
        self.push(column, "_hard", flags(cells, is_hard));
    }

    /// Meaning of nanoseconds.
    fn times(&self, nanos: ArrayRef) -> ArrayRef {
        if !self.times_are_unix {
            return nanos;
        }
        let nanos = nanos.as_any().downcast_ref::<Int64Array>().expect("times are whole numbers");
        Arc::new(nanos.iter().collect::<TimestampNanosecondArray>().with_timezone("UTC"))
    }
}

/// Part of a number.
#[derive(Clone, Copy)]
enum NumberPart {
    Value,
    Low,
    High,
}

fn integers(cells: &[&Cell], number: impl Fn(&Cell) -> Option<i64>) -> ArrayRef {
    Arc::new(cells.iter().map(|cell| number(cell)).collect::<Int64Array>())
}

fn flags(cells: &[&Cell], flag: impl Fn(&Cell) -> Option<bool>) -> ArrayRef {
    Arc::new(cells.iter().map(|cell| flag(cell)).collect::<BooleanArray>())
}

fn texts(cells: &[&Cell], text: impl Fn(&Cell) -> Option<String>) -> ArrayRef {
    Arc::new(cells.iter().map(|cell| text(cell)).collect::<StringArray>())
}

fn has_bounds(cell: &Cell) -> bool {
    match cell {
        Cell::Count(number) | Cell::Duration(number) | Cell::Size(number) => !number.is_exact(),
        Cell::Ratio(number) | Cell::Bitrate(number) => !number.is_exact() && !number.value.is_nan(),
        _ => false,
    }
}

fn part_of<T: Copy>(number: &Bounded<T>, part: NumberPart) -> T {
    match part {
        NumberPart::Value => number.value,
        NumberPart::Low => number.low,
        NumberPart::High => number.high,
    }
}

/// Numbers beyond 63 bits are null, and so is an absent bound.
fn as_integer(cell: &Cell, part: NumberPart) -> Option<i64> {
    match cell {
        Cell::Count(number) | Cell::Duration(number) | Cell::Size(number) => part_of(number, part).try_into().ok(),
        Cell::Integer(number) | Cell::Based(number, _) | Cell::Timestamp(number) | Cell::Fd(number) => Some(*number),
        Cell::Cpu(cpu) => Some(i64::from(*cpu)),
        _ => None,
    }
}

fn as_float(cell: &Cell, part: NumberPart) -> Option<f64> {
    let number = match cell {
        Cell::Ratio(number) | Cell::Bitrate(number) => part_of(number, part),
        Cell::Number(number) => *number,
        Cell::Count(number) => {
            let number = part_of(number, part);
            if number == u64::MAX { f64::INFINITY } else { number as f64 }
        }
        other => as_integer(other, part)? as f64,
    };
    let is_none = number.is_nan() || number.is_infinite() && !matches!(part, NumberPart::Value);
    (!is_none).then_some(number)
}

/// A cell in words.
fn said(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Empty | Cell::Unknown => None,
        Cell::Text(text) | Cell::Syscall(text) | Cell::Path(text) | Cell::Disk(text) | Cell::NetworkInterface(text) => {
            Some(text.clone())
        }
        Cell::Flag(flag) => Some(flag.to_string()),
        Cell::Process { name, .. } | Cell::Irq { name, .. } => name.clone(),
        Cell::TimeRange(begin, end) => {
            let text = |time: &Option<i64>| time.map_or_else(String::new, |time| time.to_string());
            Some(format!("{}..{}", text(begin), text(end)))
        }
        Cell::Ratio(_) | Cell::Bitrate(_) | Cell::Number(_) => {
            as_float(cell, NumberPart::Value).map(|it| it.to_string())
        }
        whole => as_integer(whole, NumberPart::Value).map(|it| it.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_table::arrow::array::{Array, AsArray};
    use kymo_table::arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit};

    fn columns(class: CellClass, cells: Vec<Cell>) -> RecordBatch {
        let mut table = Table::new("test", "Test", vec![Column::new("x", "X", class)]);
        table.rows = cells.into_iter().map(|cell| vec![cell]).collect();
        answer_columns(&table, true)
    }

    fn names(batch: &RecordBatch) -> Vec<&str> {
        batch.schema_ref().fields().iter().map(|field| field.name().as_str()).collect()
    }

    fn integers_of(batch: &RecordBatch, column: &str) -> Vec<Option<i64>> {
        batch.column_by_name(column).unwrap().as_primitive::<Int64Type>().iter().collect()
    }

    /// A bound that is none is null; a column without bounds has none.
    #[test]
    fn bounds_are_columns_where_any_row_has_some() {
        let doubtful = Bounded { value: 5, low: 3, high: u64::MAX };
        let batch = columns(CellClass::Duration, vec![Cell::Duration(Bounded::exact(1)), Cell::Duration(doubtful)]);
        assert_eq!(names(&batch), ["x", "x_low", "x_high"]);
        assert_eq!(integers_of(&batch, "x"), [Some(1), Some(5)]);
        assert_eq!(integers_of(&batch, "x_low"), [Some(1), Some(3)]);
        assert_eq!(integers_of(&batch, "x_high"), [Some(1), None]);
        assert_eq!(names(&columns(CellClass::Size, vec![Cell::Size(Bounded::exact(1))])), ["x"]);
    }

    #[test]
    fn one_number_that_is_not_whole_makes_a_column_of_such() {
        let cells = vec![Cell::Number(0.5), Cell::Integer(-2), Cell::Count(Bounded::exact(3)), Cell::Unknown];
        let batch = columns(CellClass::Number, cells);
        let numbers: Vec<_> = batch.column(0).as_primitive::<Float64Type>().iter().collect();
        assert_eq!(numbers, [Some(0.5), Some(-2.0), Some(3.0), None]);
    }

    #[test]
    fn what_has_parts_has_columns() {
        let process = Cell::Process { name: Some("sh".to_owned()), pid: None, tid: Some(7) };
        let batch = columns(CellClass::Process, vec![process, Cell::Unknown]);
        assert_eq!(names(&batch), ["x", "x_pid", "x_tid"]);
        assert_eq!(batch.column(0).as_string::<i32>().iter().collect::<Vec<_>>(), [Some("sh"), None]);
        assert_eq!(integers_of(&batch, "x_tid"), [Some(7), None]);
        let batch = columns(CellClass::TimeRange, vec![Cell::TimeRange(None, Some(9))]);
        assert_eq!(names(&batch), ["x_begin", "x_end"]);
        assert!(batch.column(0).is_null(0));
        assert_eq!(batch.schema().field(1).data_type(), &DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())));
    }

    #[test]
    fn a_table_without_rows_has_its_columns() {
        let batch = columns(CellClass::Mixed, Vec::new());
        assert_eq!((names(&batch), batch.num_rows()), (vec!["x", "x_class"], 0));
    }
}
