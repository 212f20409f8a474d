//! Text operations of a program being written: neighboring literals become one.

use kymo_format::model::{DisplayBase, EnumerationMapping, TextEncoding};
use kymo_ir::{Emit, Encoding, IntegerStyle, Op, RangeLabels};

use crate::builder::ProgramBuilder;

/// Literal text that was not written yet.
#[derive(Debug, Default)]
pub(crate) struct PendingText {
    pending: Vec<u8>,
}

impl PendingText {
    /// Adds literal text.
    pub(crate) fn literal(&mut self, text: impl AsRef<[u8]>) {
        self.pending.extend_from_slice(text.as_ref());
    }

    /// Writes the pending text: before anything that is not literal, and at the edges of blocks.
    pub(crate) fn flush(&mut self, builder: &mut ProgramBuilder) {
        if self.pending.is_empty() {
            return;
        }
        let literal = std::mem::take(&mut self.pending).into_boxed_slice();
        let index = index_of(&mut builder.program.literals, literal);
        builder.push(Op::Emit(Emit::Literal(index)));
    }

    /// Writes an operation that is not literal.
    pub(crate) fn emit(&mut self, builder: &mut ProgramBuilder, emit: Emit) {
        self.flush(builder);
        builder.push(Op::Emit(emit));
    }
}

/// Operations that write literal text at once, for a block of its own.
pub(crate) fn literal_op(builder: &mut ProgramBuilder, text: &[u8]) -> Op {
    Op::Emit(Emit::Literal(index_of(&mut builder.program.literals, text.into())))
}

fn index_of(literals: &mut Vec<Box<[u8]>>, literal: Box<[u8]>) -> u16 {
    let found = literals.iter().position(|known| *known == literal);
    let index = found.unwrap_or_else(|| {
        literals.push(literal);
        literals.len() - 1
    });
    u16::try_from(index).expect("a record has at most 2^16 fields")
}

/// Adds labels to the program.
pub(crate) fn add_labels(builder: &mut ProgramBuilder, mappings: &[EnumerationMapping], signed: bool) -> u16 {
    let (lowest, highest) =
        if signed { (i128::from(i64::MIN), i128::from(i64::MAX)) } else { (0, i128::from(u64::MAX)) };
    let mut labels = RangeLabels { signed, ranges: Vec::new() };
    for mapping in mappings {
        for range in mapping.ranges.iter().filter(|range| range.upper >= lowest && range.lower <= highest) {
            let (low, high) = (range.lower.max(lowest) as u64, range.upper.min(highest) as u64);
            labels.ranges.push((low, high, mapping.label.as_bytes().into()));
        }
    }
    builder.program.labels.push(labels);
    u16::try_from(builder.program.labels.len() - 1).expect("a record has at most 2^16 fields")
}

/// How Babeltrace's `pretty` writes an integer.
pub(crate) fn pretty_style(base: DisplayBase, bits: u8) -> IntegerStyle {
    match base {
        DisplayBase::Decimal => IntegerStyle::Decimal,
        DisplayBase::Hexadecimal => IntegerStyle::HexadecimalUpper { bits },
        DisplayBase::Octal => IntegerStyle::Octal { bits },
        DisplayBase::Binary => IntegerStyle::Binary { bits },
    }
}

/// The same encoding in the words of `ir`.
pub(crate) fn encoding(encoding: TextEncoding) -> Encoding {
    match encoding {
        TextEncoding::Ascii | TextEncoding::Utf8 => Encoding::Utf8,
        TextEncoding::Utf16Be => Encoding::Utf16Be,
        TextEncoding::Utf16Le => Encoding::Utf16Le,
        TextEncoding::Utf32Be => Encoding::Utf32Be,
        TextEncoding::Utf32Le => Encoding::Utf32Le,
    }
}
