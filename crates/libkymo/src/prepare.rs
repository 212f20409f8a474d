//! Compares the counters of CPUs for `kymo/prepare.h`, which hands them to the program and records them.
//!
//! This is the only function that starts threads: a program calls it, and knows that.

#![allow(unsafe_code, reason = "a function of C is called back")]

use core::ffi::c_void;

use kymo_skew::{CounterSpread, PTHREAD_CREATE};

/// A counter, as `struct kymo_cpu_clock` of the header.
#[repr(C)]
pub struct CpuClock {
    cpu: u32,
    known: u32,
    offset: i64,
    error: u64,
    trip: u64,
}

/// Compares them, and tells each. Returns an upper bound of the difference between any two, in nanoseconds;
/// `u64::MAX`: fewer than two are known.
///
/// # Safety
///
/// `tell` may be called with `closure`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_compare_counters(
    tell: unsafe extern "C" fn(*mut c_void, *const CpuClock),
    closure: *mut c_void,
) -> u64 {
    let mut spread = CounterSpread::default();
    let frequency_hz = kymo_skew::measure(PTHREAD_CREATE, |counter| {
        spread.add(&counter);
        let (offset, known) = (counter.offset.unwrap_or_default(), counter.offset.is_some().into());
        let (error, trip) = (offset.error_ticks, offset.trip_ticks);
        let clock = CpuClock { cpu: counter.cpu, known, offset: offset.offset_ticks, error, trip };
        // Safety: the caller allows it.
        unsafe { tell(closure, &raw const clock) };
    });
    spread.apart().map_or(u64::MAX, |ticks| kymo_skew::nanos_at_most(ticks, frequency_hz))
}
