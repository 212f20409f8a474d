//! What opcodes do with files, by their names in Linux.

use super::Opcode;

/// The directions of the bytes that a result counts, and the kind of the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UringEffect {
    /// Bytes come in.
    Read,
    /// Bytes go out.
    Write,
    /// Bytes come from one file and go to another.
    Both,
    /// An fd is made.
    Open,
    /// Bytes go to a disk now.
    Sync,
    /// Something else.
    Other,
}

impl UringEffect {
    pub(crate) fn of(opcode: Opcode) -> Self {
        let bytes = opcode.bytes();
        match bytes.split(|byte| *byte == 0).next().unwrap_or_default() {
            b"READ" | b"READV" | b"READ_FIXED" | b"READV_FIXED" | b"READ_MULTISHOT" | b"RECV" | b"RECVMSG"
            | b"RECV_ZC" => Self::Read,
            b"WRITE" | b"WRITEV" | b"WRITE_FIXED" | b"WRITEV_FIXED" | b"SEND" | b"SENDMSG" | b"SEND_ZC"
            | b"SENDMSG_ZC" => Self::Write,
            b"SPLICE" => Self::Both,
            b"OPENAT" | b"OPENAT2" | b"SOCKET" | b"ACCEPT" | b"PIPE" => Self::Open,
            b"FSYNC" | b"SYNC_FILE_RANGE" => Self::Sync,
            _ => Self::Other,
        }
    }
}
