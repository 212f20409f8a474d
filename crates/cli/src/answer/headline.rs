//! Headlines in words.
//!
//! ```text
//! "CPU " 3 " was busiest: " [0.87, 0.87, 0.87]     "CPU 3 was busiest: 87.0%"
//!                           [0.20, 0.25, 0.90]     "CPU 3 was busiest: between 20.0% and 90.0%"
//! ```

use kymo_session::{Bounded, Cell, ERRNO, Headline, HeadlinePart};

use crate::answer::errno::errno_name;
use crate::answer::words::CellFormatter;
use crate::answer::{Drawn, numeric};
use crate::show::noun_of;

/// The headline in words; cells as tables show them.
pub(crate) fn text(headline: &Headline, words: &CellFormatter) -> String {
    let part = |part: &HeadlinePart| match part {
        HeadlinePart::Text(text) => text.clone(),
        HeadlinePart::Cell(cell, unit) => spoken(cell, *unit, words),
        HeadlinePart::Counted(cell, noun) => counted(cell, noun, words),
    };
    headline.parts.iter().map(part).collect()
}

/// A cell in the middle of a sentence.
fn spoken(cell: &Cell, unit: Option<&'static str>, words: &CellFormatter) -> String {
    match cell {
        Cell::Empty => "(none)".to_owned(),
        Cell::Unknown => "(unknown)".to_owned(),
        Cell::Integer(number) if unit == Some(ERRNO) => {
            let name = u64::try_from(*number).ok().and_then(errno_name);
            name.map_or_else(|| format!("error {number}"), |name| format!("{name} ({number})"))
        }
        Cell::Count(_) => bounded(cell, words).unwrap_or_else(|| "an unknown number".to_owned()),
        _ => bounded(cell, words).unwrap_or_else(|| "an unknown amount".to_owned()),
    }
}

/// A number of things: `1 call`, `at least 5 calls`, `an unknown number of calls`.
fn counted(cell: &Cell, noun: &str, words: &CellFormatter) -> String {
    let most = |count: Drawn| if count.high.is_infinite() { count.low } else { count.high };
    let noun = noun_of(numeric(cell).map_or(0, |count| most(count) as u64), noun);
    match bounded(cell, words) {
        Some(number) => format!("{number} {noun}"),
        None => format!("an unknown number of {noun}"),
    }
}

/// A number with its bounds, where they tell more than it; `None`: nothing is known.
fn bounded(cell: &Cell, words: &CellFormatter) -> Option<String> {
    let text = words.word(cell);
    let Some(Drawn { low, high, .. }) = numeric(cell).filter(|number| number.low < number.high) else {
        return Some(text.value);
    };
    // A count is exact, or it is not; other numbers whose bounds are not worth mentioning have none in words.
    let has_bounds = !text.bounds.is_empty();
    let is_count = matches!(cell, Cell::Count(_));
    match words.ends(cell) {
        _ if high.is_infinite() && low <= 0.0 => None,
        _ if high.is_infinite() || is_count && !has_bounds => {
            Some(format!("at least {}", words.word(&lowest(cell)).value))
        }
        Some([low, high]) if has_bounds => Some(format!("between {low} and {high}")),
        _ => Some(text.value),
    }
}

/// A number that is as low as it can be.
fn lowest(cell: &Cell) -> Cell {
    match cell {
        Cell::Count(number) => Cell::Count(Bounded::exact(number.low)),
        Cell::Duration(number) => Cell::Duration(Bounded::exact(number.low)),
        Cell::Size(number) => Cell::Size(Bounded::exact(number.low)),
        Cell::Ratio(number) => Cell::Ratio(Bounded::exact(number.low)),
        Cell::Bitrate(number) => Cell::Bitrate(Bounded::exact(number.low)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::InstantFormat;
    use crate::answer::words::CellDetail;

    fn words(detail: CellDetail) -> CellFormatter {
        CellFormatter { times: InstantFormat::default(), unicode: true, detail }
    }

    fn said(cell: &Cell) -> String {
        said_of(cell, None)
    }

    fn said_of(cell: &Cell, unit: Option<&'static str>) -> String {
        spoken(cell, unit, &words(CellDetail::Telling))
    }

    #[test]
    fn numbers_are_as_certain_as_they_are() {
        let duration = |low, value, high| said(&Cell::Duration(Bounded { value, low, high }));
        assert_eq!(duration(5_000_000, 5_000_000, 5_000_000), "5.00 ms");
        // As wide as a bucket of a histogram.
        assert_eq!(duration(5_000_000, 5_002_000, 5_005_000), "5.00 ms");
        assert_eq!(duration(5_000_000, 5_000_000, u64::MAX), "at least 5.00 ms");
        assert_eq!(duration(4_000_000, 5_000_000, 6_000_000), "between 4.00 ms and 6.00 ms");
        assert_eq!(duration(0, 5_000_000, u64::MAX), "an unknown amount");
        let count = |low, value, high| said(&Cell::Count(Bounded { value, low, high }));
        assert_eq!((count(1000, 1000, 1000), count(1000, 1000, 1002)), ("1,000".into(), "at least 1,000".into()));
        assert_eq!((count(7, 7, 9), count(7, 7, u64::MAX)), ("between 7 and 9".into(), "at least 7".into()));
        let ratio = |low, value, high| said(&Cell::Ratio(Bounded { value, low, high }));
        assert_eq!(
            (ratio(0.87, 0.87, 0.87), ratio(0.2, 0.25, 0.9)),
            ("87.0%".into(), "between 20.0% and 90.0%".into())
        );
        assert_eq!(ratio(0.2, 0.25, f64::INFINITY), "at least 20.0%");
        assert_eq!(count(0, 0, u64::MAX), "an unknown number");
    }

    /// With all bounds, a headline says no less.
    #[test]
    fn exact_numbers_have_all_bounds() {
        let exact = |cell: &Cell| spoken(cell, None, &words(CellDetail::Exact));
        let duration = |low, value, high| exact(&Cell::Duration(Bounded { value, low, high }));
        assert_eq!(duration(5_000_000, 5_002_000, 5_005_000), "between 5.000 ms and 5.005 ms");
        assert_eq!((duration(5, 5, 5), duration(5_000, 5_000, u64::MAX)), ("5 ns".into(), "at least 5.00 us".into()));
        assert_eq!(exact(&Cell::Count(Bounded { value: 1000, low: 1000, high: 1002 })), "between 1,000 and 1,002");
    }

    #[test]
    fn numbers_agree_with_nouns() {
        let of =
            |low, value, high| counted(&Cell::Count(Bounded { value, low, high }), "call", &words(CellDetail::Telling));
        assert_eq!((of(0, 0, 0), of(1, 1, 1), of(2, 2, 2)), ("0 calls".into(), "1 call".into(), "2 calls".into()));
        assert_eq!((of(1, 1, u64::MAX), of(5, 5, u64::MAX)), ("at least 1 call".into(), "at least 5 calls".into()));
        assert_eq!(
            (of(1, 1, 3), of(0, 0, u64::MAX)),
            ("between 1 and 3 calls".into(), "an unknown number of calls".into())
        );
    }

    #[test]
    fn names_and_errors_are_words() {
        assert_eq!((said(&Cell::Unknown), said(&Cell::Empty)), ("(unknown)".into(), "(none)".into()));
        assert_eq!(said(&Cell::Text("a\nb".to_owned())), "a\\nb");
        assert_eq!(said_of(&Cell::Integer(2), Some(ERRNO)), "ENOENT (2)");
        assert_eq!(said_of(&Cell::Integer(4000), Some(ERRNO)), "error 4000");
        assert_eq!(said(&Cell::Integer(2)), "2");
    }
}
