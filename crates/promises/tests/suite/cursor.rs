//! The cases of `tests/packets/` as trace folders, walked by cursors as `kymo` does: with little and with much of a file in
//! memory, by the evaluator and by machine code, the records and faults are those of the bytes in one piece.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use kymo_cases::{Case, FILES, parse};
use kymo_decode::Compile;
use kymo_ir::{ProgramFault, ScanStop};
use kymo_promises::reading::PlainReader;
use kymo_scan::{
    BatchContent, Cursor, CursorItem, CursorSetup, KeyMaker, NothingKnown, StopFlag, StreamFaultKind, Trace,
    TraceOptions,
};
use kymo_source::BufferPool;

/// (packet, class, clock, position) of each record, and where a packet's records stopped.
#[derive(Debug, Default, PartialEq)]
struct Walked {
    records: Vec<(u64, u32, u64, u64)>,
    faults: Vec<(u64, ProgramFault)>,
}

fn in_one_piece(trace: &Path, bytes: &[u8]) -> Walked {
    let metadata = fs::read(trace.join("metadata")).expect("it was just written");
    let class = Arc::new(kymo_format::parse(&metadata).trace_class.expect("cases are sound"));
    let reader = PlainReader::new(&class, Compile::Never, 0).expect("cases can be decoded");
    let mut walked = Walked::default();
    for (number, packet) in (0..).zip(reader.read(bytes, bytes.len()).packets) {
        let records = packet.events.iter().map(|event| (number, event.class, event.cycles, event.position));
        walked.records.extend(records);
        if let ScanStop::Fault(fault) = packet.stop {
            walked.faults.push((number, fault));
        }
    }
    walked
}

fn by_cursor(trace: &Path, compile: Compile, chunk_bytes: usize) -> Walked {
    let folder = kymo_source::find(trace).expect("the folder can be read").pop().expect("it is a trace");
    let options = TraceOptions { clock_shift_ns: 0, compile };
    let trace = Trace::open(folder, options, &NothingKnown).expect("cases are sound");
    let mut walked = Walked::default();
    for (rank, stream) in trace.streams.iter().enumerate() {
        let setup = CursorSetup {
            decoder: Arc::clone(&trace.decoder),
            files: stream.files.iter().map(|&file| (file, trace.folder.stream(file as usize))).collect(),
            packets: Arc::clone(&stream.packets),
            wanted: 0..stream.packets.len(),
            stream: rank,
            keys: KeyMaker::new(stream.clock),
            counters: stream.counters,
            chunk_bytes,
            marks: false,
            filter: None,
            stop: StopFlag::default(),
        };
        let mut cursor = Cursor::new(setup, BufferPool::default());
        while let Some(item) = cursor.next_item() {
            walked.take(item);
        }
    }
    walked
}

impl Walked {
    fn take(&mut self, item: CursorItem) {
        match item {
            CursorItem::Batch(batch) => {
                let BatchContent::Events(events) = batch.content else { return };
                let (number, records) = (events.packet.number, &events.records);
                for (row, &class) in records.classes.iter().enumerate() {
                    self.records.push((number, class, records.cycles[row], records.positions[row]));
                }
            }
            CursorItem::Fault(fault) => match fault.kind {
                StreamFaultKind::Record { fault: of_record, .. } => self.faults.push((fault.packet, of_record)),
                other => panic!("{other}"),
            },
        }
    }
}

fn check(case: &Case) {
    let root = tempfile::tempdir().expect("a temporary folder can be made");
    fs::write(root.path().join("metadata"), &case.metadata).expect("a temporary file can be written");
    fs::write(root.path().join("stream"), &case.bytes).expect("a temporary file can be written");
    let expected = in_one_piece(root.path(), &case.bytes);
    for compile in [Compile::Never, Compile::AtOnce] {
        for chunk_bytes in [1, 2, 3, 7, 64, 1 << 16] {
            let found = by_cursor(root.path(), compile, chunk_bytes);
            assert_eq!(found, expected, "{}: {compile:?}, {chunk_bytes} bytes at once", case.name);
        }
    }
}

#[test]
fn cursors_find_what_is_in_every_case() {
    let cases: Vec<Case> = FILES.iter().flat_map(|text| parse(text)).collect();
    cases.iter().for_each(check);
    println!("{} cases", cases.len());
}
