//! Patterns of names: `*` is any text, `?` any character.

/// Whether a text matches a pattern. The time is at most the product of their lengths: after a mismatch, the last `*` takes one character more.
///
/// ```
/// assert!(kymo_schema::glob::matches("ne*:s?nt", "net:sent"));
/// ```
#[must_use]
pub fn matches(glob: &str, text: &str) -> bool {
    let (glob, text): (Vec<char>, Vec<char>) = (glob.chars().collect(), text.chars().collect());
    let (mut at, mut done) = (0, 0);
    // Where the last star stands, and how much of the text it takes.
    let mut star: Option<(usize, usize)> = None;
    while done < text.len() {
        match glob.get(at) {
            Some('*') => {
                star = Some((at, done));
                at += 1;
            }
            Some(expected) if *expected == '?' || *expected == text[done] => {
                at += 1;
                done += 1;
            }
            _ => {
                let Some((place, taken)) = star else { return false };
                star = Some((place, taken + 1));
                at = place + 1;
                done = taken + 1;
            }
        }
    }
    glob[at..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_take_what_they_must() {
        for (glob, text) in [
            ("*", ""),
            ("net:*", "net:sent"),
            ("*:s?nt", "net:sent"),
            ("*e*e*", "eee"),
            ("a*b", "axbxb"),
            ("a*c", "abcbc"),
            ("*:end", "jobs:end"),
        ] {
            assert!(matches(glob, text), "{glob} {text}");
        }
        for (glob, text) in [
            ("", "a"),
            ("net:*", "nets:sent"),
            ("?", ""),
            ("a*b", "abc"),
            ("net", "net:sent"),
            ("a?c", "ac"),
            ("a*b*", "xab"),
        ] {
            assert!(!matches(glob, text), "{glob} {text}");
        }
    }
}
