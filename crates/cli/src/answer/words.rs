//! Cells as words for people: numbers with units, instants as times of day, names without
//! characters that would move the cursor.
//!
//! ```text
//! Duration 12_345_678 in [11_900_000, 14_000_000]   value "12.3 ms"   bounds "[11.9, 14.0]"
//! Unknown                                           value "unknown"
//! ```

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use kymo_session::{Bounded, Cell, Column, ERRNO, RESULT, Zone};

use crate::answer::errno::{errno_name, error_of_result};
use crate::show::grouped;

/// Stands for an empty cell: rows stay easy to cut apart.
pub(crate) const EMPTY: &str = "-";
/// Stands for an unknown value.
pub(crate) const UNKNOWN: &str = "unknown";

/// A cell in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CellText {
    /// The most likely value.
    pub(crate) value: String,
    /// The bounds of the value, if it is not certain.
    pub(crate) bounds: String,
}

impl CellText {
    fn of(value: String) -> Self {
        Self { value, bounds: String::new() }
    }
}

/// The bounds that are said of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TellingBounds {
    /// Neither: the number says it all.
    None,
    /// That it is at least that.
    Lower,
    Both,
    /// Nothing is known, not even the number.
    Unknown,
}

/// How cells become words.
#[derive(Clone, Debug)]
pub(crate) struct CellFormatter {
    /// The format of instants.
    pub(crate) times: InstantFormat,
    /// Whether characters beyond ASCII can be shown.
    pub(crate) unicode: bool,
    /// How much is said beside a number.
    pub(crate) detail: CellDetail,
}

/// How much is said beside a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellDetail {
    /// All bounds and nothing else: rows stay as programs know them.
    Plain,
    /// Bounds that differ by more than a hundredth, and names of errors.
    Telling,
    /// All bounds, and names of errors.
    Exact,
}

/// The format of instants.
#[derive(Clone, Debug, Default)]
pub(crate) struct InstantFormat {
    /// The time zone of times of day; `None`: seconds since the clock's origin.
    zone: Option<TimeZone>,
    /// With the day.
    dated: bool,
    /// The local zone, which decides whether the zone of times is obvious.
    local: Option<TimeZone>,
}

impl InstantFormat {
    /// Times of day, if the clock counts from 1970 and that is wanted.
    pub(crate) fn new(is_unix: bool, zone: Zone, seconds: bool) -> Self {
        Self::in_zones(is_unix && !seconds, zone.time_zone(), Zone::Local.time_zone())
    }

    fn in_zones(has_days: bool, zone: TimeZone, local: TimeZone) -> Self {
        Self { zone: has_days.then_some(zone), dated: false, local: Some(local) }
    }

    /// The same for a span: with the day, if it is longer than one or unknown.
    pub(crate) fn within(&self, span_ns: Option<(i64, i64)>) -> Self {
        let day = |nanos: i64| {
            let zone = self.zone.clone()?;
            Some(Timestamp::from_nanosecond(i128::from(nanos)).ok()?.to_zoned(zone).date())
        };
        let dated = span_ns.is_none_or(|(begin, end)| day(begin) != day(end));
        Self { zone: self.zone.clone(), dated, local: self.local.clone() }
    }

    /// `12:18:50.430000001`, `2016-03-04 12:18:50.430000001` or `-0.000000001 s`.
    pub(crate) fn word(&self, nanos: i64) -> String {
        if is_unknown(nanos) {
            return UNKNOWN.to_owned();
        }
        let zoned = || {
            let zone = self.zone.clone()?;
            Some(Timestamp::from_nanosecond(i128::from(nanos)).ok()?.to_zoned(zone))
        };
        let format = if self.dated { "%Y-%m-%d %H:%M:%S.%9f" } else { "%H:%M:%S.%9f" };
        zoned().map_or_else(|| seconds(nanos), |zoned| zoned.strftime(format).to_string())
    }

    /// The same with the offset from UTC: `12:46:22.794565804-05:00`. On a machine in UTC, times in UTC need none.
    pub(crate) fn zoned(&self, nanos: i64) -> String {
        let offset = || {
            if is_unknown(nanos) {
                return None;
            }
            let at = Timestamp::from_nanosecond(i128::from(nanos)).ok()?;
            let offset = self.zone.as_ref()?.to_offset(at);
            let is_obvious =
                offset == Offset::UTC && self.local.as_ref().is_none_or(|local| local.to_offset(at) == offset);
            (!is_obvious).then(|| offset_word(offset))
        };
        self.word(nanos) + &offset().unwrap_or_default()
    }

    /// The day on which it is, where times are shown without.
    pub(crate) fn day(&self, nanos: i64) -> Option<String> {
        let zone = self.zone.clone().filter(|_| !self.dated)?;
        Some(Timestamp::from_nanosecond(i128::from(nanos)).ok()?.to_zoned(zone).date().to_string())
    }
}

/// Whether it stands for no time: events without a clock are before all others, and times beyond 64 bits at their end.
pub(crate) fn is_unknown(nanos: i64) -> bool {
    matches!(nanos, i64::MIN | i64::MAX)
}

/// `2016-03-04T17:46:22.794565804Z` or `2016-03-04T12:46:22.794565804-05:00`, which `--begin` takes; `None`: its year is
/// beyond calendars.
pub(crate) fn full_time(nanos: i64, zone: TimeZone) -> Option<String> {
    let zoned = Timestamp::from_nanosecond(i128::from(nanos)).ok()?.to_zoned(zone);
    Some(zoned.strftime("%Y-%m-%dT%H:%M:%S.%9f").to_string() + &offset_word(zoned.offset()))
}

/// `Z`, `+05:30`. Seconds, which offsets had a century ago, are left out as they cannot be typed.
fn offset_word(offset: Offset) -> String {
    let seconds = offset.seconds();
    let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.unsigned_abs() / 60);
    if seconds == 0 { "Z".to_owned() } else { format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60) }
}

/// Exact, which a floating-point number is not.
pub(crate) fn seconds(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    format!("{sign}{}.{:09} s", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

impl CellFormatter {
    /// The cell in words.
    pub(crate) fn word(&self, cell: &Cell) -> CellText {
        match cell {
            Cell::Count(count) => self.counted(*count),
            other => match measure(other) {
                Some((number, say)) => self.bounded(number, say),
                None => CellText::of(self.certain(other)),
            },
        }
    }

    /// The bounds of a number in words that tell them apart.
    pub(crate) fn ends(&self, cell: &Cell) -> Option<[String; 2]> {
        match cell {
            Cell::Count(count) => Some([count.low, count.high].map(grouped)),
            other => {
                let (number, say) = measure(other)?;
                let [_, low, high] = self.apart(number, say);
                Some([low, high].map(|bound| bound.to_string()))
            }
        }
    }

    /// The begin of a span of time.
    pub(crate) fn begin(&self, begin: Option<i64>) -> String {
        begin.map_or_else(|| "earlier".to_owned(), |begin| self.times.word(begin))
    }

    /// The cell of a column in words: an error has its name.
    pub(crate) fn word_of(&self, column: &Column, cell: &Cell) -> CellText {
        let text = self.word(cell);
        let error = match cell {
            Cell::Integer(_) if self.detail == CellDetail::Plain => None,
            Cell::Integer(number) if column.unit == Some(ERRNO) => u64::try_from(*number).ok().and_then(errno_name),
            Cell::Integer(number) if column.unit == Some(RESULT) => error_of_result(*number).and_then(errno_name),
            _ => None,
        };
        match error {
            Some(name) => CellText { value: format!("{} {name}", text.value), ..text },
            None => text,
        }
    }

    /// Whether the bounds of a number tell more than the number, and if only the lower one does.
    fn telling(&self, number: Bounded<f64>) -> TellingBounds {
        let Bounded { value, low, high } = number;
        match self.detail {
            _ if number.is_exact() => TellingBounds::None,
            CellDetail::Plain | CellDetail::Exact => TellingBounds::Both,
            CellDetail::Telling if high == f64::INFINITY && low <= 0.0 && value <= 0.0 => TellingBounds::Unknown,
            CellDetail::Telling if high == f64::INFINITY && low == value => TellingBounds::Lower,
            CellDetail::Telling if high - low <= high.abs() / 100.0 => TellingBounds::None,
            CellDetail::Telling => TellingBounds::Both,
        }
    }

    fn at_least(&self, value: &str) -> String {
        if self.unicode { format!("≥{value}") } else { format!(">={value}") }
    }

    /// A cell that cannot have bounds.
    fn certain(&self, cell: &Cell) -> String {
        match cell {
            Cell::Empty => EMPTY.to_owned(),
            Cell::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
            Cell::Integer(number) | Cell::Fd(number) => integer(*number),
            Cell::Based(number, base) => kymo_session::in_base(*number, *base),
            Cell::Number(number) => self.number(*number),
            Cell::Text(text) | Cell::Syscall(text) | Cell::Path(text) => shown(text),
            Cell::Disk(name) | Cell::NetworkInterface(name) => shown(name),
            Cell::Timestamp(nanos) => self.times.word(*nanos),
            Cell::TimeRange(begin, end) => {
                let end = end.map_or_else(|| "never ended".to_owned(), |end| self.times.word(end));
                format!("{} to {end}", self.begin(*begin))
            }
            Cell::Process { name, pid, tid } => process(name.as_deref(), *pid, *tid),
            Cell::Irq { is_hard, number, name } => {
                let kind = if *is_hard { "irq" } else { "softirq" };
                let name = name.as_deref().map_or_else(String::new, |name| format!(" {}", shown(name)));
                format!("{kind} {number}{name}")
            }
            Cell::Cpu(cpu) => cpu.to_string(),
            _ => UNKNOWN.to_owned(),
        }
    }

    fn number(&self, number: f64) -> String {
        match number {
            number if number.is_nan() => UNKNOWN.to_owned(),
            number if number.is_infinite() => self.infinity(number > 0.0).to_owned(),
            number if number != 0.0 && !(1e-3..1e15).contains(&number.abs()) => format!("{number:.3e}"),
            number if number.fract() == 0.0 || number.abs() >= 1000.0 => integer(number.round() as i64),
            number => format!("{number:.3}"),
        }
    }

    fn infinity(&self, is_positive: bool) -> &'static str {
        match (self.unicode, is_positive) {
            (true, true) => "∞",
            (true, false) => "-∞",
            (false, true) => "inf",
            (false, false) => "-inf",
        }
    }

    fn counted(&self, count: Bounded<u64>) -> CellText {
        let high = if count.high == u64::MAX { self.infinity(true).to_owned() } else { grouped(count.high) };
        let bounds = || format!("[{}, {high}]", grouped(count.low));
        match self.telling(floats(&count)) {
            TellingBounds::None => CellText::of(grouped(count.value)),
            TellingBounds::Unknown => CellText::of(UNKNOWN.to_owned()),
            TellingBounds::Lower => CellText::of(self.at_least(&grouped(count.value))),
            TellingBounds::Both => CellText { value: grouped(count.value), bounds: bounds() },
        }
    }

    /// A number with a unit and its bounds, each formatted by `say` with the given number of extra
    /// digits.
    fn bounded(&self, number: Bounded<f64>, say: SayNumber) -> CellText {
        if number.value.is_nan() {
            return CellText::of(UNKNOWN.to_owned());
        }
        match self.telling(number) {
            TellingBounds::None => return CellText::of(self.finite(number.value, 0, say).to_string()),
            TellingBounds::Unknown => return CellText::of(UNKNOWN.to_owned()),
            TellingBounds::Lower => {
                return CellText::of(self.at_least(&self.finite(number.value, 0, say).to_string()));
            }
            TellingBounds::Both => {}
        }
        let [value, low, high] = self.apart(number, say);
        let bound = |bound: &NumberText| {
            let is_zero = bound.number.bytes().all(|byte| matches!(byte, b'0' | b'.'));
            if bound.unit == value.unit || is_zero { bound.number.clone() } else { bound.to_string() }
        };
        CellText { bounds: format!("[{}, {}]", bound(&low), bound(&high)), value: value.to_string() }
    }

    /// A number and its bounds. Bounds that look alike get more digits.
    fn apart(&self, number: Bounded<f64>, say: SayNumber) -> [NumberText; 3] {
        let all = |more| [number.value, number.low, number.high].map(|value| self.finite(value, more, say));
        let is_telling = |said: &[NumberText; 3]| said[1].to_string() != said[2].to_string();
        (0..=MORE_MAX).map(all).find(is_telling).unwrap_or_else(|| all(MORE_MAX))
    }

    /// A number, also one without an end.
    fn finite(&self, value: f64, more: usize, say: SayNumber) -> NumberText {
        match value.is_infinite() {
            true => NumberText { number: self.infinity(value > 0.0).to_owned(), unit: "" },
            false => say(value, more),
        }
    }

    /// A height on a scale: the same words as in cells of a kind.
    pub(crate) fn like(&self, cell: &Cell, value: f64) -> String {
        let whole = Bounded::exact(value.max(0.0).round() as u64);
        match cell {
            Cell::Count(_) => self.word(&Cell::Count(whole)),
            Cell::Duration(_) => self.word(&Cell::Duration(whole)),
            Cell::Size(_) => self.word(&Cell::Size(whole)),
            Cell::Ratio(_) => self.word(&Cell::Ratio(Bounded::exact(value))),
            Cell::Bitrate(_) => self.word(&Cell::Bitrate(Bounded::exact(value))),
            _ => self.word(&Cell::Number(value)),
        }
        .value
    }
}

/// Formats a number with some extra digits.
type SayNumber = fn(f64, usize) -> NumberText;

/// A number with a unit, and how to say it.
fn measure(cell: &Cell) -> Option<(Bounded<f64>, SayNumber)> {
    let say: SayNumber = match cell {
        Cell::Ratio(_) => percent,
        Cell::Duration(_) => |value, more| scaled(value, &DURATIONS, more),
        Cell::Size(_) => |value, more| scaled(value, &SIZES, more),
        Cell::Bitrate(_) => |value, more| scaled(value, &BITRATES, more),
        _ => return None,
    };
    match cell {
        Cell::Ratio(number) | Cell::Bitrate(number) => Some((*number, say)),
        Cell::Duration(number) | Cell::Size(number) => Some((floats(number), say)),
        _ => None,
    }
}

/// Digits that are added at most to tell bounds apart.
const MORE_MAX: usize = 9;

/// A number in words.
struct NumberText {
    number: String,
    /// With the space before it, if there is one.
    unit: &'static str,
}

impl std::fmt::Display for NumberText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.number, self.unit)
    }
}

/// Units of one kind, the smallest first: each one's size in the smallest one, and from where on
/// the next one is better.
struct Scale {
    units: &'static [(&'static str, f64, f64)],
    /// Digits behind the point, if their number does not depend on those before it.
    digits: Option<usize>,
}

const DURATIONS: Scale = Scale {
    digits: None,
    units: &[
        (" ns", 1.0, 999.5),
        (" us", 1e3, 999.5e3),
        (" ms", 1e6, 999.5e6),
        (" s", 1e9, 120e9),
        (" min", 60e9, 7200e9),
        (" h", 3600e9, 48.0 * 3600e9),
        (" days", 86_400e9, f64::INFINITY),
    ],
};

/// With one digit behind the point, as everywhere.
const SIZES: Scale = Scale {
    digits: Some(1),
    units: &[
        (" B", 1.0, 1024.0),
        (" KiB", 1024.0, 1023.95 * 1024.0),
        (" MiB", 1_048_576.0, 1023.95 * 1_048_576.0),
        (" GiB", 1_073_741_824.0, 1023.95 * 1_073_741_824.0),
        (" TiB", 1_099_511_627_776.0, f64::INFINITY),
    ],
};

const BITRATES: Scale = Scale {
    digits: None,
    units: &[
        (" bit/s", 1.0, 999.95),
        (" kbit/s", 1e3, 999.95e3),
        (" Mbit/s", 1e6, 999.95e6),
        (" Gbit/s", 1e9, 999.95e9),
        (" Tbit/s", 1e12, f64::INFINITY),
    ],
};

/// With at least three significant digits.
fn scaled(value: f64, scale: &Scale, more: usize) -> NumberText {
    let is_fitting = |unit: &&(&str, f64, f64)| value.abs() < unit.2;
    let (unit, size, _) = scale.units.iter().find(is_fitting).unwrap_or(&scale.units[scale.units.len() - 1]);
    let scaled = value / size;
    let usual = match scaled.abs() {
        below_ten if below_ten < 9.995 => 2,
        below_hundred if below_hundred < 99.95 => 1,
        _ => 0,
    };
    // There are no parts of the smallest unit.
    let is_whole = *size == 1.0 && value.fract() == 0.0;
    let digits = if is_whole { 0 } else { scale.digits.unwrap_or(usual) + more };
    NumberText { number: format!("{scaled:.digits$}"), unit }
}

/// `12.3 ms`
pub(crate) fn duration_word(nanos: f64) -> String {
    scaled(nanos, &DURATIONS, 0).to_string()
}

/// Small parts need more digits.
fn percent(ratio: f64, more: usize) -> NumberText {
    let percent = ratio * 100.0;
    let digits = match percent.abs() {
        small if small > 0.0 && small < 0.001 => 4,
        small if small > 0.0 && small < 0.05 => 3,
        _ => 1,
    };
    NumberText { number: format!("{percent:.*}", digits + more), unit: "%" }
}

/// An unbounded side is infinite.
fn floats(number: &Bounded<u64>) -> Bounded<f64> {
    if number.is_exact() {
        return Bounded::exact(number.value as f64);
    }
    let high = if number.high == u64::MAX { f64::INFINITY } else { number.high as f64 };
    Bounded { value: number.value as f64, low: number.low as f64, high }
}

/// `-12,345`
fn integer(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(number.unsigned_abs()))
}

/// `bash (123)`; of a thread that is not the first one `java (124 of 123)`; thread 0 is a CPU
/// without a thread.
fn process(name: Option<&str>, pid: Option<i64>, tid: Option<i64>) -> String {
    if name.is_none() && tid == Some(0) {
        return "idle".to_owned();
    }
    let ids = match (pid, tid) {
        (Some(pid), Some(tid)) if pid != tid => format!("({tid} of {pid})"),
        (_, Some(id)) | (Some(id), None) => format!("({id})"),
        (None, None) => String::new(),
    };
    match (name.map(shown), ids.is_empty()) {
        (Some(name), true) => name,
        (Some(name), false) => format!("{name} {ids}"),
        (None, true) => UNKNOWN.to_owned(),
        (None, false) => format!("{UNKNOWN} {ids}"),
    }
}

/// Text that a terminal shows as it is and that stays on its line; nothing is `""`.
fn shown(text: &str) -> String {
    if text.is_empty() { "\"\"".to_owned() } else { escaped(text).into_owned() }
}

/// Characters that would move the cursor, change colors or turn text around become escapes.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    escaped_where(text, is_unseen)
}

/// The same of lines, which keep their ends and tabs.
pub(crate) fn escaped_lines(text: &str) -> Cow<'_, str> {
    escaped_where(text, |character| !matches!(character, '\n' | '\t') && is_unseen(character))
}

fn escaped_where(text: &str, is_unseen: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_unseen) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            unseen if is_unseen(unseen) => out.extend(unseen.escape_default()),
            seen => out.push(seen),
        }
    }
    Cow::Owned(out)
}

/// Controls, and characters that make text look other than it is.
fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
