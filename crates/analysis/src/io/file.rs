//! Fds and files.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::names::{Interner, NameId, Renumbering};
use crate::threads::ThreadKey;

/// The file that an operation concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FileKey {
    /// A file by its name.
    Named(NameId),
    /// An fd without a known file.
    Fd(FdOwner, i32),
    /// Unknown.
    None,
}

/// The owner of fds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FdOwner {
    /// A process, of a machine.
    Process(u16, i32),
    /// A thread of an unknown process.
    Thread(ThreadKey),
}

impl Hash for FdOwner {
    /// As one number: tables are looked up for every act.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (kind, host, number) = match *self {
            Self::Process(host, pid) => (0_u64, host, pid),
            Self::Thread(ThreadKey { host, tid }) => (1, host, tid),
        };
        state.write_u64(kind << 48 | u64::from(host) << 32 | u64::from(number.cast_unsigned()));
    }
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum IoFileKind {
    /// A path.
    Disk,
    /// The internet.
    Net,
    /// Something else, or unknown.
    #[default]
    Unknown,
}

/// The file of an fd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FdFile {
    pub(super) name: NameId,
    pub(super) kind: IoFileKind,
    pub(super) closes_on_exec: bool,
}

/// What the first fd of a call and the other one were when it was entered.
pub(super) type Looked = [Option<(FileKey, IoFileKind)>; 2];

impl FileKey {
    /// The same where names have other numbers.
    pub(super) fn renamed(self, names: &Renumbering) -> Self {
        match self {
            Self::Named(name) => Self::Named(names.of(name)),
            other => other,
        }
    }
}

impl FdFile {
    /// The same where names have other numbers.
    pub(super) fn renamed(self, names: &Renumbering) -> Self {
        Self { name: names.of(self.name), ..self }
    }

    /// One that a process had before.
    pub(super) fn stated(names: &mut Interner, path: &[u8]) -> Self {
        // Other names are of pipes, sockets and the like: `pipe:[123]`.
        let kind = if path.starts_with(b"/") { IoFileKind::Disk } else { IoFileKind::Unknown };
        Self { name: names.intern(path), kind, closes_on_exec: false }
    }

    /// A socket or pipe.
    pub(super) fn made(names: &mut Interner, is_socket: bool, is_net: bool, closes_on_exec: bool) -> Self {
        let name = names.intern(if is_socket { b"socket" } else { b"pipe" });
        Self { name, kind: if is_net { IoFileKind::Net } else { IoFileKind::Unknown }, closes_on_exec }
    }

    /// A socket of the kind of another, or the same file again, if it is one.
    pub(super) fn derived(
        names: &mut Interner,
        from: Option<Self>,
        is_socket: bool,
        closes_on_exec: bool,
    ) -> Option<Self> {
        match is_socket {
            true => {
                let kind = from.map_or(IoFileKind::Unknown, |from| from.kind);
                Some(Self { name: names.intern(b"socket"), kind, closes_on_exec })
            }
            false => from.map(|from| Self { closes_on_exec, ..from }),
        }
    }
}

/// The same where names have other numbers.
pub(super) fn renamed(looked: Looked, names: &Renumbering) -> Looked {
    looked.map(|looked| looked.map(|(file, kind)| (file.renamed(names), kind)))
}
