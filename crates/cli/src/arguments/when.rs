//! Times among the arguments: one, or two as a range.

use std::fmt;

use clap::Args;
use kymo_session::{NotATime, Session, When, Zone};

use crate::stop::StopReason;

/// Which events are wanted, by their time.
#[derive(Args)]
pub(crate) struct Between {
    /// Begin with the first event at or after this time
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    begin: Option<When>,
    /// End with the last event at or before this time
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    end: Option<When>,
    /// Begin and end: `BEGIN,END` or `[BEGIN,END]`
    #[arg(short, long, value_name = "BEGIN,END", allow_hyphen_values = true, conflicts_with_all = ["begin", "end"])]
    timerange: Option<TimeRange>,
}

impl Between {
    /// In nanoseconds; stops where nothing can be between them: a time was mistyped.
    pub(crate) fn nanos(&self, session: &Session, zone: Zone) -> Result<(Option<i64>, Option<i64>), StopReason> {
        let (begin, end) = match &self.timerange {
            Some(range) => (Some(&range.begin), Some(&range.end)),
            None => (self.begin.as_ref(), self.end.as_ref()),
        };
        let first_ns = session.first_ns().unwrap_or(0);
        let out_of_range = || StopReason::Usage("the time is out of range".to_owned());
        let nanos = |when: &When| when.nanos(first_ns, zone).ok_or_else(out_of_range);
        let (begin_ns, end_ns) = (begin.map(nanos).transpose()?, end.map(nanos).transpose()?);
        if begin_ns.zip(end_ns).is_some_and(|(begin, end)| begin > end) {
            return Err(StopReason::Usage("the time of --begin is after that of --end".to_owned()));
        }
        Ok((begin_ns, end_ns))
    }
}

/// Two points in time, as Babeltrace's `--timerange` takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimeRange {
    pub(crate) begin: When,
    pub(crate) end: When,
}

/// It is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotATimeRange;

impl fmt::Display for NotATimeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a range is `BEGIN,END` or `[BEGIN,END]`; {NotATime}")
    }
}

impl std::error::Error for NotATimeRange {}

impl std::str::FromStr for TimeRange {
    type Err = NotATimeRange;

    fn from_str(text: &str) -> Result<Self, NotATimeRange> {
        let text = text.trim();
        let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        let (begin, end) = inside.split_once(',').ok_or(NotATimeRange)?;
        let when = |text: &str| text.parse().map_err(|NotATime| NotATimeRange);
        Ok(Self { begin: when(begin)?, end: when(end)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_with_and_without_brackets() {
        let range = TimeRange { begin: "17:46".parse().unwrap(), end: "2016-03-04 17:47".parse().unwrap() };
        assert_eq!("17:46,2016-03-04 17:47".parse(), Ok(range.clone()));
        assert_eq!(" [17:46, 2016-03-04 17:47] ".parse(), Ok(range));
        for text in ["17:46", "17:46,", ",17:46", "[17:46,17:47", "1,2,3", ""] {
            assert_eq!(text.parse::<TimeRange>(), Err(NotATimeRange), "{text}");
        }
    }
}
