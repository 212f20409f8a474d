//! Chunks and snapshots of one session are one trace; other traces stay apart.

use std::fs;
use std::path::{Path, PathBuf};

use kymo_format::uuid_at_a_glance;

use crate::{OpenOptions, PrintOptions, Progress, Report, Session, check};

/// A trace of a session, whose packets name their data stream; `UUID` and `EVENTS` are replaced.
const METADATA: &str = "/* CTF 1.8 */
typealias integer { size = 32; } := u32;
typealias integer { size = 64; } := u64;
clock { name = c; freq = 1000000000; };
trace {
    major = 1; minor = 8; byte_order = le; uuid = \"UUID\";
    packet.header := struct { u32 stream_id; u32 stream_instance_id; };
};
stream {
    id = 0;
    packet.context := struct {
        u64 content_size; u64 packet_size;
        integer { size = 64; map = clock.c.value; } timestamp_begin;
        integer { size = 64; map = clock.c.value; } timestamp_end;
        u64 events_discarded; u64 packet_seq_num;
    };
    event.header := struct { u32 id; integer { size = 64; map = clock.c.value; } timestamp; };
};
event { id = 0; stream_id = 0; name = first; fields := struct { u32 n; }; };
";
const SECOND: &str = "event { id = 1; stream_id = 0; name = second; fields := struct { u32 n; }; };\n";
const UUID: &str = "00010203-0405-0607-0809-0a0b0c0d0e0f";

/// A packet of a stream: sequence number, events discarded, and events (class, time).
fn packet(stream: u32, sequence: u64, discarded: u64, (begin, end): (u64, u64), events: &[(u32, u64)]) -> Vec<u8> {
    let bits = 8 * (56 + 16 * events.len() as u64);
    let mut bytes: Vec<u8> = [0, stream].iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
    bytes.extend([bits, bits, begin, end, discarded, sequence].iter().flat_map(|word| word.to_le_bytes()));
    for (class, time) in events {
        bytes.extend(class.to_le_bytes());
        bytes.extend(time.to_le_bytes());
        bytes.extend((*time as u32).to_le_bytes());
    }
    bytes
}

/// Writes a folder with metadata and streams.
fn folder(path: &Path, uuid: &str, more: &str, streams: &[(&str, &[Vec<u8>])]) {
    fs::create_dir_all(path).unwrap();
    fs::write(path.join("metadata"), METADATA.replace("UUID", uuid) + more).unwrap();
    for (name, packets) in streams {
        fs::write(path.join(name), packets.concat()).unwrap();
    }
}

fn open(paths: &[PathBuf]) -> Session {
    Session::open(paths, &OpenOptions::default()).unwrap()
}

/// The values and names of events, and the losses.
fn printed(session: &Session) -> (Vec<String>, Report) {
    let mut out = Vec::new();
    let printed = session.print(&PrintOptions::default(), &mut out, &Progress::default()).unwrap();
    let lines = String::from_utf8(out).unwrap();
    let short = |line: &str| line.split_once(") ").expect("a time stands before").1.to_owned();
    (lines.lines().map(short).collect(), printed.report)
}

#[test]
fn snapshots_that_overlap_have_each_event_once() {
    let root = tempfile::tempdir().unwrap();
    let common = packet(0, 1, 0, (200, 299), &[(0, 200), (0, 250)]);
    folder(&root.path().join("s1"), UUID, "", &[("c_0", &[packet(0, 0, 0, (100, 199), &[(0, 100)]), common.clone()])]);
    folder(&root.path().join("s2"), UUID, "", &[("c_0", &[common, packet(0, 2, 0, (300, 399), &[(0, 300)])])]);
    let session = open(&[root.path().to_owned()]);
    let expected = ["first: { n = 100 }", "first: { n = 200 }", "first: { n = 250 }", "first: { n = 300 }"];
    assert_eq!(printed(&session), (expected.map(str::to_owned).to_vec(), Report::default()));
    assert_eq!((session.traces.len(), session.traces[0].streams.len()), (1, 1));
    assert_eq!(check(&[root.path().to_owned()], &crate::ImportOptions::default(), &Progress::default()), Ok(vec![]));
    // Each by itself is a trace as before; named one by one, also by their files, or twice, they are one.
    let path = |name: &str| root.path().join(name);
    assert_eq!(printed(&open(&[path("s2")])).0, &expected[1..]);
    for paths in [[path("s1"), path("s2")], [path("s2"), path("s1/c_0")], [root.path().to_owned(), path("s1")]] {
        assert_eq!(printed(&open(&paths)).0, expected, "{paths:?}");
    }
}

#[test]
fn losses_between_chunks_are_told() {
    let root = tempfile::tempdir().unwrap();
    let first = [packet(0, 0, 0, (100, 199), &[(0, 100)]), packet(1, 0, 0, (100, 180), &[(0, 110)])];
    let second = [packet(0, 3, 7, (500, 599), &[(0, 500)])];
    folder(&root.path().join("1"), UUID, "", &[("c_0", &first[..1]), ("c_1", &first[1..])]);
    folder(&root.path().join("2"), UUID, SECOND, &[("c_0", &second)]);
    let session = open(&[root.path().to_owned()]);
    let (lines, report) = printed(&session);
    assert_eq!(lines.len(), 3);
    assert_eq!((report.events_discarded, report.packets_lost, report.discarded_is_lower_bound), (7, 2, false));
    let stream = &session.traces[0].streams[0];
    let (before, row) = (stream.packets.get(0), stream.packets.get(1));
    let loss = stream.counters.lost_packets(Some(&before), &row).unwrap();
    assert_eq!((loss.begin_cycles, loss.end_cycles), (Some(199), Some(500)));
    let rules: Vec<_> = check(&[root.path().to_owned()], &crate::ImportOptions::default(), &Progress::default())
        .unwrap()
        .into_iter()
        .map(|it| it.rule)
        .collect();
    assert_eq!(rules, ["packets-lost", "events-discarded"]);
}

/// Programs start while a session is recorded: a later chunk describes more events, and an earlier one too, if it comes first.
#[test]
fn the_largest_metadata_describes_all_chunks() {
    for (one, two) in [("1", "2"), ("2", "1")] {
        let root = tempfile::tempdir().unwrap();
        folder(&root.path().join(one), UUID, "", &[("c_0", &[packet(0, 0, 0, (100, 199), &[(0, 100)])])]);
        folder(&root.path().join(two), UUID, SECOND, &[("c_0", &[packet(0, 1, 0, (200, 299), &[(1, 200)])])]);
        let session = open(&[root.path().to_owned()]);
        assert_eq!(printed(&session).0, ["first: { n = 100 }", "second: { n = 200 }"]);
        let folder = &session.traces[0].folder;
        assert_eq!((folder.path(), folder.other_paths()), (&*root.path().join(two), &[root.path().join(one)][..]));
    }
}

#[test]
fn traces_that_only_share_a_uuid_stay_apart() {
    let packets = [packet(0, 0, 0, (100, 199), &[(0, 100)])];
    // Another event under the same id; another clock; another environment; another UUID.
    let other_uuid = UUID.replace("0001", "1001");
    let changes: [(&str, &str, &str, &str); 4] = [
        (UUID, "name = first", "name = other", ""),
        (UUID, "freq = 1000000000", "freq = 1000", ""),
        (UUID, "", "", "env { hostname = \"there\"; };"),
        (&other_uuid, "", "", ""),
    ];
    for (uuid, from, to, more) in changes {
        let root = tempfile::tempdir().unwrap();
        folder(&root.path().join("1"), UUID, "", &[("c_0", &packets)]);
        folder(&root.path().join("2"), uuid, more, &[("c_0", &packets)]);
        let file = root.path().join("2/metadata");
        fs::write(&file, fs::read_to_string(&file).unwrap().replace(from, to)).unwrap();
        let session = open(&[root.path().to_owned()]);
        assert_eq!((session.traces.len(), printed(&session).0.len()), (2, 2), "{from}{more}");
    }
    // Streams at the same time are different ones: two machines run the same program, with the UUID that is built into it.
    let root = tempfile::tempdir().unwrap();
    folder(&root.path().join("1"), UUID, "", &[("c_0", &packets)]);
    folder(&root.path().join("2"), UUID, "", &[("c_0", &[packet(0, 0, 0, (150, 250), &[(0, 160)])])]);
    assert_eq!(printed(&open(&[root.path().to_owned()])).0.len(), 2);
}

/// Each chunk may lie in an archive of its own.
#[test]
fn chunks_in_archives() {
    let root = tempfile::tempdir().unwrap();
    for number in 0..2_u32 {
        let time = 100 * u64::from(number);
        let chunk = root.path().join(format!("{number}"));
        folder(&chunk, UUID, "", &[("c_0", &[packet(0, number.into(), 0, (time, time + 99), &[(0, time)])])]);
        let mut tar = std::process::Command::new("tar");
        tar.arg("cf").arg(root.path().join(format!("{number}.tar"))).arg("-C").arg(&chunk).arg(".");
        assert!(tar.status().unwrap().success());
    }
    let session = open(&[root.path().join("0.tar"), root.path().join("1.tar")]);
    assert_eq!((session.traces.len(), session.traces[0].streams.len()), (1, 1));
    assert_eq!(printed(&session).0, ["first: { n = 0 }", "first: { n = 100 }"]);
}

/// A glance finds the same as parsing.
#[test]
fn a_glance_finds_the_uuid() {
    let text = METADATA.replace("UUID", UUID);
    let class = kymo_format::parse(text.as_bytes()).trace_class.unwrap();
    assert_eq!(uuid_at_a_glance(text.as_bytes()), class.uuid);
    let json = kymo_format::write::to_json(&class).unwrap();
    assert_eq!(uuid_at_a_glance(json.as_bytes()), kymo_format::parse(json.as_bytes()).trace_class.unwrap().uuid);
    assert_eq!(uuid_at_a_glance(b"/* uuid = none */"), None);
}
