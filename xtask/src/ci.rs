//! The stages of `cargo xtask ci` and `cargo xtask test`, and what each of them depends on.
//!
//! Two sets of features are built, each by one call of cargo:
//!
//! ```text
//! plain     what users install and what the wheel has: kymo, the Python library       demo, scripts, browser, Python
//! with SQL  the whole workspace and its tests: DataFusion on top of the same crates    Rust tests, SQL
//! ```
//!
//! The crates below `session` are the same in both sets, because crate `unify` makes their dependencies so.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::inputs::Input;
use crate::stages::{Run, Stage, run};
use crate::{FULL, house};

/// What has Rust tests. The Python library has none; what it is compiled to would be overwritten by the wheel's.
const TESTED: &str = "--workspace --exclude kymo-python --features kymo-cli/sql";
/// Test binaries that start the programs of this workspace.
const START_PROGRAMS: [&str; 2] = ["kymo-cli", "kymo-libkymo"];
/// Test binaries beside which no other stage runs: their recorders and programs would see those of other stages, and compete with them.
const EXCLUSIVE: [&str; 2] = ["kymo-cli/suite", "kymo-libkymo/suite"];
/// Crates that tests of programs compile themselves.
const COMPILED_BY_TESTS: [&str; 8] = [
    "crates/bytecode",
    "crates/lane",
    "crates/libkymo",
    "crates/probe",
    "crates/tracer",
    "crates/tracing",
    "crates/units",
    "crates/wire",
];
/// Browser tests of how smoothly a window moves, beside which fewer other stages run.
const MOVES: &str = "follow";
/// The stage that makes Python's environments.
const PYTHON_TOOLS: &str = "tools for Python";
/// Prints which tools there are and their versions: a stage that passed without a peer has not passed with it.
const TOOLS: &str = r#"id -u; uname -r; tools="$(python3 scripts/target.py tools)"; PATH="$tools/node/bin:$PATH"
for tool in babeltrace2 babeltrace lttng cc g++ clang clang-14 aarch64-linux-gnu-gcc qemu-aarch64 valgrind make pkg-config curl readelf gdb \
    tshark chromium chromium-browser google-chrome python3 node npm rustc cargo; do
    if command -v "$tool" >/dev/null; then echo "$tool: $("$tool" --version 2>&1 | head -n 1)"; fi
done
for python in python3 /usr/bin/python3; do "$python" -c 'import bt2; print(bt2.__version__)' 2>/dev/null || echo "no bt2"; done
rustup target list --installed 2>/dev/null | grep aarch64-unknown-linux || true
echo '#include <lttng/tracef.h>' | cc -fsyntax-only -xc - 2>/dev/null && echo "headers of LTTng" || true"#;

/// Which stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All that CI runs.
    Everything,
    /// `make test`.
    Tests,
}

/// Runs the stages of a part: all of them, or those whose name has one of the words in it, with what they come after. Returns what failed.
pub(crate) fn ci(root: &Path, part: Part, all: bool, words: &[&str]) -> Vec<String> {
    let plan = Plan::new(root);
    let stages = chosen(plan.stages(part, all), words);
    if stages.is_empty() {
        return vec![format!("no stage is called {}", words.join(" or "))];
    }
    let processors = std::thread::available_parallelism().map_or(2, usize::from).max(2);
    let folder = plan.folder();
    let mut environment = vec![
        ("CARGO_TARGET_DIR".to_owned(), plan.target.display().to_string()),
        ("KYMO".to_owned(), folder.join("kymo").display().to_string()),
        ("XTASK".to_owned(), env::current_exe().unwrap_or_default().display().to_string()),
        ("CARGO_TERM_COLOR".to_owned(), "never".to_owned()),
        ("NO_COLOR".to_owned(), "1".to_owned()),
    ];
    if plan.corpus.is_dir() {
        environment.push(("KYMO_CORPUS".to_owned(), plan.corpus.display().to_string()));
    }
    run(&Run { root, folder, processors, all, environment }, &stages)
}

/// The stages whose name has one of the words in it (all, without words), and those that they come after.
fn chosen(stages: Vec<Stage>, words: &[&str]) -> Vec<Stage> {
    let mut wanted = BTreeSet::new();
    // A stage stands behind all that it comes after.
    for stage in stages.iter().rev() {
        if words.is_empty() || words.iter().any(|word| stage.name.contains(word)) || wanted.contains(&stage.name) {
            wanted.insert(stage.name.clone());
            wanted.extend(stage.after.iter().cloned());
        }
    }
    stages.into_iter().filter(|stage| wanted.contains(&stage.name)).collect()
}

/// The folders that stages use.
struct Plan<'a> {
    root: &'a Path,
    target: PathBuf,
    corpus: PathBuf,
}

impl<'a> Plan<'a> {
    fn new(root: &'a Path) -> Self {
        let target = target(root);
        let corpus = env::var_os("KYMO_CORPUS").map_or_else(|| root.join("../shared/corpus"), PathBuf::from);
        Self { root, target, corpus: std::path::absolute(&corpus).unwrap_or(corpus) }
    }

    fn folder(&self) -> PathBuf {
        self.target.join("stages")
    }

    /// The command with the plain features, and the one with SQL: copies, because cargo keeps only one `kymo`.
    fn kymo(&self) -> Input {
        Input::Path(self.folder().join("kymo"))
    }

    fn kymo_with_sql(&self) -> Input {
        Input::Path(self.folder().join("kymo-with-sql"))
    }

    fn stages(&self, part: Part, all: bool) -> Vec<Stage> {
        let (exclusive, others) = self.rust_tests().into_iter().partition(|stage| stage.halves == usize::MAX);
        let mut stages: Vec<Stage> = [self.builds(), self.web(), exclusive, self.python()].concat();
        let mut last = "wheel with SQL";
        if part == Part::Everything {
            stages.extend(self.checks());
            last = "documentation";
        }
        // Python and what runs cargo are long chains, of which only one link at a time can run: the other stages fit beside them.
        stages.extend([others, self.scripts()].concat());
        if all {
            // They are built with optimization, which takes longer than all else.
            let packages = r#"scripts/setup.sh packages; python3 scripts/dist.py; python3 scripts/packages.py "$CARGO_TARGET_DIR/dist/packages""#;
            stages.push(build("packages", packages, &["wheel with SQL", last]));
        }
        // A new clone begins with what is built by now of other people's crates.
        stages.push(build("keep dependencies", "python3 scripts/target.py keep", &["wheel with SQL", last]));
        stages
    }

    /// What is tested. Pages come first, because the command has them in it.
    fn builds(&self) -> Vec<Stage> {
        let keep = |name: &str| {
            format!(r#"cp --remove-destination "$CARGO_TARGET_DIR/ci/kymo" "$CARGO_TARGET_DIR/stages/{name}""#)
        };
        let tests = format!(
            "cargo test --profile ci {TESTED} --no-run --message-format json-render-diagnostics > \"$CARGO_TARGET_DIR/stages/binaries.json\""
        );
        let plain = "cargo build --profile ci --package kymo-cli";
        vec![
            build(
                "tools",
                "for tool in build peers web browser oracles; do scripts/setup.sh $tool; done; cargo fetch --locked",
                &[],
            )
            .beside_cargo(),
            // By itself: where pip gets nothing, all that needs no Python environment is tested.
            build(PYTHON_TOOLS, "for tool in python api; do scripts/setup.sh $tool; done", &["tools"]).beside_cargo(),
            build("pages", "scripts/web.sh build", &["tools"]).beside_cargo(),
            build("build", &format!("{plain} && {}", keep("kymo")), &["pages"]),
            build("build libkymo", "cargo build --profile libkymo --package kymo-libkymo", &["build"]),
            // Before the tests, whose `kymo` takes the place of the one that the demo builds.
            build("demo", "make --no-print-directory demo", &["build libkymo"]),
            build("build tests", &format!("{tests} && {}", keep("kymo-with-sql")), &["demo"]),
        ]
    }

    /// Lints, documentation, and types on other platforms.
    fn checks(&self) -> Vec<Stage> {
        vec![
            build("house", "cargo xtask house", &["build"]).beside_cargo(),
            build("clippy", &clippy(), &["build tests"]),
            build("documentation", &documentation(), &["clippy"]),
            build("platforms", "cargo xtask cross --types-only", &["clippy"]),
        ]
    }

    /// Tests of the pages: without a browser, and each file of those with one.
    fn web(&self) -> Vec<Stage> {
        let sources = vec![files(&["web", "scripts/web.sh"]), tools()];
        let mut stages = vec![stage("web", "scripts/web.sh test", &["pages"], sources)];
        let mut names: Vec<String> = names(&self.root.join("web/browser"), ".test.ts");
        // The longest first, so that none of them runs alone at the end.
        names.sort_by_key(|name| !matches!(name.as_str(), "page" | "analyses" | "start" | "events" | "live"));
        for name in names {
            let inputs = vec![
                files(&["web", "examples", "include", "docs", "README.md", "scripts/web.sh"]),
                self.kymo(),
                Input::Path(self.target.join("libkymo/libkymo.so")),
                Input::Path(self.corpus.clone()),
                tools(),
            ];
            let command = format!("scripts/web.sh browser browser/{name}.test.ts");
            let stage = stage(&format!("browser/{name}"), &command, &["build libkymo", "web"], inputs);
            stages.push(if name == MOVES { stage } else { stage.with_half_a_processor() });
        }
        stages
    }

    /// Each test binary of the workspace, and the examples in the documentation.
    fn rust_tests(&self) -> Vec<Stage> {
        let data = files(&[
            "tests",
            "examples",
            "docs",
            "include",
            "scripts",
            "python",
            "Makefile",
            "Cargo.toml",
            "Cargo.lock",
            "crates",
            "README.md",
            "ARCHITECTURE.md",
            ":(exclude)crates/**.rs",
            ":(exclude)docs/images",
        ]);
        let mut stages = Vec::new();
        for (package, folder, target, kind) in test_targets(self.root) {
            let name = format!("{package}/{target}");
            let mut inputs = vec![Input::Output(Self::binary(&package, &target, &kind)), data.clone()];
            inputs.extend([Input::Path(self.corpus.clone()), tools()]);
            if START_PROGRAMS.contains(&package.as_str()) {
                let library = Input::Path(self.target.join("libkymo/libkymo.so"));
                inputs.extend([self.kymo_with_sql(), library, files(&COMPILED_BY_TESTS)]);
            }
            let command = format!(
                "binary=\"$({})\"; cd '{folder}'; export CARGO_MANIFEST_DIR=\"$PWD\" CARGO=cargo; \"$binary\"",
                Self::executable(&package, &target, &kind),
            );
            let stage = stage(&name, &command, &["build tests"], inputs);
            stages.push(if EXCLUSIVE.contains(&name.as_str()) { stage.with_all_processors() } else { stage });
        }
        let doctests = format!("cargo test --profile ci {TESTED} --doc");
        let sources = vec![files(&["crates", "examples", "Cargo.lock", "Cargo.toml", "README.md", "docs"]), tools()];
        let mut doctests = stage("examples in documentation", &doctests, &["build tests"], sources);
        doctests.is_cargo = true;
        stages.push(doctests);
        stages
    }

    /// A command that prints where a test binary is.
    fn executable(package: &str, target: &str, kind: &str) -> String {
        format!("\"$XTASK\" executable \"$CARGO_TARGET_DIR/stages/binaries.json\" {package} {target} {kind}")
    }

    /// A command that prints the hash of a test binary.
    fn binary(package: &str, target: &str, kind: &str) -> String {
        format!("sha256sum < \"$({})\"", Self::executable(package, target, kind))
    }

    /// kymo against references, many inputs and many viewers.
    fn scripts(&self) -> Vec<Stage> {
        let with = |name: &str, command: &str| {
            let inputs = vec![
                files(&["scripts", "tests", "examples", "docs", "python/requirements.txt"]),
                self.kymo(),
                Input::Path(self.corpus.clone()),
                tools(),
            ];
            stage(name, command, &["build libkymo"], inputs)
        };
        let sql = r#""$(scripts/setup.sh python)/bin/python" scripts/sql.py "$CARGO_TARGET_DIR/stages/kymo-with-sql""#;
        let mut sql = with("sql", sql);
        sql.after = vec!["build tests".to_owned(), PYTHON_TOOLS.to_owned()];
        sql.inputs.get_or_insert_default().push(self.kymo_with_sql());
        let api =
            r#"python3 scripts/api.py "$KYMO" "$(scripts/setup.sh api)/bin/schemathesis" --examples 10 --seconds 30"#;
        let mut api = with("api", api);
        api.after.push(PYTHON_TOOLS.to_owned());
        let tiles = r#"python3 scripts/tiles.py "$KYMO""#;
        vec![
            with("analyses", r#"python3 scripts/analyses.py "$KYMO""#),
            with("conformance", r#"python3 scripts/conformance.py "$KYMO""#),
            with("filters", r#"python3 scripts/filters.py "$KYMO" --each 2"#),
            with("yactfr", r#"python3 scripts/yactfr.py "$KYMO""#),
            with("machine formats", r#"python3 scripts/machine_formats.py "$KYMO""#),
            with("tiles", &format!("{tiles} --only bug446190 --windows 30 && {tiles} --only traces/demo --windows 60")),
            with("viewers", r#"python3 scripts/viewers.py "$KYMO" --seconds 5"#),
            api,
            with("mutants", r#"python3 scripts/mutants.py "$KYMO" --count 400"#),
            sql,
        ]
    }

    /// The wheels, and their tests. Both wheels are installed in one environment, one after the other, and are built of what `build` and
    /// `build tests` have built.
    fn python(&self) -> Vec<Stage> {
        const PYTHON: &str = r#"python="$(scripts/setup.sh python)/bin/python""#;
        const FOLDER: &str = r#""$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')""#;
        let inputs = |wheel: &str, kymo: Input| {
            let sources =
                ["python", "pyproject.toml", "examples", "docs", "scripts", "README.md", "crates/**/Cargo.toml"];
            let library = Input::Path(self.folder().join(wheel));
            vec![files(&sources), library, kymo, Input::Path(self.corpus.clone()), tools()]
        };
        // A library is the same bytes when it is built again, a wheel is not.
        let wheel = |words: &str, library: &str| {
            format!(
                r#"scripts/wheel.sh ci {words}; cp "$CARGO_TARGET_DIR/ci/lib_native.so" "$CARGO_TARGET_DIR/stages/{library}""#
            )
        };
        let compared = "python3 scripts/oracles/bt2_compat.py --messages 300";
        let plain = format!(r#"{PYTHON}; "$python" -m pytest -q"#);
        let compared = format!("{PYTHON}; {compared} {FOLDER}");
        let with_sql = ["sql", "without_sql", "examples", "docs", "events", "open", "interrupt"];
        let with_sql = with_sql.map(|name| format!("python/tests/test_{name}.py")).join(" ");
        let with_sql = format!(r#"{PYTHON}; KYMO_WITH_SQL=1 "$python" -m pytest -q {with_sql}"#);
        vec![
            build("wheel", &wheel("", "native.so"), &["build tests", PYTHON_TOOLS]),
            stage("python", &plain, &["wheel"], inputs("native.so", self.kymo())),
            stage("bt2", &compared, &["wheel"], inputs("native.so", self.kymo())),
            build("wheel with SQL", &wheel("sql", "native-with-sql.so"), &["python", "bt2"]),
            stage(
                "python with SQL",
                &with_sql,
                &["wheel with SQL"],
                inputs("native-with-sql.so", self.kymo_with_sql()),
            ),
        ]
    }
}

/// A build: cargo or npm know what is up to date.
fn build(name: &str, command: &str, after: &[&str]) -> Stage {
    let after = after.iter().map(|name| (*name).to_owned()).collect();
    Stage { name: name.to_owned(), command: command.to_owned(), after, inputs: None, is_cargo: true, halves: 2 }
}

fn stage(name: &str, command: &str, after: &[&str], inputs: Vec<Input>) -> Stage {
    Stage { inputs: Some(inputs), is_cargo: false, ..build(name, command, after) }
}

impl Stage {
    fn beside_cargo(mut self) -> Self {
        self.is_cargo = false;
        self
    }

    /// May run beside another stage of its kind: each counts as half a processor, though a browser at work may keep more than one busy.
    fn with_half_a_processor(mut self) -> Self {
        self.halves = 1;
        self
    }

    fn with_all_processors(mut self) -> Self {
        self.halves = usize::MAX;
        self
    }
}

/// Which tools there are. Every stage comes after the one that installs them.
fn tools() -> Input {
    Input::Output(TOOLS.to_owned())
}

fn files(specs: &[&str]) -> Input {
    Input::Files(specs.iter().map(|spec| (*spec).to_owned()).collect())
}

/// Names of a folder's files that end so, without that end.
fn names(folder: &Path, end: &str) -> Vec<String> {
    let entries: Vec<_> = fs::read_dir(folder).expect("it is in the repository").flatten().collect();
    let names = entries.iter().filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(end)?.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Package, its folder, name and kind of everything that has tests.
fn test_targets(root: &Path) -> Vec<(String, String, String, String)> {
    let metadata = house::metadata(root).expect("cargo knows the workspace");
    let mut found = Vec::new();
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    for package in list(&metadata["packages"]) {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        let folder = manifest.parent().unwrap_or(root);
        let folder = folder.strip_prefix(root).unwrap_or(folder).display().to_string();
        for target in list(&package["targets"]) {
            let kind = text(&target["kind"][0]);
            // Tests with a feature that `TESTED` does not name would be left out without a word.
            let needs = list(&target["required-features"]);
            assert!(needs.iter().all(|feature| feature == "datafusion"), "are tests with {needs:?} run?");
            if target["test"].as_bool() == Some(true) && kind != "custom-build" && kind != "example" {
                found.push((text(&package["name"]), folder.clone(), text(&target["name"]), kind));
            }
        }
    }
    // Integration tests take longest: they begin first.
    found.sort_by_key(|(package, _, _, kind)| (kind != "test", package != "kymo-cli", package != "kymo-libkymo"));
    found
}

/// Builds the commands and all tests, as the stages before the tests do; what failed.
pub(crate) fn build_tests(root: &Path) -> Option<String> {
    let plan = Plan::new(root);
    fs::create_dir_all(plan.folder()).expect("the target folder can be written");
    let failed = plan.builds().into_iter().find(|stage| {
        let mut bash = Command::new("bash");
        bash.args(["-euo", "pipefail", "-c", &stage.command]).current_dir(root).env("CARGO_TARGET_DIR", &plan.target);
        !bash.status().is_ok_and(|status| status.success())
    });
    failed.map(|stage| format!("stage `{}` failed", stage.name))
}

/// Where cargo builds.
pub(crate) fn target(root: &Path) -> PathBuf {
    let named = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| {
        let output = Command::new("python3").arg("scripts/target.py").current_dir(root).output();
        let output = output.expect("scripts/setup.sh has installed Python");
        assert!(output.status.success(), "target.py: {}", String::from_utf8_lossy(&output.stderr));
        PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
    });
    std::path::absolute(&folder).unwrap_or(folder)
}

/// A binary of tests that is built.
#[derive(Clone, Debug)]
pub(crate) struct TestBinary {
    /// `PACKAGE/TARGET`.
    pub(crate) name: String,
    /// The package's folder, in which it runs.
    pub(crate) folder: PathBuf,
    pub(crate) path: PathBuf,
}

/// Every test binary; `None`: one is not built.
pub(crate) fn test_binaries(root: &Path) -> Option<Vec<TestBinary>> {
    let json = target(root).join("stages/binaries.json").display().to_string();
    let targets = test_targets(root).into_iter();
    targets
        .map(|(package, folder, target, kind)| {
            let path = executable(&json, &package, &target, &kind)?.into();
            Some(TestBinary { name: format!("{package}/{target}"), folder: root.join(folder), path })
        })
        .collect()
}

/// Where cargo has put a test binary, by what it said of it.
pub(crate) fn executable(json: &str, package: &str, target: &str, kind: &str) -> Option<String> {
    let messages = fs::read_to_string(json).ok()?;
    let mut found = BTreeMap::new();
    for message in messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()) {
        let is_test = message["profile"]["test"].as_bool() == Some(true);
        let (name, of) = (message["target"]["name"].as_str(), message["target"]["kind"][0].as_str());
        // `path+file:///…/crates/cli#kymo-cli@0.1.0`, or `…/crates/xtask#0.1.0` where folder and name are the same.
        let id = message["package_id"].as_str().unwrap_or_default();
        let is_package = id.contains(&format!("#{package}@")) || id.contains(&format!("/{package}#"));
        if is_test && is_package && name == Some(target) && of == Some(kind) {
            found.insert(id.to_owned(), message["executable"].as_str()?.to_owned());
        }
    }
    found.into_values().next()
}

/// Clippy over everything.
fn clippy() -> String {
    format!("cargo clippy --quiet --profile ci --workspace --all-targets --features {FULL} -- --deny warnings")
}

/// The documentation of every crate.
fn documentation() -> String {
    format!("RUSTDOCFLAGS='--deny warnings' cargo doc --quiet --profile ci --workspace --no-deps --features {FULL}")
}

/// Clippy and the documentation, for `cargo xtask check`; what failed.
pub(crate) fn lints(root: &Path) -> Vec<String> {
    let passes = |command: &String| {
        let status = Command::new("bash").args(["-c", command]).current_dir(root).status();
        status.is_ok_and(|status| status.success())
    };
    [clippy(), documentation()]
        .into_iter()
        .filter(|command| !passes(command))
        .map(|command| format!("failed: {command}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_stages_bring_those_that_they_come_after() {
        let stages =
            || vec![build("a", "", &[]), build("b", "", &["a"]), build("c", "", &["b"]), build("d", "", &["a"])];
        let names = |words: &[&str]| chosen(stages(), words).into_iter().map(|stage| stage.name).collect::<Vec<_>>();
        assert_eq!(names(&["c"]), ["a", "b", "c"]);
        assert_eq!(names(&["d", "b"]), ["a", "b", "d"]);
        assert_eq!(names(&[]), ["a", "b", "c", "d"]);
        assert!(names(&["e"]).is_empty());
    }
}
