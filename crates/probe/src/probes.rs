//! Dynamic probes: requests as structures, checked word by word, and the lines that tracefs takes.
//!
//! ```text
//! p:kymo_12_0/parse /proc/self/fd/5:0x1129(0x3010) n=%di:s32 text=+0(%si):ustring
//! r:kymo_12_0/parse__return /proc/self/fd/5:0x1129 ret=$retval:s32
//! ```
//!
//! Tracefs reads such a line as words: a space, a line break or `#` in one of them would become another probe, or another part
//! of this one. So a name is made of letters, digits and `_`, and a register is one of a list. A path never becomes part of a
//! line: it has to be one that the command line named, and the helper has opened that file, without reading it, when it began.
//! So a file that is put into its place later is not probed.

use std::fmt::Write;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Probes of a request at most.
pub const PROBES_MAX: usize = 512;
/// Arguments of a probe at most; the kernel takes 128.
pub const FIELDS_MAX: usize = 64;
/// Bytes of an event's name at most; the kernel takes 63.
pub const EVENT_NAME_MAX: usize = 60;
/// Bytes of a field's name at most.
pub const FIELD_NAME_MAX: usize = 31;
/// Bytes of a line at most; the kernel takes 4095.
const LINE_MAX: usize = 4000;
/// Names that the kernel keeps for itself.
const RESERVED: [&str; 8] = [
    "common_type",
    "common_flags",
    "common_preempt_count",
    "common_pid",
    "common_tgid",
    "__probe_ip",
    "__probe_func",
    "__probe_ret_ip",
];
/// The kernel's names of registers.
const REGISTERS: [&str; 16] =
    ["ax", "bx", "cx", "dx", "si", "di", "bp", "sp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];

/// A probe that a recorder asks for. Probes of one event name become one event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeRequest {
    /// The name of its event in the kernel.
    pub event: String,
    /// Where it is.
    pub place: ProbePlace,
    /// It is hit when the function there returns.
    pub is_return: bool,
    /// The values that it records.
    pub fields: Vec<ProbeField>,
}

/// Where a probe is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbePlace {
    /// An instruction of a program or library.
    File {
        /// The path of the file.
        path: String,
        /// The offset of the instruction in it.
        offset: u64,
        /// The offset of a number of 2 bytes that the kernel increases while the probe is there.
        semaphore: Option<u64>,
    },
    /// A function of the kernel.
    Function {
        /// Its name.
        name: String,
    },
}

/// A value that a probe records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeField {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub source: ProbeFieldSource,
    /// Its type.
    pub kind: ProbeFieldKind,
}

/// Where a value is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeFieldSource {
    /// In a register.
    Register(String),
    /// In memory, so many bytes from where a register points.
    Memory {
        /// The register.
        base: String,
        /// Bytes from there.
        offset: i64,
    },
    /// In memory, so many bytes from the beginning of the file's mapping.
    Mapped(u64),
    /// It is this number.
    Constant(i64),
    /// It is what a function returns.
    Result,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeFieldKind {
    /// A signed integer of so many bytes.
    Signed(u8),
    /// An unsigned integer of so many bytes.
    Unsigned(u8),
    /// An address.
    Address,
    /// The address of text.
    Text,
}

/// Where probes may be and whether there may be call stacks, as the command line of the command that started the helper says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeRights {
    /// Paths of programs and libraries.
    pub files: Vec<PathBuf>,
    /// Functions of the kernel.
    pub functions: bool,
    /// Call stacks of all threads, and the addresses of the kernel's functions.
    pub stacks: bool,
    /// Counts of events, with fields of anything that the kernel's arguments lead to.
    pub watch: bool,
    /// Rules about events, with the same fields.
    pub rules: bool,
    /// Counts of events beside a recording, with the same fields.
    pub counts: bool,
    /// A user's own eBPF object, which may read anything that the kernel's verifier allows; and nothing else.
    pub objects: bool,
}

/// Why a probe is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProbeRefusal {
    /// There are too many.
    #[error("{count} probes are more than the {PROBES_MAX} that one recording may have")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// A name is none.
    #[error("`{}` is no name for the kernel: that has up to {most} letters of ASCII, digits and `_`", name.escape_debug())]
    Name {
        /// The name.
        name: String,
        /// Bytes of it at most.
        most: usize,
    },
    /// Two fields have one name, or a name that the kernel keeps for itself.
    #[error("the field `{name}` of `{event}` has a name that is taken")]
    Taken {
        /// The event.
        event: String,
        /// The field.
        name: String,
    },
    /// It records too much.
    #[error("the probe `{event}` has {count} fields, and {FIELDS_MAX} is the most")]
    Fields {
        /// The event.
        event: String,
        /// Its fields.
        count: usize,
    },
    /// There is no such register or type.
    #[error("the field `{name}` of `{event}` is nothing that the kernel reads")]
    Source {
        /// The event.
        event: String,
        /// The field.
        name: String,
    },
    /// The command line has not named the file.
    #[error("the command that started the helper did not name {path}, so it makes no probes there")]
    File {
        /// The file.
        path: String,
    },
    /// The command line has not named functions of the kernel.
    #[error("the command that started the helper named no function of the kernel, so it makes no probes there")]
    Function,
}

/// The files of [`ProbeRights`], open as places: nothing of them can be read by that.
#[derive(Debug, Default)]
pub(crate) struct ProbedFiles {
    files: Vec<(PathBuf, File)>,
    functions: bool,
    pub(crate) stacks: bool,
    pub(crate) watch: bool,
    pub(crate) rules: bool,
    pub(crate) counts: bool,
    pub(crate) objects: bool,
}

impl ProbedFiles {
    /// Opens files; those that are not there have no probes.
    pub(crate) fn open(rights: ProbeRights) -> Self {
        let ProbeRights { files, functions, stacks, watch, rules, counts, objects } = rights;
        let open = |path: PathBuf| {
            let file = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&path).ok()?;
            Some((path, file))
        };
        let files = files.into_iter().filter_map(open).collect();
        Self { files, functions, stacks, watch, rules, counts, objects }
    }

    /// A path that leads to a file for this process.
    pub(crate) fn place(&self, path: &str) -> Option<String> {
        let (_, file) = self.files.iter().find(|(known, _)| known.as_os_str() == path)?;
        Some(format!("/proc/self/fd/{}", file.as_raw_fd()))
    }
}

/// Checks requests.
///
/// # Errors
///
/// The first one that is not as it must be, or that the rights do not allow.
pub(crate) fn check(probes: &[ProbeRequest], files: &ProbedFiles) -> Result<(), ProbeRefusal> {
    if probes.len() > PROBES_MAX {
        return Err(ProbeRefusal::TooMany { count: probes.len() });
    }
    probes.iter().try_for_each(|probe| probe.check(files))
}

fn check_name(name: &str, most: usize) -> Result<(), ProbeRefusal> {
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    match name.len() <= most && is_name(name) {
        true => Ok(()),
        false => Err(ProbeRefusal::Name { name: name.chars().take(100).collect(), most }),
    }
}

impl ProbeRequest {
    fn check(&self, files: &ProbedFiles) -> Result<(), ProbeRefusal> {
        let Self { event, place, fields, .. } = self;
        check_name(event, EVENT_NAME_MAX)?;
        match place {
            ProbePlace::File { path, .. } if files.place(path).is_none() => {
                return Err(ProbeRefusal::File { path: path.clone() });
            }
            ProbePlace::Function { .. } if !files.functions => return Err(ProbeRefusal::Function),
            ProbePlace::Function { name } => check_name(name, 200)?,
            ProbePlace::File { .. } => {}
        }
        if fields.len() > FIELDS_MAX {
            return Err(ProbeRefusal::Fields { event: event.clone(), count: fields.len() });
        }
        for (at, ProbeField { name, source, kind }) in fields.iter().enumerate() {
            check_name(name, FIELD_NAME_MAX)?;
            let is_taken = RESERVED.contains(&name.as_str()) || fields[..at].iter().any(|field| field.name == *name);
            if is_taken {
                return Err(ProbeRefusal::Taken { event: event.clone(), name: name.clone() });
            }
            let is_known = match source {
                ProbeFieldSource::Register(base) | ProbeFieldSource::Memory { base, .. } => is_register(base),
                ProbeFieldSource::Result => self.is_return,
                ProbeFieldSource::Mapped(_) | ProbeFieldSource::Constant(_) => true,
            };
            let has_size = match kind {
                ProbeFieldKind::Signed(bytes) | ProbeFieldKind::Unsigned(bytes) => matches!(bytes, 1 | 2 | 4 | 8),
                ProbeFieldKind::Address | ProbeFieldKind::Text => true,
            };
            if !is_known || !has_size {
                return Err(ProbeRefusal::Source { event: event.clone(), name: name.clone() });
            }
        }
        match self.line("kymo_0000000_000", true, files).len() <= LINE_MAX {
            true => Ok(()),
            false => Err(ProbeRefusal::Fields { event: event.clone(), count: fields.len() }),
        }
    }

    /// It is in a function of the kernel.
    pub(crate) fn is_of_kernel(&self) -> bool {
        matches!(self.place, ProbePlace::Function { .. })
    }

    /// The line that makes the probe. All of its words have been checked. `has_types`: the kernel knows the arguments of its
    /// functions.
    pub(crate) fn line(&self, group: &str, has_types: bool, files: &ProbedFiles) -> String {
        let Self { event, place, is_return, fields } = self;
        let kind = if *is_return { 'r' } else { 'p' };
        let mut line = format!("{kind}:{group}/{event} ");
        match place {
            ProbePlace::File { path, offset, semaphore } => {
                let _ = write!(line, "{}:{offset:#x}", files.place(path).unwrap_or_default());
                if let Some(semaphore) = semaphore {
                    let _ = write!(line, "({semaphore:#x})");
                }
            }
            ProbePlace::Function { name } => {
                line.push_str(name);
                line.push_str(if has_types && !is_return { " $arg*" } else { "" });
            }
        }
        for ProbeField { name, source, kind } in fields {
            let source = match source {
                ProbeFieldSource::Register(name) => format!("%{name}"),
                ProbeFieldSource::Memory { base, offset } => format!("{offset:+}(%{base})"),
                ProbeFieldSource::Mapped(offset) => format!("@+{offset:#x}"),
                ProbeFieldSource::Constant(value) => format!("\\{value}"),
                ProbeFieldSource::Result => "$retval".to_owned(),
            };
            let _ = match kind {
                ProbeFieldKind::Signed(bytes) => write!(line, " {name}={source}:s{}", bytes * 8),
                ProbeFieldKind::Unsigned(bytes) => write!(line, " {name}={source}:u{}", bytes * 8),
                ProbeFieldKind::Address => write!(line, " {name}={source}:x64"),
                ProbeFieldKind::Text => write!(line, " {name}=+0({source}):ustring"),
            };
        }
        line
    }
}

fn is_register(name: &str) -> bool {
    let is_of_arm =
        || name.strip_prefix('x').and_then(|number| number.parse().ok()).is_some_and(|number: u8| number < 31);
    REGISTERS.contains(&name) || is_of_arm()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn request() -> ProbeRequest {
        let field = |name: &str, source, kind| ProbeField { name: name.to_owned(), source, kind };
        ProbeRequest {
            event: "parse".to_owned(),
            place: ProbePlace::File { path: "/proc/self/exe".to_owned(), offset: 0x1129, semaphore: Some(0x3010) },
            is_return: false,
            fields: vec![
                field("n", ProbeFieldSource::Register("di".to_owned()), ProbeFieldKind::Signed(4)),
                field("text", ProbeFieldSource::Register("si".to_owned()), ProbeFieldKind::Text),
                field("m", ProbeFieldSource::Memory { base: "sp".to_owned(), offset: -8 }, ProbeFieldKind::Address),
                field("c", ProbeFieldSource::Constant(-7), ProbeFieldKind::Unsigned(1)),
                field("g", ProbeFieldSource::Mapped(0x4010), ProbeFieldKind::Unsigned(8)),
            ],
        }
    }

    fn files(functions: bool) -> ProbedFiles {
        let files = ["/proc/self/exe", "/nothing-here"].map(PathBuf::from).to_vec();
        ProbedFiles::open(ProbeRights { files, functions, ..ProbeRights::default() })
    }

    #[test]
    fn lines_are_those_of_tracefs() {
        let (mut probe, files) = (request(), files(false));
        assert_eq!(check(std::slice::from_ref(&probe), &files), Ok(()));
        let place = files.place("/proc/self/exe").expect("it is open");
        assert!(Path::new(&place).canonicalize().is_ok_and(|path| Some(path) == std::env::current_exe().ok()));
        assert_eq!(
            probe.line("kymo_12_0", true, &files).replace(&place, "FILE"),
            "p:kymo_12_0/parse FILE:0x1129(0x3010) n=%di:s32 text=+0(%si):ustring m=-8(%sp):x64 c=\\-7:u8 g=@+0x4010:u64"
        );
        probe.is_return = true;
        probe.fields = vec![ProbeField {
            name: "ret".to_owned(),
            source: ProbeFieldSource::Result,
            kind: ProbeFieldKind::Signed(8),
        }];
        probe.place = ProbePlace::Function { name: "do_exit".to_owned() };
        assert_eq!(probe.line("kymo_12_0", true, &files), "r:kymo_12_0/parse do_exit ret=$retval:s64");
        probe.is_return = false;
        probe.fields.clear();
        assert_eq!(probe.line("kymo_12_0", true, &files), "p:kymo_12_0/parse do_exit $arg*");
        assert_eq!(probe.line("kymo_12_0", false, &files), "p:kymo_12_0/parse do_exit");
    }

    /// Nothing of a request becomes another word of the line, or another line.
    #[test]
    fn words_that_would_be_others_are_refused() {
        let refused = |change: &dyn Fn(&mut ProbeRequest)| {
            let mut probe = request();
            change(&mut probe);
            check(&[probe], &files(false)).expect_err("it is refused")
        };
        for name in ["", "a b", "a/b", "a\nb", "a:b", "-a", "1a", "a=1", "é", &"a".repeat(61)] {
            let refusal = refused(&|probe| probe.event = name.to_owned());
            assert!(matches!(refusal, ProbeRefusal::Name { .. }), "{name}: {refusal}");
        }
        for name in ["", "a b", "a=%ax", "a:u8", &"a".repeat(32)] {
            let refusal = refused(&|probe| probe.fields[0].name = name.to_owned());
            assert!(matches!(refusal, ProbeRefusal::Name { .. }), "{name}: {refusal}");
        }
        for name in ["text", "common_pid", "__probe_ip"] {
            let refusal = refused(&|probe| probe.fields[0].name = name.to_owned());
            assert!(matches!(refusal, ProbeRefusal::Taken { .. }), "{name}: {refusal}");
        }
        for register in ["", "ax b", "di:u8 x=%si", "x31", "rdi"] {
            let refusal = refused(&|probe| probe.fields[0].source = ProbeFieldSource::Register(register.to_owned()));
            assert!(matches!(refusal, ProbeRefusal::Source { .. }), "{register}: {refusal}");
        }
        let refusal = refused(&|probe| probe.fields[0].kind = ProbeFieldKind::Unsigned(3));
        assert!(matches!(refusal, ProbeRefusal::Source { .. }), "{refusal}");
        let refusal = refused(&|probe| probe.fields[0].source = ProbeFieldSource::Result);
        assert!(matches!(refusal, ProbeRefusal::Source { .. }), "{refusal}");
        let at = |path: &str| {
            let place = ProbePlace::File { path: path.to_owned(), offset: 0, semaphore: None };
            refused(&|probe| probe.place = place.clone())
        };
        // Files and functions that the command line did not name, or that were not there.
        for path in ["/usr/bin/env", "/nothing-here", "/proc/self/../self/exe", "/proc/self/exe\np:x/y", ""] {
            assert!(matches!(at(path), ProbeRefusal::File { .. }), "{path}");
        }
        let refusal = refused(&|probe| probe.place = ProbePlace::Function { name: "do_exit".to_owned() });
        assert_eq!(refusal, ProbeRefusal::Function);
        let mut probe = request();
        probe.place = ProbePlace::Function { name: "do_exit+4 x=%ax".to_owned() };
        assert!(matches!(check(&[probe], &files(true)), Err(ProbeRefusal::Name { .. })));
        let many = vec![request(); PROBES_MAX + 1];
        assert_eq!(check(&many, &files(false)), Err(ProbeRefusal::TooMany { count: 513 }));
    }
}
