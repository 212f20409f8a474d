//! Random trace classes and values: what is written is read by every engine, and damaged copies are read alike.

use kymo_promises::random::RandomNumbers;
use kymo_promises::written;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

#[test]
fn what_is_written_is_read_by_every_engine() {
    // The same cases every time.
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let events = std::cell::Cell::new(0);
    let input = (proptest::collection::vec(any::<u32>(), 0..400), any::<u64>());
    let result = runner.run(&input, |(choices, seed)| {
        events.set(events.get() + written::hold(choices, &mut RandomNumbers::new(seed)));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    println!("{} events", events.get());
    assert!(events.get() > 300, "the promise was tried on {} events only", events.get());
}
