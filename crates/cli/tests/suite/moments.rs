//! Own states at an instant, and periods from event to event, as people ask for them.

use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};

use crate::program;

/// Runs the program on the demo; `OWN` among the words is a file that declares states of workers.
fn check(words: &[&str], expected: &Expect) {
    let demo: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo");
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let own = folder.path().join("own.toml");
    let text = r#"
        name = "jobs"
        [[states]]
        name = "worker"
        key = "$ctx.vtid"
        set = [{ event = "jobs:begin", to = { field = "id" } }, { event = "jobs:end" }]
    "#;
    std::fs::write(&own, text).expect("the folder can be written to");
    let words = words.iter().map(|word| if *word == "OWN" { own.as_os_str() } else { std::ffi::OsStr::new(word) });
    let mut kymo = program::kymo();
    kymo.args(words).arg(demo).env("TZ", "UTC").env("LC_ALL", "C.UTF-8").env("XDG_CACHE_HOME", folder.path());
    let done = kymo.output().expect("the program is there");
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    expected.assert_eq(&(String::from_utf8_lossy(&done.stdout).replace("\r\n", "\n") + &errors));
}

/// No event of the demo says which thread runs: own states are the whole answer. What `kymo print` shows around that time:
///
/// ```text
/// .255297979 begin vtid 29837 id 0    .255319831 begin vtid 29838 id 1    .255338980 begin vtid 29836 id 2
/// .255544156 end vtid 29836           .255559729 end vtid 29838           .258410634 end vtid 29837
/// ```
#[test]
fn own_states() {
    check(
        &["state", "--at", "1795219372.255339", "--own", "OWN", "--csv"],
        &expect![[r#"
            key,state,since,for,until,uncertain
            29837,0,1795219372255297979,41021,1795219372258410634,false
            29838,1,1795219372255319831,19169,1795219372255559729,false
            29836,2,1795219372255338980,20,1795219372255544156,false
        "#]],
    );
    check(
        &["state", "--at", "1795219372.255559729", "--own", "OWN", "--csv"],
        &expect![[r#"
            key,state,since,for,until,uncertain
            29837,0,1795219372255297979,261750,1795219372258410634,false
            29836,3,1795219372255551878,7851,1795219372255777444,false
        "#]],
    );
}

/// Jobs overlap: each counts all events from its begin to its end, which is not in it.
#[test]
fn periods_from_event_to_event() {
    let period = "job : jobs:begin if id == 1 || id == 2 : jobs:end if id == $begin.id";
    let captures = "job : id=id, worker=worker : result=result";
    check(
        &["analyse", "count", "--period", period, "--period-captures", captures, "--csv", "--table", "per-class"],
        &expect![[r#"
            period_begin,period_end,period_name,capture_1,capture_2,capture_3,period_uncertain,name,count
            1795219372255319831,1795219372255559729,job,1,2,1,false,jobs:chunk,9
            1795219372255319831,1795219372255559729,job,1,2,1,false,jobs:begin,3
            1795219372255319831,1795219372255559729,job,1,2,1,false,jobs:submit,2
            1795219372255319831,1795219372255559729,job,1,2,1,false,jobs:end,1
            1795219372255338980,1795219372255544156,job,2,0,2,false,jobs:chunk,3
            1795219372255338980,1795219372255544156,job,2,0,2,false,jobs:begin,1
            1795219372255338980,1795219372255544156,job,2,0,2,false,jobs:submit,1
        "#]],
    );
}
