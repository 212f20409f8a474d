//! Traces with packets without times, and clocks with different origins.

use super::*;
use crate::made_traces::{METADATA, packet};

/// The demo, with packets that lack some of their times: these have other field names.
fn lacking(folder: &Path, fields: &[&str]) -> PathBuf {
    let trace = folder.join("trace");
    std::fs::create_dir(&trace).unwrap();
    for entry in std::fs::read_dir(demo()).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
        let mut bytes = std::fs::read(entry.path()).unwrap();
        for field in fields.iter().filter(|_| entry.file_name() == "metadata") {
            let declared = format!("uint64_clock_monotonic_t {field}");
            let other = format!("{:<24} T{}", "uint64_t", &field[1..]);
            let at = bytes.windows(declared.len()).position(|found| found == declared.as_bytes()).unwrap();
            bytes[at..at + other.len()].copy_from_slice(other.as_bytes());
        }
        std::fs::write(trace.join(entry.file_name()), bytes).unwrap();
    }
    trace
}

#[test]
fn packets_without_times_have_those_of_their_events() {
    for fields in [&["timestamp_begin", "timestamp_end"][..], &["timestamp_begin"], &["timestamp_end"]] {
        let folder = tempfile::tempdir().unwrap();
        let trace = lacking(folder.path(), fields);
        let session = Session::open(std::slice::from_ref(&trace), &OpenOptions::default()).unwrap();
        assert!(session.streams().iter().any(|(_, stream)| {
            !stream.packets.iter().all(|row| row.begin_cycles.is_some() && row.end_cycles.is_some())
        }));
        let (many, one) = (built(&trace, Some(1), None), built(&trace, None, None));
        agree_at_every_level(&many, &one);
        let (status, of_demo) = (many.status(), built(&demo(), None, None).status());
        assert_eq!(status.events, of_demo.events);
        assert!(of_demo.begin_ns <= status.begin_ns && status.end_ns <= of_demo.end_ns, "{status:?} {of_demo:?}");
    }
}

/// A stream file of events alone, with or without a UUID of its clock.
fn without_packets(path: &Path, clock: &str, times: &[u64]) {
    let header = "integer { size = 64; align = 8; map = clock.c.value; } timestamp;";
    let metadata = format!(
        "/* CTF 1.8 */ trace {{ major = 1; minor = 8; byte_order = le; }}; clock {{ name = c; freq = 1000000000; {clock} }};
         stream {{ event.header := struct {{ {header} }}; }};
         event {{ name = e; fields := struct {{ integer {{ size = 32; align = 8; }} n; }}; }};"
    );
    // A number of that name has a clock even if nothing says so.
    let none = || metadata.replace("map = clock.c.value; } timestamp", "} number").replace("none", "");
    let metadata = if clock == "none" { none() } else { metadata };
    std::fs::create_dir_all(path).unwrap();
    std::fs::write(path.join("metadata"), metadata).unwrap();
    let event = |(number, time): (usize, &u64)| [&time.to_le_bytes()[..], &(number as u32).to_le_bytes()].concat();
    std::fs::write(path.join("stream"), times.iter().enumerate().map(event).collect::<Vec<_>>().concat()).unwrap();
}

#[test]
fn streams_without_packets_have_a_time() {
    let folder = tempfile::tempdir().unwrap();
    without_packets(folder.path(), "", &[500, 700, 700, 20_000]);
    let status = built(folder.path(), None, None).status();
    assert_eq!((status.begin_ns, status.end_ns, status.events), (500, 20_000, Some(4)));
}

#[test]
fn events_without_times_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    without_packets(folder.path(), "none", &[1, 2]);
    let session = Session::open(&[folder.path().to_owned()], &OpenOptions::default()).unwrap();
    let refused = Arc::new(session).timeline(&TimelineOptions::default());
    assert!(matches!(refused, Err(TimelineFailure::NoTimes)));
}

/// Clocks of different origins are drawn over one time all the same, and that is told.
#[test]
fn clocks_that_cannot_be_compared_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let uuid = |digit: &str| {
        let parts = [8, 4, 4, 4, 12].map(|length| digit.repeat(length));
        format!("uuid = \"{}\";", parts.join("-"))
    };
    without_packets(&folder.path().join("one"), &uuid("1"), &[500, 700]);
    without_packets(&folder.path().join("two"), &uuid("2"), &[600, 900]);
    let timeline = built(folder.path(), None, None);
    assert_eq!(timeline.status().events, Some(4));
    assert_eq!(timeline.findings().iter().map(|found| found.rule).collect::<Vec<_>>(), ["clock-origins"]);
}

/// Packets may begin long before their first event, and end long after their last one: nothing is to be seen there.
#[test]
fn a_timeline_goes_from_the_first_event_or_loss_to_the_last_one() {
    let of = |packets: &[([u64; 4], &[u64])]| {
        let folder = tempfile::tempdir().unwrap();
        let mut file = Vec::new();
        packets.iter().for_each(|(context, times)| packet(&mut file, *context, times));
        std::fs::write(folder.path().join("metadata"), METADATA).unwrap();
        std::fs::write(folder.path().join("stream"), file).unwrap();
        let [many, one] = [Some(1), None].map(|slice_bytes| {
            let timeline = built(folder.path(), slice_bytes, None);
            let status = timeline.status();
            assert_eq!(status.state, TimelineState::Complete);
            assert!(timeline.chunks.iter().all(|chunk| chunk.span.0 < chunk.span.1), "{:?}", timeline.chunks);
            (status.begin_ns, status.end_ns, status.events)
        });
        assert_eq!(many, one);
        many
    };
    let late = [([0, 1000, 0, 0], &[][..]), ([1000, 9000, 0, 1], &[5000, 6000]), ([9000, 20_000, 0, 2], &[])];
    assert_eq!(of(&late), (5000, 6000, Some(2)));
    assert_eq!(of(&late[1..2]), (5000, 6000, Some(2)));
    let lost = [
        ([0, 1000, 0, 0], &[][..]),
        ([1000, 2000, 7, 1], &[]),
        ([2000, 9000, 7, 2], &[5000]),
        ([9000, 9500, 7, 3], &[]),
        ([9500, 9900, 9, 4], &[]),
    ];
    assert_eq!(of(&lost), (1000, 9900, Some(1)));
    // Without any event, packets are all that there is.
    assert_eq!(of(&late[..1]), (0, 1000, Some(0)));
}
