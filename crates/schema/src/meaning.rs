//! Meanings of events: lines of their definitions, and parts of the URIs that events have in traces.
//!
//! ```text
//! as begin key=id name="fetch" within=@process        a line of a definition
//! kymo:?schema=shop/3/0/5&as=begin%20key=id%20...     the URI in the metadata
//! ```
//!
//! Roles and facts are those of mappings (docs/roles.md). Readers skip roles and facts that they do
//! not know: later versions may have others.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The role of an event, and where the facts about it are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DefinedMeaning {
    /// The role's word in mappings.
    pub role: String,
    /// Words of facts in mappings, and their values.
    pub facts: Vec<(String, DefinedFact)>,
}

/// Where the value of a fact is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DefinedFact {
    /// In a field of the event.
    Field(String),
    /// The same for all events.
    Text(String),
    /// The same for all events.
    Integer(i64),
    /// The thread that recorded the event.
    Thread,
    /// Its process.
    Process,
}

/// The place of an event in a schema.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SchemaOrigin {
    /// The schema's name.
    pub schema: String,
    /// Its version.
    pub version: u32,
    /// The id of the event's subsystem.
    pub subsystem: u16,
    /// The event's id within it.
    pub event: u16,
}

/// Meanings of an event at most.
pub const MEANINGS_MAX: usize = 16;

impl DefinedMeaning {
    /// Reads a meaning, as it stands behind `as` in a definition. `None`: it is none.
    ///
    /// ```
    /// use kymo_schema::meaning::{DefinedFact, DefinedMeaning};
    /// let meaning = DefinedMeaning::parse("begin key=id name=\"a \\\"b\\\"\" within=@thread early=5").unwrap();
    /// assert_eq!(meaning.facts[1].1, DefinedFact::Text("a \"b\"".to_owned()));
    /// assert_eq!(meaning.to_string(), "begin key=id name=\"a \\\"b\\\"\" within=@thread early=5");
    /// assert!(DefinedMeaning::parse("begin key").is_none());
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (role, mut rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let mut meaning = Self { role: role.to_owned(), facts: Vec::new() };
        if !is_word(role) {
            return None;
        }
        loop {
            rest = rest.trim_start();
            if rest.is_empty() {
                return Some(meaning);
            }
            let (word, behind) = rest.split_once('=')?;
            let (value, behind) = value(behind)?;
            if !is_word(word) {
                return None;
            }
            meaning.facts.push((word.to_owned(), value));
            rest = behind;
        }
    }
}

/// A value, and the text behind it.
fn value(text: &str) -> Option<(DefinedFact, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(' ').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let value = match word {
            "" => return None,
            "@thread" => DefinedFact::Thread,
            "@process" => DefinedFact::Process,
            word if word.starts_with(|first: char| first == '-' || first.is_ascii_digit()) => {
                DefinedFact::Integer(word.parse().ok()?)
            }
            word => DefinedFact::Field(word.to_owned()),
        };
        return Some((value, rest));
    };
    let (mut unquoted, mut is_escaped) = (String::new(), false);
    for (at, c) in quoted.char_indices() {
        match c {
            '"' if !is_escaped => return Some((DefinedFact::Text(unquoted), &quoted[at + 1..])),
            '\\' if !is_escaped => is_escaped = true,
            c => {
                unquoted.push(c);
                is_escaped = false;
            }
        }
    }
    None
}

impl DefinedMeaning {
    /// The part of a URI that says it.
    #[must_use]
    pub fn part(&self) -> String {
        format!("as={}", encoded(&self.to_string()))
    }
}

impl fmt::Display for DefinedMeaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.role)?;
        for (word, value) in &self.facts {
            write!(f, " {word}=")?;
            match value {
                DefinedFact::Field(field) => f.write_str(field)?,
                DefinedFact::Text(text) => write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))?,
                DefinedFact::Integer(integer) => write!(f, "{integer}")?,
                DefinedFact::Thread => f.write_str("@thread")?,
                DefinedFact::Process => f.write_str("@process")?,
            }
        }
        Ok(())
    }
}

impl SchemaOrigin {
    /// Reads `shop 3 0 5`, as it stands behind `schema` in a definition.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let schema =
            words.next().filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))?.to_owned();
        let version = words.next()?.parse().ok()?;
        let (subsystem, event) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        words.next().is_none().then_some(Self { schema, version, subsystem, event })
    }
}

/// The URI of an event in traces: its role, its place in the program's source, in its schema, and its meanings; nothing
/// if it has none of these.
#[must_use]
pub fn uri(
    role: &str,
    source: Option<&(String, u32)>,
    origin: Option<&SchemaOrigin>,
    meanings: &[DefinedMeaning],
) -> Option<String> {
    let mut parts = Vec::new();
    parts.extend(source.map(|(file, line)| format!("source={file}:{line}")));
    parts.extend(origin.map(|SchemaOrigin { schema, version, subsystem, event }| {
        format!("schema={schema}/{version}/{subsystem}/{event}")
    }));
    parts.extend(meanings.iter().map(DefinedMeaning::part));
    let query = if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) };
    (!role.is_empty() || !query.is_empty()).then(|| format!("kymo:{role}{query}"))
}

/// The meanings in a URI.
///
/// ```
/// use kymo_schema::meaning::{DefinedMeaning, meanings, uri};
/// let meaning = DefinedMeaning::parse("begin key=id name=\"50 % & more\"").unwrap();
/// let uri = uri("", None, None, &[meaning.clone()]).unwrap();
/// assert_eq!(uri, "kymo:?as=begin%20key=id%20name=%2250%20%25%20%26%20more%22");
/// assert_eq!(meanings(&uri), [meaning]);
/// ```
#[must_use]
pub fn meanings(uri: &str) -> Vec<DefinedMeaning> {
    let Some((_, query)) = uri.strip_prefix("kymo:").and_then(|rest| rest.split_once('?')) else { return Vec::new() };
    let parts = query.split('&').filter_map(|part| part.strip_prefix("as="));
    parts.filter_map(|part| DefinedMeaning::parse(&decoded(part)?)).take(MEANINGS_MAX).collect()
}

/// A part of a query; characters that mean something there, or in filters, are `%` and two digits.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'=' | b':' | b'@' | b'/' => {
                encoded.push(byte.into());
            }
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// The text of a part of a query.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first == b'%' {
            let (digits, behind) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = behind;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}
