//! Scans with tests find the records that the tests keep, whether the evaluator or machine code asks.
//!
//! ```text
//! record    id u8, then of each input:  is it there, u8?   integer 64 bits   real 64 or 32 bits   text: length u8, bytes
//! class 0   every record is found       class 1  none is       class 2  those that the test keeps
//! class 3   those that it keeps, and the body takes a fixed number of bits
//! ```

use std::sync::Arc;

use kymo_ir::predicate::{Datum, InputClass, InputKind, Predicate};
use kymo_ir::{
    BitPhase, BoundInputs, ClassTest, InputOperand, NumberSource, Op, PacketWindow, ReadProgram, ReadState, Records,
    Reg, SLACK, SLOT_EVENT_CLASS, ScanPlan, ScanStop, eval, verify,
};
use kymo_jit::{JitEngine, Scan};
use kymo_random::RandomNumbers;
use kymo_random::predicates::{PredicateOptions, event, predicate};
use kymo_units::ByteOrder;
use proptest::prelude::*;

const ALIGNED: BitPhase = BitPhase { modulus_log2: 3, phase: 0 };
/// Registers of each input: value or first byte, length, whether it is there, and one to spare.
const REGISTERS: u16 = 4;

fn read(to: Reg, width: u8, signed: bool, advance: u64) -> Vec<Op> {
    let read = Op::Read { to, offset: 0, width, order: ByteOrder::Little, signed, reversed: false };
    vec![Op::Need { bits: advance }, read, Op::Advance { bits: advance }]
}

/// Reads the event record's inputs, each into its registers.
fn reads(inputs: &[InputClass], singles: &[bool]) -> (Vec<Op>, Vec<InputOperand>) {
    let (mut body, mut operands) = (Vec::new(), Vec::new());
    for (number, input) in inputs.iter().enumerate() {
        let [value, length, there, spare] = [0, 1, 2, 3].map(|register| Reg(number as u16 * REGISTERS + register));
        let present = input.optional.then_some(there);
        let (field, operand) = match input.kind {
            InputKind::Integer { signed, bits } => {
                (read(value, bits, signed, 64), InputOperand::Number { value, present })
            }
            InputKind::Real => {
                let width = if singles[number] { 32 } else { 64 };
                let mut field = read(spare, width, false, u64::from(width));
                field.push(Op::Double { to: value, from: spare, width });
                (field, InputOperand::Number { value, present })
            }
            InputKind::Text(_) => {
                let mut field = read(length, 8, false, 8);
                field.push(Op::Bytes { start: value, length: NumberSource::Register(length) });
                (field, InputOperand::Text { start: value, length, present })
            }
        };
        operands.push(operand);
        if input.optional {
            body.extend([Op::Set { to: value, value: 0 }, Op::Set { to: length, value: 0 }]);
            body.extend(read(there, 8, false, 8));
            let arms = vec![(vec![(1, 1)], field)];
            body.push(Op::Switch { on: there, signed: false, arms, default: Some(Vec::new()) });
        } else {
            body.extend(field);
        }
    }
    (body, operands)
}

/// A record's bytes behind its id.
fn record(predicate: &Predicate, event: &[Datum], singles: &[bool]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, input) in predicate.inputs.iter().enumerate() {
        if input.optional {
            bytes.push(u8::from(event[number] != Datum::Missing));
        }
        match &event[number] {
            Datum::Missing => {}
            Datum::Number(bits) if input.kind == InputKind::Real && singles[number] => {
                bytes.extend((f64::from_bits(*bits) as f32).to_le_bytes());
            }
            Datum::Number(bits) => bytes.extend(bits.to_le_bytes()),
            Datum::Text(text) => {
                bytes.push(text.len() as u8);
                bytes.extend(&**text);
            }
        }
    }
    bytes
}

/// What a record can hold of an event.
fn cut(predicate: &Predicate, singles: &[bool], event: &mut [Datum]) {
    for (number, datum) in event.iter_mut().enumerate() {
        match datum {
            Datum::Number(bits) if predicate.inputs[number].kind == InputKind::Real && singles[number] => {
                *bits = f64::from(f64::from_bits(*bits) as f32).to_bits();
            }
            Datum::Text(text) => *text = text[..text.len().min(255)].into(),
            _ => {}
        }
    }
}

fn plan(predicate: &Predicate, singles: &[bool], fixed_bits: u64) -> ScanPlan {
    let registers = predicate.inputs.len() as u16 * REGISTERS;
    let (body, operands) = reads(&predicate.inputs, singles);
    let body = ReadProgram { entry: ALIGNED, registers, body, ..ReadProgram::default() };
    let mut test = body.clone();
    test.predicates = vec![BoundInputs { predicate: Arc::new(predicate.clone()), operands }];
    test.body.push(Op::Keep { predicate: 0 });
    let mut header = read(Reg(0), 8, false, 8);
    header.push(Op::Out { slot: SLOT_EVENT_CLASS, from: Reg(0) });
    let fixed = vec![Op::Need { bits: fixed_bits }, Op::Advance { bits: fixed_bits }];
    ScanPlan {
        header: ReadProgram { entry: ALIGNED, registers: 1, body: header, ..ReadProgram::default() },
        ids: (0..4).map(|id| (id, id as u32)).collect(),
        class_body: vec![0, 0, 0, 1],
        bodies: vec![body, ReadProgram { entry: ALIGNED, body: fixed, ..ReadProgram::default() }],
        tests: vec![test],
        class_test: vec![ClassTest::Always, ClassTest::Never, ClassTest::Test(0), ClassTest::Test(0)],
        ..ScanPlan::default()
    }
}

fn state() -> ReadState {
    ReadState { clock: 7, slots: vec![0; 4] }
}

/// The positions that a scan finds, a few records at a time.
fn scanned(
    mut scan: impl FnMut(&mut u64, &mut ReadState, &mut Records, usize) -> ScanStop,
) -> (Vec<u64>, Vec<u32>, ScanStop) {
    let (mut positions, mut classes) = (Vec::new(), Vec::new());
    let (mut position, mut state, mut records) = (0, state(), Records::default());
    loop {
        records.clear();
        let stop = scan(&mut position, &mut state, &mut records, 7);
        positions.extend(&records.positions);
        classes.extend(&records.classes);
        if stop != ScanStop::Full {
            return (positions, classes, stop);
        }
    }
}

fn check(seed: u64, compile_after: u32) {
    let mut random = RandomNumbers::new(seed);
    let random = &mut random;
    let options = if seed.is_multiple_of(4) { PredicateOptions::ALL } else { PredicateOptions::PLAIN };
    let (predicate, _) = predicate(random, &options);
    let singles: Vec<bool> = predicate.inputs.iter().map(|_| random.below(3) == 0).collect();
    let first = record(&predicate, &event(random, &predicate), &singles);
    let plan = Arc::new(plan(&predicate, &singles, first.len() as u64 * 8));
    verify::verify(&plan.tests[0]).expect("the test is sound");
    let (mut bytes, mut expected) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        let mut event = event(random, &predicate);
        cut(&predicate, &singles, &mut event);
        let body = record(&predicate, &event, &singles);
        let is_fixed = body.len() == first.len();
        let class = random.below(if is_fixed { 4 } else { 3 });
        bytes.push(class as u8);
        if class == 0 || class > 1 && predicate.keeps(&event[..]) {
            expected.push(bytes.len() as u64 * 8);
        }
        bytes.extend(body);
    }
    let cut_off = if random.below(4) == 0 { random.below(60) as u64 } else { 0 };
    let bits = bytes.len() as u64 * 8 - cut_off;
    bytes.extend([0xaa; SLACK]);
    let window = PacketWindow::new(&bytes, 0, bits);
    let found = scanned(|at, state, records, limit| eval::scan(&plan, window, at, state, records, limit));
    assert!(expected.starts_with(&found.0), "seed {seed}: {:?}, not {expected:?}\n{predicate}", found.0);
    assert!(cut_off > 0 || found.2 == ScanStop::End && found.0 == expected, "seed {seed}");
    let Some(engine) = JitEngine::new() else { return println!("NO MACHINE CODE HERE: not run") };
    let scan = Scan::new(&engine, &plan, compile_after).expect("the header is for machine code");
    let compiled = scanned(|at, state, records, limit| scan.run(window, at, state, records, limit));
    assert_eq!(compiled, found, "seed {seed}\n{predicate}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn machine_code_finds_what_the_evaluator_finds(seed: u64, compile_after in 0_u32..10) {
        check(seed, compile_after);
    }
}
