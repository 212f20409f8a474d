//! Time that CPUs have left for conversion.
//!
//! A thread that waits for an idle CPU still takes some time from others: the scheduler lets it run when a thread has just begun to
//! wait for the one that it has woken, and until the next tick. So it looks first, without doing anything, whether CPUs are idle.
//!
//! ```text
//! looks for 50 ms ── idle for a quarter of it ──> works for 200 ms ──┐
//!   ^  └── not ──┐                                                   │
//!   └─────────────┴───────────────────────────────────────────────────┘
//! ```
//!
//! After two seconds without spare time it works for once: a trace that is not followed is no further behind.

use std::fs;
use std::time::{Duration, Instant};

const LOOKS: Duration = Duration::from_millis(50);
const WORKS: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(2);
/// Part of the time in which a CPU has to be idle.
const PART: u32 = 4;

/// Whether CPUs have time left.
#[derive(Debug, Default)]
pub(super) struct SpareTime {
    looked: Option<(Instant, Vec<Duration>)>,
    works_until: Option<Instant>,
    /// Since when it has not worked.
    waits_since: Option<Instant>,
}

impl SpareTime {
    /// Whether there is work to be done now.
    pub(super) fn is_there(&mut self) -> bool {
        self.is_there_at(Instant::now(), idle)
    }

    fn is_there_at(&mut self, now: Instant, idle: impl FnOnce() -> Option<Vec<Duration>>) -> bool {
        if self.works_until.is_some_and(|until| now < until) {
            return true;
        }
        if self.looked.as_ref().is_some_and(|(since, _)| now.duration_since(*since) < LOOKS) {
            return false;
        }
        // Where that is not told, it is left to the scheduler.
        let Some(idle) = idle() else { return true };
        let is_spare = self.looked.as_ref().is_some_and(|(since, before)| {
            let mut more = idle.iter().zip(before).map(|(idle, before)| idle.saturating_sub(*before));
            more.any(|more| more * PART >= now.duration_since(*since))
        });
        self.looked = Some((now, idle));
        let waits_since = *self.waits_since.get_or_insert(now);
        let works = is_spare || now.duration_since(waits_since) >= PATIENCE;
        if works {
            (self.looked, self.works_until, self.waits_since) = (None, Some(now + WORKS), None);
        }
        works
    }
}

/// Bytes of pages that may wait for an idle CPU: a part of the memory that is free, and no more than half of what spools may have.
pub(super) fn waiting_max() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map_or(0, |kib| kib.saturating_mul(1024) / 64).clamp(32 << 20, 128 << 20)
}

/// Time that each CPU was idle; waits for disks are idle, too.
fn idle() -> Option<Vec<Duration>> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let of_cpu = |line: &str| {
        let words = line.strip_prefix("cpu").filter(|rest| !rest.starts_with(' '))?;
        let mut words = words.split_ascii_whitespace().skip(4);
        let mut next = || words.next()?.parse::<u64>().ok();
        let jiffies = next()? + next()?;
        let nanos = jiffies.saturating_mul(1_000_000_000 / rustix::param::clock_ticks_per_second().max(1));
        Some(Duration::from_nanos(nanos))
    };
    let all: Vec<Duration> = text.lines().filter_map(of_cpu).collect();
    Some(all).filter(|all| !all.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_works_while_cpus_are_idle() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let told = |ms| move || Some(vec![Duration::from_millis(ms), Duration::from_millis(ms / 2)]);
        let never = || -> Option<Vec<Duration>> { panic!("it does not ask") };
        let mut spare = SpareTime::default();
        assert!(!spare.is_there_at(at(0), told(1000)), "it has to look first");
        assert!(!spare.is_there_at(at(20), never));
        assert!(!spare.is_there_at(at(60), told(1010)), "10 of 60 ms");
        assert!(!spare.is_there_at(at(100), never));
        assert!(spare.is_there_at(at(120), told(1030)), "20 of 60 ms");
        assert!(spare.is_there_at(at(300), never));
        assert!(!spare.is_there_at(at(330), told(1030)), "it looks again");
        assert!(spare.is_there_at(at(400), told(1090)), "60 of 70 ms");
        let mut busy = SpareTime::default();
        let worked = (0..100).filter(|step| busy.is_there_at(at(100 * step), told(0))).count();
        assert!((7..10).contains(&worked), "{worked} of 100 times in 10 s");
        let mut unknown = SpareTime::default();
        assert!(unknown.is_there_at(at(0), || None));
    }

    #[test]
    fn idle_time_is_told() {
        let cpus = idle().expect("it is told");
        assert!(cpus.len() >= std::thread::available_parallelism().map_or(1, usize::from), "{cpus:?}");
    }
}
