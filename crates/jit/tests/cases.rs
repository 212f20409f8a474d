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
use std::sync::Arc;

use kymo_ir::{
    Block, Cell, Cells, Fault, Op, Program, Records, RowFault, SLACK, ScanPlan, ScanStop, State, Window, eval, text,
    verify,
};
use kymo_jit::{Engine, Rows, Scan, Text};

const RECORDS_MAX: usize = 100;
const SLOTS: usize = 8;

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

/// The block without operations of some kind, at any depth.
fn without(block: &Block, drop: fn(&Op) -> bool) -> Block {
    let of = |op: &Op| match op.clone() {
        Op::Repeat { count, index, body } => Op::Repeat { count, index, body: without(&body, drop) },
        Op::Switch { on, signed, arms, default } => {
            let arms = arms.into_iter().map(|(ranges, body)| (ranges, without(&body, drop))).collect();
            Op::Switch { on, signed, arms, default: default.map(|body| without(&body, drop)) }
        }
        other => other,
    };
    block.iter().filter(|op| !drop(op)).map(of).collect()
}

fn prints(op: &Op) -> bool {
    matches!(op, Op::Emit(_))
}

fn stores(op: &Op) -> bool {
    matches!(op, Op::Store { .. } | Op::StoreSpan { .. } | Op::StoreList { .. } | Op::Row { .. })
}

/// The three programs of one body.
struct Body {
    scan: Program,
    rows: Arc<Program>,
    text: Program,
}

fn program(source: &str, name: &str) -> Program {
    text::read(source).unwrap_or_else(|error| panic!("{name}: {error}"))
}

impl Body {
    fn new(whole: &Program) -> Self {
        let keep = |drop: fn(&Op) -> bool| Program { body: without(&whole.body, drop), ..whole.clone() };
        let mut scan = keep(|op| prints(op) || stores(op));
        (scan.tables, scan.columns) = (Vec::new(), Vec::new());
        let mut text = keep(stores);
        (text.tables, text.columns) = (Vec::new(), Vec::new());
        Self { scan, rows: Arc::new(keep(prints)), text }
    }
}

fn plan(case: &Case, bodies: &[Body]) -> ScanPlan {
    let header = case.header.as_ref().map_or_else(Program::default, |header| program(header, &case.name));
    let mut ids: Vec<(u64, u32)> = (0..).zip(&case.bodies).map(|(class, (id, _))| (*id, class)).collect();
    ids.sort_unstable();
    ScanPlan {
        only_class: case.header.is_none().then_some(0),
        header,
        ids,
        class_body: (0..bodies.len() as u32).collect(),
        bodies: bodies.iter().map(|body| body.scan.clone()).collect(),
        from_start: false,
    }
}

/// What one engine found.
#[derive(Debug, PartialEq)]
struct Found {
    records: Records,
    stop: ScanStop,
    /// Where the scan stopped, and the clock there.
    behind: (u64, u64),
    texts: Vec<Result<Vec<u8>, Fault>>,
    /// By class.
    columns: BTreeMap<u32, (Cells, Option<RowFault>)>,
}

fn state() -> State {
    State { clock: 0, slots: vec![0; SLOTS] }
}

fn evaluated(plan: &ScanPlan, bodies: &[Body], window: Window<'_>) -> Found {
    let (mut records, mut state_of_scan, mut position) = (Records::default(), state(), 0);
    let stop = eval::scan(plan, window, &mut position, &mut state_of_scan, &mut records, RECORDS_MAX);
    let text = |(&class, &at): (&u32, &u64)| {
        let mut out = Vec::new();
        eval::emit(&bodies[class as usize].text, window, at, &mut state(), &mut out).map(|_| out)
    };
    let texts = records.classes.iter().zip(&records.positions).map(text).collect();
    let columns = by_class(&records, |class, positions| {
        let mut cells = Cells::default();
        let fault = eval::rows(&bodies[class as usize].rows, window, positions, &mut state(), &mut cells).err();
        (cells, fault)
    });
    Found { records, stop, behind: (position, state_of_scan.clock), texts, columns }
}

/// As the evaluator, and what is left to it.
fn compiled(engine: &Engine, plan: &Arc<ScanPlan>, bodies: &[Body], window: Window<'_>) -> (Found, Vec<&'static str>) {
    let mut left = Vec::new();
    let (mut records, mut state_of_scan, mut position) = (Records::default(), state(), 0);
    let stop = match Scan::new(engine, plan, 0) {
        Some(scan) => scan.run(window, &mut position, &mut state_of_scan, &mut records, RECORDS_MAX),
        None => {
            left.push("scan");
            eval::scan(plan, window, &mut position, &mut state_of_scan, &mut records, RECORDS_MAX)
        }
    };
    let texts: Vec<Option<Text>> = bodies.iter().map(|body| Text::new(engine, body.text.clone())).collect();
    let rows: Vec<Option<Rows>> = bodies.iter().map(|body| Rows::new(engine, &body.rows)).collect();
    left.extend(texts.iter().any(Option::is_none).then_some("text"));
    left.extend(rows.iter().any(Option::is_none).then_some("rows"));
    let text = |(&class, &at): (&u32, &u64)| {
        let mut out = Vec::new();
        let done = texts[class as usize].as_ref().is_some_and(|text| text.run(window, at, &mut state(), &mut out));
        if done {
            return Ok(out);
        }
        assert!(out.is_empty(), "text of a record that machine code could not print");
        eval::emit(&bodies[class as usize].text, window, at, &mut state(), &mut out).map(|_| out)
    };
    let texts = records.classes.iter().zip(&records.positions).map(text).collect();
    let columns = by_class(&records, |class, positions| {
        let mut cells = Cells::default();
        let fault = match &rows[class as usize] {
            Some(rows) => rows.run(window, positions, &mut state(), &mut cells),
            None => eval::rows(&bodies[class as usize].rows, window, positions, &mut state(), &mut cells),
        };
        (cells, fault.err())
    });
    (Found { records, stop, behind: (position, state_of_scan.clock), texts, columns }, left)
}

fn by_class<T>(records: &Records, mut run: impl FnMut(u32, &[u64]) -> T) -> BTreeMap<u32, T> {
    let mut positions: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for (&class, &position) in records.classes.iter().zip(&records.positions) {
        positions.entry(class).or_default().push(position);
    }
    positions.into_iter().map(|(class, positions)| (class, run(class, &positions))).collect()
}

fn show(found: &Found, bodies: &[Body], left: &[&str]) -> Vec<String> {
    let error = |fault: &Fault| format!("error at bit {}: {}", fault.at, fault.kind);
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
        for (number, column) in bodies[*class as usize].rows.columns.iter().enumerate() {
            let number = number as u16;
            let cell = |row: usize| match (cells.validity(number), column.cell) {
                (Some(validity), _) if validity[row] == 0 => "-".to_owned(),
                (_, Cell::Span) => format!("{0}+{1}", cells.span(number, row).0, cells.span(number, row).1),
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
fn run(case: &Case, engine: Option<&Engine>) -> Vec<String> {
    let programs: Vec<Program> = case.bodies.iter().map(|(_, body)| program(body, &case.name)).collect();
    if let Some(error) = programs.iter().find_map(|program| verify::verify(program).err()) {
        return vec![format!("refused: {error}")];
    }
    let bodies: Vec<Body> = programs.iter().map(Body::new).collect();
    let plan = Arc::new(plan(case, &bodies));
    // What stands behind the end does not matter.
    let slack = |fill: u8| [&case.bytes[..], &[fill; SLACK]].concat();
    let (zeros, ones) = (slack(0), slack(0xFF));
    let end = case.bits.unwrap_or(case.bytes.len() as u64 * 8);
    let expected = evaluated(&plan, &bodies, Window::new(&zeros, 0, end));
    assert_eq!(evaluated(&plan, &bodies, Window::new(&ones, 0, end)), expected, "{}: slack is read", case.name);
    let Some(engine) = engine else { return show(&expected, &bodies, &[]) };
    let (found, left) = compiled(engine, &plan, &bodies, Window::new(&ones, 0, end));
    assert_eq!(found, expected, "{}: by machine code, by the evaluator", case.name);
    show(&expected, &bodies, &left)
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
    let engine = Engine::new();
    if engine.is_none() {
        println!("NO MACHINE CODE HERE: the evaluator alone is tested");
    }
    let (mut wrong, mut count) = (String::new(), 0);
    for path in files() {
        let text = fs::read_to_string(&path).expect("cases are text");
        let mut all = BTreeMap::new();
        for case in parse(&text) {
            let mut found = run(&case, engine.as_ref());
            let expected: Vec<&String> = case.events.iter().collect();
            if engine.is_none() {
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
