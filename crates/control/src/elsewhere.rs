//! Systems without a recorder.

#![allow(unsafe_code, reason = "as where there is one")]

use core::sync::atomic::AtomicU64;
use core::time::Duration;

use crate::{ControlError, ControlErrorKind};

/// A file that a reply has: there is none.
pub(crate) struct ReplyFile;

fn nobody() -> ControlError {
    ControlError::new(ControlErrorKind::NoRecorder, "recorders need Linux")
}

pub(crate) fn exchange<'r>(_: &[u8], _: &'r mut [u8], _: Duration) -> Result<(&'r [u8], ReplyFile), ControlError> {
    Err(nobody())
}

pub(crate) fn sleep(length: Duration) -> Duration {
    length
}

/// Memory that others have, too: there is none.
#[derive(Debug)]
pub(crate) struct SharedMemory(core::convert::Infallible);

impl SharedMemory {
    pub(crate) fn map(_: &ReplyFile, _: usize) -> Result<Self, ControlError> {
        Err(nobody())
    }

    pub(crate) fn word(&self, _: usize) -> Option<&AtomicU64> {
        match self.0 {}
    }

    pub(crate) fn into_raw(self) -> (*mut u8, usize) {
        match self.0 {}
    }
}

/// Gives memory back: there is none.
///
/// # Safety
///
/// Always.
pub unsafe fn unmap(_: *mut u8, _: usize) {}
