//! Writes events of a running program to memory that a recorder finds.
//!
//! It must never know the read side. This crate adds no thread, no socket and no lock to a traced
//! program, and allocates only whole pages of its own. Signal handlers may call all of its
//! functions.
//!
//! ```text
//! site ── control byte: 0 ──> nothing
//!   │ └ 2.. ──> filter: no ──> nothing
//!   └ on ── thread's page ─┬─ nothing there: a new thread, or a child after a fork ──> lane (and, in a child, memory of its own)
//!                          ├─ busy: a handler interrupts a write ──> the lane of the next level
//!                          └─ lane: room, bytes, publish
//! ```
//!
//! Recording needs Linux on x86-64 or aarch64. Elsewhere all public items exist and do nothing
//! (`elsewhere.rs`), so that programs with events build there too.

#![no_std]
#![allow(non_upper_case_globals, reason = "what headers for C know has names of C")]

#[cfg(test)]
extern crate std;

/// Like the macro of the same name in the crate `cfg-if`; `rustfmt` finds the files of modules
/// inside it.
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
        mod code;
        mod context;
        mod enter;
        mod event;
        mod filter;
        mod for_c;
        mod interrupted;
        mod judge;
        mod lease;
        mod leftovers;
        mod objects;
        mod pages;
        mod place;
        mod process;
        mod register;
        mod remember;
        mod selection;
        mod stack;
        mod thread;
        mod write;

        pub use begin::record_for;
        pub use bell::{BELL_NAME, Bell};
        pub use clock::{counter, counter_frequency, ticks, usual_source};
        pub use context::{Context, Own};
        pub use event::Event;
        pub use lease::nobody_has;
        pub use process::{control_file, recorder_socket};
        pub use write::Write;
    } else {
        mod elsewhere;

        pub use elsewhere::{Context, Event, Own, Write, control_file, counter, counter_frequency, record_for, ticks};
    }
}

pub mod field;
mod macros;
pub mod marks;
pub mod profile;
pub mod usdt;

pub use field::{Field, Hex};

/// Maximum bytes of an event's fields; longer values are truncated.
pub const FIELD_BYTES_MAX: u64 = 16 << 10;
