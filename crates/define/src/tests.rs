//! Schemas from text to all that is made of them, and mistakes with their places.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::diff::diff;
use crate::{Schema, SchemaProblems, emit, layout, read, read_file, read_import};

/// All that the language has.
const SHOP: &str = include_str!("../../../tests/schema/shop.kymo");

fn parsed(text: &str) -> (Option<Schema>, SchemaProblems) {
    read(Path::new("a.kymo"), &|_| Ok(text.to_owned())).unwrap()
}

fn schema(text: &str) -> Schema {
    let (schema, problems) = parsed(text);
    assert_eq!(problems.to_string(), "");
    schema.unwrap()
}

fn check(text: &str, expect: &Expect) {
    expect.assert_eq(&(parsed(text).1.to_string() + "\n"));
}

/// Mistakes within the braces of a subsystem.
fn check_inside(text: &str, expect: &Expect) {
    check(&format!("schema a 1;\nenum state: u8 {{ on }};\nsubsystem s {{\n{text}\n}};"), expect);
}

#[test]
fn everything_is_made_of_a_schema() {
    let shop = schema(SHOP);
    for (name, made) in [
        ("shop_events.h", emit::c::header(&shop).unwrap()),
        ("shop_events.rs.txt", emit::rust::module(&shop).unwrap()),
        ("shop_schema.json", format!("{:#}\n", emit::json::schema(&shop))),
        ("shop_roles.toml", emit::roles::mapping(&shop)),
        ("shop.md", emit::page::page(&shop)),
        ("shop.tsdl", emit::ctf::metadata(&shop, emit::ctf::CtfVersion::Ctf18).unwrap()),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/schema/made").join(name);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        assert_eq!(made, std::fs::read_to_string(&path).unwrap(), "{name}: UPDATE_EXPECT=1 writes it");
    }
}

/// The file that `pleco` made of Barrelfish's definitions, and those files of it that are no more than that.
#[test]
fn barrelfish_has_its_own_files_byte_for_byte() {
    let folder = std::env::var_os("KYMO_CORPUS").map(std::path::PathBuf::from);
    let folder = folder
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"))
        .join("barrelfish");
    if !folder.is_dir() {
        println!("CORPUS ABSENT: {}: not run", folder.display());
        return;
    }
    let at = |path: &Path| {
        let (schema, problems) = read(path, &|path| std::fs::read_to_string(path)).unwrap();
        assert_eq!(problems.to_string(), "", "{}", path.display());
        schema.unwrap()
    };
    let current = at(&folder.join("trace_defs.pleco"));
    let golden = |name: &str| std::fs::read_to_string(folder.join("golden").join(name)).unwrap();
    assert_eq!(emit::pleco::header(&current, &current.name), golden("trace_defs.h"));
    assert_eq!(emit::pleco::json(&current), golden("trace_defs.json"));
    emit::c::header(&current).unwrap();
    for file in std::fs::read_dir(folder.join("history")).unwrap() {
        let old = at(&file.unwrap().path());
        let json: serde_json::Value = serde_json::from_str(&emit::pleco::json(&old)).unwrap();
        for subsystem in &old.subsystems {
            let told = &json[subsystem.id.to_string()];
            assert_eq!(told["name"], subsystem.name);
            assert_eq!(told["events"].as_object().unwrap().len(), subsystem.events.len());
        }
        assert_eq!(json["-5632"]["name"], "ump send");
        let breaks =
            diff(&old, &current).iter().filter(|change| change.gravity >= crate::diff::ChangeGravity::Numbers).count();
        assert!(breaks > 10, "ids move between revisions: {breaks}");
    }
}

#[test]
fn syntax_errors_have_a_place() {
    check(
        "schema",
        &expect![[r#"
        a.kymo:1:7: error: expected the schema's name, found the end of the file
    "#]],
    );
    check(
        "schema a;",
        &expect![[r#"
        a.kymo:1:9: error: expected the schema's version: a number from 1 on, found `;`
    "#]],
    );
    check(
        "schema a 1; subsystem s { event e { u32 } };",
        &expect![[r#"
            a.kymo:1:41: error: expected the field's name, found `}`
            a.kymo:1:45: error: expected `;` after it, found the end of the file
        "#]],
    );
    check(
        "schema a 1;\n/* open /* */",
        &expect![[r#"
        a.kymo:2:1: error: the comment has no end
          help: comments nest: each `/*` needs a `*/`
    "#]],
    );
    check(
        "schema a 1; subsystem s { event e \"text\n",
        &expect![[r#"
        a.kymo:1:35: error: in this text: expected `"` in the same line, found `\n`
    "#]],
    );
    check(
        "schema a 1; subsystem s { event e level info level debug };",
        &expect![[r#"
            a.kymo:1:46: error: the event says this twice
            a.kymo:1:60: error: expected `;` after it, found the end of the file
        "#]],
    );
    check(
        "schema a 1; subsystem s { event e id 99999999999999999999 };",
        &expect![[r#"
        a.kymo:1:38: error: `99999999999999999999` is no number
          help: numbers are as `12`, `-3`, `0x1F`, `1_000_000`, of 64 bits
    "#]],
    );
    check(
        "schema a 1; subsystem s { event é };",
        &expect![[r#"
        a.kymo:1:33: error: `é` has no meaning here
    "#]],
    );
    check(
        "subsystem s { event e \"\" };",
        &expect![[r#"
        a.kymo:1:26: error: expected `,` after the event, also after the last one, found `}`
          help: this file is read as Barrelfish's `pleco` reads it; `schema NAME VERSION;` in its first line allows more
    "#]],
    );
    check(
        "subsystem s { event e \"\", }; more",
        &expect![[r#"
        a.kymo:1:30: warning: text behind the last subsystem has no effect: `pleco` ignores it too
          help: a subsystem begins with `subsystem NAME {` and ends with `};`
    "#]],
    );
}

/// Barrelfish's tool does not escape them.
#[test]
fn descriptions_that_break_json_are_told() {
    check(
        r#"subsystem s { event e "a \"quoted\" text", event f "it's {fine}", event g "C:\\", event h "one\n", };"#,
        &expect![[r#"
            a.kymo:1:23: warning: `\"` in the description of `e`: the file that `pleco` makes is no JSON
              help: `pleco` writes descriptions as they are, and Barrelfish's readers do not understand the file; leave it out
            a.kymo:1:75: warning: `\\` in the description of `g`: the file that `pleco` makes is no JSON
              help: `pleco` writes descriptions as they are, and Barrelfish's readers do not understand the file; leave it out
            a.kymo:1:91: warning: `\n` in the description of `h`: the file that `pleco` makes is no JSON
              help: `pleco` writes descriptions as they are, and Barrelfish's readers do not understand the file; leave it out
        "#]],
    );
}

#[test]
fn mistakes_have_a_place_and_a_remedy() {
    check(
        "schema a 0; enum e: f32 { x }; enum f: u8 { x = 256, x }; enum f: i8 { }; subsystem _s { };",
        &expect![[r#"
        a.kymo:1:10: error: a version is a number from 1 to 4294967295, not 0
        a.kymo:1:21: error: `f32` is no type of integers
          help: it is u8 to u64, or i8 to i64
        a.kymo:1:49: error: 256 does not fit into u8
        a.kymo:1:54: error: 257 does not fit into u8
        a.kymo:1:54: error: there is a label `x` already
        a.kymo:1:64: error: there is a type `f` already
        a.kymo:1:64: error: an enumeration has 1 to 4096 labels
        a.kymo:1:85: error: the name of a subsystem cannot begin with `_` or have `__` in it
          help: compilers and readers of traces keep such names for themselves
        a.kymo:1:85: error: the subsystem `_s` has no event
    "#]],
    );
    check_inside(
        "event e { u33 x, u32 y, u8 y, text[] z, state[3] q, u32 class, text t unit \"s\" }, event e,",
        &expect![[r#"
        a.kymo:4:11: error: there is no type `u33`
          help: types are u8 to u64, i8 to i64, x8 to x64 (hexadecimal), pointer, f32, f64, bool, text, and enumerations that stand before
        a.kymo:4:28: error: there is a field `y` already
        a.kymo:4:31: error: elements are numbers, not texts
          help: a text has any length
        a.kymo:4:41: error: elements are numbers, not enumerations
          help: use the enumeration's integer
        a.kymo:4:57: error: a field cannot be called `class`: C++ reserves that word
          help: `class_` is free, for example
        a.kymo:4:69: error: `t` is no number, so that it has no unit
        a.kymo:4:89: error: there is an event `e` already
    "#]],
    );
    check_inside(
        "event e level loud id 70000 since 2, event b id 3, event c id 3,",
        &expect![[r#"
        a.kymo:4:15: error: there is no level `loud`
          help: levels are emergency, alert, critical, error, warning, notice, info, debug_system, debug_program, debug_process, debug_module, debug_unit, debug_function, debug_line, debug
        a.kymo:4:23: error: an id is a number from 0 to 65535, not 70000
        a.kymo:4:35: error: a version is a number from 1 to 1, not 2
        a.kymo:4:63: error: `c` and `b` have the id 3
    "#]],
    );
    check_inside(
        "event x, event x_is_on,",
        &expect![[r#"
            a.kymo:4:16: error: `s:x_is_on` and `s:x` would both be `kymo_s_x_is_on` in C
              help: rename one of them
        "#]],
    );
}

#[test]
fn meanings_are_about_events_and_fields_that_exist() {
    check_inside(
        "event b { u32 id, f32 real }, event d { text t },\npair p { begin b, end d, key id },\npair q { begin b },\nflow f { send b, receive d },",
        &expect![[r#"
            a.kymo:5:30: error: the event `d` has no field `id`
              help: the event's fields are t
            a.kymo:6:16: error: the event `b` has this role in the pair `p` already
              help: analyses take an event's first meaning of a kind
            a.kymo:7:10: error: `send b` lacks its `key`
              help: `key FIELD`, in the flow or behind the event in parentheses
            a.kymo:7:18: error: `receive d` lacks its `key`
              help: `key FIELD`, in the flow or behind the event in parentheses
        "#]],
    );
    check_inside(
        "event b { u32 id, text t },\ncounter c { change b, value t },\nstate s { enter b (state 3), leave gone },\npair r { begin b, end b, value id, kei id },",
        &expect![[r#"
            a.kymo:5:29: error: the field `t` of `b` cannot be a `value`: it is of the wrong type
            a.kymo:6:36: error: there is no event `gone` in `s`
              help: those of other subsystems are called `SUBSYSTEM.EVENT`
            a.kymo:7:26: error: a pair has no `value`
            a.kymo:7:36: error: there is no fact `kei`
              help: facts are key, name, within, group, value, unit, state, count, early
        "#]],
    );
}

#[test]
fn files_import_each_other_once() {
    let files = BTreeMap::from([
        ("d/a.kymo", "schema a 2; import \"b.kymo\"; import \"c.kymo\"; subsystem s { event e { outcome o } };"),
        ("d/b.kymo", "schema b 1; import \"c.kymo\"; subsystem t { event e };"),
        ("d/c.kymo", "schema c 1; enum outcome: u8 { good };"),
        ("d/loop.kymo", "schema l 1; import \"loop2.kymo\"; subsystem s { event e };"),
        ("d/loop2.kymo", "schema l 1; import \"loop.kymo\"; import \"none.kymo\";"),
    ]);
    let reader = |path: &Path| {
        let found = files.get(path.to_str().unwrap()).map(ToString::to_string);
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file"))
    };
    let (schema, problems) = read(Path::new("d/a.kymo"), &reader).unwrap();
    assert_eq!(problems.to_string(), "");
    let schema = schema.unwrap();
    let names: Vec<&str> = schema.subsystems.iter().map(|subsystem| subsystem.name.as_str()).collect();
    assert_eq!((names, schema.version, schema.enumerations.len()), (vec!["t", "s"], 2, 1));
    let (_, problems) = read(Path::new("d/loop.kymo"), &reader).unwrap();
    expect![[r#"
        d/loop2.kymo:1:20: error: files import each other: d/loop.kymo imports d/loop2.kymo imports d/loop.kymo
        d/loop2.kymo:1:40: error: d/none.kymo: no such file
          help: imported files are looked for beside the file that imports them
    "#]]
    .assert_eq(&(problems.to_string() + "\n"));
    assert!(read(Path::new("d/none.kymo"), &reader).is_err());
}

/// Of a file from elsewhere, imports stay in its folder, and are files.
#[test]
fn imports_of_files_from_elsewhere_stay_there() {
    let kind = |import: &str| read_import(Path::new("src/a.kymo"), Path::new(import)).map_err(|error| error.kind());
    for elsewhere in ["/dev/zero", "a.kymo", "src/../../a.kymo"] {
        assert_eq!(kind(elsewhere), Err(io::ErrorKind::PermissionDenied), "{elsewhere}");
    }
    assert_eq!(kind("src/none.kymo"), Err(io::ErrorKind::NotFound));
    assert_eq!(kind("src/emit"), Err(io::ErrorKind::InvalidData), "it is a folder");
    assert!(kind("src/lib.rs").is_ok());
    assert_eq!(read_file(Path::new("/dev/null")).map_err(|error| error.kind()), Err(io::ErrorKind::InvalidData));
}

/// A duration stands for its events and their pair: their mistakes are its mistakes.
#[test]
fn durations_are_their_events() {
    check_inside(
        "event walk, event run_end, pair run { begin walk, end run_end }, duration run { u8 x }, duration walk,",
        &expect![[r#"
            a.kymo:4:75: error: there is an event `run_end` already
            a.kymo:4:75: error: there is a pair `run` already
            a.kymo:4:75: error: the event `run_end` has this role in the pair `run` already
              help: analyses take an event's first meaning of a kind
        "#]],
    );
    check_inside(
        "duration run_fast, duration Run_fast, duration walk id 65535,",
        &expect![[r#"
        a.kymo:4:48: error: `walk_end` would have the id 65536; ids are at most 65535
    "#]],
    );
    check_inside(
        "duration { u8 x }, duration run level loud, duration self,",
        &expect![[r#"
        a.kymo:4:10: error: expected the duration's name, found `{`
        a.kymo:4:39: error: there is no level `loud`
          help: levels are emergency, alert, critical, error, warning, notice, info, debug_system, debug_program, debug_process, debug_module, debug_unit, debug_function, debug_line, debug
        a.kymo:4:54: error: a duration cannot be called `self`: Rust reserves that word
          help: `self_` is free, for example
    "#]],
    );
    check_inside(
        "event stop, duration run_stop, duration stop, duration runStop,",
        &expect![[r#"
        a.kymo:4:41: error: `duration s:stop` and `s:stop` would both be `stop` in Rust
          help: rename one of them
        a.kymo:4:56: error: `duration s:runStop` and `duration s:run_stop` would both be `RunStop` in Rust
          help: rename one of them
    "#]],
    );
}

#[test]
fn changes_are_told_with_what_they_break() {
    let new = SHOP
        .replace("schema shop 3", "schema shop 4")
        .replace("u32 size unit \"bytes\"", "u64 size unit \"KiB\"")
        .replace("found,", "found = 2,")
        .replace("        bool hit,\n", "")
        .replace("event submit { u32 id }", "event submit level warning { u32 id, u32 more }")
        .replace("    event fill { u64 entries },\n", "    event fill { u64 entries },\n    event fresh since 2,\n")
        .replace("begin fetch_begin (key id, name page)", "begin fetch_begin (key id)")
        .replace("duration wait,", "event wait_begin, event wait_end, pair wait { begin wait_begin, end wait_end },");
    let changes: Vec<String> = diff(&schema(SHOP), &schema(&new)).iter().map(ToString::to_string).collect();
    expect![[r#"
        breaking: cache:look.size: its unit is KiB instead of bytes
        breaking: cache:look.hit: the field is gone
        breaking: pair cache.fetch: no more: begin cache.fetch_begin (key id, name page, group "cache:fetch", within process)
        breaking: outcome.found: its value is 2 instead of 1
        numbers: cache:busy: the id is 11 instead of 10
        numbers: cache:idle: the id is 12 instead of 11
        doubtful: cache:look.size: its type is u64 instead of u32: programs in Rust do not compile until they are changed
        doubtful: cache:submit: the level is warning instead of debug: sessions select by it
        doubtful: cache:submit.more: the field is new: programs that call the event do not compile until they give it
        doubtful: cache:fresh: it is said to be there since version 2; it is new in version 4
        doubtful: duration cache.wait: it is no duration: programs that use its scope do not compile
        compatible: cache:fresh: the event is new
        compatible: pair cache.fetch: new: begin cache.fetch_begin (key id, name "fetch", group "cache:fetch", within process)
    "#]]
    .assert_eq(&(changes.join("\n") + "\n"));
    assert_eq!(diff(&schema(SHOP), &schema(SHOP)), []);
}

#[test]
fn layout_keeps_all_and_changes_nothing_twice() {
    let messy = "// first\nschema a 1 ; // behind\n\n\n\nenum e : u8 { x=1 , y } ;subsystem s{event one{u8[ 4 ] a , e b},// of one\n/* own */ event two,\npair p\n{ begin one ( key b ) , end two, }, };\n// last";
    let tidy = layout(Path::new("a.kymo"), messy).unwrap();
    expect![[r#"
        // first
        schema a 1; // behind
        enum e: u8 { x = 1, y };
        subsystem s {
            event one { u8[4] a, e b }, // of one
            /* own */
            event two,
            pair p { begin one (key b), end two, },
        };
        // last
    "#]]
    .assert_eq(&tidy);
    assert_eq!(layout(Path::new("a.kymo"), &tidy).unwrap(), tidy);
    assert_eq!(layout(Path::new("a.kymo"), SHOP).unwrap(), SHOP, "the example is tidy");
    assert!(layout(Path::new("a.pleco"), "subsystem a { event b \"\", };").is_err());
    let of_windows = "\u{feff}schema a 1;\r\n/* one\r\n   two */\r\nenum e: u8 { x };\r\n";
    assert_eq!(layout(Path::new("a"), of_windows).unwrap(), "schema a 1;\n/* one\n   two */\nenum e: u8 { x };\n");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is cut out of a schema or put into it, reading ends with a schema or with mistakes; and layout changes no meaning.
    #[test]
    fn any_text_is_read(cut in (0..SHOP.len(), 0..40_usize), put in "[ -~\n{}();,\"]{0,12}", at in 0..SHOP.len()) {
        let mut text = SHOP.to_owned();
        if SHOP.is_ascii() {
            text.replace_range(cut.0..(cut.0 + cut.1).min(text.len()), "");
            text.insert_str(at.min(text.len()), &put);
        }
        let (schema, problems) = parsed(&text);
        prop_assert_eq!(schema.is_none(), problems.has_errors());
        if let Ok(tidy) = layout(Path::new("a.kymo"), &text) {
            prop_assert_eq!(&layout(Path::new("a.kymo"), &tidy).unwrap(), &tidy);
            let json = |schema: Option<Schema>| schema.map(|schema| emit::json::schema(&schema));
            prop_assert_eq!(json(parsed(&tidy).0), json(schema.clone()));
        }
        if let Some(schema) = schema {
            emit::ctf::metadata(&schema, emit::ctf::CtfVersion::Ctf2).map_err(TestCaseError::fail)?;
            emit::c::header(&schema).ok();
            emit::rust::module(&schema).ok();
            prop_assert!(emit::page::page(&schema).starts_with("# "));
            let mapping = emit::roles::mapping(&schema);
            prop_assert!(mapping.parse::<toml::Table>().is_ok(), "{}", mapping);
        }
    }
}

/// Names that are right here and wrong in a language for which files are made; and numbers and texts at their limits.
#[test]
fn names_are_checked_for_all_languages() {
    check(
        "schema a 1; enum a: u8 { b_c, Found, found }; enum a_b: u8 { c, self_ }; enum x1: u8 { o = 1, p = 1 }; enum x_1: u8 { q };",
        &expect![[r#"
            a.kymo:1:99: error: `p` and `o` are both 1
              help: each value has one label, which people see
        "#]],
    );
    check(
        "schema a 1; enum a: u8 { b_c, Found, found }; enum a_b: u8 { c }; enum x1: u8 { p }; enum x_1: u8 { q };",
        &expect![[r#"
            a.kymo:1:18: error: `a.found` and `a.Found` would both be `Found` in Rust
              help: rename one of them
            a.kymo:1:18: error: `a.found` and `a.Found` would both be `A_A_FOUND` in C
              help: rename one of them
            a.kymo:1:52: error: `a_b.c` and `a.b_c` would both be `A_A_B_C` in C
              help: rename one of them
            a.kymo:1:91: error: `x_1` and `x1` would both be `X1` in Rust
              help: rename one of them
        "#]],
    );
    check_inside(
        "event linux, event self, event e { u8 errno, pointer[] at }, };\nsubsystem S { event f };\nsubsystem register { event context",
        &expect![[r#"
            a.kymo:4:7: error: an event cannot be called `linux`: C reserves that word
              help: `linux_` is free, for example
            a.kymo:4:20: error: an event cannot be called `self`: Rust reserves that word
              help: `self_` is free, for example
            a.kymo:4:39: error: a field cannot be called `errno`: C reserves that word
              help: `errno_` is free, for example
            a.kymo:4:46: error: elements are numbers, not addresses
              help: `x64` shows them alike
            a.kymo:6:11: error: a subsystem cannot be called `register`: C reserves that word
              help: `register_` is free, for example
        "#]],
    );
    check_inside(
        "event e, };\nsubsystem S { event f };\nsubsystem register { event context",
        &expect![[r#"
        a.kymo:6:11: error: a subsystem cannot be called `register`: C reserves that word
          help: `register_` is free, for example
    "#]],
    );
    check_inside(
        &format!("event e {{ u8 x }}, state t {{ enter e (state \"{}\") }}", "x".repeat(70_000)),
        &expect![[r#"
            a.kymo:4:7: error: the definition of `s:e` is too long: some 75208 bytes, of 65536
              help: enumerations and texts of facts are part of it
        "#]],
    );
    check_inside(
        "event e { u8 x },\nstate t { enter e (state 0xFFFFFFFFFFFFFFFF) },\nflow f { send e (key x, early 5), receive e, key x, key x, early -1 }",
        &expect![[r#"
            a.kymo:5:26: error: 18446744073709551615 does not fit into a signed integer of 64 bits
            a.kymo:6:25: error: `send` has no `early`
            a.kymo:6:53: error: `key` stands twice
            a.kymo:6:66: error: `early` is a number from 1 to 4294967295, not -1
        "#]],
    );
}

/// All mistakes are told, also those behind one that ends an item; and a flow goes from one subsystem to another.
#[test]
fn reading_goes_on_behind_a_mistake() {
    check(
        "schema a 1;\nenum e u8 { x };\nsubsystem s { event one { u8 x u8 y }, event two { u33 z },\n evnt three, pair p { bgin one } };\nsubsystem t { event one id };",
        &expect![[r#"
            a.kymo:2:8: error: expected `:` and the type of its integer, such as `: u8`, found `u8`
            a.kymo:3:32: error: expected `,` after the field, found `u8`
            a.kymo:3:52: error: there is no type `u33`
              help: types are u8 to u64, i8 to i64, x8 to x64 (hexadecimal), pointer, f32, f64, bool, text, and enumerations that stand before
            a.kymo:4:2: error: expected `event`, `duration`, `pair`, `flow`, `counter`, `state` or `}`, found `evnt`
            a.kymo:4:19: error: the pair `p` has no `begin`
              help: `begin EVENT,` in its braces
            a.kymo:4:19: error: the pair `p` has no `end`
              help: `end EVENT,` in its braces
            a.kymo:5:28: error: expected the event's number, found `}`
            a.kymo:5:30: error: expected `;` after it, found the end of the file
        "#]],
    );
    let schema = schema(
        "schema a 1; subsystem client { event ask { u32 id }, flow ask { send ask, receive server.got, key id } }; subsystem server { event got { u32 id } };",
    );
    let mapping = emit::roles::mapping(&schema);
    assert!(mapping.contains("event = \"server:got\"\nkey = \"id\""), "{mapping}");
    assert!(emit::c::header(&schema).unwrap().contains("as receive key=id"));
}
