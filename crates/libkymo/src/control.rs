//! Requests of `kymo/session.h` to the recorder of this program.

#![allow(unsafe_code, reason = "texts of C")]
#![allow(clippy::result_large_err, reason = "there is no heap: an error has its text in it")]

use core::ffi::{CStr, c_char, c_int, c_longlong};
use core::time::Duration;

use kymo_control::{ControlError, ControlErrorKind, ControlledSession};

/// Sends a request; `state` and `wait` are two of them. Returns 1: the session records; 0: it does not, or the request
/// had its effect; less: it had none, and `error` receives the reason, of at most `size` bytes.
///
/// # Safety
///
/// The texts end with a zero byte; `session` and `argument` may be null. `error` has `size` bytes, at least one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_session_ask(
    session: *const c_char,
    verb: *const c_char,
    argument: *const c_char,
    timeout_ms: c_longlong,
    error: *mut c_char,
    size: usize,
) -> c_int {
    // Safety: the caller has them.
    let [session, verb, argument] = [session, verb, argument].map(|text| unsafe { text_of(text) });
    let asked = match (session, verb, argument) {
        (Ok(session), Ok(Some(verb)), Ok(argument)) => {
            let session = session.map_or(ControlledSession::own(), ControlledSession::named);
            ask(session, verb, argument.unwrap_or(""), timeout_ms).map_err(told)
        }
        _ => Err((REFUSED, None)),
    };
    let (code, text) = match &asked {
        Ok(code) => (*code, ""),
        Err((code, error)) => (*code, error.as_ref().map_or("names are UTF-8", ControlError::text)),
    };
    let length = text.floor_char_boundary(size.saturating_sub(1));
    // Safety: there are so many bytes.
    unsafe {
        error.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), length);
        error.add(length).write(0);
    }
    code
}

fn ask(session: ControlledSession<'_>, verb: &str, argument: &str, timeout_ms: i64) -> Result<c_int, ControlError> {
    match verb {
        "state" => session.is_recording().map(c_int::from),
        "wait" => session.wait(u64::try_from(timeout_ms).ok().map(Duration::from_millis)).map(|()| 0),
        _ => session.request(verb, argument).map(|()| 0),
    }
}

const REFUSED: c_int = -2;

fn told(error: ControlError) -> (c_int, Option<ControlError>) {
    let code = match error.kind {
        ControlErrorKind::NoRecorder => -1,
        ControlErrorKind::Refused => REFUSED,
        ControlErrorKind::TimedOut => -3,
        ControlErrorKind::Failed => -4,
    };
    (code, Some(error))
}

/// A text; null is none.
///
/// # Safety
///
/// It ends with a zero byte, and stays as it is.
unsafe fn text_of<'t>(text: *const c_char) -> Result<Option<&'t str>, core::str::Utf8Error> {
    if text.is_null() {
        return Ok(None);
    }
    // Safety: see above.
    unsafe { CStr::from_ptr(text) }.to_str().map(Some)
}
