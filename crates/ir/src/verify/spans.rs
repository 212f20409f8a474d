//! Which registers hold bytes of the packet.

use std::collections::{BTreeMap, BTreeSet};

use crate::program::{Block, Emit, NumberSource, Op, Reg};

/// Facts that hold on every path to here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SpanFacts {
    /// (first byte, length): so many bytes are there.
    pairs: BTreeSet<(Reg, Reg)>,
    /// At first byte so many bytes are there.
    fixed: BTreeMap<Reg, u64>,
    /// Registers with a constant.
    constants: BTreeMap<Reg, u64>,
    /// (first byte, length): so many bytes are there, or the length is 0.
    loose: BTreeSet<(Reg, Reg)>,
}

impl SpanFacts {
    pub(super) fn holds(&self, start: Reg, length: Reg) -> bool {
        let fixed = self.fixed.get(&start).zip(self.constants.get(&length));
        self.pairs.contains(&(start, length)) || fixed.is_some_and(|(there, length)| length <= there)
    }

    /// As [`Self::holds`], or the length is 0, with any first byte.
    pub(super) fn holds_loosely(&self, start: Reg, length: Reg) -> bool {
        let is_empty = self.constants.get(&length) == Some(&0);
        is_empty || self.holds(start, length) || self.loose.contains(&(start, length))
    }

    /// The caller makes sure of it.
    pub(super) fn assume_loosely(&mut self, start: Reg, length: Reg) {
        self.loose.insert((start, length));
    }

    /// The register has a new value.
    pub(super) fn forget(&mut self, register: Reg) {
        self.pairs.retain(|&(start, length)| start != register && length != register);
        self.loose.retain(|&(start, length)| start != register && length != register);
        self.fixed.remove(&register);
        self.constants.remove(&register);
    }

    pub(super) fn set(&mut self, to: Reg, value: u64) {
        self.forget(to);
        self.constants.insert(to, value);
    }

    pub(super) fn copy(&mut self, to: Reg, from: Reg) {
        if to == from {
            return;
        }
        self.forget(to);
        let starts: Vec<_> = self.pairs.iter().filter(|pair| pair.0 == from).map(|pair| (to, pair.1)).collect();
        let lengths: Vec<_> = self.pairs.iter().filter(|pair| pair.1 == from).map(|pair| (pair.0, to)).collect();
        self.pairs.extend(starts.into_iter().chain(lengths));
        let starts: Vec<_> = self.loose.iter().filter(|pair| pair.0 == from).map(|pair| (to, pair.1)).collect();
        let lengths: Vec<_> = self.loose.iter().filter(|pair| pair.1 == from).map(|pair| (pair.0, to)).collect();
        self.loose.extend(starts.into_iter().chain(lengths));
        for facts in [&mut self.fixed, &mut self.constants] {
            if let Some(&value) = facts.get(&from) {
                facts.insert(to, value);
            }
        }
    }

    /// `length` bytes from `start` on are there.
    pub(super) fn take(&mut self, start: Reg, length: NumberSource) {
        self.forget(start);
        match length {
            NumberSource::Constant(length) => {
                self.fixed.insert(start, length);
            }
            NumberSource::Register(length) => {
                self.pairs.insert((start, length));
            }
        }
    }

    /// The length became less or stayed.
    pub(super) fn shorten(&mut self, start: Reg, length: Reg) {
        self.constants.remove(&length);
        self.pairs.insert((start, length));
    }

    /// Where two paths meet.
    pub(super) fn join(&mut self, other: &Self) {
        let mut loose: BTreeSet<(Reg, Reg)> = self.loose.union(&other.loose).copied().collect();
        loose.extend(self.pairs.union(&other.pairs));
        loose.retain(|&(start, length)| self.holds_loosely(start, length) && other.holds_loosely(start, length));
        self.loose = loose;
        self.pairs.retain(|pair| other.pairs.contains(pair));
        self.fixed.retain(|start, length| other.fixed.get(start) == Some(length));
        self.constants.retain(|register, value| other.constants.get(register) == Some(value));
    }

    /// Before a loop: registers that its body writes are unknown.
    pub(super) fn forget_written(&mut self, body: &Block) {
        for op in body {
            match op {
                Op::Repeat { index, body, .. } => {
                    index.iter().for_each(|index| self.forget(*index));
                    self.forget_written(body);
                }
                Op::Switch { arms, default, .. } => {
                    arms.iter().map(|(_, block)| block).chain(default).for_each(|block| self.forget_written(block));
                }
                _ => registers(op).1.into_iter().flatten().for_each(|register| self.forget(register)),
            }
        }
    }
}

/// Registers that an operation reads and writes itself, blocks inside not counted.
pub(super) fn registers(op: &Op) -> ([Option<Reg>; 2], [Option<Reg>; 2]) {
    let source = |source: &NumberSource| match source {
        NumberSource::Constant(_) => None,
        NumberSource::Register(register) => Some(*register),
    };
    match op {
        Op::Read { to, .. } | Op::Set { to, .. } | Op::Load { to, .. } => ([None; 2], [Some(*to), None]),
        Op::Skip { count, .. } | Op::StoreList { count, .. } => ([source(count), None], [None; 2]),
        Op::Leb { to, bits, .. } => ([None; 2], [Some(*to), *bits]),
        Op::Text { start, length, .. } => ([None; 2], [Some(*start), Some(*length)]),
        Op::Bytes { start, length } => ([source(length), None], [Some(*start), None]),
        Op::Cut { start, length, .. } => ([Some(*start), Some(*length)], [Some(*length), None]),
        Op::Copy { to, from } => ([Some(*from), None], [Some(*to), None]),
        Op::Out { from, .. } | Op::Store { from, .. } => ([Some(*from), None], [None; 2]),
        Op::Clock { from, bits } => ([Some(*from), source(bits)], [None; 2]),
        Op::Repeat { count, index, .. } => ([source(count), None], [*index, None]),
        Op::Switch { on, .. } => ([Some(*on), None], [None; 2]),
        Op::StoreSpan { start, length, .. } => ([Some(*start), Some(*length)], [None; 2]),
        Op::Emit(emit) => (emitted(*emit), [None; 2]),
        Op::Cycles { to } => ([None; 2], [Some(*to), None]),
        Op::Double { to, from, .. } => ([Some(*from), None], [Some(*to), None]),
        Op::Align { .. }
        | Op::Need { .. }
        | Op::Advance { .. }
        | Op::Order { .. }
        | Op::Row { .. }
        | Op::Keep { .. } => ([None; 2], [None; 2]),
    }
}

fn emitted(emit: Emit) -> [Option<Reg>; 2] {
    match emit {
        Emit::Literal(_) => [None; 2],
        Emit::Integer { from, .. } | Emit::Real { from, .. } | Emit::Label { from, .. } | Emit::Flags { from, .. } => {
            [Some(from), None]
        }
        Emit::Text { start, length, .. } | Emit::Bytes { start, length, .. } => [Some(start), Some(length)],
    }
}
