//! TSDL text to tokens. Tokens are slices of the text; nothing is copied.

use std::ops::Range;

use crate::tsdl::problem::Problem;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name or a keyword.
    Word,
    /// An integer, with its suffix.
    Integer,
    /// A string or character literal, with its quotes.
    Text,
    /// Punctuation.
    Mark,
    /// The end of the text.
    End,
}

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    pub(crate) start: usize,
}

impl Token<'_> {
    pub(crate) fn span(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }
}

/// Splits the text; what is no token is reported and passed over.
pub(crate) fn tokens(text: &str) -> (Vec<Token<'_>>, Vec<(Range<usize>, Problem)>) {
    let mut tokens = Vec::with_capacity(text.len() / 4);
    let mut problems = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let (kind, end) = match bytes[at] {
            byte if byte.is_ascii_whitespace() || byte == 0 => {
                at += 1;
                continue;
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'*' | b'/')) => {
                match comment_end(bytes, at) {
                    Some(end) => at = end,
                    None => {
                        problems.push((at..at + 2, Problem::UnclosedComment));
                        at = bytes.len();
                    }
                }
                continue;
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => match text_prefix(bytes, at) {
                Some(quote) => (Kind::Text, text_end(bytes, quote)),
                None => (Kind::Word, word_end(bytes, at)),
            },
            b'0'..=b'9' => (Kind::Integer, word_end(bytes, at)),
            b'"' | b'\'' => (Kind::Text, text_end(bytes, at)),
            _ => (Kind::Mark, mark_end(text, at)),
        };
        let token = Token { kind, text: &text[at..end], start: at };
        match token.kind {
            Kind::Text if !is_closed(token.text) => problems.push((token.span(), Problem::UnclosedText)),
            Kind::Mark if !is_mark(token.text) => problems.push((token.span(), Problem::Character)),
            _ => tokens.push(token),
        }
        at = end;
    }
    tokens.push(Token { kind: Kind::End, text: "", start: text.len() });
    (tokens, problems)
}

fn comment_end(bytes: &[u8], start: usize) -> Option<usize> {
    if bytes[start + 1] == b'/' {
        return Some(bytes[start..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |at| start + at));
    }
    bytes[start + 2..].windows(2).position(|pair| pair == b"*/").map(|at| start + 2 + at + 2)
}

fn word_end(bytes: &[u8], start: usize) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    start + bytes[start..].iter().take_while(|byte| is_part(byte)).count()
}

/// `L"wide"`: where the quote is.
fn text_prefix(bytes: &[u8], at: usize) -> Option<usize> {
    (bytes[at] == b'L' && matches!(bytes.get(at + 1), Some(b'"' | b'\''))).then_some(at + 1)
}

/// Behind the closing quote, or the end of the text.
fn text_end(bytes: &[u8], quote: usize) -> usize {
    let mut at = quote + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == bytes[quote] => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn is_closed(literal: &str) -> bool {
    let body = literal.strip_prefix('L').unwrap_or(literal).as_bytes();
    let Some((&quote, rest)) = body.split_first() else {
        return false;
    };
    let mut escaped = false;
    for (index, &byte) in rest.iter().enumerate() {
        if !escaped && byte == quote {
            return index + 1 == rest.len();
        }
        escaped = !escaped && byte == b'\\';
    }
    false
}

const MARKS: [&str; 22] =
    ["...", ":=", "->", "{", "}", "[", "]", "(", ")", "<", ">", ";", ":", ",", ".", "=", "*", "+", "-", "~", "!", "&"];

fn mark_end(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let known = MARKS.iter().find(|mark| rest.starts_with(**mark));
    at + known.map_or_else(|| rest.chars().next().map_or(1, char::len_utf8), |mark| mark.len())
}

fn is_mark(text: &str) -> bool {
    MARKS.contains(&text)
}
