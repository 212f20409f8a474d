//! Events and spans of `tracing` as recorders read them; one binary, which is linked once.
#![cfg(target_os = "linux")]

#[path = "../../../tracer/tests/suite/alone.rs"]
mod alone;
mod events;
mod marks;
mod read;
mod spans;
