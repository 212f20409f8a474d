//! How long functions are, found without parsing Rust: comments and literals are blanked, braces counted.

/// A function.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Line of its `fn`, from 1.
    pub(crate) line: usize,
    /// Lines from there to its closing brace.
    pub(crate) lines: usize,
    /// Lines that are arms of a `match`, or part of one that stands on several lines.
    pub(crate) arms: usize,
}

/// The functions of a source text.
pub(crate) fn functions(source: &str) -> Vec<Function> {
    let blank = blank(source);
    let lines: Vec<&str> = blank.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(name) = name_of(line) else { continue };
        if let Some(end) = end_of(&lines, index) {
            let arms = lines[index..=end].iter().filter(|line| line.contains("=>")).count();
            found.push(Function { name, line: index + 1, lines: end - index + 1, arms });
        }
    }
    found
}

fn name_of(line: &str) -> Option<String> {
    let (before, after) = line.split_once("fn ")?;
    let starts = before.split_whitespace().all(|word| {
        word.starts_with("pub") || ["const", "async", "unsafe", "extern", "\"C\"", "(crate)"].contains(&word)
    });
    let name: String = after.chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect();
    (starts && !name.is_empty()).then_some(name)
}

/// The line with the brace that closes what opens from `start` on; `None` for a declaration without a body.
fn end_of(lines: &[&str], start: usize) -> Option<usize> {
    let mut open = 0_i32;
    let mut begun = false;
    for (index, line) in lines.iter().enumerate().skip(start) {
        for character in line.chars() {
            match character {
                '{' => {
                    open += 1;
                    begun = true;
                }
                '}' => open -= 1,
                ';' if !begun && open == 0 => return None,
                _ => {}
            }
            if begun && open == 0 {
                return Some(index);
            }
        }
    }
    None
}

/// The source with comments, strings and characters replaced by spaces; lines stay where they are.
pub(crate) fn blank(source: &str) -> String {
    let characters: Vec<char> = source.chars().collect();
    let mut out: Vec<char> = Vec::with_capacity(characters.len());
    let mut at = 0;
    while at < characters.len() {
        let end = match (characters[at], characters.get(at + 1)) {
            ('/', Some('/')) => line_end(&characters, at),
            ('/', Some('*')) => find(&characters, at + 2, &['*', '/']),
            ('"', _) => quoted_end(&characters, at, '"'),
            ('r', Some('"' | '#')) if !part_of_word(&characters, at) => raw_end(&characters, at),
            ('\'', _) if is_character(&characters, at) => quoted_end(&characters, at, '\''),
            _ => {
                out.push(characters[at]);
                at += 1;
                continue;
            }
        };
        out.extend(characters[at..end].iter().map(|&character| if character == '\n' { '\n' } else { ' ' }));
        at = end;
    }
    out.into_iter().collect()
}

fn part_of_word(characters: &[char], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| characters[before].is_alphanumeric() || characters[before] == '_')
}

fn line_end(characters: &[char], at: usize) -> usize {
    characters[at..].iter().position(|&character| character == '\n').map_or(characters.len(), |offset| at + offset)
}

fn find(characters: &[char], from: usize, what: &[char]) -> usize {
    let found = characters.get(from..).and_then(|rest| rest.windows(what.len()).position(|window| window == what));
    found.map_or(characters.len(), |offset| from + offset + what.len())
}

fn quoted_end(characters: &[char], at: usize, quote: char) -> usize {
    let mut end = at + 1;
    while end < characters.len() && characters[end] != quote {
        end += if characters[end] == '\\' { 2 } else { 1 };
    }
    (end + 1).min(characters.len())
}

fn raw_end(characters: &[char], at: usize) -> usize {
    let hashes = characters[at + 1..].iter().take_while(|&&character| character == '#').count();
    if characters.get(at + 1 + hashes) != Some(&'"') {
        return at + 1;
    }
    let closing: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    find(characters, at + 2 + hashes, &closing)
}

/// A character literal, not a lifetime.
fn is_character(characters: &[char], at: usize) -> bool {
    characters.get(at + 1) == Some(&'\\') || characters.get(at + 2) == Some(&'\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_in_strings_and_comments_do_not_count() {
        let source = "fn one() {\n    let a = \"{\"; // {\n    let b = '{';\n}\npub(crate) fn two<'a>() -> &'a str {\n    r#\"{\"#\n}\nfn three();\n";
        let found: Vec<(String, usize)> =
            functions(source).into_iter().map(|found| (found.name, found.lines)).collect();
        assert_eq!(found, [("one".to_owned(), 4), ("two".to_owned(), 3)]);
    }
}
