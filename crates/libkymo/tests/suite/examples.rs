//! libkymo is installed as people do, and the examples are built by their own files and run.

use std::path::PathBuf;
use std::process::Command;

use crate::programs::{self, Folder, Value, has, library, root};

/// Headers, libraries and kymo.pc below a folder; `None`: something is missing, which was said.
fn install(folder: &Folder) -> Option<PathBuf> {
    if !has("make") || !has("pkg-config") {
        return None;
    }
    let prefix = folder.path().join("prefix");
    let target = library().parent().expect("it has one");
    let mut make = Command::new("make");
    // What is built already is not built again.
    make.args(["-s", "-o", "libkymo", "install-libkymo", "-C"]).arg(root());
    make.arg(format!("PREFIX={}", prefix.display())).arg(format!("CARGO_TARGET_DIR={}", target.display()));
    let output = make.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(prefix)
}

/// Builds an example where it disturbs nobody, runs it, and hands over what it recorded.
fn example(name: &str, program: &str, arguments: &[&str], compilers: &[&str]) -> Option<(Folder, programs::Recording)> {
    let folder = Folder::new();
    if !compilers.iter().all(|compiler| has(compiler)) {
        return None;
    }
    let prefix = install(&folder)?;
    let own = folder.path().join(name);
    std::fs::create_dir(&own).expect("it is new");
    for file in std::fs::read_dir(root().join("examples").join(name)).expect("it is there") {
        let file = file.expect("it can be read");
        if file.file_type().expect("it has one").is_file() {
            std::fs::copy(file.path(), own.join(file.file_name())).expect("there is room");
        }
    }
    let mut make = Command::new("make");
    make.args(["-s", "-B", "-C"]).arg(&own).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let output = make.output().expect("it starts");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut command = folder.command(&own.join(program));
    let mut recordings = folder.run(command.args(arguments).env("LD_LIBRARY_PATH", prefix.join("lib")));
    assert_eq!(recordings.len(), 1);
    let recording = recordings.remove(0);
    assert_eq!(recording.lost(), 0);
    Some((folder, recording))
}

#[test]
fn of_c() {
    let Some((_folder, recording)) = example("c", "jobs", &[], &["cc"]) else { return };
    assert_eq!(["jobs:queued", "jobs:done", "kymo:counter"].map(|name| recording.count(name)), [1000; 3]);
    assert_eq!((recording.count("kymo:begin"), recording.count("kymo:end")), (1000, 1000));
    assert!(recording.count("kymo:log") > 0);
}

#[test]
fn of_cpp() {
    let Some((_folder, recording)) = example("cpp", "words", &[], &["g++"]) else { return };
    assert_eq!(["words:asked", "words:found", "kymo:send", "kymo:receive"].map(|name| recording.count(name)), [200; 4]);
    let drums = recording.of_name("words:found").filter(|found| found.values[1] == Value::Text("drum".to_owned()));
    let places: Vec<&Value> = drums.map(|found| &found.values[2]).collect();
    assert_eq!(places.len(), 50);
    assert!(places.iter().all(|places| matches!(places, Value::Elements(bytes) if bytes.len() == 4 * 2000)));
}

#[test]
fn of_a_server() {
    let Some((folder, recording)) = example("server", "server", &["1"], &["cc"]) else { return };
    let begun = recording.count("server:request_begin");
    assert!(begun > 10 && recording.count("server:request_end") == begun, "{begun} requests");

    // It serves as well where nobody wants its events, whose arguments are not evaluated then.
    let mut alone = Command::new(folder.path().join("server/server"));
    let output = alone
        .arg("1")
        .env("KYMO", "off")
        .env("LD_LIBRARY_PATH", folder.path().join("prefix/lib"))
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", output.status);
    assert!(String::from_utf8_lossy(&output.stdout).ends_with(" requests served\n"));
}
