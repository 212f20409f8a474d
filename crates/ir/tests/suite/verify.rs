//! What the verifier refuses, one program for each reason, and its neighbours that pass.

use kymo_ir::{
    BitPhase, BytesStyle, CellType, Emit, NumberSource, Op, ProgramColumn, ProgramTable, ReadProgram, Reg, verify,
};
use kymo_units::ByteOrder;

const R0: Reg = Reg(0);
const R1: Reg = Reg(1);

fn read(offset: u32, width: u8) -> Op {
    Op::Read { to: R0, offset, width, order: ByteOrder::Little, signed: false, reversed: false }
}

fn check(name: &str, body: Vec<Op>, expected: &str) {
    let table = |parent| ProgramTable { parent };
    let column = |table, cell| ProgramColumn { table, cell, nullable: false };
    let program = ReadProgram {
        entry: BitPhase { modulus_log2: 3, phase: 0 },
        registers: 2,
        tables: vec![table(None), table(Some(0))],
        columns: vec![column(0, CellType::Span), column(1, CellType::U8), column(0, CellType::U64)],
        body,
        ..ReadProgram::default()
    };
    let found = verify::verify(&program).map_or_else(|error| error.to_string(), |()| "passes".to_owned());
    assert_eq!(found, expected, "{name}");
}

#[test]
fn reads_stay_under_their_need() {
    check("exact", vec![Op::Need { bits: 5 }, read(0, 5), Op::Advance { bits: 5 }], "passes");
    check(
        "one bit more",
        vec![Op::Need { bits: 5 }, read(1, 5)],
        "operation 1: bits up to 6 are taken; 5 are known to be there",
    );
    let moved = vec![Op::Need { bits: 8 }, Op::Align { log2: 4 }, read(0, 1)];
    check("alignment ends a need", moved, "operation 2: bits up to 1 are taken; 0 are known to be there");
    check("no register", vec![Op::Set { to: Reg(2), value: 0 }], "operation 0: register 2; there are 2");
}

#[test]
fn bytes_begin_at_an_edge_and_are_where_they_were_taken() {
    let hex = Op::Emit(Emit::Bytes { start: R0, length: R1, style: BytesStyle::Hexadecimal });
    let text = Op::Text { start: R0, length: R1, unit: 1 };
    check("taken", vec![text.clone(), hex.clone()], "passes");
    check("never taken", vec![hex.clone()], "operation 0: r0 and r1 are not bytes of the packet on every path");
    let changed = vec![text.clone(), Op::Set { to: R1, value: 9 }, hex];
    check("changed", changed, "operation 2: r0 and r1 are not bytes of the packet on every path");
    let inside = vec![Op::Need { bits: 3 }, Op::Advance { bits: 3 }, text];
    check("inside a byte", inside, "operation 2: the position may lie inside of a byte: modulo 2^3 it is 3");
}

#[test]
fn loops_take_bits_or_end_soon() {
    let idle = |count| vec![Op::Repeat { count, index: None, body: vec![Op::Set { to: R0, value: 1 }] }];
    let refused = "operation 0: the loop, with those around it, may make more than 65536 rounds that take no bits";
    check("few rounds", idle(NumberSource::Constant(1 << 16)), "passes");
    check("many rounds", idle(NumberSource::Constant((1 << 16) + 1)), refused);
    check("unknown rounds end at run time", idle(NumberSource::Register(R1)), "passes");
    let nested =
        vec![Op::Repeat { count: NumberSource::Constant(2), index: None, body: idle(NumberSource::Register(R1)) }];
    check("loops multiply", nested, &refused.replace("operation 0", "operation 1"));
}

#[test]
fn rows_are_written_by_the_loop_of_their_list() {
    let count = NumberSource::Constant(2);
    let list = Op::StoreList { column: 0, table: 1, count };
    let store = Op::Store { column: 1, from: R0 };
    let row = Op::Row { table: 1 };
    let rounds = |body| Op::Repeat { count, index: None, body };
    check("list", vec![list.clone(), rounds(vec![store.clone(), row.clone()])], "passes");
    check("no list", vec![store.clone()], "operation 0: table 1 is not being filled here");
    let late = vec![list.clone(), rounds(vec![row, store])];
    check("store behind the row", late, "operation 3: table 1 is not being filled here");
    let refused = "operation 1: table 1 is announced, but the next loop does not write one row a round";
    check("no row", vec![list.clone(), rounds(vec![])], refused);
    check("no loop", vec![list], refused);
    check("a number is no span", vec![Op::Store { column: 0, from: R0 }], "operation 0: column 0 holds other cells");
}
