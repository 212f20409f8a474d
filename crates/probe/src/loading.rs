//! Maps, programs and memory are made, or it is said in a sentence why not.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::error::{KernelAction, ProbeError, ProbeErrorKind};
use crate::linux::{self, BpfMapShape, Loaded};

/// Makes a map.
pub(crate) fn map(shape: BpfMapShape<'_>, name: &str) -> Result<OwnedFd, String> {
    linux::create_map(shape, name).map_err(told(KernelAction::Map))
}

/// Puts a value into a map with numbers as keys.
pub(crate) fn put(map: &OwnedFd, shape: BpfMapShape<'_>, key: u32, value: &[u8]) -> Result<(), String> {
    linux::update(map.as_fd(), shape, &key.to_ne_bytes(), value).map_err(told(KernelAction::Map))
}

/// Loads a program for the tracepoint with this number of its type.
pub(crate) fn load(code: &[[u8; 8]], name: &str, number: u32) -> Result<Loaded, String> {
    linux::load_tracing(code, name, number).map_err(told(KernelAction::Load))
}

/// Attaches it, until the file is closed.
pub(crate) fn attach(program: &Loaded) -> Result<OwnedFd, String> {
    linux::attach(program).map_err(told(KernelAction::Attach))
}

/// Memory for the records of rings.
pub(crate) fn spool(name: &str) -> Result<OwnedFd, String> {
    memfd_create(name, MemfdFlags::CLOEXEC).map_err(|error| format!("there is no memory for records: {error}"))
}

pub(crate) fn told(act: KernelAction) -> impl Fn(ProbeErrorKind) -> String {
    move |kind| ProbeError { act, kind }.to_string()
}
