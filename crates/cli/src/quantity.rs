//! Durations and sizes among the arguments: `3ms`, `1.5s`, `4KiB`, with the units of filters. Exact: nothing goes
//! through a floating-point number.

use kymo_session::{Dimension, unit};

const NOT_A_DURATION: &str = "a duration is a number and one of ns, us, ms, s, min, h, d: `1.5ms`";
const NOT_A_SIZE: &str = "a size is a number and one of B, KiB, MiB, GiB, TiB, PiB, kB, MB, GB, TB: `4KiB`";

/// Nanoseconds; a bare number counts microseconds, as `lttng-analyses` takes it.
pub(crate) fn micros(text: &str) -> Result<u64, &'static str> {
    quantity(text, Dimension::Time, 1_000).ok_or(NOT_A_DURATION)
}

/// Nanoseconds, at least one; a bare number counts seconds.
pub(crate) fn seconds(text: &str) -> Result<u64, &'static str> {
    quantity(text, Dimension::Time, 1_000_000_000).filter(|nanos| *nanos > 0).ok_or(NOT_A_DURATION)
}

/// Bytes; a bare number counts bytes.
pub(crate) fn size(text: &str) -> Result<u64, &'static str> {
    quantity(text, Dimension::Size, 1).ok_or(NOT_A_SIZE)
}

/// The same, at least one.
pub(crate) fn some_size(text: &str) -> Result<u64, &'static str> {
    size(text).and_then(|bytes| if bytes > 0 { Ok(bytes) } else { Err("0 is none") })
}

/// A decimal number and a unit, in the smallest unit; what is below that is dropped.
fn quantity(text: &str, dimension: Dimension, bare: u64) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, name) = (&text[..end], text[end..].trim_start());
    let each = match name {
        "" => bare,
        name => unit(name).filter(|unit| unit.dimension == dimension)?.multiply,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || fraction.len() > 18 {
        return None;
    }
    let whole = u128::from(whole.parse::<u64>().ok()?) * u128::from(each);
    let part = fraction.parse::<u128>().unwrap_or(0) * u128::from(each) / 10_u128.pow(fraction.len() as u32);
    u64::try_from(whole + part).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!((micros("3"), micros("3ms"), micros("1.5 us")), (Ok(3_000), Ok(3_000_000), Ok(1_500)));
        assert_eq!((micros("0.0004"), micros("2min"), micros("7µs")), (Ok(0), Ok(120_000_000_000), Ok(7_000)));
        assert_eq!(
            (seconds("1"), seconds("10ms"), seconds("0")),
            (Ok(1_000_000_000), Ok(10_000_000), Err(NOT_A_DURATION))
        );
        // Exact where a double is not.
        assert_eq!(micros("9007199254.740993s"), Ok(9_007_199_254_740_993_000));
    }

    #[test]
    fn sizes() {
        assert_eq!((size("0"), size("4KiB"), size("1.5kB")), (Ok(0), Ok(4096), Ok(1500)));
        assert_eq!(size("16 EiB"), Err(NOT_A_SIZE));
        assert_eq!((some_size("1"), some_size("0KiB"), some_size("")), (Ok(1), Err("0 is none"), Err(NOT_A_SIZE)));
    }

    /// Too much, nothing, signs, two points, units of something else.
    #[test]
    fn what_is_none() {
        for text in
            ["", "ms", ".5s", "-1s", "1..5s", "1.5.0s", "99999999999h", "1e3s", "5KiB", "1.0000000000000000001s"]
        {
            assert_eq!(micros(text), Err(NOT_A_DURATION), "{text}");
        }
    }
}
