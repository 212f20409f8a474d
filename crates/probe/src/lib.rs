//! The kernel as a source: ring buffers handed over by a helper with rights, eBPF programs written, loaded and run, packets of
//! network interfaces.
//!
//! It must never know CTF files, nor the viewer.
//!
//! ```text
//! instructions, 8 bytes each ── Program::load ──> the kernel's verifier ──> Program ── test_run(arguments) ──> r0
//!                                                   └── ProbeError with what it said
//! ```
//!
//! The meaning of instructions, and their origin, is the duty of callers. On systems other than Linux
//! [`KernelProgram`] compiles, and reports the missing kernel; [`packets`] is there on Linux alone.

#[cfg(target_os = "linux")]
mod assembly;
#[cfg(target_os = "linux")]
mod btf;
#[cfg(target_os = "linux")]
mod call_programs;
#[cfg(target_os = "linux")]
mod call_texts;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod error;
#[cfg(target_os = "linux")]
pub mod helper;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod loading;
#[cfg(target_os = "linux")]
mod mapped;
#[cfg(target_os = "linux")]
pub mod objects;
#[cfg(target_os = "linux")]
pub mod packets;
#[cfg(target_os = "linux")]
pub mod perf_sched;
#[cfg(target_os = "linux")]
pub mod priority;
#[cfg(target_os = "linux")]
pub mod probes;
#[cfg(target_os = "linux")]
pub mod record_test;
#[cfg(target_os = "linux")]
pub mod rings;
#[cfg(target_os = "linux")]
pub mod rules;
#[cfg(target_os = "linux")]
pub mod stacks;
#[cfg(target_os = "linux")]
pub mod state_iterators;
#[cfg(target_os = "linux")]
mod state_programs;
#[cfg(target_os = "linux")]
pub mod state_records;
#[cfg(target_os = "linux")]
mod thread_limit;
#[cfg(target_os = "linux")]
pub mod tracefs;
#[cfg(target_os = "linux")]
pub mod watch;

#[cfg(not(target_os = "linux"))]
use elsewhere as kernel;
#[cfg(target_os = "linux")]
use linux as kernel;

pub use error::{KernelAction, ProbeError, ProbeErrorKind};

/// A program that the kernel has verified and holds. It goes when this value does.
#[derive(Debug)]
pub struct KernelProgram(kernel::Loaded);

impl KernelProgram {
    /// Has the kernel verify and compile a program, as one that is run on demand only (`BPF_PROG_TYPE_SYSCALL`): nothing
    /// is attached to anything. At entry r1 is the address of a copy of the context, aligned to 8 bytes.
    ///
    /// # Errors
    ///
    /// The kernel's error, with its verifier's log; or that this is not Linux.
    ///
    /// ```
    /// use kymo_probe::KernelProgram;
    ///
    /// // r0 = *(u32 *)(r1 + 4); exit
    /// let instructions = [[0x61, 0x10, 4, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    /// // Only who may load programs gets further.
    /// if let Ok(program) = KernelProgram::load(&instructions) {
    ///     assert_eq!(program.test_run(&mut [0, 0, 0, 0, 5, 0, 0, 0])?, 5);
    /// }
    /// # Ok::<(), kymo_probe::ProbeError>(())
    /// ```
    pub fn load(instructions: &[[u8; 8]]) -> Result<Self, ProbeError> {
        kernel::load(instructions).map(Self).map_err(|kind| ProbeError { act: KernelAction::Load, kind })
    }

    /// Runs the program once on a copy of the context, which is copied back, and returns the lower half of r0.
    ///
    /// # Errors
    ///
    /// The kernel's error: `EINVAL` if the context is shorter than the bytes that the program
    /// reads, or longer than 65535 bytes.
    pub fn test_run(&self, context: &mut [u8]) -> Result<u32, ProbeError> {
        kernel::test_run(&self.0, context).map_err(|kind| ProbeError { act: KernelAction::Run, kind })
    }
}
