//! Events of a running program, written to memory that a recorder finds.
//!
//! It must never know the read side. In a traced program there is no thread of ours, no socket and no lock, and nothing is allocated but
//! pages of its own; everything here may be called by handlers of signals.
//!
//! ```text
//! site ── control byte: 0 ──> nothing
//!   └ on ── thread's page ─┬─ nothing there: a new thread, or a child after a fork ──> lane (and, in a child, memory of its own)
//!                          ├─ busy: a handler interrupts a write ──> the lane of the next level
//!                          └─ lane: room, bytes, publish
//! ```
//!
//! Linux alone has what it needs.

#![no_std]
#![cfg(target_os = "linux")]

#[cfg(test)]
extern crate std;

mod clock;
mod event;
mod pages;
mod place;
mod process;
mod thread;

pub use clock::ticks;
pub use event::Event;
pub use process::control_file;
