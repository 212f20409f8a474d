//! The tracer as recorders find it; one binary, which is linked once.
//!
//! Recorders see one program in a process, so two tests in one process would see each other's events: most tests start their own process.
#![cfg(target_os = "linux")]

mod alone;
mod bell;
mod fields;
mod filters;
mod forks;
mod later;
mod leftovers;
mod recorder;
mod signals;
mod started;
mod threads;
mod triggers;
