//! The header in front of each piece of packetized metadata.
//!
//! ```text
//! 0      4           20        24            28           32  33  34  35  36  37
//! magic  uuid        checksum  content bits  packet bits  c   e   s   maj min  text ...
//! ```
//!
//! `c`, `e` and `s` name compression, encryption and checksum; only 0 (none) is in use. Cutting a
//! stream into such packets, and refusing packets that contradict themselves, is the duty of
//! `format`.

use kymo_units::{ByteOrder, Uuid};

use crate::magic;

/// Bytes of the header.
pub const HEADER_LENGTH: usize = 37;

/// A writer's header in front of a piece of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Of the header's own integers.
    pub byte_order: ByteOrder,
    /// The trace's.
    pub uuid: Uuid,
    /// The header and the text, in bits.
    pub content_bits: u32,
    /// The content and the padding behind it, in bits.
    pub packet_bits: u32,
    /// Of the format: 1 or 2.
    pub major: u8,
    /// Of the format: 8 or 0.
    pub minor: u8,
}

impl Header {
    /// The bytes of the header.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER_LENGTH] {
        let number = |value: u32| match self.byte_order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        };
        let mut bytes = [0; HEADER_LENGTH];
        bytes[..4].copy_from_slice(&number(magic::METADATA_PACKET));
        bytes[4..20].copy_from_slice(&self.uuid.0);
        bytes[24..28].copy_from_slice(&number(self.content_bits));
        bytes[28..32].copy_from_slice(&number(self.packet_bits));
        bytes[35] = self.major;
        bytes[36] = self.minor;
        bytes
    }
}
