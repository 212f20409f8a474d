//! JSON values that keep their places in the text, so that errors can point.
//!
//! Strict RFC 8259; a depth limit keeps hostile text from exhausting the stack.

use std::ops::Range;

use kymo_wire::magic::RECORD_SEPARATOR;

use crate::json::problem::JsonProblem;

/// Nesting of values.
const DEPTH_MAX: usize = 256;

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct JsonValue {
    pub(crate) kind: JsonKind,
    pub(crate) span: Range<usize>,
}

#[derive(Clone, Debug)]
pub(crate) enum JsonKind {
    Null,
    Boolean(bool),
    Integer(i128),
    Real(f64),
    Text(String),
    Array(Vec<JsonValue>),
    Object(Vec<JsonMember>),
}

/// A member of an object.
#[derive(Clone, Debug)]
pub(crate) struct JsonMember {
    pub(crate) name: String,
    pub(crate) name_span: Range<usize>,
    pub(crate) value: JsonValue,
}

type Result<T> = std::result::Result<T, (Range<usize>, JsonProblem)>;

/// The contents of a text sequence.
pub(crate) struct TextSequence {
    /// The values up to the first that is no JSON.
    pub(crate) values: Vec<JsonValue>,
    /// The error that ended them.
    pub(crate) broken: Option<(Range<usize>, JsonProblem)>,
    /// Commas behind the last element, which JSON forbids and some writers leave.
    pub(crate) commas: Vec<Range<usize>>,
}

/// Reads a text sequence.
pub(crate) fn sequence(text: &str) -> TextSequence {
    let mut reader = JsonReader { text, at: 0, depth: 0, commas: Vec::new() };
    let mut values = Vec::new();
    loop {
        reader.space();
        while reader.eat(RECORD_SEPARATOR) {
            reader.space();
        }
        if reader.at == text.len() {
            return TextSequence { values, broken: None, commas: reader.commas };
        }
        match reader.value() {
            Ok(value) => values.push(value),
            Err(problem) => return TextSequence { values, broken: Some(problem), commas: reader.commas },
        }
    }
}

struct JsonReader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    commas: Vec<Range<usize>>,
}

impl JsonReader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn unexpected<T>(&self, expected: &'static str) -> Result<T> {
        let rest = &self.text[self.at..];
        let found = rest.chars().next().map_or("the end of the text".to_owned(), |character| format!("`{character}`"));
        let length = rest.chars().next().map_or(0, char::len_utf8);
        Err((self.at..self.at + length, JsonProblem::Unexpected { found, expected }))
    }

    fn value(&mut self) -> Result<JsonValue> {
        self.space();
        let start = self.at;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err((start..start + 1, JsonProblem::Depth(DEPTH_MAX)));
        }
        let kind = match self.peek() {
            Some(b'{') => self.object()?,
            Some(b'[') => self.array()?,
            Some(b'"') => JsonKind::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'a'..=b'z') => self.word()?,
            _ => return self.unexpected("a JSON value"),
        };
        self.depth -= 1;
        Ok(JsonValue { kind, span: start..self.at })
    }

    fn word(&mut self) -> Result<JsonKind> {
        for (word, kind) in
            [("null", JsonKind::Null), ("true", JsonKind::Boolean(true)), ("false", JsonKind::Boolean(false))]
        {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(kind);
            }
        }
        self.unexpected("a JSON value")
    }

    fn object(&mut self) -> Result<JsonKind> {
        self.at += 1;
        let mut members = Vec::new();
        self.space();
        if self.eat(b'}') {
            return Ok(JsonKind::Object(members));
        }
        loop {
            self.space();
            let start = self.at;
            if self.peek() != Some(b'"') {
                return self.unexpected("the name of a property");
            }
            let name = self.string()?;
            let name_span = start..self.at;
            self.space();
            if !self.eat(b':') {
                return self.unexpected("`:`");
            }
            let value = self.value()?;
            members.push(JsonMember { name, name_span, value });
            self.space();
            if self.eat(b'}') {
                return Ok(JsonKind::Object(members));
            }
            if !self.eat(b',') {
                return self.unexpected("`,` or `}`");
            }
            if self.closes_behind_comma(b'}') {
                return Ok(JsonKind::Object(members));
            }
        }
    }

    fn array(&mut self) -> Result<JsonKind> {
        self.at += 1;
        let mut elements = Vec::new();
        self.space();
        if self.eat(b']') {
            return Ok(JsonKind::Array(elements));
        }
        loop {
            elements.push(self.value()?);
            self.space();
            if self.eat(b']') {
                return Ok(JsonKind::Array(elements));
            }
            if !self.eat(b',') {
                return self.unexpected("`,` or `]`");
            }
            if self.closes_behind_comma(b']') {
                return Ok(JsonKind::Array(elements));
            }
        }
    }

    /// Whether the bracket closes although a comma precedes it.
    fn closes_behind_comma(&mut self, bracket: u8) -> bool {
        let comma = self.at - 1;
        self.space();
        let closes = self.eat(bracket);
        if closes {
            self.commas.push(comma..comma + 1);
        }
        closes
    }

    fn number(&mut self) -> Result<JsonKind> {
        let start = self.at;
        let is_part = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
        while self.peek().is_some_and(is_part) {
            self.at += 1;
        }
        let literal = &self.text[start..self.at];
        let digits = literal.strip_prefix('-').unwrap_or(literal);
        let leading_zero = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
        let whole = digits.bytes().all(|byte| byte.is_ascii_digit());
        let kind = match whole {
            true => literal.parse().ok().map(JsonKind::Integer),
            false => literal.parse().ok().map(JsonKind::Real),
        };
        kind.filter(|_| !leading_zero).ok_or((start..self.at, JsonProblem::Number))
    }

    fn string(&mut self) -> Result<String> {
        let start = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(['"', '\\']).unwrap_or(rest.len());
            if let Some(control) = rest[..plain].find(|character| character < ' ') {
                self.at += control;
                return self.unexpected("an escape sequence for a control character");
            }
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(_) => self.escape(&mut out)?,
                None => return Err((start..self.at, JsonProblem::UnclosedText)),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<()> {
        self.at += 1;
        let character = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                out.push(self.unicode()?);
                return Ok(());
            }
            _ => return self.unexpected("an escape sequence"),
        };
        self.at += 1;
        out.push(character);
        Ok(())
    }

    /// Behind `\u`: four digits, and a second such escape for a surrogate pair.
    fn unicode(&mut self) -> Result<char> {
        let first = self.four_digits()?;
        if !(0xd800..0xdc00).contains(&first) {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        if !self.text[self.at..].starts_with("\\u") {
            return Ok(char::REPLACEMENT_CHARACTER);
        }
        self.at += 2;
        let second = self.four_digits()?;
        let pair = 0x10000 + ((first - 0xd800) << 10) + second.wrapping_sub(0xdc00);
        Ok(char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn four_digits(&mut self) -> Result<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let value = digits.and_then(|digits| std::str::from_utf8(digits).ok()).filter(|text| !text.contains('+'));
        match value.and_then(|text| u32::from_str_radix(text, 16).ok()) {
            Some(value) => {
                self.at += 4;
                Ok(value)
            }
            None => self.unexpected("four hexadecimal digits"),
        }
    }
}

impl JsonValue {
    /// The same value in the form that attributes are kept in.
    pub(crate) fn to_plain(&self) -> serde_json::Value {
        match &self.kind {
            JsonKind::Null => serde_json::Value::Null,
            JsonKind::Boolean(value) => (*value).into(),
            JsonKind::Integer(value) => match (i64::try_from(*value), u64::try_from(*value)) {
                (Ok(value), _) => value.into(),
                (_, Ok(value)) => value.into(),
                _ => (*value as f64).into(),
            },
            JsonKind::Real(value) => (*value).into(),
            JsonKind::Text(value) => value.clone().into(),
            JsonKind::Array(values) => values.iter().map(Self::to_plain).collect(),
            JsonKind::Object(members) => {
                members.iter().map(|member| (member.name.clone(), member.value.to_plain())).collect()
            }
        }
    }
}
