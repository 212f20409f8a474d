//! Systems without eBPF: no program is ever loaded.

use crate::ProbeErrorKind;

/// There is none.
#[derive(Debug)]
pub(crate) enum Loaded {}

pub(crate) fn load(_instructions: &[[u8; 8]]) -> Result<Loaded, ProbeErrorKind> {
    Err(ProbeErrorKind::NotLinux)
}

pub(crate) fn test_run(program: &Loaded, _context: &mut [u8]) -> Result<u32, ProbeErrorKind> {
    match *program {}
}
