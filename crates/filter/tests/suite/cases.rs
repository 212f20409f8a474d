//! The cases of `tests/filter/`: what an expression means for a class of events, through one function.
//!
//! ```text
//! === fields                     of all cases behind it, until there are others
//! prio: i32
//! state: u8 optional labels RUNNING=0 SLEEPING=1..=3
//! took: u64 unit us              or s, ms, ns, B, 1000/3 ns
//! time: u64 unit ns scaled 1000/3+5
//! comm: text                     or real, text-utf16
//! event.name: constant "switch"
//! msg: compound a structure
//! --- name
//! why: one line
//! filter: the expression
//! event: prio=5 comm="x"         any number of them; other fields are missing
//! expect:
//!   problems, or the predicate, notes, names that are missing, the verdict, and what becomes of each event
//! ```
//!
//! `UPDATE=1` writes what is said into the files. Events are asked of all forms of code that tracers take.

use std::fmt::Write;
use std::fs;
use std::path::{Path as FilePath, PathBuf};

use kymo_filter::{
    Constant, Dimension, FieldResolver, Filter, FilterField, FilterProblem, NamePath, NameStep, PathMeaning, Unit,
    Verdict, nearest,
};
use kymo_ir::Encoding;
use kymo_ir::predicate::{Datum, InputKind};

use crate::forms;

/// The fields of one class, as a case declares them.
#[derive(Clone, Debug, Default)]
struct Class {
    fields: Vec<(String, PathMeaning)>,
}

impl Class {
    fn declare(&mut self, line: &str) {
        let (name, rest) = line.split_once(": ").expect("a declaration is `name: type`");
        let found = self.found(name, rest);
        self.fields.retain(|(known, _)| known != name);
        self.fields.push((name.to_owned(), found));
    }

    fn found(&self, name: &str, rest: &str) -> PathMeaning {
        let (first, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        match first {
            "compound" => return PathMeaning::Compound { what: Box::leak(rest.to_owned().into_boxed_str()) },
            "constant" => return PathMeaning::Constant(constant(rest)),
            _ => {}
        }
        let key = 100 + self.fields.len() as u32;
        let mut field = FilterField {
            key,
            name: name.to_owned(),
            kind: kind(first),
            optional: false,
            labels: Vec::new(),
            unit: None,
            base: 10,
        };
        let mut scale = None;
        let mut words = rest.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "optional" => field.optional = true,
                "unit" => field.unit = Some(unit(words.next().expect("a unit"), &mut words)),
                "scaled" => scale = words.next(),
                "labels" => field.labels = words.by_ref().map(label).collect(),
                other => panic!("{other} in the declaration of {name}"),
            }
        }
        let Some(scale) = scale else { return PathMeaning::Field(field) };
        let (ratio, add) = scale.split_once('+').unwrap_or((scale, "0"));
        let (multiply, divide) = ratio.split_once('/').expect("a ratio");
        let number = |text: &str| text.parse().expect("a number");
        PathMeaning::Scaled {
            field,
            before: 0,
            multiply: number(multiply),
            divide: number(divide),
            add: add.parse().expect("a number"),
        }
    }
}

fn kind(text: &str) -> InputKind {
    match text {
        "real" => InputKind::Real,
        "text" => InputKind::Text(Encoding::Utf8),
        "text-utf16" => InputKind::Text(Encoding::Utf16Le),
        _ => InputKind::Integer { signed: text.starts_with('i'), bits: text[1..].parse().expect("bits") },
    }
}

fn constant(text: &str) -> Constant {
    match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(text) => Constant::Text(text.to_owned()),
        None => text.parse().map_or_else(|_| Constant::Real(text.parse().expect("a number")), Constant::Integer),
    }
}

fn unit<'w>(text: &str, words: &mut impl Iterator<Item = &'w str>) -> Unit {
    let (multiply, dimension) = match text {
        "ns" => (1, Dimension::Time),
        "us" => (1_000, Dimension::Time),
        "ms" => (1_000_000, Dimension::Time),
        "s" => (1_000_000_000, Dimension::Time),
        "B" => (1, Dimension::Size),
        "KiB" => (1024, Dimension::Size),
        ratio => {
            let (multiply, divide) = ratio.split_once('/').expect("a unit is a word or a ratio");
            let base = unit(words.next().expect("a ratio of what"), words);
            let number = |text: &str| text.parse().expect("a number");
            return Unit { multiply: number(multiply), divide: number(divide), ..base };
        }
    };
    Unit { dimension, multiply, divide: 1 }
}

fn label(text: &str) -> (String, Vec<(i128, i128)>) {
    let (name, ranges) = text.split_once('=').expect("a label is `NAME=value`");
    let number = |text: &str| text.parse().expect("a value");
    let range = |range: &str| match range.split_once("..=") {
        Some((lowest, highest)) => (number(lowest), number(highest)),
        None => (number(range), number(range)),
    };
    (name.to_owned(), ranges.split(',').map(range).collect())
}

impl FieldResolver for Class {
    fn find(&self, path: &NamePath) -> PathMeaning {
        let wanted = path.to_string();
        if let Some((_, found)) = self.fields.iter().find(|(name, _)| *name == wanted) {
            return found.clone();
        }
        let NameStep::Name(first) = &path.steps[0] else { panic!("{path} begins without a name") };
        let names = self.fields.iter().map(|(name, _)| name.as_str());
        PathMeaning::Missing { near: nearest(if path.is_global { &wanted } else { first }, names) }
    }

    fn instant(&self, text: &str) -> Option<i64> {
        let (seconds, part) = text.split_once('.').unwrap_or((text, ""));
        let part: i64 = format!("{part:0<9}").parse().ok()?;
        seconds.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part)
    }
}

#[derive(Debug, Default)]
struct Case {
    class: Class,
    /// As they stand in the file, without the expectation.
    lines: Vec<String>,
    filter: String,
    events: Vec<String>,
    expected: String,
}

fn problems(problems: &[FilterProblem], text: &str) -> String {
    problems.iter().map(|problem| problem.render(text)).collect()
}

/// What is said of a case.
fn said(case: &Case) -> String {
    let text = &case.filter;
    let filter = match Filter::parse(text) {
        Ok(filter) => filter,
        Err(refused) => return problems(&refused, text),
    };
    let binding = match filter.bind(&case.class) {
        Ok(binding) => binding,
        Err(refused) => return format!("for this class:\n{}", problems(&refused, text)),
    };
    let mut said = binding.predicate.to_string();
    binding.notes.iter().for_each(|note| said += &note.render(text));
    binding.missing.iter().for_each(|missing| said += &missing.render(text));
    match binding.verdict() {
        Verdict::AlwaysTrue => said += "always\n",
        Verdict::NeverTrue => said += "never\n",
        Verdict::Depends => {}
    }
    for event in &case.events {
        let values = values(event);
        let data: Vec<Datum> = binding.keys.iter().map(|&key| datum(&case.class, key, &values)).collect();
        let keeps = if forms::keeps(&binding.predicate, &data) { "kept" } else { "not kept" };
        let _ = writeln!(said, "{event}: {keeps}");
    }
    said
}

/// `name=value` and `name="text"`, without spaces in them.
fn values(event: &str) -> Vec<(String, String)> {
    let pair = |word: &str| {
        let (name, value) = word.split_once('=').expect("a value is `name=value`");
        (name.to_owned(), value.to_owned())
    };
    event.split_whitespace().map(pair).collect()
}

fn datum(class: &Class, key: u32, values: &[(String, String)]) -> Datum {
    let field = class.fields.iter().find_map(|(name, found)| match found {
        PathMeaning::Field(field) | PathMeaning::Scaled { field, .. } if field.key == key => Some((name, field.kind)),
        _ => None,
    });
    let (name, kind) = field.expect("keys are those of fields");
    let Some((_, value)) = values.iter().find(|(known, _)| known == name) else { return Datum::Missing };
    match kind {
        InputKind::Integer { .. } => Datum::Number(value.parse::<i128>().expect("an integer") as u64),
        InputKind::Real => Datum::Number(value.parse::<f64>().expect("a real").to_bits()),
        InputKind::Text(Encoding::Utf8) => Datum::Text(value.trim_matches('"').as_bytes().into()),
        InputKind::Text(_) => Datum::Text(value.trim_matches('"').encode_utf16().flat_map(u16::to_le_bytes).collect()),
    }
}

fn parse(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut class = Class::default();
    let (mut in_fields, mut in_expected) = (false, false);
    for line in text.lines() {
        if line.starts_with("=== ") || line.starts_with("--- ") {
            in_fields = line.starts_with('=');
            class = if in_fields { Class::default() } else { class };
            in_expected = false;
            cases.push(Case { class: class.clone(), ..Case::default() });
        }
        let case = cases.last_mut().expect("a case begins with its name");
        if in_expected {
            let line = line.strip_prefix("  ").unwrap_or(line);
            case.expected += &format!("{line}\n");
            continue;
        }
        if line == "expect:" {
            in_expected = true;
            continue;
        }
        case.lines.push(line.to_owned());
        match line.split_once(": ") {
            Some(_) if in_fields => class.declare(line),
            Some(("filter", filter)) => filter.clone_into(&mut case.filter),
            Some(("event", event)) => case.events.push(event.to_owned()),
            Some(("field", field)) => case.class.declare(field),
            _ => {}
        }
    }
    cases
}

fn check(file: &FilePath) -> usize {
    let text = fs::read_to_string(file).expect("the file of cases can be read");
    let (mut written, mut count) = (String::new(), 0);
    for case in parse(&text) {
        for line in &case.lines {
            written += &format!("{line}\n");
        }
        if case.lines[0].starts_with('=') {
            continue;
        }
        count += 1;
        let said = said(&case);
        if std::env::var_os("UPDATE").is_none() {
            assert_eq!(case.expected.trim_end(), trimmed(&said), "{} in {}", case.lines[0], file.display());
        }
        written += "expect:\n";
        for line in said.lines() {
            let _ = writeln!(written, "{}", format!("  {line}").trim_end());
        }
    }
    if std::env::var_os("UPDATE").is_some() {
        fs::write(file, written).expect("the file of cases can be written");
    }
    count
}

/// Without spaces at the ends of lines, which editors take away.
fn trimmed(said: &str) -> String {
    said.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_case_means_what_it_says() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/filter");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the folder of cases is there")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    let count: usize = files.iter().map(|file| check(file)).sum();
    println!("{count} cases");
    assert!(count > 0, "there are cases");
}
