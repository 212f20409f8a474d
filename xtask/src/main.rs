//! Every chore of the project: `cargo xtask check`, `cargo xtask test`, `cargo xtask cross`.

mod absent;
mod ci;
mod counts;
mod cross;
mod cycles;
mod functions;
mod house;
mod inputs;
mod measure;
mod names;
mod sizes;
mod stages;
mod steady;
mod unified;
mod words;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo xtask check               formatting, the house table, unsafe, sizes, links, clippy, docs
cargo xtask house               the same without clippy and docs: seconds
cargo xtask measure [FOLDER...] figures of the house, of this clone or of others side by side
cargo xtask words               lowers the limits of `cargo xtask house` for words that hide subjects
cargo xtask test                every test; a stage that passed runs again only when one of its inputs has changed
cargo xtask test --all          every test
cargo xtask test [--all] WORD...  only stages whose name has a WORD in it, as `conformance`, `browser/page` or `kymo-scan`, and what they need
cargo xtask ci [--all]          what CI runs: all tests, the demo, `check`, type checks for other platforms
cargo xtask steady [--runs N] [--browser N] [WORD...]
                                runs each test binary 30 or N times, half of them under load, and the browser's tests N times; names what
                                failed. WORDs choose binaries, as `kymo-cli/suite`
cargo xtask cross               type checks for other platforms, tests under emulators that are installed
cargo xtask cross --types-only  type checks for other platforms
";

/// The features that tests, clippy and documentation are built with: everything. One set, so that nothing is compiled for each of them again.
const FULL: &str = "kymo-cli/sql,kymo-python/sql";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let problems = match words[..] {
        ["check"] => check(),
        ["house"] => house(),
        ["measure", ref folder @ ..] => {
            let folders: Vec<PathBuf> = folder.iter().map(PathBuf::from).collect();
            let own = root();
            let all: Vec<&Path> =
                if folders.is_empty() { vec![&own] } else { folders.iter().map(|at| &**at).collect() };
            measure::print(&all);
            Vec::new()
        }
        ["words"] => {
            words::lower(&root());
            Vec::new()
        }
        ["test", "--all", ref words @ ..] => ci::ci(&root(), ci::Part::Tests, true, words),
        ["test", ref words @ ..] => ci::ci(&root(), ci::Part::Tests, false, words),
        ["ci"] => ci::ci(&root(), ci::Part::Everything, false, &[]),
        ["ci", "--all"] => ci::ci(&root(), ci::Part::Everything, true, &[]),
        ["cross"] => cross::run(&root(), false),
        ["cross", "--types-only"] => cross::run(&root(), true),
        ["steady", ..] => match steady::arguments(&words[1..]) {
            Some((runs, browser_runs, names)) => steady::run(&root(), runs, browser_runs, &names),
            None => {
                print!("{HELP}");
                return ExitCode::from(2);
            }
        },
        // For stages: where cargo put a test binary, by what it said when it built it.
        ["executable", json, package, target, kind] => {
            let Some(path) = ci::executable(json, package, target, kind) else {
                eprintln!("{json} names no test binary {target} of {package}");
                return ExitCode::FAILURE;
            };
            println!("{path}");
            Vec::new()
        }
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

/// What needs no compiler.
fn house() -> Vec<String> {
    let root = root();
    let mut problems = house::check(&root);
    problems.extend(sizes::check(&root));
    problems.extend(cycles::check(&root));
    problems.extend(absent::check(&root));
    problems.extend(words::check(&root));
    problems.extend(names::check(&root));
    problems.extend(unified::check(&root));
    problems.extend(cargo(&root, &["fmt", "--all", "--check"], &[]));
    problems
}

fn check() -> Vec<String> {
    let mut problems = house();
    problems.extend(ci::lints(&root()));
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
