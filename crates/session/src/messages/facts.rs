//! The known facts about traces and data streams before messages are read.

use std::path::PathBuf;
use std::sync::Arc;

use kymo_decode::ClockConverter;
use kymo_format::TraceClass;
use kymo_scan::BatchEvents;

use super::columns::{PacketFields, RecordPlace, StreamColumns};
use crate::open::{Session, is_unix_clock, trace_name};
use crate::print::details::stream_ids;

/// The traces and streams that messages are of.
#[derive(Debug)]
pub struct MessagesFacts {
    /// The traces.
    pub traces: Vec<MessageTrace>,
    /// All data streams, by rank.
    pub streams: Vec<MessageStream>,
}

/// A trace.
#[derive(Debug)]
pub struct MessageTrace {
    /// Where it lies.
    pub path: PathBuf,
    /// Its name for people.
    pub name: String,
    /// Its name as Babeltrace has it: its host's name, and where it is below what the user named.
    pub host_and_folder: String,
    /// Its description of itself.
    pub class: Arc<TraceClass>,
    /// For each clock class, whether its times count from the Unix epoch.
    pub unix_clocks: Vec<bool>,
    /// How far its clocks are shifted, in nanoseconds.
    pub clock_shift_ns: i64,
}

/// A data stream.
#[derive(Debug)]
pub struct MessageStream {
    /// Index of its trace.
    pub trace: usize,
    /// Index of its class.
    pub class: usize,
    /// Its id; streams without one are counted.
    pub id: u64,
    /// Whether packets name its id.
    pub has_id: bool,
    /// Its first file.
    pub path: PathBuf,
    /// Converts its clock; `None` if it has none.
    pub clock: Option<ClockConverter>,
    /// The fields of its packets' contexts.
    pub packet_fields: Arc<PacketFields>,
    pub(super) columns: Arc<StreamColumns>,
}

impl MessageStream {
    pub(super) fn columns_at<'a>(&'a self, events: &'a BatchEvents) -> RecordPlace<'a> {
        RecordPlace { columns: &self.columns, window: events.window(), events }
    }
}

impl MessagesFacts {
    pub(super) fn new(session: &Session) -> Self {
        let (mut traces, mut streams) = (Vec::new(), Vec::new());
        for (number, trace) in session.traces.iter().enumerate() {
            let classes = 0..trace.class.stream_classes.len();
            let readers: Vec<(Arc<StreamColumns>, Arc<PacketFields>)> = classes
                .map(|class| {
                    let columns = Arc::new(StreamColumns::new(&trace.decoder, class));
                    (columns, Arc::new(PacketFields::new(&trace.decoder, class)))
                })
                .collect();
            for (stream, id) in trace.streams.iter().zip(stream_ids(trace)) {
                let (columns, packet_fields) = readers[stream.class].clone();
                let file = stream.files.first().map(|&file| trace.folder.stream(file as usize).path().to_owned());
                streams.push(MessageStream {
                    trace: number,
                    class: stream.class,
                    id,
                    has_id: stream.id.is_some(),
                    path: file.unwrap_or_default(),
                    clock: stream.clock,
                    packet_fields,
                    columns,
                });
            }
            traces.push(MessageTrace {
                path: trace.folder.path().to_owned(),
                name: trace_name(trace.folder.path()),
                host_and_folder: crate::print::details::name(trace),
                class: Arc::clone(&trace.class),
                unix_clocks: trace.class.clock_classes.iter().map(|clock| is_unix_clock(trace, clock)).collect(),
                clock_shift_ns: trace.clock_shift_ns,
            });
        }
        Self { traces, streams }
    }
}
