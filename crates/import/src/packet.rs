//! Packets of CTF, little-endian and without gaps.

/// Bytes of a packet, one behind the other.
#[derive(Debug)]
pub(crate) struct PacketBuilder {
    pub(crate) bytes: Vec<u8>,
}

impl PacketBuilder {
    /// With room for a head and for events of so many bytes.
    pub(crate) fn new(head: u64, events: u64) -> Self {
        Self { bytes: Vec::with_capacity((head + events) as usize) }
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}
