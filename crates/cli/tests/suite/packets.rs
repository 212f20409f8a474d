//! Packets made to hurt, printed by the evaluator and by machine code, alike.

use std::fmt::Write as _;
use std::fs;

use kymo_cases::{Case, parse};

use crate::program;

/// What is printed of a case and said of it, with file names that do not depend on the machine.
fn printed(case: &Case, jit: &str) -> Vec<String> {
    let root = std::env::temp_dir().join(format!("kymo-packets-{}-{jit}-{}", case.name, std::process::id()));
    fs::create_dir_all(&root).expect("temporary files may be written");
    fs::write(root.join("metadata"), &case.metadata).expect("temporary files may be written");
    fs::write(root.join("stream"), &case.bytes).expect("temporary files may be written");
    let done = program::kymo().arg("print").arg(&root).env("KYMO_JIT", jit).output().expect("the program is there");
    fs::remove_dir_all(&root).expect("it was made before");
    let folder = format!("{}{}", root.display(), std::path::MAIN_SEPARATOR);
    let (out, said) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    // Of a finding in the metadata only what it says, not the lines that show where.
    let said = said.lines().filter(|line| line.contains("error: ") || line.contains("warning["));
    out.lines().chain(said).map(|line| line.trim().replace(&folder, "")).collect()
}

#[test]
fn every_case_is_printed_alike() {
    let mut wrong = String::new();
    for case in parse(include_str!("../../../../tests/packets/hostile.txt")) {
        for jit in ["off", "always"] {
            let found = printed(&case, jit);
            if found != case.prints {
                let lines = found.join("\n  ");
                writeln!(wrong, "--- {} KYMO_JIT={jit}\nprints:\n  {lines}", case.name).expect("it is a string");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
