//! Headlines in words.
//!
//! ```text
//! "CPU " 3 " was busiest: " [0.87, 0.87, 0.87]     "CPU 3 was busiest: 87.0%"
//!                           [0.20, 0.25, 0.90]     "CPU 3 was busiest: between 20.0% and 90.0%"
//! ```

use kymo_session::{Bounded, Cell, ERRNO, Headline, HeadlinePart};

use crate::answer::errno::errno_name;
use crate::answer::words::{CellDetail, CellFormatter};

/// The headline in words; cells as tables show them.
pub(crate) fn text(headline: &Headline, words: &CellFormatter) -> String {
    let part = |part: &HeadlinePart| match part {
        HeadlinePart::Text(text) => text.clone(),
        HeadlinePart::Cell(cell, unit) => spoken(cell, *unit, words),
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
        // A count is exact, or it is not.
        Cell::Count(number) if !number.is_exact() && words.word(cell).bounds.is_empty() && number.low > 0 => {
            format!("at least {}", words.word(&Cell::Count(Bounded::exact(number.low))).value)
        }
        Cell::Count(number) => within(*number, u64::MAX, words, Cell::Count),
        Cell::Duration(number) => within(*number, u64::MAX, words, Cell::Duration),
        Cell::Size(number) => within(*number, u64::MAX, words, Cell::Size),
        Cell::Ratio(number) => within(*number, f64::INFINITY, words, Cell::Ratio),
        Cell::Bitrate(number) => within(*number, f64::INFINITY, words, Cell::Bitrate),
        other => words.word(other).value,
    }
}

/// A number with its bounds, where they tell more than it.
fn within<T: Copy + PartialEq + PartialOrd + Default>(
    number: Bounded<T>,
    endless: T,
    words: &CellFormatter,
    cell: impl Fn(Bounded<T>) -> Cell,
) -> String {
    let exact = |value: T| words.word(&cell(Bounded::exact(value))).value;
    let Bounded { value, low, high } = number;
    // A number whose bounds are not worth mentioning has none in words.
    let telling = CellFormatter { detail: CellDetail::Telling, ..words.clone() }.word(&cell(number));
    let is_endless = high == endless && !number.is_exact();
    match is_endless {
        true if low == T::default() => "an unknown amount".to_owned(),
        true => format!("at least {}", exact(low)),
        false if telling.bounds.is_empty() => exact(value),
        false => format!("between {} and {}", exact(low), exact(high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::InstantFormat;

    fn said(cell: &Cell) -> String {
        said_of(cell, None)
    }

    fn said_of(cell: &Cell, unit: Option<&'static str>) -> String {
        let words = CellFormatter { times: InstantFormat::default(), unicode: true, detail: CellDetail::Telling };
        spoken(cell, unit, &words)
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
