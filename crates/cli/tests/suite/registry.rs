//! What is derived from the registry of analyses, or says of each what it is: Python's methods, documents.
//!
//! `UPDATE=1` writes what is derived.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use kymo_session::{AnalysisEntry, AnalysisKind, analyses};

/// Examples that some methods have in Python.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "cpu",
        "``kymo cpu --help`` says what options there are; docs/analyses.md what is counted. This is so for every analysis.\n\n\
         >>> kernel.cpu(by=\"process\", top=3).names  # doctest: +SKIP\n('per-process',)",
    ),
    (
        "rates",
        ">>> trace.rates(period=\"20ms\")[\"course\"].schema\n\
         Schema(period_begin: Timestamp(ns, \"UTC\"), period_end: Timestamp(ns, \"UTC\"), name: Utf8, count: Int64)",
    ),
    ("gaps", ">>> trace.gaps(top=1)\n<kymograph.Answer gaps: ...; complete>"),
    ("threads", ">>> trace.threads(by=\"application\", top=3)\n<kymograph.Answer threads: ...; complete>"),
];

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Whether an analysis takes nothing but the options of all; the others have a method of their own in Python.
fn is_plain(entry: &AnalysisEntry) -> bool {
    matches!(entry.kind, AnalysisKind::Plain(_)) && entry.name != "count"
}

fn python() -> String {
    let mut text = String::from(
        "\"\"\"Analyses that take nothing but the options of all. Written by `UPDATE=1 cargo test --package kymo-cli registry`, from the registry in\n\
         crates/analysis/src/registry.rs.\"\"\"\n\n\
         from __future__ import annotations\n\n\
         TYPE_CHECKING = False\n\
         if TYPE_CHECKING:\n    \
             from collections.abc import Iterable, Mapping\n    \
             from typing import Any, Unpack\n\n    \
             from kymograph._answer import Answer\n    \
             from kymograph._words import Options\n\n\
         #: All analyses by name, also those that `Trace` has methods of its own for.\n",
    );
    let names: Vec<String> = analyses().iter().map(|entry| format!("\"{}\"", entry.name)).collect();
    let _ = write!(text, "NAMES = ({})\n\n\n", names.join(", "));
    text += "class Analyses:\n    \"\"\"What `kymograph.Trace` can be asked by a method for each analysis.\"\"\"\n\n    \
             def _ask(self, command: str, options: Mapping[str, Any], known: Iterable[str] | None = None, *files: str) -> Answer:\n        \
             raise NotImplementedError\n";
    for entry in analyses().iter().filter(|entry| is_plain(entry)) {
        let AnalysisEntry { name, sentence, .. } = entry;
        let _ = write!(
            text,
            "\n    def {name}(self, **options: Unpack[Options]) -> Answer:\n        \"\"\"{sentence}: ``kymo {name}``."
        );
        match EXAMPLES.iter().find(|example| example.0 == name) {
            Some((_, example)) => {
                text.push('\n');
                for line in example.lines() {
                    let _ = write!(text, "\n{}{line}", if line.is_empty() { "" } else { "        " });
                }
                text += "\n        \"\"\"\n";
            }
            None => text += "\"\"\"\n",
        }
        let _ = writeln!(text, "        return self._ask(\"{name}\", options)");
    }
    text
}

#[test]
fn methods_of_python_are_the_analyses() {
    let (path, wanted) = (file("python/kymograph/_analyses.py"), python());
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "{}: run `UPDATE=1 cargo test --package kymo-cli registry`", path.display());
    let own = fs::read_to_string(file("python/kymograph/_trace.py")).unwrap();
    for AnalysisEntry { name, sentence, .. } in analyses().iter().filter(|entry| !is_plain(entry)) {
        let method = own.split(&format!("    def {name}(\n")).nth(1);
        let method = method.unwrap_or_else(|| panic!("Trace.{name} is missing in python/kymograph/_trace.py"));
        let said = method.split("\"\"\"").nth(1).unwrap_or_default();
        assert!(name == "count" || said.starts_with(&format!("{sentence}: ``kymo {name}``.")), "Trace.{name}: {said}");
    }
}

/// Whether a text has a word that begins like this, and is no end of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_'))
}

/// `kymo --help` has each analysis with its sentence, in the order of the registry, behind `count`.
#[test]
fn help_lists_every_analysis() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_kymo")).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let mut at = help.find("\n  count ").expect("it is a command");
    for AnalysisEntry { name, sentence, .. } in analyses().iter().filter(|entry| entry.name != "count") {
        let line = format!("\n  {name} ");
        let behind = help[at..].find(&line).unwrap_or_else(|| panic!("`{name}` stands elsewhere in:\n{help}"));
        at += behind + 1;
        assert!(help[at..].lines().next().unwrap().ends_with(&**sentence), "{help}");
    }
    assert!(help[at..].contains("\n  state "), "what stood behind analyses stands there");
}

#[test]
fn documents_have_every_analysis() {
    let read = |name: &str| fs::read_to_string(file(name)).unwrap();
    let (defined, python, sql) = (read("docs/analyses.md"), read("docs/python.md"), read("docs/sql.md"));
    for AnalysisEntry { name, sql_name, kind, .. } in analyses() {
        let is_heading = |line: &str| {
            let mut words = line.strip_prefix("## ").into_iter().flat_map(|rest| rest.split([' ', ',']));
            words.any(|word| word == name)
        };
        let section = defined.lines().skip_while(|line| !is_heading(line)).enumerate();
        let section: Vec<&str> =
            section.take_while(|(at, line)| *at == 0 || !line.starts_with("## ")).map(|it| it.1).collect();
        assert!(!section.is_empty(), "docs/analyses.md has no section of `{name}`");
        for table in kind.tables().tables {
            let class = format!("`{}`", table.class);
            assert!(
                section.iter().any(|line| line.contains(&class)),
                "docs/analyses.md says nothing of {class} of `{name}`"
            );
        }
        assert!(has_word(&python, &format!("{name}()")), "docs/python.md does not name `{name}()`");
        assert!(has_word(&sql, &format!("{sql_name}(")), "docs/sql.md does not name `{sql_name}()`");
    }
}

/// A line below a table names columns that have no room: names must tell columns apart.
#[test]
fn columns_of_a_table_have_different_titles() {
    for entry in analyses() {
        for table in entry.kind.tables().tables {
            let mut titles: Vec<&str> = table.columns.iter().map(|column| column.title.as_str()).collect();
            titles.sort_unstable();
            let twice: Vec<&[&str]> = titles.windows(2).filter(|pair| pair[0] == pair[1]).collect();
            assert!(twice.is_empty(), "{} {}: {twice:?}", entry.name, table.class);
        }
    }
}
