//! Patterns of events' names, and the texts that their stars stand for.
//!
//! ```text
//! syscall_entry_*      syscall_entry_read     1: read
//! *:sys_*_?            syscalls:sys_a_b       1: syscalls   2: a
//! ```
//!
//! A star stands for as little as possible, but for the last one, which stands for the rest.

use std::fmt;

/// A pattern of names: `*` is any text, `?` any character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    text: String,
    /// Bytes before the first `*` or `?`: most names differ there.
    plain: usize,
}

/// The texts of a pattern's stars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captures<'n>(Vec<&'n str>);

impl NamePattern {
    /// A pattern.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let plain = text.find(['*', '?']).unwrap_or(text.len());
        Self { text, plain }
    }

    /// As it is written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many stars it has.
    #[must_use]
    pub fn stars(&self) -> usize {
        self.text.matches('*').count()
    }

    /// The texts of its stars in a name; `None`: the name does not match.
    #[must_use]
    pub fn captures<'n>(&self, name: &'n str) -> Option<Captures<'n>> {
        let rest = name.strip_prefix(&self.text[..self.plain])?;
        let pattern = &self.text[self.plain..];
        if pattern.is_empty() {
            return rest.is_empty().then(|| Captures(Vec::new()));
        }
        let mut stars: Vec<Star> = Vec::new();
        let (mut at, mut of) = (0, 0);
        while at < rest.len() || of < pattern.len() {
            let letter = rest[at..].chars().next();
            match (pattern[of..].chars().next(), letter) {
                (Some('*'), _) => {
                    of += 1;
                    stars.push(Star { begin: at, end: at, behind: of });
                }
                (Some('?'), Some(letter)) => (at, of) = (at + letter.len_utf8(), of + 1),
                (Some(wanted), Some(letter)) if wanted == letter => {
                    (at, of) = (at + letter.len_utf8(), of + letter.len_utf8());
                }
                // The last star takes one letter more, and the rest of the pattern is tried again.
                _ => {
                    let star = stars.last_mut()?;
                    star.end += rest[star.end..].chars().next()?.len_utf8();
                    (at, of) = (star.end, star.behind);
                }
            }
        }
        Some(Captures(stars.iter().map(|star| &rest[star.begin..star.end]).collect()))
    }
}

/// A star, and the text that it matches.
struct Star {
    begin: usize,
    end: usize,
    /// The rest of the pattern behind it.
    behind: usize,
}

impl<'n> Captures<'n> {
    /// The text of a star, counted from 1.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<&'n str> {
        self.0.get(number.checked_sub(1)?).copied()
    }

    /// The text of the first star; nothing where there is none.
    #[must_use]
    pub fn first(&self) -> &'n str {
        self.get(1).unwrap_or_default()
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, name: &str, expected: Option<&[&str]>) {
        let found = NamePattern::new(pattern).captures(name);
        assert_eq!(found.map(|captures| captures.0), expected.map(<[&str]>::to_vec), "{pattern} of {name}");
    }

    #[test]
    fn stars_stand_for_text() {
        check("sched_switch", "sched_switch", Some(&[]));
        check("sched_switch", "sched_switches", None);
        check("sys_*", "sys_read", Some(&["read"]));
        check("sys_*", "syscall_entry_read", None);
        check("*_e?try_*", "a_entry_b", Some(&["a", "b"]));
        check("*:sys_*_*", "x:sys_a_b_c", Some(&["x", "a", "b_c"]));
        check("*", "", Some(&[""]));
        check("?", "", None);
        check("a*b*c", "aXbYbZ", None);
        check("ä*?", "äöü", Some(&["ö"]));
    }

    #[test]
    fn many_stars_end() {
        check(&"*a".repeat(30), &"a".repeat(29), None);
        check(&("*a".repeat(30) + "b"), &"a".repeat(2000), None);
    }
}
