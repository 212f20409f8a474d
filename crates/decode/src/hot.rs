//! Machine code that is made when a program was used often enough.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Machine code of one program. Threads look at it all the time: once it is there, it never
/// changes.
#[derive(Debug)]
pub(crate) struct Hot<T> {
    /// Records that were left to the evaluator.
    uses: AtomicUsize,
    is_begun: AtomicBool,
    made: OnceLock<Option<T>>,
}

impl<T> Default for Hot<T> {
    fn default() -> Self {
        Self { uses: AtomicUsize::new(0), is_begun: AtomicBool::new(false), made: OnceLock::new() }
    }
}

impl<T> Hot<T> {
    /// The code for `records` more records, made if as many as `after` came before. `None`: the
    /// evaluator has to do it, also while another thread makes the code, for which no thread waits.
    /// With `after` 0 all threads wait.
    pub(crate) fn get(&self, records: usize, after: usize, make: impl FnOnce() -> Option<T>) -> Option<&T> {
        if let Some(made) = self.made.get() {
            return made.as_ref();
        }
        // `swap` lets one thread through. `get_or_init` alone would let all others wait for it.
        let is_due = after == 0
            || self.uses.fetch_add(records, Ordering::Relaxed) >= after && !self.is_begun.swap(true, Ordering::Relaxed);
        if is_due { self.made.get_or_init(make).as_ref() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_once_and_when_due() {
        let hot = Hot::default();
        assert_eq!(hot.get(5, 10, || Some(1)), None);
        assert_eq!(hot.get(5, 10, || Some(2)), None);
        assert_eq!(hot.get(5, 10, || Some(3)), Some(&3));
        assert_eq!(hot.get(5, 10, || Some(4)), Some(&3));
        assert_eq!(Hot::default().get(1, 0, || Some(5)), Some(&5));
    }

    /// A program that cannot become code stays with the evaluator, and there is no second try.
    #[test]
    fn what_cannot_be_made_is_tried_once() {
        let hot = Hot::<u8>::default();
        assert_eq!(hot.get(1, 0, || None), None);
        assert_eq!(hot.get(1, 0, || Some(1)), None);
    }

    #[test]
    fn nobody_waits_for_another_thread() {
        let hot = Hot::default();
        assert_eq!(hot.get(10, 10, || Some(0)), None);
        let made = hot.get(1, 10, || {
            // As another thread would ask while this one makes it.
            assert_eq!(hot.get(1, 10, || Some(1)), None);
            Some(2)
        });
        assert_eq!(made, Some(&2));
    }
}
