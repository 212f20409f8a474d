//! Opens the paths that the user named: one trace, several, or a tree of them.

pub(crate) mod again;
pub(crate) mod counters;
pub(crate) mod discover;
pub(crate) mod ends;
mod extent;
pub(crate) mod gone;
pub(crate) mod identity;
pub(crate) mod index;
pub(crate) mod logical;
pub(crate) mod metadata;
pub(crate) mod offsets;
pub(crate) mod packet_head;
pub(crate) mod progress;
pub(crate) mod recent;
pub(crate) mod rehearsal;
pub(crate) mod report;
pub(crate) mod select;
pub(crate) mod share;
pub(crate) mod stacks;
pub(crate) mod thinned;
mod timed;
pub(crate) mod told;
pub(crate) mod when;
pub(crate) mod zone;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use kymo_decode::Compile;
use kymo_decode::filter::StreamFilter;
use kymo_filter::nearest;
use kymo_format::model::EnvironmentValue;
use kymo_format::{Assumption, ClockClass, ClockOrigin, Severity, line_column};
use kymo_scan::{Cursor, CursorSetup, DataStream, KeyMaker, NothingKnown, OpenError, StreamFault, Trace, TraceOptions};
use kymo_schema::glob;
use kymo_source::{BufferPool, ImportNote, ImportOptions, TraceFolder};
use kymo_units::Uuid;
use serde::{Deserialize, Serialize};

use crate::cache::{PacketCache, RecalledPackets};
use crate::open::again::EarlierTraces;
use crate::open::discover::{Discovered, Importing, discover_machines};
use crate::open::ends::MissingEnd;
use crate::open::gone::GoneFiles;
use crate::open::offsets::{OffsetFailure, Offsets, TraceOffset};
use crate::open::progress::Progress;
use crate::open::report::{Report, ReportProblem};
use crate::open::stacks::StackFacts;
use crate::open::thinned::ThinnedEvents;

/// How to open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Nanoseconds that every clock is ahead.
    pub clock_shift_ns: i64,
    /// How far those of single traces are ahead besides; of several, the one with the path nearest
    /// to the trace counts.
    pub trace_offsets: Vec<TraceOffset>,
    /// Threads to use; 0: as many as the machine has cores.
    pub threads: usize,
    /// When read programs become machine code.
    pub compile: Compile,
    /// Where to keep indexes and results, if anywhere; see [`cache_folder`](crate::cache_folder).
    pub cache: Option<PathBuf>,
    /// How files in other formats are read.
    pub import: ImportOptions,
}

/// Open traces.
#[derive(Debug)]
pub struct Session {
    /// In the order in which ties in time are resolved.
    pub(crate) traces: Vec<Arc<Trace>>,
    pub(crate) threads: usize,
    /// When programs become machine code.
    pub(crate) compile: Compile,
    /// Length of slices of time, for tests that cut short traces.
    pub(crate) slice_bytes: Option<u64>,
    /// Where analyses' parts are cut besides, for tests: in the order of time.
    pub(crate) cuts_ns: Vec<i64>,
    opened: Report,
    /// For each data stream its missing end; none of traces that grow.
    pub(crate) missing_ends: Vec<Option<MissingEnd>>,
    /// From the first to the last event, once that was asked for.
    event_span: OnceLock<Option<(i64, i64)>>,
    /// Files that were there and are not any more.
    gone: GoneFiles,
    /// What the traces tell of call stacks, once that was asked for.
    pub(crate) stacks: OnceLock<Arc<StackFacts>>,
    /// Rules that have kept only some events, once that was asked for.
    thinned: OnceLock<Vec<ThinnedEvents>>,
    /// Where to keep indexes and results.
    pub(crate) cache: Option<PathBuf>,
}

/// Why nothing can be answered.
#[derive(Debug, thiserror::Error)]
pub enum OpenFailure {
    /// A path cannot be read.
    #[error("{0}")]
    Source(#[from] kymo_source::SourceError),
    /// A trace cannot be understood.
    #[error("{}: {error}", path.display())]
    Trace {
        /// The trace.
        path: PathBuf,
        /// The error in it.
        error: OpenError,
    },
    /// An offset of a trace's clocks is of no trace, or given twice.
    #[error(transparent)]
    Offset(#[from] OffsetFailure),
}

impl OpenFailure {
    /// The failure as text for people, with the lines of metadata it is about.
    #[must_use]
    pub fn render(&self) -> String {
        match self {
            Self::Trace { path, error: OpenError::Metadata(metadata) } => {
                let name = path.join("metadata").display().to_string();
                let rendered = metadata.diagnostics.iter().map(|found| found.render_plain(&metadata.text, &name));
                rendered.collect()
            }
            other => format!("error: {other}\n"),
        }
    }

    /// The failure in a line, where other traces can be read.
    fn problem(&self) -> ReportProblem {
        let (place, message) = match self {
            Self::Source(error) => return discover::problem(error),
            Self::Offset(failure) => (failure.path().display().to_string(), failure.to_string()),
            Self::Trace { path, error: OpenError::Metadata(metadata) } => {
                let file = path.join("metadata").display().to_string();
                match metadata.diagnostics.iter().find(|found| found.severity == Severity::Error) {
                    Some(found) => {
                        let at = line_column(&metadata.text, found.span.start);
                        (format!("{file}:{}:{}", at.line, at.column), found.problem.to_string())
                    }
                    None => (file, OpenError::Metadata(metadata.clone()).to_string()),
                }
            }
            Self::Trace { path, error } => (path.display().to_string(), error.to_string()),
        };
        ReportProblem { place, message }
    }
}

impl Session {
    /// Opens every trace at or below the paths. Errors stand in the report, unless nothing can be
    /// opened.
    ///
    /// # Errors
    ///
    /// The first path without a trace, or metadata that cannot be understood, if there is nothing else. Offsets of traces
    /// that are not there.
    pub fn open(paths: &[PathBuf], options: &OpenOptions) -> Result<Self, OpenFailure> {
        Self::open_again(paths, options, None)
    }

    /// Opens traces that were open before, of which something is known.
    pub(crate) fn open_again(
        paths: &[PathBuf],
        options: &OpenOptions,
        earlier: Option<&EarlierTraces>,
    ) -> Result<Self, OpenFailure> {
        let offsets = Offsets::new(&options.trace_offsets)?;
        let mut traces = Vec::new();
        let cache = options.cache.clone().map(PacketCache::new);
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if options.threads == 0 { cores() } else { options.threads };
        let mut failures = Vec::new();
        let own = Importing::new(&options.import);
        let importing = earlier.map_or(&own, EarlierTraces::importing);
        let Discovered { found, skipped } = find_all(paths, importing, &offsets)?;
        for folder in found {
            let opened = folder.map_err(OpenFailure::Source).and_then(|folder| {
                let path = folder.path().to_owned();
                let clock_shift_ns = options.clock_shift_ns.saturating_add(offsets.of(&path));
                let options = TraceOptions { clock_shift_ns, compile: options.compile };
                let opened = match earlier {
                    Some(earlier) => {
                        let (known, before) = (earlier.packets(cache.as_ref()), earlier.trace(&folder));
                        Trace::open_again(folder.clone(), options, &known, before)
                    }
                    None => open_one(folder, options, threads, cache.as_ref()),
                };
                let opened = opened.map_err(|error| OpenFailure::Trace { path, error });
                opened.map(counters::corrected)
            });
            match opened {
                Ok(trace) => traces.push(Arc::new(trace)),
                Err(failure) => failures.push(failure),
            }
        }
        if traces.is_empty() && !failures.is_empty() {
            return Err(failures.swap_remove(0));
        }
        traces.sort_by_key(|trace| trace.class.uuid);
        let mut opened = opening_report(&traces);
        // Of traces that are recorded, other packets of a stream are still to come.
        let missing_ends = if earlier.is_none() { missing_ends(&traces, &mut opened) } else { Vec::new() };
        opened.unreadable.extend(failures.iter().map(OpenFailure::problem));
        opened.unreadable.extend(skipped.iter().map(discover::problem));
        let gone = earlier.and_then(EarlierTraces::session).map(|session| session.gone_for_later()).unwrap_or_default();
        let cache = options.cache.clone();
        Ok(Self {
            traces,
            threads,
            compile: options.compile,
            opened,
            missing_ends,
            event_span: OnceLock::new(),
            gone,
            stacks: OnceLock::new(),
            thinned: OnceLock::new(),
            slice_bytes: None,
            cache,
            cuts_ns: Vec::new(),
        })
    }

    /// Bytes of all files with packets.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.traces.iter().flat_map(|trace| trace.folder.streams()).map(|file| file.size).sum()
    }

    /// The same, with traces that more is known of.
    pub(crate) fn with_traces(&self, traces: Vec<Arc<Trace>>) -> Self {
        let (opened, cache, cuts_ns) = (self.opened.clone(), self.cache.clone(), self.cuts_ns.clone());
        let (missing_ends, gone) = (self.missing_ends.clone(), self.gone.clone());
        let (event_span, stacks, thinned) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { traces, opened, missing_ends, cache, cuts_ns, event_span, gone, stacks, thinned, ..*self }
    }

    /// One trace that is open already, read by one thread.
    pub(crate) fn of_trace(trace: Arc<Trace>) -> Self {
        Self {
            traces: vec![trace],
            threads: 1,
            compile: Compile::default(),
            opened: Report::default(),
            missing_ends: Vec::new(),
            event_span: OnceLock::new(),
            gone: GoneFiles::default(),
            stacks: OnceLock::new(),
            thinned: OnceLock::new(),
            slice_bytes: None,
            cache: None,
            cuts_ns: Vec::new(),
        }
    }

    /// The errors and doubts of opening.
    #[must_use]
    pub fn opening_report(&self) -> &Report {
        &self.opened
    }

    /// All data streams in the order in which ties in time are resolved: (trace, stream).
    pub(crate) fn streams(&self) -> Vec<(&Arc<Trace>, &DataStream)> {
        let of_trace = |trace| -> Vec<_> {
            let trace: &Arc<Trace> = trace;
            trace.streams.iter().map(|stream| (trace, stream)).collect()
        };
        self.traces.iter().flat_map(of_trace).collect()
    }

    /// The data streams of a trace with their ranks among all.
    #[cfg(feature = "columns")]
    pub(crate) fn streams_of(&self, trace: usize) -> impl Iterator<Item = (usize, &DataStream)> {
        let before: usize = self.traces[..trace].iter().map(|trace| trace.streams.len()).sum();
        self.traces[trace].streams.iter().enumerate().map(move |(number, stream)| (before + number, stream))
    }

    /// A cursor over each data stream.
    pub(crate) fn cursors(
        &self,
        marks: bool,
        filters: &[Option<Arc<StreamFilter>>],
        progress: &Progress,
    ) -> Vec<Cursor> {
        self.cursors_between(marks, (None, None), filters, progress)
    }

    /// When the first packet of any stream begins, if packets say so.
    #[must_use]
    pub fn first_ns(&self) -> Option<i64> {
        let first =
            |(_, stream): &(&Arc<Trace>, &DataStream)| stream.clock?.nanos(stream.packets.first()?.begin_cycles?);
        self.streams().iter().filter_map(first).min()
    }

    /// When the last packet of any stream ends, if packets say so.
    #[must_use]
    pub fn last_ns(&self) -> Option<i64> {
        let last = |(_, stream): &(&Arc<Trace>, &DataStream)| stream.clock?.nanos(stream.packets.last()?.end_cycles?);
        self.streams().iter().filter_map(last).max()
    }

    /// Whether there is more in the files of traces now than when they were opened.
    #[must_use]
    pub fn has_grown(&self) -> bool {
        let has_more = |folder: &TraceFolder| {
            let sizes = folder.streams().iter().enumerate();
            let grew = |(number, stream): (usize, &kymo_source::StreamEntry)| {
                folder.identity(number).is_ok_and(|now| stream.size < now.size)
            };
            sizes.into_iter().any(grew)
        };
        self.traces.iter().any(|trace| has_more(&trace.folder))
    }

    /// The patterns that no event record class of any trace has a name for: typos.
    #[must_use]
    pub fn unmatched<'p>(&self, patterns: &'p [String]) -> Vec<&'p str> {
        let names = self.class_names();
        let is_unmatched = |pattern: &&str| !names.iter().any(|name| glob::matches(pattern, name));
        patterns.iter().map(String::as_str).filter(is_unmatched).collect()
    }

    /// How many data streams have no clock, so that their events have no times, and how many there are.
    #[must_use]
    pub fn streams_without_clock(&self) -> (usize, usize) {
        let streams = self.streams();
        (streams.iter().filter(|(_, stream)| stream.clock.is_none()).count(), streams.len())
    }

    /// Names of event record classes that are like this one, the nearest first.
    #[must_use]
    pub fn class_names_like(&self, name: &str) -> Vec<String> {
        nearest(name, self.class_names())
    }

    /// The names of all event record classes.
    pub(crate) fn class_names(&self) -> Vec<&str> {
        let classes = self.traces.iter().flat_map(|trace| &trace.class.stream_classes);
        classes
            .flat_map(|stream| &stream.event_classes)
            .map(|class| class.name.as_deref().unwrap_or_default())
            .collect()
    }

    /// Whether the times of all data streams count from the same origin, so that their events have an order.
    #[must_use]
    pub fn times_are_comparable(&self) -> bool {
        TimeOrigin::all_same(&self.origins())
    }

    /// Whether the times of all data streams count from the Unix epoch, so that they are dates.
    #[must_use]
    pub fn times_are_unix(&self) -> bool {
        self.origins().iter().all(|origin| *origin == TimeOrigin::Unix)
    }

    /// A cursor over the packets of each data stream that may have events between two times; it delivers those that
    /// are wanted, until the job is canceled.
    pub(crate) fn cursors_between(
        &self,
        marks: bool,
        (begin_ns, end_ns): (Option<i64>, Option<i64>),
        filters: &[Option<Arc<StreamFilter>>],
        progress: &Progress,
    ) -> Vec<Cursor> {
        let streams = self.streams();
        let chunk_bytes = chunk_bytes(streams.len());
        let pool = BufferPool::default();
        let cursor = |(rank, (trace, stream)): (usize, &(&Arc<Trace>, &DataStream))| {
            let files = stream.files.iter().map(|&file| (file, trace.folder.stream(file as usize))).collect();
            let setup = CursorSetup {
                decoder: Arc::clone(&trace.decoder),
                files,
                packets: Arc::clone(&stream.packets),
                wanted: stream.packets_for(begin_ns, end_ns, filters.get(rank).and_then(Option::as_deref)),
                stream: rank,
                keys: KeyMaker::new(stream.clock),
                counters: stream.counters,
                chunk_bytes,
                marks,
                filter: filters.get(rank).cloned().flatten(),
                stop: progress.stop(),
            };
            Cursor::new(setup, pool.clone())
        };
        streams.iter().enumerate().map(cursor).collect()
    }

    /// The assumptions about a stream that was read.
    pub(crate) fn assumptions(&self, cursor: &Cursor) -> Vec<ReportProblem> {
        self.assumptions_of(cursor.stream(), Doubts::of(cursor))
    }

    /// The assumptions about a stream.
    pub(crate) fn assumptions_of(&self, stream: usize, doubts: Doubts) -> Vec<ReportProblem> {
        let note = |assumption, what: &str| self.note(stream, assumption, what);
        let mut notes = Vec::new();
        if doubts.uuid_differs {
            notes.push(note(Assumption::UuidMismatch, "packets have another UUID than the metadata"));
        }
        if doubts.steps_back > 0 {
            let times = if doubts.steps_back == 1 { "time" } else { "times" };
            let after =
                if doubts.goes_on { "; here it goes on from its latest time where it was set back" } else { "" };
            let what = format!("the clock steps back {} {times}{after}", doubts.steps_back);
            notes.push(note(Assumption::ClockStepsBack, &what));
        }
        if doubts.times_out_of_range > 0 {
            let what = match doubts.times_out_of_range {
                1 => "the time of 1 event does not fit 64 bits of nanoseconds".to_owned(),
                count => format!("the times of {count} events do not fit 64 bits of nanoseconds"),
            };
            let after = if doubts.are_left_out { "; here they are left out" } else { "" };
            notes.push(note(Assumption::TimeOutOfRange, &format!("{what}{after}")));
        }
        notes
    }

    /// Something that had to be assumed of a stream.
    pub(crate) fn note(&self, stream: usize, assumption: Assumption, what: &str) -> ReportProblem {
        let place = self.place(stream);
        let message = format!("{place}: warning[{assumption}]: {what}");
        ReportProblem { place, message }
    }

    /// Where a stream lies: its first file.
    pub(crate) fn place(&self, stream: usize) -> String {
        let (trace, stream) = self.streams()[stream];
        let file = stream.files.first().map_or(0, |&file| file as usize);
        trace.folder.stream(file).path().display().to_string()
    }

    /// The origins of the times of each data stream.
    pub(crate) fn origins(&self) -> Vec<TimeOrigin> {
        let of_trace = |(number, trace): (usize, &Arc<Trace>)| -> Vec<TimeOrigin> {
            trace.streams.iter().map(|stream| TimeOrigin::of(number, trace, stream)).collect()
        };
        self.traces.iter().enumerate().flat_map(of_trace).collect()
    }

    /// A fault in terms that people understand.
    pub(crate) fn problem(&self, fault: &StreamFault) -> ReportProblem {
        let (trace, _) = self.streams()[fault.stream];
        let place = trace.folder.stream(fault.file as usize).path().display().to_string();
        let message = format!("packet {} at byte {}: {}", fault.packet, fault.offset_bytes, fault.kind);
        ReportProblem { place, message }
    }
}

/// All traces at or below the paths, in the order of the paths. Each offset is of one of them, or of something that cannot be
/// looked at: that is told of it anyway.
fn find_all(paths: &[PathBuf], importing: &Importing, offsets: &Offsets<'_>) -> Result<Discovered, OffsetFailure> {
    let discovered = discover_machines(paths, importing, &|path| offsets.number_of(path));
    let places = discovered.found.iter().flat_map(|found| match found {
        Ok(folder) => std::iter::once(folder.path()).chain(folder.other_paths().iter().map(PathBuf::as_path)).collect(),
        Err(error) => vec![&*error.path],
    });
    let skipped = discovered.skipped.iter().map(|error| &*error.path);
    offsets.check(&places.chain(skipped).map(Path::to_owned).collect::<Vec<PathBuf>>())?;
    Ok(discovered)
}

/// Opens a trace, with the remembered packets; on several threads they are looked at side by side.
fn open_one(
    folder: TraceFolder,
    options: TraceOptions,
    threads: usize,
    cache: Option<&PacketCache>,
) -> Result<Trace, OpenError> {
    match cache {
        Some(cache) if threads > 1 => std::thread::scope(|scope| {
            let recalled = RecalledPackets::new(cache, folder.clone(), |look| drop(scope.spawn(look)));
            Trace::open(folder, options, &recalled)
        }),
        Some(cache) => Trace::open(folder, options, cache),
        None => Trace::open(folder, options, &NothingKnown),
    }
}

/// The doubts about a stream, from its reader.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Doubts {
    uuid_differs: bool,
    steps_back: u64,
    /// The clock was set back, and keys go on from its latest time.
    goes_on: bool,
    times_out_of_range: u64,
    /// Those events were not delivered.
    are_left_out: bool,
}

impl Doubts {
    pub(crate) fn of(cursor: &Cursor) -> Self {
        Self {
            uuid_differs: cursor.uuid_differs(),
            steps_back: cursor.steps_back(),
            goes_on: cursor.is_for_intervals() && cursor.clock_was_set_back(),
            times_out_of_range: cursor.times_out_of_range(),
            are_left_out: cursor.is_for_intervals(),
        }
    }

    /// Adds the doubts from other parts of the stream.
    pub(crate) fn add(&mut self, others: Self) {
        self.uuid_differs |= others.uuid_differs;
        self.steps_back += others.steps_back;
        self.goes_on |= others.goes_on;
        self.are_left_out |= others.are_left_out;
        self.times_out_of_range += others.times_out_of_range;
    }
}

/// Memory for reading, shared among the streams: bytes that are read at a time should still be near
/// when they are looked at, together with the results. On k400, 128 KiB for each of 8 streams
/// instead of 256 makes `kymo cpu` 3 % faster and takes 1000 page faults less; 64 KiB are no
/// faster.
const READ_BYTES: usize = 1 << 20;

fn chunk_bytes(streams: usize) -> usize {
    (READ_BYTES / streams.max(1)).clamp(4 << 10, 256 << 10)
}

fn opening_report(traces: &[Arc<Trace>]) -> Report {
    let mut report = Report::default();
    for trace in traces {
        let metadata = trace.folder.path().join("metadata").display().to_string();
        for found in &trace.metadata.diagnostics {
            if let Severity::Assumption(_) = found.severity {
                let message = found.render_plain(&trace.metadata.text, &metadata);
                report.assumptions.push(ReportProblem { place: metadata.clone(), message });
            }
        }
        let imported = trace.folder.path().display().to_string();
        let left_out = |message: &String| ReportProblem { place: imported.clone(), message: message.clone() };
        report.unreadable.extend(trace.folder.problems().iter().map(left_out));
        let assumed = |note: &ImportNote| ReportProblem {
            place: imported.clone(),
            message: format!("{imported}: warning[{}]: {}", note.assumption, note.what),
        };
        report.assumptions.extend(trace.folder.notes().iter().map(assumed));
        for broken in trace.broken_files.iter() {
            let place = trace.folder.stream(broken.file).path().display().to_string();
            report.unreadable.push(ReportProblem { place, message: broken.error.to_string() });
        }
    }
    report
}

/// For each data stream of the traces its missing end; the report says so.
fn missing_ends(traces: &[Arc<Trace>], report: &mut Report) -> Vec<Option<MissingEnd>> {
    let mut missing = Vec::new();
    for trace in traces {
        let of_trace = MissingEnd::of_trace(trace);
        for (stream, end) in trace.streams.iter().zip(&of_trace) {
            let Some(end) = end else { continue };
            let file = stream.files.last().map_or(0, |&file| file as usize);
            let place = trace.folder.stream(file).path().display().to_string();
            let message = format!("{place}: warning[{}]: {}", end.assumption(), end.sentence());
            report.assumptions.push(ReportProblem { place, message });
            report.ends_missing += 1;
        }
        missing.extend(of_trace);
    }
    missing
}

/// Whether the times of a stream count from the Unix epoch.
#[cfg(feature = "columns")]
pub(crate) fn is_unix(trace: &Trace, stream: &DataStream) -> bool {
    TimeOrigin::of(0, trace, stream) == TimeOrigin::Unix
}

/// The origin of the times of a data stream: they can be compared where that is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TimeOrigin {
    /// There are no times.
    None,
    /// 1970.
    Unix,
    /// Known to its producers.
    Custom(ClockOrigin),
    /// The start of one machine, say, that is known by this.
    Uuid(Uuid),
    /// A clock of one trace.
    Own { trace: usize, clock: usize },
}

impl TimeOrigin {
    fn of(number: usize, trace: &Trace, stream: &DataStream) -> Self {
        let Some(clock) = trace.class.stream_classes[stream.class].default_clock else { return Self::None };
        let class = &trace.class.clock_classes[clock];
        match (&class.origin, class.uuid) {
            _ if is_unix_clock(trace, class) => Self::Unix,
            (custom @ ClockOrigin::Custom { .. }, _) => Self::Custom(custom.clone()),
            (_, Some(uuid)) => Self::Uuid(uuid),
            (_, None) => Self::Own { trace: number, clock },
        }
    }

    /// Whether all times can be compared.
    pub(crate) fn all_same(origins: &[Self]) -> bool {
        let mut with_times = origins.iter().filter(|origin| **origin != Self::None);
        with_times.next().is_none_or(|first| with_times.all(|origin| origin == first))
    }
}

/// Whether a clock's times count from the Unix epoch; LTTng does not say so, but its clocks do.
pub(crate) fn is_unix_clock(trace: &Trace, clock: &ClockClass) -> bool {
    let lttng = matches!(
        trace.class.environment("tracer_name"),
        Some(EnvironmentValue::Text(name)) if name.starts_with("lttng")
    );
    clock.origin == ClockOrigin::UnixEpoch || lttng && clock.id == "monotonic"
}

/// The trace's name for people: the last part of its path, also of `.`.
pub(crate) fn trace_name(path: &Path) -> String {
    let absolute = || std::path::absolute(path).ok()?.file_name().map(ToOwned::to_owned);
    let name = path.file_name().map(ToOwned::to_owned).or_else(absolute);
    name.map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}
