//! Runs the stages of `make test` and of `.ci/run`: two at a time, unchanged ones not again, a table of seconds at the end.
//!
//! ```text
//! build ──> rust/session ──┐
//!       └─> conformance  ──┴─> table: seconds, processor seconds, tests
//! ```
//!
//! A stage is a shell command with the inputs that its result depends on. When it succeeds, the hash of its inputs is kept below the target
//! folder; a stage whose hash is kept already is *unchanged* and does not run. What comes after a stage that failed is not run; everything else is,
//! so that one run shows all failures.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::counts::{self, Counts};
use crate::inputs::{Input, Inputs};

/// One part of a run.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    /// What the table calls it.
    pub(crate) name: String,
    /// A command of bash, in the repository.
    pub(crate) command: String,
    /// Names of stages that end before this one begins.
    pub(crate) after: Vec<String>,
    /// What its result depends on, besides its command. `None`: the stage runs each time, because it is a build that checks by itself what
    /// is up to date.
    pub(crate) inputs: Option<Vec<Input>>,
    /// It runs cargo, which lets only one process at a time into a target folder.
    pub(crate) is_cargo: bool,
    /// How many halves of processors it keeps busy; all of them, if there are not so many.
    pub(crate) halves: usize,
}

/// Where and how stages run.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    /// The repository.
    pub(crate) root: &'a Path,
    /// Where logs and hashes are kept.
    pub(crate) folder: PathBuf,
    /// How many processors stages may keep busy together.
    pub(crate) processors: usize,
    /// Unchanged stages run, too.
    pub(crate) all: bool,
    /// Variables of the stages' environment.
    pub(crate) environment: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Unchanged,
}

#[derive(Debug)]
struct Done {
    number: usize,
    outcome: Outcome,
    wall: Duration,
    processor_s: f64,
    counts: Counts,
}

/// Runs the stages, in the order of the list as far as what they come after has passed. Returns the names of stages that failed.
pub(crate) fn run(run: &Run<'_>, stages: &[Stage]) -> Vec<String> {
    check_names(stages);
    fs::create_dir_all(&run.folder).expect("the target folder can be written");
    let lock = fs::File::create(run.folder.join("lock")).expect("the target folder can be written");
    // A program that another thread is just starting has the lock of a run that is over for a moment.
    let is_free = |attempt: u64| {
        std::thread::sleep(Duration::from_millis(10 * attempt));
        lock.try_lock().is_ok()
    };
    if !(0..10).any(is_free) {
        return vec![format!("another run uses {}", run.folder.display())];
    }
    let inputs = Inputs::new(run.root, &run.environment);
    let begun = Instant::now();
    let mut done: BTreeMap<usize, Done> = BTreeMap::new();
    let mut running: BTreeSet<usize> = BTreeSet::new();
    let (sender, receiver): (Sender<Done>, Receiver<Done>) = channel();
    let inputs = &inputs;
    std::thread::scope(|scope| {
        loop {
            while let Some(number) = next(run, stages, &done, &running) {
                running.insert(number);
                println!("[{:>5.0} s] {} begins", begun.elapsed().as_secs_f64(), stages[number].name);
                let sender = sender.clone();
                scope.spawn(move || {
                    let execute = std::panic::AssertUnwindSafe(|| execute(run, inputs, &stages[number], number));
                    // A stage that panics has failed; were nothing sent, the run would wait for it for ever.
                    sender.send(std::panic::catch_unwind(execute).unwrap_or_else(|_| Done::failed(number)))
                });
            }
            if running.is_empty() {
                break;
            }
            let ended = receiver.recv().expect("a stage runs, and says when it ends");
            running.remove(&ended.number);
            show(run, &stages[ended.number], &ended, begun);
            done.insert(ended.number, ended);
        }
    });
    let table = table(stages, &done, begun.elapsed());
    println!("\n{table}");
    fs::write(run.folder.join("table.txt"), &table).expect("the target folder can be written");
    let failed: Vec<&Stage> =
        done.values().filter(|done| done.outcome == Outcome::Failed).map(|done| &stages[done.number]).collect();
    for stage in &failed {
        println!("{}: how its output ends\n{}\n", stage.name, end_of(&lossy(&stage.file(run, "log"))));
    }
    failed.iter().map(|stage| format!("stage `{}` failed", stage.name)).collect()
}

impl Stage {
    /// Where a run keeps what the stage prints (`log`) and the hash of its inputs (`inputs`).
    fn file(&self, run: &Run<'_>, kind: &str) -> PathBuf {
        run.folder.join(format!("{}.{kind}", self.name.replace(['/', ' '], "-")))
    }
}

impl Done {
    fn failed(number: usize) -> Self {
        Self { number, outcome: Outcome::Failed, wall: Duration::ZERO, processor_s: 0.0, counts: Counts::default() }
    }
}

/// Every stage comes after stages that the list has before it: others would never begin.
fn check_names(stages: &[Stage]) {
    let mut names = BTreeSet::new();
    for stage in stages {
        for other in &stage.after {
            assert!(names.contains(other), "stage `{}` comes after `{other}`, which is no stage before it", stage.name);
        }
        assert!(names.insert(stage.name.clone()), "two stages are called `{}`", stage.name);
    }
}

/// The first stage that can begin.
fn next(run: &Run<'_>, stages: &[Stage], done: &BTreeMap<usize, Done>, running: &BTreeSet<usize>) -> Option<usize> {
    let needs = |number: &usize| stages[*number].halves.min(2 * run.processors);
    let busy: usize = running.iter().map(needs).sum();
    let cargo_runs = running.iter().any(|number| stages[*number].is_cargo);
    let has_passed = |name: &String| {
        done.iter().any(|(number, done)| stages[*number].name == *name && done.outcome != Outcome::Failed)
    };
    let is_ready = |number: &usize| {
        let stage = &stages[*number];
        let is_held_up = done.contains_key(number) || running.contains(number) || stage.is_cargo && cargo_runs;
        !is_held_up && stage.after.iter().all(has_passed)
    };
    // Stages behind a stage that needs several processors do not overtake it: it would never get them.
    let first = (0..stages.len()).find(is_ready)?;
    (running.is_empty() || busy + needs(&first) <= 2 * run.processors).then_some(first)
}

fn execute(run: &Run<'_>, inputs: &Inputs<'_>, stage: &Stage, number: usize) -> Done {
    let begun = Instant::now();
    let (log, kept) = (stage.file(run, "log"), stage.file(run, "inputs"));
    let hash = match stage.inputs.as_ref().map(|list| inputs.hash(&stage.command, list)).transpose() {
        Ok(hash) => hash,
        Err(problem) => {
            let _ = fs::write(&log, problem);
            return Done::failed(number);
        }
    };
    let is_kept = hash.is_some() && fs::read_to_string(&kept).ok() == hash;
    if is_kept && !run.all {
        let counts = counts::read(&lossy(&log));
        return Done { number, outcome: Outcome::Unchanged, wall: begun.elapsed(), processor_s: 0.0, counts };
    }
    // A run that is cut leaves no hash behind.
    let _ = fs::remove_file(&kept);
    let (passed, processor_s) = shell(run, &stage.command, &log);
    let text = lossy(&log);
    if let (true, Some(hash)) = (passed, hash) {
        fs::write(&kept, hash).expect("the target folder can be written");
    }
    let outcome = if passed { Outcome::Passed } else { Outcome::Failed };
    Done { number, outcome, wall: begun.elapsed(), processor_s, counts: counts::read(&text) }
}

/// The last lines of a stage's output, where test runners sum up failures: the end of a long run is all that some readers see.
fn end_of(text: &str) -> String {
    const LINES: usize = 40;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

/// A file's text, whatever its bytes are.
fn lossy(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// Runs a command with its output in a file; whether it succeeded, and the processor time of all its processes.
fn shell(run: &Run<'_>, command: &str, log: &Path) -> (bool, f64) {
    // bash's `time` adds up all awaited processes. A browser kills its children without waiting for them: about half of the time of a
    // browser stage is missing here.
    const TIMED: &str =
        r#"TIMEFORMAT='%U %S'; { time bash -euo pipefail -c "$1" >"$2" 2>&1 </dev/null; } 2>"$2.times""#;
    let mut bash = Command::new("bash");
    bash.args(["-c", TIMED, "stage", command]).arg(log).current_dir(run.root).stdin(Stdio::null());
    bash.envs(run.environment.iter().map(|(name, value)| (name, value)));
    let passed = bash.status().is_ok_and(|status| status.success());
    let times = log.with_extension("log.times");
    let words = fs::read_to_string(&times).unwrap_or_default();
    let _ = fs::remove_file(&times);
    (passed, words.split_whitespace().filter_map(|word| word.parse::<f64>().ok()).sum())
}

/// What a person sees when a stage ends: all that a failed one printed, else how it went.
fn show(run: &Run<'_>, stage: &Stage, done: &Done, begun: Instant) {
    let log = stage.file(run, "log");
    let at = begun.elapsed().as_secs_f64();
    let mut out = std::io::stdout().lock();
    let name = &stage.name;
    let _ = match done.outcome {
        Outcome::Failed => {
            let text = lossy(&log);
            writeln!(out, "\n{text}\n[{at:>5.0} s] {name} FAILED: {}\nfull output: {}", stage.command, log.display())
        }
        Outcome::Unchanged => writeln!(out, "[{at:>5.0} s] {name}: unchanged since it passed"),
        Outcome::Passed => {
            let wall = done.wall.as_secs_f64();
            writeln!(out, "[{at:>5.0} s] {name}: passed in {wall:.1} s{}", done.counts.in_words())
        }
    };
}

/// Seconds of each stage, and of all.
fn table(stages: &[Stage], done: &BTreeMap<usize, Done>, wall: Duration) -> String {
    let width = stages.iter().map(|stage| stage.name.len()).max().unwrap_or(0).max(5);
    let mut text = format!("{:width$} {:>8} {:>10} {:>6}\n", "stage", "seconds", "processor", "tests");
    let mut sum = Counts::default();
    let mut processor_s = 0.0;
    for (number, stage) in stages.iter().enumerate() {
        let Some(done) = done.get(&number) else {
            text += &format!("{:width$}  not run\n", stage.name);
            continue;
        };
        sum.add(done.counts);
        processor_s += done.processor_s;
        let tests = if done.counts.passed == 0 { String::new() } else { done.counts.passed.to_string() };
        let row = format!("{:>8.1} {:>10.1} {tests:>6}", done.wall.as_secs_f64(), done.processor_s);
        let note = match done.outcome {
            Outcome::Passed => "",
            Outcome::Failed => "  FAILED",
            Outcome::Unchanged => "  unchanged",
        };
        text += &format!("{}\n", format!("{:width$} {row}{note}", stage.name).trim_end());
    }
    text += &format!("{:width$} {:>8.1} {processor_s:>10.1} {:>6}\n\n", "all", wall.as_secs_f64(), sum.passed);
    let unchanged: usize =
        done.values().filter(|done| done.outcome == Outcome::Unchanged).map(|d| d.counts.passed).sum();
    if unchanged > 0 {
        text += &format!(
            "{unchanged} of these tests passed in an earlier run, and nothing that they depend on has changed; "
        );
        text += "`make test ALL=1` runs them again\n";
    }
    // A stage that counts no tests is one.
    let uncounted = |done: &&Done| done.outcome == Outcome::Failed && done.counts.failed == 0;
    let failed = sum.failed + done.values().filter(uncounted).count();
    text += &format!("{} passed, {failed} failed, {} skipped\n", sum.passed, sum.skipped);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(name: &str, command: &str, after: &[&str]) -> Stage {
        let after = after.iter().map(|name| (*name).to_owned()).collect();
        let inputs = Some(vec![Input::Files(vec!["input".to_owned()])]);
        Stage { name: name.to_owned(), command: command.to_owned(), after, inputs, is_cargo: false, halves: 2 }
    }

    /// A repository with one file, in a folder of its own.
    struct Repository(PathBuf);

    impl Repository {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("kymo-stages-{}-{name}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("input"), "one").unwrap();
            let git = Command::new("git").args(["init", "--quiet"]).current_dir(&folder).status();
            assert!(git.unwrap().success());
            Self(folder)
        }

        fn run(&self, stages: &[Stage], all: bool) -> bool {
            let folder = self.0.join("stages");
            run(&Run { root: &self.0, folder, processors: 2, all, environment: Vec::new() }, stages).is_empty()
        }

        /// How often the stages' commands, which add a line to it, have run.
        fn runs(&self) -> usize {
            fs::read_to_string(self.0.join("runs")).unwrap_or_default().lines().count()
        }
    }

    impl Drop for Repository {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn an_unchanged_stage_runs_again_only_when_asked_for() {
        let repository = Repository::new("unchanged");
        let stages = [stage("one", "echo run >>runs", &[])];
        assert!(repository.run(&stages, false) && repository.run(&stages, false));
        assert_eq!(repository.runs(), 1);
        assert!(repository.run(&stages, true));
        assert_eq!(repository.runs(), 2);
        fs::write(repository.0.join("input"), "two").unwrap();
        assert!(repository.run(&stages, false));
        assert_eq!(repository.runs(), 3);
        assert!(repository.run(&[stage("one", "echo run >>runs; true", &[])], false));
        assert_eq!(repository.runs(), 4);
    }

    #[test]
    fn a_failure_is_not_kept_and_stops_what_comes_after() {
        let repository = Repository::new("failure");
        let add = "echo run >>runs";
        let stages =
            [stage("one", "echo run >>runs; false", &[]), stage("two", add, &["one"]), stage("three", add, &[])];
        assert!(!repository.run(&stages, false));
        assert_eq!(repository.runs(), 2);
        // The third has passed, and is not run again.
        assert!(!repository.run(&stages, false));
        assert_eq!(repository.runs(), 3);
    }

    #[test]
    fn a_stage_waits_for_those_before_it() {
        let repository = Repository::new("order");
        let stages = [stage("one", "sleep 0.2; echo one >>runs", &[]), stage("two", "cat runs", &["one"])];
        assert!(repository.run(&stages, false));
    }
}
