//! Times of which a session wants the kernel's events. Programs tell by their events when it records, so that the past is known,
//! and the present is not.

use std::time::SystemTime;

/// Times that a session wants, in ticks of the kernel's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedTimes {
    /// First and last ticks, in order and apart.
    windows: Vec<(u64, u64)>,
    /// Up to when that is known.
    pub(super) known_until: u64,
    /// When that was; `None`: at any time.
    pub(super) known_at: Option<SystemTime>,
    /// Events of other times are recorded too, and are no loss.
    pub(super) is_limited: bool,
}

impl Default for WantedTimes {
    fn default() -> Self {
        Self { windows: vec![(0, u64::MAX)], known_until: u64::MAX, known_at: None, is_limited: false }
    }
}

impl WantedTimes {
    /// These times and no others.
    pub(crate) fn of(windows: impl IntoIterator<Item = (u64, u64)>) -> Self {
        Self { windows: joined(windows.into_iter().collect()), is_limited: true, ..Self::default() }
    }

    /// As it is known until these ticks, which are those of a time.
    pub(crate) fn known(self, until: u64, at: SystemTime) -> Self {
        Self { known_until: until, known_at: Some(at), ..self }
    }

    /// Whether events of other times are recorded too.
    pub(super) fn limited(self, is_limited: bool) -> Self {
        Self { is_limited, ..self }
    }

    /// Nothing more comes to be known.
    pub(crate) fn certain(self) -> Self {
        Self { known_until: u64::MAX, known_at: None, ..self }
    }

    /// Whether it wants an event.
    #[inline]
    pub(super) fn has(&self, ticks: u64) -> bool {
        // There is one window mostly, or the last one counts.
        self.windows.iter().rev().any(|(first, last)| (*first..=*last).contains(&ticks))
    }

    /// Whether it wants any event between two others.
    pub(super) fn overlaps(&self, from: u64, to: u64) -> bool {
        self.windows.iter().any(|(first, last)| *first <= to && *last >= from)
    }
}

/// The same times, in order and apart.
pub(crate) fn joined(mut windows: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    windows.sort_unstable();
    let mut all: Vec<(u64, u64)> = Vec::with_capacity(windows.len());
    for (first, last) in windows {
        match all.last_mut() {
            Some(known) if first <= known.1.saturating_add(1) => known.1 = known.1.max(last),
            _ => all.push((first, last)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_any_window() {
        let wanted = WantedTimes::of([(10, 20), (15, 30), (31, 32), (50, 60)]);
        assert_eq!(wanted.windows, [(10, 32), (50, 60)]);
        let has: Vec<u64> = (0..70).filter(|ticks| wanted.has(*ticks)).collect();
        assert_eq!(has, (10..=32).chain(50..=60).collect::<Vec<_>>());
        assert!(wanted.overlaps(0, 10) && wanted.overlaps(32, 49) && wanted.overlaps(0, 100));
        assert!(!wanted.overlaps(33, 49) && !wanted.overlaps(61, 100));
        assert!(WantedTimes::default().has(0) && WantedTimes::default().has(u64::MAX));
    }
}
