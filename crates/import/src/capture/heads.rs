//! The heads of a packet as an event: the values of its class. Addresses are text, as people write them.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use etherparse::{LaxNetSlice, TcpSlice, TransportSlice};
use kymo_packet::{CLASSES, HeadClass, IpVersion, PacketHeads};

use crate::packet::PacketBuilder;

/// Bytes of an event before its heads: class, time, direction, captured and original length.
const COMMON_BYTES: u64 = 1 + 8 + 1 + 4 + 4;
/// Bytes of an event before its packet's: link and length.
const DATA_HEAD_BYTES: u64 = 2 + 4;
const MAC_BYTES: usize = 17;
const ETHERNET_BYTES: u64 = 2 * MAC_BYTES as u64 + 2 + 2;
/// All flags, with spaces between them.
const FLAGS_BYTES: usize = 8 * 3 + 7;

/// Bytes of an address's text.
fn text_bytes(version: IpVersion) -> usize {
    match version {
        IpVersion::V4 => 15,
        IpVersion::V6 => 39,
    }
}

/// The number of a class in packets of CTF.
pub(super) fn number_of(class: HeadClass) -> u8 {
    CLASSES.iter().position(|known| *known == class).expect("all classes are listed") as u8
}

/// Bytes of an event; with `data`, of a packet of which so many bytes are in the file.
pub(super) fn event_bytes(class: HeadClass, data: Option<u32>) -> u64 {
    bytes_of(class) + data.map_or(0, |captured| DATA_HEAD_BYTES + u64::from(captured))
}

/// Bytes of an event without the packet's.
pub(super) fn bytes_of(class: HeadClass) -> u64 {
    let ethernet = if class == HeadClass::Other { 0 } else { ETHERNET_BYTES };
    let ip = class.version().map_or(0, |version| 1 + 2 * text_bytes(version) as u64 + 1 + 1 + 2 + 2);
    let last = match class {
        HeadClass::Arp => 2 + 2 * text_bytes(IpVersion::V6) as u64,
        HeadClass::Icmp(_) => 1 + 1,
        HeadClass::Udp(_) => 2 + 2 + 2,
        HeadClass::Tcp(_) => 2 + 2 + 4 + 4 + FLAGS_BYTES as u64 + 2 + 4,
        _ => 0,
    };
    COMMON_BYTES + ethernet + ip + last
}

/// The fields of a packet's bytes, in TSDL.
pub(super) const DATA_FIELDS: &str = " u16 _link; u32 __data_length; u8 _data[__data_length];";

/// Its fields, in TSDL.
pub(super) fn fields_of(class: HeadClass) -> String {
    let mut fields =
        String::from("enum : u8 { unknown = 0, inbound = 1, outbound = 2 } _direction; u32 _captured; u32 _length;");
    if class != HeadClass::Other {
        let _ = write!(fields, " struct {{ text _source[{MAC_BYTES}]; text _destination[{MAC_BYTES}]; ");
        fields.push_str(
            "enum : x16 { IPv4 = 0x800, ARP = 0x806, VLAN = 0x8100, IPv6 = 0x86DD, LLDP = 0x88CC } _type; \
             i16 _vlan; } _eth;",
        );
    }
    if let Some(version) = class.version() {
        let bytes = text_bytes(version);
        let _ = write!(fields, " struct {{ u8 _version; text _source[{bytes}]; text _destination[{bytes}]; ");
        fields.push_str(
            "enum : u8 { ICMP = 1, IGMP = 2, TCP = 6, UDP = 17, IPv6 = 41, GRE = 47, ESP = 50, AH = 51, \
             ICMPv6 = 58, OSPF = 89, SCTP = 132 } _protocol; u8 _ttl; u16 _length; u16 _fragment; } _ip;",
        );
    }
    match class {
        HeadClass::Arp => {
            let bytes = text_bytes(IpVersion::V6);
            let _ = write!(
                fields,
                " struct {{ enum : u16 {{ request = 1, reply = 2 }} _operation; text _sender[{bytes}]; \
                 text _target[{bytes}]; }} _arp;"
            );
        }
        HeadClass::Icmp(_) => fields.push_str(" struct { u8 _type; u8 _code; } _icmp;"),
        HeadClass::Udp(_) => fields.push_str(" struct { u16 _source_port; u16 _destination_port; u16 _length; } _udp;"),
        HeadClass::Tcp(_) => {
            let _ = write!(
                fields,
                " struct {{ u16 _source_port; u16 _destination_port; u32 _sequence; u32 _acknowledgment; \
                 text _flags[{FLAGS_BYTES}]; u16 _window; u32 _length; }} _tcp;"
            );
        }
        _ => {}
    }
    fields
}

/// Writes the values of its class behind the common ones.
pub(super) fn put(heads: &PacketHeads<'_>, builder: &mut PacketBuilder) {
    if heads.class == HeadClass::Other {
        return;
    }
    put_mac(builder, heads.source);
    put_mac(builder, heads.destination);
    builder.u16(heads.ether_type);
    builder.u16(heads.vlan.map_or(u16::MAX, |vlan| vlan & 0xFFF));
    match &heads.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let head = ip.header();
            builder.u8(4);
            put_v4(builder, head.source_addr());
            put_v4(builder, head.destination_addr());
            put_ip(
                builder,
                (ip.payload_ip_number().0, head.ttl(), head.total_len()),
                head.fragments_offset().byte_offset(),
            );
            let payload = u32::from(head.payload_len().unwrap_or(0));
            put_transport(heads, builder, payload);
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let (head, payload) = (ip.header(), ip.payload());
            builder.u8(6);
            put_v6(builder, head.source_addr());
            put_v6(builder, head.destination_addr());
            put_ip(builder, (payload.ip_number.0, head.hop_limit(), head.payload_length()), 0);
            let extensions = ip.extensions().slice().len() as u32;
            put_transport(heads, builder, u32::from(head.payload_length()).saturating_sub(extensions));
        }
        Some(LaxNetSlice::Arp(arp)) => {
            let arp = arp.to_packet();
            builder.u16(arp.operation.0);
            put_protocol_address(builder, arp.sender_protocol_addr());
            put_protocol_address(builder, arp.target_protocol_addr());
        }
        None => {}
    }
}

/// The values of the last head; behind it and with it are so many bytes of IP.
fn put_transport(heads: &PacketHeads<'_>, builder: &mut PacketBuilder, bytes: u32) {
    match &heads.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            builder.u16(tcp.source_port());
            builder.u16(tcp.destination_port());
            builder.u32(tcp.sequence_number());
            builder.u32(tcp.acknowledgment_number());
            put_flags(builder, tcp);
            builder.u16(tcp.window_size());
            builder.u32(bytes.saturating_sub(u32::from(tcp.data_offset()) * 4));
        }
        Some(TransportSlice::Udp(udp)) => {
            builder.u16(udp.source_port());
            builder.u16(udp.destination_port());
            builder.u16(udp.length());
        }
        Some(TransportSlice::Icmpv4(icmp)) => {
            builder.u8(icmp.type_u8());
            builder.u8(icmp.code_u8());
        }
        Some(TransportSlice::Icmpv6(icmp)) => {
            builder.u8(icmp.type_u8());
            builder.u8(icmp.code_u8());
        }
        _ => {}
    }
}

fn put_ip(builder: &mut PacketBuilder, (protocol, ttl, length): (u8, u8, u16), fragment: u16) {
    builder.u8(protocol);
    builder.u8(ttl);
    builder.u16(length);
    builder.u16(fragment);
}

fn put_mac(builder: &mut PacketBuilder, address: Option<[u8; 6]>) {
    let mut text = [0; MAC_BYTES];
    if let Some(address) = address {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for (place, byte) in address.into_iter().enumerate() {
            text[place * 3] = DIGITS[usize::from(byte >> 4)];
            text[place * 3 + 1] = DIGITS[usize::from(byte & 15)];
            if place < 5 {
                text[place * 3 + 2] = b':';
            }
        }
    }
    builder.bytes(&text);
}

fn put_v4(builder: &mut PacketBuilder, address: Ipv4Addr) {
    let (mut text, mut at) = ([0; 15], 0);
    for (place, byte) in address.octets().into_iter().enumerate() {
        if place > 0 {
            text[at] = b'.';
            at += 1;
        }
        let digits = [byte / 100, byte / 10 % 10, byte % 10];
        let first = if byte >= 100 {
            0
        } else if byte >= 10 {
            1
        } else {
            2
        };
        for digit in &digits[first..] {
            text[at] = b'0' + digit;
            at += 1;
        }
    }
    builder.bytes(&text);
}

fn put_v6(builder: &mut PacketBuilder, address: Ipv6Addr) {
    put_text::<39>(builder, &address.to_string());
}

/// An address of ARP, which is one of IPv4 almost always.
fn put_protocol_address(builder: &mut PacketBuilder, address: &[u8]) {
    let text = match *address {
        [a, b, c, d] => Ipv4Addr::new(a, b, c, d).to_string(),
        _ => address.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    put_text::<39>(builder, &text);
}

fn put_text<const SIZE: usize>(builder: &mut PacketBuilder, value: &str) {
    let mut text = [0; SIZE];
    let length = value.len().min(SIZE);
    text[..length].copy_from_slice(&value.as_bytes()[..length]);
    builder.bytes(&text);
}

fn put_flags(builder: &mut PacketBuilder, tcp: &TcpSlice<'_>) {
    let (mut text, mut at) = ([0; FLAGS_BYTES], 0);
    for name in kymo_packet::flag_names(tcp) {
        if at > 0 {
            text[at] = b' ';
            at += 1;
        }
        text[at..at + name.len()].copy_from_slice(name.as_bytes());
        at += name.len();
    }
    builder.bytes(&text);
}
