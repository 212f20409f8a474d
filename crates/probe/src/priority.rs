//! Which threads run before others.

/// A thread runs when no other one wants its CPU. Where that is not possible, it runs as before.
pub fn idle(thread: i32) {
    set(thread, libc::SCHED_IDLE);
}

/// A thread runs as most do.
pub fn normal(thread: i32) {
    set(thread, libc::SCHED_OTHER);
}

#[allow(unsafe_code)]
fn set(thread: i32, policy: i32) {
    // SAFETY: all bytes of the structure may be zero: its only field that matters here is the priority, which has to be 0.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel reads the structure, which outlives the call.
    unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) };
}
