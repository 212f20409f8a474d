//! An answer on a terminal: first the headline, then the tables that matter, as wide as the terminal.
//!
//! ```text
//! CPU 3 was busiest: 87.0% of the time. Thread redis-server (1234) ran longest: 4.20 s, ...     headline
//! 2016-03-04 17:46:22.000000000 to 17:46:23.580000000 (1.580 s)                                  span of all
//!
//! CPUs                                                                                           main tables
//! ...
//!
//! More tables: per-process (--table per-process, or --wide for all)                              others
//! ```

use std::collections::HashSet;
use std::io::{self, Write};

use kymo_session::{Cell, Headline, Plot, Table};

use crate::answer::fit::bars;
use crate::answer::headline;
use crate::answer::place::is_nothing;
use crate::answer::plot::{self, Axes};
use crate::answer::screen::{Screen, ScreenTone};
use crate::answer::table::{self, TableLook};
use crate::answer::words::{CellDetail, CellFormatter, InstantFormat};
use crate::arguments::FaceArguments;
use crate::show::counted;

/// The parts of an answer on a terminal that are no tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerView<'a> {
    /// The most striking facts; empty where nothing was found.
    pub(crate) headline: Headline,
    /// A sentence about the events that were looked for.
    pub(crate) nothing: String,
    /// Words before the headline: limits to which it is bound.
    pub(crate) limits: String,
    /// Classes of the tables that matter; none: all.
    pub(crate) main_tables: &'a [&'static str],
    /// Rows of a table at most; `None`: all.
    pub(crate) rows: Option<usize>,
    /// The same where the arguments say so, also in pipes and CSV.
    pub(crate) top: Option<usize>,
}

/// Shows the answer.
pub(crate) fn show(
    tables: &[&Table],
    view: &AnswerView<'_>,
    times: &InstantFormat,
    (screen, face): (Screen, &FaceArguments),
    out: &mut impl Write,
) -> io::Result<()> {
    let common = tables.first().and_then(|table| table.span_ns);
    let span = common.filter(|_| tables.iter().all(|table| table.span_ns == common));
    let detail = if face.exact { CellDetail::Exact } else { CellDetail::Telling };
    let words = |span| CellFormatter { times: times.within(span), unicode: screen.unicode, detail };
    let is_main = |table: &Table| {
        let matters = view.main_tables.is_empty() || view.main_tables.contains(&table.class);
        !face.table.is_empty() || matters && !has_no_name(table)
    };
    let is_asked = |table: &Table| face.table.iter().any(|class| class == table.class);
    let (shown, others): (Vec<&Table>, Vec<&Table>) =
        tables.iter().filter(|table| is_asked(table) || !is_bare(table)).partition(|table| is_main(table));
    let found = tables.iter().any(|table| !is_bare(table));
    for line in screen.wrapped(&said(view, &shown, (found, !face.no_plot), &words(span))) {
        writeln!(out, "{}", screen.toned(ScreenTone::Title, &line))?;
    }
    if let Some(span) = span {
        for line in screen.wrapped(&table::span_word(span, &words(Some(span)))) {
            writeln!(out, "{}", screen.toned(ScreenTone::Faint, &line))?;
        }
    }
    for table in shown {
        writeln!(out)?;
        let look = TableLook { bars: !face.no_plot, span: span.is_none(), rows: view.rows };
        one(table, &words(table.span_ns), screen, look, out)?;
    }
    more(&others, screen, out)
}

/// Whether a table has no rows, or a total of nothing.
fn is_bare(table: &Table) -> bool {
    table.omitted == 0 && table.rows.iter().flatten().all(is_nothing)
}

/// Whether a table of groups has only one, which is all of them.
fn has_no_name(table: &Table) -> bool {
    table.omitted == 0 && matches!(&*table.rows, [row] if matches!(row.first(), Some(Cell::Empty)))
}

/// A table, as a plot if it is a course.
fn one(table: &Table, words: &CellFormatter, screen: Screen, look: TableLook, out: &mut impl Write) -> io::Result<()> {
    let is_drawn = match table.plot {
        Some(Plot::Course { time, series, value }) if look.bars => {
            plot::show(table, Axes { time, series, value }, words, screen, look.span, out)?
        }
        _ => false,
    };
    if is_drawn { Ok(()) } else { table::show(table, words, screen, look, out) }
}

/// The headline in words; `draws`: courses are drawn.
fn said(view: &AnswerView<'_>, shown: &[&Table], (found, draws): (bool, bool), words: &CellFormatter) -> String {
    let is_divided = |table: &&Table| table.columns.first().is_some_and(|column| column.name == "period");
    // Courses have a period in each row anyway.
    if !shown.is_empty() && shown.iter().all(is_divided) {
        let periods = |table: &Table| -> HashSet<String> {
            table.rows.iter().filter_map(|row| Some(words.word(row.first()?).value)).collect()
        };
        let most = shown.iter().map(|table| periods(table).len()).max().unwrap_or(0);
        let is_cut = |table: &&&Table| table.omitted > 0 || view.rows.is_some_and(|rows| rows < table.rows.len());
        let is_drawn = |table: &&&Table| draws && matches!(table.plot, Some(Plot::Course { .. }));
        let cut = shown.iter().filter(|table| is_cut(table) && !is_drawn(table));
        let (greatest, first): (Vec<&Table>, Vec<&Table>) = cut.partition(|table| !bars(table).is_empty());
        let rows = match (greatest.is_empty(), first.is_empty()) {
            (true, true) => "",
            (false, true) => " Each table shows its greatest rows of all periods.",
            (true, false) => " Each table shows its first rows.",
            (false, false) => " Tables show their greatest rows of all periods, or their first ones.",
        };
        return format!("{} with results.{rows}", counted(most as u64, "period"));
    }
    match view.headline.is_empty() {
        true if found => "Nothing stands out.".to_owned(),
        true => view.nothing.clone(),
        false => format!("{}{}", view.limits, headline::text(&view.headline, words)),
    }
}

/// Which other tables there are.
fn more(others: &[&Table], screen: Screen, out: &mut impl Write) -> io::Result<()> {
    let mut names: Vec<&str> = others.iter().map(|table| table.class).collect();
    names.dedup();
    let Some(first) = names.first() else { return Ok(()) };
    writeln!(out)?;
    let text = format!("More tables: {} (--table {first}, or --wide for all)", names.join(", "));
    for line in screen.wrapped(&text) {
        writeln!(out, "{}", screen.toned(ScreenTone::Faint, &line))?;
    }
    Ok(())
}
