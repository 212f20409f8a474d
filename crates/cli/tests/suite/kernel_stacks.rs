//! Call stacks of the kernel and of programs: those of a program that knows its own, and of each switch.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::c_programs::compile;
use crate::kernel::{can_record, events, name};
use crate::recorded::Place;
use crate::resumed::kill_recorder;

/// Uses half a second of processor time in `inner`, which `outer` calls, or a hundredth for each of so many rests. Tells the addresses of
/// both and of `main`, and that time in milliseconds.
const KNOWN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sum;
__attribute__((noinline)) void inner(int steps) { for (int n = 0; n < steps; n++) sum += n; }
__attribute__((noinline)) void outer(int steps) { inner(steps); sum++; }
static double used(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}
int main(int count, char **words) {
    int rests = count > 1 ? atoi(words[1]) : 50;
    printf("%lu %lu %lu ", (unsigned long)inner, (unsigned long)outer, (unsigned long)main);
    for (int n = 1; n <= rests; n++) {
        while (used() < n * 0.01) outer(100000);
        usleep(1000);
    }
    printf("%d\n", (int)(used() * 1000));
    return 0;
}
"#;
const HZ: f64 = 499.0;
/// Bytes of one of the functions, at most.
const FUNCTION: u64 = 200;

fn number(event: &Value, field: &str) -> u64 {
    event["payload"][field].as_u64().unwrap_or_else(|| panic!("no {field}: {event}"))
}

/// A thread that ends has no number any more.
fn thread(event: &Value) -> Option<u64> {
    event["payload"]["tid"].as_u64()
}

fn addresses(event: &Value, field: &str) -> Vec<u64> {
    let all = event["payload"][field].as_array().unwrap_or_else(|| panic!("no {field}: {event}"));
    all.iter().map(|address| address.as_u64().expect("it is an address")).collect()
}

fn label(event: &Value) -> &str {
    event["payload"]["event"]["labels"][0].as_str().expect("it has a name")
}

/// Samples tell where a program is, as often as it was asked for, and the stacks of switches where it waits.
#[test]
fn stacks_are_those_of_the_program() {
    let place = Place::new();
    if !can_record(&place) || Command::new("cc").arg("--version").output().is_err() {
        return;
    }
    let words = ["-O0", "-g", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-Wl,--build-id=0x123456789a"];
    let program = compile(&place.path("."), "known", KNOWN, &words);
    let words = ["record", "--kernel=sched", "--stacks=499Hz,sched_switch", "--output", "trace", "--json", "--"];
    let output = place.kymo(&words).arg(&program).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let (told, summary) = std::str::from_utf8(&output.stdout).expect("it is text").split_once('\n').expect("two lines");
    let told: Vec<u64> = told.split(' ').map(|word| word.parse().expect("a number")).collect();
    let summary: Value = serde_json::from_str(summary).expect("it is JSON");
    if let Some(why) = summary["kernel"]["stacks_absent"].as_str() {
        return eprintln!("NO PERF EVENTS HERE: not run ({why})");
    }
    assert_eq!((&summary["problems"], &summary["kernel"]["stacks_lost"]), (&serde_json::json!([]), &0.into()));
    let events = events(&place, "trace");
    let of = |wanted: &'static str| events.iter().filter(move |event| name(event) == wanted);
    assert_eq!(summary["kernel"]["stacks"].as_u64(), Some(of("kymo_callstack").count() as u64));
    let stacks: HashMap<u64, &Value> = of("kymo_stack").map(|event| (number(event, "stack"), event)).collect();
    let exec = of("sched_process_exec")
        .find(|event| event["payload"]["filename"].as_str().is_some_and(|it| it.ends_with("/known")));
    let tid = number(exec.expect("it was started"), "tid");

    let its: Vec<&Value> = of("kymo_callstack").filter(|event| thread(event) == Some(tid)).collect();
    let frames = |event: &Value, field| addresses(stacks[&number(event, "stack")], field);
    let samples: Vec<Vec<u64>> =
        its.iter().filter(|event| label(event) == "sample").map(|event| frames(event, "user")).collect();
    let is_in = |frames: &[u64], at: usize, function: usize| {
        frames.get(at).is_some_and(|frame| (told[function]..told[function] + FUNCTION).contains(frame))
    };
    let known = samples.iter().filter(|frames| (0..3).all(|at| is_in(frames, at, at))).count();
    // The others are where it asks for its time, and where it begins.
    assert!(
        known * 10 > samples.len() * 8,
        "{known} of {}: {told:x?} {:x?}",
        samples.len(),
        &samples[samples.len() / 2..]
    );
    let wanted = told[3] as f64 / 1000.0 * HZ;
    assert!((wanted * 0.6..wanted * 1.4).contains(&(samples.len() as f64)), "{} for {wanted}", samples.len());

    let functions: BTreeMap<u64, &Value> =
        of("kymo_kernel_function").map(|event| (number(event, "start"), event)).collect();
    let function = |address: &u64| {
        let (_, function) = functions.range(..=address).next_back()?;
        (*address < number(function, "end")).then(|| function["payload"]["name"].as_str().expect("text"))
    };
    let waits: Vec<Vec<&str>> = its
        .iter()
        .filter(|event| label(event) == "sched_switch")
        .map(|event| frames(event, "kernel").iter().filter_map(function).collect())
        .collect();
    let rests = waits.iter().filter(|names| names.iter().any(|name| name.contains("nanosleep"))).count();
    let is_hidden = functions.is_empty();
    assert!(is_hidden || rests >= 50, "it rests 50 times: {rests} of {}", waits.len());
    tied_to_switches(&its, of("sched_switch").filter(|event| number(event, "prev_tid") == tid));

    mapped_files(&events, told[0]);
    assert!(place.says(&["check", "trace"], 0).contains("no problems"));
}

/// Files with code, by their build ids: that of the program, with an address in it, and that of a program that ran before.
fn mapped_files(events: &[Value], address: u64) {
    let of = |wanted: &'static str| events.iter().filter(move |event| name(event) == wanted);
    let map =
        of("kymo_map").find(|event| event["payload"]["filename"].as_str().is_some_and(|it| it.ends_with("/known")));
    let map = map.expect("it was mapped");
    assert_eq!(map["payload"]["build_id"], "123456789a", "{map}");
    assert!((number(map, "start")..number(map, "end")).contains(&address), "{map}");
    let own = std::env::current_exe().expect("it runs").display().to_string();
    let id = of("kymo_statedump_build_id").find(|event| event["payload"]["filename"] == own.as_str());
    let id = id.unwrap_or_else(|| panic!("no build id of {own}"))["payload"]["build_id"].clone();
    let notes = Command::new("readelf").args(["-n", &own]).output().expect("it is there with cc").stdout;
    let notes = String::from_utf8_lossy(&notes).into_owned();
    assert!(notes.contains(&format!("Build ID: {}", id.as_str().expect("it is text"))), "{id}: {notes}");
}

/// The stack of each switch is at its time, on its CPU.
fn tied_to_switches<'e>(its: &[&Value], switches: impl Iterator<Item = &'e Value>) {
    let time = |event: &Value| event["time"].as_i64().expect("it has a time");
    let cpu = |event: &Value| event["packet_context"]["cpu_id"].as_u64().expect("it has a CPU");
    let stacks: Vec<&&Value> = its.iter().filter(|event| label(event) == "sched_switch").collect();
    let (mut tied, mut near) = (0, 0);
    // The last one is that of a thread that ends.
    for switch in switches.filter(|switch| switch["payload"]["prev_state"]["value"] != 64) {
        let its = stacks.iter().filter(|stack| cpu(stack) == cpu(switch));
        let apart = its.map(|stack| time(stack).abs_diff(time(switch))).min();
        // The machine may do something else between both.
        assert!(apart.is_some_and(|apart| apart < 5_000_000), "{apart:?} ns: {switch}");
        (tied, near) = (tied + 1, near + usize::from(apart.is_some_and(|apart| apart < 20_000)));
    }
    assert!(tied >= 50 && near * 10 > tied * 8, "{near} of {tied}");
}

/// Of some processes, exactly the events that the trace has of them have stacks: where its threads begin to wait, where it wakes
/// others, and where others wake it.
#[test]
fn stacks_of_some_processes() {
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    let [to, from] = ["to", "from"].map(|name| place.path(name).display().to_string());
    assert!(Command::new("mkfifo").args([&to, &from]).status().expect("it starts").success());
    // Both run all the time, and the second answers.
    let mut busy = place.command("sh").args(["-c", "while :; do sleep 0.001; done"]).spawn().expect("it starts");
    let echo = format!("while read line; do echo $line; done < {to} > {from}");
    let mut other = place.command("sh").args(["-c", &echo]).spawn().expect("it starts");
    let script = format!(
        "exec 3>{to} 4<{from}; n=0; while [ $n -lt 300 ]; do echo $n >&3; read answer <&4; n=$((n+1)); done; \
         seq 20000 | cat | cat; while [ $n -lt 200000 ]; do n=$((n+1)); done"
    );
    let words = ["record", "--kernel=sched", "--stacks=999Hz,sched_switch,sched_waking,sched_wakeup"];
    let words = [&words[..], &["--kernel-of", "command", "--output", "trace", "--json", "--", "sh", "-c"]].concat();
    let output = place.kymo(&words).arg(&script).stderr(Stdio::inherit()).output().expect("it starts");
    for child in [&mut busy, &mut other] {
        let _ = child.kill();
        child.wait().expect("it ran");
    }
    let summary = String::from_utf8_lossy(&output.stdout).into_owned();
    let summary: Value = serde_json::from_str(summary.lines().last().unwrap_or_default()).expect("it is JSON");
    if let Some(why) = summary["kernel"]["stacks_absent"].as_str() {
        return eprintln!("NO PERF EVENTS OR NO BPF HERE: not run ({why})");
    }
    assert_eq!((&summary["problems"], &summary["kernel"]["stacks_lost"]), (&serde_json::json!([]), &0.into()));
    let events = events(&place, "trace");
    let of = |wanted: &'static str| events.iter().filter(move |event| name(event) == wanted);
    let number = |event: &Value, field: &str| event["payload"][field].as_u64();
    let forks: Vec<&Value> = of("sched_process_fork").collect();
    let command = number(forks[0], "parent_tid").expect("the command starts others");
    let mut threads: HashSet<u64> = forks.iter().filter_map(|fork| number(fork, "child_tid")).collect();
    threads.insert(command);
    let switches =
        of("sched_switch").filter(|event| number(event, "prev_tid").is_some_and(|thread| threads.contains(&thread)));
    let stacks = |wanted: &'static str| of("kymo_callstack").filter(move |event| label(event) == wanted);
    // One that ends has no number any more.
    let is_its = |event: &&Value| thread(event).is_none_or(|thread| threads.contains(&thread));
    assert_eq!(stacks("sched_switch").count(), switches.count());
    assert!(stacks("sched_switch").all(|event| is_its(&event)));
    let [waking, woken] =
        ["sched_waking", "sched_wakeup"].map(|of_event| (stacks(of_event).count(), of(of_event).count()));
    // The kernel's own filter of events was seen to let one in thousands through, or not, that is about no thread of these.
    for (stacks, events) in [waking, woken] {
        assert!(stacks.abs_diff(events) <= 2 + events / 1000 && events > 100, "{stacks} of {events}");
    }
    // The one that answers is none of its threads.
    let answers = stacks("sched_waking").filter(|event| thread(event) == Some(u64::from(other.id()))).count();
    // It often answers before the command waits.
    assert!(answers >= 5, "{answers} of 300");
    assert!(stacks("sample").count() > 0, "{summary}");
    let strange: Vec<&Value> = stacks("sample").filter(|event| !is_its(event)).collect();
    assert!(strange.is_empty(), "{threads:?} {strange:?}");
}

/// The stacks of a trace that its events name, and the maps of a process.
fn complete(events: &[Value], path: &str) -> usize {
    let of = |wanted| events.iter().filter(move |event| name(event) == wanted);
    let stacks: HashSet<u64> = of("kymo_stack").map(|event| number(event, "stack")).collect();
    assert!(of("kymo_callstack").all(|event| stacks.contains(&number(event, "stack"))), "{path}");
    of("kymo_callstack").count()
}

/// Every snapshot of a flight recorder has call stacks, each of them, and the maps of programs that have ended, also after another
/// recorder.
#[test]
fn snapshots_have_stacks() {
    let place = Place::alone();
    if !can_record(&place) || Command::new("cc").arg("--version").output().is_err() {
        return;
    }
    let words = ["-O0", "-g", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"];
    let program = compile(&place.path("."), "known", KNOWN, &words);
    let words = ["record", "--detach", "--kernel=sched", "--stacks=499Hz,sched_switch", "--mode", "overwrite"];
    place.says(&[&words[..], &["--name", "s", "--output", "s"]].concat(), 0);
    let mut before = 0;
    for snapshots in 0..3 {
        let output = Command::new(&program).output().expect("it starts");
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let inner: u64 = told.split(' ').next().and_then(|word| word.parse().ok()).expect("an address");
        let snapshot = place.json(&["snapshot", "s", "--json"]);
        if let Some(why) = snapshot["kernel"]["stacks_absent"].as_str() {
            place.says(&["stop", "s"], 0);
            return eprintln!("NO PERF EVENTS HERE: not run ({why})");
        }
        assert_eq!(snapshot["problems"], serde_json::json!([]), "{snapshot}");
        let path = snapshot["output"].as_str().expect("it is told");
        let events = events(&place, path);
        let count = complete(&events, path);
        assert_eq!(snapshot["kernel"]["stacks"].as_u64(), Some(count as u64), "{snapshot}");
        assert!(count > before + 100, "also those of the one before: {count}, {before}");
        before = count;
        let of = |wanted: &'static str| events.iter().filter(move |event| name(event) == wanted);
        let map = of("kymo_map").find(|event| (number(event, "start")..number(event, "end")).contains(&inner));
        let pid = number(map.expect("it was mapped"), "pid");
        let its = of("kymo_stack").filter(|event| event["payload"]["pid"].as_u64() == Some(pid));
        let known = its
            .filter(|event| addresses(event, "user").first().is_some_and(|at| (inner..inner + FUNCTION).contains(at)));
        assert!(known.count() > 0, "{path}");
        assert!(place.says(&["check", path], 0).contains("no problems"));
        if snapshots == 1 {
            // The next one goes on with what this one kept.
            assert!(kill_recorder(&place));
            place.says(&["sessions"], 0);
        }
    }
    place.says(&["stop", "s"], 0);
}

/// Maps that a flight recorder let go, or that were there when it began, are in its snapshots if a stack needs them, also of programs
/// that have ended.
#[test]
fn snapshots_have_maps_of_long_ago() {
    let place = Place::alone();
    if !can_record(&place) || Command::new("cc").arg("--version").output().is_err() {
        return;
    }
    let words = ["-O0", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-Wl,--build-id=0x123456789a"];
    let program = compile(&place.path("."), "known", KNOWN, &words);
    let run = |rests: &str| Command::new(&program).arg(rests).stdout(Stdio::piped()).spawn().expect("it starts");
    let old = run("200");
    let words = ["record", "--detach", "--kernel=sched_switch", "--stacks=4000Hz", "--mode", "overwrite"];
    place.says(&[&words[..], &["--kernel-buffer", "64KiB", "--name", "s", "--output", "s"]].concat(), 0);
    let new = run("200");
    let [old, new] = [old, new].map(|child| {
        let id = u64::from(child.id());
        let told = child.wait_with_output().expect("it runs").stdout;
        let told = String::from_utf8_lossy(&told).into_owned();
        (id, told.split(' ').next().and_then(|word| word.parse::<u64>().ok()).expect("an address"))
    });
    let snapshot = place.json(&["snapshot", "s", "--json"]);
    place.says(&["stop", "s"], 0);
    if let Some(why) = snapshot["kernel"]["stacks_absent"].as_str() {
        return eprintln!("NO PERF EVENTS HERE: not run ({why})");
    }
    assert_eq!(snapshot["problems"], serde_json::json!([]), "{snapshot}");
    let path = snapshot["output"].as_str().expect("it is told");
    let events = events(&place, path);
    // Two rings of 64 KiB for each CPU would have all of a stack for each of 8000 samples otherwise.
    assert!((1..4000).contains(&complete(&events, path)), "{snapshot}");
    let of = |wanted: &'static str| events.iter().filter(move |event| name(event) == wanted);
    let mut checked = 0;
    for (pid, inner) in [old, new] {
        let is_its = |event: &&Value| event["payload"]["pid"].as_u64() == Some(pid);
        if !of("kymo_stack").any(|event| is_its(&event)) {
            continue;
        }
        let mut maps = of("kymo_map").filter(is_its);
        let map = maps.find(|event| (number(event, "start")..number(event, "end")).contains(&inner));
        let map = map.unwrap_or_else(|| panic!("no map of {pid} at {inner:x}"));
        assert_eq!(map["payload"]["build_id"], "123456789a", "{map}");
        checked += 1;
    }
    assert!(checked > 0, "none of both has a stack");
    assert!(place.says(&["check", path], 0).contains("no problems"));
}

/// Each CPU has as many call stacks as switches, from its first switch to its last one. Before and behind are more: stacks are switched on
/// first and off last, and how long that takes depends on all else that the machine does.
fn each_switch_has_a_stack(switches: &BTreeMap<u64, Vec<i64>>, stacks: &BTreeMap<u64, Vec<i64>>) {
    assert!(switches.values().map(Vec::len).sum::<usize>() > 100, "{switches:?}");
    for (cpu, switches) in switches {
        let (first, last) = (switches[0], switches[switches.len() - 1]);
        let between = stacks[cpu].iter().filter(|time| (first..=last).contains(time)).count();
        // Those of the first and of the last switch may be just before and behind.
        assert!(
            (between..=between + 2).contains(&switches.len()),
            "CPU {cpu}: {between} stacks of {} switches",
            switches.len()
        );
    }
}

/// A recorder that goes on after another one has the stacks before, between and behind: as many as there are switches.
#[test]
fn the_next_recorder_has_stacks() {
    let place = Place::alone();
    if !can_record(&place) {
        return;
    }
    let words = ["record", "--detach", "--kernel=sched_switch,sched_process_fork", "--stacks=sched_switch"];
    place.says(&[&words[..], &["--name", "s", "--output", "trace"]].concat(), 0);
    let rest = || assert!(Command::new("sh").args(["-c", "for n in 1 2 3 4 5; do sleep 0.02; done"]).status().is_ok());
    rest();
    assert!(kill_recorder(&place));
    rest();
    place.says(&["sessions"], 0);
    rest();
    let told = place.json(&["stop", "s", "--json"]);
    let summary = told.get(0).unwrap_or(&told);
    if let Some(why) = summary["kernel"]["stacks_absent"].as_str() {
        return eprintln!("NO PERF EVENTS HERE: not run ({why})");
    }
    assert_eq!((&summary["problems"], &summary["kernel"]["stacks_lost"]), (&serde_json::json!([]), &0.into()));
    let (mut numbers, mut stacks, mut count) = (HashSet::new(), 0, 0);
    let mut times = HashMap::<&str, BTreeMap<u64, Vec<i64>>>::new();
    for path in ["trace/kernel", "trace/kernel-2"] {
        let events = events(&place, path);
        stacks += complete(&events, path);
        count += events.len() as u64;
        for of_name in ["kymo_callstack", "sched_switch"] {
            for event in events.iter().filter(|event| name(event) == of_name) {
                let cpu = event["packet_context"]["cpu_id"].as_u64().expect("it has a CPU");
                let time = event["time"].as_i64().expect("it has a time");
                times.entry(of_name).or_default().entry(cpu).or_default().push(time);
            }
        }
        let new = events.iter().filter(|event| name(event) == "kymo_stack");
        assert!(new.into_iter().all(|event| numbers.insert(number(event, "stack"))), "no number is that of two stacks");
    }
    each_switch_has_a_stack(&times["sched_switch"], &times["kymo_callstack"]);
    let told = (summary["kernel"]["stacks"].as_u64(), summary["kernel"]["events"].as_u64());
    assert_eq!(told, (Some(stacks as u64), Some(count)), "{summary}");
    assert!(place.says(&["check", "trace"], 0).contains("no problems"));
}

/// Where there can be none, it is said why; parts have the stacks that they need, and other readers read them.
#[test]
fn stacks_of_parts() {
    // Each part is read by both readers, and what tests beside it do would make many more.
    let place = Place::alone();
    if !can_record(&place) {
        return;
    }
    let words = ["record", "--kernel=syscalls", "--stacks=sched_switch", "--rotate-size", "64KiB", "--output", "trace"];
    let script = "for n in $(seq 400); do true | cat; done";
    let told = place.says(&[&words[..], &["--", "sh", "-c", script]].concat(), 0);
    if told.contains("stacks    none") {
        return eprintln!("NO PERF EVENTS HERE: not run ({told})");
    }
    let entries = std::fs::read_dir(place.path("trace/kernel")).expect("it is there").flatten();
    let parts: Vec<String> = entries.map(|entry| entry.path().display().to_string()).collect();
    assert!(parts.len() > 1, "{parts:?}");
    let (mut all, mut mapped, mut of_programs) = (0, 0, 0);
    for part in &parts {
        let events = events(&place, part);
        let of = |wanted| events.iter().filter(move |event| name(event) == wanted);
        let stacks: Vec<u64> = of("kymo_stack").map(|event| number(event, "stack")).collect();
        assert!(of("kymo_callstack").all(|event| stacks.contains(&number(event, "stack"))), "{part}");
        all += stacks.len();
        let mut maps: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
        for map in of("kymo_map").chain(of("lttng_statedump_vm_map")) {
            maps.entry(number(map, "pid")).or_default().push((number(map, "start"), number(map, "end")));
        }
        for stack in of("kymo_stack") {
            let Some(at) = addresses(stack, "user").first().copied() else { continue };
            let its = maps.get(&number(stack, "pid")).into_iter().flatten();
            of_programs += 1;
            mapped += usize::from(its.into_iter().any(|(start, end)| (*start..*end).contains(&at)));
        }
        crate::kernel::read_by_babeltrace(&place, part);
    }
    assert!(all > 0);
    // A process may have a stack, of another CPU, just before the record of its beginning and those of its parent.
    assert!(
        of_programs > 0 && mapped * 100 >= of_programs * 95,
        "{mapped} of {of_programs} are in a file that the part knows"
    );
    for (word, why) in
        [("0Hz", "`0Hz` is no rate: 1Hz to 50000Hz are"), ("nothing:*", "the kernel has no event `nothing:*`")]
    {
        let told =
            place.says(&["record", "--kernel=sched", &format!("--stacks={word}"), "--output", "no", "--", "true"], 2);
        assert!(told.contains(why), "{told}");
    }
}
