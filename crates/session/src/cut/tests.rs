//! A cut of the demo prints the lines that the demo prints in the same span.

use std::path::{Path, PathBuf};

use super::CutOptions;
use crate::open::select::Selection;
use crate::{OpenOptions, PrintOptions, Progress, Session, StampOptions};

const BEGIN_NS: i64 = 1_795_219_372_270_000_000;
const END_NS: i64 = 1_795_219_372_300_000_000;

fn open(path: &Path) -> Session {
    Session::open(&[path.to_owned()], &OpenOptions::default()).unwrap()
}

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo")
}

fn text(session: &Session, begin_ns: Option<i64>, end_ns: Option<i64>) -> String {
    let options = PrintOptions {
        stamp: StampOptions { no_delta: true, ..StampOptions::default() },
        details: crate::DetailsOptions { trace_name: false, stream_name: false },
        begin_ns,
        end_ns,
        ..PrintOptions::default()
    };
    let mut out = Vec::new();
    let printed = session.print(&options, &mut out, &Progress::default()).unwrap();
    assert!(printed.report.is_complete());
    String::from_utf8(out).unwrap()
}

fn cut(options: &CutOptions) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("part");
    let cut = open(&demo()).cut(options, &output, &Progress::default()).unwrap();
    let session = open(&output);
    let text = text(&session, None, None);
    assert_eq!(cut.events, text.lines().count() as u64);
    assert_eq!(crate::check(&[output], &crate::ImportOptions::default(), &Progress::default()), Ok(vec![]));
    text
}

#[test]
fn a_span_prints_as_in_the_original() {
    let expected = text(&open(&demo()), Some(BEGIN_NS), Some(END_NS));
    assert!(expected.lines().count() > 100);
    assert_eq!(cut(&CutOptions { begin_ns: Some(BEGIN_NS), end_ns: Some(END_NS), ..CutOptions::default() }), expected);
}

#[test]
fn a_class_prints_as_in_the_original() {
    let all = text(&open(&demo()), None, None);
    // Between two of the last the clock leaps, so that headers need their longer form.
    for (glob, name) in [("jobs:c*", " jobs:chunk: "), ("jobs:e?d", " jobs:end: "), ("jobs:b*", " jobs:begin: ")] {
        let expected: String = all.split_inclusive('\n').filter(|line| line.contains(name)).collect();
        assert_eq!(
            cut(&CutOptions {
                selection: Selection { events: vec![glob.to_owned()], ..Selection::default() },
                ..CutOptions::default()
            }),
            expected
        );
    }
}

/// The snapshot of the first packet counts losses before it: there is no packet before to compare it with.
#[test]
fn losses_of_the_first_packet_stay_told() {
    use kymo_format::value::Value;
    use kymo_writer::{MetadataSource, TraceWriter, WriterOptions};

    let folder = tempfile::tempdir().unwrap();
    let (lossy, output) = (folder.path().join("lossy"), folder.path().join("part"));
    let demo = open(&demo());
    let (trace, stream) = (&demo.traces[0], &demo.traces[0].streams[0]);
    let cycles = stream.packets.get(0).begin_cycles.unwrap();
    let metadata = MetadataSource::Text(trace.metadata.text.clone());
    let options = WriterOptions { metadata, packet_bytes: u64::MAX, index: true };
    let writer = TraceWriter::create(&lossy, &trace.class, options).unwrap();
    let mut into = writer.stream(stream.class, stream.id, "lossy").unwrap();
    let context = &trace.class.stream_classes[stream.class].packet_context.as_ref().unwrap().kind;
    let kymo_format::FieldKind::Structure(context) = context else { panic!("a context is a structure") };
    into.packet_context(&Value::Structure(vec![Value::Unsigned(0); context.members.len()]));
    into.discarded(3);
    into.empty_packet(cycles).unwrap();
    open(&lossy).cut(&CutOptions::default(), &output, &Progress::default()).unwrap();
    let cut = open(&output);
    let row = cut.traces[0].streams[0].packets.get(0);
    assert_eq!((row.discarded, row.begin_cycles), (Some(3), Some(cycles)));
}

/// The rows of all packets, without the places where they lie.
fn rows(session: &Session) -> Vec<Vec<kymo_scan::PacketRow>> {
    let streams = session.traces.iter().flat_map(|trace| &trace.streams);
    let of_stream = |stream: &kymo_scan::DataStream| {
        stream.packets.iter().map(|row| kymo_scan::PacketRow { offset_bytes: 0, ..row }).collect()
    };
    streams.map(of_stream).collect()
}

/// Without a span and a filter, the packets of the copy say the same as those of the original: times, counters, also where
/// no event is, and where nothing tells which clock the times are of.
#[test]
fn packets_of_a_whole_copy_say_the_same() {
    use crate::made_traces::{METADATA, Random, packet, trace};

    let two_clocks =
        METADATA.replace(" map = clock.c.value;", "").replace("stream {", "clock { name = d; };\nstream {");
    let without_clock =
        METADATA.replace(" map = clock.c.value;", "").replace("clock { name = c; freq = 1000000000; };", "");
    for (number, metadata) in [METADATA, &two_clocks, &without_clock].into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let original = folder.path().join("original");
        std::fs::create_dir(&original).unwrap();
        std::fs::write(original.join("metadata"), metadata).unwrap();
        let mut file = Vec::new();
        packet(&mut file, [100, 900, 3, 17], &[100, 200]);
        packet(&mut file, [1000, 1900, 3, 18], &[1500]);
        packet(&mut file, [2000, 2900, 5, 21], &[]);
        packet(&mut file, [3000, 3900, 5, 22], &[3100, 3900]);
        std::fs::write(original.join("s"), file).unwrap();
        let copy = folder.path().join("copy");
        open(&original).cut(&CutOptions::default(), &copy, &Progress::default()).unwrap();
        assert_eq!(rows(&open(&copy)), rows(&open(&original)), "metadata {number}");
        assert_eq!(std::fs::read(copy.join("s")).unwrap(), std::fs::read(original.join("s")).unwrap());
    }
    let mut random = Random(29);
    for number in (0..30).filter(|number| number % 5 != 4) {
        let folder = tempfile::tempdir().unwrap();
        let (original, copy) = (folder.path().join("original"), folder.path().join("copy"));
        trace(&original, number, &mut random);
        open(&original).cut(&CutOptions::default(), &copy, &Progress::default()).unwrap();
        let in_order = |mut rows: Vec<Vec<kymo_scan::PacketRow>>| {
            rows.retain(|rows| !rows.is_empty());
            rows.iter_mut().flatten().for_each(|row| row.file = 0);
            rows
        };
        assert_eq!(in_order(rows(&open(&copy))), in_order(rows(&open(&original))), "trace {number}");
    }
}

/// A tracer that reserves the times of packets and does not set them: events are found by their own times all the same.
#[test]
fn packets_without_times_hide_no_event() {
    use crate::made_traces::{METADATA, packet};

    for are_set in [[false; 4], [true, false, false, true]] {
        let folder = tempfile::tempdir().unwrap();
        let original = folder.path().join("original");
        std::fs::create_dir(&original).unwrap();
        std::fs::write(original.join("metadata"), METADATA).unwrap();
        let mut file = Vec::new();
        for (number, is_set) in are_set.into_iter().enumerate() {
            let time = 100 * (1 + number as u64);
            let times = if is_set { [time, time + 99] } else { [0, 0] };
            packet(&mut file, [times[0], times[1], 0, number as u64], &[time, time + 50]);
        }
        std::fs::write(original.join("s"), file).unwrap();
        let session = open(&original);
        let all = text(&session, None, None);
        assert_eq!(all.lines().count(), 8, "{are_set:?}");
        for (begin, end, expected) in [(150, 450, 7), (200, 249, 1), (400, 1000, 2), (0, 99, 0)] {
            let between = text(&session, Some(begin), Some(end));
            assert_eq!(between.lines().count(), expected, "{are_set:?} {begin} to {end}");
            let copy = folder.path().join(format!("{begin}-{end}"));
            let options = CutOptions { begin_ns: Some(begin), end_ns: Some(end), ..CutOptions::default() };
            let cut = session.cut(&options, &copy, &Progress::default()).unwrap();
            assert_eq!((cut.events, text(&open(&copy), None, None)), (expected as u64, between), "{are_set:?}");
        }
    }
}

/// Traces of a session stay in folders as they are in; Babeltrace names traces after these folders.
#[test]
fn several_traces_stay_in_their_folders() {
    use crate::made_traces::{METADATA, packet};
    use crate::{PrettyFields, PrettyOptions};

    let folder = tempfile::tempdir().unwrap();
    let (original, output) = (folder.path().join("original"), folder.path().join("part"));
    let folders = ["kernel", "ust/uid/1000/64-bit", "ust/uid/0/64-bit"];
    for (number, name) in (0..).zip(folders) {
        let path = original.join(name);
        std::fs::create_dir_all(&path).unwrap();
        let host = if number == 0 { "env { hostname = \"box\"; };\nclock {" } else { "clock {" };
        std::fs::write(path.join("metadata"), METADATA.replacen("clock {", host, 1)).unwrap();
        let mut file = Vec::new();
        packet(&mut file, [100, 900, 0, 0], &[100 + number]);
        std::fs::write(path.join("stream"), file).unwrap();
    }
    open(&original).cut(&CutOptions::default(), &output, &Progress::default()).unwrap();
    for name in folders {
        assert!(output.join(name).join("metadata").is_file(), "{name}");
    }
    let named = |path: &Path| {
        let fields = PrettyFields { trace: true, hostname: false, ..PrettyOptions::default().fields };
        let options = PrintOptions {
            pretty: PrettyOptions { fields, ..PrettyOptions::default() },
            stamp: StampOptions { cycles: true, no_delta: true, ..StampOptions::default() },
            ..PrintOptions::default()
        };
        let mut out = Vec::new();
        open(path).print(&options, &mut out, &Progress::default()).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().map(|line| line[23..].split(" { ").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(named(&output), ["box/kernele:", "ust/uid/1000/64-bite:", "ust/uid/0/64-bite:"]);
    assert_eq!(named(&output.join("ust/uid")), ["1000/64-bite:", "0/64-bite:"]);
    assert_eq!(named(&output.join("kernel")), ["boxe:"]);
}
