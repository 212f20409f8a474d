//! The heads of a packet: which class of events it is of, and where its heads are.
//!
//! A class has the fields of all heads that are whole.

use etherparse::{EtherType, LaxLinkExtSlice, LaxNetSlice, LaxSlicedPacket, LinkSlice, TransportSlice};

/// Classes of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadClass {
    /// Nothing of it is understood.
    Other,
    /// Its link's head alone.
    Ethernet,
    /// Up to a head of ARP.
    Arp,
    /// Up to a head of IP.
    Ip(IpVersion),
    /// Up to a head of ICMP.
    Icmp(IpVersion),
    /// Up to a head of UDP.
    Udp(IpVersion),
    /// Up to a head of TCP.
    Tcp(IpVersion),
}

/// The version of a head of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpVersion {
    /// With addresses of 4 bytes.
    V4,
    /// With addresses of 16 bytes.
    V6,
}

/// All classes, by their numbers.
pub const CLASSES: [HeadClass; 11] = [
    HeadClass::Other,
    HeadClass::Ethernet,
    HeadClass::Arp,
    HeadClass::Ip(IpVersion::V4),
    HeadClass::Ip(IpVersion::V6),
    HeadClass::Icmp(IpVersion::V4),
    HeadClass::Icmp(IpVersion::V6),
    HeadClass::Udp(IpVersion::V4),
    HeadClass::Udp(IpVersion::V6),
    HeadClass::Tcp(IpVersion::V4),
    HeadClass::Tcp(IpVersion::V6),
];

/// Bytes of a packet in which its heads are.
pub const HEADS_MAX: usize = 512;

/// Which way a packet went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketDirection {
    /// Nothing says it.
    Unknown = 0,
    /// To this machine.
    Inbound = 1,
    /// From this machine.
    Outbound = 2,
}

impl HeadClass {
    /// The name of its events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Other => "packet:other",
            Self::Ethernet => "packet:ethernet",
            Self::Arp => "packet:arp",
            Self::Ip(_) => "packet:ip",
            Self::Icmp(_) => "packet:icmp",
            Self::Udp(_) => "packet:udp",
            Self::Tcp(_) => "packet:tcp",
        }
    }

    /// The version of its head of IP.
    #[must_use]
    pub fn version(self) -> Option<IpVersion> {
        match self {
            Self::Ip(version) | Self::Icmp(version) | Self::Udp(version) | Self::Tcp(version) => Some(version),
            _ => None,
        }
    }
}

/// A packet's heads.
#[derive(Debug)]
pub struct PacketHeads<'d> {
    /// The class of its event.
    pub class: HeadClass,
    /// As the link's head says it.
    pub direction: PacketDirection,
    /// The sender's address in the link's head.
    pub source: Option<[u8; 6]>,
    /// The receiver's address there.
    pub destination: Option<[u8; 6]>,
    /// The protocol behind the link's head, and behind tags of VLANs; 0: the link does not say it.
    pub ether_type: u16,
    /// The innermost VLAN.
    pub vlan: Option<u16>,
    /// The head behind that of the link.
    pub net: Option<LaxNetSlice<'d>>,
    /// The head behind that of IP.
    pub transport: Option<TransportSlice<'d>>,
}

impl<'d> PacketHeads<'d> {
    /// The heads in a packet's first bytes, which begin with a head of that kind (a `LINKTYPE_` number of captures).
    #[must_use]
    #[inline]
    pub fn of(link: u16, data: &'d [u8]) -> Self {
        let mut heads = Self {
            class: HeadClass::Other,
            direction: PacketDirection::Unknown,
            source: None,
            destination: None,
            ether_type: 0,
            vlan: None,
            net: None,
            transport: None,
        };
        let parsed = match link {
            1 => LaxSlicedPacket::from_ethernet(data).ok(),
            0 | 108 => data.get(4..).and_then(|ip| LaxSlicedPacket::from_ip(ip).ok()),
            12 | 14 | 101 | 228 | 229 => LaxSlicedPacket::from_ip(data).ok(),
            113 => heads.cooked(data, 16, 0, 14, 6),
            276 => heads.cooked(data, 20, 10, 0, 12),
            _ => None,
        };
        if let Some(parsed) = parsed {
            heads.take(parsed);
        }
        heads
    }

    /// Behind a head of Linux' cooked captures: of `size` bytes, with the packet's kind, its protocol and the sender's
    /// address at these places.
    fn cooked(
        &mut self,
        data: &'d [u8],
        size: usize,
        kind: usize,
        protocol: usize,
        sender: usize,
    ) -> Option<LaxSlicedPacket<'d>> {
        let (head, rest) = data.split_at_checked(size)?;
        // In the first version, the kind has two bytes, and the other byte is zero.
        let kind = if size == 16 { head[kind + 1] } else { head[kind] };
        self.direction = if kind == 4 { PacketDirection::Outbound } else { PacketDirection::Inbound };
        self.source = head[sender..].first_chunk::<6>().copied();
        self.ether_type = u16::from_be_bytes([head[protocol], head[protocol + 1]]);
        Some(LaxSlicedPacket::from_ether_type(EtherType(self.ether_type), rest))
    }

    fn take(&mut self, parsed: LaxSlicedPacket<'d>) {
        if let Some(LinkSlice::Ethernet2(ethernet)) = &parsed.link {
            (self.source, self.destination) = (Some(ethernet.source()), Some(ethernet.destination()));
            self.ether_type = ethernet.ether_type().0;
        }
        for extension in &parsed.link_exts {
            if let LaxLinkExtSlice::Vlan(vlan) = extension {
                // The innermost one is that of the packet's host.
                self.vlan = Some(vlan.vlan_identifier().value());
                self.ether_type = vlan.ether_type().0;
            }
        }
        let version = match &parsed.net {
            Some(LaxNetSlice::Ipv4(_)) => Some(IpVersion::V4),
            Some(LaxNetSlice::Ipv6(_)) => Some(IpVersion::V6),
            _ => None,
        };
        self.class = match (version, &parsed.net, &parsed.transport) {
            (Some(version), _, Some(TransportSlice::Tcp(_))) => HeadClass::Tcp(version),
            (Some(version), _, Some(TransportSlice::Udp(_))) => HeadClass::Udp(version),
            (Some(version), _, Some(TransportSlice::Icmpv4(_) | TransportSlice::Icmpv6(_))) => HeadClass::Icmp(version),
            (Some(version), ..) => HeadClass::Ip(version),
            (None, Some(LaxNetSlice::Arp(_)), _) => HeadClass::Arp,
            _ if self.source.is_some() => HeadClass::Ethernet,
            _ => HeadClass::Other,
        };
        (self.net, self.transport) = (parsed.net, parsed.transport);
    }
}
