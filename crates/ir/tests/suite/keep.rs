//! Records that a test drops are not found; those behind them are.

use std::sync::Arc;

use kymo_ir::predicate::{Input, InputClass, InputKind, Number, Pattern, Relation, Test, TextExpression};
use kymo_ir::{
    BitPhase, BoundInputs, ClassTest, Encoding, InputOperand, Op, PacketWindow, Predicate, ReadProgram, ReadState,
    Records, Reg, SLACK, ScanPlan, ScanStop, eval, text, verify,
};

/// Reads `entry`-aligned text of a program.
fn program(source: &str) -> ReadProgram {
    text::read(source).expect("the program is right")
}

fn bound(name: &str, kind: InputKind, root: Test, operand: InputOperand) -> BoundInputs {
    let inputs = vec![InputClass { name: name.into(), kind, optional: false }];
    BoundInputs { predicate: Arc::new(Predicate { inputs, root }), operands: vec![operand] }
}

/// Records of a byte and a text, those found whose test holds.
fn found(test: &ReadProgram, bytes: &[u8]) -> Vec<u64> {
    verify::verify(test).expect("the test is sound");
    let plan = ScanPlan {
        only_class: Some(0),
        class_body: vec![0],
        bodies: vec![program("entry 3 0  need 8  advance 8  r0 r1 = text 1")],
        tests: vec![test.clone()],
        class_test: vec![ClassTest::Test(0)],
        ..ScanPlan::default()
    };
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len() + SLACK, 0xaa);
    let window = PacketWindow::new(&padded, 0, bytes.len() as u64 * 8);
    let (mut position, mut records) = (0, Records::default());
    let mut state = ReadState { clock: 0, slots: vec![0; 1] };
    let stop = eval::scan(&plan, window, &mut position, &mut state, &mut records, 100);
    assert_eq!((stop, position), (ScanStop::End, window.end()));
    records.positions
}

#[test]
fn numbers_are_asked() {
    let mut test = program("entry 3 0  need 8  r0 = read 0 +8 le  advance 8  keep 0");
    let kind = InputKind::Integer { signed: false, bits: 8 };
    let root = Test::Compare { relation: Relation::Greater, left: Number::Input(Input(0)), right: Number::Integer(1) };
    test.predicates = vec![bound("x", kind, root, InputOperand::Number { value: Reg(0), present: None })];
    assert_eq!(found(&test, b"\x01a\0\x02b\0\x03c\0\x00d\0"), [24, 48]);
}

#[test]
fn texts_are_asked() {
    let mut test = program("entry 3 0  need 8  advance 8  r0 r1 = text 1  keep 0");
    let root =
        Test::Matches { text: TextExpression::Input(Input(0)), pattern: Pattern::Prefix(b"ab".as_slice().into()) };
    let operand = InputOperand::Text { start: Reg(0), length: Reg(1), present: None };
    test.predicates = vec![bound("name", InputKind::Text(Encoding::Utf8), root, operand)];
    assert_eq!(found(&test, b"\x01abc\0\x02b\0\x03ab\0\x04\0"), [0, 64]);
}

/// Text of an option that is not there has no first byte.
#[test]
fn text_of_one_path_alone_is_empty_on_the_other() {
    let source = "entry 3 0  need 8  r3 = read 0 +8 le  advance 8  r1 = 0  r2 = 0
        switch r3 { 1 { r4 r5 = text 1  r0 = r4  r1 = r5  r2 = 1 } else { } }  keep 0";
    let mut test = program(source);
    let root = Test::Not(Box::new(Test::Matches {
        text: TextExpression::Input(Input(0)),
        pattern: Pattern::Exactly(b"a".as_slice().into()),
    }));
    let operand = InputOperand::Text { start: Reg(0), length: Reg(1), present: Some(Reg(2)) };
    let mut asked = bound("name", InputKind::Text(Encoding::Utf8), root, operand);
    Arc::make_mut(&mut asked.predicate).inputs[0].optional = true;
    test.predicates = vec![asked];
    assert_eq!(found(&test, b"\x01a\0\x02a\0\x01b\0"), [48]);
}

/// Without that, the registers might hold anything.
#[test]
fn text_that_is_not_of_the_packet_is_refused() {
    let mut test = program("entry 3 0  need 8  r0 = read 0 +8 le  r1 = read 0 +8 le  keep 0");
    let root = Test::Has(Input(0));
    let operand = InputOperand::Text { start: Reg(0), length: Reg(1), present: None };
    test.predicates = vec![bound("name", InputKind::Text(Encoding::Utf8), root, operand)];
    let refused = verify::verify(&test).expect_err("r0 and r1 are no text");
    assert_eq!(refused.to_string(), "operation 3: r0 and r1 are not bytes of the packet on every path");
    let inner = ReadProgram {
        body: vec![Op::Repeat {
            count: kymo_ir::NumberSource::Constant(1),
            index: None,
            body: vec![Op::Keep { predicate: 0 }],
        }],
        ..test
    };
    assert!(verify::verify(&ReadProgram { entry: BitPhase::default(), ..inner }).is_err());
}
