//! What ARCHITECTURE.md says is absent is absent: each sentence `No X outside of crates A and B` names the crates whose code has X, no
//! more and no fewer. Tests aside.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::cycles::without_tests;
use crate::functions::blank;
use crate::house::names;

/// How a sentence begins, and the code that it is about: any of these words.
const RULES: [(&str, &[&str]); 3] = [
    ("- No `unsafe` code outside of ", &["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe("]),
    ("- No thread is started outside of ", &["thread::spawn(", "thread::Builder::", "thread::scope("]),
    ("- No asynchronous runtime outside of ", &["tokio::"]),
];

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
        for name in found.difference(&said) {
            problems.push(format!("ARCHITECTURE.md: `{begin}...` does not name `{name}`, which has `{}`", words[0]));
        }
        for name in said.difference(&found) {
            problems.push(format!("ARCHITECTURE.md: `{begin}...` names `{name}`, which has nothing of the kind"));
        }
    }
    problems
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
