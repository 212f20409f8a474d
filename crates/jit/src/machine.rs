//! Programs of eBPF (`kymo_ir::machine`) as machine code.
//!
//! ```text
//! MachineProgram ── flow: functions, blocks, live registers ── kinds: facts about pointers ── code: Cranelift ──> CompiledProgram
//! run: machine code ── helper functions are calls into the evaluator's ── ends with r0
//!         └── stuck: at an instruction, with the registers ──> the evaluator goes on there, to the end of the function
//! ```
//!
//! Memory is the evaluator's: machine code reads and writes the same bytes, so that the evaluator can go on at any instruction. It does
//! so where machine code has no answer: at an access outside of memory, at the limit of steps, at calls too deep. So every
//! fault is named by the evaluator.
//!
//! Addresses of programs are numbers until an access is checked (`access`). An access that is proven to be inside of its piece needs no
//! check. Steps are counted for all instructions up to the next jump or call at once.

mod access;
mod code;
mod flow;
mod kinds;
mod lookup;
mod operations;
mod outside;
mod state;
mod traced;

use kymo_ir::machine::{BpfMachine, MachineFault, MachineProgram, MapDefinition, RunInput};

use self::code::{CodeFacts, ProgramPlan};
use self::outside::{CodeHome, CodeOutside};
use self::state::{FunctionTable, StatePointer};
pub use self::traced::{TracedPlaces, compile_traced};
use crate::engine::JitEngine;

/// A program of eBPF as machine code.
#[derive(Debug)]
pub struct CompiledProgram {
    program: MachineProgram,
    functions: FunctionTable,
    /// Bytes of a context that accesses without a check need.
    context_bytes: usize,
    /// Bytes at the end of the stack that machine code clears.
    stack_cleared: usize,
    /// It may write anywhere in the stack.
    writes_stack: bool,
    state: StatePointer,
    /// Keeps the code alive.
    _engine: JitEngine,
}

impl CompiledProgram {
    /// Compiles a program that uses these maps; `None` if it is left to the evaluator.
    #[must_use]
    pub fn new(engine: &JitEngine, program: &MachineProgram, maps: &[MapDefinition]) -> Option<Self> {
        let plan = ProgramPlan::new(program.instructions(), maps)?;
        let state = StatePointer::new(&plan.used, maps);
        let functions = FunctionTable::new(plan.starts(), plan.habits(), state.pointer());
        let mut facts = CodeFacts::default();
        for (index, function) in plan.functions.iter().enumerate() {
            let home = CodeHome::Here { rows: state.rows(), functions: &functions };
            let outside = CodeOutside { convention: engine.convention(), home };
            let address = engine.compile(6, |builder| {
                let entry = builder.create_block();
                builder.append_block_params_for_function_params(entry);
                builder.switch_to_block(entry);
                let arguments = builder.block_params(entry).to_vec();
                code::write(builder, &arguments, (&plan, function), outside, &mut facts);
                Some(())
            })?;
            functions.set(index, address);
        }
        let CodeFacts { context_bytes, stack_bytes, writes_stack } = facts;
        let (program, engine) = (program.clone(), engine.clone());
        Some(Self {
            program,
            functions,
            context_bytes,
            stack_cleared: stack_bytes,
            writes_stack,
            state,
            _engine: engine,
        })
    }

    /// The same as [`BpfMachine::run`] with the program.
    ///
    /// # Errors
    ///
    /// As [`BpfMachine::run`].
    // It is part of its caller, so that arguments are not stored and loaded again: that takes longer than a short program.
    #[inline]
    pub fn run(&mut self, machine: &mut BpfMachine, mut input: RunInput<'_>) -> Result<u64, MachineFault> {
        if input.context.len() < self.context_bytes || !self.state.is_known(machine) {
            return self.run_otherwise(machine, input);
        }
        self.run_code(machine, &mut input, true)
    }

    #[inline]
    fn run_code(
        &mut self,
        machine: &mut BpfMachine,
        input: &mut RunInput<'_>,
        is_known: bool,
    ) -> Result<u64, MachineFault> {
        let stack = machine.prepare_stack(self.stack_cleared);
        if self.writes_stack {
            machine.note_stack_written(usize::MAX);
        }
        self.functions.run_first(&self.program, machine, input, stack, is_known)
    }

    /// Runs it after its maps have been found, or in the evaluator.
    #[inline(never)]
    fn run_otherwise(&mut self, machine: &mut BpfMachine, mut input: RunInput<'_>) -> Result<u64, MachineFault> {
        if input.context.len() < self.context_bytes || !self.state.fits(machine) {
            return machine.run(&self.program, input);
        }
        let result = self.run_code(machine, &mut input, false);
        self.state.forget_cpu_values();
        result
    }
}
