//! Counts as a trace of their own: a packet for each interval, whose events have the time of its end.
//!
//! The clock is `CLOCK_MONOTONIC` with its offset to 1970. Events that were not counted are lost events of the trace, so that readers
//! tell of them, beside the fields that tell why.

use std::collections::HashMap;
use std::path::Path;

use kymo_ftrace::fields::FieldList;
use kymo_lane::ClockSource;
use kymo_units::Uuid;
use kymo_writer::{CtfVersion, EnvironmentValue, HEAD_BYTES, RawOptions, RawPacket, RawStream, RawTrace, WriteError};

use super::events::{CountEvent, CountEvents, count_class};
use super::{CountedColumns, WatchOptions, WatchTotals};
use crate::clock::ClockDescription;
use crate::objects::{clock_offset_ns, monotonic_ns};
use crate::trace::chunk::raw_clock;
use crate::trace::journal::{environment, random_uuid};

const NANOS: i64 = 1_000_000_000;
/// Bytes of a packet about.
const PACKET: usize = 64 << 10;
const STREAM: &str = "counts";

/// A trace of counts that is being written.
#[derive(Debug)]
pub struct WatchTrace {
    trace: RawTrace,
    stream: RawStream,
    events: CountEvents,
    writer: CountPackets,
}

/// Packets of a time, and the ids of their events.
#[derive(Debug)]
struct CountPackets {
    /// The name of the question.
    name: String,
    stream_class: u32,
    ids: HashMap<CountEvent, u16>,
    bytes: Vec<u8>,
    cycles: u64,
    discarded: u64,
}

impl WatchTrace {
    /// Makes a folder for the counts of a question, which begin now. Only the user may read it: counts tell of all of the system.
    ///
    /// # Errors
    ///
    /// It cannot be made, or has a trace already.
    pub fn create(path: &Path, options: &WatchOptions, columns: &CountedColumns) -> Result<Self, WriteError> {
        let offset_ns = clock_offset_ns();
        let clock = ClockDescription {
            frequency: NANOS as u64,
            base: 0,
            offset_seconds: offset_ns.div_euclid(NANOS),
            offset_ticks: offset_ns.rem_euclid(NANOS) as u64,
            error_ns: 0,
            is_absolute: true,
        };
        let mut trace = RawTrace::create(
            path,
            RawOptions {
                format: CtfVersion::Ctf18,
                uuid: Uuid(random_uuid(path)?),
                clock: raw_clock(ClockSource::Monotonic, &clock),
                environment: watch_environment(&options.words),
                packet_fields: Vec::new(),
                is_private: true,
            },
        )?;
        let stream_class = trace.stream_class(&[])?;
        let stream = trace.stream(STREAM, stream_class, 0);
        let (ids, bytes, discarded) = Default::default();
        let WatchOptions { name, words, .. } = options;
        let writer = CountPackets { name: name.clone(), stream_class, ids, bytes, cycles: 0, discarded };
        let mut this = Self { trace, stream, events: CountEvents::new(name, words, columns.clone()), writer };
        // Readers tell losses between packets: one at the beginning tells that there are none until then.
        this.begin();
        this.writer.flush(&mut this.stream)?;
        Ok(this)
    }

    /// Events have the time that it is now.
    fn begin(&mut self) {
        self.writer.cycles = monotonic_ns().max(self.writer.cycles);
        self.writer.bytes.resize(HEAD_BYTES, 0);
    }

    /// Adds the counts of an interval, which took so long and ends now.
    ///
    /// # Errors
    ///
    /// The trace cannot be written.
    pub fn interval(&mut self, counts: &WatchTotals, time_ns: u64) -> Result<(), WriteError> {
        self.begin();
        let Self { trace, stream, events, writer } = self;
        writer.discarded += counts.unplaced + counts.missed;
        events.interval(counts, time_ns, |event, fields| writer.event(trace, stream, event, fields))?;
        writer.flush(stream)
    }

    /// Ends the trace with the counts of the whole time, and whether they are complete.
    ///
    /// # Errors
    ///
    /// The trace cannot be written.
    pub fn finish(mut self, counts: &WatchTotals, time_ns: u64, is_complete: bool) -> Result<(), WriteError> {
        self.begin();
        let Self { mut trace, mut stream, events, mut writer } = self;
        let about = (time_ns, is_complete);
        events.end(counts, about, |event, fields| writer.event(&mut trace, &mut stream, event, fields))?;
        writer.flush(&mut stream)?;
        stream.close();
        Ok(())
    }
}

impl CountPackets {
    fn event(
        &mut self,
        trace: &mut RawTrace,
        stream: &mut RawStream,
        event: CountEvent,
        fields: &FieldList,
    ) -> Result<(), WriteError> {
        let id = match self.ids.get(&event) {
            Some(id) => *id,
            None => {
                let id = self.ids.len() as u16;
                trace.event_record_class(self.stream_class, count_class(&self.name, id, event, fields))?;
                self.ids.insert(event, id);
                id
            }
        };
        self.bytes.extend_from_slice(&id.to_le_bytes());
        self.bytes.extend_from_slice(&(self.cycles as u32).to_le_bytes());
        self.bytes.extend_from_slice(fields.bytes());
        if self.bytes.len() < PACKET {
            return Ok(());
        }
        self.flush(stream)?;
        self.bytes.resize(HEAD_BYTES, 0);
        Ok(())
    }

    fn flush(&mut self, stream: &mut RawStream) -> Result<(), WriteError> {
        let (begin, end) = (self.cycles, self.cycles);
        let packet = RawPacket { begin, end, discarded: self.discarded, missing: 0, padding: 0 };
        let written = stream.packet(&mut self.bytes, &packet);
        self.bytes.clear();
        written
    }
}

fn watch_environment(question: &str) -> Vec<(String, EnvironmentValue)> {
    let text = |text: &str| EnvironmentValue::Text(text.to_owned());
    let of_machine = environment().into_iter().filter(|(name, _)| name != "domain");
    let own = of_machine.map(|(name, value)| {
        let value = if name == "tracer_name" { text("kymo-watch") } else { value };
        (name, value)
    });
    own.chain([("question".to_owned(), text(question))]).collect()
}
