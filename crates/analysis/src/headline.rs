//! The headline of an answer: the most striking facts of its tables, in a sentence or two, for people.
//!
//! ```text
//! Answer ── HeadlineTables ──> rows ── "CPU {cpu} was busiest: {share}" ──> Headline: words and cells
//! ```
//!
//! Every number in it is a cell of the tables, with its bounds; a face puts cells into words. A
//! headline never says more than the tables: where events were lost, figures of observed intervals
//! become lower bounds, and a row is the greatest only "as far as the trace shows". If other rows are
//! as great, the sentence says so.

#[cfg(test)]
mod tests;

use crate::answer::{Answer, Bounded, Cell, Table};
use crate::hosts::{HOST, is_of_machine};

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
    /// A number, and the name of one of the things that it counts.
    Counted(Cell, String),
}

/// The tables of an answer, for its headline.
#[derive(Clone, Copy, Debug)]
pub struct HeadlineTables<'a> {
    tables: &'a [Table],
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
    /// Other rows that are as great.
    equals: usize,
}

impl Headline {
    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The end of a sentence about the greatest of several.
    #[must_use]
    pub fn end(equals: usize, is_certain: bool) -> String {
        let others = match equals {
            0 => "",
            1 => "; another is equal",
            _ => "; others are equal",
        };
        format!("{others}{}.", if is_certain { "" } else { ", as far as the trace shows" })
    }

    /// Adds a sentence about a row, without its period. `{column}` stands for a cell; `{column+}` for one that
    /// counts or measures only events that were seen: where others were lost, it is at least that; `{column-}` for one
    /// that nothing exceeds. `{column:call}` counts calls: "1 call", "2 calls".
    pub(crate) fn say(&mut self, row: &HeadlineRow<'_>, sentence: &str) {
        let mut rest = sentence;
        let mut text = self.gap();
        // The machine stands behind the last thread, CPU or device.
        let mut place = None;
        while let Some((words, behind)) = rest.split_once('{') {
            let (name, behind) = behind.split_once('}').expect("sentences of analyses close their braces");
            text += words;
            self.parts.push(HeadlinePart::Text(std::mem::take(&mut text)));
            let (name, noun) = name.split_once(':').map_or((name, None), |(name, noun)| (name, Some(noun)));
            let (cell, name) = match (name.strip_suffix('+'), name.strip_suffix('-')) {
                (Some(name), _) => (row.seen(name), name),
                (_, Some(name)) => (row.at_most(name), name),
                _ => (row.cell(name).clone(), name),
            };
            self.parts.push(match noun {
                Some(noun) => HeadlinePart::Counted(cell, noun.to_owned()),
                None => HeadlinePart::Cell(cell, row.unit(name)),
            });
            let is_of_machine = row.cell(name).class().is_some_and(is_of_machine);
            place = if is_of_machine { Some(self.parts.len()) } else { place };
            rest = behind;
        }
        self.parts.push(HeadlinePart::Text(text + rest + &Self::end(row.equals, row.is_certain)));
        if let Some((place, host)) = place.zip(row.host()) {
            self.parts.insert(place, HeadlinePart::Text(format!(" on {host}")));
        }
    }

    /// Adds a sentence without cells, and with its period.
    pub(crate) fn tell(&mut self, sentence: &str) {
        let text = self.gap() + sentence;
        self.parts.push(HeadlinePart::Text(text));
    }

    /// Adds the sentences of another.
    pub(crate) fn join(&mut self, other: Self) {
        self.parts.push(HeadlinePart::Text(self.gap()));
        self.parts.extend(other.parts);
    }

    fn gap(&self) -> String {
        if self.is_empty() { String::new() } else { " ".to_owned() }
    }
}

impl<'a> HeadlineTables<'a> {
    /// The tables; `is_lossy`: events may be missing.
    #[must_use]
    pub fn new(answer: &'a Answer, is_lossy: bool) -> Self {
        Self { tables: &answer.tables, is_lossy }
    }

    /// Whether events may be missing.
    pub(crate) fn is_lossy(&self) -> bool {
        self.is_lossy
    }

    /// The tables of each part of the answer: each part begins with a table of this class.
    pub(crate) fn parts(self, class: &str) -> impl Iterator<Item = Self> {
        let begins: Vec<usize> = (0..self.tables.len()).filter(|&at| self.tables[at].class == class).collect();
        let ends: Vec<usize> = begins.iter().copied().skip(1).chain([self.tables.len()]).collect();
        begins.into_iter().zip(ends).map(move |(begin, end)| Self { tables: &self.tables[begin..end], ..self })
    }

    /// The rows of a class of tables, in their order.
    pub(crate) fn rows(self, class: &str) -> impl Iterator<Item = HeadlineRow<'a>> {
        let is_lossy = self.is_lossy;
        let row = move |table, cells| HeadlineRow { table, cells, is_lossy, is_certain: true, equals: 0 };
        let tables = self.tables.iter().filter(move |table| table.class == class);
        tables.flat_map(move |table| table.rows.iter().map(move |cells| row(table, &**cells)))
    }

    /// The first row of a table that has only one, or has a certain order.
    pub(crate) fn first(&self, class: &str) -> Option<HeadlineRow<'a>> {
        self.rows(class).next()
    }

    /// The row with the greatest number in a column.
    pub(crate) fn most(&self, class: &str, column: &str) -> Option<HeadlineRow<'a>> {
        self.greatest(&[class], &[column])
    }

    /// The same of a table in any order; `None` if it leaves rows out.
    pub(crate) fn most_of_all(&self, class: &str, column: &str) -> Option<HeadlineRow<'a>> {
        let mut tables = self.tables.iter().filter(|table| table.class == class);
        if tables.all(|table| table.omitted == 0) { self.most(class, column) } else { None }
    }

    /// The row with the greatest number above zero, of all tables of some classes; several columns count together.
    /// Rows that tables leave out must not be greater: tables are in the order of these columns.
    ///
    /// Where events were lost, each row may have more than it shows, and others may be missing.
    pub(crate) fn greatest(&self, classes: &[&str], columns: &[&str]) -> Option<HeadlineRow<'a>> {
        let row = self.greatest_by_bounds(classes, columns)?;
        Some(HeadlineRow { is_certain: row.is_certain && !self.is_lossy, ..row })
    }

    /// The same where no row can be missing, and the bounds of each hold the truth: of CPUs.
    pub(crate) fn greatest_by_bounds(&self, classes: &[&str], columns: &[&str]) -> Option<HeadlineRow<'a>> {
        let number = |row: HeadlineRow<'a>| Some((row, row.sum(columns)?));
        let rows: Vec<_> = classes.iter().flat_map(|class| self.rows(class)).filter_map(number).collect();
        // The first of equal ones.
        let greatest = |best: usize, row: usize| if rows[row].1.value > rows[best].1.value { row } else { best };
        let best = (0..rows.len()).reduce(greatest).filter(|&best| rows[best].1.value > 0.0)?;
        let (row, most) = rows[best];
        let others = || rows.iter().enumerate().filter(|&(at, _)| at != best).map(|(_, (_, other))| other);
        let is_equal = |other: &Bounded<f64>| other.value == most.value && other.is_exact() && most.is_exact();
        // The bounds of rows that are left out are unknown.
        let is_whole = self.tables.iter().all(|table| table.omitted == 0 || !classes.contains(&table.class));
        let is_known = is_whole || rows.iter().all(|(_, number)| number.is_exact());
        let is_certain = is_known && others().all(|other| other.high < most.low || is_equal(other));
        Some(HeadlineRow { is_certain, equals: others().filter(|other| is_equal(other)).count(), ..row })
    }
}

impl<'a> HeadlineRow<'a> {
    /// The cell of a column.
    pub(crate) fn cell(&self, column: &str) -> &'a Cell {
        let place = place(self.table, column);
        debug_assert!(place.is_some(), "`{}` has no column `{column}`", self.table.class);
        place.and_then(|place| self.cells.get(place)).unwrap_or(&Cell::Unknown)
    }

    /// The machine that it is about, if there are several.
    fn host(&self) -> Option<&'a str> {
        match self.cells.get(place(self.table, HOST)?)? {
            Cell::Text(host) => Some(host),
            _ => None,
        }
    }

    fn unit(&self, column: &str) -> Option<&'static str> {
        self.table.columns[place(self.table, column)?].unit
    }

    /// A duration, if there is one.
    pub(crate) fn duration_ns(&self, column: &str) -> Option<u64> {
        match self.cell(column) {
            Cell::Duration(duration) => Some(duration.value),
            _ => None,
        }
    }

    /// Whether its table has a column.
    pub(crate) fn of_table(&self, column: &str) -> bool {
        place(self.table, column).is_some()
    }

    /// Whether a cell has something to tell.
    pub(crate) fn has(&self, column: &str) -> bool {
        !matches!(self.cell(column), Cell::Empty | Cell::Unknown)
    }

    /// Whether it is known which row it is.
    pub(crate) fn is_known(&self) -> bool {
        !matches!(self.cells.first(), Some(Cell::Empty | Cell::Unknown) | None)
    }

    /// The sentence about how many events there are.
    pub(crate) fn there_are(&self) -> &'static str {
        match self.cell("count") {
            Cell::Count(Bounded { low: 1, high: 1, .. }) => "There is {count:event}",
            _ => "There are {count:event}",
        }
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

    /// The same row, where it is in doubt.
    pub(crate) fn in_doubt(self, is_doubtful: bool) -> Self {
        Self { is_certain: self.is_certain && !is_doubtful, ..self }
    }

    /// The title of its table.
    pub(crate) fn title(&self) -> &'a str {
        &self.table.title
    }

    /// Numbers of several columns together.
    fn sum(&self, columns: &[&str]) -> Option<Bounded<f64>> {
        columns.iter().try_fold(Bounded::exact(0.0), |sum, column| {
            let more = bounds(self.cells.get(place(self.table, column)?)?)?;
            Some(Bounded { value: sum.value + more.value, low: sum.low + more.low, high: sum.high + more.high })
        })
    }

    fn at_most(&self, column: &str) -> Cell {
        match self.cell(column) {
            Cell::Duration(number) if number.high < u64::MAX => Cell::Duration(Bounded::exact(number.high)),
            cell => cell.clone(),
        }
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
