//! Some packets looked into, spread over all streams; all of them where there are few.
//!
//! Errors in these packets are reported: a user that sees only this would believe that all is well.

use std::collections::HashMap;

use kymo_format::Assumption;
use kymo_ir::{PacketWindow, Records, ScanStop};
use kymo_scan::{DataStream, PacketRow, StreamFaultKind, Trace};
use kymo_source::BufferPool;

use super::span::Stretch;
use super::{Estimate, fault_at};
use crate::open::Session;
use crate::open::report::ReportProblem;

/// Packets that are looked into.
const SAMPLES: u64 = 48;
/// Bytes of a packet that are looked into.
const SAMPLE_BYTES: u64 = 64 << 10;
/// Events of a packet that are looked into.
const SAMPLE_EVENTS: usize = 1 << 16;

/// Results.
#[derive(Default)]
pub(super) struct Sampled {
    pub(super) classes: HashMap<String, u64>,
    pub(super) events: u64,
    /// Bits that were looked at, and all there are.
    bits: u64,
    content_bits: u64,
    /// Something was not looked at.
    skipped: bool,
    pub(super) unreadable: Vec<ReportProblem>,
    pub(super) assumptions: Vec<ReportProblem>,
    /// For each stream, the times of the events of its packets; empty unless every packet was looked at to its end.
    pub(super) stretches: Vec<Vec<Stretch>>,
}

impl Sampled {
    pub(super) fn events(&self) -> Estimate {
        let share = if self.bits == 0 { 0.0 } else { self.content_bits as f64 / self.bits as f64 };
        let value = if self.skipped { (self.events as f64 * share) as u64 } else { self.events };
        Estimate { value, is_exact: !self.skipped }
    }
}

/// How much to look at.
struct Effort {
    /// One of so many packets.
    step: u64,
    /// Bytes of a packet.
    bytes: u64,
}

impl Session {
    pub(super) fn sample(&self) -> Sampled {
        let streams = self.streams();
        let packets: u64 = streams.iter().map(|(_, stream)| stream.packets.len() as u64).sum();
        let rows = streams.iter().flat_map(|(_, stream)| stream.packets.iter());
        let content_bits: u64 = rows.map(|row| row.content_bits).sum();
        // As much as would be looked at anyway is looked at whole.
        let effort = match content_bits / 8 {
            bytes if bytes <= SAMPLES * SAMPLE_BYTES => Effort { step: 1, bytes: u64::MAX },
            _ => Effort { step: packets.div_ceil(SAMPLES).max(1), bytes: SAMPLE_BYTES },
        };
        let mut sampled = Sampled { content_bits, ..Sampled::default() };
        let mut number = 0;
        for (rank, (trace, stream)) in streams.iter().enumerate() {
            let mut stretches = Vec::new();
            for (place, row) in stream.packets.iter().enumerate() {
                if number % effort.step == 0 {
                    let looked = look_into(trace, stream, &row, effort.bytes);
                    stretches.extend(looked.stretch(stream, &row));
                    self.add(&mut sampled, looked, (rank, place), &row);
                } else {
                    sampled.skipped |= row.content_bits > 0;
                }
                number += 1;
            }
            let is_whole = stretches.len() == stream.packets.len();
            sampled.stretches.push(if is_whole { stretches } else { Vec::new() });
        }
        sampled
    }

    fn add(&self, sampled: &mut Sampled, looked: Looked, (rank, place): (usize, usize), row: &PacketRow) {
        let (trace, stream) = self.streams()[rank];
        let classes = &trace.class.stream_classes[stream.class].event_classes;
        for &class in &looked.records.classes {
            let class = &classes[class as usize];
            let name = class.name.clone().unwrap_or_else(|| format!("<event {}>", class.id));
            *sampled.classes.entry(name).or_default() += 1;
        }
        sampled.events += looked.records.len() as u64;
        sampled.bits += looked.position;
        if looked.uuid_differs {
            let note = self.note(rank, Assumption::UuidMismatch, "packets have another UUID than the metadata");
            if !sampled.assumptions.contains(&note) {
                sampled.assumptions.push(note);
            }
        }
        match looked.end {
            SampleEnd::Reached => {}
            SampleEnd::Limit => sampled.skipped = true,
            // That a packet is cut is known already; of course its last record is too.
            SampleEnd::Fault(_) if row.cut => {}
            SampleEnd::Fault(kind) => sampled.unreadable.push(self.problem(&fault_at(rank, place, row, kind))),
        }
    }
}

/// Results of a packet.
struct Looked {
    records: Records,
    /// How far it was read.
    position: u64,
    uuid_differs: bool,
    end: SampleEnd,
}

enum SampleEnd {
    Reached,
    Limit,
    Fault(StreamFaultKind),
}

impl Looked {
    /// The time of the packet's events, if all were seen.
    fn stretch(&self, stream: &DataStream, row: &PacketRow) -> Option<Stretch> {
        let nanos = |cycles: Option<&u64>| stream.clock?.nanos(*cycles?);
        let (begin_ns, end_ns) = (nanos(self.records.cycles.first())?, nanos(self.records.cycles.last())?);
        let is_whole = matches!(self.end, SampleEnd::Reached) && !row.cut;
        is_whole.then_some(Stretch { begin_ns, end_ns: end_ns.max(begin_ns), bits: row.content_bits })
    }
}

/// Reads the events at a packet's beginning.
fn look_into(trace: &Trace, stream: &DataStream, row: &PacketRow, bytes_max: u64) -> Looked {
    let mut looked = Looked { records: Records::default(), position: 0, uuid_differs: false, end: SampleEnd::Reached };
    let file = trace.folder.stream(row.file as usize);
    let length = row.content_bits.div_ceil(8).min(bytes_max) as usize;
    let bytes = match BufferPool::default().read(&file, row.offset_bytes, length) {
        Ok(bytes) => bytes,
        Err(error) => return Looked { end: SampleEnd::Fault(StreamFaultKind::Source(error)), ..looked },
    };
    let end = row.content_bits.min(bytes.len() as u64 * 8);
    let window = PacketWindow::new(bytes.with_slack(), 0, end);
    let Ok(head) = trace.decoder.head(window, 0) else {
        // It was read when the packet was found, so there is more of it than was looked at.
        return Looked { end: SampleEnd::Limit, ..looked };
    };
    looked.uuid_differs = head.uuid_differs;
    looked.position = head.body_start;
    let mut state = trace.decoder.state(&head, row.begin_cycles.unwrap_or(0));
    let records = &mut looked.records;
    let stop = trace.decoder.scan(stream.class, window, &mut looked.position, &mut state, records, SAMPLE_EVENTS);
    looked.end = match stop {
        // The window may end inside of a packet. A fault that more bytes could cure is then no
        // fault.
        ScanStop::Fault(fault) if !fault.kind.wants_more() || end == row.content_bits => {
            SampleEnd::Fault(StreamFaultKind::Record { record: looked.position, fault })
        }
        _ if looked.position >= row.content_bits => SampleEnd::Reached,
        _ => SampleEnd::Limit,
    };
    looked
}
