//! Which threads run before others.

/// A thread runs when no other one wants its CPU. Where that is not possible, it runs as before.
pub fn idle(thread: i32) {
    let _ = set(thread, libc::SCHED_IDLE, 0);
}

/// A thread runs as most do.
///
/// # Errors
///
/// This process may not do that: a thread that waits for an idle CPU is one with a high nice value, which only some may lower.
pub fn usual(thread: i32) -> std::io::Result<()> {
    set(thread, libc::SCHED_OTHER, 0)
}

/// A thread runs before all threads that have no real-time priority.
///
/// # Errors
///
/// This process may not do that.
pub(crate) fn real_time(thread: i32) -> std::io::Result<()> {
    set(thread, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1)
}

#[allow(unsafe_code)]
fn set(thread: i32, policy: i32, priority: i32) -> std::io::Result<()> {
    // SAFETY: all bytes of the structure may be zero.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: the kernel reads the structure, which outlives the call.
    let answer = unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) };
    if answer == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
