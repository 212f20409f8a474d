//! Which columns and rows of a table a terminal shows, and how wide they are.
//!
//! ```text
//! 190 columns wide ── zeros go ── times lose their ends ── details go, the last first ── names are cut ──> 80
//!                        │              │                     │
//!                        └──────────────┴─ LeftOut ───────────┴─> "left out: Min, Deviation (--wide); ..."
//! ```
//!
//! No number is ever cut. What names a row stays, and so does the value that the table is about.

use std::io::{self, Write};

use kymo_session::{Cell, CellClass, ColumnRank, Plot, Table};

use crate::answer::place::{BAR_ROOM, ColumnPlace, total};
use crate::answer::screen::{Screen, ScreenTone, columns};
use crate::answer::sum;

/// Names and titles are not cut to less as long as a detail can be left out.
const BESIDE_DETAILS: LeastTexts = LeastTexts { name: 24, title: 12 };
/// Nor to less than this as long as another column can.
const BESIDE_NUMBERS: LeastTexts = LeastTexts { name: 16, title: 8 };
/// Names are not cut to less.
const NAME_MIN: usize = 6;
/// Titles are not cut to less.
const TITLE_MIN: usize = 6;

/// Columns to which texts may be cut.
#[derive(Clone, Copy, Debug)]
struct LeastTexts {
    name: usize,
    title: usize,
}

/// Columns that a terminal does not show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// There is no room for them.
    narrow: Vec<String>,
    /// They would show zeros, or nothing.
    zeros: Vec<String>,
}

impl LeftOut {
    /// A line about them, or a few on a narrow terminal; `is_part`: there are rows that the table does not have.
    pub(crate) fn show(&self, is_part: bool, screen: Screen, out: &mut impl Write) -> io::Result<()> {
        let zero = if is_part { "0 or empty in these rows" } else { "all 0 or empty" };
        let zeros = (!self.zeros.is_empty()).then(|| format!("{zero}: {}", self.zeros.join(", ")));
        let narrow = (!self.narrow.is_empty()).then(|| format!("left out: {}", self.narrow.join(", ")));
        let parts: Vec<String> = narrow.into_iter().chain(zeros).collect();
        if parts.is_empty() {
            return Ok(());
        }
        for line in screen.wrapped(&format!("{} (--wide)", parts.join("; "))) {
            writeln!(out, "{}", screen.toned(ScreenTone::Faint, &line))?;
        }
        Ok(())
    }
}

/// Whether a column says which row it is, or what the table is about.
pub(crate) fn is_key(table: &Table, place: usize) -> bool {
    let is_time = matches!(table.columns[place].class, CellClass::Timestamp | CellClass::TimeRange);
    let periods = period_columns(table);
    let is_name = place == periods || place == 0;
    match &table.plot {
        Some(Plot::Histogram { low, high, count }) => [*low, *high, *count].contains(&place),
        Some(Plot::Course { time, series, value }) => [Some(*time), *series, Some(*value)].contains(&Some(place)),
        // A begin time does not name a row of durations. Of two values together, the second one is the last to go.
        Some(Plot::Bars { .. } | Plot::Sums { .. }) => {
            bars(table).first() == Some(&place) || is_name && (place < periods || !is_time)
        }
        None => is_name,
    }
}

/// Columns that say of which period a row is: the first ones.
fn period_columns(table: &Table) -> usize {
    let is_of_period = |name: &str| name == "period" || name.starts_with("period_") || name.starts_with("capture_");
    table.columns.iter().take_while(|column| is_of_period(column.name)).count()
}

/// The columns that bars show, together.
pub(crate) fn bars(table: &Table) -> Vec<usize> {
    match table.plot {
        Some(Plot::Bars { value } | Plot::Histogram { count: value, .. }) => vec![value],
        Some(Plot::Sums { values }) => values.to_vec(),
        Some(Plot::Course { .. }) | None => Vec::new(),
    }
}

/// The rows that are shown, in their order: of a table with bars those with the longest. One that is about all of the
/// others together, and has no name, is among them.
pub(crate) fn chosen_rows(table: &Table, rows: Option<usize>) -> Vec<usize> {
    let all = 0..table.rows.len();
    let Some(most) = rows.filter(|most| *most < table.rows.len()) else { return all.collect() };
    match table.plot {
        // A part of a distribution is none.
        Some(Plot::Histogram { .. }) => all.collect(),
        Some(Plot::Bars { .. } | Plot::Sums { .. }) => {
            let bars = bars(table);
            let number = |row: &usize| sum(&table.rows[*row], &bars).map_or(0.0, |number| number.value);
            let mut longest: Vec<usize> = all.collect();
            longest.sort_by(|one, other| number(other).total_cmp(&number(one)));
            let names = period_columns(table);
            let is_of_all =
                |row: &usize| table.rows[*row].iter().skip(names).take(2).all(|cell| matches!(cell, Cell::Empty));
            if let Some(of_all) = longest.iter().position(is_of_all).filter(|at| *at >= most && most > 0) {
                longest.swap(most - 1, of_all);
            }
            longest.truncate(most);
            longest.sort_unstable();
            longest
        }
        _ => all.take(most).collect(),
    }
}

/// Makes the places fit into a width, and leaves out those that do not.
pub(crate) fn fit(places: &mut Vec<ColumnPlace>, width: usize, has_bars: bool) -> LeftOut {
    let mut left_out = LeftOut::default();
    let is_told =
        |place: &ColumnPlace| place.is_key || !(place.is_empty || place.is_zero && place.rank == ColumnRank::Rest);
    places.retain(|place| {
        let is_new = !is_told(place) && !left_out.zeros.contains(&place.title);
        left_out.zeros.extend(is_new.then(|| place.title.clone()));
        is_told(place)
    });
    // Losses and doubt matter where there are any.
    let doubts = places.iter_mut().filter(|place| place.rank == ColumnRank::Rest);
    doubts.for_each(|place| place.rank = ColumnRank::Main);
    // A bar tells more than a detail.
    let beside = if has_bars { width.saturating_sub(BAR_ROOM) } else { width };
    let mut dropped = Vec::new();
    if least(places, BESIDE_DETAILS) > width {
        for place in places.iter_mut().filter(|place| place.can_shorten()) {
            place.shorten();
            dropped.push((place.column, format!("end of {}", place.title)));
        }
    }
    drop_columns(places, &mut dropped, ColumnRank::Detail, (beside, BESIDE_DETAILS));
    drop_columns(places, &mut dropped, ColumnRank::Main, (width, BESIDE_NUMBERS));
    // As the table has them.
    dropped.sort_unstable_by_key(|(column, _)| *column);
    dropped.dedup_by(|one, other| one.1 == other.1);
    left_out.narrow = dropped.into_iter().map(|(_, title)| title).collect();
    if total(places).min(least(places, BESIDE_DETAILS)) <= beside {
        cut_names(places, beside, BESIDE_DETAILS.name);
    }
    fit_titles(places, width);
    cut_names(places, width, NAME_MIN);
    left_out
}

/// Leaves out columns up to a rank until the others fit if texts are cut.
fn drop_columns(
    places: &mut Vec<ColumnPlace>,
    dropped: &mut Vec<(usize, String)>,
    highest: ColumnRank,
    (width, texts): (usize, LeastTexts),
) {
    while least(places, texts) > width {
        let candidates = places.iter().enumerate().filter(|(_, place)| !place.is_key && place.rank <= highest);
        // The lowest rank, of these the times and the zeros, and of these the last.
        let worth = |place: &ColumnPlace| !(place.is_time || place.is_zero);
        let first = candidates.min_by_key(|(at, place)| (place.rank, worth(place), std::cmp::Reverse(*at)));
        let Some(at) = first.map(|(at, _)| at) else { return };
        let place = places.remove(at);
        dropped.push((place.column, place.title));
    }
}

/// Columns that places need if names and titles are cut.
fn least(places: &[ColumnPlace], texts: LeastTexts) -> usize {
    let width = |place: &ColumnPlace| {
        let cells = if place.is_name { place.cells.min(texts.name) } else { place.cells };
        let bounds = if place.bounds > 0 { 1 + place.bounds } else { 0 };
        cells + bounds.max(columns(&place.title).min(texts.title).saturating_sub(cells)) + place.gap
    };
    places.iter().map(width).sum::<usize>().saturating_sub(places.last().map_or(0, |place| place.gap))
}

/// Columns that only the title needs, beyond some.
fn excess(place: &ColumnPlace) -> usize {
    place.value.saturating_sub(place.cells.max(TITLE_MIN))
}

/// Cuts titles that are wider than the cells below them, the widest first.
fn fit_titles(places: &mut [ColumnPlace], room: usize) {
    while total(places) > room {
        let Some(widest) = places.iter_mut().max_by_key(|place| excess(place)).filter(|place| excess(place) > 0) else {
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
