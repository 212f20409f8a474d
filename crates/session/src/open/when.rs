//! Points in time as people type them: `12:18:50.43`, `2016-03-04 17:46:22`, `2016-03-04T17:46:22+01:00`,
//! `1457113582.794565804`.

use std::fmt;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};

use crate::open::zone::Zone;

/// A point in time as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// Nanoseconds since the clock's origin.
    Nanos(i64),
    /// A day and a time of day, and the offset from UTC if one was typed.
    Dated(DateTime, Option<Offset>),
    /// A time of day, on the day on which the trace begins, and the offset from UTC if one was typed.
    Daily(Time, Option<Offset>),
}

/// It is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotATime;

impl fmt::Display for NotATime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time is `[YYYY-MM-DD ]HH:MM[:SS[.NNNNNNNNN]][Z|+HH:MM]` or `[-]SECONDS[.NNNNNNNNN]`")
    }
}

impl std::error::Error for NotATime {}

impl std::str::FromStr for When {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        let text = text.trim();
        if !text.contains(':') {
            return seconds(text).map(Self::Nanos).ok_or(NotATime);
        }
        match text.split_once([' ', 'T']) {
            None => {
                let (time, offset) = with_offset(text).ok_or(NotATime)?;
                Ok(Self::Daily(time, offset))
            }
            Some((date, time)) => {
                let date: Date = date.parse().map_err(|_| NotATime)?;
                let (time, offset) = with_offset(time.trim()).ok_or(NotATime)?;
                Ok(Self::Dated(date.to_datetime(time), offset))
            }
        }
    }
}

impl When {
    /// Nanoseconds since the Unix epoch; `first_ns` is when the trace begins. `None` if they do not fit.
    ///
    /// ```
    /// use kymo_session::{When, Zone};
    /// let when: When = "17:46:22.5".parse().unwrap();
    /// assert_eq!(when.nanos(1_457_113_582_000_000_000, Zone::Utc), Some(1_457_113_582_500_000_000));
    /// ```
    #[must_use]
    pub fn nanos(&self, first_ns: i64, zone: Zone) -> Option<i64> {
        let instant = |zone: &TimeZone, dated: DateTime| zone.to_timestamp(dated).ok()?.as_nanosecond().try_into().ok();
        let in_zone = |offset: &Option<Offset>| offset.map_or_else(|| zone.time_zone(), TimeZone::fixed);
        match self {
            Self::Nanos(nanos) => Some(*nanos),
            Self::Dated(dated, offset) => instant(&in_zone(offset), *dated),
            Self::Daily(time, offset) => {
                let zone = in_zone(offset);
                let first = jiff::Timestamp::from_nanosecond(i128::from(first_ns)).ok()?;
                instant(&zone, zone.to_datetime(first).date().to_datetime(*time))
            }
        }
    }
}

/// `-12.5`: nanoseconds.
fn seconds(text: &str) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    let nanos = format!("{whole}{fraction:0<9}").parse::<i64>().ok()?;
    Some(if negative { -nanos } else { nanos })
}

/// A time of day, with `Z` or an offset from UTC behind it: `+01:00`, `-0330`.
fn with_offset(text: &str) -> Option<(Time, Option<Offset>)> {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some((time_of_day(time.trim_end())?, Some(Offset::UTC)));
    }
    let Some(place) = text.find(['+', '-']) else { return Some((time_of_day(text)?, None)) };
    let (time, offset) = text.split_at(place);
    let (sign, digits) = offset.split_at(1);
    let digits = match digits.as_bytes() {
        [_, _, b':', _, _] => digits.replace(':', ""),
        _ => digits.to_owned(),
    };
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes): (i32, i32) = (digits[..2].parse().ok()?, digits[2..].parse().ok()?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let ahead = (hours * 60 + minutes) * 60;
    let offset = Offset::from_seconds(if sign == "-" { -ahead } else { ahead }).ok()?;
    Some((time_of_day(time.trim_end())?, Some(offset)))
}

/// `HH:MM`, `HH:MM:SS`, `HH:MM:SS.NNNNNNNNN`. Each number has two digits: in
/// `12:48:1`, a digit may be missing.
fn time_of_day(text: &str) -> Option<Time> {
    let mut parts = text.split(':');
    let two_digits = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut number = || parts.next().filter(|text| two_digits(text))?.parse().ok();
    let (hour, minute) = (number()?, number()?);
    let is_whole = |text: &&str| two_digits(text.split('.').next().unwrap_or_default());
    let nanos = match parts.next() {
        None => 0,
        Some(text) => seconds(Some(text).filter(is_whole)?)?,
    };
    if parts.next().is_some() || nanos >= 60_000_000_000 {
        return None;
    }
    Time::new(hour, minute, (nanos / 1_000_000_000) as i8, (nanos % 1_000_000_000) as i32).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(text: &str) -> Option<i64> {
        text.parse::<When>().ok()?.nanos(1_457_113_582_000_000_000, Zone::Utc)
    }

    #[test]
    fn every_form_is_understood() {
        assert_eq!(nanos("1457113582.794565804"), Some(1_457_113_582_794_565_804));
        assert_eq!(nanos("-0.5"), Some(-500_000_000));
        assert_eq!(nanos("17:46:22.5"), Some(1_457_113_582_500_000_000));
        assert_eq!(nanos("17:46"), Some(1_457_113_560_000_000_000));
        assert_eq!(nanos("2016-03-04 17:46:22"), Some(1_457_113_582_000_000_000));
    }

    /// `kymo info` and tables show times in these forms: they can be pasted, in any zone.
    #[test]
    fn an_offset_counts_more_than_the_zone() {
        let at = Some(1_457_113_582_794_565_804);
        for text in [
            "2016-03-04T17:46:22.794565804Z",
            "2016-03-04 17:46:22.794565804 Z",
            "2016-03-04T17:46:22.794565804z",
            "2016-03-04T12:46:22.794565804-05:00",
            "2016-03-04 12:46:22.794565804 -0500",
            "2016-03-04T23:16:22.794565804+05:30",
            "2016-03-05 07:46:22.794565804+14:00",
            "17:46:22.794565804Z",
            "12:46:22.794565804-05:00",
        ] {
            assert_eq!(nanos(text), at, "{text}");
        }
        // The day is the one on which the trace begins there.
        assert_eq!(nanos("07:46:22.794565804+14:00"), at);
        assert_eq!(nanos("17:46Z"), nanos("17:46"));
    }

    #[test]
    fn other_forms_are_refused() {
        let texts = ["", "soon", "12:", "25:00", "1.0000000001", "12:30:61", "2016-13-04 17:46", "01:02:03:04"];
        let no_two_digits =
            ["12:48:1", "12:4", "9:05", "12:48:1.5", "12:48:001", "12:48:", "12:48:01.", "+1:00", "-1:00"];
        // A digit may be missing, as in the forms of a time of day.
        let no_fraction = ["1.", "-1.", ".5", "-.5", "-", "."];
        let no_offset = [
            "17:46+1",
            "17:46+01",
            "17:46+1:00",
            "17:46+01:60",
            "17:46+24:00",
            "17:46+01:00Z",
            "17:46ZZ",
            "17:46 CET",
            "Z",
            "12Z",
            "2016-03-04Z",
            "2016-03-04T17:46-0:100",
            "17:46+é1",
        ];
        for text in texts.into_iter().chain(no_two_digits).chain(no_fraction).chain(no_offset) {
            assert_eq!(text.parse::<When>(), Err(NotATime), "{text}");
        }
    }
}
