//! The state of a program besides a window, and its results: the contract that the evaluator
//! defines and `jit` keeps.

use crate::program::{OutputSlot, ReadProgram};

/// Elements of a record's lists that may take no bits, all lists together.
pub const EMPTY_ELEMENTS_MAX: u64 = 1 << 16;

/// The slot in which an event header leaves the id of the event record class.
pub const SLOT_EVENT_CLASS: OutputSlot = OutputSlot(0);

/// State that lives as long as a packet (slots) or a stream (clock).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadState {
    /// The clock's full value.
    pub clock: u64,
    /// The values that `Out` wrote and `Load` reads. Long enough for every slot of the programs
    /// that run on it.
    pub slots: Vec<u64>,
}

/// Why a program stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramFault {
    /// The position, in bits from the packet's start, of the unreadable part.
    pub at: u64,
    /// The found and the expected value.
    pub kind: FaultKind,
}

/// The found and the expected value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// A fixed-size run, an element count or a byte count ends behind the window.
    #[error("the field needs {needed} bits; {left} are left")]
    Short {
        /// Bits that are needed from the position on.
        needed: u128,
        /// Bits from the position to the window's end.
        left: u64,
    },
    /// No zero code unit before the window's end.
    #[error("the text has no terminator in the {left} bits that are left")]
    Unterminated {
        /// Bits from the position to the window's end.
        left: u64,
    },
    /// No arm holds the selector.
    #[error("no option is selected by {value}")]
    Selector {
        /// As the register holds it.
        value: u64,
        /// Compared as signed.
        signed: bool,
    },
    /// A LEB128 integer of more than 64 bits.
    #[error("the variable-length integer has more than 64 bits")]
    Oversized,
    /// Fields of two byte orders meet inside a byte.
    #[error("the byte order changes inside of a byte")]
    OrderInsideByte,
    /// The header names an event record class that does not exist.
    #[error("no event record class has the id {id}")]
    UnknownEventClass {
        /// The id.
        id: u64,
    },
    /// A list has very many elements, and hardly any takes bits.
    #[error("the record's lists have more than {EMPTY_ELEMENTS_MAX} elements that take no bits; this one has {count}")]
    EmptyElements {
        /// The claimed count.
        count: u64,
    },
    /// The record takes no bits, so that there would be endlessly many.
    #[error("the event record takes no bits")]
    Empty,
}

impl FaultKind {
    /// Whether more bytes of the same packet could make the fault go away.
    #[must_use]
    pub fn wants_more(&self) -> bool {
        matches!(self, Self::Short { .. } | Self::Unterminated { .. })
    }
}

/// How the event records of one data stream class are found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanPlan {
    /// Reads the header: updates the clock, leaves the class id in [`SLOT_EVENT_CLASS`]. It aligns itself.
    pub header: ReadProgram,
    /// The class of every event where the header gives none.
    pub only_class: Option<u32>,
    /// (id, dense class index), sorted by id.
    pub ids: Vec<(u64, u32)>,
    /// For each class, which of `bodies` skips it.
    pub class_body: Vec<u32>,
    /// Programs that only move the position behind the rest of the record.
    pub bodies: Vec<ReadProgram>,
    /// Bodies need fields of the header: they run from the record's start and read the header again, and
    /// `Records::positions` are starts of records. Otherwise they run from, and positions are, the header's end.
    pub from_start: bool,
    /// Programs that decide with [`crate::Op::Keep`] whether a record is found at all. They run at
    /// `Records::positions`, with the clock behind the header.
    pub tests: Vec<ReadProgram>,
    /// For each class which of them; empty: every record is found.
    pub class_test: Vec<ClassTest>,
}

/// Which records of a class are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClassTest {
    /// All.
    #[default]
    Always,
    /// None.
    Never,
    /// Those that this one of [`ScanPlan::tests`] keeps.
    Test(u32),
}

/// Event records found by a scan, in the order of the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// The clock after the header, in cycles.
    pub cycles: Vec<u64>,
    /// Dense class index.
    pub classes: Vec<u32>,
    /// In bits from the packet's start; see [`ScanPlan::from_start`].
    pub positions: Vec<u64>,
}

impl Records {
    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cycles.len()
    }

    /// No records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cycles.is_empty()
    }

    /// Forgets the records, keeps the memory.
    pub fn clear(&mut self) {
        self.cycles.clear();
        self.classes.clear();
        self.positions.clear();
    }
}

/// Why a scan stopped. The position and the clock are those before the first record that was not appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanStop {
    /// The position is at or behind the window's end.
    End,
    /// `Records` has the requested number.
    Full,
    /// The next record cannot be read.
    Fault(ProgramFault),
}

/// Why a program over rows stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowFault {
    /// Index into the positions.
    pub row: usize,
    /// The fault and its place.
    pub fault: ProgramFault,
}
