//! Packets as text cases, shared by everything that reads packets.
//!
//! ```text
//! --- name
//! why: one line
//! metadata:
//!   indented lines of TSDL or JSON
//! bytes: 02 00 0A
//!   FF
//! events:
//!   0 at 8, clock 0: {1, "a"}
//!   error at bit 40: ...
//! fault: at bit 40: ...
//! prints: what `kymo print` says, one line an event record and one for each problem
//!   e: { a = 1, b = "a" }
//!   packet 0 at byte 0: ...
//! ```
//!
//! `events` is the output of the tree reader, `fault` the compiled side's message for the fault
//! that stopped it; `prints` stands where that is not all, because the packet's head is refused or
//! the metadata are.

use kymo_format::value::Value;

use kymo_decode::tree::stream::{FileFault, PacketRecords};

/// One case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// Name.
    pub name: String,
    /// Why it exists.
    pub why: String,
    /// Metadata of the trace.
    pub metadata: String,
    /// A stream file.
    pub bytes: Vec<u8>,
    /// One line an event record, and one for the error, if there is one.
    pub events: Vec<String>,
    /// The fault that stops the compiled side, in its words.
    pub fault: Option<String>,
    /// One line an event record as it is printed, and one for each problem.
    pub prints: Vec<String>,
}

/// The files of cases.
pub const FILES: [&str; 2] =
    [include_str!("../../../tests/packets/basics.txt"), include_str!("../../../tests/packets/ctf2.txt")];

/// Reads a file of cases.
///
/// # Panics
///
/// If a line has no place in the form: case files are ours.
#[must_use]
pub fn parse(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut part = "";
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(name) = line.strip_prefix("--- ") {
            let name = name.to_owned();
            cases.push(Case { name, ..Case::default() });
            continue;
        }
        let case = cases.last_mut().expect("a case begins with its name");
        let rest = match line.split_once(':') {
            Some((key, rest)) if !line.starts_with(' ') => {
                part = key;
                rest
            }
            _ => line,
        };
        match part {
            "why" => case.why += rest.trim(),
            "metadata" => case.metadata = format!("{}{rest}\n", case.metadata),
            "bytes" => case.bytes.extend(rest.split_whitespace().map(byte)),
            "events" => case.events.extend(Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty())),
            "fault" => case.fault = Some(rest.trim().to_owned()),
            "prints" => case.prints.extend(Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty())),
            other => panic!("{}: no part of a case is called {other:?}", case.name),
        }
    }
    cases
}

fn byte(digits: &str) -> u8 {
    u8::from_str_radix(digits, 16).expect("bytes are two hexadecimal digits")
}

/// The result of the tree reader, in the form of a case's events.
#[must_use]
pub fn show(packets: &[PacketRecords], fault: Option<&FileFault>) -> Vec<String> {
    let mut lines = Vec::new();
    for event in packets.iter().flat_map(|packet| &packet.events) {
        let payload = event.payload.as_ref().map_or(String::new(), value);
        lines.push(format!("{} at {}, clock {}: {payload}", event.class, event.at, event.cycles));
    }
    lines.extend(fault.map(|fault| format!("error {fault}")));
    lines
}

fn value(shown: &Value) -> String {
    let list = |values: &[Value]| values.iter().map(value).collect::<Vec<_>>().join(", ");
    match shown {
        Value::Boolean(value) => value.to_string(),
        Value::BitArray(value) => format!("{value:#x}"),
        Value::Unsigned(value) => value.to_string(),
        Value::Signed(value) => value.to_string(),
        Value::Real(bits) => format!("real {bits:#x}"),
        Value::Text(text) => format!("{:?}", String::from_utf8_lossy(text)),
        Value::Blob(bytes) => format!("blob {bytes:02x?}"),
        Value::Structure(values) => format!("{{{}}}", list(values)),
        Value::Array(values) => format!("[{}]", list(values)),
        Value::Optional(None) => "none".to_owned(),
        Value::Optional(Some(content)) => value(content),
        Value::Variant { option, content } => format!("#{option} {}", value(content)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_reader_reads_every_case() {
        let hostile = include_str!("../../../tests/packets/hostile.txt");
        let cases: Vec<Case> = FILES.iter().chain([&hostile]).flat_map(|text| parse(text)).collect();
        assert!(cases.len() >= 60, "{} cases", cases.len());
        let mut wrong = String::new();
        for case in cases {
            let metadata = kymo_format::parse(case.metadata.as_bytes());
            // Nothing is read with metadata that are refused.
            let found = metadata.trace_class.map_or_else(Vec::new, |trace| {
                let (packets, fault) = kymo_decode::tree::stream::read_file(&trace, &case.bytes);
                show(&packets, fault.as_ref())
            });
            if found != case.events {
                wrong += &format!("--- {}\nfound:    {found:?}\nexpected: {:?}\n", case.name, case.events);
            }
        }
        assert!(wrong.is_empty(), "{wrong}");
    }
}
