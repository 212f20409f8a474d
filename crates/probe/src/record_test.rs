//! Conditions that the kernel asks of records before it keeps them: filters of tracefs.
//!
//! They come as trees of known fields, numbers and texts, are checked against the description of the event, and written from
//! that: no text of a request becomes a filter as it is.
//!
//! ```
//! use kymo_ftrace::format::EventFormat;
//! use kymo_probe::record_test::{RecordRelation, RecordTest, RecordValue};
//! let text = "name: softirq_entry\nID: 223\nformat:\n\
//!     \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
//!     \tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n\n\
//!     print fmt: \"vec=%u\", REC->vec\n";
//! let format = EventFormat::parse("irq", text).unwrap();
//! let value = |value| RecordValue::Unsigned(value);
//! let vec = |relation, number| RecordTest::Number { field: "vec".to_owned(), relation, value: value(number) };
//! let test = RecordTest::Any(vec![vec(RecordRelation::Equal, 3), vec(RecordRelation::Greater, 7)]);
//! assert_eq!(test.text(&format), Ok("vec == 3 || vec > 7".to_owned()));
//! assert!(vec(RecordRelation::Equal, 1 << 32).text(&format).is_err());
//! ```

mod search;

use kymo_ftrace::format::{EventFormat, FormatField, FormatShape};
use serde::{Deserialize, Serialize};

/// Bytes of a filter at most: the kernel takes less than a page.
pub const FILTER_BYTES_MAX: usize = 4000;
/// Bytes of a text in it at most.
pub const FILTER_TEXT_MAX: usize = 200;
/// Nested conditions at most.
const DEPTH_MAX: usize = 32;
/// The field of all events that tells the CPU.
pub const CPU_FIELD: &str = "CPU";

/// A condition of records of one event. Without a part, [`Self::All`] is true and [`Self::Any`] is false.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordTest {
    /// All of these.
    All(Vec<RecordTest>),
    /// At least one of these.
    Any(Vec<RecordTest>),
    /// A number compares so.
    Number {
        /// The kernel's name of the field.
        field: String,
        /// How.
        relation: RecordRelation,
        /// With what.
        value: RecordValue,
    },
    /// A number has at least one of these bits, or none.
    Bits {
        /// The kernel's name of the field.
        field: String,
        /// The bits.
        mask: u64,
        /// At least one.
        is_any: bool,
    },
    /// A text is this one, or like this pattern.
    Text {
        /// The kernel's name of the field.
        field: String,
        /// The text, or parts with any text between them, if there are several.
        parts: Vec<String>,
        /// It is not.
        is_negated: bool,
    },
}

/// How numbers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum RecordRelation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A number of a field's own type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum RecordValue {
    Signed(i64),
    Unsigned(u64),
}

/// A condition of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordFilter {
    /// The event, as `SYSTEM:NAME`.
    pub event: String,
    /// The condition.
    pub test: RecordTest,
}

/// An event of which the kernel does not ask its condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfilteredEvent {
    /// The event, as `SYSTEM:NAME`.
    pub event: String,
    /// Why not.
    pub why: String,
}

/// A condition that an event cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsoundTest {
    /// There is no such field.
    #[error("`{0}` is no field of it")]
    Unknown(String),
    /// The field is of another kind.
    #[error("`{0}` is no {1}")]
    Kind(String, &'static str),
    /// No value of the field is this number.
    #[error("`{0}` is never {1}")]
    Range(String, i128),
    /// The text has letters that filters cannot have.
    #[error("the text {0:?} cannot be in a filter of the kernel")]
    Letters(String),
    /// It is longer than the kernel takes.
    #[error("the filter has {0} bytes, and the kernel takes {FILTER_BYTES_MAX}")]
    Long(usize),
    /// It is always true, or never.
    #[error("it asks nothing")]
    Constant,
    /// It is nested more deeply than people write.
    #[error("it has more than {DEPTH_MAX} levels")]
    Deep,
}

impl RecordRelation {
    fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

impl RecordValue {
    /// The number.
    #[must_use]
    pub fn number(self) -> i128 {
        match self {
            Self::Signed(value) => value.into(),
            Self::Unsigned(value) => value.into(),
        }
    }
}

/// The values of a field that is a number: the lowest and the highest; `None`: it is none that the kernel compares.
#[must_use]
pub fn values(field: &FormatField) -> Option<(i128, i128)> {
    let is_number = field.shape == FormatShape::Scalar && matches!(field.size, 1 | 2 | 4 | 8);
    let bits = 8 * field.size;
    is_number.then(|| match field.is_signed {
        true => (-(1_i128 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1 << bits) - 1),
    })
}

/// Whether a filter of the kernel can have a text, as one that is compared, or as a part of a pattern.
#[must_use]
pub fn can_have(text: &str, is_part: bool) -> bool {
    let is_plain = |byte: u8| {
        (byte == b' ' || byte.is_ascii_graphic())
            && !matches!(byte, b'"' | b'\'' | b'\\')
            && !(is_part && matches!(byte, b'*' | b'?' | b'[' | b']' | b'!' | b'^'))
    };
    text.len() <= FILTER_TEXT_MAX && text.bytes().all(is_plain)
}

impl RecordTest {
    /// The condition that is always true.
    #[must_use]
    pub fn always() -> Self {
        Self::All(Vec::new())
    }

    /// The condition that never is.
    #[must_use]
    pub fn never() -> Self {
        Self::Any(Vec::new())
    }

    /// Whether it is always the same, and what.
    #[must_use]
    pub fn constant(&self) -> Option<bool> {
        match self {
            Self::All(parts) if parts.is_empty() => Some(true),
            Self::Any(parts) if parts.is_empty() => Some(false),
            _ => None,
        }
    }

    /// All of these conditions, without what is not needed to say so.
    #[must_use]
    pub fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        Self::joined(parts, true)
    }

    /// At least one of these conditions, without what is not needed to say so.
    #[must_use]
    pub fn any(parts: impl IntoIterator<Item = Self>) -> Self {
        Self::joined(parts, false)
    }

    fn joined(parts: impl IntoIterator<Item = Self>, is_all: bool) -> Self {
        let mut joined = Vec::new();
        for part in parts {
            match (part, is_all) {
                (Self::All(more), true) | (Self::Any(more), false) => joined.extend(more),
                // The other one of the two without parts decides.
                (part, _) if part.constant().is_some() => return part,
                (part, _) => joined.push(part),
            }
        }
        let mut once: Vec<Self> = Vec::with_capacity(joined.len());
        for part in joined {
            if !once.contains(&part) {
                once.push(part);
            }
        }
        match (once.len(), is_all) {
            (1, _) => once.remove(0),
            (_, true) => Self::All(once),
            (_, false) => Self::Any(once),
        }
    }

    /// The filter, as the kernel takes it for an event.
    ///
    /// # Errors
    ///
    /// The event cannot have it.
    pub fn text(&self, format: &EventFormat) -> Result<String, UnsoundTest> {
        if self.constant().is_some() {
            return Err(UnsoundTest::Constant);
        }
        let mut text = String::new();
        self.write(format, &mut text, DEPTH_MAX)?;
        if text.len() > FILTER_BYTES_MAX { Err(UnsoundTest::Long(text.len())) } else { Ok(text) }
    }

    fn write(&self, format: &EventFormat, into: &mut String, depth: usize) -> Result<(), UnsoundTest> {
        match self {
            Self::All(parts) => join(parts, " && ", format, into, depth),
            Self::Any(parts) => join(parts, " || ", format, into, depth),
            Self::Number { field, relation, value } => {
                let (lowest, highest) = number_field(format, field)?;
                let number = value.number();
                if !(lowest..=highest).contains(&number) {
                    return Err(UnsoundTest::Range(field.clone(), number));
                }
                *into += &format!("{field} {} {number}", relation.symbol());
                Ok(())
            }
            Self::Bits { field, .. } if field == CPU_FIELD => Err(UnsoundTest::Kind(field.clone(), "number with bits")),
            Self::Bits { field, mask, is_any } => {
                let (lowest, highest) = number_field(format, field)?;
                // The kernel reads the number with the sign of the field.
                if lowest < 0 && i128::from(*mask) > highest || i128::from(*mask) > highest - lowest || *mask == 0 {
                    return Err(UnsoundTest::Range(field.clone(), (*mask).into()));
                }
                *into += &if *is_any { format!("{field} & {mask}") } else { format!("!({field} & {mask})") };
                Ok(())
            }
            Self::Text { field, parts, is_negated } => {
                text_field(format, field)?;
                let is_pattern = parts.len() > 1;
                if let Some(part) = parts.iter().find(|part| !can_have(part, is_pattern)) {
                    return Err(UnsoundTest::Letters(part.clone()));
                }
                let text = parts.join("*");
                if is_pattern && text.starts_with(|letter: char| letter.is_ascii_digit()) {
                    return Err(UnsoundTest::Letters(text));
                }
                *into += &match (is_pattern, is_negated) {
                    (false, false) => format!("{field} == \"{text}\""),
                    (false, true) => format!("{field} != \"{text}\""),
                    (true, false) => format!("{field} ~ \"{text}\""),
                    (true, true) => format!("!({field} ~ \"{text}\")"),
                };
                Ok(())
            }
        }
    }
}

fn join(
    parts: &[RecordTest],
    word: &str,
    format: &EventFormat,
    into: &mut String,
    depth: usize,
) -> Result<(), UnsoundTest> {
    let depth = depth.checked_sub(1).ok_or(UnsoundTest::Deep)?;
    if parts.is_empty() {
        return Err(UnsoundTest::Constant);
    }
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            *into += word;
        }
        let is_joined = matches!(part, RecordTest::All(_) | RecordTest::Any(_));
        if is_joined {
            into.push('(');
        }
        part.write(format, into, depth)?;
        if is_joined {
            into.push(')');
        }
        if into.len() > FILTER_BYTES_MAX {
            return Err(UnsoundTest::Long(into.len()));
        }
    }
    Ok(())
}

fn field_of<'f>(format: &'f EventFormat, name: &str) -> Option<&'f FormatField> {
    format.fields.iter().chain(&format.common).find(|field| field.name == name)
}

/// The values of a field that is a number.
fn number_field(format: &EventFormat, name: &str) -> Result<(i128, i128), UnsoundTest> {
    match field_of(format, name) {
        Some(field) => values(field).ok_or_else(|| UnsoundTest::Kind(name.to_owned(), "number")),
        None if name == CPU_FIELD => Ok((0, i128::from(i32::MAX))),
        None => Err(UnsoundTest::Unknown(name.to_owned())),
    }
}

fn text_field(format: &EventFormat, name: &str) -> Result<(), UnsoundTest> {
    let field = field_of(format, name).ok_or_else(|| UnsoundTest::Unknown(name.to_owned()))?;
    let is_text = field.is_text() && field.shape != FormatShape::Scalar;
    if is_text { Ok(()) } else { Err(UnsoundTest::Kind(name.to_owned(), "text")) }
}

/// The filters of a request, as the kernel takes them, by the name of the event.
pub(crate) fn texts(filters: &[RecordFilter], formats: &[(String, String)]) -> Result<Vec<(String, String)>, String> {
    let mut known = Vec::new();
    for (system, text) in formats.iter().filter(|_| !filters.is_empty()) {
        let format = EventFormat::parse(system, text).map_err(|problem| format!("{system}: {problem}"))?;
        known.push((format!("{system}:{}", format.name), format));
    }
    let text = |filter: &RecordFilter| {
        let RecordFilter { event, test } = filter;
        let (_, format) =
            known.iter().find(|(name, _)| name == event).ok_or_else(|| format!("there is no `{event}`"))?;
        let text = test.text(format).map_err(|problem| format!("the condition of `{event}`: {problem}"))?;
        Ok((event.clone(), text))
    };
    filters.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format() -> EventFormat {
        let text = "name: test\nID: 7\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
            \tfield:int prio;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield:unsigned char flags;\toffset:12;\tsize:1;\tsigned:0;\n\
            \tfield:char comm[16];\toffset:16;\tsize:16;\tsigned:0;\n\
            \tfield:__data_loc char[] name;\toffset:32;\tsize:4;\tsigned:0;\n\
            \tfield:unsigned long args[6];\toffset:40;\tsize:48;\tsigned:0;\n\n\
            print fmt: \"%d\", REC->prio\n";
        EventFormat::parse("any", text).expect("it is one")
    }

    fn number(field: &str, relation: RecordRelation, value: i64) -> RecordTest {
        RecordTest::Number { field: field.to_owned(), relation, value: RecordValue::Signed(value) }
    }

    fn is(field: &str, parts: &[&str], is_negated: bool) -> RecordTest {
        let parts = parts.iter().map(|&part| part.to_owned()).collect();
        RecordTest::Text { field: field.to_owned(), parts, is_negated }
    }

    #[test]
    fn conditions_are_written() {
        let tests = [
            RecordTest::all([
                number("prio", RecordRelation::Less, -3),
                RecordTest::any([is("comm", &["a b"], false), is("name", &["x", "y"], true)]),
            ]),
            RecordTest::Bits { field: "flags".to_owned(), mask: 0x80, is_any: false },
            RecordTest::any([
                number("CPU", RecordRelation::Equal, 1),
                number("common_pid", RecordRelation::NotEqual, 9),
            ]),
        ];
        let texts: Vec<String> = tests.iter().map(|test| test.text(&format()).expect("it is sound")).collect();
        assert_eq!(
            texts,
            [r#"prio < -3 && (comm == "a b" || !(name ~ "x*y"))"#, "!(flags & 128)", "CPU == 1 || common_pid != 9",]
        );
    }

    #[test]
    fn what_an_event_cannot_have_is_refused() {
        let unsound = [
            number("prio ", RecordRelation::Equal, 1),
            number("comm", RecordRelation::Equal, 1),
            number("args", RecordRelation::Equal, 1),
            number("flags", RecordRelation::Less, 256),
            number("CPU", RecordRelation::Less, -1),
            is("comm", &["a\" || prio == \""], false),
            is("comm", &["a\n"], false),
            is("comm", &["[", ""], false),
            is("prio", &["a"], false),
            is("comm", &["7z", ""], false),
            RecordTest::Bits { field: "CPU".to_owned(), mask: 1, is_any: true },
            RecordTest::Bits { field: "prio".to_owned(), mask: 1 << 31, is_any: true },
            RecordTest::Bits { field: "flags".to_owned(), mask: 0, is_any: true },
            RecordTest::always(),
            RecordTest::All(vec![RecordTest::never(), number("prio", RecordRelation::Less, 1)]),
            (0..40).fold(number("prio", RecordRelation::Less, 1), |test, _| RecordTest::All(vec![test])),
            RecordTest::Any((0..400).map(|value| number("prio", RecordRelation::Equal, value)).collect()),
        ];
        for test in unsound {
            assert!(test.text(&format()).is_err(), "{test:?}");
        }
    }

    #[test]
    fn what_is_not_needed_is_left_out() {
        let one = number("prio", RecordRelation::Less, 1);
        assert_eq!(RecordTest::all([RecordTest::always(), one.clone(), one.clone()]), one);
        assert_eq!(RecordTest::all([RecordTest::never(), one.clone()]), RecordTest::never());
        assert_eq!(RecordTest::any([one.clone(), RecordTest::always()]), RecordTest::always());
        assert_eq!(RecordTest::any([]), RecordTest::never());
    }

    #[test]
    fn requests_are_checked_by_descriptions() {
        let text = "name: test\nID: 7\nformat:\n\tfield:int prio;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";
        let formats = [("any".to_owned(), text.to_owned())];
        let filter = |event: &str, field: &str| RecordFilter {
            event: event.to_owned(),
            test: number(field, RecordRelation::Equal, 4),
        };
        let of = |filter| texts(&[filter], &formats);
        assert_eq!(of(filter("any:test", "prio")), Ok(vec![("any:test".to_owned(), "prio == 4".to_owned())]));
        assert!(of(filter("any:other", "prio")).is_err());
        assert!(of(filter("any:test", "port")).is_err());
    }
}
