//! `kymo sql` from the outside: formats, files, several queries, and what is wrong.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::program;

fn demo() -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo");
    path.to_str().expect("the path is text").to_owned()
}

fn sql(arguments: &[&str]) -> Output {
    program::kymo().arg("sql").arg(demo()).args(arguments).output().expect("the program is there")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a query that nothing is wrong with answers.
fn answered(arguments: &[&str]) -> String {
    let done = sql(arguments);
    assert_eq!((done.status.code(), text(&done.stderr)), (Some(0), String::new()), "{arguments:?}");
    text(&done.stdout)
}

#[test]
fn answers_in_all_formats() {
    let query = "select name, count(*) as events from events group by name order by 2 desc, 1";
    let table =
        "name         events\njobs:chunk     1200\njobs:begin      400\njobs:end        400\njobs:submit     400\n";
    assert_eq!(answered(&[query]), table);
    let csv = "name,events\njobs:chunk,1200\njobs:begin,400\njobs:end,400\njobs:submit,400\n";
    assert_eq!(answered(&[query, "--csv"]), csv);
    assert_eq!(answered(&[query, "--format", "csv"]), csv);
    let json = answered(&[query, "--json"]);
    assert_eq!(json.lines().next(), Some("{\"name\":\"jobs:chunk\",\"events\":1200}"));
    // Columns that CSV has no word for are texts; nothing is nothing.
    let map = answered(&["select fields from events order by time limit 1", "--csv"]);
    assert!(map.contains("queue_depth") && map.lines().count() == 2, "{map}");
    assert_eq!(answered(&["select 1 as a where 1 = 2", "--csv"]), "a\n");
    assert_eq!(answered(&["select 1 as a where 1 = 2"]), "a\n");
}

#[test]
fn files_can_be_read_again() {
    let folder = tempfile::tempdir().expect("there is room");
    for name in ["a.parquet", "a.arrow", "a.csv", "a.json"] {
        let path = folder.path().join(name);
        answered(&["select * from \"jobs:submit\"", "--output", path.to_str().expect("it is text")]);
        let bytes = std::fs::read(&path).expect("it was written");
        let begins: &[u8] = match name {
            "a.parquet" => b"PAR1",
            "a.arrow" => b"ARROW1",
            "a.csv" => b"time,cycles,stream,",
            _ => b"{\"time\":\"",
        };
        assert!(bytes.starts_with(begins), "{name}: {:?}", &bytes[..20]);
        if name.ends_with("csv") || name.ends_with("json") {
            assert_eq!(text(&bytes).lines().count(), 400 + usize::from(name == "a.csv"));
        }
    }
    let stream = sql(&["select cycles from events", "--format", "arrow"]).stdout;
    assert_eq!(&stream[..4], [0xff; 4], "a stream of messages");
}

/// A name that says no format is wrong before anything is written.
#[test]
fn a_name_says_the_format_or_is_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = |name: &str| folder.path().join(name).to_str().expect("it is text").to_owned();
    let done = sql(&["select 1 as a", "--output", &path("a.foo")]);
    assert_eq!(done.status.code(), Some(2), "{done:?}");
    for word in ["a.foo", ".csv", ".json", ".parquet", ".arrow", "--format"] {
        assert!(text(&done.stderr).contains(word), "{word}: {}", text(&done.stderr));
    }
    assert!(!folder.path().join("a.foo").exists());
    answered(&["select 1 as a", "--output", &path("a.foo"), "--csv"]);
    answered(&["select 1 as a", "--output", &path("a")]);
    answered(&["select 1 as a", "--output", &path("a.txt")]);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("it was written");
    assert_eq!([read("a.foo"), read("a"), read("a.txt")], ["a\n1\n"; 3]);
}

#[test]
fn several_queries_come_from_standard_input() {
    let mut child = program::kymo()
        .args(["sql", &demo(), "--csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program is there");
    let queries = b"create view late as select * from \"jobs:end\" where result < 0; -- for the next\n\
                    select count(*) > 0 as some from late;\nselect 2 as b";
    child.stdin.take().expect("it was asked for").write_all(queries).expect("it reads");
    let done = child.wait_with_output().expect("it ends");
    assert_eq!(text(&done.stdout), "some\ntrue\nb\n2\n", "{done:?}");
}

#[test]
fn what_is_wrong_is_shown_where_it_is() {
    let check = |query: &str, expected: &str| {
        let done = sql(&[query]);
        assert_eq!(done.status.code(), Some(2), "{query}");
        assert_eq!(text(&done.stdout), "", "{query}");
        let told = text(&done.stderr);
        assert!(told.starts_with("error: ") && told.contains(expected), "{query}: {told}");
    };
    check("select nam from events", "select nam from events\n           ^^^");
    check("select * from evens", "select * from evens\n                  ^^^^^");
    check("selekt 1", "selekt 1\n    ^^^^^^");
    check("copy events to '/tmp/kymo-sql-test.csv'", "error: ");
    check("insert into events values (1)", "error: ");
}

#[test]
fn explain_says_what_is_not_read() {
    let plan =
        answered(&["explain select time from \"jobs:begin\" where time < '2026-11-21 00:02:52.26' and worker = 1"]);
    for part in ["TraceExec: table=jobs:begin", "worker == 1", "columns=[time]", "skipped", "end=1795219372259999999"] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    assert!(!plan.contains("FilterExec") && !plan.contains("Sort"), "{plan}");
}

#[test]
fn analyses_are_tables() {
    let counts = answered(&["select name, count from counts() order by count desc limit 1", "--csv"]);
    assert_eq!(counts, "name,count\njobs:chunk,1200\n");
    let pairs = answered(&["select count(*) as n from pairs('start=jobs:begin', 'stop=jobs:end', 'key=id')", "--csv"]);
    assert!(pairs.starts_with("n\n") && pairs.trim_end() != "n\n0", "{pairs}");
    let jobs = "'start=jobs:begin', 'stop=jobs:end', 'key=id'";
    let steps = answered(&[&format!("select step, count, offset_max from breakdown('steps', {jobs})"), "--csv"]);
    assert_eq!(steps, "step,count,offset_max\njobs:chunk,1200,103324\njobs:end,400,3186790\n");
    let longest = format!(
        "select key, count(*) as events, sum(latency) as took from breakdown('breakdown', {jobs}) group by key order by took desc limit 1"
    );
    assert_eq!(answered(&[&longest, "--csv"]), "key,events,took\n44,5,3186790\n");
    let done = sql(&["select * from breakdown('start=jobs:begin')"]);
    assert!(text(&done.stderr).contains("breakdown() needs all: "), "{}", text(&done.stderr));
    let done = sql(&["select * from breakdown()"]);
    assert!(text(&done.stderr).contains("capops"), "{}", text(&done.stderr));
    let done = sql(&["select * from cpu()"]);
    assert!(text(&done.stderr).contains("kymo roles"), "{}", text(&done.stderr));
    let done = sql(&["select * from counts('nonsense')"]);
    assert!(text(&done.stderr).contains("nonsense"), "{}", text(&done.stderr));
}

/// Whoever reads our output may have seen enough.
#[cfg(unix)]
#[test]
fn a_reader_that_goes_is_no_error() {
    for format in ["table", "csv", "json", "arrow", "parquet"] {
        let query = "select a.time, b.name from events as a, events as b limit 200000";
        let mut child = program::kymo()
            .args(["sql", &demo(), query, "--format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program is there");
        drop(child.stdout.take());
        let done = child.wait_with_output().expect("it ends");
        assert_eq!((done.status.code(), text(&done.stderr)), (Some(0), String::new()), "{format}");
    }
}
