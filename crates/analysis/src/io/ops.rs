//! The calls that are operations on files, and their arguments.

use serde::{Deserialize, Serialize};

/// The effect of a call on files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileEffect {
    /// Opens a path.
    Open,
    /// Makes a socket.
    Socket,
    /// Makes a socket of one that listens.
    Accept,
    /// Gives a file another number.
    Dup,
    /// That, or something else.
    Fcntl,
    /// Makes two ends of a pipe.
    Pipe,
    /// Makes two sockets.
    Pair,
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads bytes from one file that it writes to another.
    Both,
    /// Writes back the data of a file that is not on its disk yet.
    Sync,
    /// The same, for all files.
    SyncAll,
    /// Gives a number up.
    Close,
    /// Nothing.
    Other,
}

/// The categories of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Category {
    /// Operations that make an fd.
    Open,
    /// Bytes come in.
    Read,
    /// Bytes go out.
    Write,
    /// Bytes go to a disk now.
    Sync,
}

impl Category {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Open, Self::Read, Self::Write, Self::Sync];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["open", "read", "write", "sync"][self as usize]
    }
}

/// `O_CLOEXEC` and its kin.
pub const CLOSE_ON_EXEC: i64 = 0x80000;
/// `F_DUPFD` and `F_DUPFD_CLOEXEC`.
pub const DUPLICATE: [i64; 2] = [0, 1030];
/// `AF_INET` and `AF_INET6`.
pub const INTERNET: [i64; 2] = [2, 10];

impl FileEffect {
    /// The effect of a call of this name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        match name {
            "open" | "openat" | "openat2" | "creat" => Self::Open,
            "socket" => Self::Socket,
            "accept" | "accept4" => Self::Accept,
            "dup" | "dup2" | "dup3" => Self::Dup,
            "fcntl" | "fcntl64" => Self::Fcntl,
            "pipe" | "pipe2" => Self::Pipe,
            "socketpair" => Self::Pair,
            "read" | "readv" | "pread64" | "preadv" | "preadv2" | "recv" | "recvfrom" | "recvmsg" => Self::Read,
            "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" | "send" | "sendto" | "sendmsg" => Self::Write,
            "splice" | "copy_file_range" | "sendfile" | "sendfile64" => Self::Both,
            "syncfs" | "fsync" | "fdatasync" | "sync_file_range" | "sync_file_range2" => Self::Sync,
            "sync" => Self::SyncAll,
            "close" => Self::Close,
            _ => Self::Other,
        }
    }

    /// Where operations of its kind are counted.
    #[must_use]
    pub fn category(self) -> Option<Category> {
        match self {
            Self::Open | Self::Socket | Self::Accept | Self::Dup | Self::Fcntl | Self::Pipe | Self::Pair => {
                Some(Category::Open)
            }
            Self::Read | Self::Both => Some(Category::Read),
            Self::Write => Some(Category::Write),
            Self::Sync | Self::SyncAll => Some(Category::Sync),
            Self::Close | Self::Other => None,
        }
    }
}
