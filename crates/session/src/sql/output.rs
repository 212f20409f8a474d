//! Answers as text and files.
//!
//! | format | is |
//! |---|---|
//! | table | for people: as wide as its content |
//! | CSV | a line with the names, then a line for each row; lists, maps and structures as text |
//! | JSON | an object in a line for each row |
//! | Parquet, Arrow | files; into a pipe, Arrow is a stream |

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use kymo_sql::arrow::csv::WriterBuilder as CsvBuilder;
use kymo_sql::arrow::json::writer::{LineDelimited, WriterBuilder as JsonBuilder};
use kymo_table::arrow::array::{Array, ArrayRef, RecordBatchOptions, StringArray};
use kymo_table::arrow::compute::cast;
use kymo_table::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use kymo_table::arrow::error::ArrowError;
use kymo_table::arrow::ipc::writer::StreamWriter;
use kymo_table::arrow::util::display::{ArrayFormatter, FormatOptions};
use kymo_table::{FileError, FileFormat, RecordBatch, TableFile};

use super::{SqlAnswer, SqlFailure};

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerFormat {
    /// For people.
    Table,
    /// Comma-separated values.
    Csv,
    /// An object in a line for each row.
    Json,
    /// A Parquet file.
    Parquet,
    /// An Arrow file, or a stream of it where there is no file.
    Arrow,
}

/// Why an answer was not written to its end.
#[derive(Debug, thiserror::Error)]
pub enum WriteFailure {
    /// There is no answer.
    #[error(transparent)]
    Sql(#[from] SqlFailure),
    /// It cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl From<io::Error> for WriteFailure {
    fn from(error: io::Error) -> Self {
        Self::File(error.into())
    }
}

impl From<ArrowError> for WriteFailure {
    fn from(error: ArrowError) -> Self {
        Self::File(error.into())
    }
}

/// Memory for rows that are not yet in a Parquet file.
const PARQUET_BYTES: usize = 32 << 20;
/// Rows that a table looks at to know how wide its columns are.
const ROWS_LOOKED_AT: usize = 2000;

/// Writes an answer to a file, or to standard output. Returns how many rows it has.
///
/// # Errors
///
/// Nothing more can be answered or written.
pub fn write_answer(answer: &mut SqlAnswer, format: AnswerFormat, path: Option<&Path>) -> Result<u64, WriteFailure> {
    if answer.schema().fields().is_empty() {
        // Nothing was asked: a view was made, say.
        return answer.try_fold(0, |rows, batch| Ok(rows + batch?.num_rows() as u64));
    }
    let is_file = path.is_some();
    let fault = Arc::new(Mutex::new(None));
    let out = || -> io::Result<Box<dyn Write + Send>> {
        let fault = Arc::clone(&fault);
        Ok(match path {
            Some(path) => Box::new(Faulty { out: File::create(path)?, fault }),
            None => Box::new(Faulty { out: io::stdout(), fault }),
        })
    };
    let written = match format {
        AnswerFormat::Table => write_table(answer, &mut io::BufWriter::new(out()?)),
        AnswerFormat::Csv => write_csv(answer, io::BufWriter::new(out()?)),
        AnswerFormat::Json => write_json(answer, io::BufWriter::new(out()?)),
        AnswerFormat::Arrow if !is_file => write_stream(answer, io::BufWriter::new(out()?)),
        AnswerFormat::Arrow => write_file(answer, out()?, FileFormat::Arrow),
        AnswerFormat::Parquet => write_file(answer, out()?, FileFormat::Parquet),
    };
    let fault = fault.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (written, fault) {
        (Err(WriteFailure::File(_)), Some(fault)) => Err(fault.into()),
        (written, _) => written,
    }
}

/// Keeps the system's error: writers of formats turn it into text.
struct Faulty<W> {
    out: W,
    fault: Arc<Mutex<Option<io::Error>>>,
}

impl<W> Faulty<W> {
    fn kept<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            let kind = error.kind();
            *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            kind.into()
        })
    }
}

impl<W: Write> Write for Faulty<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.out.write(bytes);
        self.kept(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.out.flush();
        self.kept(done)
    }
}

fn write_csv(answer: &mut SqlAnswer, out: impl Write) -> Result<u64, WriteFailure> {
    let plain = Plain::new(answer.schema(), |kind| kind.is_nested() || is_bytes(kind));
    let mut writer = CsvBuilder::new().with_header(true).build(out);
    writer.write(&RecordBatch::new_empty(Arc::clone(&plain.schema)))?;
    let mut rows = 0;
    for batch in answer {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        writer.write(&plain.batch(&batch)?)?;
    }
    writer.into_inner().flush()?;
    Ok(rows)
}

fn write_json(answer: &mut SqlAnswer, out: impl Write) -> Result<u64, WriteFailure> {
    let mut writer = JsonBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(out);
    let mut rows = 0;
    for batch in answer {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        writer.write(&batch)?;
    }
    writer.finish()?;
    writer.into_inner().flush()?;
    Ok(rows)
}

fn write_stream(answer: &mut SqlAnswer, out: impl Write) -> Result<u64, WriteFailure> {
    let mut writer = StreamWriter::try_new(out, answer.schema())?;
    let mut rows = 0;
    for batch in answer {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        writer.write(&batch)?;
    }
    writer.finish()?;
    writer.into_inner()?.flush()?;
    Ok(rows)
}

/// Files have one dictionary for a column; answers may have one for each batch, so that their texts are written.
fn write_file(answer: &mut SqlAnswer, out: Box<dyn Write + Send>, format: FileFormat) -> Result<u64, WriteFailure> {
    let plain = Plain::new(answer.schema(), |kind| matches!(kind, DataType::Dictionary(..)));
    let mut file = TableFile::new(out, &plain.schema, format)?;
    let mut rows = 0;
    for batch in answer {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        file.write(&plain.batch(&batch)?, PARQUET_BYTES)?;
    }
    file.close()?;
    Ok(rows)
}

fn is_bytes(kind: &DataType) -> bool {
    matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_))
}

/// Some columns as text.
struct Plain {
    schema: SchemaRef,
    is_text: Vec<bool>,
}

impl Plain {
    fn new(schema: &SchemaRef, becomes_text: impl Fn(&DataType) -> bool) -> Self {
        let is_text: Vec<bool> = schema.fields().iter().map(|field| becomes_text(field.data_type())).collect();
        let field = |(field, is_text): (&Arc<Field>, &bool)| match is_text {
            true => Field::new(field.name(), DataType::Utf8, field.is_nullable()),
            false => field.as_ref().clone(),
        };
        let fields: Vec<Field> = schema.fields().iter().zip(&is_text).map(field).collect();
        Self { schema: Arc::new(Schema::new(fields)), is_text }
    }

    fn batch(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let column = |(column, is_text): (&ArrayRef, &bool)| match (is_text, column.data_type()) {
            (false, _) => Ok(Arc::clone(column)),
            (true, DataType::Dictionary(..)) => cast(column, &DataType::Utf8),
            (true, _) => texts(column),
        };
        let columns = batch.columns().iter().zip(&self.is_text).map(column).collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

fn texts(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options)?;
    let text = |row: usize| column.is_valid(row).then(|| formatter.value(row).to_string());
    Ok(Arc::new((0..column.len()).map(text).collect::<StringArray>()))
}

/// The columns of a table for people.
struct OutputLayout {
    names: Vec<String>,
    widths: Vec<usize>,
    is_right: Vec<bool>,
}

fn write_table(answer: &mut SqlAnswer, out: &mut impl Write) -> Result<u64, WriteFailure> {
    let schema = Arc::clone(answer.schema());
    let (mut first, mut looked_at) = (Vec::new(), 0);
    while looked_at < ROWS_LOOKED_AT
        && let Some(batch) = answer.next()
    {
        let batch = batch?;
        looked_at += batch.num_rows();
        first.push(batch);
    }
    let layout = OutputLayout::new(&schema, &first)?;
    layout.head(out)?;
    let mut rows = 0;
    for batch in first.into_iter().map(Ok).chain(answer) {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        layout.rows(&batch, out)?;
    }
    out.flush()?;
    Ok(rows)
}

impl OutputLayout {
    fn new(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Self, ArrowError> {
        let names: Vec<String> = schema.fields().iter().map(|field| shown(field.name())).collect();
        let mut widths: Vec<usize> = names.iter().map(|name| columns(name)).collect();
        let is_right = schema.fields().iter().map(|field| field.data_type().is_numeric()).collect();
        for batch in batches {
            for (width, column) in widths.iter_mut().zip(batch.columns()) {
                for row in &cells(column)? {
                    *width = row.lines().map(columns).fold(*width, usize::max);
                }
            }
        }
        Ok(Self { names, widths, is_right })
    }

    fn head(&self, out: &mut impl Write) -> io::Result<()> {
        self.line(self.names.iter().map(String::as_str), out)
    }

    fn rows(&self, batch: &RecordBatch, out: &mut impl Write) -> Result<(), WriteFailure> {
        let cells: Vec<Vec<String>> = batch.columns().iter().map(cells).collect::<Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            let height = cells.iter().map(|column| column[row].lines().count()).max().unwrap_or(0).max(1);
            for line in 0..height {
                self.line(cells.iter().map(|column| column[row].lines().nth(line).unwrap_or("")), out)?;
            }
        }
        Ok(())
    }

    /// One line; nothing stands behind the last text.
    fn line<'t>(&self, texts: impl Iterator<Item = &'t str>, out: &mut impl Write) -> io::Result<()> {
        let mut line = String::new();
        for (place, text) in texts.enumerate() {
            let free = " ".repeat(self.widths[place].saturating_sub(columns(text)));
            line += if place > 0 { "  " } else { "" };
            line += &if self.is_right[place] { format!("{free}{text}") } else { format!("{text}{free}") };
        }
        writeln!(out, "{}", line.trim_end())
    }
}

/// All cells of a column as people see them; nothing where there is nothing.
fn cells(column: &ArrayRef) -> Result<Vec<String>, ArrowError> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options)?;
    let text = |row: usize| if column.is_valid(row) { shown(&formatter.value(row).to_string()) } else { String::new() };
    Ok((0..column.len()).map(text).collect())
}

/// Without characters that move the cursor; line ends stay.
fn shown(text: &str) -> String {
    if !text.contains(|letter: char| letter.is_control() && letter != '\n') {
        return text.to_owned();
    }
    text.chars()
        .flat_map(|letter| {
            let is_shown = letter == '\n' || !letter.is_control();
            let (plain, escaped) = if is_shown { (Some(letter), None) } else { (None, Some(letter.escape_default())) };
            plain.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect()
}

fn columns(text: &str) -> usize {
    text.chars().count()
}
