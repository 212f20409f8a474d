//! The cases of `tests/packets/` by the evaluator and by machine code: what the tree reader finds, and where each
//! stops. (What the tree reader finds is compared with the cases in `decode`.)

use std::sync::Arc;

use kymo_cases::{Case, FILES, parse};
use kymo_decode::Compile;
use kymo_ir::ScanStop;
use kymo_promises::packets;
use kymo_promises::reading::{FileContents, PlainReader};

/// What stopped the reading.
fn fault(reading: &FileContents) -> Option<String> {
    let of_record = |stop: ScanStop| match stop {
        ScanStop::Fault(fault) => Some(format!("at bit {}: {}", fault.at, fault.kind)),
        ScanStop::End | ScanStop::Full => None,
    };
    let of_head = reading.fault.map(|fault| fault.to_string());
    of_head.or_else(|| reading.packets.last().and_then(|packet| of_record(packet.stop)))
}

fn check(case: &Case) {
    let metadata = kymo_format::parse(case.metadata.as_bytes());
    let trace = metadata.trace_class.unwrap_or_else(|| panic!("{}: {:?}", case.name, metadata.diagnostics));
    let trace = Arc::new(trace);
    for number in 0..12 {
        packets::same_by_all(&trace, &case.bytes, number).expect(&case.name);
    }
    let reader = PlainReader::new(&trace, Compile::AtOnce, 0).expect("it was decoded just now");
    let reading = reader.read(&case.bytes, case.bytes.len());
    assert_eq!(fault(&reading), case.fault, "{}", case.name);
}

#[test]
fn every_engine_reads_every_case() {
    let cases: Vec<Case> = FILES.iter().flat_map(|text| parse(text)).collect();
    cases.iter().for_each(check);
    println!("{} cases", cases.len());
}
