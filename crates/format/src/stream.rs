//! The bytes of a metadata stream to text: plain, or in packets of either byte order.
//!
//! ```text
//! packet  magic uuid checksum content_size packet_size compression encryption checksum_scheme major minor │ text │ padding
//!         └──────────────────────── 37 bytes, in the byte order of the magic number ───────────────────────┘
//! ```

use kymo_units::Uuid;

/// The text of a metadata stream.
#[derive(Debug, Default)]
pub(crate) struct StreamText {
    pub(crate) text: String,
    pub(crate) uuid: Option<Uuid>,
    pub(crate) problems: Vec<MetadataStreamProblem>,
    pub(crate) lossy: bool,
}

/// The errors of a metadata stream.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MetadataStreamProblem {
    /// There is nothing.
    #[error("the metadata is empty")]
    Empty,
    /// A packet is shorter than its header.
    #[error("at byte {at}: the metadata packet's header needs 37 bytes; {left} are left")]
    Header {
        /// First byte of the packet.
        at: usize,
        /// Bytes from there on.
        left: usize,
    },
    /// A packet does not begin with the magic number.
    #[error("at byte {at}: found {found:#010x}, expected the magic number 0x75d11d57")]
    Magic {
        /// First byte of the packet.
        at: usize,
        /// The value found.
        found: u32,
    },
    /// Its sizes contradict each other or the file.
    #[error(
        "at byte {at}: the metadata packet says it has {packet} bits, {content} of them content; {left} bits are left \
         in the file, and 296 are its header"
    )]
    Sizes {
        /// First byte of the packet.
        at: usize,
        /// Bits of content, from the header.
        content: u32,
        /// Bits of the packet, from the header.
        packet: u32,
        /// Bits in the file from there on.
        left: u64,
    },
    /// A scheme that this reader does not undo.
    #[error("at byte {at}: the metadata packet has {what} scheme {found}; only 0, none, is defined")]
    Scheme {
        /// First byte of the packet.
        at: usize,
        /// Which.
        what: &'static str,
        /// Its number.
        found: u8,
    },
    /// Another version.
    #[error("at byte {at}: the metadata packet is of version {major}.{minor}; this reader knows 1.8 and 2.0")]
    Version {
        /// First byte of the packet.
        at: usize,
        /// Major.
        major: u8,
        /// Minor.
        minor: u8,
    },
    /// Packets of different traces.
    #[error("at byte {at}: the metadata packet has the UUID {found}, the one before {expected}")]
    Uuid {
        /// First byte of the packet.
        at: usize,
        /// Its UUID.
        found: Uuid,
        /// That of the first.
        expected: Uuid,
    },
    /// Not UTF-8.
    #[error("the metadata is not UTF-8")]
    Encoding,
}

impl MetadataStreamProblem {
    /// Help for the author, where the message does not have it.
    pub(crate) fn help(&self) -> Option<&'static str> {
        match self {
            Self::Empty => Some("the recording may have ended before its metadata was written; copy the trace again"),
            Self::Header { .. } | Self::Sizes { .. } | Self::Magic { .. } => {
                Some("the file is cut or damaged behind the place that was read last; copy it again")
            }
            Self::Scheme { .. } => Some("decompress or decrypt the metadata with the tool that wrote it"),
            _ => None,
        }
    }
}

const MAGIC: u32 = 0x75d1_1d57;
const HEADER: usize = 37;

/// The text of a metadata stream, and the errors of its packets.
pub(crate) fn read(bytes: &[u8]) -> StreamText {
    let mut text = StreamText::default();
    if bytes.is_empty() {
        text.problems.push(MetadataStreamProblem::Empty);
        return text;
    }
    let packets = matches!(bytes.first_chunk::<4>(), Some(first)
        if u32::from_le_bytes(*first) == MAGIC || u32::from_be_bytes(*first) == MAGIC);
    let mut content = Vec::with_capacity(if packets { bytes.len() } else { 0 });
    if packets {
        if let Err(problem) = unpack(bytes, &mut content, &mut text.uuid) {
            text.problems.push(problem);
        }
    } else {
        content = bytes.to_vec();
    }
    text.text = String::from_utf8(content).unwrap_or_else(|error| {
        text.lossy = true;
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    text
}

fn unpack(bytes: &[u8], content: &mut Vec<u8>, uuid: &mut Option<Uuid>) -> Result<(), MetadataStreamProblem> {
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let header: &[u8; HEADER] = rest.first_chunk().ok_or(MetadataStreamProblem::Header { at, left: rest.len() })?;
        let sizes = packet(header, at, rest.len(), uuid)?;
        content.extend_from_slice(&rest[HEADER..sizes.0]);
        at += sizes.1;
    }
    Ok(())
}

/// (bytes up to the end of the content, bytes of the packet).
fn packet(
    header: &[u8; HEADER],
    at: usize,
    left: usize,
    uuid: &mut Option<Uuid>,
) -> Result<(usize, usize), MetadataStreamProblem> {
    let word = |from: usize| [header[from], header[from + 1], header[from + 2], header[from + 3]];
    let little = u32::from_le_bytes(word(0)) == MAGIC;
    let number = |from: usize| {
        if little { u32::from_le_bytes(word(from)) } else { u32::from_be_bytes(word(from)) }
    };
    if number(0) != MAGIC {
        return Err(MetadataStreamProblem::Magic { at, found: u32::from_le_bytes(word(0)) });
    }
    let found = Uuid(header[4..20].try_into().expect("sixteen bytes"));
    let expected = *uuid.get_or_insert(found);
    if found != expected {
        return Err(MetadataStreamProblem::Uuid { at, found, expected });
    }
    for (what, offset) in [("compression", 32), ("encryption", 33), ("checksum", 34)] {
        if header[offset] != 0 {
            return Err(MetadataStreamProblem::Scheme { at, what, found: header[offset] });
        }
    }
    let (major, minor) = (header[35], header[36]);
    if !matches!((major, minor), (1, 8) | (2, 0)) {
        return Err(MetadataStreamProblem::Version { at, major, minor });
    }
    let (content, total) = (number(24), number(28));
    let (content_bytes, total_bytes) = (content as usize / 8, total as usize / 8);
    let whole = content % 8 == 0 && total % 8 == 0;
    if !whole || content_bytes < HEADER || content_bytes > total_bytes || total_bytes > left {
        return Err(MetadataStreamProblem::Sizes { at, content, packet: total, left: left as u64 * 8 });
    }
    Ok((content_bytes, total_bytes))
}
