//! Requests of `kymo/session.h` to the recorder of this program.

#![allow(unsafe_code, reason = "texts of C")]
#![allow(clippy::result_large_err, reason = "there is no heap: an error has its text in it")]

use core::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use core::time::Duration;

use kymo_control::{
    ControlError, ControlErrorKind, ControlledCounts, ControlledFirings, ControlledRule, ControlledSession,
    SharedPlaces,
};

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
            ask(session, verb, argument, timeout_ms).map_err(told)
        }
        _ => Err((REFUSED, None)),
    };
    // Safety: the caller has so many bytes.
    unsafe { answered(&asked, error, size) }
}

/// Asks for numbers: `firings` of a trigger, those of a `rule`, or `counts` of the session. `numbers` receives the first `count` of them;
/// those that there are not are 0. Returns 0, or less, as [`kymo_session_ask`] does.
///
/// # Safety
///
/// As of [`kymo_session_ask`]; `numbers` has `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_session_read(
    session: *const c_char,
    verb: *const c_char,
    argument: *const c_char,
    numbers: *mut u64,
    count: usize,
    error: *mut c_char,
    size: usize,
) -> c_int {
    // Safety: the caller has them.
    let [session, verb, argument] = [session, verb, argument].map(|text| unsafe { text_of(text) });
    let (asked, found) = match (session, verb, argument) {
        (Ok(session), Ok(Some(verb)), Ok(argument)) => {
            let session = session.map_or(ControlledSession::own(), ControlledSession::named);
            match read(session, verb, argument) {
                Ok(found) => (Ok(0), found),
                Err(error) => (Err(told(error)), [0; NUMBERS]),
            }
        }
        _ => (Err((REFUSED, None)), [0; NUMBERS]),
    };
    let found = found.into_iter().chain(core::iter::repeat(0)).take(count);
    // Safety: the caller has so many numbers, and so many bytes.
    unsafe {
        found.enumerate().for_each(|(at, number)| numbers.add(at).write(number));
        answered(&asked, error, size)
    }
}

/// Memory of a rule, and places in it: as `struct kymo_shared_rule` of C.
#[repr(C)]
#[derive(Debug)]
pub struct SharedRuleOfC {
    memory: *mut c_void,
    bytes: usize,
    limit_at: usize,
    counts_at: usize,
    between: usize,
    counts: usize,
}

/// Shares the memory of a rule about events of the kernel. Returns 0, or less, as [`kymo_session_ask`] does.
///
/// # Safety
///
/// As of [`kymo_session_ask`]; `shared` has room for the places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_session_map(
    session: *const c_char,
    rule: *const c_char,
    shared: *mut SharedRuleOfC,
    error: *mut c_char,
    size: usize,
) -> c_int {
    // Safety: the caller has them.
    let [session, rule] = [session, rule].map(|text| unsafe { text_of(text) });
    let asked = match (session, rule) {
        (Ok(session), Ok(rule)) => {
            let session = session.map_or(ControlledSession::own(), ControlledSession::named);
            session.share(rule.unwrap_or("")).map_err(told)
        }
        _ => Err((REFUSED, None)),
    };
    let asked = asked.map(|rule| {
        let (memory, bytes, SharedPlaces { limit_at, counts_at, between, counts }) = rule.into_raw();
        let places = SharedRuleOfC { memory: memory.cast(), bytes, limit_at, counts_at, between, counts };
        // Safety: the caller has room for them.
        unsafe { shared.write(places) };
        0
    });
    // Safety: the caller has so many bytes.
    unsafe { answered(&asked, error, size) }
}

/// Gives the memory of a rule back.
///
/// # Safety
///
/// `shared` was filled by [`kymo_session_map`], and is given back once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_session_unmap(shared: *mut SharedRuleOfC) {
    // Safety: see above.
    unsafe { kymo_control::unmap((*shared).memory.cast(), (*shared).bytes) };
}

/// Numbers of an answer, at most.
const NUMBERS: usize = 8;

fn read(session: ControlledSession<'_>, verb: &str, argument: Option<&str>) -> Result<[u64; NUMBERS], ControlError> {
    if verb == "counts" {
        let ControlledCounts { events, lost, bytes, snapshots } = session.counts()?;
        return Ok([events, lost, bytes, snapshots, 0, 0, 0, 0]);
    }
    if verb == "rule" {
        let ControlledRule { kept, let_go, unknown, forgotten, limit } = session.rule(argument.unwrap_or(""))?;
        return Ok([kept, let_go, unknown, forgotten, limit, 0, 0, 0]);
    }
    let ControlledFirings { armed, firings, suppressed, counted, last } = session.firings(argument)?;
    let [ns, ticks, pid, tid] = last.map_or([0; 4], |last| [last.ns, last.ticks, last.pid.into(), last.tid.into()]);
    Ok([armed, firings, suppressed, counted, ns, ticks, pid, tid])
}

/// A result code, and a reason.
type AskedResult = Result<c_int, (c_int, Option<ControlError>)>;

/// Writes why a request had no effect; returns the code.
///
/// # Safety
///
/// `error` has `size` bytes, at least one.
unsafe fn answered(asked: &AskedResult, error: *mut c_char, size: usize) -> c_int {
    let (code, text) = match asked {
        Ok(code) => (*code, ""),
        Err((code, error)) => (*code, error.as_ref().map_or("names are UTF-8", ControlError::text)),
    };
    let length = text.floor_char_boundary(size.saturating_sub(1));
    // Safety: see above.
    unsafe {
        error.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), length);
        error.add(length).write(0);
    }
    code
}

fn ask(
    session: ControlledSession<'_>,
    verb: &str,
    argument: Option<&str>,
    timeout_ms: i64,
) -> Result<c_int, ControlError> {
    match verb {
        "state" => session.is_recording().map(c_int::from),
        "wait" => session.wait(u64::try_from(timeout_ms).ok().map(Duration::from_millis)).map(|()| 0),
        "arm" => session.arm(argument).map(|()| 0),
        "disarm" => session.disarm(argument).map(|()| 0),
        "remove" => session.remove_trigger(argument).map(|()| 0),
        _ => session.request(verb, argument.unwrap_or("")).map(|()| 0),
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
