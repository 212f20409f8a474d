//! Places in the kernel where programs of users attach, by the names of their sections, as libbpf reads them.

/// A place that programs attach to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachPlace {
    /// A tracepoint with types of its arguments.
    TypedTracepoint(String),
    /// A tracepoint with its arguments as numbers.
    RawTracepoint(String),
    /// An event of tracefs: its subsystem and name.
    Tracepoint(String, String),
    /// The begin or the end of a function of the kernel.
    Function {
        /// Its name.
        name: String,
        /// Its end.
        is_end: bool,
    },
    /// A probe at the begin of a function of the kernel, or at so many bytes behind it; or at its end.
    FunctionProbe {
        /// Its name.
        name: String,
        /// Bytes from its begin.
        offset: u64,
        /// Its end.
        is_end: bool,
    },
    /// A probe of a function of a program or library.
    FileProbe {
        /// The file, or the name of a library.
        file: String,
        /// The function; `None`: the place is one of the file.
        symbol: Option<String>,
        /// Bytes from its begin, or from that of the file.
        offset: u64,
        /// Its end.
        is_end: bool,
    },
}

/// Why programs of a section are not attached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusablePlace {
    /// It is of a kind that is not attached.
    #[error("section {section} is for {kind}: {why}")]
    Kind {
        /// The section.
        section: String,
        /// The kind, in words.
        kind: &'static str,
        /// Why.
        why: &'static str,
    },
    /// It names no place.
    #[error("section {section} does not name its place: {form} is expected")]
    NoPlace {
        /// The section.
        section: String,
        /// How it is written.
        form: &'static str,
    },
    /// libbpf does not know it, either.
    #[error("section {section} is none that programs of the kernel have")]
    Unknown {
        /// The section.
        section: String,
    },
}

const NOT_TRACING: &str =
    "only programs that trace are attached, and these decide about packets, rights or other programs";
const TYPED: &str = "`tp_btf/NAME`";
const RAW: &str = "`raw_tp/NAME`";
const EVENT: &str = "`tp/SYSTEM/NAME`";
const FUNCTION: &str = "`fentry/FUNCTION`";
const PROBE: &str = "`kprobe/FUNCTION` or `kprobe/FUNCTION+OFFSET`";
const FILE: &str = "`uprobe/FILE:FUNCTION`, `uprobe/FILE:FUNCTION+OFFSET` or `uprobe/FILE:OFFSET`";

/// Kinds of sections that are not attached, and why.
const UNUSABLE: [(&str, &str, &str); 9] = [
    ("perf_event", "samples of perf", "the section does not say which counter is meant, nor how often"),
    ("iter", "lists of the kernel", "they run when a program reads a file, and never by themselves"),
    (
        "usdt",
        "USDT probes",
        "the crate `aya`, which loads objects here, does not have them; `uprobe/FILE:FUNCTION` is there",
    ),
    ("ksyscall", "system calls by probes", "the crate `aya` does not have them; `tp_btf/sys_enter` sees all calls"),
    ("kretsyscall", "system calls by probes", "the crate `aya` does not have them; `tp_btf/sys_exit` sees all calls"),
    ("kprobe.multi", "many functions at once", "the crate `aya` does not have them; `fentry/FUNCTION` is for one"),
    ("kretprobe.multi", "many functions at once", "the crate `aya` does not have them; `fexit/FUNCTION` is for one"),
    (
        "fmod_ret",
        "results of functions of the kernel",
        "only programs that look on are attached, and these change results",
    ),
    ("freplace", "functions of other eBPF programs", "there is no other program here"),
];
/// Kinds of sections of programs that do not trace.
const OTHERS: [&str; 20] = [
    "cgroup",
    "cgroup_skb",
    "classifier",
    "flow_dissector",
    "lirc_mode2",
    "lsm",
    "lsm_cgroup",
    "lwt_in",
    "netfilter",
    "sched_ext",
    "sk_lookup",
    "sk_msg",
    "sk_reuseport",
    "sk_skb",
    "socket",
    "sockops",
    "struct_ops",
    "syscall",
    "tc",
    "tcx",
];

impl AttachPlace {
    /// The place that a section names.
    ///
    /// # Errors
    ///
    /// Its programs are not attached.
    ///
    /// ```
    /// use kymo_probe::objects::AttachPlace;
    /// assert_eq!(AttachPlace::of("tp_btf/sched_switch"), Ok(AttachPlace::TypedTracepoint("sched_switch".to_owned())));
    /// let problem = AttachPlace::of("iter/task").unwrap_err().to_string();
    /// assert!(problem.starts_with("section iter/task is for lists of the kernel: they run when"), "{problem}");
    /// ```
    pub fn of(section: &str) -> Result<Self, UnusablePlace> {
        let (kind, target) = section.split_once('/').unwrap_or((section, ""));
        let no_place = |form| UnusablePlace::NoPlace { section: section.to_owned(), form };
        let named = |form| if target.is_empty() { Err(no_place(form)) } else { Ok(target.to_owned()) };
        let is_end = kind.contains("ret") || kind.starts_with("fexit");
        Ok(match kind {
            "tp_btf" => Self::TypedTracepoint(named(TYPED)?),
            "raw_tp" | "raw_tracepoint" => Self::RawTracepoint(named(RAW)?),
            "tp" | "tracepoint" => {
                let (system, name) = target.split_once('/').ok_or_else(|| no_place(EVENT))?;
                if ![system, name].into_iter().all(is_word) {
                    return Err(no_place(EVENT));
                }
                Self::Tracepoint(system.to_owned(), name.to_owned())
            }
            "fentry" | "fentry.s" | "fexit" | "fexit.s" => Self::Function { name: named(FUNCTION)?, is_end },
            "kprobe" | "kretprobe" => {
                let (name, offset) = with_offset(&named(PROBE)?).ok_or_else(|| no_place(PROBE))?;
                Self::FunctionProbe { name, offset, is_end }
            }
            "uprobe" | "uprobe.s" | "uretprobe" | "uretprobe.s" => {
                let (file, place) = target.rsplit_once(':').ok_or_else(|| no_place(FILE))?;
                let (name, offset) = with_offset(place).ok_or_else(|| no_place(FILE))?;
                // `uprobe//bin/bash:readline` has the slash of the path behind that of the section.
                let (symbol, offset) = match number(&name) {
                    Some(place) => (None, place.checked_add(offset).ok_or_else(|| no_place(FILE))?),
                    None => (Some(name), offset),
                };
                if file.is_empty() {
                    return Err(no_place(FILE));
                }
                Self::FileProbe { file: file.to_owned(), symbol, offset, is_end }
            }
            kind => return Err(unusable(section, kind)),
        })
    }
}

fn unusable(section: &str, kind: &str) -> UnusablePlace {
    let section = section.to_owned();
    let plain = kind.split('.').next().unwrap_or(kind);
    let mut known = UNUSABLE.iter();
    let found = known.find(|(name, ..)| *name == kind || *name == plain);
    match found {
        Some(&(_, kind, why)) => UnusablePlace::Kind { section, kind, why },
        None if plain == "xdp" || OTHERS.contains(&plain) => {
            UnusablePlace::Kind { section, kind: "a part of the kernel that asks for decisions", why: NOT_TRACING }
        }
        None => UnusablePlace::Unknown { section },
    }
}

/// A word that can be part of a path.
fn is_word(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// A name, and the bytes behind it.
fn with_offset(text: &str) -> Option<(String, u64)> {
    let (name, offset) = match text.split_once('+') {
        Some((name, offset)) => (name, number(offset)?),
        None => (text, 0),
    };
    (!name.is_empty()).then(|| (name.to_owned(), offset))
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_places() {
        let probe = |symbol: Option<&str>, offset, is_end| {
            let symbol = symbol.map(str::to_owned);
            Ok(AttachPlace::FileProbe { file: "/bin/sh".to_owned(), symbol, offset, is_end })
        };
        assert_eq!(AttachPlace::of("uprobe//bin/sh:main"), probe(Some("main"), 0, false));
        assert_eq!(AttachPlace::of("uretprobe//bin/sh:main+0x10"), probe(Some("main"), 16, true));
        assert_eq!(AttachPlace::of("uprobe.s//bin/sh:0x400"), probe(None, 1024, false));
        let function = |is_end| Ok(AttachPlace::Function { name: "vfs_read".to_owned(), is_end });
        assert_eq!(
            (AttachPlace::of("fentry.s/vfs_read"), AttachPlace::of("fexit/vfs_read")),
            (function(false), function(true))
        );
        let event = Ok(AttachPlace::Tracepoint("sched".to_owned(), "sched_switch".to_owned()));
        assert_eq!(AttachPlace::of("tracepoint/sched/sched_switch"), event);
        let kprobe = Ok(AttachPlace::FunctionProbe { name: "vfs_read".to_owned(), offset: 4, is_end: false });
        assert_eq!(AttachPlace::of("kprobe/vfs_read+4"), kprobe);
    }

    #[test]
    fn other_sections_are_told_why() {
        for (section, words) in [
            ("tp/sched", "does not name its place: `tp/SYSTEM/NAME` is expected"),
            ("tp/../sched", "does not name its place"),
            ("uprobe/main", "does not name its place: `uprobe/FILE:FUNCTION`"),
            ("fentry", "does not name its place"),
            ("xdp.frags", "asks for decisions: only programs that trace"),
            ("perf_event", "is for samples of perf"),
            ("usdt//bin/sh:a:b", "is for USDT probes"),
            ("lsm.s/file_open", "asks for decisions"),
            ("nonsense", "is none that programs of the kernel have"),
        ] {
            let why = AttachPlace::of(section).expect_err(section).to_string();
            assert!(why.contains(words), "{section}: {why}");
        }
    }
}
