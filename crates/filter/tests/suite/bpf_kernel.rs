//! The kernel's verifier accepts the programs, and its machine code keeps what the evaluator keeps.

use kymo_filter::bpf::{self, BpfInstruction};
use kymo_ir::Encoding;
use kymo_ir::predicate::{
    ArgumentLayout, Input, InputClass, InputKind, InputPlace, Number, Pattern, Predicate, Relation, Test,
    TextExpression,
};
use kymo_probe::KernelProgram;
use kymo_random::RandomNumbers;
use kymo_random::predicates::{self, PredicateOptions};
use kymo_units::ByteOrder;

/// Events for each program.
const EVENTS: usize = 8;

/// Whether this kernel lets us load programs and run them.
fn is_available() -> bool {
    // r0 = 0; exit
    let nothing = [[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    match KernelProgram::load(&nothing).and_then(|program| program.test_run(&mut [])) {
        Ok(_) => true,
        Err(error) => {
            assert!(error.is_unavailable(), "{error}");
            println!("NO BPF HERE: not run ({error})");
            false
        }
    }
}

/// Loads the program of a predicate, runs random events through it, and says how many there were and how many were kept.
fn check(
    random: &mut RandomNumbers,
    predicate: &Predicate,
    layout: &ArgumentLayout,
    program: &[BpfInstruction],
) -> [usize; 2] {
    let bytes: Vec<[u8; 8]> = program.iter().map(|instruction| instruction.to_bytes()).collect();
    let loaded = KernelProgram::load(&bytes).unwrap_or_else(|error| panic!("{error}\n{predicate}{layout:?}"));
    let mut kept = 0;
    for _ in 0..EVENTS {
        let arguments = predicates::arguments(random, predicate, layout);
        let expected = predicate.keeps(&predicates::data(predicate, layout, &arguments)[..]);
        let answer = loaded.test_run(&mut arguments.clone()).unwrap_or_else(|error| panic!("{error}\n{predicate}"));
        assert_eq!(answer, u32::from(expected), "{predicate}{layout:?}\n{arguments:x?}");
        kept += usize::from(expected);
    }
    [EVENTS, kept]
}

#[test]
fn random_predicates_keep_what_the_evaluator_keeps_in_the_kernel() {
    if !is_available() {
        return;
    }
    let options = PredicateOptions {
        reals: false,
        mixed: false,
        encodings: false,
        regex: false,
        pointers: false,
        ..PredicateOptions::ALL
    };
    let (mut taken, mut events, mut kept, mut longest) = (0, 0, 0, 0);
    for seed in 0..1000 {
        let random = &mut RandomNumbers::new(seed);
        let nodes = 1 + random.below(if seed % 10 == 0 { 600 } else { 60 });
        let (predicate, layout) = predicates::predicate(random, &PredicateOptions { nodes, ..options });
        let Ok(program) = bpf::compile(&predicate, &layout) else { continue };
        let [more, more_kept] = check(random, &predicate, &layout, &program);
        (taken, events, kept) = (taken + 1, events + more, kept + more_kept);
        longest = longest.max(program.len());
    }
    println!("{taken} programs, the longest of {longest} instructions; {kept} of {events} events kept");
    assert!(taken > 800 && kept > 500, "{taken} taken, {kept} kept: the test has become weak");
}

/// Long programs must not make the verifier give up: where paths meet again it has to see that they are alike.
#[test]
fn long_programs_are_verified() {
    if !is_available() {
        return;
    }
    let comm = InputClass { name: "comm".into(), kind: InputKind::Text(Encoding::Utf8), optional: false };
    let prio = InputClass { name: "prio".into(), kind: InputKind::Integer { signed: true, bits: 32 }, optional: false };
    let places = vec![
        InputPlace::Inline { offset: 0, capacity: 512 },
        InputPlace::Integer { offset: 512, bytes: 4, order: ByteOrder::Little },
    ];
    let layout = ArgumentLayout { size: 516, places };
    let value = || Number::Input(Input(1));
    let differs =
        |number| Test::Compare { relation: Relation::NotEqual, left: value(), right: Number::Integer(number) };
    let parts = ["a", "bab", "bb", ""].map(|part| part.as_bytes().into());
    let truth = |number| Number::Truth(Box::new(Test::Any(vec![differs(number), differs(number + 1)])));
    let add = |left, right| Number::Arithmetic {
        operation: kymo_ir::predicate::Arithmetic::Add,
        left: Box::new(left),
        right: Box::new(right),
    };
    let sum = (0..100).map(|number| truth(number * 3)).reduce(add).expect("there are some");
    for root in [
        Test::All((0..8_000).map(differs).collect()),
        Test::Among { value: value(), ranges: (0..6_000).map(|number| (number * 5, number * 5 + 2)).collect() },
        Test::Matches { text: TextExpression::Input(Input(0)), pattern: Pattern::Glob(parts.to_vec()) },
        Test::Compare { relation: Relation::GreaterOrEqual, left: sum, right: Number::Integer(99) },
    ] {
        let predicate = Predicate { inputs: vec![comm.clone(), prio.clone()], root };
        let program = bpf::compile(&predicate, &layout).expect("it is not too long");
        let [_, kept] = check(&mut RandomNumbers::new(7), &predicate, &layout, &program);
        println!("{} instructions, {kept} kept", program.len());
    }
}
