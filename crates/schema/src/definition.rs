//! What programs say of their events, as text that may be anything.
//!
//! ```text
//! event net:sent                     or   context user 3
//! level 6                                 field u32 id
//! source server.c:12
//! role begin
//! field u32 port
//! field text host
//! field enum u8(idle=0, busy=1) state
//! as begin key=id                         an event of a schema: see [`crate::meaning`]
//! ```
//!
//! The first line says what it is; lines of later versions, which begin with other words, are skipped. Whatever else is wrong makes the
//! definition one that nobody can use, and is told with its line and column.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::field::{DefinedField, FieldType, ScalarType, ValueLabel};
use crate::meaning::{DefinedMeaning, MEANINGS_MAX, SchemaOrigin};
use crate::{level, word};

/// Bytes of a definition.
pub const BYTES_MAX: usize = 64 << 10;
/// Fields of an event.
pub const FIELDS_MAX: usize = 256;
/// Fields of a definition that is refused, as far as their sizes are of use: an event has 16 KiB.
const SHAPE_MAX: usize = 16 << 10;
/// Labels of an enumeration.
pub const LABELS_MAX: usize = 4 << 10;
/// Elements of an array: events have at most 16 KiB.
pub const ELEMENTS_MAX: u32 = 16 << 10;
/// Bytes of a name.
pub const NAME_MAX: usize = 256;
/// The least important level, which is that of events that say none.
pub const LEVEL_MAX: u8 = level::LEVELS.len() as u8 - 1;
/// Contexts that a program can define.
pub const CONTEXTS_MAX: u32 = 16;

/// What a definition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Definition {
    /// An event.
    Event(EventClass),
    /// Something that events carry with them.
    Context(ContextClass),
}

/// An event of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EventClass {
    /// Whose it is.
    pub provider: String,
    /// What happens.
    pub name: String,
    /// How important it is: 0 (emergency) to 6 (info), 7 to 13 (debugging, from systems to lines), 14 (debugging).
    pub level: u8,
    /// Where in the program's source it is: a file and a line.
    pub source: Option<(String, u32)>,
    /// What it means to analyses.
    pub role: Option<DefinitionRole>,
    /// Its place in the schema that it is generated from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<SchemaOrigin>,
    /// Its roles by that schema; at most [`MEANINGS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meanings: Vec<DefinedMeaning>,
    /// What it tells.
    pub fields: Vec<DefinedField>,
}

/// Something that a program's events carry with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextClass {
    /// Which of the program's contexts it is, below [`CONTEXTS_MAX`].
    pub id: u8,
    /// What it is called, and what its bytes are: one value, or a text.
    pub field: DefinedField,
}

/// What an event means to analyses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DefinitionRole {
    /// Something begins.
    Begin,
    /// It ends.
    End,
    /// A value changes.
    Counter,
    /// Something goes somewhere.
    Send,
    /// It arrives.
    Receive,
    /// Somebody came by.
    Checkpoint,
}

impl DefinitionRole {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Begin, Self::End, Self::Counter, Self::Send, Self::Receive, Self::Checkpoint];

    /// The role of a word; a later version may have others.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.word() == word)
    }

    /// The word that definitions have for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::End => "end",
            Self::Counter => "counter",
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// What is wrong with a definition, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefinitionError {
    /// The line, from 1.
    pub line: u32,
    /// The byte of the line, from 1.
    pub column: u32,
    /// What it is.
    pub kind: DefinitionErrorKind,
}

/// What is wrong with a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum DefinitionErrorKind {
    #[error("a definition has {found} bytes; at most {BYTES_MAX} can be")]
    Long { found: usize },
    #[error("the definition is not UTF-8")]
    Encoding,
    #[error("a control character stands in a name")]
    Control,
    #[error("`event PROVIDER:NAME` or `context NAME` has to be the first line")]
    First,
    #[error("{expected} is missing")]
    Missing { expected: &'static str },
    #[error("behind {expected} there is something else")]
    Behind { expected: &'static str },
    #[error("a name has {found} bytes; at most {NAME_MAX} can be")]
    LongName { found: usize },
    #[error("a level is a number up to {LEVEL_MAX}")]
    Level,
    #[error("a source is FILE:LINE")]
    Source,
    #[error(
        "no such type: it is u8 to u64, i8 to i64, x8 to x64, pointer, f32, f64, bool, text, array, sequence or enum"
    )]
    Type,
    #[error("elements of arrays and sequences are numbers or bools")]
    Element,
    #[error("an array has 0 to {ELEMENTS_MAX} elements")]
    Elements,
    #[error("values of enumerations are integers")]
    Enumeration,
    #[error("the value does not fit into {bytes} bytes")]
    Value { bytes: u8 },
    #[error("an enumeration has at most {LABELS_MAX} labels")]
    Labels,
    #[error("an event has at most {FIELDS_MAX} fields")]
    Fields,
    #[error("there is a field of that name")]
    Twice,
    #[error("a context has a number below {CONTEXTS_MAX}")]
    Context,
    #[error("a context is one value, or a text")]
    ContextField,
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.kind)
    }
}

impl std::error::Error for DefinitionError {}

impl EventClass {
    /// An event without fields, of the least important level.
    #[must_use]
    pub fn new(provider: String, name: String) -> Self {
        let (source, role, origin, meanings, fields) = (None, None, None, Vec::new(), Vec::new());
        Self { provider, name, level: LEVEL_MAX, source, role, origin, meanings, fields }
    }

    /// The URI that it has in traces, if it has a role, a source, or a schema.
    #[must_use]
    pub fn uri(&self) -> Option<String> {
        let role = self.role.map_or("", DefinitionRole::word);
        crate::meaning::uri(role, self.source.as_ref(), self.origin.as_ref(), &self.meanings)
    }

    /// `PROVIDER:NAME`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.provider, self.name)
    }
}

/// Reads a definition.
///
/// # Errors
///
/// The first problem.
///
/// ```
/// use kymo_schema::definition::{Definition, parse};
/// let Ok(Definition::Event(event)) = parse(b"event net:sent\nlevel 6\nfield u32 port\n") else { panic!() };
/// assert_eq!((event.full_name(), event.level, event.fields.len()), ("net:sent".to_owned(), 6, 1));
/// assert_eq!(parse(b"event net:sent\nfield u33 port\n").unwrap_err().to_string(), "line 2, column 7: no such type: it is \
///     u8 to u64, i8 to i64, x8 to x64, pointer, f32, f64, bool, text, array, sequence or enum");
/// ```
pub fn parse(definition: &[u8]) -> Result<Definition, DefinitionError> {
    if definition.len() > BYTES_MAX {
        return Err(DefinitionError {
            line: 1,
            column: 1,
            kind: DefinitionErrorKind::Long { found: definition.len() },
        });
    }
    let text = std::str::from_utf8(definition).map_err(|error| {
        let before = &definition[..error.valid_up_to()];
        let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count() as u32;
        DefinitionError { line, column: 1 + (before.len() - begin) as u32, kind: DefinitionErrorKind::Encoding }
    })?;
    let mut lines = text.split('\n').zip(1..).map(|(text, number)| DefinitionLine { text, at: 0, number });
    let mut first = lines.next().expect("a text has a first line");
    match first.word() {
        "event" => event(&mut first, lines).map(Definition::Event),
        "context" => context(&mut first, lines).map(Definition::Context),
        _ => Err(first.problem(0, DefinitionErrorKind::First)),
    }
}

/// The types of the fields of a definition that [`parse`] refuses, so that its events can be skipped:
/// its names, labels or length may be wrong. `None`: a type is unknown.
///
/// ```
/// use kymo_schema::definition::{parse, shape};
/// let twice = b"event net:sent\nfield u32 port\nfield u16 port\n";
/// assert!(parse(twice).is_err());
/// assert_eq!(shape(twice).unwrap().len(), 2);
/// assert!(shape(b"event net:sent\nfield u33 port\n").is_none());
/// ```
#[must_use]
pub fn shape(definition: &[u8]) -> Option<Vec<DefinedField>> {
    let text = String::from_utf8_lossy(definition);
    let lines = text.split('\n').zip(1..).map(|(text, number)| DefinitionLine { text, at: 0, number });
    let mut fields = Vec::new();
    for mut line in lines.skip(1) {
        if line.word() == "field" {
            if fields.len() == SHAPE_MAX {
                return None;
            }
            fields.push(DefinedField { name: String::new(), kind: loose_kind(&mut line)? });
        }
    }
    Some(fields)
}

/// The type of a field, without labels.
fn loose_kind(line: &mut DefinitionLine<'_>) -> Option<FieldType> {
    let before = line.at;
    if line.word() == word::ENUM {
        let its = line.rest().split('(').next()?.trim();
        return ScalarType::named(its).map(FieldType::Scalar);
    }
    line.at = before;
    kind(line).ok()
}

fn event<'a>(
    first: &mut DefinitionLine<'a>,
    lines: impl Iterator<Item = DefinitionLine<'a>>,
) -> Result<EventClass, DefinitionError> {
    let begin = first.skip_spaces();
    let (provider, _) = first
        .rest()
        .split_once(':')
        .ok_or_else(|| first.problem(begin, DefinitionErrorKind::Missing { expected: "PROVIDER:" }))?;
    let provider = first.take(provider.len(), "a provider")?;
    first.at += 1;
    let name = first.take(first.rest().len(), "a name")?;
    let mut event = EventClass::new(provider, name);
    for mut line in lines {
        match line.word() {
            "level" => {
                let (at, word) = (line.skip_spaces(), line.word());
                let level = word.parse().ok().filter(|level| *level <= LEVEL_MAX);
                event.level = level.ok_or_else(|| line.problem(at, DefinitionErrorKind::Level))?;
                line.end("a level")?;
            }
            "source" => event.source = Some(source(&mut line)?),
            "role" => event.role = DefinitionRole::named(line.word()),
            "schema" => event.origin = SchemaOrigin::parse(line.rest()),
            "as" if event.meanings.len() < MEANINGS_MAX => event.meanings.extend(DefinedMeaning::parse(line.rest())),
            "field" => {
                let at = line.skip_spaces();
                if event.fields.len() == FIELDS_MAX {
                    return Err(line.problem(at, DefinitionErrorKind::Fields));
                }
                let field = field(&mut line)?;
                if event.fields.iter().any(|other| other.name == field.name) {
                    return Err(line.problem(at, DefinitionErrorKind::Twice));
                }
                event.fields.push(field);
            }
            _ => {}
        }
    }
    Ok(event)
}

fn context<'a>(
    first: &mut DefinitionLine<'a>,
    lines: impl Iterator<Item = DefinitionLine<'a>>,
) -> Result<ContextClass, DefinitionError> {
    first.skip_spaces();
    let name = first.name("a context")?;
    let at = first.skip_spaces();
    // Programs that do not know which one it will be say nothing: the registry tells.
    let id = if first.rest().is_empty() { "0" } else { first.word() };
    let id = id.parse().ok().filter(|id| u32::from(*id) < CONTEXTS_MAX);
    let id = id.ok_or_else(|| first.problem(at, DefinitionErrorKind::Context))?;
    first.end("a context's number")?;
    let mut kind = None;
    for mut line in lines {
        if line.word() == "field" {
            let at = line.skip_spaces();
            let found = field(&mut line)?.kind;
            if kind.is_some() || !matches!(found, FieldType::Scalar(_) | FieldType::Text) {
                return Err(line.problem(at, DefinitionErrorKind::ContextField));
            }
            kind = Some(found);
        }
    }
    let kind = kind.ok_or_else(|| first.problem(at, DefinitionErrorKind::Missing { expected: "`field TYPE NAME`" }))?;
    Ok(ContextClass { id, field: DefinedField { name, kind } })
}

fn source(line: &mut DefinitionLine<'_>) -> Result<(String, u32), DefinitionError> {
    let at = line.skip_spaces();
    let refused = line.problem(at, DefinitionErrorKind::Source);
    let (file, number) = line.rest().rsplit_once(':').ok_or(refused)?;
    let number = number.trim_end().parse().map_err(|_| refused)?;
    let has_name = !file.is_empty() && !file.contains(char::is_control);
    if has_name { Ok((file.to_owned(), number)) } else { Err(refused) }
}

fn field(line: &mut DefinitionLine<'_>) -> Result<DefinedField, DefinitionError> {
    let kind = kind(line)?;
    line.skip_spaces();
    let name = line.name("a field's name")?;
    line.end("a field's name")?;
    Ok(DefinedField { name, kind })
}

fn kind(line: &mut DefinitionLine<'_>) -> Result<FieldType, DefinitionError> {
    let at = line.skip_spaces();
    match line.word() {
        word::TEXT => Ok(FieldType::Text),
        word::ARRAY => {
            let at = line.skip_spaces();
            let count = line.word().parse().ok().filter(|count| *count <= ELEMENTS_MAX);
            let count = count.ok_or_else(|| line.problem(at, DefinitionErrorKind::Elements))?;
            Ok(FieldType::Array(element(line)?, count))
        }
        word::SEQUENCE => Ok(FieldType::Sequence(element(line)?)),
        word::ENUM => Ok(FieldType::Scalar(enumeration(line)?)),
        "" => Err(line.problem(at, DefinitionErrorKind::Missing { expected: "a type" })),
        word => {
            ScalarType::named(word).map(FieldType::Scalar).ok_or_else(|| line.problem(at, DefinitionErrorKind::Type))
        }
    }
}

fn element(line: &mut DefinitionLine<'_>) -> Result<ScalarType, DefinitionError> {
    let at = line.skip_spaces();
    ScalarType::named(line.word()).ok_or_else(|| line.problem(at, DefinitionErrorKind::Element))
}

/// `TYPE(label=value, label, ...)`, behind `enum`.
fn enumeration(line: &mut DefinitionLine<'_>) -> Result<ScalarType, DefinitionError> {
    let at = line.skip_spaces();
    let length = line.rest().find('(').unwrap_or(line.rest().len());
    let Some(ScalarType::Integer(integer)) = ScalarType::named(line.rest()[..length].trim_end()) else {
        return Err(line.problem(at, DefinitionErrorKind::Enumeration));
    };
    line.at += length;
    if !line.eat('(') {
        return Err(line.problem(line.at, DefinitionErrorKind::Missing { expected: "`(`" }));
    }
    let mut labels: Vec<ValueLabel> = Vec::new();
    loop {
        line.skip_spaces();
        if line.eat(')') {
            break;
        }
        let at = line.at;
        if labels.len() == LABELS_MAX {
            return Err(line.problem(at, DefinitionErrorKind::Labels));
        }
        let length = line.rest().find(['=', ',', ')']).unwrap_or(line.rest().len());
        let name = line.take(length, "a label")?.trim_end().to_owned();
        let mut value = labels.last().map_or(0, |label| label.value + 1);
        let mut at = at;
        if line.eat('=') {
            at = line.skip_spaces();
            let length = line.rest().find([',', ')']).unwrap_or(line.rest().len());
            value = number(line.rest()[..length].trim_end())
                .ok_or_else(|| line.problem(at, DefinitionErrorKind::Missing { expected: "a number" }))?;
            line.at += length;
        }
        if !integer.range().contains(&value) {
            return Err(line.problem(at, DefinitionErrorKind::Value { bytes: integer.bytes }));
        }
        labels.push(ValueLabel { name, value });
        if !line.eat(',') && !line.rest().starts_with(')') {
            return Err(line.problem(line.at, DefinitionErrorKind::Missing { expected: "`)`" }));
        }
    }
    Ok(ScalarType::Enumeration(integer, labels))
}

fn number(text: &str) -> Option<i128> {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
    let (text, base) = text.strip_prefix("0x").map_or((text, 10), |text| (text, 16));
    let value = u64::from_str_radix(text.strip_prefix('+').map_or(text, |_| ""), base).ok()?;
    Some(sign * i128::from(value))
}

/// A line, as far as it is read.
struct DefinitionLine<'a> {
    text: &'a str,
    at: usize,
    number: u32,
}

impl<'a> DefinitionLine<'a> {
    fn problem(&self, at: usize, kind: DefinitionErrorKind) -> DefinitionError {
        DefinitionError { line: self.number, column: at as u32 + 1, kind }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Where what comes next begins.
    fn skip_spaces(&mut self) -> usize {
        self.at = self.text.len() - self.rest().trim_start_matches(' ').len();
        self.at
    }

    fn eat(&mut self, character: char) -> bool {
        self.skip_spaces();
        let is_next = self.rest().starts_with(character);
        self.at += if is_next { character.len_utf8() } else { 0 };
        is_next
    }

    /// The next word; none: it is empty.
    fn word(&mut self) -> &'a str {
        self.skip_spaces();
        let word = self.rest().split(' ').next().unwrap_or_default();
        self.at += word.len();
        word
    }

    /// A name without spaces.
    fn name(&mut self, what: &'static str) -> Result<String, DefinitionError> {
        let length = self.rest().find(char::is_whitespace).unwrap_or(self.rest().len());
        self.take(length, what)
    }

    /// A name of so many bytes.
    fn take(&mut self, length: usize, what: &'static str) -> Result<String, DefinitionError> {
        let name = &self.rest()[..length];
        if name.trim().is_empty() {
            return Err(self.problem(self.at, DefinitionErrorKind::Missing { expected: what }));
        }
        if length > NAME_MAX {
            return Err(self.problem(self.at, DefinitionErrorKind::LongName { found: length }));
        }
        if let Some(at) = name.find(char::is_control) {
            return Err(self.problem(self.at + at, DefinitionErrorKind::Control));
        }
        self.at += length;
        Ok(name.to_owned())
    }

    fn end(&mut self, expected: &'static str) -> Result<(), DefinitionError> {
        let at = self.skip_spaces();
        if self.rest().is_empty() { Ok(()) } else { Err(self.problem(at, DefinitionErrorKind::Behind { expected })) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event_of(text: &str) -> EventClass {
        match parse(text.as_bytes()) {
            Ok(Definition::Event(event)) => event,
            other => panic!("{text:?} is {other:?}"),
        }
    }

    #[test]
    fn everything_that_can_be_said_is_understood() {
        let event = event_of(
            "event net.http:a::b (int, char *)\nlevel 3\nsource dir with space/a:b.c:12\nrole send\nlater whatever\n\
             field u8 a\nfield  i64  b.c\nfield x16 d\nfield pointer p\nfield f32 f\nfield bool g\nfield text t\n\
             field array 7 u8 h\nfield sequence f64 i\n\
             field enum i8(low=-128, next, not here=0x10,high=127) s\nfield enum u64(all=18446744073709551615) w",
        );
        assert_eq!((event.provider.as_str(), event.name.as_str()), ("net.http", "a::b (int, char *)"));
        assert_eq!((event.level, event.role), (3, Some(DefinitionRole::Send)));
        assert_eq!(event.source, Some(("dir with space/a:b.c".to_owned(), 12)));
        let names: Vec<_> = event.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["a", "b.c", "d", "p", "f", "g", "t", "h", "i", "s", "w"]);
        let FieldType::Scalar(ScalarType::Enumeration(integer, labels)) = &event.fields[9].kind else { panic!() };
        let labels: Vec<_> = labels.iter().map(|label| (label.name.as_str(), label.value)).collect();
        assert_eq!(labels, [("low", -128), ("next", -127), ("not here", 16), ("high", 127)]);
        assert!(integer.is_signed && integer.bytes == 1);
        let bare = event_of("event a:b");
        assert_eq!((bare.level, bare.source, bare.role, bare.fields.len()), (14, None, None, 0));
        let context = parse(b"context user 3\nfield u32 id\n");
        let Ok(Definition::Context(context)) = context else { panic!("{context:?}") };
        assert_eq!((context.id, context.field.name.as_str()), (3, "user"));
        let context = parse(b"context request\nfield text request\n");
        let Ok(Definition::Context(context)) = context else { panic!("{context:?}") };
        assert_eq!(context.field, DefinedField { name: "request".to_owned(), kind: FieldType::Text });
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, line, column, kind) in [
            ("", 1, 1, DefinitionErrorKind::First),
            ("counter a:b", 1, 1, DefinitionErrorKind::First),
            ("event ab", 1, 7, DefinitionErrorKind::Missing { expected: "PROVIDER:" }),
            ("event :b", 1, 7, DefinitionErrorKind::Missing { expected: "a provider" }),
            ("event a:", 1, 9, DefinitionErrorKind::Missing { expected: "a name" }),
            ("event a:b\tc", 1, 10, DefinitionErrorKind::Control),
            ("event a:b\nlevel 15", 2, 7, DefinitionErrorKind::Level),
            ("event a:b\nlevel 3 4", 2, 9, DefinitionErrorKind::Behind { expected: "a level" }),
            ("event a:b\nsource a.c", 2, 8, DefinitionErrorKind::Source),
            ("event a:b\nfield", 2, 6, DefinitionErrorKind::Missing { expected: "a type" }),
            ("event a:b\nfield u32", 2, 10, DefinitionErrorKind::Missing { expected: "a field's name" }),
            ("event a:b\nfield u24 x", 2, 7, DefinitionErrorKind::Type),
            ("event a:b\nfield u32 x y", 2, 13, DefinitionErrorKind::Behind { expected: "a field's name" }),
            ("event a:b\nfield array 99999 u8 x", 2, 13, DefinitionErrorKind::Elements),
            ("event a:b\nfield array 3 text x", 2, 15, DefinitionErrorKind::Element),
            ("event a:b\nfield enum f32(a) x", 2, 12, DefinitionErrorKind::Enumeration),
            ("event a:b\nfield enum u8(a=256) x", 2, 17, DefinitionErrorKind::Value { bytes: 1 }),
            ("event a:b\nfield enum u8(a=255, b) x", 2, 22, DefinitionErrorKind::Value { bytes: 1 }),
            ("event a:b\nfield enum u8(a=x) x", 2, 17, DefinitionErrorKind::Missing { expected: "a number" }),
            ("event a:b\nfield enum u8(a", 2, 16, DefinitionErrorKind::Missing { expected: "`)`" }),
            ("event a:b\nfield u8 x\nfield u8 x", 3, 7, DefinitionErrorKind::Twice),
            ("context a 16\nfield u8 x", 1, 11, DefinitionErrorKind::Context),
            ("context a 1\nfield sequence u8 x", 2, 7, DefinitionErrorKind::ContextField),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(DefinitionError { line, column, kind }), "{text:?}");
        }
        assert_eq!(
            parse(b"event a:b\nlevel \xff"),
            Err(DefinitionError { line: 2, column: 7, kind: DefinitionErrorKind::Encoding })
        );
        let long = vec![b'x'; BYTES_MAX + 1];
        assert!(matches!(parse(&long), Err(DefinitionError { kind: DefinitionErrorKind::Long { .. }, .. })));
    }

    #[test]
    fn no_text_makes_it_panic() {
        let words = [
            "event a:b\n",
            "context c 1\n",
            "field ",
            "enum ",
            "u8",
            "(",
            ")",
            "=",
            ",",
            " ",
            "\n",
            "x",
            "-1",
            "é",
            "array 3 ",
        ];
        let config = proptest::test_runner::Config { failure_persistence: None, ..Default::default() };
        let texts = proptest::collection::vec(0..words.len(), 0..30);
        proptest::test_runner::TestRunner::new(config)
            .run(&texts, |text| {
                let text: String = text.into_iter().map(|word| words[word]).collect();
                if let Err(problem) = parse(text.as_bytes()) {
                    let line = text.split('\n').nth(problem.line as usize - 1).expect("there is such a line");
                    proptest::prop_assert!(problem.column as usize <= line.len() + 1, "{text:?}: {problem}");
                }
                Ok(())
            })
            .expect("nothing breaks it");
    }
}
