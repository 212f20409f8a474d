//! A filter of packets means the same where they are received and where a capture of them is read.

use std::sync::Arc;

use kymo_filter::Filter;
use kymo_packet::pcapng::{PcapngPacket, PcapngWriter};
use kymo_packet::{PacketDirection, PacketFacts, PacketFilter};
use kymo_session::messages::{MessageRow, MessagesQuestion};
use kymo_session::{OpenOptions, Selection, Session};

/// Packets of all kinds, each also with some bytes that are others, and cut.
fn frames() -> Vec<(u16, Vec<u8>)> {
    let mut seed = 7_u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    let ethernet =
        |kind: u16, behind: &[u8]| [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &kind.to_be_bytes(), behind].concat();
    let v4 = |protocol: u8, behind: &[u8]| {
        let length = 20 + behind.len() as u8;
        [&[0x45, 0, 0, length, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 4, 2, 192, 168, 1, 255][..], behind].concat()
    };
    let v6 = |protocol: u8, behind: &[u8]| {
        let ends = [&[0x20, 1, 0x0D, 0xB8][..], &[0; 11], &[1, 0xFE, 0x80], &[0; 13], &[2]].concat();
        [&[0x60, 0, 0, 0, 0, behind.len() as u8, protocol, 255][..], &ends, behind].concat()
    };
    let tcp = [1, 187, 192, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x12, 1, 0, 0, 0, 0, 0, b'h', b'i'];
    let udp = [0, 53, 7, 208, 0, 10, 0, 0, 1, 2];
    let echo = [8, 0, 0, 0, 0, 1, 0, 2];
    let arp = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 4, 2, 0, 0, 0, 0, 0, 0, 10, 0, 4, 1];
    let cooked = |behind: &[u8]| [&[0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 8, 0][..], behind].concat();
    let whole = [
        (1, ethernet(0x800, &v4(6, &tcp))),
        (1, ethernet(0x800, &v4(17, &udp))),
        (1, ethernet(0x800, &v4(1, &echo))),
        (1, ethernet(0x86DD, &v6(6, &tcp))),
        (1, ethernet(0x86DD, &v6(17, &udp))),
        (1, ethernet(0x86DD, &v6(58, &echo))),
        (1, ethernet(0x86DD, &v6(0, &[&[17, 0, 1, 4, 0, 0, 0, 0][..], &udp].concat()))),
        (1, ethernet(0x8100, &[&[0, 42, 8, 0][..], &v4(17, &udp)].concat())),
        (1, ethernet(0x806, &arp)),
        (1, ethernet(0x88CC, &[1, 2])),
        (101, v4(6, &tcp)),
        (101, v6(17, &udp)),
        (113, cooked(&v4(6, &tcp))),
    ];
    let mut all: Vec<(u16, Vec<u8>)> = whole.to_vec();
    for round in 0..40 {
        for (link, frame) in &whole {
            let mut frame = frame.clone();
            for _ in 0..round % 4 {
                let at = random() % frame.len();
                frame[at] = [random() as u8, 0, 255][random() % 3];
            }
            if round % 5 == 4 {
                frame.truncate(random() % (frame.len() + 1));
            }
            all.push((*link, frame));
        }
    }
    all
}

/// Expressions over all fields.
const EXPRESSIONS: &[&str] = &[
    "tcp.destination_port == 49152",
    "!(tcp.destination_port == 49152)",
    "tcp.flags == \"SYN ACK\" && tcp.window < 300",
    "tcp.flags == \"*SYN*\" || tcp.length == 2",
    "tcp.sequence + tcp.acknowledgment == 16",
    "udp.source_port == 53 || udp.length > 10",
    "udp.destination_port != 2000",
    "ip.source == \"10.0.4.2\"",
    "ip.source != \"10.0.4.2\"",
    "ip.destination == \"192.*\" || ip.destination == \"fe80::2\"",
    "ip.source =~ \"^2001:\"",
    "ip.protocol == \"TCP\"",
    "ip.protocol == \"UDP\" && ip.version == 6",
    "ip.ttl >= 64 && ip.length < 60",
    "ip.fragment > 0",
    "has(ip.ttl) && !has(tcp.window)",
    "!has(eth.type)",
    "eth.type == \"IPv4\" && eth.vlan == 42",
    "eth.vlan == -1",
    "eth.source == \"02:00:00:00:00:02\"",
    "eth.destination == \"\"",
    "arp.operation == \"request\" && arp.sender == \"10.0.4.2\"",
    "arp.target == \"10.0.4.1\"",
    "icmp.type == 8 || icmp.code != 0",
    "direction == \"outbound\"",
    "direction != \"inbound\" && length > 60",
    "captured < 30",
    "length - captured == 7",
    "event.name == \"packet:tcp\"",
    "event.name == \"packet:i*\"",
    "packet.interface == \"eth0\" && event.name == \"packet:other\"",
    "packet.interface != \"eth0\"",
];

#[test]
fn filters_mean_the_same_in_captures() {
    let frames = frames();
    let facts: Vec<PacketFacts<'_>> = frames
        .iter()
        .enumerate()
        .map(|(number, (link, data))| {
            let direction = [PacketDirection::Inbound, PacketDirection::Outbound, PacketDirection::Unknown][number % 3];
            PacketFacts { interface: "eth0", direction, link: *link, length: data.len() as u32 + 7, data }
        })
        .collect();
    let mut capture = PcapngWriter::begin(Vec::new(), "test", 0).expect("memory takes all");
    for (number, facts) in facts.iter().enumerate() {
        let PacketFacts { interface, direction, link, length, data } = *facts;
        capture
            .packet(&PcapngPacket { interface, link, direction, time: number as u64, length, data })
            .expect("memory takes all");
    }
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("capture.pcapng");
    std::fs::write(&path, capture.finish().expect("memory takes all")).expect("there is room");
    let session = Arc::new(Session::open(&[path], &OpenOptions::default()).expect("it is a capture"));
    let mut kept = 0;
    for expression in EXPRESSIONS {
        let filter = PacketFilter::parse(expression).unwrap_or_else(|error| panic!("{error}"));
        let expected: Vec<i64> = (0..facts.len()).filter(|at| filter.keeps(&facts[*at])).map(|at| at as i64).collect();
        let filter = Filter::parse(expression).expect("it is right");
        let selection = Selection { filter: Some(filter), ..Selection::default() };
        let question = MessagesQuestion { selection, ..MessagesQuestion::default() };
        let mut found = Vec::new();
        for batch in session.messages(&question).expect("it can be read") {
            let batch = batch.expect("it can be read");
            for row in batch.rows() {
                if let MessageRow::Event(at) = row {
                    found.push(batch.nanos(*at).expect("it has a time"));
                }
            }
        }
        found.sort_unstable();
        assert_eq!(found, expected, "{expression}");
        kept += expected.len();
        assert!(!expected.is_empty() || expression.ends_with("!= \"eth0\""), "{expression} is never true");
    }
    assert!(kept > 2000, "{kept}");
}
