//! Bodies of records: functions that move a position behind the rest of a record.

use cranelift_codegen::ir::{InstBuilder, types};
use cranelift_frontend::FunctionBuilder;
use kymo_ir::{Op, Program};

use crate::engine::Engine;
use crate::sound;
use crate::translate::{Frame, Translator};

/// What a scan does with the rest of a record, in one word: 0 is not known yet, an odd word a fixed number of bits,
/// an even one the address of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry(pub(crate) u64);

impl Entry {
    pub(crate) const COLD: Self = Self(0);

    fn fixed(bits: u64) -> Self {
        Self(bits << 1 | 1)
    }
}

/// What a body function returns when it is stuck.
pub(crate) const STUCK: i64 = -1;
/// base, position, end, slots
pub(crate) const PARAMETERS: usize = 4;

/// A body that always takes the same number of bits needs no code.
pub(crate) fn fixed(program: &Program) -> Option<Entry> {
    match program.body[..] {
        [] => Some(Entry::fixed(0)),
        [Op::Need { bits: needed }, Op::Advance { bits }] if needed == bits && bits < 1 << 62 => {
            Some(Entry::fixed(bits))
        }
        _ => None,
    }
}

/// Compiles a body; `None` if it is left to the evaluator.
pub(crate) fn compile(engine: &Engine, program: &Program) -> Option<Entry> {
    sound::slots(program)?;
    let address = engine.compile(PARAMETERS, |builder| write(builder, program))?;
    Some(Entry(address as u64))
}

fn write(builder: &mut FunctionBuilder<'_>, program: &Program) -> Option<()> {
    let entry = builder.create_block();
    let stuck = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.set_cold_block(stuck);
    builder.switch_to_block(entry);
    let &[base, start, end, slots] = builder.block_params(entry) else { return None };
    let position = builder.declare_var(types::I64);
    builder.def_var(position, start);
    let frame = Frame { base, end, slots, stuck, position };
    let mut translator = Translator::new(builder, program, &frame);
    translator.block(&program.body)?;
    let behind = translator.position();
    builder.ins().return_(&[behind]);
    builder.switch_to_block(stuck);
    let nothing = builder.ins().iconst(types::I64, STUCK);
    builder.ins().return_(&[nothing]);
    Some(())
}
