//! Programs of eBPF do the same in machine code as in the evaluator: results, faults and where they are, contexts, maps, records and
//! lines, whatever the limit of steps.

use kymo_ir::machine::{BpfMachine, MachineProgram};
use kymo_jit::{CompiledProgram, JitEngine};
use kymo_random::RandomNumbers;
use kymo_random::machine::{CONTEXT_BYTES, MachineTrial, ProgramOptions, TrialOutcome, maps, program, text};

/// Runs of a program.
const RUNS: usize = 4;

/// The promise for a random program, of which some instructions may be damaged; how many runs came to their end, if it is a program.
///
/// # Panics
///
/// If it is broken.
pub fn hold(random: &mut RandomNumbers) -> Option<usize> {
    let options = ProgramOptions { is_new: true, is_wild: random.below(2) == 0, has_maps: random.below(4) > 0 };
    let mut code = program(random, options);
    for _ in 0..random.below(3) {
        let at = random.below(code.len());
        code[at] = random.damaged(&code[at]).first_chunk().copied().unwrap_or(code[at]);
    }
    let maps = maps();
    let program = MachineProgram::new(&code, &maps).ok()?;
    let machine = BpfMachine::new(&maps).expect("the maps are small").with_steps_max(20 + random.below(500) as u64);
    let trials = MachineTrial::some(random, RUNS, CONTEXT_BYTES);
    Some(same_by_both(&machine, &program, &trials, &text(&code)).ended())
}

/// The outcome of a program in some runs; that of machine code must be the same.
pub(crate) fn same_by_both(
    machine: &BpfMachine,
    program: &MachineProgram,
    trials: &[MachineTrial],
    code: &str,
) -> TrialOutcome {
    let expected = MachineTrial::outcome(trials, &mut machine.clone(), |machine, input| machine.run(program, input));
    let maps: Vec<_> = machine.maps().iter().map(|map| map.definition().clone()).collect();
    let compiled = JitEngine::new().and_then(|engine| CompiledProgram::new(&engine, program, &maps));
    if let Some(mut compiled) = compiled {
        let found = MachineTrial::outcome(trials, &mut machine.clone(), |machine, input| compiled.run(machine, input));
        assert_eq!(found, expected, "{code}");
    }
    expected
}
