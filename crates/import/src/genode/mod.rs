//! Trees of Genode's trace recorder: a folder for each recording, named after its date, in which each component has a
//! folder with metadata and a file for each name of its threads.
//!
//! ```text
//! 2022-8-29 14:3:9/              when the recording began
//!    init/ping/metadata, ep      layout      the recorder's metadata, and no other
//!    init/ping.pcapng            heads       a file's packets ──> whose, when
//!       │                        threads     packets of one name ──> threads, each on a clock that goes on
//!       └> one trace             packets     packets with a name of their thread, when they are read
//!                                metadata    that of all of them: the clock's time by the folder's name
//! ```
//!
//! Captures of packets in the tree are data streams of the same trace.

mod date;
mod heads;
mod layout;
mod metadata;
mod packets;
#[cfg(test)]
mod tests;
mod threads;

use std::sync::Arc;

use kymo_format::{Assumption, TraceClass};
use kymo_source::{
    FileTree, ImportNote, ImportOptions, ImportProblems, Imported, ImportedStream, Importer, SourceError, TreeFile,
    TreeFolder, TreeImporter,
};

use date::RecordingDate;
use layout::EventLayouts;
use packets::TreePackets;
use threads::{ThreadIndex, Unwrapping};

use crate::capture::{self, PacketCapture};
use crate::notes;

/// Reads trees of recordings.
#[derive(Debug)]
pub struct GenodeRecordings;

/// The class of data streams of captures. The recorder's own is 0.
const CAPTURE_CLASS: u32 = 1;

impl TreeImporter for GenodeRecordings {
    fn is_root(&self, name: &str) -> bool {
        RecordingDate::parse(name).is_some()
    }

    /// The component that all others are below.
    fn top_folder(&self) -> Option<&'static str> {
        Some("init")
    }

    fn recognizes(&self, metadata: &[u8]) -> bool {
        layout::class(metadata).is_some()
    }

    fn takes(&self, importer: &dyn Importer) -> bool {
        importer.format() == PacketCapture.format()
    }

    fn import(&self, tree: &FileTree, options: &ImportOptions) -> Result<Vec<Imported>, SourceError> {
        // Components of one machine have equal metadata.
        let mut parts: Vec<(TraceClass, Vec<&TreeFolder>)> = Vec::new();
        for folder in &tree.folders {
            let Some(class) = layout::class(&folder.metadata) else { continue };
            match parts.iter_mut().find(|(known, _)| *known == class) {
                Some((_, folders)) => folders.push(folder),
                None => parts.push((class, vec![folder])),
            }
        }
        let date = tree.root.as_deref().and_then(RecordingDate::parse);
        let is_one = parts.len() == 1;
        let mut captures: Vec<&TreeFile> = tree.files.iter().filter(|file| file.is_named).collect();
        let mut traces = Vec::new();
        for (number, (class, folders)) in parts.into_iter().enumerate() {
            // Captures have dates, and can be on a clock with events that have one.
            let captures = if date.is_some() { std::mem::take(&mut captures) } else { Vec::new() };
            let is_named = folders.iter().any(|folder| folder.is_named) || !captures.is_empty();
            let files: Vec<&TreeFile> = folders.into_iter().flat_map(|folder| &folder.streams).collect();
            let mut recording = GenodeRecording::new(class, &files, date)?;
            for orphan in tree.orphans.iter().filter(|_| number == 0) {
                recording
                    .problems
                    .push(|| format!("{orphan}: there is no `metadata` beside it, which says how to read it"));
            }
            recording.add_captures(&captures, options.packet_data)?;
            recording.name = if is_one { String::new() } else { format!("part-{}", number + 1) };
            if is_named {
                traces.push(recording.imported(tree.root.as_deref()));
            }
        }
        for capture in captures {
            let imported = PacketCapture.import(&capture.bytes, options)?;
            let name = capture.name.replace('/', "_");
            traces.extend(imported.into_iter().map(|trace| Imported { name: name.clone(), ..trace }));
        }
        Ok(traces)
    }
}

/// A trace in the making.
struct GenodeRecording {
    name: String,
    class: TraceClass,
    date: Option<RecordingDate>,
    /// The first time of any thread, in cycles.
    earliest: u64,
    streams: Vec<ImportedStream>,
    packets: TreePackets,
    /// It has some, with or without the bytes of packets.
    captures: Option<bool>,
    problems: ImportProblems,
    notes: Vec<ImportNote>,
}

impl GenodeRecording {
    fn new(class: TraceClass, files: &[&TreeFile], date: Option<RecordingDate>) -> Result<Self, SourceError> {
        // The user does not ask about the rest of the tree, which only says when the recording began.
        let (mut problems, mut elsewhere) = (ImportProblems::default(), ImportProblems::default());
        let layouts = EventLayouts::new(&class);
        let mut found = Vec::new();
        for file in files {
            let told = if file.is_named { &mut problems } else { &mut elsewhere };
            found.push(heads::read(file, &layouts, told)?);
        }
        let unwrapping = Unwrapping::of(&found);
        let mut threads: Vec<ThreadIndex> = Vec::new();
        for (number, packets) in found.into_iter().enumerate() {
            threads.extend(threads::split(number, packets, unwrapping));
        }
        let earliest = threads.iter().filter_map(|thread| Some(thread.packets.first()?.begin)).min().unwrap_or(0);
        let notes = thread_notes(&threads, files, unwrapping, class.clock_classes[0].frequency_hz);
        let mut recording = Self {
            name: String::new(),
            class,
            date,
            earliest,
            streams: Vec::new(),
            packets: TreePackets::new(files.iter().map(|file| file.bytes.clone()).collect(), layouts),
            captures: None,
            problems,
            notes,
        };
        for thread in threads {
            let file = files[thread.file];
            if file.is_named {
                recording.streams.push(thread.stream(file));
                recording.packets.add(thread);
            }
        }
        if metadata::is_since_1970(earliest, recording.class.clock_classes[0].frequency_hz) {
            // They need no date.
            recording.date = None;
        }
        if let Some(date) = recording.date.filter(|_| !recording.streams.is_empty()) {
            recording.notes.push(notes::note(Assumption::FolderDate, date.what()));
        }
        Ok(recording)
    }

    /// Adds captures, each interface as a data stream.
    fn add_captures(&mut self, files: &[&TreeFile], has_data: bool) -> Result<(), SourceError> {
        for file in files {
            let Some(index) = capture::CaptureStreams::read(&file.bytes, has_data)? else { continue };
            let ahead = self.date.map_or(0, |date| date.capture_ahead_ns(index.earliest_ns()));
            let mut streams = index.in_class(CAPTURE_CLASS, ahead);
            for (number, stream) in streams.list.iter_mut().enumerate() {
                stream.name = format!("{}/{}", file.name, stream.name);
                stream.file = Some(file.on_disk.clone());
                self.packets.add_other(Arc::clone(&streams.maker), number);
            }
            let place = |what: String| format!("{}: {what}", file.name);
            if ahead != 0 {
                let what =
                    "times of the capture are a day late, as the recorder's are in leap years; here they are not";
                self.notes.push(notes::note(Assumption::LeapDay, place(what.to_owned())));
            }
            streams.problems.told().into_iter().for_each(|problem| self.problems.push(|| place(problem)));
            self.notes.extend(streams.notes.into_iter().map(|note| ImportNote { what: place(note.what), ..note }));
            self.streams.append(&mut streams.list);
            self.captures = Some(has_data);
        }
        Ok(())
    }

    fn imported(self, root: Option<&str>) -> Imported {
        let captures = self.captures.map(|has_data| (CAPTURE_CLASS, has_data));
        let metadata = metadata::metadata(self.class, root, (self.date, self.earliest), captures);
        Imported {
            name: self.name,
            metadata,
            streams: self.streams,
            maker: Arc::new(self.packets),
            problems: self.problems,
            notes: self.notes,
        }
    }
}

/// Assumptions about threads and their clocks.
fn thread_notes(
    threads: &[ThreadIndex],
    files: &[&TreeFile],
    unwrapping: Unwrapping,
    frequency: u64,
) -> Vec<ImportNote> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = threads.get(at) {
        let count = threads[at..].iter().take_while(|thread| thread.file == first.file).count();
        if count > 1 && files[first.file].is_named {
            let name = &files[first.file].name;
            let what = format!(
                "{name} has packets of {count} threads of that name, told apart by affinity, priority and time"
            );
            found.push(notes::note(Assumption::SharedName, what));
        }
        at += count;
    }
    if unwrapping == Unwrapping::Of32Bits {
        let seconds = (1_u64 << 32) as f64 / frequency as f64;
        let what = format!(
            "the clock has 32 bits, which the recorder continues only within packets: a thread that is silent for \
             {seconds:.1} s or more is shown too early from then on"
        );
        found.push(notes::note(Assumption::ShortClock, what));
    }
    found
}
