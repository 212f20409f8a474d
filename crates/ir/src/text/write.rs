//! A program to text.

use std::fmt::{self, Display, Formatter};

use kymo_units::ByteOrder;

use crate::program::{CellType, Emit, NumberSource, Op, ReadProgram, Reg};
use crate::style::{BytesStyle, Encoding, IntegerStyle, LabelStyle, RangeLabels, RealStyle, TextStyle};

impl Display for ReadProgram {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "entry {} {}", self.entry.modulus_log2, self.entry.phase)?;
        for table in &self.tables {
            match table.parent {
                Some(parent) => writeln!(f, "table in {parent}")?,
                None => writeln!(f, "table")?,
            }
        }
        for column in &self.columns {
            let nullable = if column.nullable { " nullable" } else { "" };
            writeln!(f, "column {} {}{nullable}", column.table, cell(column.cell))?;
        }
        for labels in &self.labels {
            write_labels(f, labels)?;
        }
        block(f, self, &self.body, 0)
    }
}

fn write_labels(f: &mut Formatter<'_>, labels: &RangeLabels) -> fmt::Result {
    write!(f, "labels{}", if labels.signed { " signed" } else { "" })?;
    for (index, (lowest, highest, label)) in labels.ranges.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        write!(f, "{comma} {} \"{}\"", RangeText(*lowest, *highest, labels.signed), label.escape_ascii())?;
    }
    writeln!(f)
}

/// Both ends of a range.
struct RangeText(u64, u64, bool);

impl Display for RangeText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let number = |value: u64| if self.2 { (value as i64).to_string() } else { value.to_string() };
        let &Self(lowest, highest, _) = self;
        if lowest == highest {
            return f.write_str(&number(lowest));
        }
        write!(f, "{}..={}", number(lowest), number(highest))
    }
}

impl Display for Reg {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

impl Display for NumberSource {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) => write!(f, "{value}"),
            Self::Register(register) => register.fmt(f),
        }
    }
}

fn block(f: &mut Formatter<'_>, program: &ReadProgram, ops: &[Op], depth: usize) -> fmt::Result {
    ops.iter().try_for_each(|op| {
        write!(f, "{:1$}", "", depth * 2)?;
        operation(f, program, op, depth)
    })
}

/// One operation, up to the end of its line.
fn operation(f: &mut Formatter<'_>, program: &ReadProgram, op: &Op, depth: usize) -> fmt::Result {
    match op {
        Op::Align { log2 } => writeln!(f, "align {}", 1_u64 << log2),
        Op::Need { bits } => writeln!(f, "need {bits}"),
        Op::Read { to, offset, width, order, signed, reversed } => {
            let (order, reversed) = (byte_order(*order), if *reversed { " reversed" } else { "" });
            writeln!(f, "{to} = read {offset} +{width} {order}{}{reversed}", sign(*signed))
        }
        Op::Advance { bits } => writeln!(f, "advance {bits}"),
        Op::Order { order } => writeln!(f, "order {}", byte_order(*order)),
        Op::Skip { count, bits } => writeln!(f, "skip {count} * {bits}"),
        Op::Leb { to, signed, bits } => {
            write!(f, "{to} = leb{}", sign(*signed))?;
            bits.map_or(Ok(()), |bits| write!(f, " bits {bits}"))?;
            writeln!(f)
        }
        Op::Text { start, length, unit } => writeln!(f, "{start} {length} = text {unit}"),
        Op::Bytes { start, length } => writeln!(f, "{start} = bytes {length}"),
        Op::Cut { start, length, unit } => writeln!(f, "cut {start} {length} {unit}"),
        Op::Set { to, value } => writeln!(f, "{to} = {value}"),
        Op::Copy { to, from } => writeln!(f, "{to} = {from}"),
        Op::Load { to, slot } => writeln!(f, "{to} = slot {}", slot.0),
        Op::Out { slot, from } => writeln!(f, "slot {} = {from}", slot.0),
        Op::Clock { from, bits } => writeln!(f, "clock {from} {bits}"),
        Op::Repeat { count, index, body } => {
            write!(f, "repeat {count}")?;
            index.map_or(Ok(()), |index| write!(f, " as {index}"))?;
            braced(f, program, body, depth)
        }
        Op::Switch { on, signed, arms, default } => {
            writeln!(f, "switch {on}{} {{", sign(*signed))?;
            for (ranges, body) in arms {
                let ranges: Vec<String> = ranges.iter().map(|&(a, b)| RangeText(a, b, *signed).to_string()).collect();
                write!(f, "{:2$}{}", "", ranges.join(", "), depth * 2 + 2)?;
                braced(f, program, body, depth + 1)?;
            }
            if let Some(body) = default {
                write!(f, "{:1$}else", "", depth * 2 + 2)?;
                braced(f, program, body, depth + 1)?;
            }
            writeln!(f, "{:1$}}}", "", depth * 2)
        }
        Op::Store { column, from } => writeln!(f, "store {column} {from}"),
        Op::StoreSpan { column, start, length } => writeln!(f, "span {column} {start} {length}"),
        Op::StoreList { column, table, count } => writeln!(f, "list {column} {table} {count}"),
        Op::Row { table } => writeln!(f, "row {table}"),
        Op::Emit(emit) => print(f, program, emit),
        Op::Cycles { to } => writeln!(f, "{to} = cycles"),
        Op::Double { to, from, width } => writeln!(f, "{to} = double {from} {width}"),
        Op::Keep { predicate } => writeln!(f, "keep {predicate}"),
    }
}

fn braced(f: &mut Formatter<'_>, program: &ReadProgram, body: &[Op], depth: usize) -> fmt::Result {
    writeln!(f, " {{")?;
    block(f, program, body, depth + 1)?;
    writeln!(f, "{:1$}}}", "", depth * 2)
}

fn print(f: &mut Formatter<'_>, program: &ReadProgram, emit: &Emit) -> fmt::Result {
    f.write_str("print ")?;
    match *emit {
        Emit::Literal(literal) => match program.literals.get(usize::from(literal)) {
            Some(text) => writeln!(f, "\"{}\"", text.escape_ascii()),
            None => writeln!(f, "literal {literal}"),
        },
        Emit::Integer { from, signed, style } => writeln!(f, "integer {from}{} {}", sign(signed), integer_style(style)),
        Emit::Real { from, width, style } => writeln!(f, "real {from} {width} {}", real_style(style)),
        Emit::Text { start, length, encoding, style } => {
            writeln!(f, "text {start} {length} {} {}", self::encoding(encoding), text_style(style))
        }
        Emit::Bytes { start, length, style } => writeln!(f, "bytes {start} {length} {}", bytes_style(style)),
        Emit::Label { from, labels, style } => writeln!(f, "label {from} {labels} {}", label_style(style)),
        Emit::Flags { from, labels, style } => writeln!(f, "flags {from} {labels} {}", label_style(style)),
    }
}

fn sign(signed: bool) -> &'static str {
    if signed { " signed" } else { "" }
}

fn byte_order(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "le",
        ByteOrder::Big => "be",
    }
}

pub(super) fn cell(cell: CellType) -> &'static str {
    match cell {
        CellType::U8 => "u8",
        CellType::U16 => "u16",
        CellType::U32 => "u32",
        CellType::U64 => "u64",
        CellType::Span => "span",
    }
}

fn integer_style(style: IntegerStyle) -> String {
    match style {
        IntegerStyle::HexadecimalUpper { bits } => format!("upper {bits}"),
        IntegerStyle::HexadecimalLower { bits } => format!("lower {bits}"),
        IntegerStyle::Octal { bits } => format!("octal {bits}"),
        IntegerStyle::Binary { bits } => format!("binary {bits}"),
        IntegerStyle::Decimal => "decimal".into(),
        IntegerStyle::Grouped => "grouped".into(),
        IntegerStyle::GroupedHexadecimal => "grouped-hexadecimal".into(),
        IntegerStyle::GroupedOctal => "grouped-octal".into(),
        IntegerStyle::Boolean => "boolean".into(),
        IntegerStyle::YesNo => "yes-no".into(),
    }
}

pub(super) fn real_style(style: RealStyle) -> &'static str {
    match style {
        RealStyle::General => "general",
        RealStyle::Fixed => "fixed",
        RealStyle::Json => "json",
        RealStyle::Shortest => "shortest",
    }
}

pub(super) fn encoding(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Utf8 => "utf8",
        Encoding::Utf16Be => "utf16be",
        Encoding::Utf16Le => "utf16le",
        Encoding::Utf32Be => "utf32be",
        Encoding::Utf32Le => "utf32le",
    }
}

pub(super) fn text_style(style: TextStyle) -> &'static str {
    match style {
        TextStyle::Raw => "raw",
        TextStyle::Pretty => "pretty",
        TextStyle::Json => "json",
        TextStyle::Csv => "csv",
    }
}

pub(super) fn bytes_style(style: BytesStyle) -> &'static str {
    match style {
        BytesStyle::Hexadecimal => "plain",
        BytesStyle::HexadecimalSpaced => "spaced",
    }
}

pub(super) fn label_style(style: LabelStyle) -> &'static str {
    match style {
        LabelStyle::Pretty => "pretty",
        LabelStyle::PrettyFlags => "pretty-flags",
        LabelStyle::Painted => "painted",
        LabelStyle::PaintedFlags => "painted-flags",
        LabelStyle::Json => "json",
        LabelStyle::First => "first",
    }
}
