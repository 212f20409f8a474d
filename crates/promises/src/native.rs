//! Machine code for traced programs keeps the events that the evaluator keeps.
//!
//! The predicate, the layout and the arguments are all made from the bytes. Text lies inside the
//! structure here: the traced program promises the memory behind pointers.

use kymo_jit::{NativeFilter, NativeTarget};
use kymo_random::predicates::{PredicateOptions, arguments, data, predicate};

use crate::random::RandomNumbers;

/// Events that each filter is asked about.
const EVENTS: usize = 8;

/// The promise for a random predicate: how many events it kept; `None` if machine code does not
/// cover it.
///
/// # Panics
///
/// If it is broken.
pub fn hold(random: &mut RandomNumbers) -> Option<usize> {
    let options = PredicateOptions { pointers: false, nodes: 1 + random.below(60), ..PredicateOptions::ALL };
    let (predicate, layout) = predicate(random, &options);
    let filter = NativeFilter::new(&NativeTarget::host()?, &predicate, &layout).ok()?;
    let loaded = filter.load()?;
    let mut kept = 0;
    for _ in 0..EVENTS {
        let bytes = arguments(random, &predicate, &layout);
        let event = data(&predicate, &layout, &bytes);
        let expected = predicate.keeps(&event[..]);
        assert_eq!(loaded.run(&bytes), expected, "{event:?} in {layout:?}: {predicate}");
        kept += usize::from(expected);
    }
    Some(kept)
}
