//! TSDL that violates the specification, but has a clear meaning: the assumption, and the trace class under it.

use kymo_format::model::{FieldClass, FieldKind, Role, Structure};
use kymo_format::{Severity, TraceClass, parse};

const TYPES: &str = "typealias integer { size = 8; } := u8;\ntypealias integer { size = 64; } := u64;\n\
    typealias integer { size = 64; signed = true; } := s64;\ntypealias floating_point { exp_dig = 8; mant_dig = 24; } := f32;\n";

/// The trace class of the declarations; expected are the names of assumptions with their messages, in the order of the text.
#[track_caller]
fn assumed(declarations: &str, expected: &[(&str, &str)]) -> TraceClass {
    let text = format!(
        "/* CTF 1.8 */\n{TYPES}trace {{ major = 1; minor = 8; byte_order = le; }};\n{declarations}\n\
         event {{ id = 0; name = \"e\"; fields := struct {{ u8 a; }}; }};\n"
    );
    whole(&text, expected)
}

#[track_caller]
fn whole(text: &str, expected: &[(&str, &str)]) -> TraceClass {
    let metadata = parse(text.as_bytes());
    let found: Vec<(String, String)> = metadata
        .diagnostics
        .iter()
        .map(|found| match found.severity {
            Severity::Assumption(assumption) => (assumption.to_string(), found.problem.to_string()),
            Severity::Error => ("error".to_owned(), found.problem.to_string()),
        })
        .collect();
    let found: Vec<(&str, &str)> = found.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(found, expected, "{text}");
    metadata.trace_class.expect("an assumption does not refuse metadata")
}

fn structure(class: Option<&FieldClass>) -> &Structure {
    match class.map(|class| &class.kind) {
        Some(FieldKind::Structure(structure)) => structure,
        other => panic!("a structure, not {other:?}"),
    }
}

/// (signed, roles, clock) of a member.
fn meaning(class: Option<&FieldClass>, member: usize) -> (bool, Vec<Role>, Option<usize>) {
    let meaning = structure(class).members[member].class.integer_meaning().expect("an integer");
    (meaning.signed, meaning.roles.clone(), meaning.clock)
}

#[test]
fn times_without_a_clock_block_are_nanoseconds_of_one_clock() {
    let header = "stream { event.header := struct { u64 timestamp; u8 id; }; };";
    let said = [("implicit-clock", "there is no `clock` block: `timestamp` is taken to count nanoseconds")];
    let class = assumed(header, &said);
    assert_eq!(class.clock_classes.len(), 1);
    let clock = &class.clock_classes[0];
    assert_eq!(
        (clock.id.as_str(), clock.frequency_hz, clock.offset_s, clock.offset_cycles),
        ("default", 1_000_000_000, 0, 0)
    );
    assert_eq!(class.stream_classes[0].default_clock, Some(0));
    let header = class.stream_classes[0].event_header.as_ref();
    assert_eq!(meaning(header, 0), (false, vec![Role::DefaultClockTimestamp], Some(0)));

    // Once for a trace, whose packets and events have one clock.
    let class = assumed(
        "stream { packet.context := struct { u64 timestamp_begin; u64 timestamp_end; }; event.header := struct { u64 timestamp; u8 id; }; };",
        &[("implicit-clock", "there is no `clock` block: `timestamp_begin` is taken to count nanoseconds")],
    );
    assert_eq!(class.clock_classes.len(), 1);
    assert_eq!(meaning(class.stream_classes[0].packet_context.as_ref(), 0).2, Some(0));

    // Inside of variants, as LTTng's headers have it.
    let class = assumed(
        "stream { event.header := struct { enum : u8 { compact = 0, extended = 1 } id; variant <id> { \
         struct { u8 timestamp; } compact; struct { u8 id; u64 timestamp; } extended; } v; }; };",
        &[("implicit-clock", "there is no `clock` block: `timestamp` is taken to count nanoseconds")],
    );
    assert_eq!(class.stream_classes[0].default_clock, Some(0));

    // A trace without times has no clock; a field of an event with that name is no time.
    let class = assumed(
        "event { id = 1; name = \"f\"; fields := struct { u64 timestamp; }; }; stream { event.header := struct { u8 id; }; };",
        &[],
    );
    assert!(class.clock_classes.is_empty());
}

#[test]
fn a_time_of_no_clock_among_several_is_told() {
    let said = [("unmapped-timestamp", "`timestamp` is mapped to none of the 2 clocks, so that it is no time")];
    let class = assumed(
        "clock { name = a; }; clock { name = b; }; stream { event.header := struct { u64 timestamp; u8 id; }; };",
        &said,
    );
    assert_eq!(class.stream_classes[0].default_clock, None);
    // The only clock needs no map.
    let class = assumed("clock { name = a; }; stream { event.header := struct { u64 timestamp; u8 id; }; };", &[]);
    assert_eq!(class.stream_classes[0].default_clock, Some(0));
}

#[test]
fn signed_fields_that_readers_need_are_unsigned() {
    let said = [
        (
            "special-field-type",
            "`packet_size` in the packet context is a signed integer, and is read as an unsigned one",
        ),
        (
            "special-field-type",
            "`events_discarded` in the packet context is a signed integer, and is read as an unsigned one",
        ),
        ("special-field-type", "`id` in the event header is a signed integer, and is read as an unsigned one"),
    ];
    let class = assumed(
        "stream { packet.context := struct { s64 packet_size; s64 events_discarded; s64 mine; }; event.header := struct { s64 id; }; };",
        &said,
    );
    let stream = &class.stream_classes[0];
    assert_eq!(meaning(stream.packet_context.as_ref(), 0), (false, vec![Role::PacketTotalLength], None));
    assert_eq!(meaning(stream.packet_context.as_ref(), 2), (true, vec![], None));
    assert_eq!(meaning(stream.event_header.as_ref(), 0), (false, vec![Role::EventRecordClassId], None));
}

#[test]
fn fields_of_other_types_mean_nothing_to_readers() {
    let said = [
        (
            "special-field-type",
            "`packet_size` in the packet context is not an unsigned integer, and has no meaning for readers",
        ),
        (
            "special-field-type",
            "`timestamp_begin` in the packet context is not an unsigned integer, and has no meaning for readers",
        ),
        (
            "special-field-type",
            "`timestamp` in the event header is not an unsigned integer, and has no meaning for readers",
        ),
    ];
    let class = assumed(
        "stream { packet.context := struct { f32 packet_size; string timestamp_begin; }; event.header := struct { f32 timestamp; u8 id; }; };",
        &said,
    );
    assert!(class.clock_classes.is_empty());
    let text = format!(
        "/* CTF 1.8 */\n{TYPES}trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ u8 uuid[4]; }}; }};\n\
         event {{ name = \"e\"; fields := struct {{ u8 a; }}; }};\n"
    );
    whole(
        &text,
        &[(
            "special-field-type",
            "`uuid` in the packet header is not an array of 16 bytes, and has no meaning for readers",
        )],
    );
}

#[test]
fn reserved_words_are_names_and_it_is_told() {
    let said = [("reserved-word", "`struct` is a reserved word of TSDL, and is the name of a field here")];
    let class = assumed(
        "stream { event.header := struct { u8 id; }; }; event { id = 1; name = \"f\"; fields := struct { u8 struct; }; };",
        &said,
    );
    let event = class.stream_classes[0].event_classes.iter().find(|event| event.id == 1).expect("it is defined");
    assert_eq!(structure(event.payload.as_ref()).members[0].name, "struct");
}

#[test]
fn labels_outside_of_their_integer_never_occur() {
    let said = [
        ("label-out-of-range", "the label `B` has a value that its integer cannot have: that is 0 to 255"),
        ("label-out-of-range", "the label `D` has a value that its integer cannot have: that is 0 to 255"),
    ];
    let class = assumed(
        "stream { event.header := struct { u8 id; }; }; \
         event { id = 1; name = \"f\"; fields := struct { enum : u8 { A = 1, B = 256, C = 7, D = 250 ... 300 } state; }; };",
        &said,
    );
    let event = class.stream_classes[0].event_classes.iter().find(|event| event.id == 1).expect("it is defined");
    let state = structure(event.payload.as_ref()).members[0].class.integer_meaning().expect("an integer");
    let labels: Vec<_> =
        state.mappings.iter().map(|it| (it.label.as_str(), it.ranges[0].lower, it.ranges[0].upper)).collect();
    assert_eq!(labels, [("A", 1, 1), ("B", 256, 256), ("C", 7, 7), ("D", 250, 300)]);
}

#[test]
fn fields_that_differ_in_an_underscore_are_both_reachable() {
    let said =
        [("ambiguous-name", "the fields `_bps` and `bps` would both be shown as `bps`: the first is shown as `_bps`")];
    let class = assumed(
        "stream { event.header := struct { u8 id; }; }; event { id = 1; name = \"f\"; fields := struct { u8 _bps; u8 bps; u8 list[_bps]; }; };",
        &said,
    );
    let dialect = class.dialect;
    let event = class.stream_classes[0].event_classes.iter().find(|event| event.id == 1).expect("it is defined");
    let shown: Vec<&str> = structure(event.payload.as_ref())
        .members
        .iter()
        .map(|member| kymo_format::model::display_name(dialect, &member.name))
        .collect();
    assert_eq!(shown, ["_bps", "bps", "list"]);
}

#[test]
fn help_for_what_is_defined_twice_names_what_has_to_change() {
    let text = format!(
        "/* CTF 1.8 */\n{TYPES}trace {{ major = 1; minor = 8; byte_order = le; }};\nstream {{ event.header := struct {{ u8 id; }}; }};\n\
         event {{ id = 4; name = \"a\"; }};\nevent {{ id = 4; name = \"b\"; }};\n"
    );
    let metadata = parse(text.as_bytes());
    let help: Vec<_> = metadata.diagnostics.iter().map(|found| found.problem.help()).collect();
    assert_eq!(help, [Some("keep one of them, or give the other another id")]);
}

/// All reserved words are protected where CTF 2 is written as TSDL, so that other readers accept it.
#[test]
fn written_names_are_no_reserved_words() {
    let member = |name: &str| {
        format!(
            r#"{{"name":"{name}","field-class":{{"type":"fixed-length-unsigned-integer","length":8,"byte-order":"little-endian"}}}}"#
        )
    };
    let members: Vec<String> = ["void", "const", "struct", "plain"].map(member).to_vec();
    let json = format!(
        "\u{1e}{{\"type\":\"preamble\",\"version\":2}}\n\u{1e}{{\"type\":\"data-stream-class\"}}\n\
         \u{1e}{{\"type\":\"event-record-class\",\"name\":\"e\",\"payload-field-class\":{{\"type\":\"structure\",\
         \"member-classes\":[{}]}}}}\n",
        members.join(",")
    );
    let class = parse(json.as_bytes()).trace_class.expect("it is sound");
    let text = kymo_format::write::to_tsdl(&class).expect("it can be written");
    for name in [" _void;", " _const;", " _struct;", " plain;"] {
        assert!(text.contains(name), "{name} in {text}");
    }
    whole(&text, &[]);
}
