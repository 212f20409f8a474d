//! What the validator refuses, one reason each, and how programs are shown.

use expect_test::{Expect, expect};
use kymo_bytecode::{
    ArithmeticOp, BitwiseOp, HEADER_BYTES, INSTRUCTIONS_MAX, Instruction, IntegerCondition, IntegerField, IntegerKind,
    LiteralBytes, OrderSet, RegisterSet, RightOperand, ShortArguments, Signs, TextPattern, TextPlace, find_needs,
    header, validate,
};

const SIZE: u32 = 16;
const SIGNS: Signs = Signs { left: false, right: false, result: false };

/// The bytes of a program whose needs are true.
fn program(instructions: &[Instruction], constants: &[u8]) -> Vec<u8> {
    let mut needs = vec![RegisterSet::default(); instructions.len()];
    find_needs(instructions, &mut needs);
    let mut bytes = header(SIZE, instructions.len() as u16, constants.len() as u32).to_vec();
    bytes.extend(instructions.iter().zip(needs).flat_map(|(instruction, needs)| instruction.encode(needs)));
    bytes.extend(constants);
    bytes
}

/// Validates bytes: shows the program, or says why it is none.
fn check(bytes: &[u8], expected: &Expect) {
    let found = validate(bytes).map_or_else(|error| error.to_string(), |program| program.to_string());
    expected.assert_eq(&found);
}

/// Validates a program with `Keep` at its end.
fn check_one(instruction: Instruction, expected: &Expect) {
    check(&program(&[instruction, Instruction::Keep], b"\x01\0a\x01\0b"), expected);
}

fn field(bytes: u8, offset: u16) -> IntegerField {
    IntegerField { kind: IntegerKind::new(bytes, false, false).expect("integers have so many bytes"), offset }
}

fn test(field: IntegerField, condition: IntegerCondition) -> Instruction {
    Instruction::Test { field, condition, skip: 0 }
}

fn damaged(at: usize, to: u8) -> Vec<u8> {
    let mut bytes = program(&[Instruction::Jump { skip: 0 }, Instruction::Keep], &[]);
    bytes[at] = to;
    bytes
}

#[test]
fn the_header_must_be_one() {
    check(&[], &expect!["at byte 0: the header has 16 bytes; there are fewer"]);
    check(&damaged(0, b'K'), &expect!["at byte 0: found [4b, 79, 42, 43]; bytecode begins with [6b, 79, 42, 43]"]);
    check(&damaged(4, 2), &expect!["at byte 0: version 2; version 1 is understood"]);
    check(&damaged(6, 3), &expect!["at byte 0: the header speaks of 64 bytes; there are 48"]);
    check(&damaged(15, 1), &expect!["at byte 0: 16777216 is above the limit, 65536"]);
    check(&header(4, 0, 0), &expect!["at byte 0: the program goes on behind its last instruction"]);
    let many = [&header(0, INSTRUCTIONS_MAX as u16 + 1, 0)[..], &[0; 16]].concat();
    check(&many, &expect!["at byte 0: 16385 is above the limit, 16384"]);
}

#[test]
fn instructions_have_one_encoding() {
    check(&damaged(HEADER_BYTES, 0), &expect!["at byte 16: there is no operation 0x00"]);
    check(&damaged(HEADER_BYTES, 0xF0), &expect!["at byte 16: there is no operation 0xf0"]);
    check(&damaged(HEADER_BYTES + 8, 1), &expect!["at byte 16: an operand is not one that the operation takes"]);
    check_one(
        Instruction::Constant { to: 8, value: 0 },
        &expect!["at byte 16: an operand is not one that the operation takes"],
    );
}

/// Jumps cannot go back: that leaves the end.
#[test]
fn programs_end() {
    check_one(Instruction::Jump { skip: 1 }, &expect!["at byte 16: the program goes on behind its last instruction"]);
    check(
        &program(&[Instruction::Constant { to: 0, value: 0 }], &[]),
        &expect!["at byte 16: the program goes on behind its last instruction"],
    );
}

#[test]
fn loads_lie_inside_of_the_arguments() {
    let real = |offset| Instruction::LoadReal { to: 0, is_double: true, offset };
    let pointer = |offset| Instruction::LoadText { to: 0, place: TextPlace::Pointer { offset } };
    let inline = |offset, capacity| Instruction::LoadText { to: 0, place: TextPlace::Inline { offset, capacity } };
    check_one(
        test(field(4, 12), IntegerCondition::Equal(0)),
        &expect![[r#"
        for 16 bytes of arguments
          0  u32le[12] == 0 -> 1
          1  keep
    "#]],
    );
    let outside = expect!["at byte 16: reads arguments up to byte 17; there are 16 bytes"];
    for instruction in [test(field(4, 13), IntegerCondition::Equal(0)), real(9), pointer(1), inline(1, 16)] {
        check_one(instruction, &outside);
    }
    check_one(inline(16, u32::MAX), &expect!["at byte 16: reads arguments up to byte 4294967311; there are 16 bytes"]);
}

#[test]
fn constants_are_values_of_the_field() {
    let wrong = expect!["at byte 16: a constant is not a value of the field's kind"];
    for condition in [IntegerCondition::Equal(256), IntegerCondition::Within(1, 256), IntegerCondition::Within(2, 1)] {
        check_one(test(field(1, 0), condition), &wrong);
    }
}

#[test]
fn literals_lie_among_the_constants() {
    let text = Instruction::LoadText { to: 0, place: TextPlace::Inline { offset: 0, capacity: 16 } };
    let check_pattern = |pattern, expected: &Expect| {
        let test = Instruction::TestText { text: 0, pattern, jumps_if: true, skip: 0 };
        check(&program(&[text, test, Instruction::Keep], b"\x01\0a\x01\0b"), expected);
    };
    check_pattern(
        TextPattern::Is(LiteralBytes { offset: 3, length: 4 }),
        &expect!["at byte 32: reads constants up to byte 7; there are 6 bytes"],
    );
    check_pattern(
        TextPattern::Begins(LiteralBytes { offset: u32::MAX, length: u32::MAX }),
        &expect!["at byte 32: reads constants up to byte 8589934590; there are 6 bytes"],
    );
    check_pattern(
        TextPattern::Like { offset: 0, parts: 2 },
        &expect![[r#"
        for 16 bytes of arguments
          0  t0 = text[0..16]
          1  t0 is like "a*b" -> 2
          2  keep
    "#]],
    );
    check_pattern(
        TextPattern::Like { offset: 0, parts: 3 },
        &expect!["at byte 32: reads constants up to byte 8; there are 6 bytes"],
    );
    check_pattern(
        TextPattern::Like { offset: 1, parts: 2 },
        &expect!["at byte 32: reads constants up to byte 24835; there are 6 bytes"],
    );
    check_pattern(
        TextPattern::Like { offset: 0, parts: 1 },
        &expect!["at byte 32: a pattern of 1 parts; it has 2 to 255"],
    );
}

#[test]
fn registers_are_written_on_every_way() {
    let compare = Instruction::Compare {
        left: 3,
        right: RightOperand::Constant(1),
        signs: SIGNS,
        orders: OrderSet::LESS,
        skip: 0,
    };
    check(&program(&[compare, Instruction::Keep], &[]), &expect!["at byte 16: read before written: r3"]);
    // The first jump goes around what writes the register.
    let around = Instruction::Test { field: field(1, 0), condition: IntegerCondition::Equal(1), skip: 1 };
    let instructions = [around, Instruction::Constant { to: 3, value: 1 }, compare, Instruction::Keep];
    check(&program(&instructions, &[]), &expect!["at byte 16: read before written: r3"]);
    // The same with a lie in the first instruction.
    let mut bytes = program(&instructions, &[]);
    bytes[HEADER_BYTES + 6] = 0;
    check(&bytes, &expect!["at byte 16: read before written: r3"]);
    // And where the way there is no jump.
    let mut bytes = program(&[Instruction::Constant { to: 2, value: 0 }, compare, Instruction::Keep], &[]);
    bytes[HEADER_BYTES + 6] = 0;
    check(&bytes, &expect!["at byte 16: read before written: r3"]);
    // What jumps away has written nothing.
    let overflow = Instruction::Arithmetic {
        operation: ArithmeticOp::Add,
        to: 3,
        left: 1,
        right: RightOperand::Constant(1),
        signs: SIGNS,
        skip: 0,
    };
    let instructions = [Instruction::Constant { to: 1, value: 0 }, overflow, compare, Instruction::Keep];
    check(&program(&instructions, &[]), &expect!["at byte 16: read before written: r3"]);
}

#[test]
fn a_scale_divides_by_something() {
    let scale = Instruction::Scale { to: 0, from: 0, signs: SIGNS, offset: 0, skip: 0 };
    let words = |divide: u64| [1, divide, 0].map(u64::to_le_bytes).concat();
    let of =
        |constants: &[u8]| program(&[Instruction::Constant { to: 0, value: 5 }, scale, Instruction::Keep], constants);
    check(&of(&words(0)), &expect!["at byte 32: a constant is not a value of the field's kind"]);
    check(&of(&words(1)[..23]), &expect!["at byte 32: reads constants up to byte 24; there are 23 bytes"]);
    check(
        &of(&words(2)),
        &expect![[r#"
        for 16 bytes of arguments
          0  r0 = 5
          1  r0:u64 = r0:u64 * 1 / 2 + 0 or -> 2
          2  keep
    "#]],
    );
}

/// A shift without a result jumps, the other operations on bits go on.
#[test]
fn only_shifts_jump() {
    let bits = |operation| Instruction::Bits { operation, to: 0, left: 0, right: RightOperand::Constant(64), skip: 1 };
    for (operation, is_kept) in [(BitwiseOp::ShiftLeft, false), (BitwiseOp::ShiftRight, false), (BitwiseOp::Or, true)] {
        let constant = Instruction::Constant { to: 0, value: 5 };
        let bytes = program(&[constant, bits(operation), Instruction::Keep, Instruction::Drop], &[]);
        let program = validate(&bytes).expect("it is sound");
        assert_eq!(program.run(&[0; SIZE as usize], &()), Ok(is_kept), "{program}");
    }
}

#[test]
fn arguments_must_suffice() {
    let bytes = program(&[Instruction::Keep], &[]);
    let program = validate(&bytes).expect("it is sound");
    assert_eq!(program.run(&[0; 17], &()), Ok(true));
    let short = program.run(&[0; 15], &()).expect_err("a byte is missing");
    assert_eq!(short, ShortArguments { found: 15, expected: 16 });
    assert_eq!(short.to_string(), "the arguments have 15 bytes; the program is for 16");
}
