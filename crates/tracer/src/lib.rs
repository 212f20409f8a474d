//! Events of a running program, written to memory that a recorder finds.
//!
//! It must never know the read side. In a traced program there is no thread of ours, no socket and no lock, and nothing is allocated but
//! pages of its own; everything here may be called by handlers of signals.
//!
//! ```text
//! site ── control byte: 0 ──> nothing
//!   │ └ 2.. ──> filter: no ──> nothing
//!   └ on ── thread's page ─┬─ nothing there: a new thread, or a child after a fork ──> lane (and, in a child, memory of its own)
//!                          ├─ busy: a handler interrupts a write ──> the lane of the next level
//!                          └─ lane: room, bytes, publish
//! ```
//!
//! Linux alone has what it needs, on x86-64 and aarch64.

#![no_std]
#![cfg(target_os = "linux")]
#![allow(non_upper_case_globals, reason = "what headers for C know has names of C")]

#[cfg(test)]
extern crate std;

mod arena;
mod clock;
mod context;
mod event;
pub mod field;
mod filter;
mod for_c;
mod lease;
mod leftovers;
mod macros;
mod pages;
mod place;
mod process;
mod thread;
mod write;

pub use clock::{counter, ticks};
pub use context::{Context, Own};
pub use event::Event;
pub use field::{Field, Hex};
pub use lease::nobody_has;
pub use process::control_file;
pub use write::{FIELD_BYTES_MAX, Write};
