//! Random read programs, most of which the verifier lets through.
//!
//! Operations come in groups that belong together (need, read, advance), so that programs have an
//! effect; the verifier refuses programs that are not sound all the same.

use kymo_ir::{
    BitPhase, BytesStyle, CellType, Emit, Encoding, IntegerStyle, LabelStyle, NumberSource, Op, OutputSlot,
    ProgramColumn, ProgramTable, RangeLabels, ReadProgram, RealStyle, Reg, SLOT_EVENT_CLASS, TextStyle,
};
use kymo_units::ByteOrder;

use crate::random::RandomNumbers;

const REGISTERS: usize = 6;
/// Cells of table 0, then of the tables of lists.
const CELLS: [CellType; 5] = [CellType::U8, CellType::U16, CellType::U32, CellType::U64, CellType::Span];

/// A program of a header, which names class 0, or of a body, which prints and stores.
pub(crate) fn random_program(random: &mut RandomNumbers, is_header: bool) -> ReadProgram {
    let label = |low, high, text: &str| (low, high, text.as_bytes().into());
    // Records begin where the one before ends: a position is known only if the program itself aligns at first.
    let (entry, align) = (BitPhase::default(), Op::Align { log2: random.below(6) as u8 });
    let mut program = ReadProgram {
        entry,
        registers: REGISTERS as u16,
        tables: vec![ProgramTable { parent: None }],
        literals: vec![b"; ".as_slice().into(), b"a longer piece of text".as_slice().into()],
        labels: vec![
            RangeLabels { signed: false, ranges: vec![label(0, 3, "low"), label(2, 200, "middle")] },
            RangeLabels { signed: true, ranges: vec![label(-5_i64 as u64, 0, "below \"0\""), label(1, 1, "one")] },
        ],
        ..ReadProgram::default()
    };
    let mut maker = ProgramMaker { random, program: &mut program, is_header, table: 0, choices: 0 };
    let mut body = vec![align];
    body.extend(maker.block(2));
    if is_header {
        let id = Reg(0);
        body.extend([Op::Set { to: id, value: 0 }, Op::Out { slot: SLOT_EVENT_CLASS, from: id }]);
        program.tables.clear();
    }
    ReadProgram { body, ..program }
}

struct ProgramMaker<'a> {
    random: &'a mut RandomNumbers,
    program: &'a mut ReadProgram,
    is_header: bool,
    /// The table with the open row.
    table: u16,
    /// Blocks around this one, inside the table's loop, that may be left out.
    choices: usize,
}

impl ProgramMaker<'_> {
    fn below(&mut self, count: usize) -> u64 {
        self.random.below(count) as u64
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    fn register(&mut self) -> Reg {
        Reg(self.below(REGISTERS) as u16)
    }

    fn source(&mut self) -> NumberSource {
        if self.coin() { NumberSource::Constant(self.below(5)) } else { NumberSource::Register(self.register()) }
    }

    fn order(&mut self) -> ByteOrder {
        if self.coin() { ByteOrder::Little } else { ByteOrder::Big }
    }

    fn block(&mut self, depth: u64) -> Vec<Op> {
        (0..1 + self.below(5)).flat_map(|_| self.group(depth)).collect()
    }

    /// Operations that belong together.
    fn group(&mut self, depth: u64) -> Vec<Op> {
        let (to, from) = (self.register(), self.register());
        match self.below(if depth == 0 { 13 } else { 17 }) {
            0 => vec![Op::Align { log2: self.below(6) as u8 }],
            1..=3 => self.reads(),
            4 => vec![Op::Skip { count: self.source(), bits: 1 + self.below(40) }],
            5 => self.bytes(),
            6 => self.text(),
            7 if self.coin() => {
                let bits = self.coin().then_some(from).filter(|bits| *bits != to);
                vec![Op::Align { log2: 3 }, Op::Leb { to, signed: self.coin(), bits }]
            }
            7 if self.is_header => vec![Op::Clock { from, bits: NumberSource::Constant(1 + self.below(70)) }],
            8 => vec![Op::Order { order: self.order() }],
            9 if self.coin() => vec![Op::Out { slot: OutputSlot(3), from }, Op::Load { to, slot: OutputSlot(3) }],
            9 => vec![Op::Set { to, value: self.below(300) }, Op::Copy { to: from, from: to }],
            7 | 10 | 11 => self.print(from),
            12 => self.store(from),
            13 | 14 => self.switch(depth, from),
            15 => {
                let (count, index) = (self.source(), self.coin().then_some(to));
                self.choices += 1;
                let body = self.block(depth - 1);
                self.choices -= 1;
                vec![Op::Repeat { count, index, body }]
            }
            _ => self.list(depth),
        }
    }

    fn reads(&mut self) -> Vec<Op> {
        let mut ops = vec![Op::Need { bits: 0 }];
        let mut bits = 0;
        for _ in 0..1 + self.below(3) {
            let (offset, width) = (bits + self.below(12), 1 + self.below(64) as u8);
            let (to, order) = (self.register(), self.order());
            let (signed, reversed) = (self.coin(), self.below(4) == 0);
            bits = offset + u64::from(width);
            ops.push(Op::Read { to, offset: offset as u32, width, order, signed, reversed });
        }
        ops[0] = Op::Need { bits };
        ops.push(Op::Advance { bits });
        ops
    }

    /// Two different registers.
    fn span(&mut self) -> (Reg, Reg) {
        let start = self.below(REGISTERS) as u16;
        let length = (start + 1 + self.below(REGISTERS - 1) as u16) % REGISTERS as u16;
        (Reg(start), Reg(length))
    }

    fn bytes(&mut self) -> Vec<Op> {
        let (start, length) = self.span();
        let bound = Op::Switch {
            on: length,
            signed: false,
            arms: vec![(vec![(0, 12)], Vec::new())],
            default: Some(vec![Op::Set { to: length, value: 3 }]),
        };
        let mut ops = vec![bound, Op::Align { log2: 3 }, Op::Bytes { start, length: NumberSource::Register(length) }];
        if self.coin() {
            ops.push(Op::Cut { start, length, unit: 1 << self.below(3) });
        }
        ops.extend(self.uses(start, length));
        ops
    }

    fn text(&mut self) -> Vec<Op> {
        let (start, length) = self.span();
        let mut ops = vec![Op::Align { log2: 3 }, Op::Text { start, length, unit: 1 << (self.below(6) / 2) }];
        ops.extend(self.uses(start, length));
        ops
    }

    /// The uses of bytes.
    fn uses(&mut self, start: Reg, length: Reg) -> Vec<Op> {
        if self.is_header {
            return Vec::new();
        }
        let mut ops = Vec::new();
        let encodings = [
            Encoding::Utf8,
            Encoding::Utf8,
            Encoding::Utf16Be,
            Encoding::Utf16Le,
            Encoding::Utf32Be,
            Encoding::Utf32Le,
        ];
        let styles = [TextStyle::Raw, TextStyle::Pretty, TextStyle::Json, TextStyle::Csv];
        match self.below(3) {
            0 => {
                let encoding = encodings[self.random.below(6)];
                let style = styles[self.random.below(4)];
                ops.push(Op::Emit(Emit::Text { start, length, encoding, style }));
            }
            1 => {
                let style = if self.coin() { BytesStyle::Hexadecimal } else { BytesStyle::HexadecimalSpaced };
                ops.push(Op::Emit(Emit::Bytes { start, length, style }));
            }
            _ => {}
        }
        if self.coin() {
            let column = self.column(CellType::Span);
            ops.push(Op::StoreSpan { column, start, length });
        }
        ops
    }

    fn print(&mut self, from: Reg) -> Vec<Op> {
        if self.is_header {
            return Vec::new();
        }
        let (signed, bits, labels) = (self.coin(), 1 + self.below(64) as u8, self.below(2) as u16);
        let integers = [
            IntegerStyle::Decimal,
            IntegerStyle::Grouped,
            IntegerStyle::GroupedHexadecimal,
            IntegerStyle::GroupedOctal,
            IntegerStyle::HexadecimalUpper { bits },
            IntegerStyle::HexadecimalLower { bits },
            IntegerStyle::Octal { bits },
            IntegerStyle::Binary { bits },
            IntegerStyle::Boolean,
            IntegerStyle::YesNo,
        ];
        let reals = [RealStyle::General, RealStyle::Fixed, RealStyle::Json, RealStyle::Shortest];
        let words =
            [LabelStyle::Pretty, LabelStyle::PrettyFlags, LabelStyle::Painted, LabelStyle::Json, LabelStyle::First];
        let style = words[self.random.below(5)];
        vec![Op::Emit(match self.below(8) {
            0 => Emit::Literal(labels),
            1 | 2 => Emit::Integer { from, signed, style: IntegerStyle::Decimal },
            3 | 4 => Emit::Integer { from, signed, style: integers[self.random.below(10)] },
            5 => Emit::Real { from, width: 16 << self.below(3), style: reals[self.random.below(4)] },
            6 => Emit::Label { from, labels, style },
            _ => Emit::Flags { from, labels, style },
        })]
    }

    /// A column of its own in the table that is being filled.
    fn column(&mut self, cell: CellType) -> u16 {
        self.program.columns.push(ProgramColumn { table: self.table, cell, nullable: self.choices > 0 });
        (self.program.columns.len() - 1) as u16
    }

    fn store(&mut self, from: Reg) -> Vec<Op> {
        if self.is_header {
            return Vec::new();
        }
        let cell = CELLS[self.random.below(4)];
        vec![Op::Store { column: self.column(cell), from }]
    }

    fn switch(&mut self, depth: u64, on: Reg) -> Vec<Op> {
        let signed = self.coin();
        self.choices += 1;
        let mut arms = Vec::new();
        for _ in 0..1 + self.below(3) {
            let low = self.below(12) as i64 - if signed { 6 } else { 0 };
            let ranges = vec![(low as u64, (low + self.below(5) as i64) as u64), (100, 100 + self.below(90))];
            arms.push((ranges, self.block(depth - 1)));
        }
        let default = (self.below(4) > 0).then(|| self.block(depth - 1));
        self.choices -= 1;
        vec![Op::Switch { on, signed, arms, default }]
    }

    /// A list with rows of a table of its own as elements.
    fn list(&mut self, depth: u64) -> Vec<Op> {
        if self.is_header || self.choices > 0 && self.table == 0 && self.coin() {
            return Vec::new();
        }
        let (count, column) = (self.source(), self.column(CellType::Span));
        self.program.tables.push(ProgramTable { parent: Some(self.table) });
        let table = (self.program.tables.len() - 1) as u16;
        let outer = (std::mem::replace(&mut self.table, table), std::mem::take(&mut self.choices));
        let from = self.register();
        let mut body = self.block(depth - 1);
        body.extend(self.store(from));
        body.push(Op::Row { table });
        (self.table, self.choices) = outer;
        vec![Op::StoreList { column, table, count }, Op::Repeat { count, index: None, body }]
    }
}
