//! Where programs attach, by the names of their sections, as libbpf reads them.

/// The section of programs that run over events of traces, before the name of the event.
const EVENT: &str = "kymo";
/// The same of programs that say whether an event is kept.
const EVENT_FILTER: &str = "kymo.filter";

/// Kinds of sections, and what programs in them attach to. The longest name that fits counts.
const KINDS: [(&str, &str); 34] = [
    ("cgroup", "a control group of the kernel"),
    ("cgroup_skb", "packets of a control group of the kernel"),
    ("fentry", "the begin of a function of the kernel"),
    ("fexit", "the end of a function of the kernel"),
    ("fmod_ret", "the result of a function of the kernel"),
    ("freplace", "a function of another eBPF program"),
    ("iter", "a list of the kernel, when it is read"),
    ("kprobe", "the begin of a function of the kernel, by a probe"),
    ("kprobe.multi", "the begins of functions of the kernel, by probes"),
    ("kretprobe", "the end of a function of the kernel, by a probe"),
    ("kretprobe.multi", "the ends of functions of the kernel, by probes"),
    ("kretsyscall", "the end of a system call, by a probe"),
    ("ksyscall", "the begin of a system call, by a probe"),
    ("lsm", "a hook of the kernel for security"),
    ("netfilter", "packets of the kernel's packet filter"),
    ("perf_event", "samples and counters of perf"),
    ("raw_tp", "a tracepoint of the kernel, with its arguments as they are"),
    ("raw_tracepoint", "a tracepoint of the kernel, with its arguments as they are"),
    ("sched_ext", "the scheduler of the kernel"),
    ("sk_msg", "messages of sockets"),
    ("sk_skb", "packets of sockets"),
    ("socket", "packets of a socket"),
    ("sockops", "operations of sockets"),
    ("struct_ops", "a table of functions of the kernel"),
    ("syscall", "nothing: it runs when a program asks for it"),
    ("tc", "packets of a network interface"),
    ("tcx", "packets of a network interface"),
    ("tp", "a tracepoint of the kernel, with the fields of its format"),
    ("tp_btf", "a tracepoint of the kernel, with its arguments by BTF"),
    ("tracepoint", "a tracepoint of the kernel, with the fields of its format"),
    ("uprobe", "the begin of a function of a program"),
    ("uretprobe", "the end of a function of a program"),
    ("usdt", "a USDT probe of a program"),
    ("xdp", "packets of a network interface, as they arrive"),
];

/// Where a program attaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachPoint {
    /// Events of programs and of traces, by their name.
    Event(String),
    /// Events by their name: those for which its result is 0 are not kept.
    EventFilter(String),
    /// A place that only the kernel has.
    Kernel {
        /// It, in words.
        place: &'static str,
        /// Its name; empty if the section has none.
        target: String,
    },
    /// A section that libbpf does not know.
    Unknown,
}

impl AttachPoint {
    /// The pattern of the events that it is about; `None`: it is about something else.
    #[must_use]
    pub fn events(&self) -> Option<&str> {
        match self {
            Self::Event(pattern) | Self::EventFilter(pattern) => Some(pattern),
            Self::Kernel { .. } | Self::Unknown => None,
        }
    }

    /// The one that the name of a section means.
    ///
    /// ```
    /// use kymo_bpf::AttachPoint;
    /// assert_eq!(AttachPoint::of("kymo/net:packet_sent"), AttachPoint::Event("net:packet_sent".to_owned()));
    /// assert_eq!(AttachPoint::of("kymo.filter/net:*"), AttachPoint::EventFilter("net:*".to_owned()));
    /// assert!(matches!(AttachPoint::of("fentry.s/vfs_read"), AttachPoint::Kernel { target, .. } if target == "vfs_read"));
    /// assert_eq!(AttachPoint::of("nonsense"), AttachPoint::Unknown);
    /// ```
    #[must_use]
    pub fn of(section: &str) -> Self {
        // libbpf does not load programs with a question mark by itself.
        let section = section.strip_prefix('?').unwrap_or(section);
        let (kind, target) = section.split_once('/').unwrap_or((section, ""));
        if kind == EVENT && !target.is_empty() {
            return Self::Event(target.to_owned());
        }
        if kind == EVENT_FILTER && !target.is_empty() {
            return Self::EventFilter(target.to_owned());
        }
        let is_it = |name: &str| KINDS.iter().find(|(known, _)| *known == name);
        // Names may have more behind a dot: `fentry.s` may sleep.
        let found = is_it(kind).or_else(|| is_it(kind.split('.').next().unwrap_or(kind)));
        match found {
            Some((_, place)) => Self::Kernel { place, target: target.to_owned() },
            None => Self::Unknown,
        }
    }
}
