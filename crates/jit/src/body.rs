//! Bodies of records: functions that move a position behind the rest of a record, and return
//! whether it is kept.
//!
//! ```text
//! scans without tests   body(base, position, end, slots)           position behind, or -1
//! scans with tests      body(base, position, end, slots, clock)    position behind << 1 | kept, or -1
//! ```

use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use cranelift_frontend::FunctionBuilder;
use kymo_ir::{Op, ReadProgram};

use crate::engine::JitEngine;
use crate::sound;
use crate::translate::{FunctionContext, Translator};

/// A scan's way over the rest of a record, in one word: 0 is not known yet; an odd word a fixed
/// number of bits, and whether such records are dropped; an even one the address of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScanEntry(pub(crate) u64);

impl ScanEntry {
    pub(crate) const COLD: Self = Self(0);
    /// In an odd word: records are dropped.
    pub(crate) const DROPPED: u32 = 1;
    /// In an odd word: where the number of bits begins.
    pub(crate) const BITS: u32 = 2;

    fn fixed(bits: u64, is_kept: bool) -> Self {
        Self(bits << Self::BITS | u64::from(!is_kept) << Self::DROPPED | 1)
    }
}

/// Which records a function keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RecordSelection<'p> {
    All,
    None,
    Test(&'p ReadProgram),
}

/// The result of a body function that is stuck.
pub(crate) const STUCK: i64 = -1;
/// base, position, end, slots
pub(crate) const PARAMETERS: usize = 4;
/// base, position, end, slots, clock
pub(crate) const PARAMETERS_TESTED: usize = 5;
/// Positions stay below, so that they can be shifted.
pub(crate) const POSITION_MAX: u64 = 1 << 61;

/// A body that always takes the same number of bits needs no code.
pub(crate) fn fixed(program: &ReadProgram, is_kept: bool) -> Option<ScanEntry> {
    match program.body[..] {
        [] => Some(ScanEntry::fixed(0, is_kept)),
        [Op::Need { bits: needed }, Op::Advance { bits }] if needed == bits && bits < POSITION_MAX => {
            Some(ScanEntry::fixed(bits, is_kept))
        }
        _ => None,
    }
}

/// Compiles a body for scans without tests; `None` if it is left to the evaluator.
pub(crate) fn compile(engine: &JitEngine, program: &ReadProgram) -> Option<ScanEntry> {
    sound::slots(program)?;
    let address = engine.compile(PARAMETERS, |builder| {
        let (parameters, stuck) = begin(builder);
        let behind = body(builder, program, &parameters, stuck)?;
        builder.ins().return_(&[behind]);
        end(builder, stuck);
        Some(())
    })?;
    Some(ScanEntry(address as u64))
}

/// Compiles a body and the decision whether a record is kept, for scans with tests.
pub(crate) fn compile_tested(
    engine: &JitEngine,
    program: &ReadProgram,
    kept: RecordSelection<'_>,
) -> Option<ScanEntry> {
    sound::slots(program)?;
    if let RecordSelection::Test(test) = kept {
        sound::slots(test)?;
    }
    let address = engine.compile(PARAMETERS_TESTED, |builder| {
        let (parameters, stuck) = begin(builder);
        // The body comes first: its faults are reported first.
        let behind = body(builder, program, &parameters, stuck)?;
        match kept {
            RecordSelection::All => answer(builder, behind, true),
            RecordSelection::None => answer(builder, behind, false),
            RecordSelection::Test(test) => {
                let dropped = builder.create_block();
                tested(builder, test, &parameters, stuck, dropped)?;
                answer(builder, behind, true);
                builder.switch_to_block(dropped);
                answer(builder, behind, false);
            }
        }
        end(builder, stuck);
        Some(())
    })?;
    Some(ScanEntry(address as u64))
}

/// The function's parameters, and where it is stuck.
fn begin(builder: &mut FunctionBuilder<'_>) -> (Vec<Value>, Block) {
    let entry = builder.create_block();
    let stuck = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.set_cold_block(stuck);
    builder.switch_to_block(entry);
    (builder.block_params(entry).to_vec(), stuck)
}

fn end(builder: &mut FunctionBuilder<'_>, stuck: Block) {
    builder.switch_to_block(stuck);
    let nothing = builder.ins().iconst(types::I64, STUCK);
    builder.ins().return_(&[nothing]);
}

fn answer(builder: &mut FunctionBuilder<'_>, behind: Value, is_kept: bool) {
    // Both answers in one register: the loop tests one word, and `STUCK` stays apart from all of
    // them.
    let doubled = builder.ins().ishl_imm_u(behind, 1);
    let answer = if is_kept { builder.ins().bor_imm_u(doubled, 1) } else { doubled };
    builder.ins().return_(&[answer]);
}

fn frame(builder: &mut FunctionBuilder<'_>, parameters: &[Value], stuck: Block) -> FunctionContext {
    let position = builder.declare_var(types::I64);
    builder.def_var(position, parameters[1]);
    FunctionContext { base: parameters[0], end: parameters[2], slots: parameters[3], stuck, position }
}

/// The position behind the body.
fn body(builder: &mut FunctionBuilder<'_>, program: &ReadProgram, parameters: &[Value], stuck: Block) -> Option<Value> {
    let frame = frame(builder, parameters, stuck);
    let mut translator = Translator::new(builder, program, &frame);
    translator.block(&program.body)?;
    Some(translator.position())
}

/// Goes on where the test keeps the record.
fn tested(
    builder: &mut FunctionBuilder<'_>,
    test: &ReadProgram,
    parameters: &[Value],
    stuck: Block,
    dropped: Block,
) -> Option<()> {
    let frame = frame(builder, parameters, stuck);
    let mut translator = Translator::new(builder, test, &frame);
    translator.cycles = Some(parameters[4]);
    translator.dropped = Some(dropped);
    translator.block(&test.body)
}
