//! The example in Rust is recorded as people would: events and spans of `tracing`, and its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::recorded::Place;

/// Builds an example by the name of its package, where this test was built.
pub(crate) fn built(package: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_kymo")).parent().expect("it is in a folder");
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let target = folder.parent().expect("it is in a folder");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--offline", "--package", package, "--profile", profile]);
    build.arg("--target-dir").arg(target).current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(build.status().expect("it starts").success(), "{build:?}");
    folder.join(package)
}

/// How many events of each name a trace has, in the order of names; the recorder's own ones aside.
fn counts(place: &Place, trace: &str) -> String {
    let text = place.says(&["print", trace], 0);
    let mut all = std::collections::BTreeMap::new();
    let names = text.lines().filter_map(|line| line.split(": {").next()?.rsplit(' ').next());
    let names = names.filter(|name| !["kymo:clock", "kymo:object", "kymo:process"].contains(name));
    names.for_each(|name| *all.entry(name).or_insert(0) += 1);
    all.iter().map(|(name, count)| format!("{count} {name}\n")).collect()
}

#[test]
fn the_example_is_recorded() {
    let place = Place::new();
    let program = built("example-server").display().to_string();
    place.says(&["record", "--output", "trace", "--", &program, "40"], 0);
    // Three pages are made once each, though three workers may see that one is missing: the lock is held meanwhile.
    let expected = "40 example_server:answered\n1 example_server:end\n10 example_server:not_found\n\
        40 example_server:request_begin\n40 example_server:request_close\n40 example_server:request_end\n\
        40 example_server:request_new\n40 example_server:request_record\n1 example_server:start\n\
        3 kymo:begin\n30 kymo:counter\n3 kymo:end\n40 kymo:receive\n40 kymo:send\n40 server:cache_look\n";
    assert_eq!(counts(&place, "trace"), expected);
    let pairs = place.says(&["pairs", "trace"], 0);
    let group = |name: &str| {
        let line = pairs.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{pairs}"));
        line.split_whitespace().nth(1).map(str::to_owned)
    };
    assert_eq!((group("request "), group("render ")), (Some("40".to_owned()), Some("3".to_owned())));
    place.says(&["check", "trace"], 0);
    let filter = ["record", "--output", "missing", "--event", "example_server:*", "--filter", "status == 404", "--"];
    place.says(&[&filter[..], &[&program, "40"]].concat(), 0);
    assert_eq!(counts(&place, "missing"), "10 example_server:request_record\n");
}
