//! Courses over time, as lines of blocks: a line for each of several series, or one with height.
//!
//! ```text
//! cpu 0  ▁▂▃▅▇█▇▅▃▂▁      at most 97.3%
//! cpu 1  ▁▁▁▁▂▂▂▂▁▁▁      at most 21.0%
//!        0 ns     790 ms
//! ```
//!
//! Each column of the terminal is a span of time and shows the mean over it, weighted by how long
//! each value lasted. All series have the same scale, so that they can be compared. An unknown
//! value is `?`, zero is a space.

use std::collections::HashSet;
use std::io::{self, Write};

use kymo_session::{Cell, Table};

use crate::answer::numeric;
use crate::answer::screen::{Screen, ScreenTone, columns};
use crate::answer::table::{head, rest};
use crate::answer::words::{CellFormatter, EMPTY, duration_word};

/// Series that are drawn; the rest is counted.
const SERIES_MAX: usize = 32;
/// Columns of the longest name of a series.
const NAME_MAX: usize = 24;
/// A terminal of fewer columns has room for signs instead of words.
const NARROW: usize = 60;
/// One of fewer has none for the highest values of several lines.
const NARROWEST: usize = 32;
/// Lines of a series that is alone.
const HEIGHT: usize = 6;
/// Columns of time at most: more make no terminal's line clearer.
const TIME_MAX: usize = 120;

/// Columns of a table that form a course.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axes {
    pub(crate) time: usize,
    pub(crate) series: Option<usize>,
    pub(crate) value: usize,
}

/// Draws the course, with its span of time beside its title if `span`; `false` if it has nothing to draw.
pub(crate) fn show(
    table: &Table,
    axes: Axes,
    words: &CellFormatter,
    screen: Screen,
    span: bool,
    out: &mut impl Write,
) -> io::Result<bool> {
    let Some(chart) = Chart::new(table, axes, words, screen) else { return Ok(false) };
    head(table, words, screen, span, out)?;
    match chart.series.len() {
        1 => chart.high(screen, out)?,
        _ => chart.lines(screen, out)?,
    }
    chart.time(screen, out)?;
    if chart.undrawn > 0 {
        let undrawn = format!("... and {} more series (--no-plot)", crate::show::grouped(chart.undrawn));
        for line in screen.wrapped(&undrawn) {
            writeln!(out, "{line}")?;
        }
    }
    rest(table.omitted, screen, out)?;
    Ok(true)
}

/// One of several courses.
struct Series {
    name: String,
    /// Weighted sums of values, by column.
    sums: Vec<f64>,
    /// Nanoseconds with a value, by column.
    known: Vec<f64>,
    /// Whether a value is unknown, by column.
    unknown: Vec<bool>,
}

impl Series {
    fn new(name: String, width: usize) -> Self {
        Self { name, sums: vec![0.0; width], known: vec![0.0; width], unknown: vec![false; width] }
    }

    fn mean(&self, column: usize) -> Option<f64> {
        (self.known[column] > 0.0).then(|| self.sums[column] / self.known[column])
    }

    fn most(&self) -> f64 {
        (0..self.sums.len()).filter_map(|column| self.mean(column)).fold(0.0, f64::max)
    }
}

/// Courses, put into columns.
struct Chart {
    begin_ns: i64,
    end_ns: i64,
    series: Vec<Series>,
    /// Series beyond those.
    undrawn: u64,
    /// The value as high as a line.
    most: f64,
    /// The words for heights, from the bottom and for each series.
    most_word: String,
    series_most: Vec<String>,
}

impl Chart {
    fn new(table: &Table, axes: Axes, words: &CellFormatter, screen: Screen) -> Option<Self> {
        let (begin_ns, end_ns) = span(table, axes).filter(|(begin, end)| begin < end)?;
        let sample = table.rows.iter().filter_map(|row| row.get(axes.value)).find(|cell| numeric(cell).is_some())?;
        let names = names(table, axes, words);
        let label = names.iter().map(|name| columns(name)).max().unwrap_or(0).min(name_max(screen));
        // Room for the name, two gaps and the highest value behind.
        let beside = if has_most(screen) || names.len() == 1 { 14 + columns(most_of(screen)) } else { 2 };
        let width = screen.width?.saturating_sub(label + beside).clamp(4, TIME_MAX);
        // A column is a nanosecond at least: a shorter course is a few rows.
        if begin_ns.abs_diff(end_ns) < width as u64 {
            return None;
        }
        let mut chart = Self {
            begin_ns,
            end_ns,
            series: names.iter().map(|name| Series::new(name.clone(), width)).collect(),
            undrawn: 0,
            most: 0.0,
            most_word: String::new(),
            series_most: Vec::new(),
        };
        let mut undrawn: HashSet<String> = HashSet::new();
        for row in &table.rows {
            let name = name(table, row, axes, words);
            let Some(place) = names.iter().position(|known| *known == name) else {
                undrawn.insert(name);
                continue;
            };
            chart.add(place, row, axes);
        }
        chart.undrawn = undrawn.len() as u64;
        chart.most = chart.series.iter().map(Series::most).fold(0.0, f64::max);
        chart.most_word = words.like(sample, chart.most);
        chart.series_most = chart.series.iter().map(|series| words.like(sample, series.most())).collect();
        Some(chart)
    }

    /// Adds a row to the columns that it touches.
    fn add(&mut self, place: usize, row: &[Cell], axes: Axes) {
        let Some((begin, end)) = row.get(axes.time).and_then(|cell| range(cell, (self.begin_ns, self.end_ns))) else {
            return;
        };
        let width = self.series[place].sums.len();
        let column_ns = (self.end_ns as f64 - self.begin_ns as f64) / width as f64;
        // A moment is as good as the shortest time.
        let from = begin as f64 - self.begin_ns as f64;
        let to = (end as f64 - self.begin_ns as f64).max(from + 1.0);
        let first = ((from / column_ns).max(0.0) as usize).min(width - 1);
        let last = ((to / column_ns).ceil().max(0.0) as usize).clamp(first + 1, width.max(first + 1));
        let value = row.get(axes.value).and_then(numeric);
        let series = &mut self.series[place];
        for column in first..last.min(width) {
            let overlap = to.min((column + 1) as f64 * column_ns) - from.max(column as f64 * column_ns);
            match value {
                Some(value) if overlap > 0.0 => {
                    series.sums[column] += value.value * overlap;
                    series.known[column] += overlap;
                }
                Some(_) => {}
                None => series.unknown[column] = true,
            }
        }
    }

    /// A line for each series.
    fn lines(&self, screen: Screen, out: &mut impl Write) -> io::Result<()> {
        let label = self.label(screen);
        for (series, most) in self.series.iter().zip(&self.series_most) {
            let name = screen.cut(&series.name, label);
            let gap = " ".repeat(label.saturating_sub(columns(&name)));
            let line: String = (0..series.sums.len()).map(|column| self.glyph(series, column, 0, 1, screen)).collect();
            let line = format!("{name}{gap}  {}", screen.toned(ScreenTone::Bar, &line));
            match has_most(screen) {
                true => writeln!(out, "{line}  {}{}", most_of(screen), screen.toned(ScreenTone::Faint, most))?,
                false => writeln!(out, "{line}")?,
            }
        }
        Ok(())
    }

    /// One series, some lines high, with the meaning of its height.
    fn high(&self, screen: Screen, out: &mut impl Write) -> io::Result<()> {
        let series = &self.series[0];
        let label = self.label(screen);
        let edge = if screen.unicode { "│" } else { "|" };
        for line in (0..HEIGHT).rev() {
            let glyph = |column| self.glyph(series, column, line, HEIGHT, screen);
            let text: String = (0..series.sums.len()).map(glyph).collect();
            let height = match line {
                line if line + 1 == HEIGHT => &*self.most_word,
                0 => "0",
                _ => "",
            };
            let text = screen.toned(ScreenTone::Bar, text.trim_end());
            writeln!(out, "{height:>label$} {edge}{text}")?;
        }
        Ok(())
    }

    /// Columns before the first column of time: two less, for the gap.
    fn label(&self, screen: Screen) -> usize {
        match &*self.series {
            [_] => columns(&self.most_word),
            several => several.iter().map(|series| columns(&series.name)).max().unwrap_or(0).min(name_max(screen)),
        }
    }

    /// When the first column begins, the middle one, and the last one ends.
    fn time(&self, screen: Screen, out: &mut impl Write) -> io::Result<()> {
        let width = self.series[0].sums.len();
        let length = i128::from(self.end_ns) - i128::from(self.begin_ns);
        let [middle, end] = [length / 2, length].map(|nanos| duration_word(nanos as f64));
        let label = self.label(screen);
        let mut line = format!("{}0", " ".repeat(label + 2));
        for (word, place) in [(&middle, width / 2), (&end, width)] {
            let at = label + 2 + place;
            let start = if place == width { at.saturating_sub(columns(word)) } else { at - columns(word).min(at) / 2 };
            if start > columns(&line) {
                line += &" ".repeat(start - columns(&line));
                line += word;
            }
        }
        writeln!(out, "{}", screen.toned(ScreenTone::Faint, &line))
    }

    /// How high a series is in one column, within one of several lines.
    fn glyph(&self, series: &Series, column: usize, line: usize, lines: usize, screen: Screen) -> char {
        const UNICODE: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const ASCII: [char; 9] = [' ', '.', '.', ':', '-', '=', '+', '*', '#'];
        let glyphs = if screen.unicode { UNICODE } else { ASCII };
        match series.mean(column) {
            None if series.unknown[column] && line == 0 => '?',
            None => ' ',
            Some(mean) if mean <= 0.0 || self.most <= 0.0 => ' ',
            Some(mean) => {
                // A value above zero stays visible.
                let steps = ((mean / self.most * (lines * 8) as f64).round() as usize).max(1);
                glyphs[steps.saturating_sub(line * 8).min(8)]
            }
        }
    }
}

/// Columns of the longest name of a series.
fn name_max(screen: Screen) -> usize {
    NAME_MAX.min(screen.width.unwrap_or(usize::MAX) / 4)
}

/// Whether there is room for the highest value of each of several lines.
fn has_most(screen: Screen) -> bool {
    screen.width.is_none_or(|width| width >= NARROWEST)
}

/// The words before the highest value of a line.
fn most_of(screen: Screen) -> &'static str {
    match screen.width {
        Some(width) if width < NARROW && screen.unicode => "≤ ",
        Some(width) if width < NARROW => "<= ",
        _ => "at most ",
    }
}

/// Names of the series that are drawn, in the order in which they come.
fn names(table: &Table, axes: Axes, words: &CellFormatter) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in &table.rows {
        let name = name(table, row, axes, words);
        if !names.contains(&name) {
            names.push(name);
        }
        if names.len() == SERIES_MAX {
            break;
        }
    }
    names
}

/// The name of a series: all columns from its time to the last one that names it.
fn name(table: &Table, row: &[Cell], axes: Axes, words: &CellFormatter) -> String {
    let Some(series) = axes.series else { return String::new() };
    let first = if axes.time < series { axes.time + 1 } else { series };
    let cells = || (first..=series).filter_map(|column| Some((column, row.get(column)?)));
    // A CPU tells more than its stream.
    let has_cpu = cells().any(|(_, cell)| matches!(cell, Cell::Cpu(_)));
    let is_said = |column: usize| !(has_cpu && table.columns.get(column).is_some_and(|column| column.name == "stream"));
    let names = cells().filter(|&(column, cell)| is_said(column) && !matches!(cell, Cell::Empty));
    let names: Vec<String> = names
        .map(|(_, cell)| match cell {
            Cell::Cpu(cpu) => format!("cpu {cpu}"),
            cell => words.word(cell).value,
        })
        .collect();
    if names.is_empty() { EMPTY.to_owned() } else { names.join(" ") }
}

/// The span of the rows, if their table does not give it.
fn span(table: &Table, axes: Axes) -> Option<(i64, i64)> {
    let times = || {
        table.rows.iter().filter_map(|row| row.get(axes.time)).flat_map(|cell| match cell {
            Cell::TimeRange(begin, end) => [*begin, *end],
            Cell::Timestamp(at) => [Some(*at), None],
            _ => [None, None],
        })
    };
    let seen = || Some((times().flatten().min()?, times().flatten().max()?));
    table.span_ns.or_else(seen)
}

/// The row's part of the span.
fn range(cell: &Cell, span: (i64, i64)) -> Option<(i64, i64)> {
    let (begin, end) = match cell {
        Cell::TimeRange(begin, end) => (begin.unwrap_or(span.0), end.unwrap_or(span.1)),
        Cell::Timestamp(at) => (*at, *at),
        _ => return None,
    };
    let is_inside = begin <= end && end >= span.0 && begin <= span.1;
    is_inside.then(|| (begin.max(span.0), end.min(span.1)))
}
