//! The bytes of a metadata stream to text: plain, or in packets of either byte order.
//!
//! ```text
//! packet  magic uuid checksum content_size packet_size compression encryption checksum_scheme major minor │ text │ padding
//!         └──────────────────────── 37 bytes, in the byte order of the magic number ───────────────────────┘
//! ```
//!
//! Packets of CTF 2 (CTF2-PMETA-1.0) have version 2.0, and three bytes and the size of their header
//! in bits behind it: 44 bytes.

use kymo_units::Uuid;
use kymo_wire::magic;

/// The text of a metadata stream.
#[derive(Debug, Default)]
pub(crate) struct StreamText {
    pub(crate) text: String,
    pub(crate) uuid: Option<Uuid>,
    /// Without them the text can be parsed.
    pub(crate) problems: Vec<MetadataStreamProblem>,
    pub(crate) doubts: Vec<MetadataStreamProblem>,
}

/// The errors of a metadata stream.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MetadataStreamProblem {
    /// There is nothing.
    #[error("the metadata is empty")]
    Empty,
    /// A packet is shorter than its header.
    #[error("at byte {at}: the metadata packet's header needs {needed} bytes; {left} are left")]
    Header {
        /// First byte of the packet.
        at: usize,
        /// Bytes of a header.
        needed: usize,
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
         in the file, and {header} are its header"
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
        /// Bits of the header.
        header: u64,
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
    /// A mark that some editors write before text.
    #[error("the metadata begins with a byte order mark")]
    ByteOrderMark,
    /// Text of another encoding.
    #[error("the metadata is text in {0}, where UTF-8 is expected")]
    Wide(&'static str),
    /// A packet of events.
    #[error(
        "the file begins with the magic number of a packet of events, {0:#010x}: it is a data stream, not metadata"
    )]
    DataStream(u32),
    /// No text at all.
    #[error("the metadata is not text: the byte at {at} is {found:#04x}, and so are {others} of the first {of}")]
    Binary {
        /// The first such byte.
        at: usize,
        /// Its value.
        found: u8,
        /// How many bytes that no text has follow.
        others: usize,
        /// Bytes that were looked at.
        of: usize,
    },
}

impl MetadataStreamProblem {
    /// Help for the author, where the message does not have it.
    pub(crate) fn help(&self) -> Option<&'static str> {
        match self {
            Self::Empty => Some("the recording may have ended before its metadata was written; copy the trace again"),
            Self::Header { .. } | Self::Sizes { .. } | Self::Magic { .. } => {
                Some("the file is cut or damaged behind the place that was read last; copy it again")
            }
            Self::ByteOrderMark => Some("save the file as UTF-8 without a byte order mark"),
            Self::Wide(_) => Some("convert it: iconv -f UTF-16 -t UTF-8"),
            Self::DataStream(_) => Some("the metadata of the trace may be in another file of its folder"),
            Self::Binary { .. } => {
                Some("another file may have been copied over it, or it is compressed or encrypted; copy it again")
            }
            Self::Scheme { .. } => Some("decompress or decrypt the metadata with the tool that wrote it"),
            _ => None,
        }
    }
}

const MAGIC: u32 = magic::METADATA_PACKET;
/// Bytes of a header of CTF 1.8.
const HEADER: usize = 37;
/// Bytes of a header of CTF 2, at least: it says itself how many.
const HEADER_2: usize = 44;
const BYTE_ORDER_MARK: &str = "\u{feff}";
/// Bytes that are looked at to find out whether a file is text.
const PROBED: usize = 4096;
/// Control characters in a file that is not text, at least.
const NO_TEXT_LEAST: usize = 8;

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
    } else if let Some(problem) = no_text(bytes) {
        text.problems.push(problem);
        return text;
    } else {
        content = bytes.to_vec();
    }
    text.text = String::from_utf8(content).unwrap_or_else(|error| {
        text.doubts.push(MetadataStreamProblem::Encoding);
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    if let Some(behind) = text.text.strip_prefix(BYTE_ORDER_MARK) {
        text.doubts.push(MetadataStreamProblem::ByteOrderMark);
        text.text = behind.to_owned();
    }
    text
}

/// The UUID of the first metadata packet, if there is one. Where there is no UUID, it is zeros.
pub(crate) fn packet_uuid(bytes: &[u8]) -> Option<Uuid> {
    let first = bytes.first_chunk::<4>()?;
    let is_packet = [MAGIC.to_le_bytes(), MAGIC.to_be_bytes()].contains(first);
    let uuid = Uuid(bytes.get(4..20).filter(|_| is_packet)?.try_into().ok()?);
    (uuid != Uuid::NIL).then_some(uuid)
}

/// What a file is that cannot be metadata: a parser would find fault with each of its bytes.
fn no_text(bytes: &[u8]) -> Option<MetadataStreamProblem> {
    let first = bytes.first_chunk::<4>().map(|first| [u32::from_le_bytes(*first), u32::from_be_bytes(*first)]);
    if first.is_some_and(|either| either.contains(&magic::PACKET)) {
        return Some(MetadataStreamProblem::DataStream(magic::PACKET));
    }
    match bytes {
        [0xff, 0xfe, 0, 0, ..] => return Some(MetadataStreamProblem::Wide("UTF-32 (little-endian)")),
        [0, 0, 0xfe, 0xff, ..] => return Some(MetadataStreamProblem::Wide("UTF-32 (big-endian)")),
        [0xff, 0xfe, ..] | [b'/' | b'{' | 0x1e, 0, ..] => {
            return Some(MetadataStreamProblem::Wide("UTF-16 (little-endian)"));
        }
        [0xfe, 0xff, ..] | [0, b'/' | b'{' | 0x1e, ..] => {
            return Some(MetadataStreamProblem::Wide("UTF-16 (big-endian)"));
        }
        _ => {}
    }
    let probed = &bytes[..bytes.len().min(PROBED)];
    // Writers pad text with NUL; a record separator precedes each fragment of CTF 2.
    let is_no_text =
        |byte: &u8| byte.is_ascii_control() && !matches!(byte, 0 | b'\t' | b'\n' | 0x0b | 0x0c | b'\r' | 0x1e);
    let count = probed.iter().filter(|byte| is_no_text(byte)).count();
    let at = probed.iter().position(is_no_text)?;
    // A text that is damaged in places is still worth a parser's messages.
    (count >= NO_TEXT_LEAST && count * 40 >= probed.len()).then_some(MetadataStreamProblem::Binary {
        at,
        found: probed[at],
        others: count - 1,
        of: probed.len(),
    })
}

fn unpack(bytes: &[u8], content: &mut Vec<u8>, uuid: &mut Option<Uuid>) -> Result<(), MetadataStreamProblem> {
    let mut at = 0;
    while at < bytes.len() {
        let packet = packet(&bytes[at..], at, uuid)?;
        content.extend_from_slice(&bytes[at + packet.header..at + packet.content]);
        at += packet.total;
    }
    Ok(())
}

/// Sizes of a packet in bytes: its text lies between its header and the end of its content.
struct MetadataPacket {
    header: usize,
    content: usize,
    total: usize,
}

/// Reads the header of the packet that `rest` begins with, at byte `at` of the file.
fn packet(rest: &[u8], at: usize, uuid: &mut Option<Uuid>) -> Result<MetadataPacket, MetadataStreamProblem> {
    let too_short = |needed| MetadataStreamProblem::Header { at, needed, left: rest.len() };
    let header: &[u8; HEADER] = rest.first_chunk().ok_or_else(|| too_short(HEADER))?;
    let little = header[..4] == MAGIC.to_le_bytes();
    let number = |from: usize| {
        let word = rest[from..from + 4].try_into().expect("four bytes");
        if little { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) }
    };
    if number(0) != MAGIC {
        let found = u32::from_le_bytes(header[..4].try_into().expect("four bytes"));
        return Err(MetadataStreamProblem::Magic { at, found });
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
    let header_bits = match (header[35], header[36]) {
        (1, 8) => HEADER as u32 * 8,
        (2, 0) if rest.len() >= HEADER_2 => number(HEADER_2 - 4),
        (2, 0) => return Err(too_short(HEADER_2)),
        (major, minor) => return Err(MetadataStreamProblem::Version { at, major, minor }),
    };
    let least = if header[35] == 2 { HEADER_2 } else { HEADER };
    let (content, total) = (number(24), number(28));
    let [header_bytes, content_bytes, total_bytes] = [header_bits, content, total].map(|bits| bits as usize / 8);
    let whole = [header_bits, content, total].iter().all(|bits| bits % 8 == 0);
    let ordered = least <= header_bytes && header_bytes <= content_bytes && content_bytes <= total_bytes;
    if !whole || !ordered || total_bytes > rest.len() {
        let (left, header) = (rest.len() as u64 * 8, u64::from(header_bits));
        return Err(MetadataStreamProblem::Sizes { at, content, packet: total, left, header });
    }
    Ok(MetadataPacket { header: header_bytes, content: content_bytes, total: total_bytes })
}
