//! Tables for people: aligned; on a terminal as wide as it is, with bars where they show more than
//! numbers.
//!
//! ```text
//! Threads by run time  12:18:50.430000000 to 12:18:52.010000000 (1.58 s)     title and span
//!           Run time          Share  Thread                                  numbers right, names left
//! 12.3 ms [11.9, 14.0]         1.2%  bash (123)   ██████▌░                   bounds beside, bars behind
//!  2.00 ms                     0.2%  unknown      █
//! ... and 17 more rows (--top all)
//! ```
//!
//! Every cell is put into words twice, first to learn how wide columns have to be: a million rows take no memory.
//! A pipe gets all columns and rows. On a terminal `fit` chooses those that have room.

use std::io::{self, Write};

use kymo_session::{Cell, Table};

use crate::answer::fit::{self, LeftOut};
use crate::answer::place::{BAR_MIN, ColumnPlace, is_nothing, total};
use crate::answer::screen::{Screen, ScreenTone, columns};
use crate::answer::words::{CellFormatter, CellText, escaped, is_unknown};
use crate::answer::{is_empty, sum};
use crate::show::{counted, duration};

/// Columns of the longest bar.
const BAR_MAX: usize = 30;

/// How a table is shown, beside the screen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableLook {
    /// With bars where a terminal has room for them.
    pub(crate) bars: bool,
    /// Below its title, from when to when it is.
    pub(crate) span: bool,
    /// Rows at most, on a terminal; `None`: all.
    pub(crate) rows: Option<usize>,
}

impl TableLook {
    /// Everything, as a pipe gets it.
    pub(crate) const WHOLE: Self = Self { bars: true, span: true, rows: None };
}

/// Shows the table.
pub(crate) fn show(
    table: &Table,
    words: &CellFormatter,
    screen: Screen,
    look: TableLook,
    out: &mut impl Write,
) -> io::Result<()> {
    head(table, words, screen, look.span, out)?;
    if is_empty(table) {
        return writeln!(out, "{}", screen.toned(ScreenTone::Faint, "nothing"));
    }
    rows(table, words, screen, look, out)
}

/// The table below its title.
pub(crate) fn rows(
    table: &Table,
    words: &CellFormatter,
    screen: Screen,
    look: TableLook,
    out: &mut impl Write,
) -> io::Result<()> {
    let chosen = match screen.width {
        Some(_) => fit::chosen_rows(table, look.rows),
        None => (0..table.rows.len()).collect(),
    };
    let layout = TableLayout::new(table, &chosen, words, screen, look.bars);
    layout.titles(out)?;
    for &row in &chosen {
        layout.row(table, &table.rows[row], words, out)?;
    }
    rest(table.omitted + (table.rows.len() - chosen.len()) as u64, screen, out)?;
    layout.left_out.show(table.omitted > 0, screen, out)
}

/// The table's title, and its span of time if that is wanted.
pub(crate) fn head(
    table: &Table,
    words: &CellFormatter,
    screen: Screen,
    span: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let title = escaped(&table.title);
    let span = table.span_ns.filter(|_| span).map(|span| span_word(span, words)).unwrap_or_default();
    let width = columns(&title) + if span.is_empty() { 0 } else { 2 + columns(&span) };
    if screen.width.is_none_or(|columns| width <= columns) {
        write!(out, "{}", screen.toned(ScreenTone::Title, &title))?;
        let gap = if span.is_empty() { "" } else { "  " };
        return writeln!(out, "{gap}{}", screen.toned(ScreenTone::Faint, &span));
    }
    for (tone, text) in [(ScreenTone::Title, &*title), (ScreenTone::Faint, &*span)] {
        for line in screen.wrapped(text).into_iter().filter(|line| !line.is_empty()) {
            writeln!(out, "{}", screen.toned(tone, &line))?;
        }
    }
    Ok(())
}

/// From when to when, and how long that is.
pub(crate) fn span_word((begin, end): (i64, i64), words: &CellFormatter) -> String {
    let day = words.times.day(begin).map_or_else(String::new, |day| format!("{day} "));
    let (from, to) = (words.times.zoned(begin), words.times.zoned(end));
    let length = duration(i128::from(end) - i128::from(begin));
    match begin == end {
        true if is_unknown(begin) => "times are unknown".to_owned(),
        true => format!("{day}{from}"),
        // It would be the length of all times that there can be.
        false if is_unknown(begin) || is_unknown(end) => format!("{day}{from} to {to}"),
        false => format!("{day}{from} to {to} ({length})"),
    }
}

/// How many rows there are beyond those shown.
pub(crate) fn rest(omitted: u64, screen: Screen, out: &mut impl Write) -> io::Result<()> {
    if omitted == 0 {
        return Ok(());
    }
    let rest = format!("... and {} (--top all)", counted(omitted, "more row"));
    for line in screen.wrapped(&rest) {
        writeln!(out, "{}", screen.toned(ScreenTone::Faint, &line))?;
    }
    Ok(())
}

/// Bars behind the rows.
#[derive(Clone, Debug)]
struct Bars {
    columns: Vec<usize>,
    width: usize,
    most: f64,
}

/// The positions of all parts.
struct TableLayout {
    screen: Screen,
    places: Vec<ColumnPlace>,
    bars: Option<Bars>,
    left_out: LeftOut,
}

impl TableLayout {
    fn new(table: &Table, rows: &[usize], words: &CellFormatter, screen: Screen, bars: bool) -> Self {
        let place = |place: usize| ColumnPlace::of(place, table, fit::is_key(table, place), screen.width);
        let mut places: Vec<ColumnPlace> = (0..table.columns.len()).map(place).collect();
        for &row in rows {
            for ((place, column), cell) in places.iter_mut().zip(&table.columns).zip(&table.rows[row]) {
                place.measure(cell, &words.word_of(column, cell), words);
            }
        }
        // A column is zero if it is in all rows, also in those that are not shown.
        for row in &table.rows {
            places.iter_mut().zip(row).for_each(|(place, cell)| place.note(cell));
        }
        places.iter_mut().for_each(ColumnPlace::make_room);
        let wanted = Some(fit::bars(table)).filter(|columns| bars && screen.width.is_some() && !columns.is_empty());
        let left_out = match screen.width {
            Some(width) => fit::fit(&mut places, width, wanted.is_some() && !rows.is_empty()),
            None => LeftOut::default(),
        };
        let used = total(&places);
        let free = screen.width.unwrap_or(0).saturating_sub(used + 2).min(BAR_MAX);
        let bars = wanted.filter(|_| free >= BAR_MIN).map(|columns| {
            let ends = rows.iter().filter_map(|row| Some(sum(&table.rows[*row], &columns)?.finite_high()));
            let most = ends.fold(0.0, f64::max);
            Bars { columns, width: free, most }
        });
        Self { screen, places, bars, left_out }
    }

    fn titles(&self, out: &mut impl Write) -> io::Result<()> {
        if self.places.is_empty() {
            return Ok(());
        }
        let mut line = String::new();
        for place in &self.places {
            let title = self.screen.begun(&place.title, place.width());
            let gap = " ".repeat(place.width().saturating_sub(columns(&title)));
            // A short title is placed above the values, not above their bounds.
            let before = if place.is_right { place.value.saturating_sub(columns(&title)) } else { 0 };
            let (before, after) = gap.split_at(before.min(gap.len()));
            line += before;
            line += &self.screen.toned(ScreenTone::Head, &title);
            line += after;
            line += &" ".repeat(place.gap);
        }
        writeln!(out, "{}", line.trim_end())
    }

    fn row(&self, table: &Table, row: &[Cell], words: &CellFormatter, out: &mut impl Write) -> io::Result<()> {
        let mut line = String::new();
        let shown = self.places.iter().filter_map(|place| Some((place, row.get(place.column)?)));
        for (place, cell) in shown {
            let CellText { value, bounds } = match cell {
                Cell::TimeRange(begin, _) if place.begins_only => {
                    CellText { value: words.begin(*begin), bounds: String::new() }
                }
                cell => words.word_of(&table.columns[place.column], cell),
            };
            let value = match cell {
                Cell::Process { .. } => self.screen.cut_process(&value, place.value),
                _ => self.screen.cut(&value, place.value),
            };
            let gap = " ".repeat(place.value.saturating_sub(columns(&value)));
            // Zeros are as faint as nothing, on a terminal.
            let is_faint =
                matches!(cell, Cell::Unknown | Cell::Empty) || self.screen.width.is_some() && is_nothing(cell);
            let value = if is_faint { self.screen.toned(ScreenTone::Faint, &value) } else { value };
            line += &if place.is_right { format!("{gap}{value}") } else { format!("{value}{gap}") };
            if place.bounds > 0 {
                line += " ";
                line += &self.screen.toned(ScreenTone::Faint, &bounds);
                line += &" ".repeat(place.bounds.saturating_sub(columns(&bounds)));
            }
            line += &" ".repeat(place.gap);
        }
        if let Some(bars) = &self.bars
            && let Some(number) = sum(row, &bars.columns)
        {
            line += &self.bar(bars, number.low, number.finite_high());
        }
        writeln!(out, "{}", line.trim_end())
    }

    /// Solid as far as it is certain, faint as far as it may be.
    fn bar(&self, bars: &Bars, low: f64, high: f64) -> String {
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
