//! Durations and sizes among the arguments: `3ms`, `1.5s`, `4KiB`, with the units of filters. Exact: nothing goes
//! through a floating-point number.

use std::path::PathBuf;

use kymo_session::{Dimension, TraceOffset, quantity};

const NOT_A_DURATION: &str = "a duration is a number and one of ns, us, ms, s, min, h, d: `1.5ms`";
const NOT_AN_OFFSET: &str =
    "an offset is the path of a trace, `=`, and a duration with or without a sign: `host2/=+1.5ms`, `host2/=-3us`";
const NOT_A_FREQUENCY: &str =
    "a frequency is a whole number of Hz, at least 1, which may have a unit: `2.8GHz`, `33MHz`, `1kHz`, `62500000`";
const NOT_A_SIZE: &str = "a size is a number and one of B, KiB, MiB, GiB, TiB, PiB, kB, MB, GB, TB: `4KiB`";

/// Nanoseconds; a bare number counts microseconds, as `lttng-analyses` takes it.
pub(crate) fn micros(text: &str) -> Result<u64, &'static str> {
    quantity(text, Dimension::Time, Some(1_000)).ok_or(NOT_A_DURATION)
}

/// Nanoseconds, at least one; a bare number counts seconds.
pub(crate) fn seconds(text: &str) -> Result<u64, &'static str> {
    quantity(text, Dimension::Time, Some(1_000_000_000)).filter(|nanos| *nanos > 0).ok_or(NOT_A_DURATION)
}

/// A path and nanoseconds that its clocks are ahead, which may be negative; a bare number counts
/// seconds, as those of `--clock-offset` do. The name of a path may contain `=`.
pub(crate) fn trace_offset(text: &str) -> Result<TraceOffset, &'static str> {
    let (path, offset) = text.rsplit_once('=').filter(|(path, _)| !path.is_empty()).ok_or(NOT_AN_OFFSET)?;
    let offset = offset.trim_start();
    let (is_back, length) = match offset.strip_prefix('-') {
        Some(length) => (true, length),
        None => (false, offset.strip_prefix('+').unwrap_or(offset)),
    };
    let length = quantity(length, Dimension::Time, Some(1_000_000_000)).and_then(|nanos| i64::try_from(nanos).ok());
    let length = length.ok_or(NOT_AN_OFFSET)?;
    Ok(TraceOffset { path: PathBuf::from(path), offset_ns: if is_back { -length } else { length } })
}

/// Cycles per second, at least one; a bare number counts these.
pub(crate) fn frequency(text: &str) -> Result<u64, &'static str> {
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic() || c.is_whitespace());
    let zeros = match text[digits.len()..].trim() {
        "" | "Hz" => 0,
        "kHz" => 3,
        "MHz" => 6,
        "GHz" => 9,
        _ => return Err(NOT_A_FREQUENCY),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = !whole.is_empty() && whole.chars().chain(part.chars()).all(|c| c.is_ascii_digit());
    if !is_number || part.len() > zeros {
        return Err(NOT_A_FREQUENCY);
    }
    let cycles = format!("{whole}{part:0<zeros$}").parse().ok().filter(|cycles| *cycles > 0);
    cycles.ok_or(NOT_A_FREQUENCY)
}

/// Bytes; a bare number counts bytes.
pub(crate) fn size(text: &str) -> Result<u64, &'static str> {
    quantity(text, Dimension::Size, Some(1)).ok_or(NOT_A_SIZE)
}

/// The same, at least one.
pub(crate) fn some_size(text: &str) -> Result<u64, &'static str> {
    size(text).and_then(|bytes| if bytes > 0 { Ok(bytes) } else { Err("0 is none") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies() {
        for (text, cycles) in
            [("2.8GHz", 2_800_000_000), ("33 MHz", 33_000_000), ("1", 1), ("7Hz", 7), ("1.5kHz", 1500)]
        {
            assert_eq!(frequency(text), Ok(cycles), "{text}");
        }
        for text in ["", "0", "GHz", "-1", "+1", "1.5", "1.2345kHz", "1e3", "2.8ghz", "99999999999GHz", "1.GHz0"] {
            assert_eq!(frequency(text), Err(NOT_A_FREQUENCY), "{text}");
        }
    }

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
    fn offsets_of_traces() {
        let offset = |text: &str| trace_offset(text).map(|it| (it.path.display().to_string(), it.offset_ns));
        assert_eq!(offset("host2/=+1.5ms"), Ok(("host2/".to_owned(), 1_500_000)));
        assert_eq!(offset("a=b=-3us"), Ok(("a=b".to_owned(), -3_000)));
        assert_eq!(offset("host2= 2"), Ok(("host2".to_owned(), 2_000_000_000)));
        for text in ["host2", "=1ms", "host2=", "host2=+-1ms", "host2=1KiB", "host2=soon", "host2=300000000000s"] {
            assert_eq!(offset(text), Err(NOT_AN_OFFSET), "{text}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!((size("0"), size("4KiB"), size("1.5kB")), (Ok(0), Ok(4096), Ok(1500)));
        assert_eq!(size("16 EiB"), Err(NOT_A_SIZE));
        assert_eq!((some_size("1"), some_size("0KiB"), some_size("")), (Ok(1), Err("0 is none"), Err(NOT_A_SIZE)));
    }

    /// Too much, nothing, signs, two points, no digits beside a point, units of another dimension.
    #[test]
    fn what_is_none() {
        for text in [
            "",
            "ms",
            ".5s",
            "5.s",
            "5.",
            ".",
            "-1s",
            "1..5s",
            "1.5.0s",
            "99999999999h",
            "1e3s",
            "5KiB",
            "1.0000000000000000001s",
        ] {
            assert_eq!(micros(text), Err(NOT_A_DURATION), "{text}");
        }
    }
}
