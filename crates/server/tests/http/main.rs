//! The server as it is asked: over connections to a free port of this machine.
#![allow(clippy::unwrap_used)]

#[path = "../../../cli/tests/suite/schema/checker.rs"]
mod checker;
mod client;
mod connections;
mod description;
#[cfg(unix)]
mod examples;
mod growing;
mod memory;
mod notes;
mod pages;
mod questions;
mod refusals;
mod start;
mod timeline;
