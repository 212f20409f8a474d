//! TSDL text to tokens. Tokens are slices of the text; nothing is copied.

use std::ops::Range;

use crate::tsdl::problem::TsdlProblem;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TsdlTokenKind {
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
pub(crate) struct TsdlToken<'a> {
    pub(crate) kind: TsdlTokenKind,
    pub(crate) text: &'a str,
    pub(crate) start: usize,
}

impl TsdlToken<'_> {
    pub(crate) fn span(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }
}

/// All tokens of a text. Metadata has tens of thousands, of which eight bytes each are kept.
#[derive(Debug)]
pub(crate) struct Tokens<'a> {
    text: &'a str,
    spots: Vec<Spot>,
}

/// Where a token is.
#[derive(Clone, Copy, Debug)]
struct Spot {
    start: u32,
    /// Its bytes, above its kind.
    length_kind: u32,
}

const KIND_BITS: u32 = 3;
/// Bytes of a text at most.
const TEXT_BYTES_MAX: usize = (u32::MAX >> KIND_BITS) as usize;
const KINDS: [TsdlTokenKind; 5] =
    [TsdlTokenKind::Word, TsdlTokenKind::Integer, TsdlTokenKind::Text, TsdlTokenKind::Mark, TsdlTokenKind::End];

impl<'a> Tokens<'a> {
    fn push(&mut self, kind: TsdlTokenKind, span: Range<usize>) {
        let length_kind = (span.len() as u32) << KIND_BITS | kind as u32;
        self.spots.push(Spot { start: span.start as u32, length_kind });
    }

    /// How many there are, the end of the text among them.
    pub(crate) fn len(&self) -> usize {
        self.spots.len()
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// Whether a token is this keyword or punctuation.
    pub(crate) fn is(&self, number: usize, text: &str) -> bool {
        let Spot { start, length_kind } = self.spots[number];
        let (start, length) = (start as usize, (length_kind >> KIND_BITS) as usize);
        let kind = KINDS[(length_kind & ((1 << KIND_BITS) - 1)) as usize];
        length == text.len()
            && matches!(kind, TsdlTokenKind::Word | TsdlTokenKind::Mark)
            && self.text.as_bytes()[start..start + length] == *text.as_bytes()
    }

    /// A token.
    pub(crate) fn at(&self, number: usize) -> TsdlToken<'a> {
        let spot = self.spots[number];
        let start = spot.start as usize;
        let text = &self.text[start..start + (spot.length_kind >> KIND_BITS) as usize];
        let kind = KINDS[(spot.length_kind & ((1 << KIND_BITS) - 1)) as usize];
        TsdlToken { kind, text, start }
    }
}

/// The kind of token that a byte begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begins {
    Space,
    Word,
    Integer,
    Text,
    /// Punctuation of one byte, with any byte behind it.
    Single,
    Mark,
}

/// The kind of token that each byte begins; the bytes of words are those that begin words and
/// integers.
const BEGINS: [Begins; 256] = {
    let mut begins = [Begins::Mark; 256];
    let mut byte = 0;
    while byte < 256 {
        begins[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0C | 0 => Begins::Space,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Begins::Word,
            b'0'..=b'9' => Begins::Integer,
            b'"' | b'\'' => Begins::Text,
            b'{' | b'}' | b'[' | b']' | b'(' | b')' | b'<' | b'>' | b';' | b',' | b'=' => Begins::Single,
            _ => Begins::Mark,
        };
        byte += 1;
    }
    begins
};

/// Splits the text; bytes that form no token are reported and passed over.
pub(crate) fn tokens(text: &str) -> (Tokens<'_>, Vec<(Range<usize>, TsdlProblem)>) {
    let mut problems = Vec::new();
    let (read, rest) = text.split_at(text.floor_char_boundary(TEXT_BYTES_MAX));
    if !rest.is_empty() {
        problems.push((read.len()..text.len(), TsdlProblem::TextLength(TEXT_BYTES_MAX)));
    }
    let text = read;
    let mut tokens = Tokens { text, spots: Vec::with_capacity(text.len() / 4) };
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let (kind, end) = match BEGINS[usize::from(byte)] {
            Begins::Space => {
                at += 1;
                continue;
            }
            Begins::Single => (TsdlTokenKind::Mark, at + 1),
            Begins::Mark if byte == b'/' && matches!(bytes.get(at + 1), Some(b'*' | b'/')) => {
                match comment_end(bytes, at) {
                    Some(end) => at = end,
                    None => {
                        problems.push((at..at + 2, TsdlProblem::UnclosedComment));
                        at = bytes.len();
                    }
                }
                continue;
            }
            Begins::Word => match text_prefix(bytes, at) {
                Some(quote) => (TsdlTokenKind::Text, text_end(bytes, quote)),
                None => (TsdlTokenKind::Word, word_end(bytes, at)),
            },
            Begins::Integer => (TsdlTokenKind::Integer, word_end(bytes, at)),
            Begins::Text => (TsdlTokenKind::Text, text_end(bytes, at)),
            Begins::Mark => match mark_length(&bytes[at..]) {
                Some(length) => (TsdlTokenKind::Mark, at + length),
                None => {
                    let end = at + text[at..].chars().next().map_or(1, char::len_utf8);
                    problems.push((at..end, TsdlProblem::Character));
                    at = end;
                    continue;
                }
            },
        };
        match kind {
            TsdlTokenKind::Text if !is_closed(&text[at..end]) => problems.push((at..end, TsdlProblem::UnclosedText)),
            _ => tokens.push(kind, at..end),
        }
        at = end;
    }
    tokens.push(TsdlTokenKind::End, text.len()..text.len());
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

/// Bytes of the punctuation that begins here, if it is none of one byte.
fn mark_length(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'.', b'.', b'.', ..] => Some(3),
        [b':', b'=', ..] | [b'-', b'>', ..] => Some(2),
        [b':' | b'.' | b'*' | b'+' | b'-' | b'~' | b'!' | b'&', ..] => Some(1),
        _ => None,
    }
}
