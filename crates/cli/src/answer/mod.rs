//! Answers of analyses on a terminal, as JSON, CSV or LAMI.
//!
//! ```text
//! Answer ──show──┬─ terminal   a headline, then tables and plots that fit   ┐ people
//!                ├─ table      all tables, as wide as they are             ┘
//!                ├─ json    exact numbers                ┐
//!                ├─ csv     one table, or all of them    │ programs
//!                └─ lami    LTTng analyses' own format   ┘
//! ```
//!
//! The analysis decides the rows and their order.

pub(crate) mod csv;
mod errno;
mod fit;
mod headline;
pub(crate) mod lami;
mod place;
mod plot;
pub(crate) mod screen;
pub(crate) mod table;
pub(crate) mod terminal;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use std::io::{self, BufWriter, Write};

use kymo_session::{Answer, Cell, Plot, Report, Session, Table, Zone, json};

use crate::CommandOutcome;
use crate::arguments::FaceArguments;
use crate::stop::StopReason;
use screen::Screen;
use table::TableLook;
pub(crate) use terminal::AnswerView;
pub(crate) use words::InstantFormat;
use words::{CellDetail, CellFormatter};

/// How an answer is shown.
#[derive(Clone, Copy)]
pub(crate) struct Manner<'a> {
    pub(crate) face: &'a FaceArguments,
    /// In UTC instead of the local zone.
    pub(crate) clock_gmt: bool,
    /// As seconds since the clock's origin.
    pub(crate) clock_seconds: bool,
    /// An assumption counts as an error.
    pub(crate) strict: bool,
}

impl Manner<'_> {
    /// The format of instants.
    pub(crate) fn times(&self, session: &Session) -> InstantFormat {
        let zone = if self.clock_gmt { Zone::Utc } else { Zone::Local };
        InstantFormat::new(session.times_are_unix(), zone, self.clock_seconds)
    }
}

/// Shows an answer as requested, and reports its gaps on standard error; `tables`: the possible
/// tables.
pub(crate) fn show(
    session: &Session,
    tables: &Answer,
    answer: &Answer,
    report: &Report,
    view: &AnswerView<'_>,
    manner: Manner<'_>,
) -> Result<CommandOutcome, StopReason> {
    let face = manner.face;
    let chosen = chosen(answer, &face.table, face.csv).map_err(StopReason::Usage)?;
    // Objects are those of the HTTP API, where a number of rows is that of ranked rows alone.
    let top = view.top.filter(|_| !face.json && !face.lami);
    let cut: Vec<Table> = top.iter().flat_map(|_| &chosen).map(|table| shortened(table, top)).collect();
    let chosen = if top.is_some() { cut.iter().collect() } else { chosen };
    let mut out = BufWriter::new(io::stdout().lock());
    if face.csv {
        csv::write(&chosen, &mut out)?;
    } else if face.json {
        json::write_answer(&chosen, report, &mut out)?;
    } else if face.lami {
        lami::write(&chosen, tables, report, &mut out)?;
    } else {
        let screen = Screen::of_output(face.color(), face.wide);
        for_people(&chosen, view, &manner.times(session), (screen, face), &mut out)?;
    }
    // Standard error comes last.
    out.flush()?;
    drop(out);
    Ok(crate::show::report(report, manner.strict))
}

/// The tables that are wanted: all, or the first one where only one can be shown.
fn chosen<'a>(answer: &'a Answer, classes: &[String], one: bool) -> Result<Vec<&'a Table>, String> {
    let all = || answer.tables.iter();
    if classes.is_empty() {
        return Ok(if one { all().take(1).collect() } else { all().collect() });
    }
    if let Some(class) = classes.iter().find(|class| *class != "all" && !all().any(|table| table.class == **class)) {
        let names = all().map(|table| table.class).collect::<Vec<_>>().join(", ");
        return Err(format!("there is no table `{class}`; there are: {names}"));
    }
    Ok(all().filter(|table| classes.iter().any(|class| class == "all" || class == table.class)).collect())
}

/// The table with so many rows at most, as a terminal shows it. Courses and distributions stay whole, and rows of
/// periods, of which each has so many.
fn shortened(table: &Table, top: Option<usize>) -> Table {
    let is_ranked = matches!(table.plot, Some(Plot::Bars { .. }));
    let is_of_periods = table.columns.first().is_some_and(|column| column.name == "period");
    if !is_ranked || is_of_periods {
        return table.clone();
    }
    let chosen = fit::chosen_rows(table, top);
    let omitted = table.omitted + (table.rows.len() - chosen.len()) as u64;
    let rows = chosen.into_iter().map(|row| table.rows[row].clone()).collect();
    Table { rows, omitted, ..table.clone() }
}

/// The tables that a terminal has room for, or all of them one under the other.
fn for_people(
    tables: &[&Table],
    view: &AnswerView<'_>,
    times: &InstantFormat,
    (screen, face): (Screen, &FaceArguments),
    out: &mut impl Write,
) -> io::Result<()> {
    if screen.width.is_some() {
        return terminal::show(tables, view, times, (screen, face), out);
    }
    for (number, table) in tables.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        let times = times.within(table.span_ns);
        let words = CellFormatter { times, unicode: screen.unicode, detail: CellDetail::Plain };
        table::show(table, &words, screen, TableLook::WHOLE, out)?;
    }
    Ok(())
}

/// Whether a table has no rows, and leaves none out.
fn is_empty(table: &Table) -> bool {
    table.rows.is_empty() && table.omitted == 0
}

/// The drawable part of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Drawn {
    value: f64,
    low: f64,
    high: f64,
}

impl Drawn {
    fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// The end of a bar: an unbounded value ends where it most likely is.
    fn finite_high(&self) -> f64 {
        if self.high.is_finite() { self.high } else { self.value }
    }
}

/// The numbers of a row in some columns, together.
fn sum(row: &[Cell], columns: &[usize]) -> Option<Drawn> {
    let numbers = columns.iter().filter_map(|column| row.get(*column).and_then(numeric));
    numbers.reduce(|sum, more| Drawn {
        value: sum.value + more.value,
        low: sum.low + more.low,
        high: sum.high + more.high,
    })
}

/// The number in a cell, if there is one and it is finite.
fn numeric(cell: &Cell) -> Option<Drawn> {
    let whole = |number: &kymo_session::Bounded<u64>| Drawn {
        value: number.value as f64,
        low: number.low as f64,
        high: if number.high == u64::MAX && !number.is_exact() { f64::INFINITY } else { number.high as f64 },
    };
    let drawn = match cell {
        Cell::Count(number) | Cell::Duration(number) | Cell::Size(number) => whole(number),
        Cell::Ratio(number) | Cell::Bitrate(number) => {
            Drawn { value: number.value, low: number.low, high: number.high }
        }
        Cell::Integer(number) | Cell::Based(number, _) => Drawn::exact(*number as f64),
        Cell::Number(number) => Drawn::exact(*number),
        _ => return None,
    };
    drawn.value.is_finite().then_some(drawn)
}
