//! A schema's text as tokens, each with the comments before it.

use crate::pleco::{self, PlecoError};
use crate::problem::{SchemaPlace, SchemaProblem};

/// The kind of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SchemaTokenKind {
    /// A name or a word of the language.
    Word(String),
    /// An integer.
    Number(i128),
    /// A text, without its quotes and escapes.
    Text(String),
    /// One character.
    Symbol(char),
    /// Nothing follows.
    End,
}

/// A token.
#[derive(Clone, Debug)]
pub(crate) struct SchemaToken {
    pub(crate) kind: SchemaTokenKind,
    pub(crate) place: SchemaPlace,
    /// As it stands in the file.
    pub(crate) source: String,
    /// The comments between the token before it and this one.
    pub(crate) comments: Vec<Comment>,
    /// An empty line stands before it, or before the first of its comments.
    pub(crate) has_gap: bool,
}

/// A comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) text: String,
    /// It stands in the line of the token before it.
    pub(crate) is_behind: bool,
}

/// Tokens of a file at most.
const TOKENS_MAX: usize = 1 << 20;
/// Bytes of a file at most.
pub(crate) const BYTES_MAX: usize = 16 << 20;

/// Symbols of the language.
const SYMBOLS: &str = "{}()[]:;,=.";

/// All tokens of a text; the last one is the end.
pub(crate) fn tokens(text: &str, file: usize) -> Result<Vec<SchemaToken>, SchemaProblem> {
    let mut lexer = SchemaLexer { text, at: 0, file, line: 1, column: 1 };
    let mut tokens: Vec<SchemaToken> = Vec::new();
    loop {
        let (comments, has_gap) = lexer.space(tokens.is_empty())?;
        let (place, start) = (lexer.place(), lexer.at);
        let kind = lexer.token(place)?;
        let source = text[start..lexer.at].to_owned();
        let is_end = kind == SchemaTokenKind::End;
        if tokens.len() == TOKENS_MAX {
            return Err(SchemaProblem::error(place, format!("a file has at most {TOKENS_MAX} words and signs")));
        }
        tokens.push(SchemaToken { kind, place, source, comments, has_gap });
        if is_end {
            return Ok(tokens);
        }
    }
}

struct SchemaLexer<'t> {
    text: &'t str,
    at: usize,
    file: usize,
    line: usize,
    column: usize,
}

impl SchemaLexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn place(&self) -> SchemaPlace {
        SchemaPlace { file: self.file, line: self.line, column: self.column }
    }

    /// Goes on by so many bytes.
    fn skip(&mut self, bytes: usize) {
        let text = &self.text[self.at..self.at + bytes];
        self.line += text.matches('\n').count();
        match text.rfind('\n') {
            Some(newline) => self.column = text[newline + 1..].chars().count() + 1,
            None => self.column += text.chars().count(),
        }
        self.at += bytes;
    }

    /// White space and comments; whether there was an empty line before the first of these or the token.
    fn space(&mut self, is_first: bool) -> Result<(Vec<Comment>, bool), SchemaProblem> {
        let (mut comments, mut has_gap, mut is_same_line) = (Vec::new(), false, !is_first);
        loop {
            let space = self.rest().len() - self.rest().trim_start().len();
            let newlines = self.rest()[..space].matches('\n').count();
            has_gap |= comments.is_empty() && newlines > 1;
            is_same_line &= newlines == 0;
            self.skip(space);
            let length = match self.rest() {
                rest if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
                rest if rest.starts_with("/*") => pleco::comment_length(rest).ok_or_else(|| {
                    SchemaProblem::error(self.place(), "the comment has no end")
                        .help("comments nest: each `/*` needs a `*/`")
                })?,
                _ => return Ok((comments, has_gap)),
            };
            comments.push(Comment { text: self.rest()[..length].trim_end().to_owned(), is_behind: is_same_line });
            self.skip(length);
        }
    }

    fn token(&mut self, place: SchemaPlace) -> Result<SchemaTokenKind, SchemaProblem> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(SchemaTokenKind::End) };
        let (kind, length) = match first {
            '"' => {
                let wrong = |PlecoError { expected, found, .. }| {
                    SchemaProblem::error(place, format!("in this text: expected {expected}, found {found}"))
                };
                {
                    let (text, length) = pleco::string(rest).map_err(wrong)?;
                    if let Some(control) = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
                        let message = format!("a text cannot have the control character `{}`", control.escape_debug());
                        return Err(SchemaProblem::error(place, message));
                    }
                    (SchemaTokenKind::Text(text), length)
                }
            }
            '-' | '0'..='9' => {
                let length =
                    rest[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(rest.len(), |at| at + 1);
                let number = number(&rest[..length]).ok_or_else(|| {
                    SchemaProblem::error(place, format!("`{}` is no number", &rest[..length]))
                        .help("numbers are as `12`, `-3`, `0x1F`, `1_000_000`, of 64 bits")
                })?;
                (SchemaTokenKind::Number(number), length)
            }
            first if first.is_ascii_alphabetic() || first == '_' => {
                let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                (SchemaTokenKind::Word(rest[..length].to_owned()), length)
            }
            first if SYMBOLS.contains(first) => (SchemaTokenKind::Symbol(first), 1),
            first => {
                return Err(SchemaProblem::error(place, format!("`{}` has no meaning here", first.escape_debug())));
            }
        };
        self.skip(length);
        Ok(kind)
    }
}

/// A number of 64 bits, with or without a sign.
fn number(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let digits: String = digits.chars().filter(|c| *c != '_').collect();
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse::<u64>(),
    };
    let number = sign * i128::from(value.ok()?);
    (number >= i128::from(i64::MIN)).then_some(number)
}

impl SchemaTokenKind {
    /// As messages say it.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Word(word) => format!("`{word}`"),
            Self::Number(number) => format!("`{number}`"),
            Self::Text(_) => "a text".to_owned(),
            Self::Symbol(symbol) => format!("`{symbol}`"),
            Self::End => "the end of the file".to_owned(),
        }
    }
}
