//! Refuses programs that could read, loop or store where they must not.
//!
//! A program that passes here can run on any bytes: the evaluator does not panic, and machine code
//! does not touch memory that is not its own. One walk over the blocks follows, on every path,
//!
//! ```text
//! phase    position modulo a power of two     LEB128, text and bytes need a byte's edge
//! covered  bits that a Need has promised      Read and Advance stay inside
//! spans    (first byte, length) registers     only they are emitted, cut or stored as spans
//! list     the table that the next loop fills Store and Row belong to an open table
//! idle     rounds of loops that take no bits  at most 2^16 in all
//! ```
//!
//! The window and the position at entry are the caller's duty.

mod shape;
mod spans;
mod walk;

use crate::predicate::PredicateError;
use crate::program::ReadProgram;

/// Deepest nesting of blocks.
pub const DEPTH_MAX: usize = 128;
/// Most operations in a program.
pub const OPERATIONS_MAX: usize = 1 << 20;
/// Most rounds that loops may make without taking a bit.
pub const IDLE_ROUNDS_MAX: u64 = 1 << 16;
/// Most bits that one `Need` may ask for.
pub const NEED_MAX: u64 = 1 << 32;

/// Why a program is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operation {at}: {kind}")]
pub struct VerifyError {
    /// Operations before it in the text of the program, those inside blocks counted.
    pub at: usize,
    /// The found and the expected value.
    pub kind: VerifyErrorKind,
}

/// The found and the expected value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyErrorKind {
    /// More operations than [`OPERATIONS_MAX`].
    #[error("the program has more than {OPERATIONS_MAX} operations")]
    TooLong,
    /// Blocks inside blocks, more than [`DEPTH_MAX`].
    #[error("blocks are nested more than {DEPTH_MAX} deep")]
    TooDeep,
    /// A number that names nothing.
    #[error("{what} {index}; there are {count}")]
    Missing {
        /// The thing that it numbers.
        what: &'static str,
        /// Which.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// A number outside of its bounds.
    #[error("{what} is {found}, not {lowest} to {highest}")]
    Bounds {
        /// The thing with the bounds.
        what: &'static str,
        /// The number.
        found: u64,
        /// Least that is allowed.
        lowest: u64,
        /// Most that is allowed.
        highest: u64,
    },
    /// A read or a movement that no `Need` covers.
    #[error("bits up to {end} are taken; {covered} are known to be there")]
    NotCovered {
        /// Behind the last bit, counted from the position.
        end: u64,
        /// Promised by a `Need`.
        covered: u64,
    },
    /// LEB128, text or bytes at a position that may lie inside a byte.
    #[error("the position may lie inside of a byte: modulo 2^{modulus_log2} it is {phase}")]
    InsideByte {
        /// The known modulus.
        modulus_log2: u8,
        /// The known phase.
        phase: u64,
    },
    /// Registers that hold no span of bytes on some path.
    #[error("r{start} and r{length} are not bytes of the packet on every path")]
    NoSpan {
        /// First byte.
        start: u16,
        /// Bytes.
        length: u16,
    },
    /// One register for two things.
    #[error("r{register} is both the first byte and the length")]
    SameRegister {
        /// Which.
        register: u16,
    },
    /// Loops that together could go on without taking a bit.
    #[error("the loop, with those around it, may make more than {IDLE_ROUNDS_MAX} rounds that take no bits")]
    Idle,
    /// A column with cells of another kind.
    #[error("column {column} holds other cells")]
    Cell {
        /// Which.
        column: u16,
    },
    /// A store or a row outside of the loop that fills the table.
    #[error("table {table} is not being filled here")]
    Closed {
        /// Which.
        table: u16,
    },
    /// A list with elements that the loop behind it does not write.
    #[error("table {table} is announced, but the next loop does not write one row a round")]
    List {
        /// Which.
        table: u16,
    },
    /// A predicate that is not sound.
    #[error("the predicate: {0}")]
    Predicate(PredicateError),
    /// A record dropped from inside a block.
    #[error("a record can be dropped in the outermost block alone")]
    InnerKeep,
    /// A parent that is not an earlier table, or none.
    #[error("table {table} has no earlier table as its parent")]
    Parent {
        /// Which.
        table: u16,
    },
}

/// Checks that a program can be run on any window and position that agree with its entry.
///
/// # Errors
///
/// The first operation that could go wrong.
///
/// ```
/// use kymo_ir::{Op, ReadProgram, verify};
/// let program = ReadProgram { body: vec![Op::Advance { bits: 8 }], ..ReadProgram::default() };
/// let error = verify::verify(&program).unwrap_err();
/// assert_eq!(error.to_string(), "operation 0: bits up to 8 are taken; 0 are known to be there");
/// ```
pub fn verify(program: &ReadProgram) -> Result<(), VerifyError> {
    shape::check(program).map_err(|kind| VerifyError { at: 0, kind })?;
    walk::ProgramVerifier::new(program, IDLE_ROUNDS_MAX).run()
}

/// As [`verify`], but loops may take no bits for as long as they like: an accepted program touches
/// nothing but its own memory, and may take long.
///
/// # Errors
///
/// The first operation that is not sound.
pub fn verify_bounds(program: &ReadProgram) -> Result<(), VerifyError> {
    shape::check(program).map_err(|kind| VerifyError { at: 0, kind })?;
    walk::ProgramVerifier::new(program, u64::MAX).run()
}
