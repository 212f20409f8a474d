//! `cargo xtask steady`: which tests fail by luck. Each test binary runs many times: alone, beside busy loops, and on one processor.
//!
//! A test that fails once in a hundred runs stops every tenth run of ten such tests, and whoever sees it looks for a fault where there is none.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::ci::{TestBinary, test_binaries};

/// What else the machine does while a binary runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// Nothing.
    Alone,
    /// As many loops that never wait as there are processors.
    Busy,
    /// The binary has one processor, which its threads share.
    OneProcessor,
}

impl Load {
    /// Every second run is under load.
    fn of_run(run: usize) -> Self {
        match run % 4 {
            1 => Self::Busy,
            3 => Self::OneProcessor,
            _ => Self::Alone,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Busy => "beside busy loops",
            Self::OneProcessor => "on one processor",
        }
    }
}

/// Runs the binaries whose name contains one of the words (all, without words) and the browser's tests; what failed.
pub(crate) fn run(root: &Path, runs: usize, browser_runs: usize, words: &[&str]) -> Vec<String> {
    if let Some(problem) = crate::ci::build_tests(root) {
        return vec![problem];
    }
    let Some(binaries) = test_binaries(root) else {
        return vec!["cargo did not say where it put each test binary".to_owned()];
    };
    if !words.is_empty() && !binaries.iter().any(|binary| words.iter().any(|word| binary.name.contains(word))) {
        let names: Vec<&str> = binaries.iter().map(|binary| binary.name.as_str()).collect();
        return vec![format!("no test binary is called so; there are {}", names.join(", "))];
    }
    let folder = crate::ci::target(root).join("steady");
    fs::create_dir_all(&folder).expect("the target folder can be written");
    let mut failures: BTreeMap<String, usize> = BTreeMap::new();
    for binary in
        binaries.iter().filter(|binary| words.is_empty() || words.iter().any(|word| binary.name.contains(word)))
    {
        let begun = Instant::now();
        let mut failed = 0;
        for number in 0..runs {
            let load = Load::of_run(number);
            let Err(output) = under(load, || test(binary, load)) else { continue };
            failed += 1;
            let log = folder.join(format!("{}-{number}.log", binary.name.replace('/', "-")));
            let _ = fs::write(&log, &output);
            for test in failed_tests(&output) {
                println!("{} {test} failed {}: {}", binary.name, load.name(), log.display());
                *failures.entry(format!("{} {test}", binary.name)).or_default() += 1;
            }
        }
        println!("{}: {failed} of {runs} runs failed, {:.0} s", binary.name, begun.elapsed().as_secs_f64());
    }
    for number in 0..browser_runs {
        // Every second run is beside busy loops. No user has a browser on one processor.
        let load = if number % 2 == 1 { Load::Busy } else { Load::Alone };
        let result = under(load, || browser(root));
        println!("browser, {}: {}", load.name(), if result.is_ok() { "passed" } else { "FAILED" });
        if let Err(output) = result {
            let log = folder.join(format!("browser-{number}.log"));
            let _ = fs::write(&log, &output);
            println!("  {}", log.display());
            *failures.entry(format!("browser, {}", load.name())).or_default() += 1;
        }
    }
    failures.into_iter().map(|(test, count)| format!("{test}: failed {count} times")).collect()
}

/// Does something beside busy loops, where they are wanted.
fn under<T>(load: Load, run: impl FnOnce() -> T) -> T {
    let count = if load == Load::Busy { std::thread::available_parallelism().map_or(2, usize::from) } else { 0 };
    let _loops: Vec<BusyLoop> = (0..count).map(|_| BusyLoop::new()).collect();
    run()
}

/// A process that never waits, until it is dropped.
struct BusyLoop(Child);

impl BusyLoop {
    fn new() -> Self {
        Self(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh is everywhere"))
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a binary once; what it printed, where it failed.
fn test(binary: &TestBinary, load: Load) -> Result<(), String> {
    let mut command = match load {
        Load::OneProcessor => {
            let mut command = Command::new("taskset");
            command.args(["--cpu-list", "0"]).arg(&binary.path).arg("--test-threads=4");
            command
        }
        _ => Command::new(&binary.path),
    };
    command.current_dir(&binary.folder).env("CARGO_MANIFEST_DIR", &binary.folder).env("CARGO", "cargo");
    ended(command)
}

fn browser(root: &Path) -> Result<(), String> {
    let mut command = Command::new("scripts/web.sh");
    command.arg("browser").current_dir(root);
    command.env("KYMO", crate::ci::target(root).join("stages/kymo"));
    ended(command)
}

fn ended(mut command: Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let texts = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    Err(format!("{}\n{}", texts.concat(), output.status))
}

/// Names of the tests that failed, by libtest's lines; the whole binary, if it says none.
fn failed_tests(output: &str) -> Vec<String> {
    let failed = output.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    let failed: Vec<String> = failed.map(str::to_owned).collect();
    if failed.is_empty() { vec!["(the whole binary)".to_owned()] } else { failed }
}

/// Reads `[--runs N] [--browser N] [WORD...]`.
pub(crate) fn arguments<'a>(words: &[&'a str]) -> Option<(usize, usize, Vec<&'a str>)> {
    let (mut runs, mut browser_runs, mut names) = (30, 0, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--runs" => runs = words.next()?.parse().ok()?,
            "--browser" => browser_runs = words.next()?.parse().ok()?,
            word if word.starts_with('-') => return None,
            word => names.push(word),
        }
    }
    Some((runs, browser_runs, names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_named() {
        let output = "test one ... ok\ntest a::two ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed\n";
        assert_eq!(failed_tests(output), ["a::two"]);
        assert_eq!(failed_tests("killed"), ["(the whole binary)"]);
    }

    #[test]
    fn half_of_the_runs_are_under_load() {
        assert_eq!((0..30).filter(|run| Load::of_run(*run) != Load::Alone).count(), 15);
    }

    #[test]
    fn a_busy_loop_ends_when_it_is_dropped() {
        let busy = BusyLoop::new();
        let process = std::path::PathBuf::from(format!("/proc/{}", busy.0.id()));
        drop(busy);
        assert!(!process.exists());
    }

    #[test]
    fn arguments_are_counts_and_words() {
        assert_eq!(arguments(&["--runs", "3", "cli", "--browser", "2"]), Some((3, 2, vec!["cli"])));
        assert_eq!(arguments(&["--fast"]), None);
    }
}
