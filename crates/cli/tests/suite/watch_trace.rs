//! Counts of `kymo watch` as events of a trace: the same numbers as those that are shown, for every reader.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::kernel::{events, name};
use crate::recorded::Place;
use crate::watch::{can_watch, helper_of, objects};

/// Reads and writes of a copy with a name that no other thread has, and the words that count them.
pub fn copying(place: &Place, name: &str) -> (String, [String; 6]) {
    std::fs::copy("/bin/dd", place.path(name)).expect("there is room");
    let question = format!("syscalls when comm == \"{name}\" && name in (\"read\", \"write\") && ret == 7");
    let words = ["if=/dev/zero", "of=/dev/null", "bs=7", "count=1000", "status=none"].map(str::to_owned);
    let [input, output, size, count, status] = words;
    (question, [format!("./{name}"), input, output, size, count, status])
}

pub fn number(value: &Value) -> i128 {
    let number = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    number.unwrap_or_else(|| panic!("{value} is no number"))
}

/// Events of a trace by the names of their classes.
pub fn by_class(place: &Place, path: &str) -> BTreeMap<String, Vec<Value>> {
    let mut all = BTreeMap::<String, Vec<Value>>::new();
    events(place, path).into_iter().for_each(|event| all.entry(name(&event).to_owned()).or_default().push(event));
    all
}

/// The sum of a field, by row.
pub fn sums(events: &[Value], field: &str) -> BTreeMap<String, i128> {
    let mut all = BTreeMap::new();
    for event in events {
        let payload = &event["payload"];
        let row = payload["row"].as_str().expect("it has a row").to_owned();
        *all.entry(row).or_insert(0) += number(&payload[field]);
    }
    all
}

#[test]
fn a_trace_has_the_counts_that_are_shown() {
    let place = Place::new();
    if !can_watch(&place) {
        return;
    }
    let (question, words) = copying(&place, "kymo-wt-copy");
    let mut command =
        place.kymo(&["watch", &question, "--by", "name,comm", "--sum", "ret", "--hist", "took", "--json"]);
    command.args(["--every", "20ms", "--output", "counts", "--"]).args(&words);
    let output = command.output().expect("it starts");
    let told = objects(&output);
    let shown = told.last().expect("there are counts");
    assert!(String::from_utf8_lossy(&output.stderr).contains("counts are in counts"), "{output:?}");

    let all = by_class(&place, "counts");
    let of = |class: &str| all.get(class).map_or(&[][..], |events| &events[..]);
    let (rows, totals, buckets) = (of("watch:row"), of("watch:total"), of("watch:bucket"));
    let wanted: BTreeMap<String, i128> = ["read", "write"].map(|name| (format!("{name}, kymo-wt-copy"), 1000)).into();
    assert_eq!(sums(rows, "events"), wanted);
    assert_eq!(sums(totals, "events"), wanted);
    assert_eq!(sums(buckets, "events"), wanted);
    assert_eq!(sums(rows, "sum"), sums(totals, "sum"));
    assert_eq!(sums(rows, "total"), sums(totals, "total"));
    for row in shown["rows"].as_array().expect("there are rows") {
        let is_its = |event: &&Value| event["payload"]["name"] == row["keys"]["name"];
        let total = &totals.iter().find(is_its).expect("it has a total")["payload"];
        assert_eq!((&total["comm"], &total["sum"]), (&row["keys"]["comm"], &row["sum"]), "{total}");
        let histogram = &row["histogram"];
        assert_eq!(total["total"], histogram["sum"]);
        for part in ["p50", "p90", "p99", "p999", "most"] {
            assert_eq!(total[part], histogram[part], "{part} of {total}");
        }
        let bars = histogram["buckets"].as_array().expect("there are some");
        let its: Vec<&Value> = buckets.iter().filter(is_its).map(|event| &event["payload"]).collect();
        assert_eq!(its.len(), bars.len());
        for (bucket, bar) in its.into_iter().zip(bars) {
            let high = number(&bar[1]) - 1;
            assert_eq!((&bucket["low"], number(&bucket["high"]), &bucket["events"]), (&bar[0], high, &bar[2]));
        }
    }
    // There is one interval for each object that was shown before the last one, and an end.
    let intervals: Vec<i128> = of("watch:interval").iter().map(|event| number(&event["payload"]["events"])).collect();
    let each: Vec<i128> = told[..told.len() - 1].iter().map(|one| number(&one["events"])).collect();
    assert_eq!(intervals, each);
    let [end] = of("watch:end") else { panic!("{all:?}") };
    let end = &end["payload"];
    assert_eq!((&end["events"], &end["is_complete"], &end["rows"]), (&2000.into(), &1.into(), &2.into()));
    assert_eq!(end["unbegun"], shown["unbegun"]);
    assert_eq!(end["question"], format!("{question} --by name,comm --sum ret --hist took"));

    let mode = |path: &str| std::fs::metadata(place.path(path)).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(["counts", "counts/metadata", "counts/counts"].map(mode), [0o700, 0o600, 0o600]);
    assert!(place.says(&["check", "counts"], 0).contains("no problems"));
    let count = all.values().map(Vec::len).sum();
    if let Ok(others) = place.command("babeltrace2").arg("counts").output() {
        let lines = String::from_utf8_lossy(&others.stdout).lines().count();
        assert_eq!((others.status.success(), lines), (true, count), "{others:?}");
    }
    let said = place.says(&["watch", "sched_switch", "--output", "counts", "--", "true"], 2);
    assert!(said.contains("counts/metadata") && said.contains("exists"), "{said}");
}

#[cfg(feature = "sql")]
#[test]
fn counts_are_tables() {
    let place = Place::new();
    if !can_watch(&place) {
        return;
    }
    let (question, words) = copying(&place, "kymo-wt-sql");
    let mut command = place.kymo(&["watch", &question, "--by", "name", "--hist", "took", "--output", "counts", "--"]);
    assert!(command.args(&words).output().expect("it starts").status.success());
    let query =
        "select name, sum(events) as events, max(p99) > 0 as has_p99 from \"watch:row\" group by name order by name";
    let said = place.says(&["sql", "counts", query, "--csv"], 0);
    assert_eq!(said, "name,events,has_p99\nread,1000,true\nwrite,1000,true\n");
    let query = "select sum(events) as events, min(low) < max(high) as is_wide from \"watch:bucket\"";
    assert_eq!(place.says(&["sql", "counts", query, "--csv"], 0), "events,is_wide\n2000,true\n");
}

/// The viewer draws the number of each row as a counter.
#[test]
fn rows_are_counters() {
    let place = Place::new();
    if !can_watch(&place) {
        return;
    }
    place.says(&["watch", "sched_switch", "--by", "next_comm", "--output", "counts", "--", "sleep", "0.1"], 0);
    let roles = place.says(&["roles", "counts"], 0);
    assert!(roles.lines().any(|line| line.contains("counter") && line.contains("watch:row")), "{roles}");
}

/// Without a helper, the trace ends with the last counts that could be read, and says so.
#[test]
fn counts_that_break_off_are_told() {
    let place = Place::new();
    if !can_watch(&place) {
        return;
    }
    let words = ["watch", "sys_enter", "--every", "50ms", "--json", "--output", "counts"];
    let mut kymo = place.kymo(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut output = std::io::BufReader::new(kymo.stdout.take().expect("it has one"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut output, &mut line).expect("it counts");
    let helper = helper_of(kymo.id()).expect("it has a helper");
    let killed = Command::new("kill").args(["-9", &helper.to_string()]).status().expect("it starts");
    assert!(killed.success());
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut output, &mut rest).expect("it is text");
    assert_eq!(kymo.wait().expect("it ends").code(), Some(1));
    let all = by_class(&place, "counts");
    let shown: Value = serde_json::from_str(rest.lines().last().expect("there is one")).expect("it is an object");
    let end = &all["watch:end"][0]["payload"];
    assert_eq!((&end["is_complete"], &end["events"]), (&0.into(), &shown["events"]), "{end}");
    let of_intervals: i128 = all["watch:interval"].iter().map(|event| number(&event["payload"]["events"])).sum();
    assert_eq!(of_intervals, number(&end["events"]));
}
