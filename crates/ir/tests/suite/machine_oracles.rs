//! Random programs of eBPF have the same results in the machine, in `rbpf`, and in the kernel, with all instructions.

use kymo_ir::machine::{BpfMachine, MachineProgram, RunInput, RunMoment};
use kymo_probe::KernelProgram;
use kymo_random::RandomNumbers;
use kymo_random::machine::{CONTEXT_BYTES, ProgramOptions, program, text};

/// `r0 = 1; r0 = (s8) r0; exit`, which kernels know since 6.6.
const NEW: [[u8; 8]; 3] = [[0xb7, 0, 0, 0, 1, 0, 0, 0], [0xbf, 0, 8, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];

/// The result of the machine; `None`: it stopped.
fn run(code: &[[u8; 8]], context: &mut [u8]) -> Option<u64> {
    let program = MachineProgram::new(code, &[]).unwrap_or_else(|problem| panic!("{problem}\n{}", text(code)));
    let mut machine = BpfMachine::new(&[]).expect("it has no maps");
    machine.run(&program, RunInput { context, data: &[], moment: &RunMoment::default() }).ok()
}

#[test]
fn random_programs_have_the_results_of_rbpf() {
    let options = ProgramOptions { is_new: false, is_wild: true, has_maps: false };
    let (mut ended, mut stopped) = (0, 0);
    for seed in 0..3000 {
        let random = &mut RandomNumbers::new(seed);
        let code = program(random, options);
        let bytes = code.concat();
        let other = rbpf::EbpfVmRaw::new(Some(&bytes)).unwrap_or_else(|error| panic!("{error:?}\n{}", text(&code)));
        for _ in 0..4 {
            let context = random.bytes(CONTEXT_BYTES);
            let (mut left, mut right) = (context.clone(), context);
            let (found, expected) = (run(&code, &mut left), other.execute_program(&mut right).ok());
            assert_eq!(found, expected, "seed {seed}\n{}", text(&code));
            assert_eq!(left, right);
            if found.is_some() { ended += 1 } else { stopped += 1 }
        }
    }
    println!("{ended} runs came to their end, {stopped} stopped");
    assert!(ended > 6000 && stopped > 200, "{ended} ended, {stopped} stopped: the test has become weak");
}

#[test]
fn random_programs_have_the_results_of_the_kernel() {
    let options = ProgramOptions { is_new: true, is_wild: false, has_maps: false };
    let (mut runs, mut refused) = (0, 0);
    for seed in 0..600 {
        let random = &mut RandomNumbers::new(seed);
        let code = program(random, options);
        let loaded = match KernelProgram::load(&code) {
            Ok(loaded) => loaded,
            Err(error) if error.is_unavailable() => {
                println!("NO BPF HERE: not run ({error})");
                return;
            }
            Err(error) if runs == 0 && KernelProgram::load(&NEW).is_err() => {
                println!("AN OLD KERNEL HERE, WITHOUT SIGN EXTENSION: not run ({error})");
                return;
            }
            // The verifier refuses paths that it cannot follow.
            Err(_) => {
                refused += 1;
                continue;
            }
        };
        for _ in 0..4 {
            let mut context = random.bytes(CONTEXT_BYTES);
            let found = run(&code, &mut context.clone()).expect("it stays inside of its memory");
            let expected = loaded.test_run(&mut context).unwrap_or_else(|error| panic!("{error}\n{}", text(&code)));
            assert_eq!(found as u32, expected, "seed {seed}\n{}", text(&code));
            runs += 1;
        }
    }
    println!("{runs} runs, {refused} programs refused by the kernel");
    assert!(refused < 300, "{refused} of 600 refused: the test has become weak");
}

#[test]
fn any_instructions_run_or_are_refused() {
    let (mut taken, mut ended) = (0, 0);
    for seed in 0..20_000 {
        let random = &mut RandomNumbers::new(seed);
        let mut code = program(random, ProgramOptions { is_new: true, is_wild: true, has_maps: false });
        for _ in 0..random.below(4) {
            let at = random.below(code.len());
            code[at] = random.damaged(&code[at]).first_chunk().copied().unwrap_or(code[at]);
        }
        let Ok(program) = MachineProgram::new(&code, &[]) else { continue };
        taken += 1;
        let mut machine = BpfMachine::new(&[]).expect("it has no maps").with_steps_max(2000);
        let context = &mut random.bytes(CONTEXT_BYTES)[..];
        let result = machine.run(&program, RunInput { context, data: &[], moment: &RunMoment::default() });
        ended += usize::from(result.is_ok());
    }
    println!("{taken} of 20000 programs taken, {ended} came to their end");
    assert!(taken > 5000 && ended > 2000, "{taken} taken, {ended} ended: the test has become weak");
}
