//! Systems without a recorder.

use core::time::Duration;

use crate::{ControlError, ControlErrorKind};

pub(crate) fn exchange<'r>(_: &[u8], _: &'r mut [u8], _: Duration) -> Result<&'r [u8], ControlError> {
    Err(ControlError::new(ControlErrorKind::NoRecorder, "recorders need Linux"))
}

pub(crate) fn sleep(length: Duration) -> Duration {
    length
}
