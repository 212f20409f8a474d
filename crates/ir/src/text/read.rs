//! Text to a program.

use kymo_units::ByteOrder;

use super::words::WordCursor;
use super::{TextError, TextErrorKind, write};
use crate::program::{
    Arm, Block, CellType, Emit, NumberSource, Op, OutputSlot, ProgramColumn, ProgramTable, ReadProgram, Reg,
};
use crate::style::{BytesStyle, Encoding, IntegerStyle, LabelStyle, RangeLabels, RealStyle, TextStyle};
use crate::verify::DEPTH_MAX;

type Result<T> = std::result::Result<T, TextError>;

/// The program that the text means. It may still be one that the verifier refuses.
///
/// # Errors
///
/// The first word that has no meaning.
///
/// ```
/// let program = kymo_ir::text::read("need 8  r0 = read 0 +8 le  advance 8  slot 0 = r0").unwrap();
/// assert_eq!((program.registers, program.body.len()), (1, 4));
/// ```
pub fn read(text: &str) -> Result<ReadProgram> {
    let mut reader = TextReader { words: WordCursor::new(text), program: ReadProgram::default(), depth: 0 };
    reader.declarations()?;
    let body = reader.operations()?;
    if reader.words.peek().is_some() {
        return reader.words.wrong("an operation");
    }
    Ok(ReadProgram { body, ..reader.program })
}

struct TextReader<'t> {
    words: WordCursor<'t>,
    program: ReadProgram,
    /// Blocks that are open.
    depth: usize,
}

impl TextReader<'_> {
    fn declarations(&mut self) -> Result<()> {
        loop {
            if self.words.eat("entry") {
                self.program.entry.modulus_log2 = self.small()?;
                self.program.entry.phase = self.number()?;
            } else if self.words.eat("table") {
                let parent = if self.words.eat("in") { Some(self.small()?) } else { None };
                self.program.tables.push(ProgramTable { parent });
            } else if self.words.eat("column") {
                let (table, cell) = (self.small()?, self.words.take("a cell", cell)?);
                let nullable = self.words.eat("nullable");
                self.program.columns.push(ProgramColumn { table, cell, nullable });
            } else if self.words.eat("labels") {
                let labels = self.labels()?;
                self.program.labels.push(labels);
            } else {
                return Ok(());
            }
        }
    }

    fn labels(&mut self) -> Result<RangeLabels> {
        let mut labels = RangeLabels { signed: self.words.eat("signed"), ranges: Vec::new() };
        while !labels.ranges.is_empty() || self.words.peek().is_some_and(|word| range(word).is_some()) {
            let (lowest, highest) = self.words.take("a range", range)?;
            labels.ranges.push((lowest, highest, self.words.text()?));
            if !self.words.eat(",") {
                break;
            }
        }
        Ok(labels)
    }

    /// Operations up to the first word that begins none.
    fn operations(&mut self) -> Result<Block> {
        let mut block = Block::new();
        while self.words.peek().is_some_and(|word| word != "}") {
            block.push(self.operation()?);
        }
        Ok(block)
    }

    fn braced(&mut self) -> Result<Block> {
        if self.depth == DEPTH_MAX {
            return Err(self.words.error(TextErrorKind::TooDeep));
        }
        self.depth += 1;
        self.words.need("{")?;
        let block = self.operations()?;
        self.words.need("}")?;
        self.depth -= 1;
        Ok(block)
    }

    fn operation(&mut self) -> Result<Op> {
        if self.words.peek().is_some_and(|word| register(word).is_some()) {
            return self.assignment();
        }
        const WORDS: [&str; 15] = [
            "align", "need", "advance", "order", "skip", "cut", "slot", "clock", "repeat", "switch", "store", "span",
            "list", "row", "keep",
        ];
        if self.words.eat("print") {
            return self.print().map(Op::Emit);
        }
        let word = self.words.take("an operation", |word| WORDS.into_iter().find(|known| *known == word))?;
        Ok(match word {
            "align" => {
                let power = |word: &str| number(word).filter(|bits| bits.is_power_of_two());
                Op::Align { log2: self.words.take("a power of two", power)?.trailing_zeros() as u8 }
            }
            "need" => Op::Need { bits: self.number()? },
            "advance" => Op::Advance { bits: self.number()? },
            "order" => Op::Order { order: self.order()? },
            "skip" => {
                let count = self.source()?;
                self.words.need("*")?;
                Op::Skip { count, bits: self.number()? }
            }
            "cut" => Op::Cut { start: self.register()?, length: self.register()?, unit: self.small()? },
            "slot" => {
                let slot = OutputSlot(self.small()?);
                self.words.need("=")?;
                Op::Out { slot, from: self.register()? }
            }
            "clock" => Op::Clock { from: self.register()?, bits: self.source()? },
            "repeat" => {
                let count = self.source()?;
                let index = if self.words.eat("as") { Some(self.register()?) } else { None };
                Op::Repeat { count, index, body: self.braced()? }
            }
            "switch" => self.switch()?,
            "store" => Op::Store { column: self.small()?, from: self.register()? },
            "span" => Op::StoreSpan { column: self.small()?, start: self.register()?, length: self.register()? },
            "list" => Op::StoreList { column: self.small()?, table: self.small()?, count: self.source()? },
            "keep" => Op::Keep { predicate: self.small()? },
            _ => Op::Row { table: self.small()? },
        })
    }

    /// An operation that begins with a register.
    fn assignment(&mut self) -> Result<Op> {
        let to = self.register()?;
        if !self.words.eat("=") {
            let length = self.register()?;
            self.words.need("=")?;
            self.words.need("text")?;
            return Ok(Op::Text { start: to, length, unit: self.small()? });
        }
        if self.words.eat("read") {
            let plus = |word: &str| word.strip_prefix('+').and_then(|word| word.parse().ok());
            let (offset, width) = (self.small()?, self.words.take("+ and a width", plus)?);
            let (order, signed) = (self.order()?, self.words.eat("signed"));
            return Ok(Op::Read { to, offset, width, order, signed, reversed: self.words.eat("reversed") });
        }
        if self.words.eat("leb") {
            let signed = self.words.eat("signed");
            let bits = if self.words.eat("bits") { Some(self.register()?) } else { None };
            return Ok(Op::Leb { to, signed, bits });
        }
        if self.words.eat("bytes") {
            return Ok(Op::Bytes { start: to, length: self.source()? });
        }
        if self.words.eat("cycles") {
            return Ok(Op::Cycles { to });
        }
        if self.words.eat("double") {
            return Ok(Op::Double { to, from: self.register()?, width: self.small()? });
        }
        if self.words.eat("slot") {
            return Ok(Op::Load { to, slot: OutputSlot(self.small()?) });
        }
        Ok(match self.source()? {
            NumberSource::Constant(value) => Op::Set { to, value },
            NumberSource::Register(from) => Op::Copy { to, from },
        })
    }

    fn switch(&mut self) -> Result<Op> {
        let (on, signed) = (self.register()?, self.words.eat("signed"));
        let (mut arms, mut default) = (Vec::<Arm>::new(), None);
        self.words.need("{")?;
        while !self.words.eat("}") {
            if self.words.eat("else") {
                default = Some(self.braced()?);
                self.words.need("}")?;
                break;
            }
            let mut ranges = vec![self.words.take("a range", range)?];
            while self.words.eat(",") {
                ranges.push(self.words.take("a range", range)?);
            }
            arms.push((ranges, self.braced()?));
        }
        Ok(Op::Switch { on, signed, arms, default })
    }

    fn print(&mut self) -> Result<Emit> {
        if self.words.peek().is_some_and(|word| word.starts_with('"')) {
            let text = self.words.text()?;
            return Ok(Emit::Literal(self.literal(text)));
        }
        const WORDS: [&str; 6] = ["integer", "real", "text", "bytes", "label", "flags"];
        let word = self.words.take("what to print", |word| WORDS.into_iter().find(|known| *known == word))?;
        Ok(match word {
            "integer" => {
                Emit::Integer { from: self.register()?, signed: self.words.eat("signed"), style: self.integer_style()? }
            }
            "real" => {
                let (from, width) = (self.register()?, self.small()?);
                let styles = [RealStyle::General, RealStyle::Fixed, RealStyle::Json, RealStyle::Shortest];
                Emit::Real { from, width, style: self.one_of("a style", &styles, write::real_style)? }
            }
            "text" => {
                let (start, length) = (self.register()?, self.register()?);
                let utf16 = [Encoding::Utf16Be, Encoding::Utf16Le];
                let encodings = [&[Encoding::Utf8][..], &utf16, &[Encoding::Utf32Be, Encoding::Utf32Le]].concat();
                let encoding = self.one_of("an encoding", &encodings, write::encoding)?;
                let styles = [TextStyle::Raw, TextStyle::Pretty, TextStyle::Json, TextStyle::Csv];
                Emit::Text { start, length, encoding, style: self.one_of("a style", &styles, write::text_style)? }
            }
            "bytes" => {
                let (start, length) = (self.register()?, self.register()?);
                let styles = [BytesStyle::Hexadecimal, BytesStyle::HexadecimalSpaced];
                Emit::Bytes { start, length, style: self.one_of("a style", &styles, write::bytes_style)? }
            }
            "label" => Emit::Label { from: self.register()?, labels: self.small()?, style: self.label_style()? },
            _ => Emit::Flags { from: self.register()?, labels: self.small()?, style: self.label_style()? },
        })
    }

    fn literal(&mut self, text: Box<[u8]>) -> u16 {
        let literals = &mut self.program.literals;
        let known = literals.iter().position(|known| *known == text);
        known.unwrap_or_else(|| {
            literals.push(text);
            literals.len() - 1
        }) as u16
    }

    fn integer_style(&mut self) -> Result<IntegerStyle> {
        const WORDS: [&str; 10] = [
            "decimal",
            "grouped",
            "grouped-hexadecimal",
            "grouped-octal",
            "boolean",
            "yes-no",
            "upper",
            "lower",
            "octal",
            "binary",
        ];
        let word = self.words.take("a style", |word| WORDS.into_iter().find(|known| *known == word))?;
        Ok(match word {
            "decimal" => IntegerStyle::Decimal,
            "grouped" => IntegerStyle::Grouped,
            "grouped-hexadecimal" => IntegerStyle::GroupedHexadecimal,
            "grouped-octal" => IntegerStyle::GroupedOctal,
            "boolean" => IntegerStyle::Boolean,
            "yes-no" => IntegerStyle::YesNo,
            "upper" => IntegerStyle::HexadecimalUpper { bits: self.small()? },
            "lower" => IntegerStyle::HexadecimalLower { bits: self.small()? },
            "octal" => IntegerStyle::Octal { bits: self.small()? },
            _ => IntegerStyle::Binary { bits: self.small()? },
        })
    }

    fn label_style(&mut self) -> Result<LabelStyle> {
        use LabelStyle::{First, Json, Painted, PaintedFlags, Pretty, PrettyFlags};
        self.one_of("a style", &[Pretty, PrettyFlags, Painted, PaintedFlags, Json, First], write::label_style)
    }

    /// One of several things, by the name that it is written with.
    fn one_of<T: Copy>(&mut self, expected: &'static str, all: &[T], name: fn(T) -> &'static str) -> Result<T> {
        self.words.take(expected, |word| all.iter().copied().find(|one| name(*one) == word))
    }

    fn number(&mut self) -> Result<u64> {
        self.words.take("a number", number)
    }

    fn small<T: TryFrom<u64>>(&mut self) -> Result<T> {
        self.words.take("a small number", |word| number(word).and_then(|value| value.try_into().ok()))
    }

    fn order(&mut self) -> Result<ByteOrder> {
        self.words.take("le or be", |word| match word {
            "le" => Some(ByteOrder::Little),
            "be" => Some(ByteOrder::Big),
            _ => None,
        })
    }

    fn register(&mut self) -> Result<Reg> {
        let register = self.words.take("a register", register)?;
        self.program.registers = self.program.registers.max(register.0 + 1);
        Ok(register)
    }

    fn source(&mut self) -> Result<NumberSource> {
        if self.words.peek().is_some_and(|word| register(word).is_some()) {
            return self.register().map(NumberSource::Register);
        }
        self.words.take("a number or a register", number).map(NumberSource::Constant)
    }
}

fn register(word: &str) -> Option<Reg> {
    let number = word.strip_prefix('r')?.parse().ok()?;
    (number < u16::MAX).then_some(Reg(number))
}

/// A number as registers hold it: those below zero in two's complement.
fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok().or_else(|| word.parse::<i64>().ok().map(|value| value as u64)),
    }
}

fn range(word: &str) -> Option<(u64, u64)> {
    match word.split_once("..=") {
        Some((lowest, highest)) => Some((number(lowest)?, number(highest)?)),
        None => number(word).map(|value| (value, value)),
    }
}

fn cell(word: &str) -> Option<CellType> {
    [CellType::U8, CellType::U16, CellType::U32, CellType::U64, CellType::Span]
        .into_iter()
        .find(|cell| write::cell(*cell) == word)
}
