//! Messages that are pulled one by one have the content of `print`, in the same order: fields as
//! its JSON, marks as its details.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kymo_session::messages::model::TextEncoding;
use kymo_session::messages::{
    ColumnShape, EventAt, FieldRef, MarkKind, MessageBatch, MessageRow, MessageValue, Messages, MessagesQuestion,
    Pulled,
};
use kymo_session::{OpenOptions, PrintFormat, PrintOptions, Progress, Selection, Session};
use serde_json::{Map, Value as Json, json};

/// Events of a trace that are compared.
const EVENTS_MAX: u64 = 20_000;

/// All traces of the corpus that can be opened, and our own.
fn traces() -> Vec<PathBuf> {
    let corpus = std::env::var_os("KYMO_CORPUS").map(PathBuf::from);
    let corpus = corpus.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"));
    if !corpus.is_dir() {
        println!("CORPUS ABSENT: messages are compared on our own traces only");
    }
    let mut folders = vec![corpus, Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces")];
    let mut traces = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(entries.map(|entry| entry.path()).filter(|path| path.is_dir()));
        traces.extend(folder.join("metadata").is_file().then_some(folder));
    }
    traces.sort();
    traces
}

fn open(path: &Path, threads: usize) -> Option<Arc<Session>> {
    let options = OpenOptions { threads, ..OpenOptions::default() };
    Session::open(&[path.to_path_buf()], &options).ok().map(Arc::new)
}

fn print(session: &Session, options: &PrintOptions) -> Option<String> {
    let mut text = Vec::new();
    session.print(options, &mut text, &Progress::default()).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Every row of a batch, one after the other.
fn rows(messages: Messages) -> impl Iterator<Item = (Arc<MessageBatch>, MessageRow)> {
    messages.flat_map(|batch| {
        let batch = batch.expect("the thread goes on");
        (0..batch.rows().len()).map(move |row| (Arc::clone(&batch), batch.rows()[row])).collect::<Vec<_>>()
    })
}

/// A field as `print --format json` shows it.
fn shown(field: FieldRef<'_>) -> Json {
    let flags = |bits: u64| match field.shape() {
        ColumnShape::BitMap { flags, .. } => {
            let has = |bit: &u32| bits >> bit & 1 == 1;
            let set: Vec<i128> = (0..64).filter(has).map(i128::from).collect();
            let is_set = |flag: &&kymo_session::messages::model::EnumerationMapping| {
                flag.ranges.iter().any(|range| set.iter().any(|bit| range.contains(*bit)))
            };
            json!({"value": bits, "labels": flags.iter().filter(is_set).map(|flag| &flag.label).collect::<Vec<_>>()})
        }
        _ => json!(bits),
    };
    let integer = |number: Json| match field.shape() {
        ColumnShape::Integer { labels: Some(_), .. } => {
            let mut labels: Vec<&str> = field.labels().collect();
            let mut seen = std::collections::HashSet::new();
            labels.retain(|label| seen.insert(*label));
            json!({"value": number, "labels": labels})
        }
        _ => number,
    };
    match field.value() {
        MessageValue::Unsigned(number) => integer(json!(number)),
        MessageValue::Signed(number) => integer(json!(number)),
        MessageValue::Boolean(is_true) => json!(is_true),
        MessageValue::Bits(bits) => flags(bits),
        MessageValue::Real(real) => json!(real),
        MessageValue::Text(bytes, TextEncoding::Utf8 | TextEncoding::Ascii) => json!(String::from_utf8_lossy(bytes)),
        // How other characters are written is the faces' business.
        MessageValue::Text(..) => Json::Null,
        MessageValue::Blob(bytes) => json!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        MessageValue::List(_) => field.elements().map(shown).collect(),
        MessageValue::Structure => {
            Json::Object(field.members().map(|(name, member)| (name.to_owned(), shown(member))).collect())
        }
        MessageValue::Optional(content) => content.map_or(Json::Null, shown),
        MessageValue::Variant(_, option) => shown(option),
    }
}

/// The same, but for the last digits of reals, of which those of 32 bits have few, and for texts that are not compared.
fn agree(ours: &Json, theirs: &Json) -> bool {
    match (ours, theirs) {
        (Json::Number(one), Json::Number(other)) if one.is_f64() || other.is_f64() => {
            let (one, other) = (one.as_f64().expect("a number"), other.as_f64().expect("a number"));
            (one - other).abs() <= one.abs() * 1e-7
        }
        (Json::Null, Json::String(_)) => true,
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| agree(one, other))
        }
        (Json::Object(one), Json::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| other.get(name).is_some_and(|other| agree(one, other)))
        }
        _ => ours == theirs,
    }
}

/// An event as `print --format json` shows it; with some of its fields, if so many are wanted.
fn event(batch: &MessageBatch, at: EventAt, wanted: usize) -> Json {
    let stream = &batch.facts().streams[batch.stream(at)];
    let trace = &batch.facts().traces[stream.trace];
    let class = &trace.class.stream_classes[stream.class].event_classes[batch.class(at)];
    let mut event = Map::new();
    if stream.clock.is_some() {
        event.insert("time".into(), json!(batch.nanos(at)));
        event.insert("cycles".into(), json!(batch.cycles(at)));
    }
    event.insert("trace".into(), json!(trace.name));
    event.insert("stream".into(), json!(batch.stream(at)));
    if let Some(name) = &class.name {
        event.insert("event".into(), json!(name));
    }
    event.insert("id".into(), json!(class.id));
    let mut put = |scope: &str, name: &str, field: Option<FieldRef<'_>>| {
        let scope = event.entry(scope).or_insert_with(|| json!({}));
        let value = shown(field.expect("what the scan read can be read again"));
        scope.as_object_mut().expect("a scope").insert(name.to_owned(), value);
    };
    for (index, field) in stream.packet_fields.fields().iter().enumerate() {
        put("packet_context", &field.name, batch.packet_field(at, index));
    }
    for (index, field) in batch.class_fields(at).fields().iter().enumerate().take(wanted) {
        use kymo_session::messages::model::Scope;
        let scope = match field.scope {
            Scope::EventCommonContext => "common_context",
            Scope::EventSpecificContext => "context",
            _ => "payload",
        };
        put(scope, &field.name, batch.field(at, index));
    }
    Json::Object(event)
}

#[test]
fn events_are_those_of_print_in_the_same_order_with_the_same_fields() {
    let mut events = 0;
    // Wrong today: `_bps` and `bps` of one event become one key of the JSON line, so that a line cannot be compared with the fields.
    let is_known_as_wrong = |path: &PathBuf| path.ends_with("faults/06f-dup-field-underscore");
    for path in traces().into_iter().filter(|path| !is_known_as_wrong(path)) {
        let Some(session) = open(&path, 2) else { continue };
        let options = PrintOptions { format: PrintFormat::Json, limit: Some(EVENTS_MAX), ..PrintOptions::default() };
        let Some(text) = print(&session, &options) else { continue };
        // Few fields are read one by one, many together.
        for wanted in [2, usize::MAX] {
            let messages = session.messages(&MessagesQuestion::default()).expect("it can be read");
            let mut ours = rows(messages);
            for (number, line) in text.lines().enumerate() {
                let mut theirs: Json = serde_json::from_str(line).expect("a line is JSON");
                let (batch, row) = ours.next().unwrap_or_else(|| panic!("{}: no event {number}", path.display()));
                let MessageRow::Event(at) = row else { panic!("no marks were asked for") };
                let mut ours = event(&batch, at, wanted);
                keep_first_fields(&mut theirs, &mut ours, wanted);
                assert!(agree(&ours, &theirs), "{}, event {number}: {ours} is not {theirs}", path.display());
                events += 1;
            }
            let is_over = (text.lines().count() as u64) < EVENTS_MAX;
            assert!(!is_over || ours.next().is_none(), "{}: more events than print has", path.display());
        }
    }
    assert!(events > 0);
}

/// Scopes that are empty, and fields behind the wanted ones, are not compared.
fn keep_first_fields(theirs: &mut Json, ours: &mut Json, wanted: usize) {
    let theirs = theirs.as_object_mut().expect("an event");
    for scope in ["common_context", "context", "payload", "packet_context"] {
        let names = ours.get(scope).and_then(Json::as_object).map(|fields| fields.keys().cloned().collect::<Vec<_>>());
        if let (Some(fields), true) = (theirs.get_mut(scope).and_then(Json::as_object_mut), wanted != usize::MAX) {
            fields.retain(|name, _| names.as_ref().is_some_and(|names| names.contains(name)));
        }
        if theirs.get(scope).and_then(Json::as_object).is_some_and(Map::is_empty) && names.is_none() {
            theirs.remove(scope);
        }
    }
}

/// Blocks of details as (what, times), without the commas of numbers.
fn blocks(text: &str) -> Vec<(String, Vec<String>)> {
    let mut blocks = Vec::new();
    let mut times = Vec::new();
    for line in text.lines() {
        let is_time = line.starts_with('[') && line.ends_with(']');
        if is_time {
            times.push(line.replace(',', ""));
        } else if let Some(what) = [
            "Stream beginning",
            "Stream end",
            "Packet beginning",
            "Packet end",
            "Discarded events",
            "Discarded packets",
            "Event ",
        ]
        .iter()
        .find(|what| line.starts_with(**what))
        {
            let line = if what.starts_with("Discarded") { line } else { what.trim_end() };
            blocks.push((line.replace(',', ""), std::mem::take(&mut times)));
        }
    }
    blocks
}

/// A message as such a block.
fn block(batch: &MessageBatch, row: MessageRow) -> (String, Vec<String>) {
    let (stream, what, times) = match row {
        MessageRow::Event(at) => (batch.stream(at), "Event".to_owned(), vec![Some(batch.cycles(at))]),
        MessageRow::Mark(mark) => {
            let mark = batch.mark(mark);
            let count = |what: &str| mark.count.map_or(String::new(), |count| format!(" ({count} {what})"));
            let (what, times) = match mark.kind {
                MarkKind::StreamBegin => ("Stream beginning".to_owned(), vec![mark.cycles]),
                MarkKind::StreamEnd => ("Stream end".to_owned(), vec![mark.cycles]),
                MarkKind::PacketBegin => ("Packet beginning".to_owned(), vec![mark.cycles]),
                MarkKind::PacketEnd => ("Packet end".to_owned(), vec![mark.cycles]),
                MarkKind::DiscardedEvents => {
                    ("Discarded events".to_owned() + &count("events"), vec![mark.cycles, mark.end_cycles])
                }
                MarkKind::DiscardedPackets => {
                    ("Discarded packets".to_owned() + &count("packets"), vec![mark.cycles, mark.end_cycles])
                }
            };
            let is_packet = matches!(mark.kind, MarkKind::PacketBegin | MarkKind::PacketEnd);
            assert_eq!(mark.packet.is_some(), is_packet, "{mark:?}");
            (mark.stream, what, times)
        }
    };
    let clock = batch.facts().streams[stream].clock;
    let time = |cycles: Option<u64>| {
        let Some(cycles) = cycles else { return "[Unknown]".to_owned() };
        let nanos = clock.and_then(|clock| clock.nanos(cycles));
        let nanos = nanos.map_or(String::new(), |nanos| format!(" {nanos} ns from origin"));
        format!("[{cycles} cycles{nanos}]")
    };
    (what, times.into_iter().map(time).collect())
}

#[test]
fn marks_are_those_of_details_at_the_same_times() {
    let mut marks = 0;
    for path in traces() {
        let Some(session) = open(&path, 2) else { continue };
        let times: Vec<i64> = times(&session);
        let (first, last) = (times.first().copied(), times.last().copied());
        let middle = times.get(times.len() / 2).copied();
        for (begin_ns, end_ns, stream_intersection) in [
            (None, None, false),
            (middle, None, false),
            (first, middle, false),
            (middle, last, false),
            (None, None, true),
        ] {
            let options = PrintOptions {
                format: PrintFormat::Details,
                limit: Some(EVENTS_MAX),
                begin_ns,
                end_ns,
                stream_intersection,
                ..PrintOptions::default()
            };
            let Some(text) = print(&session, &options) else { continue };
            let question =
                MessagesQuestion { begin_ns, end_ns, stream_intersection, marks: true, ..MessagesQuestion::default() };
            let mut ours = rows(session.messages(&question).expect("it can be read"));
            let theirs = blocks(&text);
            for (number, (what, times)) in theirs.iter().enumerate() {
                let (batch, row) = ours.next().unwrap_or_else(|| panic!("{}: no message {number}", path.display()));
                let (our_what, our_times) = block(&batch, row);
                assert_eq!(our_what, *what, "{}, message {number}", path.display());
                // Details do not show times that a stream class has not.
                assert!(
                    times.is_empty() || our_times == *times,
                    "{}, {number}: {our_times:?} {times:?}",
                    path.display()
                );
                marks += u64::from(matches!(row, MessageRow::Mark(_)));
            }
        }
    }
    assert!(marks > 0);
}

/// The times of a trace's first events.
fn times(session: &Arc<Session>) -> Vec<i64> {
    let messages = session.messages(&MessagesQuestion::default()).expect("it can be read");
    let time = |(batch, row): (Arc<MessageBatch>, MessageRow)| match row {
        MessageRow::Event(at) => batch.nanos(at),
        MessageRow::Mark(_) => None,
    };
    rows(messages).take(EVENTS_MAX as usize / 2).filter_map(time).collect()
}

fn demo() -> Arc<Session> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo");
    open(&path, 2).expect("our own trace can be opened")
}

#[test]
fn selected_events_between_two_times_are_those_of_print() {
    let session = demo();
    let times = times(&session);
    let (begin_ns, end_ns) = (Some(times[times.len() / 4]), Some(times[times.len() / 2]));
    let selection = || Selection { events: vec!["jobs:s*".to_owned()], ..Selection::default() };
    let options = PrintOptions { selection: selection(), begin_ns, end_ns, ..PrintOptions::default() };
    let text = print(&session, &options).expect("memory takes it");
    let question = MessagesQuestion { selection: selection(), begin_ns, end_ns, ..MessagesQuestion::default() };
    let ours = rows(session.messages(&question).expect("it can be read")).count();
    assert!(ours > 0);
    assert_eq!(ours, text.lines().count());
}

#[test]
fn nobody_reads_on_when_messages_are_dropped() {
    let session = demo();
    let mut messages = session.messages(&MessagesQuestion::default()).expect("it can be read");
    assert!(matches!(messages.next_within(Duration::from_secs(60)), Ok(Pulled::Batch(_))));
    drop(messages);
    // The thread holds the session as long as it reads.
    let mut left = 600;
    while Arc::strong_count(&session) > 1 && left > 0 {
        std::thread::sleep(Duration::from_millis(100));
        left -= 1;
    }
    assert_eq!(Arc::strong_count(&session), 1);
}

#[test]
fn what_cannot_be_read_is_told_at_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo");
    for entry in std::fs::read_dir(demo).expect("our own trace").flatten().filter(|entry| entry.path().is_file()) {
        let mut bytes = std::fs::read(entry.path()).expect("it can be read");
        if entry.file_name() != "metadata" {
            bytes.truncate(bytes.len() / 2 + 100);
        }
        std::fs::write(folder.path().join(entry.file_name()), bytes).expect("it can be written");
    }
    let session = open(folder.path(), 2).expect("what is left can be opened");
    let mut messages = session.messages(&MessagesQuestion::default()).expect("it can be read");
    let events: usize = messages.by_ref().map(|batch| batch.expect("the thread goes on").rows().len()).sum();
    assert!(events > 0);
    assert!(!messages.report().is_complete(), "{:?}", messages.report());
}
