//! `libkymo.so` and `libkymo.a`: the [tracer](kymo_tracer) for programs in C and C++, which include
//! `kymo/kymo.h`.
//!
//! It must never know more than that: the functions that the headers call belong to the tracer, and to
//! [`kymo_control`] and [`kymo_skew`].
//! `make libkymo` builds it without unwinding and without Rust's standard library, in 160 KiB.
//! Builds for tests include the standard library, but do not use it.

#![cfg_attr(panic = "abort", no_std)]
#![cfg(target_os = "linux")]

mod control;
mod marks;
mod prepare;

pub use kymo_tracer::{Context, Event, Write};

/// A panic is a bug in this library. It ends the program, because there is no caller that could
/// handle it.
#[cfg(panic = "abort")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    #[allow(unsafe_code, reason = "the C library has it")]
    // Safety: the declaration matches the C library's.
    unsafe extern "C" {
        safe fn abort() -> !;
    }
    abort()
}

// Rust's core library refers to this symbol, for programs that unwind. In a program with Rust code
// of its own, another definition may take its place.
#[cfg(panic = "abort")]
#[allow(unsafe_code, reason = "a symbol")]
mod personality {
    core::arch::global_asm!(".weak rust_eh_personality", ".hidden rust_eh_personality", "rust_eh_personality:", "ret");
}
