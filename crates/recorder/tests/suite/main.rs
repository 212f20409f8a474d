//! Programs that are recorded, and what becomes of traces when something goes wrong; one binary, which is linked once.
//!
//! It is also the programs and recorders of its tests: it starts itself.
#![cfg(target_os = "linux")]

mod counters;
mod daemon;
mod faults;
mod filters;
mod index;
mod limits;
mod recording;
mod traces;
