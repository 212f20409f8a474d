//! Captures in pcapng: one section, in which interfaces keep their numbers.
//!
//! ```text
//! section ── interface 0 ── packet (of 0) ── interface 1 ── packet (of 1) ── … ── statistics (of 0) ── statistics (of 1)
//!            before its first packet: name, link, nanoseconds      the way that it went
//! ```
//!
//! Whatever is written up to any block is a capture that can be read.

use std::collections::HashMap;
use std::io::{self, Write};

use crate::heads::PacketDirection;

const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;

const END: u16 = 0;
/// Of a section.
const APPLICATION: u16 = 4;
/// Of an interface.
const NAME: u16 = 2;
const RESOLUTION: u16 = 9;
/// Of a packet.
const FLAGS: u16 = 2;
/// Of statistics.
const RECEIVED: u16 = 4;
const DROPPED: u16 = 7;

/// Bytes of a packet that readers take, at most.
pub const PACKET_BYTES_MAX: usize = 256 << 10;

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct PcapngPacket<'a> {
    /// The name of its interface.
    pub interface: &'a str,
    /// The kind of its first head, a `LINKTYPE_` number of captures.
    pub link: u16,
    /// The way that it went.
    pub direction: PacketDirection,
    /// In nanoseconds since 1970.
    pub time: u64,
    /// Its length, of which `data` may be the beginning.
    pub length: u32,
    /// Its bytes.
    pub data: &'a [u8],
}

/// Counts of an interface, from the beginning of the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounts {
    /// Packets that were offered, those that were dropped included; `None`: not known.
    pub received: Option<u64>,
    /// Packets that the system dropped as there was no room for them.
    pub dropped: u64,
}

/// Writes a capture.
#[derive(Debug)]
pub struct PcapngWriter<W: Write> {
    out: W,
    snap: u32,
    /// Numbers by name and link.
    interfaces: HashMap<(String, u16), u32>,
    block: Vec<u8>,
    /// The time of the last packet.
    latest: u64,
}

impl<W: Write> PcapngWriter<W> {
    /// Begins a capture with at most `snap` bytes of each packet; 0: all.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    ///
    /// ```
    /// use kymo_packet::PacketDirection;
    /// use kymo_packet::pcapng::{PcapngPacket, PcapngWriter};
    ///
    /// let mut capture = PcapngWriter::begin(Vec::new(), "example", 0)?;
    /// let direction = PacketDirection::Inbound;
    /// capture.packet(&PcapngPacket { interface: "eth0", link: 1, direction, time: 5, length: 3, data: &[1, 2, 3] })?;
    /// let bytes = capture.finish()?;
    /// assert_eq!(bytes[..4], [0x0A, 0x0D, 0x0D, 0x0A]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn begin(out: W, application: &str, snap: u32) -> io::Result<Self> {
        let mut writer = Self { out, snap, interfaces: HashMap::new(), block: Vec::with_capacity(1 << 11), latest: 0 };
        writer.open(SECTION);
        writer.block.extend(0x1A2B_3C4D_u32.to_le_bytes());
        writer.block.extend([1, 0, 0, 0]);
        // The section's length is not known.
        writer.block.extend(u64::MAX.to_le_bytes());
        writer.option(APPLICATION, application.as_bytes());
        writer.option(END, &[]);
        writer.close()?;
        Ok(writer)
    }

    /// Writes a packet.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub fn packet(&mut self, packet: &PcapngPacket<'_>) -> io::Result<()> {
        let number = self.interface(packet.interface, packet.link)?;
        self.latest = self.latest.max(packet.time);
        let data = &packet.data[..packet.data.len().min(PACKET_BYTES_MAX)];
        self.open(PACKET);
        self.block.extend(number.to_le_bytes());
        self.time(packet.time);
        self.block.extend((data.len() as u32).to_le_bytes());
        self.block.extend(packet.length.max(data.len() as u32).to_le_bytes());
        self.block.extend(data);
        self.pad();
        if packet.direction != PacketDirection::Unknown {
            self.option(FLAGS, &(packet.direction as u32).to_le_bytes());
            self.option(END, &[]);
        }
        self.close()
    }

    /// Writes how many packets of an interface were dropped up to the last packet. An interface without packets is
    /// taken for one of Ethernet.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub fn counts(&mut self, interface: &str, counts: InterfaceCounts) -> io::Result<()> {
        let known = self.interfaces.iter().filter(|((name, _), _)| name == interface).map(|(_, number)| *number).min();
        let number = match known {
            Some(number) => number,
            None => self.interface(interface, 1)?,
        };
        self.open(STATISTICS);
        self.block.extend(number.to_le_bytes());
        self.time(self.latest);
        if let Some(received) = counts.received {
            self.option(RECEIVED, &received.to_le_bytes());
        }
        self.option(DROPPED, &counts.dropped.to_le_bytes());
        self.option(END, &[]);
        self.close()
    }

    /// Hands on what is written so far.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Ends the capture.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// The number of an interface, which is described first if it is new.
    fn interface(&mut self, name: &str, link: u16) -> io::Result<u32> {
        // One text is made for each packet here; readers and the disk cost more.
        let next = self.interfaces.len() as u32;
        let number = *self.interfaces.entry((name.to_owned(), link)).or_insert(next);
        if number == next {
            self.open(INTERFACE);
            self.block.extend(link.to_le_bytes());
            self.block.extend([0, 0]);
            self.block.extend(self.snap.to_le_bytes());
            self.option(NAME, name.as_bytes());
            // Times are in units of 10^-9 s.
            self.option(RESOLUTION, &[9]);
            self.option(END, &[]);
            self.close()?;
        }
        Ok(number)
    }

    fn open(&mut self, kind: u32) {
        self.block.clear();
        self.block.extend(kind.to_le_bytes());
        // Its length, once that is known.
        self.block.extend([0; 4]);
    }

    fn close(&mut self) -> io::Result<()> {
        let length = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[4..8].copy_from_slice(&length);
        self.block.extend(length);
        self.out.write_all(&self.block)
    }

    fn time(&mut self, time: u64) {
        self.block.extend(((time >> 32) as u32).to_le_bytes());
        self.block.extend((time as u32).to_le_bytes());
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.block.extend(value);
        self.pad();
    }

    fn pad(&mut self) {
        let length = self.block.len().next_multiple_of(4);
        self.block.resize(length, 0);
    }
}
