//! Small trees, byte by byte.

use std::fs;
use std::path::{Path, PathBuf};

use kymo_source::{ImportOptions, TraceFinder, TraceFolder};
use proptest::prelude::*;

use super::threads::Unwrapping;

const METADATA: &[u8] = include_bytes!("../../../../tests/genode/metadata");

const CALL: u8 = 1;
const RETURNED: u8 = 2;

/// A packet of a thread with calls and returns at these times.
fn packet(label: &str, thread: &str, priority: u8, events: &[(u8, u64)]) -> Vec<u8> {
    let names = [label.as_bytes(), &[0], thread.as_bytes(), &[0]].concat();
    let body: Vec<u8> =
        events.iter().flat_map(|(id, time)| [&[*id][..], &time.to_le_bytes(), b"go\0"].concat()).collect();
    let head_bits = (33 + names.len()) * 8;
    let bits = (head_bits + body.len() * 8) as u32;
    let (begin, end) = (events.first().map_or(0, |event| event.1), events.last().map_or(0, |event| event.1));
    let head = [
        &0xC1FC_1FC1_u32.to_le_bytes()[..],
        &[0; 4],
        &begin.to_le_bytes(),
        &end.to_le_bytes(),
        &bits.to_le_bytes(),
        &(head_bits as u16).to_le_bytes(),
        &[0x01, 0x11, priority],
    ];
    [&head.concat()[..], &names, &body].concat()
}

struct TreeOnDisk {
    folder: tempfile::TempDir,
}

impl TreeOnDisk {
    /// Components by their folders and threads' files; all have the recorder's metadata.
    fn new(files: &[(&str, Vec<u8>)]) -> Self {
        let made = Self { folder: tempfile::tempdir().unwrap() };
        files.iter().for_each(|(name, bytes)| made.write(name, bytes));
        for (name, _) in files {
            if !name.ends_with(".pcapng") {
                made.write(&format!("{}/metadata", name.rsplit_once('/').unwrap().0), METADATA);
            }
        }
        made
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn find(&self, name: &str) -> Vec<TraceFolder> {
        finder().find(&self.path(name)).unwrap()
    }

    fn one(&self, name: &str) -> TraceFolder {
        let [found] = &self.find(name)[..] else { panic!("one trace is in it") };
        found.clone()
    }
}

fn finder() -> TraceFinder {
    TraceFinder::with_importers(crate::IMPORTERS, ImportOptions::default())
}

fn streams(trace: &TraceFolder) -> Vec<&str> {
    trace.streams().iter().map(|stream| &*stream.name).collect()
}

fn text(trace: &TraceFolder) -> String {
    String::from_utf8(trace.metadata().unwrap()).unwrap()
}

/// A stream's bytes.
fn bytes(trace: &TraceFolder, stream: usize) -> Vec<u8> {
    let mut bytes = vec![0; trace.streams()[stream].size as usize];
    assert_eq!(trace.stream(stream).read_at(0, &mut bytes).unwrap(), bytes.len());
    bytes
}

/// The times of calls and returns of a stream, packet by packet, and the thread.
fn times(trace: &TraceFolder, stream: usize) -> (Vec<Vec<u64>>, String) {
    let bytes = bytes(trace, stream);
    let (mut packets, mut threads, mut at) = (Vec::new(), Vec::new(), 0);
    while at < bytes.len() {
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let end = at + u32_at(at + 24) as usize / 8;
        let zeros: Vec<usize> = (at + 33..end).filter(|at| bytes[*at] == 0).take(3).collect();
        threads.push(String::from_utf8(bytes[zeros[1] + 1..zeros[2]].to_vec()).unwrap());
        let body = &bytes[zeros[2] + 1..end];
        let times: Vec<u64> =
            body.chunks(12).map(|event| u64::from_le_bytes(event[1..9].try_into().unwrap())).collect();
        assert_eq!(u64_at(at + 8), times[0], "the head has it too");
        assert!(u64_at(at + 16) >= *times.last().unwrap(), "a packet may be cut");
        packets.push(times);
        at = end;
    }
    threads.dedup();
    (packets, threads.concat())
}

fn of_ping(events: &[(u8, u64)]) -> Vec<u8> {
    packet("init -> ping", "ep", 1, events)
}

fn of_pong(events: &[(u8, u64)]) -> Vec<u8> {
    packet("init -> pong", "ep", 2, events)
}

const START: u64 = 5_000_000_000_000;

fn two_components() -> TreeOnDisk {
    TreeOnDisk::new(&[
        ("t/2022-8-29 14:3:9/init/ping/ep", of_ping(&[(CALL, START + 7), (RETURNED, START + 9)])),
        ("t/2022-8-29 14:3:9/init/pong/ep", of_pong(&[(CALL, START)])),
        (
            "t/2022-8-29 14:3:9/init/pong/deep/er/ep",
            packet("init -> pong -> deep -> er", "ep", 1, &[(CALL, START + 3)]),
        ),
        ("t/2022-8-30 1:0:0/init/ping/ep", of_ping(&[(CALL, 1)])),
    ])
}

#[test]
fn a_folder_with_a_date_is_one_trace() {
    let files = two_components();
    let [first, second] = &files.find("t")[..] else { panic!("two recordings") };
    assert_eq!(first.path(), files.path("t/2022-8-29 14:3:9"));
    assert_eq!(streams(first), ["init/ping/ep", "init/pong/deep/er/ep", "init/pong/ep"]);
    assert_eq!(times(first, 0), (vec![vec![START + 7, START + 9]], "init -> ping: ep".to_owned()));
    assert_eq!(times(first, 1), (vec![vec![START + 3]], "init -> pong -> deep -> er: ep".to_owned()));
    // The first event is at the folder's time.
    let text = text(first);
    let clock = |name: &str| {
        let number = text.split_once(&format!("{name} = ")).unwrap().1.split_once(';').unwrap().0;
        number.parse::<i64>().unwrap()
    };
    assert_eq!((clock("offset_s"), clock("offset")), (1_661_781_789 - 5000, 0), "{text}");
    assert!(text.contains("absolute = true") || text.contains("absolute = TRUE"), "{text}");
    assert_eq!(first.notes()[0].assumption, "folder-date");
    // Its UUID is not that of all recordings, nor of another one.
    let uuid = |trace: &TraceFolder| kymo_format::uuid_at_a_glance(&trace.metadata().unwrap()).unwrap();
    assert_ne!(uuid(first), uuid(second));
    assert!(kymo_format::parse(&first.metadata().unwrap()).diagnostics.is_empty());
}

/// Parts of a recording have the times and the UUID of all of it.
#[test]
fn a_part_of_a_tree_is_read_as_in_the_whole() {
    let files = two_components();
    let whole = files.find("t").swap_remove(0);
    for (name, wanted) in [
        ("init", &["init/ping/ep", "init/pong/deep/er/ep", "init/pong/ep"][..]),
        ("init/pong", &["init/pong/deep/er/ep", "init/pong/ep"]),
        ("init/pong/ep", &["init/pong/ep"]),
        ("init/pong/metadata", &["init/pong/deep/er/ep", "init/pong/ep"]),
    ] {
        let part = files.one(&format!("t/2022-8-29 14:3:9/{name}"));
        assert_eq!(streams(&part), wanted, "{name}");
        assert_eq!(text(&part), text(&whole), "{name}");
        let last = streams(&whole).len() - 1;
        assert_eq!(bytes(&part, wanted.len() - 1), bytes(&whole, last), "{name}");
    }
}

#[test]
fn other_traces_beside_stay_traces() {
    let files = two_components();
    files.write("t/2022-8-29 14:3:9/init/other/metadata", b"/* CTF 1.8 */ trace { major = 1; };");
    files.write("t/2022-8-29 14:3:9/init/other/stream", b"");
    let found = files.find("t/2022-8-29 14:3:9");
    let paths: Vec<&Path> = found.iter().map(TraceFolder::below).collect();
    assert_eq!(paths, [Path::new(""), Path::new("init/other")]);
    assert_eq!(streams(&found[0]).len(), 3);
    // A folder that is named like a recording and holds none.
    let empty = TreeOnDisk::new(&[]);
    empty.write("2022-8-29 14:3:9/metadata", b"/* CTF 1.8 */ trace { major = 1; };");
    assert_eq!(empty.one("2022-8-29 14:3:9").path(), empty.path("2022-8-29 14:3:9"));
}

/// TreeOnDisk that were collected in one folder have no date, and no time of day.
#[test]
fn a_folder_without_a_date_is_read_too() {
    let both = [of_pong(&[(CALL, 4)]), of_pong(&[(CALL, 9)])].concat();
    let files = TreeOnDisk::new(&[("all/ping", of_ping(&[(CALL, 7)])), ("all/pong", both)]);
    files.write("all/net.pcapng", &capture(1_661_781_789));
    let found = files.find("all");
    assert_eq!(streams(&found[0]), ["ping", "pong"]);
    assert!(!text(&found[0]).contains("offset = ") || text(&found[0]).contains("offset = 0"), "{}", text(&found[0]));
    assert!(found[0].notes().is_empty());
    assert_eq!((found[1].path(), streams(&found[1])), (&*files.path("all/net.pcapng"), vec!["lan"]));
}

/// A section with an interface `lan_in` and one packet then.
fn capture(second: u64) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    let time = second * 1_000_000;
    let words = [0, (time >> 32) as u32, time as u32, 4, 4].map(u32::to_le_bytes).concat();
    let name = [&[1, 0, 0, 0, 0x40, 6, 0, 0, 2, 0, 6, 0][..], b"lan_in\0\0", &[1, 0, 0, 0]].concat();
    let section = [0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
    [block(0x0A0D_0D0A, &section), block(1, &name), block(6, &[&words[..], &[1, 2, 3, 4]].concat())].concat()
}

#[test]
fn captures_are_streams_of_their_recording() {
    let files = TreeOnDisk::new(&[
        ("2024-3-1 0:0:0/init/ping/ep", of_ping(&[(CALL, START)])),
        // A day too late, as the recorder writes them in leap years.
        ("2024-3-1 0:0:0/init/ping.pcapng", capture(1_709_251_200 + 86_401)),
        ("2024-3-1 0:0:0/init/ping/deep.pcapng", capture(1_709_251_200 + 1)),
    ]);
    let trace = files.one("2024-3-1 0:0:0");
    assert_eq!(streams(&trace), ["init/ping.pcapng/lan", "init/ping/deep.pcapng/lan", "init/ping/ep"]);
    let late: Vec<u8> = bytes(&trace, 0);
    assert_eq!(late, bytes(&trace, 1));
    assert_eq!(late[4..16], [&1_u32.to_le_bytes()[..], &1_709_251_201_000_000_000_u64.to_le_bytes()].concat());
    let assumptions: Vec<&str> = trace.notes().iter().map(|note| note.assumption).collect();
    assert_eq!(assumptions, ["folder-date", "leap-day"]);
    let parsed = kymo_format::parse(&trace.metadata().unwrap());
    assert_eq!(parsed.diagnostics, []);
    assert_eq!(parsed.trace_class.unwrap().stream_classes.len(), 2);
}

#[test]
fn threads_of_one_name_are_told_apart() {
    let one = |begin: u64, end: u64| of_ping(&[(CALL, START + begin), (RETURNED, START + end)]);
    // The first and the second overlap; another priority is another thread at once.
    let other = packet("init -> ping", "ep", 7, &[(CALL, START + 100)]);
    let files = TreeOnDisk::new(&[(
        "2022-8-29 14:3:9/init/ping/ep",
        [one(0, 10), one(5, 12), one(20, 30), one(13, 40), other].concat(),
    )]);
    let trace = files.one("2022-8-29 14:3:9");
    assert_eq!(streams(&trace), ["init/ping/ep", "init/ping/ep-2", "init/ping/ep-3"]);
    let shifted = |stream| {
        let (packets, thread) = times(&trace, stream);
        let times: Vec<u64> = packets.into_iter().flatten().map(|time| time - START).collect();
        (times, thread)
    };
    assert_eq!(shifted(0), (vec![0, 10, 13, 40], "init -> ping: ep".to_owned()));
    assert_eq!(shifted(1), (vec![5, 12, 20, 30], "init -> ping: ep (2)".to_owned()));
    assert_eq!(shifted(2), (vec![100], "init -> ping: ep (3)".to_owned()));
    let told: Vec<&str> = trace.notes().iter().map(|note| note.assumption).collect();
    assert_eq!(told, ["shared-name", "folder-date"]);
    assert!(trace.notes()[0].what.starts_with("init/ping/ep has packets of 3 threads"), "{}", trace.notes()[0].what);
}

/// The recorder continues a clock of 32 bits within a packet; the next one begins below 2^32 again.
#[test]
fn clocks_of_32_bits_go_on() {
    const WRAP: u64 = 1 << 32;
    let files = TreeOnDisk::new(&[(
        "2022-8-29 14:3:9/init/ping/ep",
        [
            of_ping(&[(CALL, WRAP - 20), (RETURNED, WRAP - 10)]),
            of_ping(&[(CALL, WRAP - 5), (RETURNED, WRAP + 5)]),
            of_ping(&[(CALL, 7), (RETURNED, 9)]),
            of_ping(&[(CALL, WRAP - 1)]),
            of_ping(&[(CALL, 3)]),
        ]
        .concat(),
    )]);
    let trace = files.one("2022-8-29 14:3:9");
    assert_eq!(streams(&trace), ["init/ping/ep"]);
    let expected = [vec![WRAP - 20, WRAP - 10], vec![WRAP - 5, WRAP + 5], vec![WRAP + 7, WRAP + 9]];
    let after = [vec![2 * WRAP - 1], vec![2 * WRAP + 3]];
    assert_eq!(times(&trace, 0).0, [&expected[..], &after].concat());
    assert_eq!(trace.notes()[0].assumption, "short-clock");
}

#[test]
fn damaged_packets_are_told_and_the_others_read() {
    let whole = |time: u64| of_ping(&[(CALL, START + time), (RETURNED, START + time + 1)]);
    let mut short = whole(30);
    short.truncate(short.len() - 5);
    let path = "2022-8-29 14:3:9/init/ping/ep";
    let files = TreeOnDisk::new(&[(path, [whole(0), b"garbage".to_vec(), whole(20), short].concat())]);
    let trace = files.one("2022-8-29 14:3:9");
    assert_eq!(times(&trace, 0).0, [vec![START, START + 1], vec![START + 20, START + 21], vec![START + 30]]);
    let size = whole(0).len();
    let expected = [
        format!(
            "init/ping/ep: byte {size}: expected a packet, which begins with 0xC1FC1FC1, found 0x62726167; reading goes \
             on with the packet at byte {}",
            size + 7
        ),
        format!(
            "init/ping/ep: byte {}: the file ends 5 bytes before this packet does; its whole events are read",
            2 * size + 7
        ),
    ];
    assert_eq!(trace.problems(), expected);
    for (bytes, wrong) in [
        (vec![1, 2, 3], "byte 0: expected the head of a packet, found 3 bytes; the rest of the file is not read"),
        (
            [&whole(0)[..33], &[b'x'; 5000]].concat(),
            "byte 0: the names of the component and the thread have no end; the rest",
        ),
        (
            [&whole(0)[..24], &[1, 1, 0, 0], &whole(0)[28..]].concat(),
            "byte 0: a packet with a head of 49 bytes cannot have 257 bits; the rest",
        ),
        (
            [&whole(0)[..4], &[1], &whole(0)[5..]].concat(),
            "byte 0: expected a packet of the data stream class 0, found 1",
        ),
    ] {
        files.write(path, &bytes);
        let found = finder().find(&files.path("2022-8-29 14:3:9"));
        let told = match &found {
            Ok(found) => found[0].problems().to_vec(),
            Err(error) => vec![error.to_string()],
        };
        assert!(told[0].contains(wrong), "{told:?}");
    }
}

/// Damage and doubts elsewhere in a tree are not those of the part that the user names.
#[test]
fn a_part_of_a_tree_tells_of_itself_alone() {
    let files = two_components();
    let one = |begin: u64| of_ping(&[(CALL, START + begin), (RETURNED, START + begin + 5)]);
    files.write("t/2022-8-29 14:3:9/init/ping/ep", &[one(0), one(2), vec![1, 2, 3]].concat());
    let told = |name: &str| {
        let trace = files.one(&format!("t/2022-8-29 14:3:9/{name}"));
        (trace.problems().len(), trace.notes().iter().map(|note| note.assumption).collect::<Vec<_>>())
    };
    assert_eq!(told("init"), (1, vec!["shared-name", "folder-date"]));
    assert_eq!(told("init/pong"), (0, vec!["folder-date"]));
}

#[test]
fn a_tree_in_an_archive_is_one_trace() {
    let files = two_components();
    files.write("t/2022-8-29 14:3:9/init/ping.pcapng", &capture(1_661_781_790));
    let mut archive = tar::Builder::new(fs::File::create(files.path("all.tar")).unwrap());
    archive.append_dir_all("", files.path("t")).unwrap();
    archive.finish().unwrap();
    let (on_disk, packed) = (files.find("t"), files.find("all.tar"));
    assert_eq!(packed.len(), 2);
    for (one, other) in on_disk.iter().zip(&packed) {
        assert_eq!((text(one), streams(one)), (text(other), streams(other)));
        for stream in 0..streams(one).len() {
            assert_eq!(bytes(one, stream), bytes(other, stream));
        }
    }
    assert_eq!(packed[0].below(), Path::new("2022-8-29 14:3:9"));
}

proptest! {
    /// Any bytes in place of others: all events before, or a reason, and no panic.
    #[test]
    fn damage_is_no_panic(at in 0_usize..200, with in prop::collection::vec(any::<u8>(), 1..8)) {
        let good = [of_ping(&[(CALL, START), (RETURNED, START + 1)]), of_ping(&[(CALL, START + 5)])].concat();
        let mut bytes = good.clone();
        let at = at % bytes.len();
        let end = (at + with.len()).min(bytes.len());
        bytes[at..end].copy_from_slice(&with[..end - at]);
        let files = TreeOnDisk::new(&[("2022-8-29 14:3:9/a/ep", bytes)]);
        if let Ok(found) = finder().find(&files.path("2022-8-29 14:3:9")) {
            for stream in 0..found[0].streams().len() {
                super::tests::bytes(&found[0], stream);
            }
        }
    }
}

#[test]
fn a_step_back_by_most_of_32_bits_is_a_wrap() {
    let unwrapping = |times: &[(u64, u64)]| {
        let packets: Vec<u8> =
            times.iter().flat_map(|(begin, end)| of_ping(&[(CALL, *begin), (RETURNED, *end)])).collect();
        let files = TreeOnDisk::new(&[("2022-8-29 14:3:9/a/ep", packets)]);
        match files.one("2022-8-29 14:3:9").notes()[0].assumption {
            "short-clock" => Unwrapping::Of32Bits,
            _ => Unwrapping::Never,
        }
    };
    assert_eq!(unwrapping(&[(1 << 31, 0xFFFF_FFF0), (5, 6)]), Unwrapping::Of32Bits);
    assert_eq!(unwrapping(&[(1 << 31, 0x9000_0000), (0x8800_0000, 0x9000_0001)]), Unwrapping::Never, "another thread");
    assert_eq!(unwrapping(&[(1 << 33, (1 << 33) + 5), (5, 6)]), Unwrapping::Never, "a clock of 64 bits");
}

/// A recording whose folder was renamed begins at the component that all others are in; streams that nothing says how to
/// read are told.
#[test]
fn renamed_trees_are_one_trace() {
    let call = |thread: &str| packet("init -> ping", thread, 0, &[(CALL, 5), (RETURNED, 9)]);
    let tree = TreeOnDisk::new(&[
        ("kept/init/ping/ep", call("ep")),
        ("kept/init/timer/ep", call("timeout")),
        ("other/init/ping/ep", call("ep")),
    ]);
    let paths: Vec<_> = tree.find("kept").iter().map(|trace| trace.streams().len()).collect();
    assert_eq!(paths, [2]);
    assert_eq!(tree.find("").len(), 2, "each `init` is of another machine");
    assert_eq!(tree.one("kept/init/ping").streams().len(), 1);
    assert_eq!(tree.one("kept/init").problems(), &[] as &[String]);
    fs::remove_file(tree.path("kept/init/timer/metadata")).unwrap();
    let problems = tree.one("kept").problems().to_vec();
    assert_eq!(problems, ["timer/ep: there is no `metadata` beside it, which says how to read it"]);
}
