//! Tables that are read back say what `print --format json` says.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::ipc::reader::FileReader;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use kymo_session::{
    ExportOptions, Exported, FileFormat, OpenOptions, PrintFormat, PrintOptions, Progress, Selection, Session,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

fn demo() -> Session {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo");
    Session::open(&[trace], &OpenOptions::default()).unwrap_or_else(|failure| panic!("{}", failure.render()))
}

fn export(format: FileFormat, events: &[&str], folder: &Path) -> Exported {
    let options = ExportOptions {
        output: folder.to_owned(),
        format,
        selection: Selection {
            events: events.iter().map(|event| (*event).to_owned()).collect(),
            ..Selection::default()
        },
        begin_ns: None,
        end_ns: None,
        keep_bytes: false,
    };
    demo().export(&options, &Progress::default()).expect("the folder can be written")
}

fn read(path: &Path) -> Vec<RecordBatch> {
    let file = File::open(path).expect("the file was written");
    if path.extension().is_some_and(|extension| extension == "arrow") {
        return FileReader::try_new(file, None)
            .expect("it is Arrow")
            .map(|batch| batch.expect("it is sound"))
            .collect();
    }
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("it is Parquet").build().expect("it is sound");
    reader.map(|batch| batch.expect("it is sound")).collect()
}

fn json(event: &str) -> Vec<Value> {
    let options = PrintOptions {
        format: PrintFormat::Json,
        selection: Selection { events: vec![event.to_owned()], ..Selection::default() },
        ..PrintOptions::default()
    };
    let mut text = Vec::new();
    demo().print(&options, &mut text, &Progress::default()).expect("memory takes everything");
    let text = String::from_utf8(text).expect("JSON is UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is an object")).collect()
}

/// A JSON value as Arrow shows the same.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => format!("[{}]", values.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Value::Object(labelled) => shown(&labelled["value"]),
        other => other.to_string(),
    }
}

fn same(event: &str, path: &Path) {
    let expected = json(event);
    let mut rows = expected.iter();
    for batch in read(path) {
        for row in 0..batch.num_rows() {
            let expected = rows.next().expect("the table has no more rows");
            let cell = |name: &str| {
                let column = batch.column_by_name(name).unwrap_or_else(|| panic!("{event} has no column {name}"));
                let options = FormatOptions::default();
                let formatter = ArrayFormatter::try_new(column, &options).expect("it can be shown");
                formatter.value(row).to_string()
            };
            assert_eq!(cell("cycles"), shown(&expected["cycles"]));
            assert_eq!(cell("stream"), shown(&expected["stream"]));
            assert_eq!(cell("cpu_id"), shown(&expected["packet_context"]["cpu_id"]));
            assert_eq!(cell("procname"), shown(&expected["common_context"]["procname"]));
            for (name, value) in expected["payload"].as_object().expect("a payload is an object") {
                assert_eq!(cell(name), shown(value), "{event}.{name} of row {row}");
                if let Some(labels) = value.get("labels") {
                    assert_eq!(cell(&format!("{name}_label")), shown(&labels[0]));
                }
            }
        }
    }
    assert_eq!(rows.next(), None, "the table has all rows of {event}");
}

#[test]
fn both_formats_say_what_json_says() {
    let folder = tempfile::tempdir().expect("there is room for files");
    for format in [FileFormat::Arrow, FileFormat::Parquet] {
        let exported = export(format, &[], folder.path());
        assert!(exported.report.is_complete());
        let rows: Vec<u64> = exported.tables.iter().map(|table| table.rows).collect();
        assert_eq!(rows, [1200, 400, 400, 400]);
        for event in ["jobs:submit", "jobs:begin", "jobs:chunk", "jobs:end"] {
            same(event, &folder.path().join(event.replace(':', "_")).with_extension(format.extension()));
        }
    }
}

#[test]
fn only_what_was_asked_for_is_written() {
    let folder = tempfile::tempdir().expect("there is room for files");
    let exported = export(FileFormat::Arrow, &["jobs:e*"], folder.path());
    let names: Vec<PathBuf> = exported.tables.iter().map(|table| table.path.clone()).collect();
    assert_eq!(names, [folder.path().join("jobs_end.arrow")]);
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_with_its_name() {
    let folder = tempfile::tempdir().expect("there is room for files");
    let file = folder.path().join("file");
    std::fs::write(&file, "not a folder").expect("there is room for files");
    let options = ExportOptions {
        output: file.clone(),
        format: FileFormat::Arrow,
        selection: Selection::default(),
        begin_ns: None,
        end_ns: None,
        keep_bytes: false,
    };
    let failure = demo().export(&options, &Progress::default()).expect_err("a file is no folder").to_string();
    assert!(failure.starts_with(&file.display().to_string()), "{failure}");
}

#[test]
fn texts_that_are_not_valid_are_counted_and_their_bytes_kept_on_demand() {
    let folder = tempfile::tempdir().expect("there is room for files");
    let metadata = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };\n\
                    event { name = said; fields := struct { string words; }; };\n";
    let trace = folder.path().join("trace");
    std::fs::create_dir(&trace).expect("there is room for files");
    std::fs::write(trace.join("metadata"), metadata).expect("there is room for files");
    std::fs::write(trace.join("stream"), b"fine\0caf\xE9\0").expect("there is room for files");
    let session = Session::open(&[trace], &OpenOptions::default()).unwrap_or_else(|failure| panic!("{failure:?}"));
    let options = ExportOptions {
        output: folder.path().join("tables"),
        format: FileFormat::Arrow,
        selection: Selection::default(),
        begin_ns: None,
        end_ns: None,
        keep_bytes: true,
    };
    let exported = session.export(&options, &Progress::default()).expect("the folder can be written");
    assert_eq!((exported.tables[0].rows, exported.tables[0].replaced_texts), (2, 1));
    let batch = &read(&exported.tables[0].path)[0];
    let cells = |name: &str| {
        let column = batch.column_by_name(name).expect("the column is there");
        let options = FormatOptions::default().with_null("null");
        let shown = ArrayFormatter::try_new(column, &options).expect("it can be shown");
        [0, 1].map(|row| shown.value(row).to_string())
    };
    assert_eq!(cells("words"), ["fine", "caf\u{FFFD}"]);
    assert_eq!(cells("words_bytes"), ["null", "636166e9"]);
}
