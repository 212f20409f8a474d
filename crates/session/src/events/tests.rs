//! However events are read as columns, they are those that `print` prints.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_table::arrow::array::{Array, AsArray, RecordBatch};
use kymo_table::arrow::compute::concat_batches;
use kymo_table::arrow::datatypes::{Int32Type, Int64Type, TimestampNanosecondType, UInt32Type, UInt64Type};
use kymo_table::arrow::ipc::reader::FileReader;

use super::{EventsFailure, EventsQuestion};
use crate::made_traces::{Random, trace};
use crate::open::report::Report;
use crate::{
    ExportOptions, FileFormat, Filter, OpenOptions, PrintFormat, PrintOptions, Progress, Selection, Session, Share,
};

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo")
}

fn open(path: &Path, threads: usize, slice_bytes: Option<u64>) -> Arc<Session> {
    let opened = Session::open(&[path.to_owned()], &OpenOptions { threads, ..OpenOptions::default() });
    let mut session = opened.unwrap_or_else(|failure| panic!("{}", failure.render()));
    session.slice_bytes = slice_bytes;
    Arc::new(session)
}

fn columns(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

/// The output of `print` for events `e`: time, cycles, stream, number.
type Row = (Option<i64>, u64, u64, u64);

fn printed(path: &Path, question: &EventsQuestion) -> (Vec<Row>, Report) {
    let options = PrintOptions {
        format: PrintFormat::Json,
        begin_ns: question.begin_ns,
        end_ns: question.end_ns,
        ..PrintOptions::default()
    };
    let mut text = Vec::new();
    let printed = open(path, 1, None).print(&options, &mut text, &Progress::default()).expect("memory takes it");
    let row = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).expect("a line is an object");
        let number = |value: &serde_json::Value| value.as_u64().expect("it is a number");
        let number_of = |name: &str| number(&event[name]);
        (event["time"].as_i64(), number_of("cycles"), number_of("stream"), number(&event["payload"]["n"]))
    };
    (String::from_utf8(text).expect("JSON is UTF-8").lines().map(row).collect(), printed.report)
}

fn rows(batch: &RecordBatch) -> Vec<Row> {
    let column = |name: &str| batch.column_by_name(name).expect("the table has it");
    let times = column("time").as_primitive::<Int64Type>();
    let cycles = column("cycles").as_primitive::<UInt64Type>();
    let streams = column("stream").as_primitive::<UInt32Type>();
    let numbers = column("n").as_primitive::<UInt32Type>();
    let row = |row: usize| {
        let time = times.is_valid(row).then(|| times.value(row));
        (time, cycles.value(row), u64::from(streams.value(row)), u64::from(numbers.value(row)))
    };
    (0..batch.num_rows()).map(row).collect()
}

#[test]
fn random_traces_read_in_any_way_are_what_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(7);
    let (mut sliced, mut refused) = (0, 0);
    for number in 0..400 {
        let path = folder.path().join(format!("trace{number}"));
        trace(&path, number, &mut random);
        let mut question = EventsQuestion { batch_rows: 1 + random.below(3000) as usize, ..EventsQuestion::default() };
        if number % 4 == 3 {
            question.begin_ns = Some(random.below(3000) as i64);
            question.end_ns = Some(random.below(6000) as i64);
        }
        if number % 2 == 0 {
            // One name, or several.
            question.selection.events.push("e".to_owned());
        }
        let (expected, report) = printed(&path, &question);
        let session = open(&path, 3, Some(1 + random.below(3) * random.below(4000)));
        let table = session.events(&question).expect("there are events named e");
        let mut stream = table.stream();
        let streamed: Vec<Row> = stream.by_ref().flat_map(|batch| rows(&batch.expect("it can be read"))).collect();
        assert_eq!(streamed, expected, "trace {number}");
        assert_eq!(stream.report(), &report, "trace {number}");
        let table = session.events(&question).expect("there are events named e");
        let parts = |mut parts: Vec<super::EventPartition>| -> Result<Vec<Row>, EventsFailure> {
            let mut all = Vec::new();
            // In turns, as threads would.
            while !parts.is_empty() {
                let at = all.len() % parts.len();
                match parts[at].next() {
                    Some(batch) => all.push(rows(&batch?)),
                    None => drop(parts.remove(at)),
                }
            }
            let mut all = all.concat();
            all.sort_unstable();
            Ok(all)
        };
        let mut expected_sorted = expected.clone();
        expected_sorted.sort_unstable();
        match parts(table.partitions(3)) {
            Ok(rows) => {
                assert_eq!(rows, expected_sorted, "trace {number}");
                sliced += 1;
            }
            Err(EventsFailure::Unsliceable) => {
                // A second request gets everything in one.
                let again = table.partitions(3);
                assert_eq!(again.len(), 1);
                assert_eq!(parts(again).expect("it needs no slices"), expected_sorted, "trace {number}");
                refused += 1;
            }
            Err(failure) => panic!("trace {number}: {failure}"),
        }
        std::fs::remove_dir_all(&path).unwrap();
    }
    assert!(sliced > 200 && refused > 20, "{sliced} were read in slices, {refused} could not be");
}

#[test]
fn chunks_in_order_are_the_stream() {
    let session = open(&demo(), 2, Some(10_000));
    let table = session.events(&EventsQuestion::default()).unwrap();
    let chunks = table.chunks(4);
    assert!(chunks.len() > 4, "{chunks:?}");
    let together = |batches: &mut dyn Iterator<Item = Result<RecordBatch, EventsFailure>>| {
        let batches: Vec<RecordBatch> = batches.map(|batch| batch.expect("it can be read")).collect();
        concat_batches(table.schema(), &batches).expect("they are of one table")
    };
    let chunked = together(&mut chunks.iter().flat_map(|chunk| table.chunk(chunk)));
    assert_eq!(chunked, together(&mut table.stream()));
    // Elsewhere, the slices come as bytes.
    let elsewhere = open(&demo(), 1, None).events(&EventsQuestion::default()).unwrap();
    let shares = table.shares(4);
    assert_eq!(shares.len(), chunks.len());
    let shared = |share: &Share| elsewhere.share(&Share::decode(&share.encode()).unwrap()).unwrap();
    assert_eq!(chunked, together(&mut shares.iter().flat_map(shared)));
    assert_eq!(chunked.num_rows(), 2400);
}

/// Each name's table against the file that `export` writes, which takes another way.
fn check_exported(path: &Path) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let session = open(path, 2, Some(20_000));
    if session.traces.len() != 1 || session.traces[0].class.stream_classes.len() != 1 {
        return 0;
    }
    let options = ExportOptions {
        output: folder.path().to_owned(),
        format: FileFormat::Arrow,
        selection: Selection::default(),
        begin_ns: None,
        end_ns: None,
        keep_bytes: true,
    };
    let exported = session.export(&options, &Progress::default()).expect("the folder can be written");
    for table in &exported.tables {
        let file = std::fs::File::open(&table.path).unwrap();
        let reader = FileReader::try_new(file, None).unwrap();
        let schema = reader.schema();
        let expected: Vec<RecordBatch> = reader.map(|batch| batch.unwrap()).collect();
        let expected = concat_batches(&schema, &expected).unwrap();
        let classes = &session.traces[0].class.stream_classes[0].event_classes;
        let stem = table.path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut named = classes.iter().filter_map(|class| class.name.clone()).filter(|name| {
            let kept = |character: char| character.is_alphanumeric() || "._-".contains(character);
            name.chars().map(|character| if kept(character) { character } else { '_' }).eq(stem.chars())
        });
        let (Some(name), None) = (named.next(), named.next()) else { continue };
        if name.contains(['*', '?']) {
            continue;
        }
        let selection = Selection { events: vec![name.clone()], ..Selection::default() };
        let question = EventsQuestion { selection, keep_bytes: true, ..EventsQuestion::default() };
        let events = session.events(&question).unwrap();
        let batches: Vec<RecordBatch> = events.stream().map(|batch| batch.unwrap()).collect();
        let batch = concat_batches(events.schema(), &batches).unwrap();
        assert_eq!(batch, expected, "{name} of {}", path.display());
    }
    exported.tables.len()
}

#[test]
fn each_name_is_what_export_writes() {
    assert_eq!(check_exported(&demo()), 4);
    let fallback = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus"));
    let corpus = std::env::var_os("KYMO_CORPUS").map_or_else(fallback, PathBuf::from).join("ctf");
    let Ok(list) = std::fs::read_to_string(corpus.join("expected.tsv")) else {
        println!("CORPUS ABSENT: {} is not there; real traces were not read as columns", corpus.display());
        return;
    };
    let mut tables = 0;
    for line in list.lines().skip(1) {
        let folder = corpus.join(line.split('\t').next().unwrap());
        let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let bytes: u64 = files.map(|file| file.metadata().map_or(0, |file| file.len())).sum();
        let opens = Session::open(std::slice::from_ref(&folder), &OpenOptions::default()).is_ok();
        if bytes < 2 << 20 && opens {
            tables += check_exported(&folder);
        }
    }
    assert!(tables > 300, "only {tables} tables of real traces were compared");
}

#[test]
fn events_of_several_names_have_nulls_where_they_lack_a_field() {
    let session = open(&demo(), 2, Some(10_000));
    let columns = columns(&["name", "time", "cpu_id", "id", "payload.name", "kind_label", "sizes", "ratio"]);
    let question = EventsQuestion { columns: columns.clone(), batch_rows: 100, ..EventsQuestion::default() };
    let table = session.events(&question);
    let table = table.unwrap_or_else(|failure| panic!("{failure}"));
    let found: Vec<&String> = table.schema().fields().iter().map(|field| field.name()).collect();
    assert_eq!(found, columns.iter().flatten().collect::<Vec<_>>());
    let batches: Vec<RecordBatch> = table.stream().map(|batch| batch.unwrap()).collect();
    let all = concat_batches(table.schema(), &batches).unwrap();
    assert_eq!(all.num_rows(), 2400);
    let names = all.column(0).as_dictionary::<Int32Type>();
    let names = names.downcast_dict::<kymo_table::arrow::array::StringArray>().unwrap();
    let times = all.column(1).as_primitive::<TimestampNanosecondType>();
    assert!(times.values().is_sorted());
    let mut next = std::collections::BTreeMap::new();
    for name in ["jobs:submit", "jobs:begin", "jobs:chunk", "jobs:end"] {
        let selection = Selection { events: vec![name.to_owned()], ..Selection::default() };
        let own = session.events(&EventsQuestion { selection, ..EventsQuestion::default() }).unwrap();
        let batches: Vec<RecordBatch> = own.stream().map(|batch| batch.unwrap()).collect();
        next.insert(name, (concat_batches(own.schema(), &batches).unwrap(), 0));
    }
    for (row, name) in names.into_iter().enumerate() {
        let (own, at) = next.get_mut(name.expect("every event has a name")).expect("the demo has four");
        for (field, column) in table.schema().fields().iter().zip(all.columns()).skip(1) {
            // One name's table has no column of names, so that a field can have it.
            match own.column_by_name(field.name().trim_start_matches("payload.")) {
                Some(expected) => {
                    assert_eq!(
                        &column.slice(row, 1),
                        &expected.slice(*at, 1),
                        "{name:?}.{} of row {row}",
                        field.name()
                    );
                }
                None => assert!(column.is_null(row), "{name:?} has no {}", field.name()),
            }
        }
        *at += 1;
    }
}

#[test]
fn what_there_is_not_is_said() {
    let session = open(&demo(), 1, None);
    let asked = |events: &[&str], wanted: &[&str]| {
        let selection =
            Selection { events: events.iter().map(|name| (*name).to_owned()).collect(), ..Selection::default() };
        let question = EventsQuestion { selection, columns: columns(wanted), ..EventsQuestion::default() };
        session.events(&question).map(|_| ()).map_err(|failure| failure.to_string())
    };
    assert_eq!(asked(&["jobs:ende"], &[]), Err("no event has a name like \"jobs:ende\"".to_owned()));
    let mistyped = "no selected event has a column \"cpu_idd\"; did you mean cpu_id?";
    assert_eq!(asked(&["jobs:*"], &["time", "cpu_idd"]), Err(mistyped.to_owned()));
    assert_eq!(asked(&[], &["name", "cpu_id"]), Ok(()));
}

#[test]
fn a_stream_that_is_dropped_ends_its_threads() {
    let session = open(&demo(), 3, Some(2_000));
    let filter = Filter::parse("cpu_id >= 0").expect("it is an expression");
    let selection = Selection { filter: Some(filter), ..Selection::default() };
    let question = EventsQuestion { selection, batch_rows: 10, ..EventsQuestion::default() };
    for taken in [0, 1, 5] {
        let mut stream = session.events(&question).unwrap().stream();
        assert_eq!(stream.by_ref().take(taken).filter(Result::is_ok).count(), taken);
        drop(stream);
    }
    assert_eq!(Arc::strong_count(&session), 1, "nobody reads any more");
}

/// A packet's context has `cpu_id`; so have some events, and then their own counts.
#[test]
fn a_field_that_only_some_events_have_of_their_own() {
    let metadata = "/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
stream {
    packet.context := struct {
        integer { size = 32; align = 8; } content_size;
        integer { size = 32; align = 8; } packet_size;
        integer { size = 8; align = 8; } cpu_id;
    };
    event.header := struct { integer { size = 8; align = 8; } id; };
};
event { name = own; id = 0; fields := struct { integer { size = 16; align = 8; signed = true; } cpu_id; }; };
event { name = none; id = 1; fields := struct { integer { size = 8; align = 8; } other; }; };
";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("metadata"), metadata).unwrap();
    let mut stream = Vec::new();
    for cpu in 0..5_u8 {
        let events: Vec<u8> = (0..3).flat_map(|_| [0, 0xff, 0xff - cpu, 1, 7]).collect();
        let bits = 8 * (9 + events.len() as u32);
        stream.extend([bits, bits].map(u32::to_le_bytes).concat());
        stream.push(cpu);
        stream.extend(events);
    }
    std::fs::write(folder.path().join("stream"), stream).unwrap();
    let session = open(folder.path(), 1, None);
    let rows = |wanted: &[&str]| -> Vec<Vec<String>> {
        let question = EventsQuestion { columns: columns(wanted), ..EventsQuestion::default() };
        let table = session.events(&question).unwrap_or_else(|failure| panic!("{failure}"));
        let batches: Vec<RecordBatch> = table.stream().map(|batch| batch.unwrap()).collect();
        let batch = concat_batches(table.schema(), &batches).unwrap();
        let options = kymo_table::arrow::util::display::FormatOptions::default().with_null("-");
        let shown = |row: usize| {
            let column = |array| kymo_table::arrow::util::display::ArrayFormatter::try_new(array, &options).unwrap();
            batch.columns().iter().map(|array| column(array).value(row).to_string()).collect()
        };
        (0..batch.num_rows()).map(shown).collect()
    };
    let packets = "packet_context.cpu_id";
    let all = rows(&["name", "cpu_id", packets, "other"]);
    assert_eq!(all.len(), 30);
    for (row, cells) in all.iter().enumerate() {
        let cpu = row / 6;
        let own = (i64::from(i16::from_le_bytes([0xff, 0xff - cpu as u8]))).to_string();
        let expected = if row % 2 == 0 {
            ["own".to_owned(), own, cpu.to_string(), "-".to_owned()]
        } else {
            ["none".to_owned(), cpu.to_string(), "-".to_owned(), "7".to_owned()]
        };
        assert_eq!(*cells, expected, "row {row}");
    }
    let column = |at: usize| all.iter().map(|cells| vec![cells[at].clone()]).collect::<Vec<_>>();
    assert_eq!(rows(&["cpu_id"]), column(1));
    assert_eq!(rows(&[packets]), column(2));
    assert_eq!(rows(&["other"]), column(3));
}

/// Fields that are written in base 16 by some events, or all, and in base 10 by others; also inside of others.
const BASES: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 8; align = 8; signed = false; base = hex; } := x8;
typealias integer { size = 8; align = 8; signed = true; base = octal; } := o8;
trace { major = 1; minor = 8; byte_order = le; };
stream { event.header := struct { u8 id; }; };
event { name = "a"; id = 0; fields := struct { x8 _both; x8 _some; u8 plain; o8 few[2]; }; };
event { name = "b"; id = 1; fields := struct { x8 _both; u8 some; struct { x8 one; u8 other; } deep; }; };
"#;

#[test]
fn columns_say_in_which_base_they_are_written_and_for_which_events() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("metadata"), BASES).unwrap();
    std::fs::write(folder.path().join("stream"), [0, 1, 2, 3, 4, 5, 1, 6, 7, 8, 9]).unwrap();
    let table = open(folder.path(), 1, None).events(&EventsQuestion::default()).expect("they have columns");
    let told = |name: &str| table.schema_to_show().field_with_name(name).unwrap().metadata().get("kymo.bases").cloned();
    assert_eq!(told("both").as_deref(), Some(r#"[{"path":[],"base":16,"bits":8}]"#));
    assert_eq!(told("some").as_deref(), Some(r#"[{"path":[],"base":16,"bits":8,"events":["a"]}]"#));
    assert_eq!(told("few").as_deref(), Some(r#"[{"path":[],"base":8,"bits":8}]"#));
    assert_eq!(told("deep").as_deref(), Some(r#"[{"path":["one"],"base":16,"bits":8}]"#));
    assert_eq!(told("plain"), None);
    let batch = table.stream().next().expect("there are events").expect("they can be read");
    assert_eq!((batch.num_rows(), &batch.schema()), (2, table.schema()));
}
