//! Rows of the requested fields, against all columns of the same events, which are read by other
//! programs.
#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use expect_test::expect;
use kymo_analysis::bind::{Bindings, StreamClass};
use kymo_analysis::declared::AnalysisDeclaration;
use kymo_analysis::mapping::RoleMapping;
use kymo_analysis::project::Projector;
use kymo_analysis::roles::{CPU, EventRole, ROLES, switch, wake};
use kymo_analysis::{AnalysisEvent, EventRows, EventValue, FieldSlot, Needs, Wishes};
use kymo_decode::columns::{ColumnReader, ColumnShape, Projection};
use kymo_decode::{Compile, FilterFacts};
use kymo_ir::Cells;
use kymo_scan::{
    BatchContent, BatchEvents, Cursor, CursorItem, CursorSetup, KeyMaker, NothingKnown, StopFlag, Trace, TraceOptions,
};
use kymo_source::{BufferPool, TraceFinder};

fn corpus() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    std::env::var_os("KYMO_CORPUS").map_or_else(beside, PathBuf::from)
}

/// The traces below a folder, or nothing, loudly, where there is none.
fn traces(folder: &Path, compile: Compile) -> Vec<Trace> {
    if !folder.exists() {
        eprintln!("CORPUS ABSENT: {}: not run", folder.display());
        return Vec::new();
    }
    let folders = TraceFinder::default().find(folder).unwrap();
    let options = TraceOptions { clock_shift_ns: 0, compile };
    folders.into_iter().map(|folder| Trace::open(folder, options, &NothingKnown).unwrap()).collect()
}

fn facts() -> FilterFacts<'static> {
    FilterFacts { clock: None, trace_name: "", suggests: false, instant: &|_| None }
}

/// Calls `see` with each batch of events of a data stream.
fn each_batch(trace: &Trace, number: usize, mut see: impl FnMut(&BatchEvents, &[i64])) {
    let stream = &trace.streams[number];
    let setup = CursorSetup {
        decoder: Arc::clone(&trace.decoder),
        files: stream.files.iter().map(|&file| (file, trace.folder.stream(file as usize))).collect(),
        packets: Arc::clone(&stream.packets),
        wanted: stream.packets_for(None, None, None),
        stream: number,
        keys: KeyMaker::new(stream.clock),
        counters: stream.counters,
        chunk_bytes: 64 << 10,
        marks: false,
        filter: None,
        stop: StopFlag::default(),
    };
    let mut cursor = Cursor::new(setup, BufferPool::default());
    while let Some(item) = cursor.next_item() {
        let CursorItem::Batch(batch) = item else { panic!("the trace is sound") };
        if let BatchContent::Events(events) = &batch.content {
            see(events, &batch.keys);
        }
        cursor.recycle(batch);
    }
}

/// The projector finds the same fields of switches and wakeups as all columns of their classes
/// have.
#[test]
fn rows_hold_what_all_columns_hold() {
    for compile in [Compile::Never, Compile::AtOnce] {
        for trace in traces(&corpus().join("ctf/tracecompass/many-threads"), compile) {
            let counts = compare(&trace);
            assert_eq!((counts.switches, counts.wakeups), (28_325, 6_743));
        }
    }
}

#[derive(Default)]
struct Counts {
    switches: u64,
    wakeups: u64,
}

fn compare(trace: &Trace) -> Counts {
    let needs = Needs {
        roles: vec![
            (EventRole::Switch, vec![switch::PREV_TID, switch::NEXT_TID, switch::NEXT_COMM]),
            (EventRole::Wakeup, vec![wake::WOKEN_TID]),
        ],
        context: vec![CPU],
        ..Needs::default()
    };
    let class = StreamClass { decoder: &trace.decoder, stream_class: 0, facts: facts(), selection: None };
    let bindings = Bindings::new(&[class], RoleMapping::built_in(), &needs, &|_, _| true).unwrap();
    let all = ColumnReader::new(Arc::clone(&trace.decoder), 0, Projection::All);
    let (mut rows, mut cells, mut counts) = (EventRows::default(), Cells::default(), Counts::default());
    for stream in 0..trace.streams.len() {
        let mut projector = Projector::new(&bindings, 0);
        each_batch(trace, stream, |events, keys| {
            projector.project(events, keys, &mut rows);
            let window = events.window();
            let mut next = 0;
            for (row, &class) in events.records.classes.iter().enumerate() {
                let class = class as usize;
                if !bindings.streams[0].is_bound(class) {
                    continue;
                }
                let event = rows.event(next, &bindings.classes, window.bytes());
                next += 1;
                assert_eq!(event.time, keys[row]);
                assert_eq!(event.context(CPU), Some(stream as i64));
                all.read(class, window, &events.records.positions[row..=row], &mut events.state(), &mut cells).unwrap();
                let column = |name: &str| {
                    let fields = &all.columns(class).fields;
                    let shape = &fields.iter().find(|field| field.name == name).unwrap().shape;
                    let (ColumnShape::Integer { column, .. } | ColumnShape::Text { column, .. }) = shape else {
                        panic!("{shape:?}")
                    };
                    *column
                };
                let integer = |name: &str| {
                    let column = column(name);
                    let (value, bits) = (cells.value(column, 0), 8 * (8 - cells.width(column)));
                    Some((value << bits).cast_signed() >> bits)
                };
                for meaning in event.roles() {
                    if meaning.role == EventRole::Switch {
                        counts.switches += 1;
                        assert_eq!(meaning.integer(switch::PREV_TID), integer("prev_tid"));
                        assert_eq!(meaning.integer(switch::NEXT_TID), integer("next_tid"));
                        let (first, length) = cells.span(column("next_comm"), 0);
                        assert_eq!(meaning.text(switch::NEXT_COMM), Some(&window.bytes()[first..first + length]));
                        assert_eq!(meaning.integer(switch::PREV_STATE), None, "nobody asked");
                    } else {
                        counts.wakeups += 1;
                        assert_eq!(meaning.integer(wake::WOKEN_TID), integer("tid"));
                    }
                }
            }
            assert_eq!(next, rows.places.len());
        });
        assert_eq!(projector.unreadable(), 0);
    }
    counts
}

/// Every readable trace of the corpus can be bound and projected with everything that there is.
#[test]
fn everything_can_be_asked_of_every_trace() {
    let roles = ROLES.iter().map(|facts| (facts.role, (0..facts.fields.len()).collect())).collect();
    let needs = Needs {
        roles,
        context: vec![0, 1, 2, 3],
        extra: vec![kymo_filter::NamePath::parse("event.name").unwrap()],
        ..Needs::default()
    };
    for folder in ["perf-taskset2", "context-switches", "flipping-endianness", "bug446190", "exp"] {
        for trace in traces(&corpus().join("ctf/tracecompass").join(folder), Compile::WhenWorthIt) {
            let class =
                |stream_class| StreamClass { decoder: &trace.decoder, stream_class, facts: facts(), selection: None };
            let classes: Vec<StreamClass<'_>> = (0..trace.class.stream_classes.len()).map(class).collect();
            let bindings = Bindings::new(&classes, RoleMapping::built_in(), &needs, &|_, _| true).unwrap();
            let mut rows = EventRows::default();
            for (number, stream) in trace.streams.iter().enumerate() {
                let mut projector = Projector::new(&bindings, stream.class);
                each_batch(&trace, number, |events, keys| {
                    projector.project(events, keys, &mut rows);
                    let window = events.window();
                    for row in 0..rows.places.len() {
                        let event = rows.event(row, &bindings.classes, window.bytes());
                        for meaning in event.roles() {
                            for (field, facts) in meaning.role.facts().fields.iter().enumerate() {
                                let is_there = meaning.value(field).is_some();
                                assert!(is_there || !facts.is_required, "{} of {}", facts.name, event.class.name);
                            }
                        }
                    }
                });
                assert_eq!(projector.unreadable(), 0);
            }
        }
    }
}

const METADATA: &str = "/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 8; align = 8; signed = true; } := s8;
trace { major = 1; minor = 8; byte_order = le; };
stream { event.header := struct { u8 id; }; packet.context := struct { u8 core; string thread; }; };
event { id = 0; name = \"phase\"; fields := struct { u8 kind; s8 key; string what; }; };
event { id = 1; name = \"plain\"; fields := struct { u8 count; u8 keys[count]; }; };
event { id = 2; name = \"other\"; fields := struct { u8 key; }; };
";

const MAPPING: &str = "
name = \"test\"
[context]
cpu = \"packet.core\"
comm = \"packet.thread\"
[[begin]]
event = \"phase\"
when = \"kind == 1\"
key = \"key\"
name = \"what\"
[[begin]]
event = \"phase\"
when = \"kind in (2, 3)\"
key = \"what\"
comm = { value = \"somebody\" }
[[end]]
event = \"phase\"
when = \"kind >= 3\"
key = \"key\"
[[begin]]
event = \"plain\"
key = \"keys[1]\"
group = { value = \"plains\" }
";

/// Conditions are asked of events, the first that holds counts; the packet tells some fields; others may be absent.
#[test]
fn conditions_choose_sections() {
    let needs = Needs {
        roles: vec![(EventRole::Begin, vec![0, 1, 2, 3]), (EventRole::End, vec![0])],
        context: vec![0, 1, 2, 3],
        extra: vec![kymo_filter::NamePath::parse("kind").unwrap(), kymo_filter::NamePath::parse("event.id").unwrap()],
        ..Needs::default()
    };
    expect![[r#"
        phase [7 - - main] extra [1 0] begin [-1 one - -]
        phase [7 - - somebody] extra [2 0] begin [two - - -]
        plain [7 - - main] extra [- 1] begin [- - - plains]
        phase [7 - - somebody] extra [3 0] begin [three - - -] end [6 - - -]
        plain [7 - - main] extra [- 1] begin [11 - - plains]
        phase [7 - - main] extra [4 0] end [7 - - -]
    "#]]
    .assert_eq(&projected("sections", &[RoleMapping::parse(MAPPING).unwrap()], &needs));
}

/// Rules of own analyses do not compete: an event matches all with true conditions.
#[test]
fn events_fulfil_all_rules_whose_conditions_hold() {
    let declaration = AnalysisDeclaration::parse(
        "name = 'own'
         [[pairs]]
         name = 'phase'
         begin = { event = 'phase', when = 'kind < 3', key = ['key', 'what'] }
         end = { event = 'pl*', key = ['keys[1]', { value = 'x' }] }
         [[states]]
         name = 'state'
         key = { capture = 1 }
         set = [{ event = 'ph*', when = 'kind != 2', to = { field = 'what' } }, { event = '*', when = 'key == 6' }]",
    )
    .unwrap();
    let mappings = [declaration.mapping(), RoleMapping::parse(MAPPING).unwrap()];
    let needs = declaration.needs(&Wishes { tids: vec![1], comms: vec!["x".to_owned()], ..Wishes::default() });
    expect![[r#"
        phase [- - - main] extra [] rule [1 - -1 one - - - - - -] rule [2 one ase - - - - - - -]
        phase [- - - main] extra [] rule [1 - 5 two - - - - - -]
        plain [- - - main] extra [] rule [0 - - x - - - - - -]
        phase [- - - main] extra [] rule [2 three ase - - - - - - -] rule [3 - phase - - - - - - -]
        plain [- - - main] extra [] rule [0 - 11 x - - - - - -]
        phase [- - - main] extra [] rule [1 - 6 none - - - - - -] rule [2 none ase - - - - - - -] rule [3 - phase - - - - - - -]
        phase [- - - main] extra [] rule [2 four ase - - - - - - -]
    "#]].assert_eq(&projected("rules", &mappings, &needs));
}

/// Events that have the needed fields, with the values that were read.
fn projected(name: &str, mappings: &[RoleMapping], needs: &Needs) -> String {
    let root = std::env::temp_dir().join(format!("kymo-projection-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join("metadata"), METADATA).unwrap();
    let events = [
        &b"\x07main\0"[..],
        b"\x00\x01\xffone\0",
        b"\x00\x02\x05two\0",
        b"\x01\x00",
        b"\x02\x09",
        b"\x00\x03\x06three\0",
        b"\x01\x02\x0a\x0b",
        b"\x00\x00\x06none\0",
        b"\x00\x04\x07four\0",
    ];
    std::fs::write(root.join("stream"), events.concat()).unwrap();
    let traces = traces(&root, Compile::Never);
    let mut shown = String::new();
    let class = StreamClass { decoder: &traces[0].decoder, stream_class: 0, facts: facts(), selection: None };
    let bindings = Bindings::new(&[class], mappings, needs, &|_, _| true).unwrap();
    let mut rows = EventRows::default();
    let mut projector = Projector::new(&bindings, 0);
    each_batch(&traces[0], 0, |events, keys| {
        projector.project(events, keys, &mut rows);
        let window = events.window();
        for row in 0..rows.places.len() {
            shown += &show(rows.event(row, &bindings.classes, window.bytes()));
        }
    });
    std::fs::remove_dir_all(&root).unwrap();
    shown
}

fn show(event: AnalysisEvent<'_>) -> String {
    let value = |value: Option<EventValue<'_>>| match value {
        None => "-".to_owned(),
        Some(EventValue::Integer(value)) => value.to_string(),
        Some(EventValue::Real(value)) => value.to_string(),
        Some(EventValue::Text(text)) => String::from_utf8_lossy(text).into_owned(),
    };
    let of = |slots: &[FieldSlot]| slots.iter().map(|slot| value(event.value(slot))).collect::<Vec<_>>().join(" ");
    let mut line = format!("{} [{}] extra [{}]", event.class.name, of(&event.class.context), of(&event.class.extra));
    for bound in &event.class.roles {
        line += &format!(" {} [{}]", bound.role.name(), of(&bound.slots));
    }
    line + "\n"
}
