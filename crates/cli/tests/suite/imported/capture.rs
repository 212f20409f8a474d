//! Captures of packets.

use expect_test::expect;

use super::{Setup, corpus};

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

fn section() -> Vec<u8> {
    block(0x0A0D_0D0A, &[0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255])
}

fn interface(name: &[u8; 4]) -> Vec<u8> {
    block(1, &[&[1, 0, 0, 0, 0, 0, 4, 0, 2, 0, 4, 0][..], name].concat())
}

/// A packet of an interface, in microseconds; of `flags`, 1 is inbound and 2 outbound.
fn packet(interface: u32, time: u64, flags: u8, data: &[u8]) -> Vec<u8> {
    let length = data.len() as u32;
    let words = [interface, (time >> 32) as u32, time as u32, length, length];
    let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    body.extend(data);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend([2, 0, 4, 0, flags, 0, 0, 0, 0, 0, 0, 0]);
    block(6, &body)
}

fn statistics(interface: u8, dropped: u8) -> Vec<u8> {
    block(5, &[&[interface, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 8, 0, dropped][..], &[0; 7]].concat())
}

fn ethernet(kind: u16, behind: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &kind.to_be_bytes(), behind].concat()
}

fn ipv4(protocol: u8, behind: &[u8]) -> Vec<u8> {
    let length = 20 + behind.len() as u8;
    [&[0x45, 0, 0, length, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 4, 2, 192, 168, 1, 255][..], behind].concat()
}

fn ipv6(protocol: u8, behind: &[u8]) -> Vec<u8> {
    let head = [0x60, 0, 0, 0, 0, behind.len() as u8, protocol, 255];
    let addresses =
        [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    [&head[..], &addresses, behind].concat()
}

/// Behind the head are two bytes.
const TCP: [u8; 22] = [1, 187, 192, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x12, 1, 0, 0, 0, 0, 0, b'h', b'i'];
const UDP: [u8; 10] = [0, 53, 7, 208, 0, 10, 0, 0, 1, 2];

fn capture() -> Vec<u8> {
    let second = 1_700_000_000_000_000;
    let vlan = ethernet(0x8100, &[&[0, 42, 8, 0][..], &ipv4(17, &UDP)].concat());
    let arp = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 4, 2, 0, 0, 0, 0, 0, 0, 10, 0, 4, 1];
    [
        section(),
        interface(b"eth0"),
        interface(b"wlan"),
        packet(0, second, 1, &ethernet(0x800, &ipv4(6, &TCP))),
        packet(1, second + 5, 2, &vlan),
        packet(0, second + 7, 2, &ethernet(0x86DD, &ipv6(58, &[128, 0, 0, 0, 0, 0, 0, 0]))),
        packet(0, second + 8, 0, &ethernet(0x806, &arp)),
        packet(0, second + 9, 0, &ethernet(0x88CC, &[1, 2])),
        packet(0, second + 10, 0, &ethernet(0x800, &ipv4(6, &TCP))[..40]),
        packet(0, second + 11, 0, &[1, 2, 3]),
        statistics(0, 3),
    ]
    .concat()
}

#[test]
fn packets_are_events_with_their_heads() {
    let setup = Setup::new(&[("a.pcapng", &capture())]);
    expect![[r#"
        [2023-11-14 22:13:20.000000000] (+?.?????????) packet:tcp: { interface = "eth0" }, { direction = ( "inbound" : container = 1 ), captured = 56, length = 56, eth = { source = "02:00:00:00:00:01", destination = "02:00:00:00:00:02", type = ( "IPv4" : container = 0x800 ), vlan = -1 }, ip = { version = 4, source = "10.0.4.2", destination = "192.168.1.255", protocol = ( "TCP" : container = 6 ), ttl = 64, length = 42, fragment = 0 }, tcp = { source_port = 443, destination_port = 49152, sequence = 7, acknowledgment = 9, flags = "SYN ACK", window = 256, length = 2 } }
        [2023-11-14 22:13:20.000005000] (+0.000005000) packet:udp: { interface = "wlan" }, { direction = ( "outbound" : container = 2 ), captured = 48, length = 48, eth = { source = "02:00:00:00:00:01", destination = "02:00:00:00:00:02", type = ( "IPv4" : container = 0x800 ), vlan = 42 }, ip = { version = 4, source = "10.0.4.2", destination = "192.168.1.255", protocol = ( "UDP" : container = 17 ), ttl = 64, length = 30, fragment = 0 }, udp = { source_port = 53, destination_port = 2000, length = 10 } }
        [2023-11-14 22:13:20.000007000] (+0.000002000) packet:icmp: { interface = "eth0" }, { direction = ( "outbound" : container = 2 ), captured = 62, length = 62, eth = { source = "02:00:00:00:00:01", destination = "02:00:00:00:00:02", type = ( "IPv6" : container = 0x86DD ), vlan = -1 }, ip = { version = 6, source = "2001:db8::1", destination = "fe80::2", protocol = ( "ICMPv6" : container = 58 ), ttl = 255, length = 8, fragment = 0 }, icmp = { type = 128, code = 0 } }
        [2023-11-14 22:13:20.000008000] (+0.000001000) packet:arp: { interface = "eth0" }, { direction = ( "unknown" : container = 0 ), captured = 42, length = 42, eth = { source = "02:00:00:00:00:01", destination = "02:00:00:00:00:02", type = ( "ARP" : container = 0x806 ), vlan = -1 }, arp = { operation = ( "request" : container = 1 ), sender = "10.0.4.2", target = "10.0.4.1" } }
        [2023-11-14 22:13:20.000009000] (+0.000001000) packet:ethernet: { interface = "eth0" }, { direction = ( "unknown" : container = 0 ), captured = 16, length = 16, eth = { source = "02:00:00:00:00:01", destination = "02:00:00:00:00:02", type = ( "LLDP" : container = 0x88CC ), vlan = -1 } }
        [2023-11-14 22:13:20.000010000] (+0.000001000) packet:ip: { interface = "eth0" }, { direction = ( "unknown" : container = 0 ), captured = 40, length = 40, eth = { source = "02:00:00:00:00:01", destination = "02:00:00:00:00:02", type = ( "IPv4" : container = 0x800 ), vlan = -1 }, ip = { version = 4, source = "10.0.4.2", destination = "192.168.1.255", protocol = ( "TCP" : container = 6 ), ttl = 64, length = 42, fragment = 0 } }
        [2023-11-14 22:13:20.000011000] (+0.000001000) packet:other: { interface = "eth0" }, { direction = ( "unknown" : container = 0 ), captured = 3, length = 3 }
        WARNING: Tracer discarded 3 events between [2023-11-14 22:13:20.000000000] and [2023-11-14 22:13:20.000011000] in trace "" (no UUID) within stream "FOLDER/a.pcapng/eth0" (stream class ID: 0, stream ID: 0).
        warning: the tracer reports 3 events discarded
        status 0
    "#]].assert_eq(&setup.all("print --clock-gmt --clock-date a.pcapng"));
    expect![[r#"
        events   share  events/s  event
             1   14.3%    90,909  packet:arp
             1   14.3%    90,909  packet:ethernet
             1   14.3%    90,909  packet:icmp
             1   14.3%    90,909  packet:ip
             1   14.3%    90,909  packet:other
             1   14.3%    90,909  packet:tcp
             1   14.3%    90,909  packet:udp
             7  100.0%   636,364  all events
        warning: the tracer reports 3 events discarded
        status 0
    "#]]
    .assert_eq(&setup.all("count a.pcapng"));
    let filtered = |filter: &str| setup.say_words(&["print", "a.pcapng", "--filter", filter]).lines().count();
    for (filter, count) in [
        ("ip.source == \"10.0.4.2\"", 3),
        ("tcp.flags == \"*SYN*\" && tcp.length == 2", 1),
        ("udp.destination_port == 2000 && eth.vlan == 42", 1),
        ("packet.interface == \"eth0\" && direction == \"outbound\"", 1),
        ("ip.source == \"2001:db8::1\"", 1),
        ("arp.operation == \"request\"", 1),
    ] {
        assert_eq!(filtered(filter), count, "{filter}");
    }
}

/// As a trace in CTF, it is the same; so it is where its first section is cut.
#[test]
fn captures_are_converted_and_cut() {
    let capture = capture();
    let setup = Setup::new(&[("a.pcapng", &capture), ("two.pcapng", &[&capture[..100], &capture].concat())]);
    for dialect in ["tsdl", "ctf2"] {
        setup.run(&format!("cut a.pcapng --as {dialect} --output {dialect}"));
        assert_eq!(setup.run(&format!("print {dialect}")), setup.run("print a.pcapng"), "{dialect}");
    }
    let said = setup.say("print two.pcapng");
    assert_eq!((said.output, said.status), (setup.run("print a.pcapng"), Some(1)));
    expect![[r#"
        WARNING: Tracer discarded 3 events between [22:13:20.000000000] and [22:13:20.000011000] in trace "" (no UUID) within stream "FOLDER/two.pcapng/eth0" (stream class ID: 0, stream ID: 0).
        error: two.pcapng: byte 84: expected the length of the block, 100, at its end too, found 28; reading goes on with the section at byte 100
        warning: the tracer reports 3 events discarded
    "#]].assert_eq(&said.errors);
}

/// A capture of Genode's recorder has two sections, which number their interfaces anew.
#[test]
fn a_capture_of_genode_is_read() {
    let path = corpus().join("genode/synthetic/2022-8-29 14:3:9/init/runtime/nic_router.pcapng");
    if !path.exists() {
        eprintln!("CORPUS ABSENT: {}: not run", path.display());
        return;
    }
    let setup = Setup::new(&[("a.pcapng", &std::fs::read(path).unwrap())]);
    expect![[r#"
        [14:03:09.000000000] (+?.?????????) packet:udp: { interface = "default" }, { direction = ( "inbound" : container = 1 ), captured = 42, length = 42, eth = { source = "02:00:00:00:00:01", destination = "ff:ff:ff:ff:ff:ff", type = ( "IPv4" : container = 0x800 ), vlan = -1 }, ip = { version = 4, source = "10.0.4.2", destination = "10.0.4.1", protocol = ( "UDP" : container = 17 ), ttl = 64, length = 28, fragment = 0 }, udp = { source_port = 1000, destination_port = 2000, length = 8 } }
        [14:03:09.000010000] (+0.000010000) packet:udp: { interface = "default" }, { direction = ( "outbound" : container = 2 ), captured = 100, length = 1322, eth = { source = "02:00:00:00:00:01", destination = "ff:ff:ff:ff:ff:ff", type = ( "IPv4" : container = 0x800 ), vlan = -1 }, ip = { version = 4, source = "10.0.4.2", destination = "10.0.4.1", protocol = ( "UDP" : container = 17 ), ttl = 64, length = 28, fragment = 0 }, udp = { source_port = 1000, destination_port = 2000, length = 8 } }
        [14:03:14.000000000] (+4.999990000) packet:udp: { interface = "default" }, { direction = ( "outbound" : container = 2 ), captured = 42, length = 42, eth = { source = "02:00:00:00:00:01", destination = "ff:ff:ff:ff:ff:ff", type = ( "IPv4" : container = 0x800 ), vlan = -1 }, ip = { version = 4, source = "10.0.4.2", destination = "10.0.4.1", protocol = ( "UDP" : container = 17 ), ttl = 64, length = 28, fragment = 0 }, udp = { source_port = 1000, destination_port = 2000, length = 8 } }
        [14:03:14.000010000] (+0.000010000) packet:udp: { interface = "uplink" }, { direction = ( "inbound" : container = 1 ), captured = 42, length = 42, eth = { source = "02:00:00:00:00:01", destination = "ff:ff:ff:ff:ff:ff", type = ( "IPv4" : container = 0x800 ), vlan = -1 }, ip = { version = 4, source = "10.0.4.2", destination = "10.0.4.1", protocol = ( "UDP" : container = 17 ), ttl = 64, length = 28, fragment = 0 }, udp = { source_port = 1000, destination_port = 2000, length = 8 } }
        status 0
    "#]].assert_eq(&setup.all("print --clock-gmt a.pcapng"));
}
