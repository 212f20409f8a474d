//! Bytes as metadata: see `kymo_promises::metadata`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kymo_promises::metadata::hold(data));
