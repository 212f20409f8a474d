//! Bytes of metadata files to text: packets of both versions, and files that are no metadata.

use kymo_format::{Severity, parse};
use kymo_units::Uuid;

const JSON: &str = "\u{1e}{\"type\": \"preamble\", \"version\": 2}\n\u{1e}{\"type\": \"data-stream-class\"}\n\
    \u{1e}{\"type\": \"event-record-class\", \"name\": \"hello\", \"payload-field-class\": {\"type\": \"structure\", \"member-classes\": \
    [{\"name\": \"a\", \"field-class\": {\"type\": \"fixed-length-unsigned-integer\", \"length\": 8, \"byte-order\": \"little-endian\"}}]}}\n";
const TSDL: &str = "/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; };\n\
    event { name = \"hello\"; fields := struct { integer { size = 8; } a; }; };\n";

/// A packet of metadata, with a header of so many bytes.
fn packet(text: &str, version: (u8, u8), header: usize, word: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let content = header + text.len();
    let mut bytes = word(0x75d1_1d57).to_vec();
    bytes.extend([7; 16]);
    bytes.extend(word(0));
    bytes.extend(word(8 * content as u32));
    bytes.extend(word(8 * (content as u32 + 3)));
    bytes.extend([0, 0, 0, version.0, version.1]);
    if version.0 == 2 {
        bytes.extend([0; 3]);
        bytes.extend(word(8 * header as u32));
    }
    bytes.resize(header, 0);
    bytes.extend(text.as_bytes());
    bytes.extend([0; 3]);
    bytes
}

/// The findings, and the name of the first event.
fn found(bytes: &[u8]) -> (Vec<String>, Option<String>) {
    let metadata = parse(bytes);
    let findings = metadata.diagnostics.iter().map(|found| match found.severity {
        Severity::Error => format!("error: {}", found.problem),
        Severity::Assumption(assumption) => format!("{assumption}: {}", found.problem),
    });
    let findings = findings.collect();
    let event = metadata.trace_class.and_then(|class| class.stream_classes[0].event_classes[0].name.clone());
    (findings, event)
}

#[track_caller]
fn reads(bytes: &[u8], expected: &[&str]) {
    let (findings, event) = found(bytes);
    assert_eq!((findings, event.as_deref()), (expected.iter().map(|text| (*text).to_owned()).collect(), Some("hello")));
}

#[track_caller]
fn refuses(bytes: &[u8], expected: &str) {
    let (findings, event) = found(bytes);
    assert_eq!((findings, event), (vec![format!("error: {expected}")], None));
}

#[test]
fn packets_of_both_versions_and_byte_orders() {
    for word in [u32::to_le_bytes, u32::to_be_bytes] {
        reads(&packet(TSDL, (1, 8), 37, word), &[]);
        reads(&packet(JSON, (2, 0), 44, word), &[]);
        // A header may become longer.
        reads(&packet(JSON, (2, 0), 60, word), &[]);
        let (first, second) = JSON.split_at(50);
        reads(&[packet(first, (2, 0), 44, word), packet(second, (2, 0), 44, word)].concat(), &[]);
        assert_eq!(parse(&packet(JSON, (2, 0), 44, word)).packet_uuid, Some(Uuid([7; 16])));
    }
}

#[test]
fn packets_with_a_header_that_cannot_be() {
    let mut bytes = packet(JSON, (2, 0), 44, u32::to_le_bytes);
    let problem = |header: u32, bytes: &[u8]| {
        let content = 8 * (bytes.len() as u32 - 3);
        format!(
            "at byte 0: the metadata packet says it has {} bits, {content} of them content; {} bits are left in the file, \
             and {header} are its header",
            content + 24,
            8 * bytes.len(),
        )
    };
    for header in [0_u32, 8 * 43, 353, 8 * 10_000, u32::MAX] {
        bytes[40..44].copy_from_slice(&header.to_le_bytes());
        refuses(&bytes, &problem(header, &bytes));
    }
    refuses(&bytes[..40], "at byte 0: the metadata packet's header needs 44 bytes; 40 are left");
    refuses(&bytes[..30], "at byte 0: the metadata packet's header needs 37 bytes; 30 are left");
}

#[test]
fn a_byte_order_mark_has_no_meaning() {
    for text in [TSDL, JSON] {
        let bytes = format!("\u{feff}{text}");
        reads(bytes.as_bytes(), &["byte-order-mark: the metadata begins with a byte order mark"]);
    }
}

#[test]
fn a_file_that_is_no_metadata_is_one_error() {
    let wide = |order: fn(u16) -> [u8; 2], mark: &str| -> Vec<u8> {
        format!("{mark}{TSDL}").encode_utf16().flat_map(order).collect()
    };
    for mark in ["", "\u{feff}"] {
        refuses(
            &wide(u16::to_le_bytes, mark),
            "the metadata is text in UTF-16 (little-endian), where UTF-8 is expected",
        );
        refuses(&wide(u16::to_be_bytes, mark), "the metadata is text in UTF-16 (big-endian), where UTF-8 is expected");
    }
    let stream =
        "the file begins with the magic number of a packet of events, 0xc1fc1fc1: it is a data stream, not metadata";
    refuses(&[&0xc1fc_1fc1_u32.to_le_bytes()[..], &[0; 100]].concat(), stream);
    refuses(&[&0xc1fc_1fc1_u32.to_be_bytes()[..], &[0; 100]].concat(), stream);
    let bytes: Vec<u8> = (0..=255_u8).cycle().take(10_000).collect();
    refuses(&bytes, "the metadata is not text: the byte at 1 is 0x01, and so are 415 of the first 4096");
}

/// What a message quotes of the text must not change a terminal.
#[test]
fn control_characters_are_shown_as_pictures() {
    let text = "/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; };\nevent { name = \"a\u{1b}[31m\"; fields := struct { x\u{1b}]0;t\u{7} x; }; };\n";
    let metadata = parse(text.as_bytes());
    assert!(!metadata.diagnostics.is_empty());
    for found in &metadata.diagnostics {
        let shown = found.render_plain(&metadata.text, "metadata");
        assert!(shown.contains("a␛[31m"), "{shown}");
        assert!(shown.chars().all(|character| character == '\n' || !character.is_control()), "{shown:?}");
    }
}
