//! The headline of an answer: the most striking facts of its tables, in a sentence or two, for people.
//!
//! ```text
//! Answer ── HeadlineTables ──> rows ── "CPU {cpu} was busiest: {share}" ──> Headline: words and cells
//! ```
//!
//! Every number in it is a cell of the tables, with its bounds; a face puts cells into words. A
//! headline never says more than the tables: where events were lost, figures of observed intervals
//! become lower bounds, and a row is the greatest only "as far as the trace shows".

#[cfg(test)]
mod tests;

use crate::answer::{Answer, Bounded, Cell, Table};

/// The function of an analysis that makes the headline of its answer.
pub type HeadlineMaker = fn(&HeadlineTables<'_>) -> Headline;

/// Sentences for people; empty where nothing was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Headline {
    /// Words and cells, in order.
    pub parts: Vec<HeadlinePart>,
}

/// A part of a headline.
#[derive(Clone, Debug, PartialEq)]
pub enum HeadlinePart {
    /// Words as they are.
    Text(String),
    /// A cell, which a face puts into words, and the unit of its column.
    Cell(Cell, Option<&'static str>),
}

/// The tables of an answer, for its headline.
#[derive(Clone, Copy, Debug)]
pub struct HeadlineTables<'a> {
    answer: &'a Answer,
    is_lossy: bool,
}

/// A row of a table, for a sentence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadlineRow<'a> {
    table: &'a Table,
    cells: &'a [Cell],
    is_lossy: bool,
    /// No other row can be greater.
    is_certain: bool,
}

impl Headline {
    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds a sentence about a row, without its period. `{column}` stands for a cell; `{column+}` for one that
    /// counts or measures only events that were seen: where others were lost, it is at least that.
    pub(crate) fn say(&mut self, row: &HeadlineRow<'_>, sentence: &str) {
        let mut rest = sentence;
        let mut text = self.gap();
        while let Some((words, behind)) = rest.split_once('{') {
            let (name, behind) = behind.split_once('}').expect("sentences of analyses close their braces");
            text += words;
            self.parts.push(HeadlinePart::Text(std::mem::take(&mut text)));
            let (cell, name) = match name.strip_suffix('+') {
                Some(name) => (row.seen(name), name),
                None => (row.cell(name).clone(), name),
            };
            self.parts.push(HeadlinePart::Cell(cell, row.unit(name)));
            rest = behind;
        }
        text += rest;
        text += if row.is_certain { "." } else { ", as far as the trace shows." };
        self.parts.push(HeadlinePart::Text(text));
    }

    /// Adds a sentence without cells, and with its period.
    pub(crate) fn tell(&mut self, sentence: &str) {
        let text = self.gap() + sentence;
        self.parts.push(HeadlinePart::Text(text));
    }

    fn gap(&self) -> String {
        if self.is_empty() { String::new() } else { " ".to_owned() }
    }
}

impl<'a> HeadlineTables<'a> {
    /// The tables; `is_lossy`: events may be missing.
    #[must_use]
    pub fn new(answer: &'a Answer, is_lossy: bool) -> Self {
        Self { answer, is_lossy }
    }

    /// The rows of a table; none if there is no such table.
    pub(crate) fn rows(&self, class: &str) -> &'a [Vec<Cell>] {
        self.table(class).map_or(&[], |table| &table.rows)
    }

    /// Whether events may be missing.
    pub(crate) fn is_lossy(&self) -> bool {
        self.is_lossy
    }

    fn table(&self, class: &str) -> Option<&'a Table> {
        self.answer.tables.iter().find(|table| table.class == class)
    }

    fn row(&self, table: &'a Table, place: usize, is_certain: bool) -> Option<HeadlineRow<'a>> {
        Some(HeadlineRow { table, cells: table.rows.get(place)?, is_lossy: self.is_lossy, is_certain })
    }

    /// The first row of a table that has only one, or has a certain order.
    pub(crate) fn first(&self, class: &str) -> Option<HeadlineRow<'a>> {
        self.row(self.table(class)?, 0, true)
    }

    /// The first row of a table that is in the order of several columns together: whether another one
    /// is greater is in doubt as soon as events were lost.
    pub(crate) fn leading(&self, class: &str) -> Option<HeadlineRow<'a>> {
        let table = self.table(class)?;
        self.row(table, 0, !self.is_lossy || table.rows.len() == 1 && table.omitted == 0)
    }

    /// The row with the greatest number in a column. Rows that the table leaves out must not be greater: it is in the
    /// order of this column.
    pub(crate) fn most(&self, class: &str, column: &str) -> Option<HeadlineRow<'a>> {
        let table = self.table(class)?;
        let at = place(table, column)?;
        let number = |row: &Vec<Cell>| row.get(at).and_then(bounds);
        let of_rows = table.rows.iter().map(number);
        // The first of equal ones.
        let greatest = |best: Option<(usize, Bounded<f64>)>, (row, number): (usize, Option<Bounded<f64>>)| match number
        {
            Some(number) if best.is_none_or(|(_, best)| number.value > best.value) => Some((row, number)),
            _ => best,
        };
        let (best, number) = of_rows.clone().enumerate().fold(None, greatest)?;
        let is_below = |(row, other): (usize, Option<Bounded<f64>>)| {
            row == best || other.is_none_or(|other| other.high <= number.low)
        };
        let is_certain = of_rows.enumerate().all(is_below) && (table.omitted == 0 || !self.is_lossy);
        self.row(table, best, is_certain)
    }

    /// The same of a table in any order; `None` if it leaves rows out.
    pub(crate) fn most_of_all(&self, class: &str, column: &str) -> Option<HeadlineRow<'a>> {
        self.table(class).filter(|table| table.omitted == 0)?;
        self.most(class, column)
    }
}

impl<'a> HeadlineRow<'a> {
    /// The cell of a column.
    pub(crate) fn cell(&self, column: &str) -> &'a Cell {
        let place = place(self.table, column);
        debug_assert!(place.is_some(), "`{}` has no column `{column}`", self.table.class);
        place.and_then(|place| self.cells.get(place)).unwrap_or(&Cell::Unknown)
    }

    fn unit(&self, column: &str) -> Option<&'static str> {
        self.table.columns[place(self.table, column)?].unit
    }

    /// Whether a cell has something to tell.
    pub(crate) fn has(&self, column: &str) -> bool {
        !matches!(self.cell(column), Cell::Empty | Cell::Unknown)
    }

    /// Whether it is known which row it is.
    pub(crate) fn is_known(&self) -> bool {
        !matches!(self.cells.first(), Some(Cell::Empty | Cell::Unknown) | None)
    }

    /// Whether it is the time in which CPUs run no thread.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(
            self.cells.first(),
            Some(Cell::Process { tid: Some(0), .. } | Cell::Process { tid: None, pid: Some(0), .. })
        )
    }

    /// Whether a number is zero for certain.
    pub(crate) fn is_zero(&self, column: &str) -> bool {
        bounds(self.cell(column)).is_some_and(|number| number.value == 0.0 && number.high == 0.0)
    }

    /// Whether a number is greater than the one of another row.
    pub(crate) fn exceeds(&self, column: &str, other: &Self) -> bool {
        let value = |row: &Self| bounds(row.cell(column)).map_or(0.0, |number| number.value);
        value(self) > value(other)
    }

    fn seen(&self, column: &str) -> Cell {
        let above = |number: &Bounded<u64>| Bounded { high: u64::MAX, ..*number };
        match self.cell(column) {
            Cell::Count(number) if self.is_lossy => Cell::Count(above(number)),
            Cell::Duration(number) if self.is_lossy => Cell::Duration(above(number)),
            Cell::Size(number) if self.is_lossy => Cell::Size(above(number)),
            cell => cell.clone(),
        }
    }
}

fn place(table: &Table, column: &str) -> Option<usize> {
    table.columns.iter().position(|known| known.name == column)
}

fn bounds(cell: &Cell) -> Option<Bounded<f64>> {
    let number = match cell {
        Cell::Count(number) | Cell::Duration(number) | Cell::Size(number) => Bounded {
            value: number.value as f64,
            low: number.low as f64,
            high: if number.high == u64::MAX { f64::INFINITY } else { number.high as f64 },
        },
        Cell::Ratio(number) | Cell::Bitrate(number) => *number,
        Cell::Integer(number) => Bounded::exact(*number as f64),
        Cell::Number(number) => Bounded::exact(*number),
        _ => return None,
    };
    (!number.value.is_nan()).then_some(number)
}
