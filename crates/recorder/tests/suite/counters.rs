//! Counters of CPUs that were compared: traces tell them, and readers apply them.

use std::path::Path;

use kymo_recorder::program::DrainTiming;
use kymo_recorder::trace::{CtfVersion, OutputOptions};
use kymo_schema::field::{DefinedField, FieldType, IntegerType, ScalarType};
use kymo_session::{AnalysisOptions, Cell, Info, OpenOptions, Progress, Session};
use kymo_skew::{CounterOffset, CpuCounter};
use kymo_units::Uuid;
use kymo_writer::{EnvironmentValue, HEAD_BYTES, RawClock, RawEvent, RawOptions, RawPacket, RawTrace};

use crate::recording::{Recording, Stage, WANTS, check, compare_with_babeltrace, read};

fn counter(cpu: u32, offset_ticks: i64, error_ticks: u64) -> CpuCounter {
    CpuCounter { cpu, offset: Some(CounterOffset { offset_ticks, error_ticks, trip_ticks: 2 * error_ticks }) }
}

fn info(path: &Path) -> Info {
    Session::open(&[path.to_owned()], &OpenOptions::default()).expect("it is a trace").info()
}

/// The findings of `kymo check`.
fn findings(path: &Path) -> Vec<String> {
    let found = kymo_session::check(&[path.to_owned()], &kymo_session::ImportOptions::default(), &Progress::default())
        .expect("it is not canceled");
    found.into_iter().map(|finding| format!("{}: {}", finding.rule, finding.message)).collect()
}

#[test]
fn a_prepared_trace_tells_its_counters_in_both_dialects() {
    for format in [CtfVersion::Ctf18, CtfVersion::Ctf2] {
        let stage = Stage::new();
        let mut running = stage.program(1);
        let path = stage.path("trace");
        let counters = vec![counter(0, 0, 0), counter(1, -7, 30), CpuCounter { cpu: 3, offset: None }];
        let options = OutputOptions { format, counters: counters.clone(), ..OutputOptions::default() };
        let mut recording = Recording::begin(running.open(), &path, options, &WANTS);
        recording.until_done(&mut running, "numbers 10");
        let tally = recording.finish(DrainTiming::Now);
        let (lines, report) = read(&path);
        assert!(report.is_complete(), "{report:?}");
        assert_eq!((tally.events, lines.len() as u64), (10, 10 + tally.own));
        assert_eq!(lines.iter().filter(|line| line.contains(" kymo:cpu_clock: ")).count(), 3);
        check(&path);
        if format == CtfVersion::Ctf18 {
            compare_with_babeltrace(&path, &lines);
        }
        let info = info(&path);
        let told = info.traces[0].counters.as_ref().expect("it was prepared");
        assert_eq!((&told.cpus, told.agree()), (&counters, true));
        let apart_ns = told.apart_ns().expect("two are known");
        assert_eq!(told.words(), format!("of 2 CPUs agree within {apart_ns} ns; CPU 3 did not answer"));
        assert_eq!(apart_ns, (37_u128 * 1_000_000_000).div_ceil(told.frequency_hz.into()) as u64);
    }
}

#[test]
fn every_part_of_a_rotated_trace_tells_its_counters_and_other_traces_none() {
    let stage = Stage::new();
    let mut running = stage.program(1);
    let path = stage.path("trace");
    let counters = vec![counter(0, 0, 0), counter(1, 900, 30)];
    let options = OutputOptions { chunk_bytes: Some(100_000), counters: counters.clone(), ..OutputOptions::default() };
    let mut recording = Recording::begin(running.open(), &path, options, &WANTS);
    recording.until_done(&mut running, "numbers 20000");
    recording.finish(DrainTiming::Now);
    let parts: Vec<_> = std::fs::read_dir(&path).expect("it is there").map(|part| part.expect("it is there")).collect();
    assert!(parts.len() > 1, "{parts:?}");
    for part in parts {
        let info = info(&part.path());
        let told = info.traces[0].counters.as_ref().expect("it was prepared");
        assert_eq!((&told.cpus, told.agree()), (&counters, false));
    }

    let path = stage.path("other");
    let mut recording = Recording::begin(stage.program(1).open(), &path, OutputOptions::default(), &WANTS);
    recording.step(DrainTiming::Now).expect("it is there");
    recording.finish(DrainTiming::Now);
    assert_eq!(info(&path).traces[0].counters, None);
}

/// The clock of the traces below: two ticks a nanosecond.
const FREQUENCY_HZ: u64 = 2_000_000_000;

/// A stream: its CPU or thread, and events, each with name, ticks, and id of the message.
type MessageLane = (u32, &'static [(&'static str, u32, u64)]);

/// A trace with these counters and streams; packets name their CPU, or their thread.
fn write(path: &Path, counters: &[CpuCounter], are_of_cpus: bool, streams: &[MessageLane]) {
    let integer = |name: &str, bytes, is_signed| {
        let kind = FieldType::Scalar(ScalarType::Integer(IntegerType { is_signed, ..IntegerType::unsigned(bytes) }));
        DefinedField { name: name.to_owned(), kind }
    };
    let clock = RawClock {
        name: "counter".to_owned(),
        description: "a counter".to_owned(),
        frequency_hz: FREQUENCY_HZ,
        precision_cycles: 0,
        offset_s: 0,
        offset_cycles: 0,
        is_absolute: true,
    };
    let text = |name: &str, value: &str| (name.to_owned(), EnvironmentValue::Text(value.to_owned()));
    let environment = vec![text("hostname", "host"), text("tracer_name", "kymo")];
    let packet_fields = vec![integer(if are_of_cpus { "cpu_id" } else { "vtid" }, 4, false)];
    let (uuid, format) = (Uuid(*b"0123456789abcdef"), CtfVersion::Ctf18);
    let options = RawOptions { format, uuid, clock, environment, packet_fields, is_private: false };
    let mut trace = RawTrace::create(path, options).expect("there is room");
    let class = trace.stream_class(&[]).expect("there is room");
    let fields = [
        integer("cpu", 8, false),
        DefinedField { name: "known".to_owned(), kind: FieldType::Scalar(ScalarType::Boolean) },
        integer("offset", 8, true),
        integer("error", 8, false),
        integer("trip", 8, false),
    ];
    let names = ["kymo:cpu_clock", "kymo:send", "kymo:receive"];
    for (id, name) in (0..).zip(names) {
        let id_alone = [integer("id", 8, false)];
        let fields: &[DefinedField] = if id == 0 { &fields } else { &id_alone };
        trace.event_class(class, &RawEvent { id, name, level: None, uri: None, fields }).expect("there is room");
    }
    let put = |number: u32, head: u32, events: &[(u16, u32, Vec<u8>)]| {
        let mut bytes = vec![0; HEAD_BYTES];
        bytes.extend(head.to_le_bytes());
        for (id, ticks, fields) in events {
            bytes.extend(id.to_le_bytes());
            bytes.extend(ticks.to_le_bytes());
            bytes.extend(fields);
        }
        let mut stream = trace.stream(&format!("lane_{number}"), class, number.into());
        let [begin, end] = [events.first(), events.last()].map(|event| event.expect("it has events").1.into());
        stream
            .packet(&mut bytes, &RawPacket { begin, end, discarded: 0, missing: 0, padding: 0 })
            .expect("there is room");
        stream.close();
    };
    let told = counters.iter().map(|counter| {
        let offset = counter.offset.unwrap_or_default();
        let mut fields = u64::from(counter.cpu).to_le_bytes().to_vec();
        fields.push(counter.offset.is_some().into());
        fields.extend(offset.offset_ticks.to_le_bytes());
        fields.extend(offset.error_ticks.to_le_bytes());
        fields.extend(offset.trip_ticks.to_le_bytes());
        (0, 100, fields)
    });
    put(0, 0, &told.collect::<Vec<_>>());
    for (number, (head, events)) in (1..).zip(streams) {
        let id = |name: &str| names.iter().position(|known| *known == name).expect("it is one of them") as u16;
        let events: Vec<_> =
            events.iter().map(|(name, ticks, key)| (id(name), *ticks, key.to_le_bytes().to_vec())).collect();
        put(number, *head, &events);
    }
}

/// The seconds and the name of each event but those of the recorder, in their order.
fn times(path: &Path) -> Vec<String> {
    let (lines, report) = read(path);
    assert!(report.is_complete() && report.assumptions.is_empty(), "{report:?}");
    let of_program = lines.iter().filter(|line| !line.contains("kymo:cpu_clock"));
    let parts = of_program.map(|line| {
        let (time, rest) = line.split_once("] ").expect("it has a time");
        let name = rest.split(' ').find(|word| word.starts_with("kymo:")).expect("it has a name");
        format!("{} {}", time.rsplit_once('.').expect("it has nanoseconds").1, name.trim_end_matches(':'))
    });
    parts.collect()
}

/// Of messages: how many arrived, were received first, were sent before the trace, or never received.
fn flows(path: &Path) -> [u64; 4] {
    let session = Session::open(&[path.to_owned()], &OpenOptions::default()).expect("it is a trace");
    let analyses = kymo_session::analyses();
    let flows = analyses.iter().find(|analysis| &*analysis.name == "flows").expect("it is there");
    let found = session.ask(&flows.kind, &AnalysisOptions::default(), &Progress::default()).expect("it has messages");
    let total = &found.answer.tables[0];
    ["count", "early", "sent_before", "never_received"].map(|name| {
        let at = total.columns.iter().position(|column| column.name == name).expect("there is such a column");
        match total.rows[0][at] {
            Cell::Count(count) => count.value,
            ref other => panic!("{name} is {other:?}"),
        }
    })
}

/// CPU 1 is 1000 ticks behind, which is 500 ns: a message to it seems to arrive before it was sent.
const STREAMS: [MessageLane; 2] = [
    (0, &[("kymo:send", 2000, 7), ("kymo:send", 9000, 8)]),
    (1, &[("kymo:receive", 1200, 7), ("kymo:receive", 8400, 8)]),
];

#[test]
fn streams_of_one_cpu_have_the_first_cpus_times() {
    let stage = Stage::new();
    for (behind, found) in [
        (1000, ["000001000", "000001100", "000004500", "000004700"]),
        (
            // Ahead: further away.
            -200,
            ["000000500", "000001000", "000004100", "000004500"],
        ),
    ] {
        let path = stage.path(&format!("trace{behind}"));
        write(&path, &[counter(0, 0, 0), counter(1, behind, 30)], true, &STREAMS);
        let times = times(&path);
        assert_eq!(times.iter().map(|line| &line[..9]).collect::<Vec<_>>(), found, "{times:?}");
        assert_eq!(findings(&path).len(), 1);
    }
    let path = stage.path("trace1000");
    let side = "counters-apart: the counters of 2 CPUs differ by up to 515 ns: CPU 1 is 500 ns behind CPU 0, give or take 15 ns";
    assert_eq!(findings(&path), [side]);
    assert_eq!(flows(&path), [2, 0, 0, 0]);
}

#[test]
fn an_offset_within_its_error_moves_nothing() {
    let stage = Stage::new();
    let path = stage.path("trace");
    // The first one counts of a CPU that is told twice.
    write(&path, &[counter(0, 0, 0), counter(1, 1000, 1000), counter(1, 1000, 10)], true, &STREAMS);
    assert_eq!(times(&path)[0], "000000600 kymo:receive");
    assert!(findings(&path).is_empty());
    // The bound of 1000 ns says that the messages may have come after they were sent.
    assert_eq!(flows(&path), [2, 0, 0, 0]);
}

#[test]
fn streams_of_threads_stay_and_messages_allow_for_the_bound() {
    let stage = Stage::new();
    let path = stage.path("trace");
    write(&path, &[counter(0, 0, 0), counter(1, 1000, 30)], false, &STREAMS);
    assert_eq!(times(&path)[0], "000000600 kymo:receive");
    assert_eq!(findings(&path).len(), 1);
    assert_eq!(flows(&path), [2, 0, 0, 0]);
    // Without the comparison the receives are those of messages that were sent before the trace began.
    let path = stage.path("unknown");
    write(&path, &[counter(0, 0, 0)], false, &STREAMS);
    assert_eq!(flows(&path), [0, 0, 2, 2]);
    assert!(findings(&path).is_empty());
}
