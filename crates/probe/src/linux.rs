//! The system call `bpf`, as two safe functions.
//!
//! The kernel takes a structure of which it reads as many bytes as it is told; fields that are not there are zero. Its
//! shapes for the two commands are those of `linux/bpf.h`; pointers are 64 bits on every machine.

use std::ffi::{CStr, c_long};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::ProbeErrorKind;

const COMMAND_LOAD: c_long = 5;
const COMMAND_TEST_RUN: c_long = 10;
const TYPE_SYSCALL: u32 = 31;
/// Programs of this type have to be loaded with it.
const FLAG_SLEEPABLE: u32 = 1 << 4;
const LICENSE: &CStr = c"Dual MIT/GPL";
const NAME: [u8; 16] = *b"kymo_filter\0\0\0\0\0";
/// The verifier writes the end of its log if it has more.
const LOG_BYTES: usize = 1 << 16;

/// A program that the kernel holds for us.
#[derive(Debug)]
pub(crate) struct Loaded(OwnedFd);

/// Arguments of `BPF_PROG_LOAD`.
#[repr(C)]
struct LoadArguments {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

/// Arguments of `BPF_PROG_TEST_RUN`.
#[repr(C)]
#[derive(Default)]
struct RunArguments {
    program: u32,
    answer: u32,
    data_sizes: [u32; 2],
    data: [u64; 2],
    repeat: u32,
    duration: u32,
    context_bytes: u32,
    context_bytes_out: u32,
    context: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    padding: u32,
}

pub(crate) fn load(instructions: &[[u8; 8]]) -> Result<Loaded, ProbeErrorKind> {
    load_with_log(instructions, &mut []).or_else(|_| {
        // Again, and now the verifier is asked why: keeping its notes costs time.
        let mut log = vec![0; LOG_BYTES];
        load_with_log(instructions, &mut log).map_err(|kind| match kind {
            ProbeErrorKind::Kernel { errno, .. } => ProbeErrorKind::Kernel { errno, log: text_of(&log) },
            other => other,
        })
    })
}

fn text_of(log: &[u8]) -> String {
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).trim_end().to_owned()
}

#[allow(unsafe_code)]
fn load_with_log(instructions: &[[u8; 8]], log: &mut [u8]) -> Result<Loaded, ProbeErrorKind> {
    let mut arguments = LoadArguments {
        program_type: TYPE_SYSCALL,
        instruction_count: count_of(instructions.len())?,
        instructions: instructions.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        log_level: u32::from(!log.is_empty()),
        log_bytes: count_of(log.len())?,
        log: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
        kernel_version: 0,
        flags: FLAG_SLEEPABLE,
        name: NAME,
    };
    // SAFETY: the arguments are those of this command. The kernel reads `instruction_count`
    // instructions of 8 bytes and the license up to its zero byte, and writes at most `log_bytes`
    // bytes of the log: we made all of them, they outlive the call, and the log is borrowed for
    // writing.
    let file = unsafe { call(COMMAND_LOAD, &mut arguments) }?;
    // SAFETY: the kernel has just made this file descriptor for us; no other code knows it.
    Ok(Loaded(unsafe { OwnedFd::from_raw_fd(file) }))
}

#[allow(unsafe_code)]
pub(crate) fn test_run(program: &Loaded, context: &mut [u8]) -> Result<u32, ProbeErrorKind> {
    let mut arguments = RunArguments {
        program: program.0.as_raw_fd() as u32,
        context_bytes: count_of(context.len())?,
        context: if context.is_empty() { 0 } else { context.as_mut_ptr() as u64 },
        ..RunArguments::default()
    };
    // SAFETY: the arguments are those of this command. The kernel reads and writes `context_bytes` bytes of the context,
    // which is borrowed for writing and outlives the call.
    unsafe { call(COMMAND_TEST_RUN, &mut arguments) }?;
    Ok(arguments.answer)
}

fn count_of(count: usize) -> Result<u32, ProbeErrorKind> {
    u32::try_from(count).map_err(|_| ProbeErrorKind::Size { bytes: count })
}

/// # Safety
///
/// The arguments are those of the command, and all memory that they name may be read and written
/// according to it.
#[allow(unsafe_code)]
unsafe fn call<A>(command: c_long, arguments: &mut A) -> Result<i32, ProbeErrorKind> {
    // SAFETY: the kernel reads and writes as many bytes of the arguments as they have; the rest the caller promises.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(arguments), size_of::<A>()) };
    if answer < 0 {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        return Err(ProbeErrorKind::Kernel { errno, log: String::new() });
    }
    Ok(i32::try_from(answer).expect("file descriptors are small"))
}

#[cfg(test)]
mod tests {
    //! Structures that the kernel reads have the shape of its header.

    use super::*;

    #[test]
    fn arguments_lie_where_the_kernel_looks() {
        assert_eq!(size_of::<LoadArguments>(), 64);
        assert_eq!(std::mem::offset_of!(LoadArguments, log), 32);
        assert_eq!(size_of::<RunArguments>(), 80);
        assert_eq!(std::mem::offset_of!(RunArguments, context), 48);
    }

    #[test]
    fn the_verifier_says_why() {
        // r0 = r5: nothing is in r5.
        let instructions = [[0xbf, 0x50, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
        let error = crate::KernelProgram::load(&instructions).expect_err("no verifier takes it");
        if error.is_unavailable() {
            println!("NO BPF HERE: not run ({error})");
            return;
        }
        assert!(error.to_string().contains("R5 !read_ok"), "{error}");
    }
}
