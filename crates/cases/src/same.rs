//! Whether two readers print the same of a trace: exact where readers must agree, free where they may differ.
//!
//! Readers agree on every event, its fields, its time and the order in each stream. Two things are theirs:
//!
//! - *A nanosecond.* Babeltrace makes nanoseconds of cycles in floating point and cuts the rest, we
//!   in integers.
//! - *Which of several streams is first at the same time.* Babeltrace 1 takes streams from a heap,
//!   which keeps no order among equals, and asks the heap anew at each event; Babeltrace 2 and we
//!   have an order of streams. Three streams are needed for it to show, so it does on machines with
//!   more than two processors, and rarely. Cycles that are one after the other can be the same
//!   nanosecond, and only nanoseconds are compared there. With another order, other lines tell how
//!   long it was since the line before.
//!
//! Hence texts are the same when
//!
//! 1. each of them is in the order of its own stamps, and the time since the line before follows
//!    from its own stamps;
//! 2. each has the same lines of each stream, in the same order, with stamps that are at most a nanosecond apart.
//!
//! Nothing else is free: where two lines of different streams stand in different orders, a reader's
//! own stamps are equal there, or would be but for that nanosecond. The stream of a line
//! is known from its packet's context, the first braces of a recorded program's lines: a thread,
//! and which level of its signal handlers.

use std::collections::BTreeMap;

/// The difference between the texts of two readers; `None`: they are the same. Lines look like
/// `[2026-11-22 21:39:15.010866864] (+0.000000511) host app:event: { vpid = 1, vtid = 2 }, { … }`,
/// with or without a date.
#[must_use]
pub fn difference(one: &str, other: &str) -> Option<String> {
    let texts = [("the first", one), ("the second", other)];
    let [one, other] =
        match texts.map(|(which, text)| StreamLines::read(text).map_err(|why| format!("in {which} text, {why}"))) {
            [Ok(one), Ok(other)] => [one, other],
            [Err(why), _] | [_, Err(why)] => return Some(why),
        };
    let streams = one.streams.keys().chain(other.streams.keys());
    let mut differences = streams.filter_map(|stream| {
        let [one, other] = [&one, &other].map(|text| text.streams.get(stream).map_or(&[][..], Vec::as_slice));
        let different = one.iter().zip(other).find(|(one, other)| !one.is(other));
        let different = different.map(|(one, other)| format!("{}\n{}", one.whole, other.whole));
        let missing = || {
            let behind = one.get(other.len()).or(other.get(one.len()))?;
            Some(format!("{} and {} lines of a stream; one text alone has\n{}", one.len(), other.len(), behind.whole))
        };
        different.or_else(missing)
    });
    differences.next()
}

/// A line without its times.
struct TimelessLine<'t> {
    /// Nanoseconds, of the day where the date is missing.
    time: i64,
    /// Behind the times.
    said: &'t str,
    whole: &'t str,
}

impl TimelessLine<'_> {
    fn is(&self, other: &Self) -> bool {
        self.said == other.said && step(self.time, other.time).abs() <= 1
    }
}

/// Lines of each stream.
struct StreamLines<'t> {
    streams: BTreeMap<&'t str, Vec<TimelessLine<'t>>>,
}

impl<'t> StreamLines<'t> {
    fn read(text: &'t str) -> Result<Self, String> {
        let mut streams = BTreeMap::<_, Vec<_>>::new();
        let mut before = None;
        for whole in text.lines() {
            let (line, since) = parse(whole).ok_or_else(|| format!("a line is of another form:\n{whole}"))?;
            let expected = before.map(|before| step(before, line.time));
            if expected.is_some_and(|since| since < 0) {
                return Err(format!("a line is before the one before it:\n{whole}"));
            }
            if since != expected {
                return Err(format!("it was {expected:?} ns since the line before:\n{whole}"));
            }
            before = Some(line.time);
            let context =
                line.said.split_once(": { ").and_then(|(_, context)| context.split_once(" }")).unwrap_or_default();
            streams.entry(context.0).or_default().push(line);
        }
        Ok(Self { streams })
    }
}

const DAY: i64 = 86_400_000_000_000;

/// From one time to another; without dates, days begin anew.
fn step(from: i64, to: i64) -> i64 {
    let step = to - from;
    match from.max(to) < DAY {
        true if step < -DAY / 2 => step + DAY,
        true if step > DAY / 2 => step - DAY,
        _ => step,
    }
}

/// A line, and its time since the line before: nothing on the first.
fn parse(whole: &str) -> Option<(TimelessLine<'_>, Option<i64>)> {
    let (time, rest) = whole.strip_prefix('[')?.split_once("] (+")?;
    let (since, said) = rest.split_once(") ")?;
    let (date, time) = time.split_once(' ').map_or((None, time), |(date, time)| (Some(date), time));
    let (hours, rest) = time.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':')?;
    let days = match date {
        None => 0,
        Some(date) => days(date)?,
    };
    let time = days * DAY + (number(hours)? * 60 + number(minutes)?) * 60_000_000_000 + nanos(seconds)?;
    let since = match since {
        "?.?????????" => None,
        since => Some(nanos(since)?),
    };
    Some((TimelessLine { time, said, whole }, since))
}

/// Days since the beginning of 1970, of years of four digits.
fn days(date: &str) -> Option<i64> {
    let mut parts = date.split('-').map(number);
    let [year, month, day] = [parts.next()??, parts.next()??, parts.next()??];
    // Years begin in March here, so that a leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    Some(365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469)
}

fn number(digits: &str) -> Option<i64> {
    digits.parse().ok()
}

/// Nanoseconds, of seconds with nine digits behind the point.
fn nanos(seconds: &str) -> Option<i64> {
    let (seconds, nanos) = seconds.split_once('.')?;
    (nanos.len() == 9).then_some(number(seconds)? * 1_000_000_000 + number(nanos)?)
}

#[cfg(test)]
mod tests {
    use super::difference;

    /// A text of (nanoseconds, thread, number), in this order.
    fn text(lines: &[(u64, u32, u32)]) -> String {
        let mut before = None;
        let line = |&(time, thread, number): &(u64, u32, u32)| {
            let since = before.map_or("?.?????????".to_owned(), |before| format!("0.{:09}", time.wrapping_sub(before)));
            before = Some(time);
            format!("[10:00:00.{time:09}] (+{since}) vm app:number: {{ vtid = {thread} }}, {{ number = {number} }}\n")
        };
        lines.iter().map(line).collect()
    }

    const LINES: [(u64, u32, u32); 7] =
        [(10, 1, 0), (20, 2, 0), (20, 3, 0), (20, 4, 0), (21, 2, 1), (30, 3, 1), (31, 3, 2)];

    fn is_same(lines: &[(u64, u32, u32)]) -> bool {
        let (one, other) = (text(&LINES), text(lines));
        let (there, back) = (difference(&one, &other), difference(&other, &one));
        assert_eq!(there.is_none(), back.is_none(), "{there:?} {back:?}");
        there.is_none()
    }

    #[test]
    fn streams_at_the_same_time_are_in_any_order_and_a_nanosecond_is_free() {
        assert!(is_same(&LINES));
        assert!(is_same(&[(10, 1, 0), (20, 4, 0), (20, 2, 0), (20, 3, 0), (21, 2, 1), (30, 3, 1), (31, 3, 2)]));
        // A reader for whom later events are at the same time.
        assert!(is_same(&[(10, 1, 0), (20, 2, 0), (20, 2, 1), (20, 3, 0), (20, 4, 0), (30, 3, 1), (31, 3, 2)]));
        assert!(is_same(&[(9, 1, 0), (20, 2, 0), (20, 3, 0), (21, 4, 0), (22, 2, 1), (31, 3, 1), (31, 3, 2)]));
    }

    #[test]
    fn a_line_that_is_missing_doubled_changed_or_moved_is_found() {
        for at in 0..LINES.len() {
            let mut lines = LINES.to_vec();
            let line = lines.remove(at);
            assert!(!is_same(&lines), "{line:?} is missing");
            let mut lines = LINES.to_vec();
            lines.insert(at, line);
            assert!(!is_same(&lines), "{line:?} is doubled");
            for (time, thread, number) in [(0, 0, 9), (0, 7, 0), (2, 0, 0)] {
                let mut lines = LINES.to_vec();
                lines[at] = (line.0 + time, line.1 + thread, line.2 + number);
                lines.sort();
                assert!(!is_same(&lines), "{line:?} is changed");
            }
            for to in (0..LINES.len()).filter(|to| LINES[*to].0 != line.0) {
                let mut lines = LINES.to_vec();
                lines.remove(at);
                lines.insert(to, line);
                assert!(!is_same(&lines), "{line:?} is moved to {to}");
            }
        }
    }

    #[test]
    fn the_order_in_a_stream_is_what_it_is_whatever_the_times() {
        let (one, other) = (text(&[(10, 1, 0), (10, 1, 1)]), text(&[(10, 1, 1), (10, 1, 0)]));
        assert!(difference(&one, &other).is_some());
    }

    #[test]
    fn the_time_since_the_line_before_is_what_the_stamps_say() {
        let one = text(&LINES);
        let other = one.replacen("+0.000000010", "+0.000000011", 1);
        assert!(difference(&one, &other).is_some_and(|why| why.starts_with("in the second text, it was Some(10)")));
        assert!(difference("no line", "").is_some_and(|why| why.contains("another form")));
    }

    #[test]
    fn days_and_dates_are_times() {
        let line = |time: &str, since: &str| format!("[{time}] (+{since}) vm a:b: {{ vtid = 1 }}\n");
        let first = "?.?????????";
        let ends = |times: [&str; 2]| line(times[0], first) + &line(times[1], "0.000000002");
        for [one, other] in [
            ["23:59:59.999999999", "00:00:00.000000001"],
            ["2023-12-31 23:59:59.999999999", "2024-01-01 00:00:00.000000001"],
            ["2024-02-29 23:59:59.999999999", "2024-03-01 00:00:00.000000001"],
            ["2024-02-28 23:59:59.999999999", "2024-02-29 00:00:00.000000001"],
            ["2023-02-28 23:59:59.999999999", "2023-03-01 00:00:00.000000001"],
        ] {
            assert_eq!(difference(&ends([one, other]), &ends([one, other])), None);
            assert!(difference(&ends([one, other]), &ends([other, one])).is_some());
        }
        let [one, other] = ["2024-01-01", "2024-01-02"].map(|date| line(&format!("{date} 10:00:00.000000000"), first));
        assert!(difference(&one, &other).is_some(), "a day is more than a nanosecond");
    }
}
