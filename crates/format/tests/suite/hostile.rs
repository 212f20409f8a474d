//! Metadata made to hurt: every case is refused, or read, with a message that says why. None of them takes long,
//! much memory or stack; that is what the bounds are for, and a case that loses its bound hangs or dies here.

use std::fmt::Write as _;

/// The first finding, or `read` where there is none.
fn first(text: &str) -> String {
    let metadata = kymo_format::parse(text.as_bytes());
    let rendered: Vec<String> =
        metadata.diagnostics.iter().map(|found| found.render_plain(&metadata.text, "metadata")).collect();
    let told: usize = rendered.iter().map(String::len).sum();
    assert!(told < 1 << 20, "{told} bytes of findings");
    rendered.first().map_or("read".to_owned(), |found| found.lines().next().unwrap_or_default().to_owned())
}

fn check(text: &str, expected: &str) {
    let found = first(text);
    assert!(found.ends_with(expected), "found    {found}\nexpected {expected}");
}

const TSDL: &str = "/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; };\n\
                    typealias integer { size = 8; } := u8;\n";

/// A trace of one event whose fields are these, behind these declarations.
fn tsdl(declarations: &str, fields: &str) -> String {
    format!("{TSDL}{declarations}\nevent {{ name = e; id = 0; fields := struct {{ {fields} }}; }};\n")
}

#[test]
fn a_chain_of_a_million_types() {
    let mut text = TSDL.to_owned();
    text.push_str("typedef u8 t0[1];\n");
    for number in 1..1_000_000 {
        writeln!(text, "typedef t{} t{number}[1];", number - 1).expect("it is a string");
    }
    check(&text, "error: types are nested deeper than 65 levels");
}

#[test]
fn nested_braces_and_lengths() {
    check(&tsdl("", &"struct { ".repeat(1_000_000)), "error: types are nested deeper than 64 levels");
    check(&tsdl("", &format!("u8 a{};", "[1]".repeat(1_000_000))), "error: types are nested deeper than 65 levels");
}

#[test]
fn the_depth_of_a_refused_type_is_forgotten() {
    let deep = format!("{}u8 a;{}", "struct { ".repeat(70), " } b;".repeat(70));
    let text = tsdl(&format!("struct s {{ {deep} }};\nstruct t {{ u8 a; }};"), "struct t a;");
    let metadata = kymo_format::parse(text.as_bytes());
    assert_eq!(metadata.diagnostics.len(), 1, "{:?}", metadata.diagnostics);
}

/// Every structure has the one before twice: 2^60 fields.
#[test]
fn doubled_structures() {
    let mut declarations = "struct s0 { u8 a; u8 b; };\n".to_owned();
    for number in 1..60 {
        writeln!(declarations, "struct s{number} {{ struct s{0} a; struct s{0} b; }};", number - 1).expect("a string");
    }
    check(&tsdl(&declarations, "struct s59 a;"), "error: there are more than 1048576 fields and labels");
}

/// As many fields by events that share one large type.
#[test]
fn many_large_events() {
    let fields: String = (0..10_000).map(|number| format!("u8 f{number};")).collect();
    let mut text = format!("{TSDL}struct large {{ {fields} }};\n");
    for id in 0..1000 {
        writeln!(text, "event {{ name = e; id = {id}; fields := struct {{ struct large a; }}; }};").expect("a string");
    }
    check(&text, "error: there are more than 1048576 fields and labels");
}

/// Each of many sequences looks for its length among many members.
#[test]
fn many_references_among_many_members() {
    let members: String = (0..30_000).map(|number| format!("u8 l{number};")).collect();
    let users: String = (0..30_000).map(|number| format!("u8 s{number}[l{number}];")).collect();
    check(
        &tsdl("", &(members + &users)),
        "error: finding the fields that lengths and tags refer to takes more than 67108864 steps",
    );
}

/// A variant of very many options and a tag of very many labels.
#[test]
fn many_labels_and_options() {
    let labels: String = (0..100_000).map(|number| format!("l{number},")).collect();
    let options: String = (0..100_000).map(|number| format!("u8 l{number};")).collect();
    let text =
        tsdl("", &format!("enum : integer {{ size = 32; }} {{ {labels} }} tag; variant <tag> {{ {options} }} v;"));
    let metadata = kymo_format::parse(text.as_bytes());
    let trace = metadata.trace_class.expect("it is large, but sound");
    kymo_format::write::to_json(&trace).expect("CTF 2 has variants");
}

#[test]
fn findings_without_end() {
    let text = tsdl(&"typedef nothing a;\n".repeat(200_000), "u8 a;");
    let metadata = kymo_format::parse(text.as_bytes());
    let last = metadata.diagnostics.last().expect("there are findings").problem.to_string();
    assert_eq!((metadata.diagnostics.len(), last.as_str()), (101, "199900 more like these"));
}

#[test]
fn names_without_end() {
    check(&tsdl("", &format!("{} a;", "long ".repeat(1_000_000))), "long long long long long l…");
    let found = first(&tsdl("", &format!("{} a;", "x".repeat(1_000_000))));
    assert!(found.len() < 1000, "{} bytes", found.len());
}

#[test]
fn values_that_mean_nothing() {
    let enumeration = |labels: &str| tsdl("", &format!("enum : u8 {{ {labels} }} e;"));
    check(&enumeration("a = 255"), "read");
    check(
        &enumeration("a = 256"),
        "warning[label-out-of-range]: the label `a` has a value that its integer cannot have: that is 0 to 255",
    );
    check(
        &enumeration("a = 255, b"),
        "warning[label-out-of-range]: the label `b` has a value that its integer cannot have: that is 0 to 255",
    );
    check(
        &enumeration("a = -1"),
        "warning[label-out-of-range]: the label `a` has a value that its integer cannot have: that is 0 to 255",
    );
    check(&tsdl("", "u8 a[typedef];"), "error: `length` must be a number or a field, not a keyword");
    check(&tsdl("", "integer { size = 8; base = \"x\"; } a;"), "error: `base` must be 2, 8, 10 or 16");
}

const PREAMBLE: &str = "\u{1e}{\"type\":\"preamble\",\"version\":2}\n";
const BYTE: &str = r#"{"type":"fixed-length-unsigned-integer","length":8,"byte-order":"little-endian"}"#;

/// A trace of one event whose payload is this field class, behind these fragments.
fn json(fragments: &str, payload: &str) -> String {
    format!(
        "{PREAMBLE}{fragments}\u{1e}{{\"type\":\"data-stream-class\"}}\n\
         \u{1e}{{\"type\":\"event-record-class\",\"payload-field-class\":{payload}}}\n"
    )
}

fn structure(members: &[(String, String)]) -> String {
    let members: Vec<String> =
        members.iter().map(|(name, class)| format!(r#"{{"name":"{name}","field-class":{class}}}"#)).collect();
    format!(r#"{{"type":"structure","member-classes":[{}]}}"#, members.join(","))
}

/// Every alias has the one before twice: 2^60 fields.
#[test]
fn doubled_aliases() {
    let mut fragments = format!("\u{1e}{{\"type\":\"field-class-alias\",\"name\":\"s0\",\"field-class\":{BYTE}}}\n");
    for number in 1..60 {
        let before = format!("\"s{}\"", number - 1);
        let class = structure(&[("a".into(), before.clone()), ("b".into(), before)]);
        writeln!(fragments, "\u{1e}{{\"type\":\"field-class-alias\",\"name\":\"s{number}\",\"field-class\":{class}}}")
            .expect("it is a string");
    }
    check(&json(&fragments, "\"s59\""), "error: there are more than 1048576 fields and labels");
}

#[test]
fn nested_arrays() {
    let open = r#"{"type":"static-length-array","length":1,"element-field-class":"#.repeat(100_000);
    let found = first(&json("", &open));
    assert!(found.contains("nested deeper than"), "{found}");
}

/// Each of many arrays looks for its length among many members.
#[test]
fn many_locations_among_many_members() {
    let mut members: Vec<(String, String)> = (0..15_000).map(|number| (format!("l{number}"), BYTE.into())).collect();
    members.extend((0..15_000).map(|number| {
        let class = format!(
            r#"{{"type":"dynamic-length-array","length-field-location":{{"path":["l{number}"]}},"element-field-class":{BYTE}}}"#
        );
        (format!("s{number}"), class)
    }));
    check(
        &json("", &structure(&members)),
        "error: finding the fields that locations mean takes more than 67108864 steps",
    );
}

#[test]
fn numbers_and_sizes_without_end() {
    let with_length = |length: &str| {
        json(
            "",
            &structure(&[(
                "a".into(),
                format!(r#"{{"type":"fixed-length-unsigned-integer","length":{length},"byte-order":"little-endian"}}"#),
            )]),
        )
    };
    for length in ["65", "0", "-1", "18446744073709551616", "1e9", "99999999999999999999999999999999999999999999"] {
        let found = first(&with_length(length));
        assert!(found.contains("error: "), "{length}: {found}");
    }
    let array =
        format!(r#"{{"type":"static-length-array","length":18446744073709551615,"element-field-class":{BYTE}}}"#);
    check(&json("", &structure(&[("a".into(), array)])), "read");
    let empty = r#"{"type":"static-length-array","length":65537,"element-field-class":{"type":"structure"}}"#;
    check(
        &json("", &structure(&[("a".into(), BYTE.into()), ("b".into(), empty.into())])),
        "error: an array in an event's payload has 65537 elements that take no bits; at most 65536 are read",
    );
}

#[test]
fn the_same_property_a_hundred_thousand_times() {
    let many: String = (0..100_000).map(|number| format!("\"p{number}\":0,")).collect();
    let found = first(&format!("{PREAMBLE}\u{1e}{{{many}\"type\":\"trace-class\"}}\n"));
    assert!(found.contains("`p0`"), "{found}");
    check(
        &format!("{PREAMBLE}\u{1e}{{{many}\"p7\":1,\"type\":\"trace-class\"}}\n"),
        "error: the property `p7` is defined twice",
    );
}

/// Problems of the class as a whole are told where that part was written.
#[test]
fn whole_problems_have_places() {
    let text = tsdl("", "");
    let found = first(&text);
    assert!(found.starts_with("metadata:5:1: error: the events of class 0"), "{found}");
}
