//! The names of error numbers of Linux, as most architectures have them (alpha, MIPS, PA-RISC and SPARC number some
//! otherwise).

/// Names from 1 on; empty where a number has none.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "EPERM", "ENOENT", "ESRCH", "EINTR", "EIO", "ENXIO", "E2BIG", "ENOEXEC", "EBADF", "ECHILD",
    "EAGAIN", "ENOMEM", "EACCES", "EFAULT", "ENOTBLK", "EBUSY", "EEXIST", "EXDEV", "ENODEV",
    "ENOTDIR", "EISDIR", "EINVAL", "ENFILE", "EMFILE", "ENOTTY", "ETXTBSY", "EFBIG", "ENOSPC",
    "ESPIPE", "EROFS", "EMLINK", "EPIPE", "EDOM", "ERANGE", "EDEADLK", "ENAMETOOLONG", "ENOLCK",
    "ENOSYS", "ENOTEMPTY", "ELOOP", "", "ENOMSG", "EIDRM", "ECHRNG", "EL2NSYNC", "EL3HLT", "EL3RST",
    "ELNRNG", "EUNATCH", "ENOCSI", "EL2HLT", "EBADE", "EBADR", "EXFULL", "ENOANO", "EBADRQC",
    "EBADSLT", "", "EBFONT", "ENOSTR", "ENODATA", "ETIME", "ENOSR", "ENONET", "ENOPKG", "EREMOTE",
    "ENOLINK", "EADV", "ESRMNT", "ECOMM", "EPROTO", "EMULTIHOP", "EDOTDOT", "EBADMSG", "EOVERFLOW",
    "ENOTUNIQ", "EBADFD", "EREMCHG", "ELIBACC", "ELIBBAD", "ELIBSCN", "ELIBMAX", "ELIBEXEC",
    "EILSEQ", "ERESTART", "ESTRPIPE", "EUSERS", "ENOTSOCK", "EDESTADDRREQ", "EMSGSIZE",
    "EPROTOTYPE", "ENOPROTOOPT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EOPNOTSUPP", "EPFNOSUPPORT",
    "EAFNOSUPPORT", "EADDRINUSE", "EADDRNOTAVAIL", "ENETDOWN", "ENETUNREACH", "ENETRESET",
    "ECONNABORTED", "ECONNRESET", "ENOBUFS", "EISCONN", "ENOTCONN", "ESHUTDOWN", "ETOOMANYREFS",
    "ETIMEDOUT", "ECONNREFUSED", "EHOSTDOWN", "EHOSTUNREACH", "EALREADY", "EINPROGRESS", "ESTALE",
    "EUCLEAN", "ENOTNAM", "ENAVAIL", "EISNAM", "EREMOTEIO", "EDQUOT", "ENOMEDIUM", "EMEDIUMTYPE",
    "ECANCELED", "ENOKEY", "EKEYEXPIRED", "EKEYREVOKED", "EKEYREJECTED", "EOWNERDEAD",
    "ENOTRECOVERABLE", "ERFKILL", "EHWPOISON",
];

/// Numbers that only the kernel itself sees, or that a traced call shows: a call that goes on after a signal.
const RESTARTS: &[(u64, &str)] =
    &[(512, "ERESTARTSYS"), (513, "ERESTARTNOINTR"), (514, "ERESTARTNOHAND"), (516, "ERESTART_RESTARTBLOCK")];

/// The name of an error number.
pub(crate) fn errno_name(number: u64) -> Option<&'static str> {
    let place = usize::try_from(number).ok()?.checked_sub(1)?;
    let usual = NAMES.get(place).copied().filter(|name| !name.is_empty());
    usual.or_else(|| RESTARTS.iter().find(|known| known.0 == number).map(|known| known.1))
}

/// The number of the error in the result of a system call, if it is one.
pub(crate) fn error_of_result(result: i64) -> Option<u64> {
    (-4095..0).contains(&result).then(|| result.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_names_of_the_kernel() {
        assert_eq!(
            [1, 2, 11, 110, 133].map(errno_name),
            ["EPERM", "ENOENT", "EAGAIN", "ETIMEDOUT", "EHWPOISON"].map(Some)
        );
        assert_eq!(
            [0, 41, 58, 134, 512, u64::MAX].map(errno_name),
            [None, None, None, None, Some("ERESTARTSYS"), None]
        );
        assert_eq!([-1, -4095, -4096, 0, 7].map(error_of_result), [Some(1), Some(4095), None, None, None]);
    }
}
