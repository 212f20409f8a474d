//! Places in ELF files where probes may go: functions with their arguments, and USDT probes.
//!
//! It must never know the kernel, processes, nor traces: bytes of a file in, places out.
//!
//! ```text
//! .symtab .dynsym ─────> FunctionSite   name, file offset
//! .debug_info ─────────> Signature      name, type and register of each argument, by the calling convention
//! .note.stapsdt ───────> UsdtSite       provider, name, file offset, semaphore, operands
//! ```
//!
//! Any bytes are read or refused: damaged parts are absent, and nothing panics.

mod convention;
mod elf;
mod entries;
mod machine;
mod note;
mod operand;
mod signature;
mod types;

pub use elf::{ElfFile, FunctionSite, build_id};
pub use machine::Machine;
pub use note::UsdtSite;
pub use operand::OperandSite;
pub use signature::{DebugData, FunctionArgument, ResultKind, Signature};

/// Why a file has no places for probes.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// It is no ELF file.
    #[error("it begins with {}, and a program or library begins with `\\x7fELF`", found.escape_ascii())]
    NotElf {
        /// Its first bytes.
        found: Vec<u8>,
    },
    /// Its tables cannot be read.
    #[error("its ELF tables cannot be read: {0}")]
    Damaged(#[from] object::read::Error),
    /// It is for another processor.
    #[error("it is for processors of the kind {found}, and probes read registers of x86-64 and aarch64")]
    Processor {
        /// The kind.
        found: String,
    },
}

/// Where a value is when the instruction at a place is about to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValuePlace {
    /// In a register, as the kernel calls it.
    Register(&'static str),
    /// In memory.
    Memory {
        /// The register with an address.
        base: &'static str,
        /// Bytes from there.
        offset: i64,
    },
    /// In memory, so many bytes behind the beginning of the mapping of the file, counted from the offset 0 of the code's mapping.
    Mapped(u64),
    /// It is this number.
    Constant(i64),
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A signed integer of 1, 2, 4 or 8 bytes.
    Signed(u8),
    /// An unsigned one.
    Unsigned(u8),
    /// An address of 8 bytes.
    Address,
    /// The address of text that ends with a zero byte.
    Text,
}
