//! The program under test, started by an emulator where the tests themselves run in one that cannot start others.

use std::process::Command;

/// `kymo` with no arguments yet. `cargo xtask cross` names the emulator.
pub fn kymo() -> Command {
    let program = env!("CARGO_BIN_EXE_kymo");
    let emulator = std::env::var("KYMO_TEST_EMULATOR").unwrap_or_default();
    let mut words = emulator.split_whitespace().chain([program]);
    let mut command = Command::new(words.next().expect("the program at least"));
    command.args(words);
    command
}
