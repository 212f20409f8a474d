//! Programs in the kernel: it accepts them, and takes the packets that the interpreter of the other tests takes.

use std::time::{Duration, Instant};

use kymo_packet::{ClassicInstruction, PacketFilter, take_all};
use kymo_probe::packets::{BpfLine, PacketSocket, interface_index, wait_for_packets};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::classic::{SeenPacket, expressions, packets, run};

const EXPRESSIONS: usize = 60;
const PACKETS: usize = 40;
/// The address from which all frames of the test come.
const SENDER: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn lines(program: &[ClassicInstruction]) -> Vec<BpfLine> {
    program.iter().map(|line| BpfLine { code: line.code, jt: line.jt, jf: line.jf, k: line.k }).collect()
}

/// Frames of the test that a socket has taken now.
fn taken(socket: &mut PacketSocket) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while socket.take(100, &mut |packet| {
        if packet.data.get(6..12) == Some(&SENDER) {
            found.push(packet.data.to_vec());
        }
    }) > 0
    {}
    found
}

#[test]
fn the_kernel_takes_the_same_packets() {
    let index = interface_index(c"lo").expect("every system has it");
    let mut all = match PacketSocket::open(index, 2000, &lines(&take_all(2000))) {
        Ok(socket) => socket,
        Err(error) => {
            eprintln!("NOT TESTED: packets cannot be received here: {error} (CAP_NET_RAW is needed)");
            return;
        }
    };
    let mut runner = TestRunner::deterministic();
    let (mut kept, mut left) = (0, 0);
    for _ in 0..EXPRESSIONS {
        let expression = expressions().new_tree(&mut runner).expect("there is one").current();
        let filter = PacketFilter::parse(&expression).unwrap_or_else(|error| panic!("{error}"));
        let program = filter.classic(2000);
        let mut socket = PacketSocket::open(index, 2000, &lines(&program)).expect("the kernel accepts the program");
        let mut sent = Vec::new();
        while sent.len() < PACKETS {
            let packet = packets().new_tree(&mut runner).expect("there is one").current();
            // The kernel takes tags out, and the interpreter does not; frames are told by their sender.
            let is_plain = packet.data.len() >= 14 && packet.data[6..12] == SENDER;
            if is_plain && !matches!(packet.data[12..14], [0x81, 0] | [0x88, 0xA8]) {
                sent.push(packet.data);
            }
        }
        for data in &sent {
            all.send(data).expect("it is sent");
        }
        // When a socket that takes all packets has them, the other one has them in a moment.
        let (mut arrived, begin) = (Vec::new(), Instant::now());
        while arrived.len() < sent.len() {
            assert!(begin.elapsed() < Duration::from_secs(20), "{} of {} frames came", arrived.len(), sent.len());
            wait_for_packets(std::slice::from_ref(&all), Duration::from_millis(20)).expect("it is up");
            arrived.extend(taken(&mut all));
        }
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(arrived, sent);
        let of = |data: &Vec<u8>| run(&program, &SeenPacket { hardware: 772, kind: 3, data: data.clone() }) > 0;
        let expected: Vec<Vec<u8>> = sent.iter().filter(|data| of(data)).cloned().collect();
        assert_eq!(taken(&mut socket), expected, "{expression}");
        kept += expected.len();
        left += sent.len() - expected.len();
    }
    assert!(kept > 100 && left > 100, "the kernel takes {kept} packets, and leaves {left}");
}

/// A tag of a VLAN comes beside the packet.
#[test]
fn tags_are_taken_out() {
    let index = interface_index(c"lo").expect("every system has it");
    let Ok(mut socket) = PacketSocket::open(index, 2000, &lines(&take_all(2000))) else {
        eprintln!("NOT TESTED: packets cannot be received here (CAP_NET_RAW is needed)");
        return;
    };
    let sender = [2, 0, 0, 0, 7, 2];
    let frame = [&[2, 0, 0, 0, 0, 1][..], &sender, &[0x81, 0, 0x20, 42, 0x88, 0xB5], &[9; 50]].concat();
    socket.send(&frame).expect("it is sent");
    let (mut found, begin) = (None, Instant::now());
    while found.is_none() {
        assert!(begin.elapsed() < Duration::from_secs(20), "no frame came");
        wait_for_packets(std::slice::from_ref(&socket), Duration::from_millis(20)).expect("it is up");
        socket.take(100, &mut |packet| {
            if packet.data.get(6..12) == Some(&sender) {
                found = Some((packet.tag, packet.hardware, packet.interface, packet.length, packet.data.to_vec()));
            }
        });
    }
    let without = [&frame[..12], &frame[16..]].concat();
    assert_eq!(found, Some((Some((0x8100, 0x202A)), 772, index, without.len() as u32, without)));
    let counts = socket.counts().expect("they are known");
    assert!(counts.received >= 1 && counts.dropped == 0, "{counts:?}");
    assert_eq!(socket.counts().expect("they are known").dropped, 0);
}
