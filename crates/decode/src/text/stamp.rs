//! The time at the beginning of a line: `[17:46:22.794565804] (+0.000001868) `.
//!
//! Consecutive events mostly lie in the same second, so the text of the second is kept.

use crate::text::paint::{Paint, Tone};
use kymo_ir::emit::{decimal, decimal_padded, nine_digits};

/// How time is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StampOptions {
    /// Clock values as they are.
    pub cycles: bool,
    /// Seconds since the clock's origin.
    pub seconds: bool,
    /// With the date.
    pub date: bool,
    /// Without the time since the event before.
    pub no_delta: bool,
    /// With names.
    pub names: bool,
    /// Colors, as Babeltrace uses them.
    pub paint: Paint,
}

/// Seconds to add to UTC for the local time at a time in seconds.
pub type ZoneOffset = fn(i64) -> i64;

/// When an event was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The clock's value.
    pub cycles: u64,
    /// Nanoseconds since the clock's origin, if they fit.
    pub nanos: Option<i64>,
}

/// Writes stamps.
#[derive(Clone, Debug)]
pub struct Stamp {
    options: StampOptions,
    zone: ZoneOffset,
    second: Option<i64>,
    text: Vec<u8>,
    before_time: Vec<u8>,
    before_delta: Vec<u8>,
}

impl Stamp {
    /// Stamps in a time zone.
    #[must_use]
    pub fn new(options: StampOptions, zone: ZoneOffset) -> Self {
        let paint = options.paint;
        let name = |name: &str| format!("{} = ", paint.text(Tone::Bold, name));
        let (time, delta) = match options.names {
            true => (name("timestamp"), format!(", {}", name("delta"))),
            false => ("[".to_owned(), "(".to_owned()),
        };
        let before_time = (time + paint.start(Tone::BrightYellow)).into_bytes();
        Self { options, zone, second: None, text: Vec::new(), before_time, before_delta: delta.into_bytes() }
    }

    /// Writes the stamp of an event; `previous` is the one printed before.
    pub fn write(&mut self, out: &mut Vec<u8>, moment: Moment, previous: Option<Moment>) {
        out.extend_from_slice(&self.before_time);
        self.time(out, moment);
        out.extend_from_slice(self.options.paint.end().as_bytes());
        if !self.options.names {
            out.extend_from_slice(b"] ");
        }
        if !self.options.no_delta {
            out.extend_from_slice(&self.before_delta);
            self.delta(out, moment, previous);
            if !self.options.names {
                out.extend_from_slice(b") ");
            }
        }
    }

    /// Writes a time alone.
    ///
    /// A time before the origin has a date, or is shown in seconds: no time of day is negative.
    /// Babeltrace shows the absolute value as a time of day for all but the first of them.
    pub fn time(&mut self, out: &mut Vec<u8>, moment: Moment) {
        if self.options.cycles {
            return decimal_padded(out, moment.cycles, 20);
        }
        let Some(nanos) = moment.nanos else {
            return out.extend_from_slice(b"Error");
        };
        if self.options.seconds || nanos < 0 && !self.options.date {
            return seconds(out, nanos);
        }
        let (second, rest) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
        if self.second != Some(second) {
            self.second = Some(second);
            self.text.clear();
            clock_time(&mut self.text, second + (self.zone)(second), self.options.date);
            self.text.push(b'.');
        }
        out.extend_from_slice(&self.text);
        out.extend_from_slice(&nine_digits(rest as u32));
    }

    /// Where the clock steps back, Babeltrace shows the difference modulo 2^64, and takes -1 for no difference.
    fn delta(&self, out: &mut Vec<u8>, moment: Moment, previous: Option<Moment>) {
        if self.options.cycles {
            let delta = previous.map(|previous| moment.cycles.wrapping_sub(previous.cycles));
            out.push(b'+');
            return match delta {
                Some(delta) if delta < 1_000_000_000_000 => decimal_padded(out, delta, 12),
                Some(delta) if delta != u64::MAX => decimal(out, delta),
                _ => out.extend_from_slice(b"????????????"),
            };
        }
        let delta = previous.and_then(|previous| Some(moment.nanos?.wrapping_sub(previous.nanos?) as u64));
        match delta {
            Some(delta) if delta != u64::MAX => {
                out.push(b'+');
                seconds_unsigned(out, delta);
            }
            _ => out.extend_from_slice(b"+?.?????????"),
        }
    }
}

/// `-12.345678901`
fn seconds(out: &mut Vec<u8>, nanos: i64) {
    if nanos < 0 {
        out.push(b'-');
    }
    seconds_unsigned(out, nanos.unsigned_abs());
}

fn seconds_unsigned(out: &mut Vec<u8>, nanos: u64) {
    match nanos / 1_000_000_000 {
        second @ 0..10 => out.extend_from_slice(&[b'0' + second as u8, b'.']),
        seconds => {
            decimal(out, seconds);
            out.push(b'.');
        }
    }
    out.extend_from_slice(&nine_digits((nanos % 1_000_000_000) as u32));
}

/// `2013-08-15 18:51:04`, or only the time of day.
fn clock_time(out: &mut Vec<u8>, second: i64, date: bool) {
    let (day, second) = (second.div_euclid(86_400), second.rem_euclid(86_400) as u64);
    if date {
        let (year, month, day) = civil(day);
        decimal_padded(out, year.unsigned_abs(), 4);
        out.push(b'-');
        decimal_padded(out, month, 2);
        out.push(b'-');
        decimal_padded(out, day, 2);
        out.push(b' ');
    }
    decimal_padded(out, second / 3600, 2);
    out.push(b':');
    decimal_padded(out, second / 60 % 60, 2);
    out.push(b':');
    decimal_padded(out, second % 60, 2);
}

/// Year, month and day of a day since 1970-01-01 in the Gregorian calendar.
///
/// Years are counted from March, so that the leap day is the last of its year.
fn civil(day: i64) -> (i64, u64, u64) {
    let shifted = day + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u64, day as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamped(options: StampOptions, nanos: i64, previous: Option<i64>) -> String {
        let moment = |nanos: i64| Moment { cycles: nanos as u64, nanos: Some(nanos) };
        let mut out = Vec::new();
        Stamp::new(options, |_| 0).write(&mut out, moment(nanos), previous.map(moment));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn stamps_in_every_form() {
        let nanos = 1_376_592_664_828_559_410;
        let plain = StampOptions::default();
        assert_eq!(stamped(plain, nanos, None), "[18:51:04.828559410] (+?.?????????) ");
        assert_eq!(stamped(plain, nanos, Some(nanos - 1_000_000_001)), "[18:51:04.828559410] (+1.000000001) ");
        let date = StampOptions { date: true, no_delta: true, ..plain };
        assert_eq!(stamped(date, nanos, None), "[2013-08-15 18:51:04.828559410] ");
        assert_eq!(stamped(date, 951_782_400_000_000_000, None), "[2000-02-29 00:00:00.000000000] ");
        let names = StampOptions { names: true, ..plain };
        assert_eq!(stamped(names, 5, Some(2)), "timestamp = 00:00:00.000000005, delta = +0.000000003");
        let cycles = StampOptions { cycles: true, ..plain };
        assert_eq!(stamped(cycles, 5, Some(2)), "[00000000000000000005] (+000000000003) ");
        let seconds = StampOptions { seconds: true, no_delta: true, ..plain };
        assert_eq!(stamped(seconds, -1_500_000_000, None), "[-1.500000000] ");
        assert_eq!(stamped(seconds, -1_500_000_000, Some(-2_500_000_000)), "[-1.500000000] ");
    }

    #[test]
    fn times_before_the_origin_have_a_sign_or_a_date() {
        let (plain, date) = (StampOptions::default(), StampOptions { date: true, ..StampOptions::default() });
        assert_eq!(stamped(plain, -1_500_000_000, None), "[-1.500000000] (+?.?????????) ");
        assert_eq!(stamped(plain, -1_500_000_000, Some(-1_600_000_000)), "[-1.500000000] (+0.100000000) ");
        assert_eq!(stamped(plain, 0, Some(-1)), "[00:00:00.000000000] (+0.000000001) ");
        assert_eq!(stamped(date, -1, None), "[1969-12-31 23:59:59.999999999] (+?.?????????) ");
        assert_eq!(
            stamped(date, -86_400_000_000_000, Some(-1)),
            "[1969-12-31 00:00:00.000000000] (+18446657673.709551617) "
        );
        assert_eq!(stamped(date, i64::MIN, None), "[1677-09-21 00:12:43.145224192] (+?.?????????) ");
    }

    #[test]
    fn steps_back_as_babeltrace_shows_them() {
        let cycles = StampOptions { cycles: true, ..StampOptions::default() };
        assert_eq!(stamped(cycles, 5, Some(7)), "[00000000000000000005] (+18446744073709551614) ");
        assert_eq!(stamped(StampOptions::default(), 5, Some(7)), "[00:00:00.000000005] (+18446744073.709551614) ");
        assert_eq!(stamped(StampOptions::default(), 5, Some(6)), "[00:00:00.000000005] (+?.?????????) ");
    }

    #[test]
    fn colours() {
        let painted = StampOptions { paint: Paint(true), no_delta: true, ..StampOptions::default() };
        assert_eq!(stamped(painted, 5, None), "[\x1b[1m\x1b[1m\x1b[33m00:00:00.000000005\x1b[0m] ");
    }
}
