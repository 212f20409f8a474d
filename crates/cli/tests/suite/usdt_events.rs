//! Events of our own tracer as USDT probes.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::c_programs::{self, compile};
use crate::kernel::{can_record, events, name};
use crate::recorded::{Place, until};

/// Events with fields of all kinds, one of more than twelve fields, one of none, a mark, and a child.
const SHOP: &str = r#"
#include <kymo/kymo.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
KYMO_EVENT(shop, sale, KYMO_U32(n), KYMO_TEXT(item), KYMO_I8(less), KYMO_HEX64(id), KYMO_CHARS(part), KYMO_BOOL(flag),
           KYMO_ENUM(i16, kind, less=-1, more=1), KYMO_F64(weight), KYMO_ARRAY(u16, 2, sizes), KYMO_SEQUENCE(u8, bytes),
           KYMO_I64(big), KYMO_POINTER(at), KYMO_U8(beyond));
KYMO_EVENT(shop, empty);
KYMO_EVENT(shop, child, KYMO_I32(n));
int main(void)
{
    static const uint16_t sizes[2] = {1, 2};
    int seen = 0;
    for (unsigned n = 0; n < 4; n++) {
        seen += kymo_shop_sale_is_on();
        kymo_shop_sale(n, n % 2 ? "apple" : "pear", (int8_t)-(int)n, 0xfedcba9876543210u, "blueberry", 4, n % 2, n % 2 ? 1 : -1, 1.5,
                       sizes, (const uint8_t *)"xy", 2, -5000000000 - (int)n, &sizes, 9);
        kymo_shop_empty();
        kymo_log(6, "sold %u", n);
    }
    const pid_t child = fork();
    if (child == 0) {
        kymo_shop_child(-7);
        _exit(0);
    }
    waitpid(child, 0, 0);
    printf("%d\n", seen);
    return 0;
}
"#;

/// The same in Rust, where texts have no zero at their end.
const SHOP_OF_RUST: &str = r#"
#![forbid(unsafe_code)]
use kymo_tracer::{Hex, labels, event};
labels! {
    /// What is sold.
    pub enum Kind: i16 { Less = -1, More = 1 }
}
event! {
    /// A sale.
    fn sale(n: u32, item: &str, less: i8, id: Hex<u64>, part: &str, flag: bool, kind: Kind, weight: f64, sizes: [u16; 2], bytes: &[u8],
            big: i64, at: *const u16, beyond: u8) = "shop:sale";
    fn empty() = "shop:empty";
    fn nested(n: u32) = "shop:nested:name";
    /// Assemblers, and templates of assembly, read each of these characters as something else.
    fn odd(n: u32) = "shop:it's:{0}\"\\;#\u{fc}";
}
fn main() {
    for n in 0..4_u32 {
        let (item, kind) = if n % 2 == 1 { ("apple", Kind::More) } else { ("pear", Kind::Less) };
        sale(n, item, -(n as i8), Hex(0xfedc_ba98_7654_3210), &"blueberry"[..4], n % 2 == 1, kind, 1.5, [1, 2], b"xy",
             -5_000_000_000 - i64::from(n), &0, 9);
        empty();
        nested(n);
        odd(n);
        kymo_tracer::log!(kymo_tracer::marks::Level::Info, "sold {n}");
        kymo_tracer::scope!("sold");
    }
}
"#;

/// C++: texts of two types, from a template.
const SHOP_OF_CPP: &str = r#"
#include <kymo/kymo.h>
#include <string>
#include <string_view>
namespace inner { KYMO_EVENT(shop, sale, KYMO_I16(n), KYMO_TEXT(item), KYMO_TEXT(part)); }
template <typename Number> inline void sell(Number n)
{
    inner::kymo_shop_sale(static_cast<int16_t>(n), std::string("apple"), std::string_view("blueberry").substr(0, 4));
}
int main() { sell(-1); sell(2L); }
"#;

/// A program that records an event for each line of its input, and says before whether it is on.
const ASKED: &str = r#"
#include <kymo/kymo.h>
#include <stdio.h>
KYMO_EVENT(asked, line, KYMO_U32(n));
int main(void)
{
    char line[16];
    for (unsigned n = 0; fgets(line, sizeof line, stdin); n++) {
        printf("%d\n", kymo_asked_line_is_on());
        fflush(stdout);
        kymo_asked_line(n);
    }
    return 0;
}
"#;

/// Arguments of a sale, texts as texts.
const ARGUMENTS: &str = "(arg1, arg2:string, arg3, arg4, arg5:string, arg6, arg7, arg8, arg9, arg10, arg11, arg12)";

/// The payloads of a name's events that tools see, and of those that the tracer recorded.
fn seen_and_recorded<'e>(events: &'e [Value], wanted: &str) -> [Vec<&'e Value>; 2] {
    let payloads = events.iter().filter(|event| name(event) == wanted).map(|event| &event["payload"]);
    let (seen, recorded) = payloads.partition(|payload| !payload["ip"].is_null());
    [seen, recorded]
}

/// Four sales, as tools see them.
fn are_sales(sales: &[&Value], about: &str) {
    assert_eq!(sales.len(), 4, "{about}");
    for (n, sale) in sales.iter().enumerate() {
        let odd = n % 2;
        let values: Vec<&Value> = (1..=8).chain([11]).map(|number| &sale[format!("arg{number}")]).collect();
        let (item, kind) = if odd == 1 { ("apple", 1) } else { ("pear", -1) };
        let expected = json!([
            n,
            item,
            -(n as i64),
            0xfedc_ba98_7654_3210_u64,
            "blue",
            odd,
            kind,
            1.5_f64.to_bits(),
            -5_000_000_000 - n as i64
        ]);
        assert_eq!(json!(values), expected, "{about}");
        // Addresses.
        assert!([9, 10, 12].iter().all(|number| sale[format!("arg{number}")].as_u64() > Some(4096)), "{about}: {sale}");
        assert!(sale["arg13"].is_null(), "{about}: {sale}");
    }
}

/// Whether probes can be tried here; otherwise it is said why not.
fn can_try(place: &Place) -> Option<PathBuf> {
    if !can_record(place) {
        return None;
    }
    c_programs::library()
}

/// A static library needs no path at run time.
fn linked(place: &Place, library: &Path, name: &str, source: &str, words: &[&str]) -> PathBuf {
    let archive = library.join("libkymo.a").display().to_string();
    compile(&place.path("."), name, source, &[words, &[archive.as_str()]].concat())
}

/// Tools see the arguments of a program that records nothing itself, however it was compiled, and nothing is on without them.
#[test]
fn tools_see_events_that_nobody_records() {
    let place = Place::new();
    let Some(library) = can_try(&place) else { return };
    for (how, words) in [
        ("O0", &["-O0"][..]),
        ("O2", &["-O2"]),
        ("PIC", &["-O2", "-fPIC"]),
        ("static", &["-O2", "-static"]),
        ("sections", &["-O2", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]),
    ] {
        let shop = linked(&place, &library, how, SHOP, words);
        let probes = [
            format!("shop:sale{ARGUMENTS}"),
            "shop:empty".into(),
            "shop:child".into(),
            "kymo:log(arg1, arg2:string)".into(),
        ];
        let probes = probes.map(|probe| format!("--usdt=./{how}:{probe}"));
        for (trace, tracer) in [(format!("{how}-on"), "on"), (format!("{how}-off"), "off")] {
            let mut record = place.kymo(&["record", "--event", "none:none"]);
            record.args(&probes);
            let output =
                record.args(["--output", &trace, "--"]).arg(&shop).env("KYMO", tracer).output().expect("it starts");
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.lines().any(|line| line == "4"), "{how}: {output:?}");
            let events = events(&place, &trace);
            let [seen, recorded] = seen_and_recorded(&events, "shop:sale");
            are_sales(&seen, how);
            assert_eq!(recorded.len(), 0, "{how}: nobody asked for it");
            assert_eq!(seen_and_recorded(&events, "shop:empty")[0].len(), 4, "{how}");
            // A child has its parent's memory, with the number in it.
            let [children, _] = seen_and_recorded(&events, "shop:child");
            assert_eq!(children.iter().map(|child| &child["arg1"]).collect::<Vec<_>>(), [-7], "{how}");
            let [logs, _] = seen_and_recorded(&events, "kymo:log");
            let logs: Vec<_> = logs.iter().map(|log| (log["arg1"].clone(), log["arg2"].clone())).collect();
            assert_eq!(logs, [0, 1, 2, 3].map(|n| (json!(6), json!(format!("sold {n}")))), "{how}");
        }
        // Not where sessions of this user may record all programs.
        let output = place.command(&shop).output().expect("it runs");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n", "{how}: nothing is on any more");
    }
}

/// Texts of C++ need no zero at their end.
#[test]
fn tools_see_events_of_cpp() {
    let place = Place::new();
    let Some(library) = can_try(&place) else { return };
    if Command::new("c++").arg("--version").output().is_err() {
        return eprintln!("NOT TESTED: there is no C++ compiler");
    }
    std::fs::write(place.path("shop.cpp"), SHOP_OF_CPP).expect("there is room");
    let archive = library.join("libkymo.a").display().to_string();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    for level in ["-O0", "-O2"] {
        let mut compiler = place.command("c++");
        compiler.args(["-std=c++17", "-Wall", "-Werror", level, "-I"]).arg(&include);
        compiler.args(["shop.cpp", &archive, "-pthread", "-o", "shop"]);
        assert!(compiler.status().expect("it starts").success());
        let trace = format!("trace{level}");
        let sale = "./shop:shop:sale(arg1, arg2:string, arg3:string)";
        place.says(&["record", "--event", "none:none", "--usdt", sale, "--output", &trace, "--", "./shop"], 0);
        let events = events(&place, &trace);
        let [seen, recorded] = seen_and_recorded(&events, "shop:sale");
        let seen: Vec<_> = seen.iter().map(|sale| [&sale["arg1"], &sale["arg2"], &sale["arg3"]]).collect();
        assert_eq!(json!(seen), json!([[-1, "apple", "blue"], [2, "apple", "blue"]]), "{level}");
        assert_eq!(recorded.len(), 0);
    }
}

/// A session and a tool see each event, in C as in a library.
#[test]
fn tools_and_sessions_see_the_same_events() {
    let place = Place::new();
    let Some(library) = can_try(&place) else { return };
    const PART: &str = "#include <kymo/kymo.h>\nKYMO_EVENT(part, step, KYMO_U32(n), KYMO_TEXT(text));\n\
                        void part(unsigned n); void part(unsigned n) { kymo_part_step(n, \"of a library\"); }\n";
    const HOST: &str =
        "void part(unsigned n);\nint main(void) { for (unsigned n = 0; n < 4; n++) part(n); return 0; }\n";
    linked(&place, &library, "shop", SHOP, &[]);
    compile(
        &place.path("."),
        "libpart.so",
        PART,
        &["-shared", "-fPIC", &library.join("libkymo.a").display().to_string()],
    );
    let folder = place.path(".").display().to_string();
    compile(&place.path("."), "host", HOST, &[&format!("-L{folder}"), "-lpart", &format!("-Wl,-rpath,{folder}")]);
    let sale = format!("./shop:shop:sale{ARGUMENTS}");
    place.says(&["record", "--usdt", &sale, "--output", "both", "--", "./shop"], 0);
    let all = events(&place, "both");
    let [seen, recorded] = seen_and_recorded(&all, "shop:sale");
    are_sales(&seen, "both");
    let recorded: Vec<_> = recorded.iter().map(|sale| (sale["n"].clone(), sale["part"].clone())).collect();
    assert_eq!(recorded, [0, 1, 2, 3].map(|n| (json!(n), json!("blue"))));
    // A filter is for the session; tools see every event.
    let filter = ["--event", "shop:sale", "--filter", "n == 2"];
    place.says(&[&["record", "--usdt", &sale, "--output", "some"][..], &filter, &["--", "./shop"]].concat(), 0);
    let all = events(&place, "some");
    let [seen, recorded] = seen_and_recorded(&all, "shop:sale");
    are_sales(&seen, "a filter");
    assert_eq!(recorded.iter().map(|sale| &sale["n"]).collect::<Vec<_>>(), [2]);
    place.says(
        &["record", "--usdt", "./libpart.so:part:step(arg1, arg2:string)", "--output", "part", "--", "./host"],
        0,
    );
    let all = events(&place, "part");
    let [seen, recorded] = seen_and_recorded(&all, "part:step");
    for (n, (seen, recorded)) in seen.iter().zip(&recorded).enumerate() {
        assert_eq!((&seen["arg1"], &seen["arg2"]), (&json!(n), &json!("of a library")));
        assert_eq!((&recorded["n"], &recorded["text"]), (&json!(n), &json!("of a library")));
    }
    assert_eq!((seen.len(), recorded.len()), (4, 4));
    let told = place.says(&["record", "--usdt", "./shop:shop:sael", "--output", "none", "--", "true"], 2);
    assert!(told.contains("has no USDT probe `shop:sael`; did you mean `shop:sale`?"), "{told}");
}

/// A running program that answers each line.
struct AskedProgram(Child, BufReader<std::process::ChildStdout>);

impl AskedProgram {
    fn is_on(&mut self) -> bool {
        self.0.stdin.as_mut().expect("it is piped").write_all(b"line\n").expect("it reads");
        let mut line = String::new();
        self.1.read_line(&mut line).expect("it answers");
        line.trim_end() == "1"
    }
}

impl Drop for AskedProgram {
    fn drop(&mut self) {
        self.0.stdin = None;
        self.0.wait().expect("it ends");
    }
}

/// Events of a program that runs are on while a tool is attached or a session records them, and off behind that.
#[test]
fn events_are_off_when_tools_are_gone() {
    let place = Place::new();
    let Some(library) = can_try(&place) else { return };
    let asked = linked(&place, &library, "asked", ASKED, &[]);
    let mut child = place.command(asked).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let answers = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut program = AskedProgram(child, answers);
    assert!(!program.is_on());
    let usdt = ["record", "--name", "tool", "--event", "none:none", "--usdt", "./asked:asked:line", "--output", "tool"];
    let session = ["record", "--name", "session", "--event", "asked:line", "--output", "session"];
    let mut tool = place.kymo(&usdt).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    until(|| program.is_on());
    let mut recorder = place.kymo(&session).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    place.waits_for_program();
    assert!(program.is_on());
    place.says(&["stop", "tool"], 0);
    assert!(tool.wait().expect("it ends").success());
    // The session goes on.
    assert!(program.is_on());
    place.says(&["stop", "session"], 0);
    assert!(recorder.wait().expect("it ends").success());
    until(|| !program.is_on());
    drop(program);
    let seen = |trace: &str| {
        let events = events(&place, trace);
        seen_and_recorded(&events, "asked:line").map(|payloads| payloads.len())
    };
    let [[by_tool, none], [nothing, by_session]] = ["tool", "session"].map(seen);
    assert!(by_tool > 0 && by_session > 0 && [none, nothing] == [0, 0], "{by_tool} {none} {nothing} {by_session}");
}

/// Events of Rust programs are USDT probes, too.
#[test]
fn tools_see_events_of_rust() {
    let place = Place::new();
    let shop = c_programs::program_of_rust(&place.path("."), "usdt-shop", SHOP_OF_RUST);
    let file = std::fs::read(&shop).expect("it can be read");
    let note = "shop\0it's:{0}\"\\;#\u{fc}\x004@".as_bytes();
    assert!(file.windows(note.len()).any(|bytes| bytes == note), "names may have any characters");
    if !can_record(&place) {
        return;
    }
    std::fs::copy(shop, place.path("shop")).expect("there is room");
    let sale = format!("./shop:shop:sale{ARGUMENTS}");
    let probes = [
        "--usdt",
        sale.as_str(),
        "--usdt",
        "./shop:shop:empty",
        "--usdt",
        "./shop:shop:nested:name",
        "--usdt",
        "./shop:kymo:log(arg1, arg2:string)",
        "--usdt",
        "./shop:kymo:end(arg2:string)",
    ];
    for (trace, selected) in [("alone", "none:none"), ("both", "*")] {
        place.says(&[&["record", "--event", selected][..], &probes, &["--output", trace, "--", "./shop"]].concat(), 0);
        let events = events(&place, trace);
        let is_recorded = usize::from(trace == "both") * 4;
        let [seen, recorded] = seen_and_recorded(&events, "shop:sale");
        are_sales(&seen, trace);
        assert_eq!(recorded.len(), is_recorded);
        assert!(recorded.iter().enumerate().all(|(n, sale)| sale["n"] == n && sale["part"] == "blue"), "{recorded:?}");
        let [seen, recorded] = seen_and_recorded(&events, "shop:nested:name");
        assert_eq!(seen.iter().map(|event| &event["arg1"]).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(recorded.len(), is_recorded);
        let [seen, recorded] = seen_and_recorded(&events, "kymo:log");
        let seen: Vec<_> = seen.iter().map(|log| (log["arg1"].clone(), log["arg2"].clone())).collect();
        assert_eq!(seen, [0, 1, 2, 3].map(|n| (json!(6), json!(format!("sold {n}")))));
        assert_eq!(recorded.len(), is_recorded);
        // Nothing wants the begin of these durations, unless the session does.
        assert_eq!(seen_and_recorded(&events, "kymo:end").map(|payloads| payloads.len()), [is_recorded, is_recorded]);
        assert_eq!(seen_and_recorded(&events, "shop:empty").map(|payloads| payloads.len()), [4, is_recorded]);
    }
}
