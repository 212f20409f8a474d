//! Counts beside a recording of the kernel: in its trace, in snapshots, and beyond recorders that are killed.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::kernel::can_record;
use crate::recorded::{Place, until};
use crate::resumed::kill_recorder;
use crate::watch::can_watch;
use crate::watch_trace::{by_class, copying, number, sums};

fn place() -> Option<Place> {
    let place = Place::new();
    (can_watch(&place) && can_record(&place)).then_some(place)
}

/// Runs a copy, and waits for its end.
fn copy(place: &Place, words: &[String]) {
    let status = Command::new(&words[0]).args(&words[1..]).current_dir(place.path(".")).status();
    assert!(status.expect("it starts").success());
}

fn rows(counts: [(&str, i128); 2]) -> BTreeMap<String, i128> {
    counts.map(|(name, count)| (name.to_owned(), count)).into()
}

/// The summary's counts.
fn watches(summary: &Value) -> &Vec<Value> {
    summary["kernel"]["watches"].as_array().unwrap_or_else(|| panic!("{summary}"))
}

#[test]
fn counts_are_beside_the_events_of_a_recording() {
    let Some(place) = place() else { return };
    let (question, words) = copying(&place, "kymo-wr-one");
    let calls = format!("calls: {question} --by name --sum ret --hist took");
    let switches = "sched_switch when prev_comm == \"kymo-wr-one\"";
    let record = [
        "record",
        "--kernel=sched_switch",
        "--watch",
        &calls,
        "--watch",
        switches,
        "--output",
        "trace",
        "--json",
        "--",
    ];
    let output = place.kymo(&record).args(&words).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("it is an object");
    let [of_calls, of_switches] = &watches(&summary)[..] else { panic!("{summary}") };
    assert_eq!((&of_calls["name"], &of_calls["events"], &of_calls["rows"]), (&"calls".into(), &2000.into(), &2.into()));
    assert_eq!((&of_calls["is_complete"], &of_switches["unbegun"]), (&true.into(), &Value::Null), "{summary}");
    assert_eq!((&of_switches["name"], &of_switches["words"]), (&"sched_switch".into(), &switches.into()));

    let all = by_class(&place, "trace");
    let of = |class: &str, watch: &str| -> Vec<Value> {
        let events = all.get(class).into_iter().flatten();
        events.filter(|event| event["payload"]["watch"] == watch).cloned().collect()
    };
    let wanted = rows([("read", 1000), ("write", 1000)]);
    for class in ["watch:row", "watch:total", "watch:bucket"] {
        assert_eq!(sums(&of(class, "calls"), "events"), wanted, "{class}");
    }
    assert_eq!(sums(&of("watch:row", "calls"), "sum"), rows([("read", 7000), ("write", 7000)]));
    let end = &of("watch:end", "calls")[0]["payload"];
    assert_eq!(
        (&end["is_complete"], &end["lost_map_full"], &end["lost_interrupted"]),
        (&1.into(), &0.into(), &0.into())
    );
    assert_eq!(end["question"], calls["calls: ".len()..]);
    // The number of the other question is that of the trace's own events, near enough: a kernel leaves out some records.
    let recorded = all["sched_switch"].iter().filter(|event| event["payload"]["prev_comm"] == "kymo-wr-one").count();
    let counted = number(&of("watch:end", "sched_switch")[0]["payload"]["events"]);
    assert!((counted - recorded as i128).abs() <= 2 && counted > 0, "{counted} of {recorded}");
    let events: usize = all.values().map(Vec::len).sum();
    assert_eq!(number(&summary["kernel"]["events"]), events as i128);
    assert!(place.says(&["check", "trace"], 0).contains("no problems"));
    if let Ok(others) = place.command("babeltrace2").arg("trace/kernel").output() {
        let text = String::from_utf8_lossy(&others.stdout);
        assert!(others.status.success() && text.contains("watch:total"), "{others:?}");
    }
    let roles = place.says(&["roles", "trace"], 0);
    assert!(roles.lines().any(|line| line.contains("counter") && line.contains("watch:row")), "{roles}");
}

#[test]
fn people_are_told_the_counts() {
    let Some(place) = place() else { return };
    let (question, words) = copying(&place, "kymo-wr-told");
    let mut command = place.kymo(&["record", "--watch", &format!("{question} --by name"), "--output", "trace", "--"]);
    let output = command.args(&words).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("  counted   syscalls: 2,000 events in 2 rows"), "{told}");
    assert!(told.contains("losses    none"), "{told}");
}

/// With `--kernel-of`, only events of those processes count.
#[test]
fn counts_may_be_those_of_some_processes() {
    let Some(place) = place() else { return };
    let (_, words) = copying(&place, "kymo-wr-of");
    let watch = "syscalls when name == \"write\" && ret == 7 --by comm";
    let mut others = Command::new("dd");
    others.args(["if=/dev/zero", "of=/dev/null", "bs=7", "count=100000000000", "status=none"]);
    let mut beside = others.spawn().expect("it starts");
    let record = ["record", "--kernel-of", "command", "--watch", watch, "--json", "--output", "trace", "--"];
    let output = place.kymo(&record).args(&words).output().expect("it starts");
    beside.kill().and_then(|()| beside.wait()).expect("it was there");
    assert!(output.status.success(), "{output:?}");
    let totals = sums(&by_class(&place, "trace")["watch:total"], "events");
    assert_eq!(totals, BTreeMap::from([("kymo-wr-of".to_owned(), 1000)]));
}

/// A flight recorder writes the counts that it keeps with each snapshot.
#[test]
fn snapshots_have_counts() {
    let Some(place) = place() else { return };
    let (question, words) = copying(&place, "kymo-wr-fly");
    let watch = format!("{question} --by name");
    let record =
        ["record", "--detach", "--mode", "overwrite", "--kernel=sched_switch", "--watch", &watch, "--name", "s"];
    place.says(&[&record[..], &["--output", "trace"]].concat(), 0);
    for times in 1..=2 {
        copy(&place, &words);
        let snapshot = place.json(&["snapshot", "s", "--json"]);
        let path = snapshot["output"].as_str().or(snapshot[0]["output"].as_str()).expect("it is somewhere").to_owned();
        let all = by_class(&place, &path);
        let wanted = rows([("read", 1000 * times), ("write", 1000 * times)]);
        assert_eq!((sums(&all["watch:row"], "events"), sums(&all["watch:total"], "events")), (wanted.clone(), wanted));
    }
    place.says(&["stop", "s"], 0);
}

/// The kernel counts on when the recorder is killed, and totals have all.
#[test]
fn the_next_recorder_goes_on_with_counts() {
    let Some(place) = place() else { return };
    let (question, words) = copying(&place, "kymo-wr-next");
    let watch = format!("{question} --by name");
    let record = ["record", "--detach", "--kernel=sched_switch", "--watch", &watch, "--name", "s", "--output", "trace"];
    place.says(&record, 0);
    copy(&place, &words);
    let counted = || {
        let status = place.json(&["status", "--json"]);
        number(&watches(&status["sessions"][0]["summary"])[0]["events"])
    };
    until(|| counted() == 2000);
    assert!(kill_recorder(&place));
    copy(&place, &words);
    // The command starts the next one.
    place.says(&["sessions"], 0);
    copy(&place, &words);
    let summary = place.json(&["stop", "s", "--json"]);
    assert_eq!(number(&watches(&summary[0])[0]["events"]), 6000, "{summary}");
    let all = by_class(&place, "trace");
    assert_eq!(sums(&all["watch:total"], "events"), rows([("read", 3000), ("write", 3000)]));
    // No recorder was there at the end of the time of the second copy, and the first one may have been killed before it had
    // written the rows of the first.
    let of_rows = sums(&all["watch:row"], "events");
    assert!(of_rows.values().all(|events| (1000..=3000).contains(events)), "{of_rows:?}");
}

/// Parts of a trace have the counts of their times, and the last one the totals.
#[test]
fn parts_have_counts() {
    let Some(place) = place() else { return };
    let (question, words) = copying(&place, "kymo-wr-part");
    let watch = format!("{question} --by name");
    let record =
        ["record", "--kernel=sched_switch", "--watch", &watch, "--rotate-time", "1s", "--output", "trace", "--"];
    let script = format!("{}; sleep 2.5; {}", words.join(" "), words.join(" "));
    let output = place.kymo(&record).args(["sh", "-c", &script]).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let all = by_class(&place, "trace");
    let wanted = rows([("read", 2000), ("write", 2000)]);
    assert_eq!((sums(&all["watch:row"], "events"), sums(&all["watch:total"], "events")), (wanted.clone(), wanted));
    assert!(std::fs::read_dir(place.path("trace/kernel")).expect("it is there").count() >= 2);
}

#[test]
fn questions_that_cannot_be_counted_are_refused() {
    let Some(place) = place() else { return };
    for (watch, why) in [
        ("sched_swtch", "the kernel has no event `sched_swtch`; did you mean `sched_switch`?"),
        ("sched_switch --by next_com", "help: there is `next_comm`"),
        ("sched_switch --bye next_comm", "did you mean `--by`?"),
        ("sched_switch --hist prev_comm", "is a text"),
        ("a b: sched_switch", "found `b:`"),
    ] {
        let said = place.says(&["record", "--watch", watch, "--output", "none", "--", "true"], 2);
        assert!(said.contains(why), "{watch}: {said}");
    }
    let twice = ["record", "--watch", "a: sched_switch", "--watch", "a: sys_exit", "--output", "none", "--", "true"];
    assert!(place.says(&twice, 2).contains("another one is called `a`"));
}

#[cfg(feature = "sql")]
#[test]
fn counts_of_questions_are_functions() {
    let Some(place) = place() else { return };
    let (question, words) = copying(&place, "kymo-wr-sql");
    let calls = format!("calls: {question} --by name --hist took");
    let record = [
        "record",
        "--kernel=sched_switch",
        "--watch",
        &calls,
        "--watch",
        "sched_switch --by cpu_id",
        "--output",
        "trace",
    ];
    let output = place.kymo(&record).arg("--").args(&words).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let sql = |query: &str| place.says(&["sql", "trace", query, "--csv"], 0);
    let query = "select name, sum(events) as events from watch('calls') group by name order by name";
    assert_eq!(sql(query), "name,events\nread,1000\nwrite,1000\n");
    assert_eq!(
        sql("select row, events from watch('calls', 'total') order by 1"),
        "row,events\nread,1000\nwrite,1000\n"
    );
    assert_eq!(sql("select sum(events) as n from watch('calls', 'bucket') where high >= low"), "n\n2000\n");
    // Each question has the columns of its own.
    let columns = sql("select * from watch('sched_switch', 'total') limit 1");
    assert_eq!(columns.lines().next(), Some("time,cpu_id,watch,row,events"));
    for (query, why) in [
        ("select * from watch()", "watch() needs a name: watch('NAME'); the trace has counts of calls, sched_switch"),
        ("select * from watch('call')", "there is no question `call`; did you mean `calls`?"),
        ("select * from watch('calls', 'totals')", "there are no counts of the kind `totals`; did you mean `total`?"),
        ("select * from watch('sched_switch', 'bucket')", "`sched_switch` has no counts of the kind `bucket`"),
        ("select * from map('calls')", "there is no map `calls`; the trace has no maps"),
    ] {
        let said = place.says(&["sql", "trace", query], 2);
        assert!(said.contains(why), "{query}: {said}");
    }
}
