//! What rbpf takes for a chain of 50 predicates `u32 field == constant`, all true, on a structure in cache.
//!
//! ```text
//! r2 = *(u32 *)(r1 + 4 * index)      r1 is the structure
//! if r2 != constant goto refuse      fifty times
//! r0 = 1; exit
//! refuse: r0 = 0; exit
//! ```
//!
//! The program is written as instructions, so compiling it is less than a text needs; the time includes rbpf's verifier
//! and the pages that the code is put in. Prints `name<TAB>nanoseconds`. Timed as `bursts.h` does it: the median of bursts.

use rbpf::EbpfVmRaw;
use std::hint::black_box;
use std::time::Instant;

const PREDICATES: u16 = 50;
const BURSTS: usize = 16;

const LOAD_WORD: u8 = rbpf::ebpf::LD_W_REG;
const JUMP_UNEQUAL: u8 = rbpf::ebpf::JNE_IMM;
const MOVE: u8 = rbpf::ebpf::MOV64_IMM;
const EXIT: u8 = rbpf::ebpf::EXIT;

fn main() {
    let program = chain();
    let mut values: Vec<u8> = (0..PREDICATES).flat_map(|index| constant(index).to_le_bytes()).collect();
    let (address, size) = (values.as_mut_ptr(), values.len());
    // SAFETY: rbpf asks for a slice that lives as long as the machine and is borrowed by each call; the calls come one
    // after the other, `values` outlives them all and nobody else looks at it.
    let event = || unsafe { std::slice::from_raw_parts_mut(address, size) };

    let machine = compiled(&program);
    report("rbpf.interpreter.50", 20_000, || {
        assert_eq!(machine.execute_program(black_box(event())).expect("all loads are inside of the event"), 1);
    });
    report("rbpf.native.50", 300_000, || {
        // SAFETY: the interpreter ran the program on the same event, with its checks.
        let accepted = unsafe { machine.execute_program_jit(black_box(event())) };
        assert_eq!(accepted.expect("it is compiled"), 1);
    });
    report("rbpf.compile.50", 2_000, || {
        black_box(compiled(black_box(&program)));
    });
}

fn compiled(program: &[u8]) -> EbpfVmRaw<'_> {
    let mut machine = EbpfVmRaw::new(Some(program)).expect("the program verifies");
    machine.jit_compile().expect("it has a native form");
    machine
}

/// Far apart, so that no two of them make a range; below 2^31, because an immediate is extended by its sign.
fn constant(index: u16) -> u32 {
    1_000_003 * u32::from(index) + 17
}

fn chain() -> Vec<u8> {
    let mut code = Vec::new();
    for index in 0..PREDICATES {
        let left = 2 * (PREDICATES - 1 - index) + 2;
        code.extend(instruction(LOAD_WORD, 0x12, 4 * index, 0));
        code.extend(instruction(JUMP_UNEQUAL, 0x02, left, constant(index)));
    }
    for accepted in [1, 0] {
        code.extend(instruction(MOVE, 0, 0, accepted));
        code.extend(instruction(EXIT, 0, 0, 0));
    }
    code
}

/// `registers`: the source in the upper half, the destination in the lower one.
fn instruction(operation: u8, registers: u8, offset: u16, immediate: u32) -> [u8; 8] {
    let mut bytes = [operation, registers, 0, 0, 0, 0, 0, 0];
    bytes[2..4].copy_from_slice(&offset.to_le_bytes());
    bytes[4..].copy_from_slice(&immediate.to_le_bytes());
    bytes
}

fn report(name: &str, count: u32, mut call: impl FnMut()) {
    let mut burst = || {
        let start = Instant::now();
        (0..count).for_each(|_| call());
        start.elapsed().as_nanos() as f64 / f64::from(count)
    };
    burst();
    let mut taken: Vec<f64> = (0..BURSTS).map(|_| burst()).collect();
    taken.sort_by(f64::total_cmp);
    println!("{name}\t{:.3}", (taken[BURSTS / 2 - 1] + taken[BURSTS / 2]) / 2.0);
}
