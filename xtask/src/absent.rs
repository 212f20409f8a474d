//! What ARCHITECTURE.md says is absent is absent: each sentence `No X outside of crates A and B` names the crates whose code has X, no
//! more and no fewer. Tests aside.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cycles::without_tests;
use crate::functions::blank;
use crate::house::names;

/// How a sentence begins, and the code that it is about: any of these words.
const RULES: [(&str, &[&str]); 3] = [
    ("- No `unsafe` code outside of ", &["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe("]),
    ("- No thread is started outside of ", &["thread::spawn(", "thread::Builder::", "thread::scope("]),
    ("- No asynchronous runtime outside of ", &["tokio::"]),
];

/// The rule about unsafe code: the compiler holds it, too, in crates that the sentence does not name.
const UNSAFE: &str = RULES[0].0;
/// Only macros write unsafe code in this crate; the workspace's lints would reject it.
const MACROS: &str = "python";

/// Sentences that are not true.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    let mut problems = Vec::new();
    for (begin, words) in RULES {
        let Some(sentence) = text.split(begin).nth(1).and_then(|rest| rest.split(['.', ':']).next()) else {
            problems.push(format!("ARCHITECTURE.md: no sentence begins with `{begin}`"));
            continue;
        };
        let (said, found) = (names(sentence), crates_with(root, words));
        if begin == UNSAFE {
            problems.extend(without_lints(root, &said));
        }
        for name in found.difference(&said) {
            problems.push(format!("ARCHITECTURE.md: `{begin}...` does not name `{name}`, which has `{}`", words[0]));
        }
        for name in said.difference(&found) {
            problems.push(format!("ARCHITECTURE.md: `{begin}...` names `{name}`, which has nothing of the kind"));
        }
    }
    problems
}

/// Crates without unsafe code that do not take the lints that forbid it.
fn without_lints(root: &Path, unsafe_rooms: &BTreeSet<String>) -> Vec<String> {
    let crates = fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    let others = crates.filter(|folder| {
        let name = folder.file_name().to_string_lossy().into_owned();
        name != MACROS && !unsafe_rooms.contains(&name)
    });
    let manifests = others.map(|folder| folder.path().join("Cargo.toml"));
    let is_lax =
        |path: &PathBuf| fs::read_to_string(path).is_ok_and(|manifest| !manifest.contains("[lints]\nworkspace = true"));
    let told =
        |path: PathBuf| format!("{}: does not take the workspace's lints, which forbid unsafe code", path.display());
    manifests.filter(is_lax).map(told).collect()
}

/// The crates whose code has one of the words.
fn crates_with(root: &Path, words: &[&str]) -> BTreeSet<String> {
    let crates = fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    let has_any = |folder: &Path| has(&folder.join("src"), words);
    let found = crates.filter(|folder| has_any(&folder.path()));
    found.map(|folder| folder.file_name().to_string_lossy().into_owned()).collect()
}

fn has(folder: &Path, words: &[&str]) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        let path = entry.path();
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        if is_test {
            return false;
        }
        if path.is_dir() {
            return has(&path, words);
        }
        let code = without_tests(&blank(&fs::read_to_string(&path).unwrap_or_default()));
        path.extension().is_some_and(|extension| extension == "rs") && words.iter().any(|word| code.contains(word))
    })
}
