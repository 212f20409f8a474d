//! Folders that are parts of one trace become one.
//!
//! ```text
//! session-20261126/archives/…-1/kernel ─┐ one UUID: chunks of a session that was rotated
//!                  archives/…-2/kernel ─┴─> one trace, each of whose streams lies in two files
//! ```
//!
//! A tracer that rotates its session, or takes snapshots, writes folders that have the UUID of the
//! session. Their metadata grows while programs start; the largest describes the others. Packets
//! that two snapshots have in common are found later, by their times and numbers.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use kymo_format::{DataStreamClass, ParsedMetadata, TraceClass};
use kymo_source::TraceFolder;
use kymo_units::Uuid;

/// The same traces; of those that are parts of one trace, one for all of them, in the place of the
/// first. Folders that `machine` gives different numbers are no parts of one trace.
pub(crate) fn join<E>(
    found: Vec<Result<TraceFolder, E>>,
    machine: &dyn Fn(&Path) -> Option<usize>,
) -> Vec<Result<TraceFolder, E>> {
    if found.len() < 2 {
        return found;
    }
    type Numbered = (usize, TraceFolder);
    let mut by_uuid: BTreeMap<(Uuid, Option<usize>), Vec<Numbered>> = BTreeMap::new();
    for (number, folder) in found.iter().enumerate() {
        // Why metadata cannot be read is said where the trace is opened.
        let Ok(folder) = folder else { continue };
        let Ok(bytes) = folder.metadata() else { continue };
        if let Some(uuid) = kymo_format::uuid_at_a_glance(&bytes) {
            by_uuid.entry((uuid, machine(folder.path()))).or_default().push((number, folder.clone()));
        }
    }
    let mut found: Vec<Option<Result<TraceFolder, E>>> = found.into_iter().map(Some).collect();
    for group in by_uuid.into_values().filter(|group| group.len() > 1) {
        let (numbers, folders): (Vec<usize>, Vec<TraceFolder>) = group.into_iter().unzip();
        let Some(parts) = parts_of_one(&folders) else { continue };
        let others: Vec<TraceFolder> = parts.others.iter().map(|other| folders[*other].clone()).collect();
        let joined = TraceFolder::joined(&folders[parts.described_by], &others);
        let all = || parts.others.iter().chain([&parts.described_by]).map(|part| numbers[*part]);
        all().for_each(|number| found[number] = None);
        found[all().min().expect("there is the one that describes it")] = Some(Ok(joined));
    }
    found.into_iter().flatten().collect()
}

/// Folders of one trace, by their numbers.
struct Parts {
    /// Its metadata has all classes.
    described_by: usize,
    others: Vec<usize>,
}

/// Which folders are parts of the trace that the largest metadata among them describes.
fn parts_of_one(folders: &[TraceFolder]) -> Option<Parts> {
    // Chunks mostly have the same metadata.
    let mut parsed: HashMap<Vec<u8>, Option<Arc<TraceClass>>> = HashMap::new();
    let class = |folder: &TraceFolder| {
        let bytes = folder.metadata().ok()?;
        let known = parsed.entry(bytes).or_insert_with_key(|bytes| {
            let ParsedMetadata { trace_class, .. } = kymo_format::parse(bytes);
            trace_class.filter(|class| class.uuid.is_some_and(|uuid| uuid != Uuid::NIL)).map(Arc::new)
        });
        known.clone()
    };
    let classes: Vec<Option<Arc<TraceClass>>> = folders.iter().map(class).collect();
    let largest = (0..classes.len()).rev().max_by_key(|number| classes[*number].as_deref().map(size))?;
    let all = classes[largest].as_deref()?;
    let events = EventIndex::new(all);
    let is_part = |class: &Option<Arc<TraceClass>>| {
        class.as_ref().is_some_and(|class| std::ptr::eq(&raw const **class, all) || events.describe(class))
    };
    let others: Vec<usize> =
        (0..classes.len()).filter(|number| *number != largest && is_part(&classes[*number])).collect();
    (!others.is_empty()).then_some(Parts { described_by: largest, others })
}

/// Classes of data streams and of events.
fn size(class: &TraceClass) -> usize {
    class.stream_classes.iter().map(|stream| 1 + stream.event_classes.len()).sum()
}

/// The event record classes of a trace class by the ids of stream and event.
struct EventIndex<'c> {
    class: &'c TraceClass,
    streams: HashMap<u64, (&'c DataStreamClass, HashMap<u64, usize>)>,
}

impl<'c> EventIndex<'c> {
    fn new(class: &'c TraceClass) -> Self {
        let streams = class.stream_classes.iter().map(|stream| {
            let events = stream.event_classes.iter().enumerate().map(|(number, event)| (event.id, number));
            (stream.id, (stream, events.collect()))
        });
        Self { class, streams: streams.collect() }
    }

    /// Whether the class says nothing that the larger one does not say as well.
    fn describe(&self, part: &TraceClass) -> bool {
        let all = self.class;
        let is_same = part.dialect == all.dialect
            && part.uuid == all.uuid
            && part.environment == all.environment
            && part.packet_header == all.packet_header
            && part.clock_classes == all.clock_classes;
        is_same && part.stream_classes.iter().all(|stream| self.describe_stream(stream))
    }

    fn describe_stream(&self, part: &DataStreamClass) -> bool {
        let Some((all, events)) = self.streams.get(&part.id) else { return false };
        let is_same = part.default_clock == all.default_clock
            && part.packet_context == all.packet_context
            && part.event_header == all.event_header
            && part.event_common_context == all.event_common_context;
        let is_known = |event: &kymo_format::EventRecordClass| {
            events.get(&event.id).is_some_and(|number| all.event_classes[*number] == *event)
        };
        is_same && part.event_classes.iter().all(is_known)
    }
}

#[cfg(test)]
mod tests;
