//! What the interpreter takes: `cargo run --release -p kymo-bytecode --example interpreter_speed`.
//!
//! Chains of `field == constant` over a structure in the cache, each of which leads to the end where it is false: all true,
//! or the first or last one false; fields all of 32 bits, or of five kinds in turn, so that the next instruction is never
//! of the same operation. And bits of an integer by way of a register, and tests of a text of 16 bytes in a place of 24. Prints `name<TAB>nanoseconds per event`, the median of 15 runs.

use std::hint::black_box;
use std::time::Instant;

use kymo_bytecode::{
    BitwiseOp, Instruction, IntegerCondition, IntegerField, IntegerKind, LiteralBytes, OrderSet, RegisterSet,
    RightOperand, Signs, TextPattern, TextPlace, find_needs, header, validate,
};

/// Runs of which the median is taken.
const RUNS: usize = 15;
/// Events of a run.
const EVENTS: u32 = 200_000;

/// The constant of a predicate. Every kind of field here can have it, and no two of them make a range.
fn constant(number: u16) -> u16 {
    3 + 577 * number
}

/// The bytes of so many predicates, on fields of these kinds in turn, 8 bytes apart.
fn chain(count: u16, kinds: &[IntegerKind]) -> Vec<u8> {
    let mut bytes = header(8 * u32::from(count), count + 2, 0).to_vec();
    for (number, kind) in (0..count).zip(kinds.iter().cycle()) {
        let field = IntegerField { kind: *kind, offset: 8 * number };
        let condition = IntegerCondition::NotEqual(constant(number).into());
        bytes.extend(Instruction::Test { field, condition, skip: count - number }.encode(RegisterSet::default()));
    }
    bytes.extend(Instruction::Keep.encode(RegisterSet::default()));
    bytes.extend(Instruction::Drop.encode(RegisterSet::default()));
    bytes
}

/// The bytes of a program on 8 bytes of arguments and a text of at most 24 behind them, that keeps if it gets there.
fn others() -> [(&'static str, Vec<u8>); 4] {
    let field = IntegerField { kind: IntegerKind::new(4, false, false).expect("such integers exist"), offset: 0 };
    let signs = Signs { left: false, right: false, result: false };
    let (load, four) = (Instruction::Load { to: 0, field }, RightOperand::Constant(4));
    let bits = Instruction::Bits { operation: BitwiseOp::And, to: 0, left: 0, right: four, skip: 0 };
    let zero = RightOperand::Constant(0);
    let compare = Instruction::Compare { left: 0, right: zero, signs, orders: OrderSet::EQUAL, skip: 1 };
    let text = Instruction::LoadText { to: 0, place: TextPlace::Inline { offset: 8, capacity: 24 } };
    let test = |pattern| [text, Instruction::TestText { text: 0, pattern, jumps_if: false, skip: 1 }];
    [
        ("registers", linked(&[load, bits, compare])),
        ("text.is", linked(&test(TextPattern::Is(LiteralBytes { offset: 0, length: 16 })))),
        ("text.begins", linked(&test(TextPattern::Begins(LiteralBytes { offset: 0, length: 7 })))),
        ("text.like", linked(&test(TextPattern::Like { offset: 16, parts: 3 }))),
    ]
}

/// The text of the arguments, then the parts of `*klmn*`.
const CONSTANTS: &[u8] = b"abcdefghijklmnop\0\0\x04\0klmn\0\0";

fn linked(instructions: &[Instruction]) -> Vec<u8> {
    let all = [instructions, &[Instruction::Keep, Instruction::Drop]].concat();
    let mut needs = vec![RegisterSet::default(); all.len()];
    find_needs(&all, &mut needs);
    let mut bytes = header(32, all.len() as u16, CONSTANTS.len() as u32).to_vec();
    bytes.extend(all.iter().zip(needs).flat_map(|(instruction, needs)| instruction.encode(needs)));
    bytes.extend(CONSTANTS);
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
    let kind = |bytes, is_signed| IntegerKind::new(bytes, is_signed, false).expect("such integers exist");
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
    let arguments = [&[4; 8][..], &CONSTANTS[..16], &[0; 8]].concat();
    for (name, bytes) in others() {
        println!("interpreter.{name}\t{:.1}", measure(&bytes, &arguments, true));
    }
}
