//! A program's text as words.

use super::{TextError, TextErrorKind};

/// The words that are left.
pub(super) struct WordCursor<'t> {
    rest: &'t str,
    line: usize,
}

impl<'t> WordCursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let mut words = Self { rest: text, line: 1 };
        words.skip();
        words
    }

    /// Passes over spaces and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest.trim_start();
            let comment = if rest.starts_with('#') { rest.find('\n').unwrap_or(rest.len()) } else { 0 };
            let passed = self.rest.len() - rest.len() + comment;
            if passed == 0 {
                return;
            }
            self.line += self.rest[..passed].matches('\n').count();
            self.rest = &self.rest[passed..];
        }
    }

    /// The next word: a sign, a text in quotes, or the text up to a space or a sign.
    pub(super) fn peek(&self) -> Option<&'t str> {
        let first = self.rest.chars().next()?;
        let length = match first {
            '{' | '}' | ',' | '*' => 1,
            '"' => quoted(self.rest),
            _ => {
                self.rest.find(|sign: char| sign.is_whitespace() || "{},*\"#".contains(sign)).unwrap_or(self.rest.len())
            }
        };
        Some(&self.rest[..length])
    }

    pub(super) fn next(&mut self) -> Option<&'t str> {
        let word = self.peek()?;
        self.line += word.matches('\n').count();
        self.rest = &self.rest[word.len()..];
        self.skip();
        Some(word)
    }

    /// Takes the word if it is the next one.
    pub(super) fn eat(&mut self, word: &str) -> bool {
        let is_next = self.peek() == Some(word);
        if is_next {
            self.next();
        }
        is_next
    }

    /// The next word does not fit.
    pub(super) fn wrong<T>(&self, expected: &'static str) -> Result<T, TextError> {
        let kind = match self.peek() {
            Some(found) => TextErrorKind::Word { found: found.into(), expected },
            None => TextErrorKind::End { expected },
        };
        Err(self.error(kind))
    }

    pub(super) fn error(&self, kind: TextErrorKind) -> TextError {
        TextError { line: self.line, kind }
    }

    /// Takes the next word as `meaning` understands it.
    pub(super) fn take<T>(
        &mut self,
        expected: &'static str,
        meaning: impl FnOnce(&'t str) -> Option<T>,
    ) -> Result<T, TextError> {
        match self.peek().and_then(meaning) {
            Some(found) => {
                self.next();
                Ok(found)
            }
            None => self.wrong(expected),
        }
    }

    pub(super) fn need(&mut self, word: &'static str) -> Result<(), TextError> {
        if self.eat(word) { Ok(()) } else { self.wrong(word) }
    }

    /// Text in quotes.
    pub(super) fn text(&mut self) -> Result<Box<[u8]>, TextError> {
        let word = self.peek().filter(|word| word.starts_with('"'));
        let Some(word) = word else { return self.wrong("text in quotes") };
        let inner = (word.len() > 1).then(|| word[1..].strip_suffix('"')).flatten();
        let bytes = inner.and_then(unescaped);
        let Some(bytes) = bytes else { return self.wrong("the quote that ends the text") };
        self.next();
        Ok(bytes)
    }
}

/// Bytes of a text in quotes, both included.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, sign) in text.char_indices().skip(1) {
        match sign {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The bytes that `slice::escape_ascii` wrote.
fn unescaped(text: &str) -> Option<Box<[u8]>> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        if first != b'\\' {
            bytes.push(first);
            continue;
        }
        let (&sign, behind) = rest.split_first()?;
        rest = behind;
        bytes.push(match sign {
            b't' => b'\t',
            b'r' => b'\r',
            b'n' => b'\n',
            b'x' => {
                let (digits, behind) = rest.split_at_checked(2)?;
                rest = behind;
                u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    Some(bytes.into())
}
