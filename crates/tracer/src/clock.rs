//! The counter that everything is stamped with.

#![allow(unsafe_code, reason = "counters are read by an instruction")]

/// Ticks of the processor's counter. It is not ordered with what is around it: two threads may see each other's a few nanoseconds off.
#[inline]
#[must_use]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // Safety: all processors of this architecture have it.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // Safety: Linux lets programs read it.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }
}
