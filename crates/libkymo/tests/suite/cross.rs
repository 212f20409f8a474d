//! The programs of the other tests as aarch64, in an emulator, linked with libkymo.a.
//!
//! It does not do what keeps the memory of processes apart that C libraries do not know of (MADV_WIPEONFORK), so these are left out; and it
//! orders memory as this machine does: models see to that.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::expected::{check_fields, check_marks};
use crate::programs::{self, Counts, Folder, build_library, has, root};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const COMPILER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64";

/// libkymo.a for that machine; `None`: something is missing, which was said.
fn library() -> Option<PathBuf> {
    if !has(COMPILER) || !has(EMULATOR) {
        return None;
    }
    let targets = Command::new("rustup").args(["target", "list", "--installed"]).output().ok()?;
    if !String::from_utf8_lossy(&targets.stdout).contains(TARGET) {
        eprintln!("NOT TESTED: rustup has not installed {TARGET}");
        return None;
    }
    let linker = ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER);
    Some(build_library(&["--target", TARGET], &[linker]).join(TARGET).join("libkymo/libkymo.a"))
}

/// A command that runs a program, which is on from the begin.
fn command(folder: &Folder, library: &Path, source: &str, arguments: &[&str]) -> Command {
    let program = folder.path().join("program");
    let mut compiler = Command::new(COMPILER);
    compiler.args(programs::STRICT).args(["-std=gnu11", "-O2", "-I"]).arg(root().join("include"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(source);
    let output = compiler.arg(source).arg(library).arg("-o").arg(&program).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut command = folder.command(Path::new(EMULATOR));
    command.args(["-L", "/usr/aarch64-linux-gnu"]).arg(program).args(arguments);
    command
}

#[test]
fn fields_and_marks() {
    let Some(library) = library() else { return };
    let folder = Folder::new();
    check_fields(&folder.run(&mut command(&folder, &library, "fields.c", &[]))[0], false);
    let folder = Folder::new();
    check_marks(&folder.run(&mut command(&folder, &library, "marks.c", &[]))[0]);
}

#[test]
fn handlers() {
    let Some(library) = library() else { return };
    for (jumps, stack) in [("stay", "both"), ("jump", "stack"), ("jump", "alternate")] {
        let folder = Folder::new();
        let recordings = folder.run(&mut command(&folder, &library, "storm.c", &[jumps, stack, "500"]));
        let (recording, counts) = (&recordings[0], Counts::of(&folder));
        recording.check_times();
        let most = counts.begun(0) + counts.begun(1);
        let over = counts.begun(2) + counts.begun(1) - counts.ended(1);
        let found = recording.found.len() as u64 + recording.lost();
        assert!(found <= most && found + over >= most, "{jumps} {stack}: {found} of {most}, jumps over {over} at most");
        assert!(
            recording.found.iter().all(|found| found.values[0].number() == !found.values.last().expect("two").number())
        );
        assert!(recording.count("storm:handled") > 10);
    }
}

#[test]
fn children_that_the_c_library_knows() {
    let Some(library) = library() else { return };
    let folder = Folder::new();
    // The emulator makes of vfork a fork that nobody is told of; and whoever executes the program again needs the emulator.
    let recordings = folder.run(&mut command(&folder, &library, "forks.c", &["stay"]));
    let mut of_kind: HashMap<u64, u64> = HashMap::new();
    for found in recordings.iter().flat_map(|recording| recording.of_name("forks:live")) {
        *of_kind.entry(found.values[1].number()).or_default() += 1;
    }
    assert!(recordings.iter().all(|recording| recording.lost() == 0));
    let expected = [(0, 2000), (1, 1000), (4, 1000), (5, 1000)];
    assert!(expected.iter().all(|(kind, count)| of_kind.get(kind) == Some(count)), "{of_kind:?}");
}
