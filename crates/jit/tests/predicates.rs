//! Native code of predicates says what the evaluator says.

use kymo_ir::predicate::testing::{Options, arguments, data, predicate};
use kymo_ir::predicate::{Input, Layout, Pattern, Predicate, Refusal, Test, Text};
use kymo_ir::random::Random;
use kymo_jit::{LoadedFilter, NativeFilter, Target};
use proptest::prelude::*;

fn target() -> Option<Target> {
    let target = Target::host();
    if target.is_none() {
        println!("NO MACHINE CODE HERE: not run");
    }
    target
}

fn compiled(predicate: &Predicate, layout: &Layout) -> Option<Result<LoadedFilter, Refusal>> {
    let filter = NativeFilter::new(&target()?, predicate, layout);
    Some(filter.map(|filter| filter.load().expect("tests run where code may be executed")))
}

/// How many of these events are kept; by both alike.
fn same_by_both(random: &mut Random, predicate: &Predicate, layout: &Layout) -> Option<usize> {
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
        let mut random = Random::new(seed);
        let (predicate, layout) = predicate(&mut random, &Options { nodes, ..Options::PLAIN });
        same_by_both(&mut random, &predicate, &layout);
    }

    #[test]
    fn random_integers_mean_what_the_evaluator_says(seed: u64) {
        let mut random = Random::new(seed);
        let options = Options { arithmetic: true, products: true, scaled: true, nodes: 8, ..Options::INTEGERS };
        let (predicate, layout) = predicate(&mut random, &options);
        same_by_both(&mut random, &predicate, &layout);
    }

    #[test]
    fn random_texts_mean_what_the_evaluator_says(seed: u64) {
        let mut random = Random::new(seed);
        let (mut predicate, layout) = predicate(&mut random, &Options { nodes: 4, ..Options::PLAIN });
        let Some(text) = (0..predicate.inputs.len()).find(|&number| predicate.is_utf8(Input(number as u16))) else {
            return Ok(());
        };
        let part = |random: &mut Random| random.bytes(3).iter().map(|byte| b'a' + byte % 2).collect::<Box<[u8]>>();
        let parts = [part(&mut random), part(&mut random), part(&mut random)];
        let pattern = Pattern::Glob(parts.iter().map(|part| part[..random.below(3).max(1)].into()).collect());
        predicate.root = Test::Matches { text: Text::Input(Input(text as u16)), pattern };
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
        let mut random = Random::new(seed);
        let (predicate, layout) = predicate(&mut random, &Options::PLAIN);
        let Some(kept) = same_by_both(&mut random, &predicate, &layout) else { continue };
        compiled += 1;
        both += usize::from(kept > 0 && kept < 20);
    }
    assert!(compiled > 400 && both > 50, "{compiled} were compiled, {both} turned out both ways");
}
