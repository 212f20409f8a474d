//! Any bytes are a program's definition of an event, or are refused with a place; an accepted
//! definition can be named in a trace that is read.

use std::sync::Arc;

use kymo_format::model::{FieldClass, FieldKind};
use kymo_format::write::{to_json, to_tsdl};
use kymo_lane::{WriterThread, contexts};
use kymo_recorder::EventRun;
use kymo_recorder::program::{ProgramFacts, ProgramIdentity};
use kymo_recorder::trace::{CtfVersion, Everything, Output, OutputOptions};
use kymo_schema::definition::{ContextClass, Definition, EventClass, parse};
use kymo_schema::field::{DefinedField, FieldType, ScalarType};

use crate::random::RandomNumbers;
use crate::recorded::{RecordingStage, TraceReading};

/// Bytes that an event of zeros may have to be recorded too; of larger ones only the name is.
const EVENT_BYTES_MAX: usize = 64 << 10;

/// The promise for the text of a definition; whether it was understood.
///
/// # Panics
///
/// If it is broken, or a temporary folder cannot be written.
pub fn hold(data: &[u8], stage: &RecordingStage) -> bool {
    let definition = match parse(data) {
        Ok(definition) => definition,
        Err(problem) => {
            let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
            let line = lines.get(problem.line as usize - 1).expect("there is such a line");
            assert!(problem.column >= 1 && problem.column as usize <= line.len() + 1, "{problem}");
            return false;
        }
    };
    let format = if data.len().is_multiple_of(2) { CtfVersion::Ctf18 } else { CtfVersion::Ctf2 };
    match definition {
        Definition::Event(event) => named(&Arc::new(event), None, format, stage),
        Definition::Context(context) => {
            let event = EventClass { fields: Vec::new(), ..event() };
            named(&Arc::new(event), Some(&Arc::new(context)), format, stage);
        }
    }
    true
}

fn event() -> EventClass {
    match parse(b"event a:b\n") {
        Ok(Definition::Event(event)) => event,
        other => panic!("{other:?}"),
    }
}

/// An event of zeros, in a trace.
fn named(event: &Arc<EventClass>, context: Option<&Arc<ContextClass>>, format: CtfVersion, stage: &RecordingStage) {
    let folder = tempfile::tempdir_in(stage.path()).expect("there is room");
    let path = folder.path().join("trace");
    let mut clock = stage.clock();
    let begin = clock.now();
    let options = OutputOptions { format, ..OutputOptions::default() };
    let mut output = Output::create(&path, options, &mut clock, begin).expect("there is room");
    let carried = if context.is_some() { contexts::FIRST_OWN } else { 0 };
    let fields = context.map(|context| &context.field).into_iter().chain(&event.fields);
    let size = fields.map(|field| bytes_of(&field.kind)).fold(0, usize::saturating_add);
    let is_whole = size <= EVENT_BYTES_MAX;
    let mut bytes = vec![0; 6 + if is_whole { size } else { 0 }];
    bytes[2..6].copy_from_slice(&(begin as u32).to_le_bytes());
    let known = ProgramFacts {
        identity: identity(),
        events: vec![Some(Arc::clone(event))],
        contexts: vec![context.map(Arc::clone)],
        ..ProgramFacts::default()
    };
    let run = EventRun {
        lane: 0,
        thread: WriterThread::default(),
        sequence: 0,
        from: 0,
        contexts: carried,
        begin,
        last: begin,
        bytes: &bytes,
        discarded: 0,
        discarded_ever: 0,
        missing: 0,
    };
    output.take(&known, &run, &mut Everything);
    assert!(output.error().is_none(), "{event:?} cannot be named: {:?}", output.error());
    let tally = output.finish(&mut clock).expect("it can be written");
    assert_eq!(tally.events, u64::from(is_whole), "{event:?}");
    let metadata = std::fs::read(path.join("metadata")).expect("it is there");
    is_said(&metadata, event, context.map(|context| &**context));
    TraceReading::read(&path).is_what(&tally);
}

fn identity() -> ProgramIdentity {
    ProgramIdentity { key: 1, pid: 1, started: 1, ..ProgramIdentity::default() }
}

/// The size of a field with only zeros in its bytes.
fn bytes_of(kind: &FieldType) -> usize {
    match kind {
        FieldType::Scalar(scalar) => scalar.bytes().into(),
        FieldType::FixedText(bytes) => *bytes as usize,
        FieldType::Array(element, count) => usize::from(element.bytes()) * *count as usize,
        FieldType::Text | FieldType::Sequence(_) => 2,
    }
}

/// The metadata agrees with the definition, and can be written again.
fn is_said(metadata: &[u8], event: &EventClass, context: Option<&ContextClass>) {
    let parsed = kymo_format::parse(metadata);
    assert!(parsed.diagnostics.is_empty(), "{event:?}: {:?}\n{}", parsed.diagnostics, parsed.text);
    let trace = parsed.trace_class.expect("nothing is wrong with it");
    let classes = || trace.stream_classes.iter().flat_map(|stream| &stream.event_classes);
    let name = event.full_name();
    let class = classes().find(|class| class.name.as_deref() == Some(&name));
    let class = class.unwrap_or_else(|| panic!("{name:?} is not there:\n{}", parsed.text));
    assert_eq!(class.log_level, Some(i64::from(event.level)), "{name:?}");
    let payload = members(class.payload.as_ref());
    let expected: Vec<&DefinedField> = event.fields.iter().collect();
    are_said(&payload, &expected);
    if let Some(context) = context {
        let contexts = trace.stream_classes.iter().filter_map(|stream| stream.event_common_context.as_ref());
        are_said(&contexts.flat_map(|class| members(Some(class))).collect::<Vec<_>>(), &[&context.field]);
    }
    for again in [to_tsdl(&trace).ok(), to_json(&trace).ok()].into_iter().flatten() {
        let again = kymo_format::parse(again.as_bytes());
        assert!(again.trace_class.is_some() && again.diagnostics.is_empty(), "{name:?}: {:?}", again.diagnostics);
    }
}

/// The members of a structure that are fields; lengths of others are none.
fn members(class: Option<&FieldClass>) -> Vec<(&str, &FieldKind)> {
    let Some(FieldKind::Structure(all)) = class.map(|class| &class.kind) else { return Vec::new() };
    let names: Vec<&str> = all.members.iter().map(|member| member.name.as_str()).collect();
    let distinct: std::collections::HashSet<&str> = names.iter().copied().collect();
    assert_eq!(distinct.len(), names.len(), "two of {names:?} have one name");
    all.members.iter().map(|member| (member.name.as_str(), &member.class.kind)).collect()
}

fn are_said(found: &[(&str, &FieldKind)], expected: &[&DefinedField]) {
    let mut found = found.iter();
    for field in expected {
        if matches!(field.kind, FieldType::Text | FieldType::Sequence(_)) {
            let length = found.next().expect("a length stands before it");
            assert!(matches!(length.1, FieldKind::Integer(_)), "{length:?} is no length of {field:?}");
        }
        let (name, kind) = found.next().unwrap_or_else(|| panic!("{field:?} is not there"));
        let FieldType::Scalar(ScalarType::Enumeration(_, labels)) = &field.kind else { continue };
        let FieldKind::Integer(integer) = kind else { panic!("{name}: {kind:?} is no enumeration") };
        let mappings = &integer.meaning.mappings;
        let said: std::collections::BTreeSet<&str> = mappings.iter().map(|mapping| mapping.label.as_str()).collect();
        let labels: std::collections::BTreeSet<&str> = labels.iter().map(|label| label.name.as_str()).collect();
        assert_eq!(said, labels, "labels of {name}");
    }
    assert!(found.next().is_none(), "there is more than {expected:?}");
}

/// A definition that is sound, or nearly so.
#[must_use]
pub fn text(random: &mut RandomNumbers) -> Vec<u8> {
    const NAMES: [&str; 12] =
        ["a", "b.c", "int", "a b", "_x", "x-y", "9", "tr\u{e4}ge", "\"q\"", "back\\slash", "enum", "a\u{2028}b"];
    const TYPES: [&str; 16] = [
        "u8",
        "i16",
        "x32",
        "u64",
        "pointer",
        "f32",
        "f64",
        "bool",
        "text",
        "array 3 u8",
        "array 0 i64",
        "sequence f32",
        "sequence bool",
        "enum u8(a=1, b, \"c\"=7)",
        "enum i64(low=-9223372036854775808, x y, x y=0x10)",
        "u33",
    ];
    let mut text = if random.below(5) == 0 {
        format!("context {}", NAMES[random.below(NAMES.len())])
    } else {
        format!("event {}:{}", NAMES[random.below(NAMES.len())], NAMES[random.below(NAMES.len())])
    };
    for _ in 0..random.below(6) {
        text += &match random.below(10) {
            0 => format!("\nlevel {}", random.below(17)),
            1 => format!("\nsource {}.c:{}", NAMES[random.below(NAMES.len())], random.below(1000)),
            2 => format!("\nrole {}", ["begin", "end", "counter", "send", "never"][random.below(5)]),
            _ => format!("\nfield {} {}", TYPES[random.below(TYPES.len())], NAMES[random.below(NAMES.len())]),
        };
    }
    if random.below(3) == 0 { random.damaged(text.as_bytes()) } else { text.into_bytes() }
}
