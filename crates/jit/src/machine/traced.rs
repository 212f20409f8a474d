//! Programs as machine code for traced programs: bytes that the recorder puts there.
//!
//! ```text
//! MachineProgram, maps, image ── compile ──> bytes   fn(state, context, its bytes, stack, steps, arguments) -> r0
//!                                             ├── parts of the context that are plain numbers are moved by the code itself
//!                                             └── calls NativeFunctions of the traced program
//! ```
//!
//! Values of maps lie in memory that other threads change, so that atomic instructions are those of the processor. A program with functions
//! of its own is left to the interpreter.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, MemFlagsData, Value, types};
use kymo_bytecode::object::{ImageMove, ImageMoveKind, NativeFunctions, text_address};
use kymo_ir::machine::{AtomicOperation, MachineProgram, MapDefinition};

use super::code::{self, CodeFacts, FunctionWriter, ProgramPlan};
use super::kinds::{MemoryAccess, MemoryRegion, NumberKind};
use super::operations;
use super::outside::{CodeHome, CodeOutside};
use super::state::state_offset;
use crate::native::{NativeTarget, compile};

/// Things in a traced program that the code of a program refers to.
#[derive(Clone, Copy, Debug)]
pub struct TracedPlaces<'p> {
    /// Its functions.
    pub functions: NativeFunctions,
    /// Offset of each map's first value in the shared memory.
    pub values: &'p [u64],
    /// These fill the context.
    pub moves: &'p [ImageMove],
    /// Bytes of the context.
    pub context_bytes: u32,
}

/// Compiles a program that uses these maps; the code may be copied anywhere in the traced program. `None`: it is left to the interpreter.
#[must_use]
pub fn compile_traced(
    target: &NativeTarget,
    program: &MachineProgram,
    maps: &[MapDefinition],
    places: TracedPlaces<'_>,
) -> Option<Box<[u8]>> {
    let plan = ProgramPlan::new(program.instructions(), maps)?;
    let [function] = plan.functions.as_slice() else { return None };
    let TracedPlaces { functions, values, moves, context_bytes } = places;
    let is_known = functions.words().iter().all(|at| *at != 0);
    if !is_known || !function.has_context || values.len() < maps.len() {
        return None;
    }
    let home = CodeHome::Traced { functions, values, moves, context_bytes };
    let (outside, mut facts) = (CodeOutside { convention: target.convention(), home }, CodeFacts::default());
    let code = compile(target, 6, |builder, arguments| {
        code::write(builder, arguments, (&plan, function), outside, &mut facts);
    });
    // Code that reads beyond the context would be one for another image.
    code.filter(|_| facts.context_bytes <= context_bytes as usize)
}

impl FunctionWriter<'_, '_> {
    /// Fills the context, and finds the shared memory.
    pub(super) fn begin_traced(&mut self, arguments: Value) {
        let CodeHome::Traced { functions, moves, context_bytes, .. } = self.outside.home else { return };
        self.base = self.load_state(state_offset!(base));
        self.context[1] = self.number(context_bytes.into());
        for (number, step) in moves.iter().enumerate() {
            match step.kind {
                ImageMoveKind::Number | ImageMoveKind::Real => self.move_number(arguments, step),
                ImageMoveKind::TextAddress => {
                    let address = self.number(text_address(number));
                    let flags = self.of_program();
                    self.builder.ins().store(flags, address, self.context[0], step.to.cast_signed());
                }
                ImageMoveKind::Text | ImageMoveKind::Numbers | ImageMoveKind::Reals => {
                    let number = self.number(number as u64);
                    self.call_outside(functions.fill, &[self.state, number]);
                }
            }
        }
    }

    fn move_number(&mut self, arguments: Value, step: &ImageMove) {
        let [from, to] = step.bytes.map(operations::integer);
        let (source, flags) = (MemFlagsData::new().with_notrap(), self.of_program());
        let value = if step.kind == ImageMoveKind::Real {
            let single = self.builder.ins().load(types::F32, source, arguments, step.from.cast_signed());
            let double = self.builder.ins().fpromote(types::F64, single);
            self.builder.ins().bitcast(types::I64, MemFlagsData::new(), double)
        } else {
            let value = self.builder.ins().load(from, source, arguments, step.from.cast_signed());
            match (from == to, step.is_signed) {
                (true, _) => value,
                (false, true) => self.builder.ins().sextend(to, value),
                (false, false) => self.builder.ins().uextend(to, value),
            }
        };
        self.builder.ins().store(flags, value, self.context[0], step.to.cast_signed());
    }

    /// Whether an access is to the context or the stack, which other threads do not have.
    pub(super) fn is_own(&self, access: MemoryAccess) -> bool {
        let (NumberKind::Exact { region, .. } | NumberKind::Near(region)) = self.known.of(access.base) else {
            return false;
        };
        matches!(region, MemoryRegion::Context | MemoryRegion::Stack)
    }

    /// Changes a number that other threads may change at the same time.
    pub(super) fn atomic_beside_others(
        &mut self,
        operation: AtomicOperation,
        access: MemoryAccess,
        (from, fetches): (u8, bool),
    ) {
        let (place, bytes) = (self.place(access), access.bytes);
        let is_aligned = self.known.proven(access, self.plan.maps).is_some_and(|(_, at)| at % i64::from(bytes) == 0);
        if !is_aligned && bytes > 1 {
            // The interpreter stops there.
            let (low, zero) = (self.number(u64::from(bytes) - 1), self.number(0));
            let rest = self.builder.ins().band(place, low);
            let is_aligned = self.builder.ins().icmp(IntCC::Equal, rest, zero);
            self.go_on_if(is_aligned);
        }
        let (kind, flags) = (operations::integer(bytes), self.of_program());
        let narrowed = |writer: &mut Self, register: u8| {
            let value = writer.register(register);
            if bytes == 8 { value } else { writer.builder.ins().ireduce(kind, value) }
        };
        let value = narrowed(self, from);
        let change = match operation {
            AtomicOperation::Add => Some(AtomicRmwOp::Add),
            AtomicOperation::Or => Some(AtomicRmwOp::Or),
            AtomicOperation::And => Some(AtomicRmwOp::And),
            AtomicOperation::Xor => Some(AtomicRmwOp::Xor),
            AtomicOperation::Exchange => Some(AtomicRmwOp::Xchg),
            AtomicOperation::CompareExchange => None,
        };
        let before = match change {
            Some(change) => self.builder.ins().atomic_rmw(kind, flags, change, place, value),
            None => {
                let expected = narrowed(self, 0);
                self.builder.ins().atomic_cas(flags, place, expected, value)
            }
        };
        let before = if bytes == 8 { before } else { self.builder.ins().uextend(types::I64, before) };
        match operation {
            AtomicOperation::CompareExchange => self.set(0, before),
            _ if fetches => self.set(from, before),
            _ => {}
        }
    }
}
