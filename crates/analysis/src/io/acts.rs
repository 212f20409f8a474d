//! Acts that concern files, and come in an order.

use serde::{Deserialize, Serialize};

use super::file::{FdFile, Looked, renamed};
use super::sums::{FileUse, IoSums, SlowOperation, ThreadUses};
use crate::calls::{EventPosition, ThreadLife};
use crate::names::Renumbering;
use crate::threads::ThreadKey;

/// Something that concerns files, and comes in an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FileAct {
    /// An operation on a file.
    Use(FileTarget, FileUse),
    /// One that took long.
    Slow(FileTarget, Box<SlowOperation>),
    /// Looks up these fds. The answer is for later.
    Look(Option<i32>, Option<i32>),
    /// A path was opened; as this, if it could be.
    Open {
        /// The path.
        #[serde(with = "serde_bytes")]
        path: Box<[u8]>,
        /// The new fd.
        fd: Option<i32>,
        /// It did not work.
        is_error: bool,
        /// It goes when its process becomes another program.
        closes_on_exec: bool,
        /// It is selected.
        counts: bool,
    },
    /// An operation that counts for its thread alone.
    Count(FileUse),
    /// A socket or pipe.
    Make {
        /// The new fd.
        fd: i32,
        /// It is no pipe.
        is_socket: bool,
        /// It is of the internet.
        is_net: bool,
        /// It goes when its process becomes another program.
        closes_on_exec: bool,
    },
    /// A socket of the kind of another, or the same file again.
    Derive {
        /// The other one.
        from: i32,
        /// The new fd.
        fd: i32,
        /// A socket, not the same file.
        is_socket: bool,
        /// It goes when its process becomes another program.
        closes_on_exec: bool,
    },
    /// An fd is given up.
    Close(i32),
    /// The process becomes another program.
    Exec,
    /// The thread is made: its process, that of its parent, and the parent.
    Fork(Option<i32>, Option<i32>, Option<ThreadKey>),
    /// The process of the thread.
    Known(i32),
    /// The process of another thread of the same machine.
    Said(i32, i32),
    /// A life is over, and known whole but for its files.
    Over(Box<EndedLife>),
    /// The thread's life may be over.
    Died,
    /// The process that has a table of files, by the table's address.
    FileTable {
        /// The address.
        table: i64,
        /// The process.
        pid: i32,
    },
    /// A file that a process had before.
    FileState {
        /// Of which process.
        of: StatedOwner,
        /// The fd.
        fd: i32,
        /// Its path.
        path: Box<[u8]>,
    },
    /// The thread leaves a call that it entered in an earlier part: its effect follows when it is
    /// known.
    Asks {
        /// The possible new fd.
        fd: Option<i32>,
        /// Another one.
        other_fd: Option<i32>,
        /// It may depend on any fd.
        is_any: bool,
    },
    /// The thread's uses of files that were known in a part without known files before it; and
    /// whether its life was over then.
    Used(Box<ThreadUses>, bool),
    /// The file of an fd of a process now, which is known from there.
    Set(i32, i32, Option<FdFile>),
    /// The files of the thread's current call when it was entered, which are known from there, and
    /// where that was.
    Looked(EventPosition, Box<Looked>),
}

/// The process whose file is stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatedOwner {
    /// It is named.
    Process(i32),
    /// The one that has the table of files at this address: LTTng since 2.12.
    Table(i64),
}

/// A life that is over, since a place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndedLife {
    pub(super) who: ThreadLife,
    pub(super) since: Option<EventPosition>,
    pub(super) sums: IoSums,
    /// The answer includes it.
    pub(super) is_wanted: bool,
}

/// Which file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileTarget {
    /// The file of this fd.
    Fd(i32),
    /// The file that the thread looked up when it entered the call: that of the first fd or of the
    /// other one.
    Looked {
        /// The other one.
        is_other: bool,
    },
    /// Unknown, or none.
    None,
}

impl FileAct {
    /// Drops the counts of an act after they were counted; returns whether the act has another
    /// effect.
    pub(super) fn forget(&mut self) -> bool {
        if let Self::Open { counts, .. } = self {
            *counts = false;
        }
        !matches!(
            self,
            Self::Use(..) | Self::Slow(..) | Self::Count(_) | Self::Over(_) | Self::Used(..) | Self::Asks { .. }
        )
    }

    /// Names have other numbers now.
    pub(super) fn rename(&mut self, names: &Renumbering) {
        match self {
            Self::Used(piece, _) => piece.rename(names),
            Self::Set(_, _, file) => *file = file.map(|file| file.renamed(names)),
            Self::Looked(_, looked) => **looked = renamed(**looked, names),
            _ => {}
        }
    }

    /// The fds of its thread's process that it names.
    pub(super) fn fds(&self) -> [Option<i32>; 2] {
        match *self {
            Self::Use(FileTarget::Fd(fd), _)
            | Self::Slow(FileTarget::Fd(fd), _)
            | Self::Close(fd)
            | Self::Make { fd, .. } => [Some(fd), None],
            Self::Open { fd, .. } => [fd, None],
            Self::Look(fd, other_fd) => [fd, other_fd],
            Self::Derive { from, fd, .. } => [Some(from), Some(fd)],
            _ => [None; 2],
        }
    }

    /// What it counts for its thread.
    #[inline]
    pub(super) fn counts(&self) -> Option<FileUse> {
        match *self {
            // A call fails once.
            Self::Use(_, used) | Self::Count(used) => {
                Some(FileUse { is_error: used.is_error && !used.is_second, ..used })
            }
            Self::Open { counts: true, is_error, .. } => Some(FileUse::open(is_error)),
            _ => None,
        }
    }
}
