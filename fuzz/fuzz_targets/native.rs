//! Bytes as the choices that make a predicate and events: see `kymo_promises::native`.

#![no_main]

use kymo_promises::random::RandomNumbers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    kymo_promises::native::hold(&mut RandomNumbers::chosen(data));
});
