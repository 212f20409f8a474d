//! Random programs of eBPF have the same results in the machine, in `rbpf`, and in the kernel, with all instructions.

use kymo_ir::machine::{BpfMachine, MachineProgram, RunInput, RunMoment};
use kymo_probe::KernelProgram;
use kymo_random::RandomNumbers;

/// Bytes of contexts.
const CONTEXT_BYTES: usize = 128;
/// Bytes of the stack that programs use.
const STACK_BYTES: i16 = 64;

/// Parts of the language that a program may have.
#[derive(Clone, Copy)]
struct ProgramOptions {
    /// Signed division, signed loads and moves, atomic operations, swaps of bytes whatever the machine is.
    is_new: bool,
    /// Places outside of memory, calls of functions, jumps without a condition.
    is_wild: bool,
}

/// `r0 = 1; r0 = (s8) r0; exit`, which kernels know since 6.6.
const NEW: [[u8; 8]; 3] = [[0xb7, 0, 0, 0, 1, 0, 0, 0], [0xbf, 0, 8, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];

/// A program that is being made.
struct RandomProgram<'r> {
    random: &'r mut RandomNumbers,
    options: ProgramOptions,
    code: Vec<[u8; 8]>,
    /// Instructions whose jump leads to the end of the body, or less far.
    jumps: Vec<usize>,
}

fn word(opcode: u8, to: u8, from: u8, offset: i16, constant: i32) -> [u8; 8] {
    let ([o0, o1], [c0, c1, c2, c3]) = (offset.to_le_bytes(), constant.to_le_bytes());
    [opcode, to | from << 4, o0, o1, c0, c1, c2, c3]
}

impl RandomProgram<'_> {
    fn put(&mut self, opcode: u8, to: u8, from: u8, offset: i16, constant: i32) {
        self.code.push(word(opcode, to, from, offset, constant));
    }

    fn register(&mut self) -> u8 {
        self.random.below(9) as u8
    }

    fn constant(&mut self) -> i32 {
        match self.random.below(4) {
            0 => self.random.below(70) as i32 - 3,
            1 => [i32::MIN, i32::MAX, -1, 0, 1, 0xffff][self.random.below(6)],
            _ => self.random.any() as i32,
        }
    }

    /// A place in the stack that a number of so many bytes fits in, aligned.
    fn stack_place(&mut self, bytes: i16) -> i16 {
        let place = -STACK_BYTES + bytes * self.random.below((STACK_BYTES / bytes) as usize) as i16;
        if self.options.is_wild && self.random.below(60) == 0 { place + STACK_BYTES } else { place }
    }

    fn arithmetic(&mut self) {
        let is_wide = self.random.below(2) == 0;
        let class = if is_wide { 0x07 } else { 0x04 };
        let (to, from, constant) = (self.register(), self.register(), self.constant());
        let operation = self.random.below(13) as u8;
        let divides = matches!(operation, 3 | 9);
        let is_signed = i16::from(divides && self.options.is_new && self.random.below(2) == 0);
        match operation {
            8 => self.put(class | 0x80, to, 0, 0, 0),
            // rbpf leaves the upper half of a number alone when its lower half is divided by 0.
            _ if self.random.below(2) == 0 && (is_wide || operation != 9 || self.options.is_new) => {
                self.put(class | operation << 4 | 8, to, from, is_signed, 0);
            }
            6 | 7 | 12 => {
                let bits = self.random.below(if is_wide { 64 } else { 32 }) as i32;
                self.put(class | operation << 4, to, 0, 0, bits);
            }
            _ => {
                let constant = if divides && constant == 0 { 7 } else { constant };
                self.put(class | operation << 4, to, 0, is_signed, constant);
            }
        }
    }

    fn swap(&mut self) {
        let (to, bits) = (self.register(), [16, 32, 64][self.random.below(3)]);
        let opcode = [0xd4, 0xdc, 0xd7][self.random.below(if self.options.is_new { 3 } else { 2 })];
        self.put(opcode, to, 0, 0, bits);
    }

    fn sign_extended_move(&mut self) {
        let (to, from) = (self.register(), self.register());
        let (opcode, kinds) = if self.random.below(2) == 0 { (0xbf, 3) } else { (0xbc, 2) };
        let bits = [8, 16, 32][self.random.below(kinds)];
        self.put(opcode, to, from, bits, 0);
    }

    fn memory(&mut self) {
        let (size, bytes) = [(0x10, 1), (0x08, 2), (0x00, 4), (0x18, 8)][self.random.below(4)];
        let (register, place, constant) = (self.register(), self.stack_place(bytes), self.constant());
        match self.random.below(5) {
            0 => self.put(0x62 | size, 10, 0, place, constant),
            1 => self.put(0x63 | size, 10, register, place, 0),
            2 => {
                let within =
                    CONTEXT_BYTES / bytes as usize + usize::from(self.options.is_wild && self.random.below(30) == 0);
                let place = bytes * self.random.below(within) as i16;
                self.put(0x61 | size, register, 9, place, 0);
            }
            3 if self.options.is_new && bytes < 8 => self.put(0x81 | size, register, 10, place, 0),
            _ => self.put(0x61 | size, register, 10, place, 0),
        }
    }

    fn atomic(&mut self) {
        let (size, bytes) = [(0x00, 4), (0x18, 8)][self.random.below(2)];
        let (from, place) = (self.register(), self.stack_place(bytes));
        let operation = [0, 0x40, 0x50, 0xa0, 0x01, 0x41, 0x51, 0xa1, 0xe1, 0xf1][self.random.below(10)];
        self.put(0xc3 | size, 10, from, place, operation);
    }

    fn jump(&mut self) {
        let relation = [1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13][self.random.below(11)] << 4;
        let class = [0x05, 0x06][self.random.below(2)];
        let (left, right, constant) = (self.register(), self.register(), self.constant());
        // rbpf takes the constant of an unsigned comparison of 64 bits for a positive number; the kernel extends its sign.
        let constant = if self.options.is_new || class == 0x06 { constant } else { constant & i32::MAX };
        self.jumps.push(self.code.len());
        match self.random.below(if self.options.is_wild { 5 } else { 4 }) {
            0 | 1 => self.put(class | relation | 8, left, right, 0, 0),
            4 => self.put(0x05, 0, 0, 0, 0),
            _ => self.put(class | relation, left, 0, 0, constant),
        }
    }

    /// Instructions that come one behind the other, and jumps that lead forward among them.
    fn body(&mut self, count: usize) {
        let begin = self.code.len();
        let mut jumps = 0;
        while self.code.len() < begin + count {
            match self.random.below(16) {
                0..=6 => self.arithmetic(),
                7 => self.swap(),
                8 if self.options.is_new => self.sign_extended_move(),
                9 if self.options.is_new => self.atomic(),
                10 | 11 if jumps < 8 => {
                    self.jump();
                    jumps += 1;
                }
                12 => {
                    let (to, low, high) = (self.register(), self.constant(), self.constant());
                    self.put(0x18, to, 0, 0, low);
                    self.put(0, 0, 0, 0, high);
                }
                _ => self.memory(),
            }
        }
        let end = self.code.len();
        for jump in std::mem::take(&mut self.jumps) {
            let choices: Vec<usize> = (jump + 1..=end).filter(|at| *at == end || self.code[*at][0] != 0).collect();
            let target = choices[self.random.below(choices.len())];
            self.code[jump][2..4].copy_from_slice(&((target - jump - 1) as i16).to_le_bytes());
        }
    }
}

/// A program that ends: it takes numbers from the context, works on them, and its result is of all of them.
fn program(random: &mut RandomNumbers, options: ProgramOptions) -> Vec<[u8; 8]> {
    let count = 1 + random.below(60);
    let mut program = RandomProgram { random, options, code: Vec::new(), jumps: Vec::new() };
    program.put(0xbf, 9, 1, 0, 0);
    for place in (0..STACK_BYTES / 8).map(|number| -8 * (number + 1)) {
        program.put(0x7a, 10, 0, place, 0x1234_5678);
    }
    for register in 0..9_u8 {
        program.put(0x79, register, 9, 8 * i16::from(register), 0);
    }
    program.body(count);
    let mut calls = Vec::new();
    if program.options.is_wild && program.random.below(2) == 0 {
        calls.push(program.code.len());
        program.put(0x85, 0, 1, 0, 0);
    }
    for register in 1..9 {
        program.put(0x27, 0, 0, 0, 31);
        program.put(0x0f, 0, register, 0, 0);
    }
    program.put(0xbf, 1, 0, 0, 0);
    program.put(0x77, 1, 0, 0, 32);
    program.put(0xaf, 0, 1, 0, 0);
    program.put(0x95, 0, 0, 0, 0);
    if let Some(call) = calls.first() {
        let distance = (program.code.len() - call - 1) as i32;
        program.code[*call][4..].copy_from_slice(&distance.to_le_bytes());
        program.body(count / 2 + 1);
        program.put(0x95, 0, 0, 0, 0);
    }
    program.code
}

fn text(code: &[[u8; 8]]) -> String {
    code.iter().enumerate().map(|(at, word)| format!("{at:<4}{word:02x?}\n")).collect()
}

/// The result of the machine; `None`: it stopped.
fn run(code: &[[u8; 8]], context: &mut [u8]) -> Option<u64> {
    let program = MachineProgram::new(code, &[]).unwrap_or_else(|problem| panic!("{problem}\n{}", text(code)));
    let mut machine = BpfMachine::new(&[]).expect("it has no maps");
    machine.run(&program, RunInput { context, data: &[], moment: &RunMoment::default() }).ok()
}

#[test]
fn random_programs_have_the_results_of_rbpf() {
    let options = ProgramOptions { is_new: false, is_wild: true };
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
    let options = ProgramOptions { is_new: true, is_wild: false };
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
        let mut code = program(random, ProgramOptions { is_new: true, is_wild: true });
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
