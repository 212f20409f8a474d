//! The meaning of predicates at its edges.

use super::*;

fn integer(name: &str, signed: bool, bits: u8) -> InputClass {
    InputClass { name: name.into(), kind: InputKind::Integer { signed, bits }, optional: true }
}

fn input(number: u16) -> Number {
    Number::Input(Input(number))
}

fn pair(operation: Arithmetic, left: Number, right: Number) -> Number {
    Number::Arithmetic { operation, left: Box::new(left), right: Box::new(right) }
}

fn compare(relation: Relation, left: Number, right: Number) -> Test {
    Test::Compare { relation, left, right }
}

/// The value of a test over a signed and an unsigned integer.
fn check(test: Test, signed: Option<i64>, unsigned: Option<u64>) -> Option<bool> {
    let inputs = vec![integer("s", true, 64), integer("u", false, 64)];
    let predicate = Predicate { inputs, root: test };
    predicate.verify().expect("the test is sound");
    let datum = |bits: Option<u64>| bits.map_or(Datum::Missing, Datum::Number);
    let data = [datum(signed.map(|value| value as u64)), datum(unsigned)];
    let value = predicate.test(&predicate.root, &data[..]);
    let fact = |bits: Option<u64>, number: u16| match bits {
        None => Fact::Missing,
        Some(bits) => Fact::Integer(ValueRange::single(predicate.range(&input(number)).of_bits(bits))),
    };
    let facts = [fact(signed.map(|value| value as u64), 0), fact(unsigned, 1)];
    for outcomes in [predicate.outcomes(&facts), predicate.outcomes(&[])] {
        let of_value = Outcomes::of(value);
        assert!(!of_value.is_true || outcomes.is_true, "{predicate}{outcomes:?}");
        assert!(!of_value.is_false || outcomes.is_false, "{predicate}{outcomes:?}");
        assert!(!of_value.is_unknown || outcomes.is_unknown, "{predicate}{outcomes:?}");
    }
    value
}

#[test]
fn signed_and_unsigned_compare_as_what_they_are() {
    let less = || compare(Relation::Less, input(0), input(1));
    assert_eq!(check(less(), Some(-1), Some(u64::MAX)), Some(true));
    assert_eq!(check(less(), Some(5), Some(4)), Some(false));
    assert_eq!(check(less(), None, Some(4)), None);
}

#[test]
fn arithmetic_is_exact_or_unknown() {
    let sum = |one, other| pair(Arithmetic::Add, one, other);
    // An expression that cannot be negative may take all of 64 bits.
    let beyond = compare(Relation::Greater, sum(input(1), Number::Integer(1)), input(1));
    assert_eq!(check(beyond.clone(), None, Some(1 << 63)), Some(true));
    assert_eq!(check(beyond, None, Some(u64::MAX)), None);
    let signed = compare(Relation::Greater, sum(input(0), Number::Integer(1)), input(0));
    assert_eq!(check(signed.clone(), Some(i64::MAX), None), None);
    assert_eq!(check(signed, Some(-5), None), Some(true));
    let difference = pair(Arithmetic::Subtract, input(1), Number::Integer(10));
    assert_eq!(check(compare(Relation::Less, difference, Number::Integer(0)), None, Some(3)), Some(true));
}

#[test]
fn a_quotient_by_zero_is_unknown() {
    for operation in [Arithmetic::Divide, Arithmetic::Remainder] {
        let number = pair(operation, Number::Integer(5), input(0));
        let test = compare(Relation::GreaterOrEqual, number, Number::Integer(0));
        assert_eq!(check(test.clone(), Some(0), None), None);
        assert_eq!(check(test, Some(2), None), Some(true));
    }
}

#[test]
fn shifts_beyond_the_bits_are_unknown() {
    let shift = |count| Number::Bits {
        operation: Bitwise::ShiftLeft,
        left: Box::new(Number::Integer(1)),
        right: Box::new(Number::Integer(count)),
    };
    let is_high = |count| compare(Relation::Equal, shift(count), Number::Integer(1 << 63));
    assert_eq!(check(is_high(63), None, None), Some(true));
    assert_eq!(check(is_high(64), None, None), None);
    assert_eq!(check(is_high(-1), None, None), None);
}

#[test]
fn a_complement_keeps_its_sign() {
    let minus_one = compare(Relation::Equal, Number::Complement(Box::new(Number::Integer(0))), Number::Integer(-1));
    assert_eq!(check(minus_one, None, None), Some(true));
    let all = compare(Relation::Equal, Number::Complement(Box::new(input(1))), Number::Integer(i128::from(u64::MAX)));
    assert_eq!(check(all, None, Some(0)), Some(true));
}

#[test]
fn unknown_gives_way_to_what_decides() {
    let unknown = || compare(Relation::Equal, input(0), Number::Integer(1));
    let constant = |value| Test::Constant(Some(value));
    assert_eq!(check(Test::All(vec![unknown(), constant(false)]), None, None), Some(false));
    assert_eq!(check(Test::All(vec![unknown(), constant(true)]), None, None), None);
    assert_eq!(check(Test::Any(vec![unknown(), constant(true)]), None, None), Some(true));
    assert_eq!(check(Test::Any(vec![unknown(), constant(false)]), None, None), None);
    assert_eq!(check(Test::Not(Box::new(unknown())), None, None), None);
    assert_eq!(check(Test::Not(Box::new(Test::Has(Input(0)))), None, None), Some(true));
}

#[test]
fn globs_take_parts_in_order_without_overlap() {
    let glob = |parts: &[&str], text: &str| {
        Pattern::Glob(parts.iter().map(|part| part.as_bytes().into()).collect()).matches(text.as_bytes())
    };
    assert!(glob(&["a", "b"], "ab"));
    assert!(!glob(&["ab", "ba"], "aba"));
    assert!(glob(&["", "issip", "ss", ""], "mississipissippi"));
    assert!(!glob(&["", "12", "23"], "a12b12"));
    assert!(glob(&["", "abac", ""], "ababac"));
}

#[test]
fn packets_are_judged_by_what_is_known_of_them() {
    let late = compare(Relation::Greater, input(1), Number::Integer(500));
    let predicate = Predicate { inputs: vec![integer("s", true, 64), integer("time", false, 64)], root: late };
    let between = |lowest, highest| [Fact::Anything, Fact::Integer(ValueRange { lowest, highest })];
    assert_eq!(predicate.outcomes(&between(100, 200)).constant(), Some(Some(false)));
    assert_eq!(predicate.outcomes(&between(501, 900)).constant(), Some(Some(true)));
    assert_eq!(predicate.outcomes(&between(100, 900)).constant(), None);
}

#[test]
fn scaling_rounds_down() {
    let number = Number::Scaled { value: Box::new(input(1)), multiply: 1_000_000_000, divide: 3_000_000_000, add: -1 };
    let test = compare(Relation::Equal, number, Number::Integer(1));
    assert_eq!(check(test.clone(), None, Some(8)), Some(true));
    assert_eq!(check(test, None, Some(9)), Some(false));
}
