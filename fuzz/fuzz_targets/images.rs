//! Bytes as the choices that make a program of eBPF in a traced program: see `kymo_promises::images`.

#![no_main]

use kymo_promises::random::RandomNumbers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    kymo_promises::images::hold(&mut RandomNumbers::chosen(data));
    kymo_promises::images::hold_damaged(&mut RandomNumbers::chosen(data));
});
