//! All answers agree on a counter that wraps, and on one that goes back.

use std::path::Path;

use crate::made_traces::METADATA;
use crate::{OpenOptions, PrintOptions, Progress, Session, check};

/// A trace whose counters have 32 bits, with a packet for each of their values (discarded, sequence number).
fn trace(path: &Path, counters: &[(u32, u32)]) -> Session {
    let metadata = METADATA.replace("size = 64; align = 8; } events", "size = 32; align = 8; } events");
    let metadata = metadata.replace("size = 64; align = 8; } packet_seq", "size = 32; align = 8; } packet_seq");
    std::fs::write(path.join("metadata"), metadata).unwrap();
    let mut file = Vec::new();
    for (number, (discarded, sequence)) in counters.iter().enumerate() {
        let begin = 1000 * number as u64;
        let bits = 8 * (40 + 12);
        [bits, bits, begin, begin + 999].iter().for_each(|word: &u64| file.extend(word.to_le_bytes()));
        [*discarded, *sequence].iter().for_each(|word| file.extend(word.to_le_bytes()));
        file.extend((begin + 500).to_le_bytes());
        file.extend(7_u32.to_le_bytes());
    }
    std::fs::write(path.join("s"), file).unwrap();
    Session::open(&[path.to_owned()], &OpenOptions::default()).unwrap()
}

/// (events discarded, whether there may be more, packets lost) by counting and by printing.
fn lost(session: &Session) -> (u64, bool, u64) {
    let progress = Progress::default();
    let counted = session.count(&Default::default(), &progress).unwrap().report;
    let printed = session.print(&PrintOptions::default(), &mut Vec::new(), &progress).unwrap().report;
    let of = |report: &crate::Report| (report.events_discarded, report.discarded_is_lower_bound, report.packets_lost);
    assert_eq!(of(&counted), of(&printed));
    of(&counted)
}

fn messages(path: &Path) -> Vec<String> {
    let found = check(&[path.to_owned()], &crate::ImportOptions::default(), &Progress::default()).unwrap();
    found.into_iter().map(|found| format!("{}: {}", found.rule, found.message)).collect()
}

#[test]
fn counters_that_wrap() {
    let folder = tempfile::tempdir().unwrap();
    let session = trace(folder.path(), &[(0, u32::MAX - 1), (0, u32::MAX), (u32::MAX - 1, 2), (3, 3)]);
    // A step of nearly the whole range is one back.
    assert_eq!(lost(&session), (5, true, 2));
    let session = trace(folder.path(), &[(u32::MAX / 2, u32::MAX), (u32::MAX - 1, 0), (3, 1)]);
    assert_eq!(lost(&session), (u64::from(u32::MAX / 2) + 5, true, 0));
    let session = trace(folder.path(), &[(0, 1), (u32::MAX / 2, 2), (u32::MAX - 1, 3), (3, 4)]);
    assert_eq!(lost(&session), (u64::from(u32::MAX) + 4, false, 0));
    let tell = |count: u32, at: usize| {
        format!("events-discarded: packet at byte {at}: {count} events were discarded before its end")
    };
    assert_eq!(messages(folder.path()), [tell(u32::MAX / 2, 52)], "the first of its kind");
}

#[test]
fn counters_that_go_back() {
    let folder = tempfile::tempdir().unwrap();
    let session = trace(folder.path(), &[(0, 7), (9, 8), (4, 2), (5, 3)]);
    assert_eq!(lost(&session), (10, true, 0));
    assert_eq!(
        messages(folder.path()),
        [
            "events-discarded: packet at byte 52: 9 events were discarded before its end",
            "sequence-steps-back: packet at byte 104: sequence number 2 follows 8",
            "discarded-steps-back: packet at byte 104: its count of discarded events is 4, where the packet before had 9",
        ]
    );
}

#[test]
fn one_is_told_as_one() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), &[(0, 1), (1, 3)]);
    assert_eq!(
        messages(folder.path()),
        [
            "packets-lost: packet at byte 52: sequence number 3 follows 1: 1 packet is missing",
            "events-discarded: packet at byte 52: 1 event was discarded before its end",
        ]
    );
}
