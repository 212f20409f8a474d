//! What the interpreter takes: `cargo run --release -p kymo-bytecode --example interpreter_speed`.
//!
//! Chains of `field == constant` over a structure in the cache, each of which leads to the end where it is false: all true,
//! or the first or last one false; fields all of 32 bits, or of five kinds in turn, so that the next instruction is never
//! of the same operation. Prints `name<TAB>nanoseconds per event`, the median of 15 runs.

use std::hint::black_box;
use std::time::Instant;

use kymo_bytecode::{Condition, Field, Instruction, Kind, Registers, header, validate};

/// Runs of which the median is taken.
const RUNS: usize = 15;
/// Events of a run.
const EVENTS: u32 = 200_000;

/// The constant of a predicate. Every kind of field here can have it, and no two of them make a range.
fn constant(number: u16) -> u16 {
    3 + 577 * number
}

/// The bytes of so many predicates, on fields of these kinds in turn, 8 bytes apart.
fn chain(count: u16, kinds: &[Kind]) -> Vec<u8> {
    let mut bytes = header(8 * u32::from(count), count + 2, 0).to_vec();
    for (number, kind) in (0..count).zip(kinds.iter().cycle()) {
        let field = Field { kind: *kind, offset: 8 * number };
        let condition = Condition::NotEqual(constant(number).into());
        bytes.extend(Instruction::Test { field, condition, skip: count - number }.encode(Registers::default()));
    }
    bytes.extend(Instruction::Keep.encode(Registers::default()));
    bytes.extend(Instruction::Drop.encode(Registers::default()));
    bytes
}

/// The median time of one event.
fn measure(bytes: &[u8], arguments: &[u8], is_kept: bool) -> f64 {
    let program = validate(bytes).expect("the chain is sound");
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..EVENTS {
                let kept = black_box(&program).run(black_box(arguments), &());
                assert_eq!(kept, Ok(is_kept));
            }
            begin.elapsed().as_nanos() as f64 / f64::from(EVENTS)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

fn main() {
    let kind = |bytes, is_signed| Kind::new(bytes, is_signed, false).expect("such integers exist");
    let alike = [kind(4, false)];
    let mixed = [kind(4, false), kind(8, false), kind(4, true), kind(2, false), kind(8, true)];
    for (kinds, prefix) in [(&alike[..], "interpreter"), (&mixed, "interpreter.mixed")] {
        for (count, wrong, suffix) in
            [(1, None, ""), (10, None, ""), (50, None, ""), (50, Some(0), ".first"), (50, Some(49), ".last")]
        {
            let mut arguments: Vec<u8> =
                (0..count).flat_map(|number| u64::from(constant(number)).to_le_bytes()).collect();
            if let Some(field) = wrong {
                arguments[8 * field] ^= 1;
            }
            let time = measure(&chain(count, kinds), &arguments, wrong.is_none());
            println!("{prefix}.{count}{suffix}\t{time:.1}");
        }
    }
}
