//! Packet cases as text, and the comparison of readers' output in tests.
//!
//! It must never be part of a program that users run: only tests and `promises` depend on it.

mod packets;
pub mod same;

pub use packets::*;
