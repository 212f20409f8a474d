//! The fields of packets, by the names that they have in captures that are opened as traces, and their values.

use etherparse::{LaxNetSlice, TcpSlice, TransportSlice};
use kymo_filter::{FieldResolver, FilterField, NamePath, NameStep, PathMeaning, nearest};
use kymo_ir::predicate::{Datum, InputKind};
use kymo_ir::style::Encoding;

use crate::addresses::AddressForm;
use crate::heads::{HEADS_MAX, PacketDirection, PacketHeads};

/// A packet with the facts that its bytes do not have.
#[derive(Clone, Copy, Debug)]
pub struct PacketFacts<'a> {
    /// The name of its interface.
    pub interface: &'a str,
    /// The way that it went.
    pub direction: PacketDirection,
    /// The kind of its first head, a `LINKTYPE_` number of captures.
    pub link: u16,
    /// Its length, of which `data` may be the beginning.
    pub length: u32,
    /// Its bytes.
    pub data: &'a [u8],
}

macro_rules! fields {
    ($($field:ident $path:literal $kind:expr, $base:literal $([$($label:literal = $value:literal),+])?;)+) => {
        /// A field of a packet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "its path says it")]
        pub enum HeadField {
            $($field),+
        }

        impl HeadField {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$field),+];

            /// As people write it.
            #[must_use]
            pub fn path(self) -> &'static str {
                match self {
                    $(Self::$field => $path),+
                }
            }

            /// Its type.
            #[must_use]
            pub fn kind(self) -> InputKind {
                match self {
                    $(Self::$field => $kind),+
                }
            }

            fn base(self) -> u8 {
                match self {
                    $(Self::$field => $base),+
                }
            }

            fn labels(self) -> &'static [(&'static str, i128)] {
                match self {
                    $(Self::$field => &[$($(($label, $value)),+)?]),+
                }
            }
        }
    };
}

const TEXT: InputKind = InputKind::Text(Encoding::Utf8);

const fn unsigned(bits: u8) -> InputKind {
    InputKind::Integer { signed: false, bits }
}

fields! {
    Class "event.name" TEXT, 10;
    Interface "packet.interface" TEXT, 10;
    Direction "direction" unsigned(8), 10 ["unknown" = 0, "inbound" = 1, "outbound" = 2];
    Captured "captured" unsigned(32), 10;
    Length "length" unsigned(32), 10;
    EthSource "eth.source" TEXT, 10;
    EthDestination "eth.destination" TEXT, 10;
    EthType "eth.type" unsigned(16), 16 ["IPv4" = 0x800, "ARP" = 0x806, "VLAN" = 0x8100, "IPv6" = 0x86DD, "LLDP" = 0x88CC];
    EthVlan "eth.vlan" InputKind::Integer { signed: true, bits: 16 }, 10;
    IpVersion "ip.version" unsigned(8), 10;
    IpSource "ip.source" TEXT, 10;
    IpDestination "ip.destination" TEXT, 10;
    IpProtocol "ip.protocol" unsigned(8), 10 ["ICMP" = 1, "IGMP" = 2, "TCP" = 6, "UDP" = 17, "IPv6" = 41, "GRE" = 47,
        "ESP" = 50, "AH" = 51, "ICMPv6" = 58, "OSPF" = 89, "SCTP" = 132];
    IpTtl "ip.ttl" unsigned(8), 10;
    IpLength "ip.length" unsigned(16), 10;
    IpFragment "ip.fragment" unsigned(16), 10;
    ArpOperation "arp.operation" unsigned(16), 10 ["request" = 1, "reply" = 2];
    ArpSender "arp.sender" TEXT, 10;
    ArpTarget "arp.target" TEXT, 10;
    IcmpType "icmp.type" unsigned(8), 10;
    IcmpCode "icmp.code" unsigned(8), 10;
    UdpSourcePort "udp.source_port" unsigned(16), 10;
    UdpDestinationPort "udp.destination_port" unsigned(16), 10;
    UdpLength "udp.length" unsigned(16), 10;
    TcpSourcePort "tcp.source_port" unsigned(16), 10;
    TcpDestinationPort "tcp.destination_port" unsigned(16), 10;
    TcpSequence "tcp.sequence" unsigned(32), 10;
    TcpAcknowledgment "tcp.acknowledgment" unsigned(32), 10;
    TcpFlags "tcp.flags" TEXT, 10;
    TcpWindow "tcp.window" unsigned(16), 10;
    TcpLength "tcp.length" unsigned(32), 10;
}

/// The names of packets' fields, for filters.
pub(crate) struct PacketNames;

impl FieldResolver for PacketNames {
    fn find(&self, path: &NamePath) -> PathMeaning {
        let name = NamePath { is_global: false, steps: path.steps.clone() }.to_string();
        let is_word = matches!(path.steps.first(), Some(NameStep::Name(name)) if name == "event" || name == "packet");
        let written = if name == "interface" { "packet.interface" } else { &*name };
        let paths = || HeadField::ALL.iter().map(|field| field.path());
        match HeadField::ALL.iter().position(|field| field.path() == written) {
            Some(key) if is_word || !path.is_global => PathMeaning::Field(HeadField::ALL[key].described(key as u32)),
            _ if paths().any(|known| known.strip_prefix(&*name).is_some_and(|rest| rest.starts_with('.'))) => {
                PathMeaning::Compound { what: "a structure" }
            }
            _ => {
                let others = others(&name);
                let near = if others.is_empty() {
                    nearest(&name, paths())
                } else {
                    others.iter().map(ToString::to_string).collect()
                };
                PathMeaning::Missing { near }
            }
        }
    }

    fn instant(&self, _: &str) -> Option<i64> {
        None
    }
}

/// Fields that tcpdump or Wireshark call so.
fn others(name: &str) -> &'static [&'static str] {
    match name {
        "udp.dport" | "udp.dstport" | "udp.dst_port" => &["udp.destination_port"],
        "udp.sport" | "udp.srcport" | "udp.src_port" => &["udp.source_port"],
        "tcp.dport" | "tcp.dstport" | "tcp.dst_port" => &["tcp.destination_port"],
        "tcp.sport" | "tcp.srcport" | "tcp.src_port" => &["tcp.source_port"],
        "tcp.port" => &["tcp.source_port", "tcp.destination_port"],
        "udp.port" => &["udp.source_port", "udp.destination_port"],
        "port" => &["tcp.source_port", "tcp.destination_port", "udp.source_port", "udp.destination_port"],
        "ip.src" | "ip.saddr" | "src" => &["ip.source"],
        "ip.dst" | "ip.daddr" | "dst" => &["ip.destination"],
        "ip.addr" | "host" => &["ip.source", "ip.destination"],
        "ip.proto" | "proto" => &["ip.protocol"],
        "ip.len" => &["ip.length"],
        "eth.src" | "ether.src" => &["eth.source"],
        "eth.dst" | "ether.dst" => &["eth.destination"],
        "vlan" | "vlan.id" => &["eth.vlan"],
        "tcp.seq" => &["tcp.sequence"],
        "tcp.ack" => &["tcp.acknowledgment"],
        "frame.len" | "len" => &["length"],
        _ => &[],
    }
}

impl HeadField {
    /// How the addresses that it has are written.
    pub(crate) fn address(self) -> Option<AddressForm> {
        match self {
            Self::EthSource | Self::EthDestination => Some(AddressForm::Mac),
            Self::IpSource | Self::IpDestination | Self::ArpSender | Self::ArpTarget => Some(AddressForm::Ip),
            _ => None,
        }
    }

    fn described(self, key: u32) -> FilterField {
        let is_of_all = matches!(self, Self::Class | Self::Interface | Self::Direction | Self::Captured | Self::Length);
        FilterField {
            key,
            name: self.path().to_owned(),
            kind: self.kind(),
            optional: !is_of_all,
            labels: self.labels().iter().map(|(name, value)| ((*name).to_owned(), vec![(*value, *value)])).collect(),
            unit: None,
            base: self.base(),
        }
    }
}

impl PacketFacts<'_> {
    /// The bytes in which its heads are.
    pub(crate) fn heads(&self) -> PacketHeads<'_> {
        PacketHeads::of(self.link, &self.data[..self.data.len().min(HEADS_MAX)])
    }

    /// The value of a field.
    pub(crate) fn value(&self, heads: &PacketHeads<'_>, field: HeadField) -> Datum {
        let number = |value: u64| Datum::Number(value);
        match field {
            HeadField::Class => text(heads.class.name()),
            HeadField::Interface => text(self.interface),
            HeadField::Direction => number(self.way(heads) as u64),
            HeadField::Captured => number(self.data.len() as u64),
            HeadField::Length => number(self.length.into()),
            HeadField::EthSource | HeadField::EthDestination | HeadField::EthType | HeadField::EthVlan => {
                of_link(heads, field)
            }
            HeadField::IpVersion
            | HeadField::IpSource
            | HeadField::IpDestination
            | HeadField::IpProtocol
            | HeadField::IpTtl
            | HeadField::IpLength
            | HeadField::IpFragment => of_ip(heads, field),
            HeadField::ArpOperation | HeadField::ArpSender | HeadField::ArpTarget => of_arp(heads, field),
            _ => of_transport(heads, field),
        }
    }

    fn way(&self, heads: &PacketHeads<'_>) -> PacketDirection {
        if self.direction == PacketDirection::Unknown { heads.direction } else { self.direction }
    }
}

fn text(value: &str) -> Datum {
    Datum::Text(value.as_bytes().into())
}

fn of_link(heads: &PacketHeads<'_>, field: HeadField) -> Datum {
    if heads.class == crate::HeadClass::Other {
        return Datum::Missing;
    }
    match field {
        HeadField::EthSource => text(&mac(heads.source)),
        HeadField::EthDestination => text(&mac(heads.destination)),
        HeadField::EthType => Datum::Number(heads.ether_type.into()),
        // Without a VLAN it is -1.
        _ => Datum::Number(heads.vlan.map_or(u64::MAX, |vlan| u64::from(vlan & 0xFFF))),
    }
}

fn mac(address: Option<[u8; 6]>) -> String {
    let bytes = address.map(|bytes| bytes.map(|byte| format!("{byte:02x}")).join(":"));
    bytes.unwrap_or_default()
}

fn of_ip(heads: &PacketHeads<'_>, field: HeadField) -> Datum {
    let number = |value: u16| Datum::Number(value.into());
    match &heads.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let head = ip.header();
            match field {
                HeadField::IpVersion => number(4),
                HeadField::IpSource => text(&head.source_addr().to_string()),
                HeadField::IpDestination => text(&head.destination_addr().to_string()),
                HeadField::IpProtocol => number(ip.payload_ip_number().0.into()),
                HeadField::IpTtl => number(head.ttl().into()),
                HeadField::IpLength => number(head.total_len()),
                _ => number(head.fragments_offset().byte_offset()),
            }
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let head = ip.header();
            match field {
                HeadField::IpVersion => number(6),
                HeadField::IpSource => text(&head.source_addr().to_string()),
                HeadField::IpDestination => text(&head.destination_addr().to_string()),
                HeadField::IpProtocol => number(ip.payload().ip_number.0.into()),
                HeadField::IpTtl => number(head.hop_limit().into()),
                HeadField::IpLength => number(head.payload_length()),
                _ => number(0),
            }
        }
        _ => Datum::Missing,
    }
}

fn of_arp(heads: &PacketHeads<'_>, field: HeadField) -> Datum {
    let Some(LaxNetSlice::Arp(arp)) = &heads.net else { return Datum::Missing };
    let arp = arp.to_packet();
    let address = |bytes: &[u8]| match *bytes {
        [a, b, c, d] => text(&std::net::Ipv4Addr::new(a, b, c, d).to_string()),
        _ => text(&bytes.iter().take(19).map(|byte| format!("{byte:02x}")).collect::<String>()),
    };
    match field {
        HeadField::ArpOperation => Datum::Number(arp.operation.0.into()),
        HeadField::ArpSender => address(arp.sender_protocol_addr()),
        _ => address(arp.target_protocol_addr()),
    }
}

fn of_transport(heads: &PacketHeads<'_>, field: HeadField) -> Datum {
    let number = |value: u32| Datum::Number(value.into());
    match (&heads.transport, field) {
        (Some(TransportSlice::Tcp(tcp)), field) => of_tcp(heads, tcp, field),
        (Some(TransportSlice::Udp(udp)), HeadField::UdpSourcePort) => number(udp.source_port().into()),
        (Some(TransportSlice::Udp(udp)), HeadField::UdpDestinationPort) => number(udp.destination_port().into()),
        (Some(TransportSlice::Udp(udp)), HeadField::UdpLength) => number(udp.length().into()),
        (Some(TransportSlice::Icmpv4(icmp)), HeadField::IcmpType) => number(icmp.type_u8().into()),
        (Some(TransportSlice::Icmpv4(icmp)), HeadField::IcmpCode) => number(icmp.code_u8().into()),
        (Some(TransportSlice::Icmpv6(icmp)), HeadField::IcmpType) => number(icmp.type_u8().into()),
        (Some(TransportSlice::Icmpv6(icmp)), HeadField::IcmpCode) => number(icmp.code_u8().into()),
        _ => Datum::Missing,
    }
}

fn of_tcp(heads: &PacketHeads<'_>, tcp: &TcpSlice<'_>, field: HeadField) -> Datum {
    let number = |value: u32| Datum::Number(value.into());
    match field {
        HeadField::TcpSourcePort => number(tcp.source_port().into()),
        HeadField::TcpDestinationPort => number(tcp.destination_port().into()),
        HeadField::TcpSequence => number(tcp.sequence_number()),
        HeadField::TcpAcknowledgment => number(tcp.acknowledgment_number()),
        HeadField::TcpFlags => text(&tcp_flags(tcp)),
        HeadField::TcpWindow => number(tcp.window_size().into()),
        HeadField::TcpLength => number(heads.ip_payload().saturating_sub(u32::from(tcp.data_offset()) * 4)),
        _ => Datum::Missing,
    }
}

fn tcp_flags(tcp: &TcpSlice<'_>) -> String {
    flag_names(tcp).collect::<Vec<_>>().join(" ")
}

/// The names of the flags that a segment has.
pub fn flag_names(tcp: &TcpSlice<'_>) -> impl Iterator<Item = &'static str> {
    let flags = [
        (tcp.syn(), "SYN"),
        (tcp.fin(), "FIN"),
        (tcp.rst(), "RST"),
        (tcp.psh(), "PSH"),
        (tcp.ack(), "ACK"),
        (tcp.urg(), "URG"),
        (tcp.ece(), "ECE"),
        (tcp.cwr(), "CWR"),
    ];
    flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name)
}

impl PacketHeads<'_> {
    /// Bytes behind the head of IP and its extensions, as that head says it.
    fn ip_payload(&self) -> u32 {
        match &self.net {
            Some(LaxNetSlice::Ipv4(ip)) => ip.header().payload_len().unwrap_or(0).into(),
            Some(LaxNetSlice::Ipv6(ip)) => {
                let extensions = ip.extensions().slice().len() as u32;
                u32::from(ip.header().payload_length()).saturating_sub(extensions)
            }
            _ => 0,
        }
    }
}
