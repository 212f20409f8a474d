//! The walk over all paths.

use super::shape::{operands, within};
use super::spans::{SpanFacts, registers};
use super::{VerifyError, VerifyErrorKind};
use crate::EMPTY_ELEMENTS_MAX;
use crate::program::{BitPhase, Block, BoundInputs, Emit, InputOperand, NumberSource, Op, ReadProgram, Reg};

type Checked = Result<(), VerifyErrorKind>;

/// The knowledge on every path to here.
#[derive(Clone, Debug)]
struct PathFacts {
    phase: BitPhase,
    covered: u64,
    spans: SpanFacts,
    /// A `StoreList` before its loop.
    list: Option<(u16, NumberSource)>,
}

pub(super) struct ProgramVerifier<'a> {
    program: &'a ReadProgram,
    /// The number of the next operation.
    at: usize,
    /// Tables with an open row, the innermost last.
    open: Vec<u16>,
    /// Product of the rounds of enclosing loops that take no bits.
    idle: u64,
    idle_max: u64,
    /// Blocks around.
    depth: usize,
}

impl<'a> ProgramVerifier<'a> {
    /// `idle_max`: rounds of loops inside each other that may take no bits.
    pub(super) fn new(program: &'a ReadProgram, idle_max: u64) -> Self {
        let open = if program.tables.is_empty() { Vec::new() } else { vec![0] };
        Self { program, at: 0, open, idle: 1, idle_max, depth: 0 }
    }

    pub(super) fn run(mut self) -> Result<(), VerifyError> {
        let mut known = PathFacts { phase: self.program.entry, covered: 0, spans: SpanFacts::default(), list: None };
        self.block(&self.program.body, &mut known)
    }

    fn block(&mut self, block: &Block, known: &mut PathFacts) -> Result<(), VerifyError> {
        self.depth += 1;
        let checked = self.operations(block, known);
        self.depth -= 1;
        checked
    }

    fn operations(&mut self, block: &Block, known: &mut PathFacts) -> Result<(), VerifyError> {
        for op in block {
            let at = self.at;
            self.at += 1;
            let located = |kind| VerifyError { at, kind };
            operands(self.program, op).map_err(located)?;
            self.registers_exist(op).map_err(located)?;
            match op {
                Op::Repeat { count, index, body } => self.repeat(at, *count, *index, body, known)?,
                Op::Switch { arms, default, .. } => {
                    if let Some((table, _)) = known.list {
                        return Err(located(VerifyErrorKind::List { table }));
                    }
                    let blocks = arms.iter().map(|(_, block)| block).chain(default);
                    self.switch(blocks, known)?;
                }
                _ => self.op(op, known).map_err(located)?,
            }
        }
        match known.list {
            Some((table, _)) => Err(VerifyError { at: self.at, kind: VerifyErrorKind::List { table } }),
            None => Ok(()),
        }
    }

    fn registers_exist(&self, op: &Op) -> Checked {
        let (reads, writes) = registers(op);
        let count = usize::from(self.program.registers);
        reads.into_iter().chain(writes).flatten().try_for_each(|register| within("register", register.0, count))
    }

    fn op(&mut self, op: &Op, known: &mut PathFacts) -> Checked {
        self.position(op, known)?;
        self.tables(op, known)?;
        match op {
            Op::Cut { start, length, .. }
            | Op::StoreSpan { start, length, .. }
            | Op::Emit(Emit::Text { start, length, .. } | Emit::Bytes { start, length, .. }) => {
                is_span(*start, *length, known)?;
            }
            Op::Keep { .. } if self.depth > 1 => return Err(VerifyErrorKind::InnerKeep),
            Op::Keep { predicate } => {
                for (start, length) in texts(&self.program.predicates[usize::from(*predicate)]) {
                    if !known.spans.holds_loosely(start, length) {
                        return Err(VerifyErrorKind::NoSpan { start: start.0, length: length.0 });
                    }
                }
            }
            _ => {}
        }
        written(op, known)
    }

    /// Checks the position that an operation needs, and notes the knowledge behind it.
    fn position(&self, op: &Op, known: &mut PathFacts) -> Checked {
        match op {
            Op::Need { bits } => known.covered = known.covered.max(*bits),
            Op::Read { offset, width, .. } => covers(known.covered, u64::from(*offset) + u64::from(*width))?,
            Op::Advance { bits } => {
                covers(known.covered, *bits)?;
                known.covered -= bits;
            }
            Op::Leb { .. } | Op::Text { .. } | Op::Bytes { .. } if !known.phase.is_aligned(3) => {
                let BitPhase { modulus_log2, phase } = known.phase;
                return Err(VerifyErrorKind::InsideByte { modulus_log2, phase });
            }
            Op::Leb { .. } | Op::Text { .. } | Op::Bytes { .. } | Op::Skip { .. } | Op::Align { .. } => {
                known.covered = 0;
            }
            _ => {}
        }
        known.phase = known.phase.behind(op);
        Ok(())
    }

    fn tables(&mut self, op: &Op, known: &mut PathFacts) -> Checked {
        let columns = &self.program.columns;
        match op {
            Op::Store { column, .. } | Op::StoreSpan { column, .. } => {
                self.is_open(columns[usize::from(*column)].table)
            }
            Op::StoreList { column, table, count } => {
                let parent = columns[usize::from(*column)].table;
                self.is_open(parent)?;
                if let Some((table, _)) = known.list {
                    return Err(VerifyErrorKind::List { table });
                }
                if self.program.tables[usize::from(*table)].parent != Some(parent) {
                    return Err(VerifyErrorKind::Parent { table: *table });
                }
                known.list = Some((*table, *count));
                Ok(())
            }
            Op::Row { table } if *table != 0 && self.open.last() == Some(table) => {
                self.open.pop();
                Ok(())
            }
            Op::Row { table } => Err(VerifyErrorKind::Closed { table: *table }),
            _ => Ok(()),
        }
    }

    fn is_open(&self, table: u16) -> Checked {
        if self.open.contains(&table) { Ok(()) } else { Err(VerifyErrorKind::Closed { table }) }
    }

    fn repeat(
        &mut self,
        at: usize,
        count: NumberSource,
        index: Option<Reg>,
        body: &Block,
        known: &mut PathFacts,
    ) -> Result<(), VerifyError> {
        let idle = self.idle;
        if least_bits(body) == 0 {
            let rounds = match count {
                NumberSource::Constant(count) => self.idle.saturating_mul(count.max(1)),
                // The evaluator stops each loop by itself after so many rounds; loops inside loops multiply.
                NumberSource::Register(_) => self.idle.saturating_mul(EMPTY_ELEMENTS_MAX),
            };
            self.idle = rounds;
            if rounds > self.idle_max {
                return Err(VerifyError { at, kind: VerifyErrorKind::Idle });
            }
        }
        // The conditions of predicates hold at the head of every round if they hold before and a
        // round leaves them so.
        let kept: Vec<(Reg, Reg)> = self.program.predicates.iter().flat_map(texts).collect();
        let kept: Vec<_> =
            kept.into_iter().filter(|&(start, length)| known.spans.holds_loosely(start, length)).collect();
        known.spans.forget_written(body);
        kept.iter().for_each(|&(start, length)| known.spans.assume_loosely(start, length));
        index.iter().for_each(|index| known.spans.forget(*index));
        known.phase = known.phase.loop_head(body);
        known.covered = 0;
        let list = known.list.take();
        let opened = list.filter(|(_, announced)| *announced == count).map(|(table, _)| table);
        if let Some((table, _)) = list
            && (opened.is_none() || body.iter().filter(|op| **op == Op::Row { table }).count() != 1)
        {
            return Err(VerifyError { at, kind: VerifyErrorKind::List { table } });
        }
        // One `Row` a round, in the body itself: inside it the loop leaves the tables outside as they were.
        let outer = self.open.clone();
        self.open.extend(opened);
        let floor = outer.len();
        let mut inside = known.clone();
        self.block(body, &mut inside)?;
        if let Some((start, length)) = kept.into_iter().find(|pair| !inside.spans.holds_loosely(pair.0, pair.1)) {
            return Err(VerifyError { at, kind: VerifyErrorKind::NoSpan { start: start.0, length: length.0 } });
        }
        if self.open.len() != floor {
            let table = outer.last().copied().unwrap_or(0);
            return Err(VerifyError { at, kind: VerifyErrorKind::Closed { table } });
        }
        self.open = outer;
        self.idle = idle;
        Ok(())
    }

    fn switch<'b>(
        &mut self,
        blocks: impl Iterator<Item = &'b Block>,
        known: &mut PathFacts,
    ) -> Result<(), VerifyError> {
        let before = PathFacts { covered: 0, ..known.clone() };
        let mut moves = false;
        let mut joined: Option<PathFacts> = None;
        for block in blocks {
            let mut inside = PathFacts { list: None, ..before.clone() };
            let open = self.open.clone();
            self.block(block, &mut inside)?;
            if let Some(&table) = open.last().filter(|_| self.open != open) {
                return Err(VerifyError { at: self.at, kind: VerifyErrorKind::Closed { table } });
            }
            moves |= has_movement(block);
            match &mut joined {
                None => joined = Some(inside),
                Some(joined) => {
                    joined.phase = joined.phase.join(inside.phase);
                    joined.spans.join(&inside.spans);
                }
            }
        }
        if let Some(joined) = joined {
            (known.phase, known.spans) = (joined.phase, joined.spans);
        }
        if moves {
            known.covered = 0;
        }
        Ok(())
    }
}

/// Registers that hold texts a predicate asks for: first byte and length.
fn texts(bound: &BoundInputs) -> impl Iterator<Item = (Reg, Reg)> {
    bound.operands.iter().filter_map(|operand| match *operand {
        InputOperand::Text { start, length, .. } => Some((start, length)),
        InputOperand::Number { .. } => None,
    })
}

/// The knowledge about registers behind an operation.
fn written(op: &Op, known: &mut PathFacts) -> Checked {
    let (_, writes) = registers(op);
    if let Some((table, NumberSource::Register(count))) = known.list
        && writes.contains(&Some(count))
    {
        return Err(VerifyErrorKind::List { table });
    }
    let spans = &mut known.spans;
    match op {
        Op::Text { start, length, .. } => {
            differ(*start, NumberSource::Register(*length))?;
            spans.forget(*length);
            spans.take(*start, NumberSource::Register(*length));
        }
        Op::Bytes { start, length } => {
            differ(*start, *length)?;
            spans.take(*start, *length);
        }
        Op::Cut { start, length, .. } => spans.shorten(*start, *length),
        Op::Copy { to, from } => spans.copy(*to, *from),
        Op::Set { to, value } => spans.set(*to, *value),
        _ => writes.into_iter().flatten().for_each(|register| spans.forget(register)),
    }
    Ok(())
}

fn is_span(start: Reg, length: Reg, known: &PathFacts) -> Checked {
    if known.spans.holds(start, length) {
        return Ok(());
    }
    Err(VerifyErrorKind::NoSpan { start: start.0, length: length.0 })
}

fn differ(start: Reg, length: NumberSource) -> Checked {
    if length == NumberSource::Register(start) {
        return Err(VerifyErrorKind::SameRegister { register: start.0 });
    }
    Ok(())
}

fn covers(covered: u64, end: u64) -> Checked {
    if end <= covered { Ok(()) } else { Err(VerifyErrorKind::NotCovered { end, covered }) }
}

fn has_movement(block: &Block) -> bool {
    block.iter().any(|op| match op {
        Op::Align { .. }
        | Op::Advance { .. }
        | Op::Skip { .. }
        | Op::Leb { .. }
        | Op::Text { .. }
        | Op::Bytes { .. } => true,
        Op::Repeat { body, .. } => has_movement(body),
        Op::Switch { arms, default, .. } => arms.iter().map(|(_, block)| block).chain(default).any(has_movement),
        _ => false,
    })
}

/// The least number of bits that every path through a block takes.
fn least_bits(block: &Block) -> u64 {
    let bits = |op: &Op| match op {
        Op::Advance { bits } => *bits,
        Op::Skip { count: NumberSource::Constant(count), bits } => count.saturating_mul(*bits),
        Op::Bytes { length: NumberSource::Constant(length), .. } => length.saturating_mul(8),
        Op::Leb { .. } => 8,
        Op::Text { unit, .. } => u64::from(*unit) * 8,
        Op::Repeat { count: NumberSource::Constant(count), body, .. } => count.saturating_mul(least_bits(body)),
        Op::Switch { arms, default, .. } => {
            arms.iter().map(|(_, block)| block).chain(default).map(least_bits).min().unwrap_or(0)
        }
        _ => 0,
    };
    block.iter().fold(0, |sum, op| sum.saturating_add(bits(op)))
}
