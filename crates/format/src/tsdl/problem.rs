//! The errors of TSDL.

/// A problem of TSDL text.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TsdlProblem {
    /// A comment without its end.
    #[error("the comment is not closed with `*/`")]
    UnclosedComment,
    /// A string without its end.
    #[error("the string is not closed")]
    UnclosedText,
    /// A character that TSDL does not know.
    #[error("TSDL has no such character")]
    Character,
    /// Another token was expected.
    #[error("found {found}, expected {expected}")]
    Unexpected {
        /// The text found.
        found: String,
        /// The allowed text.
        expected: &'static str,
    },
    /// Blocks inside types inside blocks...
    #[error("types are nested deeper than {0} levels")]
    Depth(usize),
    /// A number that does not fit.
    #[error("the number does not fit in 64 bits")]
    Number,
    /// An attribute has a value of the wrong kind.
    #[error("`{attribute}` must be {expected}")]
    Value {
        /// Its name.
        attribute: String,
        /// The required value.
        expected: &'static str,
    },
    /// A required attribute is missing.
    #[error("the {block} has no `{attribute}`")]
    Missing {
        /// Where.
        block: &'static str,
        /// Its name.
        attribute: &'static str,
    },
    /// The same thing twice.
    #[error("{what} is defined twice")]
    Twice {
        /// The name.
        what: String,
    },
    /// Two streams or events of one id.
    #[error("the {what} with id {id} is defined twice")]
    TwiceId {
        /// The kind of block.
        what: &'static str,
        /// The id.
        id: u64,
    },
    /// A name that nothing has.
    #[error("there is no {what} named `{name}`")]
    Unknown {
        /// The kind of thing.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A scope must be a structure.
    #[error("`{0}` must be a structure")]
    NotStructure(String),
    /// A length or a tag is not found before its user.
    #[error("no field `{0}` is read before this one")]
    Reference(String),
    /// A length must be an unsigned integer.
    #[error("the length `{0}` is not an unsigned integer")]
    Length(String),
    /// A tag must be an enumeration.
    #[error("the tag `{0}` is not an enumeration")]
    Tag(String),
    /// A variant without a tag.
    #[error("the variant has no tag")]
    NoTag,
    /// Too many fields.
    #[error("there are more than {0} fields and labels")]
    Fields(u64),
    /// References are too many, or lead through too much: finding them would take very long.
    #[error("finding the fields that lengths and tags refer to takes more than {0} steps")]
    Steps(u64),
    /// A label's values do not fit into the integer.
    #[error("the label `{label}` has a value that its integer cannot have: that is {lower} to {upper}")]
    Enumerator {
        /// The label.
        label: String,
        /// The lowest value of the integer.
        lower: i128,
        /// The highest.
        upper: i128,
    },
    /// There is no `clock` block, but fields that are times.
    #[error("there is no `clock` block: `{0}` is taken to count nanoseconds")]
    ImplicitClock(String),
    /// There are several clocks, and a time that is mapped to none.
    #[error("`{name}` is mapped to none of the {clocks} clocks, so that it is no time")]
    UnmappedTimestamp {
        /// The field.
        name: String,
        /// How many clocks there are.
        clocks: usize,
    },
    /// A field that readers of packets need is signed.
    #[error("`{0}` in the {1} is a signed integer, and is read as an unsigned one")]
    SignedSpecialField(String, &'static str),
    /// A field that readers of packets need is no integer.
    #[error("`{0}` in the {1} is not {2}, and has no meaning for readers")]
    SpecialField(String, &'static str, &'static str),
    /// A word that TSDL reserves.
    #[error("`{0}` is a reserved word of TSDL, and is the name of a field here")]
    ReservedWord(String),
    /// Names that are the same without the underscore that protects one of them.
    #[error("the fields `_{name}` and `{name}` would both be shown as `{name}`: the first is shown as `_{name}`")]
    AmbiguousName {
        /// The name without its underscore.
        name: String,
    },
    /// A list of findings that was cut.
    #[error("{0} more like these")]
    More(usize),
    /// The version is another one.
    #[error("the version is {major}.{minor}; this reader knows 1.8")]
    Version {
        /// Major.
        major: i128,
        /// Minor.
        minor: i128,
    },
    /// An attribute that the specification does not know.
    #[error("the {block} has no attribute `{name}` in CTF 1.8")]
    UnknownAttribute {
        /// Where.
        block: &'static str,
        /// Its name.
        name: String,
    },
    /// The text does not begin as the specification demands.
    #[error("the text does not begin with `/* CTF 1.8`")]
    Signature,
    /// Too much text.
    #[error("the text has more than {0} bytes")]
    TextLength(usize),
    /// A NUL character.
    #[error("there is a NUL character in the text")]
    Nul,
    /// A range of an enumeration is upside down.
    #[error("the range ends before it begins")]
    Range,
}

impl TsdlProblem {
    /// Help for the author, where the message does not have it.
    pub(crate) fn help(&self) -> Option<&'static str> {
        match self {
            Self::TwiceId { .. } => Some("keep one of them, or give the other another id"),
            Self::Twice { .. } => Some("keep one of them, or give the other another name"),
            Self::Unknown { what: "type", .. } => {
                Some("a `typealias`, `typedef` or named compound type has to come before its first use")
            }
            Self::Unknown { what: "clock", .. } => Some("a `clock { name = ...; };` block defines one"),
            Self::Reference(_) => {
                Some("write it before its user, or with its scope, such as `stream.packet.context.NAME`")
            }
            Self::Length(_) => Some("lengths are integers with `signed = false`"),
            Self::Tag(_) => Some("make it an `enum` whose labels are the names of the options"),
            Self::NoTag => Some("write `variant <tag> { ... }` with an enumeration that was read before"),
            Self::Enumerator { .. } => Some("choose a wider integer, or another value"),
            Self::ImplicitClock(_) => Some("a `clock` block, and `map = clock.NAME.value` in the integer, say more"),
            Self::UnmappedTimestamp { .. } => Some("write `map = clock.NAME.value` in the integer"),
            Self::SignedSpecialField(..) => {
                Some("write `signed = false` in the integer: other readers refuse the trace")
            }
            Self::SpecialField(..) => Some("give it that type, or another name"),
            Self::ReservedWord(_) => Some("begin the name with an underscore, which readers do not show"),
            Self::AmbiguousName { .. } => Some("give one of them another name: other readers refuse the trace"),
            Self::Signature => Some("make `/* CTF 1.8 */` its first line"),
            Self::Nul => Some("remove it; some writers end or pad the text with it"),
            Self::UnknownAttribute { .. } => Some("remove it if no reader needs it"),
            _ => None,
        }
    }
}
