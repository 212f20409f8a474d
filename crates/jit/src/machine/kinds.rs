//! Facts about the numbers in registers, known before a program runs.
//!
//! ```text
//! Exact    a pointer into the context, the stack or a value of a map, and how far it is from its begin: accesses need no check
//! Looked   the result of a look-up: a value, or 0 until the program has asked
//! Near     probably such a pointer: accesses are checked against that piece first
//! ```
//!
//! The analysis goes along all ways through a function until nothing changes. Numbers in the function's own stack are followed, too, as
//! long as nothing else may have written there.

use std::collections::BTreeMap;

use kymo_ir::machine::native::{FRAME_BYTES, is_map_lookup, map_address, map_at, may_write_stack};
use kymo_ir::machine::{
    AluOperation, AtomicOperation, BpfMapType, JumpRelation, MachineInstruction, MachineOperand, MapDefinition,
    WideConstant,
};

use super::flow::FunctionFlow;

/// Bytes of a context that are known to be there, at most.
pub(super) const CONTEXT_MAX: i64 = 1 << 16;
/// Numbers of 8 bytes in a function's stack.
const SLOTS: usize = FRAME_BYTES / 8;
/// Distances beyond are not followed.
const DISTANCE_MAX: i64 = 1 << 24;
/// A look-up that is one of several.
const ANY_CALL: usize = usize::MAX;

/// A piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemoryRegion {
    Context,
    /// Distances are from the end of the function's own part.
    Stack,
    /// A value of a map; distances are from its begin.
    Value(u32),
}

/// A fact about a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberKind {
    Unknown,
    Constant(u64),
    Exact { region: MemoryRegion, distance: i64 },
    Looked { map: u32, call: usize },
    Near(MemoryRegion),
}

use NumberKind as N;

/// Facts about numbers at an instruction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KnownNumbers {
    registers: [NumberKind; 11],
    slots: [NumberKind; SLOTS],
}

/// An access to memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryAccess {
    pub(super) base: u8,
    pub(super) offset: i16,
    pub(super) bytes: u8,
    pub(super) is_write: bool,
}

impl KnownNumbers {
    /// At the begin of a function; its first argument may be the context.
    fn at_begin(has_context: bool) -> Self {
        let mut registers = [N::Unknown; 11];
        registers[10] = N::Exact { region: MemoryRegion::Stack, distance: 0 };
        if has_context {
            registers[1] = N::Exact { region: MemoryRegion::Context, distance: 0 };
        }
        Self { registers, slots: [N::Unknown; SLOTS] }
    }

    pub(super) fn of(&self, register: u8) -> NumberKind {
        self.registers[usize::from(register)]
    }

    /// The map with the address in a register.
    pub(super) fn map_in(&self, register: u8) -> Option<u32> {
        match self.of(register) {
            N::Constant(address) => map_at(address).map(|map| map as u32),
            _ => None,
        }
    }

    /// The map in which a helper function looks a key up, if machine code does it without a call.
    pub(super) fn looked_up(&self, number: u32, maps: &[MapDefinition]) -> Option<u32> {
        let map = self.map_in(1).filter(|_| is_map_lookup(number))?;
        let definition = maps.get(map as usize)?;
        let is_written = match definition.map_type {
            BpfMapType::Array | BpfMapType::PerCpuArray => true,
            BpfMapType::Hash => matches!(definition.key_bytes, 1 | 2 | 4 | 8),
            _ => false,
        };
        is_written.then_some(map)
    }

    fn operand(&self, operand: MachineOperand) -> NumberKind {
        match operand {
            MachineOperand::Register(register) => self.of(register),
            MachineOperand::Constant(constant) => N::Constant(i64::from(constant) as u64),
        }
    }

    /// The region in which an access is, and the distance from its begin, if it is certain that it is inside.
    pub(super) fn proven(&self, access: MemoryAccess, maps: &[MapDefinition]) -> Option<(MemoryRegion, i64)> {
        let N::Exact { region, distance } = self.of(access.base) else { return None };
        let begin = distance + i64::from(access.offset);
        let end = begin + i64::from(access.bytes);
        let is_inside = match region {
            MemoryRegion::Context => begin >= 0 && end <= CONTEXT_MAX,
            MemoryRegion::Stack => begin >= -(FRAME_BYTES as i64) && end <= 0,
            MemoryRegion::Value(map) => {
                let map = maps.get(map as usize)?;
                begin >= 0 && end <= map.value_bytes.into() && !(access.is_write && map.is_read_only)
            }
        };
        is_inside.then_some((region, begin))
    }

    fn all(&mut self) -> impl Iterator<Item = &mut NumberKind> {
        self.registers.iter_mut().chain(&mut self.slots)
    }

    /// Takes the facts of another way here; whether fewer are known now.
    fn join(&mut self, other: &Self) -> bool {
        let before = self.clone();
        let others = other.registers.iter().chain(&other.slots);
        for (mine, other) in self.all().zip(others) {
            *mine = joined(*mine, *other);
        }
        *self != before
    }

    /// Goes on behind an instruction that is no jump.
    pub(super) fn step(&mut self, at: usize, instruction: &MachineInstruction, maps: &[MapDefinition]) {
        use MachineInstruction as I;
        match *instruction {
            I::Alu { operation, is_wide, to, from } => {
                let known = self.calculated(operation, is_wide, self.of(to), self.operand(from));
                self.set(to, known);
            }
            I::SignExtend { to, .. } | I::ByteSwap { to, .. } => self.set(to, N::Unknown),
            I::Load { to, base, offset, bytes, .. } => {
                let access = MemoryAccess { base, offset, bytes, is_write: false };
                let known = self.slot(access, maps).map_or(N::Unknown, |slot| self.slots[slot]);
                self.set(to, known);
            }
            I::Store { base, offset, bytes, from } => {
                let access = MemoryAccess { base, offset, bytes, is_write: true };
                let (slot, known) = (self.slot(access, maps), self.operand(from));
                self.forget_written(access, maps);
                if let Some(slot) = slot {
                    self.slots[slot] = known;
                }
            }
            I::Atomic { operation, base, offset, bytes, from, fetches } => {
                self.forget_written(MemoryAccess { base, offset, bytes, is_write: true }, maps);
                match operation {
                    AtomicOperation::CompareExchange => self.set(0, N::Unknown),
                    _ if fetches => self.set(from, N::Unknown),
                    _ => {}
                }
            }
            I::Call { .. } => {
                self.slots = [N::Unknown; SLOTS];
                (0..6).for_each(|register| self.set(register, N::Unknown));
            }
            I::CallHelper { number } => {
                let found = self.found_by(at, number, maps);
                if may_write_stack(number) {
                    self.slots = [N::Unknown; SLOTS];
                }
                self.set(0, found);
            }
            I::LoadConstant { to, value } => self.set(to, constant(value, maps)),
            I::Jump { .. } | I::JumpIf { .. } | I::SecondHalf | I::Absent | I::Exit => {}
        }
    }

    fn set(&mut self, register: u8, known: NumberKind) {
        self.registers[usize::from(register)] = known;
    }

    fn calculated(&self, operation: AluOperation, is_wide: bool, left: NumberKind, right: NumberKind) -> NumberKind {
        match (operation, is_wide, left, right) {
            (AluOperation::Move, true, _, known) => known,
            (AluOperation::Move, false, _, N::Constant(number)) => N::Constant(number & 0xffff_ffff),
            (AluOperation::Add, true, N::Constant(left), N::Constant(right)) => N::Constant(left.wrapping_add(right)),
            (AluOperation::Add, true, pointer, N::Constant(number))
            | (AluOperation::Add, true, N::Constant(number), pointer) => moved(pointer, number as i64),
            (AluOperation::Subtract, true, pointer, N::Constant(number)) => {
                moved(pointer, (number as i64).wrapping_neg())
            }
            (AluOperation::Add, true, left, right) => match (near(left), near(right)) {
                (Some(region), None) | (None, Some(region)) => N::Near(region),
                _ => N::Unknown,
            },
            (AluOperation::Subtract, true, left, right) if near(right).is_none() => {
                near(left).map_or(N::Unknown, N::Near)
            }
            _ => N::Unknown,
        }
    }

    /// The number of 8 bytes in the stack that an access is about.
    fn slot(&self, access: MemoryAccess, maps: &[MapDefinition]) -> Option<usize> {
        let (region, begin) = self.proven(access, maps)?;
        let is_slot = region == MemoryRegion::Stack && access.bytes == 8 && begin % 8 == 0;
        is_slot.then(|| (begin + FRAME_BYTES as i64) as usize / 8)
    }

    /// Numbers in the stack that an access may have written are no longer known.
    fn forget_written(&mut self, access: MemoryAccess, maps: &[MapDefinition]) {
        match self.proven(access, maps) {
            Some((MemoryRegion::Stack, begin)) => {
                let first = (begin + FRAME_BYTES as i64) as usize;
                let last = first + usize::from(access.bytes) - 1;
                self.slots[first / 8..=last / 8].fill(N::Unknown);
            }
            Some(_) => {}
            None => self.slots = [N::Unknown; SLOTS],
        }
    }

    /// The result of a helper function.
    fn found_by(&mut self, at: usize, number: u32, maps: &[MapDefinition]) -> NumberKind {
        let map = self
            .map_in(1)
            .filter(|map| is_map_lookup(number) && maps.get(*map as usize).is_some_and(|map| map.map_type.is_table()));
        let Some(map) = map else { return N::Unknown };
        // An earlier result is another value now.
        for known in self.all() {
            if *known == (N::Looked { map, call: at }) {
                *known = N::Looked { map, call: ANY_CALL };
            }
        }
        N::Looked { map, call: at }
    }

    /// Facts on the way of a jump: where its condition holds, or where it does not.
    fn after_jump(&self, instruction: &MachineInstruction, is_taken: bool) -> Self {
        let mut known = self.clone();
        let MachineInstruction::JumpIf { relation, is_wide: true, left, right, .. } = *instruction else {
            return known;
        };
        if self.operand(right) != N::Constant(0) {
            return known;
        }
        let is_zero = match (relation, is_taken) {
            (JumpRelation::Equal, _) => is_taken,
            (JumpRelation::NotEqual, _) => !is_taken,
            (JumpRelation::Above, true) => false,
            _ => return known,
        };
        if let found @ N::Looked { map, call } = self.of(left) {
            if is_zero {
                known.set(left, N::Constant(0));
                return known;
            }
            let value = N::Exact { region: MemoryRegion::Value(map), distance: 0 };
            if call != ANY_CALL {
                known.all().filter(|known| **known == found).for_each(|known| *known = value);
            }
            known.set(left, value);
        }
        known
    }
}

/// The piece that a pointer probably points into.
fn near(known: NumberKind) -> Option<MemoryRegion> {
    match known {
        N::Exact { region, .. } | N::Near(region) => Some(region),
        N::Looked { map, .. } => Some(MemoryRegion::Value(map)),
        N::Unknown | N::Constant(_) => None,
    }
}

fn moved(pointer: NumberKind, by: i64) -> NumberKind {
    match pointer {
        N::Exact { region, distance } => {
            let distance = distance.checked_add(by).filter(|distance| distance.abs() < DISTANCE_MAX);
            distance.map_or(N::Near(region), |distance| N::Exact { region, distance })
        }
        _ if by == 0 => pointer,
        _ => near(pointer).map_or(N::Unknown, N::Near),
    }
}

fn joined(left: NumberKind, right: NumberKind) -> NumberKind {
    // A value or 0, of which a question about another register tells nothing: that may have come from elsewhere.
    let looked = |known: NumberKind| match known {
        N::Looked { map, .. } | N::Exact { region: MemoryRegion::Value(map), distance: 0 } => Some(map),
        _ => None,
    };
    match (left, right) {
        _ if left == right => left,
        (N::Looked { map, .. }, other) | (other, N::Looked { map, .. }) if looked(other) == Some(map) => {
            N::Looked { map, call: ANY_CALL }
        }
        _ => match (near(left), near(right)) {
            (Some(left), Some(right)) if left == right => N::Near(left),
            _ => N::Unknown,
        },
    }
}

fn constant(value: WideConstant, maps: &[MapDefinition]) -> NumberKind {
    match value {
        WideConstant::Number(number) => N::Constant(number),
        WideConstant::Map(map) => N::Constant(map_address(map)),
        WideConstant::MapValue { map, offset } => {
            let is_array = maps.get(map as usize).is_some_and(|map| map.map_type == BpfMapType::Array);
            let value = N::Exact { region: MemoryRegion::Value(map), distance: offset.into() };
            if is_array { value } else { N::Unknown }
        }
        WideConstant::Function(_) => N::Unknown,
    }
}

/// Facts at the begin of each block of a function; its first argument may be the context.
pub(super) fn known_numbers(
    code: &[MachineInstruction],
    flow: &FunctionFlow,
    maps: &[MapDefinition],
    has_context: bool,
) -> BTreeMap<usize, KnownNumbers> {
    let first = KnownNumbers::at_begin(has_context);
    let (mut found, mut todo) = (BTreeMap::from([(flow.start, first)]), vec![flow.start]);
    while let Some(begin) = todo.pop() {
        let block = &flow.blocks[&begin];
        let mut known = found[&begin].clone();
        for (at, instruction) in code.iter().enumerate().take(block.end).skip(begin) {
            known.step(at, instruction, maps);
        }
        for (way, next) in block.next.iter().enumerate() {
            let behind = known.after_jump(&code[block.end - 1], way == 0);
            let is_changed = match found.get_mut(next) {
                Some(there) => there.join(&behind),
                None => found.insert(*next, behind).is_none(),
            };
            if is_changed && !todo.contains(next) {
                todo.push(*next);
            }
        }
    }
    found
}
