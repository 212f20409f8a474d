//! No file or function out of hand, no leftovers, no dead links.

use std::fs;
use std::path::{Path, PathBuf};

use crate::functions::functions;

/// Lines of a file, its tests not counted.
const FILE_LINES_MAX: usize = 800;
/// Lines of a function; the arms of a `match` beyond count half, as a table may be longer.
const FUNCTION_LINES_MAX: usize = 70;
/// Folders of what is built, and of what others wrote.
const NOT_OURS: [&str; 3] = ["target", "node_modules", "dist"];

/// What is out of hand.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for path in files(root, "rs") {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        rust(&shown, &text, &mut problems);
    }
    for path in files(root, "md") {
        links(root, &path, &mut problems);
    }
    problems
}

fn rust(path: &str, text: &str, problems: &mut Vec<String>) {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
    let lines = code.lines().count();
    if lines > FILE_LINES_MAX {
        problems.push(format!("{path}: {lines} lines; look for two files in it (at most {FILE_LINES_MAX})"));
    }
    if !text.starts_with("//!") {
        problems.push(format!("{path}: does not begin with `//!`"));
    }
    for function in functions(code) {
        if function.lines - function.arms / 2 > FUNCTION_LINES_MAX {
            let (line, name, lines) = (function.line, &function.name, function.lines);
            problems.push(format!("{path}:{line}: `{name}` has {lines} lines (at most {FUNCTION_LINES_MAX})"));
        }
    }
    for marker in ["TODO", "FIXME", "XXX"] {
        let spelled = format!("{marker}:");
        if code.contains(&spelled) {
            problems.push(format!("{path}: has a {marker}"));
        }
    }
}

/// Links to files of the repository lead somewhere.
fn links(root: &Path, path: &Path, problems: &mut Vec<String>) {
    let text = fs::read_to_string(path).unwrap_or_default();
    for piece in text.split("](").skip(1) {
        let target = piece.split([')', '#']).next().unwrap_or_default();
        let folder = path.parent().unwrap_or(root);
        if !target.is_empty() && !target.contains("://") && !folder.join(target).exists() {
            problems.push(format!("{}: leads to {target}, which is not there", path.display()));
        }
    }
}

/// Files of a kind, build output aside.
fn files(root: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && !NOT_OURS.contains(&name.as_str()) {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
