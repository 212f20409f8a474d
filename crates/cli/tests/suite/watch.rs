//! `kymo watch`: counts of programs with known behavior, and those of the records that the kernel's own tracing makes of
//! the same instants.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kernel::{NOBODY, can_record, events, name};
use crate::recorded::Place;
use crate::terminal::terminal;

/// Whether the kernel can count here; otherwise it is said why not.
pub fn can_watch(place: &Place) -> bool {
    let output = place.kymo(&["watch", "sched_switch", "--", "true"]).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        assert!(told.contains("may not read the kernel's events") || told.contains("btf"), "{told}");
        eprintln!("NO EBPF HERE: not run ({})", told.trim_end());
    }
    output.status.success()
}

/// JSON objects, one a line, among other lines.
pub fn objects(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn watched(place: &Place, words: &[&str], command: &[&str]) -> Value {
    let words = [&["watch", "--json"], words, &["--"], command].concat();
    let mut all = objects(&place.kymo(&words).output().expect("it starts"));
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!((&all[0]["is_final"], &all[0]["lost"]), (&true.into(), &json!({ "map_full": 0, "interrupted": 0 })));
    all.remove(0)
}

/// Events by the value of the only key.
fn by_key(told: &Value, key: &str) -> BTreeMap<String, u64> {
    let rows = told["rows"].as_array().expect("there are rows");
    let row = |row: &Value| {
        let key = &row["keys"][key];
        (key.as_str().map_or_else(|| key.to_string(), str::to_owned), row["events"].as_u64().expect("it is a number"))
    };
    rows.iter().map(row).collect()
}

const COPY: [&str; 6] = ["dd", "if=/dev/zero", "of=/dev/null", "bs=7", "count=1000", "status=none"];

#[test]
fn calls_of_a_program_are_counted_to_the_last() {
    let place = Place::new();
    if !can_watch(&place) {
        return;
    }
    let question = "sys_exit when comm == \"dd\" && name in (\"write\", \"dup2\")";
    let told = watched(&place, &[question, "--by", "name", "--sum", "ret"], &COPY);
    let rows = told["rows"].as_array().expect("there are rows");
    let write = rows.iter().find(|row| row["keys"]["name"] == "write").unwrap_or_else(|| panic!("{told}"));
    assert_eq!((&write["events"], &write["sum"]), (&1000.into(), &7000.into()), "{told}");
    assert!(rows.iter().all(|row| row["keys"]["name"] == "write" || row["keys"]["name"] == "dup2"), "{told}");

    // Nothing is recorded, and the status is that of the command.
    place.says(&["watch", "sys_enter", "--", "sh", "-c", "exit 7"], 7);
    assert!(std::fs::read_dir(place.path(".")).expect("it is there").all(|entry| {
        let name = entry.expect("it is there").file_name();
        !name.to_string_lossy().contains("trace")
    }));
}

/// Several programs that watch at a time; the kernel's own buffers record the same instants.
#[test]
fn counts_are_those_of_the_records() {
    let place = Place::new();
    if !can_watch(&place) || !can_record(&place) {
        return;
    }
    // A name that no other thread has.
    let sleep = place.path("kymo-watch-zzz");
    std::fs::copy("/bin/sleep", &sleep).expect("there is room");
    std::fs::set_permissions(&sleep, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let script = format!("for i in 1 2 3 4 5 6 7 8 9 10; do {} 0.003; done", sleep.display());
    let own = "\"kymo-watch-zzz\"";
    let questions = [
        (format!("sched_switch when prev_comm == {own}"), "prev_state"),
        (format!("sched_switch when next_comm == {own}"), "next_prio"),
        (format!("sched_switch when prev->comm == {own}"), "prev.pid"),
        (format!("sched_waking when comm == {own}"), "target_cpu"),
        (format!("sched_waking when comm == {own}"), "prio"),
        (format!("sched_process_exit when comm == {own}"), "tid"),
        ("sched_process_exec when filename == \"*kymo-watch-zzz\"".to_owned(), "filename"),
        (format!("sys_exit when $ctx.comm == {own} && name == \"clock_nanosleep\""), "ret"),
    ];
    let kymo = env!("CARGO_BIN_EXE_kymo");
    let words = ["record", "--kernel=sched,syscalls", "--json", "--output", "trace"];
    let mut command = place.kymo(&words);
    for (question, key) in &questions {
        command.args(["--", kymo, "watch", "--json", question, "--by", key]);
    }
    let output = command.args(["--", "sh", "-c", &script]).output().expect("it starts");
    let mut told = objects(&output);
    let summary = told.pop().expect("the recording tells of itself, last");
    assert_eq!((&summary["kernel"]["lost"], &summary["kernel"]["unreadable"]), (&0.into(), &0.into()), "{summary}");
    // The innermost ends first.
    told.reverse();
    assert_eq!(told.len(), questions.len(), "{output:?}");
    let all = events(&place, "trace");
    let comm = "kymo-watch-zzz";
    let recorded = |event: &str, of: (&str, &str), key: &str| {
        let mut counts = BTreeMap::new();
        for event in all.iter().filter(|known| name(known) == event && known["payload"][of.0] == of.1) {
            let key = &event["payload"][key];
            *counts.entry(key.as_str().map_or_else(|| key.to_string(), str::to_owned)).or_insert(0_u64) += 1;
        }
        counts
    };
    let switches_by = |key| recorded("sched_switch", ("prev_comm", comm), key);
    let wanted = [
        switches_by("prev_state"),
        recorded("sched_switch", ("next_comm", comm), "next_prio"),
        switches_by("prev_tid"),
        recorded("sched_waking", ("comm", comm), "target_cpu"),
        recorded("sched_waking", ("comm", comm), "prio"),
        recorded("sched_process_exit", ("comm", comm), "tid"),
    ];
    for (number, wanted) in wanted.iter().enumerate() {
        let (question, key) = &questions[number];
        let counted = by_key(&told[number], key);
        assert!(is_near(question, &counted, wanted), "{question} --by {key}: {counted:?} and {wanted:?}");
    }
    assert!(wanted[0].len() >= 2 && wanted[2].len() == 10 && wanted[5].len() == 10, "{wanted:?}");
    let executed = by_key(&told[6], "filename");
    assert_eq!(executed, BTreeMap::from([(cut(&sleep.display().to_string()), 10)]));
    assert_eq!(by_key(&told[7], "ret"), BTreeMap::from([("0".to_owned(), 10)]));
}

/// Whether the counts of a question are those of the records.
fn is_near(question: &str, counted: &BTreeMap<String, u64>, recorded: &BTreeMap<String, u64>) -> bool {
    // On a busy machine, of some runs one or two events are in one count and not in the other; the reason is not known yet.
    // Kernels of some virtual machines leave out records of switches from idle CPUs.
    let most = if question.starts_with("sched_process_exit") { 0 } else { 2 };
    let left_out = |recorded: u64| if question.contains("next_comm") { recorded } else { 0 };
    let of = |counts: &BTreeMap<String, u64>, key: &String| counts.get(key).copied().unwrap_or(0);
    counted.keys().chain(recorded.keys()).all(|key| {
        let known = of(recorded, key);
        (known.saturating_sub(most)..=known + left_out(known) + most).contains(&of(counted, key))
    })
}

/// A text has 63 bytes at most.
fn cut(text: &str) -> String {
    text.chars().take(63).collect()
}

#[test]
fn durations_of_calls_are_those_of_the_program() {
    let place = Place::new();
    if !can_watch(&place) {
        return;
    }
    let question = "syscalls over 10ms when name == \"clock_nanosleep\" && comm == \"sleep\"";
    let script = "for i in 1 2 3; do sleep 0.03; sleep 0.002; done";
    let told = watched(&place, &[question, "--by", "name", "--hist", "took"], &["sh", "-c", script]);
    // Where the machine is busy, short sleeps may be long.
    let events = told["events"].as_u64().unwrap_or_else(|| panic!("{told}"));
    assert!((3..=6).contains(&events), "{told}");
    let histogram = &told["rows"][0]["histogram"];
    let of = |part: &str| histogram[part].as_u64().unwrap_or_else(|| panic!("{told}"));
    let buckets = histogram["buckets"].as_array().expect("there are some");
    assert!(buckets.iter().all(|bar| bar[1].as_u64() > Some(10_000_000)), "{told}");
    assert!(of("p999") >= 28_000_000 && of("sum") >= 90_000_000, "a middle of a bucket is at most 1/16 away: {told}");
    assert!(of("most") >= of("p99") && of("p99") >= of("p50"), "{told}");
    let counted: u64 = buckets.iter().filter_map(|bar| bar[2].as_u64()).sum();
    assert_eq!((counted, &told["histogram"]), (events, histogram), "{told}");
    // Calls that began before are not known: the wait of the shell for this command, of kymo for the shell.
    assert!(told["unbegun"].is_u64() && told["cost"]["own_ns"].as_u64() > Some(0), "{told}");
}

#[test]
fn times_are_told_one_by_one() {
    let place = Place::new();
    if !can_watch(&place) {
        return;
    }
    let words = ["watch", "sys_enter when comm == \"dd\"", "--every", "100ms", "--duration", "450ms", "--json"];
    let script = "while :; do dd if=/dev/zero of=/dev/null bs=1 count=100 status=none; sleep 0.01; done";
    let all =
        objects(&place.kymo(&words).args(["--", "timeout", "2", "sh", "-c", script]).output().expect("it starts"));
    let (last, others) = all.split_last().expect("there are some");
    assert!((2..=5).contains(&others.len()), "{} times", others.len());
    assert!(last["is_final"] == true && others.iter().all(|one| one["is_final"] == false));
    let count = |one: &Value| one["events"].as_u64().expect("it is a number");
    let sum: u64 = others.iter().map(count).sum();
    let whole = &others[..others.len() - 1];
    assert!(whole.iter().all(|one| count(one) > 0) && sum == count(last), "{sum} of {}", count(last));

    // As text, times come behind each other, and the last one is about all.
    let words = ["watch", "sys_enter", "--by", "name", "--every", "200ms", "--duration", "500ms", "--top", "3"];
    let said = place.says(&words, 0);
    assert!((2..=4).contains(&said.matches("events of raw_syscalls:sys_enter in ").count()), "{said}");
    assert!(said.contains("\nlosses   none\n") && said.contains("\ncost     about "), "{said}");
    assert!(said.contains("more rows (--top all)"), "{said}");
}

/// On a terminal, a table replaces the one before, and the last one stays whole.
#[test]
fn a_terminal_has_a_live_table() {
    let place = Place::new();
    if !can_watch(&place) {
        return;
    }
    let (from, to) = terminal(80);
    let words = ["watch", "syscalls", "--by", "name", "--hist", "took", "--every", "200ms", "--duration", "700ms"];
    let mut command = place.kymo(&words);
    command.envs([("TERM", "xterm"), ("NO_COLOR", "1"), ("LC_ALL", "C.UTF-8")]).env_remove("COLUMNS").stdout(to);
    let mut kymo = command.spawn().expect("it starts");
    drop(command);
    let mut seen = Vec::new();
    // It ends with an error: no process has the terminal open any more.
    let _ = std::fs::File::from(from).read_to_end(&mut seen);
    assert!(kymo.wait().expect("it ends").success());
    let seen = String::from_utf8(seen).expect("it is text").replace("\r\n", "\n");
    let mut tables = seen.split("\x1b[J");
    let first = tables.next().expect("there is one");
    let height = |table: &str| table.lines().filter(|line| !line.starts_with('\x1b')).count();
    assert!(first.ends_with(&format!("\x1b[{}A", height(first))) && height(first) < 30, "{seen}");
    let tables: Vec<&str> = tables.collect();
    assert!((2..=4).contains(&tables.len()), "{seen}");
    for table in tables.iter().chain([&first]) {
        assert!(
            table.contains("events of raw_syscalls:sys_exit in") && table.contains("Distribution of took"),
            "{table}"
        );
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    }
    let last = tables.last().expect("there is one");
    assert!(last.contains("\nlosses ") && last.contains("\ncost ") && last.contains('█'), "{last}");
}

/// The woken thread, and the one that wakes.
#[test]
fn columns_of_one_name_are_told_apart() {
    let place = Place::new();
    if !can_watch(&place) {
        return;
    }
    let told = watched(&place, &["sched_waking", "--by", "tid,$ctx.tid"], &["true"]);
    let keys = told["rows"][0]["keys"].as_object().expect("there is a row");
    assert_eq!(keys.keys().collect::<Vec<_>>(), ["tid", "$ctx.tid"], "{told}");
}

#[test]
fn a_full_map_is_told() {
    let place = Place::new();
    if !can_watch(&place) {
        return;
    }
    let said = place.says(&["watch", "sys_enter", "--by", "name,comm", "--rows", "1", "--", "ls", "/"], 0);
    assert!(said.contains("without a row, as the map is full (`--rows` makes a larger one)"), "{said}");
}

#[test]
fn wrong_questions_say_why() {
    let place = Place::new();
    if !can_watch(&place) {
        return;
    }
    for (words, wanted) in [
        (&["sched_swtch"][..], "the kernel has no event `sched_swtch`; did you mean `sched_switch`?"),
        (&["sched_switch when prev_stat == 1"], "help: did you mean `prev_state`"),
        (&["sched_switch when prev_comm =~ \"a.*b\""], "no regular expressions"),
        (&["sched_switch when prev_comm == 3"], "they cannot be compared"),
        (&["sched_switch", "--by", "next_com"], "help: there is `next_comm`"),
        (&["sched_switch", "--by", "prev->se"], "is a structure"),
        (&["sched_switch", "--sum", "prev_comm"], "is a text: numbers alone are added up"),
        (&["sched_switch", "--by", "next.pid[2]"], "is an element of something that is no array"),
        (&["sched_switch since sched_waking by next_comm=tid"], "they are never the same"),
        (&["sched_waking,sched_process_exec", "--by", "tid,filename"], "has no field `filename`"),
        (&["irq_handler_entry,sys_enter", "--by", "name"], "one column has no room for both"),
        (&["sched_switch", "--hist", "took"], "has no field `took`"),
        (&["sys_exit since sys_exit"], "all of these events begin"),
        (&["sys_exit over 5 since sys_enter"], "`5` has no unit"),
        (&["*:*"], "at a time"),
        (&["sched_switch when false && prev_prio == 1"], ""),
    ] {
        let said = place.says(&[&["watch"], words].concat(), 2);
        assert!(said.starts_with("error: ") && said.contains(wanted), "{words:?}: {said}");
    }
    let said = place.says(&["watch", "sched_switch", "--", "no-such-program"], 2);
    assert!(said.contains("no-such-program cannot be started"), "{said}");
}

/// A user without rights is told the missing rights; two capabilities are enough, and the command has none itself.
#[test]
fn rights_are_those_of_the_helper() {
    let place = Place::new();
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || Command::new("setpriv").arg("--version").output().is_err() || !can_watch(&place) {
        eprintln!("NOT TESTED: only root, with setpriv, can act for another user");
        return;
    }
    let kymo = place.path("command");
    std::fs::copy(env!("CARGO_BIN_EXE_kymo"), &kymo).expect("there is room");
    std::fs::set_permissions(place.path("."), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let run = |sets: &str, command: &[&str]| {
        let user = NOBODY.to_string();
        let mut all = place.command("setpriv");
        all.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
        all.args([format!("--inh-caps=-all{sets}"), format!("--ambient-caps=-all{sets}")]).arg(&kymo);
        all.args(["watch", "sched_switch", "--json", "--"]).args(command);
        all.output().expect("it starts")
    };
    let output = run("", &["true"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("may not read the kernel's events") && told.contains("`kymo doctor`"), "{told}");
    let output = run(",+perfmon,+bpf", &["grep", "Cap[IPEA]", "/proc/self/status"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(said.matches("\t0000000000000000\n").count(), 4, "{said}");
    let told = &objects(&output)[0];
    assert!(told["events"].as_u64() > Some(0), "{told}");
    // The kernel measures its programs for root alone.
    assert_eq!(told["cost"]["programs_ns"], Value::Null, "{told}");
}

/// When the command is killed, its helper ends, and the programs in the kernel with it.
#[test]
fn programs_go_with_the_command() {
    let place = Place::new();
    if !can_watch(&place) {
        return;
    }
    let words = ["watch", "sched_switch", "--every", "50ms", "--json"];
    let mut kymo = place.kymo(&words).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let mut output = std::io::BufReader::new(kymo.stdout.take().expect("it has one"));
    std::io::BufRead::read_line(&mut output, &mut line).expect("it counts");
    let helper = helper_of(kymo.id()).expect("it has a helper");
    kymo.kill().expect("it runs");
    kymo.wait().expect("it ends");
    is_gone(|| std::path::Path::new(&format!("/proc/{helper}/exe")).read_link().is_ok());

    // A helper that has refused a question ends, too.
    let mut kymo = place.kymo(&["watch", "no_such_event"]).stderr(Stdio::null()).spawn().expect("it starts");
    assert_eq!(kymo.wait().expect("it ends").code(), Some(2));
    is_gone(|| helper_of(kymo.id()).is_some());

    // And when the helper is killed, the command says so.
    let mut kymo = place.kymo(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut output = std::io::BufReader::new(kymo.stdout.take().expect("it has one"));
    std::io::BufRead::read_line(&mut output, &mut line).expect("it counts");
    let helper = helper_of(kymo.id()).and_then(|helper| rustix::process::Pid::from_raw(helper as i32));
    rustix::process::kill_process(helper.expect("it has a helper"), rustix::process::Signal::KILL)
        .expect("it is there");
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("it is text");
    let last: Value = serde_json::from_str(rest.lines().last().expect("there is one")).expect("it is an object");
    assert!(last["is_final"] == true && last["is_complete"] == false && last["events"].as_u64() > Some(0), "{last}");
    let output = kymo.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && told.contains("helper"), "{output:?}");
    assert!(told.contains("help: the counts are those of the first "), "{told}");
}

/// Waits, but not as long as a helper waits for another command.
fn is_gone(is_there: impl Fn() -> bool) {
    let begun = Instant::now();
    while is_there() {
        assert!(begun.elapsed() < Duration::from_secs(10), "the helper is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The process that a command has started with its rights.
pub fn helper_of(kymo: u32) -> Option<u32> {
    let mark = format!("kymo-kernel-{kymo}-");
    let processes = std::fs::read_dir("/proc").expect("it is there").flatten();
    processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok()).find(|process| {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&mark)
    })
}
