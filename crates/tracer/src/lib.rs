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
//! Linux alone has what it needs, on x86-64 and aarch64. Elsewhere everything is there, and does nothing (`elsewhere.rs`), so that programs
//! with events build there too.

#![no_std]
#![allow(non_upper_case_globals, reason = "what headers for C know has names of C")]

#[cfg(test)]
extern crate std;

/// As the macro of that name elsewhere, whose files `rustfmt` finds.
macro_rules! cfg_if {
    (if #[cfg($here:meta)] { $($item:item)* } else { $($other:item)* }) => {
        $(#[cfg($here)] $item)*
        $(#[cfg(not($here))] $other)*
    };
}

cfg_if! {
    if #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))] {
        mod arena;
        mod begin;
        mod bell;
        mod clock;
        mod context;
        mod enter;
        mod event;
        mod filter;
        mod for_c;
        mod interrupted;
        mod lease;
        mod leftovers;
        mod pages;
        mod place;
        mod process;
        mod register;
        mod stack;
        mod thread;
        mod write;

        pub use begin::record_for;
        pub use bell::{BELL_NAME, Bell};
        pub use clock::{counter, counter_frequency, ticks};
        pub use context::{Context, Own};
        pub use event::Event;
        pub use lease::nobody_has;
        pub use process::control_file;
        pub use write::Write;
    } else {
        mod elsewhere;

        pub use elsewhere::{Context, Event, Own, Write, control_file, counter, counter_frequency, record_for, ticks};
    }
}

pub mod field;
mod macros;
pub mod marks;

pub use field::{Field, Hex};

/// Bytes of an event's fields, at most: whoever has more cuts them.
pub const FIELD_BYTES_MAX: u64 = 16 << 10;
