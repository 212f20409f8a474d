//! One word for one idea: how many types share their name with another type may only fall, and a term stands once in the glossary.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::cycles::without_tests;
use crate::functions::blank;

/// Types of a thousand that share their name with another type. Lower it when you have renamed some. Those that are left are twins of other
/// platforms and names that users of the tracer or of Python see.
const SHARED_MAX: usize = 16;

/// Names and terms that mean more than one thing.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let mut problems = terms(&fs::read_to_string(root.join("docs/GLOSSARY.md")).unwrap_or_default());
    let counts = counted(root);
    let (all, shared) = shares(&counts);
    if shared * 1000 > all * SHARED_MAX {
        let mut most: Vec<(&String, &usize)> = counts.iter().collect();
        most.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let most: Vec<String> = most.iter().take(8).map(|(name, count)| format!("{name} ({count})")).collect();
        problems.push(format!(
            "{shared} of {all} types share their name with another type, more than {SHARED_MAX} of 1000: give new types names of their \
             own; most often: {}",
            most.join(", ")
        ));
    }
    problems
}

/// How many types there are, and how many of them share their name.
pub(crate) fn types(root: &Path) -> (usize, usize) {
    shares(&counted(root))
}

/// How many types of each name there are.
fn counted(root: &Path) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for folder in fs::read_dir(root.join("crates")).into_iter().flatten().flatten() {
        read(&folder.path().join("src"), &mut counts);
    }
    counts
}

fn shares(counts: &BTreeMap<String, usize>) -> (usize, usize) {
    (counts.values().sum(), counts.values().filter(|count| **count > 1).sum())
}

fn read(folder: &Path, counts: &mut BTreeMap<String, usize>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        if path.is_dir() {
            read(&path, counts);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let code = without_tests(&blank(&fs::read_to_string(&path).unwrap_or_default()));
            code.lines().filter_map(type_of).for_each(|name| *counts.entry(name.to_owned()).or_default() += 1);
        }
    }
}

/// The name of the type that a line defines.
fn type_of(line: &str) -> Option<&str> {
    let (before, rest) = ["struct ", "enum ", "trait ", "union "].iter().find_map(|word| line.split_once(word))?;
    let is_definition =
        before.split_whitespace().all(|word| word.starts_with("pub") || matches!(word, "unsafe" | "(crate)"));
    let end = rest.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(rest.len());
    (is_definition && rest.starts_with(char::is_uppercase)).then(|| &rest[..end])
}

/// Terms that have two rows.
fn terms(glossary: &str) -> Vec<String> {
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    let cells = glossary.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    cells.filter(|cell| !matches!(*cell, "term" | "word")).for_each(|cell| *rows.entry(cell.trim()).or_default() += 1);
    let twice = rows.into_iter().filter(|(_, count)| *count > 1);
    twice.map(|(term, count)| format!("docs/GLOSSARY.md: `{term}` has {count} rows")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_counted_by_name() {
        let lines = [
            "pub(crate) struct Place<'a> {",
            "enum Kind {",
            "    type Item = u8;",
            "let structure = 1;",
            "impl Place {",
        ];
        assert_eq!(lines.map(type_of), [Some("Place"), Some("Kind"), None, None, None]);
        let counts = BTreeMap::from([("Place".to_owned(), 3), ("Kind".to_owned(), 1)]);
        assert_eq!(shares(&counts), (4, 3));
    }

    #[test]
    fn a_term_stands_once() {
        let glossary = "| term | meaning |\n|---|---|\n| run | x |\n| lane | y |\n| run | z |\n";
        assert_eq!(terms(glossary), ["docs/GLOSSARY.md: `run` has 2 rows"]);
    }
}
