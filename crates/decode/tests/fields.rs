//! Chosen fields of a small packet, by both engines, as text.

use std::fmt::Write;
use std::sync::Arc;

use kymo_decode::fields::{FieldPlace, FieldReader, FieldValue};
use kymo_decode::{ClockConverter, Compile, Decoder, FilterFacts};
use kymo_filter::NamePath;
use kymo_ir::{Cells, PacketWindow, Records, SLACK, ScanStop};
use kymo_jit::{CompiledRows, JitEngine};

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; } := u8;
typealias integer { size = 8; align = 8; signed = true; } := i8;
typealias integer { size = 16; align = 8; signed = true; } := i16;
typealias integer { size = 32; align = 8; map = clock.c.value; } := stamp;
typealias integer { size = 8; align = 8; encoding = UTF8; } := letter;
trace { major = 1; minor = 8; byte_order = le; };
clock { name = c; freq = 1000000000; offset = 1000; };
stream {
    packet.context := struct { u8 _cpu_id; i8 _delta; string _host; letter _zone[4]; };
    event.header := struct { u8 id; stamp timestamp; };
    event.context := struct { i8 _vtid; };
};
event { name = "exit_open"; id = 0; fields := struct { i16 _ret; }; };
event { name = "exit_read"; id = 1; fields := struct { i16 _ret; u8 _n; string _buf; }; };
event { name = "all"; id = 2; loglevel = 6; fields := struct {
    letter _comm[4]; enum : i8 { RUN = 0, SLEEP = 1 ... 3 } _state; i8 _stack[3]; u8 _len; i16 _list[_len];
    floating_point { exp_dig = 8; mant_dig = 24; align = 8; } _real; string _word;
    enum : u8 { A = 0, B = 1 } _tag; variant <_tag> { i8 A; i16 B; } _v; struct { u8 inner; } _s;
}; };
event { name = "exit_late"; id = 3; fields := struct { u8 _n; i16 _ret; }; };
"#;

/// Class, clock, vtid, payload.
fn record(id: u8, clock: u32, vtid: i8, payload: &[&[u8]]) -> Vec<u8> {
    [&[id][..], &clock.to_le_bytes(), &vtid.to_le_bytes(), &payload.concat()].concat()
}

fn packet() -> Vec<u8> {
    let real = |value: f32| value.to_le_bytes();
    let context = [3, 0xFE].into_iter().chain(*b"server\0utc\0").collect();
    let records = [
        record(0, 10, -1, &[&(-2_i16).to_le_bytes()]),
        record(1, 11, 5, &[&7_i16.to_le_bytes(), b"\x02", b"hi\0"]),
        record(2, 12, 6, &[b"ab\0c", &[0xFF], &[1, 0x80, 3], &[0], &real(1.5), b"w\0", &[0], &[0xF0], &[9]]),
        record(
            2,
            13,
            7,
            &[b"abcd", &[2], &[4, 5, 6], &[2, 1, 0, 0xFF, 0xFF], &real(-2.0), b"\0", &[1], &[0, 0x80], &[8]],
        ),
        record(3, 14, 8, &[&[1], &300_i16.to_le_bytes()]),
    ];
    [context, records.concat()].concat()
}

/// A reader, and the packet's bytes with what stands behind them.
fn open(compile: Compile) -> (Arc<Decoder>, Vec<u8>) {
    let trace = kymo_format::parse(METADATA.as_bytes());
    let trace = trace.trace_class.unwrap_or_else(|| panic!("the metadata are right: {:?}", trace.diagnostics));
    let decoder = Arc::new(Decoder::new(Arc::new(trace), compile).expect("they can be decoded"));
    (decoder, [packet(), vec![0xAA; SLACK]].concat())
}

fn facts(clock: Option<ClockConverter>) -> FilterFacts<'static> {
    FilterFacts { clock, trace_name: "here", suggests: true, instant: &|_| None }
}

fn paths(names: &[&str]) -> Vec<NamePath> {
    names
        .iter()
        .map(|name| NamePath::parse(name).unwrap_or_else(|problem| panic!("{}", problem.render(name))))
        .collect()
}

/// One line a name: what is found under it in the events of a class, by both engines.
fn check(class: usize, names: &[&str], expected: &str) {
    for compile in [Compile::Never, Compile::AtOnce] {
        assert_eq!(shown(class, names, compile), expected, "{compile:?}");
    }
}

fn shown(class: usize, names: &[&str], compile: Compile) -> String {
    let (decoder, bytes) = open(compile);
    let window = PacketWindow::new(&bytes, 0, 8 * (bytes.len() - SLACK) as u64);
    let mut reader = FieldReader::new(&decoder, 0);
    let clock = ClockConverter::new(&decoder.trace_class().clock_classes[0], 0);
    let fields = reader.ask(class, &paths(names), &facts(Some(clock))).expect("it can be decoded").to_vec();
    let head = decoder.head(window, 0).expect("the head is right");
    let mut state = decoder.state(&head, 0);
    let (mut position, mut records) = (head.body_start, Records::default());
    let stop = decoder.scan(0, window, &mut position, &mut state, &mut records, 100);
    assert_eq!((stop, records.len()), (ScanStop::End, 5));
    let rows = (0..records.len()).filter(|&row| records.classes[row] as usize == class);
    let positions: Vec<u64> = rows.map(|row| records.positions[row]).collect();
    let mut cells = Cells::default();
    reader.read(class, window, &positions, &mut state, &mut cells).expect("it can be read");
    let engine = JitEngine::new().filter(|_| compile == Compile::AtOnce);
    let left =
        engine.is_some_and(|engine| reader.program(class).is_some_and(|it| CompiledRows::new(&engine, it).is_none()));
    assert!(!left, "the program is left to the evaluator");
    let of_packet = reader.packet(&head, window);
    let mut shown = String::new();
    for (name, field) in names.iter().zip(fields) {
        let _ = match &field.place {
            FieldPlace::Column { column, kind, optional } => {
                assert_eq!(cells.validity(*column).is_some(), *optional);
                let values = (0..positions.len()).map(|row| FieldValue::of_row(&cells, *column, row, *kind, window));
                writeln!(shown, "{name}: column {column} {}", values.map(value).collect::<Vec<_>>().join(", "))
            }
            FieldPlace::Packet { index, .. } => {
                writeln!(shown, "{name}: packet {index} {}", value(of_packet[*index].clone()))
            }
            FieldPlace::Constant(constant) => writeln!(shown, "{name}: {constant:?}"),
            FieldPlace::Missing { near } => writeln!(shown, "{name}: missing, near {near:?}"),
            FieldPlace::Compound(what) => writeln!(shown, "{name}: {what}"),
            FieldPlace::Cycles => writeln!(shown, "{name}: cycles"),
            FieldPlace::Time => writeln!(shown, "{name}: time"),
        };
        if !field.labels.is_empty() {
            let _ = writeln!(shown, "  {:?}", field.labels);
        }
    }
    shown
}

fn value(value: Option<FieldValue>) -> String {
    match value {
        None => "none".to_owned(),
        Some(FieldValue::Integer(value)) => value.to_string(),
        Some(FieldValue::Real(value)) => format!("{value:?}"),
        Some(FieldValue::Text(text)) => format!("{:?}", String::from_utf8_lossy(&text)),
    }
}

#[test]
fn numbers_keep_their_sign_and_texts_end_at_their_zero() {
    check(
        2,
        &["comm", "state", "real", "word", "s.inner", "$ctx.vtid"],
        "comm: column 0 \"ab\", \"abcd\"
state: column 1 -1, 2
  [(\"RUN\", [(0, 0)]), (\"SLEEP\", [(1, 3)])]
real: column 2 1.5, -2.0
word: column 3 \"w\", \"\"
s.inner: column 4 9, 8
$ctx.vtid: column 5 6, 7
",
    );
}

#[test]
fn what_may_be_absent_is_null() {
    check(
        2,
        &["stack[1]", "list[0]", "list[1]", "list[2]", "v", "v.A", "v.B", "list", "stack[3]"],
        "stack[1]: column 0 -128, 5
list[0]: column 1 none, 1
list[1]: column 2 none, -1
list[2]: column 3 none, none
v: column 4 -16, -32768
v.A: column 5 -16, none
v.B: column 6 none, -32768
list: an array
stack[3]: missing, near []
",
    );
}

/// Texts of packets, too, which filters cannot always ask for.
#[test]
fn what_is_the_same_for_a_packet_is_read_once() {
    check(
        0,
        &["cpu_id", "packet.delta", "packet.host", "zone", "packet.cpu_id", "stream.id"],
        "cpu_id: packet 0 3
packet.delta: packet 1 -2
packet.host: packet 2 \"server\"
zone: packet 3 \"utc\"
packet.cpu_id: packet 0 3
stream.id: packet 4 none
",
    );
}

#[test]
fn what_is_known_before_needs_no_program() {
    check(
        2,
        &[
            "event.name",
            "event.log_level",
            "trace.name",
            "time",
            "cycles",
            "wrod",
            "comm",
            "payload.comm",
            "$payload.comm",
        ],
        "event.name: Text(\"all\")
event.log_level: Integer(6)
trace.name: Text(\"here\")
time: time
cycles: cycles
wrod: missing, near [\"word\"]
comm: column 0 \"ab\", \"abcd\"
payload.comm: missing, near []
$payload.comm: column 0 \"ab\", \"abcd\"
",
    );
    let (decoder, _) = open(Compile::Never);
    let mut reader = FieldReader::new(&decoder, 0);
    let asked = reader.ask(0, &paths(&["event.name", "cpu_id", "cycles", "time"]), &facts(None)).expect("it can be");
    assert_eq!(asked[3].place, FieldPlace::Missing { near: Vec::new() }, "there is no clock to tell the time by");
    assert!(!reader.reads(0) && reader.programs() == 0);
}

/// Each of these programs is compiled once: classes that differ only behind what is wanted share it.
#[test]
fn classes_share_programs() {
    let (decoder, _) = open(Compile::Never);
    let mut reader = FieldReader::new(&decoder, 0);
    for class in [0, 1, 3] {
        reader.ask(class, &paths(&["ret", "vtid"]), &facts(None)).expect("it can be decoded");
    }
    let program = |class| reader.program(class).expect("it has columns");
    assert!(Arc::ptr_eq(program(0), program(1)));
    assert_ne!(program(0), program(3));
    assert_eq!(reader.programs(), 2);
}

#[test]
fn places_stay_when_more_is_asked_for() {
    let (decoder, _) = open(Compile::Never);
    let mut reader = FieldReader::new(&decoder, 0);
    let first = reader.ask(1, &paths(&["buf", "host"]), &facts(None)).expect("it can be decoded").to_vec();
    let second = reader.ask(1, &paths(&["ret", "host", "buf", "buf"]), &facts(None)).expect("it can be").to_vec();
    assert_eq!((&second[1], &second[2], &second[3]), (&first[1], &first[0], &first[0]));
    assert!(matches!(second[0].place, FieldPlace::Column { column: 1, .. }), "{second:?}");
    assert_eq!(reader.fields(1), [first, second].concat());
}
