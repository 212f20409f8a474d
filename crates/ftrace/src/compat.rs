//! Calls of 32-bit programs on x86: their numbers, LTTng's names, and the arguments of those that 64-bit programs do not have.
//!
//! Most have the arguments of the 64-bit call with the same name, each in a word of its own. Calls that pass a 64-bit number in
//! two words have one field instead, `args`, with all six words.

use syscalls::x86::Sysno;

/// Calls whose event has another name than the number.
const OTHER_NAMES: [(&str, &str); 18] = [
    ("oldstat", "stat"),
    ("oldfstat", "fstat"),
    ("oldlstat", "lstat"),
    ("stat", "newstat"),
    ("fstat", "newfstat"),
    ("lstat", "newlstat"),
    ("oldolduname", "olduname"),
    ("olduname", "uname"),
    ("uname", "newuname"),
    ("umount", "oldumount"),
    ("umount2", "umount"),
    ("mmap", "old_mmap"),
    ("mmap2", "mmap_pgoff"),
    ("select", "old_select"),
    ("_newselect", "select"),
    ("_llseek", "llseek"),
    ("getrlimit", "old_getrlimit"),
    ("ugetrlimit", "getrlimit"),
];

/// Calls that 64-bit programs do not have, with their arguments; those with `*` are texts.
const OWN: [(&str, &[&str]); 9] = [
    ("stat", &["*filename", "statbuf"]),
    ("lstat", &["*filename", "statbuf"]),
    ("stat64", &["*filename", "statbuf"]),
    ("lstat64", &["*filename", "statbuf"]),
    ("fstatat64", &["dfd", "*filename", "statbuf", "flag"]),
    ("statfs64", &["*pathname", "sz", "buf"]),
    ("oldumount", &["*name"]),
    ("truncate64", &["*path", "offset_low", "offset_high"]),
    ("waitpid", &["pid", "stat_addr", "options"]),
];

/// Calls that pass a 64-bit number in two words.
const SPLIT: [&str; 10] = [
    "pread64",
    "pwrite64",
    "truncate64",
    "ftruncate64",
    "fallocate",
    "sync_file_range",
    "fadvise64",
    "fadvise64_64",
    "readahead",
    "fanotify_mark",
];

/// LTTng's name of the call with a number.
pub(crate) fn name(number: u64) -> Option<String> {
    let name = usize::try_from(number).ok().and_then(Sysno::new)?.name();
    if let Some((_, other)) = OTHER_NAMES.iter().find(|(known, _)| *known == name) {
        return Some((*other).to_owned());
    }
    // `chown` has users of 16 bits, and `chown32` is the call that all others know as `chown`.
    if let Some(plain) = name.strip_suffix("32").filter(|plain| is_call(plain)) {
        return Some(plain.to_owned());
    }
    Some(if is_call(&format!("{name}32")) { format!("{name}16") } else { name.to_owned() })
}

fn is_call(name: &str) -> bool {
    Sysno::iter().any(|call| call.name() == name)
}

/// Names of arguments of a call that 64-bit programs do not have, and whether they are texts.
pub(crate) fn own_arguments(name: &str) -> Option<impl Iterator<Item = (&'static str, bool)>> {
    let (_, arguments) = OWN.iter().find(|(known, _)| *known == name)?;
    Some(arguments.iter().map(|argument| match argument.strip_prefix('*') {
        Some(text) => (text, true),
        None => (*argument, false),
    }))
}

/// The name of the 64-bit call with the same arguments; `None`: a number of it is in two words.
pub(crate) fn like(name: &str) -> Option<&str> {
    let like = name.strip_suffix("16").or_else(|| name.strip_suffix("_time64")).unwrap_or(name);
    (!SPLIT.contains(&name)).then_some(like)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a real trace of LTTng names them.
    #[test]
    fn names_are_those_of_lttng() {
        let of = |number| name(number).unwrap_or_default();
        let calls = [
            (5, "open"),
            (11, "execve"),
            (16, "lchown16"),
            (18, "stat"),
            (20, "getpid"),
            (22, "oldumount"),
            (24, "getuid16"),
            (52, "umount"),
            (59, "olduname"),
            (76, "old_getrlimit"),
            (82, "old_select"),
            (90, "old_mmap"),
            (106, "newstat"),
            (109, "uname"),
            (122, "newuname"),
            (140, "llseek"),
            (142, "select"),
            (192, "mmap_pgoff"),
            (195, "stat64"),
            (199, "getuid"),
            (212, "chown"),
            (295, "openat"),
        ];
        for (number, wanted) in calls {
            assert_eq!(of(number), wanted, "{number}");
        }
        assert_eq!(name(4000), None);
    }
}
