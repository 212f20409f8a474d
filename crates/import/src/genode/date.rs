//! The date in the name of a recording's folder: `2022-8-29 14:3:9`.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The year that stands for no date, of a machine without a clock of days.
const NO_YEAR: i16 = 0;
/// Midnight of 2000-01-01, where the recorder begins to count if there is no date.
const YEAR_2000_S: i64 = 946_684_800;
const DAY_NS: u64 = 86_400_000_000_000;

/// When a recording began, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordingDate {
    /// Since 1970.
    pub(super) seconds: i64,
    /// `None`: the machine had no date.
    year: Option<i16>,
}

impl RecordingDate {
    /// Six numbers without leading zeros.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (date, time) = name.split_once(' ')?;
        let [year, month, day] = numbers(date, '-')?;
        let [hour, minute, second] = numbers(time, ':')?;
        if [year, month, day] == [NO_YEAR; 3] {
            let seconds = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
            return Some(Self { seconds: YEAR_2000_S + seconds, year: None });
        }
        let small = |number: i16| i8::try_from(number).ok();
        let (month, day, hour) = (small(month)?, small(day)?, small(hour)?);
        let civil = DateTime::new(year, month, day, hour, small(minute)?, small(second)?, 0).ok()?;
        let seconds = civil.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
        Some(Self { seconds, year: Some(year) })
    }

    /// What it says about times.
    pub(super) fn what(self) -> String {
        match self.year {
            Some(_) => "the clock's time is that of the folder's name, in UTC, at the first event, \
                        give or take a second and the silence before it"
                .to_owned(),
            None => "the machine had no date: times count from the year 2000, where the recording began, \
                     at the first event"
                .to_owned(),
        }
    }

    /// By how much the times of a capture are ahead: the recorder counts a day too many in leap years.
    pub(super) fn capture_ahead_ns(self, earliest_ns: Option<u64>) -> u64 {
        let is_leap =
            self.year.is_some_and(|year| jiff::civil::Date::new(year, 1, 1).is_ok_and(jiff::civil::Date::in_leap_year));
        let begin = u64::try_from(self.seconds).ok().and_then(|seconds| seconds.checked_mul(1_000_000_000));
        let is_late = begin.zip(earliest_ns).is_some_and(|(begin, earliest)| earliest >= begin.saturating_add(DAY_NS));
        if is_leap && is_late { DAY_NS } else { 0 }
    }
}

fn numbers(text: &str, between: char) -> Option<[i16; 3]> {
    let number = |text: &str| match text.as_bytes() {
        [b'0', _, ..] => None,
        bytes if bytes.len() <= 4 && bytes.iter().all(u8::is_ascii_digit) => text.parse().ok(),
        _ => None,
    };
    let all: Vec<i16> = text.split(between).map(number).collect::<Option<_>>()?;
    all.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_recordings_are_dates() {
        let seconds = |name| RecordingDate::parse(name).map(|date| date.seconds);
        assert_eq!(seconds("2022-8-29 14:3:9"), Some(1_661_781_789));
        assert_eq!(seconds("0-0-0 0:0:0"), Some(946_684_800), "no clock of days");
        assert_eq!(seconds("0-0-0 1:2:3"), Some(946_684_800 + 3723));
        assert_eq!(seconds("2024-2-29 0:0:0"), Some(1_709_164_800));
        for wrong in [
            "",
            "2022-8-29",
            "2022-08-29 14:3:9",
            "2022-8-29 14:03:9",
            "2022-2-30 1:1:1",
            "2022-8-29 14:3",
            "2022-8-29 14:3:9:1",
            "20220-8-29 14:3:9",
            "2022-8-29 25:3:9",
            "-1-8-29 1:1:1",
            "session-20220829-140309",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn captures_of_leap_years_are_a_day_late() {
        let ahead = |name: &str, day: u64| {
            let date = RecordingDate::parse(name).unwrap();
            date.capture_ahead_ns(Some(date.seconds as u64 * 1_000_000_000 + day * DAY_NS + 5))
        };
        assert_eq!(ahead("2024-3-1 0:0:0", 1), DAY_NS);
        assert_eq!(ahead("2024-3-1 0:0:0", 0), 0, "a recorder that counts days right");
        assert_eq!(ahead("2023-3-1 0:0:0", 1), 0, "nothing was sent for a day");
        assert_eq!(ahead("0-0-0 0:0:0", 1), 0);
    }
}
