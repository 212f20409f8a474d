//! Sentences name their subjects: `what`, `who` and `somebody` hide them. Each file has a limit, kept in `xtask/words.txt`, which may only
//! fall; files that are not listed there have the limits of new files.
//!
//! ```text
//! docs/http.md 4 2      how often `what` and `whatever` may stand there; `who`, `whoever`, `somebody`, `nobody` and their kind
//! ```
//!
//! Where a file has fewer of them in 1000 words than a new file may have, it needs no line. Prose is what stands in documents outside of code, and in comments of code. `cargo xtask words` lowers limits to what files have now.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Where limits are kept.
const LIMITS: &str = "xtask/words.txt";
/// How many of 1000 words they may be in documents that are new.
const OF_DOCUMENTS: Rates = Rates { what: 2.0, who: 1.0 };
/// The same of comments in files that are new.
const OF_COMMENTS: Rates = Rates { what: 8.0, who: 2.5 };
/// Short texts may have so many of each kind, whatever the rate.
const FEW: usize = 1;

/// How often words stand among 1000.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rates {
    what: f64,
    who: f64,
}

/// How often words stand in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    words: usize,
    what: usize,
    who: usize,
}

impl Counts {
    fn rates(self) -> Rates {
        let rate = |count: usize| 1000.0 * count as f64 / self.words.max(1) as f64;
        Rates { what: rate(self.what), who: rate(self.who) }
    }

    /// What a new file of so many words may have.
    fn allowed(self, limits: Rates) -> Self {
        let allowed = |limit: f64| ((limit * self.words as f64 / 1000.0) as usize).max(FEW);
        Self { words: self.words, what: allowed(limits.what), who: allowed(limits.who) }
    }
}

/// Whether a file is of a kind, by its path.
type IsOf = fn(&str) -> bool;
/// Kinds of text, and the files of each.
pub(crate) const CLASSES: [(&str, IsOf); 3] = [
    ("documents", |path| path.ends_with(".md")),
    ("comments in Rust and C", |path| path.ends_with(".rs") || path.ends_with(".h")),
    ("comments in pages", |path| path.ends_with(".ts") || path.ends_with(".tsx")),
];

/// The rates of all files together that are of one kind: `what`, and `who` and `somebody`.
pub(crate) fn all(root: &Path, is_of: IsOf) -> (f64, f64) {
    let of_kind = counted(root).into_iter().filter(|(path, _)| is_of(path)).map(|(_, counts)| counts);
    let add = |sum: Counts, one: Counts| Counts {
        words: sum.words + one.words,
        what: sum.what + one.what,
        who: sum.who + one.who,
    };
    let Rates { what, who } = of_kind.fold(Counts::default(), add).rates();
    (what, who)
}

/// Files that have become worse.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let kept = kept(root);
    let worse = |(path, counts): (String, Counts)| {
        let allowed = counts.allowed(of_new(&path));
        let (what, who) = kept.get(&path).copied().unwrap_or_default();
        let (what, who) = (what.max(allowed.what), who.max(allowed.who));
        (counts.what > what || counts.who > who).then(|| {
            format!(
                "{path}: `what` stands {} times (at most {what}), `who`, `somebody` and `nobody` {} times (at most {who}): name the subjects",
                counts.what, counts.who
            )
        })
    };
    counted(root).into_iter().filter_map(worse).collect()
}

/// Lowers the limits to what files have now; none rises.
pub(crate) fn lower(root: &Path) {
    let kept = kept(root);
    let line = |(path, counts): (String, Counts)| {
        let (what, who) = kept.get(&path).copied().unwrap_or((counts.what, counts.who));
        let (what, who) = (what.min(counts.what), who.min(counts.who));
        let allowed = counts.allowed(of_new(&path));
        (what > allowed.what || who > allowed.who).then(|| format!("{path} {what} {who}\n"))
    };
    let lines: String = counted(root).into_iter().filter_map(line).collect();
    fs::write(root.join(LIMITS), lines).expect("the repository can be written");
}

fn of_new(path: &str) -> Rates {
    if path.ends_with(".md") { OF_DOCUMENTS } else { OF_COMMENTS }
}

fn kept(root: &Path) -> BTreeMap<String, (usize, usize)> {
    let text = fs::read_to_string(root.join(LIMITS)).unwrap_or_default();
    let line = |line: &str| {
        let mut words = line.rsplitn(3, ' ');
        let (who, what, path) = (words.next()?, words.next()?, words.next()?);
        Some((path.to_owned(), (what.parse().ok()?, who.parse().ok()?)))
    };
    text.lines().filter_map(line).collect()
}

/// All documents and sources that git knows, or does not ignore.
fn counted(root: &Path) -> Vec<(String, Counts)> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "*.md", "*.rs", "*.ts", "*.tsx", "*.h"])
        .current_dir(root)
        .output();
    let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let read = |path: &str| {
        let text = fs::read_to_string(root.join(path)).ok()?;
        let prose = if path.ends_with(".md") { of_document(&text) } else { of_source(&text) };
        Some((path.to_owned(), count(&prose)))
    };
    listed.lines().filter_map(read).collect()
}

/// A document without blocks and spans of code.
fn of_document(text: &str) -> String {
    let outside = text.split("```").step_by(2).collect::<Vec<_>>().join(" ");
    outside.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// The comments of a source, without spans of code. A comment begins a line, or stands behind a space.
fn of_source(text: &str) -> String {
    let comment = |line: &str| {
        let line = line.trim_start();
        let begins = line.starts_with("//") || line.starts_with("/*") || line.starts_with("* ") || line == "*";
        let at = if begins { Some(0) } else { line.find(" // ") };
        at.map(|at| line[at..].split('`').step_by(2).collect::<Vec<_>>().join(" "))
    };
    text.lines().filter_map(comment).collect::<Vec<_>>().join("\n")
}

fn count(prose: &str) -> Counts {
    let mut counts = Counts::default();
    for word in prose.split(|character: char| !character.is_alphabetic() && character != '\'') {
        counts.words += usize::from(word.chars().any(char::is_alphabetic));
        match word.to_ascii_lowercase().as_str() {
            "what" | "whatever" => counts.what += 1,
            "who" | "whoever" | "whom" | "whose" | "somebody" | "anybody" | "everybody" | "nobody" => counts.who += 1,
            _ => {}
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_what_is_not_code() {
        let document = "What is here? `what`\n```sh\nwhat\n```\nNobody knows.";
        assert_eq!(count(&of_document(document)), Counts { words: 5, what: 1, who: 1 });
        let source = "//! What `who` is.\nlet what = \"// what\"; // whose\n/// Whatever";
        assert_eq!(count(&of_source(source)), Counts { words: 4, what: 2, who: 1 });
    }

    #[test]
    fn limits_are_rates_but_for_short_texts() {
        let allowed = |words| {
            let allowed = Counts { words, what: 0, who: 0 }.allowed(Rates { what: 2.0, who: 1.0 });
            (allowed.what, allowed.who)
        };
        assert_eq!([allowed(10), allowed(1000), allowed(2500)], [(1, 1), (2, 1), (5, 2)]);
    }
}
