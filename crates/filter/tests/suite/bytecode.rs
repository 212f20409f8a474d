//! Bytecode keeps exactly what the evaluator keeps.

use expect_test::{Expect, expect};
use kymo_bytecode::validate;
use kymo_filter::bytecode;
use kymo_ir::Encoding;
use kymo_ir::predicate::{
    ArgumentLayout, Arithmetic, Bitwise, Datum, Input, InputClass, InputKind, InputPlace, Number, Pattern, Predicate,
    Regex, Relation, Test, TextExpression,
};
use kymo_random::RandomNumbers;
use kymo_random::predicates::{self, PredicateOptions};
use kymo_units::ByteOrder;

/// Texts behind the pointers of [`predicates::arguments`], which lie in one piece of memory that the evaluator's inputs are
/// copied from: an address is told by the text that was found there.
struct Pointed(Vec<(u64, u64, Vec<u8>)>);

impl kymo_bytecode::Texts for Pointed {
    fn text(&self, address: u64, length: u64) -> &[u8] {
        let found = self.0.iter().find(|text| (text.0, text.1) == (address, length));
        &found.expect("the program reads pointers of the layout alone").2
    }
}

fn check(random: &mut RandomNumbers, predicate: &Predicate, layout: &ArgumentLayout, bytes: &[u8]) -> usize {
    let program = validate(bytes).unwrap_or_else(|error| panic!("{error}\n{predicate}{layout:?}"));
    let mut kept = 0;
    for _ in 0..16 {
        let arguments = predicates::arguments(random, predicate, layout);
        let data = predicates::data(predicate, layout, &arguments);
        let texts = pointed(layout, &arguments, &data);
        let expected = predicate.keeps(&data[..]);
        let found = program.run(&arguments, &texts);
        assert_eq!(found, Ok(expected), "{predicate}{layout:?}\n{arguments:x?}\n{data:?}\n{program}");
        kept += usize::from(expected);
    }
    kept
}

fn pointed(layout: &ArgumentLayout, arguments: &[u8], data: &[Datum]) -> Pointed {
    let word = |offset: u32| {
        let bytes = &arguments[offset as usize..][..8];
        u64::from_ne_bytes(bytes.try_into().expect("8 bytes"))
    };
    let texts = layout.places.iter().zip(data).filter_map(|(place, datum)| match (place, datum) {
        (InputPlace::Pointer { offset }, Datum::Text(text)) => Some((word(*offset), word(*offset + 8), text.to_vec())),
        _ => None,
    });
    Pointed(texts.collect())
}

#[test]
fn random_predicates_keep_what_the_evaluator_keeps() {
    let (mut taken, mut kept) = (0, 0);
    for seed in 0..4000 {
        let random = &mut RandomNumbers::new(seed);
        let nodes = 1 + random.below(60);
        let (predicate, layout) = predicates::predicate(random, &PredicateOptions { nodes, ..PredicateOptions::PLAIN });
        match bytecode::compile(&predicate, &layout) {
            Ok(bytes) => {
                kept += check(random, &predicate, &layout, &bytes);
                taken += 1;
            }
            Err(refusal) => assert!(refusal.why.contains("registers"), "{refusal}\n{predicate}{layout:?}"),
        }
    }
    println!("{taken} of 4000 predicates taken, {kept} events kept");
    assert!(taken > 3900 && kept > 1000, "{taken} taken, {kept} kept: the test has become weak");
}

/// Compiles a test over the arguments `prio` (i32), `cpu` (u8), `time` (u64, big-endian), `comm` (16 bytes), `path` (behind a
/// pointer), `load` (a real), `gone` (missing) and `wide` (UTF-16), and shows the program or the refusal.
fn show(root: Test, expected: &Expect) {
    let integer = |signed, bits| InputKind::Integer { signed, bits };
    let (utf8, wide) = (InputKind::Text(Encoding::Utf8), InputKind::Text(Encoding::Utf16Le));
    let inputs = [
        ("prio", integer(true, 32), InputPlace::Integer { offset: 0, bytes: 4, order: ByteOrder::Little }),
        ("cpu", integer(false, 8), InputPlace::Integer { offset: 4, bytes: 1, order: ByteOrder::Little }),
        ("time", integer(false, 64), InputPlace::Integer { offset: 5, bytes: 8, order: ByteOrder::Big }),
        ("comm", utf8, InputPlace::Inline { offset: 16, capacity: 16 }),
        ("path", utf8, InputPlace::Pointer { offset: 32 }),
        ("load", InputKind::Real, InputPlace::Real { offset: 48, bytes: 8 }),
        ("gone", integer(false, 8), InputPlace::Missing),
        ("wide", wide, InputPlace::Inline { offset: 56, capacity: 8 }),
    ];
    let places = inputs.iter().map(|(_, _, place)| *place).collect();
    let class = |(name, kind, _): (&str, InputKind, InputPlace)| InputClass { name: name.into(), kind, optional: true };
    let predicate = Predicate { inputs: inputs.into_iter().map(class).collect(), root };
    let layout = ArgumentLayout { size: 64, places };
    match bytecode::compile(&predicate, &layout) {
        Ok(bytes) => {
            check(&mut RandomNumbers::new(1), &predicate, &layout, &bytes);
            expected.assert_eq(&validate(&bytes).expect("check has validated it").to_string());
        }
        Err(refusal) => expected.assert_eq(&refusal.to_string()),
    }
}

const PRIO: u16 = 0;
const CPU: u16 = 1;
const TIME: u16 = 2;
const COMM: u16 = 3;
const PATH: u16 = 4;
const LOAD: u16 = 5;
const GONE: u16 = 6;
const WIDE: u16 = 7;

fn input(number: u16) -> Number {
    Number::Input(Input(number))
}

fn compare(relation: Relation, left: Number, right: Number) -> Test {
    Test::Compare { relation, left, right }
}

fn equal(number: u16, value: i128) -> Test {
    compare(Relation::Equal, input(number), Number::Integer(value))
}

fn text(number: u16) -> TextExpression {
    TextExpression::Input(Input(number))
}

fn matches(number: u16, pattern: Pattern) -> Test {
    Test::Matches { text: text(number), pattern }
}

fn exactly(number: u16, bytes: &str) -> Test {
    matches(number, Pattern::Exactly(bytes.as_bytes().into()))
}

fn pair(operation: Arithmetic, left: Number, right: Number) -> Number {
    Number::Arithmetic { operation, left: Box::new(left), right: Box::new(right) }
}

/// Every test leads straight to the end that it decides.
#[test]
fn chains_jump_to_the_end() {
    let less = compare(Relation::Less, input(PRIO), Number::Integer(-5));
    show(
        Test::All(vec![less, equal(CPU, 3), equal(TIME, 1 << 63)]),
        &expect![[r#"
        for 64 bytes of arguments
          0  i32le[0] >= -5 -> 4
          1  u8[4] != 3 -> 4
          2  u64be[5] != 9223372036854775808 -> 4
          3  keep
          4  drop
    "#]],
    );
}

#[test]
fn what_is_inside_of_another_falls_through() {
    let both = Test::All(vec![equal(CPU, 1), equal(PRIO, 7)]);
    let neither = Test::Not(Box::new(Test::Any(vec![equal(CPU, 2), equal(PRIO, 8)])));
    show(
        Test::Any(vec![both, neither]),
        &expect![[r#"
        for 64 bytes of arguments
          0  u8[4] != 1 -> 2
          1  i32le[0] == 7 -> 4
          2  u8[4] == 2 -> 5
          3  i32le[0] == 8 -> 5
          4  keep
          5  drop
    "#]],
    );
}

/// A `u8` is always below 300 and never -1.
#[test]
fn what_the_field_cannot_be_is_not_tested() {
    let below = compare(Relation::Less, input(CPU), Number::Integer(300));
    show(
        Test::All(vec![below.clone(), equal(PRIO, 4)]),
        &expect![[r#"
        for 64 bytes of arguments
          0  i32le[0] != 4 -> 2
          1  keep
          2  drop
    "#]],
    );
    show(
        Test::Any(vec![equal(CPU, -1), equal(PRIO, 4)]),
        &expect![[r#"
        for 64 bytes of arguments
          0  i32le[0] != 4 -> 2
          1  keep
          2  drop
    "#]],
    );
    show(
        below,
        &expect![[r#"
        for 64 bytes of arguments
          0  keep
    "#]],
    );
}

#[test]
fn ranges_are_one_test_or_two() {
    let among = |number, ranges: &[(i128, i128)]| Test::Among { value: input(number), ranges: ranges.to_vec() };
    show(
        among(PRIO, &[(-20, -1), (5, 5), (100, i128::from(i32::MAX))]),
        &expect![[r#"
        for 64 bytes of arguments
          0  i32le[0] in -20..=-1 -> 3
          1  i32le[0] == 5 -> 3
          2  i32le[0] < 100 -> 4
          3  keep
          4  drop
    "#]],
    );
    show(
        among(TIME, &[(100, 200)]),
        &expect![[r#"
        for 64 bytes of arguments
          0  u64be[5] < 100 -> 3
          1  u64be[5] >= 201 -> 3
          2  keep
          3  drop
    "#]],
    );
}

/// A list of many is halved.
#[test]
fn many_ranges_are_searched() {
    let ranges: Vec<(i128, i128)> = (0..10).map(|number| (10 * number, 10 * number)).collect();
    show(
        Test::Among { value: input(CPU), ranges },
        &expect![[r#"
        for 64 bytes of arguments
          0  u8[4] < 50 -> 9
          1  u8[4] < 70 -> 6
          2  u8[4] == 70 -> 16
          3  u8[4] == 80 -> 16
          4  u8[4] == 90 -> 16
          5  jump -> 17
          6  u8[4] == 50 -> 16
          7  u8[4] == 60 -> 16
          8  jump -> 17
          9  u8[4] < 20 -> 14
         10  u8[4] == 20 -> 16
         11  u8[4] == 30 -> 16
         12  u8[4] == 40 -> 16
         13  jump -> 17
         14  u8[4] == 0 -> 16
         15  u8[4] != 10 -> 17
         16  keep
         17  drop
    "#]],
    );
}

#[test]
fn bits_take_a_register() {
    let bits = |operation, left, right| Number::Bits { operation, left: Box::new(left), right: Box::new(right) };
    let flags = bits(Bitwise::And, input(PRIO), Number::Integer(4));
    let shifted = bits(Bitwise::ShiftLeft, Number::Integer(1), input(CPU));
    let flags = compare(Relation::NotEqual, flags, Number::Integer(0));
    show(
        Test::All(vec![flags, compare(Relation::Equal, shifted, Number::Integer(8))]),
        &expect![[r#"
            for 64 bytes of arguments
              0  i32le[0] & 0x4 == 0x0 -> 6
              1  r0 = 1
              2  r1 = u8[4]
              3  r0 = r0 << r1 or -> 6
              4  r0:u64 != 8 -> 6
              5  keep
              6  drop
        "#]],
    );
}

/// Where the bits of a field are looked at in place: masks inside of it, beyond it, and with copies of its sign.
#[test]
fn bits_of_fields_are_those_of_64() {
    let masks = [0, 1, 0x80, 0xFF, 0x8000, 0xFFFF, 0x8000_0000, 0xFFFF_FFFF, 1 << 40, -1, -4, i128::from(u64::MAX)];
    let relations = [Relation::Equal, Relation::NotEqual, Relation::Less, Relation::Greater];
    for (signed, bytes) in [false, true].into_iter().flat_map(|signed| [1, 2, 4, 8].map(|bytes| (signed, bytes))) {
        let kind = InputKind::Integer { signed, bits: 8 * bytes };
        let inputs = vec![InputClass { name: "flags".into(), kind, optional: false }];
        let layout = ArgumentLayout {
            size: bytes.into(),
            places: vec![InputPlace::Integer { offset: 0, bytes, order: ByteOrder::Big }],
        };
        for (mask, relation) in masks.into_iter().flat_map(|mask| relations.map(|relation| (mask, relation))) {
            for value in [0, 1, mask, mask & 0x80, -1] {
                let (left, right) = (Box::new(Number::Integer(mask)), Box::new(input(0)));
                let bits = Number::Bits { operation: Bitwise::And, left, right };
                let root = compare(relation, bits, Number::Integer(value));
                let predicate = Predicate { inputs: inputs.clone(), root };
                let bytes = bytecode::compile(&predicate, &layout).expect("bytecode has bits");
                check(&mut RandomNumbers::new(value as u64), &predicate, &layout, &bytes);
            }
        }
    }
}

/// What cannot be held is unknown, and `prio` and `time` compare as what they are.
#[test]
fn arithmetic_may_be_unknown() {
    let difference = pair(Arithmetic::Subtract, input(TIME), input(PRIO));
    let sum = pair(Arithmetic::Add, input(CPU), Number::Integer(1));
    let product = pair(Arithmetic::Multiply, difference, sum);
    let test = compare(Relation::Greater, product, input(PRIO));
    show(
        Test::Any(vec![test, equal(CPU, 1)]),
        &expect![[r#"
        for 64 bytes of arguments
          0  r0 = u64be[5]
          1  r1 = i32le[0]
          2  r0:i64 = r0:u64 - r1:i64 or -> 8
          3  r1 = u8[4]
          4  r1:u64 = r1:u64 + 1 or -> 8
          5  r0:i64 = r0:i64 * r1:u64 or -> 8
          6  r1 = i32le[0]
          7  r0:i64 > r1:i64 -> 9
          8  u8[4] != 1 -> 10
          9  keep
         10  drop
    "#]],
    );
}

#[test]
fn times_are_scaled() {
    let time = Number::Scaled { value: Box::new(input(TIME)), multiply: 10, divide: 3, add: -7 };
    show(
        compare(Relation::Less, time, Number::Integer(1000)),
        &expect![[r#"
        for 64 bytes of arguments
          0  r0 = u64be[5]
          1  r0:i64 = r0:u64 * 10 / 3 + -7 or -> 4
          2  r0:i64 >= 1000 -> 4
          3  keep
          4  drop
    "#]],
    );
}

/// A truth that is compared with a constant is no number.
#[test]
fn truths_jump() {
    let truth = |test| Number::Truth(Box::new(test));
    show(
        compare(Relation::Equal, truth(equal(CPU, 1)), Number::Integer(0)),
        &expect![[r#"
        for 64 bytes of arguments
          0  u8[4] == 1 -> 2
          1  keep
          2  drop
    "#]],
    );
    let sum = pair(Arithmetic::Add, truth(equal(CPU, 1)), truth(equal(PRIO, 1)));
    show(
        compare(Relation::Equal, sum, Number::Integer(1)),
        &expect![[r#"
        for 64 bytes of arguments
          0  u8[4] != 1 -> 3
          1  r0 = 1
          2  jump -> 4
          3  r0 = 0
          4  i32le[0] != 1 -> 7
          5  r1 = 1
          6  jump -> 8
          7  r1 = 0
          8  r0:u64 = r0:u64 + r1:u64 or -> 11
          9  r0:u64 != 1 -> 11
         10  keep
         11  drop
    "#]],
    );
}

/// In a number unknown differs from both true and false: a register remembers it.
#[test]
fn three_values_take_a_flag() {
    let quotient = pair(Arithmetic::Divide, input(PRIO), input(CPU));
    let any = Test::Any(vec![compare(Relation::Equal, quotient, Number::Integer(2)), equal(TIME, 9)]);
    let sum = pair(Arithmetic::Add, Number::Truth(Box::new(any)), input(CPU));
    show(
        compare(Relation::Equal, sum, Number::Integer(1)),
        &expect![[r#"
        for 64 bytes of arguments
          0  r0 = 0
          1  r1 = i32le[0]
          2  r2 = u8[4]
          3  r1:i64 = r1:i64 / r2:u64 or -> 6
          4  r1:i64 == 2 -> 10
          5  jump -> 7
          6  r0 = 1
          7  u64be[5] == 9 -> 10
          8  r0:u64 == 0 -> 12
          9  jump -> 17
         10  r0 = 1
         11  jump -> 13
         12  r0 = 0
         13  r1 = u8[4]
         14  r0:u64 = r0:u64 + r1:u64 or -> 17
         15  r0:u64 != 1 -> 17
         16  keep
         17  drop
    "#]],
    );
}

#[test]
fn what_is_missing_is_decided() {
    show(
        Test::Any(vec![equal(GONE, 1), equal(CPU, 2), Test::Has(Input(GONE))]),
        &expect![[r#"
            for 64 bytes of arguments
              0  u8[4] != 2 -> 2
              1  keep
              2  drop
        "#]],
    );
    show(
        Test::Not(Box::new(equal(GONE, 1))),
        &expect![[r#"
        for 64 bytes of arguments
          0  drop
    "#]],
    );
    show(
        Test::All(vec![Test::Has(Input(CPU)), Test::Not(Box::new(Test::Has(Input(GONE))))]),
        &expect![[r#"
        for 64 bytes of arguments
          0  keep
    "#]],
    );
}

/// A text is loaded once, wherever it is known to be loaded.
#[test]
fn texts_are_found_once() {
    let glob = Pattern::Glob(["a", "b", ""].map(|part| part.as_bytes().into()).into());
    let any = Test::Any(vec![exactly(COMM, "sh"), matches(COMM, glob), exactly(PATH, "/bin/sh")]);
    show(
        Test::All(vec![any, Test::Not(Box::new(exactly(PATH, "")))]),
        &expect![[r#"
        for 64 bytes of arguments
          0  t0 = text[16..32]
          1  t0 is "sh" -> 5
          2  t0 is like "a*b*" -> 5
          3  t1 = text behind [32]
          4  t1 is not "/bin/sh" -> 8
          5  t2 = text behind [32]
          6  t2 is "" -> 8
          7  keep
          8  drop
    "#]],
    );
}

/// Where two ways meet, a text that one of them has not loaded is loaded again.
#[test]
fn texts_are_loaded_on_every_way() {
    let truth = |test| Number::Truth(Box::new(test));
    let any = truth(Test::Any(vec![equal(CPU, 1), exactly(COMM, "sh")]));
    let sum = pair(Arithmetic::Add, any, truth(exactly(COMM, "bash")));
    show(
        compare(Relation::Equal, sum, Number::Integer(1)),
        &expect![[r#"
        for 64 bytes of arguments
          0  u8[4] == 1 -> 3
          1  t0 = text[16..32]
          2  t0 is not "sh" -> 5
          3  r0 = 1
          4  jump -> 6
          5  r0 = 0
          6  t1 = text[16..32]
          7  t1 is not "bash" -> 10
          8  r1 = 1
          9  jump -> 11
         10  r1 = 0
         11  r0:u64 = r0:u64 + r1:u64 or -> 14
         12  r0:u64 != 1 -> 14
         13  keep
         14  drop
    "#]],
    );
}

#[test]
fn texts_have_an_order() {
    let literal = Test::CompareText {
        relation: Relation::GreaterOrEqual,
        left: TextExpression::Literal((*b"b").into()),
        right: text(COMM),
    };
    let other = Test::CompareText { relation: Relation::NotEqual, left: text(COMM), right: text(PATH) };
    let prefix = matches(PATH, Pattern::Prefix((*b"/proc/").into()));
    show(
        Test::All(vec![literal, other, prefix]),
        &expect![[r#"
        for 64 bytes of arguments
          0  t0 = text[16..32]
          1  t0 > "b" -> 6
          2  t1 = text behind [32]
          3  t0 == t1 -> 6
          4  t1 does not begin with "/proc/" -> 6
          5  keep
          6  drop
    "#]],
    );
}

/// What is not a number is not less, and not greater or equal either.
#[test]
fn reals_may_be_no_numbers() {
    let less = compare(Relation::Less, input(LOAD), Number::Real(1.5.into()));
    let product = pair(Arithmetic::Multiply, input(LOAD), input(CPU));
    let different = compare(Relation::NotEqual, product, Number::Integer(3));
    show(
        Test::All(vec![Test::Not(Box::new(less)), different]),
        &expect![[r#"
        for 64 bytes of arguments
          0  f0 = f64[48]
          1  f1 = 1.5
          2  f0 < f1 -> 10
          3  f0 = f64[48]
          4  r0 = u8[4]
          5  f1 = r0:u64
          6  f0 = f0 * f1
          7  f1 = 3.0
          8  f0 == f1 -> 10
          9  keep
         10  drop
    "#]],
    );
}

#[test]
fn what_bytecode_cannot_say_is_refused() {
    let regex = Pattern::Regex(Regex::new("^a+$").expect("it is a regular expression"));
    show(
        Test::Any(vec![equal(CPU, 2), matches(COMM, regex)]),
        &expect![[r#"bytecode has no regular expressions: comm =~ "^a+$""#]],
    );
    show(exactly(WIDE, "a"), &expect![[r#"bytecode takes text of UTF-8 alone: wide is "a""#]]);
}

#[test]
fn places_must_suit() {
    let refused = |kind, place: InputPlace, size| {
        let inputs = vec![InputClass { name: "field".into(), kind, optional: false }];
        let predicate = Predicate { inputs, root: Test::Constant(Some(true)) };
        let layout = ArgumentLayout { size, places: vec![place] };
        bytecode::compile(&predicate, &layout).map_or_else(|refusal| refusal.to_string(), |_| "taken".to_owned())
    };
    let integer = InputKind::Integer { signed: false, bits: 32 };
    let place = |offset| InputPlace::Integer { offset, bytes: 4, order: ByteOrder::Little };
    let found = [
        refused(integer, place(4), 8),
        refused(integer, place(5), 8),
        refused(integer, InputPlace::Real { offset: 0, bytes: 4 }, 8),
        refused(InputKind::Text(Encoding::Utf8), place(0), 8),
        refused(integer, place(65536), 1 << 17),
    ];
    expect![[r#"
        taken
        the place is not inside of the structure: field
        the place is not one for the input's type: field
        the place is not one for the input's type: field
        the structure has more than 65536 bytes: all inputs"#]]
    .assert_eq(&found.join("\n"));
}

#[test]
fn ten_thousand_predicates_fit_and_more_are_refused() {
    let program = |count: i128| {
        let inputs = vec![InputClass {
            name: "a".into(),
            kind: InputKind::Integer { signed: false, bits: 64 },
            optional: false,
        }];
        let root =
            Test::All((0..count).map(|value| compare(Relation::NotEqual, input(0), Number::Integer(value))).collect());
        let layout = ArgumentLayout {
            size: 8,
            places: vec![InputPlace::Integer { offset: 0, bytes: 8, order: ByteOrder::Little }],
        };
        bytecode::compile(&Predicate { inputs, root }, &layout)
    };
    let bytes = program(10_000).expect("ten thousand fit");
    let run = |value: u64| validate(&bytes).expect("it is sound").run(&value.to_le_bytes(), &());
    assert_eq!([run(9_999), run(10_000)], [Ok(false), Ok(true)]);
    assert!(program(17_000).is_err_and(|refusal| refusal.why.contains("16384 instructions")));
}

/// Tests inside of numbers, where each may be unknown: the code must not double with each level.
#[test]
fn code_grows_with_the_predicate() {
    let instructions = |depth: usize| {
        let mut test = equal(CPU, 1);
        for level in 0..depth {
            let quotient = pair(Arithmetic::Divide, Number::Integer(9), input(CPU));
            let quotient = compare(Relation::Equal, quotient, Number::Integer(level as i128));
            let list = if level % 2 == 0 { Test::Any(vec![quotient, test]) } else { Test::All(vec![test, quotient]) };
            test = if level % 3 == 2 {
                compare(Relation::Equal, pair(Arithmetic::Add, Number::Truth(Box::new(list)), input(CPU)), input(CPU))
            } else {
                list
            };
        }
        let kind = InputKind::Integer { signed: false, bits: 8 };
        let class = InputClass { name: "cpu".into(), kind, optional: false };
        let place = InputPlace::Integer { offset: 0, bytes: 1, order: ByteOrder::Little };
        let predicate = Predicate { inputs: vec![class.clone(), class], root: test };
        let layout = ArgumentLayout { size: 1, places: vec![place; 2] };
        let bytes = bytecode::compile(&predicate, &layout).expect("it takes few registers");
        check(&mut RandomNumbers::new(depth as u64), &predicate, &layout, &bytes);
        bytes.len() / 16
    };
    let (few, many) = (instructions(3), instructions(6));
    println!("{few} and {many} instructions");
    assert!(many <= 3 * few, "{few} instructions at depth 3, {many} at depth 6");
}
