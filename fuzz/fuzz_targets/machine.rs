//! Bytes as the choices that make a program of eBPF and its runs: see `kymo_promises::machine`.

#![no_main]

use kymo_promises::random::RandomNumbers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    kymo_promises::machine::hold(&mut RandomNumbers::chosen(data));
});
