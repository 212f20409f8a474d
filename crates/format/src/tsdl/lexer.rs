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

/// What a byte begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begins {
    Space,
    Word,
    Integer,
    Text,
    Mark,
}

/// What each byte begins; the bytes of words are those that begin words and integers.
const BEGINS: [Begins; 256] = {
    let mut begins = [Begins::Mark; 256];
    let mut byte = 0;
    while byte < 256 {
        begins[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0C | 0 => Begins::Space,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Begins::Word,
            b'0'..=b'9' => Begins::Integer,
            b'"' | b'\'' => Begins::Text,
            _ => Begins::Mark,
        };
        byte += 1;
    }
    begins
};

/// Splits the text; what is no token is reported and passed over.
pub(crate) fn tokens(text: &str) -> (Vec<Token<'_>>, Vec<(Range<usize>, Problem)>) {
    let mut tokens = Vec::with_capacity(text.len() / 4);
    let mut problems = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let (kind, end) = match BEGINS[usize::from(byte)] {
            Begins::Space => {
                at += 1;
                continue;
            }
            Begins::Mark if byte == b'/' && matches!(bytes.get(at + 1), Some(b'*' | b'/')) => {
                match comment_end(bytes, at) {
                    Some(end) => at = end,
                    None => {
                        problems.push((at..at + 2, Problem::UnclosedComment));
                        at = bytes.len();
                    }
                }
                continue;
            }
            Begins::Word => match text_prefix(bytes, at) {
                Some(quote) => (Kind::Text, text_end(bytes, quote)),
                None => (Kind::Word, word_end(bytes, at)),
            },
            Begins::Integer => (Kind::Integer, word_end(bytes, at)),
            Begins::Text => (Kind::Text, text_end(bytes, at)),
            Begins::Mark => match mark_length(&bytes[at..]) {
                Some(length) => (Kind::Mark, at + length),
                None => {
                    let end = at + text[at..].chars().next().map_or(1, char::len_utf8);
                    problems.push((at..end, Problem::Character));
                    at = end;
                    continue;
                }
            },
        };
        let token = Token { kind, text: &text[at..end], start: at };
        match token.kind {
            Kind::Text if !is_closed(token.text) => problems.push((token.span(), Problem::UnclosedText)),
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
    let is_part = |byte: &u8| matches!(BEGINS[usize::from(*byte)], Begins::Word | Begins::Integer);
    bytes[start..].iter().position(|byte| !is_part(byte)).map_or(bytes.len(), |length| start + length)
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

/// Bytes of the punctuation that begins here.
fn mark_length(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'.', b'.', b'.', ..] => Some(3),
        [b':', b'=', ..] | [b'-', b'>', ..] => Some(2),
        [b'{' | b'}' | b'[' | b']' | b'(' | b')' | b'<' | b'>' | b';' | b':' | b',' | b'.' | b'=', ..] => Some(1),
        [b'*' | b'+' | b'-' | b'~' | b'!' | b'&', ..] => Some(1),
        _ => None,
    }
}
