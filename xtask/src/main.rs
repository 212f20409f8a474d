//! Every chore of the project: `cargo xtask check`, `cargo xtask cross`.

mod cross;
mod functions;
mod house;
mod sizes;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo xtask check               formatting, clippy, docs, the house table, unsafe, sizes, links
cargo xtask check --sql         the same, and SQL, whose library takes minutes
cargo xtask cross               type checks for other platforms, tests under emulators that are installed
cargo xtask cross --types-only  type checks for other platforms
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let problems = match words[..] {
        ["check"] => check("--features=kymo-cli/export"),
        ["check", "--sql"] => check("--features=kymo-cli/sql"),
        ["cross"] => cross::run(&root(), false),
        ["cross", "--types-only"] => cross::run(&root(), true),
        _ => {
            print!("{HELP}");
            return ExitCode::from(2);
        }
    };
    for problem in &problems {
        eprintln!("{problem}");
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The repository.
fn root() -> PathBuf {
    // Clones may share a target folder: cargo says where it runs this, which may have been built elsewhere.
    let own = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    own.parent().expect("xtask lies in the repository").to_owned()
}

fn check(features: &str) -> Vec<String> {
    let root = root();
    let mut problems = house::check(&root);
    problems.extend(sizes::check(&root));
    let cargo = |arguments: &[&str]| cargo(&root, arguments, &[]);
    problems.extend(cargo(&["fmt", "--all", "--check"]));
    problems.extend(cargo(&[
        "clippy",
        "--quiet",
        "--profile",
        "ci",
        "--workspace",
        "--all-targets",
        features,
        "--",
        "--deny",
        "warnings",
    ]));
    problems.extend(self::cargo(
        &root,
        &["doc", "--quiet", "--profile", "ci", "--workspace", "--no-deps"],
        &[("RUSTDOCFLAGS", "--deny warnings")],
    ));
    problems
}

/// Runs cargo; what it said went to the terminal already.
pub(crate) fn cargo(root: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Option<String> {
    let status = Command::new("cargo").args(arguments).envs(environment.iter().copied()).current_dir(root).status();
    match status {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("cargo {}: {status}", arguments.join(" "))),
        Err(error) => Some(format!("cargo {}: {error}", arguments.join(" "))),
    }
}
