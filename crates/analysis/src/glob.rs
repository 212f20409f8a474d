//! Patterns for names: `*` is any text, `?` any character.

/// Whether the text is as the pattern says. After a mismatch only the last `*` takes one character more.
pub fn matches(glob: &str, text: &str) -> bool {
    let (glob, text): (Vec<char>, Vec<char>) = (glob.chars().collect(), text.chars().collect());
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < text.len() {
        match glob.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(&want) if want == '?' || want == text[from] => (at, from) = (at + 1, from + 1),
            _ => match star {
                Some((star_at, taken)) => {
                    star = Some((star_at, taken + 1));
                    (at, from) = (star_at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    glob[at..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn globs_match_like_a_shells() {
        for (glob, text, is) in [
            ("*", "", true),
            ("a*c", "abcbc", true),
            ("a?c", "ac", false),
            ("a*b*", "xab", false),
            ("*:end", "jobs:end", true),
        ] {
            assert_eq!(matches(glob, text), is, "{glob} {text}");
        }
    }
}
