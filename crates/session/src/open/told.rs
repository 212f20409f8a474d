//! Events in which recorders tell facts about their traces, read packet by packet: nothing else is decoded.

use kymo_decode::FilterFacts;
use kymo_decode::fields::{FieldPlace, FieldReader, FieldValue};
use kymo_filter::NamePath;
use kymo_format::model::DataStreamClass;
use kymo_ir::{Cells, PacketWindow, Records};
use kymo_scan::{DataStream, PacketRow, Trace};
use kymo_source::BufferPool;

/// Events that are found at a time.
const CHUNK_EVENTS: usize = 1 << 14;

/// Events of one class in a data stream.
pub(crate) struct ToldEvents<'t> {
    trace: &'t Trace,
    pub(crate) stream: &'t DataStream,
    event_class: usize,
    reader: FieldReader,
}

/// The event class of this name in a class of data streams.
pub(crate) fn event_class(stream_class: &DataStreamClass, name: &str) -> Option<usize> {
    stream_class.event_classes.iter().position(|class| class.name.as_deref() == Some(name))
}

/// Facts about no trace in particular.
pub(crate) fn facts() -> FilterFacts<'static> {
    FilterFacts { clock: None, trace_name: "", suggests: false, instant: &|_| None }
}

impl<'t> ToldEvents<'t> {
    /// Events of this name with these fields of their payload; `None`: the stream has no such class.
    pub(crate) fn of(trace: &'t Trace, stream: &'t DataStream, name: &str, fields: &[&str]) -> Option<Self> {
        let event_class = event_class(&trace.class.stream_classes[stream.class], name)?;
        let mut reader = FieldReader::new(&trace.decoder, stream.class);
        let path = |name: &&str| NamePath::parse(&format!("$payload.{name}")).expect("it is a path");
        let paths: Vec<NamePath> = fields.iter().map(path).collect();
        reader.ask(event_class, &paths, &facts()).ok()?;
        Some(Self { trace, stream, event_class, reader })
    }

    /// Calls `take` with the fields of each event in a packet, among its first `events_max` ones; those that are absent are `None`. Where
    /// the packet, or a part of it, cannot be read, the rest is left out: reading the trace tells why.
    pub(crate) fn packet(&self, row: &PacketRow, events_max: usize, take: impl FnMut(&[Option<FieldValue>])) {
        let _ = self.read(row, events_max, take);
    }

    fn read(&self, row: &PacketRow, events_max: usize, mut take: impl FnMut(&[Option<FieldValue>])) -> Option<()> {
        let Self { trace, stream, event_class, reader } = self;
        let file = trace.folder.stream(row.file as usize);
        let length = usize::try_from(row.content_bits.div_ceil(8)).ok()?;
        let bytes = BufferPool::default().read(&file, row.offset_bytes, length).ok()?;
        let window = PacketWindow::new(bytes.with_slack(), 0, row.content_bits.min(bytes.len() as u64 * 8));
        let head = trace.decoder.head(window, 0).ok()?;
        let mut scanned = trace.decoder.state(&head, row.begin_cycles.unwrap_or(0));
        let (mut records, mut position, mut left) = (Records::default(), head.body_start, events_max);
        while left > 0 {
            records.clear();
            let most = left.min(CHUNK_EVENTS);
            let _ = trace.decoder.scan(stream.class, window, &mut position, &mut scanned, &mut records, most);
            let ours = records.classes.iter().zip(&records.positions);
            let ours = ours.filter(|(class, _)| **class as usize == *event_class);
            let positions: Vec<u64> = ours.map(|(_, position)| *position).collect();
            let (mut state, mut cells) = (trace.decoder.state(&head, 0), Cells::default());
            let _ = reader.read(*event_class, window, &positions, &mut state, &mut cells);
            for event in 0..positions.len() {
                let value = |place: &FieldPlace| match place {
                    FieldPlace::Column { column, kind, .. } => {
                        FieldValue::of_row(&cells, *column, event, *kind, window)
                    }
                    _ => None,
                };
                let fields = reader.fields(*event_class).iter().map(|field| value(&field.place));
                take(&fields.collect::<Vec<_>>());
            }
            // It was the last one, or the next one cannot be read.
            if records.classes.len() < most {
                break;
            }
            left -= most;
        }
        Some(())
    }
}
