//! The meaning of names in an expression: the border between the language and the owner of the
//! events.

use kymo_ir::predicate::InputKind;

/// A name with its parts: `next_tid`, `msg.header.id`, `stack[3]`, `$ctx.vtid`, `event.name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamePath {
    /// It begins with `$`: the first step is one of the language's own words (`ctx`, `app`, `event`, `stream`, `packet`,
    /// `trace`, `env`, `payload`, `time`, `cycles`). Without it those words are fields first.
    pub is_global: bool,
    /// At least one; the first one is a name.
    pub steps: Vec<NameStep>,
}

/// One part of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NameStep {
    /// `.name`
    Name(String),
    /// `[index]`
    Index(u64),
}

impl std::fmt::Display for NamePath {
    /// As it is written in an expression.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_global { "$" } else { "" })?;
        for (number, step) in self.steps.iter().enumerate() {
            match step {
                NameStep::Index(index) => write!(f, "[{index}]")?,
                NameStep::Name(name) => {
                    f.write_str(if number > 0 { "." } else { "" })?;
                    let is_letter = |next: char| next.is_ascii_alphanumeric() || matches!(next, '_' | ':');
                    let is_plain =
                        name.chars().all(is_letter) && !name.starts_with(|first: char| first.is_ascii_digit());
                    if is_plain && !name.is_empty() { f.write_str(name)? } else { write!(f, "`{name}`")? }
                }
            }
        }
        Ok(())
    }
}

/// The fields of one class of events. An implementation answers for one class at a time.
pub trait FieldResolver {
    /// The meaning of a path there.
    fn find(&self, path: &NamePath) -> PathMeaning;

    /// The point in time that `@text` means, on the axis of `time`, in nanoseconds; `None`: it is
    /// none, or there is no time. `text` is the part behind the `@`: `12:18:50.43`,
    /// `2016-03-04T17:46:22`, `1457113582.794565804`.
    fn instant(&self, text: &str) -> Option<i64>;
}

/// The meaning of a path.
#[derive(Clone, Debug, PartialEq)]
pub enum PathMeaning {
    /// A field with a value of its own in each event.
    Field(FilterField),
    /// An integer field that is measured in another unit:
    /// `floor((value + before) * multiply / divide) + add`.
    Scaled {
        /// The field.
        field: FilterField,
        /// Added before: less than `divide`.
        before: u64,
        /// Not 0.
        multiply: u64,
        /// Not 0.
        divide: u64,
        /// Added behind.
        add: i64,
    },
    /// Every event of the class has this value.
    Constant(Constant),
    /// The class has no such field.
    Missing {
        /// Names like it that there are, the nearest first.
        near: Vec<String>,
    },
    /// The field has no single value.
    Compound {
        /// The kind of the field: `a structure`, `an array`.
        what: &'static str,
    },
}

/// A field with one value.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterField {
    /// A number of the implementation's own, which identifies the field. Equal fields have equal
    /// keys.
    pub key: u32,
    /// As people write it.
    pub name: String,
    /// Its type.
    pub kind: InputKind,
    /// Events may be without it.
    pub optional: bool,
    /// Labels of an integer and the ranges of values that have them, both ends included.
    pub labels: Vec<(String, Vec<(i128, i128)>)>,
    /// The unit of its values, if its class has one.
    pub unit: Option<Unit>,
    /// The base in which people read an integer: 2, 8, 10 or 16.
    pub base: u8,
}

/// A constant value.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// An integer.
    Integer(i128),
    /// A real number.
    Real(f64),
    /// Text as UTF-8.
    Text(String),
}

/// The unit of an integer: `multiply / divide` base units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The dimension that it measures.
    pub dimension: Dimension,
    /// Not 0.
    pub multiply: u64,
    /// Not 0.
    pub divide: u64,
}

/// The dimension of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// The base unit is the nanosecond.
    Time,
    /// The base unit is the byte.
    Size,
}
