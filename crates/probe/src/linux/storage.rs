//! Memory of threads: a map whose values belong to threads of the kernel, and go when these do.
//!
//! The kernel wants to know the types of its keys and values: an `int`, which is a file descriptor to users, and an integer of 8 bytes.

use std::ffi::c_long;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use super::{COMMAND_CREATE_MAP, MapArguments, call, name_of};
use crate::ProbeErrorKind;

const COMMAND_LOAD_TYPES: c_long = 18;
const TASK_STORAGE: u32 = 29;
/// Values are made when they are asked for; this kind of map has no other ones.
const NOT_PREALLOCATED: u32 = 1;
/// Numbers of the two types.
const KEY: u32 = 1;
const VALUE: u32 = 2;
/// Bytes of a value.
const VALUE_BYTES: u32 = 8;

/// Arguments of `BPF_BTF_LOAD`.
#[repr(C)]
struct TypesArguments {
    types: u64,
    log: u64,
    bytes: u32,
    log_bytes: u32,
    log_level: u32,
    padding: u32,
}

/// Makes a map with 8 bytes for each thread that asks for them.
#[allow(unsafe_code)]
pub(crate) fn create_thread_map(name: &str) -> Result<OwnedFd, ProbeErrorKind> {
    let types = types();
    let mut arguments = TypesArguments {
        types: types.as_ptr() as u64,
        log: 0,
        bytes: types.len() as u32,
        log_bytes: 0,
        log_level: 0,
        padding: 0,
    };
    // SAFETY: the arguments are those of this command. The kernel reads `bytes` bytes, which outlive the call.
    let file = unsafe { call(COMMAND_LOAD_TYPES, &mut arguments) }?;
    // SAFETY: the kernel has just made this file descriptor for us; no other code knows it.
    let types = unsafe { OwnedFd::from_raw_fd(file) };
    let mut arguments = MapArguments {
        kind: TASK_STORAGE,
        key_bytes: 4,
        value_bytes: VALUE_BYTES,
        entries: 0,
        flags: NOT_PREALLOCATED,
        inner: 0,
        numa_node: 0,
        name: name_of(name),
        interface: 0,
        types: types.as_fd().as_raw_fd() as u32,
        key_type: KEY,
        value_type: VALUE,
    };
    // SAFETY: the arguments are those of this command, and name no memory.
    let file = unsafe { call(COMMAND_CREATE_MAP, &mut arguments) }?;
    // SAFETY: the kernel has just made this file descriptor for us; no other code knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// The description of the two types, as [`crate::btf`] has them.
fn types() -> Vec<u8> {
    const MAGIC: u16 = 0xeb9f;
    const HEAD_BYTES: u32 = 24;
    const INTEGER: u32 = 1 << 24;
    const SIGNED: u32 = 1 << 24;
    let names = b"\0int\0u64\0";
    let types = [[1, INTEGER, 4, SIGNED | 32], [5, INTEGER, VALUE_BYTES, 64]].concat();
    let type_bytes = 4 * types.len() as u32;
    let mut bytes = MAGIC.to_ne_bytes().to_vec();
    // The version, and no flags.
    bytes.extend([1, 0]);
    let head = [HEAD_BYTES, 0, type_bytes, type_bytes, names.len() as u32];
    head.iter().chain(&types).for_each(|word| bytes.extend(word.to_ne_bytes()));
    bytes.extend(names);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{BtfShape, KernelTypes, TypeBytes};

    #[test]
    fn types_are_what_they_say() {
        assert_eq!(std::mem::offset_of!(MapArguments, types), 48);
        assert_eq!(size_of::<TypesArguments>(), 32);
        let types = KernelTypes::read(TypeBytes::Read(types())).expect("it is one");
        let shape = |number| match types.shape(number) {
            Some(BtfShape::Integer { bytes, is_signed, .. }) => (bytes, is_signed),
            other => panic!("{other:?}"),
        };
        assert_eq!((shape(KEY), shape(VALUE)), ((4, true), (8, false)));
    }
}
