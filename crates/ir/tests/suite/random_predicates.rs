//! Random predicates are sound and say something, and what may come out of a predicate never leaves out what does.

use kymo_ir::predicate::{Datum, Fact, InputKind, InputPlace, Number, Outcomes, Predicate, ValueRange};
use kymo_ir::predicate::{Input, Test};
use kymo_random::RandomNumbers;
use kymo_random::predicates::{PredicateOptions, arguments, data, event, predicate};

const ROUNDS: u64 = 5000;

/// What is known of an input whose value somebody knows.
fn fact(random: &mut RandomNumbers, predicate: &Predicate, number: usize, datum: &Datum) -> Fact {
    match datum {
        Datum::Missing if random.below(2) == 0 => Fact::Missing,
        Datum::Number(bits) if matches!(predicate.inputs[number].kind, InputKind::Integer { .. }) => {
            let class = predicate.range(&Number::Input(Input(number as u16)));
            let value = class.of_bits(*bits);
            let (below, above) = (random.below(3) as i128, random.below(3) as i128);
            let lowest = (value - below).max(class.lowest);
            Fact::Integer(ValueRange { lowest, highest: (value + above).min(class.highest) })
        }
        Datum::Text(text) if predicate.is_utf8(Input(number as u16)) && random.below(2) == 0 => {
            Fact::Text(text.clone())
        }
        Datum::Number(_) | Datum::Text(_) => Fact::Present,
        Datum::Missing => Fact::Anything,
    }
}

#[test]
fn they_are_sound_and_turn_out_all_ways() {
    let mut found = [0; 3];
    for seed in 0..ROUNDS {
        let mut random = RandomNumbers::new(seed);
        let options = [PredicateOptions::ALL, PredicateOptions::PLAIN, PredicateOptions::INTEGERS][seed as usize % 3];
        let (predicate, layout) = predicate(&mut random, &options);
        predicate.verify().unwrap_or_else(|error| panic!("seed {seed}: {error}\n{predicate}"));
        assert!(layout.places.iter().all(|place| place.end() <= u64::from(layout.size)), "seed {seed}");
        for _ in 0..10 {
            let event = event(&mut random, &predicate);
            let value = predicate.test(&predicate.root, &event[..]);
            found[value.map_or(2, usize::from)] += 1;
        }
    }
    assert!(found.iter().all(|&count| count > ROUNDS), "false, true, unknown: {found:?}");
}

#[test]
fn structures_hold_values_of_their_inputs() {
    for seed in 0..ROUNDS {
        let mut random = RandomNumbers::new(seed);
        let (predicate, layout) = predicate(&mut random, &PredicateOptions::ALL);
        let bytes = arguments(&mut random, &predicate, &layout);
        assert_eq!(bytes.len(), layout.size as usize);
        for (number, datum) in data(&predicate, &layout, &bytes).iter().enumerate() {
            match (datum, layout.places[number]) {
                (Datum::Missing, InputPlace::Missing) => {}
                (Datum::Number(bits), InputPlace::Integer { .. }) => {
                    let range = predicate.range(&Number::Input(Input(number as u16)));
                    let value = range.of_bits(*bits);
                    assert!((range.lowest..=range.highest).contains(&value), "seed {seed}: {value} in {range:?}");
                }
                (Datum::Number(_), InputPlace::Real { .. }) => {}
                (Datum::Text(_), InputPlace::Inline { .. } | InputPlace::Pointer { .. }) => {}
                (datum, place) => panic!("seed {seed}: {datum:?} at {place:?}"),
            }
        }
    }
}

#[test]
fn what_may_come_out_does_not_leave_out_what_does() {
    for seed in 0..ROUNDS {
        let mut random = RandomNumbers::new(seed);
        let (predicate, _) = predicate(&mut random, &PredicateOptions::ALL);
        for _ in 0..5 {
            let event = event(&mut random, &predicate);
            let facts: Vec<Fact> =
                (0..event.len()).map(|number| fact(&mut random, &predicate, number, &event[number])).collect();
            includes(&predicate, &predicate.root, &event, &facts, seed);
        }
    }
}

fn includes(predicate: &Predicate, test: &Test, event: &[Datum], facts: &[Fact], seed: u64) {
    let (value, possible) = (Outcomes::of(predicate.test(test, event)), predicate.may_be(test, facts));
    let is_in = |is: bool, may_be: bool| may_be || !is;
    assert!(
        is_in(value.is_true, possible.is_true)
            && is_in(value.is_false, possible.is_false)
            && is_in(value.is_unknown, possible.is_unknown),
        "seed {seed}: {value:?} is not in {possible:?}: {test:?}\n{event:?}\n{facts:?}\n{predicate}"
    );
    match test {
        Test::Not(test) => includes(predicate, test, event, facts, seed),
        Test::All(tests) | Test::Any(tests) => {
            tests.iter().for_each(|test| includes(predicate, test, event, facts, seed));
        }
        _ => {}
    }
}
