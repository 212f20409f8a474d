//! Several traces as one, whose clocks are apart: words in, text out.

use std::path::Path;

use expect_test::{Expect, expect};

use crate::copies;
use crate::program;

/// Two copies of the demo, `one` and `hosts/two`, and a file that declares states of workers.
fn two_copies() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    for name in ["one", "hosts/two"] {
        copies::copy(&copies::demo(), &folder.path().join(name));
    }
    let own = "name = \"jobs\"\n[[states]]\nname = \"worker\"\nkey = \"$ctx.vtid\"\nset = [{ event = \"jobs:begin\", to = { field = \"id\" } }, \
               { event = \"jobs:end\" }]\n";
    std::fs::write(folder.path().join("own.toml"), own).expect("the folder can be written to");
    folder
}

/// What is said in the folder, on both streams, and the exit status where it is not 0.
fn said(folder: &Path, words: &[&str]) -> String {
    let mut kymo = program::kymo();
    kymo.args(words).current_dir(folder).env("TZ", "UTC").env("LC_ALL", "C.UTF-8");
    let done = kymo.env("XDG_CACHE_HOME", folder.join("cache")).output().expect("the program is there");
    let mut text = String::from_utf8_lossy(&done.stdout).replace("\r\n", "\n");
    text += &String::from_utf8_lossy(&done.stderr);
    if let Some(status) = done.status.code().filter(|status| *status != 0) {
        text += &format!("exit status {status}\n");
    }
    text
}

fn check(folder: &Path, words: &[&str], expected: &Expect) {
    expected.assert_eq(&said(folder, words));
}

/// Two copies are one trace, until one of them has an offset: then its events come between those of the other.
#[test]
fn events_of_both_in_one_order() {
    let folder = two_copies();
    let print =
        ["print", "--clock-seconds", "--limit", "4", "--event", "jobs:submit", "--event", "jobs:begin", "one", "hosts"];
    check(
        folder.path(),
        &print,
        &expect![[r#"
            [1795219372.255263261] (+?.?????????) vm jobs:submit: { cpu_id = 1 }, { vpid = 29832, vtid = 29832, procname = "demo" }, { id = 0, kind = ( "CUSTOM" : container = 5 ), name = "config.toml", queue_depth = 1 }
            [1795219372.255278164] (+0.000014903) vm jobs:submit: { cpu_id = 1 }, { vpid = 29832, vtid = 29832, procname = "demo" }, { id = 1, kind = ( "COMPRESS" : container = 1 ), name = "frame.raw", queue_depth = 2 }
            [1795219372.255278554] (+0.000000390) vm jobs:submit: { cpu_id = 1 }, { vpid = 29832, vtid = 29832, procname = "demo" }, { id = 2, kind = ( "RENDER" : container = 2 ), name = "scene \"A\"", queue_depth = 3 }
            [1795219372.255278694] (+0.000000140) vm jobs:submit: { cpu_id = 1 }, { vpid = 29832, vtid = 29832, procname = "demo" }, { id = 3, kind = ( "PARSE" : container = 0 ), name = "", queue_depth = 4 }
        "#]],
    );
    let offset = ["--trace-offset", "hosts=+10us"];
    check(
        folder.path(),
        &[&print[..], &offset].concat(),
        &expect![[r#"
        [1795219372.255263261] (+?.?????????) vm jobs:submit: { cpu_id = 1 }, { vpid = 29832, vtid = 29832, procname = "demo" }, { id = 0, kind = ( "CUSTOM" : container = 5 ), name = "config.toml", queue_depth = 1 }
        [1795219372.255273261] (+0.000010000) vm jobs:submit: { cpu_id = 1 }, { vpid = 29832, vtid = 29832, procname = "demo" }, { id = 0, kind = ( "CUSTOM" : container = 5 ), name = "config.toml", queue_depth = 1 }
        [1795219372.255278164] (+0.000004903) vm jobs:submit: { cpu_id = 1 }, { vpid = 29832, vtid = 29832, procname = "demo" }, { id = 1, kind = ( "COMPRESS" : container = 1 ), name = "frame.raw", queue_depth = 2 }
        [1795219372.255278554] (+0.000000390) vm jobs:submit: { cpu_id = 1 }, { vpid = 29832, vtid = 29832, procname = "demo" }, { id = 2, kind = ( "RENDER" : container = 2 ), name = "scene \"A\"", queue_depth = 3 }
    "#]],
    );
    let both = ["--clock-offset-ns", "1", "--trace-offset", "hosts=-1ms", "--trace-offset", "hosts/two/=20us"];
    check(
        folder.path(),
        &[&print[..], &both].concat(),
        &expect![[r#"
        [1795219372.255263262] (+?.?????????) vm jobs:submit: { cpu_id = 1 }, { vpid = 29832, vtid = 29832, procname = "demo" }, { id = 0, kind = ( "CUSTOM" : container = 5 ), name = "config.toml", queue_depth = 1 }
        [1795219372.255278165] (+0.000014903) vm jobs:submit: { cpu_id = 1 }, { vpid = 29832, vtid = 29832, procname = "demo" }, { id = 1, kind = ( "COMPRESS" : container = 1 ), name = "frame.raw", queue_depth = 2 }
        [1795219372.255278555] (+0.000000390) vm jobs:submit: { cpu_id = 1 }, { vpid = 29832, vtid = 29832, procname = "demo" }, { id = 2, kind = ( "RENDER" : container = 2 ), name = "scene \"A\"", queue_depth = 3 }
        [1795219372.255278695] (+0.000000140) vm jobs:submit: { cpu_id = 1 }, { vpid = 29832, vtid = 29832, procname = "demo" }, { id = 3, kind = ( "PARSE" : container = 0 ), name = "", queue_depth = 4 }
    "#]],
    );
}

#[test]
fn info_says_how_far_clocks_are_shifted() {
    let folder = two_copies();
    let info = said(folder.path(), &["one", "hosts", "--trace-offset", "hosts=-1.5ms"]);
    let told = |line: &&str| line.starts_with("clock ") || line.starts_with("span ");
    let lines: Vec<&str> = info.lines().map(str::trim_start).filter(told).collect();
    expect![[r#"
        clock     monotonic, 1,000,000,000 Hz, since 1970
        clock     monotonic, 1,000,000,000 Hz, since 1970, shifted by -0.001500000 s
        span      68.168 ms  from 2026-11-21T00:02:52.253763261Z to 2026-11-21T00:02:52.321931298Z"#]]
    .assert_eq(&lines.join("\n"));
    let events = said(folder.path(), &["count", "--by", "trace", "one", "hosts", "--trace-offset", "hosts=1d"]);
    expect![[r#"
        events   share  events/s  trace
         2,400   50.0%         0  hosts/two
         2,400   50.0%         0  one
         4,800  100.0%         0  all events
    "#]]
    .assert_eq(&events);
}

/// Runs of states lie in the cache: those of other offsets are others.
#[test]
fn what_is_remembered_is_of_one_offset() {
    let folder = two_copies();
    let state = ["state", "--at", "1795219372.255339", "--own", "own.toml", "--csv", "one"];
    let expected = said(folder.path(), &state);
    expect![[r#"
        key,state,since,for,until,uncertain
        29837,0,1795219372255297979,41021,1795219372258410634,false
        29838,1,1795219372255319831,19169,1795219372255559729,false
        29836,2,1795219372255338980,20,1795219372255544156,false
    "#]]
    .assert_eq(&expected);
    let shifted = [&state[..], &["--trace-offset", "one=-100us"]].concat();
    check(
        folder.path(),
        &shifted,
        &expect![[r#"
        key,state,since,for,until,uncertain
        29837,0,1795219372255197979,141021,1795219372258310634,false
        29838,1,1795219372255219831,119169,1795219372255459729,false
        29836,2,1795219372255238980,100020,1795219372255444156,false
    "#]],
    );
    assert_eq!(said(folder.path(), &state), expected);
}

/// What one trace has in a period, both have two periods later.
#[test]
fn analyses_take_both_as_one() {
    let folder = two_copies();
    let rates = ["rates", "--period", "20ms", "--csv", "--table", "course", "one"];
    check(
        folder.path(),
        &rates,
        &expect![[r#"
            period_begin,period_end,name,count
            1795219372255263261,1795219372275263261,jobs:submit,158
            1795219372255263261,1795219372275263261,jobs:begin,126
            1795219372255263261,1795219372275263261,jobs:chunk,378
            1795219372255263261,1795219372275263261,jobs:end,123
            1795219372275263261,1795219372295263261,jobs:submit,122
            1795219372275263261,1795219372295263261,jobs:begin,124
            1795219372275263261,1795219372295263261,jobs:chunk,372
            1795219372275263261,1795219372295263261,jobs:end,124
            1795219372295263261,1795219372315263261,jobs:submit,120
            1795219372295263261,1795219372315263261,jobs:begin,124
            1795219372295263261,1795219372315263261,jobs:chunk,372
            1795219372295263261,1795219372315263261,jobs:end,124
            1795219372315263261,1795219372321931298,jobs:begin,26
            1795219372315263261,1795219372321931298,jobs:chunk,78
            1795219372315263261,1795219372321931298,jobs:end,29
        "#]],
    );
    let both = [&rates[..], &["hosts", "--trace-offset", "hosts=40ms"]].concat();
    check(
        folder.path(),
        &both,
        &expect![[r#"
            period_begin,period_end,name,count
            1795219372255263261,1795219372275263261,jobs:submit,158
            1795219372255263261,1795219372275263261,jobs:begin,126
            1795219372255263261,1795219372275263261,jobs:chunk,378
            1795219372255263261,1795219372275263261,jobs:end,123
            1795219372275263261,1795219372295263261,jobs:submit,122
            1795219372275263261,1795219372295263261,jobs:begin,124
            1795219372275263261,1795219372295263261,jobs:chunk,372
            1795219372275263261,1795219372295263261,jobs:end,124
            1795219372295263261,1795219372315263261,jobs:submit,278
            1795219372295263261,1795219372315263261,jobs:begin,250
            1795219372295263261,1795219372315263261,jobs:chunk,750
            1795219372295263261,1795219372315263261,jobs:end,247
            1795219372315263261,1795219372335263261,jobs:submit,122
            1795219372315263261,1795219372335263261,jobs:begin,150
            1795219372315263261,1795219372335263261,jobs:chunk,450
            1795219372315263261,1795219372335263261,jobs:end,153
            1795219372335263261,1795219372355263261,jobs:submit,120
            1795219372335263261,1795219372355263261,jobs:begin,124
            1795219372335263261,1795219372355263261,jobs:chunk,372
            1795219372335263261,1795219372355263261,jobs:end,124
            1795219372355263261,1795219372361931298,jobs:begin,26
            1795219372355263261,1795219372361931298,jobs:chunk,78
            1795219372355263261,1795219372361931298,jobs:end,29
        "#]],
    );
}

#[test]
fn mistakes() {
    let folder = two_copies();
    check(
        folder.path(),
        &["print", "one", "hosts", "--trace-offset", "two=1ms"],
        &expect![[r#"
        error: two: an offset is given for its clocks, but it is none of the traces, nor has it one below; there are: one, hosts/two
        exit status 1
    "#]],
    );
    check(
        folder.path(),
        &["cpu", "one", "--trace-offset", "one/=1ms", "--trace-offset", "one=2ms"],
        &expect![[r#"
        error: one: two offsets are given for its clocks, +1000000 ns and +2000000 ns; one is expected
        exit status 1
    "#]],
    );
    check(
        folder.path(),
        &["info", "one", "--trace-offset", "one=soon"],
        &expect![[r#"
        error: invalid value 'one=soon' for '--trace-offset <PATH=TIME>': an offset is the path of a trace, `=`, and a duration with or without a sign: `host2/=+1.5ms`, `host2/=-3us`

        For more information, try '--help'.
        exit status 2
    "#]],
    );
    check(
        folder.path(),
        &["filter", "id == 1", "--trace-offset", "one=1s"],
        &expect![[r#"
            error: --trace-offset is of a trace that is named: kymo filter --trace-offset ... EXPR TRACE

            Usage: kymo filter [OPTIONS] <EXPR> [TRACE]...

            For more information, try '--help'.
            exit status 2
        "#]],
    );
}
