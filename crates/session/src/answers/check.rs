//! Everything that is wrong or doubtful in traces, with place and remedy.
//!
//! ```text
//! metadata ── diagnostics ─┐
//! files ──── broken heads ─┤
//! index ─── against data ──┼─> findings: the first of each kind in a file, and how many follow
//! packets ── row by row ───┤
//! events ─── read all ─────┘
//! ```
//!
//! Nothing ends a check: readable data behind a finding is checked too. How severe a finding is to
//! the caller (`--strict`) is the face's decision.

mod texts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_decode::{ClockConverter, Compile};
use kymo_format::{Assumption, ParsedMetadata, Severity, line_column};
use kymo_scan::index::{hop, rows_of_lttng_index};
use kymo_scan::losses::{CounterBits, CounterStep};
use kymo_scan::{
    BatchContent, BatchEvents, CursorItem, DataStream, KnownPackets, Mark, OpenError, PacketRow, Packets, StreamFault,
    StreamFaultKind, Trace, TraceOptions,
};
use kymo_source::{ImportOptions, SourceErrorKind, TraceFolder};

use self::texts::{TextCheck, WrongText};
use crate::open::Session;
use crate::open::counters::TraceCounters;
use crate::open::discover::discover;
use crate::open::ends::MissingEnd;
use crate::open::progress::{Cancelled, Progress, Steps};
use crate::open::thinned;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gravity {
    /// Something cannot be read.
    Error,
    /// The specification is violated, but reading goes on under an assumption of the closed list.
    Assumption,
    /// Everything is read, but something was lost or contradicts itself.
    Warning,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFinding {
    /// How bad it is.
    pub gravity: Gravity,
    /// The rule that is broken, such as `cut-packet`; an assumption has its own name.
    pub rule: &'static str,
    /// The file, with line and column in metadata.
    pub place: String,
    /// The found and expected values, and where, for the first time.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// How often the rule is broken in this file.
    pub times: u64,
}

/// Checks every trace at or below the paths. A trace without findings is sound.
///
/// # Errors
///
/// It was canceled.
pub fn check(paths: &[PathBuf], options: &ImportOptions, progress: &Progress) -> Result<Vec<CheckFinding>, Cancelled> {
    let mut findings = CheckFindings::default();
    let (folders, errors) = discover(paths, options).split();
    for error in errors {
        findings.add(of_source(&error.kind), error.path.display().to_string(), error.kind.to_string());
    }
    let streams = folders.iter().flat_map(|folder: &TraceFolder| folder.streams());
    progress.expect(streams.map(|stream| stream.size).sum());
    for folder in folders {
        progress.whole(())?;
        check_trace(folder, &mut findings, progress);
    }
    progress.whole(findings.list)
}

/// A rule, and the remedy when it is broken.
struct CheckRule {
    gravity: Gravity,
    name: &'static str,
    help: &'static str,
}

const fn rule(gravity: Gravity, name: &'static str, help: &'static str) -> CheckRule {
    CheckRule { gravity, name, help }
}

const SOURCE: CheckRule = rule(Gravity::Error, "unreadable-file", "check the path and its permissions");
const ARCHIVE: CheckRule = rule(
    Gravity::Error,
    "broken-archive",
    "copy the archive again; of a tar file, only the part before the damage is read",
);

/// The rule that is broken where a file cannot be read.
const fn of_source(kind: &SourceErrorKind) -> &'static CheckRule {
    match kind {
        SourceErrorKind::TarHeader { .. }
        | SourceErrorKind::TarEnd { .. }
        | SourceErrorKind::Packed { .. }
        | SourceErrorKind::Zip(_) => &ARCHIVE,
        _ => &SOURCE,
    }
}

const CLASS: CheckRule = rule(
    Gravity::Error,
    "field-class",
    "let the tracer write a field that can be decoded: nothing of the trace is read",
);
const HEAD: CheckRule =
    rule(Gravity::Error, "packet-head", "the rest of the file is not read; record again, or cut the file there");
const RECORD: CheckRule =
    rule(Gravity::Error, "record", "the rest of the packet is not read; the metadata may be of another trace");
const CUT: CheckRule = rule(Gravity::Error, "cut-packet", "the copy or the recording was interrupted; copy it again");
const UUID: CheckRule = rule(
    Gravity::Assumption,
    Assumption::UuidMismatch.name(),
    "the file may be of another trace: compare the uuid in the metadata",
);
const CLOCK_BACK: CheckRule = rule(
    Gravity::Assumption,
    Assumption::ClockStepsBack.name(),
    "the tracer's clock is not monotonic: record with one that is",
);
const TIME_RANGE: CheckRule = rule(
    Gravity::Assumption,
    Assumption::TimeOutOfRange.name(),
    "compare the clock's frequency and offset in the metadata with the recorder's, and read the cycles: --clock-cycles",
);
const ENDS_EARLY: CheckRule = rule(
    Gravity::Assumption,
    Assumption::EndsEarly.name(),
    "copy the file again; of a session that is still recorded, stop it first",
);
/// What importers assume, and what is not known of a file in another format.
const IMPORTED: [CheckRule; 12] = [
    rule(
        Gravity::Assumption,
        Assumption::UnknownFrequency.name(),
        "say how many cycles a second has: --clock-frequency 2.8GHz",
    ),
    rule(Gravity::Assumption, Assumption::GuessedDefinitions.name(), "name the definitions: --definitions FILE"),
    rule(
        Gravity::Assumption,
        Assumption::UnnamedEvents.name(),
        "name the definitions of that system and time: --definitions FILE",
    ),
    rule(Gravity::Assumption, Assumption::OtherLines.name(), "see whether the lines belong to the trace"),
    rule(
        Gravity::Assumption,
        Assumption::UnorderedEvents.name(),
        "the time of an event is read before its place is taken: an interrupt came between these",
    ),
    BUFFER_FULL,
    rule(
        Gravity::Assumption,
        Assumption::RepeatedEvents.name(),
        "leave one of the two out: cut the file before the line where the second one begins",
    ),
    rule(
        Gravity::Assumption,
        Assumption::NoTime.name(),
        "capture with blocks that have times (Enhanced Packet Blocks)",
    ),
    rule(
        Gravity::Assumption,
        Assumption::FolderDate.name(),
        "the recorder writes no time of day for its clock: times of one recording are right among each other",
    ),
    rule(Gravity::Assumption, Assumption::SharedName.name(), "give each thread of a component a name of its own"),
    rule(Gravity::Assumption, Assumption::ShortClock.name(), "record with a shorter period than the clock's"),
    rule(
        Gravity::Assumption,
        Assumption::LeapDay.name(),
        "other programs show these packets a day later; nothing is to be done here",
    ),
];
const BUFFER_FULL: CheckRule =
    rule(Gravity::Assumption, Assumption::BufferFull.name(), "record for a shorter time, or with larger buffers");
const TEXT: CheckRule = rule(
    Gravity::Warning,
    "text-encoding",
    "the program wrote text in another encoding than the metadata says: what is not valid is shown as U+FFFD, or as it is",
);
const SEQUENCE_GAP: CheckRule =
    rule(Gravity::Warning, "packets-lost", "the tracer overwrote or lost packets: use more or larger buffers");
const SEQUENCE_BACK: CheckRule =
    rule(Gravity::Warning, "sequence-steps-back", "packets may be of several recordings in one file");
const DISCARDED: CheckRule =
    rule(Gravity::Warning, "events-discarded", "the tracer had no room: use more or larger buffers");
const DISCARDED_BEFORE: CheckRule = rule(
    Gravity::Warning,
    "events-discarded",
    "nothing says how many of them are of this trace; where that matters, record from the program's start",
);
const DISCARDED_BACK: CheckRule =
    rule(Gravity::Warning, "discarded-steps-back", "the number of discarded events cannot be trusted");
const BEGIN_AFTER_END: CheckRule =
    rule(Gravity::Warning, "begin-after-end", "the tracer wrote the packet's times wrongly; events have their own");
const OVERLAP: CheckRule =
    rule(Gravity::Warning, "packets-overlap", "searching by time may miss events near the packets' borders");
const OUTSIDE: CheckRule =
    rule(Gravity::Warning, "event-outside-packet", "searching by time may miss the event; its own time is used");
const INDEX: CheckRule = rule(
    Gravity::Warning,
    "index-disagrees",
    "packets are read as they say themselves: delete the index file, or index the file anew",
);

const THINNED: CheckRule = rule(
    Gravity::Warning,
    "events-thinned",
    "answers about these events are about those that were kept; record without the rule for all of them",
);

const IMPORT: CheckRule = rule(Gravity::Error, "import", "that part of the file is not read: correct or remove it");

#[derive(Default)]
struct CheckFindings {
    list: Vec<CheckFinding>,
    /// Where the first of its kind is.
    known: BTreeMap<(String, &'static str, &'static str), usize>,
}

impl CheckFindings {
    /// Lists the first of a kind in a file, counts the others: a rule that has another remedy is
    /// of another kind.
    fn add(&mut self, rule: &CheckRule, place: String, message: String) {
        let next = self.list.len();
        let index = *self.known.entry((place.clone(), rule.name, rule.help)).or_insert(next);
        if index < next {
            self.list[index].times += 1;
            return;
        }
        let help = Some(rule.help.to_owned());
        self.list.push(CheckFinding { gravity: rule.gravity, rule: rule.name, place, message, help, times: 1 });
    }

    /// Lists each of a kind: users correct them one by one.
    fn add_each(&mut self, rule: &CheckRule, place: &str, messages: &[String]) {
        self.list.extend(messages.iter().map(|message| CheckFinding {
            gravity: rule.gravity,
            rule: rule.name,
            place: place.to_owned(),
            message: message.clone(),
            help: Some(rule.help.to_owned()),
            times: 1,
        }));
    }
}

/// Has every head read: of an index file, opening otherwise compares a few entries only.
struct OnlyData;

impl KnownPackets for OnlyData {
    fn recall(&self, _: &TraceFolder, _: usize) -> Option<Packets> {
        Some(Packets::default())
    }
    fn remember(&self, _: &TraceFolder, _: usize, _: &Packets) {}
}

fn check_trace(folder: TraceFolder, findings: &mut CheckFindings, progress: &Progress) {
    let path = folder.path().to_owned();
    let options = TraceOptions { clock_shift_ns: 0, compile: Compile::WhenWorthIt };
    let trace = match Trace::open(folder, options, &OnlyData) {
        Ok(trace) => Arc::new(trace),
        Err(OpenError::Metadata(metadata)) => return diagnostics(&metadata, &path, findings),
        Err(OpenError::Source(error)) => return findings.add(&SOURCE, path.display().to_string(), error.to_string()),
        Err(OpenError::Class(error)) => return findings.add(&CLASS, path.display().to_string(), error.to_string()),
    };
    check_opened(&trace, findings);
    (0..trace.folder.streams().len()).for_each(|file| check_index(&trace, file, findings));
    check_events(&trace, findings, progress);
}

/// The problems of a trace as far as they are known when it is open: its metadata, heads and
/// packets.
fn check_opened(trace: &Arc<Trace>, findings: &mut CheckFindings) {
    diagnostics(&trace.metadata, trace.folder.path(), findings);
    findings.add_each(&IMPORT, &trace.folder.path().display().to_string(), trace.folder.problems());
    for note in trace.folder.notes() {
        let other = rule(Gravity::Assumption, note.assumption, "see docs/assumptions.md");
        let rule = IMPORTED.iter().find(|rule| rule.name == note.assumption).unwrap_or(&other);
        findings.add_each(rule, &trace.folder.path().display().to_string(), std::slice::from_ref(&note.what));
    }
    for broken in trace.broken_files.iter() {
        findings.add(&HEAD, file_name(trace, broken.file), broken.error.to_string());
    }
    trace.streams.iter().for_each(|stream| check_packets(trace, stream, findings));
    if let Some(counters) = TraceCounters::of(trace).filter(|counters| !counters.agree()) {
        findings.add(&COUNTERS, trace.folder.path().display().to_string(), counters_apart(&counters));
    }
    for rule in thinned::of_traces(std::slice::from_ref(trace)) {
        findings.add_each(&THINNED, &trace.folder.path().display().to_string(), &[rule.sentence()]);
    }
    for (stream, missing) in trace.streams.iter().zip(MissingEnd::of_trace(trace)) {
        if let (Some(missing), Some(file)) = (missing, stream.files.last()) {
            let rule = if missing.assumption() == Assumption::EndsEarly { &ENDS_EARLY } else { &BUFFER_FULL };
            findings.add(rule, file_name(trace, *file as usize), missing.sentence());
        }
    }
}

/// The same of traces that are open, to show them: nothing is read for it. Readers of events find
/// cut packets in another way.
pub(crate) fn opened(traces: &[Arc<Trace>]) -> Vec<CheckFinding> {
    let mut findings = CheckFindings::default();
    for trace in traces {
        check_opened(trace, &mut findings);
        for row in trace.streams.iter().flat_map(|stream| stream.packets.iter()).filter(|row| row.cut) {
            let message = format!("packet at byte {}: the file ends before it does", row.offset_bytes);
            findings.add(&CUT, file_name(trace, row.file as usize), message);
        }
    }
    findings.list
}

/// A place that a reader of events could not read, where nothing else is known of it.
pub(crate) fn unreadable(place: String, message: String) -> CheckFinding {
    CheckFinding {
        gravity: RECORD.gravity,
        rule: RECORD.name,
        place,
        message,
        help: Some(RECORD.help.to_owned()),
        times: 1,
    }
}

const CLOCKS: CheckRule = rule(
    Gravity::Warning,
    "clocks-apart",
    "where something seems to come before it was sent, set the clocks of a trace ahead: --trace-offset PATH=TIME",
);

/// Traces of several machines, by their names, lie on one time.
pub(crate) fn clocks_apart(machines: &[String]) -> CheckFinding {
    let message = format!(
        "{} machines recorded these traces, each by its own clock: how far these are apart, no trace says",
        machines.len()
    );
    let CheckRule { gravity, name: rule, help } = CLOCKS;
    CheckFinding { gravity, rule, place: machines.join(", "), message, help: Some(help.to_owned()), times: 1 }
}

const COUNTERS: CheckRule = rule(
    Gravity::Warning,
    "counters-apart",
    "times of different CPUs that are nearer to each other have no order; only streams of one CPU are corrected",
);

fn counters_apart(counters: &TraceCounters) -> String {
    format!("the counters {}: {}", counters.words(), counters.differences().join("; "))
}

const ORIGINS: CheckRule = rule(
    Gravity::Warning,
    "clock-origins",
    "set the clocks of a trace ahead where more is known: --trace-offset PATH=TIME",
);

/// Times that count from different origins lie on one time.
pub(crate) fn origins_apart(traces: &[Arc<Trace>]) -> CheckFinding {
    let message = "the clocks of these traces have different origins: equal times need not be simultaneous".to_owned();
    let CheckRule { gravity, name: rule, help } = ORIGINS;
    let place = traces.iter().map(|trace| trace.folder.path().display().to_string()).collect::<Vec<_>>().join(", ");
    CheckFinding { gravity, rule, place, message, help: Some(help.to_owned()), times: 1 }
}

fn file_name(trace: &Trace, file: usize) -> String {
    trace.folder.stream(file).path().display().to_string()
}

fn diagnostics(metadata: &ParsedMetadata, path: &Path, findings: &mut CheckFindings) {
    let file = path.join("metadata");
    for found in &metadata.diagnostics {
        let (gravity, rule) = match found.severity {
            Severity::Error => (Gravity::Error, "metadata"),
            Severity::Assumption(assumption) => (Gravity::Assumption, assumption.name()),
        };
        let at = line_column(&metadata.text, found.span.start);
        let place = format!("{}:{}:{}", file.display(), at.line, at.column);
        let help = Some(found.problem.help().unwrap_or_else(|| remedy(found.severity)).to_owned());
        findings.list.push(CheckFinding { gravity, rule, place, message: found.problem.to_string(), help, times: 1 });
    }
}

/// The remedy for metadata where nothing better is known.
fn remedy(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "correct the metadata there: nothing of the trace can be read before",
        Severity::Assumption(Assumption::MetadataEncoding) => "write the metadata as UTF-8",
        Severity::Assumption(_) => "write it as the specification says",
    }
}

/// Holds an LTTng index file, if there is one, against all heads in the data.
fn check_index(trace: &Trace, file: usize, findings: &mut CheckFindings) {
    let place = file_name(trace, file);
    let bytes = match trace.folder.index_file(file) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return,
        Err(error) => return findings.add(&INDEX, place, error.to_string()),
    };
    let (stream, size) = (trace.folder.stream(file), trace.folder.streams()[file].size);
    let said = match rows_of_lttng_index(&trace.decoder, &stream, file as u32, size, &bytes) {
        Ok(said) => said,
        Err(error) => return findings.add(&INDEX, place, format!("its index file: {error}")),
    };
    let (there, _) = hop(&trace.decoder, &stream, file as u32, size);
    if let Some((row, _)) = there.iter().zip(&said).find(|(there, said)| there != *said) {
        let message = format!("its index file does not agree with the packet at byte {}", row.offset_bytes);
        return findings.add(&INDEX, place, message);
    }
    if there.len() != said.len() {
        let message = format!("its index file knows {} of {} packets", said.len(), there.len());
        findings.add(&INDEX, place, message);
    }
}

fn check_packets(trace: &Trace, stream: &DataStream, findings: &mut CheckFindings) {
    let mut before: Option<PacketRow> = None;
    for row in stream.packets.iter() {
        let mut add = |rule: &CheckRule, message: String| {
            let message = format!("packet at byte {}: {message}", row.offset_bytes);
            findings.add(rule, file_name(trace, row.file as usize), message);
        };
        if let (Some(begin), Some(end)) = (row.begin_cycles, row.end_cycles)
            && begin > end
        {
            add(&BEGIN_AFTER_END, format!("begins at {begin} cycles, after its end at {end}"));
        }
        match before {
            Some(before) => neighbors(stream.counters, &before, &row, &mut add),
            None if row.discarded.is_some_and(|count| count > 0) => {
                add(
                    &DISCARDED_BEFORE,
                    "events were discarded before the first packet ended; how many is not known".to_owned(),
                );
            }
            None => {}
        }
        before = Some(row);
    }
}

/// The contradictions between two packets of a stream that follow each other.
fn neighbors(counters: CounterBits, before: &PacketRow, row: &PacketRow, add: &mut impl FnMut(&CheckRule, String)) {
    if let (Some(last), Some(now)) = (before.sequence, row.sequence) {
        match counters.sequence_between(before, row) {
            Some(CounterStep::Ahead(1)) | None => {}
            Some(CounterStep::Ahead(step)) if step > 1 => {
                let missing = match step - 1 {
                    1 => "1 packet is missing".to_owned(),
                    missing => format!("{missing} packets are missing"),
                };
                add(&SEQUENCE_GAP, format!("sequence number {now} follows {last}: {missing}"));
            }
            Some(_) => add(&SEQUENCE_BACK, format!("sequence number {now} follows {last}")),
        }
    }
    if let (Some(last), Some(now)) = (before.discarded, row.discarded) {
        match counters.discarded_between(before, row) {
            Some(CounterStep::Ahead(0)) | None => {}
            Some(CounterStep::Ahead(1)) => add(&DISCARDED, "1 event was discarded before its end".to_owned()),
            Some(CounterStep::Ahead(count)) => add(&DISCARDED, format!("{count} events were discarded before its end")),
            Some(CounterStep::Back) => {
                add(
                    &DISCARDED_BACK,
                    format!("its count of discarded events is {now}, where the packet before had {last}"),
                );
            }
        }
    }
    if let (Some(end), Some(begin)) = (before.end_cycles, row.begin_cycles)
        && begin < end
    {
        add(&OVERLAP, format!("begins at {begin} cycles; the packet before ends at {end}"));
    }
}

/// Reads every event record.
fn check_events(trace: &Arc<Trace>, findings: &mut CheckFindings, progress: &Progress) {
    let session = Session::of_trace(Arc::clone(trace));
    for (mut cursor, stream) in session.cursors(true, &[], progress).into_iter().zip(&trace.streams) {
        let (mut last, mut steps, mut texts) = (None, Steps::default(), TextCheck::new(trace, stream.class));
        while let Some(item) = cursor.next_item() {
            let batch = match item {
                CursorItem::Batch(batch) => batch,
                // That the packet is cut is told; of course its last record is too.
                CursorItem::Fault(fault) if is_of_cut(stream, &fault) => continue,
                CursorItem::Fault(fault) => {
                    let rule = fault_rule(&fault.kind);
                    let problem = session.problem(&fault);
                    findings.add(rule, problem.place, problem.message);
                    continue;
                }
            };
            steps.behind(progress, &batch, batch.keys.len());
            if let (BatchContent::Events(events), Some(texts)) = (&batch.content, &mut texts) {
                let row = events.packet.row;
                texts.look(events, &mut |text| {
                    let event = text.position.map_or("an event".to_owned(), |bit| format!("the event at bit {bit}"));
                    let WrongText { name, problem, .. } = text;
                    let message =
                        format!("packet at byte {}: {event} has a wrong text `{name}`: {problem}", row.offset_bytes);
                    findings.add(&TEXT, file_name(trace, row.file as usize), message);
                });
            }
            match &batch.content {
                BatchContent::Events(events) if stream.clock.is_some() => {
                    times(trace, stream.clock, events, &mut last, findings);
                }
                BatchContent::Mark(Mark::PacketBegin { packet, .. }) if packet.head.uuid_differs => {
                    let message = format!("packet at byte {}: its UUID is not the metadata's", packet.row.offset_bytes);
                    findings.add(&UUID, file_name(trace, packet.row.file as usize), message);
                }
                _ => {}
            }
            cursor.recycle(batch);
        }
    }
}

/// Whether a record ends where its packet's file does.
fn is_of_cut(stream: &DataStream, fault: &StreamFault) -> bool {
    let is_short = matches!(&fault.kind, StreamFaultKind::Record { fault, .. } if fault.kind.wants_more());
    is_short && stream.packets.get(fault.packet as usize).cut
}

fn fault_rule(kind: &StreamFaultKind) -> &'static CheckRule {
    match kind {
        StreamFaultKind::Head(_) => &HEAD,
        StreamFaultKind::Record { .. } | StreamFaultKind::LongRecord { .. } => &RECORD,
        StreamFaultKind::IndexSize { .. } | StreamFaultKind::IndexFact { .. } => &INDEX,
        StreamFaultKind::Cut { .. } => &CUT,
        StreamFaultKind::Shrank { .. } | StreamFaultKind::Source(_) => &SOURCE,
    }
}

/// Holds the times of events against each other and their packet's.
fn times(
    trace: &Trace,
    clock: Option<ClockConverter>,
    events: &BatchEvents,
    last: &mut Option<u64>,
    findings: &mut CheckFindings,
) {
    let row = &events.packet.row;
    let begin = row.begin_cycles.unwrap_or(0);
    let end = row.end_cycles.map_or(u64::MAX, |end| end.max(begin));
    for (&cycles, &position) in events.records.cycles.iter().zip(&events.records.positions) {
        let mut add = |rule: &CheckRule, message: String| {
            let place = file_name(trace, row.file as usize);
            findings.add(rule, place, format!("packet at byte {}: {message}", row.offset_bytes));
        };
        if let Some(before) = last.filter(|before| cycles < *before) {
            add(
                &CLOCK_BACK,
                format!("the event at bit {position} has the time {cycles} cycles, the one before it {before}"),
            );
        }
        if let Some(clock) = clock.filter(|clock| clock.nanos(cycles).is_none()) {
            add(
                &TIME_RANGE,
                format!(
                    "the event at bit {position} has the time {cycles} cycles, {} ns, which does not fit 64 bits",
                    clock.nanos_wide(cycles)
                ),
            );
        }
        if cycles < begin || cycles > end {
            add(
                &OUTSIDE,
                format!("the event at bit {position} has the time {cycles} cycles, outside of {begin} to {end}"),
            );
        }
        *last = Some(cycles);
    }
}

#[cfg(test)]
mod tests;
