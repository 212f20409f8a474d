//! Files of record batches.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::writer::FileWriter;
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

/// The format of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// Arrow's own file format, which other programs map into memory as it is.
    Arrow,
    /// Parquet: smaller.
    Parquet,
}

impl FileFormat {
    /// The ending of its files' names.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
        }
    }
}

/// Why a table cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file system refuses.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Arrow refuses.
    #[error("{0}")]
    Arrow(#[from] ArrowError),
    /// Parquet refuses.
    #[error("{0}")]
    Parquet(#[from] ParquetError),
}

/// Batches of one table as one.
///
/// # Errors
///
/// They are of different tables.
pub fn together(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch, FileError> {
    Ok(arrow::compute::concat_batches(schema, batches)?)
}

/// A file being written.
pub struct TableFile {
    writer: TableWriter,
}

/// Where bytes go.
type Out = Box<dyn Write + Send>;

enum TableWriter {
    Arrow(Box<FileWriter<BufWriter<Out>>>),
    Parquet(Box<ArrowWriter<Out>>),
}

impl TableFile {
    /// Makes a file.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub fn create(path: &Path, schema: &SchemaRef, format: FileFormat) -> Result<Self, FileError> {
        Self::new(Box::new(File::create(path)?), schema, format)
    }

    /// Begins a file that writes its bytes to `out`.
    ///
    /// # Errors
    ///
    /// It cannot be begun.
    pub fn new(out: Box<dyn Write + Send>, schema: &SchemaRef, format: FileFormat) -> Result<Self, FileError> {
        let writer = match format {
            FileFormat::Arrow => TableWriter::Arrow(Box::new(FileWriter::try_new(BufWriter::new(out), schema)?)),
            FileFormat::Parquet => {
                let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                TableWriter::Parquet(Box::new(ArrowWriter::try_new(out, schema.clone(), Some(properties))?))
            }
        };
        Ok(Self { writer })
    }

    /// Appends rows; keeps at most about `memory_bytes` of them in memory.
    ///
    /// # Errors
    ///
    /// They cannot be written.
    pub fn write(&mut self, batch: &RecordBatch, memory_bytes: usize) -> Result<(), FileError> {
        match &mut self.writer {
            TableWriter::Arrow(writer) => writer.write(batch)?,
            TableWriter::Parquet(writer) => {
                writer.write(batch)?;
                if writer.in_progress_size() > memory_bytes {
                    writer.flush()?;
                }
            }
        }
        Ok(())
    }

    /// Completes the file.
    ///
    /// # Errors
    ///
    /// The rest cannot be written.
    pub fn close(self) -> Result<(), FileError> {
        match self.writer {
            TableWriter::Arrow(mut writer) => writer.finish()?,
            TableWriter::Parquet(writer) => drop(writer.close()?),
        }
        Ok(())
    }
}
