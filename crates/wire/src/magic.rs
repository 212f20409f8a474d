//! Numbers that identify a run of bytes.

/// The first field of a packet that has a magic number.
pub const PACKET: u32 = 0xC1FC_1FC1;
/// The first field of a metadata packet; its byte order is that of the header.
pub const METADATA_PACKET: u32 = 0x75D1_1D57;
/// The first field of an index file, big-endian.
pub const INDEX: u32 = 0xC1F1_DCC1;
/// The beginning of CTF 1.8 metadata.
pub const TSDL_SIGNATURE: &str = "/* CTF 1.8";
/// Separates the fragments of CTF 2 metadata (RFC 7464).
pub const RECORD_SEPARATOR: u8 = 0x1E;
