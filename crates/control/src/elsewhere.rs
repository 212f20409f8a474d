//! Systems without a recorder.

#![allow(unsafe_code, reason = "as where there is one")]

use core::time::Duration;

use crate::{ControlError, ControlErrorKind};

pub(crate) fn exchange<'r>(_: &[u8], _: &'r mut [u8], _: Duration) -> Result<(&'r [u8], Option<i32>), ControlError> {
    Err(ControlError::new(ControlErrorKind::NoRecorder, "recorders need Linux"))
}

pub(crate) fn sleep(length: Duration) -> Duration {
    length
}

pub(crate) fn map(_: i32, _: usize) -> Option<*mut u8> {
    None
}

pub(crate) fn close(_: i32) {}

/// Gives memory back: there is none.
///
/// # Safety
///
/// Always.
pub unsafe fn unmap(_: *mut u8, _: usize) {}
