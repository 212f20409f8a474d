//! Patterns of names: `*` is any text, `?` any character.

/// Whether a text matches a pattern. The time is at most the product of their lengths: after a mismatch, the last `*` takes one character more.
///
/// ```
/// assert!(kymo_schema::glob::matches("ne*:s?nt", "net:sent"));
/// ```
#[must_use]
pub fn matches(glob: &str, text: &str) -> bool {
    // A tracer has no allocator: positions are bytes of both texts, always between characters.
    let (mut at, mut done) = (0, 0);
    // Position behind the last star, and the end of the text that the star takes.
    let mut star: Option<(usize, usize)> = None;
    while let Some(next) = text[done..].chars().next() {
        match glob[at..].chars().next() {
            Some('*') => {
                at += 1;
                star = Some((at, done));
            }
            Some(expected) if expected == '?' || expected == next => {
                at += expected.len_utf8();
                done += next.len_utf8();
            }
            _ => {
                let Some((place, taken)) = star else { return false };
                // The star takes one character more.
                let taken = taken + text[taken..].chars().next().map_or(0, char::len_utf8);
                star = Some((place, taken));
                (at, done) = (place, taken);
            }
        }
    }
    glob[at..].bytes().all(|rest| rest == b'*')
}

/// A pattern of event names, which has a provider or a wildcard.
///
/// # Errors
///
/// Why it is none, for people.
///
/// ```
/// assert!(kymo_schema::glob::event_pattern("net:*").is_ok() && kymo_schema::glob::event_pattern("net").is_err());
/// ```
#[cfg(feature = "std")]
pub fn event_pattern(text: &str) -> Result<String, String> {
    let name = text.strip_prefix('!').unwrap_or(text);
    match name {
        "" => Err("an event is called PROVIDER:NAME; all are `*`".to_owned()),
        name if !name.contains([':', '*', '?']) => Err(format!(
            "an event is called PROVIDER:NAME; `{name}:*` is all of a provider, `*:{name}` one of this name of any"
        )),
        _ => Ok(text.to_owned()),
    }
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
            ("?é*ü", "ßéäüü"),
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
