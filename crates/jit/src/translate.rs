//! Operations of a read program to Cranelift's intermediate form.
//!
//! Everything that can go wrong jumps to one block, `stuck`: the evaluator finds out why.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value, types};
use cranelift_frontend::{FunctionBuilder, Variable};
use kymo_ir::cells::TableRows;
use kymo_ir::{
    Arm, BitPhase, BoundInputs, CellType, EMPTY_ELEMENTS_MAX, Emit, Encoding, IntegerStyle, NumberSource, Op,
    ReadProgram, SLOT_EVENT_CLASS, TextStyle,
};
use kymo_units::ByteOrder;

use crate::engine::JitEngine;
use crate::pieces;

/// A program being translated into a function.
pub(crate) struct Translator<'b, 'f> {
    pub(crate) builder: &'b mut FunctionBuilder<'f>,
    /// Address of the packet's first byte, if it were in memory.
    pub(crate) base: Value,
    /// First position that must not be read.
    end: Value,
    slots: Value,
    /// Where to go when the record cannot be read.
    pub(crate) stuck: Block,
    pub(crate) position: Variable,
    pub(crate) clock: Option<Variable>,
    /// The clock's value, in programs that do not update it.
    pub(crate) cycles: Option<Value>,
    /// Where records go that a predicate drops, in programs that ask.
    pub(crate) dropped: Option<Block>,
    pub(crate) predicates: &'b [BoundInputs],
    /// Parts of the predicates that were asked.
    pub(crate) asked: usize,
    /// The id that a header leaves.
    pub(crate) event_class: Option<Variable>,
    /// Where text goes, in programs that print.
    pub(crate) out: Option<TextOutput<'b>>,
    /// Where columns are, in programs that fill them.
    pub(crate) table: Option<TableColumns<'b>>,
    /// The row that is being filled of each child table, from table 1 on.
    pub(crate) child_rows: Vec<Variable>,
    pub(crate) registers: Vec<Variable>,
    order: Variable,
    idle: Variable,
    phase: BitPhase,
}

/// Where columns are.
#[derive(Clone, Copy)]
pub(crate) struct TableColumns<'p> {
    /// Pairs of addresses: cells and validity.
    pub(crate) columns: Value,
    /// The packet's byte that the window begins with.
    pub(crate) origin: Value,
    /// The row of table 0 that is being filled.
    pub(crate) row: Value,
    /// [`kymo_ir::cells::TableRows`] of each table.
    pub(crate) tables: Value,
    pub(crate) program: &'p ReadProgram,
    pub(crate) engine: &'p JitEngine,
}

/// Where text goes.
#[derive(Clone, Copy)]
pub(crate) struct TextOutput<'p> {
    /// Address of the next byte.
    pub(crate) cursor: Variable,
    /// Text from the packet must end before.
    pub(crate) limit: Value,
    /// Where to go when it does not.
    pub(crate) full: Block,
    /// The program, which outlives the code.
    pub(crate) program: &'p ReadProgram,
    pub(crate) engine: &'p JitEngine,
}

/// The objects that a function's body can refer to.
pub(crate) struct FunctionContext {
    pub(crate) base: Value,
    pub(crate) end: Value,
    pub(crate) slots: Value,
    pub(crate) stuck: Block,
    pub(crate) position: Variable,
}

impl<'b, 'f> Translator<'b, 'f> {
    pub(crate) fn new(builder: &'b mut FunctionBuilder<'f>, program: &'b ReadProgram, frame: &FunctionContext) -> Self {
        let zero = builder.ins().iconst(types::I64, 0);
        let registers = (0..program.registers)
            .map(|_| {
                let register = builder.declare_var(types::I64);
                builder.def_var(register, zero);
                register
            })
            .collect();
        let order = builder.declare_var(types::I64);
        builder.def_var(order, zero);
        let idle = builder.declare_var(types::I64);
        builder.def_var(idle, zero);
        let &FunctionContext { base, end, slots, stuck, position } = frame;
        let phase = program.entry;
        Self {
            builder,
            base,
            end,
            slots,
            stuck,
            position,
            clock: None,
            cycles: None,
            dropped: None,
            predicates: &program.predicates,
            asked: 0,
            event_class: None,
            out: None,
            table: None,
            child_rows: Vec::new(),
            registers,
            order,
            idle,
            phase,
        }
    }

    /// Translates a block; `None` if it has an operation that is left to the evaluator.
    pub(crate) fn block(&mut self, block: &[Op]) -> Option<()> {
        block.iter().try_for_each(|op| self.op(op))
    }

    fn op(&mut self, op: &Op) -> Option<()> {
        match op {
            Op::Align { log2 } => self.align(*log2),
            Op::Need { bits } => {
                let needed = self.constant(*bits);
                self.need(needed);
            }
            Op::Read { to, offset, width, order, signed, reversed } => {
                let value = self.read(u64::from(*offset), u32::from(*width), *order);
                let value = self.adjusted(value, i64::from(*width), *signed, *reversed);
                self.builder.def_var(self.registers[usize::from(to.0)], value);
            }
            Op::Advance { bits } => {
                let bits = *bits;
                self.advance_constant(bits);
            }
            Op::Order { order } => self.order(*order),
            Op::Skip { count, bits } => self.skip(*count, *bits),
            Op::Text { start, length, unit: 1 } => self.text(start.0, length.0),
            Op::Bytes { start, length } => self.bytes(start.0, *length),
            Op::Store { column, from } => {
                let value = self.register(from.0);
                self.store(*column, value)?;
            }
            Op::StoreSpan { column, start, length } => self.store_span(*column, start.0, length.0)?,
            Op::StoreList { column, table, count } => self.store_list(*column, *table, *count)?,
            Op::Row { table } => self.row(*table)?,
            Op::Cut { start, length, unit } => self.cut(start.0, length.0, *unit)?,
            Op::Emit(emit) => self.emit(emit)?,
            Op::Set { to, value } => {
                let value = self.constant(*value);
                self.builder.def_var(self.registers[usize::from(to.0)], value);
            }
            Op::Copy { to, from } => {
                let value = self.register(from.0);
                self.builder.def_var(self.registers[usize::from(to.0)], value);
            }
            Op::Load { to, slot } => {
                let value = self.builder.ins().load(types::I64, trusted(), self.slots, i32::from(slot.0) * 8);
                self.builder.def_var(self.registers[usize::from(to.0)], value);
            }
            Op::Out { slot, from } => self.leave(slot.0, from.0),
            Op::Clock { from, bits: NumberSource::Constant(bits) } => self.update_clock(from.0, *bits)?,
            Op::Repeat { count, index, body } => self.repeat(*count, index.map(|index| index.0), body)?,
            Op::Switch { on, signed, arms, default } => self.switch(on.0, *signed, arms, default.as_deref())?,
            Op::Cycles { to } => {
                let value = self.clock.map(|clock| self.builder.use_var(clock)).or(self.cycles)?;
                self.builder.def_var(self.registers[usize::from(to.0)], value);
            }
            Op::Double { to, from, width } => self.double(to.0, from.0, *width)?,
            Op::Keep { predicate } => self.keep(usize::from(*predicate))?,
            _ => return None,
        }
        Some(())
    }

    fn constant(&mut self, value: u64) -> Value {
        self.builder.ins().iconst(types::I64, value as i64)
    }

    pub(crate) fn register(&mut self, register: u16) -> Value {
        self.builder.use_var(self.registers[usize::from(register)])
    }

    fn source(&mut self, source: NumberSource) -> Value {
        match source {
            NumberSource::Constant(value) => self.constant(value),
            NumberSource::Register(register) => self.register(register.0),
        }
    }

    pub(crate) fn position(&mut self) -> Value {
        self.builder.use_var(self.position)
    }

    fn left(&mut self) -> Value {
        let position = self.position();
        self.builder.ins().isub(self.end, position)
    }

    /// Goes on only where `condition` does not hold.
    fn stuck_if(&mut self, condition: Value) {
        let next = self.builder.create_block();
        self.builder.ins().brif(condition, self.stuck, &[], next, &[]);
        self.builder.switch_to_block(next);
    }

    fn need(&mut self, bits: Value) {
        let left = self.left();
        let short = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, bits, left);
        self.stuck_if(short);
    }

    fn advance(&mut self, bits: Value) {
        let position = self.position();
        let next = self.builder.ins().iadd(position, bits);
        self.builder.def_var(self.position, next);
    }

    fn advance_constant(&mut self, bits: u64) {
        let amount = self.constant(bits);
        self.advance(amount);
        self.phase = self.phase.advanced(bits);
    }

    fn forget(&mut self, log2: u8) {
        self.phase = self.phase.moved(log2);
    }

    fn align(&mut self, log2: u8) {
        let below = (1_i64 << log2) - 1;
        let position = self.position();
        let up = self.builder.ins().iadd_imm_s(position, below);
        let aligned = self.builder.ins().band_imm_s(up, !below);
        // Padding behind the end is a fault too. Positions stay far below 2^64, so rounding up
        // cannot wrap.
        let past = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, aligned, self.end);
        self.stuck_if(past);
        self.builder.def_var(self.position, aligned);
        self.phase = self.phase.aligned(log2);
    }

    /// Where the position lies in its byte, if that is known.
    fn bit_in_byte(&self, offset: u64) -> Option<u64> {
        (self.phase.modulus_log2 >= 3).then(|| (self.phase.phase + offset) % 8)
    }

    fn read(&mut self, offset: u64, width: u32, order: ByteOrder) -> Value {
        let position = self.position();
        match self.bit_in_byte(offset) {
            Some(bit) => {
                // The position's own byte is common to all fields of a run; the rest is a constant.
                let own = self.phase.phase % 8;
                let byte = self.builder.ins().ushr_imm_u(position, 3);
                let address = self.builder.ins().iadd(self.base, byte);
                let constant = i32::try_from((own + offset) / 8).unwrap_or(i32::MAX);
                if bit == 0 && matches!(width, 8 | 16 | 32 | 64) {
                    return self.load_whole(address, constant, width, order);
                }
                let shift = self.constant(bit);
                self.read_bits(address, constant, shift, Some(bit), width, order)
            }
            None => {
                let at = self.builder.ins().iadd_imm_s(position, offset as i64);
                let byte = self.builder.ins().ushr_imm_u(at, 3);
                let address = self.builder.ins().iadd(self.base, byte);
                let shift = self.builder.ins().band_imm_s(at, 7);
                self.read_bits(address, 0, shift, None, width, order)
            }
        }
    }

    fn load_whole(&mut self, address: Value, offset: i32, width: u32, order: ByteOrder) -> Value {
        let class = match width {
            8 => types::I8,
            16 => types::I16,
            32 => types::I32,
            _ => types::I64,
        };
        let value = self.builder.ins().load(class, unaligned(), address, offset);
        let swapped = if order == ByteOrder::Big && width > 8 { self.builder.ins().bswap(value) } else { value };
        if width == 64 { swapped } else { self.builder.ins().uextend(types::I64, swapped) }
    }

    fn read_bits(
        &mut self,
        address: Value,
        offset: i32,
        shift: Value,
        known_shift: Option<u64>,
        width: u32,
        order: ByteOrder,
    ) -> Value {
        let word = self.builder.ins().load(types::I64, unaligned(), address, offset);
        let straddles = known_shift.unwrap_or(7) + u64::from(width) > 64;
        let ninth = straddles.then(|| {
            let byte = self.builder.ins().load(types::I8, unaligned(), address, offset + 8);
            self.builder.ins().uextend(types::I64, byte)
        });
        match order {
            ByteOrder::Little => {
                let mut value = self.builder.ins().ushr(word, shift);
                if let Some(ninth) = ninth {
                    let most = self.constant(63);
                    let up = self.builder.ins().isub(most, shift);
                    // In two steps: with a shift of 0 the ninth byte moves by 64 bits, and a single
                    // shift by 64 would be one by 0.
                    let high = self.builder.ins().ishl(ninth, up);
                    let high = self.builder.ins().ishl_imm_u(high, 1);
                    value = self.builder.ins().bor(value, high);
                }
                if width == 64 {
                    value
                } else {
                    self.builder.ins().band_imm_s(value, (u64::MAX >> (64 - width)) as i64)
                }
            }
            ByteOrder::Big => {
                let word = self.builder.ins().bswap(word);
                let mut value = self.builder.ins().ishl(word, shift);
                if let Some(ninth) = ninth {
                    let eight = self.constant(8);
                    let down = self.builder.ins().isub(eight, shift);
                    let low = self.builder.ins().ushr(ninth, down);
                    value = self.builder.ins().bor(value, low);
                }
                self.builder.ins().ushr_imm_u(value, 64 - i64::from(width))
            }
        }
    }

    fn adjusted(&mut self, value: Value, width: i64, signed: bool, reversed: bool) -> Value {
        let mut value = value;
        if reversed {
            let all = self.builder.ins().bitrev(value);
            value = self.builder.ins().ushr_imm_u(all, 64 - width);
        }
        if signed && width < 64 {
            let up = self.builder.ins().ishl_imm_u(value, 64 - width);
            value = self.builder.ins().sshr_imm_u(up, 64 - width);
        }
        value
    }

    fn order(&mut self, order: ByteOrder) {
        let code = 1 + i64::from(order == ByteOrder::Big);
        let last = self.builder.use_var(self.order);
        let differs = self.builder.ins().icmp_imm_s(IntCC::NotEqual, last, code);
        let is_set = self.builder.ins().icmp_imm_s(IntCC::NotEqual, last, 0);
        let position = self.position();
        let bit = self.builder.ins().band_imm_s(position, 7);
        let inside = self.builder.ins().icmp_imm_s(IntCC::NotEqual, bit, 0);
        let both = self.builder.ins().band(differs, is_set);
        let wrong = self.builder.ins().band(both, inside);
        self.stuck_if(wrong);
        let code = self.builder.ins().iconst(types::I64, code);
        self.builder.def_var(self.order, code);
    }

    fn skip(&mut self, count: NumberSource, bits: u64) {
        let count_value = self.source(count);
        let size = self.constant(bits);
        // A length from the trace may be anything: the product is checked in 128 bits.
        let high = self.builder.ins().umulhi(count_value, size);
        let low = self.builder.ins().imul(count_value, size);
        self.stuck_if(high);
        self.need(low);
        self.advance(low);
        self.forget(bits.trailing_zeros() as u8);
    }

    /// Looks for the zero byte, eight at a time; the window's slack allows to look too far.
    fn text(&mut self, start: u16, length: u16) {
        let position = self.position();
        let from = self.builder.ins().ushr_imm_u(position, 3);
        let last = self.builder.ins().ushr_imm_u(self.end, 3);
        let (search, found, further) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        let at = self.builder.append_block_param(search, types::I64);
        self.builder.ins().jump(search, &[from.into()]);
        self.builder.switch_to_block(search);
        let beyond = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, at, last);
        self.stuck_if(beyond);
        let address = self.builder.ins().iadd(self.base, at);
        let word = self.builder.ins().load(types::I64, unaligned().with_endianness(LITTLE), address, 0);
        let zeros = zero_bytes(self.builder, word);
        let next = self.builder.ins().iadd_imm_s(at, 8);
        self.builder.ins().brif(zeros, found, &[], further, &[]);
        self.builder.switch_to_block(further);
        self.builder.ins().jump(search, &[next.into()]);
        self.builder.switch_to_block(found);
        let bit = self.builder.ins().ctz(zeros);
        let byte = self.builder.ins().ushr_imm_u(bit, 3);
        let zero = self.builder.ins().iadd(at, byte);
        let beyond = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, zero, last);
        self.stuck_if(beyond);
        let bytes = self.builder.ins().isub(zero, from);
        self.builder.def_var(self.registers[usize::from(start)], from);
        self.builder.def_var(self.registers[usize::from(length)], bytes);
        let behind = self.builder.ins().iadd_imm_s(zero, 1);
        let position = self.builder.ins().ishl_imm_u(behind, 3);
        self.builder.def_var(self.position, position);
        self.phase = BitPhase { modulus_log2: 3, phase: 0 };
    }

    fn bytes(&mut self, start: u16, length: NumberSource) {
        let length_value = self.source(length);
        let left = self.left();
        // In bytes, because the length in bits could exceed 64 bits.
        let left_bytes = self.builder.ins().ushr_imm_u(left, 3);
        let short = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, length_value, left_bytes);
        self.stuck_if(short);
        let position = self.position();
        let from = self.builder.ins().ushr_imm_u(position, 3);
        self.builder.def_var(self.registers[usize::from(start)], from);
        let bits = self.builder.ins().ishl_imm_u(length_value, 3);
        self.advance(bits);
        self.forget(3);
    }

    fn store(&mut self, column: u16, value: Value) -> Option<()> {
        let table = self.table?;
        let of = table.program.columns[usize::from(column)];
        let (class, shift) = match of.cell {
            CellType::U8 => (types::I8, 0),
            CellType::U16 => (types::I16, 1),
            CellType::U32 => (types::I32, 2),
            CellType::U64 | CellType::Span => (types::I64, 3),
        };
        let pair = i32::from(column) * 16;
        let cells = self.builder.ins().load(types::I64, trusted(), table.columns, pair);
        let row = match usize::from(of.table).checked_sub(1) {
            None => table.row,
            Some(child) => self.builder.use_var(*self.child_rows.get(child)?),
        };
        let at = self.builder.ins().ishl_imm_u(row, shift);
        let address = self.builder.ins().iadd(cells, at);
        let value = if class == types::I64 { value } else { self.builder.ins().ireduce(class, value) };
        self.builder.ins().store(unaligned(), value, address, 0);
        if of.nullable {
            let validity = self.builder.ins().load(types::I64, trusted(), table.columns, pair + 8);
            let address = self.builder.ins().iadd(validity, row);
            let one = self.builder.ins().iconst(types::I8, 1);
            self.builder.ins().store(unaligned(), one, address, 0);
        }
        Some(())
    }

    /// First byte in the low half, bytes in the high one.
    fn store_span(&mut self, column: u16, start: u16, length: u16) -> Option<()> {
        let origin = self.table?.origin;
        let (start, length) = (self.register(start), self.register(length));
        let first = self.builder.ins().isub(start, origin);
        let first = self.builder.ins().band_imm_s(first, 0xffff_ffff);
        let high = self.builder.ins().ishl_imm_u(length, 32);
        let span = self.builder.ins().bor(first, high);
        self.store(column, span)
    }

    /// First row of the child table in the low half, rows in the high one.
    fn store_list(&mut self, column: u16, table: u16, count: NumberSource) -> Option<()> {
        let count = self.source(count);
        let first = self.builder.use_var(*self.child_rows.get(usize::from(table).checked_sub(1)?)?);
        let first = self.builder.ins().band_imm_s(first, 0xffff_ffff);
        let high = self.builder.ins().ishl_imm_u(count, 32);
        let span = self.builder.ins().bor(first, high);
        self.store(column, span)
    }

    /// Goes on to the next row of a child table; there is always room for it, or the evaluator makes it.
    fn row(&mut self, table: u16) -> Option<()> {
        let tables = self.table?.tables;
        let row = *self.child_rows.get(usize::from(table).checked_sub(1)?)?;
        let now = self.builder.use_var(row);
        let next = self.builder.ins().iadd_imm_s(now, 1);
        let offset = usize::from(table) * size_of::<TableRows>() + std::mem::offset_of!(TableRows, capacity);
        let capacity = self.builder.ins().load(types::I64, trusted(), tables, i32::try_from(offset).ok()?);
        let full = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, next, capacity);
        self.stuck_if(full);
        self.builder.def_var(row, next);
        Some(())
    }

    /// Address of a byte of the packet.
    fn address(&mut self, start: u16) -> Value {
        let start = self.register(start);
        self.builder.ins().iadd(self.base, start)
    }

    /// Calls a function of `pieces`.
    fn call(&mut self, engine: &JitEngine, function: usize, arguments: &[Value]) -> Value {
        let signature = self.builder.import_signature(engine.signature(arguments.len()));
        let address = self.constant(function as u64);
        let call = self.builder.ins().call_indirect(signature, address, arguments);
        self.builder.inst_results(call)[0]
    }

    fn cut(&mut self, start: u16, length: u16, unit: u8) -> Option<()> {
        if unit == 1 {
            self.cut_bytes(start, length);
            return Some(());
        }
        let engine = self.out.map(|out| out.engine).or(self.table.map(|table| table.engine))?;
        let address = self.address(start);
        let bytes = self.register(length);
        let unit = self.constant(u64::from(unit));
        let shorter = self.call(engine, pieces::cut as *const () as usize, &[address, bytes, unit]);
        self.builder.def_var(self.registers[usize::from(length)], shorter);
        Some(())
    }

    /// Looks for the zero byte as `text` does, and no further than `length`.
    fn cut_bytes(&mut self, start: u16, length: u16) {
        let from = self.address(start);
        let length = self.registers[usize::from(length)];
        let bytes = self.builder.use_var(length);
        let (search, inside, found, behind) = (
            self.builder.create_block(),
            self.builder.create_block(),
            self.builder.create_block(),
            self.builder.create_block(),
        );
        let at = self.builder.append_block_param(search, types::I64);
        let zero = self.constant(0);
        self.builder.ins().jump(search, &[zero.into()]);
        self.builder.switch_to_block(search);
        let more = self.builder.ins().icmp(IntCC::UnsignedLessThan, at, bytes);
        self.builder.ins().brif(more, inside, &[], behind, &[]);
        self.builder.switch_to_block(inside);
        let address = self.builder.ins().iadd(from, at);
        let word = self.builder.ins().load(types::I64, unaligned(), address, 0);
        let zeros = zero_bytes(self.builder, word);
        let next = self.builder.ins().iadd_imm_s(at, 8);
        self.builder.ins().brif(zeros, found, &[], search, &[next.into()]);
        self.builder.switch_to_block(found);
        let bit = self.builder.ins().ctz(zeros);
        let byte = self.builder.ins().ushr_imm_u(bit, 3);
        let end = self.builder.ins().iadd(at, byte);
        // The zero may lie in the bytes that were read beyond the length.
        let shorter = self.builder.ins().umin(end, bytes);
        self.builder.def_var(length, shorter);
        self.builder.ins().jump(behind, &[]);
        self.builder.switch_to_block(behind);
    }

    fn emit(&mut self, emit: &Emit) -> Option<()> {
        let out = self.out?;
        let cursor = self.builder.use_var(out.cursor);
        let behind = match *emit {
            Emit::Literal(literal) => self.literal(cursor, &out.program.literals[usize::from(literal)]),
            Emit::Integer { from, signed, style: IntegerStyle::Decimal } => {
                let value = self.register(from.0);
                let function = if signed {
                    pieces::decimal_signed as *const () as usize
                } else {
                    pieces::decimal as *const () as usize
                };
                self.call(out.engine, function, &[cursor, value])
            }
            Emit::Text { start, length, encoding: Encoding::Utf8, style: TextStyle::Pretty } => {
                let (text, bytes) = (self.address(start.0), self.register(length.0));
                let function = pieces::pretty_text as *const () as usize;
                let behind = self.call(out.engine, function, &[cursor, out.limit, text, bytes]);
                self.full_if_zero(behind, out.full)
            }
            _ => self.any(emit, out, cursor),
        };
        self.builder.def_var(out.cursor, behind);
        Some(())
    }

    fn full_if_zero(&mut self, behind: Value, full: Block) -> Value {
        let next = self.builder.create_block();
        self.builder.ins().brif(behind, next, &[], full, &[]);
        self.builder.switch_to_block(next);
        behind
    }

    /// Eight bytes at a time; the last store may reach too far, into the reserve.
    fn literal(&mut self, cursor: Value, literal: &[u8]) -> Value {
        for (index, chunk) in literal.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let word = self.constant(u64::from_le_bytes(word));
            self.builder.ins().store(unaligned(), word, cursor, index as i32 * 8);
        }
        self.builder.ins().iadd_imm_s(cursor, literal.len() as i64)
    }

    fn any(&mut self, emit: &Emit, out: TextOutput<'_>, cursor: Value) -> Value {
        let (one, other) = match *emit {
            Emit::Literal(_) => (None, None),
            Emit::Integer { from, .. }
            | Emit::Real { from, .. }
            | Emit::Label { from, .. }
            | Emit::Flags { from, .. } => (Some(self.register(from.0)), None),
            Emit::Text { start, length, .. } | Emit::Bytes { start, length, .. } => {
                (Some(self.address(start.0)), Some(self.register(length.0)))
            }
        };
        let zero = self.constant(0);
        let program = self.constant(std::ptr::from_ref(out.program) as u64);
        let emit = self.constant(std::ptr::from_ref(emit) as u64);
        let arguments = [cursor, out.limit, program, emit, one.unwrap_or(zero), other.unwrap_or(zero)];
        let behind = self.call(out.engine, pieces::any as *const () as usize, &arguments);
        self.full_if_zero(behind, out.full)
    }

    fn leave(&mut self, slot: u16, from: u16) {
        let value = self.register(from);
        match self.event_class {
            Some(event_class) if slot == SLOT_EVENT_CLASS.0 => self.builder.def_var(event_class, value),
            _ => {
                self.builder.ins().store(trusted(), value, self.slots, i32::from(slot) * 8);
            }
        }
    }

    fn update_clock(&mut self, from: u16, bits: u64) -> Option<()> {
        let clock = self.clock?;
        let value = self.register(from);
        if bits >= 64 {
            self.builder.def_var(clock, value);
            return Some(());
        }
        let low = (1_u64 << bits) - 1;
        let before = self.builder.use_var(clock);
        let value = self.builder.ins().band_imm_s(value, low as i64);
        let before_low = self.builder.ins().band_imm_s(before, low as i64);
        // The header has the low bits alone. Fewer than before means that they wrapped once.
        let wrapped = self.builder.ins().icmp(IntCC::UnsignedLessThan, value, before_low);
        let lap = self.constant(low + 1);
        let zero = self.constant(0);
        let add = self.builder.ins().select(wrapped, lap, zero);
        let high = self.builder.ins().band_imm_s(before, !low as i64);
        let high = self.builder.ins().iadd(high, add);
        let after = self.builder.ins().bor(high, value);
        self.builder.def_var(clock, after);
        Some(())
    }

    fn repeat(&mut self, count: NumberSource, index: Option<u16>, body: &[Op]) -> Option<()> {
        let count = self.source(count);
        // The knowledge at the head of a round was computed when the program was written; here only
        // the byte's edge matters, and it is found by walking the body once with the phase before
        // it.
        let head_phase = self.phase.loop_head(body);
        let (head, inside, behind) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        let round = self.builder.append_block_param(head, types::I64);
        let zero = self.constant(0);
        self.builder.ins().jump(head, &[zero.into()]);
        self.builder.switch_to_block(head);
        let more = self.builder.ins().icmp(IntCC::UnsignedLessThan, round, count);
        self.builder.ins().brif(more, inside, &[], behind, &[]);
        self.builder.switch_to_block(inside);
        if let Some(index) = index {
            self.builder.def_var(self.registers[usize::from(index)], round);
        }
        if let Some(out) = self.out {
            let cursor = self.builder.use_var(out.cursor);
            // A loop writes without bound, so each round asks once. Pieces of fixed text in it need
            // no check: the reserve behind the limit holds them.
            let fits = self.builder.ins().icmp(IntCC::UnsignedLessThan, cursor, out.limit);
            self.full_if_zero(fits, out.full);
        }
        self.phase = head_phase;
        let start = self.position();
        self.block(body)?;
        // Rounds that take bits are bounded by the packet; only others need a count.
        if !always_moves(body) {
            self.count_idle(start);
        }
        let next = self.builder.ins().iadd_imm_s(round, 1);
        self.builder.ins().jump(head, &[next.into()]);
        self.builder.switch_to_block(behind);
        self.phase = head_phase;
        Some(())
    }

    /// Rounds that took no bits are counted, for all loops of a record together.
    fn count_idle(&mut self, start: Value) {
        let position = self.position();
        let same = self.builder.ins().icmp(IntCC::Equal, position, start);
        let same = self.builder.ins().uextend(types::I64, same);
        let before = self.builder.use_var(self.idle);
        let idle = self.builder.ins().iadd(before, same);
        self.builder.def_var(self.idle, idle);
        let most = self.constant(EMPTY_ELEMENTS_MAX);
        let too_many = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, idle, most);
        self.stuck_if(too_many);
    }

    fn switch(&mut self, on: u16, signed: bool, arms: &[Arm], default: Option<&[Op]>) -> Option<()> {
        let value = self.register(on);
        let behind = self.builder.create_block();
        let before = self.phase;
        let mut after: Option<BitPhase> = None;
        let mut leave = |this: &mut Self| {
            after = Some(after.map_or(this.phase, |phase| phase.join(this.phase)));
            this.builder.ins().jump(behind, &[]);
            this.phase = before;
        };
        for (ranges, block) in arms {
            let taken = self.builder.create_block();
            for &(lowest, highest) in ranges {
                let holds = self.in_range(value, lowest, highest, signed);
                let next = self.builder.create_block();
                self.builder.ins().brif(holds, taken, &[], next, &[]);
                self.builder.switch_to_block(next);
            }
            let other = self.builder.create_block();
            self.builder.ins().jump(other, &[]);
            self.builder.switch_to_block(taken);
            self.block(block)?;
            leave(self);
            self.builder.switch_to_block(other);
        }
        match default {
            Some(block) => {
                self.block(block)?;
                leave(self);
            }
            None => {
                self.builder.ins().jump(self.stuck, &[]);
            }
        }
        self.builder.switch_to_block(behind);
        self.phase = after.unwrap_or_default();
        Some(())
    }

    fn in_range(&mut self, value: Value, lowest: u64, highest: u64, signed: bool) -> Value {
        if lowest == highest {
            return self.builder.ins().icmp_imm_s(IntCC::Equal, value, lowest as i64);
        }
        // value - lowest <= highest - lowest, unsigned, holds for both kinds of order.
        let _ = signed;
        let low = self.constant(lowest);
        let distance = self.builder.ins().isub(value, low);
        let width = self.constant(highest.wrapping_sub(lowest));
        self.builder.ins().icmp(IntCC::UnsignedLessThanOrEqual, distance, width)
    }
}

const LITTLE: cranelift_codegen::ir::Endianness = cranelift_codegen::ir::Endianness::Little;

/// Memory that the caller made sure of.
pub(crate) fn trusted() -> MemFlagsData {
    MemFlagsData::trusted()
}

/// Bytes of the window, at any address, in little-endian order.
fn unaligned() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_endianness(LITTLE)
}

/// Whether every run of the block takes at least a bit.
fn always_moves(block: &[Op]) -> bool {
    block.iter().any(|op| matches!(op, Op::Advance { bits: 1.. } | Op::Text { .. } | Op::Leb { .. }))
}

/// The high bit of the lowest byte of the word that is zero, and perhaps of higher ones; 0 if there is none.
pub(crate) fn zero_bytes(builder: &mut FunctionBuilder<'_>, word: Value) -> Value {
    let ones = builder.ins().iconst(types::I64, 0x0101_0101_0101_0101);
    let highs = builder.ins().iconst(types::I64, 0x8080_8080_8080_8080_u64 as i64);
    let less = builder.ins().isub(word, ones);
    let without = builder.ins().band_not(less, word);
    builder.ins().band(without, highs)
}
