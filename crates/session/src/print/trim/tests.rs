//! Every case of the corpus' table of what Babeltrace's trimmer makes of one stream.

use std::path::PathBuf;

use serde_json::Value;

use super::{Message, MessageKind, Trimmer};

const SECOND: i64 = 1_000_000_000;
/// The clock of the table counts seconds from here.
const OFFSET_S: i64 = 10_000;

/// The stream of the table; the text of an event is its body.
fn story(stream_times: bool, packets: bool) -> Vec<Message<&'static str>> {
    let mut story = vec![(100, MessageKind::StreamBegin, ""), (200, MessageKind::PacketBegin, "")];
    story.extend([(300, MessageKind::Event, "`event 1` (0)"), (400, MessageKind::Event, "`event 2` (1)")]);
    story.extend([(900, MessageKind::PacketEnd, ""), (1000, MessageKind::StreamEnd, "")]);
    let is_packet = |step: &MessageKind| matches!(step, MessageKind::PacketBegin | MessageKind::PacketEnd);
    story.retain(|(_, step, _)| packets || !is_packet(step));
    let message = |(cycles, step, body): (u64, MessageKind, &'static str)| {
        let timed = stream_times || !matches!(step, MessageKind::StreamBegin | MessageKind::StreamEnd);
        let nanos = timed.then_some((OFFSET_S + cycles as i64) * SECOND);
        Message { stream: 0, step, nanos, cycles: timed.then_some(cycles), until: None, body }
    };
    story.into_iter().map(message).collect()
}

/// As the table writes messages.
fn line(message: &Message<&str>) -> String {
    let time = match message.nanos {
        None => "Unknown".to_owned(),
        Some(nanos) => {
            let cycles = message.cycles.map_or(nanos / SECOND - OFFSET_S, |cycles| cycles as i64);
            format!("{} {}", cycles, kymo_decode::text::details::grouped(nanos))
        }
    };
    let what = match message.step {
        MessageKind::StreamBegin => "Stream beginning".to_owned(),
        MessageKind::StreamEnd => "Stream end".to_owned(),
        MessageKind::PacketBegin => "Packet beginning".to_owned(),
        MessageKind::PacketEnd => "Packet end".to_owned(),
        MessageKind::Event => format!("Event {}", message.body),
        MessageKind::Loss => unreachable!("the table has none"),
    };
    format!("[{time}] {{0 0 0}} {what}")
}

fn trimmed(case: &Value) -> Vec<String> {
    let time = |name: &str| case[name].as_str().map(|seconds| seconds.parse::<i64>().unwrap() * SECOND);
    let is = |name: &str| case[name].as_bool().unwrap();
    let mut trimmer = Trimmer::new(time("begin"), time("end"));
    let mut out = Vec::new();
    for message in story(is("stream_messages_have_time"), is("packets")) {
        trimmer.push(message, &mut out);
    }
    out.iter().map(line).collect()
}

#[test]
fn as_babeltraces_trimmer_in_every_case_of_the_table() {
    let fallback = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus"));
    let path = std::env::var_os("KYMO_CORPUS").map_or_else(fallback, PathBuf::from).join("ctf/trimmer_cases.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("CORPUS ABSENT: {} is not there; the trimmer's cases were not run", path.display());
        return;
    };
    let table: Value = serde_json::from_str(&text).unwrap();
    let cases = table["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 56);
    for case in cases {
        let expected: Vec<&str> =
            case["expected"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
        assert_eq!(trimmed(case), expected, "{case}");
    }
}

#[test]
fn losses_that_reach_into_the_span_are_cut() {
    let message = |step, nanos, until| Message { stream: 0, step, nanos, cycles: Some(1), until, body: "" };
    let mut trimmer = Trimmer::new(Some(10), Some(20));
    let mut out = Vec::new();
    trimmer.push(message(MessageKind::StreamBegin, None, None), &mut out);
    trimmer.push(message(MessageKind::Loss, Some(5), Some(30)), &mut out);
    trimmer.push(message(MessageKind::Event, Some(25), None), &mut out);
    let times: Vec<_> = out.iter().map(|message| (message.step, message.nanos, message.until)).collect();
    let expected = [
        (MessageKind::StreamBegin, None, None),
        (MessageKind::Loss, Some(10), Some(20)),
        (MessageKind::StreamEnd, Some(20), None),
    ];
    assert_eq!(times, expected);
    assert!(trimmer.is_finished());
}
