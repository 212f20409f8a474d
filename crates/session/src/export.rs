//! Events as tables: one file for each event record class.
//!
//! ```text
//! round ──work──> a record batch per class ──sink──> waits until it is worth a write ──> DIR/sched_switch.arrow
//! ```
//!
//! Rows of a file are in the order of time, as `print` has it. Files get their names when all of them are whole.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use kymo_decode::columns::{ClassColumns, ColumnReader, Projection};
use kymo_ir::{Cells, eval};
use kymo_scan::{BatchContent, BatchEvents, PartRow, Round, StreamBatch, StreamFault};
pub use kymo_table::FileFormat;
use kymo_table::arrow::datatypes::SchemaRef;
use kymo_table::{ArrowTable, CellSource, FileError, PacketEvents, RecordBatch, TableFile};

use crate::open::progress::{Cancelled, Follower, Progress};
use crate::open::report::Report;
use crate::open::select::Selection;
use crate::open::{Session, is_unix, trace_name};
use crate::parallel::engine::{self, RoundSink, RoundWork};

/// Rows of a class that are written together.
const ROWS_TOGETHER: usize = 64 << 10;
/// The same for rows that are large.
const BYTES_TOGETHER: usize = 64 << 20;
/// A batch of so many rows is worth a write of its own, which saves a copy.
const ROWS_ALONE: usize = 4 << 10;
/// Rows of all classes that wait to be written.
const ROWS_WAITING: usize = 512 << 10;
/// Memory that all unfinished Parquet row groups may take, about.
const UNFINISHED_BYTES: usize = 48 << 20;

/// The events to export, and the target.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// The folder to make files in.
    pub output: PathBuf,
    /// The format of the files.
    pub format: FileFormat,
    /// Only these events.
    pub selection: Selection,
    /// Not before, in nanoseconds since the clock's origin.
    pub begin_ns: Option<i64>,
    /// Not after.
    pub end_ns: Option<i64>,
    /// Gives texts a second column, `x_bytes`, with the bytes of those that are not valid.
    pub keep_bytes: bool,
}

/// One table that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedTable {
    /// Its file.
    pub path: PathBuf,
    /// Rows.
    pub rows: u64,
    /// Texts that are not valid: they have U+FFFD where they are not.
    pub replaced_texts: u64,
}

/// The result of an export.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exported {
    /// The tables, the largest first.
    pub tables: Vec<ExportedTable>,
    /// The differences between the tables and the whole truth.
    pub report: Report,
}

/// Why nothing was exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportFailure {
    /// A file cannot be written.
    #[error("{path}: {error}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        error: FileError,
    },
    /// The request was canceled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl Session {
    /// Writes a table for each event record class that occurs.
    ///
    /// # Errors
    ///
    /// A file cannot be written, or it was canceled. Nothing that was begun stays, then.
    pub fn export(&self, options: &ExportOptions, progress: &Progress) -> Result<Exported, ExportFailure> {
        let failure = |error: std::io::Error| ExportFailure::File { path: options.output.clone(), error: error.into() };
        std::fs::create_dir_all(&options.output).map_err(failure)?;
        let work = ExportWork::new(self, options);
        let exported = Exported { tables: Vec::new(), report: self.opening_report().clone() };
        self.expect(progress, options.begin_ns, options.end_ns);
        let (follower, files) = (Follower::new(self, progress), BTreeMap::new());
        let mut sink =
            ExportSink { session: self, work: &work, waiting: 0, files, exported, follower, progress, error: None };
        let (span, filters) = ((options.begin_ns, options.end_ns), self.filters(&options.selection));
        let cursors = self.cursors_between(true, span, &filters, progress);
        let cursors = engine::run(cursors, self.threads, &work, &mut sink);
        let notes = cursors.iter().flat_map(|cursor| self.assumptions(cursor));
        sink.exported.report.assumptions.extend(notes);
        sink.close()
    }
}

/// An event record class of a data stream class of a trace.
type ClassKey = (usize, usize, usize);

struct ExportWork<'a> {
    options: &'a ExportOptions,
    streams: Vec<StreamTables>,
    /// Tables to be filled again.
    spare: Mutex<HashMap<ClassKey, Vec<ArrowTable>>>,
}

struct StreamTables {
    trace: usize,
    class: usize,
    clock: Option<kymo_decode::ClockConverter>,
    reader: Arc<ColumnReader>,
    packet: Arc<ClassColumns>,
    decoder: Arc<kymo_decode::Decoder>,
    is_unix: bool,
}

impl<'a> ExportWork<'a> {
    fn new(session: &Session, options: &'a ExportOptions) -> Self {
        let mut streams = Vec::new();
        for (number, trace) in session.traces.iter().enumerate() {
            let readers: Vec<(Arc<ColumnReader>, Arc<ClassColumns>)> = (0..trace.class.stream_classes.len())
                .map(|class| {
                    let packet = trace.decoder.packet_columns(class);
                    let packet = packet.expect("every class was lowered when the decoder was made");
                    (Arc::new(ColumnReader::new(Arc::clone(&trace.decoder), class, Projection::All)), Arc::new(packet))
                })
                .collect();
            for stream in &trace.streams {
                let (reader, packet) = readers[stream.class].clone();
                streams.push(StreamTables {
                    trace: number,
                    class: stream.class,
                    clock: stream.clock,
                    reader,
                    packet,
                    decoder: Arc::clone(&trace.decoder),
                    is_unix: is_unix(trace, stream),
                });
            }
        }
        Self { options, streams, spare: Mutex::default() }
    }

    fn table(&self, key: ClassKey, stream: usize) -> ArrowTable {
        let spare = self.spare.lock().ok().and_then(|mut spare| spare.get_mut(&key).and_then(Vec::pop));
        spare.unwrap_or_else(|| {
            let facts = &self.streams[stream];
            ArrowTable::new(
                &facts.packet.fields,
                &facts.reader.columns(key.2).fields,
                facts.is_unix,
                self.options.keep_bytes,
            )
        })
    }

    /// The places of the round's events by class, each in the order of time.
    fn by_class(&self, round: &Round<StreamBatch>) -> BTreeMap<ClassKey, Vec<PartRow>> {
        let mut places: BTreeMap<ClassKey, Vec<PartRow>> = BTreeMap::new();
        for place in &round.order {
            let part = &round.parts[place.part as usize];
            let BatchContent::Events(events) = &part.batch.content else { continue };
            let stream = &self.streams[part.stream];
            if self.is_inside(stream, events.records.cycles[place.row as usize]) {
                let class = events.records.classes[place.row as usize] as usize;
                places.entry((stream.trace, stream.class, class)).or_default().push(*place);
            }
        }
        places
    }

    fn is_inside(&self, stream: &StreamTables, cycles: u64) -> bool {
        let (begin, end) = (self.options.begin_ns, self.options.end_ns);
        if begin.is_none() && end.is_none() {
            return true;
        }
        let nanos = stream.clock.and_then(|clock| clock.nanos(cycles));
        nanos.is_none_or(|nanos| begin.is_none_or(|begin| begin <= nanos) && end.is_none_or(|end| nanos <= end))
    }

    /// The rows of one class.
    fn batch(
        &self,
        round: &Round<StreamBatch>,
        key: ClassKey,
        places: &[PartRow],
        memory: &mut RoundMemory,
    ) -> Finished {
        let mut by_part: Vec<Vec<u32>> = vec![Vec::new(); round.parts.len()];
        places.iter().for_each(|place| by_part[place.part as usize].push(place.row));
        let mut starts = vec![0; round.parts.len()];
        let mut rows = 0;
        let mut table: Option<ArrowTable> = None;
        for (index, (part, wanted)) in round.parts.iter().zip(&by_part).enumerate() {
            let (BatchContent::Events(events), false) = (&part.batch.content, wanted.is_empty()) else { continue };
            starts[index] = rows;
            rows += wanted.len() as u32;
            let table = table.get_or_insert_with(|| self.table(key, part.stream));
            self.append(table, part.stream, events, key.2, wanted, memory);
        }
        let mut table = table.expect("a class in the round has places");
        let is_one_part = by_part.iter().filter(|wanted| !wanted.is_empty()).count() == 1;
        let order = (!is_one_part).then(|| {
            let mut next = |place: &PartRow| {
                let next = &mut starts[place.part as usize];
                *next += 1;
                *next - 1
            };
            places.iter().map(&mut next).collect()
        });
        let batch = table.finish(order);
        let replaced_texts = table.replaced();
        if let Ok(mut spare) = self.spare.lock() {
            spare.entry(key).or_default().push(table);
        }
        Finished { key, batch, replaced_texts }
    }

    fn append(
        &self,
        table: &mut ArrowTable,
        stream: usize,
        events: &BatchEvents,
        class: usize,
        rows: &[u32],
        memory: &mut RoundMemory,
    ) {
        let facts = &self.streams[stream];
        let records = &events.records;
        memory.positions.clear();
        memory.positions.extend(rows.iter().map(|&row| records.positions[row as usize]));
        memory.cycles.clear();
        memory.times.clear();
        for &row in rows {
            let cycles = records.cycles[row as usize];
            memory.cycles.push(facts.clock.is_some().then_some(cycles));
            memory.times.push(facts.clock.and_then(|clock| clock.nanos(cycles)));
        }
        let mut state = events.state();
        let window = events.window();
        let read = facts.reader.read(class, window, &memory.positions, &mut state, &mut memory.body);
        // The scan read the records before: what it accepted can be read again.
        debug_assert!(read.is_ok(), "{read:?}");
        let packet = (!facts.packet.fields.is_empty()).then(|| {
            let mut state = facts.decoder.state(&events.packet.head, 0);
            let (window, start) = (events.packet.head_window(), events.packet.head.context_start);
            let read = eval::rows(&facts.packet.program, window, &[start], &mut state, &mut memory.packet);
            debug_assert!(read.is_ok(), "{read:?}");
            CellSource { cells: &memory.packet, bytes: window.bytes() }
        });
        let body = CellSource { cells: &memory.body, bytes: window.bytes() };
        table.append(&PacketEvents { stream, times: &memory.times, cycles: &memory.cycles, packet, body });
    }
}

/// The rows of one class in a round.
struct Finished {
    key: ClassKey,
    batch: RecordBatch,
    replaced_texts: u64,
}

/// Memory of one round.
#[derive(Default)]
struct RoundMemory {
    positions: Vec<u64>,
    cycles: Vec<Option<u64>>,
    times: Vec<Option<i64>>,
    packet: Cells,
    body: Cells,
}

impl RoundWork for ExportWork<'_> {
    type Context = ();
    type Output = Vec<Finished>;

    fn work(&self, round: &Round<StreamBatch>, (): ()) -> Self::Output {
        let mut memory = RoundMemory::default();
        let by_class = self.by_class(round);
        by_class.iter().map(|(&key, places)| self.batch(round, key, places, &mut memory)).collect()
    }
}

/// A file that is not whole: it has another name, which no program takes for a table's, and is removed unless it becomes whole.
struct Unfinished {
    path: PathBuf,
    file: Option<TableFile>,
}

impl Unfinished {
    fn create(path: &Path, schema: &SchemaRef, format: FileFormat) -> Result<Self, FileError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let path = path.with_file_name(format!(".{name}.part"));
        let file = Some(TableFile::create(&path, schema, format)?);
        Ok(Self { path, file })
    }

    /// Makes it whole.
    fn complete(&mut self) -> Result<(), FileError> {
        self.file.take().map_or(Ok(()), TableFile::close)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        drop(self.file.take());
        // It got its name, or cannot be removed.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A table's file, and batches that wait to be written.
#[derive(Default)]
struct PendingBatches {
    path: PathBuf,
    file: Option<Unfinished>,
    batches: Vec<RecordBatch>,
    waiting: usize,
    waiting_bytes: usize,
    rows: u64,
    replaced_texts: u64,
}

struct ExportSink<'a> {
    session: &'a Session,
    work: &'a ExportWork<'a>,
    files: BTreeMap<ClassKey, PendingBatches>,
    waiting: usize,
    exported: Exported,
    follower: Follower<'a>,
    progress: &'a Progress,
    error: Option<ExportFailure>,
}

impl ExportSink<'_> {
    fn take(&mut self, finished: Finished) -> Result<(), ExportFailure> {
        let Finished { key, batch, replaced_texts } = finished;
        if !self.files.contains_key(&key) {
            let path = self.path(key);
            self.files.insert(key, PendingBatches { path, ..PendingBatches::default() });
        }
        let memory = UNFINISHED_BYTES / self.files.len();
        let file = self.files.get_mut(&key).expect("inserted above");
        file.replaced_texts += replaced_texts;
        file.waiting += batch.num_rows();
        file.waiting_bytes += batch.get_array_memory_size();
        self.waiting += batch.num_rows();
        file.batches.push(batch);
        if file.waiting >= ROWS_TOGETHER
            || file.waiting_bytes >= BYTES_TOGETHER
            || file.batches.len() == 1 && file.waiting >= ROWS_ALONE
        {
            self.waiting -= file.waiting;
            file.write(self.work.options.format, memory)?;
        }
        if self.waiting >= ROWS_WAITING {
            self.waiting = 0;
            self.files.values_mut().try_for_each(|file| file.write(self.work.options.format, memory))?;
        }
        Ok(())
    }

    /// Where the table of a class is written: below its trace's name where there are several.
    fn path(&self, (trace, stream_class, class): ClassKey) -> PathBuf {
        let facts = &self.session.traces[trace];
        let stream = &facts.class.stream_classes[stream_class];
        let event = &stream.event_classes[class];
        let mut name = event.name.as_deref().map_or_else(|| format!("event-{}", event.id), file_name);
        let taken = |name: &str| {
            self.files.iter().any(|(key, file)| key.0 == trace && file.path.file_stem() == Some(name.as_ref()))
        };
        if taken(&name) {
            name += &format!("-{}-{}", stream.id, event.id);
        }
        let mut folder = self.work.options.output.clone();
        if self.session.traces.len() > 1 {
            folder.push(format!("{trace}-{}", file_name(&trace_name(facts.folder.path()))));
        }
        folder.join(format!("{name}.{}", self.work.options.format.extension()))
    }

    fn close(mut self) -> Result<Exported, ExportFailure> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.progress.whole(())?;
        for file in self.files.values_mut() {
            self.progress.whole(())?;
            file.write(self.work.options.format, usize::MAX)?;
            file.complete()?;
        }
        for file in std::mem::take(&mut self.files).into_values() {
            self.exported.tables.push(file.name()?);
        }
        self.exported.tables.sort_by_key(|table| std::cmp::Reverse(table.rows));
        Ok(self.exported)
    }
}

/// A name as part of a path on any system.
fn file_name(name: &str) -> String {
    let kept = |character: char| if character.is_alphanumeric() || "._-".contains(character) { character } else { '_' };
    name.chars().map(kept).collect()
}

impl PendingBatches {
    fn write(&mut self, format: FileFormat, memory_bytes: usize) -> Result<(), ExportFailure> {
        let Some(schema) = self.batches.first().map(RecordBatch::schema) else { return Ok(()) };
        let path: &Path = &self.path;
        let failure = |error: FileError| ExportFailure::File { path: path.to_owned(), error };
        if self.file.is_none() {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).map_err(|error| failure(error.into()))?;
            }
            self.file = Some(Unfinished::create(path, &schema, format).map_err(failure)?);
        }
        let batch = match &self.batches[..] {
            [batch] => batch.clone(),
            batches => kymo_table::together(&schema, batches).map_err(failure)?,
        };
        let file = self.file.as_mut().and_then(|unfinished| unfinished.file.as_mut()).expect("made above");
        file.write(&batch, memory_bytes).map_err(failure)?;
        self.rows += batch.num_rows() as u64;
        self.batches.clear();
        (self.waiting, self.waiting_bytes) = (0, 0);
        Ok(())
    }

    /// Nothing follows.
    fn complete(&mut self) -> Result<(), ExportFailure> {
        let completed = self.file.as_mut().map_or(Ok(()), Unfinished::complete);
        completed.map_err(|error| ExportFailure::File { path: self.path.clone(), error })
    }

    /// Gives the whole file its name.
    fn name(self) -> Result<ExportedTable, ExportFailure> {
        let Self { path, file, rows, replaced_texts, .. } = self;
        let named = file.map_or(Ok(()), |whole| std::fs::rename(&whole.path, &path));
        match named {
            Ok(()) => Ok(ExportedTable { path, rows, replaced_texts }),
            Err(error) => Err(ExportFailure::File { path, error: error.into() }),
        }
    }
}

impl RoundSink<ExportWork<'_>> for ExportSink<'_> {
    fn context(&mut self, round: &mut Round<StreamBatch>) {
        self.exported.report.count_losses(round);
        self.follower.behind(round);
    }

    fn finish(&mut self, tables: Vec<Finished>) -> ControlFlow<()> {
        for finished in tables {
            // Writing takes longer than reading.
            if self.progress.is_cancelled() {
                return ControlFlow::Break(());
            }
            if let Err(error) = self.take(finished) {
                self.error = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn fault(&mut self, fault: StreamFault) {
        self.exported.report.unreadable.push(self.session.problem(&fault));
    }
}
