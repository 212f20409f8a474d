//! Traces in which something is missing, and answers that were worked out by hand:
//! `tests/analyses/odd-traces.txt`.
//!
//! ```text
//! case ─┬─ packets, events ──> a tiny trace ──> Session::ask ──> Answer
//!       └─ expect, absent, open ──────────────────────────────> rows that there are, or not
//! ```

use std::path::Path;

use kymo_analysis::{Answer, Bounded, Cell, Table};

use super::tiny_trace::{Event, Packet, write};
use crate::{AnalysisKind, AnalysisOptions, OpenOptions, PairsQuestion, Progress, Session};

/// The text after a word that says how sure the expectation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// There is such a row.
    There,
    /// There is none.
    Absent,
    /// There should be one, and is not.
    Open,
}

#[derive(Debug)]
struct Expectation<'a> {
    line: &'a str,
    wanted: Wanted,
    analysis: &'a str,
    options: Vec<&'a str>,
    table: &'a str,
    keys: Vec<(&'a str, &'a str)>,
    cells: Vec<(&'a str, &'a str)>,
}

#[derive(Debug)]
struct Case<'a> {
    name: &'a str,
    packets: Vec<Packet>,
    expectations: Vec<Expectation<'a>>,
}

fn pair(word: &str) -> (&str, &str) {
    word.split_once('=').unwrap_or_else(|| panic!("`{word}` is no name and value"))
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("`{word}` is no number"))
}

impl<'a> Case<'a> {
    fn parse(text: &'a str) -> Self {
        let (name, lines) = text.split_once('\n').expect("lines follow the name");
        let mut case = Self { name: name.trim(), packets: Vec::new(), expectations: Vec::new() };
        for line in lines.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.split_first() {
                None | Some((&"why:" | &"kymo:", _)) => {}
                Some((&"packet", rest)) => case.packets.push(packet(rest)),
                Some((&"expect", _)) => case.expectations.push(Expectation::parse(line, Wanted::There)),
                Some((&"absent", _)) => case.expectations.push(Expectation::parse(line, Wanted::Absent)),
                Some((&"open", _)) => case.expectations.push(Expectation::parse(line, Wanted::Open)),
                Some(_) => case.packets.last_mut().expect("events are in packets").events.push(event(&words)),
            }
        }
        case
    }
}

fn packet(words: &[&str]) -> Packet {
    let (begin, end) = words[1].split_once("..").expect("a packet has a begin and an end");
    let mut packet =
        Packet { cpu: number(words[0]) as u32, begin: number(begin), end: number(end), ..Packet::default() };
    for word in &words[2..] {
        match pair(word) {
            ("discarded", value) => packet.discarded = number(value),
            ("sequence", value) => packet.sequence = Some(number(value)),
            _ => panic!("`{word}` says nothing of a packet"),
        }
    }
    packet
}

fn event(words: &[&str]) -> Event {
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let time = number(words[0]);
    let (name, mut values, rest) = match words {
        [_, leaving, "->", coming, rest @ ..] => {
            ("sched_switch", vec![owned(("prev_tid", leaving)), owned(("next_tid", coming))], rest)
        }
        [_, name, rest @ ..] => (*name, Vec::new(), rest),
        _ => panic!("{words:?} is no event"),
    };
    values.extend(rest.iter().map(|word| owned(pair(word))));
    Event { time, name: name.to_owned(), values }
}

impl<'a> Expectation<'a> {
    fn parse(line: &'a str, wanted: Wanted) -> Self {
        let (head, cells) = line.split_once(':').unwrap_or((line, ""));
        let words: Vec<&str> = head.split_whitespace().collect();
        let first_key = words.iter().position(|word| word.contains('=')).unwrap_or(words.len());
        Self {
            line,
            wanted,
            analysis: words[1],
            options: words[2..first_key - 1].to_vec(),
            table: words[first_key - 1],
            keys: words[first_key..].iter().map(|word| pair(word)).collect(),
            cells: cells.split_whitespace().map(pair).collect(),
        }
    }

    /// Differences of an answer.
    fn problem(&self, answer: &Answer) -> Result<(), String> {
        let table = answer.tables.iter().find(|table| table.class == self.table);
        let is_meant = |row: &&Vec<Cell>| {
            table.is_some_and(|table| self.keys.iter().all(|(column, text)| is_meant(table, row, column, text)))
        };
        let rows: Vec<&Vec<Cell>> = table.iter().flat_map(|table| &table.rows).filter(is_meant).collect();
        let (table, row) = match (self.wanted, &rows[..]) {
            (Wanted::Absent, []) => return Ok(()),
            (Wanted::Absent, _) => return Err("there is such a row".to_owned()),
            (_, [row]) => (table.expect("the row is in it"), row),
            (_, rows) => return Err(format!("{} such rows", rows.len())),
        };
        for (column, text) in &self.cells {
            let found = cell(table, row, column).ok_or_else(|| format!("there is no column {column}"))?;
            let wanted = expected(text);
            if bounds(found) != Some(wanted) {
                return Err(format!("{column} is {found:?}"));
            }
        }
        Ok(())
    }
}

fn cell<'a>(table: &Table, row: &'a [Cell], column: &str) -> Option<&'a Cell> {
    table.columns.iter().position(|known| known.name == column).map(|place| &row[place])
}

/// Whether a row is that of a key.
fn is_meant(table: &Table, row: &[Cell], column: &str, text: &str) -> bool {
    let Some(found) = cell(table, row, column) else { return false };
    match (found, text) {
        (found, "-") => *found == Cell::Empty,
        (found, "?") => *found == Cell::Unknown,
        (Cell::Process { tid: Some(tid), .. }, text) => {
            let (wanted_tid, incarnation) = text.split_once('/').unwrap_or((text, ""));
            let column = if column == "thread" { "incarnation" } else { "waker_incarnation" };
            let is_incarnation = || cell(table, row, column).and_then(bounds) == Some(expected(incarnation));
            tid.to_string() == wanted_tid && (incarnation.is_empty() || is_incarnation())
        }
        (Cell::Process { pid, .. }, text) => pid.is_some_and(|pid| pid.to_string() == text),
        (Cell::Irq { number, .. }, text) => number.to_string() == text,
        (Cell::Text(found) | Cell::Syscall(found) | Cell::Path(found) | Cell::Disk(found), text) => found == text,
        (found, text) => text.parse::<i128>().is_ok_and(|_| bounds(found) == Some(expected(text))),
    }
}

/// A number, its lower bound, and its upper bound if any; `None`: there is none.
type Bounds = Option<(i128, i128, Option<i128>)>;

/// Number of a cell; `None`: it is no number.
fn bounds(cell: &Cell) -> Option<Bounds> {
    let exact = |number: i128| Some((number, number, Some(number)));
    let whole = |number: &Bounded<u64>| {
        let high = (number.high < u64::MAX || number.is_exact()).then_some(i128::from(number.high));
        Some((i128::from(number.value), i128::from(number.low), high))
    };
    Some(match cell {
        Cell::Empty => None,
        Cell::Count(number) | Cell::Duration(number) | Cell::Size(number) => whole(number),
        Cell::Integer(number) | Cell::Based(number, _) | Cell::Timestamp(number) | Cell::Fd(number) => {
            exact(i128::from(*number))
        }
        Cell::Number(number) if number.fract() == 0.0 => exact(*number as i128),
        Cell::Cpu(cpu) => exact(i128::from(*cpu)),
        _ => return None,
    })
}

/// Number in the file: `40[30,70]`, `none` is no bound, `-` is no number.
fn expected(text: &str) -> Bounds {
    if text == "-" {
        return None;
    }
    let number = |text: &str| text.parse::<i128>().unwrap_or_else(|_| panic!("`{text}` is no number"));
    let Some((value, rest)) = text.split_once('[') else {
        return Some((number(text), number(text), Some(number(text))));
    };
    let (low, high) = rest.trim_end_matches(']').split_once(',').expect("there are two bounds");
    Some((number(value), number(low), (high != "none").then(|| number(high))))
}

/// The analysis of that name.
fn kind(name: &str, options: &[&str]) -> AnalysisKind {
    match name {
        "pairs" => AnalysisKind::Pairs(pairs(options)),
        name => super::kind(name).clone(),
    }
}

/// Options of pairs, in the words of the oracle.
fn pairs(options: &[&str]) -> PairsQuestion {
    let (mut start, mut stop, mut keys, mut group, mut is_nested) = (Vec::new(), Vec::new(), Vec::new(), None, false);
    let mut words = options.iter();
    while let Some(option) = words.next() {
        let mut value = || (*words.next().expect("the option has a value")).to_owned();
        match *option {
            "--begin" => start.push(value()),
            "--end" => stop.push(value()),
            "--key" => keys.push(value()),
            "--by" => group = Some(value()),
            "--nested" => is_nested = true,
            _ => panic!("`{option}` is no option of pairs"),
        }
    }
    PairsQuestion::parse(&start, &stop, &keys, group.as_deref(), is_nested).expect("the options are right")
}

fn asked(folder: &Path, expectation: &Expectation<'_>) -> Answer {
    let mut session = Session::open(&[folder.to_path_buf()], &OpenOptions::default()).expect("the trace can be opened");
    // Everything apart: expectations must not depend on it.
    session.slice_bytes = Some(1);
    let kind = kind(expectation.analysis, &expectation.options);
    match session.ask(&kind, &AnalysisOptions::default(), &Progress::default()) {
        Ok(analysed) => analysed.answer,
        // There is nothing to say of it.
        Err(crate::AnalyseFailure::NoRole { .. }) => Answer::default(),
        Err(failure) => panic!("{}: {failure}", expectation.line),
    }
}

#[test]
fn of_odd_traces_what_is_worked_out_by_hand_is_said() {
    let text = include_str!("../../../../../../tests/analyses/odd-traces.txt");
    let (mut wrong, mut expectations) = (Vec::new(), 0);
    for case in text.split("\n--- ").skip(1).map(Case::parse) {
        let folder = tempfile::tempdir().expect("there is room for a tiny trace");
        write(folder.path(), &case.packets);
        for expectation in &case.expectations {
            expectations += 1;
            let is_open = expectation.wanted == Wanted::Open;
            match expectation.problem(&asked(folder.path(), expectation)) {
                Err(problem) if !is_open => wrong.push(format!("{}: {problem}\n  {}", case.name, expectation.line)),
                Ok(()) if is_open => {
                    wrong.push(format!("{}: this is mended: say `expect`\n  {}", case.name, expectation.line));
                }
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {expectations} expectations are not met:\n{}", wrong.len(), wrong.join("\n"));
    assert!(expectations >= 80, "only {expectations} expectations were found");
}
