//! Other platforms: type checks everywhere, tests where an emulator is installed.

use std::path::Path;
use std::process::Command;

use crate::cargo;

/// The read side and `kymo`, which must be portable.
const PORTABLE: [&str; 11] =
    ["units", "wire", "source", "format", "ir", "jit", "decode", "scan", "writer", "session", "cli"];
/// Platforms that are type-checked.
const TYPE_CHECKED: [&str; 2] = ["x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

/// A platform whose programs can be run here.
struct Emulated {
    target: &'static str,
    /// The program that runs them, and the linker.
    tools: [&'static str; 2],
    environment: [(&'static str, &'static str); 2],
}

const EMULATED: [Emulated; 2] = [
    Emulated {
        target: "aarch64-unknown-linux-gnu",
        tools: ["qemu-aarch64", "aarch64-linux-gnu-gcc"],
        environment: [
            ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc"),
            ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu"),
        ],
    },
    Emulated {
        target: "x86_64-pc-windows-gnu",
        tools: ["wine64", "x86_64-w64-mingw32-gcc"],
        environment: [
            ("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER", "x86_64-w64-mingw32-gcc"),
            ("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", "wine64"),
        ],
    },
];

/// What fails.
pub(crate) fn run(root: &Path, types_only: bool) -> Vec<String> {
    let mut problems = Vec::new();
    for target in TYPE_CHECKED {
        if add(target) {
            problems.extend(with_packages(root, "check", target, &[]));
        } else {
            println!("NOT CHECKED for {target}: rustup cannot add it here");
        }
    }
    if types_only {
        return problems;
    }
    for platform in &EMULATED {
        let installed = platform.tools.iter().all(|tool| Command::new(tool).arg("--version").output().is_ok());
        if installed && add(platform.target) {
            problems.extend(with_packages(root, "test", platform.target, &platform.environment));
        } else {
            println!("NOT TESTED for {}: needs {}", platform.target, platform.tools.join(" and "));
        }
    }
    problems
}

fn add(target: &str) -> bool {
    Command::new("rustup").args(["target", "add", target]).output().is_ok_and(|output| output.status.success())
}

fn with_packages(root: &Path, verb: &str, target: &str, environment: &[(&str, &str)]) -> Option<String> {
    println!("{verb} for {target}");
    let packages: Vec<String> = PORTABLE.iter().map(|name| format!("--package=kymo-{name}")).collect();
    let mut arguments = vec![verb, "--quiet", "--profile", "ci", "--target", target];
    arguments.extend(packages.iter().map(String::as_str));
    cargo(root, &arguments, environment)
}
