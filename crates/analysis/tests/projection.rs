//! Rows of what was asked for, against all columns of the same events, which are read by other programs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_analysis::bind::{Bindings, StreamClass};
use kymo_analysis::mapping::Mapping;
use kymo_analysis::project::Projector;
use kymo_analysis::roles::{CPU, ROLES, Role, switch, wake};
use kymo_analysis::{EventRows, Needs};
use kymo_decode::Compile;
use kymo_decode::columns::{ColumnReader, Projection, Shape};
use kymo_decode::filter::FilterFacts;
use kymo_ir::Cells;
use kymo_scan::{Content, Cursor, CursorSetup, Events, Item, KeyMaker, NothingKnown, Trace, TraceOptions};
use kymo_source::{BufferPool, Finder};

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
    let folders = Finder::default().find(folder).unwrap();
    let options = TraceOptions { clock_shift_ns: 0, compile };
    folders.into_iter().map(|folder| Trace::open(folder, options, &NothingKnown).unwrap()).collect()
}

fn facts() -> FilterFacts<'static> {
    FilterFacts { clock: None, trace_name: "", suggests: false, instant: &|_| None }
}

/// Calls `see` with each batch of events of a data stream.
fn each_batch(trace: &Trace, number: usize, mut see: impl FnMut(&Events, &[i64])) {
    let stream = &trace.streams[number];
    let setup = CursorSetup {
        decoder: Arc::clone(&trace.decoder),
        files: stream.files.iter().map(|&file| (file, trace.folder.stream(file as usize))).collect(),
        packets: Arc::clone(&stream.packets),
        wanted: stream.packets_for(None, None, None),
        stream: number,
        keys: KeyMaker::new(stream.clock),
        chunk_bytes: 64 << 10,
        marks: false,
        filter: None,
    };
    let mut cursor = Cursor::new(setup, BufferPool::default());
    while let Some(item) = cursor.next_item() {
        let Item::Batch(batch) = item else { panic!("the trace is sound") };
        if let Content::Events(events) = &batch.content {
            see(events, &batch.keys);
        }
        cursor.recycle(batch);
    }
}

/// What the projector finds of switches and wakeups is what stands in all columns of their classes.
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
            (Role::Switch, vec![switch::PREV_TID, switch::NEXT_TID, switch::NEXT_COMM]),
            (Role::Wakeup, vec![wake::WOKEN_TID]),
        ],
        context: vec![CPU],
        extra: vec![],
    };
    let class = StreamClass { decoder: &trace.decoder, stream_class: 0, facts: facts() };
    let bindings = Bindings::new(&[class], &Mapping::built_in(), &needs, &|_, _| true).unwrap();
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
                    let (Shape::Integer { column, .. } | Shape::Text { column, .. }) = shape else {
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
                    if meaning.role == Role::Switch {
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
    let needs =
        Needs { roles, context: vec![0, 1, 2, 3], extra: vec![kymo_filter::Path::parse("event.name").unwrap()] };
    for folder in ["perf-taskset2", "context-switches", "flipping-endianness", "bug446190", "exp"] {
        for trace in traces(&corpus().join("ctf/tracecompass").join(folder), Compile::WhenWorthIt) {
            let class = |stream_class| StreamClass { decoder: &trace.decoder, stream_class, facts: facts() };
            let classes: Vec<StreamClass<'_>> = (0..trace.class.stream_classes.len()).map(class).collect();
            let bindings = Bindings::new(&classes, &Mapping::built_in(), &needs, &|_, _| true).unwrap();
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
