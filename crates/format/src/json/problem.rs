//! The errors of CTF 2 metadata.

/// A problem of CTF 2 metadata.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum JsonProblem {
    /// Not JSON.
    #[error("found {found}, expected {expected}")]
    Unexpected {
        /// The value found.
        found: String,
        /// The allowed values.
        expected: &'static str,
    },
    /// Values inside values.
    #[error("values are nested deeper than {0} levels")]
    Depth(usize),
    /// Not a JSON number.
    #[error("this is no JSON number")]
    Number,
    /// A string without its end.
    #[error("the string is not closed")]
    UnclosedText,
    /// A property has a value of the wrong kind.
    #[error("`{property}` must be {expected}")]
    Value {
        /// Its name.
        property: String,
        /// The required value.
        expected: &'static str,
    },
    /// A required property is missing.
    #[error("the {what} has no property `{property}`")]
    Missing {
        /// The object that lacks it.
        what: String,
        /// Its name.
        property: &'static str,
    },
    /// A property that the specification does not know.
    #[error("a {what} has no property `{property}` in CTF 2")]
    UnknownProperty {
        /// The object that has it.
        what: String,
        /// Its name.
        property: String,
    },
    /// The same thing twice.
    #[error("{0} is defined twice")]
    Twice(String),
    /// A name that nothing has.
    #[error("there is no {what} `{name}`")]
    Unknown {
        /// The kind of thing.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The first fragment is another one.
    #[error("the first fragment is a {0}; it must be the preamble")]
    NoPreamble(String),
    /// There is no fragment.
    #[error("there is no fragment")]
    Empty,
    /// An extension that must be understood and is not.
    #[error("the extension `{0}` is not known; a trace that declares it cannot be read without it")]
    Extension(String),
    /// A scope must be a structure.
    #[error("`{0}` must be a structure")]
    NotStructure(String),
    /// A location leads nowhere.
    #[error("the location leads to no field that is read before this one")]
    Location,
    /// A location leads to a field of the wrong kind.
    #[error("the location leads to a field that is not {0}")]
    Target(&'static str),
    /// Ranges of two options overlap.
    #[error("the ranges of two options overlap")]
    Overlap,
    /// A comma behind the last element.
    #[error("JSON has no comma behind the last element")]
    Comma,
    /// The text is written as in the release candidate.
    #[error("the metadata is written in the draft SPECRC 7.0 of CTF 2")]
    Candidate,
    /// Too many fields.
    #[error("there are more than {0} fields and labels")]
    Fields(u64),
    /// References are too many, or lead through too much: finding them would take very long.
    #[error("finding the fields that locations mean takes more than {0} steps")]
    Steps(u64),
    /// A list of findings that was cut.
    #[error("{0} more like these")]
    More(usize),
}

impl JsonProblem {
    /// Help for the author, where the message does not have it.
    pub(crate) fn help(&self) -> Option<&'static str> {
        match self {
            Self::UnknownProperty { .. } => Some("own properties go into `attributes`, below a namespace of one's own"),
            Self::Twice(_) => Some("keep one of them, or give the other another name"),
            Self::NoPreamble(_) | Self::Empty => Some(r#"begin with {"type": "preamble", "version": 2}"#),
            Self::Location => Some("the field meant must be read before; `origin` names the scope that it is in"),
            Self::Overlap => Some("a value of the selector must choose one option: set the ranges apart"),
            Self::Comma => Some("remove the comma"),
            Self::Candidate => Some("convert it with `kymo metadata --as ctf2`"),
            _ => None,
        }
    }
}
