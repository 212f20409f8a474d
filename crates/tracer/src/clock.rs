//! Timestamps: the processor's counter where it is reliable, else the system's clock.

#![allow(unsafe_code, reason = "counters are read by an instruction")]

use core::sync::atomic::{AtomicBool, Ordering};

use kymo_lane::ClockSource;

#[cfg(target_arch = "x86_64")]
use crate::place::Descriptor;

/// Whether the counter is unreliable.
static IS_SLOW: AtomicBool = AtomicBool::new(false);

/// Reads the processor's counter. The read is not ordered with the surrounding instructions:
/// timestamps of two threads may appear a few nanoseconds out of order.
#[inline]
#[must_use]
pub fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // Safety: all processors of this architecture have the instruction.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // Safety: Linux allows programs to read it.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }
}

/// Frequency of the counter in Hz, where the processor reports it: on aarch64. On x86 you have to
/// measure it: the value from CPUID is rounded, and missing on most machines.
#[must_use]
pub fn counter_frequency() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        None
    }
    #[cfg(target_arch = "aarch64")]
    {
        let frequency: u64;
        // Safety: Linux allows programs to read it.
        unsafe { core::arch::asm!("mrs {}, cntfrq_el0", out(reg) frequency, options(nomem, nostack)) };
        // 0 if the firmware has not set it.
        (frequency > 0).then_some(frequency)
    }
}

/// Current timestamp.
#[inline]
#[must_use]
pub fn ticks() -> u64 {
    if is_counter() { counter() } else { monotonic() }
}

#[inline]
pub(crate) fn is_counter() -> bool {
    !IS_SLOW.load(Ordering::Relaxed)
}

/// Nanoseconds of the system's clock.
pub(crate) fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Safety: `time` has room for the result, and the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The clock of programs for which the user has not asked for another one.
#[must_use]
pub fn usual_source() -> ClockSource {
    if is_constant() && !is_given_up() { ClockSource::Counter } else { ClockSource::Monotonic }
}

/// Chooses the clock; `wants_counter`: the user has not asked for the system's clock.
pub(crate) fn choose(wants_counter: bool) -> ClockSource {
    let is_counter = wants_counter && is_constant() && !is_given_up();
    IS_SLOW.store(!is_counter, Ordering::Relaxed);
    if is_counter { ClockSource::Counter } else { ClockSource::Monotonic }
}

/// Whether the counter runs at a constant rate in all power states of the processor.
#[cfg(target_arch = "x86_64")]
fn is_constant() -> bool {
    const INVARIANT: u32 = 1 << 8;
    let leaf = core::arch::x86_64::__cpuid;
    leaf(0x8000_0000).eax >= 0x8000_0007 && leaf(0x8000_0007).edx & INVARIANT != 0
}

/// Whether the kernel has found that the counters of processors differ, or are not constant.
/// `false` if the process cannot read the kernel's list.
#[cfg(target_arch = "x86_64")]
fn is_given_up() -> bool {
    let file = Descriptor::open(
        c"/sys/devices/system/clocksource/clocksource0/available_clocksource",
        libc::O_RDONLY | libc::O_CLOEXEC,
    );
    let mut names = [0; 256];
    let length = file.map_or(0, |file| file.read(&mut names));
    lacks_counter(&names[..length])
}

#[cfg(target_arch = "x86_64")]
fn lacks_counter(names: &[u8]) -> bool {
    !names.is_empty() && names.split(u8::is_ascii_whitespace).all(|name| name != b"tsc")
}

/// This architecture has no other clock.
#[cfg(target_arch = "aarch64")]
fn is_given_up() -> bool {
    false
}

/// The architecture guarantees it.
#[cfg(target_arch = "aarch64")]
fn is_constant() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn systems_give_counters_up() {
        let says = ["tsc hpet acpi_pm \n", "tsc\n", "", "kvm-clock tsc acpi_pm\n"];
        assert!(says.iter().all(|names| !super::lacks_counter(names.as_bytes())));
        assert!(["hpet acpi_pm \n", "tsc-early hpet\n"].iter().all(|names| super::lacks_counter(names.as_bytes())));
    }

    #[test]
    fn the_processor_says_how_fast_its_counter_runs_if_it_does() {
        let Some(frequency) = super::counter_frequency() else { return };
        let (begin, since) = (super::counter(), Instant::now());
        std::thread::sleep(Duration::from_millis(200));
        let counted = (super::counter() - begin) as f64 / since.elapsed().as_secs_f64();
        assert!((counted / frequency as f64 - 1.0).abs() < 0.05, "{counted} is not {frequency}");
    }
}
