//! Barrelfish's definitions of events, in the language of its tool `pleco`.
//!
//! ```text
//! subsystem kernel {                       // positions are ids: kernel is 0,
//!     event CSWITCH "Context Switch",      // CSWITCH is 0 in it
//!     event TIMER   "",                    // without a description, the name is that
//! };
//! ```
//!
//! As `pleco` has it: keywords are of any case, `/* */` nests, texts are Haskell's, the comma after the last event
//! and the semicolon after a subsystem are required, and text behind the last subsystem has no effect.

use std::fmt;

/// A file of definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlecoFile {
    /// In the order of their ids, from 0 on.
    pub subsystems: Vec<PlecoSubsystem>,
    /// Where text behind the last subsystem begins, which has no effect.
    pub rest: Option<PlecoPlace>,
}

/// A part of a system that has events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlecoSubsystem {
    /// Its name.
    pub name: String,
    /// In the order of their ids, from 0 on.
    pub events: Vec<PlecoEvent>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlecoEvent {
    /// Its name.
    pub name: String,
    /// Its meaning, may be empty.
    pub description: String,
    /// Where the meaning is.
    pub place: PlecoPlace,
}

/// A place in a text: line and column, both from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlecoPlace {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

/// An error in a file of definitions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: expected {expected}, found {found}")]
pub struct PlecoError {
    /// Where.
    pub place: PlecoPlace,
    /// The words that should be there.
    pub expected: &'static str,
    /// The text that is there.
    pub found: String,
}

impl fmt::Display for PlecoPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Words that no name may be, in any case.
const KEYWORDS: [&str; 2] = ["subsystem", "event"];

impl PlecoFile {
    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// The first error in it.
    pub fn parse(text: &str) -> Result<Self, PlecoError> {
        let mut parser = Parser::new(text);
        parser.space()?;
        let mut file = Self { subsystems: vec![parser.subsystem()?], rest: None };
        while parser.is_keyword("subsystem") {
            file.subsystems.push(parser.subsystem()?);
        }
        file.rest = (parser.at < text.len()).then(|| parser.place(parser.at));
        Ok(file)
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    /// A byte that was passed, and its place.
    seen: (usize, PlecoPlace),
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, at: 0, seen: (0, PlecoPlace { line: 1, column: 1 }) }
    }
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn place(&self, at: usize) -> PlecoPlace {
        let before = &self.text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        PlecoPlace { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }

    /// The place of the next byte. A file may have many events: places are counted on from the last one.
    fn here(&mut self) -> PlecoPlace {
        let (from, mut place) = self.seen;
        for letter in self.text[from..self.at].chars() {
            let PlecoPlace { line, column } = place;
            place = if letter == '\n' {
                PlecoPlace { line: line + 1, column: 1 }
            } else {
                PlecoPlace { line, column: column + 1 }
            };
        }
        self.seen = (self.at, place);
        place
    }

    fn error<T>(&self, at: usize, expected: &'static str) -> Result<T, PlecoError> {
        let found = match self.text[at..].chars().next() {
            None => "the end of the file".to_owned(),
            Some(first) if is_name_start(first) => {
                format!("`{}`", self.text[at..].chars().take_while(|c| is_name_part(*c)).take(40).collect::<String>())
            }
            Some(first) if first.is_control() => format!("`{}`", first.escape_debug()),
            Some(first) => format!("`{first}`"),
        };
        Err(PlecoError { place: self.place(at), expected, found })
    }

    /// White space and comments.
    fn space(&mut self) -> Result<(), PlecoError> {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            if self.rest().starts_with("//") {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            } else if self.rest().starts_with("/*") {
                self.comment()?;
            } else {
                return Ok(());
            }
        }
    }

    /// A comment, with those in it.
    fn comment(&mut self) -> Result<(), PlecoError> {
        let (start, mut depth) = (self.at, 0_usize);
        loop {
            let rest = self.rest();
            if rest.starts_with("/*") {
                (depth, self.at) = (depth + 1, self.at + 2);
            } else if rest.starts_with("*/") {
                (depth, self.at) = (depth - 1, self.at + 2);
            } else if let Some(next) = rest.chars().next() {
                self.at += next.len_utf8();
            } else {
                return self.error(start, "a comment with an end (comments nest: each `/*` needs a `*/`)");
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        let rest = self.rest();
        let is_there = rest.get(..keyword.len()).is_some_and(|word| word.eq_ignore_ascii_case(keyword));
        is_there && !rest[keyword.len()..].starts_with(is_name_part)
    }

    fn keyword(&mut self, keyword: &str, expected: &'static str) -> Result<(), PlecoError> {
        if !self.is_keyword(keyword) {
            return self.error(self.at, expected);
        }
        self.at += keyword.len();
        self.space()
    }

    fn symbol(&mut self, symbol: char, expected: &'static str) -> Result<(), PlecoError> {
        if !self.rest().starts_with(symbol) {
            return self.error(self.at, expected);
        }
        self.at += symbol.len_utf8();
        self.space()
    }

    fn name(&mut self, expected: &'static str) -> Result<String, PlecoError> {
        let length = self.rest().find(|c| !is_name_part(c)).unwrap_or(self.rest().len());
        let name = &self.rest()[..length];
        let is_keyword = KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(name));
        if is_keyword || !name.starts_with(is_name_start) {
            return self.error(self.at, expected);
        }
        let name = name.to_owned();
        self.at += length;
        self.space()?;
        Ok(name)
    }

    fn subsystem(&mut self) -> Result<PlecoSubsystem, PlecoError> {
        self.keyword("subsystem", "`subsystem`")?;
        let name = self.name("the subsystem's name: letters, digits and `_`, a letter first")?;
        self.symbol('{', "`{`")?;
        let mut events = vec![self.event("`event`: a subsystem has at least one")?];
        while !self.rest().starts_with('}') {
            events.push(self.event("`event` or `}`")?);
        }
        self.symbol('}', "`}`")?;
        self.symbol(';', "`;` after the subsystem")?;
        Ok(PlecoSubsystem { name, events })
    }

    fn event(&mut self, expected: &'static str) -> Result<PlecoEvent, PlecoError> {
        self.keyword("event", expected)?;
        let name = self.name("the event's name: letters, digits and `_`, a letter first")?;
        let place = self.here();
        let description = self.string()?;
        self.symbol(',', "`,` after the event, also after the last one")?;
        Ok(PlecoEvent { name, description, place })
    }

    /// A text as Haskell has it, and the white space behind it.
    fn string(&mut self) -> Result<String, PlecoError> {
        if !self.rest().starts_with('"') {
            return self.error(self.at, "the event's description in quotes, which may be empty: \"\"");
        }
        let text = self.literal()?;
        self.space()?;
        Ok(text)
    }

    /// A text as Haskell has it, from its quote on.
    fn literal(&mut self) -> Result<String, PlecoError> {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.rest().chars().next() {
                Some('"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some('\\') => text.extend(self.escape()?),
                // As there: no character up to Ctrl-Z.
                Some(c) if c > '\u{1A}' => {
                    text.push(c);
                    self.at += c.len_utf8();
                }
                _ => return self.error(self.at, "`\"` in the same line"),
            }
        }
    }

    /// The character behind a backslash, or none.
    fn escape(&mut self) -> Result<Option<char>, PlecoError> {
        let start = self.at;
        let rest = &self.rest()[1..];
        let (escaped, length) = match rest.chars().next() {
            Some('&') => (None, 1),
            Some(c) if c.is_whitespace() => match rest.trim_start() {
                gap if gap.starts_with('\\') => (None, rest.len() - gap.len() + 1),
                _ => return self.error(start, "`\\` behind the white space of a gap"),
            },
            Some('^') => match rest[1..].chars().next() {
                Some(c @ '@'..='_') => (Some((c as u8 - b'@') as char), 2),
                _ => return self.error(start, "a control character, such as \\^A"),
            },
            Some('x' | 'X') => self.number(start, &rest[1..], 16, 1)?,
            Some('o' | 'O') => self.number(start, &rest[1..], 8, 1)?,
            Some('0'..='9') => self.number(start, rest, 10, 0)?,
            Some(c) => match named_escape(rest) {
                Some((escaped, length)) => (Some(escaped), length),
                None => match "a\x07b\x08f\x0cn\nr\rt\tv\x0b\\\\\"\"''"
                    .chars()
                    .collect::<Vec<_>>()
                    .chunks(2)
                    .find(|pair| pair[0] == c)
                {
                    Some(pair) => (Some(pair[1]), 1),
                    None => return self.error(start, "an escape that Haskell knows, such as \\n or \\955"),
                },
            },
            None => return self.error(start, "a character behind `\\`"),
        };
        self.at = start + 1 + length;
        Ok(escaped)
    }

    fn number(
        &self,
        start: usize,
        digits: &str,
        radix: u32,
        before: usize,
    ) -> Result<(Option<char>, usize), PlecoError> {
        let length = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
        let value = u32::from_str_radix(&digits[..length], radix).ok().and_then(char::from_u32);
        match value {
            Some(value) => Ok((Some(value), before + length)),
            None => self.error(start, "the number of a character"),
        }
    }
}

/// Bytes of the comment that a text begins with, with those in it; `None`: it has no end.
pub(crate) fn comment_length(text: &str) -> Option<usize> {
    let mut parser = Parser::new(text);
    parser.comment().ok().map(|()| parser.at)
}

/// The text in quotes that a text begins with, and its bytes there.
///
/// # Errors
///
/// It has no end, or an escape that Haskell does not know.
pub(crate) fn string(text: &str) -> Result<(String, usize), PlecoError> {
    let mut parser = Parser::new(text);
    let literal = parser.literal()?;
    Ok((literal, parser.at))
}

/// Control characters by name; `SOH` counts before `SO`.
fn named_escape(rest: &str) -> Option<(char, usize)> {
    const NAMES: [&str; 33] = [
        "NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "HT", "LF", "VT", "FF", "CR", "SO", "SI", "DLE",
        "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US", "SP",
    ];
    let named =
        NAMES.iter().enumerate().filter(|(_, name)| rest.starts_with(**name)).max_by_key(|(_, name)| name.len());
    match named {
        Some((number, name)) => Some((number as u8 as char, name.len())),
        None => rest.starts_with("DEL").then_some(('\x7F', 3)),
    }
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic()
}

fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '\''
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(String, Vec<(String, String)>)> {
        let events = |subsystem: PlecoSubsystem| {
            let events = subsystem.events.into_iter().map(|event| (event.name, event.description));
            (subsystem.name, events.collect())
        };
        PlecoFile::parse(text).unwrap().subsystems.into_iter().map(events).collect()
    }

    fn description(literal: &str) -> String {
        parsed(&format!("subsystem a {{ event b {literal}, }};")).remove(0).1.remove(0).1
    }

    #[test]
    fn subsystems_and_events_are_numbered_by_their_places() {
        let text = "/* one /* in */ another */ // and this\nSUBSYSTEM Foo {\n event a \"x\",\n EVENT b' \"\", };\nsubsystem é1 { event c \"\" , } ;";
        let two = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(
            parsed(text),
            [("Foo".to_owned(), vec![two("a", "x"), two("b'", "")]), ("é1".to_owned(), vec![two("c", "")])]
        );
    }

    #[test]
    fn texts_are_as_haskell_has_them() {
        for (literal, text) in [
            (r#""\"\\\n\t""#, "\"\\\n\t"),
            (r#""\955\x3bb\o1673""#, "λλλ"),
            (r#""\SO\&H\SOH\DEL\^A""#, "\u{E}H\u{1}\u{7F}\u{1}"),
            ("\"one \\\n   \\line\"", "one line"),
        ] {
            assert_eq!(description(literal), text, "{literal}");
        }
    }

    #[test]
    fn errors_have_a_place() {
        for (text, error) in [
            ("", "1:1: expected `subsystem`, found the end of the file"),
            ("subsystems a", "1:1: expected `subsystem`, found `subsystems`"),
            (
                "subsystem _a {",
                "1:11: expected the subsystem's name: letters, digits and `_`, a letter first, found `_`",
            ),
            ("subsystem a { };", "1:15: expected `event`: a subsystem has at least one, found `}`"),
            (
                "subsystem a {\n event b \"\" }",
                "2:13: expected `,` after the event, also after the last one, found `}`",
            ),
            (
                "subsystem a {\n event b, }",
                "2:9: expected the event's description in quotes, which may be empty: \"\", found `,`",
            ),
            ("subsystem a { event b \"\", }", "1:28: expected `;` after the subsystem, found the end of the file"),
            (
                "subsystem a { event Event \"\", };",
                "1:21: expected the event's name: letters, digits and `_`, a letter first, found `Event`",
            ),
            ("/* /* */", "1:1: expected a comment with an end (comments nest: each `/*` needs a `*/`), found `/`"),
            ("subsystem a { event b \"\n\", };", "1:24: expected `\"` in the same line, found `\\n`"),
            (
                "subsystem a { event b \"\\q\", };",
                "1:24: expected an escape that Haskell knows, such as \\n or \\955, found `\\`",
            ),
            ("subsystem a { event b \"\\1114112\", };", "1:24: expected the number of a character, found `\\`"),
        ] {
            assert_eq!(PlecoFile::parse(text).unwrap_err().to_string(), error, "{text}");
        }
    }

    #[test]
    fn text_behind_the_last_subsystem_has_no_effect() {
        let file = PlecoFile::parse("subsystem a { event b \"\", };\n  more text").unwrap();
        assert_eq!((file.subsystems.len(), file.rest), (1, Some(PlecoPlace { line: 2, column: 3 })));
        // A second subsystem that begins is one.
        assert!(PlecoFile::parse("subsystem a { event b \"\", }; subsystem").is_err());
    }
}
