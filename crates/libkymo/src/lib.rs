//! `libkymo.so` and `libkymo.a`: the [tracer](kymo_tracer) for programs in C and C++, which include `kymo/kymo.h`.
//!
//! It must never know more than that: what headers call is the tracer's. Built by `make libkymo`, where nothing unwinds, it is 60 KiB
//! without Rust's standard library; in builds for tests it has one, which nothing uses.

#![cfg_attr(panic = "abort", no_std)]
#![cfg(target_os = "linux")]

mod marks;

pub use kymo_tracer::{Context, Event, Write};

/// A broken promise of ours ends the program: nobody is left who could be told.
#[cfg(panic = "abort")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    #[allow(unsafe_code, reason = "the C library has it")]
    // Safety: that is what it looks like.
    unsafe extern "C" {
        safe fn abort() -> !;
    }
    abort()
}

// Rust's core library names it, for programs that unwind. Another copy of it, of a program that has some Rust of its own, may take its place.
#[cfg(panic = "abort")]
#[allow(unsafe_code, reason = "a symbol")]
mod personality {
    core::arch::global_asm!(".weak rust_eh_personality", ".hidden rust_eh_personality", "rust_eh_personality:", "ret");
}
