//! The findings of one part of this crate in metadata: their severity, their place, and a problem
//! of their own.

use std::fmt;
use std::ops::Range;

/// A finding with a problem of a single part of this crate.
#[derive(Debug)]
pub(crate) struct PartFinding<P> {
    pub(crate) severity: Severity,
    pub(crate) span: Range<usize>,
    pub(crate) problem: P,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The metadata cannot be used.
    Error,
    /// The metadata violates the specification but is understood: this was assumed.
    Assumption(Assumption),
}

/// The closed list of assumptions where metadata or data violate the specification. Anything not
/// listed here is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Assumption {
    /// TSDL text without `/* CTF 1.8` at its beginning is TSDL 1.8 all the same.
    MissingSignature,
    /// An attribute that the specification does not know has no effect on the layout of events.
    UnknownAttribute,
    /// The text is CTF 2 as drafted in SPECRC 7.0.
    ReleaseCandidateDialect,
    /// JSON with a comma behind the last element of an array or object means the same as without.
    TrailingComma,
    /// Metadata that are not UTF-8 mean U+FFFD where they are not.
    MetadataEncoding,
    /// A byte order mark before the text has no meaning.
    ByteOrderMark,
    /// NUL characters between the words of TSDL are white space.
    NulCharacters,
    /// Without a `clock` block, fields named `timestamp` count nanoseconds of one clock.
    ImplicitClock,
    /// A field named `timestamp` that is mapped to none of several clocks is no time.
    UnmappedTimestamp,
    /// A signed field that readers of packets need is unsigned; one that is no integer has no
    /// meaning.
    SpecialFieldType,
    /// A word that TSDL reserves is a name where a name should be.
    ReservedWord,
    /// A label whose value the integer of its enumeration cannot have never occurs.
    LabelOutOfRange,
    /// Two fields with the same name, without the underscore that protects one of them, are two
    /// fields.
    AmbiguousName,
    /// A packet with another UUID than the metadata's belongs to this trace all the same.
    UuidMismatch,
    /// A clock that steps back is taken literally.
    ClockStepsBack,
    /// A time that does not fit 64 bits of nanoseconds is the first or last one that does.
    TimeOutOfRange,
    /// A data stream that names no CPU is one CPU's.
    CpuUnknown,
    /// A data stream that ends before the others of its trace lacks its end.
    EndsEarly,
    /// A clock counts cycles of unknown length, which are shown as nanoseconds.
    UnknownFrequency,
    /// Events have the names of other definitions than the trace's own.
    GuessedDefinitions,
    /// Definitions that the user gives, or that lie beside a file, have no name for some of its events.
    UnnamedEvents,
    /// Lines of a file that are no part of a trace have no meaning.
    OtherLines,
    /// Events that are in a file behind later ones happened before those.
    UnorderedEvents,
    /// A dump that begins with the events of another one in its file may have more of them again.
    RepeatedEvents,
    /// A tracer had no memory for more events, and did not count those that it lost.
    BufferFull,
    /// An event without a time has that of the event before.
    NoTime,
    /// A clock's time is that of a folder's name at the first event.
    FolderDate,
    /// Packets of several threads of one name are told apart by their times.
    SharedName,
    /// A clock of 32 bits has no more wraps than can be seen.
    ShortClock,
    /// The times of a capture are a day late.
    LeapDay,
}

impl Assumption {
    /// The whole list.
    pub const ALL: [Self; 30] = [
        Self::MissingSignature,
        Self::UnknownAttribute,
        Self::ReleaseCandidateDialect,
        Self::TrailingComma,
        Self::MetadataEncoding,
        Self::ByteOrderMark,
        Self::NulCharacters,
        Self::ImplicitClock,
        Self::UnmappedTimestamp,
        Self::SpecialFieldType,
        Self::ReservedWord,
        Self::LabelOutOfRange,
        Self::AmbiguousName,
        Self::UuidMismatch,
        Self::ClockStepsBack,
        Self::TimeOutOfRange,
        Self::CpuUnknown,
        Self::EndsEarly,
        Self::UnknownFrequency,
        Self::GuessedDefinitions,
        Self::UnnamedEvents,
        Self::OtherLines,
        Self::UnorderedEvents,
        Self::RepeatedEvents,
        Self::BufferFull,
        Self::NoTime,
        Self::FolderDate,
        Self::SharedName,
        Self::ShortClock,
        Self::LeapDay,
    ];

    /// The name by which `--strict` and the documentation call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MissingSignature => "missing-signature",
            Self::UnknownAttribute => "unknown-attribute",
            Self::ReleaseCandidateDialect => "release-candidate-dialect",
            Self::TrailingComma => "trailing-comma",
            Self::MetadataEncoding => "metadata-encoding",
            Self::ByteOrderMark => "byte-order-mark",
            Self::NulCharacters => "nul-characters",
            Self::ImplicitClock => "implicit-clock",
            Self::UnmappedTimestamp => "unmapped-timestamp",
            Self::SpecialFieldType => "special-field-type",
            Self::ReservedWord => "reserved-word",
            Self::LabelOutOfRange => "label-out-of-range",
            Self::AmbiguousName => "ambiguous-name",
            Self::UuidMismatch => "uuid-mismatch",
            Self::ClockStepsBack => "clock-steps-back",
            Self::TimeOutOfRange => "time-out-of-range",
            Self::CpuUnknown => "cpu-unknown",
            Self::EndsEarly => "ends-early",
            Self::UnknownFrequency => "unknown-frequency",
            Self::GuessedDefinitions => "guessed-definitions",
            Self::UnnamedEvents => "unnamed-events",
            Self::OtherLines => "other-lines",
            Self::UnorderedEvents => "unordered-events",
            Self::RepeatedEvents => "repeated-events",
            Self::BufferFull => "buffer-full",
            Self::NoTime => "no-time",
            Self::FolderDate => "folder-date",
            Self::SharedName => "shared-name",
            Self::ShortClock => "short-clock",
            Self::LeapDay => "leap-day",
        }
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
