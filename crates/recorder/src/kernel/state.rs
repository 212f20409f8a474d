//! Where the state of the system is from: iterators that the helper opens, or `/proc`.

use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo_probe::helper::Helper;

/// The helper, which several threads ask.
pub(super) type SharedHelper = Arc<Mutex<Helper>>;

/// The helper, for a short request.
pub(super) fn lock(helper: &SharedHelper) -> MutexGuard<'_, Helper> {
    helper.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Iterators of threads, open files and mapped code that were opened now, or why there are none.
#[derive(Debug)]
pub(super) struct StateSource(pub(super) [Result<File, String>; 3]);

/// Where it is from, in a word, and why not from iterators alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateOrigin {
    pub(super) word: &'static str,
    pub(super) why: Option<String>,
}

const ITERATORS: &str = "eBPF";
const PROC: &str = "/proc";
const BOTH: &str = "mixed";

impl StateSource {
    /// Has the helper open them.
    pub(super) fn open(helper: &SharedHelper) -> Self {
        Self(lock(helper).state().unwrap_or_else(|problem| [0; 3].map(|_| Err(problem.to_string()))))
    }

    /// Where the state will be from. Without threads, the others are of no use.
    pub(super) fn origin(&self) -> StateOrigin {
        let mut all: Vec<&String> = self.0.iter().filter_map(|part| part.as_ref().err()).collect();
        all.dedup();
        let why = all.into_iter().map(String::as_str).collect::<Vec<_>>().join("; ");
        let word = match &self.0 {
            [Ok(_), Ok(_), Ok(_)] => ITERATORS,
            [Err(_), ..] => PROC,
            _ => BOTH,
        };
        StateOrigin { word, why: Some(why).filter(|why| !why.is_empty()) }
    }
}

impl StateOrigin {
    /// It is not from iterators alone, as they could not be read to their end.
    pub(super) fn without(self, why: &str) -> Self {
        let word = if self.word == PROC { PROC } else { BOTH };
        Self { word, why: Some(self.why.map_or(why.to_owned(), |before| format!("{before}; {why}"))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_tells_the_source() {
        let file = || Ok(File::open("/proc/self/stat").expect("it is there"));
        let no = |why: &str| Err(why.to_owned());
        let of = |parts| StateSource(parts).origin();
        let all = of([file(), file(), file()]);
        assert_eq!((all.word, &all.why), ("eBPF", &None));
        let some = of([file(), file(), no("a")]);
        assert_eq!((some.word, some.why), ("mixed", Some("a".to_owned())));
        let none = of([no("a"), no("a"), no("b")]);
        assert_eq!((none.word, none.why.as_deref()), ("/proc", Some("a; b")));
        let broken = all.without("c");
        assert_eq!((broken.word, broken.why.as_deref()), ("mixed", Some("c")));
    }
}
