//! Captures that are written, byte by byte.

use kymo_packet::PacketDirection;
use kymo_packet::pcapng::{InterfaceCounts, PcapngPacket, PcapngWriter};

#[test]
fn blocks_are_as_the_format_has_them() {
    let mut capture = PcapngWriter::begin(Vec::new(), "kymo", 96).expect("memory takes all");
    let packet = |interface, direction, time| PcapngPacket {
        interface,
        link: 1,
        direction,
        time,
        length: 60,
        data: &[1, 2, 3, 4, 5],
    };
    capture.packet(&packet("lo", PacketDirection::Outbound, (7 << 32) + 9)).expect("memory takes all");
    capture.packet(&packet("lo", PacketDirection::Unknown, 1)).expect("memory takes all");
    capture.counts("lo", InterfaceCounts { received: Some(5), dropped: 2 }).expect("memory takes all");
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let expected = [
        words(&[0x0A0D_0D0A, 40, 0x1A2B_3C4D, 1, u32::MAX, u32::MAX, 4 << 16 | 4]),
        b"kymo".to_vec(),
        words(&[0, 40]),
        // An interface: Ethernet, 96 bytes of each packet, its name, 10^-9 s.
        words(&[1, 40, 1, 96, 2 << 16 | 2, u32::from_le_bytes(*b"lo\0\0"), 1 << 16 | 9, 9, 0, 40]),
        words(&[6, 52, 0, 7, 9, 5, 60, 0x0403_0201, 5, 4 << 16 | 2, 2, 0, 52]),
        words(&[6, 40, 0, 0, 1, 5, 60, 0x0403_0201, 5, 40]),
        words(&[5, 52, 0, 7, 9, 8 << 16 | 4, 5, 0, 8 << 16 | 7, 2, 0, 0, 52]),
    ];
    assert_eq!(capture.finish().expect("memory takes all"), expected.concat());
}

#[test]
fn interfaces_keep_their_numbers() {
    let mut capture = PcapngWriter::begin(Vec::new(), "kymo", 0).expect("memory takes all");
    let mut numbers = Vec::new();
    for (interface, link) in [("a", 1), ("b", 1), ("a", 1), ("a", 101), ("b", 1), ("a", 101)] {
        let direction = PacketDirection::Inbound;
        let packet = PcapngPacket { interface, link, direction, time: 3, length: 0, data: &[] };
        capture.packet(&packet).expect("memory takes all");
    }
    let bytes = capture.finish().expect("memory takes all");
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("4 bytes"));
        if word(0) == 6 {
            numbers.push(word(8));
        }
        rest = &rest[word(4) as usize..];
    }
    assert_eq!(numbers, [0, 1, 0, 2, 1, 2]);
}
