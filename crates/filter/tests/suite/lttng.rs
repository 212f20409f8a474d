//! LTTng's language is ours: every expression that LTTng takes is taken, every one that it refuses is refused, and each
//! keeps of LTTng's hundred events as many as LTTng recorded, but for the table of deviations. That events of a real
//! trace get here as they are is the duty of whoever reads traces.
//!
//! The table of LTTng's answers is `filter_conformance.tsv` in the corpus: `KYMO_CORPUS`, else `../shared/corpus` beside
//! the repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use kymo_filter::{FieldResolver, Filter, FilterField, NamePath, PathMeaning};
use kymo_ir::Encoding;
use kymo_ir::predicate::{Datum, InputKind};

use crate::forms;

/// Expression, what is kept or `REJECT`, and the reason.
const DEVIATIONS: &str = include_str!("../../../../tests/filter/lttng-deviations.tsv");

fn corpus() -> PathBuf {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    std::env::var_os("KYMO_CORPUS").map_or_else(beside, PathBuf::from)
}

/// A value of one of LTTng's events.
enum Value {
    Integer { signed: bool, bits: u8, value: u64 },
    Real(f64),
    Text(&'static str),
    Labelled(u64),
    Compound,
}

/// The event's field in the round `number`; the contexts are those that were recorded.
fn value(name: &str, number: u64) -> Option<Value> {
    const WORDS: [&str; 4] = ["hypothecary", "he\"y", "abc*def", "scary"];
    let integer = |signed, bits, value: i64| Value::Integer { signed, bits, value: value as u64 };
    Some(match name {
        "intfield" | "netintfield" => integer(true, 32, number as i64),
        "longfield" => integer(true, 64, number as i64),
        "enumfield" => Value::Labelled(number),
        "u8" => integer(false, 8, 255),
        "s8" => integer(true, 8, -1),
        "u64" => Value::Integer { signed: false, bits: 64, value: u64::MAX },
        "arrfield1[1]" | "seqfield4[1]" | "arru32[1]" => integer(!name.contains("u32"), 64, 2),
        "seqfield4[2]" => integer(true, 64, 3),
        "sequ32[0]" => integer(false, 32, 1),
        "seqfield1[0]" => integer(true, 8, 116),
        "word" => Value::Text(WORDS[number as usize % 4]),
        "stringfield" | "arrfield2" | "seqfield2" => Value::Text("test"),
        "stringfield2" => Value::Text("\\*"),
        "nullstr" => Value::Text("(null)"),
        "doublefield" => Value::Real(2.0),
        "arrfield1" | "seqfield1" => Value::Compound,
        "$ctx.procname" => Value::Text("fp"),
        "$ctx.cpu_id" => integer(true, 32, 0),
        "$ctx.vpid" | "$ctx.vtid" => integer(true, 32, 4321),
        _ => return None,
    })
}

/// LTTng's event. Keys are places among the names that were asked for.
#[derive(Default)]
struct Event(std::cell::RefCell<Vec<String>>);

impl FieldResolver for Event {
    fn find(&self, path: &NamePath) -> PathMeaning {
        let name = path.to_string();
        let (kind, labels) = match value(&name, 0) {
            None => return PathMeaning::Missing { near: Vec::new() },
            Some(Value::Compound) => return PathMeaning::Compound { what: "an array" },
            Some(Value::Integer { signed, bits, .. }) => (InputKind::Integer { signed, bits }, Vec::new()),
            Some(Value::Real(_)) => (InputKind::Real, Vec::new()),
            Some(Value::Text(_)) => (InputKind::Text(Encoding::Utf8), Vec::new()),
            Some(Value::Labelled(_)) => {
                (InputKind::Integer { signed: true, bits: 32 }, vec![("ONE".to_owned(), vec![(1, 1)])])
            }
        };
        let mut names = self.0.borrow_mut();
        let place = names.iter().position(|known| *known == name).unwrap_or(names.len());
        if place == names.len() {
            names.push(name.clone());
        }
        PathMeaning::Field(FilterField { key: place as u32, name, kind, optional: false, labels, unit: None, base: 10 })
    }

    fn instant(&self, _: &str) -> Option<i64> {
        None
    }
}

/// How many of the events are kept. Where the expression cannot be typed it is none.
fn kept(filter: &Filter) -> usize {
    let fields = Event::default();
    let Ok(binding) = filter.bind(&fields) else { return 0 };
    let names = fields.0.borrow();
    let datum = |name: &str, number| match value(name, number) {
        Some(Value::Integer { value, .. } | Value::Labelled(value)) => Datum::Number(value),
        Some(Value::Real(value)) => Datum::Number(value.to_bits()),
        Some(Value::Text(text)) => Datum::Text(text.as_bytes().into()),
        Some(Value::Compound) | None => Datum::Missing,
    };
    let keeps = |number: &u64| {
        let data: Vec<Datum> = binding.keys.iter().map(|&key| datum(&names[key as usize], *number)).collect();
        forms::keeps(&binding.predicate, &data)
    };
    (0..100).filter(keeps).count()
}

/// How many of a hundred events a result says are kept; `None`: the expression is refused.
fn count(result: &str) -> Option<usize> {
    let count = result.strip_prefix("n=")?.split(' ').next()?;
    Some(count.parse().expect("a count"))
}

/// As it stands in the table of deviations.
fn shortened(expression: &str) -> String {
    let characters = expression.chars().count();
    if characters > 150 { format!("{expression:.60}... ({characters} characters)") } else { expression.to_owned() }
}

/// What is wrong with a row: expression, whether LTTng takes it, what it records.
fn check(line: &str, deviations: &mut BTreeMap<&str, &str>) -> Result<(), String> {
    let mut columns = line.split('\t');
    let (Some(expression), Some(_), Some(recorded)) = (columns.next(), columns.next(), columns.next()) else {
        return Err(format!("{line:.200} has too few columns\n"));
    };
    let expected = count(deviations.remove(&*shortened(expression)).unwrap_or(recorded));
    let kept = Filter::parse(&expression.replace("<TAB>", "\t")).ok().map(|filter| kept(&filter));
    if kept == expected { Ok(()) } else { Err(format!("{expression:.200}: {kept:?}, not {expected:?}\n")) }
}

#[test]
fn lttng_and_we_keep_the_same_events() {
    let path = corpus().join("filter_conformance.tsv");
    let Ok(text) = fs::read_to_string(&path) else {
        println!("CORPUS ABSENT: {} not run", path.display());
        return;
    };
    let columns = |line: &'static str| {
        let mut columns = line.split('\t');
        columns.next().zip(columns.next()).expect("a row has columns")
    };
    let mut deviations: BTreeMap<&str, &str> =
        DEVIATIONS.lines().filter(|line| !line.starts_with('#')).map(columns).collect();
    let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let wrong: String = rows.iter().filter_map(|line| check(line, &mut deviations).err()).collect();
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(deviations.is_empty(), "there are no rows for {deviations:?}");
    println!("{} expressions", rows.len());
    assert!(rows.len() > 290, "{} expressions", rows.len());
}
