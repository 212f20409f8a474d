//! The operations of a read program.
//!
//! A program reads one record (a packet's head, an event's header, an event's body) from bits. Its
//! state is a bit position, some 64-bit registers, and its output: columns or text. Control flow is
//! structured (blocks inside operations), so a program always ends: every loop has a count, and
//! one that takes hardly any bits is stopped (`EMPTY_ELEMENTS_MAX`). Such loops inside each
//! other multiply; the verifier refuses them beyond 2^16 rounds in all.
//!
//! ```text
//! need 59                  one bounds check per fixed-size run: 59 bits are there
//! r0 = read 0 +5 le        at position + 0, 5 bits, little-endian
//! advance 5
//! switch r0 { 0..=30 { r1 = read 0 +27 le; advance 27; clock r1 27 }
//!             31     { align 8; need 96; r0 = ...; clock r1 64 } }
//! out class r0
//! ```
//!
//! A position counts bits from the start of the *packet*, not of the bytes at hand.

use std::sync::Arc;

use kymo_units::ByteOrder;

use crate::predicate::Predicate;
use crate::style::{BytesStyle, Encoding, IntegerStyle, LabelStyle, RangeLabels, RealStyle, TextStyle};

/// A register: 64 bits. Signed integers are sign-extended, unsigned ones zero-extended, reals are their bits.
/// Registers start at 0, may be written again, and keep their value between blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(pub u16);

/// Operations, one after the other.
pub type Block = Vec<Op>;

/// One of several blocks: (lowest, highest) ranges of the selector, both ends included, as registers hold them.
pub type Arm = (Vec<(u64, u64)>, Block);

/// A number in the program or in a register (read as unsigned).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NumberSource {
    /// In the program.
    Constant(u64),
    /// In a register.
    Register(Reg),
}

/// A read program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReadProgram {
    /// The position at entry, as far as it is known: `position % 2^modulus_log2 == phase`.
    pub entry: BitPhase,
    /// Number of registers.
    pub registers: u16,
    /// Tables that the columns belong to. Table 0 has one row per record; further ones hold the
    /// elements of lists.
    pub tables: Vec<ProgramTable>,
    /// Columns that `Store` and `StoreSpan` write.
    pub columns: Vec<ProgramColumn>,
    /// Bytes that `Emit::Literal` writes.
    pub literals: Vec<Box<[u8]>>,
    /// Labels that `Emit::Label` looks up.
    pub labels: Vec<RangeLabels>,
    /// The predicates that `Keep` asks.
    pub predicates: Vec<BoundInputs>,
    /// The operations.
    pub body: Block,
}

/// Where the inputs of a predicate are among the registers of a read program: see [`Op::Keep`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BoundInputs {
    /// The predicate.
    pub predicate: Arc<Predicate>,
    /// For each input.
    pub operands: Vec<InputOperand>,
}

/// Where an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputOperand {
    /// A number.
    Number {
        /// The value: an integer, or a real as a double's bits.
        value: Reg,
        /// Not 0 where the input is there; `None`: it always is.
        present: Option<Reg>,
    },
    /// Text.
    Text {
        /// First byte, counted from the start of the packet.
        start: Reg,
        /// In bytes.
        length: Reg,
        /// Not 0 where the input is there; `None`: it always is.
        present: Option<Reg>,
    },
}

/// The knowledge about a position: `position % 2^modulus_log2 == phase`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BitPhase {
    /// 0: nothing is known.
    pub modulus_log2: u8,
    /// Less than `2^modulus_log2`.
    pub phase: u64,
}

/// Rows of equal shape. Table 0: one row per record. Other tables: one row per element.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProgramTable {
    /// The table in whose rows this one's rows lie as spans; `None` for table 0.
    pub parent: Option<u16>,
}

/// One column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProgramColumn {
    /// The table it belongs to.
    pub table: u16,
    /// The kind of its cells.
    pub cell: CellType,
    /// A row may have no value: the column has one validity byte per row, 1 where a value was stored.
    pub nullable: bool,
}

/// The contents of a cell, in native byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CellType {
    /// 1 byte.
    U8,
    /// 2 bytes.
    U16,
    /// 4 bytes.
    U32,
    /// 8 bytes.
    U64,
    /// Two `u32`: first and count. For bytes: first byte counted from the first byte of the window,
    /// and bytes. For lists: first row of the child table, and rows.
    Span,
}

/// Where `Out` writes: values for the caller of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputSlot(pub u16);

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Moves up to the next position that is a multiple of `2^log2` bits. Fails past the end.
    Align {
        /// At most 32.
        log2: u8,
    },
    /// Fails unless `bits` bits are left from the position on.
    Need {
        /// At most 2^32.
        bits: u64,
    },
    /// Reads an integer of `width` bits at position + `offset`. A `Need` in the same block, with no
    /// movement after it but `Advance`, covers it.
    Read {
        /// Destination.
        to: Reg,
        /// In bits from the position.
        offset: u32,
        /// 1 to 64.
        width: u8,
        /// Byte order, which is also the order in which bits follow each other.
        order: ByteOrder,
        /// Sign-extend.
        signed: bool,
        /// Reverse the bits of the value (before sign extension).
        reversed: bool,
    },
    /// Moves on by `bits`, which a `Need` covers.
    Advance {
        /// In bits.
        bits: u64,
    },
    /// Fails if the position is not at a byte's edge and the last `Order` in this record was another one.
    /// Written only where byte orders may meet inside a byte. Every record starts without a last order.
    Order {
        /// The order of the next field.
        order: ByteOrder,
    },
    /// Fails unless `count * bits` bits are left, else moves on by as many. `bits >= 1`.
    Skip {
        /// How many.
        count: NumberSource,
        /// The number of bits of each.
        bits: u64,
    },
    /// Reads a LEB128 integer (position at a byte's edge): at most 10 bytes, value at most 64 bits, else fails.
    Leb {
        /// The value.
        to: Reg,
        /// Sign-extend.
        signed: bool,
        /// 7 for each byte read.
        bits: Option<Reg>,
    },
    /// Reads text up to a zero code unit of `unit` bytes (position at a byte's edge; units are counted from the
    /// text's first byte) and moves behind it. Fails if there is none before the end.
    Text {
        /// First byte, counted from the start of the packet.
        start: Reg,
        /// In bytes, without the terminator.
        length: Reg,
        /// 1, 2 or 4.
        unit: u8,
    },
    /// Takes `length` bytes (position at a byte's edge) and moves behind them. Fails if they are not there.
    Bytes {
        /// First byte, counted from the start of the packet.
        start: Reg,
        /// In bytes.
        length: NumberSource,
    },
    /// Shortens `length` to the part before the first zero code unit, if there is one among whole
    /// units.
    Cut {
        /// First byte, counted from the start of the packet.
        start: Reg,
        /// In bytes; changed.
        length: Reg,
        /// 1, 2 or 4.
        unit: u8,
    },
    /// A constant.
    Set {
        /// Destination.
        to: Reg,
        /// Value.
        value: u64,
    },
    /// Another register's value.
    Copy {
        /// Destination.
        to: Reg,
        /// Where from.
        from: Reg,
    },
    /// A value that an earlier program of the same packet left in a slot.
    Load {
        /// Destination.
        to: Reg,
        /// Where from.
        slot: OutputSlot,
    },
    /// Leaves a value in a slot, for the caller and for later programs.
    Out {
        /// Where to.
        slot: OutputSlot,
        /// The value.
        from: Reg,
    },
    /// Updates the clock with its `bits` low bits: wraps once if they are lower than the clock's.
    Clock {
        /// The new low bits.
        from: Reg,
        /// 1 to 64; more counts as 64.
        bits: NumberSource,
    },
    /// Runs `body` `count` times.
    Repeat {
        /// How often.
        count: NumberSource,
        /// Takes 0, 1, 2... in turn.
        index: Option<Reg>,
        /// The operations to run.
        body: Block,
    },
    /// Runs the first arm with a range that holds the value, else `default`.
    Switch {
        /// The value.
        on: Reg,
        /// Compare as signed.
        signed: bool,
        /// In order: the first that holds the value is run.
        arms: Vec<Arm>,
        /// `None`: no arm is a failure (`ProgramFault::Selector`).
        default: Option<Block>,
    },
    /// Writes `from` into the current row of the column's table.
    Store {
        /// Index into [`ReadProgram::columns`].
        column: u16,
        /// Cut to the cell's width.
        from: Reg,
    },
    /// Writes a span of bytes into the current row of the column's table.
    StoreSpan {
        /// Index into [`ReadProgram::columns`]; its cell is [`CellType::Span`].
        column: u16,
        /// First byte, counted from the start of the packet.
        start: Reg,
        /// In bytes.
        length: Reg,
    },
    /// Writes the span (next row of `table`, `count`) into the current row of the column's table and makes
    /// sure that `table` has room for `count` more rows; if not, the program stops with `Grow`.
    StoreList {
        /// Index into [`ReadProgram::columns`]; its cell is [`CellType::Span`].
        column: u16,
        /// The child table.
        table: u16,
        /// Rows that follow.
        count: NumberSource,
    },
    /// The current row of a child table is complete.
    Row {
        /// The child table.
        table: u16,
    },
    /// Writes text.
    Emit(Emit),
    /// The clock's full value.
    Cycles {
        /// Destination.
        to: Reg,
    },
    /// A real number's bits as those of a double.
    Double {
        /// Destination.
        to: Reg,
        /// 16, 32 or 64 bits of a real number.
        from: Reg,
        /// 16, 32 or 64.
        width: u8,
    },
    /// Unless the predicate is true, the record is dropped, and the program ends. Belongs in the
    /// outermost block alone; only [`crate::eval::keeps`] and scans ask for the answer.
    Keep {
        /// Index into [`ReadProgram::predicates`].
        predicate: u16,
    },
}

/// The text to write. The bytes that each writes are defined in `ir::emit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Emit {
    /// Index into [`ReadProgram::literals`].
    Literal(u16),
    /// An integer.
    Integer {
        /// Value.
        from: Reg,
        /// Whether it was read as signed.
        signed: bool,
        /// How to write it.
        style: IntegerStyle,
    },
    /// A real number.
    Real {
        /// Its bits.
        from: Reg,
        /// 16, 32 or 64.
        width: u8,
        /// How to write it.
        style: RealStyle,
    },
    /// Text from the packet.
    Text {
        /// First byte, counted from the start of the packet.
        start: Reg,
        /// In bytes.
        length: Reg,
        /// How its characters are encoded.
        encoding: Encoding,
        /// How to write it.
        style: TextStyle,
    },
    /// Bytes from the packet, as hexadecimal digits.
    Bytes {
        /// First byte, counted from the start of the packet.
        start: Reg,
        /// In bytes.
        length: Reg,
        /// How to write it.
        style: BytesStyle,
    },
    /// The labels of an integer.
    Label {
        /// Value.
        from: Reg,
        /// Index into [`ReadProgram::labels`].
        labels: u16,
        /// How to write them.
        style: LabelStyle,
    },
    /// The labels of the bits that are set.
    Flags {
        /// Value.
        from: Reg,
        /// Index into [`ReadProgram::labels`]: ranges of bit indexes.
        labels: u16,
        /// How to write them.
        style: LabelStyle,
    },
}
