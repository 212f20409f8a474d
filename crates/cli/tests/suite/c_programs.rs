//! Programs in C are recorded as people would: filters of their events, threads that end without a word, and several copies of the tracer in one
//! process, which know nothing of each other and are one program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::recorded::{self, Place, Program};

const HOST: &str = r#"
#include <dlfcn.h>
#include <kymo/kymo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

KYMO_EVENT(host, count, KYMO_U64(value));

typedef void call(uint64_t);

static call *load(const char *path, const char *name)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol = library ? dlsym(library, name) : NULL;
    call *found;
    if (!symbol) {
        fprintf(stderr, "%s: %s\n", path, dlerror());
        exit(1);
    }
    memcpy(&found, &symbol, sizeof found);
    return found;
}

int main(int argc, char **argv)
{
    call *of_c = load(argv[1], "plugin_call"), *of_rust = load(argv[2], "rust_call");
    char line[100];
    printf("@begun %d\n", getpid());
    fflush(stdout);
    while (argc == 3 && fgets(line, sizeof line, stdin)) {
        uint64_t count = strtoull(line + strcspn(line, " "), NULL, 10);
        if (!strncmp(line, "on", 2))
            while (!kymo_host_count_is_on())
                usleep(1000);
        for (uint64_t value = 0; value < count; ++value) {
            kymo_host_count(value);
            of_c(value);
            of_rust(value);
        }
        puts("@done");
        fflush(stdout);
    }
    return 0;
}
"#;

const PLUGIN: &str = r#"
#include <kymo/kymo.h>

KYMO_EVENT(plugin, count, KYMO_U64(value));

void plugin_call(uint64_t value);

void plugin_call(uint64_t value)
{
    kymo_plugin_count(value);
}
"#;

const LIBRARY: &str = r#"
kymo_tracer::event! {
    fn count(value: u64) = "rust:count";
}

#[unsafe(no_mangle)]
pub extern "C" fn rust_call(value: u64) {
    count(value);
}
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("it is there")
}

fn does(command: &mut Command) {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn cargo(target: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--offline", "--target-dir"]).arg(target);
    cargo
}

/// The folder that libkymo is built to; `None`: there is no C compiler, which is said.
pub(crate) fn library() -> Option<PathBuf> {
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("NOT TESTED: there is no C compiler");
        return None;
    }
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let target = Path::new(env!("CARGO_BIN_EXE_kymo")).ancestors().nth(2).expect("it is in target/PROFILE");
        does(cargo(target).args(["--profile", "libkymo", "--package", "kymo-libkymo"]).current_dir(root()));
        target.join("libkymo")
    };
    Some(LIBRARY.get_or_init(build).clone())
}

/// Installs the built library, as people do it; returns the folder.
pub(crate) fn install(built: &Path, folder: &Path) -> PathBuf {
    let [prefix, library] = [format!("PREFIX={}", folder.display()), format!("LIBKYMO={}", built.display())];
    // The library was built before.
    does(Command::new("make").args(["install-libkymo", &prefix, &library, "SUDO_USER=x"]).current_dir(root()));
    folder.to_owned()
}

/// Compiles a source, with more words behind it.
pub(crate) fn compile(folder: &Path, name: &str, source: &str, words: &[&str]) -> PathBuf {
    let (built, path) = (folder.join(name), folder.join(format!("{name}.c")));
    std::fs::write(&path, source).expect("there is room");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-Wall", "-Werror", "-I"]).arg(root().join("include")).arg(path).args(words);
    does(compiler.args(["-pthread", "-o"]).arg(&built));
    built
}

/// A program that is linked with libkymo.so.
pub(crate) fn program(folder: &Path, library: &Path, name: &str, source: &str) -> PathBuf {
    let _ = std::os::unix::fs::symlink(library.join("libkymo.so"), folder.join("libkymo.so.0"));
    let (find, run) = (format!("-L{}", library.display()), format!("-Wl,-rpath,{}", folder.display()));
    compile(folder, name, source, &[&find, "-lkymo", "-ldl", &run])
}

/// A library in Rust that has the tracer in it, by the name of its crate and its source.
pub(crate) fn library_of_rust(folder: &Path, name: &str, source: &str) -> PathBuf {
    let library = format!("lib{}.so", name.replace('-', "_"));
    of_rust(folder, name, source, "lib.rs", "[lib]\ncrate-type = [\"cdylib\"]\n").join(library)
}

/// A program in Rust that has the tracer in it.
pub(crate) fn program_of_rust(folder: &Path, name: &str, source: &str) -> PathBuf {
    of_rust(folder, name, source, "main.rs", "").join(name)
}

/// Builds a crate with one file; returns the folder of the built program or library.
fn of_rust(folder: &Path, name: &str, source: &str, file: &str, kind: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_BIN_EXE_kymo")).ancestors().nth(2).expect("it is in target/PROFILE");
    let (folder, target) = (folder.join(name), target.join("copies"));
    std::fs::create_dir_all(folder.join("src")).expect("there is room");
    std::fs::write(folder.join("src").join(file), source).expect("there is room");
    let tracer = root().join("crates/tracer");
    let manifest = format!(
        "[package]\nname = \"{name}\"\nedition = \"2024\"\n{kind}[workspace]\n[dependencies]\n\
         kymo-tracer = {{ path = {tracer:?} }}\n"
    );
    std::fs::write(folder.join("Cargo.toml"), manifest).expect("there is room");
    std::fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).expect("it is there");
    does(cargo(&target).arg("--release").current_dir(&folder));
    target.join("release")
}

const CONTROLS: &str = r#"
#include <inttypes.h>
#include <kymo/session.h>
#include <unistd.h>

KYMO_EVENT(work, step, KYMO_U64(value));
KYMO_EVENT(other, step, KYMO_U64(value));

static struct kymo_session session = KYMO_SESSION_INIT;

static void steps(uint64_t from, uint64_t to)
{
    for (uint64_t value = from; value < to; ++value) {
        kymo_work_step(value);
        kymo_other_step(value);
    }
}

static void must(int result, int expected, int line)
{
    if (result != expected) {
        fprintf(stderr, "line %d: %d, %s\n", line, result, session.error);
        exit(1);
    }
}

#define MUST(request) must(request, 0, __LINE__)
#define MUST_BE(request, expected) must(request, expected, __LINE__)

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        steps(0, 1);
        MUST_BE(kymo_session_is_recording(&session), KYMO_SESSION_NO_RECORDER);
        puts(session.error);
        return 0;
    }
    MUST_BE(kymo_session_is_recording(&session), 1);
    steps(0, 10);
    MUST(kymo_session_stop(&session));
    MUST_BE(kymo_session_is_recording(&session), 0);
    steps(10, 20);
    MUST(kymo_session_start(&session));
    steps(20, 30);
    MUST(kymo_session_disable(&session, "other:*"));
    steps(30, 40);
    MUST(kymo_session_enable(&session, NULL));
    steps(40, 50);
    kymo_session_mark("half");
    MUST(kymo_session_trigger(&session, "end: stop on work:step after 5"));
    steps(50, 60);
    MUST(kymo_session_wait(&session, 60000));
    struct kymo_firings firings;
    MUST(kymo_session_firings(&session, "end", &firings));
    if (firings.armed || firings.firings != 1 || !firings.last_ticks || firings.last_pid != (uint64_t)getpid())
        return 2;
    printf("%" PRIu64 "\n", firings.last_ns);
    MUST_BE(kymo_session_firings(&session, "other", &firings), KYMO_SESSION_REFUSED);
    puts(session.error);
    struct kymo_counts counts;
    MUST(kymo_session_counts(&session, &counts));
    printf("%" PRIu64 " events, %" PRIu64 " lost\n", counts.events, counts.lost);
    MUST(kymo_session_trigger(&session, "other: stop on work:step"));
    MUST(kymo_session_remove_trigger(&session, "other"));
    MUST_BE(kymo_session_remove_trigger(&session, "other"), KYMO_SESSION_REFUSED);
    MUST(kymo_session_disarm(&session, NULL));
    MUST(kymo_session_start(&session));
    MUST_BE(kymo_session_wait(&session, 5), KYMO_SESSION_TIMED_OUT);
    MUST_BE(kymo_session_abort_when_stopped(&session, "not yet", 5), KYMO_SESSION_TIMED_OUT);
    MUST_BE(kymo_session_arm(&session, ""), KYMO_SESSION_REFUSED);
    MUST(kymo_session_arm(&session, "end"));
    steps(60, 70);
    MUST(kymo_session_firings(&session, NULL, &firings));
    if (firings.firings != 2)
        return 3;
    MUST_BE(kymo_session_arm(&session, "nothing"), KYMO_SESSION_REFUSED);
    puts(session.error);
    MUST_BE(kymo_session_trigger(&session, "stop at once"), KYMO_SESSION_REFUSED);
    puts(session.error);
    MUST_BE(kymo_session_snapshot(&session), KYMO_SESSION_REFUSED);
    puts(session.error);
    session.name = "nobody";
    MUST_BE(kymo_session_flush(&session), KYMO_SESSION_REFUSED);
    puts(session.error);
    session.name = "mine";
    MUST_BE(kymo_session_abort_when_stopped(&session, "dumped", -1), 0);
    return 1;
}
"#;

/// Programs start and stop the session that records them, and end when it has stopped.
#[test]
fn programs_control_the_sessions_that_record_them() {
    let Some(built) = library() else { return };
    let place = Place::new();
    let controls = program(&place.path(""), &built, "controls", CONTROLS).display().to_string();
    let alone = place.command(&controls).arg("alone").output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&alone.stdout), "no recorder runs for this program\n", "{alone:?}");
    let mut recorded = place.kymo(&["record", "--name", "mine", "--output", "trace", "--", &controls]);
    let output = recorded.output().expect("it runs");
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let (last, said) = said.split_once('\n').expect("it says the time first");
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        [
            "no session of this program has a trigger `other`",
            "80 events, 0 lost",
            "session `mine` has no trigger `nothing`: it has end",
            "expected `on`, found `at`",
            "    stop at once",
            "         ^^",
            "no session with `--mode overwrite` records this program",
            "there is no session `nobody`",
        ],
        "{told}"
    );
    assert!(told.contains("dumped\n"), "{told}");
    assert_eq!(output.status.code(), Some(134), "it aborts: {told}");
    let values = |event| place.values(&place.path("trace"), event);
    let range = |ranges: &[(u64, u64)]| ranges.iter().flat_map(|(first, end)| *first..*end).collect::<Vec<u64>>();
    assert_eq!(values("work:step"), range(&[(0, 10), (20, 55), (60, 65)]));
    assert_eq!(values("other:step"), range(&[(0, 10), (20, 30), (40, 54), (60, 64)]));
    // The last event before the first stop of the trigger.
    let stop =
        place.says(&["print", "--format", "json", "--filter", "value == 54", "--event", "work:step", "trace"], 0);
    let event: serde_json::Value = serde_json::from_str(stop.lines().next().expect("it is there")).expect("it is JSON");
    let (time, last) = (event["time"].as_i64().expect("it has a time"), last.parse::<i64>().expect("a number"));
    // The trace knows the clock better than the recorder did at that time.
    assert!(time.abs_diff(last) < 1000, "{last} {stop}");
    let mark = place.says(&["print", "--event", "kymo:log", "trace"], 0);
    assert!(mark.contains("half"), "{mark}");
}

const SECRETIVE: &str = r#"
#include <kymo/kymo.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

KYMO_EVENT(work, step, KYMO_U64(value));

int main(void)
{
    char line[100];
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    printf("@begun %d\n", getpid());
    fflush(stdout);
    for (uint64_t value = 0; fgets(line, sizeof line, stdin);) {
        for (int i = 0; i < 100; ++i)
            kymo_work_step(value++);
        puts("@done");
        fflush(stdout);
    }
    return 0;
}
"#;

/// A program that other processes may not inspect runs no judgement of a recorder: that one watches its events.
#[test]
fn programs_that_may_not_be_inspected_are_watched() {
    let Some(built) = library() else { return };
    let place = Place::new();
    let secretive = program(&place.path(""), &built, "secretive", SECRETIVE).display().to_string();
    let trigger = "stop on work:step after 150 when value % 2 == 1";
    let mut recorded = place.kymo(&["record", "--output", "trace", "--trigger", trigger, "--", &secretive]);
    let mut program = Program::of(recorded.stderr(Stdio::piped()));
    place.waits_for_program();
    (0..4).for_each(|_| program.tell("more"));
    // The program begins with this event on; later it finds the judgement, and may not run it.
    recorded::until(|| place.json(&["trigger", "--json"])[0]["triggers"][0]["firings"] == 1);
    (0..2).for_each(|_| program.tell("more"));
    let told = program.end();
    assert!(told.status.success(), "{told:?}");
    assert_eq!(place.values(&place.path("trace"), "work:step"), (0..300).collect::<Vec<_>>());
}

#[test]
fn copies_of_the_tracer_in_one_process_are_one_program() {
    let Some(built) = library() else { return };
    let place = Place::new();
    let folder = place.path("");
    let host = program(&folder, &built, "copies-host", HOST);
    let archive = built.join("libkymo.a").display().to_string();
    let own = ["-fPIC", "-shared", "-Wl,--exclude-libs,ALL", "-Wl,-z,nodelete", &archive];
    let plugin = compile(&folder, "plugin.so", PLUGIN, &own);
    let [host, plugin, library] =
        [host, plugin, library_of_rust(&folder, "of-rust", LIBRARY)].map(|path| path.display().to_string());

    // Started with a session.
    let words = ["record", "--output", "trace", "--", &host, &plugin, &library];
    let mut program = Program::of(place.kymo(&words).stderr(Stdio::piped()));
    // Of one that is gone when it is found, nobody can say what it executed.
    place.waits_for_program();
    program.tell("count 100");
    let told = String::from_utf8_lossy(&program.end().stderr).into_owned();
    assert!(told.contains("recorded 300 events of 1 program"), "{told}");
    let all: Vec<u64> = (0..100).collect();
    for event in ["host:count", "plugin:count", "rust:count"] {
        assert_eq!(place.values(&place.path("trace"), event), all, "{event}");
    }
    let text = place.says(&["print", "--event", "*:count", "trace"], 0);
    let pids: std::collections::BTreeSet<_> =
        text.lines().filter_map(|line| line.split_once("vpid = ")?.1.split([',', ' ']).next()).collect();
    assert_eq!((pids.len(), text.lines().count()), (1, 300), "{pids:?}");

    // What addresses in it are of.
    check_objects(&place, "trace", &[&host, &plugin, &library, "libkymo.so"]);
    let metadata = std::fs::read(place.path("trace/metadata")).expect("it is there");
    let metadata = String::from_utf8_lossy(&metadata).into_owned();
    assert!(metadata.contains(&format!("binary_path = \"{host}\";")), "{metadata}");
    if let Some(id) = build_id(&host) {
        assert!(metadata.contains(&format!("binary_build_id = \"{id}\";")), "{metadata}");
    }

    // Found by its name, and changed while it runs: each copy has filters of its own.
    let mut program = Program::of(place.command(&host).args([&plugin, &library]));
    let begin =
        ["record", "--detach", "--name", "s", "--process", "copies-host", "--output", "found", "--event", "*:count"];
    place.says(&[&begin[..], &["--filter", "value >= 90"]].concat(), 0);
    program.tell("on");
    recorded::until(|| {
        let status = place.json(&["status", "--json", "copies-host"]);
        let programs = status["programs"].as_array().expect("they are listed").clone();
        let on = |event: &&serde_json::Value| event["is_on"] == true;
        programs.len() == 1
            && programs[0]["copies"] == 3
            && programs[0]["events"].as_array().expect("they are listed").iter().filter(on).count() == 3
    });
    let said = place.says(&["filter", "value >= 95", "--session", "s", "--event", "plugin:*"], 0);
    assert!(said.contains("session s: 1 event of 1 program"), "{said}");
    program.tell("count 100");
    let said = place.says(&["status", "copies-host"], 0);
    assert!(said.contains("tracer    3 copies") && said.matches("\nprogram ").count() == 1, "{said}");
    let pid = program.pid.to_string();
    let said = place.says(&["disable", "*:count", "--process", &pid], 0);
    assert!(said.contains("session s: 3 events of 1 program"), "{said}");
    program.tell("count 100");
    program.end();
    let said = place.says(&["stop", "s"], 0);
    assert!(said.contains("recorded 25 events of 1 program"), "{said}");
    for (event, first) in [("host:count", 90), ("plugin:count", 95), ("rust:count", 90)] {
        assert_eq!(place.values(&place.path("found"), event), (first..100).collect::<Vec<_>>(), "{event}");
    }
}

/// As `readelf` says it; `None`: there is none.
fn build_id(path: &str) -> Option<String> {
    let output = Command::new("readelf").args(["--notes", "--wide", path]).output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.lines().find_map(|line| Some(line.split_once("Build ID: ")?.1.trim().to_owned()))
}

/// A trace tells of each of these that it was mapped to be executed, and its build id.
fn check_objects(place: &Place, trace: &str, paths: &[&str]) {
    let text = place.says(&["print", "--event", "kymo:object", trace], 0);
    for path in paths {
        let part =
            |line: &str, name: &str| line.split_once(&format!(" {name} = \""))?.1.split('"').next().map(str::to_owned);
        let found: Vec<&str> = text.lines().filter(|line| line.contains(path)).collect();
        let line = found.first().unwrap_or_else(|| panic!("{path}: {text}"));
        let whole = part(line, "path").expect("it has a path");
        match build_id(&whole) {
            Some(id) => assert_eq!(part(line, "build_id"), Some(id), "{line}"),
            None => eprintln!("NOT TESTED: the build id of {whole}, as there is none or no readelf"),
        }
    }
}

const NAMESPACES: &str = r#"
#define _GNU_SOURCE
#include <kymo/kymo.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

KYMO_EVENT(c, where, KYMO_U64(value));

static void say(void)
{
    struct stat found;
    if (!stat("/proc/thread-self/ns/net", &found))
        for (int times = 0; times < 10; ++times)
            kymo_c_where(found.st_ino);
}

static void *leave(void *unused)
{
    if (unshare(CLONE_NEWNET))
        return unused; /* not NULL */
    say();
    /* Until the recorder has taken it. */
    while (access("taken", F_OK))
        usleep(1000);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    void *failed = NULL;
    say();
    printf("@begun %d\n@done\n", getpid());
    fflush(stdout);
    if (pthread_create(&thread, NULL, leave, &failed) || pthread_join(thread, &failed) || failed)
        return 1;
    say();
    return 0;
}
"#;

/// Threads are in namespaces of their own, which the recorder finds out: the program says which it should be.
#[test]
fn packets_say_in_which_namespaces_threads_are() {
    let Some(built) = library() else { return };
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT TESTED: namespaces of threads, as this is not root");
        return;
    }
    let place = Place::new();
    let source = program(&place.path(""), &built, "namespaces", NAMESPACES);
    let source = source.display().to_string();
    // In a namespace of numbers of its own, too.
    for (output, around) in [("here", &[][..]), ("there", &["unshare", "--pid", "--fork", "--mount-proc", "--uts"])] {
        let begin = ["record", "--output", output, "--context", "cpu_id,namespaces", "--"];
        let _ = std::fs::remove_file(place.path("taken"));
        let mut child = place.kymo(&[&begin[..], around, &[&source]].concat()).spawn().expect("it starts");
        recorded::until(|| place.json(&["sessions", "--json"])[0]["summary"]["events"] == 20);
        std::fs::write(place.path("taken"), []).expect("there is room");
        assert!(child.wait().expect("it ends").success());
        let values = place.values(&place.path(output), "c:where");
        let different: std::collections::BTreeSet<u64> = values.iter().copied().collect();
        assert_eq!((values.len(), different.len()), (30, 2), "{values:?}");
        let right = ["print", "--event", "c:where", "--filter", "packet.net_ns == value && packet.uts_ns != 0", output];
        let text = place.says(&right, 0);
        assert_eq!(text.lines().count(), 30, "{}", place.says(&["print", output], 0));
        let uts = std::fs::metadata("/proc/self/ns/uts").map(|found| std::os::unix::fs::MetadataExt::ino(&found));
        let own = format!(" uts_ns = {} ", uts.expect("it is there"));
        assert_eq!(text.contains(&own), around.is_empty(), "{text}");
        place.says(&["check", output], 0);
    }
    // One alone, and none.
    place.says(&["record", "--output", "one", "--context", "net_ns", "--", &source], 0);
    let text = place.says(&["print", "--event", "c:where", "one"], 0);
    assert!(text.contains(" net_ns = ") && !text.contains("uts_ns") && !text.contains("cpu_id"), "{text}");
    place.says(&["record", "--output", "none", "--", &source], 0);
    let text = place.says(&["print", "--event", "c:where", "none"], 0);
    assert!(!text.contains("_ns = ") && text.contains("cpu_id"), "{text}");
}

const REQUESTS: &str = r#"
#include <kymo/kymo.h>

static uint32_t request;

static uint32_t current_request(void)
{
    return request;
}

static const char *current_tenant(void)
{
    return request % 2 ? "odd" : "even";
}

KYMO_EVENT(c, before, KYMO_U64(value));
KYMO_CONTEXT(request, u32, current_request);
KYMO_CONTEXT_TEXT(tenant, current_tenant);
KYMO_EVENT(c, work, KYMO_U64(value));

int main(void)
{
    for (request = 0; request < 20; ++request)
        kymo_c_work(100 + request);
    return 0;
}
"#;

/// Nobody knows what a program defines when it begins, and it has ended before a recorder has seen it.
#[test]
fn what_a_program_says_that_its_events_carry_is_there_from_the_first_one_on() {
    let Some(built) = library() else { return };
    let place = Place::new();
    let source = program(&place.path(""), &built, "requests", REQUESTS).display().to_string();
    let printed = |output: &str, options: &[&str]| {
        place.says(&[&["record", "--output", output][..], options, &["--", &source]].concat(), 0);
        place.says(&["check", output], 0);
        place.says(&["print", "--event", "c:work", output], 0)
    };
    let text = printed("both", &["--context", "app.request,app.tenant"]);
    let is_right = |(number, line): (usize, &str)| {
        let tenant = ["even", "odd"][number % 2];
        line.contains(&format!("request = {number}, ")) && line.contains(&format!("tenant = \"{tenant}\" }}"))
    };
    assert!(text.lines().count() == 20 && text.lines().enumerate().all(is_right), "{text}");
    for (filter, numbers) in [
        ("$app.request == 7", vec![7]),
        ("request < 3", vec![0, 1, 2]),
        ("$app.tenant == \"odd\" && value < 104", vec![1, 3]),
        ("cpu_id < 60000 && value == 100", vec![0]),
        ("procname == \"requests\" && vtid > 0 && value == 119", vec![19]),
    ] {
        let (output, expected) = (numbers.len().to_string() + &filter.len().to_string(), numbers);
        let text = printed(&output, &["--context", "none", "--filter", filter]);
        let found: Vec<u32> =
            text.lines().filter_map(|line| line.split_once("value = ")?.1.get(..3)?.parse().ok()).collect();
        assert_eq!(found, expected.iter().map(|number| 100 + number).collect::<Vec<_>>(), "{filter}: {text}");
    }
    // What there is not stays nothing.
    let told = place.says(&["record", "--output", "none", "--context", "app.other", "--", &source], 0);
    assert!(told.contains("has a context `other`"), "{told}");
    place.says(&["check", "none"], 0);
}

const SAMPLES: &str = r#"
#include <kymo/kymo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

KYMO_EVENT(c, sample, KYMO_U64(value), KYMO_I32(less), KYMO_TEXT(name), KYMO_F64(real), KYMO_ENUM(u8, state, idle=0, busy, broken),
           KYMO_BOOL(is_odd), KYMO_HEX64(bits), KYMO_ARRAY(u16, 2, pair));

int main(void)
{
    char line[100], name[20];
    printf("@begun %d\n", getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        uint64_t count = strtoull(line + strcspn(line, " "), NULL, 10);
        for (uint64_t value = 0; value < count; ++value) {
            const uint16_t pair[2] = {(uint16_t)value, 7};
            snprintf(name, sizeof name, "item %d", (int)(value % 11));
            kymo_c_sample(value, 20 - (int)value, name, (double)value / 4, (uint8_t)(value % 3), value % 2 == 1, value << 4, pair);
        }
        puts("@done");
        fflush(stdout);
    }
    return 0;
}
"#;

/// As machine code, as bytecode, and by the reader, a filter keeps the same.
#[test]
fn filters_keep_the_same_wherever_they_run() {
    let Some(built) = library() else { return };
    let place = Place::new();
    let samples = program(&place.path(""), &built, "samples", SAMPLES);
    let mut started = Program::of(place.kymo(&["record", "--output", "all", "--"]).arg(&samples));
    started.tell("count 200");
    started.end();
    assert_eq!(place.values(&place.path("all"), "c:sample").len(), 200);
    let filters = [
        ("value % 3 == 1", 67),
        ("less < -50 && value > 100", 99),
        ("name == \"item 7\"", 18),
        ("name == \"item 1*\" || !is_odd", 119),
        ("real > 12.25 && real <= 20", 31),
        ("state == 1 && (bits & 0xf0) == 0x50", 4),
        ("state == \"busy\"", 67),
    ];
    for (native, expected) in [("on", "native"), ("off", "interpreter")] {
        let mut started = Program::of(place.command(&samples).env("KYMO_NATIVE", native));
        let pid = started.pid.to_string();
        for (number, (filter, count)) in filters.iter().enumerate() {
            let output = format!("{native}-{number}");
            let begin =
                ["record", "--detach", "--name", "s", "--process", &pid, "--output", &output, "--filter", filter];
            place.says(&begin, 0);
            started.tell("count 200");
            let status = place.json(&["status", "--json", &pid]);
            let events = status["programs"][0]["events"].as_array().expect("they are listed").clone();
            let sample = events.iter().find(|event| event["name"] == "c:sample").expect("it is there");
            assert_eq!(sample["runs"], expected, "{filter}: {sample}");
            place.says(&["stop", "s"], 0);
            let kept = place.values(&place.path(&output), "c:sample");
            let text = place.says(&["print", "--event", "c:sample", "--filter", filter, "all"], 0);
            assert_eq!((kept.len(), text.lines().count()), (*count, *count), "{native}: {filter}");
            let read = place.says(&["print", "--event", "c:sample", "--filter", filter, &output], 0);
            assert_eq!(read.lines().count(), *count, "{native}: {filter}");
        }
        started.end();
    }
}

const VANISH: &str = r#"
#define _GNU_SOURCE
#include <kymo/kymo.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

KYMO_EVENT(c, vanished, KYMO_U64(value));

static uint64_t value;

/* As threads of raw clone(): what C libraries do when a thread ends is not done. */
static void *vanish(void *unused)
{
    (void)unused;
    kymo_c_vanished(value++);
    kymo_c_vanished(value++);
    syscall(SYS_exit, 0);
    return NULL;
}

int main(void)
{
    char line[100];
    printf("@begun %d\n", getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        for (long count = atol(line + strcspn(line, " ")); count > 0; --count) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, vanish, NULL) || pthread_join(thread, NULL))
                return 1;
        }
        puts("@done");
        fflush(stdout);
    }
    return 0;
}
"#;

/// Lanes of threads that nobody has told of the end are others' when the threads are gone.
#[test]
fn lanes_of_threads_that_end_without_a_word_are_used_again() {
    let Some(built) = library() else { return };
    let place = Place::new();
    let vanish = program(&place.path(""), &built, "vanish", VANISH);
    let mut started = Program::of(place.kymo(&["record", "--output", "trace", "--name", "v", "--"]).arg(&vanish));
    let lanes = || {
        let status = place.json(&["status", "--json"]);
        status["programs"][0]["lanes"].as_u64().expect("it is a number")
    };
    for _ in 0..3 {
        started.tell("vanish 100");
        recorded::until(|| lanes() == 0);
    }
    started.end();
    assert_eq!(place.values(&place.path("trace"), "c:vanished"), (0..600).collect::<Vec<_>>());
    let files = std::fs::read_dir(place.path("trace")).expect("it is there").flatten();
    let files = files.filter(|file| file.file_name().to_string_lossy().starts_with("lane_")).count();
    assert!(files <= 100, "{files} files for 100 threads at a time at most");
    place.says(&["check", "trace"], 0);
}
