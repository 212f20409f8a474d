//! Probes of functions and USDT probes of programs that know nothing of kymo.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::kernel::{NOBODY, can_record, events, name, sudo};
use crate::recorded::{Place, until};

/// Functions with arguments of many types, each called five times.
const APP: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#define WHOLE __attribute__((noipa))
struct pair { double x; long n; };
struct big { long a[4]; };
enum color { RED = -1, GREEN = 5 };
WHOLE int parse_line(int n, const char *text, double d, unsigned char c, struct pair p, long *at, _Bool flag,
                     enum color color, struct big b, short last)
{
    return n + (int)strlen(text) + c + (int)p.n + (int)*at + flag + color + (int)b.a[0] + last + (int)d;
}
WHOLE const char *parse_word(uint64_t number, struct big b) { return (long)number + b.a[1] > 2 ? "many" : "few"; }
WHOLE struct big large(int n) { struct big b = {{n, n, n, n}}; return b; }
WHOLE void idle_step(void) { __asm__ volatile(""); }
int main(void)
{
    struct big b = {{0, 0, 0, 0}};
    struct pair p = {1.0, 3};
    long at = 7;
    for (int i = 0; i < 5; i++) {
        char text[16];
        snprintf(text, sizeof text, "line %d", i);
        parse_line(i - 2, text, 1.5, 'a' + i, p, &at, i % 2, i % 2 ? GREEN : RED, b, -9);
        parse_word(i, b);
        large(i);
        idle_step();
    }
    return 0;
}
"#;

/// Notes as `<sys/sdt.h>` writes them, one with a semaphore; the program prints how often it saw that greater than 0.
const SHOP: &str = r#"
#include <stdint.h>
#include <stdio.h>
unsigned short shop_sale_semaphore __attribute__((section(".probes"), used));
#define NOTE(name, args, semaphore, ...) \
    __asm__ volatile("990: nop\n.pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 992f-991f,994f-993f,3\n" \
                     "991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b\n.8byte _.stapsdt.base\n" \
                     ".8byte " semaphore "\n.asciz \"shop\"\n.asciz \"" name "\"\n.asciz \"" args "\"\n994: .balign 4\n" \
                     ".popsection\n.ifndef _.stapsdt.base\n" \
                     ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
                     ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n" \
                     ".size _.stapsdt.base,1\n.popsection\n.endif\n" ::__VA_ARGS__)
static volatile uint32_t stock = 40;
int main(void)
{
    int seen = 0;
    for (int n = 0; n < 4; n++) {
        seen += *(volatile unsigned short *)&shop_sale_semaphore > 0;
        NOTE("sale", "-4@%[n] 8@%[item]", "shop_sale_semaphore", [n] "nor"(n), [item] "nor"("apple"));
        if (n % 2) NOTE("sale", "-4@%[n] 8@%[item]", "shop_sale_semaphore", [n] "nor"(-n), [item] "nor"("pear"));
        stock--;
        NOTE("stock", "4@stock(%%rip) 8f@%%xmm0 -8@$-3", "0");
    }
    printf("%d\n", seen);
    return 0;
}
"#;

/// Compiles a program; `None`: there is no compiler, as is said.
fn compiled(place: &Place, name: &str, source: &str, words: &[&str]) -> Option<PathBuf> {
    let (built, path) = (place.path(name), place.path(&format!("{name}.c")));
    std::fs::write(&path, source).expect("there is room");
    match Command::new("cc").args(words).arg("-o").arg(&built).arg(&path).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            eprintln!("NO C COMPILER HERE: not run ({error})");
            return None;
        }
    }
    Some(built)
}

/// Payloads of the events of a name.
fn payloads<'e>(events: &'e [Value], wanted: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| name(event) == wanted).map(|event| &event["payload"]).collect()
}

/// Arguments and results are those with which the program calls, at any level of optimization.
#[test]
fn functions_are_recorded_with_their_arguments() {
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    for (level, more) in [("-O0", "-gdwarf-4"), ("-O2", "-g"), ("-O2", "-gz")] {
        let Some(_) = compiled(&place, "app", APP, &[level, "-g", more]) else { return };
        let trace = format!("trace{level}{more}");
        let words = ["--uprobe", "./app:parse_*", "--uprobe", "./app:parse_*%return", "--uprobe", "./app:large"];
        let command = ["--uprobe", "./app:idle_step", "--output", &trace, "--", "./app"];
        let told = place.says(&[&["record"], &words[..], &command[..]].concat(), 0);
        assert!(told.contains("`app:parse_line` does not record d, p, b: "), "{told}");
        assert!(told.contains("of 6 probes and "), "{told}");
        let events = events(&place, &trace);
        let calls = payloads(&events, "app:parse_line");
        let of = |calls: &[&Value], field: &str| calls.iter().map(|call| call[field].clone()).collect::<Vec<_>>();
        assert_eq!(of(&calls, "n"), [-2, -1, 0, 1, 2].map(Value::from), "{level} {more}");
        assert_eq!(of(&calls, "text"), ["line 0", "line 1", "line 2", "line 3", "line 4"].map(Value::from));
        assert_eq!(of(&calls, "c"), [97, 98, 99, 100, 101].map(Value::from));
        assert_eq!(of(&calls, "flag"), [0, 1, 0, 1, 0].map(Value::from));
        assert_eq!(of(&calls, "color"), [-1, 5, -1, 5, -1].map(Value::from));
        // The seventh integer lies in memory, behind the structures.
        assert_eq!(of(&calls, "last"), [-9; 5].map(Value::from));
        assert!(calls.iter().all(|call| call["at"] == calls[0]["at"] && call["d"].is_null() && call["b"].is_null()));
        let results: Vec<i64> = (0..5_i64)
            .map(|i| (i - 2) + 6 + (97 + i) + 3 + 7 + i % 2 + if i % 2 == 1 { 5 } else { -1 } - 9 + 1)
            .collect();
        assert_eq!(
            of(&payloads(&events, "app:parse_line__return"), "ret"),
            results.into_iter().map(Value::from).collect::<Vec<_>>()
        );
        assert_eq!(of(&payloads(&events, "app:parse_word"), "number"), [0, 1, 2, 3, 4].map(Value::from));
        let words = of(&payloads(&events, "app:parse_word__return"), "ret");
        assert_eq!(words, ["few", "few", "few", "many", "many"].map(Value::from));
        // The first register has the address of its large result.
        assert_eq!(of(&payloads(&events, "app:large"), "n"), [0, 1, 2, 3, 4].map(Value::from));
        assert_eq!(payloads(&events, "app:idle_step").len(), 5);
        let order: Vec<&str> = events.iter().map(name).filter(|name| name.starts_with("app:parse_line")).collect();
        assert!(order.chunks(2).all(|two| two == ["app:parse_line", "app:parse_line__return"]), "{order:?}");
        let pairs = ["pairs", "--start", "app:parse_line", "--stop", "app:parse_line__return", "--key", "$ctx.tid"];
        let pairs = place.says(&[&pairs[..], &[trace.as_str()]].concat(), 0);
        assert!(pairs.lines().nth(2).is_some_and(|line| line.trim_start().starts_with("5 ")), "{pairs}");
        assert!(place.says(&["check", &trace], 0).contains("no problems"));
    }
}

/// Without optimization, Rust's arguments are those of calls. With it, LLVM leaves out constants and results of functions that no
/// other file calls: those are absent, and never wrong.
#[test]
fn functions_of_rust_are_recorded() {
    const SOURCE: &str = "mod inner {
    pub struct Id(pub u16);
    #[inline(never)]
    pub fn parse(text: &str, n: u32, big: Option<u64>) -> usize {
        std::hint::black_box(text.len() + n as usize + big.unwrap_or(1) as usize)
    }
    #[inline(never)]
    pub fn two(id: Id, x: f64, n: &mut i64) -> i64 { std::hint::black_box(*n + id.0 as i64 + x as i64) }
    #[inline(never)]
    pub fn generic<T: std::fmt::Debug>(value: T, n: i8) { std::hint::black_box((format!(\"{value:?}\"), n)); }
}
fn main() {
    inner::parse(\"hello\", 7, Some(3));
    inner::two(inner::Id(9), 2.0, &mut 5);
    inner::generic(3u8, -1);
    inner::generic(5u64, -2);
}
";
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    std::fs::write(place.path("rust.rs"), SOURCE).expect("there is room");
    for level in ["0", "2"] {
        let words = ["--edition", "2021", "-g", "-C", &format!("opt-level={level}"), "-o", "rust", "rust.rs"];
        match place.command("rustc").args(words).output() {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => return eprintln!("NO RUSTC HERE: not run ({error})"),
        }
        let words = ["record", "--uprobe", "./rust:rust::inner::*", "--uprobe", "./rust:*::two%return"];
        place.says(&[&words[..], &["--output", level, "--", "./rust"]].concat(), 0);
        let events = events(&place, level);
        let is_so = |event: &str, field: &str, wanted: &[i64]| {
            let calls = payloads(&events, &format!("rust:rust::inner::{event}"));
            assert_eq!(calls.len(), wanted.len(), "{event}");
            for (call, wanted) in calls.iter().zip(wanted) {
                assert!(level != "0" && call[field].is_null() || call[field] == *wanted, "{level} {event}: {call}");
            }
        };
        is_so("parse", "text_length", &[5]);
        is_so("parse", "n", &[7]);
        is_so("two", "id", &[9]);
        is_so("two__return", "ret", &[16]);
        is_so("generic", "value", &[3, 5]);
        is_so("generic", "n", &[-1, -2]);
        assert!(payloads(&events, "rust:rust::inner::parse").iter().all(|call| call["big"].is_null()));
    }
}

/// The words behind a name choose arguments, also where there is no debug information.
#[test]
fn arguments_are_chosen_by_words() {
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    let Some(app) = compiled(&place, "app", APP, &["-O1"]) else { return };
    let words =
        ["--uprobe", "./app:parse_line(arg1:s32, arg2:string)", "--uprobe", "./app:parse_word%return(ret:string)"];
    let command = ["--uprobe", "./app:idle_step", "--output", "trace", "--", "./app"];
    let told = place.says(&[&["record"], &words[..], &command[..]].concat(), 0);
    assert!(told.contains("app has no debug information"), "{told}");
    let events = events(&place, "trace");
    let calls = payloads(&events, "app:parse_line");
    let fields: Vec<(&Value, &Value)> = calls.iter().map(|call| (&call["arg1"], &call["arg2"])).collect();
    assert_eq!(fields[..2], [(&json!(-2), &json!("line 0")), (&json!(-1), &json!("line 1"))]);
    assert_eq!(payloads(&events, "app:parse_word__return")[4]["ret"], "many");
    let steps = payloads(&events, "app:idle_step");
    assert_eq!(steps.len(), 5);
    assert!(steps.iter().all(|step| step.as_object().is_some_and(|fields| fields.keys().eq(["ip"]))), "{steps:?}");
    // The same function by its address, and by its name in a program without names.
    let address = address(&app, "idle_step");
    let status = Command::new("strip").arg(&app).status();
    if !status.is_ok_and(|status| status.success()) {
        eprintln!("NO STRIP HERE: a program without names is not tried");
        return;
    }
    let probe = format!("./app:{address:#x}");
    place.says(&["record", "--uprobe", &probe, "--output", "bare", "--", "./app"], 0);
    let events = crate::kernel::events(&place, "bare");
    assert_eq!(payloads(&events, &format!("app:{address:#x}")).len(), 5);
    let told = place.says(&["record", "--uprobe", "./app:idle_step", "--output", "none", "--", "./app"], 2);
    assert!(told.contains("has no names of functions (it is stripped)"), "{told}");
}

/// The address of a symbol.
fn address(program: &Path, symbol: &str) -> u64 {
    let output = Command::new("nm").arg(program).output().expect("there is nm where there is cc");
    let text = String::from_utf8(output.stdout).expect("it is text");
    let line = text.lines().find(|line| line.ends_with(&format!(" {symbol}"))).expect("it is there");
    u64::from_str_radix(line.split(' ').next().expect("it has an address"), 16).expect("it is a number")
}

/// The two places of `shop:sale` are one event, and the program sees by its semaphore that it is recorded.
#[test]
fn usdt_probes_are_recorded() {
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    if !cfg!(target_arch = "x86_64") {
        eprintln!("NOT TESTED: the notes of this program are those of x86-64");
        return;
    }
    let Some(shop) = compiled(&place, "shop", SHOP, &["-O2"]) else { return };
    let said = place.says(&["record", "--usdt", "./shop:shop:*(arg1, arg3)", "--output", "trace", "--", "./shop"], 2);
    assert!(said.contains("shop:sale has no argument `arg3`: it has 2"), "{said}");
    let said = place.says(&["record", "--usdt", "./shop:*:*", "--output", "trace", "--", "./shop"], 0);
    assert!(said.lines().any(|line| line == "4") && said.contains("of 2 probes and"), "{said}");
    assert!(said.contains("shop:stock does not record `arg2`: the kernel cannot read `8f@%xmm0`"), "{said}");
    let all = events(&place, "trace");
    let sales: Vec<&Value> = payloads(&all, "shop:sale").into_iter().map(|sale| &sale["arg1"]).collect();
    assert_eq!(sales, [0, 1, -1, 2, 3, -3].map(Value::from).iter().collect::<Vec<_>>());
    let stock = payloads(&all, "shop:stock").into_iter().map(|stock| (&stock["arg1"], &stock["arg3"], &stock["arg2"]));
    let stock: Vec<_> = stock.collect();
    assert_eq!(stock[..2], [(&json!(39), &json!(-3), &Value::Null), (&json!(38), &json!(-3), &Value::Null)]);
    place.says(&["record", "--usdt", "./shop:shop:sale(arg2:string)", "--output", "texts", "--", "./shop"], 0);
    let all = events(&place, "texts");
    let items: Vec<&Value> = payloads(&all, "shop:sale").into_iter().map(|sale| &sale["arg2"]).collect();
    assert_eq!(items[..3], [&json!("apple"), &json!("apple"), &json!("pear")]);
    // Nothing is recorded any more.
    let output = Command::new(&shop).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n");
    let told = place.says(&["record", "--usdt", "./shop:shop:sael", "--output", "none", "--", "true"], 2);
    assert!(told.contains("has no USDT probe `shop:sael`; did you mean `shop:sale`?"), "{told}");
}

/// A probe that names no function or file is refused, with the nearest name.
#[test]
fn words_that_mean_nothing_are_refused() {
    let place = Place::new();
    let Some(_) = compiled(&place, "app", APP, &["-g"]) else { return };
    std::fs::write(place.path("broken"), b"\x7fELF\x02\x01\x01").expect("there is room");
    let refused = |words: &[&str]| {
        let told = place.says(&[&["record"], words, &["--output", "none", "--", "true"]].concat(), 2);
        assert!(!place.path("none").exists());
        told
    };
    let cases = [
        (&["--uprobe", "./app:prase_line"][..], "has no function `prase_line`; did you mean `parse_line`?"),
        (&["--uprobe", "./app:parse_line(m)"], "there is no argument `m`; it has n, text, c, at, flag, color, last"),
        (&["--uprobe", "./none:f"], "there is no file ./none"),
        (&["--uprobe", "app:main"], "the file here is `./app`"),
        (&["--uprobe", "./app.c:main"], "and a program or library begins with `\\x7fELF`"),
        (&["--uprobe", "./broken:main"], "its ELF tables cannot be read"),
        (&["--uprobe", "./app:0xfffffff"], "has no code at the address 0xfffffff"),
        (&["--usdt", "./app:a:b"], "it has no USDT probes"),
        (&["--kernel-buffer", "1MiB"], "`--kernel` or `--uprobe` records some"),
        (&["--kprobe", "do_exitt"], "the kernel has no function `do_exitt`"),
    ];
    for (words, wanted) in cases {
        let told = refused(words);
        assert!(told.contains(wanted), "{words:?}: {told}");
    }
    let told = refused(&["--uprobe", "libc.so.6:*"]);
    assert!(told.contains("probes, and 512 is the most of a recording"), "{told}");
    if can_record(&place) && !Path::new("/sys/kernel/tracing/kprobe_events").exists() {
        let told = refused(&["--kprobe", "do_exit"]);
        assert!(told.contains("it was built without CONFIG_KPROBE_EVENTS"), "{told}");
    }
}

/// Helpers whose probes the kernel has.
fn probing() -> BTreeSet<u32> {
    let lines = std::fs::read_to_string("/sys/kernel/tracing/uprobe_events").unwrap_or_default();
    let of = |line: &str| line.split_once(":kymo_")?.1.split('_').next()?.parse().ok();
    lines.lines().filter_map(of).collect()
}

fn is_alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Probes go when their helper ends; those of a killed helper go when the next one begins.
#[test]
fn nothing_is_left_in_the_kernel() {
    let place = Place::alone();
    if !can_record(&place) {
        return;
    }
    let Some(_) = compiled(&place, "app", APP, &["-g"]) else { return };
    let before = probing();
    place.says(&["record", "--uprobe", "./app:parse_*", "--output", "first", "--", "./app"], 0);
    until(|| probing().difference(&before).all(|process| is_alive(*process)));
    let mut command = place.kymo(&["record", "--uprobe", "./app:parse_*", "--output", "second"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let helper = || {
        let parent = |process: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok())
        };
        probing().into_iter().find(|process| parent(process) == Some(child.id()))
    };
    // The recorder has all files of the helper.
    until(|| helper().is_some() && place.path("second/kernel/state").exists());
    let helper = helper().expect("it was there");
    kill(helper, "KILL");
    until(|| !is_alive(helper));
    kill(child.id(), "INT");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "it tells that the buffer was not removed");
    assert!(probing().contains(&helper), "a killed helper leaves its probes");
    place.says(&["record", "--kernel=sched", "--output", "third", "--", "true"], 0);
    assert!(!probing().contains(&helper), "the next helper removes them");
}

fn kill(process: u32, signal: &str) {
    let status = Command::new("kill").args(["-s", signal, &process.to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "{process}");
}

/// Probes that root began for another user: the file is read with that user's rights.
#[test]
fn a_user_is_served_by_sudo() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let place = Place::new();
    if std::fs::metadata(place.path(".")).expect("it is there").uid() != 0 {
        eprintln!("NOT TESTED: only root can act for another user");
        return;
    }
    if !can_record(&place) {
        return;
    }
    let Some(app) = compiled(&place, "app", APP, &["-g"]) else { return };
    let (kymo, folder) = (place.path("command"), place.path("theirs"));
    std::fs::copy(env!("CARGO_BIN_EXE_kymo"), &kymo).expect("there is room");
    std::fs::create_dir(&folder).expect("there is room");
    std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).expect("root may do that");
    std::fs::set_permissions(place.path("."), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    // A name that tracefs would read as two words.
    std::fs::copy(&app, folder.join("my app #1")).expect("there is room");
    let output = sudo(
        &kymo,
        &folder,
        &["record", "--uprobe", "./my app #1:idle_step", "--output", "trace", "--", "./my app #1"],
    );
    assert!(output.status.success(), "{output:?}");
    let output = sudo(&kymo, &folder, &["count", "trace"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("my app #1:idle_step"), "{said}");
    assert_eq!(folder.join("trace").metadata().expect("it is there").uid(), NOBODY);
    // A file that the user may not read has no probes.
    std::fs::set_permissions(folder.join("my app #1"), std::fs::Permissions::from_mode(0o711)).expect("it is ours");
    let output =
        sudo(&kymo, &folder, &["record", "--uprobe", "./my app #1:idle_step", "--output", "none", "--", "true"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && told.contains("Permission denied"), "{told}");
}
