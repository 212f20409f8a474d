//! Tests that need a process for themselves: this very program is started again, and runs nothing else.
//!
//! Of some things a process has one: its tracer, its limits, its handlers of signals, its number of threads. A test
//! that changes or counts them would be seen, and be disturbed, by those that run beside it in one binary.

use std::path::Path;
use std::process::Command;

/// Names the test that a process was started for.
const ALONE: &str = "KYMO_TEST_ALONE";
/// Where programs have the files that recorders look for.
const RUNTIME: &str = "XDG_RUNTIME_DIR";

/// This program with no arguments yet, started by an emulator where the tests run in one that cannot start others.
/// `cargo xtask cross` names the emulator.
pub fn this() -> Command {
    let program = std::env::current_exe().expect("it runs");
    let emulator = std::env::var("KYMO_TEST_EMULATOR").unwrap_or_default();
    let mut words = emulator.split_whitespace();
    let Some(first) = words.next() else { return Command::new(program) };
    let mut command = Command::new(first);
    command.args(words).arg(program);
    command
}

/// Runs what a test does in a process that does nothing else, and that has a folder for its files from its begin. The
/// test is named as libtest names it: `module::function`.
pub fn run(test: &str, body: impl FnOnce(&Path)) {
    if std::env::var_os(ALONE).is_some_and(|wanted| wanted == test) {
        let folder = std::env::var_os(RUNTIME).expect("who started this has said it");
        return body(Path::new(&folder));
    }
    let memory = Path::new("/dev/shm");
    let within = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let folder = within.join(format!("kymo-alone-{}-{}", std::process::id(), test.replace("::", "-")));
    std::fs::create_dir_all(&folder).expect("there is room");
    let mut command = this();
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(ALONE, test).env(RUNTIME, &folder);
    let output = command.output().expect("it starts");
    // The test may have removed it.
    let _ = std::fs::remove_dir_all(&folder);
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // A test that was renamed would not be found, and nothing would fail.
    let is_passed = output.status.success() && said.contains("test result: ok. 1 passed;");
    assert!(is_passed, "{test} alone: {}\n{said}{told}", output.status);
    // The child's output has the lines `NOT TESTED`.
    print!("{said}");
    eprint!("{told}");
}
