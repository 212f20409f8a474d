//! Native code of predicates says what the evaluator says.

use kymo_ir::Encoding;
use kymo_ir::predicate::{
    ArgumentLayout, Input, InputClass, InputKind, InputPlace, Number, Pattern, Predicate, Refusal, Regex, Relation,
    Test, TextExpression,
};
use kymo_jit::{LoadedFilter, NativeFilter, NativeTarget};
use kymo_random::RandomNumbers;
use kymo_random::predicates::{PredicateOptions, arguments, data, predicate};
use proptest::prelude::*;

fn target() -> Option<NativeTarget> {
    let target = NativeTarget::host();
    if target.is_none() {
        println!("NO MACHINE CODE HERE: not run");
    }
    target
}

fn compiled(predicate: &Predicate, layout: &ArgumentLayout) -> Option<Result<LoadedFilter, Refusal>> {
    let filter = NativeFilter::new(&target()?, predicate, layout);
    Some(filter.map(|filter| filter.load().expect("tests run where code may be executed")))
}

/// How many of these events are kept; by both alike.
fn same_by_both(random: &mut RandomNumbers, predicate: &Predicate, layout: &ArgumentLayout) -> Option<usize> {
    let filter = match compiled(predicate, layout)? {
        Ok(filter) => filter,
        Err(refusal) => {
            let known = ["machine code scales with 64 bits", "machine code looks for short texts alone"];
            assert!(known.contains(&refusal.why), "{refusal}\n{predicate}");
            return None;
        }
    };
    let mut kept = 0;
    for _ in 0..20 {
        let bytes = arguments(random, predicate, layout);
        let event = data(predicate, layout, &bytes);
        let expected = predicate.keeps(&event[..]);
        // SAFETY: the structure is of this layout, and its pointers lead to text that is there for good.
        #[allow(unsafe_code)]
        let found = unsafe { filter.run_raw(bytes.as_ptr()) };
        assert_eq!(found, expected, "{event:?}\n{layout:?}\n{predicate}");
        kept += usize::from(found);
    }
    Some(kept)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_predicates_mean_what_the_evaluator_says(seed: u64, nodes in 1_usize..60) {
        let mut random = RandomNumbers::new(seed);
        let (predicate, layout) = predicate(&mut random, &PredicateOptions { nodes, ..PredicateOptions::PLAIN });
        same_by_both(&mut random, &predicate, &layout);
    }

    #[test]
    fn random_integers_mean_what_the_evaluator_says(seed: u64) {
        let mut random = RandomNumbers::new(seed);
        let options = PredicateOptions { arithmetic: true, products: true, scaled: true, nodes: 8, ..PredicateOptions::INTEGERS };
        let (predicate, layout) = predicate(&mut random, &options);
        same_by_both(&mut random, &predicate, &layout);
    }

    #[test]
    fn random_texts_mean_what_the_evaluator_says(seed: u64) {
        let mut random = RandomNumbers::new(seed);
        let (mut predicate, layout) = predicate(&mut random, &PredicateOptions { nodes: 4, ..PredicateOptions::PLAIN });
        let Some(text) = (0..predicate.inputs.len()).find(|&number| predicate.is_utf8(Input(number as u16))) else {
            return Ok(());
        };
        let part = |random: &mut RandomNumbers| random.bytes(3).iter().map(|byte| b'a' + byte % 2).collect::<Box<[u8]>>();
        let parts = [part(&mut random), part(&mut random), part(&mut random)];
        let pattern = Pattern::Glob(parts.iter().map(|part| part[..random.below(3).max(1)].into()).collect());
        predicate.root = Test::Matches { text: TextExpression::Input(Input(text as u16)), pattern };
        same_by_both(&mut random, &predicate, &layout);
    }
}

/// A comparison that nothing is ever found out by would prove little.
#[test]
fn random_predicates_are_compiled_and_turn_out_both_ways() {
    if target().is_none() {
        return;
    }
    let (mut compiled, mut both) = (0, 0);
    for seed in 0..500 {
        let mut random = RandomNumbers::new(seed);
        let (predicate, layout) = predicate(&mut random, &PredicateOptions::PLAIN);
        let Some(kept) = same_by_both(&mut random, &predicate, &layout) else { continue };
        compiled += 1;
        both += usize::from(kept > 0 && kept < 20);
    }
    assert!(compiled > 400 && both > 50, "{compiled} were compiled, {both} turned out both ways");
}

fn text(encoding: Encoding) -> Vec<InputClass> {
    vec![InputClass { name: "comm".into(), kind: InputKind::Text(encoding), optional: false }]
}

fn is(pattern: Pattern) -> Test {
    Test::Matches { text: TextExpression::Input(Input(0)), pattern }
}

const COMM: InputPlace = InputPlace::Inline { offset: 0, capacity: 16 };

fn comm() -> ArgumentLayout {
    ArgumentLayout { size: 16, places: vec![COMM] }
}

/// What is refused, and the part that people are shown.
fn refused(inputs: Vec<InputClass>, root: Test, layout: &ArgumentLayout) -> String {
    let Some(target) = target() else { return String::new() };
    let refusal = NativeFilter::new(&target, &Predicate { inputs, root }, layout).expect_err("it is refused");
    refusal.to_string()
}

#[test]
fn what_is_refused_is_named() {
    if target().is_none() {
        return;
    }
    let utf8 = || text(Encoding::Utf8);
    let exactly = || Pattern::Exactly(b"cat".as_slice().into());
    let regex = Pattern::Regex(Regex::new("a+").expect("a regular expression"));
    let both = Test::Any(vec![is(exactly()), Test::Not(Box::new(is(regex)))]);
    let found = refused(utf8(), both, &comm());
    assert_eq!(found, "machine code has no regular expressions: comm =~ \"a+\"");
    let found = refused(text(Encoding::Utf16Le), is(exactly()), &comm());
    assert_eq!(found, "machine code reads no text but UTF-8: comm is \"cat\"");
    let found = refused(utf8(), is(exactly()), &ArgumentLayout { size: 15, places: vec![COMM] });
    assert_eq!(found, "the place is not inside of the structure: comm");
    let found = refused(utf8(), is(exactly()), &ArgumentLayout { size: 15, places: Vec::new() });
    assert_eq!(found, "the layout has a place for each input: all inputs");
    let many = Test::All((0..10_000).map(|_| is(exactly())).collect());
    let found = refused(utf8(), many, &comm());
    assert_eq!(found, "the predicate is too large for machine code: 10001 parts");
    let long = is(Pattern::Exactly(vec![b'a'; 1 << 16].into()));
    assert_eq!(refused(utf8(), long, &comm()), "the predicate is too large for machine code: 8193 parts");
    let unsound = is(Pattern::Glob(Vec::new()));
    assert!(refused(utf8(), unsound, &comm()).starts_with("the predicate is not sound"));
}

/// As deep as the verifier lets it be, and alternating, so that each level needs to know what was unknown.
#[test]
fn depth_takes_neither_the_stack_nor_time() {
    let input = || Number::Input(Input(0));
    let mut test = Test::Compare { relation: Relation::Equal, left: input(), right: Number::Integer(5) };
    for level in 0..80 {
        let other = Test::Compare { relation: Relation::Less, left: input(), right: Number::Integer(level) };
        test = if level % 2 == 0 { Test::All(vec![test, other]) } else { Test::Any(vec![other, test]) };
        let truth = Number::Truth(Box::new(test));
        test = Test::Compare { relation: Relation::Equal, left: truth, right: Number::Integer(1) };
    }
    let kind = InputKind::Integer { signed: true, bits: 64 };
    let inputs = vec![InputClass { name: "x".into(), kind, optional: true }];
    let predicate = Predicate { inputs, root: test };
    for place in
        [InputPlace::Missing, InputPlace::Integer { offset: 0, bytes: 8, order: kymo_units::ByteOrder::Little }]
    {
        let layout = ArgumentLayout { size: 8, places: vec![place] };
        let Some(filter) = compiled(&predicate, &layout) else { return };
        let filter = filter.expect("it is said");
        for value in [-1_i64, 5, 50, 500] {
            let bytes = value.to_le_bytes();
            let expected = predicate.keeps(&data(&predicate, &layout, &bytes)[..]);
            assert_eq!(filter.run(&bytes), expected, "{value} at {place:?}");
        }
    }
}

#[test]
fn calls_that_would_leave_their_memory_panic() {
    let predicate = |root| Predicate { inputs: text(Encoding::Utf8), root };
    let cat = predicate(is(Pattern::Exactly(b"cat".as_slice().into())));
    let Some(filter) = compiled(&cat, &comm()) else { return };
    let filter = filter.expect("it is said");
    assert!(filter.run(b"cat\0ignored......"));
    assert!(!filter.run(b"cats\0ignored....."));
    let panics = |filter: &LoadedFilter, bytes: &[u8]| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| filter.run(bytes))).is_err()
    };
    assert!(panics(&filter, b"cat\0"), "the arguments are too short");
    let pointer = ArgumentLayout { size: 16, places: vec![InputPlace::Pointer { offset: 0 }] };
    let filter = compiled(&cat, &pointer).expect("as before").expect("it is said");
    assert!(panics(&filter, &[0; 16]), "nobody made sure of the pointer");
}
