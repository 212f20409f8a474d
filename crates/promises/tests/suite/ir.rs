//! The cases of `tests/ir/`: each by the evaluator and by machine code, through one function.
//!
//! ```text
//! --- name
//! why: one line
//! header: program of the records' headers; without it every record has class 0
//! body: program of the records of class 0; `body 7:` of the class with id 7
//! bytes: 01 FF
//! bits: 13                       where the window ends; without it at the end of the bytes
//! events:
//!   0 at 8, clock 5: text that the body prints
//!   error at bit 16: ...
//!   column 0.1: 7 8 -            class 0, column 1: its cells, spans as first+count
//!   left to the evaluator: rows  what machine code does not do
//! ```
//!
//! A body may print and store: it is run once for the scan without both, once for columns, once for text.
//! `UPDATE=1` writes what the evaluator says into the files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kymo_ir::{CellType, ProgramFault, ReadProgram, Records, ScanStop, text, verify};
use kymo_jit::JitEngine;
use kymo_promises::programs::{EngineFindings, Programs};

#[derive(Debug, Default)]
struct Case {
    name: String,
    header: Option<String>,
    /// By id.
    bodies: Vec<(u64, String)>,
    bytes: Vec<u8>,
    bits: Option<u64>,
    events: Vec<String>,
}

fn parse(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut part = String::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(name) = line.strip_prefix("--- ") {
            cases.push(Case { name: name.to_owned(), ..Case::default() });
            continue;
        }
        let case = cases.last_mut().expect("a case begins with its name");
        let (key, rest) = line.split_once(':').filter(|_| !line.starts_with(' ')).unwrap_or(("", line));
        if !key.is_empty() {
            key.clone_into(&mut part);
        }
        match part.split_once(' ').map_or((part.as_str(), 0), |(part, id)| (part, id.parse().expect("an id"))) {
            ("why", _) => {}
            ("header", _) => *case.header.get_or_insert_default() += &format!("{rest}\n"),
            ("body", id) => {
                if !key.is_empty() {
                    case.bodies.push((id, String::new()));
                }
                case.bodies.last_mut().expect("just pushed").1 += &format!("{rest}\n");
            }
            ("bytes", _) => {
                let byte = |digits| u8::from_str_radix(digits, 16).expect("bytes are two hexadecimal digits");
                case.bytes.extend(rest.split_whitespace().map(byte));
            }
            ("bits", _) => case.bits = Some(rest.trim().parse().expect("bits are a number")),
            ("events", _) => case.events.extend(Some(rest.trim().to_owned()).filter(|line| !line.is_empty())),
            (other, _) => panic!("{}: no part of a case is called {other:?}", case.name),
        }
    }
    cases
}

fn program(source: &str, name: &str) -> ReadProgram {
    text::read(source).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn show(found: &EngineFindings, bodies: &[ReadProgram], left: &[&str]) -> Vec<String> {
    let error = |fault: &ProgramFault| format!("error at bit {}: {}", fault.at, fault.kind);
    let mut lines = Vec::new();
    for (row, text) in found.texts.iter().enumerate() {
        let Records { cycles, classes, positions } = &found.records;
        let text = text.as_ref().map_or_else(error, |text| text.escape_ascii().to_string());
        lines.push(format!("{} at {}, clock {}: {text}", classes[row], positions[row], cycles[row]).trim().to_owned());
    }
    lines.extend(match &found.stop {
        ScanStop::Fault(fault) => Some(error(fault)),
        ScanStop::Full => Some("and more".to_owned()),
        ScanStop::End => None,
    });
    for (class, (cells, fault)) in &found.columns {
        for (number, column) in bodies[*class as usize].columns.iter().enumerate() {
            let number = number as u16;
            let cell = |row: usize| match (cells.validity(number), column.cell) {
                (Some(validity), _) if validity[row] == 0 => "-".to_owned(),
                (_, CellType::Span) => format!("{0}+{1}", cells.span(number, row).0, cells.span(number, row).1),
                _ => cells.value(number, row).to_string(),
            };
            let shown: Vec<String> = (0..cells.rows(column.table)).map(cell).collect();
            lines.push(format!("column {class}.{number}: {}", shown.join(" ")).trim().to_owned());
        }
        lines.extend(fault.as_ref().map(|fault| format!("row {}: {}", fault.row, error(&fault.fault))));
    }
    if !left.is_empty() {
        lines.push(format!("left to the evaluator: {}", left.join(", ")));
    }
    lines
}

/// What the evaluator says about a case; machine code must say the same.
fn run(case: &Case) -> Vec<String> {
    let header = case.header.as_ref().map(|header| program(header, &case.name));
    let bodies: Vec<ReadProgram> = case.bodies.iter().map(|(_, body)| program(body, &case.name)).collect();
    if let Some(error) = bodies.iter().find_map(|program| verify::verify(program).err()) {
        return vec![format!("refused: {error}")];
    }
    let ids = case.bodies.iter().map(|(id, _)| *id);
    let programs = Programs::new(header, ids.zip(&bodies));
    let bits = case.bits.unwrap_or(case.bytes.len() as u64 * 8);
    let (found, left) = programs.same_by_both(&case.bytes, bits);
    show(&found, &bodies, &left)
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir");
    let entries = fs::read_dir(&folder).expect("the cases are part of the repository");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder can be listed").path()).collect();
    files.sort();
    files
}

/// The file with the events that were found.
fn updated(text: &str, found: &BTreeMap<String, Vec<String>>) -> String {
    let mut out = String::new();
    for (number, case) in text.split("--- ").skip(1).enumerate() {
        let name = case.lines().next().unwrap_or_default();
        let head = case.split("\nevents:").next().unwrap_or(case);
        let blank = if number > 0 { "\n" } else { "" };
        out += &format!("{blank}--- {head}\nevents:\n");
        found[name].iter().for_each(|line| out += &format!("  {line}\n"));
    }
    out
}

#[test]
fn every_case_by_both_engines() {
    let no_engine = JitEngine::new().is_none();
    if no_engine {
        println!("NO MACHINE CODE HERE: the evaluator alone is tested");
    }
    let (mut wrong, mut count) = (String::new(), 0);
    for path in files() {
        let text = fs::read_to_string(&path).expect("cases are text");
        let mut all = BTreeMap::new();
        for case in parse(&text) {
            let mut found = run(&case);
            let expected: Vec<&String> = case.events.iter().collect();
            if no_engine {
                found.extend(case.events.iter().find(|line| line.starts_with("left to")).cloned());
            }
            if found.iter().collect::<Vec<_>>() != expected {
                wrong += &format!("--- {}\nfound:    {found:#?}\nexpected: {expected:#?}\n", case.name);
            }
            assert!(all.insert(case.name.clone(), found).is_none(), "two cases are called {}", case.name);
            count += 1;
        }
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, updated(&text, &all)).expect("cases can be written");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    println!("{count} cases");
}
