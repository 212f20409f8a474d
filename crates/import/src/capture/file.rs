//! The records of a capture: of pcapng and of pcap, in either byte order.
//!
//! ```text
//! pcapng   section ─┬─ interface 0, interface 1, …     numbers begin anew in each section
//!                   ├─ packet (of interface 0) …
//!                   └─ statistics (of interface 0) …
//! pcap     one interface, packets
//! ```

use kymo_source::SourceError;

use crate::window::FileWindow;

/// The record at a place of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CaptureRecord {
    /// Interfaces are numbered anew.
    Section(SectionHead),
    CaptureInterface(CaptureInterface),
    Packet(PacketRecord),
    Statistics(InterfaceLoss),
    /// Nothing that is read.
    Other,
}

/// The facts about a capture in a section's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SectionHead {
    pub(super) hardware: Option<String>,
    pub(super) system: Option<String>,
    pub(super) application: Option<String>,
}

/// An interface of a section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CaptureInterface {
    pub(super) name: Option<String>,
    /// The kind of its packets' first head.
    pub(super) link: u16,
    /// The last byte of times: powers of 10, or of 2.
    pub(super) resolution: Option<u8>,
    /// Seconds added to times.
    pub(super) offset_s: i64,
    /// As Genode's recorder writes them: the name says the direction of packets.
    pub(super) is_of_genode: bool,
}

/// A packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PacketRecord {
    /// Its number in the section.
    pub(super) interface: u32,
    /// In units of the interface.
    pub(super) time: Option<u64>,
    /// Bytes in the file.
    pub(super) captured: u32,
    /// Bytes that it had.
    pub(super) length: u32,
    /// Of the low bits: 1 inbound, 2 outbound.
    pub(super) flags: Option<u32>,
    /// Where its bytes are in the file.
    pub(super) data: u64,
}

/// Packets that an interface received and that are not in the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InterfaceLoss {
    pub(super) interface: u32,
    pub(super) dropped: u64,
}

/// How the numbers of a file, or of a section, are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CaptureForm {
    is_big_endian: bool,
    is_pcap: bool,
}

/// A record and where it ends; or the error in it.
pub(super) type ReadRecord = Result<(CaptureRecord, u64), String>;

/// Bytes before the packets of a pcap file.
const PCAP_HEAD: u64 = 24;
/// Bytes of a packet; more are a mistake. Wireshark has the same limit.
const PACKET_MAX: u32 = 64 << 20;
/// Bytes of a block's options that are read.
const OPTIONS_MAX: usize = 64 << 10;

const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;

impl CaptureForm {
    /// The form of a file, by its first bytes.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        if head.starts_with(&SECTION.to_le_bytes()) {
            return Self::of_section(head);
        }
        let magic = head.first_chunk::<4>()?;
        let is_pcap = |bytes: [u8; 4]| matches!(u32::from_le_bytes(bytes), 0xA1B2_C3D4 | 0xA1B2_3C4D);
        let mut reversed = *magic;
        reversed.reverse();
        match (is_pcap(*magic), is_pcap(reversed)) {
            (true, _) => Some(Self { is_big_endian: false, is_pcap: true }),
            (_, true) => Some(Self { is_big_endian: true, is_pcap: true }),
            _ => None,
        }
    }

    /// That of a section of pcapng.
    fn of_section(block: &[u8]) -> Option<Self> {
        match block.get(8..12)? {
            [0x4D, 0x3C, 0x2B, 0x1A] => Some(Self { is_big_endian: false, is_pcap: false }),
            [0x1A, 0x2B, 0x3C, 0x4D] => Some(Self { is_big_endian: true, is_pcap: false }),
            _ => None,
        }
    }

    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let bytes = [bytes[at], bytes[at + 1]];
        if self.is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = bytes[at..at + 4].try_into().expect("a number has 4 bytes");
        if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// Of two numbers of 32 bits, the first of which is the higher one.
    fn high_and_low(self, bytes: &[u8], at: usize) -> u64 {
        u64::from(self.u32(bytes, at)) << 32 | u64::from(self.u32(bytes, at + 4))
    }

    fn u64(self, bytes: &[u8]) -> Option<u64> {
        let bytes = *bytes.first_chunk::<8>()?;
        Some(if self.is_big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// Where the first record of the file is; of pcap, its interface is known before.
    pub(super) fn begin(self, window: &mut FileWindow<'_>) -> Result<(u64, Option<CaptureInterface>), SourceError> {
        if !self.is_pcap {
            return Ok((0, None));
        }
        let head = window.bytes(0, PCAP_HEAD as usize)?;
        if (head.len() as u64) < PCAP_HEAD {
            return Ok((head.len() as u64, None));
        }
        let is_nanos = self.u32(head, 0) == 0xA1B2_3C4D;
        let resolution = Some(if is_nanos { 9 } else { 6 });
        // The upper bits are about checksums.
        let link = self.u32(head, 20) as u16;
        Ok((PCAP_HEAD, Some(CaptureInterface { link, resolution, ..CaptureInterface::default() })))
    }

    /// The record at a place; `None`: the file ends. A section changes the form of the records behind it.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub(super) fn record(&mut self, window: &mut FileWindow<'_>, at: u64) -> Result<Option<ReadRecord>, SourceError> {
        if window.bytes(at, 1)?.is_empty() {
            return Ok(None);
        }
        if self.is_pcap { self.pcap(window, at) } else { self.block(window, at) }.map(Some)
    }

    fn pcap(self, window: &mut FileWindow<'_>, at: u64) -> Result<ReadRecord, SourceError> {
        let head = window.bytes(at, 16)?;
        if head.len() < 16 {
            return Ok(Err(format!(
                "the file ends inside of a packet's head, {} bytes of which are there",
                head.len()
            )));
        }
        let [seconds, part, captured, length] = [0, 4, 8, 12].map(|place| self.u32(head, place));
        if captured > PACKET_MAX {
            return Ok(Err(format!("a packet of {captured} bytes cannot be")));
        }
        let (data, end) = (at + 16, at + 16 + u64::from(captured));
        if window.bytes(end - 1, 1)?.is_empty() && captured > 0 {
            return Ok(Err(format!("the file ends inside of a packet of {captured} bytes")));
        }
        // Both parts, for `ns` to put together.
        let time = Some(u64::from(seconds) << 32 | u64::from(part));
        let packet = PacketRecord { interface: 0, time, captured, length, flags: None, data };
        Ok(Ok((CaptureRecord::Packet(packet), end)))
    }

    fn block(&mut self, window: &mut FileWindow<'_>, at: u64) -> Result<ReadRecord, SourceError> {
        let head = window.bytes(at, 28)?;
        if head.len() < 12 {
            return Ok(Err(format!("the file ends inside of a block's head, {} bytes of which are there", head.len())));
        }
        if head.starts_with(&SECTION.to_le_bytes()) {
            let Some(form) = Self::of_section(head) else {
                return Ok(Err(format!("expected the byte-order magic of a section, found {:02x?}", &head[8..12])));
            };
            *self = form;
        }
        let (kind, length) = (self.u32(head, 0), self.u32(head, 4));
        if length < 12 || !length.is_multiple_of(4) {
            return Ok(Err(format!("expected the length of a block, a multiple of 4 from 12 on, found {length}")));
        }
        let end = at + u64::from(length);
        let last = window.bytes(end - 4, 4)?;
        if last.len() < 4 {
            return Ok(Err(format!("the file ends inside of a block of {length} bytes")));
        }
        let again = self.u32(last, 0);
        if again != length {
            return Ok(Err(format!("expected the length of the block, {length}, at its end too, found {again}")));
        }
        let body = (at + 8, length as usize - 12);
        let record = match kind {
            SECTION => self.section(window, body)?,
            INTERFACE => self.interface(window, body)?,
            PACKET | OLD_PACKET => self.packet(window, body, kind == OLD_PACKET)?,
            SIMPLE_PACKET => self.simple_packet(window, body)?,
            STATISTICS => self.statistics(window, body)?,
            _ => Ok(CaptureRecord::Other),
        };
        Ok(record.map(|record| (record, end)))
    }

    fn section(
        self,
        window: &mut FileWindow<'_>,
        body: (u64, usize),
    ) -> Result<Result<CaptureRecord, String>, SourceError> {
        if body.1 < 16 {
            return Ok(Err(format!("a section of {} bytes is too short", body.1)));
        }
        let mut head = SectionHead::default();
        self.options(window, body, 16, |code, value| {
            let text = || Some(String::from_utf8_lossy(value).into_owned());
            match code {
                2 => head.hardware = text(),
                3 => head.system = text(),
                4 => head.application = text(),
                _ => {}
            }
        })?;
        Ok(Ok(CaptureRecord::Section(head)))
    }

    fn interface(
        self,
        window: &mut FileWindow<'_>,
        body: (u64, usize),
    ) -> Result<Result<CaptureRecord, String>, SourceError> {
        if body.1 < 8 {
            return Ok(Err(format!("the description of an interface of {} bytes is too short", body.1)));
        }
        let link = self.u16(window.bytes(body.0, 8)?, 0);
        let mut interface = CaptureInterface { link, ..CaptureInterface::default() };
        self.options(window, body, 8, |code, value| match code {
            // Genode's recorder ends the list with an empty comment.
            1 => interface.is_of_genode |= value.is_empty(),
            2 => interface.name = Some(String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()),
            9 => interface.resolution = value.first().copied(),
            14 => interface.offset_s = self.u64(value).unwrap_or(0).cast_signed(),
            _ => {}
        })?;
        Ok(Ok(CaptureRecord::CaptureInterface(interface)))
    }

    fn packet(
        self,
        window: &mut FileWindow<'_>,
        (at, size): (u64, usize),
        is_old: bool,
    ) -> Result<Result<CaptureRecord, String>, SourceError> {
        if size < 20 {
            return Ok(Err(format!("a packet's block of {size} bytes is too short")));
        }
        let head = window.bytes(at, 20)?;
        let interface = if is_old { u32::from(self.u16(head, 0)) } else { self.u32(head, 0) };
        let (time, captured, length) = (self.high_and_low(head, 4), self.u32(head, 12), self.u32(head, 16));
        if captured as usize > size - 20 {
            return Ok(Err(format!("a packet of {captured} bytes cannot be in a block of {size}")));
        }
        let mut packet = PacketRecord { interface, time: Some(time), captured, length, flags: None, data: at + 20 };
        let padded = (captured as usize).next_multiple_of(4);
        if size - 20 > padded {
            self.options(window, (at, size), 20 + padded, |code, value| {
                if code == 2 && value.len() >= 4 {
                    packet.flags = Some(self.u32(value, 0));
                }
            })?;
        }
        Ok(Ok(CaptureRecord::Packet(packet)))
    }

    fn simple_packet(
        self,
        window: &mut FileWindow<'_>,
        (at, size): (u64, usize),
    ) -> Result<Result<CaptureRecord, String>, SourceError> {
        if size < 4 {
            return Ok(Err(format!("a packet's block of {size} bytes is too short")));
        }
        let length = self.u32(window.bytes(at, 4)?, 0);
        let captured = length.min((size - 4) as u32);
        let packet = PacketRecord { captured, length, data: at + 4, ..PacketRecord::default() };
        Ok(Ok(CaptureRecord::Packet(packet)))
    }

    fn statistics(
        self,
        window: &mut FileWindow<'_>,
        body: (u64, usize),
    ) -> Result<Result<CaptureRecord, String>, SourceError> {
        if body.1 < 12 {
            return Ok(Err(format!("the statistics of an interface of {} bytes are too short", body.1)));
        }
        let interface = self.u32(window.bytes(body.0, 4)?, 0);
        let mut dropped = 0_u64;
        self.options(window, body, 12, |code, value| {
            if let (5 | 7, Some(count)) = (code, self.u64(value)) {
                dropped = dropped.saturating_add(count);
            }
        })?;
        Ok(Ok(CaptureRecord::Statistics(InterfaceLoss { interface, dropped })))
    }

    /// The options of a block, from byte `from` of its body on. They may end without an end mark.
    fn options(
        self,
        window: &mut FileWindow<'_>,
        (at, size): (u64, usize),
        from: usize,
        mut option: impl FnMut(u16, &[u8]),
    ) -> Result<(), SourceError> {
        let count = size.saturating_sub(from).min(OPTIONS_MAX);
        let mut rest = window.bytes(at + from as u64, count)?;
        while rest.len() >= 4 {
            let (code, length) = (self.u16(rest, 0), self.u16(rest, 2) as usize);
            let Some(value) = rest.get(4..4 + length).filter(|_| code != 0) else { break };
            option(code, value);
            rest = rest.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(())
    }

    /// The next section behind a place; `None`: there is none.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub(super) fn next_section(self, window: &mut FileWindow<'_>, mut at: u64) -> Result<Option<u64>, SourceError> {
        if self.is_pcap {
            return Ok(None);
        }
        loop {
            let bytes = window.bytes(at, 1 << 16)?;
            let magic = SECTION.to_le_bytes();
            let mut starts = memchr::memmem::find_iter(bytes, &magic);
            if let Some(start) = starts.find(|start| Self::of_section(&bytes[*start..]).is_some()) {
                return Ok(Some(at + start as u64));
            }
            if bytes.len() < 1 << 16 {
                return Ok(None);
            }
            // One may begin in the last bytes.
            at += (1 << 16) - 11;
        }
    }
}

impl CaptureInterface {
    /// A time in nanoseconds since the Unix epoch.
    pub(super) fn ns(&self, form: CaptureForm, time: u64) -> u64 {
        let resolution = self.resolution.unwrap_or(6);
        if form.is_pcap {
            let (seconds, part) = (time >> 32, time & u64::from(u32::MAX));
            return seconds * 1_000_000_000 + part * if resolution == 9 { 1 } else { 1000 };
        }
        let time = u128::from(time);
        let ns = match resolution {
            binary @ 0x80.. => (time * 1_000_000_000) >> (binary & 0x7F),
            decimal @ 0..=9 => time * 10_u128.pow(9 - u32::from(decimal)),
            // 64 bits of anything finer than that are no nanosecond.
            decimal @ 10..=29 => time / 10_u128.pow(u32::from(decimal) - 9),
            _ => 0,
        };
        let ns = i128::try_from(ns).unwrap_or(i128::MAX).saturating_add(i128::from(self.offset_s) * 1_000_000_000);
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}
