//! Other platforms: type checks everywhere, tests where an emulator is installed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo;

/// The read side and `kymo`, which must be portable, and what must hold of them on any input.
const PORTABLE: [&str; 16] = [
    "units", "wire", "source", "format", "ir", "bytecode", "filter", "probe", "jit", "decode", "scan", "writer", "sql",
    "session", "promises", "cli",
];
/// What programs have in them, which builds everywhere; nothing is recorded but on Linux.
const TYPES_ONLY: [&str; 3] = ["lane", "tracer", "tracing"];
/// Platforms that are type-checked.
const TYPE_CHECKED: [&str; 2] = ["x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

/// A platform whose programs can be run here.
struct Emulated {
    target: &'static str,
    /// Where the emulator may lie: in the path or, where a system hides it, elsewhere.
    emulators: &'static [&'static str],
    /// Arguments of the emulator.
    arguments: &'static str,
    linker: &'static str,
    /// What to install for it on Debian.
    packages: &'static str,
    /// A test may start a program of the platform without naming the emulator.
    starts_others: bool,
    /// A library that emulators may lack: its source in `xtask/`, its name, what it is linked with.
    library: Option<[&'static str; 3]>,
}

const EMULATED: [Emulated; 2] = [
    Emulated {
        target: "aarch64-unknown-linux-gnu",
        emulators: &["qemu-aarch64", "qemu-aarch64-static"],
        arguments: "-L /usr/aarch64-linux-gnu",
        linker: "aarch64-linux-gnu-gcc",
        packages: "qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
        starts_others: false,
        library: None,
    },
    Emulated {
        target: "x86_64-pc-windows-gnu",
        emulators: &["wine64", "/usr/lib/wine/wine64", "wine"],
        arguments: "",
        linker: "x86_64-w64-mingw32-gcc",
        packages: "wine64 gcc-mingw-w64-x86-64",
        starts_others: true,
        library: Some(["wine/bcryptprimitives.c", "bcryptprimitives.dll", "-ladvapi32"]),
    },
];

/// What fails.
pub(crate) fn run(root: &Path, types_only: bool) -> Vec<String> {
    let mut problems = Vec::new();
    let (targets, absent): (Vec<&str>, Vec<&str>) = TYPE_CHECKED.iter().partition(|target| add(target));
    absent.iter().for_each(|target| println!("NOT CHECKED for {target}: rustup cannot add it here"));
    if !targets.is_empty() {
        // All in one call of cargo, which has something for each processor to do for longer than with one after the other.
        let names = [&PORTABLE[..], &TYPES_ONLY].concat();
        problems.extend(with_packages(root, "check", &targets, &names, &[]));
    }
    if types_only {
        return problems;
    }
    for platform in &EMULATED {
        match tests(root, platform) {
            Ok(problem) => problems.extend(problem),
            Err(why) => println!("NOT TESTED for {}: {why}; install {}", platform.target, platform.packages),
        }
    }
    problems
}

/// Runs the tests of a platform; what fails, or else why they were not run.
fn tests(root: &Path, platform: &Emulated) -> Result<Option<String>, String> {
    let answers = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    let emulator = platform.emulators.iter().find(|tool| answers(tool));
    let emulator = emulator.ok_or_else(|| format!("found no {}", platform.emulators.join(", ")))?;
    if !answers(platform.linker) {
        return Err(format!("found no {}", platform.linker));
    }
    if !add(platform.target) {
        return Err("rustup cannot add it here".to_owned());
    }
    let runner = format!("{emulator} {}", platform.arguments);
    let name = platform.target.to_uppercase().replace('-', "_");
    let (link, run) = (format!("CARGO_TARGET_{name}_LINKER"), format!("CARGO_TARGET_{name}_RUNNER"));
    let folder = libraries(root, platform)?;
    let (folder, prefix) = (folder.display().to_string(), folder.join("prefix").display().to_string());
    let mut environment = vec![(link.as_str(), platform.linker), (run.as_str(), runner.as_str())];
    environment.extend([("WINEPATH", folder.as_str()), ("WINEPREFIX", prefix.as_str()), ("WINEDEBUG", "-all")]);
    if !platform.starts_others {
        environment.push(("KYMO_TEST_EMULATOR", &runner));
    }
    Ok(with_packages(root, "test", &[platform.target], &PORTABLE, &environment))
}

/// The folder with what the emulator may lack, and with what it writes.
fn libraries(root: &Path, platform: &Emulated) -> Result<PathBuf, String> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let folder = target.join(platform.target).join("emulator");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    if let Some([source, name, with]) = platform.library {
        let mut link = Command::new(platform.linker);
        link.args(["-shared", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(folder.join(name));
        let status = link.arg(root.join("xtask").join(source)).arg(with).status();
        if !status.is_ok_and(|status| status.success()) {
            return Err(format!("{} does not compile xtask/{source}", platform.linker));
        }
    }
    Ok(folder)
}

fn add(target: &str) -> bool {
    Command::new("rustup").args(["target", "add", target]).output().is_ok_and(|output| output.status.success())
}

fn with_packages(
    root: &Path,
    verb: &str,
    targets: &[&str],
    names: &[&str],
    environment: &[(&str, &str)],
) -> Option<String> {
    println!("{verb} for {}", targets.join(", "));
    let packages: Vec<String> = names.iter().map(|name| format!("--package=kymo-{name}")).collect();
    let mut arguments = vec![verb, "--quiet", "--profile", "ci"];
    arguments.extend(targets.iter().flat_map(|target| ["--target", target]));
    arguments.extend(packages.iter().map(String::as_str));
    cargo(root, &arguments, environment)
}
