//! What filters cost: predicates `u32 field == constant` on a structure in cache, compiling them, and tests in a scan.
//!
//! Prints `name<TAB>nanoseconds`: the median of bursts, the first one thrown away. `bench/filter` has the peers.
//!
//! ```text
//! native.N, evaluator.N, rust.N    one event, N predicates, all true
//! compile.N                        from the predicate to code in executable memory
//! scan.none                        one record of a scan without tests: an id and five fields of 32 bits
//! scan.N                           the same with N predicates, false at the last
//! ```

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use kymo_ir::predicate::{
    ArgumentLayout, Datum, Input, InputClass, InputKind, InputPlace, Number, Predicate, Relation, Test,
};
use kymo_ir::{
    BitPhase, BoundInputs, ClassTest, InputOperand, Op, PacketWindow, ReadProgram, ReadState, Records, Reg, SLACK,
    SLOT_EVENT_CLASS, ScanPlan,
};
use kymo_jit::{JitEngine, NativeFilter, NativeTarget, Scan};
use kymo_units::ByteOrder;

const BURSTS: usize = 16;
/// As in `bench/filter`: far apart, so that no two of them make a range.
const FIELDS: u16 = 50;

fn constant(index: u16) -> u32 {
    1_000_003 * u32::from(index) + 17
}

fn main() {
    let Some((target, engine)) = NativeTarget::host().zip(JitEngine::new()) else {
        return println!("no machine code here");
    };
    let values: Vec<u8> = (0..FIELDS).flat_map(|index| constant(index).to_ne_bytes()).collect();
    let data: Vec<Datum> = (0..FIELDS).map(|index| Datum::Number(u64::from(constant(index)))).collect();
    for count in [1, 10, 50] {
        let (predicate, layout) = chain(count);
        let filter = NativeFilter::new(&target, &predicate, &layout).expect("integers have machine code");
        println!("code.{count}\t{}", filter.code().len());
        let loaded = filter.load().expect("code may be executed here");
        report(&format!("native.{count}"), 300_000, || assert!(loaded.run(black_box(&values))));
        report(&format!("evaluator.{count}"), 20_000, || assert!(predicate.keeps(black_box(&data[..]))));
        report(&format!("compile.{count}"), 200, || {
            let filter = NativeFilter::new(&target, black_box(&predicate), &layout).expect("as before");
            black_box(filter.load());
        });
    }
    report("rust.50", 300_000, || assert!(hard_coded(black_box(&values))));
    scans(&engine);
}

fn hard_coded(values: &[u8]) -> bool {
    let fields: &[u8; 4 * FIELDS as usize] = values.try_into().expect("fifty fields");
    (0..FIELDS).all(|index| {
        let field = &fields[4 * usize::from(index)..][..4];
        // A filter that stops at its first false predicate reads one field after the other.
        black_box(u32::from_ne_bytes([field[0], field[1], field[2], field[3]])) == constant(index)
    })
}

fn chain(count: u16) -> (Predicate, ArgumentLayout) {
    let compare = |index| Test::Compare {
        relation: Relation::Equal,
        left: Number::Input(Input(index)),
        right: Number::Integer(i128::from(constant(index))),
    };
    let order = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };
    let place = |index| InputPlace::Integer { offset: 4 * u32::from(index), bytes: 4, order };
    let predicate =
        Predicate { inputs: (0..count).map(class).collect(), root: Test::All((0..count).map(compare).collect()) };
    (predicate, ArgumentLayout { size: 4 * u32::from(count), places: (0..count).map(place).collect() })
}

fn class(index: u16) -> InputClass {
    let kind = InputKind::Integer { signed: false, bits: 32 };
    InputClass { name: format!("field{index}").into(), kind, optional: false }
}

/// Fields of a record.
const READ: u16 = 5;
const RECORDS: usize = 4096;

fn scans(engine: &JitEngine) {
    let mut bytes = Vec::new();
    for record in 0..RECORDS {
        bytes.extend((record as u16 % 4).to_le_bytes());
        bytes.extend((0..READ).flat_map(|index| (constant(index) + record as u32).to_le_bytes()));
    }
    let bits = bytes.len() as u64 * 8;
    bytes.extend([0; SLACK]);
    let window = PacketWindow::new(&bytes, 0, bits);
    for (name, asked) in [("none", None), ("1", Some(1)), ("10", Some(10)), ("50", Some(50))] {
        let plan = Arc::new(plan(asked));
        let scan = Scan::new(engine, &plan, 0).expect("the header is for machine code");
        let (mut records, mut state) = (Records::default(), ReadState { clock: 0, slots: vec![0; 1] });
        let mut position = 0;
        let burst = || {
            records.clear();
            position = 0;
            scan.run(window, &mut position, &mut state, &mut records, RECORDS + 1);
        };
        report_each(&format!("scan.{name}"), 20, RECORDS, burst);
        let expected = if asked.is_some() { 0 } else { RECORDS };
        assert_eq!((records.len(), position), (expected, bits), "{name}");
    }
}

fn read(to: u16, offset: u32, width: u8) -> Op {
    Op::Read { to: Reg(to), offset, width, order: ByteOrder::Little, signed: false, reversed: false }
}

/// A header of an id, and fields; with a test of so many predicates, of which the last is false.
fn plan(asked: Option<u16>) -> ScanPlan {
    let entry = BitPhase { modulus_log2: 3, phase: 0 };
    let id = Reg(0);
    let header = vec![
        Op::Need { bits: 16 },
        read(0, 0, 16),
        Op::Advance { bits: 16 },
        Op::Out { slot: SLOT_EVENT_CLASS, from: id },
    ];
    let bits = 32 * u64::from(READ);
    let fields: Vec<Op> = (0..READ).map(|index| read(index, 32 * u32::from(index), 32)).collect();
    let test = asked.map(|count| {
        let compare = |index: u16| {
            let relation = if index + 1 == count { Relation::Equal } else { Relation::NotEqual };
            let right = Number::Integer(i128::from(10 + index));
            Test::Compare { relation, left: Number::Input(Input(index % READ)), right }
        };
        let predicate =
            Predicate { inputs: (0..READ).map(class).collect(), root: Test::All((0..count).map(compare).collect()) };
        let operands = (0..READ).map(|index| InputOperand::Number { value: Reg(index), present: None }).collect();
        let mut body = vec![Op::Need { bits }];
        body.extend(fields);
        body.push(Op::Keep { predicate: 0 });
        let predicates = vec![BoundInputs { predicate: Arc::new(predicate), operands }];
        ReadProgram { entry, registers: READ, predicates, body, ..ReadProgram::default() }
    });
    ScanPlan {
        header: ReadProgram { entry, registers: 1, body: header, ..ReadProgram::default() },
        ids: (0..4).map(|id| (id, id as u32)).collect(),
        class_body: vec![0; 4],
        bodies: vec![ReadProgram {
            entry,
            body: vec![Op::Need { bits }, Op::Advance { bits }],
            ..ReadProgram::default()
        }],
        class_test: if test.is_some() { vec![ClassTest::Test(0); 4] } else { Vec::new() },
        tests: test.into_iter().collect(),
        ..ScanPlan::default()
    }
}

fn report(name: &str, count: usize, call: impl FnMut()) {
    report_each(name, count, 1, call);
}

/// The time of one of the `parts` that each call does.
fn report_each(name: &str, count: usize, parts: usize, mut call: impl FnMut()) {
    let mut burst = || {
        let start = Instant::now();
        (0..count).for_each(|_| call());
        start.elapsed().as_nanos() as f64 / (count * parts) as f64
    };
    burst();
    let mut taken: Vec<f64> = (0..BURSTS).map(|_| burst()).collect();
    taken.sort_by(f64::total_cmp);
    println!("{name}\t{:.3}", (taken[BURSTS / 2 - 1] + taken[BURSTS / 2]) / 2.0);
}
