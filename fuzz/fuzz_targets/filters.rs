//! Text as a filter: see `kymo_promises::filters`.

#![no_main]

use kymo_promises::random::RandomNumbers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // Which classes and events it meets depends on the text alone, so that a fault comes again.
    let seed = data.iter().fold(0, |seed: u64, byte| seed.rotate_left(5) ^ u64::from(*byte));
    kymo_promises::filters::hold(&String::from_utf8_lossy(data), &mut RandomNumbers::new(seed));
});
