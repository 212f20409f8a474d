//! The `kymo` program: the command, started by a system.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(kymo_cli::run_command(std::env::args_os().collect()))
}
