//! The kernel's objections to a program.

use std::fmt::{self, Display, Formatter};

/// Why a program was not loaded or not run.
#[derive(Debug, thiserror::Error)]
#[error("{act}: {kind}")]
pub struct ProbeError {
    /// The act that failed.
    pub act: KernelAction,
    /// The kind of error.
    pub kind: ProbeErrorKind,
}

/// The act that the kernel was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelAction {
    /// To verify and compile a program.
    Load,
    /// To run it.
    Run,
    /// To make a map, or to fill it.
    Map,
    /// To attach a program to its tracepoint.
    Attach,
    /// To make or to open an iterator.
    Iterate,
}

/// The kind of error.
#[derive(Debug, thiserror::Error)]
pub enum ProbeErrorKind {
    /// The kernel returned an error.
    #[error("{}{}{}", std::io::Error::from_raw_os_error(*errno), if log.is_empty() { "" } else { "\n" }, log)]
    Kernel {
        /// Its number.
        errno: i32,
        /// The verifier's log; empty if it was not asked.
        log: String,
    },
    /// More bytes than the kernel's numbers can express.
    #[error("{bytes} bytes are more than the kernel takes")]
    Size {
        /// How many.
        bytes: usize,
    },
    /// There are no such programs on this system.
    #[error("eBPF programs run on Linux only")]
    NotLinux,
}

impl ProbeError {
    /// The process may not load programs, or the kernel has no such programs: not a fault of the
    /// program.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        match &self.kind {
            ProbeErrorKind::NotLinux => true,
            ProbeErrorKind::Kernel { errno, log } => kernel_is_unavailable(*errno, log),
            ProbeErrorKind::Size { .. } => false,
        }
    }
}

/// A program that is refused for its behavior has a log.
#[cfg(target_os = "linux")]
fn kernel_is_unavailable(errno: i32, log: &str) -> bool {
    matches!(errno, libc::EPERM | libc::ENOSYS) || errno == libc::EINVAL && log.is_empty()
}

#[cfg(not(target_os = "linux"))]
fn kernel_is_unavailable(_errno: i32, _log: &str) -> bool {
    true
}

impl Display for KernelAction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Load => "the kernel did not load the program",
            Self::Run => "the kernel did not run the program",
            Self::Map => "the kernel did not make a map of a program",
            Self::Attach => "the kernel did not attach the program",
            Self::Iterate => "the kernel did not make an iterator of the program",
        })
    }
}
