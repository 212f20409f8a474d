//! Why a filter runs where it does.

use kymo_ir::predicate::Refusal;
use kymo_lane::NoArena;

/// Why a filter does not run as machine code, or not in the program at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FallbackReason {
    /// The program offers no memory for machine code.
    #[error("{}", no_arena(*.0))]
    NoArena(NoArena),
    /// It runs on another machine, as under an emulator.
    #[error("the program runs on another machine")]
    Machine,
    /// It is in a namespace that the recorder cannot look into.
    #[error("the program's number is not known here")]
    Number,
    /// The recorder may not trace it.
    #[error("no permission: the program is not dumpable, or another user's")]
    Permission,
    /// It has closed its memory file, and the recorder may not open it in another way; or its
    /// claims about the file are not true.
    #[error("the program has closed its memory for machine code")]
    Descriptor,
    /// It has no memory left.
    #[error("the program's memory for machine code cannot be written")]
    Unwritable,
    /// All of its pages were used.
    #[error("its arena is full")]
    ArenaFull,
    /// Machine code or bytecode cannot express it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// All of its room for bytecode was used.
    #[error("its room for bytecode is full")]
    BytecodeFull,
    /// All of its slots were used.
    #[error("all of its 254 slots were used")]
    SlotsFull,
}

fn no_arena(why: NoArena) -> &'static str {
    match why {
        NoArena::Off => "KYMO_NATIVE=off",
        NoArena::Privileged => "the program has more privileges than the user who started it",
        NoArena::Refused => "the system gives the program no memory that can be executed",
    }
}
