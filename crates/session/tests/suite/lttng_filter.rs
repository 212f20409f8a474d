//! Events that LTTng itself recorded with a filter, and events that our filter keeps: equal, or
//! listed with a reason.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kymo_session::{Filter, OpenOptions, PrintFormat, PrintOptions, Progress, Selection, Session};

/// Where the traces and tables of the corpus are.
fn corpus() -> Option<PathBuf> {
    let near = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let corpus = std::env::var_os("KYMO_CORPUS").map_or(near, PathBuf::from);
    corpus.join("filter_conformance.tsv").is_file().then_some(corpus)
}

/// Expressions with our result where it differs from LTTng's, and the reason.
fn deviations() -> BTreeMap<String, (String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filter/lttng-deviations.tsv");
    let text = fs::read_to_string(path).expect("the list of deviations is part of the project");
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let row = |line: &str| {
        let [expression, ours, reason] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        (expression.to_owned(), (ours.to_owned(), reason.to_owned()))
    };
    rows.map(row).collect()
}

/// `REJECT`, or how many of the events are kept, and the least and the highest number that one of them has.
fn ours(session: &Session, expression: &str) -> String {
    let Ok(filter) = Filter::parse(expression) else { return "REJECT".to_owned() };
    let selection = Selection { filter: Some(filter), ..Selection::default() };
    let options = PrintOptions { selection, format: PrintFormat::Json, ..PrintOptions::default() };
    let mut out = Vec::new();
    session.print(&options, &mut out, &Progress::default()).expect("memory takes everything");
    let text = String::from_utf8(out).expect("JSON is UTF-8");
    let number = |line: &str| -> i64 {
        let event: serde_json::Value = serde_json::from_str(line).expect("every line is an object");
        event["payload"]["intfield"].as_i64().expect("every event has the field")
    };
    let numbers: Vec<i64> = text.lines().map(number).collect();
    match (numbers.iter().min(), numbers.iter().max()) {
        (Some(lowest), Some(highest)) => format!("n={} intfield {lowest}..{highest}", numbers.len()),
        _ => "n=0".to_owned(),
    }
}

/// The expression as the list has it: long ones are cut.
fn short(expression: &str) -> String {
    let count = expression.chars().count();
    if count <= 120 {
        return expression.to_owned();
    }
    format!("{}... ({count} characters)", expression.chars().take(60).collect::<String>())
}

#[test]
fn filters_keep_what_lttng_records() {
    let Some(corpus) = corpus() else {
        println!("CORPUS ABSENT: filters are not compared with LTTng's");
        return;
    };
    let session = Session::open(&[corpus.join("filter_trace")], &OpenOptions::default()).expect("the trace is sound");
    let deviations = deviations();
    let mut unused: Vec<&String> = deviations.keys().collect();
    let (mut rows, mut equal, mut problems) = (0, 0, Vec::new());
    let table = fs::read_to_string(corpus.join("filter_conformance.tsv")).expect("the table can be read");
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.rsplitn(3, '\t').collect();
        let [result, accepted, expression] = fields[..] else { panic!("{line}") };
        let expression = expression.replace("<TAB>", "\t");
        let theirs = if accepted == "ok" { result } else { "REJECT" };
        let ours = ours(&session, &expression);
        rows += 1;
        let name = short(&expression);
        unused.retain(|known| **known != name);
        match deviations.get(&name) {
            None if ours == theirs => equal += 1,
            None => problems.push(format!("{name}\t{ours}\tLTTng: {theirs}")),
            Some((expected, _)) if ours != *expected => {
                problems.push(format!("{name}\t{ours}\tlisted as {expected}"));
            }
            Some(_) if ours == theirs => problems.push(format!("{name}\tis listed, but equal")),
            Some(_) => {}
        }
    }
    println!("{equal} of {rows} as LTTng, {} listed", rows - equal - problems.len());
    assert!(problems.is_empty(), "{} differ:\n{}", problems.len(), problems.join("\n"));
    assert!(unused.is_empty(), "not in the table: {unused:?}");
}
