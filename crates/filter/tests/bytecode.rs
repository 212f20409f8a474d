//! Bytecode keeps exactly what the evaluator keeps.

use kymo_filter::bytecode;
use kymo_ir::predicate::testing::{self, Options};
use kymo_ir::predicate::{Layout, Predicate};
use kymo_ir::random::Random;

use kymo_bytecode::validate;

/// Texts behind the pointers of [`testing::arguments`], which lie in one piece of memory that the evaluator's inputs are
/// copied from: an address is told by the text that was found there.
struct Pointed(Vec<(u64, u64, Vec<u8>)>);

impl kymo_bytecode::Texts for Pointed {
    fn text(&self, address: u64, length: u64) -> &[u8] {
        let found = self.0.iter().find(|text| (text.0, text.1) == (address, length));
        &found.expect("the program reads pointers of the layout alone").2
    }
}

fn check(random: &mut Random, predicate: &Predicate, layout: &Layout, bytes: &[u8]) -> usize {
    let program = validate(bytes).unwrap_or_else(|error| panic!("{error}\n{predicate}{layout:?}"));
    let mut kept = 0;
    for _ in 0..16 {
        let arguments = testing::arguments(random, predicate, layout);
        let data = testing::data(predicate, layout, &arguments);
        let texts = pointed(layout, &arguments, &data);
        let expected = predicate.keeps(&data[..]);
        let found = program.run(&arguments, &texts);
        assert_eq!(found, Ok(expected), "{predicate}{layout:?}\n{arguments:x?}\n{data:?}\n{program}");
        kept += usize::from(expected);
    }
    kept
}

fn pointed(layout: &Layout, arguments: &[u8], data: &[kymo_ir::predicate::Datum]) -> Pointed {
    let word = |offset: u32| {
        let bytes = &arguments[offset as usize..][..8];
        u64::from_ne_bytes(bytes.try_into().expect("8 bytes"))
    };
    let texts = layout.places.iter().zip(data).filter_map(|(place, datum)| match (place, datum) {
        (kymo_ir::predicate::Place::Pointer { offset }, kymo_ir::predicate::Datum::Text(text)) => {
            Some((word(*offset), word(*offset + 8), text.to_vec()))
        }
        _ => None,
    });
    Pointed(texts.collect())
}

#[test]
fn random_predicates_keep_what_the_evaluator_keeps() {
    let (mut taken, mut kept) = (0, 0);
    for seed in 0..4000 {
        let random = &mut Random::new(seed);
        let nodes = 1 + random.below(60);
        let (predicate, layout) = testing::predicate(random, &Options { nodes, ..Options::PLAIN });
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
