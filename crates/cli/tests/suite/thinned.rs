//! Traces of which rules have kept only some events: analyses, counts and checks say so, and those of other events do not.

use serde_json::Value;

use crate::kernel_rules::Sleeper;
use crate::recorded::Place;

/// The rules that an answer names.
fn rules(answer: &Value) -> Vec<&str> {
    let rules = answer["rules"].as_array().map_or(&[][..], Vec::as_slice);
    rules.iter().map(|rule| rule["rule"].as_str().unwrap_or_default()).collect()
}

/// The rules that an analysis names, as JSON and in words.
fn told(place: &Place, words: &[&str]) -> Vec<String> {
    let answer = place.json(&[words, &["--json"]].concat());
    let told: Vec<String> = rules(&answer).into_iter().map(str::to_owned).collect();
    let output = place.kymo(words).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.matches("warning: rule `").count(), told.len(), "{words:?}: {said}");
    for rule in &told {
        assert!(said.contains(&format!("warning: rule `{rule}` kept ")), "{words:?}: {said}");
    }
    told
}

#[test]
fn analyses_tell_of_rules_about_their_events_of_the_kernel() {
    let Some(sleeper) = Sleeper::begin() else { return };
    let place = &sleeper.place;
    let program = sleeper.program.to_str().expect("it is text");
    let slow = "slow: syscalls over 20ms when comm == \"thin-one\" && comm != \"; delay: \"";
    let delay = "delay: sched_switch over 1h since sched_waking by next_tid=tid";
    let words = ["record", "--kernel=irq,io", "--kernel-only", slow, "--kernel-only", delay, "--output", "trace", "--"];
    place.says(&[&words[..], &[program, "thin-one", "3"]].concat(), 0);
    // Switches, and calls, are known in part alone; interrupts and disks are not.
    assert_eq!(told(place, &["cpu", "trace"]), ["delay"]);
    // It tells in which calls threads were blocked.
    assert_eq!(told(place, &["sched", "trace"]), ["delay", "slow"]);
    assert_eq!(told(place, &["syscalls", "trace"]), ["delay", "slow"]);
    assert_eq!(told(place, &["irq", "trace"]), [""; 0]);
    assert_eq!(told(place, &["count", "trace"]), ["delay", "slow"]);
    assert_eq!(told(place, &["count", "--event", "syscall_exit_*", "trace"]), ["slow"]);
    assert_eq!(told(place, &["count", "--event", "sched_waking", "trace"]), ["delay"]);
    assert_eq!(told(place, &["count", "--event", "softirq_*,irq_*", "trace"]), [""; 0]);
    let calls = place.json(&["syscalls", "--json", "trace"]);
    let rule = calls["rules"].as_array().and_then(|rules| rules.last()).expect("there is one").clone();
    assert_eq!((&rule["kept"], &rule["let_go"]), (&3.into(), &301.into()), "{rule}");
    assert_eq!(rule["events"], serde_json::json!(["syscall_exit_*", "compat_syscall_exit_*"]));
    assert_eq!(rule["without"], serde_json::json!(["syscall_entry_*", "compat_syscall_entry_*"]));
    assert!(rule["words"].as_str().is_some_and(|words| words.ends_with("comm != \"; delay: \"")), "{rule}");
    // The calls that were kept tell their times.
    let first = &calls["tables"][0]["rows"][0];
    assert_eq!((&first[0], &first[1]), (&"clock_nanosleep".into(), &3.into()), "{calls}");
    let info = place.says(&["trace"], 0);
    assert!(
        info.contains("rules     `delay` kept ") && info.contains("          `slow` kept 3 of 304 events of"),
        "{info}"
    );
    assert_eq!(rules(&place.json(&["info", "--json", "trace"])), ["delay", "slow"]);
    let check = place.json(&["check", "--json", "trace"]);
    let found = check["findings"].as_array().expect("a list").iter().filter(|found| found["rule"] == "events-thinned");
    assert_eq!((found.count(), &check["errors"]), (2, &0.into()), "{check}");
    // Of an event that is never recorded, a question has no answer, and says why.
    let output = place.kymo(&["pairs", "--start", "sched_waking", "--stop", "softirq_entry", "trace"]).output();
    let why = String::from_utf8_lossy(&output.expect("it starts").stderr).into_owned();
    assert!(why.contains("rule `delay` kept ") && why.contains("none of `sched_waking`"), "{why}");
}

#[test]
fn answers_tell_of_rules_about_their_events_of_programs() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    let words = ["record", "--detach", "--name", "some", "--output", "some", "--process", &pid];
    let slow = "slow: test:end over 1h since test:begin by value";
    place.says(&[&words[..], &["--only", "test:count every 100", "--only", slow]].concat(), 0);
    program.tell("offer 200");
    program.tell("begin 1");
    program.tell("end 1");
    program.tell("end 2");
    place.says(&["limit", "--add", "late: test:* at most 1000 in 1h"], 0);
    program.tell("offer 1");
    place.says(&["stop", "some"], 0);
    assert_eq!(told(&place, &["count", "--event", "test:count", "some"]), ["count", "late"]);
    assert_eq!(told(&place, &["count", "--event", "kymo:*", "some"]), [""; 0]);
    let counts = place.json(&["count", "--json", "--event", "test:end", "some"]);
    assert_eq!(rules(&counts), ["late", "slow"]);
    let slow = &counts["rules"][1];
    assert_eq!((&slow["kept"], &slow["let_go"], &slow["unknown"]), (&1.into(), &1.into(), &1.into()), "{slow}");
    assert_eq!((&slow["events"][0], &slow["without"][0]), (&"test:end".into(), &"test:begin".into()));
    let words = ["periods", "--period", "p : test:end", "some"];
    assert!(told(&place, &words).contains(&"slow".to_owned()));
    let output =
        place.kymo(&["pairs", "--start", "test:begin", "--stop", "test:end", "--key", "value", "some"]).output();
    let why = String::from_utf8_lossy(&output.expect("it starts").stderr).into_owned();
    assert!(why.contains("rule `slow` kept 1 of 2 events of `test:end`, and none of `test:begin`"), "{why}");
}
