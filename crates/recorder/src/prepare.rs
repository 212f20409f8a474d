//! The counters of CPUs, compared before a session begins: its trace tells how far they are apart.
//!
//! The command measures, and hands the results to the recorder with the options of the session: the
//! recorder, which drains all programs, has no time for it.

use kymo_skew::CpuCounter;

/// The counters of the CPUs on which this process may run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreparedCounters {
    /// That of the first CPU is the first one.
    pub counters: Vec<CpuCounter>,
    /// Ticks of a second.
    pub frequency_hz: u64,
}

impl PreparedCounters {
    /// Measures them: some milliseconds for each CPU, and 50 for one that does not answer.
    #[must_use]
    pub fn measure() -> Self {
        let mut counters = Vec::new();
        let frequency_hz = kymo_skew::measure(kymo_skew::PTHREAD_CREATE, |counter| counters.push(counter));
        Self { counters, frequency_hz }
    }
}

#[cfg(test)]
mod tests {
    use kymo_skew::CounterOffset;

    use super::*;

    #[test]
    fn all_counters_of_this_machine_are_asked_and_the_first_one_is_its_own_measure() {
        let found = PreparedCounters::measure();
        assert_eq!(found.counters[0].offset, Some(CounterOffset::default()));
        assert!(found.frequency_hz > 1_000_000, "{found:?}");
        let text = serde_json::to_string(&found.counters).expect("it is plain");
        assert_eq!(serde_json::from_str::<Vec<CpuCounter>>(&text).expect("it is the same"), found.counters);
    }
}
