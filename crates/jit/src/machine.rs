//! Programs of eBPF (`kymo_ir::machine`) as machine code.
//!
//! ```text
//! MachineProgram ── flow: functions, blocks, live registers ── kinds: what pointers point to ── code: Cranelift ──> CompiledProgram
//! run: machine code ── helper functions are calls into the evaluator's ── ends with r0
//!         └── stuck: at an instruction, with the registers ──> the evaluator goes on there, to the end of the function
//! ```
//!
//! Memory is the evaluator's: machine code reads and writes the same bytes, so that the evaluator can go on at any instruction. It does
//! so where machine code does not know what comes: at an access outside of memory, at the limit of steps, at calls too deep. So every
//! fault is named by the evaluator.
//!
//! Addresses of programs are numbers until an access is checked (`access`). An access that is proven to be inside of its piece, whatever
//! the program does, needs no check. Steps are counted for all instructions up to the next jump or call at once.

mod access;
mod code;
mod flow;
mod kinds;
mod lookup;
mod operations;
mod state;

use kymo_ir::machine::native::context_address;
use kymo_ir::machine::{BpfMachine, MachineFault, MachineProgram, MapDefinition, RunInput};

use self::code::{CodeFacts, ProgramPlan};
use self::state::{FunctionTable, StatePointer};
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
    /// Bytes at the end of the stack that it may write.
    stack_written: usize,
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
        let functions = FunctionTable::new(&plan, state.pointer());
        let mut facts = CodeFacts::default();
        for (index, function) in plan.functions.iter().enumerate() {
            let surroundings = (&state, &functions);
            let address =
                engine.compile(6, |builder| code::write(builder, engine, &plan, function, surroundings, &mut facts))?;
            functions.set(index, address);
        }
        let CodeFacts { context_bytes, stack_bytes, writes_stack } = facts;
        let stack_written = if writes_stack { usize::MAX } else { stack_bytes };
        let (program, engine) = (program.clone(), engine.clone());
        Some(Self {
            program,
            functions,
            context_bytes,
            stack_cleared: stack_bytes,
            stack_written,
            state,
            _engine: engine,
        })
    }

    /// The same as [`BpfMachine::run`] with the program.
    ///
    /// # Errors
    ///
    /// As [`BpfMachine::run`].
    pub fn run(&mut self, machine: &mut BpfMachine, input: RunInput<'_>) -> Result<u64, MachineFault> {
        if input.context.len() < self.context_bytes || !self.state.fits(machine) {
            return machine.run(&self.program, input);
        }
        let mut run = machine.begin(&self.program, input, Some(&self.functions), self.stack_cleared);
        run.note_stack_written(self.stack_written);
        self.functions.run_first(&mut run, context_address())
    }
}
