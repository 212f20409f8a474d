//! Periods themselves, as people and programs ask for them: how long, of what kind, of what they consist.

use std::path::Path;
use std::process::Output;

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::program;
use crate::schema;

fn kymo(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    program::kymo().args(arguments).current_dir(root).env("TZ", "UTC").output().expect("the program is there")
}

/// Standard output; of standard error its lines, and the exit status where it is not 0.
fn check(arguments: &[&str], expected: &Expect) {
    let done = kymo(&[arguments, &["examples/traces/demo"]].concat());
    let mut text = String::from_utf8_lossy(&done.stdout).replace("\r\n", "\n");
    for line in String::from_utf8_lossy(&done.stderr).lines() {
        text += &format!("stderr: {line}\n");
    }
    if let Some(status) = done.status.code().filter(|status| *status != 0) {
        text += &format!("exit status {status}\n");
    }
    expected.assert_eq(&text);
}

const JOB: &str = "job : jobs:submit : jobs:end if id == $begin.id";
const RUN: &str = "run(job) : jobs:begin if id == $parent.id : jobs:end if id == $begin.id";
const TOLD: &str = "job : kind=kind : result=result";

#[test]
fn for_people() {
    check(
        &["periods", "--period", JOB, "--period-captures", TOLD, "--top", "3", "--bins", "3"],
        &expect![[r#"
            Periods by name  2026-11-21 00:02:52.255263261 to 00:02:52.321931298 (66.668 ms)
            Name  Intervals   Total     Min  Average      Max  Deviation     50 %                  90 %                  99 %                99.9 %  Never ended  Lost inside  Ended nothing
            job         400  2.05 s  266 us  5.13 ms  8.43 ms    1.29 ms  5.33 ms [5.32, 5.33]  5.54 ms [5.54, 5.55]  8.30 ms [8.30, 8.31]  8.43 ms            0            0              0

            The longest periods  2026-11-21 00:02:52.255263261 to 00:02:52.321931298 (66.668 ms)
            Duration               Begin                 End  Name  Within that of  Kind  Result  Uncertain
             8.43 ms  00:02:52.260222001  00:02:52.268649928  job                -  5     66             no
             8.33 ms  00:02:52.313598498  00:02:52.321931298  job                -  5     396            no
             8.31 ms  00:02:52.310081810  00:02:52.318396353  job                -  5     374            no
            ... and 397 more rows (--top all)

            Never ended  2026-11-21 00:02:52.255263261 to 00:02:52.321931298 (66.668 ms)
            nothing

            How long periods last, job  2026-11-21 00:02:52.255263261 to 00:02:52.321931298 (66.668 ms)
               From    Below  Intervals
             266 us   841 us          6
             841 us  2.66 ms         10
            2.66 ms  8.43 ms        384
        "#]],
    );
}

/// How long jobs wait and run, by kind.
#[test]
fn of_what_they_consist() {
    let asked = ["periods", "--period", JOB, "--period", RUN, "--period-captures", TOLD];
    let by_kind = ["--aggregate-by", "job", "--select", "run", "--group-by", "job.kind"];
    check(
        &[&asked[..], &by_kind, &["--csv", "--table", "per-part"]].concat(),
        &expect![[r#"
            part,group_1,periods,with,count,total,min,avg,max,stdev,p50,p50_low,p50_high,p90,p90_low,p90_high,p99,p99_low,p99_high,p999,share,covered,covered_share,never_ended,lost_inside
            run,2,121,121,121,26757831,202082,221139,240399,5088,219519,219392,219647,227455,227328,227583,235391,235264,235519,240399,0.045293485255257504,26757831,0.045293485255257504,0,0
            ,2,121,121,,564007725,60426,4661221,5346524,970275,5099519,5095424,5103615,5271551,5267456,5275647,5343854,5341184,5346524,5346524,0.9547065147447426,564007725,0.9547065147447426,0,0
            run,0,121,121,121,26893290,185621,222259,252577,7394,220031,219904,220159,229247,229120,229375,244095,243968,244223,252577,0.045655730423754814,26893290,0.045655730423754814,0,0
            ,0,121,121,,562151935,273184,4645884,5342397,990085,5099519,5095424,5103615,5263359,5259264,5267455,5312511,5308416,5316607,5342397,0.9543442695762452,562151935,0.9543442695762452,0,0
            run,1,121,121,121,26765747,210364,221205,242061,4800,219519,219392,219647,227455,227328,227583,239999,239872,240127,242061,0.045562482961038944,26765747,0.045562482961038944,0,0
            ,1,121,121,,560685710,41667,4633766,5349218,1041508,5091327,5087232,5095423,5255167,5251072,5259263,5328895,5324800,5332991,5349218,0.9544375170389611,560685710,0.9544375170389611,0,0
            run,5,37,37,37,113807977,3026877,3075891,3186790,23079,3074047,3072000,3076095,3090431,3088384,3092479,3186790,3186790,3186790,3186790,0.4023352467534891,113807977,0.4023352467534891,0,0
            ,5,37,37,,169060546,34718,4569204,5355762,1157962,5107711,5103616,5111807,5230591,5226496,5234687,5355762,5355762,5355762,5355762,0.5976647532465109,169060546,0.5976647532465109,0,0
        "#]],
    );
    let each = ["--aggregate-by", "job", "--order-by", "time", "--top", "4", "--csv", "--table", "per-parent"];
    check(
        &[&asked[..], &each].concat(),
        &expect![[r#"
            duration,begin,end,capture_1,capture_2,part,count,total,min,avg,max,stdev,share,covered,covered_share,never_ended,uncertain
            3147373,1795219372255263261,1795219372258410634,5,0,run,1,3112655,3112655,3112655,3112655,,0.9889692133725491,3112655,0.9889692133725491,0,false
            3147373,1795219372255263261,1795219372258410634,5,0,,,34718,,,,,0.011030786627450892,34718,0.011030786627450892,0,false
            281565,1795219372255278164,1795219372255559729,1,1,run,1,239898,239898,239898,239898,,0.8520164082893825,239898,0.8520164082893825,0,false
            281565,1795219372255278164,1795219372255559729,1,1,,,41667,,,,,0.14798359171061745,41667,0.14798359171061745,0,false
        "#]],
    );
}

#[test]
fn as_a_log() {
    let asked = ["periods", "--period", JOB, "--period", RUN, "--period-captures", "run : worker=worker", "--csv"];
    let log = ["--table", "periods", "--order-by", "hierarchy", "--max-duration", "400us", "--filter", "id < 5"];
    check(
        &[&asked[..], &log].concat(),
        &expect![[r#"
            duration,begin,end,name,parent,capture_1,uncertain
            281565,1795219372255278164,1795219372255559729,job,,,false
            239898,1795219372255319831,1795219372255559729,run,1795219372255278164,2,false
            265602,1795219372255278554,1795219372255544156,job,,,false
            205176,1795219372255338980,1795219372255544156,run,1795219372255278554,0,false
            225566,1795219372255551878,1795219372255777444,run,1795219372255278694,0,false
            234145,1795219372255559889,1795219372255794034,run,1795219372255278815,2,false
        "#]],
    );
    let end = ["--table", "open", "--end", "1795219372.2555", "--filter", "id < 4"];
    check(
        &[&asked[..], &end].concat(),
        &expect![[r#"
            begin,name,parent,parent_end,capture_1,uncertain
            1795219372255263261,job,,,,false
            1795219372255278164,job,,,,false
            1795219372255278554,job,,,,false
            1795219372255278694,job,,,,false
            1795219372255297979,run,1795219372255263261,,1,false
            1795219372255319831,run,1795219372255278164,,2,false
            1795219372255338980,run,1795219372255278554,,0,false
        "#]],
    );
}

/// A table for each kind, or one with a column for each.
#[test]
fn distributions() {
    let asked = ["periods", "--period", JOB, "--period-captures", TOLD, "--group-by", "kind", "--bins", "3"];
    check(
        &[&asked[..], &["--csv", "--table", "distribution", "--freq-series"]].concat(),
        &expect![[r#"
            low,high,count,count,count,count
            265602,840868,2,2,2,0
            840868,2662100,3,3,4,0
            2662100,8427928,116,116,115,37
        "#]],
    );
}

#[test]
fn for_programs() {
    let done = kymo(&["periods", "--period", RUN.trim_start_matches("run(job)"), "--json", "examples/traces/demo"]);
    assert_eq!(done.status.code(), Some(2), "a parent that is not there: {done:?}");
    let asked = ["--period", JOB, "--period", RUN, "--period-captures", TOLD, "examples/traces/demo"];
    let aggregated = ["periods", "--lami", "--aggregate-by", "job", "--group-by", "job.kind"];
    for (words, part) in [
        ([&["lami", "periods"][..], &asked].concat(), "results"),
        ([&aggregated[..], &asked].concat(), "results"),
        (vec!["lami", "periods", "--metadata"], "metadata"),
    ] {
        let done = kymo(&words);
        let value: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{words:?}: {done:?}"));
        assert_eq!(schema::problems(&value, part), Vec::<String>::new(), "{words:?}");
        assert!(done.status.success(), "{words:?}");
    }
    let compatible = kymo(&[&["lami", "periods", "--test-compatibility"][..], &asked].concat());
    assert!(compatible.status.success() && compatible.stdout.is_empty(), "{compatible:?}");
}

/// The first line that is said of a wrong question.
fn refusal(arguments: &[&str]) -> String {
    let done = kymo(&[&["periods"][..], arguments, &["examples/traces/demo"]].concat());
    assert_eq!(done.status.code(), Some(2), "{done:?}");
    String::from_utf8_lossy(&done.stderr).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn what_cannot_be_asked() {
    let which = "error: which periods? --period 'NAME : BEGIN [: END]' says which events begin and end them";
    assert_eq!(refusal(&[]), which);
    assert_eq!(refusal(&["--period", "10ms"]), which);
    let mut said = String::new();
    for words in [&["--select", "run"][..], &["--aggregate-by", "job"], &["--group-by", "job.kind"], &["--cpu", "0"]] {
        said += &refusal(&[&["--period", JOB][..], words].concat());
        said += "\n";
    }
    expect![[r#"
        error: the following required arguments were not provided:
        error: no periods are within periods called `job`
        error: `job.kind` is no word that --period-captures tells of a period: it is `NAME.WORD`
        error: `periods` has nothing that --cpu could choose
    "#]]
    .assert_eq(&said);
    check(
        &["periods", "--period", "x : nothing", "--table", "statistics"],
        &expect![[r#"
        Periods by name
        nothing
        stderr: no event begins or ends a period
    "#]],
    );
}

/// A comparison with a field that no event has fits nothing: that is said.
#[test]
fn fields_that_nobody_has() {
    let job = "job : jobs:submit : jobs:end if number == $begin.id";
    check(
        &["periods", "--period", job, "--top", "1"],
        &expect![[r#"
            Periods by name  2026-11-21 00:02:52.255263261 to 00:02:52.321931298 (66.668 ms)
            Name  Intervals  Total  Min  Average  Max  Deviation  50 %  90 %  99 %  99.9 %  Never ended  Lost inside  Ended nothing
            job           0   0 ns    -        -    -          -     -     -     -       -          400            0            400

            The longest periods  2026-11-21 00:02:52.255263261 to 00:02:52.321931298 (66.668 ms)
            nothing

            Never ended  2026-11-21 00:02:52.255263261 to 00:02:52.321931298 (66.668 ms)
                         Begin  Name  Within that of  Which ended  Uncertain
            00:02:52.255263261  job                -            -         no
            ... and 399 more rows (--top all)

            How long periods last, job  2026-11-21 00:02:52.255263261 to 00:02:52.321931298 (66.668 ms)
            nothing
            stderr: no event that `jobs:end` fits has `number`
        "#]],
    );
    check(
        &["gaps", "--period", job],
        &expect![[r#"
            stderr: error: no period has begun and ended; 400 never ended; no event that `jobs:end` fits has `number`
            stderr: 
            stderr: Usage: kymo gaps [OPTIONS] <TRACE>...
            stderr: 
            stderr: For more information, try '--help'.
            exit status 2
        "#]],
    );
}
