//! Writes a read program: fuses neighboring fixed-size fields into one bounds check, and tracks the
//! known phase of the position, so that alignment costs nothing where it can be foreseen.
//!
//! ```text
//! u8, u32 (align 32), u16        position known to be a multiple of 32 bits:
//!    need 80                     one check for the run, padding included
//!    r0 = read 0 +8 ... r1 = read 32 +32 ... r2 = read 64 +16
//!    advance 80
//! ```

use kymo_ir::{BitPhase, Block, NumberSource, Op, OutputSlot, ReadProgram, Reg};
use kymo_units::ByteOrder;

/// A run of fixed-size fields that one `Need` covers.
struct FixedRun {
    /// Index of its `Need` in the current block.
    need: usize,
    /// Bits so far.
    bits: u64,
}

/// A program being written.
pub(crate) struct ProgramBuilder {
    pub(crate) program: ReadProgram,
    block: Block,
    run: Option<FixedRun>,
    phase: BitPhase,
    /// Byte orders may meet inside a byte: every fixed-size field states its
    /// own.
    mixed_orders: bool,
    spare: Vec<Reg>,
}

/// How the bits of a fixed-size number lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bits {
    pub(crate) width: u8,
    pub(crate) order: ByteOrder,
    pub(crate) reversed: bool,
    pub(crate) signed: bool,
}

impl ProgramBuilder {
    pub(crate) fn new(entry: BitPhase, mixed_orders: bool) -> Self {
        let program = ReadProgram { entry, ..ReadProgram::default() };
        Self { program, block: Block::new(), run: None, phase: entry, mixed_orders, spare: Vec::new() }
    }

    /// The finished program, and the phase at its end.
    pub(crate) fn finish(mut self) -> (ReadProgram, BitPhase) {
        self.flush();
        self.program.body = std::mem::take(&mut self.block);
        self.assert_verified();
        (self.program, self.phase)
    }

    /// Lowered programs are ours: one that the verifier refuses is a bug, found in debug builds.
    ///
    /// One kind is let through, and that is wrong: three or more arrays of dynamic length inside each other
    /// (`a[n][m][k]` with k = 0) may make 2^32 rounds and more that take no bits, since each loop is bounded alone.
    fn assert_verified(&self) {
        use kymo_ir::verify::VerifyErrorKind::Idle;
        if cfg!(debug_assertions)
            && let Err(error) = kymo_ir::verify::verify(&self.program)
        {
            assert!(error.kind == Idle, "a lowered program can be run on any bytes: {error}");
        }
    }

    /// A register for a single use.
    pub(crate) fn register(&mut self) -> Reg {
        if let Some(register) = self.spare.pop() {
            return register;
        }
        let register = Reg(self.program.registers);
        self.program.registers = self.program.registers.checked_add(1).expect("a scope set has at most 2^16 fields");
        register
    }

    /// Gives a register back for later use.
    pub(crate) fn release(&mut self, register: Reg) {
        self.spare.push(register);
    }

    /// Whether byte orders may meet inside a byte.
    pub(crate) fn mixed_orders(&self) -> bool {
        self.mixed_orders
    }

    pub(crate) fn push(&mut self, op: Op) {
        self.block.push(op);
    }

    /// Writes the pending operations, so that the position is where the next field begins.
    pub(crate) fn flush(&mut self) {
        let Some(run) = self.run.take() else { return };
        // A check of no bits would check nothing.
        if run.bits == 0 {
            self.block.remove(run.need);
            return;
        }
        self.block[run.need] = Op::Need { bits: run.bits };
        self.block.push(Op::Advance { bits: run.bits });
    }

    fn run(&mut self) -> &mut FixedRun {
        let (block, run) = (&mut self.block, &mut self.run);
        run.get_or_insert_with(|| {
            block.push(Op::Need { bits: 0 });
            FixedRun { need: block.len() - 1, bits: 0 }
        })
    }

    /// Moves up to a multiple of `alignment` bits.
    pub(crate) fn align(&mut self, alignment: u64) {
        let log2 = alignment.trailing_zeros() as u8;
        if log2 == 0 {
            return;
        }
        if log2 <= self.phase.modulus_log2 {
            let padding = self.phase.phase.wrapping_neg() & (alignment - 1);
            if padding > 0 {
                self.take(padding);
            }
            return;
        }
        self.flush();
        self.block.push(Op::Align { log2 });
        self.phase = BitPhase { modulus_log2: log2, phase: 0 };
    }

    /// Moves on by `bits` in the current run; returns their offset in it.
    fn take(&mut self, bits: u64) -> u32 {
        // Offsets of reads have 32 bits.
        if self.run.as_ref().is_some_and(|run| run.bits + bits > u64::from(u32::MAX)) {
            self.flush();
        }
        let run = self.run();
        let offset = run.bits as u32;
        run.bits += bits;
        self.moved(bits);
        offset
    }

    fn moved(&mut self, bits: u64) {
        self.phase.phase = self.phase.phase.wrapping_add(bits) & mask(self.phase.modulus_log2);
    }

    /// Sets the byte order of the next fixed-size field, where orders may meet inside a byte.
    pub(crate) fn order(&mut self, order: ByteOrder) {
        // A run is checked as a whole, but the change of order has to be checked at its own
        // position.
        if self.mixed_orders {
            self.flush();
            self.block.push(Op::Order { order });
        }
    }

    /// Reads a fixed-size number into a fresh register.
    pub(crate) fn read(&mut self, bits: Bits) -> Reg {
        self.order(bits.order);
        let offset = self.take(u64::from(bits.width));
        let to = self.register();
        let Bits { width, order, reversed, signed } = bits;
        self.block.push(Op::Read { to, offset, width, order, signed, reversed });
        to
    }

    /// Moves over a fixed-size field without reading it.
    pub(crate) fn pass(&mut self, bits: u64, order: Option<ByteOrder>) {
        if let Some(order) = order {
            self.order(order);
        }
        if bits <= u64::from(u32::MAX) {
            self.take(bits);
        } else {
            self.skip(NumberSource::Constant(bits / 8), 8);
        }
    }

    /// Moves over `count` elements of `bits` each.
    pub(crate) fn skip(&mut self, count: NumberSource, bits: u64) {
        self.flush();
        self.block.push(Op::Skip { count, bits });
        match count {
            NumberSource::Constant(count) => self.moved(count.wrapping_mul(bits)),
            NumberSource::Register(_) => self.forget(bits.trailing_zeros() as u8),
        }
    }

    /// The position moved by an unknown multiple of `2^log2` bits.
    pub(crate) fn forget(&mut self, log2: u8) {
        self.phase.modulus_log2 = self.phase.modulus_log2.min(log2);
        self.phase.phase &= mask(self.phase.modulus_log2);
    }

    /// Text up to its terminator: (first byte, bytes).
    pub(crate) fn text(&mut self, unit: u8) -> (Reg, Reg) {
        self.align(8);
        self.flush();
        let (start, length) = (self.register(), self.register());
        self.block.push(Op::Text { start, length, unit });
        self.phase = BitPhase { modulus_log2: 3, phase: 0 };
        (start, length)
    }

    /// Some bytes, aligned before; returns the first.
    pub(crate) fn bytes(&mut self, length: NumberSource) -> Reg {
        self.flush();
        let start = self.register();
        self.block.push(Op::Bytes { start, length });
        match length {
            NumberSource::Constant(length) => self.moved(length.wrapping_mul(8)),
            NumberSource::Register(_) => self.forget(3),
        }
        start
    }

    /// A LEB128 number, aligned before.
    pub(crate) fn leb(&mut self, signed: bool, bits: Option<Reg>) -> Reg {
        self.flush();
        let to = self.register();
        self.block.push(Op::Leb { to, signed, bits });
        self.forget(3);
        to
    }

    /// A register with a constant.
    pub(crate) fn set(&mut self, value: u64) -> Reg {
        let to = self.register();
        self.block.push(Op::Set { to, value });
        to
    }

    /// Leaves a constant in a slot.
    pub(crate) fn out_constant(&mut self, slot: OutputSlot, value: u64) {
        let from = self.set(value);
        self.block.push(Op::Out { slot, from });
        self.release(from);
    }

    /// Writes a block apart from the current one; the position is known in it as it is now.
    ///
    /// The caller puts the block into an operation and sets the phase behind it with
    /// [`ProgramBuilder::join`] or [`ProgramBuilder::resume`].
    pub(crate) fn block<E>(&mut self, write: impl FnOnce(&mut Self) -> Result<(), E>) -> Result<(Block, BitPhase), E> {
        self.flush();
        let (outer, before) = (std::mem::take(&mut self.block), self.phase);
        let spare = std::mem::take(&mut self.spare);
        let result = write(self);
        self.flush();
        self.spare = spare;
        let inner = std::mem::replace(&mut self.block, outer);
        let after = std::mem::replace(&mut self.phase, before);
        result.map(|()| (inner, after))
    }

    /// The known phase of the position.
    pub(crate) fn phase(&self) -> BitPhase {
        self.phase
    }

    /// Behind an operation with several blocks: the phase is the part that all of them agree on.
    pub(crate) fn resume(&mut self, phase: BitPhase) {
        self.phase = phase;
    }
}

fn mask(log2: u8) -> u64 {
    1_u64.checked_shl(u32::from(log2)).map_or(u64::MAX, |bit| bit - 1)
}

/// The phase where two paths meet.
pub(crate) fn join(one: BitPhase, other: BitPhase) -> BitPhase {
    // The lowest bit in which they differ is not known any more, and neither is anything above it.
    let differing = (one.phase ^ other.phase).trailing_zeros() as u8;
    let modulus_log2 = one.modulus_log2.min(other.modulus_log2).min(differing);
    BitPhase { modulus_log2, phase: one.phase & mask(modulus_log2) }
}

/// The phase at the head of every round of a loop whose body moves by multiples of `2^granularity`
/// bits, apart from alignments (`aligns`: there are some).
pub(crate) fn loop_phase(before: BitPhase, granularity: u8, aligns: bool) -> BitPhase {
    let modulus_log2 = before.modulus_log2.min(granularity);
    let phase = before.phase & mask(modulus_log2);
    if phase != 0 && aligns {
        return BitPhase { modulus_log2: phase.trailing_zeros() as u8, phase: 0 };
    }
    BitPhase { modulus_log2, phase }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(modulus_log2: u8, phase: u64) -> BitPhase {
        BitPhase { modulus_log2, phase }
    }

    #[test]
    fn paths_that_meet_keep_what_they_agree_on() {
        assert_eq!(join(at(5, 8), at(5, 8)), at(5, 8));
        assert_eq!(join(at(5, 8), at(5, 16)), at(3, 0));
        assert_eq!(join(at(5, 8), at(3, 0)), at(3, 0));
        assert_eq!(join(at(5, 3), at(5, 4)), at(0, 0));
    }

    #[test]
    fn known_padding_is_part_of_the_run() {
        let mut builder = ProgramBuilder::new(at(5, 0), false);
        let u8_bits = Bits { width: 8, order: ByteOrder::Little, reversed: false, signed: false };
        builder.read(u8_bits);
        builder.align(32);
        builder.read(Bits { width: 32, ..u8_bits });
        let (program, phase) = builder.finish();
        assert_eq!(phase, at(5, 0));
        assert_eq!(program.body[0], Op::Need { bits: 64 });
        assert!(matches!(program.body[2], Op::Read { offset: 32, width: 32, .. }));
        assert_eq!(program.body[3], Op::Advance { bits: 64 });
    }
}
