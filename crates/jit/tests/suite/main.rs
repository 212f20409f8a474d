//! Machine code compared with the evaluator, and called with wrong arguments; one binary, which is linked once.

#[cfg(feature = "every-target")]
mod every_target;
mod keep;
mod machine;
mod predicates;
mod sound;
