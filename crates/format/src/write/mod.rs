//! A trace class as metadata text: CTF 2, and TSDL for CTF 1.8.
//!
//! Each language is written in two steps. First the trace class is expressed in the terms of the
//! language ([`as_ctf2`], [`as_ctf1`]): the bytes of every event stay the same, and the changes are
//! listed there. Then it becomes text, and the text read again is exactly that trace class:
//!
//! ```text
//! TraceClass ──as_ctf2──> TraceClass ──json──> text ──parse──> equal to the middle
//!            ──as_ctf1──>            ──tsdl──>
//! ```

mod ctf1;
mod ctf2;
mod json;
mod names;
mod pretty;
mod selectors;
mod tsdl;
mod walk;

pub use ctf1::as_ctf1;
pub use ctf2::as_ctf2;

use crate::model::{Role, TraceClass};

/// The part that cannot be written, and the reason.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct Unwritable {
    /// The part of the trace class, by names from the outside to the inside.
    pub place: String,
    /// Why.
    pub reason: Reason,
}

/// Why a trace class cannot be written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Reason {
    /// TSDL has only identifiers.
    #[error("the name `{0}` is no TSDL identifier")]
    Name(String),
    /// Two members would have one name.
    #[error("two fields would have the name `{0}`")]
    Twice(String),
    /// Reversed bits.
    #[error("TSDL has only the natural bit order of each byte order")]
    BitOrder,
    /// LEB128.
    #[error("TSDL has no integers of variable length")]
    VariableLength,
    /// UTF-16, UTF-32.
    #[error("TSDL has only UTF-8 and ASCII text")]
    Encoding,
    /// A length of floating-point numbers.
    #[error("TSDL has no floating-point numbers of {0} bits")]
    RealLength(u32),
    /// An array that is aligned further than its elements.
    #[error("TSDL aligns arrays as their elements; this one is aligned to {0} bits")]
    ArrayAlignment(u64),
    /// A length or a selector that no name reaches.
    #[error("TSDL has no name that leads from here to the field it depends on")]
    Reference,
    /// Roles are names in TSDL.
    #[error("TSDL cannot say here that the field is for {0:?}")]
    Role(Role),
    /// A label is an option's name.
    #[error("the label `{0}` of the selector stands for other values than the option of that name")]
    Label(String),
    /// An option that no value selects.
    #[error("CTF 2 options need values that select them, and the selector has none left")]
    NoRange,
    /// Seconds do not fit.
    #[error("the offset is more than 2^63 seconds")]
    ClockOffset,
}

/// A part of metadata that grows while the trace is written: one after the other, parts are the whole text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataPart {
    /// The first part: the trace, its environment and its clocks.
    Beginning,
    /// The data stream class at an index.
    Stream(usize),
    /// The event record class at an index of the data stream class at another one.
    Event(usize, usize),
}

/// A part of [`to_json`].
///
/// # Errors
///
/// The parts that CTF 2 cannot express; see [`Reason`].
///
/// # Panics
///
/// If there is no such part.
pub fn to_json_part(trace: &TraceClass, part: MetadataPart) -> Result<String, Unwritable> {
    as_ctf2(trace).map(|trace| json::part(&trace, part))
}

/// A part of [`to_tsdl`].
///
/// # Errors
///
/// The parts that TSDL cannot express; see [`Reason`].
///
/// # Panics
///
/// If there is no such part.
pub fn to_tsdl_part(trace: &TraceClass, part: MetadataPart) -> Result<String, Unwritable> {
    tsdl::part(&as_ctf1(trace)?, part)
}

/// The trace class as CTF 2 metadata: a JSON text sequence.
///
/// # Errors
///
/// The parts that CTF 2 cannot express; see [`Reason`].
pub fn to_json(trace: &TraceClass) -> Result<String, Unwritable> {
    as_ctf2(trace).map(|trace| json::text(&trace))
}

/// The trace class as CTF 1.8 metadata.
///
/// # Errors
///
/// The parts that TSDL cannot express; see [`Reason`].
pub fn to_tsdl(trace: &TraceClass) -> Result<String, Unwritable> {
    tsdl::text(&as_ctf1(trace)?)
}
