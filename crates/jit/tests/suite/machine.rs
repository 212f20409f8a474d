//! Programs of eBPF do the same in machine code as in the evaluator: results, faults and where they are, contexts, maps, records, lines,
//! and the number of steps.

use kymo_ir::machine::{BpfMachine, MachineProgram, STEPS_MAX};
use kymo_jit::{CompiledProgram, JitEngine};
use kymo_random::RandomNumbers;
use kymo_random::machine::{CONTEXT_BYTES, MachineTrial, ProgramOptions, maps, program, text};

/// How many runs came to their end, and how many stopped; `None`: the program is refused.
fn check(engine: &JitEngine, code: &[[u8; 8]], seed: u64, steps_max: u64) -> Option<[usize; 2]> {
    let maps = maps();
    let program = MachineProgram::new(code, &maps).ok()?;
    let mut compiled = CompiledProgram::new(engine, &program, &maps).expect("it is short");
    let random = &mut RandomNumbers::new(seed ^ 1);
    let context_bytes = [CONTEXT_BYTES, CONTEXT_BYTES, CONTEXT_BYTES, 100][random.below(4)];
    let trials = MachineTrial::some(random, 6, context_bytes);
    let machine = BpfMachine::new(&maps).expect("the maps are small").with_steps_max(steps_max);
    let expected = MachineTrial::outcome(&trials, &mut machine.clone(), |machine, input| machine.run(&program, input));
    let found = MachineTrial::outcome(&trials, &mut machine.clone(), |machine, input| compiled.run(machine, input));
    assert_eq!(found, expected, "seed {seed}, {steps_max} steps\n{}", text(code));
    // One machine is used by both in turn.
    let mut turn = 0;
    let mixed = MachineTrial::outcome(&trials, &mut machine.clone(), |machine, input| {
        turn += 1;
        if turn % 2 == 0 { machine.run(&program, input) } else { compiled.run(machine, input) }
    });
    assert_eq!(mixed, expected, "seed {seed}, {steps_max} steps, in turn\n{}", text(code));
    Some([found.ended(), trials.len() - found.ended()])
}

/// Runs of random programs.
fn check_all(seeds: std::ops::Range<u64>, options: ProgramOptions, steps_max: impl Fn(&mut RandomNumbers) -> u64) {
    let Some(engine) = JitEngine::new() else { return eprintln!("NO MACHINE CODE HERE: not run") };
    let (mut all, count) = ([0, 0], seeds.end - seeds.start);
    for seed in seeds {
        let random = &mut RandomNumbers::new(seed);
        let code = program(random, options);
        let steps_max = steps_max(random);
        let found = check(&engine, &code, seed, steps_max).expect("it is a program");
        all = [all[0] + found[0], all[1] + found[1]];
    }
    println!("{} runs came to their end, {} stopped", all[0], all[1]);
    assert!(all.iter().all(|runs| *runs as u64 > count / 4), "{all:?}: the test has become weak");
}

#[test]
fn plain_programs_do_the_same() {
    check_all(0..400, ProgramOptions { is_new: true, is_wild: true, has_maps: false }, |random| {
        30 + random.below(90) as u64
    });
}

#[test]
fn programs_with_maps_do_the_same() {
    check_all(0..1000, ProgramOptions { is_new: true, is_wild: false, has_maps: true }, |_| STEPS_MAX / 100);
    check_all(1000..1500, ProgramOptions { is_new: true, is_wild: true, has_maps: true }, |random| {
        40 + random.below(300) as u64
    });
}

#[test]
fn damaged_programs_do_the_same_or_are_refused() {
    let Some(engine) = JitEngine::new() else { return eprintln!("NO MACHINE CODE HERE: not run") };
    let mut taken = 0;
    for seed in 0..3000 {
        let random = &mut RandomNumbers::new(seed);
        let mut code = program(random, ProgramOptions { is_new: true, is_wild: true, has_maps: true });
        for _ in 0..=random.below(4) {
            let at = random.below(code.len());
            code[at] = random.damaged(&code[at]).first_chunk().copied().unwrap_or(code[at]);
        }
        taken += usize::from(check(&engine, &code, seed, 400).is_some());
    }
    println!("{taken} of 3000 programs taken");
    assert!(taken > 500, "{taken} taken: the test has become weak");
}
