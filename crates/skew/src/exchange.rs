//! Memory in which two threads exchange stamps, and both sides of the exchange.
//!
//! ```text
//! ask      t0, question = round ────────> answer   sees it: t1, t2, then answer = round
//!          sees the answer: t3     <──────
//! ```
//!
//! Question and answer have a cache line each, so that each way is the transfer of one line. Reads of the
//! counter are ordered with the loads and stores around them: unordered ones could come before the
//! question, or after the answer, and the error would be no bound.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::{CounterOffset, RoundStamps};

/// Looks at the line between two checks whether all is over.
const LOOKS: u32 = 256;

/// What one side writes. Processors fetch lines in pairs: 128 bytes keep those of the sides apart.
#[repr(align(128))]
#[derive(Debug, Default)]
struct SideLine {
    round: AtomicU64,
    stamps: [AtomicU64; 2],
}

/// The memory of both.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    question: SideLine,
    answer: SideLine,
}

/// Asks for so many rounds; returns the one with the least trip. `None`: no round was answered before it
/// was over.
pub(crate) fn ask(
    exchange: &Exchange,
    rounds: u64,
    counter: impl Fn() -> u64,
    is_over: impl Fn() -> bool,
) -> Option<CounterOffset> {
    let mut best: Option<CounterOffset> = None;
    for round in 1..=rounds {
        let asked = counter();
        exchange.question.round.store(round, Ordering::Release);
        if !awaits(&exchange.answer.round, round, &is_over) {
            break;
        }
        let returned = counter();
        let [received, answered] = [0, 1].map(|at: usize| exchange.answer.stamps[at].load(Ordering::Relaxed));
        let found = RoundStamps { asked, received, answered, returned }.offset();
        if found.trip_ticks < best.map_or(u64::MAX, |best| best.trip_ticks) {
            best = Some(found);
        }
    }
    best
}

/// Answers until it is over.
pub(crate) fn answer(exchange: &Exchange, counter: impl Fn() -> u64, is_over: impl Fn() -> bool) {
    for round in 1.. {
        if !awaits(&exchange.question.round, round, &is_over) {
            return;
        }
        let received = counter();
        let answered = counter();
        exchange.answer.stamps[0].store(received, Ordering::Relaxed);
        exchange.answer.stamps[1].store(answered, Ordering::Relaxed);
        exchange.answer.round.store(round, Ordering::Release);
    }
}

/// Waits until a line has that round; returns whether it came.
fn awaits(line: &AtomicU64, round: u64, is_over: &impl Fn() -> bool) -> bool {
    loop {
        for _ in 0..LOOKS {
            if line.load(Ordering::Acquire) == round {
                return true;
            }
            core::hint::spin_loop();
        }
        if is_over() {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use core::sync::atomic::AtomicBool;

    use super::*;
    use crate::measure::counter;

    /// Both sides on threads, the answering one with a counter that is so far ahead.
    fn exchanged(ahead: i64, noise: u64) -> CounterOffset {
        let (exchange, is_over) = (Exchange::default(), AtomicBool::new(false));
        // One processor is enough for both.
        let over = || {
            std::thread::yield_now();
            is_over.load(Ordering::Relaxed)
        };
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let calls = Cell::new(0_u64);
                let shifted = || {
                    // Some reads are late, as after an interrupt.
                    calls.set(calls.get() + 1);
                    (0..calls.get() % 7 * noise).for_each(|_| core::hint::spin_loop());
                    counter().wrapping_add(ahead as u64)
                };
                answer(&exchange, shifted, over);
            });
            let found = ask(&exchange, 200, counter, over);
            is_over.store(true, Ordering::Relaxed);
            found.expect("it was answered")
        })
    }

    #[test]
    fn offsets_are_found_whatever_they_are() {
        for ahead in [0, 1_000_000_000, -1_000_000_000, i64::MAX / 2, i64::MIN / 2] {
            for noise in [0, 20] {
                let found = exchanged(ahead, noise);
                // Counters of this machine may differ themselves, by far less.
                let apart = found.offset_ticks.abs_diff(ahead);
                assert!(apart <= found.error_ticks + 1_000_000, "{ahead} with noise {noise}: {found:?}");
            }
        }
    }

    #[test]
    fn a_side_that_hears_nothing_ends_when_all_is_over() {
        let exchange = Exchange::default();
        let checks = Cell::new(0);
        let over = || {
            checks.set(checks.get() + 1);
            checks.get() > 3
        };
        assert_eq!(ask(&exchange, 2000, counter, over), None);
        checks.set(0);
        // The question of the first round is still there; there is no second one.
        answer(&exchange, counter, over);
        assert_eq!(exchange.answer.round.load(Ordering::Relaxed), 1);
    }
}
