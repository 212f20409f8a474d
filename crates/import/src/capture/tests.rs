//! Captures of both formats, byte by byte.

use std::fs;

use kymo_source::{ImportOptions, SourceError, TraceFinder, TraceFolder};
use proptest::prelude::*;

use kymo_packet::{CLASSES, HeadClass, IpVersion, PacketHeads};

use super::heads::{bytes_of, put};

/// A number in the byte order of a capture.
#[derive(Clone, Copy)]
struct ByteOrder(bool);

impl ByteOrder {
    fn u16(self, value: u16) -> Vec<u8> {
        if self.0 { value.to_be_bytes().to_vec() } else { value.to_le_bytes().to_vec() }
    }

    fn u32(self, value: u32) -> Vec<u8> {
        if self.0 { value.to_be_bytes().to_vec() } else { value.to_le_bytes().to_vec() }
    }

    fn u64(self, value: u64) -> Vec<u8> {
        if self.0 { value.to_be_bytes().to_vec() } else { value.to_le_bytes().to_vec() }
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        [self.u16(code), self.u16(value.len() as u16), padded(value)].concat()
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let length = self.u32(body.len() as u32 + 12);
        [self.u32(kind), length.clone(), body.to_vec(), length].concat()
    }

    fn section(self, options: &[u8]) -> Vec<u8> {
        self.block(
            0x0A0D_0D0A,
            &[self.u32(0x1A2B_3C4D), self.u16(1), self.u16(0), self.u64(u64::MAX), options.to_vec()].concat(),
        )
    }

    fn interface(self, link: u16, options: &[u8]) -> Vec<u8> {
        self.block(1, &[self.u16(link), self.u16(0), self.u32(1600), options.to_vec()].concat())
    }

    fn packet(self, interface: u32, time: u64, data: &[u8], options: &[u8]) -> Vec<u8> {
        let time = [self.u32((time >> 32) as u32), self.u32(time as u32)].concat();
        let sizes = [self.u32(data.len() as u32), self.u32(data.len() as u32 + 1)].concat();
        self.block(6, &[self.u32(interface), time, sizes, padded(data), options.to_vec()].concat())
    }
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(4), 0);
    padded
}

/// UDP over IPv4 over Ethernet.
fn udp() -> Vec<u8> {
    let ethernet = [[0xFF; 6].as_slice(), &[2, 0, 0, 0, 0, 1], &[8, 0]].concat();
    let ip = [&[0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0][..], &[10, 0, 4, 2], &[192, 168, 100, 255]].concat();
    let udp = [1000_u16, 2000, 8, 0].iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    [ethernet, ip, udp].concat()
}

fn open(bytes: &[u8]) -> Result<TraceFolder, SourceError> {
    open_with(bytes, ImportOptions::default())
}

fn open_with(bytes: &[u8], options: ImportOptions) -> Result<TraceFolder, SourceError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture");
    fs::write(&path, bytes).unwrap();
    let mut found = TraceFinder::with_importers(crate::IMPORTERS, options).find(&path)?;
    // Packets are made from the file.
    std::mem::forget(folder);
    Ok(found.remove(0))
}

/// An event: time, class, direction, captured and original length.
type SeenPacket = (u64, HeadClass, u8, u32, u32);

/// The events of all streams, whose packets are as long as announced.
fn events(folder: &TraceFolder) -> Vec<(String, Vec<SeenPacket>)> {
    let stream = |number: usize| {
        let mut bytes = vec![0; folder.streams()[number].size as usize];
        assert_eq!(folder.stream(number).read_at(0, &mut bytes).unwrap(), bytes.len());
        let mut seen = Vec::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let word = |at: usize| u64::from_le_bytes(rest[at..at + 8].try_into().unwrap());
            let (packet, next) = rest.split_at((word(32) / 8) as usize);
            let head = 49 + packet[48..].iter().position(|byte| *byte == 0).unwrap();
            let mut events = &packet[head..];
            let before = seen.len();
            while !events.is_empty() {
                let class = CLASSES[events[0] as usize];
                let number = |at: usize| u32::from_le_bytes(events[at..at + 4].try_into().unwrap());
                let time = u64::from_le_bytes(events[1..9].try_into().unwrap());
                seen.push((time, class, events[9], number(10), number(14)));
                events = &events[bytes_of(class) as usize..];
            }
            assert!(seen[before..].is_sorted_by_key(|event| event.0));
            rest = next;
        }
        (folder.streams()[number].name.clone(), seen)
    };
    (0..folder.streams().len()).map(stream).collect()
}

fn packets_are_as_long_as_announced(folder: &TraceFolder) {
    for (number, stream) in folder.streams().iter().enumerate() {
        let mut bytes = vec![0; stream.size as usize];
        assert_eq!(folder.stream(number).read_at(0, &mut bytes).unwrap(), bytes.len());
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            rest = &rest[(u64::from_le_bytes(rest[32..40].try_into().unwrap()) / 8) as usize..];
        }
    }
}

/// All bytes of packets are there if that is asked for, behind the heads.
#[test]
fn packets_have_their_bytes() {
    let order = ByteOrder(false);
    let long = [&udp()[..], &[7; 900]].concat();
    let bytes = [
        order.section(&[]),
        order.interface(1, &order.option(2, b"eth0")),
        order.packet(0, 9, &long, &[]),
        order.packet(0, 10, &udp()[..3], &[]),
    ];
    let folder = open_with(&bytes.concat(), ImportOptions { packet_data: true, ..ImportOptions::default() }).unwrap();
    packets_are_as_long_as_announced(&folder);
    let mut stream = vec![0; folder.streams()[0].size as usize];
    folder.stream(0).read_at(0, &mut stream).unwrap();
    let mut events = &stream[48 + "eth0".len() + 1..];
    for packet in [&long[..], &udp()[..3]] {
        let (head, rest) = events.split_at(bytes_of(CLASSES[events[0] as usize]) as usize);
        assert_eq!(u32::from_le_bytes(head[10..14].try_into().unwrap()) as usize, packet.len());
        let expected = [&[1, 0][..], &(packet.len() as u32).to_le_bytes(), packet].concat();
        assert!(rest.starts_with(&expected));
        events = &rest[expected.len()..];
    }
    assert!(events.is_empty());
    let metadata = String::from_utf8(folder.metadata().unwrap()).unwrap();
    assert_eq!(metadata.matches("u8 _data[__data_length];").count(), CLASSES.len());
}

const UDP: HeadClass = HeadClass::Udp(IpVersion::V4);

/// Interfaces are numbered anew in each section, in either byte order, with times of any resolution.
#[test]
fn sections_have_interfaces_of_their_own() {
    for order in [ByteOrder(false), ByteOrder(true)] {
        let name = |name: &str| order.option(2, name.as_bytes());
        let nanos = [name("eth0"), order.option(9, &[9]), order.option(0, &[])].concat();
        let binary = [name("eth1"), order.option(9, &[0x8A]), order.option(14, &order.u64(100))].concat();
        let bytes = [
            order.section(&order.option(4, b"dumpcap")),
            order.interface(1, &nanos),
            order.interface(1, &binary),
            order.packet(0, 5_000_000_007, &udp(), &order.option(2, &order.u32(2))),
            // 1.5 s, and 100 s besides.
            order.packet(1, 1536, &udp()[..20], &order.option(2, &order.u32(1))),
            order.block(0x0BAD, &[1; 8]),
            order.section(&[]),
            order.interface(1, &name("eth1")),
            order.interface(1, &[]),
            order.packet(0, 200_000_000, &[0; 3], &[]),
            order.packet(1, 7, &udp(), &[]),
        ];
        let folder = open(&bytes.concat()).unwrap();
        assert_eq!(
            events(&folder),
            [
                ("eth0".to_owned(), vec![(5_000_000_007, UDP, 2, 42, 43)]),
                (
                    "eth1".to_owned(),
                    vec![
                        (101_500_000_000, HeadClass::Ethernet, 1, 20, 21),
                        (200_000_000_000, HeadClass::Other, 0, 3, 4)
                    ]
                ),
                ("interface 1".to_owned(), vec![(7000, UDP, 0, 42, 43)]),
            ]
        );
        assert!(folder.problems().is_empty() && folder.notes().is_empty());
        let metadata = String::from_utf8(folder.metadata().unwrap()).unwrap();
        assert!(metadata.contains("application = \"dumpcap\";"), "{metadata}");
    }
}

/// Packets that are not in order, have no time, or were lost.
#[test]
fn what_a_capture_lacks_is_told() {
    let order = ByteOrder(false);
    let statistics = |dropped: u64| {
        let options = [order.option(5, &order.u64(dropped)), order.option(7, &order.u64(1))].concat();
        order.block(5, &[order.u32(0), order.u64(0), options].concat())
    };
    let simple = order.block(3, &[order.u32(50), padded(&udp())].concat());
    let bytes = [
        order.section(&[]),
        order.interface(1, &[]),
        order.packet(0, 9, &udp(), &[]),
        simple,
        order.packet(0, 8, &udp(), &[]),
        order.packet(3, 8, &udp(), &[]),
        statistics(4),
        statistics(6),
    ];
    let folder = open(&bytes.concat()).unwrap();
    let times: Vec<u64> = events(&folder)[0].1.iter().map(|event| event.0).collect();
    assert_eq!(times, [8000, 9000, 9000]);
    let notes: Vec<&str> = folder.notes().iter().map(|note| &*note.what).collect();
    assert_eq!(
        notes,
        [
            "interface 0: 1 packet is behind later ones in the file, and here in the order of time",
            "1 packet has no time: here the time of the packet before"
        ]
    );
    assert_eq!(folder.problems(), ["byte 260: a packet of interface 3, though the section has described 1"]);
    let lost = |place: u64| {
        let mut count = [0; 8];
        folder.stream(0).read_at(place + 40, &mut count).unwrap();
        u64::from_le_bytes(count)
    };
    // An empty packet comes first.
    assert_eq!((lost(0), lost(48 + 12)), (0, 7));
}

#[test]
fn files_of_pcap_are_read() {
    for (order, magic, unit) in [
        (ByteOrder(false), 0xA1B2_C3D4_u32, 1000),
        (ByteOrder(true), 0xA1B2_C3D4, 1000),
        (ByteOrder(false), 0xA1B2_3C4D, 1),
        (ByteOrder(true), 0xA1B2_3C4D, 1),
    ] {
        let head =
            [order.u32(magic), order.u16(2), order.u16(4), order.u64(0), order.u32(65535), order.u32(101)].concat();
        let record = |data: &[u8]| {
            [order.u32(3), order.u32(5), order.u32(data.len() as u32), order.u32(99), data.to_vec()].concat()
        };
        let bytes = [head, record(&udp()[14..]), record(&[0; 4])].concat();
        let time = 3_000_000_000 + 5 * unit;
        let expected = vec![(time, UDP, 0, 28, 99), (time, HeadClass::Other, 0, 4, 99)];
        assert_eq!(events(&open(&bytes).unwrap()), [("interface 0".to_owned(), expected.clone())]);
        // It is cut anywhere.
        for end in 25..bytes.len() {
            let folder = open(&bytes[..end]).unwrap();
            let seen = events(&folder);
            let count = usize::from(end >= 68) + usize::from(end >= 88);
            assert_eq!(seen[0].1, expected[..count], "{end}");
            assert_eq!(folder.problems().len(), usize::from(end != 68), "{end}");
        }
    }
}

/// Behind a broken block, the next section is read.
#[test]
fn broken_blocks_are_told() {
    let order = ByteOrder(false);
    let section = [order.section(&[]), order.interface(1, &[]), order.packet(0, 9, &udp(), &[])].concat();
    let length = section.len();
    for (place, value, told) in [
        (
            32,
            13,
            "byte 28: expected the length of a block, a multiple of 4 from 12 on, found 13; reading goes on with the section at byte 124",
        ),
        (44, 21, "byte 28: expected the length of the block, 20, at its end too, found 21"),
        (68, 100, "a packet of 100 bytes cannot be in a block of 64"),
        (52, 400, "the file ends inside of a block of 400 bytes"),
    ] {
        let mut bytes = [section.clone(), section.clone()].concat();
        bytes[place..place + 4].copy_from_slice(&u32::to_le_bytes(value));
        let folder = open(&bytes).unwrap();
        let [(_, seen)] = &events(&folder)[..] else { panic!("one interface is described in the second section") };
        assert_eq!(seen.len(), 1, "{told}");
        assert!(folder.problems()[0].contains(told), "{:?}", folder.problems());
    }
    let mut bytes = section;
    bytes.truncate(length - 6);
    let folder = open(&bytes).unwrap();
    assert_eq!(
        folder.problems(),
        ["byte 48: the file ends inside of a block of 76 bytes; the rest of the file is not read"]
    );
}

/// The loopback of BSD has a number of four bytes before the packet, in the byte order of the machine; that of OpenBSD (108)
/// always in the order of networks.
#[test]
fn packets_of_a_loopback_are_read() {
    let order = ByteOrder(false);
    for (link, family) in [(0, [2, 0, 0, 0]), (0, [0, 0, 0, 2]), (108, [0, 0, 0, 2])] {
        let data = [&family[..], &udp()[14..]].concat();
        let bytes = [order.section(&[]), order.interface(link, &[]), order.packet(0, 9, &data, &[])].concat();
        let [(_, seen)] = &events(&open(&bytes).unwrap())[..] else { panic!("there is one interface") };
        assert_eq!(seen[..].iter().map(|event| event.1).collect::<Vec<_>>(), [UDP], "{link} {family:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// Some bytes of a capture are others: packets are as long as announced.
    #[test]
    fn damaged_captures_are_read(changes in proptest::collection::vec((0_usize..400, any::<u8>()), 0..8), end in 12_usize..400) {
        let order = ByteOrder(false);
        let interface = [order.option(2, b"eth0"), order.option(1, &[])].concat();
        let mut bytes = [
            order.section(&[]),
            order.interface(1, &interface),
            order.interface(113, &[]),
            order.packet(0, 9, &udp(), &order.option(2, &order.u32(1))),
            order.packet(1, 10, &udp(), &[]),
            order.section(&[]),
            order.interface(276, &interface),
            order.packet(0, 8, &udp(), &[]),
        ].concat();
        for (place, value) in changes {
            if let Some(byte) = bytes.get_mut(place) {
                *byte = value;
            }
        }
        bytes.truncate(end);
        if let Ok(folder) = open(&bytes) {
            events(&folder);
        }
        if let Ok(folder) = open_with(&bytes, ImportOptions { packet_data: true, ..ImportOptions::default() }) {
            packets_are_as_long_as_announced(&folder);
        }
    }

    /// Heads of any bytes have the size of their class.
    #[test]
    fn heads_have_the_size_of_their_class(link in prop_oneof![Just(0_u16), Just(1), Just(101), Just(113), Just(276)],
        change in proptest::collection::vec((0_usize..80, any::<u8>()), 0..6), end in 0_usize..60) {
        let mut data = [&[0; 20][..], &udp()].concat();
        let start = match link { 1 => 20, 101 => 34, 113 => 18, 276 => 14, _ => 30 };
        for (place, value) in change {
            if let Some(byte) = data.get_mut(place) {
                *byte = value;
            }
        }
        let data = &data[start..];
        let heads = PacketHeads::of(link, &data[..end.min(data.len())]);
        let mut builder = crate::packet::PacketBuilder::new(0, 0);
        put(&heads, &mut builder);
        prop_assert_eq!(builder.bytes.len() as u64 + 18, bytes_of(heads.class));
    }
}
