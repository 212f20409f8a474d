//! The test itself as a program, started by an emulator where the tests run in one that cannot start others.

use std::process::Command;

/// This program with no arguments yet. `cargo xtask cross` names the emulator.
pub fn this() -> Command {
    let program = std::env::current_exe().expect("it runs");
    let emulator = std::env::var("KYMO_TEST_EMULATOR").unwrap_or_default();
    let mut words = emulator.split_whitespace();
    let Some(first) = words.next() else { return Command::new(program) };
    let mut command = Command::new(first);
    command.args(words).arg(program);
    command
}
