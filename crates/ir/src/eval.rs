//! The evaluator: it defines the meaning of programs.
//!
//! It walks the blocks of a program as they are. Registers live in a small buffer that is reused from
//! record to record; nothing is allocated for a record unless it is emitted or stored.

use kymo_units::ByteOrder;

use crate::bits;
use crate::cells::Cells;
use crate::emit;
use crate::predicate::{Input, Inputs};
use crate::program::{Arm, BoundInputs, Emit, InputOperand, NumberSource, Op, ReadProgram, Reg};
use crate::run::{
    ClassTest, EMPTY_ELEMENTS_MAX, FaultKind, ProgramFault, ReadState, Records, RowFault, SLOT_EVENT_CLASS, ScanPlan,
    ScanStop,
};
use crate::window::PacketWindow;

/// Runs `program` on the record at `position`; returns the position behind it.
///
/// # Errors
///
/// The first thing that could not be read. Slots and clock may have been written.
pub fn record(
    program: &ReadProgram,
    window: PacketWindow<'_>,
    position: u64,
    state: &mut ReadState,
) -> Result<u64, ProgramFault> {
    Evaluator::new(program, window, state).record(position)
}

/// Appends the records from `position` on until `records` holds `limit`, the window ends, or one cannot be read.
pub fn scan(
    plan: &ScanPlan,
    window: PacketWindow<'_>,
    position: &mut u64,
    state: &mut ReadState,
    records: &mut Records,
    limit: usize,
) -> ScanStop {
    scan_few(plan, window, position, state, records, limit, &mut { usize::MAX })
}

/// As [`scan`], but reads at most `reads` records, found or not, and takes those it read from
/// `reads`.
pub fn scan_few(
    plan: &ScanPlan,
    window: PacketWindow<'_>,
    position: &mut u64,
    state: &mut ReadState,
    records: &mut Records,
    limit: usize,
    reads: &mut usize,
) -> ScanStop {
    while *position < window.end() {
        if records.len() >= limit || *reads == 0 {
            return ScanStop::Full;
        }
        *reads -= 1;
        let clock = state.clock;
        match scan_one(plan, window, *position, state) {
            Ok(found) => {
                if found.kept {
                    records.cycles.push(state.clock);
                    records.classes.push(found.class);
                    records.positions.push(found.position);
                }
                *position = found.end;
            }
            Err(fault) => {
                state.clock = clock;
                return ScanStop::Fault(fault);
            }
        }
    }
    ScanStop::End
}

/// A record that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundRecord {
    /// Dense class index.
    pub class: u32,
    /// See [`ScanPlan::from_start`].
    pub position: u64,
    /// Behind the record.
    pub end: u64,
    /// The class' test keeps it.
    pub kept: bool,
}

/// Reads the record at `start`.
///
/// # Errors
///
/// The fault where reading failed. The clock may have been updated.
pub fn scan_one(
    plan: &ScanPlan,
    window: PacketWindow<'_>,
    start: u64,
    state: &mut ReadState,
) -> Result<FoundRecord, ProgramFault> {
    let body = Evaluator::new(&plan.header, window, state).record(start)?;
    let class =
        plan.class(state.slots[usize::from(SLOT_EVENT_CLASS.0)]).map_err(|kind| ProgramFault { at: start, kind })?;
    let position = if plan.from_start { start } else { body };
    let program = &plan.bodies[plan.class_body[class as usize] as usize];
    let end = Evaluator::new(program, window, state).record(position)?;
    if end == start {
        return Err(ProgramFault { at: start, kind: FaultKind::Empty });
    }
    let kept = match plan.class_test.get(class as usize).copied().unwrap_or_default() {
        ClassTest::Always => true,
        ClassTest::Never => false,
        ClassTest::Test(test) => keeps(&plan.tests[test as usize], window, position, state)?,
    };
    Ok(FoundRecord { class, position, end, kept })
}

/// Whether a program keeps the record that it reads from `position` on.
///
/// # Errors
///
/// The fault where reading failed before that was decided.
pub fn keeps(
    program: &ReadProgram,
    window: PacketWindow<'_>,
    position: u64,
    state: &mut ReadState,
) -> Result<bool, ProgramFault> {
    let mut machine = Evaluator::new(program, window, state);
    machine.position = position;
    for op in &program.body {
        match op {
            Op::Keep { predicate } => {
                let bound = &program.predicates[usize::from(*predicate)];
                if !bound.predicate.keeps(&RegisterInputs { machine: &machine, bound }) {
                    return Ok(false);
                }
            }
            _ => machine.op(op)?,
        }
    }
    Ok(true)
}

/// The answer of the first predicate that a program asks, about the record read from `position` on;
/// `None`: unknown.
///
/// # Errors
///
/// The fault where reading failed before.
pub fn answer(
    program: &ReadProgram,
    window: PacketWindow<'_>,
    position: u64,
    state: &mut ReadState,
) -> Result<Option<bool>, ProgramFault> {
    let mut machine = Evaluator::new(program, window, state);
    machine.position = position;
    for op in &program.body {
        match op {
            Op::Keep { predicate } => {
                let bound = &program.predicates[usize::from(*predicate)];
                return Ok(bound.predicate.test(&bound.predicate.root, &RegisterInputs { machine: &machine, bound }));
            }
            _ => machine.op(op)?,
        }
    }
    Ok(None)
}

/// Inputs of a predicate in registers.
struct RegisterInputs<'m, 'a> {
    machine: &'m Evaluator<'a>,
    bound: &'m BoundInputs,
}

impl RegisterInputs<'_, '_> {
    fn operand(&self, input: Input) -> Option<InputOperand> {
        let operand = *self.bound.operands.get(usize::from(input.0))?;
        let (InputOperand::Number { present, .. } | InputOperand::Text { present, .. }) = operand;
        present.is_none_or(|present| self.machine.get(present) != 0).then_some(operand)
    }
}

impl Inputs for RegisterInputs<'_, '_> {
    fn number(&self, input: Input) -> Option<u64> {
        match self.operand(input)? {
            InputOperand::Number { value, .. } => Some(self.machine.get(value)),
            InputOperand::Text { .. } => None,
        }
    }

    fn text(&self, input: Input) -> Option<&[u8]> {
        let InputOperand::Text { start, length, .. } = self.operand(input)? else { return None };
        let length = self.machine.get(length) as usize;
        // Text that is there on some paths alone may have no first byte on others, but then it is empty.
        if length == 0 {
            return Some(&[]);
        }
        let from = (self.machine.get(start) - self.machine.window.origin()) as usize;
        Some(&self.machine.window.bytes()[from..from + length])
    }
}

impl ScanPlan {
    /// The dense index of the class that a header named.
    ///
    /// # Errors
    ///
    /// There is no such class.
    pub fn class(&self, id: u64) -> Result<u32, FaultKind> {
        if let Some(class) = self.only_class {
            return Ok(class);
        }
        // Ids mostly count from 0, so the first guess is right.
        if let Some(&(_, class)) = self.ids.get(id as usize).filter(|entry| entry.0 == id) {
            return Ok(class);
        }
        let found = self.ids.binary_search_by_key(&id, |entry| entry.0);
        found.map(|index| self.ids[index].1).map_err(|_| FaultKind::UnknownEventClass { id })
    }
}

/// Runs `program` at each of `positions`; row `i` of table 0 holds the cells stored at
/// `positions[i]`.
///
/// # Errors
///
/// The first row that could not be read; rows before it are complete.
pub fn rows(
    program: &ReadProgram,
    window: PacketWindow<'_>,
    positions: &[u64],
    state: &mut ReadState,
    cells: &mut Cells,
) -> Result<(), RowFault> {
    cells.reset(program, positions.len());
    positions
        .iter()
        .enumerate()
        .try_for_each(|(number, &position)| row(program, window, position, number, state, cells))
}

/// Fills the row of that number, the first that is not complete, with the record at `position`.
///
/// # Errors
///
/// The record could not be read.
pub fn row(
    program: &ReadProgram,
    window: PacketWindow<'_>,
    position: u64,
    row: usize,
    state: &mut ReadState,
    cells: &mut Cells,
) -> Result<(), RowFault> {
    if !program.tables.is_empty() {
        cells.set_rows(0, row);
    }
    let mut machine = Evaluator::new(program, window, state);
    machine.cells = Some(cells);
    machine.record(position).map_err(|fault| RowFault { row, fault })?;
    if !program.tables.is_empty() {
        cells.set_rows(0, row + 1);
    }
    Ok(())
}

/// Runs `program` at `position` and appends the text it emits; returns the position behind the record.
///
/// # Errors
///
/// The first thing that could not be read; the text before it was appended.
pub fn emit(
    program: &ReadProgram,
    window: PacketWindow<'_>,
    position: u64,
    state: &mut ReadState,
    out: &mut Vec<u8>,
) -> Result<u64, ProgramFault> {
    let mut machine = Evaluator::new(program, window, state);
    machine.out = Some(out);
    machine.record(position)
}

/// Registers that fit without allocating.
const FEW: usize = 24;

enum EvalRegisters {
    Few([u64; FEW]),
    Many(Vec<u64>),
}

impl EvalRegisters {
    fn new(count: u16) -> Self {
        if usize::from(count) <= FEW { Self::Few([0; FEW]) } else { Self::Many(vec![0; usize::from(count)]) }
    }

    fn all(&mut self) -> &mut [u64] {
        match self {
            Self::Few(few) => few,
            Self::Many(many) => many,
        }
    }
}

struct Evaluator<'a> {
    program: &'a ReadProgram,
    window: PacketWindow<'a>,
    state: &'a mut ReadState,
    registers: EvalRegisters,
    position: u64,
    order: Option<ByteOrder>,
    /// Rounds of loops that took no bits.
    idle: u64,
    cells: Option<&'a mut Cells>,
    out: Option<&'a mut Vec<u8>>,
}

impl<'a> Evaluator<'a> {
    fn new(program: &'a ReadProgram, window: PacketWindow<'a>, state: &'a mut ReadState) -> Self {
        let registers = EvalRegisters::new(program.registers);
        Self { program, window, state, registers, position: 0, order: None, idle: 0, cells: None, out: None }
    }

    fn record(&mut self, position: u64) -> Result<u64, ProgramFault> {
        self.registers.all().fill(0);
        self.position = position;
        self.order = None;
        self.idle = 0;
        self.block(&self.program.body)?;
        Ok(self.position)
    }

    fn block(&mut self, block: &[Op]) -> Result<(), ProgramFault> {
        block.iter().try_for_each(|op| self.op(op))
    }

    fn op(&mut self, op: &Op) -> Result<(), ProgramFault> {
        match op {
            Op::Align { log2 } => self.align(*log2)?,
            Op::Need { bits } => self.need(u128::from(*bits))?,
            Op::Read { to, offset, width, order, signed, reversed } => {
                let value = bits::read(self.window, self.position + u64::from(*offset), *width, *order);
                let value = if *reversed { bits::reverse(value, *width) } else { value };
                self.set(*to, if *signed { bits::sign_extend(value, *width) } else { value });
            }
            Op::Advance { bits } => self.position += bits,
            Op::Order { order } => self.check_order(*order)?,
            Op::Skip { count, bits } => {
                let bits = u128::from(self.source(*count)) * u128::from(*bits);
                self.need(bits)?;
                self.position += bits as u64;
            }
            Op::Leb { to, signed, bits } => self.leb(*to, *signed, *bits)?,
            Op::Text { start, length, unit } => self.text(*start, *length, *unit)?,
            Op::Bytes { start, length } => self.bytes(*start, *length)?,
            Op::Cut { start, length, unit } => self.cut(*start, *length, *unit),
            Op::Set { to, value } => self.set(*to, *value),
            Op::Copy { to, from } => self.set(*to, self.get(*from)),
            Op::Load { to, slot } => self.set(*to, self.state.slots[usize::from(slot.0)]),
            Op::Out { slot, from } => self.state.slots[usize::from(slot.0)] = self.get(*from),
            Op::Clock { from, bits } => self.clock(*from, *bits),
            Op::Repeat { count, index, body } => self.repeat(*count, *index, body)?,
            Op::Switch { on, signed, arms, default } => self.switch(*on, *signed, arms, default.as_deref())?,
            Op::Store { column, from } => {
                let value = self.get(*from);
                self.cells().store(*column, value);
            }
            Op::StoreSpan { column, start, length } => {
                let first = self.get(*start) - self.window.origin();
                let length = self.get(*length) as u32;
                self.cells().store_span(*column, first as u32, length);
            }
            Op::StoreList { column, table, count } => self.store_list(*column, *table, *count),
            Op::Row { table } => {
                let rows = self.cells().rows(*table) + 1;
                self.cells().set_rows(*table, rows);
                self.cells().grow(*table, rows + 1);
            }
            Op::Emit(emit) => self.emit(*emit),
            Op::Cycles { to } => self.set(*to, self.state.clock),
            Op::Double { to, from, width } => {
                let value = emit::double(self.get(*from), *width);
                self.set(*to, value.to_bits());
            }
            // Only [`keeps`] asks; for a caller that reads a record again, it was kept before.
            Op::Keep { .. } => {}
        }
        Ok(())
    }

    fn get(&self, register: Reg) -> u64 {
        match &self.registers {
            EvalRegisters::Few(few) => few[usize::from(register.0)],
            EvalRegisters::Many(many) => many[usize::from(register.0)],
        }
    }

    fn set(&mut self, register: Reg, value: u64) {
        self.registers.all()[usize::from(register.0)] = value;
    }

    fn source(&self, source: NumberSource) -> u64 {
        match source {
            NumberSource::Constant(value) => value,
            NumberSource::Register(register) => self.get(register),
        }
    }

    fn cells(&mut self) -> &mut Cells {
        self.cells.as_mut().expect("programs with columns run through rows()")
    }

    fn left(&self) -> u64 {
        self.window.end().saturating_sub(self.position)
    }

    fn fault<T>(&self, kind: FaultKind) -> Result<T, ProgramFault> {
        Err(ProgramFault { at: self.position, kind })
    }

    fn need(&self, needed: u128) -> Result<(), ProgramFault> {
        let left = self.left();
        if needed > u128::from(left) { self.fault(FaultKind::Short { needed, left }) } else { Ok(()) }
    }

    fn align(&mut self, log2: u8) -> Result<(), ProgramFault> {
        let below = (1_u64 << log2) - 1;
        let padding = self.position.wrapping_neg() & below;
        self.need(u128::from(padding))?;
        self.position += padding;
        Ok(())
    }

    fn check_order(&mut self, order: ByteOrder) -> Result<(), ProgramFault> {
        if !self.position.is_multiple_of(8) && self.order.is_some_and(|last| last != order) {
            return self.fault(FaultKind::OrderInsideByte);
        }
        self.order = Some(order);
        Ok(())
    }

    /// The window's bytes from the position on, up to its end.
    fn rest(&self) -> &'a [u8] {
        let from = (self.position / 8 - self.window.origin()) as usize;
        let end = (self.window.end() / 8 - self.window.origin()) as usize;
        self.window.bytes().get(from..end).unwrap_or(&[])
    }

    fn leb(&mut self, to: Reg, signed: bool, bits: Option<Reg>) -> Result<(), ProgramFault> {
        let rest = self.rest();
        let mut value = 0_u64;
        for (index, &byte) in rest.iter().take(10).enumerate() {
            let low = u64::from(byte & 0x7f);
            let fits = index < 9 || if signed { matches!(byte, 0 | 0x7f) } else { byte <= 1 };
            if !fits {
                return self.fault(FaultKind::Oversized);
            }
            value |= low << (7 * index);
            if byte & 0x80 == 0 {
                let width = (7 * (index + 1)).min(64) as u8;
                self.set(to, if signed { bits::sign_extend(value, width) } else { value });
                if let Some(bits) = bits {
                    self.set(bits, 7 * (index as u64 + 1));
                }
                self.position += 8 * (index as u64 + 1);
                return Ok(());
            }
        }
        if rest.len() >= 10 {
            return self.fault(FaultKind::Oversized);
        }
        self.fault(FaultKind::Short { needed: 8 * (rest.len() as u128 + 1), left: self.left() })
    }

    fn text(&mut self, start: Reg, length: Reg, unit: u8) -> Result<(), ProgramFault> {
        let Some(bytes) = terminator(self.rest(), unit) else {
            return self.fault(FaultKind::Unterminated { left: self.left() });
        };
        self.set(start, self.position / 8);
        self.set(length, bytes as u64);
        self.position += 8 * (bytes as u64 + u64::from(unit));
        Ok(())
    }

    fn bytes(&mut self, start: Reg, length: NumberSource) -> Result<(), ProgramFault> {
        let length = self.source(length);
        self.need(u128::from(length) * 8)?;
        self.set(start, self.position / 8);
        self.position += length * 8;
        Ok(())
    }

    fn cut(&mut self, start: Reg, length: Reg, unit: u8) {
        let from = (self.get(start) - self.window.origin()) as usize;
        let bytes = &self.window.bytes()[from..from + self.get(length) as usize];
        if let Some(before) = terminator(bytes, unit) {
            self.set(length, before as u64);
        }
    }

    fn clock(&mut self, from: Reg, bits: NumberSource) {
        let value = self.get(from);
        let bits = self.source(bits);
        if bits >= 64 {
            self.state.clock = value;
            return;
        }
        let low = (1_u64 << bits) - 1;
        let value = value & low;
        let lap = if value < self.state.clock & low { low + 1 } else { 0 };
        self.state.clock = self.state.clock.wrapping_add(lap) & !low | value;
    }

    fn repeat(&mut self, count: NumberSource, index: Option<Reg>, body: &[Op]) -> Result<(), ProgramFault> {
        let count = self.source(count);
        for round in 0..count {
            let start = self.position;
            if let Some(index) = index {
                self.set(index, round);
            }
            self.block(body)?;
            // One budget for all loops of a record: nested ones would multiply.
            self.idle += u64::from(self.position == start);
            if self.idle > EMPTY_ELEMENTS_MAX {
                return self.fault(FaultKind::EmptyElements { count });
            }
        }
        Ok(())
    }

    fn switch(&mut self, on: Reg, signed: bool, arms: &[Arm], default: Option<&[Op]>) -> Result<(), ProgramFault> {
        let value = self.get(on);
        let holds = |&(lowest, highest): &(u64, u64)| bits::in_range(value, lowest, highest, signed);
        match (arms.iter().find(|(ranges, _)| ranges.iter().any(holds)), default) {
            (Some((_, block)), _) => self.block(block),
            (None, Some(block)) => self.block(block),
            (None, None) => self.fault(FaultKind::Selector { value, signed }),
        }
    }

    fn store_list(&mut self, column: u16, table: u16, count: NumberSource) {
        let count = self.source(count);
        let cells = self.cells();
        let first = cells.rows(table);
        cells.store_span(column, first as u32, count as u32);
        // Room is made only for as many elements as the window can hold: a hostile count fails at
        // its first missing element.
        let possible = count.min(1 << 16);
        self.cells().grow(table, first + possible as usize + 1);
    }

    fn emit(&mut self, emit: Emit) {
        let window = self.window;
        let program = self.program;
        let bytes = |machine: &Self, start: Reg, length: Reg| {
            let from = (machine.get(start) - window.origin()) as usize;
            &window.bytes()[from..from + machine.get(length) as usize]
        };
        let value = |machine: &Self, from: Reg| machine.get(from);
        match emit {
            Emit::Literal(literal) => self.out().extend_from_slice(&program.literals[usize::from(literal)]),
            Emit::Integer { from, signed, style } => {
                let value = value(self, from);
                emit::integer(self.out(), value, signed, style);
            }
            Emit::Real { from, width, style } => {
                let value = value(self, from);
                emit::real(self.out(), value, width, style);
            }
            Emit::Text { start, length, encoding, style } => {
                let bytes = bytes(self, start, length);
                emit::text(self.out(), bytes, encoding, style);
            }
            Emit::Bytes { start, length, style } => {
                let bytes = bytes(self, start, length);
                emit::bytes(self.out(), bytes, style);
            }
            Emit::Label { from, labels, style } => {
                let value = value(self, from);
                emit::label(self.out(), value, &program.labels[usize::from(labels)], style);
            }
            Emit::Flags { from, labels, style } => {
                let value = value(self, from);
                emit::flags(self.out(), value, &program.labels[usize::from(labels)], style);
            }
        }
    }

    fn out(&mut self) -> &mut Vec<u8> {
        self.out.as_mut().expect("programs with text run through emit()")
    }
}

/// Bytes before the first zero code unit.
fn terminator(bytes: &[u8], unit: u8) -> Option<usize> {
    if unit == 1 {
        return memchr::memchr(0, bytes);
    }
    let unit = usize::from(unit);
    bytes.chunks_exact(unit).position(|unit| unit.iter().all(|&byte| byte == 0)).map(|index| index * unit)
}
