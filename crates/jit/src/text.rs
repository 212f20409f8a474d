//! Programs that print: one function per program, one call per record.
//!
//! ```text
//! out ──┬──────────────┬─────────┬──> memory
//!       │ room for all │ fixed   │    `limit` leaves room for every literal and number of the program, so that
//!       │ text so far  │ reserve │    only text from the packet and rounds of loops look whether it fits
//!       └──────────────┴─────────┘
//!                    limit      end
//! ```

use cranelift_codegen::ir::{InstBuilder, types};
use cranelift_frontend::FunctionBuilder;
use kymo_ir::{Emit, Op, PacketWindow, ReadProgram, ReadState};

use crate::engine::JitEngine;
use crate::sound;
use crate::translate::{FunctionContext, TextOutput, Translator, trusted};

/// A compiled program that prints. May be used by several threads at once.
#[derive(Debug)]
pub struct CompiledText {
    /// Keeps the code alive.
    _engine: JitEngine,
    address: usize,
    /// Machine code refers to its operations and tables, so it must not move.
    _program: Box<ReadProgram>,
    reserve: usize,
    slots: usize,
}

/// The values that the machine code reads and writes.
#[repr(C)]
struct TextArguments {
    base: usize,
    end: u64,
    position: u64,
    slots: *mut u64,
    out: usize,
    limit: usize,
}

macro_rules! offset {
    ($field:ident) => {
        std::mem::offset_of!(TextArguments, $field) as i32
    };
}

/// Bytes that a number or a short word takes at most; stores of literals may reach 8 bytes too far.
const PIECE_BYTES: usize = 80;
/// Memory that is asked for when the text does not fit.
const MORE_BYTES: usize = 64 << 10;
const DONE: i64 = 0;
const STUCK: i64 = 1;

impl CompiledText {
    /// Compiles a program; `None` if it is left to the evaluator.
    #[must_use]
    pub fn new(engine: &JitEngine, program: ReadProgram) -> Option<Self> {
        let slots = sound::slots(&program)?;
        let program = Box::new(program);
        let address = engine.compile(1, |builder| write(builder, engine, &program))?;
        let reserve = reserve(&program, &program.body) + PIECE_BYTES;
        Some(Self { _engine: engine.clone(), address, _program: program, reserve, slots })
    }

    /// Appends the text of the record at `position`, as [`kymo_ir::eval::emit`] does; false, and nothing is
    /// appended, if the record must be left to the evaluator.
    ///
    /// # Panics
    ///
    /// If the position lies outside of the window, or the state has too few slots.
    #[must_use]
    pub fn run(&self, window: PacketWindow<'_>, position: u64, state: &mut ReadState, out: &mut Vec<u8>) -> bool {
        sound::check(window, &[position], &state.slots, self.slots);
        let mut room = self.reserve + 512;
        loop {
            out.reserve(room);
            let start = out.as_mut_ptr() as usize;
            let mut arguments = TextArguments {
                base: (window.bytes().as_ptr() as usize).wrapping_sub(window.origin() as usize),
                end: window.end(),
                position,
                slots: state.slots.as_mut_ptr(),
                out: start + out.len(),
                limit: start + out.capacity() - self.reserve,
            };
            // SAFETY: `address` is a function of this type that the engine, which this holds, compiled from the program
            // that this holds and that the verifier accepted. It reads the window's bytes from `position`, which lies inside,
            // up to `end` and `SLACK` more, which `PacketWindow` promises, and slots, of which there are enough. It
            // writes from `out` on, text only below `limit`, and the fixed pieces of the program at most `reserve`
            // bytes further, which lie inside the vector's capacity.
            #[allow(unsafe_code)]
            let stop = unsafe {
                let function: extern "C" fn(*mut TextArguments) -> i64 = std::mem::transmute(self.address);
                function(&raw mut arguments)
            };
            match stop {
                DONE => {
                    // SAFETY: the function wrote every byte from the old end up to `out`, inside the capacity.
                    #[allow(unsafe_code)]
                    unsafe {
                        out.set_len(arguments.out - start);
                    }
                    return true;
                }
                STUCK => return false,
                _ => room = room * 2 + MORE_BYTES,
            }
        }
    }
}

/// Bytes that the fixed pieces of a block take at most, loops counted once.
fn reserve(program: &ReadProgram, block: &[Op]) -> usize {
    let of = |op: &Op| match op {
        Op::Emit(Emit::Literal(literal)) => program.literals[usize::from(*literal)].len() + 8,
        Op::Emit(_) => PIECE_BYTES,
        Op::Repeat { body, .. } => reserve(program, body),
        Op::Switch { arms, default, .. } => {
            let arms = arms.iter().map(|(_, block)| reserve(program, block)).sum::<usize>();
            arms + default.as_ref().map_or(0, |block| reserve(program, block))
        }
        _ => 0,
    };
    block.iter().map(of).sum()
}

fn write(builder: &mut FunctionBuilder<'_>, engine: &JitEngine, program: &ReadProgram) -> Option<()> {
    let entry = builder.create_block();
    let (stuck, full) = (builder.create_block(), builder.create_block());
    builder.append_block_params_for_function_params(entry);
    builder.set_cold_block(stuck);
    builder.set_cold_block(full);
    builder.switch_to_block(entry);
    let arguments = builder.block_params(entry)[0];
    let mut load = |offset: i32| builder.ins().load(types::I64, trusted(), arguments, offset);
    let (base, end, slots, limit) =
        (load(offset!(base)), load(offset!(end)), load(offset!(slots)), load(offset!(limit)));
    let (start, out) = (load(offset!(position)), load(offset!(out)));
    let position = builder.declare_var(types::I64);
    builder.def_var(position, start);
    let cursor = builder.declare_var(types::I64);
    builder.def_var(cursor, out);
    let frame = FunctionContext { base, end, slots, stuck, position };
    let mut translator = Translator::new(builder, program, &frame);
    translator.out = Some(TextOutput { cursor, limit, full, program, engine });
    translator.block(&program.body)?;
    let behind = builder.use_var(cursor);
    builder.ins().store(trusted(), behind, arguments, offset!(out));
    for (block, code) in [(None, DONE), (Some(stuck), STUCK), (Some(full), STUCK + 1)] {
        if let Some(block) = block {
            builder.switch_to_block(block);
        }
        let code = builder.ins().iconst(types::I64, code);
        builder.ins().return_(&[code]);
    }
    Some(())
}
