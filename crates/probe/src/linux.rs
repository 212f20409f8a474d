//! The system call `bpf`, as safe functions.
//!
//! The kernel takes a structure of which it reads as many bytes as it is told; fields that are not there are zero. Its
//! shapes for the commands are those of `linux/bpf.h`; pointers are 64 bits on every machine.

pub(crate) mod storage;
pub(crate) mod tables;

use std::ffi::{CStr, c_long};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::ProbeErrorKind;

const COMMAND_CREATE_MAP: c_long = 0;
const COMMAND_UPDATE: c_long = 2;
const COMMAND_LOAD: c_long = 5;
const COMMAND_OPEN_TRACEPOINT: c_long = 17;
const COMMAND_TEST_RUN: c_long = 10;
const COMMAND_LINK: c_long = 28;
const COMMAND_OPEN_ITERATOR: c_long = 33;
const TYPE_SAMPLING: u32 = 7;
const TYPE_TRACING: u32 = 26;
const TYPE_SYSCALL: u32 = 31;
/// The way to attach programs to tracepoints, with types of arguments.
const ATTACH_TRACEPOINT: u32 = 23;
/// The way to attach programs to iterators.
const ATTACH_ITERATOR: u32 = 28;
/// Programs of this type have to be loaded with it.
const FLAG_SLEEPABLE: u32 = 1 << 4;
/// `PERF_EVENT_IOC_SET_BPF`.
const SET_PROGRAM: u64 = 0x4004_2408;
const LICENSE: &CStr = c"Dual MIT/GPL";
const FILTER_NAME: &str = "kymo_filter";
/// The verifier writes the end of its log if it has more.
const LOG_BYTES: usize = 1 << 16;

/// A program that the kernel holds for us.
#[derive(Debug)]
pub(crate) struct Loaded(OwnedFd);

impl AsFd for Loaded {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Kinds of maps; the values are the kernel's.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum MapKind {
    Hash = 1,
    Array = 2,
    Events = 4,
    HashOfCpus = 5,
    ArrayOfCpus = 6,
    /// What was not used for longest goes if there is no room.
    HashOfRecent = 9,
    ArrayOfMaps = 12,
    Ring = 27,
}

/// A flag of maps: it can be mapped into memory.
pub(crate) const MAP_MAPPABLE: u32 = 1 << 10;
/// A flag of maps: programs only read it.
pub(crate) const MAP_CONSTANT: u32 = 1 << 7;

/// A map to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BpfMapShape<'a> {
    pub(crate) kind: MapKind,
    pub(crate) key_bytes: u32,
    pub(crate) value_bytes: u32,
    pub(crate) entries: u32,
    pub(crate) flags: u32,
    /// Another map, of which those in it have the shape.
    pub(crate) inner: Option<BorrowedFd<'a>>,
}

/// Arguments of `BPF_MAP_CREATE`.
#[repr(C)]
struct MapArguments {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
    inner: u32,
    numa_node: u32,
    name: [u8; 16],
    interface: u32,
    /// A file of descriptions of types, and the numbers of those of keys and values.
    types: u32,
    key_type: u32,
    value_type: u32,
}

/// Arguments of `BPF_MAP_UPDATE_ELEM`.
#[repr(C)]
struct UpdateArguments {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Arguments of `BPF_RAW_TRACEPOINT_OPEN`.
#[repr(C)]
struct TracepointArguments {
    name: u64,
    program: u32,
    padding: u32,
    cookie: u64,
}

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
    interface: u32,
    attach_kind: u32,
    /// Descriptions of the program's own types, which it has not.
    own_types: [u32; 9],
    /// The number of the type of the tracepoint or of the iterator.
    attach_type: u32,
    attach_object: u32,
    relocations: u32,
}

/// Arguments of `BPF_LINK_CREATE`.
#[repr(C)]
struct LinkArguments {
    program: u32,
    target: u32,
    attach_kind: u32,
    flags: u32,
    details: u64,
    details_bytes: u32,
    padding: u32,
}

/// Arguments of `BPF_ITER_CREATE`.
#[repr(C)]
struct IteratorArguments {
    link: u32,
    flags: u32,
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

/// A program, and where it is to be attached.
#[derive(Clone, Copy, Debug)]
struct ProgramShape<'a> {
    instructions: &'a [[u8; 8]],
    name: &'a str,
    kind: u32,
    /// The way to attach a program of the kind [`TYPE_TRACING`], and the number of the type that it is attached to.
    target: (u32, u32),
}

pub(crate) fn load(instructions: &[[u8; 8]]) -> Result<Loaded, ProbeErrorKind> {
    load_shape(ProgramShape { instructions, name: FILTER_NAME, kind: TYPE_SYSCALL, target: (0, 0) })
}

/// Loads a program for the tracepoint with this number of its type.
pub(crate) fn load_tracing(instructions: &[[u8; 8]], name: &str, tracepoint: u32) -> Result<Loaded, ProbeErrorKind> {
    load_shape(ProgramShape { instructions, name, kind: TYPE_TRACING, target: (ATTACH_TRACEPOINT, tracepoint) })
}

/// Loads a program that says which samples of a perf event are written.
pub(crate) fn load_sampling(instructions: &[[u8; 8]], name: &str) -> Result<Loaded, ProbeErrorKind> {
    load_shape(ProgramShape { instructions, name, kind: TYPE_SAMPLING, target: (0, 0) })
}

/// Loads a program for the iterator whose function has this number.
pub(crate) fn load_iterator(instructions: &[[u8; 8]], name: &str, function: u32) -> Result<Loaded, ProbeErrorKind> {
    load_shape(ProgramShape { instructions, name, kind: TYPE_TRACING, target: (ATTACH_ITERATOR, function) })
}

fn load_shape(program: ProgramShape<'_>) -> Result<Loaded, ProbeErrorKind> {
    load_with_log(program, &mut []).or_else(|_| {
        // Again, and now the verifier is asked why: keeping its notes costs time.
        let mut log = vec![0; LOG_BYTES];
        load_with_log(program, &mut log).map_err(|kind| match kind {
            ProbeErrorKind::Kernel { errno, .. } => ProbeErrorKind::Kernel { errno, log: text_of(&log) },
            other => other,
        })
    })
}

fn name_of(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.iter_mut().take(15).zip(name.bytes()).for_each(|(to, from)| *to = from);
    bytes
}

fn text_of(log: &[u8]) -> String {
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).trim_end().to_owned()
}

#[allow(unsafe_code)]
fn load_with_log(program: ProgramShape<'_>, log: &mut [u8]) -> Result<Loaded, ProbeErrorKind> {
    let ProgramShape { instructions, name, kind, target: (attach_kind, attach_type) } = program;
    let mut arguments = LoadArguments {
        program_type: kind,
        instruction_count: count_of(instructions.len())?,
        instructions: instructions.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        log_level: u32::from(!log.is_empty()),
        log_bytes: count_of(log.len())?,
        log: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
        kernel_version: 0,
        flags: if kind == TYPE_SYSCALL { FLAG_SLEEPABLE } else { 0 },
        name: name_of(name),
        interface: 0,
        attach_kind,
        own_types: [0; 9],
        attach_type,
        attach_object: 0,
        relocations: 0,
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

/// Makes a map.
#[allow(unsafe_code)]
pub(crate) fn create_map(shape: BpfMapShape<'_>, name: &str) -> Result<OwnedFd, ProbeErrorKind> {
    let BpfMapShape { kind, key_bytes, value_bytes, entries, flags, inner } = shape;
    let mut arguments = MapArguments {
        kind: kind as u32,
        key_bytes,
        value_bytes,
        entries,
        flags,
        inner: inner.map_or(0, |inner| inner.as_raw_fd() as u32),
        numa_node: 0,
        name: name_of(name),
        interface: 0,
        types: 0,
        key_type: 0,
        value_type: 0,
    };
    // SAFETY: the arguments are those of this command, and name no memory.
    let file = unsafe { call(COMMAND_CREATE_MAP, &mut arguments) }?;
    // SAFETY: the kernel has just made this file descriptor for us; no other code knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// Puts a value into a map with such keys and values.
#[allow(unsafe_code)]
pub(crate) fn update(
    map: BorrowedFd<'_>,
    shape: BpfMapShape<'_>,
    key: &[u8],
    value: &[u8],
) -> Result<(), ProbeErrorKind> {
    if key.len() != shape.key_bytes as usize || value.len() != shape.value_bytes as usize {
        return Err(ProbeErrorKind::Size { bytes: value.len() });
    }
    let mut arguments = UpdateArguments {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: key.as_ptr() as u64,
        value: value.as_ptr() as u64,
        flags: 0,
    };
    // SAFETY: the arguments are those of this command. The kernel reads a key and a value of the sizes that the map was made with,
    // which are those of the slices, as was just checked; both outlive the call.
    unsafe { call(COMMAND_UPDATE, &mut arguments) }.map(|_| ())
}

/// Lets a program say which samples of a perf event are written.
#[allow(unsafe_code)]
pub(crate) fn filter_samples(event: BorrowedFd<'_>, program: &Loaded) -> std::io::Result<()> {
    // SAFETY: both are open, and the call takes a number.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), SET_PROGRAM as _, program.0.as_raw_fd()) };
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// Attaches a program to its tracepoint, until the file is closed.
#[allow(unsafe_code)]
pub(crate) fn attach(program: &Loaded) -> Result<OwnedFd, ProbeErrorKind> {
    let mut arguments = TracepointArguments { name: 0, program: program.0.as_raw_fd() as u32, padding: 0, cookie: 0 };
    // SAFETY: the arguments are those of this command, and name no memory.
    let file = unsafe { call(COMMAND_OPEN_TRACEPOINT, &mut arguments) }?;
    // SAFETY: the kernel has just made this file descriptor for us; no other code knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// Makes an iterator of a program: it can be opened as long as this file is open.
#[allow(unsafe_code)]
pub(crate) fn link_iterator(program: &Loaded) -> Result<OwnedFd, ProbeErrorKind> {
    let mut arguments = LinkArguments {
        program: program.0.as_raw_fd() as u32,
        target: 0,
        attach_kind: ATTACH_ITERATOR,
        flags: 0,
        details: 0,
        details_bytes: 0,
        padding: 0,
    };
    // SAFETY: the arguments are those of this command, and name no memory.
    let file = unsafe { call(COMMAND_LINK, &mut arguments) }?;
    // SAFETY: the kernel has just made this file descriptor for us; no other code knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// Opens an iterator: reading the file runs the program for each object.
#[allow(unsafe_code)]
pub(crate) fn open_iterator(link: BorrowedFd<'_>) -> Result<OwnedFd, ProbeErrorKind> {
    let mut arguments = IteratorArguments { link: link.as_raw_fd() as u32, flags: 0 };
    // SAFETY: the arguments are those of this command, and name no memory.
    let file = unsafe { call(COMMAND_OPEN_ITERATOR, &mut arguments) }?;
    // SAFETY: the kernel has just made this file descriptor for us; no other code knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
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
        assert_eq!(size_of::<LoadArguments>(), 120);
        assert_eq!(std::mem::offset_of!(LoadArguments, attach_type), 108);
        assert_eq!(size_of::<MapArguments>(), 60);
        assert_eq!(size_of::<UpdateArguments>(), 32);
        assert_eq!(std::mem::offset_of!(TracepointArguments, program), 8);
        assert_eq!(std::mem::offset_of!(LoadArguments, log), 32);
        assert_eq!(size_of::<LinkArguments>(), 32);
        assert_eq!(std::mem::offset_of!(LinkArguments, details), 16);
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
