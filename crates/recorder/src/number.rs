//! Numbers of published selections: times, so that sessions know whether a program began with a
//! selection that they are part of. Their low bits tell recorders from each other: two recorders of
//! one user, with different runtime folders, share the folders of programs that have none.
//!
//! ```text
//! nanoseconds of uptime, without the low 16 bits │ low 16 bits of the recorder's PID
//! ```

use crate::clock::uptime_ns;

const RECORDER_BITS: u32 = 16;

/// The number of a selection that is published now, after another one.
pub(crate) fn next(before: u64) -> u64 {
    let now = u64::try_from(uptime_ns()).unwrap_or(0).max(before);
    (((now >> RECORDER_BITS) + 1) << RECORDER_BITS) | own_bits()
}

/// Whether a number is one of this recorder's.
pub(crate) fn is_own(number: u64) -> bool {
    number != 0 && number % (1 << RECORDER_BITS) == own_bits()
}

fn own_bits() -> u64 {
    u64::from(std::process::id()) % (1 << RECORDER_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_and_are_later_than_now() {
        let now = u64::try_from(uptime_ns()).expect("it is positive");
        let first = next(0);
        let second = next(first);
        assert!(first > now && second > first && is_own(first) && is_own(second));
        assert!(!is_own(first ^ 1));
    }
}
