//! The checks of a program without following its paths: sizes, tables, numbers in bounds.

use super::{DEPTH_MAX, NEED_MAX, OPERATIONS_MAX, VerifyErrorKind};
use crate::predicate::{InputKind, PredicateError};
use crate::program::{Block, BoundInputs, CellType, Emit, InputOperand, Op, ReadProgram};
use crate::style::IntegerStyle;

type Checked = Result<(), VerifyErrorKind>;

/// Size, depth and tables.
pub(super) fn check(program: &ReadProgram) -> Checked {
    let mut left = OPERATIONS_MAX;
    measure(&program.body, &mut left, DEPTH_MAX)?;
    bounds("the entry's modulus", u64::from(program.entry.modulus_log2), 0, 63)?;
    bounds("the entry's phase", program.entry.phase, 0, (1 << program.entry.modulus_log2) - 1)?;
    for (index, table) in program.tables.iter().enumerate() {
        let is_sound = match table.parent {
            None => index == 0,
            Some(parent) => usize::from(parent) < index,
        };
        if !is_sound {
            return Err(VerifyErrorKind::Parent { table: index as u16 });
        }
    }
    program.columns.iter().try_for_each(|column| within("table", column.table, program.tables.len()))?;
    program.predicates.iter().try_for_each(|predicate| bound(program, predicate))
}

fn measure(block: &Block, left: &mut usize, depth: usize) -> Checked {
    let depth = depth.checked_sub(1).ok_or(VerifyErrorKind::TooDeep)?;
    *left = left.checked_sub(block.len()).ok_or(VerifyErrorKind::TooLong)?;
    for op in block {
        match op {
            Op::Repeat { body, .. } => measure(body, left, depth)?,
            Op::Switch { arms, default, .. } => {
                arms.iter().map(|(_, block)| block).chain(default).try_for_each(|block| measure(block, left, depth))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether the numbers in an operation name something and lie in their bounds.
pub(super) fn operands(program: &ReadProgram, op: &Op) -> Checked {
    match op {
        Op::Align { log2 } => bounds("the alignment", u64::from(*log2), 0, 32),
        Op::Need { bits } => bounds("the need", *bits, 0, NEED_MAX),
        Op::Read { width, .. } => bounds("the width", u64::from(*width), 1, 64),
        Op::Skip { bits, .. } => bounds("the size of an element", *bits, 1, u64::MAX),
        Op::Text { unit, .. } | Op::Cut { unit, .. } if !matches!(unit, 1 | 2 | 4) => {
            Err(VerifyErrorKind::Bounds { what: "the code unit", found: u64::from(*unit), lowest: 1, highest: 4 })
        }
        Op::Store { column, .. } => cell(program, *column, false),
        Op::StoreSpan { column, .. } => cell(program, *column, true),
        Op::StoreList { column, table, .. } => {
            within("table", *table, program.tables.len())?;
            cell(program, *column, true)
        }
        Op::Row { table } => {
            within("table", *table, program.tables.len())?;
            bounds("the child table", u64::from(*table), 1, u64::from(u16::MAX))
        }
        Op::Emit(emit) => emitted(program, *emit),
        Op::Double { width, .. } if !matches!(width, 16 | 32 | 64) => {
            Err(VerifyErrorKind::Bounds { what: "the width", found: u64::from(*width), lowest: 16, highest: 64 })
        }
        Op::Keep { predicate } => within("predicate", *predicate, program.predicates.len()),
        _ => Ok(()),
    }
}

/// Whether a predicate's inputs are in registers, each of its own kind.
fn bound(program: &ReadProgram, bound: &BoundInputs) -> Checked {
    bound.predicate.verify().map_err(VerifyErrorKind::Predicate)?;
    let inputs = &bound.predicate.inputs;
    if inputs.len() != bound.operands.len() {
        let (index, count) = (inputs.len(), bound.operands.len());
        return Err(VerifyErrorKind::Missing { what: "operand", index, count });
    }
    let registers = usize::from(program.registers);
    for (input, operand) in inputs.iter().zip(&bound.operands) {
        let is_text = matches!(input.kind, InputKind::Text(_));
        let (all, present) = match *operand {
            InputOperand::Number { value, present } if !is_text => ([value; 2], present),
            InputOperand::Text { start, length, present } if is_text => ([start, length], present),
            _ => return Err(VerifyErrorKind::Predicate(PredicateError::Kind)),
        };
        let mut all = all.into_iter().chain(present);
        all.try_for_each(|register| within("register", register.0, registers))?;
    }
    Ok(())
}

fn emitted(program: &ReadProgram, emit: Emit) -> Checked {
    match emit {
        Emit::Literal(literal) => within("literal", literal, program.literals.len()),
        Emit::Label { labels, .. } | Emit::Flags { labels, .. } => within("labels", labels, program.labels.len()),
        Emit::Real { width, .. } if !matches!(width, 16 | 32 | 64) => {
            Err(VerifyErrorKind::Bounds { what: "the width", found: u64::from(width), lowest: 16, highest: 64 })
        }
        Emit::Integer {
            style:
                IntegerStyle::HexadecimalUpper { bits }
                | IntegerStyle::HexadecimalLower { bits }
                | IntegerStyle::Octal { bits }
                | IntegerStyle::Binary { bits },
            ..
        } => bounds("the number of bits", u64::from(bits), 1, 64),
        _ => Ok(()),
    }
}

fn cell(program: &ReadProgram, column: u16, is_span: bool) -> Checked {
    within("column", column, program.columns.len())?;
    let holds_span = program.columns[usize::from(column)].cell == CellType::Span;
    if holds_span == is_span { Ok(()) } else { Err(VerifyErrorKind::Cell { column }) }
}

/// A number below `count`.
pub(super) fn within(what: &'static str, index: u16, count: usize) -> Checked {
    let index = usize::from(index);
    if index < count { Ok(()) } else { Err(VerifyErrorKind::Missing { what, index, count }) }
}

fn bounds(what: &'static str, found: u64, lowest: u64, highest: u64) -> Checked {
    if (lowest..=highest).contains(&found) {
        return Ok(());
    }
    Err(VerifyErrorKind::Bounds { what, found, lowest, highest })
}
