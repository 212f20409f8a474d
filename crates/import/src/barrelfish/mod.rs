//! Dumps of Barrelfish's tracing, as its kernel prints them and its network sends them.
//!
//! ```text
//! definitions   numbers of events ──> names      .pleco, JSON, or built in (`names`)
//! classes       ──> the meaning of their arguments   fields of an event
//! line          a line ──> its meaning
//! index         first reading: where the events of each core are, programs, clocks
//! packets       second reading: the events of a chunk ──> a packet
//! metadata      the description of these packets
//! ```
//!
//! Each core is a data stream. All events have the dispatcher that the core runs and its application, which follow from
//! the kernel's switches and its table of programs.

mod classes;
mod definitions;
mod digits;
mod index;
mod json;
mod line;
mod lines;
mod metadata;
mod names;
mod packets;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use kymo_format::Assumption;
use kymo_source::{
    ByteSource, ImportNote, ImportOptions, ImportProblems, Imported, ImportedStream, Importer, SourceError,
    SourceErrorKind,
};

use classes::DumpClasses;
use definitions::DefinitionsOrigin;
use index::{Boot, DumpIndex, RepeatedSection};
use line::DumpLine;
use packets::{Dispatchers, DumpPackets};

use crate::chunks::packet_index;
use crate::notes;

/// Bytes of an application's name, which the kernel cuts.
const NAME_BYTES: usize = 8;

/// Reads dumps.
#[derive(Debug)]
pub struct Barrelfish;

impl Importer for Barrelfish {
    fn format(&self) -> &'static str {
        "dump of Barrelfish"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["trc"]
    }

    fn recognizes(&self, head: &[u8]) -> bool {
        head.split(|byte| *byte == b'\n')
            .any(|line| matches!(DumpLine::of(line), DumpLine::Start { .. } | DumpLine::Core(_) | DumpLine::Simulated))
    }

    fn import(&self, file: &ByteSource, options: &ImportOptions) -> Result<Vec<Imported>, SourceError> {
        // Almost always the first lines say it.
        let mut head = vec![0; kymo_source::HEAD_BYTES];
        let size = file.read_at(0, &mut head)?;
        let is_current = memchr::memmem::find(&head[..size], b"# Min_timestamp ").is_some();
        let mut dump = Dump::read(file, options, is_current)?;
        if dump.index.is_current != is_current {
            dump = Dump::read(file, options, !is_current)?;
        }
        Ok(dump.traces(file, options))
    }
}

/// A dump and its names.
struct Dump {
    index: DumpIndex,
    classes: DumpClasses,
    origin: DefinitionsOrigin,
}

impl Dump {
    fn read(file: &ByteSource, options: &ImportOptions, is_current: bool) -> Result<Self, SourceError> {
        let wrong = |what| SourceError { path: file.path().to_owned(), kind: SourceErrorKind::Import(what) };
        let named = options.definitions.as_deref();
        let (definitions, origin) = definitions::find(file.path(), named, !is_current).map_err(wrong)?;
        let classes = DumpClasses::new(&definitions).map_err(wrong)?;
        let index = index::read(file, &classes)?;
        Ok(Self { index, classes, origin })
    }

    fn traces(self, file: &ByteSource, options: &ImportOptions) -> Vec<Imported> {
        let Self { mut index, classes, origin } = self;
        let (classes, tables) = (Arc::new(classes), Arc::new(std::mem::take(&mut index.tables)));
        let mut boots = std::mem::take(&mut index.boots);
        if boots.is_empty() {
            boots.push(Boot::default());
        }
        let definitions = origin_name(&origin, options);
        let dialect = match (index.is_current, index.is_simulated) {
            (true, _) => "current",
            (false, false) => "legacy",
            (false, true) => "simulator",
        };
        let environment = [("dialect", dialect), ("definitions", &*definitions)];
        let is_one = boots.len() == 1;
        let trace = |(number, boot): (usize, Boot)| {
            let name = if is_one { String::new() } else { format!("boot-{}", number + 1) };
            let metadata = metadata::metadata(&boot, &classes, &environment, options.clock_frequency);
            let notes = boot_notes(&boot);
            let streams = boot.cores.iter().map(|(core, index)| ImportedStream {
                name: format!("core{core}"),
                packets: index.chunks.list.iter().map(metadata::size).collect(),
                index: packet_index(&index.chunks.list, (metadata::HEAD, 0), u64::from(*core), |facts| facts.lost),
                lacks_end: index.is_full,
                file: None,
            });
            let streams = streams.collect();
            let dispatchers = dispatchers(&boot);
            let packets = DumpPackets {
                file: file.clone(),
                classes: Arc::clone(&classes),
                tables: Arc::clone(&tables),
                has_sequences: boot.has_sequences,
                cores: boot.cores.into_iter().map(|(core, index)| (core, index.chunks.list)).collect(),
                dispatchers,
            };
            Imported { name, metadata, streams, maker: Arc::new(packets), problems: ImportProblems::default(), notes }
        };
        let mut traces: Vec<Imported> = boots.into_iter().enumerate().map(trace).collect();
        traces[0].notes.extend(file_notes(&index, &origin, options));
        traces[0].problems = index.problems;
        traces
    }
}

/// Where names of events are from.
fn origin_name(origin: &DefinitionsOrigin, options: &ImportOptions) -> String {
    let path = |path: &Path| path.display().to_string();
    match origin {
        DefinitionsOrigin::Named => options.definitions.as_deref().map(path).unwrap_or_default(),
        DefinitionsOrigin::Beside(beside) => path(beside),
        DefinitionsOrigin::BuiltIn => "built in, of 2020".to_owned(),
        DefinitionsOrigin::Legacy => "built in, before 2013".to_owned(),
    }
}

/// Numbers for the dispatchers of all cores: programs first, in the order of cores and addresses.
fn dispatchers(boot: &Boot) -> Dispatchers {
    let dcbs = boot.cores.iter().flat_map(|(core, index)| index.dcbs.iter().map(|dcb| (*core, *dcb)));
    let known: HashMap<(u32, u32), i32> = dcbs.filter(|(_, dcb)| *dcb != 0).zip(1..).collect();
    let after = known.len() as i32 + 1;
    Dispatchers { known, before_first: boot.cores.keys().copied().zip(after..).collect() }
}

/// Assumptions about the whole file.
fn file_notes(index: &DumpIndex, origin: &DefinitionsOrigin, options: &ImportOptions) -> Vec<ImportNote> {
    let mut found = Vec::new();
    if options.clock_frequency.is_none() {
        let what = "no frequency of the clock is known: 1 cycle counts as 1 ns; --clock-frequency sets it";
        found.push(notes::note(Assumption::UnknownFrequency, what));
    }
    if *origin == DefinitionsOrigin::BuiltIn {
        let what = "events have the names of Barrelfish's last revision, as no definitions are beside the dump; \
                    --definitions names a file";
        found.push(notes::note(Assumption::GuessedDefinitions, what));
    }
    if index.unnamed > 0 && matches!(origin, DefinitionsOrigin::Named | DefinitionsOrigin::Beside(_)) {
        let (unnamed, file) = (index.unnamed, origin_name(origin, options));
        let hint = if index.is_current { "" } else { "; without it, a dump from before 2013 has built-in names" };
        let events = if unnamed == 1 { "1 event has".to_owned() } else { format!("{unnamed} events have") };
        let what = format!("{events} no name in {file}, which may be of another revision{hint}");
        found.push(notes::note(Assumption::UnnamedEvents, what));
    }
    if let Some(RepeatedSection { core, line, first }) = index.repeated {
        let others = match index.repeated_count - 1 {
            0 => String::new(),
            1 => ", and 1 other part of the file repeats events".to_owned(),
            more => format!(", and {more} other parts of the file repeat events"),
        };
        let what =
            format!("core {core}: events from line {line} on are those from line {first} on, and count twice{others}");
        found.push(notes::note(Assumption::RepeatedEvents, what));
    }
    if index.other_lines > 0 {
        let (lines, first) = (index.other_lines, index.first_other_line);
        let what = match lines {
            1 => format!("line {first} is no part of a dump"),
            _ => format!("{lines} lines are no part of a dump; the first is line {first}"),
        };
        found.push(notes::note(Assumption::OtherLines, what));
    }
    found
}

/// Assumptions about cores.
fn boot_notes(boot: &Boot) -> Vec<ImportNote> {
    let mut found = Vec::new();
    for (core, index) in &boot.cores {
        if index.chunks.behind > 0 {
            let events = if index.chunks.behind == 1 {
                "1 event is".to_owned()
            } else {
                format!("{} events are", index.chunks.behind)
            };
            let what = format!("core {core}: {events} behind later ones in the file, and here in the order of time");
            found.push(notes::note(Assumption::UnorderedEvents, what));
        }
        if index.full_before > 0 {
            let dumps =
                if index.full_before == 1 { "1 dump".to_owned() } else { format!("{} dumps", index.full_before) };
            let what = format!(
                "core {core}: in {dumps} before the last its memory was full, so that later events are missing there; \
                 Barrelfish does not count them"
            );
            found.push(notes::note(Assumption::BufferFull, what));
        }
    }
    found
}
