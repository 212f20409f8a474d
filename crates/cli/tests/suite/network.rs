//! Packets: of an interface, of programs, and of captures, from one to the other.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::recorded::{self, Place, Program};
use crate::{c_programs, rust_example};

/// A packet, from whichever file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SeenPacket {
    time: u64,
    interface: String,
    direction: u64,
    length: u64,
    link: u64,
    data: Vec<u8>,
}

/// The packets of a trace, or of a capture.
fn packets(place: &Place, path: &str) -> Vec<SeenPacket> {
    let output = place.kymo(&["print", "--format", "json", "--packet-data", path]).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("it is JSON");
    let mut found = Vec::new();
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).expect("it is JSON");
        let (name, payload) = (event["event"].as_str().unwrap_or_default(), &event["payload"]);
        if name != "kymo:packet" && !name.starts_with("packet:") {
            continue;
        }
        let number = |field: &str| payload[field].as_u64().or_else(|| payload[field]["value"].as_u64());
        let interface = payload["interface"].as_str().or_else(|| event["packet_context"]["interface"].as_str());
        let data = payload["data"].as_array().expect("it has bytes").iter();
        let received = number("received").filter(|time| *time > 0);
        found.push(SeenPacket {
            time: received.or_else(|| event["time"].as_u64()).expect("it has a time"),
            interface: interface.expect("it has an interface").to_owned(),
            direction: number("direction").expect("it has one"),
            length: number("length").expect("it has a length"),
            link: number("link").expect("it has a link"),
            data: data.map(|byte| byte.as_u64().expect("a byte") as u8).collect(),
        });
    }
    found
}

/// The same in the order of time; the kernel's times may be a little out of order.
fn sorted(mut packets: Vec<SeenPacket>) -> Vec<SeenPacket> {
    packets.sort();
    packets
}

/// The output of a tool of Wireshark, which must not complain; `None`: it is not there, which is said.
fn wireshark(place: &Place, words: &[&str]) -> Option<String> {
    let Ok(output) = place.command(words[0]).args(&words[1..]).output() else {
        eprintln!("NOT TESTED: {} is not installed", words[0]);
        return None;
    };
    let told = String::from_utf8_lossy(&output.stderr);
    let told: Vec<&str> = told.lines().filter(|line| !line.starts_with("Running as user")).collect();
    assert!(output.status.success() && told.is_empty(), "{words:?}: {told:?}");
    Some(String::from_utf8(output.stdout).expect("it is text"))
}

/// A recording of packets of the loopback, which lasts until it is told to end; `None`: that is not allowed here, which is
/// said.
fn recording(place: &Place, options: &[&str]) -> Option<Child> {
    let mut command = place.kymo(&["record", "--packets", "lo", "--json", "--output", "trace"]);
    begun(command.args(options).args(["--", "sh", "-c", "echo begun; read -r line"]))
}

/// Waits until the program that it starts says so.
fn begun(command: &mut Command) -> Option<Child> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut line = Vec::new();
    let out = child.stdout.as_mut().expect("it is a pipe");
    while !line.ends_with(b"\n") {
        let mut byte = [0];
        if out.read(&mut byte).expect("it is a pipe") == 0 {
            let output = child.wait_with_output().expect("it ends");
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(told.contains("CAP_NET_RAW"), "{told}");
            eprintln!("NOT TESTED: packets of interfaces cannot be received here: {told}");
            return None;
        }
        line.push(byte[0]);
    }
    Some(child)
}

/// Ends it, and returns its summary.
fn ended(mut recording: Child) -> Value {
    recording.stdin.take().expect("it is a pipe").write_all(b"end\n").expect("it reads");
    let output = recording.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Bytes behind the heads.
fn payload(number: usize) -> Vec<u8> {
    (0..20 + number * 7).map(|at| (at * 3 + number) as u8).collect()
}

#[test]
fn packets_of_the_loopback_are_recorded() {
    let place = Place::new();
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("there is a port");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("there is a port");
    let sender_v6 = UdpSocket::bind("[::1]:0").ok();
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = |address: std::io::Result<std::net::SocketAddr>| address.expect("it has one").port();
    let (to, from, tcp) = (port(receiver.local_addr()), port(sender.local_addr()), port(listener.local_addr()));
    let from_v6 = sender_v6.as_ref().map_or(from, |sender| port(sender.local_addr()));
    // Its answer is that no one listens: ICMP, which quotes a datagram of this length.
    let closed = port(UdpSocket::bind("127.0.0.1:0").expect("there is a port").local_addr());
    let filter = format!(
        "udp.source_port == {from} || udp.source_port == {from_v6} || tcp.source_port == {tcp} || \
         tcp.destination_port == {tcp} || icmp.type == 3 && length == {}",
        14 + 20 + 8 + 20 + 8 + 77
    );
    let before = std::time::SystemTime::now();
    let Some(child) = recording(&place, &["--packet-filter", &filter, "--pcapng", "live.pcapng"]) else { return };
    for number in 0..50 {
        sender.send_to(&payload(number), ("127.0.0.1", to)).expect("it is sent");
    }
    sender.send_to(&[7; 77], ("127.0.0.1", closed)).expect("it is sent");
    if let Some(sender) = &sender_v6 {
        sender.send_to(b"six", sender.local_addr().expect("it has one")).expect("it is sent");
    } else {
        eprintln!("NOT TESTED: there is no IPv6");
    }
    // What the filter leaves out.
    receiver.send_to(b"other", ("127.0.0.1", closed)).expect("it is sent");
    let mut client = TcpStream::connect(("127.0.0.1", tcp)).expect("it listens");
    client.write_all(b"GET / of a test").expect("it is sent");
    drop(client);
    let mut served = Vec::new();
    listener.accept().expect("it comes").0.read_to_end(&mut served).expect("it ends");
    assert_eq!(served, b"GET / of a test");
    let summary = ended(child);
    let all = packets(&place, "trace");
    // UDP: a head of Ethernet, of IPv4, of UDP, and each byte.
    let udp: Vec<&SeenPacket> =
        all.iter().filter(|packet| packet.data[12..14] == [8, 0] && packet.data[23] == 17).collect();
    assert_eq!(udp.len(), 51);
    for (number, packet) in udp[..50].iter().enumerate() {
        let sent = payload(number);
        assert_eq!(packet.data[42..], sent);
        assert_eq!(packet.data[34..38], [from.to_be_bytes(), to.to_be_bytes()].concat());
        assert_eq!(
            (packet.length, packet.direction, packet.link, &*packet.interface),
            (42 + sent.len() as u64, 1, 1, "lo")
        );
    }
    assert!(udp.is_sorted_by_key(|packet| packet.time));
    let nanos = |time: std::time::SystemTime| {
        time.duration_since(std::time::UNIX_EPOCH).expect("it is later").as_nanos() as u64
    };
    let span = nanos(before)..=nanos(std::time::SystemTime::now());
    assert!(all.iter().all(|packet| span.contains(&packet.time)), "{span:?}");
    let of_icmp = all.iter().filter(|packet| packet.data[23] == 1 && packet.data[12..14] == [8, 0]);
    assert_eq!(of_icmp.map(|packet| packet.data[70..].to_vec()).collect::<Vec<_>>(), [[7; 77]]);
    let with =
        |bytes: &[u8]| all.iter().filter(|packet| packet.data.windows(bytes.len()).any(|part| part == bytes)).count();
    assert_eq!((with(b"GET / of a test"), with(b"other")), (1, 0));
    assert_eq!(with(b"six"), usize::from(sender_v6.is_some()));
    // The connection: SYN, SYN ACK and more.
    let of_tcp = all.iter().filter(|packet| packet.data[23] == 6 && packet.data[12..14] == [8, 0]).count();
    assert!(of_tcp >= 6 && of_tcp + 52 + usize::from(sender_v6.is_some()) == all.len(), "{of_tcp} of {}", all.len());
    let expected = serde_json::json!({"packets": all.len(), "cut": 0, "dropped": 0, "interfaces": {"lo": all.len()}});
    assert_eq!(summary["packets"], expected);
    captures_are_the_same(&place, &all, to);
    place.says(&["check", "trace"], 0);
}

/// The capture that was written meanwhile, and one that is made of the trace; of UDP, packets to a port are known.
fn captures_are_the_same(place: &Place, all: &[SeenPacket], to: u16) {
    place.says(&["export", "trace", "--format", "pcapng", "--output", "exported.pcapng"], 0);
    for file in ["live.pcapng", "exported.pcapng"] {
        assert_eq!(sorted(packets(place, file)), sorted(all.to_vec()), "{file}");
        place.says(&["check", file], 0);
        let fields = ["-T", "fields", "-e", "udp.payload", "-Y", &format!("udp.port == {to}")];
        if let Some(text) = wireshark(place, &[&["tshark", "-r", file][..], &fields].concat()) {
            let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let expected: String = (0..50).map(|number| hex(&payload(number)) + "\n").collect();
            assert_eq!(text, expected);
        }
        if let Some(text) = wireshark(place, &["capinfos", "-M", file]) {
            let count = format!("Number of packets:   {}", all.len());
            let told = ["pcapng", &count, "nanoseconds (9)", "Name = lo", "Number of interfaces in file: 1"];
            told.iter().for_each(|told| assert!(text.contains(told), "{told}: {text}"));
        }
    }
}

/// A process that stands still while its interface is busy loses packets, and knows how many.
#[test]
fn dropped_and_cut_packets_are_told() {
    let place = Place::new();
    let (receiver, sender) =
        (UdpSocket::bind("127.0.0.1:0").expect("a port"), UdpSocket::bind("127.0.0.1:0").expect("a port"));
    let to = receiver.local_addr().expect("it has one");
    let filter = format!("udp.destination_port == {}", to.port());
    let options = ["--packet-filter", &filter, "--snap-length", "16000", "--pcapng", "live.pcapng"];
    let Some(child) = recording(&place, &options) else { return };
    let pid = rustix::process::Pid::from_child(&child);
    let signal = |signal| rustix::process::kill_process(pid, signal).expect("it runs");
    signal(rustix::process::Signal::STOP);
    const SENT: u64 = 5000;
    for number in 0..SENT {
        let length = if number == 0 { 30_000 } else { 100 };
        sender.send_to(&vec![1; length], to).expect("it is sent");
    }
    signal(rustix::process::Signal::CONT);
    let summary = ended(child);
    let counts = &summary["packets"];
    let [recorded, dropped] = ["packets", "dropped"].map(|name| counts[name].as_u64().expect("a number"));
    assert_eq!((recorded + dropped, counts["cut"].as_u64()), (SENT, Some(1)), "{counts}");
    assert!(dropped > SENT / 4, "{counts}");
    let text = place.says(&["print", "--event", "kymo:packet_counts", "--format", "json", "trace"], 0);
    let last: Value = serde_json::from_str(text.lines().last().expect("there is one")).expect("it is JSON");
    let payload = &last["payload"];
    assert_eq!(
        [&payload["interface"], &payload["received"], &payload["dropped"]],
        [&Value::from("lo"), &SENT.into(), &dropped.into()]
    );
    let told = place.says(&["export", "trace", "--format", "pcapng", "--output", "exported.pcapng"], 0);
    assert!(told.contains("1 packet of which the traces have only the beginning"), "{told}");
    for file in ["live.pcapng", "exported.pcapng"] {
        // They are lost events of the capture.
        let info = place.json(&["info", "--json", file]);
        assert!(info.to_string().contains(&format!("\"events_discarded\":{dropped},")), "{file}: {dropped} of {info}");
        let first = &packets(&place, file)[0];
        assert_eq!((first.length, first.data.len()), (30_042, 16_000));
        if let Some(text) = wireshark(&place, &["capinfos", "-M", file]) {
            assert!(text.contains("Number of stat entries = 1"), "{text}");
        }
    }
}

#[test]
fn wrong_words_record_nothing() {
    let place = Place::new();
    for (words, told) in [
        (&["--packets", "l0"][..], "there is no network interface `l0`"),
        (&["--packets", "lo", "--packet-filter", "tcp.port == 80"], "`tcp.port`"),
        (&["--packets", "lo", "--packet-filter", "length <"], "expected a value"),
        (&["--packets", "lo", "--snap-length", "0"], "16000"),
        (&["--packet-filter", "length > 3"], "--packets"),
        (&["--packets", "lo", "--detach"], "--detach"),
    ] {
        let said = place.says(&[&["record", "--output", "trace"], words, &["--duration", "1s"]].concat(), 2);
        assert!(said.contains(told), "{said}");
        assert!(!place.path("trace").exists());
    }
}

/// Without the right to receive packets, it is said how to get it.
#[test]
fn packets_need_a_capability() {
    let place = Place::new();
    let words =
        ["--bounding-set=-net_raw", "--inh-caps=-net_raw", env!("CARGO_BIN_EXE_kymo"), "record", "--packets", "lo"];
    let mut command = place.command("setpriv");
    let Ok(output) = command.args(words).args(["--output", "trace", "--", "true"]).output() else {
        eprintln!("NOT TESTED: there is no setpriv");
        return;
    };
    let told = String::from_utf8_lossy(&output.stderr);
    if told.contains("setpriv:") {
        eprintln!("NOT TESTED: {told}");
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("packets of `lo` cannot be received") && told.contains("CAP_NET_RAW"), "{told}");
    assert!(!place.path("trace").exists());
}

/// `kymo_packet` in C, C++ and Rust: the same events, and the same capture.
#[test]
fn examples_are_built_and_recorded() {
    let place = Place::new();
    let rust = rust_example::built("example-server").with_file_name("bridge");
    bridges(&place, &rust, "rust");
    let Some(built) = c_programs::library() else { return };
    let installed = c_programs::install(&built, &place.path("installed"));
    let sources =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/packets").canonicalize().expect("it is there");
    for name in ["Makefile", "bridge.c", "bridge.cpp"] {
        std::fs::copy(sources.join(name), place.path(name)).expect("there is room");
    }
    let mut make = place.command("make");
    make.env("PKG_CONFIG_PATH", installed.join("lib/pkgconfig")).env("CFLAGS", "-Werror").env("CXXFLAGS", "-Werror");
    let output = make.output().expect("make is there");
    assert!(output.status.success(), "{output:?}");
    for language in ["c", "cpp"] {
        bridges(&place, &place.path(&format!("bridge-{language}")), language);
    }
}

fn bridges(place: &Place, program: &Path, language: &str) {
    let (trace, file) = (format!("trace-{language}"), format!("{language}.pcapng"));
    let library = place.path("installed").join("lib").display().to_string();
    let words = ["record", "--output", &trace, "--", &program.display().to_string()];
    let output = place.kymo(&words).env("LD_LIBRARY_PATH", library).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let told = place.says(&["export", &trace, "--format", "pcapng", "--output", &file], 0);
    assert!(told.contains("57 packets of which the traces have only the beginning"), "{told}");
    for source in [&trace, &file] {
        let found = packets(place, source);
        let mut expected = Vec::new();
        for number in 0..40_u8 {
            let length = 60 + usize::from(number) * 10;
            let mut frame = vec![number; length];
            frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xB5]);
            frame.truncate(128);
            expected.push(("left", 1, length as u64, frame.clone()));
            if number % 4 != 3 {
                expected.push(("right", 2, length as u64, frame));
            }
        }
        let found: Vec<_> = found
            .iter()
            .map(|packet| (&*packet.interface, packet.direction, packet.length, packet.data.clone()))
            .collect();
        assert_eq!(found, expected, "{source}");
    }
    let fields =
        ["-T", "fields", "-e", "frame.interface_name", "-e", "frame.packet_flags_direction", "-e", "frame.len"];
    if let Some(text) = wireshark(place, &[&["tshark", "-r", &file][..], &fields].concat()) {
        assert_eq!(text.lines().count(), 70);
        let first = "left\t0x00000001\t60\nright\t0x00000002\t60\nleft\t0x00000001\t70\n";
        assert!(text.starts_with(first), "{text}");
    }
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn interface(link: u32, name: &[u8; 4]) -> Vec<u8> {
    block(1, &[&words(&[link, 0, 4 << 16 | 2])[..], name, &words(&[1 << 16 | 9, 9, 0])].concat())
}

fn packet(interface: u32, time: u64, flags: Option<u32>, length: u32, data: &[u8]) -> Vec<u8> {
    let mut body = words(&[interface, (time >> 32) as u32, time as u32, data.len() as u32, length]);
    body.extend(data);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend(flags.map_or(Vec::new(), |flags| words(&[4 << 16 | 2, flags, 0])));
    block(6, &body)
}

/// A capture that becomes a capture again has the same bytes, interfaces, directions, times and drops, by whichever way.
#[test]
fn captures_go_round() {
    let place = Place::new();
    let second = 1_700_000_000_000_000_000;
    let ip = [0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 4, 2, 10, 0, 4, 1, 0, 53, 7, 208, 0, 8, 0, 0];
    let long = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0][..], &ip, &[9; 3000]].concat();
    let section = block(0x0A0D_0D0A, &words(&[0x1A2B_3C4D, 1, u32::MAX, u32::MAX]));
    let bytes = [
        section.clone(),
        interface(1, b"eth0"),
        interface(101, b"tun0"),
        packet(0, second + 1, Some(1), 3042, &long),
        packet(1, second + 2, Some(2), 28, &ip),
        packet(0, second + 7, None, 5000, &long[..700]),
        packet(0, second + 9, Some(2), 3, &[1, 2, 3]),
        packet(1, second + 12, None, 0, &[]),
        block(5, &[words(&[0, 0, 0]), words(&[8 << 16 | 5, 7, 0, 0])].concat()),
        // Interfaces have other numbers in the next section.
        section,
        interface(101, b"tun0"),
        interface(1, b"eth0"),
        packet(1, second + 20, Some(1), 14, &long[..14]),
        packet(0, second + 21, Some(1), 28, &ip),
    ];
    std::fs::write(place.path("first.pcapng"), bytes.concat()).expect("there is room");
    let first = packets(&place, "first.pcapng");
    assert_eq!(first.len(), 7);
    let told = place.says(&["export", "first.pcapng", "--format", "pcapng", "--output", "second.pcapng"], 0);
    assert!(told.contains("7 packets dropped before the recorder had them"), "{told}");
    place.says(&["export", "second.pcapng", "--format", "pcapng", "--output", "third.pcapng"], 0);
    place.says(&["cut", "first.pcapng", "--packet-data", "--output", "as-ctf"], 0);
    place.says(&["export", "as-ctf", "--format", "pcapng", "--output", "of-ctf.pcapng"], 0);
    let read = |name: &str| std::fs::read(place.path(name)).expect("it is there");
    assert!(read("second.pcapng") == read("third.pcapng") && read("second.pcapng") == read("of-ctf.pcapng"));
    assert_eq!(packets(&place, "second.pcapng"), first);
    // One section, and each interface once.
    let text = wireshark(&place, &["capinfos", "-M", "second.pcapng"]);
    text.iter().for_each(|text| assert!(text.contains("Number of interfaces in file: 2"), "{text}"));
    let fields = [
        "-T",
        "fields",
        "-e",
        "frame.interface_name",
        "-e",
        "frame.len",
        "-e",
        "frame.cap_len",
        "-e",
        "frame.time_epoch",
    ];
    if let Some(text) = wireshark(&place, &[&["tshark", "-r", "second.pcapng"][..], &fields].concat()) {
        let first = first.iter().map(|packet| {
            let (seconds, nanos) = (packet.time / 1_000_000_000, packet.time % 1_000_000_000);
            format!("{}\t{}\t{}\t{seconds}.{nanos:09}\n", packet.interface, packet.length, packet.data.len())
        });
        assert_eq!(text, first.collect::<String>());
    }
    some_of_them(&place, &first);
    // A trace without the bytes of packets says so.
    place.says(&["cut", "first.pcapng", "--output", "bare"], 0);
    let told = place.says(&["export", "bare", "--format", "pcapng", "--output", "none.pcapng"], 1);
    assert!(told.contains("7 packets left out") && told.contains("--packet-data"), "{told}");
    let told = place.says(&["export", "first.pcapng", "--format", "pcapng", "--output", "second.pcapng"], 1);
    assert!(told.contains("second.pcapng: there is such a file already"), "{told}");
}

/// Exports some of the packets of `first.pcapng`.
fn some_of_them(place: &Place, first: &[SeenPacket]) {
    // Some of them, by the fields that captures have.
    let filter = ["--filter", "udp.source_port == 53 && length > 100", "--output", "some.pcapng"];
    place.says(&[&["export", "first.pcapng", "--format", "pcapng"], &filter[..]].concat(), 0);
    assert_eq!(packets(place, "some.pcapng"), [first[0].clone(), first[2].clone()]);
    // The same by their heads, as those that were recorded are asked.
    let filter = ["--packet-filter", "udp.source_port == 53 && length > 100", "--output", "heads.pcapng"];
    let told = place.says(&[&["export", "first.pcapng", "--format", "pcapng"], &filter[..]].concat(), 0);
    assert!(told.contains("`--packet-filter` has kept out 5 packets"), "{told}");
    assert_eq!(packets(place, "heads.pcapng"), [first[0].clone(), first[2].clone()]);
    for (filter, why) in
        [("udp.dport == 53", "there is `udp.destination_port`"), ("length < 0", "is true of no packet")]
    {
        let words = ["export", "first.pcapng", "--format", "pcapng", "--packet-filter", filter, "--output", "x.pcapng"];
        let told = place.says(&words, 2);
        assert!(told.contains(why), "{told}");
    }
}

/// Packets of interfaces and of programs, by policies: each is in one file, and the folder is one trace.
#[test]
fn policies_write_captures() {
    let place = Place::new();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("there is a port");
    let to = socket.local_addr().expect("it has one");
    let text = format!(
        "[packets]\ninterfaces = \"lo\"\nfilter = \"udp.destination_port == {}\"\nsnap_length = 44\nwriters = [\"pcapng\"]\n
        [[policy]]\nname = \"nic\"\nlabel = \"init -> nic\"\nevents = [\"test:*\"]\nwriters = [\"ctf\", \"pcapng\"]\n
        [[policy]]\nlabel = \"init -> ping\"\nformat = \"genode\"\nwriters = [\"ctf\", \"pcapng\"]\n
        [[policy]]\nname = \"all\"\n",
        to.port()
    );
    std::fs::write(place.path("policies"), text).expect("there is room");
    let mut command = place.kymo(&["record", "--policy", "policies", "--output", "traces", "--json"]);
    let Some(recording) = begun(command.args(["--", "sh", "-c", "echo begun; read -r line"])) else { return };
    for (label, tells) in [
        ("init -> nic", ["packets 3", "count 2"]),
        ("init -> ping", ["packets 2", "marks"]),
        ("other", ["count 1", "packets 1"]),
    ] {
        let words = recorded::words();
        let mut program = Program::of(place.command(&words[0]).args(&words[1..]).env("KYMO_LABEL", label));
        tells.iter().for_each(|tell| program.tell(tell));
    }
    (0..4).for_each(|_| _ = socket.send_to(b"hello", to).expect("it takes them"));
    let summary = ended(recording);
    let folder = summary["output"].as_str().expect("it has one").to_owned();
    let mut captures: Vec<(String, u64)> = summary["captures"]
        .as_array()
        .expect("there are some")
        .iter()
        .map(|capture| {
            let path = Path::new(capture["path"].as_str().expect("it has one")).strip_prefix(&folder);
            (path.expect("it is inside").display().to_string(), capture["packets"].as_u64().expect("a number"))
        })
        .collect();
    captures.sort();
    let expected = [("init/nic/nic-packets.pcapng", 3), ("init/ping.pcapng", 2), ("kymo/packets.pcapng", 4)];
    assert_eq!(captures, expected.map(|(path, packets)| (path.to_owned(), packets)), "{summary}");
    assert_eq!((&summary["packets"]["packets"], &summary["packets"]["cut"]), (&4.into(), &4.into()), "{summary}");
    assert_eq!(summary["problems"], Value::Array(Vec::new()));
    let hidden = std::fs::read_dir(&folder).expect("it is there").flatten();
    assert!(
        !hidden.into_iter().any(|entry| entry.file_name().as_encoded_bytes().starts_with(b".")),
        "nothing is left over"
    );
    // Those of programs are as they were recorded, and no packet is there twice.
    let all = packets(&place, &folder);
    let of = |interface: &str| all.iter().filter(|packet| packet.interface == interface).count();
    assert_eq!((of("lan"), of("lo"), all.len()), (6, 4, 10));
    assert!(
        all.iter()
            .filter(|packet| packet.interface == "lo")
            .all(|packet| packet.data.len() == 44 && packet.length > 44)
    );
    let counts = place.says(&["count", &folder], 0);
    assert!(counts.contains("test:count") && counts.contains("Rpc_call"), "{counts}");
    for (capture, packets) in &captures {
        let path = Path::new(&folder).join(capture).display().to_string();
        if let Some(read) = wireshark(&place, &["tshark", "-r", &path]) {
            assert_eq!(read.lines().count() as u64, *packets, "{capture}");
        }
    }
}
