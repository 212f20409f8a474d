//! Several queries in one text, as shells and files have them.

/// The queries of a text, without the semicolons between them; and whether the last one has its own.
///
/// ```
/// let (queries, is_complete) = kymo_sql::statements("select ';' -- no; end\n; select 2");
/// assert_eq!(queries, ["select ';' -- no; end", "select 2"]);
/// assert!(!is_complete);
/// ```
#[must_use]
pub fn statements(text: &str) -> (Vec<&str>, bool) {
    let (mut queries, mut start) = (Vec::new(), 0);
    let mut rest = text.char_indices().peekable();
    while let Some((at, letter)) = rest.next() {
        let next = rest.peek().map(|(_, next)| *next);
        match (letter, next) {
            ('\'' | '"' | '`', _) => while rest.next().is_some_and(|(_, inner)| inner != letter) {},
            ('-', Some('-')) => while rest.next().is_some_and(|(_, inner)| inner != '\n') {},
            ('/', Some('*')) => {
                let mut before = ' ';
                rest.next();
                for (_, inner) in rest.by_ref() {
                    if (before, inner) == ('*', '/') {
                        break;
                    }
                    before = inner;
                }
            }
            (';', _) => {
                queries.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    let is_complete = last.is_empty();
    queries.push(last);
    queries.retain(|query| !query.is_empty());
    (queries, is_complete)
}

#[cfg(test)]
mod tests {
    use super::statements;

    #[test]
    fn semicolons_in_texts_names_and_comments_end_nothing() {
        let check = |text: &str, expected: &[&str], is_complete| {
            assert_eq!(statements(text), (expected.to_vec(), is_complete), "{text}");
        };
        check("a; b;", &["a", "b"], true);
        check("select 'it''s;' from \"a;b\";", &["select 'it''s;' from \"a;b\""], true);
        check("a /* ; */ b /*", &["a /* ; */ b /*"], false);
        check("/*/ ; */ a;;", &["/*/ ; */ a"], true);
        check("a -- ;", &["a -- ;"], false);
        check("", &[], true);
        check("'open ;", &["'open ;"], false);
    }
}
