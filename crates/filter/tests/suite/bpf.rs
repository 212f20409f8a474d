//! eBPF programs keep exactly what the evaluator keeps; checked in an interpreter that refuses loads outside of the
//! arguments. What the kernel's own verifier says of them is the duty of `bpf_kernel`.

use expect_test::{Expect, expect};
use kymo_filter::bpf::{self, BpfInstruction};
use kymo_ir::Encoding;
use kymo_ir::predicate::{
    ArgumentLayout, Arithmetic, Input, InputClass, InputKind, InputPlace, Number, Pattern, Predicate, Regex, Relation,
    Test, TextExpression,
};
use kymo_random::RandomNumbers;
use kymo_random::predicates::{self, PredicateOptions};
use kymo_units::ByteOrder;

/// What eBPF is to take whole.
const TAKEN: PredicateOptions = PredicateOptions {
    reals: false,
    mixed: false,
    encodings: false,
    regex: false,
    pointers: false,
    ..PredicateOptions::ALL
};

fn bytes(program: &[BpfInstruction]) -> Vec<u8> {
    program.iter().flat_map(|instruction| instruction.to_bytes()).collect()
}

fn text(program: &[BpfInstruction]) -> String {
    let lines = program.iter().enumerate().map(|(index, instruction)| format!("{index:<4}{instruction}\n"));
    lines.collect()
}

/// Runs random events through the program of a predicate, and counts how many are kept.
fn check(
    random: &mut RandomNumbers,
    predicate: &Predicate,
    layout: &ArgumentLayout,
    program: &[BpfInstruction],
) -> usize {
    let code = bytes(program);
    let machine = rbpf::EbpfVmRaw::new(Some(&code)).unwrap_or_else(|error| panic!("{error:?}\n{}", text(program)));
    let mut kept = 0;
    for _ in 0..16 {
        let mut arguments = predicates::arguments(random, predicate, layout);
        let expected = predicate.keeps(&predicates::data(predicate, layout, &arguments)[..]);
        let before = arguments.clone();
        let answer = machine.execute_program(&mut arguments);
        let answer = answer.unwrap_or_else(|error| panic!("{error:?}\n{predicate}\n{layout:?}\n{}", text(program)));
        assert_eq!(answer, u64::from(expected), "{predicate}{layout:?}\n{before:x?}\n{}", text(program));
        kept += usize::from(expected);
    }
    kept
}

#[test]
fn random_predicates_keep_what_the_evaluator_keeps() {
    let (mut taken, mut kept) = (0, 0);
    for seed in 0..4000 {
        let random = &mut RandomNumbers::new(seed);
        let nodes = 1 + random.below(60);
        let (predicate, layout) = predicates::predicate(random, &PredicateOptions { nodes, ..TAKEN });
        match bpf::compile(&predicate, &layout) {
            Ok(program) => {
                kept += check(random, &predicate, &layout, &program);
                taken += 1;
            }
            Err(refusal) => assert!(
                refusal.why.contains("registers") || refusal.why.contains("128 bits"),
                "{refusal}\n{predicate}{layout:?}"
            ),
        }
    }
    println!("{taken} of 4000 predicates taken, {kept} events kept");
    assert!(taken > 3500 && kept > 1000, "{taken} taken, {kept} kept: the test has become weak");
}

#[test]
fn what_is_taken_of_anything_is_right() {
    let mut taken = 0;
    for seed in 0..2000 {
        let random = &mut RandomNumbers::new(seed);
        let (predicate, layout) =
            predicates::predicate(random, &PredicateOptions { nodes: 8, ..PredicateOptions::ALL });
        if let Ok(program) = bpf::compile(&predicate, &layout) {
            check(random, &predicate, &layout, &program);
            taken += 1;
        }
    }
    assert!(taken > 200, "{taken}");
}

/// Compiles a test over the arguments `prio` (i32), `time` (u64, big-endian, not aligned), `comm` (16 bytes), `path`
/// (behind a pointer), `load` (a real), `gone` (missing), and shows the program or the refusal.
fn show(root: Test, expected: &Expect) {
    let integer = |signed, bits| InputKind::Integer { signed, bits };
    let utf8 = InputKind::Text(Encoding::Utf8);
    let inputs = [
        ("prio", integer(true, 32), InputPlace::Integer { offset: 0, bytes: 4, order: ByteOrder::Little }),
        ("time", integer(false, 64), InputPlace::Integer { offset: 4, bytes: 8, order: ByteOrder::Big }),
        ("comm", utf8, InputPlace::Inline { offset: 16, capacity: 16 }),
        ("path", utf8, InputPlace::Pointer { offset: 32 }),
        ("load", InputKind::Real, InputPlace::Real { offset: 48, bytes: 8 }),
        ("gone", integer(false, 8), InputPlace::Missing),
    ];
    let places = inputs.iter().map(|(_, _, place)| *place).collect();
    let class = |(name, kind, _): (&str, InputKind, InputPlace)| InputClass { name: name.into(), kind, optional: true };
    let predicate = Predicate { inputs: inputs.into_iter().map(class).collect(), root };
    let layout = ArgumentLayout { size: 56, places };
    match bpf::compile(&predicate, &layout) {
        Ok(program) => {
            check(&mut RandomNumbers::new(1), &predicate, &layout, &program);
            expected.assert_eq(&text(&program));
        }
        Err(refusal) => expected.assert_eq(&refusal.to_string()),
    }
}

fn input(number: u16) -> Number {
    Number::Input(Input(number))
}

fn compare(relation: Relation, left: Number, right: Number) -> Test {
    Test::Compare { relation, left, right }
}

fn matches(number: u16, pattern: Pattern) -> Test {
    Test::Matches { text: TextExpression::Input(Input(number)), pattern }
}

fn bytes_of(text: &str) -> Box<[u8]> {
    text.as_bytes().into()
}

#[test]
#[cfg(target_endian = "little")]
fn a_conjunction_drops_as_soon_as_it_can() {
    let low = compare(Relation::Less, input(0), Number::Integer(100));
    let named = matches(2, Pattern::Exactly(bytes_of("swapper/0")));
    show(
        Test::All(vec![low, named]),
        &expect![[r#"
            0   r2 = *(u32 *)(r1 + 0)
            1   r2 <<= 32
            2   r2 s>>= 32
            3   if r2 s>= 100 goto +8
            4   r0 = *(u64 *)(r1 + 16)
            5   r9 = 0x70617773 ll
            6        0x2f726570 above
            7   if r0 != r9 goto +4
            8   r0 = *(u16 *)(r1 + 24)
            9   if r0 != 48 goto +2
            10  r0 = 1
            11  exit
            12  r0 = 0
            13  exit
        "#]],
    );
}

#[test]
#[cfg(target_endian = "little")]
fn a_number_that_is_not_aligned_is_loaded_in_pieces() {
    show(
        compare(Relation::Less, input(1), Number::Integer(5)),
        &expect![[r#"
            0   r2 = *(u32 *)(r1 + 4)
            1   r2 = be32 r2
            2   r2 <<= 32
            3   r0 = *(u32 *)(r1 + 8)
            4   r0 = be32 r0
            5   r2 |= r0
            6   if r2 >= 5 goto +2
            7   r0 = 1
            8   exit
            9   r0 = 0
            10  exit
        "#]],
    );
}

#[test]
#[cfg(target_endian = "little")]
fn a_sum_beyond_what_can_be_held_is_dropped() {
    let sum = Number::Arithmetic {
        operation: Arithmetic::Add,
        left: Box::new(input(1)),
        right: Box::new(Number::Integer(1000)),
    };
    show(
        compare(Relation::Greater, sum, Number::Integer(2000)),
        &expect![[r#"
            0   r2 = *(u32 *)(r1 + 4)
            1   r2 = be32 r2
            2   r2 <<= 32
            3   r0 = *(u32 *)(r1 + 8)
            4   r0 = be32 r0
            5   r2 |= r0
            6   r9 = -1001
            7   if r2 > r9 goto +4
            8   r2 += 1000
            9   if r2 <= 2000 goto +2
            10  r0 = 1
            11  exit
            12  r0 = 0
            13  exit
        "#]],
    );
}

#[test]
fn what_is_missing_leaves_no_code() {
    let gone = compare(Relation::Less, input(5), Number::Integer(5));
    let there = compare(Relation::Greater, input(0), Number::Integer(5));
    show(
        Test::All(vec![there, Test::Any(vec![gone, Test::Has(Input(5))])]),
        &expect![[r#"
            0   r2 = *(u32 *)(r1 + 0)
            1   r2 <<= 32
            2   r2 s>>= 32
            3   r0 = 0
            4   exit
        "#]],
    );
}

#[test]
fn what_ebpf_cannot_say_is_refused_with_the_part() {
    let there = compare(Relation::Greater, input(0), Number::Integer(5));
    let with = |part| Test::All(vec![there.clone(), Test::Not(Box::new(part))]);
    show(with(compare(Relation::Less, input(4), Number::Integer(5))), &expect!["eBPF has no real numbers: load < 5"]);
    show(
        with(matches(2, Pattern::Regex(Regex::new("a|b").expect("it is one")))),
        &expect![[r#"eBPF has no regular expressions: comm =~ "a|b""#]],
    );
    show(
        with(matches(3, Pattern::Prefix(bytes_of("/tmp")))),
        &expect![[r#"eBPF takes text inside of the arguments only, not behind a pointer: path begins with "/tmp""#]],
    );
    let scale = |multiply, divide| Number::Scaled { value: Box::new(input(1)), multiply, divide, add: 0 };
    show(
        with(compare(Relation::Less, scale((1 << 40) + 1, 3 << 40), Number::Integer(5))),
        &expect!["eBPF has no products of 128 bits, as this scale needs: (time * 1099511627777 / 3298534883328 + 0)"],
    );
}

#[test]
fn a_program_is_no_longer_than_jumps_are_far() {
    let many = |count| {
        let one = |value| compare(Relation::NotEqual, input(0), Number::Integer(value));
        Test::All((0..count).map(one).collect())
    };
    let predicate = |root| Predicate {
        inputs: vec![InputClass {
            name: "prio".into(),
            kind: InputKind::Integer { signed: true, bits: 32 },
            optional: false,
        }],
        root,
    };
    let place = InputPlace::Integer { offset: 0, bytes: 4, order: ByteOrder::Little };
    let layout = ArgumentLayout { size: 4, places: vec![place] };
    let fitting = predicate(many(8_000));
    let program = bpf::compile(&fitting, &layout).expect("four instructions each");
    check(&mut RandomNumbers::new(1), &fitting, &layout, &program);
    let refusal = bpf::compile(&predicate(many(10_000)), &layout).expect_err("it is too long");
    assert!(refusal.why.contains("32768"), "{refusal}");
}
