//! Tables for people: aligned, as wide as the terminal, with bars where they show more than
//! numbers.
//!
//! ```text
//! Threads by run time  12:18:50.430000000 to 12:18:52.010000000 (1.58 s)     title and span
//!           Run time          Share  Thread                                  numbers right, names left
//! 12.3 ms [11.9, 14.0]         1.2%  bash (123)   ██████▌░                   bounds beside, bars behind
//!  2.00 ms                     0.2%  unknown      █
//! ... and 17 more (--top all)
//! ```
//!
//! Every cell is put into words twice, first to learn how wide columns have to be: a million rows take no memory.

use std::io::{self, Write};

use kymo_session::{Cell, CellClass, Plot, Table};

use crate::answer::numeric;
use crate::answer::screen::{Screen, ScreenTone, columns};
use crate::answer::words::{CellFormatter, CellText, escaped};
use crate::show::{counted, duration};

/// Columns of the longest bar.
const BAR_MAX: usize = 30;
/// A shorter one shows nothing.
const BAR_MIN: usize = 8;
/// Names are not cut to less.
const NAME_MIN: usize = 12;
/// Nor to less than this as long as another part can be left out.
const NAME_MIN_BESIDE_NUMBERS: usize = 24;
/// Titles are not cut to less.
const TITLE_MIN: usize = 6;

/// Shows the table.
pub(crate) fn show(
    table: &Table,
    words: &CellFormatter,
    screen: Screen,
    bars: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    head(table, words, screen, out)?;
    if table.rows.is_empty() && table.omitted == 0 {
        return writeln!(out, "{}", screen.toned(ScreenTone::Faint, "nothing"));
    }
    let layout = TableLayout::new(table, words, screen, bars);
    layout.titles(table, out)?;
    for row in &table.rows {
        layout.row(row, words, out)?;
    }
    rest(table.omitted, screen, out)
}

/// The table's title, and its span of time.
pub(crate) fn head(table: &Table, words: &CellFormatter, screen: Screen, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{}", screen.toned(ScreenTone::Title, &escaped(&table.title)))?;
    if let Some((begin, end)) = table.span_ns {
        let day = words.times.day(begin).map_or_else(String::new, |day| format!("{day} "));
        let (from, to) = (words.times.word(begin), words.times.word(end));
        let length = duration(i128::from(end) - i128::from(begin));
        let span = match begin == end {
            true => format!("{day}{from}"),
            false => format!("{day}{from} to {to} ({length})"),
        };
        write!(out, "  {}", screen.toned(ScreenTone::Faint, &span))?;
    }
    writeln!(out)
}

/// How many rows there are beyond those shown.
pub(crate) fn rest(omitted: u64, screen: Screen, out: &mut impl Write) -> io::Result<()> {
    if omitted == 0 {
        return Ok(());
    }
    let rest = format!("... and {} (--top all)", counted(omitted, "more row"));
    writeln!(out, "{}", screen.toned(ScreenTone::Faint, &rest))
}

/// A column's place.
#[derive(Clone, Debug)]
struct ColumnPlace {
    title: String,
    /// Numbers are aligned right.
    is_right: bool,
    /// Whether it may be cut.
    is_name: bool,
    /// Columns of the values of all cells.
    cells: usize,
    /// Columns for the value; more than its cells where the title needs them.
    value: usize,
    /// Columns of the bounds, if any cell has some.
    bounds: usize,
}

/// The title of a column; for a plain count the counted items, `Intervals`.
fn title(column: &kymo_session::Column) -> String {
    let mut letters = column.unit.filter(|_| column.title == "Count").unwrap_or(&column.title).chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

impl ColumnPlace {
    fn of(column: &kymo_session::Column) -> Self {
        use CellClass::{Disk, Irq, Mixed, NetworkInterface, Path, Process, Syscall, Text, TimeRange};
        let title = escaped(&title(column)).into_owned();
        let is_name = matches!(column.class, Text | Syscall | Process | Path | Disk | NetworkInterface | Irq | Mixed);
        let is_right = !is_name && column.class != TimeRange;
        Self { title, is_right, is_name, cells: 0, value: 0, bounds: 0 }
    }

    fn width(&self) -> usize {
        self.value + if self.bounds > 0 { 1 + self.bounds } else { 0 }
    }

    /// Makes room for the title, which may reach over the bounds too.
    fn make_room(&mut self) {
        let above = if self.bounds == 0 { 0 } else { 1 + self.bounds };
        self.value = self.cells.max(columns(&self.title).saturating_sub(above));
    }

    /// Columns that only the title needs, beyond some.
    fn excess(&self) -> usize {
        self.value.saturating_sub(self.cells.max(TITLE_MIN))
    }
}

/// Bars behind the rows.
#[derive(Clone, Copy, Debug)]
struct Bars {
    column: usize,
    width: usize,
    most: f64,
}

/// The positions of all parts.
struct TableLayout {
    screen: Screen,
    places: Vec<ColumnPlace>,
    bars: Option<Bars>,
}

impl TableLayout {
    fn new(table: &Table, words: &CellFormatter, screen: Screen, bars: bool) -> Self {
        let mut places: Vec<ColumnPlace> = table.columns.iter().map(ColumnPlace::of).collect();
        for row in &table.rows {
            for (place, cell) in places.iter_mut().zip(row) {
                let CellText { value, bounds } = words.word(cell);
                place.cells = place.cells.max(columns(&value));
                place.bounds = place.bounds.max(columns(&bounds));
            }
        }
        places.iter_mut().for_each(ColumnPlace::make_room);
        let wanted = match (&table.plot, screen.width) {
            (Some(Plot::Bars { value } | Plot::Histogram { count: value, .. }), Some(_)) if bars => Some(*value),
            _ => None,
        };
        if let Some(width) = screen.width {
            let room = if wanted.is_some() { width.saturating_sub(BAR_MIN + 2) } else { width };
            cut_names(&mut places, room, NAME_MIN_BESIDE_NUMBERS);
            fit_titles(&mut places, width);
            cut_names(&mut places, width, NAME_MIN);
        }
        let used = total(&places);
        let free = screen.width.unwrap_or(0).saturating_sub(used + 2).min(BAR_MAX);
        let bars = wanted.filter(|_| free >= BAR_MIN).map(|column| {
            let ends = table.rows.iter().filter_map(|row| Some(numeric(row.get(column)?)?.finite_high()));
            Bars { column, width: free, most: ends.fold(0.0, f64::max) }
        });
        Self { screen, places, bars }
    }

    fn titles(&self, table: &Table, out: &mut impl Write) -> io::Result<()> {
        if table.columns.is_empty() {
            return Ok(());
        }
        let mut line = String::new();
        for place in &self.places {
            let title = self.screen.begun(&place.title, place.width());
            let gap = " ".repeat(place.width() - columns(&title));
            // A short title is placed above the values, not above their bounds.
            let before = if place.is_right { place.value.saturating_sub(columns(&title)) } else { 0 };
            let (before, after) = gap.split_at(before);
            line += before;
            line += &self.screen.toned(ScreenTone::Head, &title);
            line += after;
            line += "  ";
        }
        writeln!(out, "{}", line.trim_end())
    }

    fn row(&self, row: &[Cell], words: &CellFormatter, out: &mut impl Write) -> io::Result<()> {
        let mut line = String::new();
        for (place, cell) in self.places.iter().zip(row) {
            let CellText { value, bounds } = words.word(cell);
            let value = match cell {
                Cell::Process { .. } => self.screen.cut_process(&value, place.value),
                _ => self.screen.cut(&value, place.value),
            };
            let gap = " ".repeat(place.value - columns(&value));
            let is_vague = matches!(cell, Cell::Unknown | Cell::Empty);
            let value = if is_vague { self.screen.toned(ScreenTone::Faint, &value) } else { value };
            line += &if place.is_right { format!("{gap}{value}") } else { format!("{value}{gap}") };
            if place.bounds > 0 {
                line += " ";
                line += &self.screen.toned(ScreenTone::Faint, &bounds);
                line += &" ".repeat(place.bounds - columns(&bounds));
            }
            line += "  ";
        }
        if let Some(bars) = self.bars
            && let Some(number) = row.get(bars.column).and_then(numeric)
        {
            line += &self.bar(bars, number.low, number.finite_high());
        }
        writeln!(out, "{}", line.trim_end())
    }

    /// Solid as far as it is certain, faint as far as it may be.
    fn bar(&self, bars: Bars, low: f64, high: f64) -> String {
        let eighths = |value: f64| {
            let share = if bars.most > 0.0 { (value / bars.most).clamp(0.0, 1.0) } else { 0.0 };
            (share * (bars.width * 8) as f64).round() as usize
        };
        let (solid, whole) = (eighths(low), eighths(high).div_ceil(8));
        let bar = if self.screen.unicode {
            let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][solid % 8];
            format!("{}{part}", "█".repeat(solid / 8))
        } else {
            "#".repeat((solid + 4) / 8)
        };
        let faint = if self.screen.unicode { "░" } else { "-" };
        let rest = faint.repeat(whole.saturating_sub(columns(&bar)));
        self.screen.toned(ScreenTone::Bar, &(bar + if low < high { &rest } else { "" })).into_owned()
    }
}

/// Columns of all places and the gaps between them.
fn total(places: &[ColumnPlace]) -> usize {
    places.iter().map(|place| place.width() + 2).sum::<usize>().saturating_sub(2)
}

/// Cuts titles that are wider than the cells below them, the widest first.
fn fit_titles(places: &mut [ColumnPlace], room: usize) {
    while total(places) > room {
        let Some(widest) = places.iter_mut().max_by_key(|place| place.excess()).filter(|place| place.excess() > 0)
        else {
            return;
        };
        widest.value -= 1;
    }
}

/// Cuts names, the longest first, until all fit or none is long.
fn cut_names(places: &mut [ColumnPlace], room: usize, least: usize) {
    loop {
        let Some(excess) = total(places).checked_sub(room).filter(|excess| *excess > 0) else { return };
        let mut names: Vec<&mut ColumnPlace> = places.iter_mut().filter(|place| place.is_name).collect();
        names.sort_by_key(|place| std::cmp::Reverse(place.value));
        let next = names.get(1).map_or(0, |place| place.value).max(least);
        let Some(longest) = names.first_mut().filter(|place| place.value > least) else { return };
        // Down to the next longest, at least by one, so that this ends.
        let spare = (longest.value - next.min(longest.value)).max(1);
        longest.value -= spare.min(excess);
    }
}
