//! libkymo in programs in C and C++, as they are built, run and killed; one binary, which is linked once.
#![cfg(target_os = "linux")]

mod cross;
mod examples;
mod headers;
mod lives;
mod programs;
mod sanitizers;
mod storms;
