//! Columns and cells that tables of durations have in common: count, total, min, avg, max, stdev, percentiles; and the
//! table of a distribution.

use crate::answer::{Answer, Bounded, Cell, CellClass, Column, Plot, Table};
use crate::{Bins, Histogram, Wishes};

/// Columns of [`cells`].
#[must_use]
pub fn columns() -> Vec<Column> {
    vec![
        Column::of("count", "Count", "intervals"),
        Column::new("total", "Total", CellClass::Duration),
        Column::new("min", "Min", CellClass::Duration).detail(),
        Column::new("avg", "Average", CellClass::Duration),
        Column::new("max", "Max", CellClass::Duration),
        Column::new("stdev", "Deviation", CellClass::Duration).detail(),
    ]
}

/// Columns of [`percentile_cells`].
#[must_use]
pub fn percentile_columns() -> Vec<Column> {
    let column = |(name, title)| Column::new(name, title, CellClass::Duration);
    let [median, p90, p99, p999] = [("p50", "50 %"), ("p90", "90 %"), ("p99", "99 %"), ("p999", "99.9 %")].map(column);
    vec![median.detail(), p90.detail(), p99, p999.detail()]
}

/// The statistics of these durations.
#[must_use]
pub fn cells(durations: &Histogram) -> Vec<Cell> {
    let count = durations.count();
    let duration = |value: Option<u64>| value.map_or(Cell::Empty, |value| Cell::Duration(Bounded::exact(value)));
    let average = (count > 0).then(|| {
        let count = u128::from(count);
        saturated((durations.sum() + count / 2) / count)
    });
    let deviation = durations.sample_standard_deviation().map(|deviation| deviation.round() as u64);
    vec![
        Cell::Count(Bounded::exact(count)),
        Cell::Duration(Bounded::exact(saturated(durations.sum()))),
        duration(durations.min()),
        duration(average),
        duration(durations.max()),
        duration(deviation),
    ]
}

/// Percentiles 50, 90, 99 and 99.9; their bounds are those of the histogram's buckets.
#[must_use]
pub fn percentile_cells(durations: &Histogram) -> Vec<Cell> {
    let quantiles = durations.quantiles([0.5, 0.9, 0.99, 0.999]);
    quantiles.map(|quantile| quantile.map_or(Cell::Empty, Cell::Duration)).to_vec()
}

/// How durations are distributed, in bins that are as wide as wanted, or each reach the same multiple further.
#[must_use]
pub fn distribution(title: impl Into<String>, durations: &Histogram, wishes: &Wishes) -> Table {
    let columns = vec![
        Column::new("low", "From", CellClass::Duration),
        Column::new("high", "Below", CellClass::Duration),
        Column::of("count", "Count", "intervals"),
    ];
    let mut table = Table::new("distribution", title, columns);
    table.plot = Some(Plot::Histogram { low: 0, high: 1, count: 2 });
    let low = wishes.min_ns.or(durations.min());
    let high = wishes.max_ns.or(durations.max());
    let Some((low, high)) = low.zip(high).filter(|_| !durations.is_empty()) else { return table };
    let bins = Bins::logarithmic(low, high, u16::try_from(wishes.bins).unwrap_or(u16::MAX));
    for bin in durations.distribution(&bins).bins {
        table.rows.push(vec![
            Cell::Duration(Bounded::exact(bin.low)),
            Cell::Duration(Bounded::exact(bin.high.saturating_add(1))),
            Cell::Count(bin.count),
        ]);
    }
    table
}

/// How durations are distributed that are some of `all`; a table of this class. In bins over all of them, if all
/// distributions shall have the same.
#[must_use]
pub fn distribution_of(
    class: &'static str,
    title: impl Into<String>,
    (durations, all): (&Histogram, &Histogram),
    wishes: &Wishes,
) -> Table {
    let mut wishes = wishes.clone();
    if wishes.uniform_bins {
        wishes.min_ns = wishes.min_ns.or(all.min());
        wishes.max_ns = wishes.max_ns.or(all.max());
    }
    Table { class, ..distribution(title, durations, &wishes) }
}

/// Where that is wished, distributions of one kind as one table, with a column for each; their bins are alike then.
#[must_use]
pub fn in_series(answer: Answer, wishes: &Wishes) -> Answer {
    if !wishes.series {
        return answer;
    }
    let mut tables: Vec<Table> = Vec::new();
    for mut table in answer.tables {
        let whose = |title: &str| title.split_once(", ").map(|(kind, whose)| (kind.to_owned(), whose.to_owned()));
        let (Some(Plot::Histogram { count, .. }), Some((kind, whose))) = (&table.plot, whose(&table.title)) else {
            tables.push(table);
            continue;
        };
        table.columns[*count].title = whose;
        let is_alike = |known: &&mut Table| known.class == table.class && have_the_same_bins(known, &table);
        let Some(known) = tables.last_mut().filter(is_alike) else {
            tables.push(Table { title: kind, ..table });
            continue;
        };
        known.columns.push(table.columns.swap_remove(*count));
        for (row, other) in known.rows.iter_mut().zip(&mut table.rows) {
            row.push(other.swap_remove(*count));
        }
    }
    Answer { tables }
}

fn have_the_same_bins(one: &Table, other: &Table) -> bool {
    let bins = |table: &Table| -> Vec<Vec<Cell>> { table.rows.iter().map(|row| row[..2].to_vec()).collect() };
    bins(one) == bins(other)
}

/// Leaves the first rows of a table, and says how many there are beyond.
pub fn shorten(table: &mut Table, top: Option<usize>) {
    table.omitted += leave(&mut table.rows, top);
}

/// Leaves the first rows; how many there are beyond.
pub fn leave<T>(rows: &mut Vec<T>, top: Option<usize>) -> u64 {
    let kept = top.unwrap_or(rows.len()).min(rows.len());
    let omitted = rows.len() - kept;
    rows.truncate(kept);
    omitted as u64
}

/// A sum that may be too large for 64 bits.
#[must_use]
pub fn saturated(sum: u128) -> u64 {
    u64::try_from(sum).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distributions(wishes: &Wishes) -> Answer {
        let values = |all: &[u64]| {
            let mut histogram = Histogram::default();
            all.iter().for_each(|&value| histogram.record(value));
            histogram
        };
        let (one, other, all) = (values(&[1, 2]), values(&[2, 100]), values(&[1, 2, 2, 100]));
        let of = |title: &str, some| distribution_of("distribution-of", title, (some, &all), wishes);
        let total = distribution_of("distribution", "Waits", (&all, &all), wishes);
        Answer { tables: vec![total, of("Waits, priority 1", &one), of("Waits, priority 2", &other)] }
    }

    /// `--freq-series`: a column for each, over the same bins.
    #[test]
    fn distributions_of_one_kind_are_one_table() {
        let wishes = Wishes { bins: 2, uniform_bins: true, series: true, ..Wishes::default() };
        let Answer { tables } = in_series(distributions(&wishes), &wishes);
        assert_eq!(tables.iter().map(|table| &*table.title).collect::<Vec<_>>(), ["Waits", "Waits"]);
        let titles: Vec<&str> = tables[1].columns.iter().map(|column| &*column.title).collect();
        assert_eq!(titles, ["From", "Below", "priority 1", "priority 2"]);
        let counts = |row: &Vec<Cell>| row[2..].to_vec();
        let count = |count| Cell::Count(Bounded::exact(count));
        assert_eq!(tables[1].rows.iter().map(counts).collect::<Vec<_>>(), [[count(2), count(1)], [count(0), count(1)]]);
    }

    /// `--freq-uniform` alone gives them the same bins; without it each has its own.
    #[test]
    fn bins_are_alike_if_that_is_wished() {
        let last = |wishes: &Wishes| distributions(wishes).tables[1].rows.last().map(|row| row[1].clone());
        let below = |end| Some(Cell::Duration(Bounded::exact(end)));
        assert_eq!(last(&Wishes { bins: 2, ..Wishes::default() }), below(3));
        assert_eq!(last(&Wishes { bins: 2, uniform_bins: true, ..Wishes::default() }), below(101));
        assert_eq!(in_series(distributions(&Wishes::default()), &Wishes::default()).tables.len(), 3);
    }
}
