//! The server as it is asked: over connections to a free port of this machine.
#![allow(clippy::unwrap_used)]

mod client;
mod connections;
mod description;
#[cfg(unix)]
mod examples;
mod pages;
mod questions;
mod refusals;
mod timeline;
