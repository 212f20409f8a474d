//! Filters for machines that are not this one: the code is whole, whatever the predicate, and differs between machines.

use kymo_jit::{NativeFilter, Target};
use kymo_random::Random;
use kymo_random::predicates::{Options, predicate};

const TRIPLES: [&str; 3] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64-apple-darwin"];

#[test]
fn code_for_other_machines_is_whole() {
    let targets = TRIPLES.map(|triple| Target::named(triple).expect("it is built in"));
    let mut differing = 0;
    for seed in 0..1000 {
        let mut random = Random::new(seed);
        let (predicate, layout) = predicate(&mut random, &Options::PLAIN);
        let filters = targets.each_ref().map(|target| NativeFilter::new(target, &predicate, &layout));
        let [x86, arm, apple] = filters.map(|filter| filter.map(|filter| filter.code().to_vec()));
        assert_eq!(arm, apple, "seed {seed}: the order of calls differs, but this code calls nothing");
        assert_eq!(x86.is_ok(), arm.is_ok(), "seed {seed}: {predicate}");
        if let (Ok(x86), Ok(arm)) = (x86, arm) {
            assert!(!x86.is_empty() && !arm.is_empty() && arm.len().is_multiple_of(4), "seed {seed}");
            differing += usize::from(x86 != arm);
        }
    }
    assert!(differing > 800, "{differing} of 1000 differ");
}

#[test]
fn code_of_other_machines_is_not_run_here() {
    let target = Target::named("aarch64-unknown-linux-gnu").expect("it is built in");
    let mut random = Random::new(1);
    let (predicate, layout) = predicate(&mut random, &Options::INTEGERS);
    let filter = NativeFilter::new(&target, &predicate, &layout).expect("integers have machine code");
    assert!(filter.load().is_none());
    assert!(Target::named("riscv64gc-unknown-linux-gnu").is_none());
    assert!(Target::named("x86_64").is_none() && Target::named("toaster").is_none());
}
