//! Threads that work ahead of requests, behind the threads that requests wait for.

/// This thread gets what others leave, where a system can do that for a single thread.
pub(crate) fn background() {
    #[cfg(target_os = "linux")]
    {
        // Whoever may not be modest is only less polite.
        let _ = rustix::process::nice(15);
    }
}
