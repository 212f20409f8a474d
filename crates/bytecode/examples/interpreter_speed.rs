//! What the interpreter takes: `cargo run --release -p kymo-bytecode --example interpreter_speed`.
//!
//! Chains of `u32 == constant` over a structure in the cache, as the filter `a0 == 1 && a1 == 2 && ...`: all true, or one
//! of them false. Medians of 15 runs, in nanoseconds per event.

use std::hint::black_box;
use std::time::Instant;

use kymo_bytecode::{Condition, Field, Instruction, Kind, Registers, header, validate};

/// Runs of which the median is taken.
const RUNS: usize = 15;
/// Events of a run.
const EVENTS: u32 = 200_000;

/// The bytes of a chain of predicates on fields of these kinds in turn, 8 bytes apart, that each jump to the end unless
/// their field has its number.
fn chain(count: u16, kinds: &[Kind]) -> Vec<u8> {
    let mut bytes = header(8 * u32::from(count), count + 2, 0).to_vec();
    for (number, kind) in (0..count).zip(kinds.iter().cycle()) {
        let field = Field { kind: *kind, offset: 8 * number };
        let condition = Condition::NotEqual(i128::from(number));
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
    println!("predicates            u32    five kinds in turn");
    let row = |name: &str, count: u16, wrong: Option<usize>| {
        let mut arguments: Vec<u8> = (0..u64::from(count)).flat_map(u64::to_le_bytes).collect();
        if let Some(field) = wrong {
            arguments[8 * field] ^= 1;
        }
        let of = |kinds: &[Kind]| measure(&chain(count, kinds), &arguments, wrong.is_none());
        println!("{name:<16} {:>8.1} ns {:>8.1} ns", of(&alike), of(&mixed));
    };
    row("1 true", 1, None);
    row("10 true", 10, None);
    row("50 true", 50, None);
    row("first of 50 false", 50, Some(0));
    row("last of 50 false", 50, Some(49));
}
