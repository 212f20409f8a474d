//! The same file, tidy: one statement in a line, four spaces for each brace, comments where they were.

use std::path::Path;

use crate::lexer::{Comment, SchemaToken, SchemaTokenKind, tokens};
use crate::parse::{is_schema, parse};
use crate::problem::{SchemaPlace, SchemaProblem, SchemaProblems};

/// Characters of a line at most, where that can be had by breaking it at braces.
const WIDTH: usize = 100;

/// A file with its layout put right. Laying out the result changes nothing.
///
/// # Errors
///
/// The file is not in this language, or has a mistake.
///
/// ```
/// use std::path::Path;
/// let text = "schema shop 1;subsystem cache{event look{text page,u32 size},};";
/// let tidy = kymo_define::layout(Path::new("shop.kymo"), text).unwrap();
/// assert_eq!(tidy, "schema shop 1;\nsubsystem cache {\n    event look { text page, u32 size },\n};\n");
/// ```
pub fn layout(path: &Path, text: &str) -> Result<String, SchemaProblems> {
    let refused = |problem| SchemaProblems { files: vec![path.to_owned()], problems: vec![problem] };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !is_schema(text) {
        let place = SchemaPlace { file: 0, line: 1, column: 1 };
        let message = "files of `pleco` stay as they are: only those that begin with `schema` have a layout";
        return Err(refused(SchemaProblem::error(place, message)));
    }
    let (_, mut problems) = parse(text, 0);
    if !problems.is_empty() {
        return Err(refused(problems.swap_remove(0)));
    }
    let tokens = tokens(text, 0).map_err(refused)?;
    let mut writer = LayoutWriter { out: String::new(), depth: 0, is_fresh: true };
    writer.all(&tokens);
    Ok(writer.out)
}

struct LayoutWriter {
    out: String,
    depth: usize,
    /// A line begins.
    is_fresh: bool,
}

impl LayoutWriter {
    fn all(&mut self, tokens: &[SchemaToken]) {
        let mut at = 0;
        while at < tokens.len() {
            let token = &tokens[at];
            let before = at.checked_sub(1).map(|before| &tokens[before]);
            let closes = token.kind == SchemaTokenKind::Symbol('}');
            self.comments(&token.comments, token.has_gap, closes);
            if token.kind == SchemaTokenKind::End {
                self.end_line();
                return;
            }
            if closes {
                self.end_line();
                self.depth -= 1;
            }
            let has_gap = token.has_gap && token.comments.is_empty() && !closes;
            self.word(before, token, has_gap);
            match token.kind {
                SchemaTokenKind::Symbol('{') => {
                    if let Some(end) = self.fits(tokens, at) {
                        for place in at + 1..=end {
                            self.flat(&tokens[place - 1], &tokens[place]);
                        }
                        at = end;
                    } else {
                        self.end_line();
                        self.depth += 1;
                    }
                }
                SchemaTokenKind::Symbol(',') if is_in_braces(tokens, at) => self.break_after(tokens, at),
                SchemaTokenKind::Symbol(';') => self.break_after(tokens, at),
                _ => {}
            }
            at += 1;
        }
    }

    /// Ends the line, unless a comment stands behind it.
    fn break_after(&mut self, tokens: &[SchemaToken], at: usize) {
        let is_behind = tokens.get(at + 1).and_then(|next| next.comments.first()).is_some_and(|first| first.is_behind);
        if !is_behind {
            self.end_line();
        }
    }

    fn comments(&mut self, comments: &[Comment], has_gap: bool, closes: bool) {
        for (place, comment) in comments.iter().enumerate() {
            if comment.is_behind && !self.is_fresh {
                self.out.push(' ');
            } else {
                self.end_line();
                if place == 0 && has_gap && !closes {
                    self.gap();
                }
                self.indent();
            }
            self.out += &comment.text.replace('\r', "");
            self.is_fresh = false;
            self.end_line();
        }
    }

    fn word(&mut self, before: Option<&SchemaToken>, token: &SchemaToken, has_gap: bool) {
        if self.is_fresh {
            if has_gap {
                self.gap();
            }
            self.indent();
        } else if before.is_some_and(|before| has_space(&before.kind, &token.kind)) {
            self.out.push(' ');
        }
        self.out += &token.source;
        self.is_fresh = false;
    }

    /// A token within braces that fit into the line.
    fn flat(&mut self, before: &SchemaToken, token: &SchemaToken) {
        if has_space(&before.kind, &token.kind) {
            self.out.push(' ');
        }
        self.out += &token.source;
    }

    /// Where the braces end that begin at a token, if they stay in this line: as they were, and if there is room.
    fn fits(&self, tokens: &[SchemaToken], open: usize) -> Option<usize> {
        if self.depth == 0 && begins_subsystem(&tokens[..open]) {
            return None;
        }
        let mut depth = 0;
        let mut width = self.out.len() - self.out.rfind('\n').map_or(0, |at| at + 1);
        for (at, token) in tokens.iter().enumerate().skip(open) {
            if at > open {
                let is_first_below = at == open + 1 && token.place.line != tokens[open].place.line;
                if !token.comments.is_empty() || is_first_below || token.source.contains('\n') {
                    return None;
                }
                width += token.source.chars().count() + usize::from(has_space(&tokens[at - 1].kind, &token.kind));
                if width >= WIDTH {
                    return None;
                }
            }
            match token.kind {
                SchemaTokenKind::Symbol('{') => depth += 1,
                SchemaTokenKind::Symbol('}') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                // The comma or semicolon behind it.
                return (width < WIDTH).then_some(at);
            }
        }
        None
    }

    fn indent(&mut self) {
        self.out.extend(std::iter::repeat_n("    ", self.depth));
    }

    /// An empty line, but not at the beginning of something.
    fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") && !self.out.ends_with("{\n") {
            self.out.push('\n');
        }
    }

    fn end_line(&mut self) {
        if !self.is_fresh {
            self.out.push('\n');
            self.is_fresh = true;
        }
    }
}

/// Whether the item that these tokens end with is a subsystem: its braces are never in one line.
fn begins_subsystem(tokens: &[SchemaToken]) -> bool {
    let before = tokens.iter().rposition(|token| token.kind == SchemaTokenKind::Symbol(';'));
    tokens.get(before.map_or(0, |before| before + 1)).is_some_and(|first| first.source == "subsystem")
}

/// Whether a comma separates things in braces, not in parentheses.
fn is_in_braces(tokens: &[SchemaToken], at: usize) -> bool {
    let mut depth = 0;
    for token in tokens[..at].iter().rev() {
        match token.kind {
            SchemaTokenKind::Symbol(')' | ']') => depth += 1,
            SchemaTokenKind::Symbol('(' | '[') if depth == 0 => return false,
            SchemaTokenKind::Symbol('(' | '[') => depth -= 1,
            SchemaTokenKind::Symbol('{' | '}' | ';') if depth == 0 => return true,
            _ => {}
        }
    }
    true
}

/// Whether a space stands between two tokens of a line.
fn has_space(before: &SchemaTokenKind, token: &SchemaTokenKind) -> bool {
    let opens = matches!(before, SchemaTokenKind::Symbol('(' | '[' | '.'));
    let closes = matches!(token, SchemaTokenKind::Symbol(',' | ';' | ':' | ')' | ']' | '[' | '.'));
    !opens && !closes
}
