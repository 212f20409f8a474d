//! The runs of a CPU between its first and its last switch of a part, and how busy it was over
//! time.

use serde::{Deserialize, Serialize};

use crate::Setup;
use crate::windows::Windows;

/// Equal spans of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeBins {
    pub(super) begin: i64,
    /// Nanoseconds of each; not 0.
    pub(super) width: u64,
    pub(super) count: usize,
}

/// Spans of time that a course has at most.
const BINS_MAX: usize = 1 << 16;

/// The state of a CPU in a part of the trace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CpuState {
    /// Its first switch: when, and the thread that it ended.
    pub(super) head: Option<CpuFirstSwitch>,
    /// Its last switch: when, and the thread that it began.
    pub(super) tail: Option<(i64, i32)>,
    pub(super) sums: CpuSums,
    /// Runs that ended with another thread than they began with: uncounted events were lost.
    pub(super) odd: Windows,
    /// One of them is not explained by events that are known to be lost.
    pub(super) is_uncounted: bool,
}

/// The first switch of a CPU in a part of the trace.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct CpuFirstSwitch {
    pub(super) time: i64,
    pub(super) prev: i32,
}

/// Sums of a CPU between its first and its last switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CpuSums {
    pub(super) busy_ns: u64,
    /// Of that, in holes.
    pub(super) doubt_ns: u64,
    pub(super) idle_ns: u64,
    pub(super) switches: u64,
    /// Busy nanoseconds in each bin.
    pub(super) course: Vec<u64>,
    /// The bin that was added to last.
    #[serde(skip)]
    last: LastBin,
}

/// Where a bin begins and ends, and which one it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LastBin {
    begin: i64,
    end: i64,
    bin: usize,
}

/// How long a thread ran.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadRun {
    pub(super) ns: u64,
    /// Of that, in holes.
    pub(super) doubt_ns: u64,
}

impl TimeBins {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        let (begin, end) = setup.span_ns().unwrap_or((0, 0));
        let span = begin.abs_diff(end);
        let wanted = setup.wishes.bins.max(1) as u64;
        let width = setup.wishes.period_ns.unwrap_or(span.div_ceil(wanted)).max(1);
        let count = usize::try_from(span.div_ceil(width)).unwrap_or(BINS_MAX).min(BINS_MAX);
        Self { begin, width, count }
    }

    /// Adds a span of time to the bins that it covers.
    #[inline]
    fn add(&self, course: &mut Vec<u64>, known: &mut LastBin, begin: i64, end: i64) {
        // Almost every run lies in the bin of the one before, which is known without a division.
        if known.begin <= begin && begin < end && end <= known.end {
            course[known.bin] += begin.abs_diff(end);
        } else if self.count != 0 && begin < end {
            *known = self.add_elsewhere(course, begin, end);
        }
    }

    /// The same for a span anywhere; the last bin that it touches.
    #[cold]
    fn add_elsewhere(&self, course: &mut Vec<u64>, begin: i64, end: i64) -> LastBin {
        let of = |time: i64| (time.saturating_sub(self.begin).max(0) as u64 / self.width).min(self.count as u64 - 1);
        let (first, last) = (of(begin) as usize, of(end - 1) as usize);
        if course.len() <= last {
            course.resize(last + 1, 0);
        }
        let mut from = begin;
        for (bin, busy) in course.iter_mut().enumerate().take(last).skip(first) {
            let to = self.begin.saturating_add_unsigned((bin as u64 + 1) * self.width);
            *busy += from.abs_diff(to);
            from = to;
        }
        course[last] += from.abs_diff(end);
        let border = |bin: usize| self.begin.saturating_add_unsigned(bin as u64 * self.width);
        // Time before the first bin and behind the last one counts for these.
        LastBin { begin: border(last), end: border(last + 1), bin: last }
    }
}

impl CpuState {
    /// The CPU ran a thread from one time to another, and was found to run `found` then.
    #[inline]
    pub(super) fn ran(
        &mut self,
        bins: &TimeBins,
        holes: &Windows,
        (begin, tid): (i64, i32),
        (end, found): (i64, i32),
    ) -> ThreadRun {
        if found != tid {
            self.odd.add(begin, end);
            self.is_uncounted |= !holes.touch(begin, end);
        }
        self.sums.ran(bins, tid, begin, end, |begin, end| match found == tid {
            true if holes.is_empty() => 0,
            true => holes.cover(begin, end),
            false => begin.abs_diff(end),
        })
    }
}

impl CpuSums {
    /// The CPU ran a thread.
    #[inline]
    pub(super) fn ran(
        &mut self,
        bins: &TimeBins,
        tid: i32,
        begin: i64,
        end: i64,
        doubt: impl FnOnce(i64, i64) -> u64,
    ) -> ThreadRun {
        let run = ThreadRun { ns: begin.abs_diff(end), doubt_ns: doubt(begin, end) };
        if tid == 0 {
            self.idle_ns += run.ns;
        } else {
            self.busy_ns += run.ns;
            self.doubt_ns += run.doubt_ns;
            bins.add(&mut self.course, &mut self.last, begin, end);
        }
        run
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.busy_ns += other.busy_ns;
        self.doubt_ns += other.doubt_ns;
        self.idle_ns += other.idle_ns;
        self.switches += other.switches;
        if self.course.len() < other.course.len() {
            self.course.resize(other.course.len(), 0);
        }
        self.course.iter_mut().zip(&other.course).for_each(|(sum, more)| *sum += more);
    }
}
