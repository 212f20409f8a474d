//! The tracer as recorders find it; one binary, which is linked once.
//!
//! To recorders a process is one program, whatever runs in it: so most of these tests have a process for themselves.
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
