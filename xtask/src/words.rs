//! Sentences name their subjects: `what`, `who` and `somebody` hide them. Each file has a limit, kept in `xtask/words.txt`, which may only
//! fall; files that are not listed there have the limits of new files.
//!
//! ```text
//! docs/http.md      2.0 0.9      `what` and `whatever` in 1000 words; `who`, `whoever`, `somebody`, `nobody` and their kind
//! ```
//!
//! Prose is what stands in documents outside of code, and in comments of code. `cargo xtask words` lowers limits to what files have now.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Where limits are kept.
const LIMITS: &str = "xtask/words.txt";
/// Limits of documents that are new, in 1000 words.
const OF_DOCUMENTS: Rates = Rates { what: 2.0, who: 1.0 };
/// Limits of comments in files that are new.
const OF_COMMENTS: Rates = Rates { what: 8.0, who: 2.5 };
/// Short texts may have so many of each kind, whatever the rate.
const FEW: f64 = 1.0;

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

    fn is_above(self, limits: Rates) -> bool {
        let above = |count: usize, limit: f64| count as f64 > (limit * self.words as f64 / 1000.0 + 1e-6).max(FEW);
        above(self.what, limits.what) || above(self.who, limits.who)
    }
}

/// Kinds of text, and which files have it.
pub(crate) const CLASSES: [(&str, fn(&str) -> bool); 3] = [
    ("documents", |path| path.ends_with(".md")),
    ("comments in Rust and C", |path| path.ends_with(".rs") || path.ends_with(".h")),
    ("comments in pages", |path| path.ends_with(".ts") || path.ends_with(".tsx")),
];

/// The rates of all files together that are of one kind: `what`, and `who` and `somebody`.
pub(crate) fn all(root: &Path, is_of: fn(&str) -> bool) -> (f64, f64) {
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
        let limits = kept.get(&path).copied().unwrap_or_else(|| of_new(&path));
        let now = counts.rates();
        counts.is_above(limits).then(|| {
            format!(
                "{path}: `what` stands {:.1} times in 1000 words (at most {:.1}), `who`, `somebody` and `nobody` {:.1} times (at most {:.1}): \
                 name the subjects",
                now.what, limits.what, now.who, limits.who
            )
        })
    };
    counted(root).into_iter().filter_map(worse).collect()
}

/// Lowers the limits to what files have now; none rises.
pub(crate) fn lower(root: &Path) {
    let kept = kept(root);
    let lowered = counted(root).into_iter().filter_map(|(path, counts)| {
        let (new, now) = (of_new(&path), counts.rates());
        let before = kept.get(&path).copied();
        let limits =
            before.map_or(now, |before| Rates { what: before.what.min(now.what), who: before.who.min(now.who) });
        // What is no worse than a new file needs no line.
        let needs_line = limits.what > new.what || limits.who > new.who;
        needs_line.then(|| format!("{path} {:.1} {:.1}\n", up(limits.what.max(new.what)), up(limits.who.max(new.who))))
    });
    fs::write(root.join(LIMITS), lowered.collect::<String>()).expect("the repository can be written");
}

/// The next tenth.
fn up(rate: f64) -> f64 {
    (rate * 10.0).ceil() / 10.0
}

fn of_new(path: &str) -> Rates {
    if path.ends_with(".md") { OF_DOCUMENTS } else { OF_COMMENTS }
}

fn kept(root: &Path) -> BTreeMap<String, Rates> {
    let text = fs::read_to_string(root.join(LIMITS)).unwrap_or_default();
    let line = |line: &str| {
        let mut words = line.rsplitn(3, ' ');
        let (who, what, path) = (words.next()?, words.next()?, words.next()?);
        Some((path.to_owned(), Rates { what: what.parse().ok()?, who: who.parse().ok()? }))
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
        let limits = Rates { what: 2.0, who: 1.0 };
        let counts = |words, what, who| Counts { words, what, who };
        assert!(!counts(10, 1, 1).is_above(limits) && counts(10, 2, 0).is_above(limits));
        assert!(!counts(1000, 2, 1).is_above(limits) && counts(1000, 3, 0).is_above(limits));
        assert!(counts(1000, 0, 2).is_above(limits));
    }
}
