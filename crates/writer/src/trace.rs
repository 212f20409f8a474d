//! A directory that becomes a trace.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_format::model::{Role, TraceClass};
use kymo_wire::index;

use crate::error::{WriteError, WriteProblem, file_error};
use crate::stream::{StreamWriter, has_role};

/// Where the metadata comes from.
#[derive(Clone, Debug)]
pub enum MetadataSource {
    /// The text itself, which describes the trace class that is written.
    Text(String),
}

/// How a trace is written.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Metadata.
    pub metadata: MetadataSource,
    /// A packet ends before it has more bytes than this, unless one event record alone has.
    pub packet_bytes: u64,
    /// Write index files for streams whose packets have sizes and times.
    pub index: bool,
}

/// Writes a trace into a new directory.
#[derive(Debug)]
pub struct TraceWriter {
    path: PathBuf,
    class: Arc<TraceClass>,
    options: WriterOptions,
}

impl TraceWriter {
    /// Makes the directory and its metadata. An existing metadata file is an error.
    pub fn create(path: &Path, class: &TraceClass, options: WriterOptions) -> Result<Self, WriteError> {
        fs::create_dir_all(path).map_err(|error| file_error(path, error))?;
        let MetadataSource::Text(text) = &options.metadata;
        let (metadata, mut file) = create(path.join("metadata"))?;
        let written = std::io::Write::write_all(&mut file, text.as_bytes());
        written.map_err(|error| file_error(&metadata, error))?;
        Ok(Self { path: path.to_owned(), class: Arc::new(class.clone()), options })
    }

    /// Begins a stream file of the data stream class with that index.
    pub fn stream(&self, class: usize, stream_id: Option<u64>, name: &str) -> Result<StreamWriter, WriteError> {
        if class >= self.class.stream_classes.len() {
            return Err(WriteProblem::StreamClass { index: class }.into());
        }
        let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\']);
        if !plain || name == "metadata" || name == "index" {
            return Err(WriteProblem::Name { name: name.to_owned() }.into());
        }
        let file = create(self.path.join(name))?;
        let index = match self.options.index && self.has_index(class) {
            true => Some(self.create_index(name)?),
            false => None,
        };
        let bits = self.options.packet_bytes.saturating_mul(8);
        Ok(StreamWriter::new(Arc::clone(&self.class), class, stream_id, bits, file, index))
    }

    fn has_index(&self, class: usize) -> bool {
        let context = self.class.stream_classes[class].packet_context.as_ref();
        let needed = [
            Role::PacketTotalLength,
            Role::PacketContentLength,
            Role::DefaultClockTimestamp,
            Role::PacketEndDefaultClockTimestamp,
        ];
        let has = |role: &Role| context.is_some_and(|class| has_role(class, *role));
        needed.iter().all(has)
    }

    fn create_index(&self, name: &str) -> Result<(PathBuf, File), WriteError> {
        let folder = self.path.join("index");
        fs::create_dir_all(&folder).map_err(|error| file_error(&folder, error))?;
        let (path, mut file) = create(folder.join(format!("{name}.idx")))?;
        let written = std::io::Write::write_all(&mut file, &index::header());
        written.map_err(|error| file_error(&path, error))?;
        Ok((path, file))
    }
}

fn create(path: PathBuf) -> Result<(PathBuf, File), WriteError> {
    match File::create_new(&path) {
        Ok(file) => Ok((path, file)),
        Err(error) => Err(file_error(&path, error)),
    }
}
