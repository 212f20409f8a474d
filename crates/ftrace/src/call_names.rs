//! Names of system calls by their numbers, where no description of the kernel is read.

use syscalls::Sysno;

use crate::calls::OTHER_NAMES;

/// The name of a call of 32-bit programs on x86, as events of the kernel have it.
///
/// ```
/// assert_eq!(kymo_ftrace::compat_call_name(20).as_deref(), Some("getpid"));
/// ```
#[must_use]
pub fn compat_call_name(number: u64) -> Option<String> {
    crate::compat::name(number)
}

/// Numbers of this machine's calls, and their names as events of the kernel have them.
///
/// ```
/// let names = kymo_ftrace::call_names();
/// assert!(names.iter().any(|(_, name)| *name == "newuname") && names.iter().all(|(_, name)| *name != "uname"));
/// ```
#[must_use]
pub fn call_names() -> Vec<(i64, &'static str)> {
    let name = |call: Sysno| {
        let other = OTHER_NAMES.iter().find(|(known, _)| *known == call.name());
        other.map_or(call.name(), |(_, other)| other)
    };
    Sysno::iter().map(|call| (i64::from(call.id()), name(call))).collect()
}
