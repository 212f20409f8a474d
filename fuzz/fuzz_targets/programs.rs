//! Bytes as the choices that make a read program: see `kymo_promises::programs`.

#![no_main]

use kymo_promises::random::RandomNumbers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    kymo_promises::programs::hold(&mut RandomNumbers::chosen(data));
});
