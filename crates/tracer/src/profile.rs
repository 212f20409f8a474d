//! Ticks that places of a program take, summed up, and told each so many times: for programs that
//! are looked at without a recorder, as Genode's `GENODE_LOG_TSC` has it.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

/// Above it, a number is shown in the next unit.
const SHOWN_MAX: u64 = 100_000;

/// Ticks of all calls of a place, on all threads.
#[derive(Debug, Default)]
pub struct TickProfile {
    sum: AtomicU64,
    calls: AtomicU64,
}

/// The line about a place: `TSC NAME: SUM (CALLS calls, last TICKS)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickReport<'a> {
    name: &'a str,
    sum: u64,
    calls: u64,
    last: u64,
}

/// A call of a place, which ends when this is dropped.
#[derive(Debug)]
pub struct ProfiledCall<'a, L: FnMut() -> bool, T: FnMut(&TickReport<'_>)> {
    profile: &'static TickProfile,
    name: &'a str,
    every: u64,
    begin: u64,
    /// Leaves the call; says whether it was the outermost one of the thread.
    leave: L,
    tell: T,
}

impl TickProfile {
    /// That of a place without calls.
    #[must_use]
    pub const fn new() -> Self {
        Self { sum: AtomicU64::new(0), calls: AtomicU64::new(0) }
    }

    /// Adds a call; the report, if it is due.
    fn add<'a>(&self, name: &'a str, every: u64, last: u64) -> Option<TickReport<'a>> {
        let sum = self.sum.fetch_add(last, Ordering::Relaxed).wrapping_add(last);
        let calls = self.calls.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let is_due = every > 0 && calls.is_multiple_of(every);
        is_due.then_some(TickReport { name, sum, calls, last })
    }
}

impl<'a, L: FnMut() -> bool, T: FnMut(&TickReport<'_>)> ProfiledCall<'a, L, T> {
    /// Begins it. Each `every`-th call tells its report.
    #[inline]
    #[must_use]
    pub fn begin(profile: &'static TickProfile, name: &'a str, every: u64, leave: L, tell: T) -> Self {
        Self { profile, name, every, begin: crate::ticks(), leave, tell }
    }
}

impl<L: FnMut() -> bool, T: FnMut(&TickReport<'_>)> Drop for ProfiledCall<'_, L, T> {
    #[inline]
    fn drop(&mut self) {
        let last = crate::ticks().saturating_sub(self.begin);
        if (self.leave)()
            && let Some(report) = self.profile.add(self.name, self.every, last)
        {
            (self.tell)(&report);
        }
    }
}

impl fmt::Display for TickReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, sum, calls, last } = *self;
        let ((sum, of_sum), (last, of_last)) = (scaled(sum), scaled(last));
        write!(f, "TSC {name}: {sum}{of_sum} ({calls} calls, last {last}{of_last})")
    }
}

/// Whole units, and their letter.
fn scaled(number: u64) -> (u64, &'static str) {
    let mut units = [(1, ""), (1_000, "K"), (1_000_000, "M"), (1_000_000_000, "G")].into_iter();
    let found = units.find(|(unit, _)| number / unit <= SHOWN_MAX);
    let (unit, letter) = found.unwrap_or((1_000_000_000, "G"));
    (number / unit, letter)
}

/// The name of the function around a function inside of it.
#[doc(hidden)]
#[must_use]
pub fn name_around(inside: &'static str) -> &'static str {
    let name = inside.rsplit_once("::").map_or(inside, |(around, _)| around);
    name.trim_end_matches("::{{closure}}")
}

/// The function that this is in, with its path.
#[doc(hidden)]
#[macro_export]
macro_rules! function_name {
    () => {{
        fn here() {}
        $crate::profile::name_around(::core::any::type_name_of_val(&here))
    }};
}

/// Measures from here to the end of the block, in ticks of the tracer's clock, over all threads; each so
/// many times it prints a line on standard error: `TSC name: sum (calls calls, last ticks)`. Without a
/// name it has that of the function. Of a function that calls itself, the outermost call of a thread
/// counts.
///
/// ```
/// fn parse(text: &str) -> usize {
///     kymo_tracer::log_tsc!(1000);
///     text.len()
/// }
/// assert_eq!(parse("abc"), 3);
/// ```
#[macro_export]
macro_rules! log_tsc {
    ($every:expr) => {
        $crate::log_tsc!($every, $crate::function_name!());
    };
    ($every:expr, $name:expr) => {
        let _call = $crate::profiled!($every, $name, |report| ::std::eprintln!("{report}"));
    };
}

/// The same as [`log_tsc!`](crate::log_tsc), with the line as an event `kymo:log` of the level info.
///
/// ```
/// fn parse(text: &str) -> usize {
///     kymo_tracer::trace_tsc!(1000, "parse");
///     text.len()
/// }
/// assert_eq!(parse("abc"), 3);
/// ```
#[macro_export]
macro_rules! trace_tsc {
    ($every:expr) => {
        $crate::trace_tsc!($every, $crate::function_name!());
    };
    ($every:expr, $name:expr) => {
        let _call = $crate::profiled!($every, $name, |report| $crate::log!($crate::marks::Level::Info, "{report}"));
    };
}

/// A call that is measured.
#[doc(hidden)]
#[macro_export]
macro_rules! profiled {
    ($every:expr, $name:expr, $tell:expr) => {{
        static PROFILE: $crate::profile::TickProfile = $crate::profile::TickProfile::new();
        ::std::thread_local! {
            static DEPTH: ::core::cell::Cell<u32> = const { ::core::cell::Cell::new(0) };
        }
        let enter = |by: u32| DEPTH.with(|depth| depth.replace(depth.get().wrapping_add(by)).wrapping_add(by));
        enter(1);
        $crate::profile::ProfiledCall::begin(&PROFILE, $name, $every, move || enter(u32::MAX) == 0, $tell)
    }};
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn reports_are_told_each_so_many_times() {
        let profile = TickProfile::new();
        assert_eq!(profile.add("a", 2, 7), None);
        let report = profile.add("a", 2, 100_001).expect("it is the second one");
        assert_eq!(report.to_string(), "TSC a: 100K (2 calls, last 100K)");
        assert_eq!(profile.add("a", 0, 7), None, "never");
        assert_eq!(
            profile.add("a", 4, 93_000).map(|report| report.to_string()).as_deref(),
            Some("TSC a: 193K (4 calls, last 93000)")
        );
    }

    #[test]
    fn numbers_have_units_as_genode_shows_them() {
        for (number, shown) in [
            (0, (0, "")),
            (100_000, (100_000, "")),
            (100_001, (100, "K")),
            (100_001_000, (100, "M")),
            (u64::MAX, (18_446_744_073, "G")),
        ] {
            assert_eq!(scaled(number), shown);
        }
    }
}
