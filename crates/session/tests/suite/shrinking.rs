//! A file that becomes shorter while it is read.

use std::fs;

use kymo_session::{OpenOptions, PrintFormat, PrintOptions, Progress, Session};

const METADATA: &str = "/* CTF 1.8 */
typealias integer { size = 32; align = 8; } := u32;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; }; };
stream { packet.context := struct { u32 packet_size; u32 content_size; }; };
event { name = tick; fields := struct { u32 value; }; };
";
/// Events of a packet, which is longer than what is read at once.
const EVENTS: u32 = 1 << 20;

/// Two packets in a file.
fn stream() -> Vec<u8> {
    let bits = 8 * (12 + 4 * EVENTS);
    let packet = || {
        let head = [0xc1fc_1fc1_u32, bits, bits].into_iter();
        head.chain(0..EVENTS).flat_map(u32::to_le_bytes).collect::<Vec<u8>>()
    };
    [packet(), packet()].concat()
}

#[test]
fn a_packet_that_became_shorter_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("metadata"), METADATA).unwrap();
    fs::write(folder.path().join("stream"), stream()).unwrap();
    let session = Session::open(&[folder.path().to_owned()], &OpenOptions::default()).unwrap();
    let file = fs::OpenOptions::new().write(true).open(folder.path().join("stream")).unwrap();
    file.set_len(u64::from(3 * EVENTS)).unwrap();
    let mut text = Vec::new();
    let options = PrintOptions { format: PrintFormat::Details, ..PrintOptions::default() };
    let report = session.print(&options, &mut text, &Progress::default()).unwrap();
    let text = String::from_utf8(text).unwrap();
    let count = |words: &str| text.lines().filter(|line| line.contains(words)).count();
    let events = count("Event `tick`");
    assert!(0 < events && events < EVENTS as usize, "{events}");
    assert_eq!(count("Packet beginning"), count("Packet end"), "{report:?}");
    assert!(report.report.unreadable.iter().any(|problem| problem.message.contains("now ends before")), "{report:?}");
}
