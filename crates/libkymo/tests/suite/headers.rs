//! The headers: what compiles under which compiler, what does not, and what the bytes are that fields become.

use crate::programs::expected::{check_fields, check_marks};
use crate::programs::{self, Folder, Recording, Value, has};

const C: &[&str] = &["-std=c11", "-std=gnu11", "-std=c17"];
const CPP: &[&str] = &["-std=c++17", "-std=c++20"];
const HOW: &[&[&str]] =
    &[&["-O0"], &["-O2"], &["-O2", "-fPIC"], &["-O2", "-fno-plt", "-fvisibility=hidden"], &["-DKYMO_OFF"]];

#[test]
fn fields_are_recorded_as_they_are() {
    let compilers: [(&str, &[&str], &str); 4] =
        [("gcc", C, "c"), ("clang-14", C, "c"), ("g++", CPP, "c++"), ("clang++-14", CPP, "c++")];
    for (compiler, standards, language) in compilers {
        // All ways for one standard, one way for the others.
        let ways =
            HOW.iter().map(|how| (&standards[0], how)).chain(standards[1..].iter().map(|standard| (standard, &HOW[1])));
        for (standard, how) in ways {
            let folder = Folder::new();
            let flags = [&[*standard, "-x", language], *how].concat();
            let Some(program) = folder.build_with(compiler, "fields.c", &flags) else { break };
            if how.contains(&"-DKYMO_OFF") {
                assert!(!folder.command(&program).status().expect("it runs").success(), "nothing is on");
                assert!(!folder.path().join("kymo").exists(), "nobody asks libkymo");
                continue;
            }
            let recordings = folder.run(&mut folder.command(&program));
            assert_eq!(recordings.len(), 1, "{compiler} {flags:?}");
            check_fields(&recordings[0], language == "c++");
        }
    }
}

#[test]
fn definitions_say_what_was_written() {
    let folder = Folder::new();
    let Some(program) = folder.build("fields.c") else { return };
    let recordings = folder.run(&mut folder.command(&program));
    let definition = |name: &str| {
        let line = format!("event test:{name}\n");
        let found = recordings[0].definitions.iter().find(|text| text.starts_with(&line));
        let (source, rest): (Vec<_>, Vec<_>) =
            found.expect("it is there").lines().partition(|line| line.starts_with("source "));
        assert!(source[0].ends_with(|letter: char| letter.is_ascii_digit()) && source[0].contains("fields.c:"));
        rest[1..].join("|")
    };
    assert_eq!(definition("nothing"), "");
    let integers = "field u8 a|field u16 b|field u32 c|field u64 d|field i8 e|field i16 f|field i32 g|field i64 h";
    assert_eq!(definition("integers"), format!("level 4|{integers}"));
    let others = "field x8 a|field x16 b|field x32 c|field x64 d|field f32 e|field f64 f|field bool g|field pointer h";
    assert_eq!(definition("others"), others);
    let enums = "field enum u8(idle = 0, busy, two = 0x2, new = 0xff) state|field enum i16(less = -1, more = 1) sign";
    assert_eq!(definition("enums"), format!("role counter|{enums}"));
    assert_eq!(definition("texts"), "field text a|field u8 between|field text b|field text c|field text d");
    let lists = "field array 3 u16 ports|field sequence u8 payload|field sequence i64 times|\
                 field array 2 pointer places|field sequence f32 loads|field sequence bool flags";
    assert_eq!(definition("lists"), lists);
    assert_eq!(definition("sixty_four").split('|').count(), 64);
}

#[test]
fn programs_compare_counters_and_record_them() {
    let languages = [("gcc", "-std=gnu11", "c"), ("clang-14", "-std=gnu17", "c"), ("g++", "-std=gnu++17", "c++")];
    for (compiler, standard, language) in languages {
        for how in ["-O2", "-DKYMO_OFF"] {
            let folder = Folder::new();
            let flags = [standard, "-x", language, how];
            let Some(program) = folder.build_with(compiler, "prepare.c", &flags) else { break };
            if how == "-DKYMO_OFF" {
                assert!(std::process::Command::new(&program).status().expect("it runs").success());
                continue;
            }
            let recordings = folder.run(&mut folder.command(&program));
            let clocks: Vec<_> = recordings[0].of_name("kymo:cpu_clock").collect();
            assert!(clocks.len() >= 2 && clocks.len().is_multiple_of(2), "each CPU twice: {}", clocks.len());
            let numbers = |at: usize| [0, 1, 2, 3, 4].map(|value: usize| clocks[at].values[value].number());
            let [_, known, offset, error, trip] = numbers(0);
            assert_eq!([known, offset, error, trip], [1, 0, 0, 0], "{compiler}");
            assert_eq!(numbers(0)[0], numbers(clocks.len() / 2)[0], "the first CPU is the first one again");
        }
    }
}

#[test]
fn requests_need_a_recorder() {
    for (compiler, standard, language) in [
        ("gcc", "-std=c11", "c"),
        ("gcc", "-std=c2x", "c"),
        ("clang-14", "-std=c17", "c"),
        ("g++", "-std=c++17", "c++"),
        ("g++", "-std=c++2b", "c++"),
    ] {
        for (how, told) in [("-O2", "no recorder runs for this program"), ("-DKYMO_OFF", "built without a tracer")] {
            let folder = Folder::new();
            let Some(program) = folder.build_with(compiler, "session.c", &[standard, "-x", language, how]) else {
                break;
            };
            let output = folder.command(&program).output().expect("it runs");
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains(told), "{compiler} {how}: {output:?}");
        }
    }
}

#[test]
fn marks_need_no_definition() {
    for (compiler, standard, language) in [
        ("gcc", "-std=c11", "c"),
        ("clang-14", "-std=c17", "c"),
        ("g++", "-std=c++17", "c++"),
        ("clang++-14", "-std=c++20", "c++"),
    ] {
        for how in HOW {
            let folder = Folder::new();
            let flags = [&[standard, "-x", language], *how].concat();
            let Some(program) = folder.build_with(compiler, "marks.c", &flags) else { break };
            if how.contains(&"-DKYMO_OFF") {
                assert!(std::process::Command::new(&program).status().expect("it runs").success());
                continue;
            }
            let recordings = folder.run(&mut folder.command(&program));
            check_marks(&recordings[0]);
            // Nobody wants anything.
            let quiet = std::process::Command::new(&program).env("XDG_RUNTIME_DIR", folder.path()).status();
            assert!(quiet.expect("it runs").success());
        }
    }
}

/// Events carry what the program says, from when somebody asks for it.
#[test]
fn contexts_are_asked_for() {
    for (compiler, flags) in [("gcc", ["-std=gnu11", "-O2", "-x", "c"]), ("g++", ["-std=c++17", "-O2", "-x", "c++"])] {
        let folder = Folder::new();
        let Some(program) = folder.build_with(compiler, "contexts.c", &flags) else { continue };
        let mut child = folder.command(&program).spawn().expect("it starts");
        let mut recordings = Vec::new();
        let carries = |recordings: &[Recording], count: usize| {
            recordings.iter().any(|recording| recording.found.iter().any(|found| found.own.len() == count))
        };
        for count in [0, 1, 2] {
            while !carries(&recordings, count) {
                folder.take(&mut recordings);
                recordings.iter().for_each(|recording| recording.want_own(count as u32));
                assert!(child.try_wait().expect("it can be asked").is_none(), "it goes on");
            }
        }
        std::fs::write(folder.path().join("stop"), "").expect("there is room");
        assert!(child.wait().expect("it ends").success());
        folder.take(&mut recordings);
        for found in &recordings[0].found {
            let number = found.values[0].number();
            let tenant = if number % 2 == 1 { format!("tenant {number}") } else { "(null)".to_owned() };
            assert_eq!(found.own[..], [Value::Number(number), Value::Text(tenant)][..found.own.len()]);
        }
    }
}

/// What is wrong does not compile, and what compilers say names it.
#[test]
fn misuse_does_not_compile() {
    let cases = [
        ("a_number_for_a_text", "KYMO_EVENT(t, e, KYMO_TEXT(a));", "kymo_t_e(5);", "pointer"),
        ("a_text_for_a_number", "KYMO_EVENT(t, e, KYMO_U32(a));", "kymo_t_e(\"5\");", "kymo_t_e"),
        ("too_few", "KYMO_EVENT(t, e, KYMO_U32(a), KYMO_U32(b));", "kymo_t_e(5);", "too few arguments"),
        ("too_many", "KYMO_EVENT(t, e);", "kymo_t_e(5);", "too many arguments"),
        ("a_short_array", "KYMO_EVENT(t, e, KYMO_ARRAY(u16, 4, a));", "static uint16_t a[3]; kymo_t_e(a);", "kymo_t_e"),
        ("another_array", "KYMO_EVENT(t, e, KYMO_ARRAY(u16, 4, a));", "static uint32_t a[4]; kymo_t_e(a);", "kymo_t_e"),
        ("no_field", "KYMO_EVENT(t, e, KYMO_U23(a));", "", "KYMO_U23(a) is no field"),
        ("no_name", "KYMO_EVENT(t, e, KYMO_U32(a), b);", "", "b is no field"),
        ("no_element", "KYMO_EVENT(t, e, KYMO_SEQUENCE(u23, a));", "", "KYMO_INNER_C_u23"),
        ("no_level", "KYMO_EVENT_AT(loud, t, e);", "", "KYMO_INNER_LEVEL_loud"),
        ("no_role", "KYMO_EVENT_AS(middle, t, e);", "", "KYMO_INNER_ROLE_middle"),
        ("no_event", "", "kymo_t_e();", "kymo_t_e"),
        ("one_name_twice", "KYMO_EVENT(t, e, KYMO_U8(a), KYMO_U8(a));", "", "a"),
        ("one_event_twice", "KYMO_EVENT(t, e); KYMO_EVENT(t, e);", "", "kymo_t_e"),
        ("a_label_of_c", "enum { ONE = 1 }; KYMO_EVENT(t, e, KYMO_ENUM(u8, a, one = ONE));", "", "ONEl"),
        ("a_count_of_c", "enum { ONE = 1 }; KYMO_EVENT(t, e, KYMO_ARRAY(u8, ONE, a));", "", "ONEu"),
        ("a_label_above", "KYMO_EVENT(t, e, KYMO_ENUM(u8, a, ok = 1, b = 256));", "", "a label of a does not fit u8"),
        ("a_label_below", "KYMO_EVENT(t, e, KYMO_ENUM(u32, a, ok = 1, b = -1));", "", "a label of a does not fit u32"),
        (
            "a_signed_label",
            "KYMO_EVENT(t, e, KYMO_ENUM(i8, a, ok = -128, b = 128));",
            "",
            "a label of a does not fit i8",
        ),
        (
            "a_label_that_follows",
            "KYMO_EVENT(t, e, KYMO_ENUM(u16, a, b = 65535, c));",
            "",
            "a label of a does not fit u16",
        ),
        ("a_large_array", "KYMO_EVENT(t, e, KYMO_ARRAY(u8, 16385, a));", "", "more bytes than an event can have"),
    ];
    for (compiler, flags) in [("gcc", "-std=c11"), ("clang-14", "-std=c11"), ("g++", "-std=c++17")] {
        if !has(compiler) {
            continue;
        }
        let folder = Folder::new();
        for (name, definition, use_of_it, expected) in cases {
            let extension = if compiler == "g++" { "cpp" } else { "c" };
            let source = folder.path().join(name).with_extension(extension);
            let text = format!("#include <kymo/kymo.h>\n{definition}\nint main(void) {{ {use_of_it} return 0; }}\n");
            std::fs::write(&source, text).expect("it is ours");
            let (_, output) = folder.compile(compiler, &source, &[flags, "-O2", "-c"], name);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "{compiler} {name}: it compiles");
            // C++ has words of its own for arguments of other types.
            let words = ["could not convert", "cannot convert", "invalid conversion", "invalid initialization"];
            let is_said = compiler == "g++" && words.iter().any(|word| said.contains(word));
            assert!(said.contains(expected) || is_said, "{compiler} {name}: {said}");
        }
    }
}

/// More fields than there can be are one error, and not one for each use of the macro.
#[test]
fn too_many_fields_are_one_error() {
    let fields: Vec<String> = (0..65).map(|number| format!("KYMO_U8(f{number})")).collect();
    let (fields, zeros) = (fields.join(", "), ["0"; 65].join(", "));
    for (compiler, flags) in [("gcc", "-std=c11"), ("clang-14", "-std=c11"), ("g++", "-std=c++17")] {
        if !has(compiler) {
            continue;
        }
        let folder = Folder::new();
        let source = folder.path().join("many").with_extension(if compiler == "g++" { "cpp" } else { "c" });
        let call = format!("if (kymo_t_e_is_on()) kymo_t_e({zeros});");
        let text =
            format!("#include <kymo/kymo.h>\nKYMO_EVENT(t, e, {fields});\nint main(void) {{ {call} return 0; }}\n");
        std::fs::write(&source, text).expect("it is ours");
        let (_, output) = folder.compile(compiler, &source, &[flags, "-O2", "-c"], "many");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("has more than 64 fields"), "{compiler}: {said}");
        assert_eq!(said.matches(" error: ").count(), 1, "{compiler}: {said}");
    }
}

/// Examples of the reference, each a file of its own.
#[test]
fn examples_of_the_reference_compile() {
    let text = std::fs::read_to_string(programs::root().join("docs/tracer.md")).expect("it is there");
    let examples: Vec<&str> = text.split("```c\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() >= 3, "there are examples");
    for (compiler, flags) in [
        ("gcc", ["-std=c11", "-c", "-Wcast-align=strict", "-Wold-style-definition"]),
        ("g++", ["-std=c++17", "-c", "-Wcast-align=strict", "-Wuseless-cast"]),
    ] {
        if !has(compiler) {
            continue;
        }
        let folder = Folder::new();
        for example in &examples {
            let source = folder.path().join(if compiler == "g++" { "example.cpp" } else { "example.c" });
            std::fs::write(&source, example).expect("it is ours");
            let (_, output) = folder.compile(compiler, &source, &flags, "example.o");
            assert!(output.status.success(), "{example}\n{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

/// The same programs as aarch64, as far as a compiler goes; `cross.rs` runs them.
#[test]
fn other_machines_compile_them() {
    if !has("aarch64-linux-gnu-gcc") {
        return;
    }
    let folder = Folder::new();
    let source = programs::root().join("crates/libkymo/tests/c/fields.c");
    for (standard, how) in C.iter().flat_map(|standard| HOW.iter().map(move |how| (*standard, *how))) {
        let flags = [&[standard, "-c"], how].concat();
        let (_, output) = folder.compile("aarch64-linux-gnu-gcc", &source, &flags, "fields.o");
        assert!(output.status.success(), "{flags:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
