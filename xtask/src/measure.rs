//! `cargo xtask measure [FOLDER...]`: figures of the house that should fall or rise, for this clone and others side by side, so that states
//! can be compared.

use std::fs;
use std::path::Path;

use crate::{cycles, names, words};

/// Prints the figures: a row for each, a column for each folder.
pub(crate) fn print(roots: &[&Path]) {
    let columns: Vec<Vec<(String, String)>> = roots.iter().map(|root| figures(root)).collect();
    let heads: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
    println!("| measure | {} |\n|---{}|", heads.join(" | "), "|---".repeat(heads.len()));
    for (number, (measure, _)) in columns[0].iter().enumerate() {
        let values: Vec<&str> = columns.iter().map(|column| &*column[number].1).collect();
        println!("| {measure} | {} |", values.join(" | "));
    }
}

/// Each figure, and its value for a folder.
fn figures(root: &Path) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for (class, is_of) in words::CLASSES {
        let rates = words::all(root, is_of);
        rows.push((format!("`what` in 1000 words of {class}"), format!("{:.1}", rates.0)));
        rows.push((format!("`who`, `somebody`, `nobody` in 1000 words of {class}"), format!("{:.1}", rates.1)));
    }
    let (all, shared) = names::types(root);
    let share = 100.0 * shared as f64 / all.max(1) as f64;
    rows.push(("types that share their name with another type".to_owned(), format!("{share:.1} % of {all}")));
    let circles = cycles::check(root).len();
    rows.push(("groups of modules that need each other in a circle".to_owned(), circles.to_string()));
    let mut counts = Blocks::default();
    let mut binaries = 0;
    for folder in fs::read_dir(root.join("crates")).into_iter().flatten().flatten() {
        counts.add_folder(&folder.path().join("src"));
        let tests = fs::read_dir(folder.path().join("tests")).into_iter().flatten().flatten();
        binaries += tests.filter(|test| is_test_binary(&test.path())).count();
    }
    let rate = 1000.0 * counts.comments as f64 / counts.code.max(1) as f64;
    rows.push(("comments in bodies, in 1000 lines of Rust code without tests".to_owned(), format!("{rate:.1}")));
    rows.push(("lines of Rust code without tests".to_owned(), counts.code.to_string()));
    rows.push(("integration-test binaries".to_owned(), binaries.to_string()));
    let readme = fs::read_to_string(root.join("README.md")).unwrap_or_default().lines().count();
    rows.push(("lines of README.md".to_owned(), readme.to_string()));
    rows
}

/// Cargo makes a binary of each file in `tests`, and of each folder with a `main.rs`.
fn is_test_binary(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs") || path.join("main.rs").exists()
}

/// Lines of code, and blocks of comments between them that are no documentation.
#[derive(Default)]
struct Blocks {
    code: usize,
    comments: usize,
}

impl Blocks {
    fn add_folder(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.file_stem().is_some_and(|stem| stem == "tests") {
                continue;
            }
            if path.is_dir() {
                self.add_folder(&path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                self.add(&fs::read_to_string(&path).unwrap_or_default());
            }
        }
    }

    fn add(&mut self, text: &str) {
        let mut is_inside = false;
        for line in text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default().lines().map(str::trim) {
            let is_comment = line.starts_with("//") && !line.starts_with("///") && !line.starts_with("//!");
            // Notes on unsafe code are counted by another check.
            let counts = is_comment && !line.starts_with("// Safety:");
            self.comments += usize::from(counts && !is_inside);
            self.code += usize::from(!line.is_empty() && !line.starts_with("//"));
            is_inside = is_comment;
        }
    }
}
