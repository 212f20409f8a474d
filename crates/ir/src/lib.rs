//! A read program as data: its operations, a text form, a verifier and the evaluator that defines
//! its meaning.
//!
//! It must never know CTF, nor machine code: `decode` writes programs, `jit` makes fast copies of the evaluator.
//!
//! ```text
//!           Program + Window + State
//!               │
//!   eval::record ── one record, from a position to the next
//!   eval::scan   ── all records of a window: (cycles, class, position)
//!   eval::rows   ── the same program at many positions, into columns (Cells)
//!   eval::emit   ── one record to text
//! ```
//!
//! [`machine`] is the evaluator of another language: eBPF programs of users.

pub mod bits;
pub mod cells;
pub mod emit;
pub mod eval;
mod general;
pub mod machine;
pub mod phase;
pub mod predicate;
pub mod program;
pub mod run;
pub mod style;
pub mod text;
mod trim;
pub mod verify;
pub mod window;

pub use cells::Cells;
pub use predicate::Predicate;
pub use program::{
    Arm, BitPhase, Block, BoundInputs, CellType, Emit, InputOperand, NumberSource, Op, OutputSlot, ProgramColumn,
    ProgramTable, ReadProgram, Reg,
};
pub use run::{
    ClassTest, EMPTY_ELEMENTS_MAX, FaultKind, ProgramFault, ReadState, Records, RowFault, SLOT_EVENT_CLASS, ScanPlan,
    ScanStop,
};
pub use style::{BytesStyle, Encoding, IntegerStyle, LabelStyle, RangeLabels, RealStyle, TextStyle};
pub use verify::{VerifyError, VerifyErrorKind};
pub use window::{PacketWindow, SLACK};
