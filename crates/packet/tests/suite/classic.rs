//! Classic BPF against the evaluator: a program takes every packet of which the expression is true.

use kymo_packet::{ClassicInstruction, PacketDirection, PacketFacts, PacketFilter, take_all};
use proptest::prelude::*;
use proptest::sample::select;

/// A packet as a packet socket has it.
#[derive(Clone, Debug)]
pub struct SeenPacket {
    pub hardware: u32,
    pub kind: u32,
    pub data: Vec<u8>,
}

/// Runs a program as the kernel does: bytes that are not there end it, and nothing of the packet is taken.
pub fn run(program: &[ClassicInstruction], packet: &SeenPacket) -> u32 {
    let data = &packet.data;
    let bytes = |at: usize, count: usize| {
        let bytes = data.get(at..at.checked_add(count)?)?;
        Some(bytes.iter().fold(0, |value: u32, byte| value << 8 | u32::from(*byte)))
    };
    let (mut a, mut x, mut at) = (0_u32, 0_u32, 0_usize);
    loop {
        let ClassicInstruction { code, jt, jf, k } = program[at];
        at += 1;
        let loaded = match code {
            0x20 if k == 0xFFFF_F004 => Some(packet.kind),
            0x20 if k == 0xFFFF_F01C => Some(packet.hardware),
            0x20 if k == 0xFFFF_F030 => Some(0),
            0x20 => bytes(k as usize, 4),
            0x28 => bytes(k as usize, 2),
            0x30 => bytes(k as usize, 1),
            0x40 => bytes((x + k) as usize, 4),
            0x48 => bytes((x + k) as usize, 2),
            0x50 => bytes((x + k) as usize, 1),
            0x80 => Some(data.len() as u32),
            0x00 => Some(k),
            0x04 => Some(a.wrapping_add(k)),
            0x54 => Some(a & k),
            0x64 => Some(a << k),
            0x87 => Some(x),
            0x01 => {
                x = k;
                continue;
            }
            0xB1 => {
                let Some(byte) = bytes(k as usize, 1) else { return 0 };
                x = (byte & 15) * 4;
                continue;
            }
            0x07 => {
                x = a;
                continue;
            }
            0x05 => {
                at += k as usize;
                continue;
            }
            0x06 => return k,
            0x15 | 0x25 | 0x35 | 0x3D | 0x45 => {
                let holds = match code {
                    0x15 => a == k,
                    0x25 => a > k,
                    0x35 => a >= k,
                    0x3D => a >= x,
                    _ => a & k != 0,
                };
                at += usize::from(if holds { jt } else { jf });
                continue;
            }
            other => panic!("no instruction {other:#x} is expected"),
        };
        let Some(loaded) = loaded else { return 0 };
        a = loaded;
    }
}

fn facts(packet: &SeenPacket) -> PacketFacts<'_> {
    PacketFacts {
        interface: "eth0",
        direction: if packet.kind == 4 { PacketDirection::Outbound } else { PacketDirection::Inbound },
        link: if packet.hardware == 1 || packet.hardware == 772 { 1 } else { 101 },
        length: packet.data.len() as u32,
        data: &packet.data,
    }
}

/// Takes or not: by the program, and by the evaluator.
fn verdicts(expression: &str, packet: &SeenPacket) -> (bool, bool) {
    let filter = PacketFilter::parse(expression).unwrap_or_else(|error| panic!("{error}"));
    let program = filter.classic(1000);
    assert!(program.len() < 4096);
    let taken = run(&program, packet);
    assert!(taken == 0 || taken == 1000);
    (taken > 0, filter.keeps(&facts(packet)))
}

fn frame(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1][..], &[2, 0, 0, 0, 0, 2], &ether_type.to_be_bytes(), payload].concat()
}

fn v4(protocol: u8, options: usize, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let length = (20 + options * 4 + payload.len()) as u16;
    let mut head = vec![0x45 + options as u8, 0];
    head.extend(length.to_be_bytes());
    head.extend([0, 1]);
    head.extend(fragment.to_be_bytes());
    head.extend([64, protocol, 0, 0, 10, 0, 4, 2, 192, 168, 1, 255]);
    head.extend(vec![1; options * 4]);
    [&head[..], payload].concat()
}

fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut head = vec![0x60, 0, 0, 0];
    head.extend((payload.len() as u16).to_be_bytes());
    head.extend([next, 255]);
    head.extend([0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    head.extend([0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    [&head[..], payload].concat()
}

fn tcp(source: u16, destination: u16) -> Vec<u8> {
    let mut head = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    head.extend([0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x12, 1, 0, 0, 0, 0, 0, 0xAA]);
    head
}

fn udp(source: u16, destination: u16) -> Vec<u8> {
    [source, destination, 10, 0].iter().flat_map(|word| word.to_be_bytes()).chain([1, 2]).collect()
}

/// Packets without and with whatever is unusual.
pub fn packets() -> impl Strategy<Value = SeenPacket> {
    let port = || select(vec![53_u16, 80, 443, 49152]);
    let transport = (0..4_u8, port(), port()).prop_map(|(kind, source, destination)| match kind {
        0 => (6, tcp(source, destination)),
        1 => (17, udp(source, destination)),
        2 => (1, vec![8, 0, 0, 0, 0, 1, 0, 2]),
        _ => (58, vec![128, 0, 0, 0, 0, 1, 0, 2]),
    });
    let internet = (transport, 0..6_u8, 0..8_usize, any::<u16>()).prop_map(|((protocol, payload), kind, more, any)| {
        match kind {
            0 | 1 => (0x800, v4(protocol, more % 3, 0, &payload)),
            2 => (0x800, v4(protocol, 0, any, &payload)),
            3 => (0x86DD, v6(protocol, &payload)),
            // Options come first.
            4 => (0x86DD, v6(0, &[&[protocol, 0, 1, 4, 0, 0, 0, 0][..], &payload].concat())),
            _ => (
                0x806,
                [&[0, 1, 8, 0, 6, 4, 0, 1][..], &[2, 0, 0, 0, 0, 1, 10, 0, 4, 2], &[0; 6], &[10, 0, 4, 1]].concat(),
            ),
        }
    });
    let tagged = (internet, 0..5_u8, select(vec![0x8100_u16, 0x88A8, 0x88CC]));
    let whole = tagged.prop_map(|((kind, payload), tag, outer)| match tag {
        0 => frame(outer, &[&[0, 42][..], &u16::to_be_bytes(kind), &payload].concat()),
        _ => frame(kind, &payload),
    });
    let changes = proptest::collection::vec((0_usize..80, any::<u8>()), 0..3);
    let facts = (select(vec![1_u32, 1, 1, 772, 65534]), select(vec![0_u32, 1, 4]));
    (whole, changes, 0..6_u8, 0_usize..90, facts).prop_map(|(mut data, changes, is_changed, end, (hardware, kind))| {
        if is_changed == 0 {
            for (at, value) in changes {
                if let Some(byte) = data.get_mut(at) {
                    *byte = value;
                }
            }
        }
        if is_changed == 1 {
            data.truncate(end);
        }
        if hardware == 65534 {
            data.drain(..data.len().min(14));
        }
        // Of the loopback's packets, which come twice, those that leave are never taken.
        SeenPacket { hardware, kind: if hardware == 772 { 0 } else { kind }, data }
    })
}

/// Expressions over all fields.
pub fn expressions() -> impl Strategy<Value = String> {
    let numbers = select(vec![
        "length",
        "captured",
        "direction",
        "eth.type",
        "eth.vlan",
        "ip.version",
        "ip.ttl",
        "ip.length",
        "ip.protocol",
        "ip.fragment",
        "arp.operation",
        "icmp.type",
        "icmp.code",
        "udp.source_port",
        "udp.destination_port",
        "udp.length",
        "tcp.source_port",
        "tcp.destination_port",
        "tcp.sequence",
        "tcp.acknowledgment",
        "tcp.window",
        "tcp.length",
    ]);
    let constants =
        select(vec![-1_i64, 0, 1, 2, 4, 6, 8, 10, 17, 40, 53, 60, 64, 80, 128, 255, 443, 2048, 49152, 0x86DD]);
    let relation = select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let number =
        (numbers.clone(), relation, constants.clone(), any::<bool>()).prop_map(|(field, relation, value, turned)| {
            if turned { format!("{value} {relation} {field}") } else { format!("{field} {relation} {value}") }
        });
    let among = (numbers.clone(), constants.clone(), constants)
        .prop_map(|(field, first, second)| format!("({field} == {first} || {field} == {second} || {field} == 7)"));
    let texts = select(vec![
        "ip.source == \"10.0.4.2\"",
        "ip.destination != \"192.168.1.255\"",
        "ip.source == \"2001:db8::1\"",
        "ip.destination == \"fe80::2\"",
        "ip.source == \"010.0.4.2\"",
        "ip.source == \"10.*\"",
        "eth.source == \"02:00:00:00:00:02\"",
        "eth.destination != \"02:00:00:00:00:01\"",
        "eth.source == \"2:0:0:0:0:2\"",
        "event.name == \"packet:tcp\"",
        "packet.interface == \"eth0\"",
        "tcp.flags == \"SYN ACK\"",
        "ip.protocol == \"UDP\"",
        "direction == \"outbound\"",
        "has(tcp.window)",
        "arp.sender == \"10.0.4.2\"",
        "eth.type == \"IPv6\"",
    ]);
    let leaf = prop_oneof![3 => number, 1 => among, 3 => texts.prop_map(str::to_owned),
        1 => numbers.prop_map(|field| format!("has({field})"))];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|one| format!("!({one})")),
            proptest::collection::vec(inner.clone(), 2..4).prop_map(|all| format!("({})", all.join(" && "))),
            proptest::collection::vec(inner, 2..4).prop_map(|any| format!("({})", any.join(" || "))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) })]

    #[test]
    fn no_packet_is_missed(expression in expressions(), packet in packets()) {
        let (is_taken, is_kept) = verdicts(&expression, &packet);
        prop_assert!(is_taken || !is_kept, "{expression}");
    }
}

/// Plain packets and plain questions about them are decided in the kernel.
#[test]
fn plain_questions_are_exact() {
    let seen = |kind, data: Vec<u8>| SeenPacket { hardware: 1, kind, data };
    let all = [
        seen(0, frame(0x800, &v4(6, 0, 0, &tcp(443, 49152)))),
        seen(4, frame(0x800, &v4(6, 2, 0, &tcp(49152, 443)))),
        seen(0, frame(0x800, &v4(17, 0, 0, &udp(53, 2000)))),
        seen(4, frame(0x86DD, &v6(17, &udp(2000, 53)))),
        seen(0, frame(0x86DD, &v6(6, &tcp(80, 443)))),
        seen(1, frame(0x800, &v4(1, 0, 0, &[8, 0, 0, 0, 0, 1, 0, 2]))),
        seen(1, frame(0x88CC, &[0; 46])),
        seen(0, vec![1; 5]),
    ];
    for (expression, expected) in [
        ("tcp.destination_port == 443", &[1, 4][..]),
        ("!(tcp.destination_port == 443)", &[0]),
        ("tcp.source_port == 443 || udp.destination_port == 53", &[0, 3]),
        ("udp.source_port != 53", &[3]),
        ("direction == \"outbound\"", &[1, 3]),
        ("direction == \"outbound\" && ip.source == \"10.0.4.2\"", &[1]),
        ("ip.source == \"2001:db8::1\" && udp.length <= 10", &[3]),
        ("ip.version == 6", &[3, 4]),
        ("ip.protocol == \"ICMP\" && icmp.type == 8", &[5]),
        ("eth.type == \"LLDP\"", &[6]),
        ("eth.source == \"02:00:00:00:00:02\" && length < 60", &[0, 2, 5]),
        ("length < 14", &[7]),
        ("!(length < 60 || ip.ttl == 64)", &[3, 4]),
    ] {
        for (number, packet) in all.iter().enumerate() {
            let is_kept = expected.contains(&number);
            assert_eq!(verdicts(expression, packet), (is_kept, is_kept), "{expression} {number}");
        }
    }
}

/// Jumps over more than 255 instructions.
#[test]
fn long_programs_jump_far() {
    let ports: Vec<String> =
        (0..20).map(|port| format!("tcp.source_port == {0} && tcp.window != {0}", 1000 + 7 * port)).collect();
    let expression = ports.join(" || ");
    let frame = |port| SeenPacket { hardware: 1, kind: 0, data: frame(0x800, &v4(6, 0, 0, &tcp(port, 5))) };
    let program = PacketFilter::parse(&expression).expect("it is right").classic(1000);
    assert!(program.len() > 600, "{}", program.len());
    for (port, is_kept) in [(1000, true), (1133, true), (1001, false), (1413, false)] {
        assert_eq!(verdicts(&expression, &frame(port)), (is_kept, is_kept), "{port}");
    }
    // Longer than the kernel takes.
    let longest: Vec<String> =
        (0..300).map(|port| format!("tcp.source_port == {0} && tcp.window != {0}", 1000 + 7 * port)).collect();
    let program = PacketFilter::parse(&longest.join(" || ")).expect("it is right").classic(1000);
    assert_eq!(program, take_all(1000));
}

/// A packet of the loopback comes twice: as it leaves, and as it arrives.
#[test]
fn packets_of_the_loopback_are_taken_once() {
    for program in [take_all(9), PacketFilter::parse("length > 3").expect("it is right").classic(9)] {
        for (hardware, kind, taken) in [(772, 4, 0), (772, 0, 9), (1, 4, 9), (1, 0, 9), (65534, 4, 9)] {
            assert_eq!(run(&program, &SeenPacket { hardware, kind, data: vec![0; 20] }), taken, "{hardware} {kind}");
        }
    }
}

#[test]
fn errors_have_their_places() {
    for (expression, told) in [
        ("tcp.port == 80", "`tcp.port`"),
        ("tcp == 80", "structure"),
        ("ip.source < ", "expected a value"),
        ("ip.protocol == \"TPC\"", "TPC"),
        ("udp.dport == 53", "there is `udp.destination_port`"),
    ] {
        let error = PacketFilter::parse(expression).expect_err("it is wrong");
        assert!(error.contains(told) && error.contains(expression), "{error}");
    }
    for (expression, told) in [
        ("length < 0", "this is true of no packet"),
        ("udp.destination_port == 70000", "this is true of no packet"),
        ("length > 60 && !(ip.source == \"300.1.1.1\")", "no packet has this address"),
        ("ip.source != \"FE80::1\"", "packets have this address as `\"fe80::1\"`"),
        ("eth.source == \"02:42:AC:11:00:02\"", "six numbers of two digits"),
    ] {
        let filter = PacketFilter::parse(expression).expect("it is an expression");
        let fault = filter.fault(expression).expect("it has one");
        assert!(fault.contains(told) && fault.contains(expression), "{fault}");
    }
    for expression in ["interface == \"lo\"", "ip.source == \"10.*\" || ip.source == \"::1\""] {
        assert_eq!(PacketFilter::parse(expression).expect("it is an expression").fault(expression), None);
    }
}
