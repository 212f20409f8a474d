//! Machine code is safe to call with anything: what is not sound is not compiled, and a call that would leave its
//! memory panics. Lists grow as the evaluator's do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kymo_ir::{
    BitPhase, CellType, Cells, NumberSource, Op, OutputSlot, PacketWindow, ProgramColumn, ProgramTable, ReadProgram,
    ReadState, Reg, SLACK, eval,
};
use kymo_jit::{CompiledRows, CompiledText, JitEngine};
use kymo_units::ByteOrder;

fn engine() -> Option<JitEngine> {
    let engine = JitEngine::new();
    if engine.is_none() {
        println!("NO MACHINE CODE HERE: not run");
    }
    engine
}

fn read(to: u16, offset: u32, width: u8) -> Op {
    Op::Read { to: Reg(to), offset, width, order: ByteOrder::Little, signed: false, reversed: false }
}

/// `count: u8, items: u16[count]`: a list in a table of its own.
fn list() -> Arc<ReadProgram> {
    let item = vec![
        Op::Need { bits: 16 },
        read(1, 0, 16),
        Op::Advance { bits: 16 },
        Op::Store { column: 1, from: Reg(1) },
        Op::Row { table: 1 },
    ];
    let count = NumberSource::Register(Reg(0));
    Arc::new(ReadProgram {
        entry: BitPhase { modulus_log2: 3, phase: 0 },
        registers: 2,
        tables: vec![ProgramTable { parent: None }, ProgramTable { parent: Some(0) }],
        columns: vec![
            ProgramColumn { table: 0, cell: CellType::Span, nullable: false },
            ProgramColumn { table: 1, cell: CellType::U16, nullable: false },
        ],
        body: vec![
            Op::Need { bits: 8 },
            read(0, 0, 8),
            Op::Advance { bits: 8 },
            Op::StoreList { column: 0, table: 1, count },
            Op::Repeat { count, index: None, body: item },
        ],
        ..ReadProgram::default()
    })
}

/// Bytes from a seed, and slack.
fn bytes(count: usize, mut seed: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count + SLACK);
    bytes.resize_with(count + SLACK, || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as u8
    });
    bytes
}

#[test]
fn lists_grow_and_stuck_records_are_told_as_by_the_evaluator() {
    let Some(engine) = engine() else { return };
    let program = list();
    let rows = CompiledRows::new(&engine, &program).expect("lists are compiled");
    for seed in 0..200 {
        // 40,000 bytes have lists of some 10,000 elements: more than there is room for at first.
        let bytes = bytes(if seed % 2 == 0 { 40_000 } else { 300 }, seed);
        let end = (bytes.len() - SLACK) as u64 * 8;
        let window = PacketWindow::new(&bytes, 0, end);
        let mut positions = Vec::new();
        let mut at = 0;
        while at < end {
            positions.push(at);
            at += 8 + 16 * u64::from(bytes[(at / 8) as usize]);
        }
        // The last record mostly does not end inside of the window.
        let (mut compiled, mut evaluated) = (Cells::default(), Cells::default());
        let found = rows.run(window, &positions, &mut ReadState::default(), &mut compiled);
        let expected = eval::rows(&program, window, &positions, &mut ReadState::default(), &mut evaluated);
        assert_eq!(found, expected, "seed {seed}");
        if found.is_ok() {
            assert_eq!(compiled, evaluated, "seed {seed}");
        }
    }
}

#[test]
fn what_is_not_sound_is_not_compiled() {
    let Some(engine) = engine() else { return };
    let of = |body: Vec<Op>| Arc::new(ReadProgram { registers: 1, body, ..ReadProgram::default() });
    for (name, program) in [
        ("bits that nothing says are there", of(vec![read(0, 0, 8)])),
        ("a register that does not exist", of(vec![Op::Need { bits: 8 }, read(7, 0, 8)])),
        ("a column that does not exist", of(vec![Op::Store { column: 0, from: Reg(0) }])),
        ("very many operations", of(vec![Op::Set { to: Reg(0), value: 1 }; 100_000])),
    ] {
        assert!(CompiledRows::new(&engine, &program).is_none(), "{name}");
        assert!(CompiledText::new(&engine, ReadProgram::clone(&program)).is_none(), "{name}");
    }
}

#[test]
fn calls_that_would_leave_their_memory_panic() {
    let Some(engine) = engine() else { return };
    let program = Arc::new(ReadProgram {
        registers: 1,
        body: vec![Op::Load { to: Reg(0), slot: OutputSlot(5) }, Op::Out { slot: OutputSlot(9), from: Reg(0) }],
        ..ReadProgram::default()
    });
    let rows = CompiledRows::new(&engine, &program).expect("slots are compiled");
    let text = CompiledText::new(&engine, ReadProgram::clone(&program)).expect("slots are compiled");
    let bytes = bytes(8, 1);
    let window = PacketWindow::new(&bytes, 4, 64 + 32);
    let run = |position: u64, slots: usize| {
        let mut state = ReadState { clock: 0, slots: vec![0; slots] };
        let of_rows = AssertUnwindSafe(|| rows.run(window, &[position], &mut state.clone(), &mut Cells::default()));
        let of_rows = catch_unwind(of_rows).is_ok();
        let of_text = AssertUnwindSafe(|| text.run(window, position, &mut state, &mut Vec::new()));
        let of_text = catch_unwind(of_text).is_ok();
        assert_eq!(of_rows, of_text);
        of_rows
    };
    assert!(run(32, 10), "the first bit of the window");
    assert!(run(96, 10), "the end of the window");
    assert!(!run(31, 10), "before the window");
    assert!(!run(97, 10), "behind the window");
    assert!(!run(32, 9), "too few slots");
}
