//! Random programs, predicates and trace classes for tests.
//!
//! It must never be part of a program that users run: only tests, `promises` and `fuzz/` depend on it.
//!
//! A random value is a function of a seed or of chosen bytes ([`RandomNumbers`]), so a test that fails names the seed
//! that fails again.

pub mod classes;
pub mod machine;
mod numbers;
pub mod predicates;

pub use numbers::*;
