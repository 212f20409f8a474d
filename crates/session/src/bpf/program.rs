//! A program for a class of events, in the evaluator at first, and as machine code when it has run often.

use kymo_decode::Compile;
use kymo_ir::machine::{BpfMachine, MachineFault, MachineProgram, RunInput};
use kymo_jit::{CompiledProgram, JitEngine};

/// Runs in the evaluator before a program is compiled: about as many as compiling takes the time of.
const COMPILE_AFTER: u32 = 1000;

/// A program that runs for each event.
#[derive(Debug)]
pub(super) struct EventProgram {
    program: MachineProgram,
    compiled: Option<CompiledProgram>,
    /// Runs until it is compiled; none: it has been tried, or is not wanted.
    runs_left: Option<u32>,
}

impl EventProgram {
    pub(super) fn new(program: MachineProgram, compile: Compile) -> Self {
        let runs_left = match compile {
            Compile::Never => None,
            Compile::AtOnce => Some(0),
            Compile::WhenWorthIt => Some(COMPILE_AFTER),
        };
        Self { program, compiled: None, runs_left }
    }

    /// Names of helper functions that it calls.
    pub(super) fn helpers(&self) -> Vec<&'static str> {
        self.program.helpers()
    }

    pub(super) fn run(
        &mut self,
        machine: &mut BpfMachine,
        engine: Option<&JitEngine>,
        input: RunInput<'_>,
    ) -> Result<u64, MachineFault> {
        if self.runs_left == Some(0) {
            let maps: Vec<_> = machine.maps().iter().map(|map| map.definition().clone()).collect();
            self.compiled = engine.and_then(|engine| CompiledProgram::new(engine, &self.program, &maps));
            self.runs_left = None;
        }
        self.runs_left = self.runs_left.map(|runs| runs - 1);
        match &mut self.compiled {
            Some(compiled) => compiled.run(machine, input),
            None => machine.run(&self.program, input),
        }
    }
}
