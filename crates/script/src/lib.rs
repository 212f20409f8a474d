//! Scripted traces for tests of analyses: a few lines of text become lanes, classes and events.
//!
//! It must never be part of a program that users run: only tests depend on it. The unit tests of `analysis` compile the same file
//! into themselves, because a test of a crate cannot share types with a crate that depends on it.

mod trace;

pub use trace::*;
