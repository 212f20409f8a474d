//! Machine code against the evaluator, and against whoever calls it wrongly; one binary, which is linked once.

#[cfg(feature = "every-target")]
mod every_target;
mod keep;
mod predicates;
mod sound;
