//! Text to tokens.
//!
//! ```text
//! next_prio < 100 && $ctx.procname =~ "^kw"
//! name      < number && word . name =~ text
//! ```
//!
//! As in LTTng, `:` is a letter (`$app.provider:type`). The token of a text keeps it as it is
//! written: the meaning of backslashes differs between texts and regular expressions.

use crate::limits::TEXT_BYTES_MAX;
use crate::literal::{self, NumberLiteral};
use crate::problem::{FilterProblem, ProblemKind, Span};

/// A token and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FilterToken<'t> {
    pub(crate) kind: TokenKind<'t>,
    pub(crate) span: Span,
}

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind<'t> {
    Name(String),
    /// `$name`, without the `$`.
    Word(String),
    Number(NumberLiteral),
    /// `@text`, without the `@`.
    Instant(&'t str),
    /// The text between the quotes, and where it begins.
    Text(&'t str, usize),
    Symbol(Symbol),
    End,
}

/// Operators and punctuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    ParenthesisOpen,
    ParenthesisClose,
    BracketOpen,
    BracketClose,
    Comma,
    Dot,
    Arrow,
    Range,
    RangeInclusive,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    BothAnd,
    EitherOr,
    And,
    Or,
    Caret,
    ShiftLeft,
    ShiftRight,
    Not,
    Tilde,
    Like,
    Assign,
}

/// Longer ones come before those that they begin with.
const SYMBOLS: [(&str, Symbol); 31] = [
    ("..=", Symbol::RangeInclusive),
    ("..", Symbol::Range),
    (".", Symbol::Dot),
    ("->", Symbol::Arrow),
    ("-", Symbol::Minus),
    ("&&", Symbol::BothAnd),
    ("&", Symbol::And),
    ("||", Symbol::EitherOr),
    ("|", Symbol::Or),
    ("==", Symbol::Equal),
    ("=~", Symbol::Like),
    ("=", Symbol::Assign),
    ("!=", Symbol::NotEqual),
    ("!", Symbol::Not),
    ("<=", Symbol::LessOrEqual),
    ("<<", Symbol::ShiftLeft),
    ("<", Symbol::Less),
    (">=", Symbol::GreaterOrEqual),
    (">>", Symbol::ShiftRight),
    (">", Symbol::Greater),
    ("(", Symbol::ParenthesisOpen),
    (")", Symbol::ParenthesisClose),
    ("[", Symbol::BracketOpen),
    ("]", Symbol::BracketClose),
    (",", Symbol::Comma),
    ("+", Symbol::Plus),
    ("*", Symbol::Star),
    ("/", Symbol::Slash),
    ("%", Symbol::Percent),
    ("^", Symbol::Caret),
    ("~", Symbol::Tilde),
];

/// All tokens of a filter; the last one is the end.
pub(crate) fn tokens(text: &str) -> Result<Vec<FilterToken<'_>>, FilterProblem> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(FilterProblem::new(TEXT_BYTES_MAX..text.len(), ProblemKind::TextTooLong(text.len())));
    }
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_space()?;
        let begin = lexer.at;
        let kind = lexer.token()?;
        let is_end = kind == TokenKind::End;
        tokens.push(FilterToken { kind, span: begin..lexer.at });
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) -> Result<(), FilterProblem> {
        loop {
            let rest = self.rest();
            let comment = rest.strip_prefix("/*");
            if let Some(comment) = comment {
                let unclosed = || FilterProblem::new(self.at..self.at + 2, ProblemKind::UnclosedComment);
                self.at += 4 + comment.find("*/").ok_or_else(unclosed)?;
            } else if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else {
                let spaces = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
                if spaces == 0 {
                    return Ok(());
                }
                self.at += spaces;
            }
        }
    }

    fn token(&mut self) -> Result<TokenKind<'t>, FilterProblem> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(TokenKind::End) };
        match first {
            '"' | '\'' => self.quoted(first, 1),
            'L' if rest[1..].starts_with(['"', '\'']) => self.quoted(rest.as_bytes()[1].into(), 2),
            '`' => self.raw_name().map(TokenKind::Name),
            '$' => {
                self.at += 1;
                if !self.begins_name() {
                    return Err(self.character(self.at - 1, '$'));
                }
                self.name().map(TokenKind::Word)
            }
            '@' => self.instant(),
            '.' if rest[1..].starts_with(|next: char| next.is_ascii_digit()) => self.number(),
            '0'..='9' => self.number(),
            _ if self.begins_name() => self.name().map(TokenKind::Name),
            _ => {
                let symbol = SYMBOLS.iter().find(|(written, _)| rest.starts_with(written));
                let (written, symbol) = symbol.ok_or_else(|| self.character(self.at, first))?;
                self.at += written.len();
                Ok(TokenKind::Symbol(*symbol))
            }
        }
    }

    fn character(&self, at: usize, character: char) -> FilterProblem {
        let problem = FilterProblem::new(at..at + character.len_utf8(), ProblemKind::Character(character));
        match character {
            ';' | '{' | '}' | '?' => problem,
            '$' => problem.help("a word of the language follows `$`, as in `$ctx.vtid`"),
            _ => problem.help("names with other characters than letters, digits, `_` and `:` are written in backticks"),
        }
    }

    fn number(&mut self) -> Result<TokenKind<'t>, FilterProblem> {
        let (number, bytes) = literal::number(self.rest(), self.at)?;
        self.at += bytes;
        Ok(TokenKind::Number(number))
    }

    /// Text between quotes; it stays as it is, but a backslash protects the character behind it.
    fn quoted(&mut self, quote: char, opening: usize) -> Result<TokenKind<'t>, FilterProblem> {
        let begin = self.at + opening;
        let mut is_protected = false;
        for (offset, character) in self.text[begin..].char_indices() {
            if is_protected {
                is_protected = false;
            } else if character == '\\' {
                is_protected = true;
            } else if character == quote {
                self.at = begin + offset + 1;
                return Ok(TokenKind::Text(&self.text[begin..begin + offset], begin));
            }
        }
        Err(FilterProblem::new(self.at..begin, ProblemKind::UnclosedText(quote)))
    }

    fn begins_name(&self) -> bool {
        let rest = self.rest();
        rest.starts_with(|next: char| next.is_ascii_alphabetic() || matches!(next, '_' | ':'))
            || universal_character(rest).is_some()
    }

    fn name(&mut self) -> Result<String, FilterProblem> {
        let mut name = String::new();
        loop {
            let rest = self.rest();
            let plain = |next: char| next.is_ascii_alphanumeric() || matches!(next, '_' | ':');
            let bytes = rest.find(|next| !plain(next)).unwrap_or(rest.len());
            name += &rest[..bytes];
            self.at += bytes;
            match universal_character(self.rest()) {
                Some((character, bytes)) => {
                    name.push(character);
                    self.at += bytes;
                }
                None if bytes == 0 || !self.rest().starts_with('\\') => return Ok(name),
                None => return Err(self.character(self.at, '\\')),
            }
        }
    }

    /// A name between backticks: any characters.
    fn raw_name(&mut self) -> Result<String, FilterProblem> {
        let inside = self.rest()[1..].split_once('`').map(|(inside, _)| inside);
        let unclosed = || FilterProblem::new(self.at..self.at + 1, ProblemKind::UnclosedName);
        let name = inside.filter(|name| !name.is_empty()).ok_or_else(unclosed)?;
        self.at += 2 + name.len();
        Ok(name.to_owned())
    }

    fn instant(&mut self) -> Result<TokenKind<'t>, FilterProblem> {
        let rest = &self.rest()[1..];
        let end = rest.find(|next: char| !next.is_ascii_digit() && !matches!(next, ':' | '.' | '-' | 'T'));
        let instant = &rest[..end.unwrap_or(rest.len())];
        let instant = &instant[..instant.find("..").unwrap_or(instant.len())];
        // A minus that belongs to nothing is the operator's.
        let instant = instant.trim_end_matches([':', '.', '-', 'T']);
        let instant = &rest[..instant.len() + zone_length(&rest[instant.len()..])];
        if !instant.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(FilterProblem::new(self.at..self.at + 1, ProblemKind::NoInstant));
        }
        self.at += 1 + instant.len();
        Ok(TokenKind::Instant(instant))
    }
}

/// Bytes of a zone behind a time: `Z`, or `+01:00`. A sum never has a colon there, and a minus is among the bytes of
/// the time.
fn zone_length(text: &str) -> usize {
    match text.as_bytes() {
        [b'Z', after @ ..] if !after.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') => 1,
        [b'+', hour @ ..] if is_offset(hour) => 6,
        _ => 0,
    }
}

/// `HH:MM`, and no digit behind it.
fn is_offset(text: &[u8]) -> bool {
    let [one, two, b':', three, four, after @ ..] = text else { return false };
    [one, two, three, four].iter().all(|byte| byte.is_ascii_digit()) && !after.first().is_some_and(u8::is_ascii_digit)
}

/// `\u00E9` or `\U000000E9` in a name: the character and its bytes here.
fn universal_character(text: &str) -> Option<(char, usize)> {
    let digits = match text.as_bytes() {
        [b'\\', b'u', ..] => 4,
        [b'\\', b'U', ..] => 8,
        _ => return None,
    };
    let code = text.get(2..2 + digits).filter(|code| code.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    let character = u32::from_str_radix(code, 16).ok().and_then(char::from_u32)?;
    Some((character, 2 + digits))
}
