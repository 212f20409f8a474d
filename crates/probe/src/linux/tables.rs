//! Maps read by the process that made them, and the kernel's numbers of programs.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::call;
use crate::ProbeErrorKind;

const COMMAND_LOOK_UP: std::ffi::c_long = 1;
const COMMAND_INFORMATION: std::ffi::c_long = 15;
const COMMAND_LOOK_UP_BATCH: std::ffi::c_long = 24;
const COMMAND_STATISTICS: std::ffi::c_long = 32;
/// Entries of a batch.
const BATCH: u32 = 4096;
/// Bytes of the first batch at most.
const BATCH_BYTES: usize = 64 << 20;
/// Bytes of the kernel's description of a program, and places in it.
const INFORMATION_BYTES: usize = 216;
const RUN_NS_AT: usize = 192;
const RUNS_AT: usize = 200;
const MISSED_AT: usize = 208;

/// Arguments of `BPF_MAP_LOOKUP_BATCH`.
#[repr(C)]
struct BatchArguments {
    from: u64,
    next: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    entry_flags: u64,
    flags: u64,
}

/// Arguments of `BPF_MAP_LOOKUP_ELEM`.
#[repr(C)]
struct LookUpArguments {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Arguments of `BPF_OBJ_GET_INFO_BY_FD`.
#[repr(C)]
struct InformationArguments {
    object: u32,
    bytes: u32,
    information: u64,
}

/// Arguments of `BPF_ENABLE_STATS`.
#[repr(C)]
struct StatisticsArguments {
    kind: u32,
    padding: u32,
}

/// Bytes of the keys of a map, and of its values: those of all CPUs, each at a multiple of 8.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryBytes {
    pub(crate) key: usize,
    pub(crate) value: usize,
    /// Whether keys are hashed.
    pub(crate) is_hash: bool,
    pub(crate) entries: u32,
}

/// The keys and values of a map, one behind the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct MapEntries {
    pub(crate) keys: Vec<u8>,
    pub(crate) values: Vec<u8>,
}

/// The kernel's numbers of a program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProgramRuns {
    /// While statistics are kept.
    pub(crate) run_ns: u64,
    pub(crate) runs: u64,
    /// Times that it did not run, because it ran already.
    pub(crate) missed: u64,
}

/// All entries of a map, which others may change meanwhile.
pub(crate) fn entries(map: BorrowedFd<'_>, bytes: EntryBytes) -> Result<MapEntries, ProbeErrorKind> {
    if bytes.is_hash { hashed(map, bytes) } else { numbered(map, bytes) }
}

/// Those of a map with numbers as keys.
fn numbered(map: BorrowedFd<'_>, bytes: EntryBytes) -> Result<MapEntries, ProbeErrorKind> {
    let mut all = MapEntries::default();
    for key in 0..bytes.entries {
        let key = key.to_ne_bytes();
        all.values.extend(look_up(map, &key, bytes.value)?);
        all.keys.extend(key);
    }
    Ok(all)
}

/// The value of a number in a map whose values have so many bytes.
#[allow(unsafe_code)]
/// The value of a key, of so many bytes as the map's are.
pub(crate) fn look_up(map: BorrowedFd<'_>, key: &[u8], value_bytes: usize) -> Result<Vec<u8>, ProbeErrorKind> {
    let mut value = vec![0_u8; value_bytes];
    let mut arguments = LookUpArguments {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: key.as_ptr() as u64,
        value: value.as_mut_ptr() as u64,
        flags: 0,
    };
    // SAFETY: the arguments are those of this command. The kernel reads a key of 4 bytes, and writes a value for each CPU, as many
    // bytes as the maker of the map says; both outlive the call.
    unsafe { call(COMMAND_LOOK_UP, &mut arguments) }?;
    Ok(value)
}

/// The only value of a map, of so many bytes.
pub(crate) fn only_value(map: BorrowedFd<'_>, value_bytes: usize) -> Result<Vec<u8>, ProbeErrorKind> {
    look_up(map, &[0; 4], value_bytes)
}

#[allow(unsafe_code)]
fn hashed(map: BorrowedFd<'_>, bytes: EntryBytes) -> Result<MapEntries, ProbeErrorKind> {
    let mut all = MapEntries::default();
    // A bucket is whole in a batch, and may have all entries.
    let most = u32::try_from(BATCH_BYTES / (bytes.key + bytes.value).max(1)).unwrap_or(BATCH).max(1);
    let mut room = BATCH.min(most).min(bytes.entries);
    let (mut from, mut next, mut is_first) = ([0_u8; 8], [0_u8; 8], true);
    loop {
        let mut keys = vec![0_u8; bytes.key * room as usize];
        let mut values = vec![0_u8; bytes.value * room as usize];
        let mut arguments = BatchArguments {
            from: if is_first { 0 } else { from.as_mut_ptr() as u64 },
            next: next.as_mut_ptr() as u64,
            keys: keys.as_mut_ptr() as u64,
            values: values.as_mut_ptr() as u64,
            count: room,
            map: map.as_raw_fd() as u32,
            entry_flags: 0,
            flags: 0,
        };
        // SAFETY: the arguments are those of this command. The kernel reads and writes 4 bytes of a place in the map, and writes at
        // most `count` keys and values of the sizes that the maker of the map says; all of it outlives the call.
        let done = unsafe { call(COMMAND_LOOK_UP_BATCH, &mut arguments) };
        let is_last = match done {
            Ok(_) => false,
            Err(ProbeErrorKind::Kernel { errno: libc::ENOENT, .. }) => true,
            Err(ProbeErrorKind::Kernel { errno: libc::ENOSPC, .. }) if room < bytes.entries => {
                room = room.saturating_mul(2).min(bytes.entries);
                continue;
            }
            Err(error) => return Err(error),
        };
        let count = arguments.count.min(room) as usize;
        all.keys.extend(&keys[..bytes.key * count]);
        all.values.extend(&values[..bytes.value * count]);
        if is_last {
            return Ok(all);
        }
        (from, is_first) = (next, false);
    }
}

/// Has the kernel measure all programs, until the file is closed.
#[allow(unsafe_code)]
pub(crate) fn measure() -> Result<OwnedFd, ProbeErrorKind> {
    let mut arguments = StatisticsArguments { kind: 0, padding: 0 };
    // SAFETY: the arguments are those of this command, and name no memory.
    let file = unsafe { call(COMMAND_STATISTICS, &mut arguments) }?;
    // SAFETY: the kernel has just made this file descriptor for us; no other code knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// The kernel's numbers of a program.
#[allow(unsafe_code)]
pub(crate) fn runs(program: BorrowedFd<'_>) -> Result<ProgramRuns, ProbeErrorKind> {
    let mut information = [0_u8; INFORMATION_BYTES];
    let mut arguments = InformationArguments {
        object: program.as_raw_fd() as u32,
        bytes: INFORMATION_BYTES as u32,
        information: information.as_mut_ptr() as u64,
    };
    // SAFETY: the arguments are those of this command. The kernel reads and writes at most `bytes` bytes, which are there and zero, so
    // that they name no more memory; they outlive the call.
    unsafe { call(COMMAND_INFORMATION, &mut arguments) }?;
    let number = |at: usize| {
        information.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    };
    Ok(ProgramRuns { run_ns: number(RUN_NS_AT), runs: number(RUNS_AT), missed: number(MISSED_AT) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_lie_where_the_kernel_looks() {
        assert_eq!((size_of::<BatchArguments>(), std::mem::offset_of!(BatchArguments, count)), (56, 32));
        assert_eq!(size_of::<LookUpArguments>(), 32);
        assert_eq!(size_of::<InformationArguments>(), 16);
    }
}
