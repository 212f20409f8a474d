//! `kymo lami` as Trace Compass runs it, and the common options of analyses, from the outside.

use std::path::{Path, PathBuf};
use std::process::Output;

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::program;
use crate::schema;

fn demo() -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo");
    path.to_str().expect("the path is text").to_owned()
}

fn kymo(words: &str) -> Output {
    let demo = demo();
    let words = words.split_whitespace().map(|word| if word == "demo" { &*demo } else { word });
    program::kymo().args(words).env("TZ", "UTC").env("LC_ALL", "C.UTF-8").output().expect("the program is there")
}

/// Everything that is said, as who runs the program may have mixed it.
fn check(words: &str, expected: &Expect) {
    let done = kymo(words);
    let mut text = String::from_utf8_lossy(&done.stdout).replace(&demo(), "demo").replace("\r\n", "\n");
    for line in String::from_utf8_lossy(&done.stderr).lines() {
        text += &format!("stderr: {line}\n");
    }
    if let Some(status) = done.status.code().filter(|status| *status != 0) {
        text += &format!("exit status {status}\n");
    }
    expected.assert_eq(&text);
}

/// The object, which is good by the schema.
fn object(words: &str, part: &str) -> Value {
    let done = kymo(words);
    let value: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{words}: {done:?}"));
    assert_eq!(schema::problems(&value, part), Vec::<String>::new(), "{words}");
    assert_eq!(done.status.success(), part != "error", "{words}");
    assert!(done.stderr.is_empty(), "{words}: {done:?}");
    value
}

/// Trace Compass asks the program alone, whatever words follow it in the command.
#[test]
fn the_version() {
    check(
        "--mi-version",
        &expect![[r#"
        1.0
    "#]],
    );
    check(
        "lami count --mi-version",
        &expect![[r#"
        1.0
    "#]],
    );
}

#[test]
fn the_metadata() {
    object("lami count --metadata", "metadata");
    check(
        "lami count --metadata",
        &expect![[r#"
            {"mi-version":{"major":1,"minor":0},"version":{"major":0,"minor":1,"patch":0},"title":"Events by class","description":"Number of events of each class","tags":["kymograph","count"],"table-classes":{"per-class":{"title":"Classes of events","column-descriptions":[{"title":"Event","class":"string"},{"title":"Count","class":"number","unit":"events"}]},"per-stream":{"title":"Streams","column-descriptions":[{"title":"Stream","class":"string"},{"title":"CPU","class":"cpu"},{"title":"Count","class":"number","unit":"events"},{"title":"Lost","class":"number","unit":"events"}]},"total":{"title":"All events","column-descriptions":[{"title":"Count","class":"number","unit":"events"},{"title":"Lost","class":"number","unit":"events"}]}}}
        "#]],
    );
}

#[test]
fn the_compatibility() {
    check("lami count --test-compatibility demo", &expect![[r#""#]]);
    check("lami count --test-compatibility --period :jobs:begin demo", &expect![[r#""#]]);
    let error = object("lami count --test-compatibility no-such-trace", "error");
    assert_eq!(error["error-code"], 1);
    // There are no threads of a kernel in it.
    let error = object("lami cpu --test-compatibility demo", "error");
    assert!(error["error-message"].as_str().is_some_and(|text| text.contains("thread_switch")), "{error}");
    assert_eq!(object("lami cpu demo", "error"), error);
}

/// Every table and class is one of the metadata.
#[test]
fn the_results() {
    let value = object("lami count demo", "results");
    assert_eq!(value["results"][0]["class"], "per-class");
    check(
        "lami count --limit 2 demo",
        &expect![[r#"
            {"results":[{"time-range":{"class":"time-range","begin":{"class":"timestamp","value":1795219372255263261},"end":{"class":"timestamp","value":1795219372321931298}},"class":"per-class","data":[
            [{"class":"string","value":"jobs:chunk"},{"class":"number","value":1200}],
            [{"class":"string","value":"jobs:begin"},{"class":"number","value":400}]]},{"time-range":{"class":"time-range","begin":{"class":"timestamp","value":1795219372255263261},"end":{"class":"timestamp","value":1795219372321931298}},"class":"per-stream","data":[
            [{"class":"string","value":"0"},{"class":"cpu","id":0},{"class":"number","value":1723},{"class":"number","value":0}],
            [{"class":"string","value":"1"},{"class":"cpu","id":1},{"class":"number","value":677},{"class":"number","value":0}]]},{"time-range":{"class":"time-range","begin":{"class":"timestamp","value":1795219372255263261},"end":{"class":"timestamp","value":1795219372321931298}},"class":"total","data":[
            [{"class":"number","value":2400},{"class":"number","value":0}]]}],"events_discarded":0,"events_discarded_is_lower_bound":false,"packets_lost":0,"complete":true}
        "#]],
    );
    let all = value["results"][0]["data"].as_array().expect("rows").len();
    assert_eq!(
        object("lami count --limit unlimited demo", "results")["results"][0]["data"].as_array().expect("rows").len(),
        all
    );
}

/// A kernel trace by `cpu`: every table is one of the metadata, and none has more rows than the limit.
#[test]
fn a_kernel_trace() {
    let nearby = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let trace = std::env::var_os("KYMO_CORPUS").map_or(nearby, PathBuf::from).join("ctf/tracecompass/many-threads");
    let Some(trace) = trace.to_str().filter(|_| trace.is_dir()) else {
        eprintln!("CORPUS ABSENT: {} is not there, `kymo lami cpu` not run", trace.display());
        return;
    };
    let metadata = object("lami cpu --metadata", "metadata");
    for limit in ["3", "unlimited"] {
        let results = object(&format!("lami cpu --limit {limit} {trace}"), "results");
        for table in results["results"].as_array().expect("tables") {
            let class = table["class"].as_str().expect("titles are those of the metadata");
            let columns = metadata["table-classes"][class]["column-descriptions"].as_array().expect("a known class");
            let rows = table["data"].as_array().expect("rows");
            assert!(rows.len() == 3 || limit == "unlimited" && !rows.is_empty(), "{class}");
            assert!(rows.iter().all(|row| row.as_array().expect("cells").len() == columns.len()), "{class}");
        }
    }
}

/// The time range comes in nanoseconds, each in a word of its own; further words are the user's.
#[test]
fn a_part_of_the_time() {
    let whole = object("lami count demo", "results");
    let number = |value: &Value| value.as_i64().expect("a number");
    let range = &whole["results"][0]["time-range"];
    let (begin, end) = (number(&range["begin"]["value"]), number(&range["end"]["value"]));
    let events = |value: &Value| {
        let rows = value["results"][0]["data"].as_array().expect("rows");
        rows.iter().map(|row| number(&row[1]["value"])).sum::<i64>()
    };
    let middle = begin + (end - begin) / 2;
    let part = |begin: i64, end: i64, more: &str| {
        object(&format!("lami count --begin {begin} --end {end} {more} demo"), "results")
    };
    let (first, second) = (part(begin, middle, ""), part(middle + 1, end, ""));
    assert!(events(&first) > 0 && events(&second) > 0);
    assert_eq!(events(&first) + events(&second), events(&whole));
    assert_eq!(number(&first["results"][0]["time-range"]["end"]["value"]), middle);
    let jobs = part(begin, end, "--filter event.name==\"jobs:begin\"");
    assert!(events(&jobs) > 0 && events(&jobs) < events(&whole));
    assert_eq!(events(&part(-5, -1, "")), 0);
}

/// Lines of progress end with the one that begins with a brace.
#[test]
fn the_progress() {
    let done = kymo("lami count --output-progress demo");
    let text = String::from_utf8(done.stdout).expect("text");
    let (progress, results): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with(['0', '1', '*']));
    assert_eq!(progress.last(), Some(&"1"));
    for line in &progress {
        let share = line.split(' ').next().and_then(|share| share.parse::<f64>().ok());
        assert!(share.is_some_and(|share| (0.0..=1.0).contains(&share)), "{line}");
    }
    let value: Value = serde_json::from_str(&results.concat()).expect("the rest is one object");
    assert_eq!(schema::problems(&value, "results"), Vec::<String>::new());
}

/// Whatever is wrong, it is said as an object, and the exit status is not 0.
#[test]
fn errors() {
    for words in [
        "lami",
        "lami no-such-analysis --metadata",
        "lami count",
        "lami count --no-such-option demo",
        "lami count --begin soon demo",
        "lami count --begin 2 --end 1 demo",
        "lami count --min 3ms --max 2ms demo",
        "lami count --filter no_such_field==1 demo",
        "lami count --filter ((( demo",
        "lami count no-such-trace",
    ] {
        object(words, "error");
    }
    let message = &object("lami cpus demo", "error")["error-message"];
    assert!(
        message.as_str().is_some_and(|text| text.starts_with("there is no analysis `cpus`; there are: ")),
        "{message}"
    );
    check(
        "lami count --filter (name demo",
        &expect![[r#"
        {"error-message":"this `(` is never closed\n    (name\n    ^","error-code":2}
        exit status 1
    "#]],
    );
}

/// The same answer for people and programs.
#[test]
fn faces() {
    check(
        "analyse count --top 3 demo",
        &expect![[r#"
            Classes of events  2026-11-21 00:02:52.255263261 to 00:02:52.321931298 (66.668 ms)
            Event       Events
            jobs:chunk   1,200
            jobs:begin     400
            jobs:end       400
            ... and 1 more row (--top all)

            Streams  2026-11-21 00:02:52.255263261 to 00:02:52.321931298 (66.668 ms)
            Stream  CPU  Events  Lost
            0         0   1,723     0
            1         1     677     0

            All events  2026-11-21 00:02:52.255263261 to 00:02:52.321931298 (66.668 ms)
            Events  Lost
             2,400     0
        "#]],
    );
    check(
        "analyse count --csv --limit 2 demo",
        &expect![[r#"
            name,count
            jobs:chunk,1200
            jobs:begin,400
        "#]],
    );
    check(
        "analyse count --json --top 1 demo",
        &expect![[r#"
            {"tables":[{"class":"per-class","title":"Classes of events","span":{"begin":1795219372255263261,"end":1795219372321931298},"columns":[{"name":"name","title":"Event","class":"string","unit":null},{"name":"count","title":"Count","class":"number","unit":"events"}],"rows":[
            ["jobs:chunk",1200]],"omitted":3},{"class":"per-stream","title":"Streams","span":{"begin":1795219372255263261,"end":1795219372321931298},"columns":[{"name":"stream","title":"Stream","class":"string","unit":null},{"name":"cpu","title":"CPU","class":"cpu","unit":null},{"name":"count","title":"Count","class":"number","unit":"events"},{"name":"lost","title":"Lost","class":"number","unit":"events"}],"rows":[
            ["0",0,1723,0],
            ["1",1,677,0]],"omitted":0},{"class":"total","title":"All events","span":{"begin":1795219372255263261,"end":1795219372321931298},"columns":[{"name":"count","title":"Count","class":"number","unit":"events"},{"name":"lost","title":"Lost","class":"number","unit":"events"}],"rows":[
            [2400,0]],"omitted":0}],"events_discarded":0,"events_discarded_is_lower_bound":false,"packets_lost":0,"complete":true}
        "#]],
    );
    let lami = kymo("analyse count --lami demo");
    assert_eq!(lami.stdout, kymo("lami count demo").stdout);
}

/// Options that would change nothing are a misunderstanding.
#[test]
fn what_an_analysis_would_not_look_at_is_refused() {
    check(
        "analyse rates --by cpu,priority demo",
        &expect![[r#"
            stderr: error: `rates` does not tell `priority` apart; it knows class, name, cpu, stream
            stderr: 
            stderr: Usage: kymo analyse [OPTIONS] <FILE> <TRACE>...
            stderr: 
            stderr: For more information, try '--help'.
            exit status 2
        "#]],
    );
    check(
        "gaps --by cpu demo",
        &expect![[r#"
            stderr: error: `gaps` tells nothing apart: --by has no words for it
            stderr: 
            stderr: Usage: kymo gaps [OPTIONS] <TRACE>...
            stderr: 
            stderr: For more information, try '--help'.
            exit status 2
        "#]],
    );
    check(
        "rates --tid 3 demo",
        &expect![[r#"
            stderr: error: `rates` has nothing that --tid could choose
            stderr: 
            stderr: Usage: kymo rates [OPTIONS] <TRACE>...
            stderr: 
            stderr: For more information, try '--help'.
            exit status 2
        "#]],
    );
    check(
        "lami block --procname x demo",
        &expect![[r#"
        {"error-message":"`block` has nothing that --procname could choose","error-code":2}
        exit status 1
    "#]],
    );
}

#[test]
fn wrong_periods() {
    check(
        "analyse count --period 0 demo",
        &expect![[r#"
            stderr: error: invalid value '0' for '--period <DURATION|EVENTS>': it is a length of time such as `1.5ms`, or events: `NAME : BEGIN [: END]`
            stderr: 
            stderr: For more information, try '--help'.
            exit status 2
        "#]],
    );
    check(
        "analyse count --period 1s --period :a demo",
        &expect![[r#"
            stderr: error: --period with a length of time stands alone
            stderr: 
            stderr: Usage: kymo analyse [OPTIONS] <FILE> <TRACE>...
            stderr: 
            stderr: For more information, try '--help'.
            exit status 2
        "#]],
    );
    check(
        "analyse count --period 1s --period-captures :a=b demo",
        &expect![[r#"
            stderr: error: --period-captures tells of periods that begin and end with events
            stderr: 
            stderr: Usage: kymo analyse [OPTIONS] <FILE> <TRACE>...
            stderr: 
            stderr: For more information, try '--help'.
            exit status 2
        "#]],
    );
    check(
        "analyse count --period :nothing demo",
        &expect![[r#"
            stderr: error: no event begins or ends a period
            stderr: 
            stderr: Usage: kymo analyse [OPTIONS] <FILE> <TRACE>...
            stderr: 
            stderr: For more information, try '--help'.
            exit status 2
        "#]],
    );
}

#[test]
fn wrong_usage() {
    check(
        "analyse count --table per-cpu demo",
        &expect![[r#"
            stderr: error: there is no table `per-cpu`; there are: per-class, per-stream, total
            stderr: 
            stderr: Usage: kymo analyse [OPTIONS] <FILE> <TRACE>...
            stderr: 
            stderr: For more information, try '--help'.
            exit status 2
        "#]],
    );
    check(
        "analyse count --min 3 --max 2us demo",
        &expect![[r#"
            stderr: error: --min is longer than --max
            stderr: 
            stderr: Usage: kymo analyse [OPTIONS] <FILE> <TRACE>...
            stderr: 
            stderr: For more information, try '--help'.
            exit status 2
        "#]],
    );
    check(
        "analyse count --bins 0 --cpu 3-1 demo",
        &expect![[r#"
        stderr: error: invalid value '0' for '--bins <BINS>': 0 is not in 1..=100000
        stderr: 
        stderr: For more information, try '--help'.
        exit status 2
    "#]],
    );
    check(
        "analyse count --json --csv demo",
        &expect![[r#"
            stderr: error: the argument '--json' cannot be used with '--csv'
            stderr: 
            stderr: Usage: kymo analyse --json <FILE> <TRACE>...
            stderr: 
            stderr: For more information, try '--help'.
            exit status 2
        "#]],
    );
}
