//! The places of columns in a table for people: how wide their cells are, and how much they tell.

use kymo_session::{Cell, CellClass, ColumnRank, ERRNO, Table};

use crate::answer::screen::columns;
use crate::answer::words::{CellFormatter, CellText, escaped};

/// Columns of the shortest bar that shows anything.
pub(crate) const BAR_MIN: usize = 8;
/// Columns that a bar needs, with the gap before it.
pub(crate) const BAR_ROOM: usize = BAR_MIN + 2;

/// A terminal of fewer columns has less room between those of a table.
const NARROW: usize = 40;

/// A column's place.
#[derive(Clone, Debug)]
pub(crate) struct ColumnPlace {
    /// The place of its cells in rows.
    pub(crate) column: usize,
    pub(crate) title: String,
    pub(crate) rank: ColumnRank,
    /// It says which row it is, or what the table is about.
    pub(crate) is_key: bool,
    /// No cell says more than zero or nothing.
    pub(crate) is_zero: bool,
    /// All cells are empty.
    pub(crate) is_empty: bool,
    /// Its cells are instants or spans of time.
    pub(crate) is_time: bool,
    /// Numbers are aligned right.
    pub(crate) is_right: bool,
    /// Whether it may be cut.
    pub(crate) is_name: bool,
    /// Spans of time are shown by their begins.
    pub(crate) begins_only: bool,
    /// Columns of the values of all cells.
    pub(crate) cells: usize,
    /// Columns of the values of all cells, of spans of time by their begins.
    begins: usize,
    /// Columns for the value; more than its cells where the title needs them.
    pub(crate) value: usize,
    /// Columns of the bounds, if any cell has some.
    pub(crate) bounds: usize,
    /// Columns between it and the next one.
    pub(crate) gap: usize,
}

/// The title of a column; for a plain count the counted items, `Intervals`.
fn title(column: &kymo_session::Column) -> String {
    let mut letters = column.unit.filter(|_| column.title == "Count").unwrap_or(&column.title).chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

impl ColumnPlace {
    /// The place of a column before its cells are known.
    pub(crate) fn of(place: usize, table: &Table, is_key: bool, screen: Option<usize>) -> Self {
        use CellClass::{Disk, Irq, Mixed, NetworkInterface, Path, Process, Syscall, Text, TimeRange, Timestamp};
        let column = &table.columns[place];
        let title = escaped(&title(column)).into_owned();
        let is_name = matches!(column.class, Text | Syscall | Process | Path | Disk | NetworkInterface | Irq | Mixed);
        // On a terminal, names of errors stand behind their numbers.
        let has_names = screen.is_some() && column.unit == Some(ERRNO);
        let is_right = !is_name && column.class != TimeRange && !has_names;
        Self {
            column: place,
            title,
            rank: column.rank,
            is_key,
            is_zero: true,
            is_empty: true,
            is_time: matches!(column.class, Timestamp | TimeRange),
            is_right,
            is_name,
            begins_only: false,
            cells: 0,
            begins: 0,
            value: 0,
            bounds: 0,
            gap: if screen.is_some_and(|width| width < NARROW) { 1 } else { 2 },
        }
    }

    /// Makes room for a cell.
    pub(crate) fn measure(&mut self, cell: &Cell, text: &CellText, words: &CellFormatter) {
        self.cells = self.cells.max(columns(&text.value));
        self.bounds = self.bounds.max(columns(&text.bounds));
        if let Cell::TimeRange(begin, _) = cell {
            self.begins = self.begins.max(columns(&words.begin(*begin)));
        }
    }

    /// Learns from a cell whether the column tells anything.
    pub(crate) fn note(&mut self, cell: &Cell) {
        self.is_zero &= is_nothing(cell);
        self.is_empty &= matches!(cell, Cell::Empty);
    }

    pub(crate) fn width(&self) -> usize {
        self.value + if self.bounds > 0 { 1 + self.bounds } else { 0 }
    }

    /// Makes room for the title, which may reach over the bounds too.
    pub(crate) fn make_room(&mut self) {
        let above = if self.bounds == 0 { 0 } else { 1 + self.bounds };
        self.value = self.cells.max(columns(&self.title).saturating_sub(above));
    }

    /// Shows spans of time by their begins alone.
    pub(crate) fn shorten(&mut self) {
        (self.begins_only, self.cells) = (true, self.begins);
        self.make_room();
    }

    /// Whether that would make it narrower.
    pub(crate) fn can_shorten(&self) -> bool {
        self.begins > 0 && self.begins < self.cells
    }
}

/// Whether a cell says no more than zero or nothing.
pub(crate) fn is_nothing(cell: &Cell) -> bool {
    match cell {
        Cell::Empty | Cell::Flag(false) | Cell::Integer(0) => true,
        Cell::Count(number) | Cell::Duration(number) | Cell::Size(number) => number.value == 0 && number.high == 0,
        Cell::Ratio(number) | Cell::Bitrate(number) => number.value == 0.0 && number.high == 0.0,
        Cell::Number(number) => *number == 0.0,
        _ => false,
    }
}

/// Columns of all places and the gaps between them.
pub(crate) fn total(places: &[ColumnPlace]) -> usize {
    let all: usize = places.iter().map(|place| place.width() + place.gap).sum();
    all.saturating_sub(places.last().map_or(0, |place| place.gap))
}
