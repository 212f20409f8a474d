//! Dumps of every kind, compared with a reader that knows single lines only.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use kymo_source::{ImportOptions, TraceFinder, TraceFolder};
use proptest::prelude::*;

use super::line::DumpLine;
use super::metadata::HEAD;

fn traces(dump: &[u8]) -> Vec<TraceFolder> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump");
    fs::write(&path, dump).unwrap();
    let traces = TraceFinder::with_importers(crate::IMPORTERS, ImportOptions::default()).find(&path).unwrap();
    // Packets are made from the file.
    std::mem::forget(folder);
    traces
}

/// The bytes of a stream, packet by packet, with their begin and end.
fn packets(folder: &TraceFolder, stream: usize) -> Vec<(u64, u64, Vec<u8>)> {
    let mut bytes = vec![0; folder.streams()[stream].size as usize];
    let read = folder.stream(stream).read_at(0, &mut bytes).unwrap();
    assert_eq!(read, bytes.len());
    let mut packets = Vec::new();
    while !bytes.is_empty() {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let size = (word(28) / 8) as usize;
        assert_eq!((word(20), &bytes[..4]), (word(28), &[0xC1, 0x1F, 0xFC, 0xC1][..]));
        let rest = bytes.split_off(size);
        packets.push((u64::from_le_bytes(bytes[4..12].try_into().unwrap()), word_of(&bytes, 12), bytes));
        bytes = rest;
    }
    packets
}

fn word_of(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The times of a packet's events, whose records have the `sizes` of their classes.
fn times(packet: &[u8], sizes: &[u8]) -> Vec<u64> {
    let (mut at, mut times) = (HEAD as usize, Vec::new());
    while at < packet.len() {
        let class = u16::from_le_bytes([packet[at], packet[at + 1]]);
        times.push(word_of(packet, at + 2));
        at += usize::from(sizes[class as usize]);
    }
    assert_eq!(at, packet.len());
    times
}

fn sizes() -> Vec<u8> {
    super::DumpClasses::new(&super::definitions::DumpDefinitions::legacy()).unwrap().sizes
}

/// The times of each core's events.
fn times_by_core(dump: &[u8]) -> BTreeMap<String, Vec<u64>> {
    let mut times: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let lines: Vec<&[u8]> = dump.split(|byte| *byte == b'\n').collect();
    // The last line has no end.
    for line in &lines[..lines.len() - 1] {
        if let DumpLine::Event(event) = DumpLine::of(line) {
            times.entry(format!("core{}", event.core)).or_default().push(event.time);
        }
    }
    times
}

fn check(dump: &[u8]) {
    let expected = times_by_core(dump);
    let found = traces(dump);
    let [folder] = &found[..] else { panic!("{} traces", found.len()) };
    let names: Vec<&String> = folder.streams().iter().map(|stream| &stream.name).collect();
    assert_eq!(names, expected.keys().collect::<Vec<_>>());
    let sizes = sizes();
    for (stream, expected) in expected.values().enumerate() {
        let mut all = Vec::new();
        for (begin, end, packet) in packets(folder, stream) {
            let times = times(&packet, &sizes);
            assert!(times.is_sorted() && (times[0], times[times.len() - 1]) == (begin, end));
            all.extend(times);
        }
        let mut sorted = expected.clone();
        sorted.sort_unstable();
        assert_eq!(all, sorted, "the whole stream is in order");
    }
}

/// More events than a packet has. Some happened before others that are in the packet before.
#[test]
fn large_dumps_are_cut_into_packets() {
    let mut dump = String::from("# Core 0 LOG DUMP ===\n");
    for number in 0..60_000_u64 {
        let time = if number % 1000 == 999 || number == 16_390 { number * 10 - 100 } else { number * 10 };
        writeln!(dump, "{} {time} ffffcccc{:08x}", number / 40_000, number % 7).unwrap();
    }
    check(dump.as_bytes());
    let folder = traces(dump.as_bytes()).remove(0);
    let counts: Vec<usize> = (0..2).map(|stream| packets(&folder, stream).len()).collect();
    assert_eq!(counts, [3, 2]);
}

/// A line of 100 KiB is none of a dump, and takes no memory.
#[test]
fn long_lines_are_left_out() {
    let long = "x".repeat(3 << 20);
    let event = format!("0 5 1{}", " ".repeat(70 << 10));
    let dump = format!("# Core 0 LOG DUMP ===\n0 1 1\n{long}\n0 2 1\n{event}\n{long}\n{long}\n0 1 1\n");
    check(dump.as_bytes());
    let folder = traces(dump.as_bytes()).remove(0);
    let told = folder.notes().iter().find(|note| note.assumption == "other-lines").unwrap();
    assert_eq!(told.what, "4 lines are no part of a dump; the first is line 3");
    assert!(folder.problems().is_empty(), "{:?}", folder.problems());
}

#[test]
fn memory_that_was_full_is_told() {
    let dump = |count: usize, begin: usize| {
        let mut dump =
            format!("# Start 1 Duration 0 Stop 2\n# Min_timestamp {begin}\n# Core 0 LOG DUMP ===\n# Offset 0 0\n");
        (begin..begin + count).for_each(|time| writeln!(dump, "0 {time} 1").unwrap());
        dump
    };
    let lacks_end = |dump: &str| {
        let folder = traces(dump.as_bytes()).remove(0);
        (folder.streams()[0].lacks_end, folder.notes().iter().any(|note| note.assumption == "buffer-full"))
    };
    let (full, other) = (dump(2998, 0), dump(2997, 10_000));
    assert_eq!(lacks_end(&full), (true, false));
    assert_eq!(lacks_end(&other), (false, false));
    assert_eq!(lacks_end(&format!("{full}{other}")), (false, true));
    assert_eq!(lacks_end(&format!("{}{}", dump(2997, 0), dump(2998, 10_000))), (true, false));
}

/// Events that could not be read are missing between the events around them, and behind the last one of a core.
#[test]
fn unreadable_events_are_lost() {
    let dump = "\
# Core 0 LOG DUMP ===\n0 10 1\n0 20 1\n0 30 x\n0 40 1\n0 50 1\n\
# Core 1 LOG DUMP ===\n1 y 1\n1 20 z\n1 25 1\n1 99999999999999999999 1\n\
# Core 2 LOG DUMP ===\n2 60 1\n";
    let folder = traces(dump.as_bytes()).remove(0);
    let told = |stream: usize| -> Vec<(u64, u64, u64)> {
        packets(&folder, stream).into_iter().map(|(begin, end, bytes)| (begin, end, word_of(&bytes, 40))).collect()
    };
    assert_eq!(told(0), [(10, 20, 0), (40, 40, 1), (50, 50, 1)]);
    assert_eq!(told(1), [(25, 25, 1)]);
    assert_eq!(told(2), [(60, 60, 0)]);
    assert!(String::from_utf8_lossy(&folder.metadata().unwrap()).contains("streams_cut = \"core1@25\";"));
}

/// The same memory that was dumped twice is told, also if the second dump has more of it.
#[test]
fn repeated_events_are_told() {
    let dump = |begin: usize, count: usize| {
        let mut dump =
            "# Start 1 Duration 0 Stop 2\n# Min_timestamp 1\n# Core 0 LOG DUMP ===\n# Offset 0 0\n".to_owned();
        (begin..begin + count).for_each(|time| writeln!(dump, "0 {time} {time:x}").unwrap());
        dump
    };
    let told = |dumps: &[String]| {
        let folder = traces(dumps.concat().as_bytes()).remove(0);
        let mut notes = folder.notes().iter().filter(|note| note.assumption == "repeated-events");
        notes.next().map(|note| note.what.clone())
    };
    let told_of = |line| format!("core 0: events from line {line} on are those from line 5 on, and count twice");
    assert_eq!(told(&[dump(5, 20), dump(25, 20)]), None);
    assert_eq!(told(&[dump(5, 20), dump(5, 30)]), Some(told_of(29)));
    assert_eq!(told(&[dump(5, 3), dump(5, 3)]), Some(told_of(12)));
    let twice = format!("{}, and 1 other part of the file repeats events", told_of(12));
    assert_eq!(told(&[dump(5, 3), dump(5, 3), dump(5, 3)]), Some(twice));
}

/// A machine that was started anew has a clock that was, too.
#[test]
fn starts_of_the_machine_are_traces() {
    let dump = |time: u64| {
        format!(
            "# Start {time} Duration 0 Stop 2\n# Min_timestamp {time}\n# Core 1 LOG DUMP ===\n# Offset 1 0\n1 {time} 1\n# Core 2 LOG DUMP ===\n# Offset 2 0\n2 {time} 1\n"
        )
    };
    let names = |dump: String| -> Vec<String> {
        traces(dump.as_bytes())
            .iter()
            .map(|trace| trace.path().file_name().unwrap().to_string_lossy().into_owned())
            .collect()
    };
    assert_eq!(names(dump(10_000_000) + &dump(20_000_000)), ["dump"]);
    assert_eq!(names(dump(10_000_000) + &dump(9_500_000)), ["dump"], "interrupts may come between");
    assert_eq!(names(dump(10_000_000) + &dump(100) + &dump(200)), ["boot-1", "boot-2"]);
}

fn line() -> impl Strategy<Value = String> {
    let raw = prop_oneof![
        (0_u32..6).prop_map(|dcb| format!("ffffcccc0000{dcb:04x}")),
        (0_u64..4).prop_map(|number| format!("ea0000776f80{number:04x}")),
        Just("bbbb".to_owned()),
        Just("eeee0200000000ff".to_owned()),
        any::<u64>().prop_map(|raw| format!("{raw:x}")),
    ];
    let event = (0_u32..3, 0_u64..500, raw, prop_oneof![Just(""), Just("\r"), Just(" more")]);
    prop_oneof![
        8 => event.prop_map(|(core, time, raw, end)| format!("{core} {time} {raw}{end}")),
        1 => (0_u32..3, 0_u32..6).prop_map(|(core, dcb)| format!("# DCB {core} ffffff00{dcb:08x} app{dcb}")),
        1 => "[ -~]{0,20}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Cores in turn, interrupts, noise: each core's events are there, in the order of time.
    #[test]
    fn any_dump_is_read(lines in proptest::collection::vec(line(), 0..200), rest in "[ -~]{0,10}") {
        let dump = format!("# Core 0 LOG DUMP ===\n{}\n{rest}", lines.join("\n"));
        // Lines of other kinds may begin in noise, or say that the dump is another one.
        prop_assume!(!dump.contains("# Start") && !dump.contains("# Offset") && !dump.contains("# Min"));
        check(dump.as_bytes());
    }

    /// Any bytes are a dump or not: nothing else happens.
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0_usize..200) {
        let dump = b"# Start 1 Duration 2 Stop 3\n# Core 0 LOG DUMP ===\n# Offset 0 -9223372036854775808\n# DCB 0 1 a\n0 1 1\n0 18446744073709551615 ffffcccc00000001\n# Offset 0 9223372036854775807\n";
        let at = at.min(dump.len());
        let dump = [&dump[..at], &bytes[..], &dump[at..], dump].concat();
        for folder in traces(&dump) {
            for stream in 0..folder.streams().len() {
                packets(&folder, stream);
            }
        }
    }
}
